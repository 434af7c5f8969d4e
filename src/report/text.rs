//! The text view: first the answer in words, then the runs, then where the time went, then what speaks for and against the figures.

use std::collections::BTreeMap;

use super::format::{runs, sentence};
use super::group::{Group, groups};
use super::printable::{printable, wrap};
use super::{capacity, card, curve, endurance, feel, launch, reservations, tables, words};
use crate::result::{
    Aftermath, Answer, Cache, Corpus, Document, Drive, DriveKind, Flush, Host, MismatchRange, Phase, PhaseKind, PhaseStatus, Verdict, Warmth,
};
use crate::units::{Bytes, count};

/// The width that everything fits in, except words that are longer.
pub(super) const WIDTH: usize = 100;
/// The indent of what continues a paragraph.
pub(super) const HANG: usize = 4;

/// Renders the view, with a final newline.
pub(super) fn render(document: &Document) -> String {
    let groups = groups(document);
    let mut parts = Vec::new();
    let mut opening = words::warnings(document, &groups);
    opening.extend(words::holds(document));
    let measured: Vec<&Group<'_>> = groups.iter().filter(|group| group.measures()).collect();
    opening.extend(launch::answers(&measured));
    opening.extend(feel::answer(&measured));
    opening.extend(measured.iter().filter(|group| group.kind != PhaseKind::Launch).filter_map(|group| words::answer(group)));
    if opening.is_empty() {
        opening.push("Nothing was measured.".to_owned());
    }
    parts.push(opening.iter().map(|paragraph| wrap(paragraph, WIDTH, 0)).collect::<Vec<_>>().join("\n\n"));
    parts.push(facts(document));
    parts.extend(words::capacity(document).map(capacity::section));
    parts.extend(words::endurance(document).map(|found| endurance::section(document, found)));
    parts.extend(launch::sections(&measured));
    parts.extend(feel::sections(&measured));
    for group in measured.iter().filter(|group| group.kind != PhaseKind::Launch) {
        parts.extend(section(group));
    }
    parts.extend(differences(&measured));
    let (reservations, notes) = reservations::lines(document, &groups);
    parts.extend(list("FLAGS", reservations));
    parts.extend(list("NOTES", notes));
    parts.extend(list("ADVICE", advice(document)));
    parts.push(aftermath(document.aftermath.as_ref()));
    parts.join("\n\n") + "\n"
}

/// A head and its lines, where there are any.
fn list(head: &str, lines: Vec<String>) -> Option<String> {
    (!lines.is_empty()).then(|| format!("{head}\n{}", lines.join("\n")))
}

/// Drive, corpus, host and program, a line each.
fn facts(document: &Document) -> String {
    let mut lines = Vec::new();
    let mut fact = |name: &str, text: String| lines.push(wrap(&format!("{name:<9} {text}"), WIDTH, 10));
    for scenario in &document.scenarios {
        let roles = &scenario.roles;
        fact("Scenario", printable(&scenario.name));
        let named = match (&roles.source, &roles.target) {
            (None, None) => Vec::new(),
            (source, target) if source == target => vec![("Drive", source)],
            (None, only) | (only, None) => vec![("Drive", only)],
            (source, target) => vec![("From", source), ("To", target)],
        };
        for (head, id) in named {
            let found = id.as_deref().and_then(|id| document.drive(id));
            fact(head, found.map_or_else(|| "unknown".to_owned(), |found| drive(document, found)));
            if let Some(brief) = found.and_then(|found| card::brief(document, found)) {
                fact("Link", brief);
            }
        }
    }
    if let Some(program) = launch::program(document) {
        fact("Program", program);
    }
    let prepared: Vec<String> = preparations(document).collect();
    if !prepared.is_empty() {
        fact("Prepared", prepared.join("; "));
    }
    for found in &document.corpora {
        fact("Corpus", corpus(found));
    }
    for found in &document.hosts {
        fact("Host", host(found));
    }
    let mut program = format!("{}, copysim {}", document.started_at.strftime("%Y-%m-%d %H:%M UTC"), printable(&document.copysim.version));
    if let Some(label) = &document.label {
        program.push_str(&format!(", {}", printable(label)));
    }
    fact("Measured", program);
    lines.join("\n")
}

