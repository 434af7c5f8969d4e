//! `copysim show NAME`: a definition as it is written.

use super::{Outcome, output};
use crate::catalogue::{Environment, is_path, unknown};
use crate::corpus::catalogue::CORPORA;
use crate::report::printable;
use crate::scenario::catalogue::SCENARIOS;

#[derive(clap::Args)]
pub struct Args {
    /// A scenario or corpus
    name: String,
}

pub fn run(args: &Args) -> Outcome {
    let environment = Environment::of_process();
    let catalogue = [&SCENARIOS, &CORPORA].into_iter().find(|catalogue| catalogue.names(&environment).contains(&args.name));
    let found = match catalogue {
        Some(catalogue) => catalogue.find(&args.name, &environment)?,
        // Files are shown as they are, whatever they define.
        None if is_path(&args.name) => SCENARIOS.find(&args.name, &environment)?,
        None => {
            let known = [SCENARIOS.names(&environment), CORPORA.names(&environment)].concat();
            return Err(unknown("scenario or corpus", &args.name, &known));
        }
    };
    // Others may have written it; tabs are part of a definition.
    let lines = found.text.lines().map(|line| line.split('\t').map(printable).collect::<Vec<_>>().join("\t") + "\n");
    output::print(&format!("# {} ({})\n{}", printable(&found.name), printable(&found.origin), lines.collect::<String>()))?;
    Ok(0)
}
