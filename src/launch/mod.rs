//! `copysim launch`: the start of a real program, timed until it is ready: with nothing of it in memory, and with all of it.
//!
//! `program` finds what is started, `sign` says when it is ready, `files` brings it out of memory, `look` sees what it does, `start` is one start,
//! `evidence` concludes from what was seen, `run` makes the record.

mod evidence;
mod files;
mod look;
mod program;
pub mod run;
pub mod sign;
mod start;
