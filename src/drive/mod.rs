//! What lies under a directory that the user named: the drive, its counters, its space, and the workspace that holds all of copysim's on it.

pub mod block_trace;
pub mod counters;
mod device;
mod directory;
mod identify;
pub mod lock;
mod marker;
mod mounts;
pub mod names;
mod processes;
mod remove;
pub mod space;
pub mod workspace;

pub use counters::{CounterReader, Counters};
pub use device::{Device, DeviceNumber, Transport};
pub use identify::{Drive, Medium};
pub use lock::DriveLock;
pub use mounts::Mount;
pub use processes::{Moved, ProcessIo, Processes};
pub use remove::{Left, Removal};
pub use workspace::{RunDir, Workspace};
