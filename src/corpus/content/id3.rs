//! The ID3v2.4 tag of a song, made from its path and date (id3.org, "ID3 tag version 2.4.0").

use super::FileBytes;

/// Text is cut there (at a whole character), so that the tag's length has a bound.
const LONGEST_TEXT: usize = 100;
const HEADER: usize = 10;
/// Digits of a track number that are kept.
const LONGEST_TRACK: usize = 3;
const UTF_8: u8 = 3;
const UNKNOWN: &str = "Unknown";
/// Whose private data the tag ends with.
const OWNER: &[u8; 8] = b"copysim\0";

/// No tag is longer before its private data.
pub(super) const LONGEST: usize = HEADER + 3 * (HEADER + 1 + LONGEST_TEXT) + (HEADER + 1 + LONGEST_TRACK) + (HEADER + 1 + 4) + (HEADER + OWNER.len());

/// A tag that lacks only its private data.
pub(super) struct Tag {
    texts: Vec<u8>,
}

impl Tag {
    /// Title, artist, album, track and year, from `Artist/Album/NN Title.mp3` and the modification time.
    pub(super) fn of(file: &FileBytes<'_>) -> Self {
        let mut parts = file.path.rsplit('/').filter(|part| !part.is_empty());
        let name = parts.next().unwrap_or_default();
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let untracked = stem.trim_start_matches(|c: char| c.is_ascii_digit());
        let track = &stem[..(stem.len() - untracked.len()).min(LONGEST_TRACK)];
        let title = untracked.trim_start_matches([' ', '-', '_', '.']);
        let title = if title.is_empty() { stem } else { title };

        let mut texts = Vec::new();
        text(&mut texts, b"TIT2", title);
        text(&mut texts, b"TALB", parts.next().unwrap_or_default());
        text(&mut texts, b"TPE1", parts.next().unwrap_or_default());
        if !track.is_empty() {
            text(&mut texts, b"TRCK", track);
        }
        text(&mut texts, b"TDRC", &format!("{:04}", file.date().year()));
        Self { texts }
    }

    /// Bytes of the tag before its private data.
    pub(super) fn len(&self) -> usize {
        HEADER + self.texts.len() + HEADER + OWNER.len()
    }

    /// The tag, to be followed by `private_len` bytes of private data.
    pub(super) fn bytes(&self, private_len: usize) -> Vec<u8> {
        let mut out = b"ID3\x04\0\0".to_vec();
        out.extend(synchsafe(self.len() - HEADER + private_len));
        out.extend(&self.texts);
        frame(&mut out, b"PRIV", OWNER.len() + private_len);
        out.extend(OWNER);
        out
    }
}

fn frame(out: &mut Vec<u8>, identifier: &[u8; 4], len: usize) {
    out.extend(identifier);
    out.extend(synchsafe(len));
    out.extend([0, 0]);
}

fn text(out: &mut Vec<u8>, identifier: &[u8; 4], text: &str) {
    // What programs show in a line can't hold controls, and a zero would end the text.
    let mut clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    clean.truncate((0..=LONGEST_TEXT).rev().find(|&end| clean.is_char_boundary(end)).unwrap_or_default());
    let clean = if clean.is_empty() { UNKNOWN } else { &clean };
    frame(out, identifier, 1 + clean.len());
    out.push(UTF_8);
    out.extend(clean.as_bytes());
}

/// A number as four bytes of seven bits each.
fn synchsafe(number: usize) -> [u8; 4] {
    [21, 14, 7, 0].map(|shift| (number >> shift) as u8 & 0x7F)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tag(path: &str) -> Tag {
        Tag::of(&FileBytes { key: &[0; 32], ordinal: 0, path, len: 0, mtime: 1_000_000_000 })
    }

    fn texts(path: &str) -> Vec<(String, String)> {
        let tag = tag(path).texts;
        let mut rest = &tag[..];
        let mut found = Vec::new();
        while let [a, b, c, d, 0, 0, high, low, 0, 0, UTF_8, tail @ ..] = rest {
            let len = usize::from(*high) * 128 + usize::from(*low) - 1;
            found.push((String::from_utf8(vec![*a, *b, *c, *d]).unwrap(), String::from_utf8(tail[..len].to_vec()).unwrap()));
            rest = &tail[len..];
        }
        assert!(rest.is_empty());
        found
    }

    #[test]
    fn a_path_gives_the_texts() {
        let found = texts("Some Artist/An Album/07 A Title.mp3");
        let expected = [("TIT2", "A Title"), ("TALB", "An Album"), ("TPE1", "Some Artist"), ("TRCK", "07"), ("TDRC", "2001")];
        assert_eq!(found, expected.map(|(id, text)| (id.to_owned(), text.to_owned())));
    }

    #[test]
    fn poor_paths_give_what_they_have() {
        let found = texts("1234567");
        let expected = [("TIT2", "1234567"), ("TALB", "Unknown"), ("TPE1", "Unknown"), ("TRCK", "123"), ("TDRC", "2001")];
        assert_eq!(found, expected.map(|(id, text)| (id.to_owned(), text.to_owned())));
        assert_eq!(texts("")[0].1, "Unknown");
    }

    proptest! {
        #[test]
        fn any_path_makes_a_tag_within_the_bound(path in any::<String>(), long in 0_usize..300) {
            let path = format!("{0}/{0}/{0}{path}.mp3", "ö".repeat(long));
            let tag = tag(&path);
            prop_assert!(tag.len() <= LONGEST);
            prop_assert_eq!(tag.len(), tag.bytes(0).len());
            prop_assert!(!tag.bytes(1000).contains(&0xFF));
            texts(&path);
        }
    }
}
