//! The caches of this machine: flushing them to the drive, dropping them, and proving what they held.

pub mod evict;
pub mod flush;
