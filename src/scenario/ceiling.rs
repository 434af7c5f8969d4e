//! How fast the engine itself is: a copy from memory to memory, before anything is measured.

use std::time::Duration;

use super::memory;
use super::options::Options;
use crate::corpus::Corpus;
use crate::corpus::generate::{FILES, generate};
use crate::corpus::manifest::Manifest;
use crate::drive::Workspace;
use crate::engine::{Engine, Trees};
use crate::error::{Context, Error, Result, Side};
use crate::platform::{Handle, System};
use crate::progress::{Cancel, Counter};
use crate::units::Scale;
use crate::workload::copy::copy_tree;

/// So much of a corpus is copied: enough to be timed, little enough for any machine's memory.
const BYTES: u64 = 64_000_000;
/// No further copy is begun after this time.
const ENOUGH: Duration = Duration::from_secs(2);
/// Copied so many times; the fastest counts, since what disturbs one is no limit of the tool.
const TIMES: u32 = 3;

/// What the engine copies from memory to memory, bytes/s, in a workspace there or in one of its own; `None` where this machine has no room in memory, or another copysim works in it.
///
/// # Errors
/// `Interrupted`, or what is left behind and why.
pub fn measure(
    system: System<'_>,
    corpus: &Corpus,
    engine: &Engine,
    options: &Options,
    memory: Option<&Workspace<'_>>,
    cancel: &Cancel,
) -> Result<Option<u64>> {
    if !engine.moves_bytes() || !has_room(system) {
        return Ok(None);
    }
    let Some(part) = part_of(corpus).ok().filter(|part| part.byte_count() <= 2 * BYTES) else { return Ok(None) };
    let in_workspace = |workspace: &Workspace<'_>| in_workspace(system, workspace, &part, engine, options, cancel);
    let measured = match memory {
        Some(workspace) => in_workspace(workspace),
        None => {
            let place = memory::place();
            let made = memory::create(system, &place).and_then(|()| Workspace::open_or_create(system, &place));
            let measured = made.and_then(|workspace| in_workspace(&workspace));
            // What another copysim uses is left alone.
            memory::remove(system, &place)?.complete()?;
            measured
        }
    };
    match measured {
        Ok(fastest) => Ok(fastest),
        Err(error @ Error::Interrupted(_)) => Err(error),
        // The tool's own speed is a help, no part of the measurement.
        Err(_) => Ok(None),
    }
}

fn has_room(system: System<'_>) -> bool {
    let space = system.files.open_root(memory::MEMORY.as_ref()).and_then(|dir| system.files.space(&dir));
    space.is_ok_and(|space| space.available_bytes.is_some_and(|available| available > 4 * BYTES))
}

/// As much of a corpus as is copied.
fn part_of(corpus: &Corpus) -> Result<Corpus> {
    let full = corpus.spec.scaled(Scale::FULL).1.max(1);
    let hundredths = u128::from(Scale::FULL.hundredths()) * u128::from(BYTES) / u128::from(full);
    let hundredths = u32::try_from(hundredths).unwrap_or(u32::MAX).clamp(1, corpus.scale().hundredths());
    Corpus::new(corpus.spec.clone(), corpus.seed, Scale::from_hundredths(hundredths))
}

fn in_workspace(
    system: System<'_>,
    workspace: &Workspace<'_>,
    part: &Corpus,
    engine: &Engine,
    options: &Options,
    cancel: &Cancel,
) -> Result<Option<u64>> {
    let from = workspace.create_corpus(&part.id())?;
    let fastest = fastest(system, workspace, &from, part, engine, options, cancel);
    drop(from);
    workspace.remove_corpus(&part.id())?.complete()?;
    fastest
}

fn fastest(
    system: System<'_>,
    workspace: &Workspace<'_>,
    from: &Handle,
    part: &Corpus,
    engine: &Engine,
    options: &Options,
    cancel: &Cancel,
) -> Result<Option<u64>> {
    let path = workspace.corpus_path(&part.id());
    generate(system, part, from, &path, super::stage::makers(), &Counter::default(), cancel, &mut |_| Ok(()))?;
    let manifest = Manifest::open(system.files, from, &path)?.ok_or_else(|| Error::Internal("a corpus without its manifest".to_owned()))?;
    let tree = system.files.open_dir(from, FILES.as_ref()).during("open", Side::Source, &path)?;
    let mut fastest: Option<u64> = None;
    let begun = system.clock.now_ns();
    for time in 0..TIMES {
        // A slow copier need not be seen more often.
        if time > 0 && u128::from(system.clock.now_ns() - begun) > ENOUGH.as_nanos() {
            break;
        }
        let run = workspace.new_run()?;
        let trees = Trees {
            files: system.files,
            source: &tree,
            source_path: &path.join(FILES),
            target: &run.dir,
            target_path: &run.path,
            umask: crate::platform::umask(),
            fresh: None,
            counter: &Counter::default(),
            cancel,
            log: None,
        };
        let start = system.clock.now_ns();
        let copied = copy_tree(trees, &manifest, engine, options.threads, options.order, system.clock);
        let ns = (system.clock.now_ns() - start).max(1);
        workspace.remove(run)?.complete()?;
        if let Some(failure) = copied.failure {
            return Err(failure);
        }
        let rate = u64::try_from(u128::from(part.byte_count()) * 1_000_000_000 / u128::from(ns)).unwrap_or(u64::MAX);
        fastest = fastest.max(Some(rate));
    }
    Ok(fastest)
}
