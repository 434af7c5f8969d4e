//! `copysim plan NAME [TARGET]`: what would be done, without doing it.

use std::path::PathBuf;

use super::options::Measuring;
use super::{Outcome, output, scenario};
use crate::report::{printable, wrap};

/// The width that everything fits in, except words that are longer.
const WIDTH: usize = 100;
/// The indent of what continues a step.
const HANG: usize = 6;

#[derive(clap::Args)]
pub struct Args {
    /// A scenario or the path of a scenario file
    name: String,
    /// The directory whose drive would be measured [default: the current one]
    target: Option<PathBuf>,
    /// The directory to copy from in cross-drive scenarios
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
    #[command(flatten)]
    measuring: Measuring,
}

pub fn run(args: Args) -> Outcome {
    let plan = scenario::resolve(&args.name, args.target.as_deref(), args.source.as_deref(), args.measuring)?;
    let lines = plan.text().lines().map(|line| wrap(&printable(line), WIDTH, HANG) + "\n").collect::<String>();
    output::print(&lines)?;
    Ok(0)
}