/// What could be done about the drives, each of them named where there are several.
fn advice(document: &Document) -> Vec<String> {
    document.drives.iter().filter(|drive| drive.path.is_some()).flat_map(|drive| card::advice(document, drive)).collect()
}

/// How the drive was brought into its state, step by step.
fn preparations(document: &Document) -> impl Iterator<Item = String> + '_ {
    let first = document.runs.iter().take(1).flat_map(|run| &run.phases);
    first.filter(|phase| phase.kind == PhaseKind::Precondition).map(|phase| {
        let what = match phase.name.as_str() {
            "dirty" => format!("free space written all over ({})", Bytes(phase.bytes)),
            "fill" => format!("filled with {} of new data", Bytes(phase.bytes)),
            "trim" => format!("told what is free ({})", Bytes(phase.bytes)),
            other => printable(other),
        };
        let because = phase.evidence.first().map_or_else(String::new, |evidence| format!(": {}", printable(&evidence.because)));
        let failed = if phase.status == PhaseStatus::Ok { "" } else { ", which was not finished" };
        format!("{what}{because}{failed}")
    })
}

/// A drive in one line: what it is, how large, how attached, how full, and where.
pub(super) fn drive(document: &Document, drive: &Drive) -> String {
    // A partition or a mapping knows its file system; what it is made of knows the rest.
    let chain = document.chain(drive);
    let mut facts = vec![name(document, drive, &mut Vec::new())];
    let of_members = || members(document, drive).map(|member| member.size_bytes).sum::<Option<u64>>().filter(|bytes| *bytes > 0);
    facts.extend(drive.size_bytes.or_else(of_members).map(|bytes| Bytes(bytes).to_string()));
    let attached = chain.iter().find_map(|drive| Some((drive.transport.as_deref()?, drive.link_bits_per_s)));
    facts.extend(attached.map(|(transport, rate)| {
        let rate = rate.map_or_else(String::new, |rate| format!(" at {}", link_rate(rate)));
        format!("{}{rate}", spelled(&printable(transport)))
    }));
    let yes = |of: fn(&Drive) -> Option<bool>| chain.iter().any(|drive| of(drive) == Some(true));
    facts.extend(yes(|drive| drive.removable).then(|| "removable".to_owned()));
    facts.extend(yes(|drive| drive.rotational).then(|| "rotating".to_owned()));
    facts.extend(yes(|drive| drive.is_system_disk).then(|| "the system disk".to_owned()));
    facts.extend(drive.fill_percent.map(|percent| format!("{percent} % full")));
    let mut place = Vec::new();
    place.extend(drive.fs_type.as_deref().map(printable));
    place.extend(drive.device.as_deref().map(|device| format!("on {}", printable(device))));
    place.extend(drive.path.as_deref().map(|path| format!("at {}", printable(path))));
    let facts = facts.join(", ");
    if place.is_empty() { facts } else { format!("{facts}; {}", place.join(" ")) }
}

/// So many drives under one are named; a record that has more is damaged.
const MOST_NAMED: usize = 64;

