//! The command line as a person uses it: what it prints, what it refuses and how it says so, what it leaves behind.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests look at files from outside copysim, end when something is wrong, and say what they skip"
)]

mod capacity;
mod card;
mod endurance;
mod hostile;
mod keeping;
mod launch;
mod material;
mod measuring;
mod person;
mod refusals;
mod rights;
mod states;
mod terminal;
mod texts;
mod trees;
