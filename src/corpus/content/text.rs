//! Content: text as source trees hold it, in the look of the file's extension.
//!
//! Each 4 KiB page is made from its own place in the keystream and ends with a newline, so that a range needs no page before it.

use super::keystream::Keystream;
use super::vocabulary::{LOOKS, Vocabulary, WORDS};
use super::{Content, FileBytes};

const PAGE: usize = 4096;
/// Pieces are copied as a whole and then counted by their length, so a page may be overrun by so much.
const PIECE: usize = 32;
/// Random numbers for a page. They suffice for a draw per two characters; a page that needs more takes them again.
const DRAWS: usize = 2048;
/// Identifiers that a page uses again and again, as a program does.
const LOCALS: usize = 48;

/// Text of words and lines.
pub(super) struct Text {
    looks: Vec<Look>,
    words: Vec<Fragment>,
    capitals: Vec<Fragment>,
}

impl Text {
    pub(super) fn new() -> Self {
        Self {
            looks: LOOKS.iter().map(Look::new).collect(),
            words: WORDS.iter().map(|word| Fragment::new(word.as_bytes())).collect(),
            capitals: WORDS.iter().map(|word| Fragment::new(&capital(word))).collect(),
        }
    }

    /// The look of a file by its extension, or the last one: prose.
    fn look(&self, path: &str) -> &Look {
        let path = path.to_ascii_lowercase();
        let has = |extension: &&str| path.strip_suffix(*extension).is_some_and(|stem| stem.ends_with('.'));
        let index = LOOKS.iter().position(|look| look.extensions.iter().any(has)).unwrap_or(LOOKS.len() - 1);
        &self.looks[index]
    }

    /// Makes a page of `len` bytes.
    fn page(&self, look: &Look, first: bool, keystream: &[u8; 2 * DRAWS], len: usize, out: &mut [u8; PAGE + PIECE]) {
        let mut draws = Draws { keystream, next: 0 };
        let locals: [Fragment; LOCALS] = std::array::from_fn(|_| self.words[draws.skewed()].followed_by(&self.capitals[draws.skewed()]));
        let mut at = 0;
        let mut put = |fragment: &Fragment| {
            out[at..at + PIECE].copy_from_slice(&fragment.bytes);
            at += fragment.len;
            at < len
        };
        let mut indentation = 0;
        let mut opening = first.then_some(&look.opening);
        'page: loop {
            let line = match opening.take() {
                Some(line) => line,
                None => &look.lines[draws.below(look.lines.len())],
            };
            for piece in line {
                let goes_on = match piece {
                    Piece::Fixed(fragment) => put(fragment),
                    Piece::Word => put(&self.words[draws.skewed()]),
                    Piece::Capital => put(&self.capitals[draws.skewed()]),
                    Piece::Local => put(&locals[draws.below(LOCALS)]),
                    Piece::Number => put(&Fragment::number(draws.skewed())),
                    Piece::Base64 => put(&Fragment::new(&[b'A' + draws.below(26) as u8])),
                    Piece::Indentation => put(&Fragment { bytes: [b' '; PIECE], len: indentation }),
                };
                if !goes_on {
                    break 'page;
                }
            }
            indentation = 2 + 2 * (draws.skewed() >> 6);
        }
        out[len - 1] = b'\n';
    }
}

impl Content for Text {
    fn min_len(&self) -> u64 {
        0
    }

    fn fill(&self, file: &FileBytes<'_>, mut offset: u64, mut buffer: &mut [u8]) {
        let look = self.look(file.path);
        let mut keystream = Keystream::of(file);
        let mut draws = [0; 2 * DRAWS];
        let mut page = [0; PAGE + PIECE];
        while !buffer.is_empty() {
            let within = (offset % PAGE as u64) as usize;
            let page_start = offset - within as u64;
            let page_len = PAGE.min((file.len - page_start) as usize);
            let (part, rest) = buffer.split_at_mut(buffer.len().min(page_len - within));
            keystream.fill(page_start, &mut draws);
            self.page(look, page_start == 0, &draws, page_len, &mut page);
            part.copy_from_slice(&page[within..within + part.len()]);
            offset += part.len() as u64;
            buffer = rest;
        }
    }
}

/// A few characters, at the start of an array of fixed length: copied without a loop.
#[derive(Clone, Copy)]
struct Fragment {
    bytes: [u8; PIECE],
    len: usize,
}