/// What a drive is called: its own name, and where it is made of others theirs. None is `named` twice, also where a damaged record has it under itself.
fn name<'d>(document: &'d Document, drive: &'d Drive, named: &mut Vec<&'d str>) -> String {
    named.push(&drive.id);
    let [vendor, model] = [&drive.vendor, &drive.model].map(|text| text.as_deref().map(printable));
    let own = match (vendor, model) {
        (Some(vendor), Some(model)) if !model.starts_with(&vendor) => Some(format!("{vendor} {model}")),
        (vendor, model) => model.or(vendor),
    };
    let mut of_members: Vec<String> = Vec::new();
    for member in members(document, drive) {
        if named.len() < MOST_NAMED && !named.contains(&member.id.as_str()) {
            of_members.push(name(document, member, named));
        }
    }
    match (own, of_members.is_empty()) {
        (Some(own), true) => own,
        (Some(own), false) => format!("{own} on {}", of_members.join(" + ")),
        (None, false) => of_members.join(" + "),
        (None, true) if drive.kind == DriveKind::Unknown => "unknown".to_owned(),
        (None, true) if drive.kind == DriveKind::Memory => "memory".to_owned(),
        (None, true) if drive.kind == DriveKind::Network => "a share on the network".to_owned(),
        (None, true) if drive.kind == DriveKind::Fuse => "a program (FUSE)".to_owned(),
        (None, true) => format!("unknown model ({})", drive.kind),
    }
}

/// The drives that a volume is made of. A loop device is made of a file, which its name says.
fn members<'d>(document: &'d Document, drive: &'d Drive) -> impl Iterator<Item = &'d Drive> {
    drive.under.iter().filter(|_| drive.transport.is_none()).filter_map(|id| document.drive(id))
}

/// How people write what a drive is attached by.
pub(super) fn spelled(transport: &str) -> String {
    match transport {
        "nvme" => "NVMe".to_owned(),
        "usb" | "sata" | "ata" | "sas" | "scsi" | "mmc" => transport.to_uppercase(),
        other => other.to_owned(),
    }
}

/// The rate of a link in the units in which links are sold.
pub(super) fn link_rate(bits_per_s: u64) -> String {
    let (unit, name) = if bits_per_s < 1_000_000_000 { (1e6, "Mbit/s") } else { (1e9, "Gbit/s") };
    format!("{} {name}", bits_per_s as f64 / unit)
}

fn corpus(corpus: &Corpus) -> String {
    format!(
        "{} version {}, seed {}, scale {} %: {} {}, {}",
        printable(&corpus.name),
        corpus.version,
        corpus.seed,
        corpus.scale_percent,
        count(corpus.files),
        if corpus.files == 1 { "file" } else { "files" },
        Bytes(corpus.bytes)
    )
}

/// A number of cores.
pub(super) fn cores(number: u32) -> String {
    if number == 1 { "1 core".to_owned() } else { format!("{number} cores") }
}

fn host(host: &Host) -> String {
    let mut facts: Vec<String> = [&host.name, &host.os].into_iter().flatten().map(|text| printable(text)).collect();
    facts.extend(host.kernel.as_deref().map(|kernel| format!("kernel {}", printable(kernel))));
    facts.extend(host.cpu.as_deref().map(printable));
    facts.extend(host.cores.map(cores));
    facts.extend(host.memory_bytes.map(|bytes| format!("{} memory", Bytes(bytes))));
    if facts.is_empty() { "unknown".to_owned() } else { facts.join(", ") }
}

/// One phase: its runs, and the details of the run in the middle.
fn section(group: &Group<'_>) -> Vec<String> {
    let title = printable(&group.title());
    let mut parts = vec![format!("{}\n{}", title.to_uppercase(), tables::runs(group))];
    let Some((run, typical)) = group.typical() else { return parts };
    let of = match (group.members.len(), group.members.iter().filter(|(_, phase)| group.counts(phase)).count()) {
        (1, _) => title,
        (_, counted) if counted > 2 && counted % 2 == 1 => format!("{title}, run {run}, the median"),
        _ => format!("{title}, run {run}"),
    };
    parts.extend(curve::line(typical).filter(|_| group.has_rate(typical)).map(|line| wrap(&format!("{line} ({of})"), WIDTH, HANG)));
    let waits = tables::waits(typical).unwrap_or_else(tables::missing);
    parts.push(format!("WHERE THE COPIER WAITED ({of})\n{waits}"));
    parts.extend(tables::meanwhile(group.document, typical).map(|text| format!("WHAT THE DEVICES DID MEANWHILE ({of})\n{text}")));
    parts.extend(tables::latencies(typical).map(|table| format!("HOW LONG OPERATIONS TOOK ({of})\n{table}")));
    let devices = tables::devices(group.document, typical).unwrap_or_else(tables::missing);
    parts.push(format!("WHAT THE DRIVE MOVED ({of})\n{devices}"));
    parts.extend(list(&format!("EVIDENCE ({})", printable(&group.title())), evidence(group, typical)));
    parts
}

