//! `copysim show NAME`: a definition as it is written.

use super::{Outcome, output};
use crate::catalogue::Environment;
use crate::corpus::catalogue::CORPORA;
use crate::scenario::catalogue::SCENARIOS;

#[derive(clap::Args)]
pub struct Args {
    /// A scenario or corpus
    name: String,
}

pub fn run(args: &Args) -> Outcome {
    let environment = Environment::of_process();
    // A name that neither knows is most likely a scenario's.
    let found = match SCENARIOS.find(&args.name, &environment) {
        Ok(found) => found,
        Err(unknown) => CORPORA.find(&args.name, &environment).map_err(|_| unknown)?,
    };
    output::print(&format!("# {} ({})\n{}", found.name, found.origin, found.text))?;
    Ok(0)
}
