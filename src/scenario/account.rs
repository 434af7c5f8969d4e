//! A measurement as a whole in the words of the record: who took part, what follows from all runs, how it ended, and what is left on the drives.

use std::path::Path;

use super::evidence::{compare_control, compare_places, compare_runs};
use super::facts;
use super::options::Recorded;
use super::plan::{Plan, Source};
use super::run::Around;
use super::stage::Staged;
use crate::cache::evict::Wanted;
use crate::corpus::manifest::Manifest;
use crate::drive::{Drive, Medium, Workspace};
use crate::error::{Error, Result};
use crate::path_text::path_text;
use crate::result::mask::clean_command;
use crate::result::{self, Answer, Document, Kept, PhaseKind, PhaseStatus, Roles, Severity, Status};
use crate::workload::copy::Order;

/// What follows from all runs together. Of several phases none is compared: the first of one comes after the last of another.
pub(super) fn compare(plan: &Plan, document: &Document) -> Vec<result::Flag> {
    let [only] = plan.phases.as_slice() else { return Vec::new() };
    let phases = || document.runs.iter().flat_map(|run| &run.phases).filter(|phase| phase.status == PhaseStatus::Ok);
    let of_kind = |kind| phases().filter(move |phase| phase.kind == kind);
    let durable: Vec<u64> = of_kind(only.kind()).filter_map(|phase| phase.window.durable_ns).collect();
    let mut flags = compare_runs(&durable);
    let places: Vec<u64> = of_kind(only.kind()).filter_map(|phase| phase.layout?.copy?.mean_place_bytes).collect();
    flags.extend(compare_places(&places, plan.space.total_bytes));
    flags.extend(compare_control(&durable, of_kind(PhaseKind::Control).find_map(|phase| phase.window.durable_ns)));
    flags
}

/// What is to be said of the drive's state is said of all that was measured in it, once.
pub(super) fn of_preparations(document: &Document) -> Vec<result::Flag> {
    let phases = document.runs.iter().flat_map(|run| &run.phases).filter(|phase| phase.kind == PhaseKind::Precondition);
    let mut flags: Vec<result::Flag> = Vec::new();
    for flag in phases.flat_map(|phase| &phase.flags) {
        if flags.iter().all(|said| said.code != flag.code) {
            flags.push(flag.clone());
        }
    }
    flags
}

/// Whether there is anything to keep: what was refused before a run leaves no record.
#[must_use]
pub fn was_begun(document: &Document, outcome: &Result<()>) -> bool {
    !document.runs.is_empty() || !matches!(outcome, Err(Error::Refused(_)))
}

/// Whether a flag says that a figure is no measure of the drive.
pub(crate) fn has_invalid(document: &Document) -> bool {
    let of_phases = document.runs.iter().flat_map(|run| &run.phases).flat_map(|phase| &phase.flags);
    of_phases.chain(&document.flags).any(|flag| flag.severity == Severity::Invalid)
}

/// How it ended: status, exit code, error.
pub(super) fn conclude(document: &mut Document, outcome: &Result<()>, planned: u32, strict: bool) {
    (document.status, document.exit_code, document.error) = match outcome {
        Ok(()) if document.runs.len() < planned as usize => (Status::Interrupted, Some(0), Some("--max-time was over".to_owned())),
        Ok(()) => (Status::Complete, Some(if strict && has_invalid(document) { 3 } else { 0 }), None),
        Err(error @ Error::Interrupted(_)) => (Status::Interrupted, Some(error.exit_code()), Some(error.to_string())),
        Err(error) => (Status::Failed, Some(error.exit_code()), Some(error.to_string())),
    };
}

