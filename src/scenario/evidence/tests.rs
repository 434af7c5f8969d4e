//! Every rule and threshold, on observations made up.

use super::*;
use crate::cache::evict::Wanted;
use crate::platform::{Extents, Kind, Stat};
use crate::result::{Answer, Severity, Warmth};

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

fn io(read_bytes: u64, written_bytes: u64) -> ProcessIo {
    ProcessIo { read_bytes, written_bytes }
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
        cache_elsewhere: None,
        source_counted: vec![counted(GB)],
        target_counted: vec![counted(GB)],
        shared_share: Some(0.0),
        copy_stored_share: Some(1.0),
        copy_encoded_share: Some(0.0),
        flush: flush(Answer::Yes),
        tool_ns: 100,
        system_ns: 400,
        read_ns: Some(4_000),
        tool_bytes_per_s: Some(2 * GB),
        link_bytes_per_s: Some(GB / 2),
        target_busy_ns: None,
        own_io: Some(io(GB, GB)),
        others_io: ProcessIo::default(),
        hidden_processes: false,
        busiest: None,
        baseline_bytes_per_s: Some(0),
        source_layout: None,
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
    for proof in [Proof::Cold, Proof::Moved, Proof::Durable, Proof::BelowCeilings, Proof::Alone] {
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
fn field_a01_a_drive_that_served_too_little_was_helped_by_a_cache() {
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
    let sound = || Observed { own_io: None, hidden_processes: true, ..sound() };
    check(&Observed { source_counted: crowded.clone(), ..sound() }, Proof::Cold, Verdict::Unknown, None);
    check(&Observed { target_counted: crowded.clone(), ..sound() }, Proof::Moved, Verdict::Unknown, None);
    // Small files cost more than their bytes.
    let more = |files| Observed { target_counted: vec![counted(14 * GB / 10)], files, ..sound() };
    check(&more(50_000), Proof::Moved, Verdict::Holds, None);
    check(&more(1_000), Proof::Moved, Verdict::Unknown, None);
}

#[test]
fn another_program_is_the_tool_by_its_processor_time() {
    let program = |user_ns| Observed { tool_ns: user_ns, read_ns: None, copier: Copier::OtherProgram, ..sound() };
    check(&program(1_000), Proof::BelowCeilings, Verdict::Holds, None);
    check(&program(9_000), Proof::BelowCeilings, Verdict::Fails, Some(("tool-limited", Severity::Weak)));
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
    // Written twice, half as many bytes look like all of them; and what is far more than all is said.
    let mirrored = Observed { copy_stored_share: Some(0.5), ..sound() };
    check(&mirrored, Proof::Moved, Verdict::Fails, Some(("compressed", Severity::Weak)));
    let amplified = Observed { target_counted: vec![counted(2 * GB)], ..sound() };
    check(&amplified, Proof::Moved, Verdict::Holds, Some(("amplified", Severity::Note)));
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
fn field_a13_the_tool_is_named_when_it_is_the_limit() {
    let limited = Some(("tool-limited", Severity::Weak));
    check(&Observed { tool_ns: 1_700, ..sound() }, Proof::BelowCeilings, Verdict::Fails, limited);
    check(&Observed { system_ns: 2_000, ..sound() }, Proof::BelowCeilings, Verdict::Fails, limited);
    // A tenth of a gigabyte per second is what was copied.
    check(&Observed { tool_bytes_per_s: Some(GB / 8), ..sound() }, Proof::BelowCeilings, Verdict::Fails, limited);
    check(&Observed { tool_bytes_per_s: None, ..sound() }, Proof::BelowCeilings, Verdict::Unknown, None);
}

#[test]
fn field_a01_a_rate_above_the_links_is_impossible() {
    let slow = |link| Observed { link_bytes_per_s: link, ..sound() };
    check(&slow(Some(GB / 11)), Proof::BelowCeilings, Verdict::Fails, Some(("impossible-rate", Severity::Invalid)));
    check(&slow(Some(GB / 10)), Proof::BelowCeilings, Verdict::Holds, None);
    check(&slow(None), Proof::BelowCeilings, Verdict::Unknown, None);
}

/// A copy from one drive to another, which worked for so many tenths of the window of 10 s by the kernel's own figure.
fn across(source_tenths: u64, target_tenths: u64) -> Observed {
    let busy = |tenths: u64, moved: Counters| vec![Counters { io_ticks_ns: tenths * GB, ..moved }];
    Observed {
        same_drive: false,
        source_counted: busy(source_tenths, Counters { read_bytes: GB, ..Counters::default() }),
        target_counted: busy(target_tenths, Counters { written_bytes: GB, ..Counters::default() }),
        ..sound()
    }
}

#[test]
fn the_source_is_named_when_the_target_waits_for_it() {
    let limited = Some(("source-limited", Severity::Weak));
    check(&Observed { read_ns: Some(2_000), ..across(5, 9) }, Proof::SourceNotLimit, Verdict::Holds, None);
    check(&across(5, 9), Proof::SourceNotLimit, Verdict::Unknown, None);
    check(&Observed { read_ns: Some(5_100), ..across(10, 9) }, Proof::SourceNotLimit, Verdict::Fails, limited);
    check(&Observed { read_ns: Some(2_500), ..across(9, 7) }, Proof::SourceNotLimit, Verdict::Fails, limited);
    check(&Observed { read_ns: Some(2_500), ..across(9, 9) }, Proof::SourceNotLimit, Verdict::Unknown, None);
    // By the block trace the target was busy: it had nothing to wait for, whatever the copier did.
    let busy = Observed { read_ns: Some(5_100), target_busy_ns: Some(9 * GB), ..across(10, 9) };
    check(&busy, Proof::SourceNotLimit, Verdict::Holds, None);
    let unseen = Observed { read_ns: None, copier: Copier::OtherProgram, ..across(10, 4) };
    check(&unseen, Proof::SourceNotLimit, Verdict::Fails, limited);
    let fed = |generator_ns| Observed { same_drive: false, origin: Origin::Generated, cache: None, source_counted: vec![], generator_ns, ..sound() };
    check(&fed(99), Proof::SourceNotLimit, Verdict::Holds, None);
    check(&fed(101), Proof::SourceNotLimit, Verdict::Fails, limited);
    assert!(conclude(&sound()).evidence.iter().all(|evidence| evidence.proof != Proof::SourceNotLimit), "one drive is no source of another");
}

#[test]
fn what_the_kernel_booked_to_us_proves_more_than_what_a_drive_served() {
    // The drive served three times as much; as much as was needed of it was ours, or was not.
    let busy = |own| Observed { source_counted: vec![counted(3 * GB)], own_io: Some(io(own, GB)), ..sound() };
    let verdict = |seen: &Observed| conclude(seen).evidence.iter().find(|evidence| evidence.proof == Proof::Cold).map(|evidence| evidence.verdict);
    assert_eq!([GB, GB / 2].map(|own| verdict(&busy(own))), [Some(Verdict::Holds), Some(Verdict::Unknown)]);
    let crowded = |others| Observed { target_counted: vec![counted(2 * GB)], others_io: io(0, others), ..sound() };
    let moved = |seen: &Observed| conclude(seen).evidence.iter().find(|evidence| evidence.proof == Proof::Moved).map(|evidence| evidence.verdict);
    assert_eq!([GB, 2 * GB].map(|others| moved(&crowded(others))), [Some(Verdict::Holds), Some(Verdict::Unknown)]);
    // Others work elsewhere all the time: where the drive took no more than it had to, they took no part.
    assert_eq!(moved(&Observed { others_io: io(0, 9 * GB), ..sound() }), Some(Verdict::Holds));
}

#[test]
fn others_are_seen_by_what_the_drives_moved_beyond_our_own() {
    let foreign = Some(("foreign-io", Severity::Weak));
    // 2 % of 2 GB.
    let reads = |bytes| Observed { own_io: Some(io(GB - bytes, GB)), ..sound() };
    check(&reads(39_000_000), Proof::Alone, Verdict::Holds, None);
    check(&reads(41_000_000), Proof::Alone, Verdict::Fails, foreign);
    // Written in excess: the journal's, unless another program wrote.
    let writes = |others| Observed { own_io: Some(io(GB, GB / 2)), others_io: others, ..sound() };
    check(&writes(io(0, 0)), Proof::Alone, Verdict::Holds, None);
    check(&writes(io(0, GB / 10)), Proof::Alone, Verdict::Fails, foreign);
    assert_eq!(conclude(&writes(io(0, GB))).foreign, Some(io(0, GB / 2)));
    // An ordinary user does not see everybody, and can't tell them from the file system's own bookkeeping.
    let hidden = |own| Observed { own_io: Some(io(GB, own)), hidden_processes: true, ..sound() };
    check(&hidden(GB / 2), Proof::Alone, Verdict::Unknown, None);
    check(&hidden(GB - 30_000_000), Proof::Alone, Verdict::Holds, None);
    // What went on before the window goes on in it.
    check(&Observed { baseline_bytes_per_s: Some(5_000_000), ..sound() }, Proof::Alone, Verdict::Fails, foreign);
    check(&Observed { own_io: None, ..sound() }, Proof::Alone, Verdict::Unknown, None);
}

#[test]
fn field_a06_names_and_attributes_are_judged_apart_from_content() {
    let served = |bytes| Observed { source_counted: vec![Counters { read_bytes: bytes, ..counted(GB) }], ..sound() };
    check(&served(GB + 3_000_000), Proof::ColdMetadata, Verdict::Holds, None);
    check(&served(GB + 63_999), Proof::ColdMetadata, Verdict::Unknown, None);
    let warm = Observed { cache: Some(prepared(Warmth::Cold, Warmth::Warm)), ..sound() };
    check(&warm, Proof::ColdMetadata, Verdict::Fails, Some(("metadata-warm", Severity::Weak)));
}

#[test]
fn a_source_in_pieces_is_said() {
    let stat = Stat { kind: Kind::File, len: GB, stored_bytes: GB, mtime: (0, 0), mode: 0, device: (8, 0), inode: 1, uid: 0 };
    let mut layout = Layout::default();
    layout.add(&stat, Ok(Extents { count: 5_000, mapped_bytes: GB, ..Extents::default() }));
    check(&Observed { source_layout: Some(layout), ..sound() }, Proof::Moved, Verdict::Holds, Some(("source-fragmented", Severity::Weak)));
}

#[test]
fn sleep_short_windows_and_lost_data_are_flagged() {
    let slept = Observed { suspended_ns: 1_000_000_000, ..sound() };
    check(&slept, Proof::Moved, Verdict::Holds, Some(("suspended", Severity::Invalid)));
    check(&Observed { durable_ns: Some(999_999_999), ..sound() }, Proof::Moved, Verdict::Holds, Some(("too-short", Severity::Weak)));
    check(&Observed { data_differ: Some(true), ..sound() }, Proof::Moved, Verdict::Holds, Some(("data-differ", Severity::Invalid)));
}

#[test]
fn copies_at_different_places_are_said() {
    assert_eq!(compare_places(&[GB, GB, 109 * GB / 100], Some(GB)).len(), 0);
    assert_eq!(compare_places(&[GB, GB, 12 * GB / 10], Some(GB)).len(), 1);
    assert_eq!(compare_places(&[GB, 2 * GB], None).len() + compare_places(&[], Some(GB)).len(), 0);
}

#[test]
fn a_slower_control_means_that_equal_data_are_kept_once() {
    let flagged = |control| compare_control(&[100 * GB, 99 * GB, 101 * GB], control).is_some();
    assert_eq!([Some(115 * GB), Some(116 * GB), Some(50 * GB), None].map(flagged), [false, true, false, false]);
    assert!(compare_control(&[GB - 1], Some(2 * GB)).is_none(), "below a second chance decides");
    assert!(compare_control(&[], Some(100)).is_none());
}

#[test]
fn field_h17_a_first_run_stands_apart_when_the_others_agree() {
    let codes = |runs: &[u64]| compare_runs(runs).len();
    assert_eq!(codes(&[55, 20, 21]), 1);
    assert_eq!(codes(&[10, 20, 21]), 1);
    assert_eq!(codes(&[23, 20, 21]), 0);
    assert_eq!(codes(&[55, 20, 60]), 0, "the others do not agree");
    assert_eq!(codes(&[55, 20]), 0, "one other is no company");
    assert_eq!(codes(&[]), 0);
}
