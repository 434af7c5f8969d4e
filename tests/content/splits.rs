//! Any split of a range gives the bytes of one call.

use copysim::corpus::content::FileBytes;
use proptest::prelude::*;

use crate::{MTIME, SPECS, kind, make, test_key};

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_split_gives_the_same_bytes(extra in 0_u64..300_000, ordinal in 0_u64..1000, cuts in prop::collection::vec(any::<u64>(), 0..40), near in any::<bool>()) {
        for (spec, path) in SPECS {
            let kind = kind(spec);
            let len = kind.min_len() + extra;
            let whole = make(spec, ordinal, path, len);
            // Cuts all over the file, or all in its first 10 kB, where headers are.
            let reach = if near { len.min(10_000) } else { len };
            let mut cuts: Vec<u64> = cuts.iter().map(|cut| cut % (reach + 1)).chain([0, len]).collect();
            cuts.sort_unstable();
            for (from, to) in cuts.iter().zip(&cuts[1..]) {
                let mut part = vec![0x55; (to - from) as usize];
                kind.fill(&FileBytes { key: &test_key(0), ordinal, path, len, mtime: MTIME }, *from, &mut part);
                prop_assert!(part == whole[*from as usize..*to as usize], "{}: {}..{} of {}", spec, from, to, len);
            }
        }
    }
}

#[test]
fn bytes_one_by_one_are_the_same_around_every_header() {
    for (spec, path) in SPECS {
        let kind = kind(spec);
        let len = kind.min_len() + 9_000;
        let whole = make(spec, 3, path, len);
        for at in (0..9_000).chain(len - 2_000..len) {
            let mut byte = [0x55];
            kind.fill(&FileBytes { key: &test_key(0), ordinal: 3, path, len, mtime: MTIME }, at, &mut byte);
            assert_eq!(byte[0], whole[at as usize], "{spec}: byte {at}");
        }
    }
}

#[test]
fn kinds_without_a_least_length_make_the_shortest_files() {
    for (spec, path) in SPECS.into_iter().filter(|(spec, _)| kind(spec).min_len() == 0) {
        for len in [0, 1, 2, 3, 5, 100, 4095, 4096, 4097] {
            assert_eq!(make(spec, 1, path, len).len() as u64, len, "{spec}");
        }
    }
}
