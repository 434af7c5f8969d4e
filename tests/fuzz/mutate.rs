//! Inputs from seeds: bytes changed, cut, doubled, put together, and replaced by what is special. The same for the same name.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// Words at which parsers and arithmetic break most often.
const SPECIAL: [&[u8]; 34] = [
    b"0",
    b"-1",
    b"18446744073709551615",
    b"18446744073709551616",
    b"9223372036854775807",
    b"4294967295",
    b"1e999",
    b"0.0001",
    b"NaN",
    b"null",
    b"true",
    b"[]",
    b"{}",
    b"\"\"",
    b"\"",
    b"'",
    b"[[",
    b"\n",
    b"\r\n",
    b"\0",
    b" ",
    b"/",
    b"../",
    b"\\",
    b":",
    b";",
    b"\x1b]0;x\x07",
    b"\xc2\x9b2J",
    b"\xe2\x80\xae",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x00\x00\x00\x00\x00\x00\x00\x80",
    b"\xff",
    b"\xf0\x9f\x92\xbe",
    b"<script>",
];
/// No input is longer than this and its seed.
const LONGEST: usize = 1 << 16;

/// The source of inputs.
pub struct Mutator<'s> {
    dice: ChaCha8Rng,
    seeds: &'s [Vec<u8>],
}

impl<'s> Mutator<'s> {
    pub fn new(name: &str, seeds: &'s [Vec<u8>]) -> Self {
        assert!(!seeds.is_empty());
        Self { dice: ChaCha8Rng::from_seed(*blake3::hash(name.as_bytes()).as_bytes()), seeds }
    }

    fn below(&mut self, end: usize) -> usize {
        self.dice.next_u32() as usize % end.max(1)
    }

    /// The next input.
    pub fn next(&mut self) -> Vec<u8> {
        let index = self.below(self.seeds.len());
        let mut data = self.seeds[index].clone();
        for _ in 0..1 + self.below(6) {
            self.mutate(&mut data);
        }
        data
    }

    fn mutate(&mut self, data: &mut Vec<u8>) {
        let at = self.below(data.len() + 1);
        let len = self.below(24).min(data.len() - at);
        match self.below(9) {
            0 => data.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << (self.dice.next_u32() % 8)),
            1 => data.iter_mut().skip(at).take(1).for_each(|byte| *byte = self.dice.next_u32() as u8),
            2 => drop(data.drain(at..at + len)),
            3 => {
                let part = data[at..at + len].to_vec();
                let to = self.below(data.len() + 1);
                data.splice(to..to, part);
            }
            4 => data.truncate(at),
            5 => {
                let other = &self.seeds[self.dice.next_u32() as usize % self.seeds.len()];
                let from = self.below(other.len() + 1);
                let part = &other[from..(from + self.below(200)).min(other.len())];
                data.splice(at..at + len, part.iter().copied());
            }
            6 => {
                // A number becomes another.
                let start = data.iter().skip(at).position(u8::is_ascii_digit).map(|found| at + found);
                let Some(start) = start else { return };
                let end = start + data[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                let special = SPECIAL[self.below(10)];
                data.splice(start..end, special.iter().copied());
            }
            _ => {
                let special = SPECIAL[self.below(SPECIAL.len())];
                let replaced = if self.below(2) == 0 { len.min(special.len()) } else { 0 };
                data.splice(at..at + replaced, special.iter().copied());
            }
        }
        data.truncate(data.len().min(LONGEST.max(self.seeds[0].len())));
    }
}
