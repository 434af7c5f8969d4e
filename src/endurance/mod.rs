//! How long does a drive keep its word? Static data stay and are looked at again and again while other files are written over and over, until a limit or the
//! first loss.
//!
//! Data, threads, writing, reading and judging are those of [`crate::capacity`]; [`budget`] says how much of what is written, `round` is one pass of writing and
//! reading, [`run`] all of them in order, with what they come to.

pub mod budget;
mod round;
pub mod run;
