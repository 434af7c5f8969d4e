//! From what came back to what kind of drive it is: pure functions of the map and the layout, so that every rule is tested without a drive.

use std::collections::HashMap;

use super::layout::Layout;
use super::map::{Map, What};
use crate::result::{CapacityVerdict, Found, Ground};

/// What follows from a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Diagnosis {
    /// The kind.
    pub verdict: CapacityVerdict,
    /// Where places are known from.
    pub ground: Ground,
    /// What the drive really holds, where that is less than it claims.
    pub real_bytes: Option<u64>,
    /// The lowest place that is not good.
    pub first_bad_byte: Option<u64>,
    /// The block that answers for all others.
    pub block_bytes: Option<u64>,
    /// What was kept of the last data.
    pub cache_bytes: Option<u64>,
}

/// A fake loses at least this beyond its real end, and at least one part in a hundred of what was written: less is a drive with bad sectors at its end.
const LEAST_LOST: u64 = 1 << 20;
/// The system writes what lies so close together in any order.
const OUT_OF_ORDER: u64 = 4 << 20;
/// So many places at which good data end are tried as the end of a drive.
const ENDS: usize = 256;
/// Different distances that are kept.
const DISTANCES: usize = 4096;
/// Where data of another place are found, so many places of a range are looked at.
const SAMPLES: u64 = 64;

/// A part of the drive: what lies there is good or not.
struct Part {
    place: u64,
    order: u64,
    len: u64,
    good: u64,
    found: Found,
}

impl Part {
    fn bad(&self) -> u64 {
        self.len - self.good
    }
}

/// Draws the conclusion. `is_whole` says that all that was written was also read: of part of it only little can be said.
#[must_use]
pub fn diagnose(map: &Map, layout: &Layout, is_whole: bool) -> Diagnosis {
    let ground = layout.ground();
    let mut parts = Vec::new();
    for range in map.ranges() {
        layout.parts(range.start..range.start + range.len, ground, |position, place, len| {
            let good = match range.what {
                What::Good => len,
                What::Mixed { good } => (u128::from(good) * u128::from(len) / u128::from(range.len.max(1))) as u64,
                _ => 0,
            };
            let order = layout.order(position).unwrap_or(0);
            parts.push(Part { place, order, len, good, found: super::map::found(range.what) });
        });
    }
    parts.sort_by_key(|part| part.place);
    let first_bad_byte = parts.iter().find(|part| part.bad() > 0).map(|part| part.place);
    let nothing = Diagnosis { verdict: CapacityVerdict::Unknown, ground, real_bytes: None, first_bad_byte, block_bytes: None, cache_bytes: None };
    let (tested, good) = (map.bytes(), map.ranges().iter().map(super::map::Range::good).sum::<u64>());
    if tested == good {
        let verdict = if is_whole && tested > 0 { CapacityVerdict::HoldsAll } else { CapacityVerdict::Unknown };
        return Diagnosis { verdict, ..nothing };
    }
    // Where most of what is wrong was written elsewhere, by which step addresses are taken for others.
    let elsewhere = map.bytes_of(Found::Elsewhere) >= (tested - good) / 2;
    let step = if elsewhere { step(map, layout, ground) } else { None };
    // Each place of a wrapping drive holds one good sector: it can't give back more than it has. One whose last block answers for all gives far more.
    if let Some(real) = step.filter(|step| good <= step + step / 4) {
        return Diagnosis { verdict: CapacityVerdict::Wraps, real_bytes: Some(real), ..nothing };
    }
    if !is_whole {
        return nothing;
    }
    beyond_an_end(&parts, elsewhere, step, nothing).unwrap_or(Diagnosis { verdict: CapacityVerdict::Damaged, ..nothing })
}