impl Fragment {
    /// Of at most `PIECE` characters.
    fn new(text: &[u8]) -> Self {
        let mut bytes = [0; PIECE];
        bytes[..text.len()].copy_from_slice(text);
        Self { bytes, len: text.len() }
    }

    fn followed_by(&self, other: &Self) -> Self {
        let mut bytes = self.bytes;
        bytes[self.len..self.len + other.len].copy_from_slice(&other.bytes[..other.len]);
        Self { bytes, len: self.len + other.len }
    }

    /// A number below 1000, in decimal.
    fn number(number: usize) -> Self {
        let digits = [100, 10, 1].map(|unit| b'0' + (number / unit % 10) as u8);
        let zeros = if number < 10 { 2 } else { usize::from(number < 100) };
        Self::new(&digits[zeros..])
    }
}

/// A part of a line.
enum Piece {
    Fixed(Fragment),
    Word,
    Capital,
    Local,
    Number,
    Base64,
    Indentation,
}

/// A look, taken apart.
struct Look {
    opening: Vec<Piece>,
    lines: Vec<Vec<Piece>>,
}

impl Look {
    fn new(vocabulary: &Vocabulary) -> Self {
        Self { opening: pieces(vocabulary.opening), lines: vocabulary.lines.iter().map(|line| pieces(line)).collect() }
    }
}

/// Takes a line apart: `$` and a letter of the vocabulary's key is a piece; a `$` before anything else is itself.
fn pieces(line: &str) -> Vec<Piece> {
    let mut out = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let special = match rest.as_bytes() {
            [b'$', b'w', ..] => Some(Piece::Word),
            [b'$', b'W', ..] => Some(Piece::Capital),
            [b'$', b'l', ..] => Some(Piece::Local),
            [b'$', b'n', ..] => Some(Piece::Number),
            [b'$', b'c', ..] => Some(Piece::Base64),
            [b'$', b'i', ..] => Some(Piece::Indentation),
            _ => None,
        };
        let taken = match special {
            Some(piece) => {
                out.push(piece);
                2
            }
            None => {
                let end = rest[1..].find('$').map_or(rest.len(), |at| at + 1).min(PIECE);
                out.push(Piece::Fixed(Fragment::new(&rest.as_bytes()[..end])));
                end
            }
        };
        rest = &rest[taken..];
    }
    out
}

fn capital(word: &str) -> Vec<u8> {
    let mut bytes = word.as_bytes().to_vec();
    bytes[..1].make_ascii_uppercase();
    bytes
}

/// Random numbers of 16 bits, from the keystream.
struct Draws<'a> {
    keystream: &'a [u8; 2 * DRAWS],
    next: usize,
}

impl Draws<'_> {
    fn pair(&mut self) -> [u8; 2] {
        let at = 2 * (self.next % DRAWS);
        self.next += 1;
        [self.keystream[at], self.keystream[at + 1]]
    }

    /// Evenly one of the numbers below `limit`.
    fn below(&mut self, limit: usize) -> usize {
        (usize::from(u16::from_le_bytes(self.pair())) * limit) >> 16
    }

    /// One of the numbers below 256, the smaller the more often: the lesser of two.
    fn skewed(&mut self) -> usize {
        let [a, b] = self.pair();
        usize::from(a.min(b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vocabulary_fits_and_is_plain() {
        let text = Text::new();
        assert!(text.words.iter().all(|word| word.len < 16));
        for look in &LOOKS {
            assert!(look.opening.is_ascii() && look.lines.iter().all(|line| line.is_ascii()));
        }
    }

    #[test]
    fn a_file_is_known_by_its_extension() {
        let text = Text::new();
        let look = |path: &str| text.looks.iter().position(|look| std::ptr::eq(look, text.look(path))).map(|index| LOOKS[index].extensions[0]);
        for (path, expected) in [
            ("a/b.d.ts", "d.ts"),
            ("a/b.TS", "ts"),
            ("b.min.js", "js"),
            ("package.json", "json"),
            ("a.js.map", "map"),
            ("x.css", "css"),
            ("README.md", "md"),
            ("LICENSE", "md"),
            ("js", "md"),
            ("", "md"),
        ] {
            assert_eq!(look(path), Some(expected), "{path}");
        }
    }

    #[test]
    fn numbers_are_decimal() {
        for number in [0, 9, 10, 99, 100, 255] {
            let fragment = Fragment::number(number);
            assert_eq!(fragment.bytes[..fragment.len], *number.to_string().as_bytes());
        }
    }
}
