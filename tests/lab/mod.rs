//! The lab: drives and file systems whose truth is known from outside copysim. Every request to a lab drive is logged with its time, and the drive can be
//! slowed, stopped, broken and made to lie while it runs.
//!
//! A test target takes it in with `mod lab;`. The rig: a program of FUSE holds one file in memory, a loop device makes a block device of it, a file system is
//! made on that and mounted.

pub mod drive;
pub mod faults;
pub mod fuse;
pub mod leftovers;
pub mod log;
pub mod memory_fs;
pub mod mount;
pub mod store;
pub mod system;
pub mod transport;
