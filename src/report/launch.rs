//! Starts of a program: how long until it was ready, what of that the drive costs, and what drive, processor and memory had to do meanwhile.

use super::feel;
use super::format::{number, or_unknown, sentence, share};
use super::group::Group;
use super::printable::{printable, wrap};
use super::tables::{self, marks, table};
use super::text::{WIDTH, evidence};
use crate::measure::statistics::spread;
use crate::result::{Document, Launch, Phase, PhaseKind, Severity, Summary};
use crate::units::{Bytes, count, duration};

/// What stands for starts from memory in the names of phases.
const WARM: &str = "warm";
const NS_PER_MS: f64 = 1e6;

/// The groups of one scenario that are starts, in their order.
fn scenarios<'g, 'd>(groups: &[&'g Group<'d>]) -> Vec<Vec<&'g Group<'d>>> {
    let starts: Vec<&Group<'_>> = groups.iter().copied().filter(|group| group.kind == PhaseKind::Launch && !feel::is_played(group)).collect();
    let same = |a: &&Group<'_>, b: &&Group<'_>| (a.scenario, a.arm) == (b.scenario, b.arm);
    starts.chunk_by(same).map(<[_]>::to_vec).collect()
}

/// The program and its sign of readiness, for the list of facts.
pub(super) fn program(document: &Document) -> Option<String> {
    let launch = document.runs.iter().flat_map(|run| &run.phases).find_map(|phase| phase.launch.as_ref().filter(|launch| launch.shape.is_none()))?;
    let sign = launch.sign.as_deref().map_or_else(String::new, |sign| format!("; ready when {}", sign_in_words(sign)));
    Some(format!("{}{sign}", printable(launch.program.as_deref()?)))
}

fn sign_in_words(sign: &str) -> String {
    match sign.split_once(':').unwrap_or((sign, "")) {
        ("exit", _) => "it has ended".to_owned(),
        ("port", at) => format!("{} takes connections", printable(at)),
        ("file", path) => format!("{} is there", printable(path)),
        ("line", text) => format!("a line of its output has \"{}\"", printable(text)),
        ("quiet", time) => format!("it has been quiet for {}", printable(time)),
        _ => printable(sign),
    }
}

/// The answer for the starts of each scenario.
pub(super) fn answers(groups: &[&Group<'_>]) -> Vec<String> {
    scenarios(groups).iter().filter_map(|starts| answer(starts)).collect()
}

fn ready<'d>(group: &Group<'d>) -> Option<&'d Summary> {
    group.summary("ready_ns")
}