/// The proofs, each with the worst verdict of all finished runs, then flush and coldness.
pub(super) fn evidence(group: &Group<'_>, typical: &Phase) -> Vec<String> {
    const COLUMN: usize = 28;
    let rank = |verdict: Verdict| match verdict {
        Verdict::Holds => 0,
        Verdict::Unknown => 1,
        Verdict::Fails => 2,
    };
    let mut worst: BTreeMap<_, (Verdict, &str, Vec<u32>)> = BTreeMap::new();
    let finished: Vec<_> = group.members.iter().filter(|(_, phase)| phase.status == PhaseStatus::Ok).collect();
    for (run, phase) in &finished {
        for proof in &phase.evidence {
            match worst.get_mut(&proof.proof) {
                Some((verdict, _, numbers)) if rank(*verdict) == rank(proof.verdict) => numbers.push(*run),
                Some((verdict, ..)) if rank(*verdict) > rank(proof.verdict) => {}
                _ => {
                    worst.insert(proof.proof, (proof.verdict, &proof.because, vec![*run]));
                }
            }
        }
    }
    let mut lines = Vec::new();
    let mut line =
        |name: &str, verdict: &str, because: String| lines.push(wrap(&format!("  {name:<16}  {verdict:<7}  {because}"), WIDTH, COLUMN + 1));
    for (proof, (verdict, because, numbers)) in worst {
        let shown = if verdict == Verdict::Fails { "FAILS" } else { verdict.as_str() };
        let those = if numbers.len() == finished.len() { String::new() } else { format!(" ({})", runs(&numbers, finished.len())) };
        line(proof.as_str(), shown, format!("{}{those}", printable(because)));
    }
    if group.writes() {
        line("reached medium", typical.flush.as_ref().map_or("unknown", |flush| flush.reaches_medium.as_str()), flush(typical.flush.as_ref()));
    }
    let (mark, how) = cache(typical.cache.as_ref());
    line("caches", &mark, how);
    lines
}

fn flush(flush: Option<&Flush>) -> String {
    let Some(flush) = flush else { return "no flush was recorded".to_owned() };
    let counted = match flush.device_flushes {
        None => "whether the device was flushed is unknown".to_owned(),
        Some(1) => "the device counted 1 flush".to_owned(),
        Some(n) => format!("the device counted {} flushes", count(n)),
    };
    let volatile = match flush.volatile_cache {
        None => "whether it has a volatile write cache is unknown",
        Some(true) => "it has a volatile write cache",
        Some(false) => "it has no volatile write cache",
    };
    format!("{}; {counted}; {volatile}", printable(&flush.method))
}

/// Coldness in one mark, and how it was reached.
fn cache(cache: Option<&Cache>) -> (String, String) {
    let Some(cache) = cache else { return ("unknown".to_owned(), "nothing was recorded about caches".to_owned()) };
    let mark = match (cache.data, cache.metadata) {
        (data, metadata) if data == metadata => data.to_string(),
        (Warmth::Cold, Warmth::Warm) => "data cold, metadata warm".to_owned(),
        (data, metadata) => format!("data {data}, metadata {metadata}"),
    };
    let mut how = vec![printable(&cache.method)];
    how.extend(cache.resident_before_bytes.map(|bytes| format!("{} of the sample were in memory before", Bytes(bytes))));
    how.extend(cache.device_read_share.map(|share| format!("the drive served {:.1} % of what is stored", share * 100.0)));
    (mark, how.join("; "))
}

