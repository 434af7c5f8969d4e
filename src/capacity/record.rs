//! A check in the words of the record: its two phases with their evidence, and what the drive holds.

use std::collections::BTreeMap;

use super::diagnosis::{Diagnosis, diagnose};
use super::fill::name_of;
use super::layout::Layout;
use super::map::{Map, Range, What, found};
use super::read::{SecondLooks, Source};
use crate::cache::evict::Prepared;
use crate::result::{
    self, Answer, Call, Capacity, CapacityRange, Difference, Flag, Flush, Found, Integrity, Measured, Mismatch, Phase, Proof, SlowFile, SourceKind,
    flags,
};
use crate::scenario::evidence::{Observed, Origin, conclude};
use crate::scenario::record::{cache, times, work};
use crate::scenario::window::{Timed, Watched};
use crate::scenario::{course, observed};

/// Ranges in the record.
const RANGES: usize = 1000;
/// Files in the record that differ.
const MISMATCHES: usize = 100;

fn engine(mechanism: &str) -> result::Engine {
    result::Engine { name: "buffered".to_owned(), mechanism: mechanism.to_owned(), threads: Some(1), ..result::Engine::default() }
}

/// What every window has, and what only one of files has.
fn window(watched: &Watched<'_>, began_ns: u64, timed: &Timed<'_>, phase: &mut Phase) {
    times(watched, timed, began_ns, phase);
    phase.work = Some(work(&timed.done.calls));
    phase.slowest_files = timed.done.slowest.iter().map(|slow| SlowFile { path: slow.path.clone(), bytes: slow.bytes, ns: slow.ns }).collect();
}

/// The writing.
pub(crate) fn written(watched: &Watched<'_>, began_ns: u64, timed: &Timed<'_>, phase: &mut Phase) {
    window(watched, began_ns, timed, phase);
    phase.engine = Some(engine("write"));
    phase.source = Some(result::Source { kind: SourceKind::Generated, wait_ns: Some(timed.done.calls.group_ns(Call::Generator)) });
    course::tell(timed, watched.target.id, phase);
    let conclusions = conclude(&observed::of_window(watched, timed));
    // Where the data come from is no drive: there is nothing to be cold.
    phase.evidence = conclusions.evidence.into_iter().filter(|evidence| evidence.proof != Proof::Cold).collect();
    phase.flags.extend(conclusions.flags);
}

/// The reading.
pub(crate) fn was_read(watched: &Watched<'_>, began_ns: u64, timed: &Timed<'_>, prepared: &Prepared, phase: &mut Phase) {
    window(watched, began_ns, timed, phase);
    phase.engine = Some(engine("read"));
    // Nothing was written: what came back is all there is to wait for.
    phase.window.durable_ns = phase.window.returned_ns;
    phase.flush =
        Some(Flush { method: "none: nothing was written".to_owned(), device_flushes: None, volatile_cache: None, reaches_medium: Answer::Unknown });
    phase.cache = Some(cache(prepared));
    if let Some(timeline) = &mut phase.timeline {
        timeline.series.iter_mut().filter(|series| series.of == "work").for_each(|series| series.what = Measured::ReadBytes);
    }
    course::tell(timed, watched.target.id, phase);
    let seen = observed::of_window(watched, timed);
    let loops = watched.target.drive.has_cached_loop();
    let conclusions = conclude(&Observed {
        origin: Origin::Drive(watched.target.drive.medium),
        cache: Some(prepared.clone()),
        // Test data do not compress: what is read was stored.
        source_stored_bytes: Some(timed.done.bytes),
        cache_below: loops,
        source_counted: seen.target_counted.clone(),
        // One drive counts once.
        same_drive: true,
        durable_ns: phase.window.durable_ns,
        read_ns: Some(timed.done.calls.group_ns(Call::Read)),
        ..seen
    });
    if let (Some(cache), Some(share)) = (&mut phase.cache, conclusions.device_read_share) {
        cache.device_read_share = Some(share);
    }
    // What is about writing does not apply, and that names were warm was wanted.
    let of_writing = |flag: &Flag| {
        [&flags::FLUSH_UNKNOWN, &flags::CACHED_WRITE, &flags::COMPRESSED, &flags::METADATA_WARM].iter().any(|entry| entry.code == flag.code)
    };
    let is_of_writing = |proof: Proof| matches!(proof, Proof::Moved | Proof::Durable | Proof::ColdMetadata);
    phase.evidence = conclusions.evidence.into_iter().filter(|evidence| !is_of_writing(evidence.proof)).collect();
    phase.flags.extend(conclusions.flags.into_iter().filter(|flag| !of_writing(flag)));
}

/// Everything that is known of the drive.
pub(super) struct Known<'a> {
    pub map: &'a Map,
    pub layout: &'a Layout,
    pub is_whole: bool,
    pub nonce: Option<u64>,
    pub claimed_bytes: Option<u64>,
    pub second_looks: SecondLooks,
    pub all_free: bool,
    pub troubles: &'a [String],
}

