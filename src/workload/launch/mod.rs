//! The start of a program, played from written steps: look-ups, reads, mapped files, archives, writes, and thinking between.
//!
//! A [`Play`] is made of steps and of the files of a tree before the clock starts, and then carried out by the player. Each read asks the system for exactly
//! what is written, without reading ahead: what a program's start asks of a drive was recorded below the system's own reading ahead, and so the same start is
//! the same requests on every system.

mod play;
mod player;
mod shape;
mod steps;

pub use play::{Act, Item, Play, PlayedStep};
pub use player::{Place, play};
pub use shape::{ShapeSpec, differences, shape};
pub use steps::StepSpec;
