//! Scenarios: from the spec to the plan, from the plan to the record. `spec → plan → stage → run`, and events for those who watch.

pub mod blocks;
pub mod catalogue;
pub mod consent;
pub mod copy;
pub mod events;
pub mod evidence;
pub mod facts;
pub mod memory;
pub mod options;
pub mod plan;
pub(crate) mod record;
pub mod run;
pub mod spec;
pub mod stage;
pub mod window;