/// The largest number of which the distances between where data are found and where they were written are multiples, but for one in ten bytes: on a wrapping
/// drive its real size, where one block answers for all others the length of that.
fn step(map: &Map, layout: &Layout, ground: Ground) -> Option<u64> {
    let (distances, total) = distances(map, layout, ground);
    let mut heaviest: Vec<(u64, u64)> = distances.iter().map(|(distance, weight)| (*distance, *weight)).collect();
    heaviest.sort_by_key(|&(distance, weight)| (std::cmp::Reverse(weight), distance));
    heaviest.truncate(16);
    let pairs = heaviest.iter().flat_map(|(one, _)| heaviest.iter().map(move |(other, _)| gcd(*one, *other)));
    let mut candidates: Vec<u64> = pairs.filter(|&size| size > 0).collect();
    candidates.sort_unstable_by_key(|&size| std::cmp::Reverse(size));
    candidates.dedup();
    let explained = |size: u64| distances.iter().filter(|(distance, _)| *distance % size == 0).map(|(_, weight)| weight).sum::<u64>();
    candidates.into_iter().find(|&size| explained(size) >= total / 10 * 9)
}

/// How far from where it is found data were written, with the bytes for which that is so; of very many distances the first.
fn distances(map: &Map, layout: &Layout, ground: Ground) -> (HashMap<u64, u64>, u64) {
    let mut distances = HashMap::new();
    let mut total = 0;
    for range in map.ranges() {
        let source = |offset: u64| match range.what {
            What::Elsewhere { from } => Some(from + offset),
            What::Repeats { from, block } => Some(from + offset % block),
            _ => None,
        };
        let samples = SAMPLES.min(range.len / super::SECTOR as u64).max(1);
        for index in 0..samples {
            let offset = (range.len / samples * index) / super::SECTOR as u64 * super::SECTOR as u64;
            let Some(from) = source(offset) else { continue };
            let places = layout.place(range.start + offset, ground).zip(layout.place(from, ground));
            let Some(((here, _), (there, _))) = places else { continue };
            let weight = range.len / samples;
            let distance = here.abs_diff(there);
            if distances.len() < DISTANCES || distances.contains_key(&distance) {
                *distances.entry(distance).or_insert(0) += weight;
                total += weight;
            }
        }
    }
    (distances, total)
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// A drive that is good up to a place and not beyond: which place, and what is beyond. It is the lowest of those at which good data end for which that holds.
fn beyond_an_end(parts: &[Part], elsewhere: bool, step: Option<u64>, nothing: Diagnosis) -> Option<Diagnosis> {
    let begins_bad = |&end: &usize| parts[end].bad() > 0 && (end == 0 || parts[end - 1].bad() == 0);
    let mut ends: Vec<usize> = (0..parts.len()).filter(begins_bad).take(ENDS).collect();
    // Where a drive has many bad sectors below its end that one comes later: the place that is wrong about the fewest bytes.
    ends.push(least_wrong(parts));
    ends.into_iter().find_map(|end| fake_beyond(parts, end, elsewhere, step, nothing))
}

/// The place for which the fewest bytes are bad below or good beyond.
fn least_wrong(parts: &[Part]) -> usize {
    let (mut bad_below, mut good_above) = (0, parts.iter().map(|part| part.good).sum::<u64>());
    let (mut end, mut least) = (0, good_above);
    for (index, part) in parts.iter().enumerate() {
        bad_below += part.bad();
        good_above -= part.good;
        if bad_below + good_above < least {
            (end, least) = (index + 1, bad_below + good_above);
        }
    }
    end
}

/// What kind of fake ends at a place, if one does.
fn fake_beyond(parts: &[Part], end: usize, elsewhere: bool, step: Option<u64>, nothing: Diagnosis) -> Option<Diagnosis> {
    let (below, above) = parts.split_at(end);
    let tested: u64 = parts.iter().map(|part| part.len).sum();
    let bad: u64 = parts.iter().map(Part::bad).sum();
    let good_above: u64 = above.iter().map(|part| part.good).sum();
    let bad_above: u64 = above.iter().map(Part::bad).sum();
    let of = |found: Found| above.iter().filter(|part| part.found == found).map(Part::bad).sum::<u64>();
    let is_end = bad_above >= LEAST_LOST.max(tested / 100) && bad_above >= bad / 10 * 9;
    // A drive that says that it can't read does not pretend.
    if !is_end || good_above > bad_above || of(Found::Unreadable) > bad_above / 2 {
        return None;
    }
    // What is good beyond the end must be what was written there last: then it may come from a cache.
    let kept = good_among_last(above, good_above + good_above / 4 + OUT_OF_ORDER);
    let cached = if kept >= good_above / 10 * 9 { kept } else { 0 };
    let is_pure = good_above - cached <= (bad_above + good_above - cached) / 20;
    // Data that are missing amid good ones are a damage, unless there are many more of them than of those that follow.
    let is_cache = cached == 0 || bad_above >= tested / 20;
    if !is_pure || !is_cache {
        return None;
    }
    let real_bytes = below.last().map(|part| part.place + part.len).or_else(|| above.first().map(|part| part.place));
    let hides = cached >= 64 << 10 && !(elsewhere && cached <= 4 * step.unwrap_or(cached));
    let verdict = match (hides, elsewhere) {
        (true, _) => CapacityVerdict::HidesBehindCache,
        (false, true) => CapacityVerdict::Aliases,
        (false, false) => CapacityVerdict::Discards,
    };
    Some(Diagnosis {
        verdict,
        real_bytes,
        block_bytes: step.filter(|_| verdict == CapacityVerdict::Aliases),
        cache_bytes: hides.then_some(cached),
        ..nothing
    })
}

/// How much is good among the last bytes that were written to these parts.
fn good_among_last(parts: &[Part], bytes: u64) -> u64 {
    let mut by_order: Vec<&Part> = parts.iter().collect();
    by_order.sort_by_key(|part| std::cmp::Reverse(part.order));
    let mut seen = 0;
    let last = by_order.into_iter().take_while(|part| {
        let is_among = seen < bytes;
        seen += part.len;
        is_among
    });
    last.map(|part| part.good).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::capacity::FILE_SPAN;
    use crate::capacity::layout::{Laid, Stretch};
    use crate::capacity::map::Range;

    const MIB: u64 = 1 << 20;
    /// What data a test judges at once.
    const UNIT: u64 = 512;

    /// A drive of `units` on which data lie from `front` on, in files of 40 units each.
    #[derive(Debug)]
    struct Model {
        front: u64,
        units: u64,
    }

    impl Model {
        fn position(order: u64) -> u64 {
            order / 40 * FILE_SPAN + order % 40 * UNIT
        }

        fn layout(&self, placed: bool) -> Layout {
            let mut layout = Layout::default();
            let count = self.units - self.front;
            for (index, first) in (0..).zip((0..count).step_by(40)) {
                let len = 40.min(count - first) * UNIT;
                let stretches = vec![Stretch { logical: 0, physical: (self.front + first) * UNIT, len }];
                layout.add(Laid { index, len, stretches: if placed { stretches } else { Vec::new() } });
            }
            layout
        }

        /// What is read back when each unit was written in turn to the cell that `cell` gives.
        fn map(&self, cell: impl Fn(u64) -> Option<u64>, spoiled: impl Fn(u64) -> Option<What>) -> Map {
            let mut cells: HashMap<u64, u64> = HashMap::new();
            for unit in self.front..self.units {
                cell(unit).map(|cell| cells.insert(cell, unit));
            }
            let mut map = Map::default();
            for unit in self.front..self.units {
                let what = spoiled(unit).unwrap_or_else(|| match cell(unit).and_then(|cell| cells.get(&cell)) {
                    Some(&found) if found == unit => What::Good,
                    Some(&found) => What::Elsewhere { from: Self::position(found - self.front) },
                    None => What::Zeros,
                });
                map.add(Range { start: Self::position(unit - self.front), len: UNIT, what });
            }
            map
        }
    }

    fn sound(_: u64) -> Option<What> {
        None
    }

    /// Sizes of drives between 16 and 48 MiB, real sizes between 3 and 90 % of them, in units, and a block.
    fn drives() -> impl Strategy<Value = (Model, u64, u64)> {
        (32_768_u64..98_304, 30_u64..900, 0_u32..6).prop_map(|(units, thousandths, order)| {
            let block = 1_u64 << order;
            (Model { front: units / 200, units }, units * thousandths / 1000 / block * block, block)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn a_wrapping_drive_is_known_with_its_size((drive, real, _) in drives(), placed in any::<bool>()) {
            let map = drive.map(|unit| Some(unit % real), sound);
            let found = diagnose(&map, &drive.layout(placed), true);
            prop_assert_eq!((found.verdict, found.real_bytes), (CapacityVerdict::Wraps, Some(real * UNIT)));
        }

        #[test]
        fn a_discarding_drive_is_known_with_its_size((drive, real, _) in drives(), placed in any::<bool>()) {
            let map = drive.map(|unit| (unit < real).then_some(unit), sound);
            let found = diagnose(&map, &drive.layout(placed), true);
            let before = if placed { 0 } else { drive.front * UNIT };
            prop_assert_eq!((found.verdict, found.real_bytes), (CapacityVerdict::Discards, Some(real * UNIT - before)));
            prop_assert_eq!(found.first_bad_byte, Some(real * UNIT - before));
        }

        #[test]
        fn an_aliasing_drive_is_known_with_its_size_and_block((drive, real, block) in drives()) {
            // Beyond the end everything is the last block before it.
            let map = drive.map(|unit| Some(if unit < real { unit } else { real - block + unit % block }), sound);
            let found = diagnose(&map, &drive.layout(true), true);
            prop_assert_eq!(found.verdict, CapacityVerdict::Aliases);
            let size = found.real_bytes.unwrap();
            prop_assert!(size <= real * UNIT && size >= (real - block) * UNIT, "{} {}", size, real * UNIT);
            prop_assert!(found.block_bytes.unwrap().is_multiple_of(block * UNIT) && found.block_bytes.unwrap() <= 16 * block * UNIT, "{:?}", found.block_bytes);
        }

        #[test]
        fn a_cache_does_not_hide_the_end((drive, real, _) in drives(), cached in 2_048_u64..4_096) {
            prop_assume!(drive.units - real > 3 * cached && drive.units - real > drive.units / 10);
            let map = drive.map(|unit| (unit < real || unit >= drive.units - cached).then_some(unit), sound);
            let found = diagnose(&map, &drive.layout(true), true);
            prop_assert_eq!((found.verdict, found.real_bytes), (CapacityVerdict::HidesBehindCache, Some(real * UNIT)));
            prop_assert_eq!(found.cache_bytes, Some(cached * UNIT));
        }

        #[test]
        fn an_honest_drive_with_bad_sectors_is_not_called_a_fake(
            (drive, ..) in drives(),
            bad in prop::collection::vec((0_u64..1000, 1_u64..200, 0_usize..4), 1..30),
        ) {
            let kinds = [What::Unreadable, What::Zeros, What::Garbage, What::Elsewhere { from: 512 }];
            let places: Vec<_> = bad.iter().map(|(at, len, kind)| (drive.units * at / 1000, *len, kinds[*kind])).collect();
            let spoiled = |unit| places.iter().find(|(at, len, _)| (*at..at + len).contains(&unit)).map(|place| place.2);
            let map = drive.map(Some, spoiled);
            let found = diagnose(&map, &drive.layout(true), true);
            let hit = map.bytes_of(Found::Good) < map.bytes();
            prop_assert_eq!(found.verdict, if hit { CapacityVerdict::Damaged } else { CapacityVerdict::HoldsAll });
            prop_assert_eq!(found.real_bytes, None);
        }
    }

    #[test]
    fn a_part_tells_little_and_nothing_tells_nothing() {
        let drive = Model { front: 100, units: 20_000 };
        let whole = drive.map(Some, sound);
        assert_eq!(diagnose(&whole, &drive.layout(true), true).verdict, CapacityVerdict::HoldsAll);
        assert_eq!(diagnose(&whole, &drive.layout(true), false).verdict, CapacityVerdict::Unknown);
        assert_eq!(diagnose(&Map::default(), &Layout::default(), true).verdict, CapacityVerdict::Unknown);
        let lossy = drive.map(|unit| (unit < 10_000).then_some(unit), sound);
        assert_eq!(diagnose(&lossy, &drive.layout(true), false).verdict, CapacityVerdict::Unknown);
    }

    #[test]
    fn a_drive_whose_end_cannot_be_read_is_not_called_a_fake() {
        let drive = Model { front: 0, units: 32_768 };
        let map = drive.map(Some, |unit| (unit > 20_000).then_some(What::Unreadable));
        assert_eq!(diagnose(&map, &drive.layout(true), true).verdict, CapacityVerdict::Damaged);
        assert!(map.bytes_of(Found::Unreadable) > 5 * MIB);
    }
}
