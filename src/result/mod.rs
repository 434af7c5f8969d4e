//! The record of a measurement: one JSON document from which every view is computed.
//!
//! [`Document`] is the shape, [`flags`] the registry of reservations, [`summary`] what is derived from the runs, [`mask`] what is taken out of it
//! before it leaves the machine, [`store`] where it lies, [`schema`] its JSON Schema.

mod capacity;
mod document;
pub mod flags;
pub mod mask;
mod numbers;
mod phase;
pub mod schema;
pub mod store;
pub mod summary;
mod terms;

pub use capacity::{Capacity, CapacityRange};
pub use document::{
    Aftermath, Copysim, Corpus, Document, Drive, Flag, Host, Kept, Place, Profile, Roles, Run, SCHEMA, SCHEMA_FAMILY, SCHEMA_MAJOR, Scenario, Score,
    Summary, check_version,
};
pub use phase::{
    Cache, DeviceCounters, Engine, Evidence, Flush, Integrity, Latency, Mismatch, Phase, Point, Series, SlowFile, Source, Timeline, Waits, Window,
    Work,
};
pub use terms::{
    Answer, Better, Call, CapacityVerdict, Difference, DriveKind, Found, Ground, LatencyOp, Measured, Origin, PhaseKind, PhaseStatus, Proof,
    Severity, SourceKind, StartPoint, Status, Verdict, Warmth,
};
