//! What follows from what was observed: proofs with their reasons, and flags. A pure function: nothing is looked at here.

use crate::cache::evict::{Prepared, Wanted};
use crate::drive::{Counters, Medium};
use crate::measure::statistics::spread;
use crate::result::{Answer, Evidence, Flag, Flush, Proof, Severity, Verdict, Warmth, flags};
use crate::units::{Bytes, count, duration};

/// A device that moved less than this share of what it should have moved has not moved it (DESIGN: below 95 % something answered for it).
const MOVED_SHARE: f64 = 0.95;
/// A device may move a tenth more than it has to, and this much for each file (its inode, directory, journal and the rest of its last block) …
const METADATA_BYTES: u64 = 64 << 10;
/// … and this much besides, before its counters prove nothing any more.
const JOURNAL_BYTES: u64 = 32_000_000;
/// The shortest window of which a rate is given.
const SHORTEST_NS: u64 = 1_000_000_000;
/// The tool may take this share of the window before it is called a limit.
const TOOL_SHARE: f64 = 0.20;
/// The writer may wait for data to be made for this share of the window.
const GENERATOR_SHARE: f64 = 0.01;
/// A first run that is slower or faster than the others by more than this share of their median, and by twice what they differ among themselves, stands apart.
const APART_SHARE: f64 = 0.20;
/// A machine that slept for longer than this was suspended; the two clocks are read one after the other.
const SUSPENDED_NS: u64 = 50_000_000;

/// Where data came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A drive.
    Drive(Medium),
    /// Memory, on purpose.
    Memory,
    /// The generator.
    Generated,
}

/// Who copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copier {
    /// This program.
    Copysim,
    /// Another program: what it does inside is not seen.
    OtherProgram,
    /// Nobody: the null engine.
    Nobody,
}

/// What was seen of a copy.
#[derive(Debug, Clone)]
pub struct Observed {
    /// Bytes of content copied.
    pub bytes: u64,
    /// Files copied.
    pub files: u64,
    /// Who copied.
    pub copier: Copier,
    /// The durable end.
    pub durable_ns: Option<u64>,
    /// Where data came from.
    pub origin: Origin,
    /// What is under the target.
    pub target: Medium,
    /// Whether both are one drive.
    pub same_drive: bool,
    /// What the caches were to be.
    pub wanted: Wanted,
    /// What they were; `None` where nothing is read from a drive.
    pub cache: Option<Prepared>,
    /// Bytes allocated for the corpus on its drive; `None` where that is not known.
    pub source_stored_bytes: Option<u64>,
    /// A cache of this machine below the source's file system that was not dropped: a loop device over a file in the page cache.
    pub cache_below: bool,
    /// What the source's devices counted: the nearest ones, and the physical ones under them where these are others.
    pub source_counted: Vec<Counters>,
    /// What the target's devices counted, likewise.
    pub target_counted: Vec<Counters>,
    /// Share of the copy's bytes in extents that other files share, from a sample.
    pub shared_share: Option<f64>,
    /// Bytes allocated for the copy over its length, from a sample.
    pub copy_stored_share: Option<f64>,
    /// Share of the copy's bytes in extents that the file system encoded (compressed), from a sample.
    pub copy_encoded_share: Option<f64>,
    /// The flush.
    pub flush: Flush,
    /// Time outside calls, ns, of all copying threads: the copier's own CPU time is in it.
    pub tool_ns: u64,
    /// Time of all threads, ns.
    pub thread_ns: u64,
    /// How long the writer waited for data to be made, ns.
    pub generator_ns: u64,
    /// How long the machine was suspended within the window, ns.
    pub suspended_ns: u64,
    /// Whether the copy differs from the corpus; `None` when it was not compared.
    pub data_differ: Option<bool>,
}

/// What follows.
#[derive(Debug, Default)]
pub struct Conclusions {
    /// The proofs.
    pub evidence: Vec<Evidence>,
    /// The reservations.
    pub flags: Vec<Flag>,
    /// Bytes that the source's device served over bytes stored.
    pub device_read_share: Option<f64>,
}

