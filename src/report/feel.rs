//! What a person waits for: every part that was played, in seconds and by the limits of patience, and one sentence about all of them (docs/feel.md).

use super::format::{full_stop, number, or_unknown};
use super::group::Group;
use super::printable::{printable, wrap};
use super::tables::{self, marks, table};
use super::text::{HANG, WIDTH, evidence};
use crate::result::{Call, PhaseKind, PhaseStatus, Severity, Verdict};
use crate::units::{count, duration};

/// Up to this a wait is hardly noticed as one …
const NOTICED_NS: f64 = 1e9;
/// … and beyond this a person turns to something else.
const LOST_NS: f64 = 1e10;

/// Whether its work was played.
pub(super) fn is_played(group: &Group<'_>) -> bool {
    group.kind == PhaseKind::Launch && group.members.iter().any(|(_, phase)| phase.launch.as_ref().is_none_or(|launch| launch.shape.is_some()))
}

/// Of more parts than this only the sentence about all of them opens the view, and of their evidence only what does not hold is shown.
const FEW: usize = 4;

fn played<'g, 'd>(groups: &[&'g Group<'d>]) -> Vec<&'g Group<'d>> {
    groups.iter().copied().filter(|group| is_played(group)).collect()
}

/// The answer in words.
pub(super) fn answer(groups: &[&Group<'_>]) -> Option<String> {
    let played = played(groups);
    if played.len() > FEW {
        return sentence(&played);
    }
    let parts: Vec<String> = played.iter().filter_map(|group| part(group)).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// How long one part took.
fn part(group: &Group<'_>) -> Option<String> {
    let name = printable(&group.title());
    let Some(ready) = group.summary("ready_ns") else {
        let (_, phase) = group.typical()?;
        let took = phase.launch.as_ref()?.ready_ns?;
        let reasons: Vec<String> =
            phase.flags.iter().filter(|flag| flag.severity == Severity::Invalid).map(|flag| printable(&flag.message)).collect();
        return Some(format!("{}: {}, but that is no measure of the drive. {}", name, duration(took), full_stop(&reasons.join("; "))));
    };
    let of = if ready.n > 1 { format!(" (median of {}, {} to {})", ready.n, said(ready.min), said(ready.max)) } else { " (one run)".to_owned() };
    Some(format!("{}: {}{of}.", name, said(ready.median)))
}

fn said(ns: f64) -> String {
    duration(ns.round() as u64)
}

/// The tables of all that was played, the sentence under them, and the evidence.
pub(super) fn sections(groups: &[&Group<'_>]) -> Vec<String> {
    let played = played(groups);
    if played.is_empty() {
        return Vec::new();
    }
    let mut parts = vec![format!("WHAT A PERSON WAITS FOR\n{}", waits(&played))];
    parts.extend(sentence(&played).map(|sentence| wrap(&sentence, WIDTH, 0)));
    parts.push(format!("WHERE THAT TIME GOES (seconds, of the run in the middle)\n{}", times(&played)));
    for group in &played {
        let Some((run, typical)) = group.typical() else { continue };
        let title = printable(&group.title());
        let meanwhile = tables::meanwhile(group.document, typical);
        parts.extend(meanwhile.map(|text| format!("WHAT THE DEVICES DID MEANWHILE ({title}, run {run})\n{text}")));
        let holds = typical.evidence.iter().all(|proof| proof.verdict == Verdict::Holds);
        if !typical.evidence.is_empty() && (played.len() <= FEW || !holds) {
            parts.push(format!("EVIDENCE ({title})\n{}", evidence(group, typical).join("\n")));
        }
    }
    parts
}

/// Seconds until ready, and the waits beyond each limit in the run in the middle: how many, and their share of the time.
fn waits(played: &[&Group<'_>]) -> String {
    let rows = played.iter().map(|group| {
        let ready = group.summary("ready_ns");
        let range =
            ready.filter(|ready| ready.n > 1).map_or_else(String::new, |ready| format!("{}–{}", number(ready.min / 1e9), number(ready.max / 1e9)));
        let typical = group.typical().map(|(_, phase)| phase);
        let limits = (0..3).map(|limit| {
            let wait = typical.and_then(|phase| phase.launch.as_ref()?.waits.get(limit));
            or_unknown(wait, |wait| {
                let part = wait.share.filter(|_| wait.n > 0).map_or_else(String::new, |share| format!(" ({:.0} %)", share * 100.0));
                format!("{}{part}", count(wait.n))
            })
        });
        let mut row = vec![printable(&group.title()), or_unknown(ready, |ready| number(ready.median / 1e9)), range];
        row.extend(limits);
        row
    });
    let mut text = table(&["", "ready s", "min–max", "> 0.1 s", "> 1 s", "> 10 s"], &[0], rows.collect());
    // Names are long: marks stand below.
    let marked = played
        .iter()
        .flat_map(|group| group.members.iter().map(move |(run, phase)| (group, run, marks(phase))))
        .filter(|(_, _, marks)| !marks.is_empty());
    for (group, run, marks) in marked {
        text.push('\n');
        text.push_str(&wrap(&format!("  {}, run {run}: {marks}", printable(&group.title())), WIDTH, HANG));
    }
    text
}

/// What the time went into.
fn times(played: &[&Group<'_>]) -> String {
    const PARTS: [(&str, &[Call]); 5] = [
        ("read", &[Call::Read]),
        ("fault", &[Call::Fault]),
        ("look up", &[Call::LookUp, Call::Open, Call::Close]),
        ("write", &[Call::Write, Call::Metadata, Call::Flush]),
        ("think", &[Call::Think]),
    ];
    let rows = played.iter().filter_map(|group| {
        let (_, phase) = group.typical()?;
        let time = phase.time.as_ref()?;
        let of = |calls: &[Call]| calls.iter().filter_map(|call| time.calls_ns.get(call)).sum::<u64>();
        let mut row = vec![printable(&group.title())];
        row.extend(PARTS.map(|(_, calls)| number(of(calls) as f64 / 1e9)));
        row.push(number(time.outside_ns as f64 / 1e9));
        Some(row)
    });
    let head: Vec<&str> = std::iter::once("").chain(PARTS.map(|(name, _)| name)).chain(["player"]).collect();
    table(&head, &[0], rows.collect())
}

/// One sentence on how it will feel.
fn sentence(played: &[&Group<'_>]) -> Option<String> {
    let times: Vec<(String, f64)> = played.iter().filter_map(|group| Some((printable(&group.title()), group.summary("ready_ns")?.median))).collect();
    if times.is_empty() {
        return None;
    }
    let lost: Vec<&(String, f64)> = times.iter().filter(|(_, ns)| *ns > LOST_NS).collect();
    let quick = times.iter().filter(|(_, ns)| *ns <= NOTICED_NS).count();
    let noticed = times.len() - quick - lost.len();
    let of = |n: usize| if n == 1 { "1 part".to_owned() } else { format!("{n} parts") };
    let mut said = format!(
        "Of {}, {quick} take up to a second and are hardly felt, {noticed} take up to ten and are noticed, {} take longer",
        of(times.len()),
        lost.len()
    );
    if lost.is_empty() {
        said.push('.');
    } else {
        let named: Vec<String> = lost.iter().map(|(name, ns)| format!("{name} {}", duration(ns.round() as u64))).collect();
        said.push_str(&format!(": there a person turns to something else ({}).", named.join(", ")));
    }
    let unfinished = played.iter().flat_map(|group| &group.members).filter(|(_, phase)| phase.status == PhaseStatus::Unsupported).count();
    if unfinished > 0 {
        said.push_str(&format!(" {} could not be had here.", of(unfinished)));
    }
    Some(said + " Thinking is part of it: see docs/feel.md.")
}