/// Names the drives, their roles, and the scenario with its options.
pub(super) fn describe(plan: &Plan, around: Around<'_>, document: &mut Document) {
    let drives = |drive: &Drive, id: &str| facts::drives(around.host, facts::space(around.system, drive), drive, id, "h0");
    document.drives = drives(&plan.target_drive, "d0");
    let source = match &plan.source {
        Source::Target => Some("d0"),
        Source::Directory(_, drive) => {
            document.drives.extend(drives(drive, "d1"));
            Some("d1")
        }
        Source::Memory(path) => {
            let mut drive = result::Drive::unknown("d1", "h0");
            (drive.path, drive.kind) = (Some(path_text(path)), result::DriveKind::Memory);
            document.drives.push(drive);
            Some("d1")
        }
        Source::Generated => None,
    };
    let options = Recorded {
        engine: &plan.options.engine,
        threads: plan.options.threads,
        order: if plan.options.order == Order::Manifest { "manifest" } else { "readdir" },
        cache: match plan.options.cache {
            Wanted::Cold => "cold",
            Wanted::Warm => "warm",
            Wanted::AsIs => "as-is",
        },
        fill_percent: plan.fill_percent,
        state: plan.options.state.as_str(),
        control: plan.options.control,
        evidence: plan.options.evidence,
        settle_s: plan.options.settle_time().as_secs_f64(),
        verify: plan.options.verify,
    };
    document.scenarios.push(result::Scenario {
        name: plan.scenario.name.clone(),
        spec_digest: plan.spec_digest.to_hex().to_string(),
        spec: serde_json::json!({ "scenario": plan.scenario, "options": options, "runs": plan.runs }),
        scale_percent: plan.options.scale,
        roles: Roles { source: source.map(str::to_owned), target: Some("d0".to_owned()) },
    });
}

/// A corpus, and how it lies where it was staged.
pub(super) fn corpus(manifest: &Manifest, staged: Option<&Staged>, now_s: i64) -> result::Corpus {
    let corpus = &manifest.corpus;
    result::Corpus {
        name: corpus.spec.name.clone(),
        noun: corpus.spec.noun.clone(),
        version: corpus.spec.version,
        seed: corpus.seed,
        scale_percent: corpus.scale(),
        files: corpus.file_count(),
        bytes: corpus.byte_count(),
        root_digest: manifest.root.to_hex().to_string(),
        stored_bytes: staged.and_then(|staged| staged.stored_bytes),
        extents: staged.and_then(|staged| staged.layout.extents()).map(|extents| extents.count),
        staged_age_s: staged.and_then(|staged| staged.note).and_then(|note| u64::try_from(now_s.checked_sub(note.at_s)?).ok()),
    }
}

/// Whether the drive may be pulled now, and why.
#[must_use]
pub fn unplug(drive: &Drive, flushed: bool, document: &Document) -> (Answer, &'static str) {
    let lost =
        document.runs.iter().flat_map(|run| &run.phases).filter_map(|phase| phase.flush.as_ref()).any(|flush| flush.reaches_medium == Answer::No);
    match drive.medium {
        _ if drive.is_system_disk == Some(true) => (Answer::No, "this is the system disk"),
        Medium::Memory => (Answer::No, "it is this machine's memory"),
        _ if !flushed || lost => (Answer::Unknown, "the last flush is not known to have reached it"),
        Medium::Block => (Answer::Yes, "everything is flushed; eject it first, as always"),
        _ => (Answer::Unknown, "what is behind it can't be seen"),
    }
}

/// What is kept on the drives, of now and of before, and the command that removes it.
pub(super) fn what_is_kept<'w, 'a: 'w>(
    plan: &Plan,
    workspaces: impl Iterator<Item = &'w Workspace<'a>>,
    mut kept: Vec<Kept>,
) -> Result<(Vec<Kept>, Option<String>)> {
    let mut remove_with = Vec::new();
    for workspace in workspaces {
        let already = kept.len();
        kept.extend(kept_corpora(plan, workspace)?);
        kept.extend(kept_copies(&kept, workspace)?);
        let copied_now = kept[..already].iter().any(|kept| Path::new(&kept.path).starts_with(path_text(workspace.path())));
        if copied_now || kept.len() > already {
            remove_with.push(clean_command(workspace.directory()));
        }
    }
    Ok((kept, (!remove_with.is_empty()).then(|| remove_with.join(" && "))))
}

fn kept_corpora(plan: &Plan, workspace: &Workspace<'_>) -> Result<Vec<Kept>> {
    let mut kept = Vec::new();
    for name in workspace.corpora()? {
        let mine = plan.phases.iter().find(|phase| phase.corpus.id() == name);
        kept.push(Kept {
            path: path_text(&workspace.corpus_path(&name)),
            bytes: mine.map(|phase| phase.corpus.byte_count()),
            what: "corpus, used again by the next run".to_owned(),
        });
    }
    Ok(kept)
}

/// The copies that were kept before, by this measurement or another, and are not yet named.
fn kept_copies(named: &[Kept], workspace: &Workspace<'_>) -> Result<Vec<Kept>> {
    let paths = workspace.kept()?.into_iter().map(|path| path_text(&path));
    let others = paths.filter(|path| named.iter().all(|kept| kept.path != *path));
    Ok(others.map(|path| Kept { path, bytes: None, what: "copy kept earlier".to_owned() }).collect())
}
