//! Carries a measurement of starts out: the program found, its drive locked and described, cold starts, then warm ones, record.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::files;
use super::program::Program;
use super::sign::Sign;
use super::start::Bed;
use crate::cache::evict::Wanted;
use crate::capacity::bench::{self, Bench};
use crate::drive::Drive;
use crate::drive::block_trace::Reads;
use crate::error::{Error, Result};
use crate::platform::ignore_unsupported;
use crate::result::{self, Aftermath, Document, Phase, PhaseKind, Run, Warmth};
use crate::scenario::account::{has_invalid, unplug};
use crate::scenario::events::Event;
use crate::scenario::evidence::compare_runs;
use crate::scenario::run::Around;
use crate::scenario::window::Watched;

/// What the measurement is called.
const NAME: &str = "launch";
/// What starts are called by what was in memory before.
const COLD: &str = "cold";
/// The same where only what is known of the program could be brought out of memory.
const PARTLY_COLD: &str = "partly cold";
const WARM: &str = "warm";
const AS_IS: &str = "as it was";

/// What the user may choose.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory whose drive is measured; `None` for that of the program's own file.
    pub directory: Option<PathBuf>,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Where programs are looked for, as `PATH` has it.
    pub search_path: OsString,
    /// How often it is started, cold and warm each.
    pub runs: u32,
    /// By what it is known to be ready.
    pub sign: Sign,
    /// How long the sign is awaited.
    pub timeout: Duration,
    /// How the caches shall be; `None` for cold starts and then warm ones.
    pub cache: Option<Wanted>,
    /// How long the drive must have been idle before each start.
    pub settle: Duration,
    /// Whether the kernel's block events are followed.
    pub block_trace: bool,
    /// Whether an invalidating flag is an exit code.
    pub strict: bool,
    /// Whether names of host and user stay in the record.
    pub identify: bool,
    /// The user's own name for the measurement.
    pub label: Option<String>,
}

/// Measures the starts of a program. The record is complete as far as things went, whatever the outcome.
pub fn run(options: &Options, around: Around<'_>, copysim: result::Copysim) -> (Document, Result<()>) {
    let (mut document, mut outcome) = bench::recorded(around, copysim, options.label.as_ref(), options.identify, |began_ns, document| {
        let Around { system, host, .. } = around;
        let program = Program::find(host, system.files, &options.command, &options.search_path)?;
        let directory = options.directory.as_deref().unwrap_or_else(|| program.directory());
        let drive = Drive::identify(host, system.files, directory).map_err(|error| Error::Refused(error.to_string()))?;
        around.observer.on(Event::Notice(format!("measuring {drive}")));
        bench::on_drive(&drive, around, began_ns, document, |bench, document| {
            bench.describe(NAME, described(options, &program), document);
            let known = files::known(host, system.files, &program, &options.search_path);
            let bed = Bed { options, program: &program, known: &known, directory: &drive.path, began_ns, cache_below: drive.has_cached_loop() };
            let measured = Starts { bench, bed }.carry_out(document);
            conclude(around, &drive, document);
            measured
        })
    });
    if options.strict && outcome.is_ok() && has_invalid(&document) {
        document.exit_code = Some(3);
        outcome = (around.save)(&document);
    }
    (document, outcome)
}

fn described(options: &Options, program: &Program) -> serde_json::Value {
    let Options { runs, sign, timeout, settle, cache, block_trace, .. } = options;
    let cache = match cache {
        None => "cold, then warm",
        Some(Wanted::Cold) => "cold",
        Some(Wanted::Warm) => "warm",
        Some(Wanted::AsIs) => "as-is",
    };
    serde_json::json!({
        "command": program.line(), "sign": sign.to_string(), "runs": runs, "cache": cache, "settle_s": settle.as_secs_f64(),
        "timeout_s": timeout.as_secs_f64(), "block_trace": block_trace,
    })
}

/// What is to be said of all starts together, and of the drive after them.
fn conclude(around: Around<'_>, drive: &Drive, document: &mut Document) {
    let ready = |name: &str| {
        let phases = document.runs.iter().flat_map(|run| &run.phases).filter(|phase| phase.name == name);
        phases.filter_map(|phase| phase.launch.as_ref()?.ready_ns).collect::<Vec<_>>()
    };
    let first = compare_runs(&ready(COLD));
    document.flags.extend(first);
    // The program may have written.
    let files = around.system.files;
    let flushed = files.open_root(&drive.path).and_then(|directory| files.sync_filesystem(&directory)).or_else(ignore_unsupported);
    let (answer, because) = unplug(drive, flushed.is_ok(), document);
    document.aftermath = Some(Aftermath { kept: Vec::new(), remove_with: None, unplug: answer, unplug_because: Some(because.to_owned()) });
}

struct Starts<'a> {
    bench: Bench<'a>,
    bed: Bed<'a>,
}

impl Starts<'_> {
    fn carry_out(&self, document: &mut Document) -> Result<()> {
        match self.bed.options.cache {
            Some(wanted) => {
                if wanted == Wanted::Warm {
                    self.warm_up()?;
                }
                self.all(wanted, document)
            }
            None => {
                self.all(Wanted::Cold, document)?;
                self.all(Wanted::Warm, document)
            }
        }
    }

    /// As many starts as were wanted, one kind after another in each run of the record.
    fn all(&self, wanted: Wanted, document: &mut Document) -> Result<()> {
        let runs = self.bed.options.runs;
        for index in 1..=runs {
            self.bench.around.cancel.check()?;
            if document.runs.len() < index as usize {
                document.runs.push(Run { index, scenario: 0, order: index, arm: None, phases: Vec::new() });
            }
            let kind = match wanted {
                Wanted::Cold => COLD,
                Wanted::Warm => WARM,
                Wanted::AsIs => AS_IS,
            };
            let title = format!("{kind} start {index} of {runs}");
            let watched = self.watched(&title);
            let mut phase = Phase::new(kind, PhaseKind::Launch);
            self.bench.under_way(document, &phase);
            let prepared = self.bed.prepare(&watched, wanted);
            if prepared.as_ref().is_ok_and(|caches| wanted == Wanted::Cold && caches.prepared.metadata != Warmth::Cold) {
                PARTLY_COLD.clone_into(&mut phase.name);
            }
            let done = prepared.and_then(|caches| self.bed.start(&watched, wanted, caches, &mut phase));
            if let Err(Error::Refused(_)) = &done
                && index == 1
                && document.runs.iter().all(|run| run.phases.is_empty())
            {
                // Nothing was started: there is nothing to keep.
                document.runs.clear();
                return done;
            }
            if let Some(run) = document.runs.get_mut(index as usize - 1) {
                run.phases.push(phase);
            }
            done?;
            document.summary = result::summary::summarise(document);
            (self.bench.around.save)(document)?;
        }
        Ok(())
    }

    /// One start that is not measured, so that the next ones find everything in memory.
    fn warm_up(&self) -> Result<()> {
        let watched = self.watched("a start before the first");
        let caches = self.bed.prepare(&watched, Wanted::AsIs)?;
        self.bed.start(&watched, Wanted::AsIs, caches, &mut Phase::new(AS_IS, PhaseKind::Launch))
    }

    fn watched<'w>(&'w self, title: &'w str) -> Watched<'w> {
        Watched { traced: self.bed.options.block_trace.then_some(Reads::Target), ..self.bench.watched(title) }
    }
}
