//! The record of a measurement: one JSON document from which every view is computed.
//!
//! [`Document`] is the shape, [`flags`] the registry of reservations, [`summary`] what is derived from the runs, [`mask`] what is taken out of it
//! before it leaves the machine, [`differences`] in what two of them differ, [`store`] where it lies, [`schema`] its JSON Schema.

mod block;
mod capacity;
mod course;
mod differences;
pub mod division;
mod document;
mod drive;
mod endurance;
pub mod flags;
mod hardware;
mod integrity;
mod launch;
pub mod mask;
mod numbers;
mod phase;
pub mod schema;
pub mod store;
pub mod summary;
mod terms;

pub use block::{BlockLatency, BlockRequests, BlockTrace, Overlap};
pub use capacity::{Capacity, CapacityRange};
pub use course::{ChangePoint, Curve, Drift, KernelMessage, Level, Series, Stalls, Timeline};
pub use differences::differences;
pub use document::{
    Aftermath, Copysim, Corpus, Document, Flag, Host, Kept, Place, Profile, Roles, Run, SCHEMA, SCHEMA_FAMILY, SCHEMA_MAJOR, Scenario, Score,
    Summary, check_version,
};
pub use drive::Drive;
pub use endurance::{Endurance, EnduranceLoss, EnduranceRounds};
pub use hardware::{Controller, Health, HealthReading, Mmc, Pcie, Queue, Sata, Usb};
pub use integrity::{Integrity, Mismatch, MismatchRange};
pub use launch::{Launch, LaunchFaults, LaunchFiles, LaunchShape, LaunchStorage, LaunchWaits};
pub use phase::{Cache, DeviceCounters, Engine, Evidence, Flush, Latency, Layout, Layouts, Phase, Point, SlowFile, Source, Waits, Window, Work};
pub use terms::{
    Answer, Better, Between, Blame, BlockOp, BlockSpan, Call, CapacityVerdict, CurveShape, Difference, DriveKind, EnduranceEnd, Found, Ground,
    KernelEvent, LatencyOp, Measured, Origin, PhaseKind, PhaseStatus, Proof, RateChange, Reading, SecondRead, Severity, SourceKind, StartPoint,
    Status, Unit, Verdict, Warmth, Worse,
};
