//! The answer in words: how long it takes, what the progress bar would have said, and what is wrong with the figure, if anything is.

use super::format::{full_stop, number, runs, sentence, share, spoken};
use super::group::Group;
use super::printable::printable;
use crate::result::{
    Answer, Capacity, CapacityVerdict, Document, Endurance, Origin, Phase, PhaseKind, PhaseStatus, Severity, SourceKind, Status, flags,
};
use crate::units::{Bytes, count, files, rate};

/// What has to be said before any figure: that something failed, differs or was interrupted, or that nothing was measured.
pub(super) fn warnings(document: &Document, groups: &[Group<'_>]) -> Vec<String> {
    let mut said = Vec::new();
    let finished = document.runs.iter().filter(|run| run.phases.iter().all(|phase| phase.status == PhaseStatus::Ok)).count();
    let rest = match (finished, document.runs.is_empty()) {
        (0, true) => "No run was begun.".to_owned(),
        (0, false) => "No run was finished.".to_owned(),
        (1, _) => "What follows is from the one run that was finished.".to_owned(),
        (n, _) => format!("What follows is from the {n} runs that were finished."),
    };
    let capacity = capacity(document);
    let faked = capacity.filter(|found| found.is_bad()).map(|found| (faked(found), found.sentence()));
    let held = faked.or_else(|| endurance(document).filter(|found| found.lost_data()).map(|found| ("DATA LOST: ", found.sentence())));
    let why = reason(document).map(printable);
    if let Some((word, sentence)) = &held {
        said.push(format!("{word}{} Do not trust this drive with anything you need.", printable(sentence)));
    }
    let held = held.map(|(_, sentence)| sentence);
    for group in groups.iter().filter(|_| held.is_none()) {
        let bad: Vec<_> = group.members.iter().filter(|(_, phase)| phase.data_differ()).collect();
        let wrong = |phase: &Phase| phase.integrity.as_ref().map_or(0, |found| found.files_checked.saturating_sub(found.files_good));
        if let Some((_, worst)) = bad.iter().max_by_key(|(_, phase)| wrong(phase)) {
            let checked = worst.integrity.as_ref().map_or(0, |found| found.files_checked);
            let numbers: Vec<u32> = bad.iter().map(|(run, _)| *run).collect();
            said.push(format!(
                "DATA DIFFER: {} of {} are not what was written ({}, {}). Do not trust this drive, its cable or its hub.",
                count(wrong(worst)),
                files(checked),
                printable(&group.title()),
                runs(&numbers, group.members.len())
            ));
        }
    }
    match document.status {
        Status::Complete => {}
        Status::Failed if !said.is_empty() && (why.is_none() || document.error == held) => {}
        Status::Failed => {
            said.push(format!("FAILED: {} {rest}", why.map_or_else(|| "the reason was not recorded.".to_owned(), |why| full_stop(&why))));
        }
        Status::Interrupted => said.push(match why.filter(|why| why != "interrupted") {
            Some(why) => format!("INTERRUPTED: {} {rest}", full_stop(&why)),
            None => format!("INTERRUPTED before the end. {rest}"),
        }),
    }
    if document.origin == Origin::Simulated {
        said.push("SIMULATED: these figures come from a model; no drive was asked.".to_owned());
    }
    said
}

/// What a check of the capacity found, where the record is of one.
pub(super) fn capacity(document: &Document) -> Option<&Capacity> {
    document.runs.iter().flat_map(|run| &run.phases).rev().find_map(|phase| phase.capacity.as_ref())
}

/// What an endurance test found, where the record is of one.
pub(super) fn endurance(document: &Document) -> Option<&Endurance> {
    document.runs.iter().flat_map(|run| &run.phases).rev().find_map(|phase| phase.endurance.as_ref())
}

/// The word before the verdict.
fn faked(found: &Capacity) -> &'static str {
    match found.verdict {
        CapacityVerdict::Damaged | CapacityVerdict::Unknown => "DATA DIFFER: ",
        _ => "FAKED: ",
    }
}