impl Observed {
    /// Whether blocks were shared instead of moved. A snapshot shares blocks too, but after they were written.
    fn shares_blocks(&self) -> bool {
        let taken = least_share(&self.target_counted, |counters| counters.written_bytes, self.bytes);
        self.shared_share.is_some_and(|shared| shared > 1.0 - MOVED_SHARE) && taken.is_none_or(|taken| taken < MOVED_SHARE)
    }
}

impl Conclusions {
    fn prove(&mut self, proof: Proof, verdict: Verdict, because: impl Into<String>) {
        self.evidence.push(Evidence { proof, verdict, because: because.into() });
    }
}

/// Draws the conclusions.
#[must_use]
pub fn conclude(seen: &Observed) -> Conclusions {
    let mut found = Conclusions::default();
    if seen.copier == Copier::Nobody {
        found.prove(Proof::Moved, Verdict::Fails, "the null engine moves nothing");
        return found;
    }
    cold(seen, &mut found);
    moved(seen, &mut found);
    durable(seen, &mut found);
    ceilings(seen, &mut found);
    source(seen, &mut found);
    if seen.suspended_ns > SUSPENDED_NS {
        found.flags.push(flags::SUSPENDED.flag(Some(&duration(seen.suspended_ns)), None));
    }
    if seen.durable_ns.is_some_and(|ns| ns < SHORTEST_NS) {
        found.flags.push(flags::TOO_SHORT.flag(None, None));
    }
    if seen.data_differ == Some(true) {
        found.flags.push(flags::DATA_DIFFER.flag(None, None));
    }
    found
}

/// What follows from the durable times of all runs, in order: whether the first one stands apart. Others may be compared with each other, not with it.
#[must_use]
pub fn compare_runs(durable_ns: &[u64]) -> Vec<Flag> {
    let [first, rest @ ..] = durable_ns else { return Vec::new() };
    let Some(others) = spread(rest).filter(|_| rest.len() >= 2) else { return Vec::new() };
    let median = others.median.max(1) as f64;
    let apart = (*first as f64 - median).abs() / median;
    let among = (others.max - others.min) as f64 / median;
    if apart <= APART_SHARE || among > apart / 2.0 {
        return Vec::new();
    }
    vec![flags::FIRST_RUN.flag(Some(&format!("{} instead of {}", duration(*first), duration(others.median))), None)]
}

impl Observed {
    /// Whether a device moved so much more than it had to that bytes of others may stand for missing ones of ours.
    fn is_crowded(&self, levels: &[Counters], moved: impl Fn(&Counters) -> u64, bytes: u64) -> bool {
        let allowed = bytes.saturating_add(bytes / 10).saturating_add(self.files.saturating_mul(METADATA_BYTES)).saturating_add(JOURNAL_BYTES);
        levels.iter().any(|counters| moved(counters) > allowed)
    }
}

