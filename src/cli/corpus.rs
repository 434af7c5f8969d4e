//! `copysim corpus …`: material by hand.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Outcome, output, signals, watch::Watch};
use crate::catalogue::Environment;
use crate::corpus::blame::{self, Hidden, Origin};
use crate::corpus::catalogue::corpus;
use crate::corpus::identity::{Claim, Place, corpus_of, digest_into, make_manifest, places};
use crate::corpus::manifest::{Manifest, Root};
use crate::corpus::scan::{Remarks, scan};
use crate::corpus::spec::CorpusSpec;
use crate::corpus::verify::{Subject, Verification, verify};
use crate::corpus::{Corpus, FileMeta};
use crate::drive::pulse::Pulse;
use crate::drive::{Drive, DriveLock, Workspace};
use crate::error::{Context, Error, Result, Side};
use crate::path_text::path_text;
use crate::platform::{Host, OS, write_atomically};
use crate::progress::{Cancel, Counter};
use crate::report::printable;
use crate::scenario::events::{Event, Observer};
use crate::scenario::needs::corpus_room;
use crate::scenario::record::mismatch;
use crate::scenario::stage::{Staged, makers, remove_unfinished, stage};
use crate::units::{Bytes, Scale, count, files};

#[derive(clap::Subcommand)]
pub enum Command {
    /// Makes a corpus in DIR/copysim-workspace, or checks the one that is there
    Generate {
        /// A corpus or the path of a corpus file
        name: String,
        /// Where
        directory: PathBuf,
        #[command(flatten)]
        size: Size,
        #[command(flatten)]
        showing: super::options::Showing,
    },
    /// Computes the root digest of a corpus without writing it
    Digest {
        /// A corpus or the path of a corpus file
        name: String,
        #[command(flatten)]
        size: Size,
        /// Also print digest, length, time and path of every file
        #[arg(long)]
        list: bool,
        #[command(flatten)]
        showing: super::options::Showing,
    },
    /// Compares a corpus, or any copy of one, with what it should be: names every damage and its place
    Verify {
        /// A corpus, a copy of one made by any means, or a directory that was measured
        directory: PathBuf,
        /// What it should be, where it does not tell itself
        #[arg(long, value_name = "NAME")]
        corpus: Option<String>,
        /// Its seed
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Its scale [default: 100%]
        #[arg(long, value_name = "SHARE")]
        scale: Option<Scale>,
        #[command(flatten)]
        showing: super::options::Showing,
    },
    /// Makes a corpus definition of the shape of a real folder, without its names and content
    Scan {
        /// The folder
        directory: PathBuf,
        /// The name of the new corpus
        #[arg(long, default_value = "scanned")]
        name: String,
        /// Write here instead of to standard output
        #[arg(long, short, value_name = "PATH")]
        output: Option<PathBuf>,
    },
}

#[derive(clap::Args)]
pub struct Size {
    /// Seed: another seed gives other bytes
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Size, from 0.01% to 10000%
    #[arg(long, default_value = "100%", value_name = "SHARE")]
    scale: Scale,
}

pub fn run(command: Command) -> Outcome {
    let environment = Environment::of_process();
    let cancel = signals::cancel()?;
    match command {
        Command::Generate { name, directory, size, showing } => {
            let corpus = corpus(&name, size.seed, size.scale, &environment)?;
            generate(&corpus, &directory, &watch(&showing, &cancel), &cancel)
        }
        Command::Digest { name, size, list, showing } => {
            let corpus = corpus(&name, size.seed, size.scale, &environment)?;
            digest(&corpus, list, &watch(&showing, &cancel), &cancel)
        }
        Command::Verify { directory, corpus, seed, scale, showing } => {
            let claim = Claim { corpus, seed, scale };
            verify_all(&directory, &claim, &environment, &watch(&showing, &cancel), &cancel)
        }
        Command::Scan { directory, name, output } => {
            let (spec, remarks) = scan_telling(&directory, &name, &cancel)?;
            let text = toml::to_string(&spec).map_err(|error| Error::Internal(error.to_string()))?;
            match output {
                Some(path) => write_atomically(&path, text.as_bytes()).during("write", Side::Host, path)?,
                None => output::print(&text)?,
            }
            remarks.sentences().iter().for_each(|sentence| output::note(sentence));
            Ok(0)
        }
    }
}

