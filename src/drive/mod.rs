//! What lies under a directory that the user named: the drive, its counters, its space, and the workspace that holds all of copysim's on it.

pub mod advice;
mod ata;
pub mod block_trace;
pub mod counters;
mod device;
mod directory;
pub mod health;
pub mod host;
mod identify;
mod ids;
mod kernel_log;
mod link;
pub mod lock;
mod marker;
mod mmc;
mod mounts;
pub mod names;
mod nvme;
mod pcie;
mod processes;
mod queue;
mod remove;
mod smart;
pub mod space;
mod usb;
pub mod workspace;

pub use counters::{CounterReader, Counters};
pub use device::{Device, DeviceNumber, Transport};
pub use identify::{Drive, Medium};
pub use kernel_log::KernelNames;
pub use link::Hop;
pub use lock::DriveLock;
pub use mounts::Mount;
pub use processes::{Moved, ProcessIo, Processes};
pub use remove::{Left, Removal};
pub use workspace::{RunDir, Workspace};
