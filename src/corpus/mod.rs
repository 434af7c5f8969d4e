//! Deterministic trees of files: spec + seed + version → names, sizes, times, bytes.

pub mod content;
