//! No 4 KiB block occurs twice: within a file, between files, between seeds.

use std::collections::HashMap;

use crate::{kind, make_seeded};

#[test]
fn field_a11_no_block_occurs_twice() {
    let kinds = [
        ("kind = 'random'", "a.bin"),
        ("kind = 'compressible'\ncompressible_percent = 8", "a.bin"),
        ("kind = 'compressible'\ncompressible_percent = 90", "a.bin"),
        ("kind = 'jpeg'", "a.jpg"),
        ("kind = 'mp3'", "a.mp3"),
        ("kind = 'text'", "a.d.ts"),
        ("kind = 'text'", "a.ts"),
        ("kind = 'text'", "a.js"),
        ("kind = 'text'", "a.json"),
        ("kind = 'text'", "a.map"),
        ("kind = 'text'", "a.css"),
        ("kind = 'text'", "a.md"),
        ("kind = 'text'", "a.xml"),
        ("kind = 'text'", "a.ini"),
        ("kind = 'program'", "a.so"),
    ];
    for (spec, path) in kinds {
        let mut seen = HashMap::new();
        for seed in [0, 1] {
            for ordinal in 0..5 {
                let file = make_seeded(spec, seed, ordinal, path, kind(spec).min_len() + 700_000);
                for (index, block) in file.chunks_exact(4096).enumerate() {
                    let place = (seed, ordinal, index);
                    let other = seen.insert(*blake3::hash(block).as_bytes(), place);
                    assert_eq!(other, None, "{spec} {path}: {place:?}");
                }
            }
        }
    }
}

#[test]
fn blocks_of_an_interleaved_file_are_zero_or_unique() {
    let mut seen = HashMap::new();
    for ordinal in 0..4 {
        let file = make_seeded("kind = 'interleaved'\nzero_share_percent = 50\ninterleave = '4KiB'", 0, ordinal, "a", 1 << 20);
        for (index, block) in file.chunks_exact(4096).enumerate() {
            if block.iter().any(|&byte| byte != 0) {
                assert_eq!(seen.insert(*blake3::hash(block).as_bytes(), index), None);
            }
        }
    }
    assert_eq!(seen.len(), 4 * 128);
}
