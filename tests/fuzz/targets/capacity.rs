//! A check of the capacity: sectors that a drive gives back, and the notes from which an interrupted check goes on.

use std::ffi::OsStr;

use copysim::capacity::SECTOR;
use copysim::capacity::diagnosis::diagnose;
use copysim::capacity::fill::index_of;
use copysim::capacity::h2w::{H2w, number_of};
use copysim::capacity::layout::Layout;
use copysim::capacity::map::{Map, Range, What};
use copysim::capacity::pattern::{Own, Pattern, Seen};
use copysim::capacity::progress::Progress;

use super::Input;

/// Which pattern, where, and the sectors.
pub fn sectors() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (kind, at, from) in [(0_u8, 0_u64, 0_u64), (0, 1 << 20, 4096), (1, 1 << 30, 1 << 30), (1, 512, 1 << 40), (1, 0, 512)] {
        let mut data = vec![0; 4 * SECTOR];
        pattern(kind).fill(from, &mut data);
        seeds.push([&[kind], at.to_le_bytes().as_slice(), &data].concat());
    }
    seeds.push([&[1], 0_u64.to_le_bytes().as_slice(), &[0xff; 2 * SECTOR]].concat());
    seeds.push([&[1], 0_u64.to_le_bytes().as_slice(), &[0xff; 8], &[0; SECTOR]].concat());
    seeds.push(b"\x0217179869184.h2w".to_vec());
    seeds
}

fn pattern(kind: u8) -> Box<dyn Pattern> {
    if kind.is_multiple_of(2) { Box::new(Own::of(7)) } else { Box::new(H2w) }
}

pub fn sector(data: &[u8]) {
    let mut input = Input(data);
    let kind = input.number(1) as u8;
    if kind == 2 {
        let name = String::from_utf8_lossy(input.0);
        if let Some(index) = index_of(&name) {
            assert_eq!(copysim::capacity::fill::name_of(index), name);
        }
        let Some(index) = number_of(OsStr::new(&*name)) else { return };
        assert_eq!(format!("{}.h2w", index + 1), name);
        // Its last byte has a number.
        let start = index.checked_mul(copysim::capacity::FILE_SPAN).unwrap();
        assert!(start.checked_add(copysim::capacity::FILE_SPAN).is_some(), "{name}");
        return;
    }
    let mut pattern = pattern(kind);
    // Positions are those of files that can be.
    let position = input.number(8) >> 1 & !(SECTOR as u64 - 1);
    let len = input.0.len() / SECTOR * SECTOR;
    let found = input.take(len);
    let mut expected = vec![0; len];
    pattern.fill(position, &mut expected);
    let mut map = Map::default();
    let mut judge = |position, sector: &_, expected: &_| pattern.judge(position, sector, expected);
    map.judge(position, found, &expected, &mut judge);
    assert_eq!(map.bytes(), len as u64);
    for (sector, wanted) in found.as_chunks::<SECTOR>().0.iter().zip(expected.as_chunks::<SECTOR>().0) {
        assert_eq!(judge(position, sector, wanted) == Seen::Good, sector == wanted);
    }
    look(&map);
}

/// What was found, cut anywhere and concluded from.
fn look(map: &Map) {
    let end = map.ranges().last().map_or(0, |range| range.start.saturating_add(range.len));
    for position in [0, end / 3, end / 2 + 1, end] {
        let before = map.before(position);
        assert!(before.bytes() <= map.bytes());
    }
    let mut twice = Map::default();
    twice.append(map);
    assert_eq!(twice.bytes(), map.bytes());
    let _ = diagnose(map, &Layout::default(), true);
}

const RUN: &str = "20250131T235959Z-0123abcd-capacity";

pub fn notes() -> Vec<Vec<u8>> {
    let mut progress = Progress { run: RUN.into(), planned_bytes: 1 << 30, last_read: Some(1), ..Progress::default() };
    let seed = |progress: &Progress| serde_json::to_vec(progress).unwrap();
    let mut seeds = vec![seed(&progress)];
    let whats =
        [What::Good, What::Repeats { from: 8192, block: 4096 }, What::Elsewhere { from: 512 }, What::Zeros, What::Garbage, What::Mixed { good: 512 }];
    for (index, what) in (0..).zip(whats) {
        progress.map.add(Range { start: index * 16_384, len: 16_384, what });
        seeds.push(seed(&progress));
    }
    seeds
}

pub fn note(data: &[u8]) {
    let Some(progress) = Progress::from_json(data, RUN) else { return };
    let written = serde_json::to_vec(&progress).unwrap();
    assert_eq!(Progress::from_json(&written, RUN).as_ref(), Some(&progress));
    look(&progress.map);
    let mut on = progress.map.clone();
    let end = on.ranges().last().map_or(0, |range| range.start + range.len);
    on.add(Range { start: end, len: 512, what: What::Elsewhere { from: end } });
    look(&on);
}
