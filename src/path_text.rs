//! Paths as text that can be read back: a name need not be UTF-8, a record and a sentence must be.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The path as it is, with `\xff` for each byte that is part of no UTF-8, and `\x5c` for a backslash that would read like one of these.
#[must_use]
pub fn path_text(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    let mut text = String::with_capacity(bytes.len());
    // Writing to a string does not fail.
    let escape = |text: &mut String, byte: u8| write!(text, "\\x{byte:02x}").unwrap_or_default();
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid();
        for (at, c) in valid.char_indices() {
            if c == '\\' && reads_like_a_byte(&valid.as_bytes()[at + 1..]) { escape(&mut text, b'\\') } else { text.push(c) }
        }
        chunk.invalid().iter().for_each(|&byte| escape(&mut text, byte));
    }
    text
}

/// Whether `x` and two hexadecimal digits follow.
fn reads_like_a_byte(rest: &[u8]) -> bool {
    matches!(rest, [b'x', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use proptest::prelude::*;

    use super::*;

    /// The bytes that a text stands for.
    fn read_back(text: &str) -> Vec<u8> {
        let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
        while let Some((&first, after)) = rest.split_first() {
            if first == b'\\' && reads_like_a_byte(after) {
                bytes.push(u8::from_str_radix(std::str::from_utf8(&after[1..3]).unwrap(), 16).unwrap());
                rest = &after[3..];
            } else {
                bytes.push(first);
                rest = after;
            }
        }
        bytes
    }

    proptest! {
        #[test]
        fn field_f01_any_name_can_be_read_back(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\\'), Just(b'x'), Just(b'f')], 0..40)) {
            prop_assert_eq!(read_back(&path_text(Path::new(OsStr::from_bytes(&bytes)))), bytes);
        }
    }

    #[test]
    fn ordinary_paths_stay_as_they_are() {
        for path in ["/media/stick/Fußgänger 写真.jpg", "a\\b", "C:\\x\\y", ""] {
            assert_eq!(path_text(Path::new(path)), path);
        }
        assert_eq!(path_text(Path::new(OsStr::from_bytes(b"a\xff\xfe.bin"))), "a\\xff\\xfe.bin");
        assert_eq!(path_text(Path::new("a\\xff")), "a\\x5cxff");
    }
}