/// A display; there is no record to keep when all ends early.
fn watch(showing: &super::options::Showing, cancel: &Arc<Cancel>) -> Watch {
    Watch::new(showing.quiet, showing.color, Arc::clone(cancel), Box::new(|signal, _| Err(Error::Interrupted(signal))))
}

/// Tells who watches on which drive everything happens.
fn on(watch: &Watch, drive: &Drive) {
    watch.on(Event::On(vec![Arc::new(Pulse::of(&Host::real(), drive))]));
}

/// Scans, and says every ten seconds how far it is: a folder may hold millions of files.
fn scan_telling(directory: &std::path::Path, name: &str, cancel: &Cancel) -> Result<(CorpusSpec, Remarks)> {
    const EVERY_NS: u64 = 10_000_000_000;
    let mut told_ns = OS.clock.now_ns();
    scan(directory, name, cancel, &mut |seen| {
        if seen.is_multiple_of(1024) && OS.clock.now_ns() - told_ns > EVERY_NS {
            told_ns = OS.clock.now_ns();
            output::note(&format!("  {} so far", files(seen)));
        }
    })
}

fn generate(corpus: &Corpus, directory: &std::path::Path, watch: &Watch, cancel: &Cancel) -> Outcome {
    let workspace = Workspace::open_or_create(OS, directory)?;
    // Nobody measures the drive meanwhile: writing would be part of what is measured.
    let drive = Drive::identify(&Host::real(), OS.files, workspace.directory())?;
    let _lock = match DriveLock::take(&Host::real(), drive.lock_numbers()) {
        Ok(lock) => lock,
        Err(busy) => {
            // What was refused leaves nothing; why it was is the error to tell.
            let _ = workspace.remove_if_empty();
            return Err(busy);
        }
    };
    on(watch, &drive);
    let staged = generate_in(&workspace, corpus, watch, cancel);
    if staged.is_err() {
        // What was begun is no corpus; the error is the one to tell.
        let _ = remove_unfinished(OS, &workspace, watch).and_then(|()| workspace.remove_if_empty());
    }
    let staged = staged?;
    output::print(&format!(
        "{}  {}, {}\n{}\n",
        staged.manifest.root.to_hex(),
        files(corpus.file_count()),
        Bytes(corpus.byte_count()),
        printable(&path_text(&staged.path))
    ))?;
    Ok(0)
}

fn generate_in(workspace: &Workspace<'_>, corpus: &Corpus, watch: &Watch, cancel: &Cancel) -> Result<Staged> {
    if !workspace.corpora()?.contains(&corpus.id())
        && let Some(warning) = corpus_room(OS, workspace, corpus)?
    {
        watch.on(Event::Notice(warning));
    }
    stage(OS, workspace, corpus, watch, cancel, &mut |_| Ok(()))
}

fn digest(corpus: &Corpus, list: bool, watch: &Watch, cancel: &Cancel) -> Outcome {
    let counter = Arc::new(Counter::default());
    let what = format!("computing the digest of {} ({}, {})", corpus.id(), files(corpus.file_count()), Bytes(corpus.byte_count()));
    watch.on(Event::Begins { what, bytes: corpus.byte_count(), counter: Arc::clone(&counter), timed: false });
    let mut root = Root::default();
    let done = digest_into(OS, corpus, makers(), &counter, cancel, |file| {
        root.add(&file);
        if !list {
            return Ok(());
        }
        let FileMeta { len, mtime, path, .. } = &file.meta;
        output::print(&format!("{} {len} {mtime} {path}\n", file.digest.to_hex()))
    });
    watch.on(Event::Ends);
    done?;
    output::print(&format!("{}  {}\n", root.digest().to_hex(), corpus.id()))?;
    Ok(0)
}

fn verify_all(directory: &std::path::Path, claim: &Claim, environment: &Environment, watch: &Watch, cancel: &Cancel) -> Outcome {
    OS.files.open_root(directory).during("open", Side::Target, directory)?;
    // A name like "." tells nothing about what it stands for.
    let absolute = std::path::absolute(directory).during("resolve", Side::Target, directory)?;
    let resolved = Host::real().resolve(&absolute).unwrap_or(absolute);
    let found = places(OS, &resolved)?;
    if found.is_empty() {
        return Err(Error::Refused(format!("there is no finished corpus in {}", directory.display())));
    }
    if let Ok(drive) = Drive::identify(&Host::real(), OS.files, &resolved) {
        on(watch, &drive);
    }
    let mut good = true;
    for place in found {
        good &= verify_one(&place, claim, environment, watch, cancel)?;
    }
    Ok(if good { 0 } else { 4 })
}