/// Files that are not what they should be, at most ten a phase.
fn differences(groups: &[&Group<'_>]) -> Option<String> {
    const SHOWN: usize = 10;
    const RANGES_SHOWN: usize = 4;
    let mut lines = Vec::new();
    for group in groups {
        let found = group.members.iter().filter_map(|(run, phase)| phase.integrity.as_ref().map(|found| (run, found)));
        let all: Vec<_> = found.flat_map(|(run, found)| found.mismatches.iter().map(move |mismatch| (run, mismatch))).collect();
        for (run, mismatch) in all.iter().take(SHOWN) {
            let mut words = format!("  {} ({}, run {run}): {}", printable(&mismatch.path), printable(group.name), mismatch.difference);
            if let (Some(first), Some(last)) = (mismatch.first_byte, mismatch.last_byte) {
                words.push_str(&format!(", bytes {} to {}", count(first), count(last)));
            }
            words.push_str(&mismatch.different_bytes.map_or_else(String::new, |bytes| format!(", {} of them differ", count(bytes))));
            words.push_str(&mismatch.different_bits.map_or_else(String::new, |bits| format!(" in {} bits", count(bits))));
            words.push_str(&mismatch.because.as_deref().map_or_else(String::new, |because| format!("; {}", printable(because))));
            let judgement = mismatch.judgement();
            if !judgement.is_empty() {
                words.push_str(&format!("; {}", printable(&judgement)));
            }
            lines.push(wrap(&words, WIDTH, HANG));
            // One range is told above.
            for range in mismatch.ranges.iter().take(RANGES_SHOWN).filter(|_| mismatch.ranges.len() > 1) {
                lines.push(wrap(&format!("    {}", wrong_range(range)), WIDTH, HANG + 2));
            }
            let told = mismatch.ranges.len().min(RANGES_SHOWN) as u64;
            if let Some(more) = mismatch.range_count.map(|ranges| ranges.saturating_sub(told)).filter(|more| *more > 0 && told > 1) {
                lines.push(format!("    … and {} more ranges", count(more)));
            }
        }
        if all.len() > SHOWN {
            lines.push(format!("  … and {} more in the record", count((all.len() - SHOWN) as u64)));
        }
    }
    list("FILES THAT DIFFER", lines)
}

/// A range of a file that differs, and what is there.
fn wrong_range(range: &MismatchRange) -> String {
    let last = range.first_byte.saturating_add(range.bytes).saturating_sub(1);
    let from = match (&range.from_file, range.from_byte) {
        (Some(file), Some(byte)) => format!(": those of {} from byte {} on", printable(file), count(byte)),
        _ => String::new(),
    };
    format!("bytes {} to {}: {}{from}", count(range.first_byte), count(last), range.difference.in_words())
}

/// What is left behind on the drives and whether they may be unplugged.
fn aftermath(aftermath: Option<&Aftermath>) -> String {
    let Some(left) = aftermath else {
        return wrap("What was left on the drive and whether it may be unplugged was not recorded: eject it before you unplug it.", WIDTH, 0);
    };
    let mut lines = Vec::new();
    for kept in &left.kept {
        let size = kept.bytes.map_or_else(String::new, |bytes| format!(", {}", Bytes(bytes)));
        lines.push(wrap(&format!("Kept: {} ({}{size})", printable(&kept.path), printable(&kept.what)), WIDTH, HANG));
    }
    lines.extend(left.remove_with.as_deref().map(|command| format!("Remove it with: {}", printable(command))));
    if left.kept.is_empty() {
        lines.push("Nothing was left on the drive.".to_owned());
    }
    let unplug = match left.unplug {
        Answer::Yes => "The drive may be unplugged",
        Answer::No => "Do NOT unplug the drive",
        Answer::Unknown => "Whether the drive may be unplugged is unknown",
    };
    let because = left.unplug_because.as_deref().map_or_else(String::new, |because| format!(": {}", printable(because)));
    lines.push(wrap(&sentence(&format!("{unplug}{because}")), WIDTH, HANG));
    lines.join("\n")
}
