//! Time, counts and what follows from them.

pub mod block_trace;
pub mod calls;
pub mod curve;
mod histogram;
pub mod sampler;
pub mod stall;
pub mod statistics;
mod timeline;

pub use histogram::Histogram;
pub use timeline::{MAX_POINTS, Recorder, Samples};