/// The verdict on a drive that holds what was written.
pub(super) fn holds(document: &Document) -> Option<String> {
    let held = capacity(document).filter(|found| !found.is_bad()).map(Capacity::sentence);
    let endured = || endurance(document).filter(|found| found.loss.is_none()).map(Endurance::sentence);
    held.or_else(endured).map(|sentence| printable(&sentence))
}

/// What ended the record before all was done.
pub(super) fn reason(document: &Document) -> Option<&str> {
    let of_phase = || document.runs.iter().flat_map(|run| &run.phases).find_map(|phase| phase.error.as_deref());
    if document.status == Status::Complete { None } else { document.error.as_deref().or_else(of_phase) }
}

/// The answer for one phase.
pub(super) fn answer(group: &Group<'_>) -> Option<String> {
    let (_, typical) = group.typical()?;
    let what = what(group.document, typical);
    if typical.engine.as_ref().is_some_and(|engine| engine.mechanism == "none") {
        let took = typical.window.returned_ns.map_or_else(|| "an unknown time".to_owned(), spoken);
        return Some(format!("Nothing was copied: the null engine took {took}, which is what copysim itself costs for this corpus."));
    }
    if !group.counts(typical) {
        return Some(uncounted(group, typical, &what));
    }
    let median = |metric: &str| group.summary(metric).map(|summary| summary.median.round() as u64);
    let returned = median("returned_ns").or(typical.window.returned_ns);
    let Some(durable) = median("durable_ns").or(typical.window.durable_ns) else {
        let returned = returned.map_or_else(|| "an unknown time".to_owned(), spoken);
        return Some(format!(
            "{what} {} after {returned}, but how long it takes until the data are safe on the drive is unknown: the flush gave no answer, so there is \
             no rate.",
            came_back(group.kind)
        ));
    };
    let mut words = format!("{what} takes {} {}", spoken(durable), doing(group, typical));
    if group.writes() {
        words.push_str(&progress_bar(returned, durable));
    }
    words.push('.');
    if let Some(rates) = group.summary("durable_bytes_per_s") {
        let [median, min, max] = [rates.median, rates.min, rates.max].map(|value| rate(value.round() as u64, 1_000_000_000));
        words.push_str(&match rates.n {
            1 => format!(" That is {median}, from one run."),
            n => format!(" That is {median}, the median of {n} runs ({} to {max}).", without_same_unit(&min, &max)),
        });
    } else if let Some(rates) = group.summary("files_per_s").filter(|_| typical.bytes == 0) {
        words.push_str(&format!(" That is {} files a second.", number(rates.median)));
    } else if !group.has_rate(typical) {
        words.push_str(" That is too short for a rate: below one second chance decides.");
    }
    words.push_str(&medium(group, typical));
    words.push_str(source(typical, durable).as_str());
    Some(words)
}

/// A quantity without its unit, where the one that follows has the same.
fn without_same_unit<'a>(quantity: &'a str, following: &str) -> &'a str {
    match (quantity.split_once(' '), following.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => number,
        _ => quantity,
    }
}

/// The words where no run counts: seconds, never a rate.
fn uncounted(group: &Group<'_>, phase: &Phase, what: &str) -> String {
    let took = phase.window.durable_ns.or(phase.window.returned_ns).map_or_else(|| "an unknown time".to_owned(), spoken);
    if phase.flags.iter().any(|flag| flag.code == flags::SHARED_BLOCKS.code) {
        return format!(
            "{what} is there after {took}: instant, no bytes moved. The file system let both copies share the same blocks, so this says nothing about \
             how fast the drive is."
        );
    }
    if phase.data_differ() {
        return format!("{what} took {took} {}, but what came back is not what was written, so there is no rate.", doing(group, phase));
    }
    let all = phase.flags.iter().chain(&group.document.flags);
    let reasons: Vec<String> = all.filter(|flag| flag.severity == Severity::Invalid).map(|flag| sentence(&printable(&flag.message))).collect();
    format!("{what} took {took} {}, but that is no measure of the drive, so there is no rate. {}", doing(group, phase), reasons.join(" "))
}

