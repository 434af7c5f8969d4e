//! Timed pieces of work: one kind of phase per file below this directory. A workload never prints and knows nothing of reports.

pub mod copy;
pub mod launch;
pub mod samples;
