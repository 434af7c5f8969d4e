//! `copysim completions SHELL`: from the same definitions as the help.

use super::{Outcome, output};
use crate::error::Error;

#[derive(clap::Args)]
pub struct Args {
    /// The shell
    shell: clap_complete::Shell,
}

pub fn run(args: &Args, command: &mut clap::Command) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, command, "copysim", &mut script);
    output::print(&String::from_utf8(script).map_err(|error| Error::Internal(error.to_string()))?)?;
    Ok(0)
}
