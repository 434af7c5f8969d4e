//! Time, counts and what follows from them.

mod histogram;
pub mod statistics;
mod timeline;

pub use histogram::Histogram;
pub use timeline::{MAX_POINTS, Recorder, Samples};