fn answer(starts: &[&Group<'_>]) -> Option<String> {
    let launch = starts.iter().flat_map(|group| &group.members).find_map(|(_, phase)| phase.launch.as_ref())?;
    let program = launch.program.as_deref().map_or_else(|| "The program".to_owned(), |program| printable(&brief(program)));
    let mut words = Vec::new();
    let counted: Vec<(&Group<'_>, &Summary)> = starts.iter().filter_map(|group| Some((*group, ready(group)?))).collect();
    if !counted.is_empty() {
        let times: Vec<String> = counted.iter().map(|(group, ready)| format!("{} {}", said(ready.median), printable(group.name))).collect();
        words.push(format!("{program} is ready after {}{}.", joined(&times), costs(&counted)));
        words.extend(ranges(&counted));
    }
    words.extend(starts.iter().filter(|group| ready(group).is_none()).filter_map(|group| uncounted(group, &program)));
    (!words.is_empty()).then(|| words.join(" "))
}

/// What the drive costs: the difference of a start that had to be read from it and one that had not.
fn costs(counted: &[(&Group<'_>, &Summary)]) -> String {
    let (Some((_, warm)), Some((first, cold))) = (counted.iter().find(|(group, _)| group.name == WARM), counted.first()) else {
        return String::new();
    };
    if first.name == WARM {
        return String::new();
    }
    let (cold, warm) = (cold.median.round() as u64, warm.median.round() as u64);
    match cold.checked_sub(warm).filter(|drive| *drive > 0) {
        Some(drive) => format!(": the drive costs {} ({})", duration(drive), share(drive, cold)),
        None => ": the drive costs nothing that could be seen".to_owned(),
    }
}

/// Of how many starts the medians are, and how far those differ.
fn ranges(counted: &[(&Group<'_>, &Summary)]) -> Option<String> {
    let several: Vec<String> = counted
        .iter()
        .filter(|(_, ready)| ready.n > 1)
        .map(|(group, ready)| format!("{} {} to {}", printable(group.name), said(ready.min), said(ready.max)))
        .collect();
    let numbers: Vec<usize> = counted.iter().map(|(_, ready)| ready.n).collect();
    let of = match numbers.as_slice() {
        [n] => format!("Median of {n} starts"),
        [first, rest @ ..] if rest.iter().all(|n| n == first) => format!("Medians of {first} starts each"),
        _ => format!("Medians of {} starts", joined(&numbers.iter().map(ToString::to_string).collect::<Vec<_>>())),
    };
    (!several.is_empty()).then(|| format!("{of} ({}).", several.join(", ")))
}

/// The words where no start of a kind counts.
fn uncounted(group: &Group<'_>, program: &str) -> Option<String> {
    let (_, typical) = group.typical()?;
    let took = typical.launch.as_ref()?.ready_ns?;
    let all = typical.flags.iter().chain(&group.document.flags);
    let reasons: Vec<String> = all.filter(|flag| flag.severity == Severity::Invalid).map(|flag| sentence(&printable(&flag.message))).collect();
    Some(format!("{program} took {} {}, but that is no measure of the drive. {}", duration(took), printable(group.name), reasons.join(" ")))
}

/// A command line as it stands in a sentence: a long one is not said whole.
fn brief(line: &str) -> String {
    const LONGEST: usize = 60;
    let mut words = String::new();
    for (index, word) in line.split(' ').enumerate() {
        if index > 0 && words.chars().count() + word.chars().count() > LONGEST {
            return words + " …";
        }
        if index > 0 {
            words.push(' ');
        }
        words.push_str(word);
    }
    words
}

fn said(ns: f64) -> String {
    duration(ns.round() as u64)
}

/// `a`, `a and b`, `a, b and c`
fn joined(parts: &[String]) -> String {
    match parts {
        [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => parts.concat(),
    }
}

/// The table of all starts of a scenario; then for each kind what the devices did and the evidence.
pub(super) fn sections(groups: &[&Group<'_>]) -> Vec<String> {
    let mut parts = Vec::new();
    for starts in scenarios(groups) {
        parts.push(format!("STARTS\n{}", starts_table(&starts)));
        for group in starts {
            let Some((run, typical)) = group.typical() else { continue };
            let title = printable(&group.title());
            // Where all came from memory, the devices did nothing that matters.
            let meanwhile = tables::meanwhile(group.document, typical).filter(|_| group.name != WARM);
            parts.extend(meanwhile.map(|text| format!("WHAT THE DEVICES DID MEANWHILE ({title}, run {run})\n{text}")));
            parts.push(format!("EVIDENCE ({title})\n{}", evidence(group, typical).join("\n")));
        }
    }
    parts
}

/// A figure of a start, its place in a record, and how it is written.
struct Figure {
    head: &'static str,
    of: fn(&Group<'_>, &Phase) -> Option<u64>,
    show: fn(u64) -> String,
}

fn ms(ns: u64) -> String {
    number(ns as f64 / NS_PER_MS)
}

/// What goes on when it is looked at is known by the kernel's clock, which goes by 10 ms.
fn cpu_ms(ns: u64) -> String {
    if ns == 0 { "<10".to_owned() } else { ms(ns) }
}

fn launch<T>(phase: &Phase, of: impl Fn(&Launch) -> Option<T>) -> Option<T> {
    phase.launch.as_ref().and_then(of)
}

/// What the drive counted.
fn of_drive(group: &Group<'_>, phase: &Phase, of: fn(&crate::result::DeviceCounters) -> u64) -> Option<u64> {
    let target = group.roles().target?;
    phase.device.get(&target).map(of)
}

const FIGURES: [Figure; 6] = [
    Figure { head: "ready ms", of: |_, phase| launch(phase, |launch| launch.ready_ns), show: ms },
    Figure { head: "CPU ms", of: |_, phase| launch(phase, |launch| Some(launch.user_ns?.saturating_add(launch.system_ns?))), show: cpu_ms },
    Figure { head: "from drive", of: |group, phase| of_drive(group, phase, |device| device.read_bytes), show: |bytes| Bytes(bytes).to_string() },
    Figure { head: "reads", of: |group, phase| of_drive(group, phase, |device| device.reads), show: count },
    Figure { head: "major faults", of: |_, phase| launch(phase, |launch| launch.faults?.major), show: count },
    Figure { head: "minor faults", of: |_, phase| launch(phase, |launch| launch.faults?.minor), show: count },
];

fn starts_table(starts: &[&Group<'_>]) -> String {
    let mut rows = Vec::new();
    let row = |label: String, cells: [String; FIGURES.len()], marks: String| [vec![label], cells.to_vec(), vec![marks]].concat();
    for group in starts {
        for (run, phase) in &group.members {
            rows.push(row(
                format!("{} {run}", printable(group.name)),
                FIGURES.map(|figure| or_unknown((figure.of)(group, phase), figure.show)),
                marks(phase),
            ));
        }
    }
    let mut below = Vec::new();
    for group in starts {
        let counted: Vec<&Phase> = group.members.iter().map(|(_, phase)| *phase).filter(|phase| group.counts(phase)).collect();
        if counted.len() < 2 {
            continue;
        }
        // One start of which a figure is not known leaves it unknown for all.
        let spreads = FIGURES.map(|Figure { of, .. }| spread(&counted.iter().map(|phase| of(group, phase)).collect::<Option<Vec<u64>>>()?));
        let cells = |show: &dyn Fn(&Figure, crate::measure::statistics::Spread<u64>) -> String| {
            let mut index = 0;
            FIGURES.map(|figure| {
                index += 1;
                or_unknown(spreads[index - 1], |found| show(&figure, found))
            })
        };
        let name = printable(group.name);
        below.push(row(format!("{name} median"), cells(&|figure, found| (figure.show)(found.median)), String::new()));
        below.push(row(format!("{name} min"), cells(&|figure, found| (figure.show)(found.min)), String::new()));
        below.push(row(format!("{name} max"), cells(&|figure, found| (figure.show)(found.max)), String::new()));
    }
    if !below.is_empty() {
        rows.push(vec![String::new(); FIGURES.len() + 2]);
        rows.extend(below);
    }
    let head: Vec<&str> = std::iter::once("").chain(FIGURES.iter().map(|figure| figure.head)).chain(["marks"]).collect();
    let mut text = table(&head, &[0, FIGURES.len() + 1], rows);
    let waits = starts.iter().filter_map(|group| bearable(group));
    text.extend(waits.map(|line| format!("\n{}", wrap(&format!("  {line}"), WIDTH, 4))));
    text
}

/// How many starts were longer than people bear; nothing where all were short.
fn bearable(group: &Group<'_>) -> Option<String> {
    let all: Vec<&Launch> = group.members.iter().filter_map(|(_, phase)| phase.launch.as_ref()).filter(|launch| launch.ready_ns.is_some()).collect();
    let over = |limit: usize| all.iter().filter_map(|launch| launch.waits.get(limit)).map(|wait| wait.n).sum::<u64>();
    let limits = all.first()?.waits.iter().enumerate().map(|(index, wait)| (over(index), wait.over_ms)).filter(|(n, _)| *n > 0);
    let limits: Vec<String> = limits.map(|(n, ms)| format!("{n} took over {}", duration(ms.saturating_mul(1_000_000)))).collect();
    (!limits.is_empty()).then(|| format!("Of {} {} starts {}", all.len(), printable(group.name), limits.join(", ")))
}
