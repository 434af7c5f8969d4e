//! Scenarios: from the spec to the plan, from the plan to the record. `spec → plan → stage → run`, and events for those who watch.

pub mod account;
pub mod catalogue;
pub mod ceiling;
mod changed;
pub mod consent;
pub mod copy;
pub(crate) mod course;
pub mod events;
pub mod evidence;
pub mod facts;
pub mod fill;
mod kept;
pub mod layout;
pub mod memory;
pub mod needs;
pub mod options;
mod outline;
pub mod plan;
pub mod prepare;
pub(crate) mod record;
pub mod run;
pub mod spec;
pub mod stage;
pub(crate) mod traced;
pub(crate) mod wall;
pub mod window;
mod witness;
