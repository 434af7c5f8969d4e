//! copysim: how long a drive makes a person wait, with the evidence that the figure is true.
//!
//! Data flow one way:
//!
//! ```text
//! spec (TOML) → plan → stage → run → result (JSON) → report
//! ```

pub mod cache;
pub mod capacity;
pub mod catalogue;
pub mod cli;
pub mod corpus;
pub mod drive;
pub mod endurance;
pub mod engine;
pub mod error;
pub mod launch;
pub mod measure;
pub mod path_text;
pub mod platform;
pub mod progress;
pub mod report;
pub mod result;
pub mod scenario;
pub mod units;
pub mod workload;

pub use error::{Context, Error, IoFailure, Result, Side};