/// What is not good, in pieces within one file.
pub(crate) fn bad(map: &Map) -> impl Iterator<Item = Range> + '_ {
    map.ranges().iter().filter(|range| range.what != What::Good).flat_map(|range| range.by_file()).map(|(_, range)| range)
}

/// What is not good, in the words of the record.
pub(crate) fn ranges<'m>(map: &'m Map, name: impl Fn(u64) -> String + 'm) -> impl Iterator<Item = CapacityRange> + 'm {
    bad(map).map(move |range| {
        let (index, first_byte) = Layout::file_of(range.start);
        let from = match range.what {
            What::Elsewhere { from } | What::Repeats { from, .. } => Some(Layout::file_of(from)),
            _ => None,
        };
        CapacityRange {
            file: name(index),
            first_byte,
            bytes: range.len,
            found: found(range.what),
            from_file: from.map(|(index, _)| name(index)),
            from_byte: from.map(|(_, byte)| byte),
        }
    })
}

/// What the drive holds.
pub(super) fn capacity(known: &Known<'_>) -> Capacity {
    let Known { map, layout, .. } = *known;
    let Diagnosis { verdict, ground, real_bytes, first_bad_byte, block_bytes, cache_bytes } = diagnose(map, layout, known.is_whole);
    let name = |index: u64| if known.nonce.is_some() { name_of(index) } else { format!("{}.h2w", index + 1) };
    let first_bad = bad(map).next().map(|range| Layout::file_of(range.start));
    Capacity {
        verdict,
        format: if known.nonce.is_some() { "copysim" } else { "h2w" }.to_owned(),
        nonce: known.nonce.map(|nonce| format!("{nonce:016x}")),
        claimed_bytes: known.claimed_bytes,
        tested_bytes: map.bytes(),
        good_bytes: map.bytes_of(Found::Good),
        is_whole: known.is_whole,
        filled: known.all_free && known.nonce.is_some(),
        real_bytes,
        ground: first_bad_byte.is_some().then_some(ground),
        first_bad_byte,
        first_bad_file: first_bad.map(|(index, _)| name(index)),
        first_bad_file_byte: first_bad.map(|(_, byte)| byte),
        found: map.totals().iter().copied().collect::<BTreeMap<_, _>>(),
        flipped_bits: map.flipped_bits(),
        block_bytes,
        cache_bytes,
        read_twice: known.second_looks.looked,
        right_then: known.second_looks.right,
        ranges: ranges(map, name).take(RANGES).collect(),
        troubles: known.troubles.to_vec(),
    }
}

/// Which files are right. Data of F3 and h2testw are the same in every run.
pub(crate) fn integrity(map: &Map, sources: &[&Source], has_nonce: bool) -> Integrity {
    let mut files: BTreeMap<u64, Mismatch> = BTreeMap::new();
    let mut checked = std::collections::BTreeSet::new();
    for (index, range) in map.ranges().iter().flat_map(|range| range.by_file()) {
        let (_, first) = Layout::file_of(range.start);
        checked.insert(index);
        if range.what == What::Good {
            continue;
        }
        let difference = match found(range.what) {
            Found::Unreadable => Difference::Unreadable,
            Found::Zeros => Difference::Zeroed,
            Found::BitsFlipped => Difference::BitsFlipped,
            Found::Elsewhere => Difference::Elsewhere,
            Found::Stale => Difference::Stale,
            Found::Garbage => Difference::Garbage,
            Found::Good | Found::Ones | Found::Mixed => Difference::Changed,
        };
        let (last, bytes) = (first + range.len - 1, range.len - range.good());
        files
            .entry(index)
            .and_modify(|mismatch| {
                mismatch.last_byte = Some(last);
                mismatch.different_bytes = mismatch.different_bytes.map(|sum| sum + bytes);
                mismatch.range_count = mismatch.range_count.map(|count| count + 1);
            })
            .or_insert_with(|| Mismatch {
                first_byte: Some(first),
                last_byte: Some(last),
                different_bytes: Some(bytes),
                range_count: Some(1),
                because: Some(format!("begins with data {}", found(range.what).in_words())).filter(|_| difference != Difference::Unreadable),
                ..Mismatch::new(
                    sources.iter().find(|source| source.index == index).map_or_else(|| name_of(index), |source| source.name.clone()),
                    difference,
                )
            });
    }
    let files_checked = checked.len() as u64;
    let stale_because = if has_nonce {
        "every sector has the nonce of its run: data of an earlier one are known as such"
    } else {
        "F3 and h2testw write the same bytes in every run: a write that was lost may leave the right ones of an earlier run"
    };
    Integrity {
        files_checked,
        files_good: files_checked - files.len() as u64,
        mismatches: files.into_values().take(MISMATCHES).collect(),
        stale_detectable: Some(has_nonce),
        stale_because: Some(stale_because.to_owned()),
    }
}