/// The least share that any level of devices has moved of `bytes`.
fn least_share(levels: &[Counters], moved: impl Fn(&Counters) -> u64, bytes: u64) -> Option<f64> {
    levels.iter().map(|counters| moved(counters) as f64 / bytes.max(1) as f64).min_by(f64::total_cmp)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn cold(seen: &Observed, found: &mut Conclusions) {
    let Some(cache) = &seen.cache else {
        let what = if seen.origin == Origin::Generated { "made while it was written" } else { "in memory on purpose" };
        return found.prove(Proof::Cold, Verdict::Holds, format!("the source is {what}: nothing was read from a drive"));
    };
    let stored = seen.source_stored_bytes.unwrap_or(seen.bytes);
    let share = least_share(&seen.source_counted, |counters| counters.read_bytes, stored);
    found.device_read_share = share;
    let length = if seen.source_stored_bytes.is_some() { "stored" } else { "that the files have" };
    let served = share.map(|share| format!("the drive served {} of the {} {length}", percent(share), Bytes(stored)));
    let (verdict, because) = match (cache.data, share) {
        (_, _) if seen.origin == Origin::Drive(Medium::Memory) => (Verdict::Fails, "the source lies in memory, which is no drive".to_owned()),
        (Warmth::Warm, _) => {
            let resident = cache.resident_bytes.unwrap_or(0) as f64 / cache.sampled_bytes.max(1) as f64;
            (Verdict::Fails, format!("{} of a sample was in this machine's cache before the window", percent(resident)))
        }
        _ if seen.shares_blocks() => (Verdict::Unknown, "blocks were shared: nothing had to be read".to_owned()),
        (Warmth::Cold, Some(share)) if share < MOVED_SHARE && seen.source_stored_bytes.is_none() => {
            let served = served.unwrap_or_default();
            (
                Verdict::Unknown,
                format!("nothing was cached by this machine, and {served}; in how many bytes the file system stores them is not known"),
            )
        }
        (_, Some(share)) if share < MOVED_SHARE && stored > 0 => {
            (Verdict::Fails, format!("only part came from the drive: {}", served.unwrap_or_default()))
        }
        (Warmth::Unknown, _) => (Verdict::Unknown, "whether content was cached could not be seen".to_owned()),
        (Warmth::Cold, None) => {
            (Verdict::Unknown, "nothing was cached by this machine, but there are no counters of a drive to confirm it".to_owned())
        }
        (Warmth::Cold, Some(_)) if seen.cache_below => {
            (Verdict::Unknown, "below the loop device lies a file that this machine may cache, and only root can drop that".to_owned())
        }
        (Warmth::Cold, Some(_)) if seen.is_crowded(&seen.source_counted, |counters| counters.read_bytes, stored) => {
            (Verdict::Unknown, format!("{}: others read it too, or its metadata are large", served.unwrap_or_default()))
        }
        (Warmth::Cold, Some(_)) => {
            let warm = if cache.metadata == Warmth::Warm { "; names and attributes were warm" } else { "" };
            (Verdict::Holds, format!("nothing was cached, and {}{warm}", served.unwrap_or_default()))
        }
    };
    if verdict == Verdict::Fails {
        let mut flag = flags::NOT_COLD.flag(Some(&because), None);
        if seen.wanted == Wanted::Warm {
            // Asked for: the figure is what the person wants to know.
            flag.severity = Severity::Weak;
        }
        found.flags.push(flag);
    } else {
        if cache.metadata == Warmth::Warm {
            found.flags.push(flags::METADATA_WARM.flag(None, None));
        }
        if verdict == Verdict::Holds {
            found.flags.push(flags::HOST_COLD_ONLY.flag(None, None));
        }
    }
    found.prove(Proof::Cold, verdict, because);
}

fn moved(seen: &Observed, found: &mut Conclusions) {
    let share = least_share(&seen.target_counted, |counters| counters.written_bytes, seen.bytes);
    let wrote = share.map_or_else(String::new, |share| format!("the drive took {} of the {} copied", percent(share), Bytes(seen.bytes)));
    if seen.shares_blocks() {
        let because = format!("{} of the copy shares its blocks with other files; {wrote}", percent(seen.shared_share.unwrap_or(0.0)));
        found.flags.push(flags::SHARED_BLOCKS.flag(Some(&because), None));
        return found.prove(Proof::Moved, Verdict::Fails, because);
    }
    let stored = seen.copy_stored_share;
    match share {
        _ if seen.target == Medium::Memory => {
            found.flags.push(flags::CACHED_WRITE.flag(Some("the target is memory"), None));
            found.prove(Proof::Moved, Verdict::Fails, "the target lies in memory, which is no drive");
        }
        None => {
            let because = if stored.is_some_and(|stored| stored < MOVED_SHARE) {
                found.flags.push(flags::COMPRESSED.flag(None, None));
                "the target stores less than was copied, and there are no counters of a drive"
            } else {
                "there are no counters of a drive to see it by"
            };
            found.prove(Proof::Moved, Verdict::Unknown, because);
        }
        Some(share) if share >= MOVED_SHARE && seen.is_crowded(&seen.target_counted, |counters| counters.written_bytes, seen.bytes) => {
            found.prove(Proof::Moved, Verdict::Unknown, format!("{wrote}: others wrote to it too, or its metadata are large"));
        }
        Some(share) if share >= MOVED_SHARE => found.prove(Proof::Moved, Verdict::Holds, wrote),
        Some(_) if stored.is_some_and(|stored| stored < MOVED_SHARE) => {
            let because = format!("{wrote}, which it stores in {} of their length", percent(stored.unwrap_or(0.0)));
            found.flags.push(flags::COMPRESSED.flag(Some(&because), None));
            found.prove(Proof::Moved, Verdict::Fails, because);
        }
        Some(_) if seen.copy_encoded_share.is_some_and(|encoded| encoded > 1.0 - MOVED_SHARE) => {
            let because = format!("{wrote}, of which it stores {} compressed", percent(seen.copy_encoded_share.unwrap_or(0.0)));
            found.flags.push(flags::COMPRESSED.flag(Some(&because), None));
            found.prove(Proof::Moved, Verdict::Fails, because);
        }
        // Stored as long as it is, written less: it is still on its way, or was compressed where it can't be seen.
        Some(share) => {
            let flag = if seen.flush.reaches_medium == Answer::Yes && share > 0.0 { &flags::COMPRESSED } else { &flags::CACHED_WRITE };
            found.flags.push(flag.flag(Some(&wrote), None));
            found.prove(Proof::Moved, Verdict::Fails, wrote);
        }
    }
}

fn durable(seen: &Observed, found: &mut Conclusions) {
    let Flush { method, device_flushes, volatile_cache, reaches_medium } = &seen.flush;
    let counted = match device_flushes {
        Some(1) => "the device counted 1 flush".to_owned(),
        Some(flushes) => format!("the device counted {} flushes", count(*flushes)),
        None => "the device counts no flushes".to_owned(),
    };
    let cache = match volatile_cache {
        Some(true) => "it has a volatile cache",
        Some(false) => "it has no volatile cache",
        None => "whether it has a volatile cache is not known",
    };
    let because = format!("{method}; {counted}; {cache}");
    match reaches_medium {
        _ if seen.target == Medium::Memory => found.prove(Proof::Durable, Verdict::Fails, "the target is memory: nothing in it is durable"),
        _ if seen.durable_ns.is_none() => {
            found.flags.push(flags::FLUSH_UNKNOWN.flag(None, None));
            found.prove(Proof::Durable, Verdict::Unknown, because);
        }
        Answer::Yes => found.prove(Proof::Durable, Verdict::Holds, because),
        Answer::No => {
            found.flags.push(flags::CACHED_WRITE.flag(Some(&because), None));
            found.prove(Proof::Durable, Verdict::Fails, because);
        }
        Answer::Unknown => {
            found.flags.push(flags::FLUSH_UNKNOWN.flag(None, None));
            found.prove(Proof::Durable, Verdict::Unknown, because);
        }
    }
}

fn ceilings(seen: &Observed, found: &mut Conclusions) {
    if seen.copier == Copier::OtherProgram {
        return found.prove(Proof::BelowCeilings, Verdict::Unknown, "another program copied; the link's own rate is not known");
    }
    let share = seen.tool_ns as f64 / seen.thread_ns.max(1) as f64;
    if share > TOOL_SHARE {
        let because = format!("copysim itself took {} of the time", percent(share));
        found.flags.push(flags::TOOL_LIMITED.flag(Some(&because), None));
        found.prove(Proof::BelowCeilings, Verdict::Fails, because);
    } else {
        found.prove(
            Proof::BelowCeilings,
            Verdict::Unknown,
            format!("copysim itself took {} of the time; the link's own rate is not known", percent(share)),
        );
    }
}

fn source(seen: &Observed, found: &mut Conclusions) {
    let share = seen.generator_ns as f64 / seen.thread_ns.max(1) as f64;
    match seen.origin {
        _ if seen.same_drive => {}
        Origin::Memory => found.prove(Proof::SourceNotLimit, Verdict::Holds, "the source is memory"),
        Origin::Generated if share < GENERATOR_SHARE => {
            found.prove(Proof::SourceNotLimit, Verdict::Holds, format!("the writer waited {:.2} % of the time for data to be made", share * 100.0));
        }
        Origin::Generated => {
            let because = format!("the writer waited {} of the time for data to be made", percent(share));
            found.flags.push(flags::SOURCE_LIMITED.flag(Some(&because), None));
            found.prove(Proof::SourceNotLimit, Verdict::Fails, because);
        }
        Origin::Drive(_) => found.prove(Proof::SourceNotLimit, Verdict::Unknown, "how long only the source was busy was not observed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1_000_000_000;

    fn prepared(data: Warmth, metadata: Warmth) -> Prepared {
        let resident_bytes = Some(if data == Warmth::Cold { 0 } else { 50 });
        Prepared { method: "drop_caches 3".into(), data, metadata, resident_bytes, sampled_bytes: 100 }
    }

    fn flush(reaches_medium: Answer) -> Flush {
        Flush { method: "syncfs".into(), device_flushes: Some(1), volatile_cache: Some(true), reaches_medium }
    }

    fn counted(bytes: u64) -> Counters {
        Counters { read_bytes: bytes, written_bytes: bytes, ..Counters::default() }
    }

    /// A copy of 1 GB within one drive about which nothing is wrong.
    fn sound() -> Observed {
        Observed {
            bytes: GB,
            files: 1000,
            copier: Copier::Copysim,
            durable_ns: Some(10_000_000_000),
            origin: Origin::Drive(Medium::Block),
            target: Medium::Block,
            same_drive: true,
            wanted: Wanted::Cold,
            cache: Some(prepared(Warmth::Cold, Warmth::Cold)),
            source_stored_bytes: Some(GB),
            cache_below: false,
            source_counted: vec![counted(GB)],
            target_counted: vec![counted(GB)],
            shared_share: Some(0.0),
            copy_stored_share: Some(1.0),
            copy_encoded_share: Some(0.0),
            flush: flush(Answer::Yes),
            tool_ns: 100,
            thread_ns: 10_000,
            generator_ns: 0,
            suspended_ns: 0,
            data_differ: Some(false),
        }
    }

    fn check(seen: &Observed, proof: Proof, verdict: Verdict, flag: Option<(&str, Severity)>) {
        let found = conclude(seen);
        let verdicts: Vec<_> = found.evidence.iter().map(|evidence| (evidence.proof, evidence.verdict)).collect();
        assert!(verdicts.contains(&(proof, verdict)), "{verdicts:?}");
        let flags: Vec<_> = found.flags.iter().map(|flag| (flag.code.as_str(), flag.severity)).collect();
        match flag {
            Some(flag) => assert!(flags.contains(&flag), "{flags:?}"),
            None => assert!(flags.iter().all(|(_, severity)| *severity == Severity::Note), "{flags:?}"),
        }
    }

    const INVALID_NOT_COLD: Option<(&str, Severity)> = Some(("not-cold", Severity::Invalid));
    const CACHED_WRITE: Option<(&str, Severity)> = Some(("cached-write", Severity::Invalid));

    #[test]
    fn a_sound_copy_is_proven_and_bears_no_reservation() {
        for proof in [Proof::Cold, Proof::Moved, Proof::Durable] {
            check(&sound(), proof, Verdict::Holds, None);
        }
    }

    #[test]
    fn warm_data_are_not_cold_and_only_weakly_wrong_when_asked_for() {
        for (wanted, severity) in [(Wanted::Cold, Severity::Invalid), (Wanted::AsIs, Severity::Invalid), (Wanted::Warm, Severity::Weak)] {
            let seen = Observed { wanted, cache: Some(prepared(Warmth::Warm, Warmth::Warm)), ..sound() };
            check(&seen, Proof::Cold, Verdict::Fails, Some(("not-cold", severity)));
        }
    }

    #[test]
    fn an_ordinary_user_has_cold_data_and_one_mark() {
        let seen = Observed { cache: Some(prepared(Warmth::Cold, Warmth::Warm)), ..sound() };
        check(&seen, Proof::Cold, Verdict::Holds, Some(("metadata-warm", Severity::Weak)));
    }

    #[test]
    fn a_drive_that_served_too_little_was_helped_by_a_cache() {
        check(&Observed { source_counted: vec![counted(GB / 2)], ..sound() }, Proof::Cold, Verdict::Fails, INVALID_NOT_COLD);
        // What is stored compressed is read compressed.
        let stored = Observed { source_stored_bytes: Some(GB / 2), source_counted: vec![counted(GB / 2)], ..sound() };
        check(&stored, Proof::Cold, Verdict::Holds, None);
        check(&Observed { origin: Origin::Drive(Medium::Memory), ..sound() }, Proof::Cold, Verdict::Fails, INVALID_NOT_COLD);
    }

    #[test]
    fn a_drive_that_served_less_than_an_unknown_size_is_not_accused() {
        let unknown = Observed { source_stored_bytes: None, source_counted: vec![counted(GB / 3)], ..sound() };
        check(&unknown, Proof::Cold, Verdict::Unknown, None);
        check(&Observed { source_counted: vec![counted(GB)], ..unknown.clone() }, Proof::Cold, Verdict::Holds, None);
        check(&Observed { cache: Some(prepared(Warmth::Warm, Warmth::Cold)), ..unknown }, Proof::Cold, Verdict::Fails, INVALID_NOT_COLD);
        // Where blocks are shared nothing is read; that is said once, by its own flag.
        let shared = Observed { shared_share: Some(1.0), source_counted: vec![counted(0)], target_counted: vec![counted(0)], ..sound() };
        check(&shared, Proof::Cold, Verdict::Unknown, Some(("shared-blocks", Severity::Invalid)));
        assert!(conclude(&shared).flags.iter().all(|flag| flag.code != "not-cold"));
        // A snapshot taken meanwhile shares blocks that were moved.
        check(&Observed { shared_share: Some(1.0), ..sound() }, Proof::Moved, Verdict::Holds, None);
    }

    #[test]
    fn without_counters_or_with_a_cache_below_nothing_is_proven() {
        check(&Observed { source_counted: vec![], ..sound() }, Proof::Cold, Verdict::Unknown, None);
        check(&Observed { cache_below: true, ..sound() }, Proof::Cold, Verdict::Unknown, None);
        check(&Observed { target_counted: vec![], ..sound() }, Proof::Moved, Verdict::Unknown, None);
    }

    #[test]
    fn a_drive_that_moved_far_more_than_it_had_to_proves_nothing() {
        let crowded = vec![counted(3 * GB)];
        check(&Observed { source_counted: crowded.clone(), ..sound() }, Proof::Cold, Verdict::Unknown, None);
        check(&Observed { target_counted: crowded.clone(), ..sound() }, Proof::Moved, Verdict::Unknown, None);
        // Small files cost more than their bytes.
        check(&Observed { target_counted: crowded, files: 50_000, ..sound() }, Proof::Moved, Verdict::Holds, None);
    }

    #[test]
    fn another_program_is_not_the_tool() {
        let seen = Observed { tool_ns: 9_000, copier: Copier::OtherProgram, ..sound() };
        check(&seen, Proof::BelowCeilings, Verdict::Unknown, None);
    }

    #[test]
    fn the_physical_drive_below_counts_as_much_as_the_nearest_one() {
        let levels = vec![counted(GB), counted(0)];
        check(&Observed { source_counted: levels.clone(), ..sound() }, Proof::Cold, Verdict::Fails, INVALID_NOT_COLD);
        check(&Observed { target_counted: levels, ..sound() }, Proof::Moved, Verdict::Fails, CACHED_WRITE);
    }

    #[test]
    fn what_the_drive_did_not_take_was_shared_compressed_or_is_still_in_memory() {
        let little = || Observed { target_counted: vec![counted(GB / 10)], ..sound() };
        let shared = Observed { shared_share: Some(0.9), ..little() };
        check(&shared, Proof::Moved, Verdict::Fails, Some(("shared-blocks", Severity::Invalid)));
        let compressed = Observed { copy_stored_share: Some(0.1), ..little() };
        check(&compressed, Proof::Moved, Verdict::Fails, Some(("compressed", Severity::Weak)));
        let encoded = Observed { copy_encoded_share: Some(0.9), flush: flush(Answer::Unknown), ..little() };
        check(&encoded, Proof::Moved, Verdict::Fails, Some(("compressed", Severity::Weak)));
        check(&Observed { target_counted: vec![counted(0)], ..sound() }, Proof::Moved, Verdict::Fails, CACHED_WRITE);
        check(&Observed { target: Medium::Memory, ..sound() }, Proof::Moved, Verdict::Fails, CACHED_WRITE);
        check(&Observed { copier: Copier::Nobody, ..sound() }, Proof::Moved, Verdict::Fails, None);
    }

    #[test]
    fn a_flush_that_did_not_reach_the_medium_fails_and_an_unknown_one_is_said() {
        check(&Observed { flush: flush(Answer::No), ..sound() }, Proof::Durable, Verdict::Fails, CACHED_WRITE);
        let unknown = Some(("flush-unknown", Severity::Weak));
        check(&Observed { flush: flush(Answer::Unknown), ..sound() }, Proof::Durable, Verdict::Unknown, unknown);
        check(&Observed { durable_ns: None, ..sound() }, Proof::Durable, Verdict::Unknown, unknown);
    }

    #[test]
    fn the_tool_and_the_generator_are_named_when_they_are_the_limit() {
        check(&Observed { tool_ns: 2_100, ..sound() }, Proof::BelowCeilings, Verdict::Fails, Some(("tool-limited", Severity::Weak)));
        let fed = |generator_ns| Observed { same_drive: false, origin: Origin::Generated, cache: None, generator_ns, ..sound() };
        check(&fed(99), Proof::SourceNotLimit, Verdict::Holds, None);
        check(&fed(101), Proof::SourceNotLimit, Verdict::Fails, Some(("source-limited", Severity::Weak)));
    }

    #[test]
    fn sleep_short_windows_and_lost_data_are_flagged() {
        let slept = Observed { suspended_ns: 1_000_000_000, ..sound() };
        check(&slept, Proof::Moved, Verdict::Holds, Some(("suspended", Severity::Invalid)));
        check(&Observed { durable_ns: Some(999_999_999), ..sound() }, Proof::Moved, Verdict::Holds, Some(("too-short", Severity::Weak)));
        check(&Observed { data_differ: Some(true), ..sound() }, Proof::Moved, Verdict::Holds, Some(("data-differ", Severity::Invalid)));
    }
    #[test]
    fn a_first_run_stands_apart_when_the_others_agree() {
        let codes = |runs: &[u64]| compare_runs(runs).len();
        assert_eq!(codes(&[55, 20, 21]), 1);
        assert_eq!(codes(&[10, 20, 21]), 1);
        assert_eq!(codes(&[23, 20, 21]), 0);
        assert_eq!(codes(&[55, 20, 60]), 0, "the others do not agree");
        assert_eq!(codes(&[55, 20]), 0, "one other is no company");
        assert_eq!(codes(&[]), 0);
    }
}