/// The corpus as a person would call it: `A folder of 7,861 photos (8.41 GB)`.
fn what(document: &Document, phase: &Phase) -> String {
    let corpus = match (phase.corpus, document.corpora.as_slice()) {
        (Some(index), corpora) => corpora.get(index),
        (None, [only]) => Some(only),
        (None, _) => None,
    };
    let many = corpus.map_or_else(|| "files".to_owned(), |corpus| printable(&corpus.noun));
    let one = many.strip_suffix('s').unwrap_or(&many);
    let bytes = Bytes(phase.bytes);
    if capacity(document).is_some() || endurance(document).is_some() {
        return format!("{bytes} of test data");
    }
    match (phase.files, phase.bytes) {
        (0, 0) => sentence(&printable(&phase.name)).trim_end_matches('.').to_owned(),
        (0, _) => format!("Work on {bytes}"),
        (1, _) => format!("A {one} of {bytes}"),
        (n, 0) => format!("A folder of {} {many}", count(n)),
        (n, _) => format!("A folder of {} {many} ({bytes})", count(n)),
    }
}

/// `to copy on this drive`.
fn doing(group: &Group<'_>, phase: &Phase) -> String {
    let verb = match group.kind {
        PhaseKind::Copy if is_within_a_drive(group, phase) => "to copy on this drive",
        PhaseKind::Copy => "to copy to this drive",
        PhaseKind::Write => "to write to this drive",
        PhaseKind::Read => "to read from this drive",
        PhaseKind::Delete => "to delete from this drive",
        PhaseKind::Walk => "to list on this drive",
        _ => "on this drive",
    };
    verb.to_owned()
}

/// Whether a copy was read from the drive that it was written to. In a suite other copies may have had another source: then that one counted nothing here.
fn is_within_a_drive(group: &Group<'_>, phase: &Phase) -> bool {
    let roles = group.roles();
    let read_from_a_drive = phase.source.is_some_and(|source| source.kind == SourceKind::Drive);
    let took_part = |source: &String| phase.device.is_empty() || phase.device.contains_key(source);
    roles.source == roles.target || read_from_a_drive && !roles.source.as_ref().is_some_and(took_part)
}

fn came_back(kind: PhaseKind) -> &'static str {
    match kind {
        PhaseKind::Copy => "seems to be copied",
        PhaseKind::Write => "seems to be written",
        _ => "seems to be done",
    }
}

fn progress_bar(returned: Option<u64>, durable: u64) -> String {
    match returned {
        Some(returned) if durable.saturating_sub(returned) <= durable / 20 => "; the progress bar would have said about the same".to_owned(),
        Some(returned) => format!("; the progress bar would have said {}", spoken(returned)),
        None => String::new(),
    }
}

/// Whether the data were on the medium, where that is not simply so.
fn medium(group: &Group<'_>, phase: &Phase) -> String {
    let reached = phase.flush.as_ref().map(|flush| flush.reaches_medium);
    match reached {
        _ if !group.writes() => String::new(),
        Some(Answer::Yes) => String::new(),
        Some(Answer::No) => " By then the data had not reached the medium.".to_owned(),
        Some(Answer::Unknown) | None => " Whether the data had reached the medium by then is unknown.".to_owned(),
    }
}

fn source(phase: &Phase, window_ns: u64) -> String {
    let Some(source) = phase.source else { return String::new() };
    let waited = source.wait_ns.map_or_else(
        || "how long the writer waited for them is unknown".to_owned(),
        |wait| format!("the writer waited {} for them ({})", spoken(wait), share(wait, window_ns)),
    );
    match source.kind {
        SourceKind::Drive => String::new(),
        SourceKind::Memory => " The data came from memory: no source drive had a part in it.".to_owned(),
        SourceKind::Generated => format!(" The data were made while writing, so no source drive had a part in it; {waited}."),
    }
}
