//! Time, counts and what follows from them.

pub mod block_trace;
pub mod calls;
mod histogram;
pub mod sampler;
pub mod statistics;
mod timeline;

pub use histogram::Histogram;
pub use timeline::{MAX_POINTS, Recorder, Samples};
