//! The names that copysim gives to what it makes in a workspace, and by which it knows what it may delete.

use std::ffi::OsStr;

use crate::units::Scale;

/// The directory of a corpus: `NAME-vVERSION-sSEED-pSCALE`.
#[must_use]
pub fn corpus_name(name: &str, version: u32, seed: u64, scale: Scale) -> String {
    format!("{name}-v{version}-s{seed}-p{scale}")
}

/// Whether a name is one that `corpus_name` makes.
#[must_use]
pub fn is_corpus_name(name: &OsStr) -> bool {
    fn parse(name: &str) -> Option<bool> {
        let (rest, scale) = name.rsplit_once("-p")?;
        let (rest, seed) = rest.rsplit_once("-s")?;
        let (corpus, version) = rest.rsplit_once("-v")?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let named = corpus.starts_with(|c: char| c.is_ascii_alphanumeric()) && corpus.chars().all(is_plain);
        let made = corpus_name(corpus, version.parse().ok()?, seed.parse().ok()?, scale.parse().ok()?);
        Some(named && made == name)
    }
    name.to_str().and_then(parse).unwrap_or(false)
}

/// Whether a name is that of a run: a time in UTC and eight hexadecimal digits, `20250131T235959Z-0123abcd`.
#[must_use]
pub fn is_run_name(name: &OsStr) -> bool {
    let Some((time, random)) = name.to_str().and_then(|name| name.split_once('-')) else { return false };
    let digit = |(at, byte)| match at {
        8 => byte == b'T',
        15 => byte == b'Z',
        _ => u8::is_ascii_digit(&byte),
    };
    let hexadecimal = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    time.len() == 16 && time.bytes().enumerate().all(digit) && random.len() == 8 && random.bytes().all(hexadecimal)
}

/// What the name of a run becomes when its copy is kept.
const KEPT: &str = "-kept";

/// The name of the copy of a run that is kept.
#[must_use]
pub fn kept_name(run: &str) -> String {
    format!("{run}{KEPT}")
}

/// Whether a name is one that `kept_name` makes.
#[must_use]
pub fn is_kept_name(name: &OsStr) -> bool {
    name.to_str().and_then(|name| name.strip_suffix(KEPT)).is_some_and(|run| is_run_name(OsStr::new(run)))
}

/// What follows the name of a run whose test data outlive the process, so that a check of the capacity can go on after an interruption.
const CAPACITY: &str = "-capacity";

/// The name of the test data of a check of the capacity that began as this run.
#[must_use]
pub fn capacity_name(run: &str) -> String {
    format!("{run}{CAPACITY}")
}

/// Whether a name is one that `capacity_name` makes.
#[must_use]
pub fn is_capacity_name(name: &OsStr) -> bool {
    name.to_str().and_then(|name| name.strip_suffix(CAPACITY)).is_some_and(|run| is_run_name(OsStr::new(run)))
}

/// Whether a name is that of what a run wrote: its copy, one that is kept, or test data of a check of the capacity.
#[must_use]
pub fn is_copy_name(name: &OsStr) -> bool {
    is_run_name(name) || is_kept_name(name) || is_capacity_name(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn names_made_are_known_again(name in "[a-z0-9][a-z0-9._-]{0,20}", version in any::<u32>(), seed in any::<u64>(), scale in 1..=1_000_000_u32) {
            let scale = format!("{}.{:02}", scale / 100, scale % 100).parse().unwrap();
            prop_assert!(is_corpus_name(OsStr::new(&corpus_name(&name, version, seed, scale))));
        }

        #[test]
        fn other_names_are_not(name in "[a-zA-Z0-9./-]{0,30}") {
            prop_assert!(!is_copy_name(OsStr::new(&name)));
            prop_assert!(!is_corpus_name(OsStr::new(&name)));
        }
    }

    #[test]
    fn near_misses_are_foreign() {
        for name in [
            "jpg-v1-s0-p100 ",
            "jpg-v1-s0-p100.00",
            "jpg-v01-s0-p100",
            "jpg-v1-s0",
            "../x-v1-s0-p100",
            ".x-v1-s0-p100",
            "-v1-s0-p100",
            "jpg-v1-s-1-p100",
        ] {
            assert!(!is_corpus_name(OsStr::new(name)), "{name}");
        }
        assert!(is_corpus_name(OsStr::new("jpg-v1-s0-p0.5")));
        assert!(is_run_name(OsStr::new("20250131T235959Z-0123abcd")));
        assert!(is_kept_name(OsStr::new(&kept_name("20250131T235959Z-0123abcd"))));
        assert!(is_capacity_name(OsStr::new(&capacity_name("20250131T235959Z-0123abcd"))));
        // Only a run's own name is removed at the next start.
        assert!(!is_run_name(OsStr::new(&capacity_name("20250131T235959Z-0123abcd"))));
        for name in ["20250131T235959Z-0123abcd", "20250131T235959Z-0123abcd-kept-kept", "-kept", "x-kept"] {
            assert!(!is_kept_name(OsStr::new(name)), "{name}");
        }
        for name in ["20250131T235959Z-0123ABCD", "20250131T235959Z-0123abc", "20250131t235959Z-0123abcd", "20250131T235959Z"] {
            assert!(!is_run_name(OsStr::new(name)), "{name}");
        }
    }
}
