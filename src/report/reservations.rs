//! The flags of a record as sentences: each once, with what it means and the runs that have it.

use super::format::{full_stop, runs};
use super::group::Group;
use super::printable::{printable, wrap};
use super::text::{HANG, WIDTH};
use super::words::reason;
use crate::result::{Document, Flag, Severity, flags};

/// A flag where it was raised.
struct Raised<'a> {
    flag: &'a Flag,
    /// The group it was raised in and the run's number; `None` when it is about the whole record.
    at: Option<(&'a Group<'a>, u32)>,
}

/// What speaks against the figures, the gravest first, and what is only good to know.
pub(super) fn lines(document: &Document, groups: &[Group<'_>]) -> (Vec<String>, Vec<String>) {
    let mut raised: Vec<Raised<'_>> = document.flags.iter().map(|flag| Raised { flag, at: None }).collect();
    for group in groups {
        for (run, phase) in &group.members {
            raised.extend(phase.flags.iter().map(|flag| Raised { flag, at: Some((group, *run)) }));
        }
    }
    let several = groups.iter().filter(|group| group.measures()).count() > 1;
    let of = |severity: Severity| {
        let mut codes: Vec<&str> = Vec::new();
        for raised in raised.iter().filter(|raised| raised.flag.severity == severity) {
            if !codes.contains(&raised.flag.code.as_str()) {
                codes.push(&raised.flag.code);
            }
        }
        codes.into_iter().map(|code| line(code, severity, &raised, several)).collect::<Vec<_>>()
    };
    let reservations = [of(Severity::Invalid), of(Severity::Weak)].concat();
    let mut notes = of(Severity::Note);
    notes.extend(never_quiet(groups, several));
    notes.extend(other_ends(document, groups));
    (reservations, notes)
}

fn line(code: &str, severity: Severity, raised: &[Raised<'_>], several: bool) -> String {
    let here: Vec<&Raised<'_>> = raised.iter().filter(|raised| raised.flag.code == code && raised.flag.severity == severity).collect();
    let entry = flags::explain(code);
    let said = entry.map_or_else(|| here.first().map_or("", |raised| raised.flag.message.as_str()), |entry| entry.sentence);
    // Every occurrence says the same sentence; only the figures behind it differ.
    let mut figures: Vec<(&str, Option<u32>)> = Vec::new();
    for raised in &here {
        let message = raised.flag.message.as_str();
        // Where the figures give no rate, neither do the reservations about them.
        let of_rates = [flags::CLIFF.code, flags::DRIFT.code].contains(&code);
        if of_rates && raised.at.is_some_and(|(group, run)| !group.members.iter().any(|(number, phase)| *number == run && group.has_rate(phase))) {
            continue;
        }
        let figure = message.strip_prefix(said).map_or(message, |rest| rest.trim_start_matches([':', ' ']));
        if !figure.is_empty() && !figures.iter().any(|(other, _)| *other == figure) {
            figures.push((figure, raised.at.map(|(_, run)| run)));
        }
    }
    let figures: Vec<String> = match figures.as_slice() {
        [(only, _)] => vec![printable(only)],
        several => {
            several.iter().map(|(figure, run)| run.map_or_else(|| printable(figure), |run| format!("{} (run {run})", printable(figure)))).collect()
        }
    };
    let mut text = format!("  {} ({}): {}", printable(code), places(severity, &here, several), printable(said));
    if !figures.is_empty() {
        text.push_str(&format!(": {}", figures.join("; ")));
    }
    let explanation = entry.map_or("", |entry| entry.explanation);
    wrap(format!("{} {explanation}", full_stop(&text)).trim_end(), WIDTH, HANG)
}

/// How grave it is and which runs have it.
fn places(severity: Severity, here: &[&Raised<'_>], several: bool) -> String {
    let mut places = Vec::new();
    if severity != Severity::Note {
        places.push(severity.to_string());
    }
    let mut done: Vec<&Group<'_>> = Vec::new();
    for (group, _) in here.iter().filter_map(|raised| raised.at) {
        if done.iter().any(|other| std::ptr::eq(*other, group)) {
            continue;
        }
        done.push(group);
        let numbers: Vec<u32> =
            here.iter().filter_map(|raised| raised.at).filter(|(other, _)| std::ptr::eq(*other, group)).map(|(_, run)| run).collect();
        let numbers = runs(&numbers, group.members.len());
        places.push(if several { format!("{} {numbers}", printable(&group.title())) } else { numbers });
    }
    if here.iter().any(|raised| raised.at.is_none()) {
        places.push("the whole record".to_owned());
    }
    places.join(", ")
}

/// Why it is not known when a drive stopped writing.
fn never_quiet(groups: &[Group<'_>], several: bool) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for group in groups.iter().filter(|group| group.measures() && group.writes()) {
        let mut reasons: Vec<(&str, Vec<u32>)> = Vec::new();
        for (run, phase) in &group.members {
            let Some(reason) = phase.window.quiet_reason.as_deref() else { continue };
            match reasons.iter_mut().find(|(other, _)| *other == reason) {
                Some((_, numbers)) => numbers.push(*run),
                None => reasons.push((reason, vec![*run])),
            }
        }
        for (reason, numbers) in reasons {
            let numbers = runs(&numbers, group.members.len());
            let place = if several { format!("{} {numbers}", printable(&group.title())) } else { numbers };
            let text = format!("  When the drive stopped writing is unknown ({place}): {}", printable(reason));
            lines.push(wrap(&full_stop(&text), WIDTH, HANG));
        }
    }
    lines
}

/// Why phases did not end well, where the opening does not say it.
fn other_ends(document: &Document, groups: &[Group<'_>]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for group in groups {
        for (run, phase) in &group.members {
            if let Some(error) = phase.error.as_deref().filter(|error| Some(*error) != reason(document)) {
                let text = format!("  {}, run {run}, {}: {}", printable(&group.title()), phase.status, printable(error));
                lines.push(wrap(&full_stop(&text), WIDTH, HANG));
            }
        }
    }
    lines
}
