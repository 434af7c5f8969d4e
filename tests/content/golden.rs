//! Digests of some files, written down once: the same bytes on every machine and for ever.

use crate::{SPECS, kind, make};

/// Two files of each kind, and one of each look of text.
#[test]
fn files_have_the_digests_that_were_written_down() {
    let mut made = String::new();
    for (spec, path) in SPECS {
        for (ordinal, extra) in [(1, 40_001), (1 << 40, 777_777)] {
            line(&mut made, spec, path, ordinal, extra);
        }
    }
    for path in ["a.d.ts", "a.ts", "a.json", "a.css", "a.md", "a.xml", "a.ini"] {
        line(&mut made, "kind = 'text'", path, 7, 20_000);
    }
    insta::assert_snapshot!(made);
}

fn line(made: &mut String, spec: &str, path: &str, ordinal: u64, extra: u64) {
    let len = kind(spec).min_len() + extra;
    let digest = blake3::hash(&make(spec, ordinal, path, len)).to_hex();
    *made += &format!("{digest} {len} {path}: {}\n", spec.replace('\n', ", "));
}