fn verify_one(place: &Place, claim: &Claim, environment: &Environment, watch: &Watch, cancel: &Cancel) -> Result<bool> {
    let counter = Arc::new(Counter::default());
    let manifest = match &place.manifest {
        Some(directory) => {
            let dir = OS.files.open_root(directory).during("open", Side::Source, directory)?;
            Manifest::open(OS.files, &dir, directory)?
        }
        None => None,
    };
    let manifest = match manifest {
        Some(manifest) => manifest,
        None => {
            let corpus = corpus_of(OS, &place.tree, claim, environment)?;
            let what = format!("no manifest: computing what {} should be", corpus.id());
            watch.on(Event::Begins { what, bytes: corpus.byte_count(), counter: Arc::clone(&counter), timed: false });
            let made = make_manifest(OS, &corpus, makers(), &counter, cancel);
            watch.on(Event::Ends);
            made?
        }
    };
    let corpus = &manifest.corpus;
    let counter = Arc::new(Counter::default());
    let what = format!("comparing {} with {}", place.tree.display(), corpus.id());
    watch.on(Event::Begins { what, bytes: corpus.byte_count(), counter: Arc::clone(&counter), timed: false });
    let tree = OS.files.open_root(&place.tree).during("open", Side::Target, &place.tree)?;
    let subject = Subject { files: OS.files, tree: &tree, path: &place.tree, side: Side::Target };
    let found = verify(subject, &manifest, 4, &counter, cancel);
    watch.on(Event::Ends);
    let mut found = found?;
    let drive = Drive::identify(&Host::real(), OS.files, &place.tree).ok();
    let hidden = Hidden { target: drive.as_ref().map_or(Some("what cannot be seen"), Drive::answers_elsewhere), source: None };
    blame::attribute(OS.files, Origin::Unknown, hidden, &mut found.differences, cancel)?;
    output::print(&verdict(place, corpus, &found))?;
    Ok(found.is_good())
}

fn verdict(place: &Place, corpus: &Corpus, found: &Verification) -> String {
    let mut text = String::new();
    for difference in &found.differences {
        text.push_str(&printable(&difference.sentence()));
        text.push('\n');
        let mismatch = mismatch(difference);
        // One range is told by the sentence.
        for range in mismatch.ranges.iter().skip(usize::from(mismatch.ranges.len() == 1)) {
            let last = range.first_byte + range.bytes - 1;
            let from = range
                .from_file
                .as_deref()
                .map_or_else(String::new, |file| format!(": {} from byte {}", printable(file), range.from_byte.unwrap_or(0)));
            let words = range.difference.in_words();
            text.push_str(&format!("  bytes {} to {last}: {} bits differ, {words}{from}\n", range.first_byte, count(range.different_bits)));
        }
        text.push_str(&format!("  {}\n", printable(&mismatch.judgement())));
    }
    let bad = found.files_checked - found.files_good;
    if bad > found.differences.len() as u64 {
        text.push_str(&format!("and {} more that differ\n", files(bad - found.differences.len() as u64)));
    }
    for extra in &found.extra_examples {
        text.push_str(&format!("{}: not part of the corpus\n", printable(extra)));
    }
    if found.extra_files > found.extra_examples.len() as u64 {
        text.push_str(&format!("and {} more: not part of the corpus\n", files(found.extra_files - found.extra_examples.len() as u64)));
    }
    if found.times.differ() > 0 {
        let zone = if found.times.are_shifted() { " (as another time zone makes it)" } else { "" };
        text.push_str(&format!("another modification time, but the right bytes: {}{zone}\n", files(found.times.differ())));
    }
    text.push_str(&format!(
        "{}: {} of {} of {} are good{}\n",
        printable(&path_text(&place.tree)),
        count(found.files_good),
        files(found.files_checked),
        printable(&corpus.id()),
        if bad > 0 { format!(", {} differ", count(bad)) } else { String::new() }
    ));
    text
}
