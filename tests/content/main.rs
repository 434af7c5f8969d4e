//! What each kind of content promises, seen from outside: the same bytes for any split, real formats, stated shares, no block twice.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "a test says when it skips a program that is not installed")]
#![expect(clippy::disallowed_methods, reason = "tests write the files that other programs then read")]

mod compression;
mod golden;
mod jpeg;
mod mp3;
mod program;
mod reference;
mod splits;
mod unique;

use std::path::Path;
use std::process::Command;

use copysim::corpus::content::{Content, FileBytes, content, corpus_key};

/// A spec of each kind and variant, with a path that suits it.
const SPECS: [(&str, &str); 11] = [
    ("kind = 'zero'", "zero.bin"),
    ("kind = 'random'", "random.bin"),
    ("kind = 'compressible'\ncompressible_percent = 46", "half.bin"),
    ("kind = 'interleaved'\nzero_share_percent = 40\ninterleave = 'file'", "mixed.bin"),
    ("kind = 'interleaved'\nzero_share_percent = 50\ninterleave = '128KiB'", "mixed.bin"),
    ("kind = 'interleaved'\nzero_share_percent = 30\ninterleave = '4KiB'", "mixed.bin"),
    ("kind = 'jpeg'", "DCIM/100NOISE/IMG_0001.JPG"),
    ("kind = 'mp3'", "Some Artist/An Album/07 A Title.mp3"),
    ("kind = 'text'", "src/index.js"),
    ("kind = 'text'", "dist/index.js.map"),
    ("kind = 'program'", "lib/libmap-cache.so.5"),
];

/// 2023-11-14 22:13:20 UTC.
const MTIME: i64 = 1_700_000_000;

fn kind(spec: &str) -> Box<dyn Content> {
    content(&toml::from_str(spec).unwrap()).unwrap()
}

fn test_key(seed: u64) -> [u8; 32] {
    corpus_key("content tests", 1, seed)
}

fn make_seeded(spec: &str, seed: u64, ordinal: u64, path: &str, len: u64) -> Vec<u8> {
    let kind = kind(spec);
    assert!(len >= kind.min_len(), "{spec}: {len} is below {}", kind.min_len());
    let mut bytes = vec![0xAA; usize::try_from(len).unwrap()];
    kind.fill(&FileBytes { key: &test_key(seed), ordinal, path, len, mtime: MTIME }, 0, &mut bytes);
    bytes
}

fn make(spec: &str, ordinal: u64, path: &str, len: u64) -> Vec<u8> {
    make_seeded(spec, 0, ordinal, path, len)
}

/// Runs a program on a file; what it said on stderr, or nothing where it is not installed.
fn complaints(program: &str, arguments: &[&str], file: &Path) -> Option<String> {
    let arguments = arguments.iter().map(|argument| if *argument == "FILE" { file.to_str().unwrap() } else { argument });
    match Command::new(program).args(arguments).stdin(std::process::Stdio::null()).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            Some(if output.status.success() { said } else { format!("{}: {said}", output.status) })
        }
        Err(error) => {
            println!("skipped {program}: {error}");
            None
        }
    }
}
