//! Does a drive hold what it claims? Fills it with data that say whose they are, reads all of it again, cold, and concludes from what came back.
//!
//! [`mod@bench`] is what a check stands on, [`pattern`] what is written, [`crew`] the threads that make and judge it, [`fill`] and [`read`] the two timed phases, [`map`] what was found where,
//! [`layout`] where that lies on the drive, [`diagnosis`] what follows, [`h2w`] the files of F3 and h2testw, [`progress`] what an interrupted check goes on
//! from, [`run`] all of it in order.

pub mod bench;
pub mod crew;
pub mod diagnosis;
pub mod fill;
pub mod h2w;
pub mod layout;
pub mod map;
pub mod pattern;
pub mod progress;
pub mod read;
pub(crate) mod record;
pub mod run;

/// Where the first byte of a file stands in the numbering of all test data: each file has 1 GiB of it, whether it is that long or not, as in F3 and h2testw.
pub const FILE_SPAN: u64 = 1 << 30;
/// No test data lie beyond this in that numbering: a place and the length of what lies there add up within 64 bits.
pub const END: u64 = 1 << 63;
/// The unit in which data are judged: no drive stores less at once.
pub const SECTOR: usize = 512;
/// Bytes that are made, written, read and judged at once.
pub const CHUNK: usize = 1 << 20;
