//! What `capacity`, `endurance` and `launch` have in common on the command line: options, and the way from the work to a record that is kept and shown.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Outcome;
use super::options::Showing;
use super::scenario::{Keeper, copysim_itself, rescue};
use super::watch::Watch;
use crate::capacity::bench::was_begun;
use crate::error;
use crate::platform::{Host, OS};
use crate::progress::Cancel;
use crate::result::{Copysim, Document, store};
use crate::scenario::run::Around;

/// What a check has beside its record.
#[derive(clap::Args)]
pub struct Checking {
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
    #[command(flatten)]
    pub recording: Recording,
}

/// What becomes of a record.
#[derive(clap::Args)]
pub struct Recording {
    /// Your own name for this measurement
    #[arg(long)]
    pub label: Option<String>,
    /// Keep host name, user name and home paths in the result
    #[arg(long)]
    pub identify: bool,
    /// Where results are kept [default: the user's data directory]
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Also write the result's JSON here; - is standard output, instead of the text
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    showing: Showing,
}

impl Recording {
    /// Does the work, which gets the directory of results, and keeps and shows its record.
    pub fn record(self, cancel: &Arc<Cancel>, work: impl FnOnce(&Path, Around<'_>, Copysim) -> (Document, error::Result<()>)) -> Outcome {
        let results = match self.results {
            Some(directory) => directory,
            None => store::default_dir(&|name| std::env::var_os(name))?,
        };
        let rescue = rescue(results.clone(), self.identify, self.json.clone());
        let watch = Watch::new(self.showing.quiet, self.showing.color, Arc::clone(cancel), rescue);
        let host = Host::real();
        store::prepare(OS.files, &results)?;
        let keeper = Keeper::new(results.clone(), self.identify);
        let save = |document: &Document| keeper.save(document);
        let around = Around { system: OS, host: &host, observer: &watch, cancel, save: &save };
        let (document, outcome) = work(&results, around, copysim_itself());
        let begun = was_begun(&document, &outcome);
        keeper.end(&document, outcome, begun, self.json.as_deref())
    }
}
