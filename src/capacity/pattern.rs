//! Test data of which every sector says whose it is: the nonce of the run, the place, and a keystream that follows from both.
//!
//! A sector that is read somewhere else tells where it was written, one of an earlier run that it is stale, and no drive can guess one.

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use super::{END, FILE_SPAN, SECTOR};

/// A sector.
pub type Sector = [u8; SECTOR];

/// What a sector turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// What was written there.
    Good,
    /// What was written at another place of this run.
    Elsewhere(u64),
    /// All bits zero.
    Zeros,
    /// All bits one.
    Ones,
    /// What an earlier run had written: the write was lost.
    Stale,
    /// What was written there, but for so many bits.
    Flipped(u32),
    /// Anything else.
    Garbage,
}

/// A kind of test data.
pub trait Pattern: Send {
    /// Makes the data of whole sectors from a position on.
    fn fill(&mut self, position: u64, buffer: &mut [u8]);

    /// Says what a sector is that is not what it should be.
    fn judge(&mut self, position: u64, sector: &Sector, expected: &Sector) -> Seen;
}

/// So many wrong bits of 4,096 are still the same sector: of two unrelated ones half of all bits differ.
const FEW_BITS: u32 = 64;

/// Nonce and position, before the keystream.
const HEAD: usize = 16;

/// What copysim writes: nonce, position (both little-endian, 8 bytes), then ChaCha8 under a key that follows from the nonce, at the position.
pub struct Own {
    nonce: u64,
    keystream: ChaCha8Rng,
}

impl Own {
    /// The data of the run with a nonce.
    #[must_use]
    pub fn of(nonce: u64) -> Self {
        let key = blake3::derive_key("copysim 2026-11-30 test data of a capacity check", &nonce.to_le_bytes());
        Self { nonce, keystream: ChaCha8Rng::from_seed(key) }
    }

    /// The nonce of the run with a name: no two runs have the same.
    #[must_use]
    pub fn nonce_of(run: &str) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = blake3::derive_key("copysim 2026-11-30 nonce of a run", run.as_bytes());
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}

impl Pattern for Own {
    fn fill(&mut self, position: u64, buffer: &mut [u8]) {
        self.keystream.set_word_pos(u128::from(position / 4));
        self.keystream.fill_bytes(buffer);
        for (sector, position) in buffer.chunks_mut(SECTOR).zip((position..).step_by(SECTOR)) {
            sector[..8].copy_from_slice(&self.nonce.to_le_bytes());
            sector[8..HEAD].copy_from_slice(&position.to_le_bytes());
        }
    }

    fn judge(&mut self, position: u64, sector: &Sector, expected: &Sector) -> Seen {
        if let Some(seen) = judge_plainly(sector, expected) {
            return seen;
        }
        let (nonce, place) = (word(sector, 0), word(sector, 8));
        let mut other = [0; SECTOR];
        let plausible = is_place(place);
        if nonce == self.nonce && place != position && plausible {
            self.fill(place, &mut other);
            if different_bits(sector, &other) < FEW_BITS {
                return Seen::Elsewhere(place);
            }
        } else if nonce != self.nonce && plausible {
            Self::of(nonce).fill(place, &mut other);
            if different_bits(sector, &other) < FEW_BITS {
                return Seen::Stale;
            }
        }
        Seen::Garbage
    }
}

/// Test data that are written again and again: the generation of each file, counted on from the nonce of the run, takes its place.
pub struct Generations {
    nonce: u64,
    of_file: Arc<[u64]>,
    last: (u64, Own),
}

impl Generations {
    /// The data of the run with a nonce; `of_file` has the generation of each file by its number, 0 for those beyond.
    #[must_use]
    pub fn of(nonce: u64, of_file: Arc<[u64]>) -> Self {
        Self { nonce, of_file, last: (0, Own::of(nonce)) }
    }

    /// The nonce of a generation.
    #[must_use]
    pub fn nonce_of(nonce: u64, generation: u64) -> u64 {
        nonce.wrapping_add(generation)
    }

    fn own(&mut self, position: u64) -> &mut Own {
        let generation = self.of_file.get((position / FILE_SPAN) as usize).copied().unwrap_or(0);
        if self.last.0 != generation {
            self.last = (generation, Own::of(Self::nonce_of(self.nonce, generation)));
        }
        &mut self.last.1
    }
}

impl Pattern for Generations {
    /// All in one file.
    fn fill(&mut self, position: u64, buffer: &mut [u8]) {
        self.own(position).fill(position, buffer);
    }

    fn judge(&mut self, position: u64, sector: &Sector, expected: &Sector) -> Seen {
        self.own(position).judge(position, sector, expected)
    }
}

/// Of which generation of a run a sector is, where it is of one up to `newest`.
#[must_use]
pub fn generation_of(nonce: u64, newest: u64, sector: &Sector) -> Option<u64> {
    Some(word(sector, 0).wrapping_sub(nonce)).filter(|generation| *generation <= newest)
}

/// Whether a sector can have been written at a place: what a drive gives back may say anything.
pub(super) fn is_place(place: u64) -> bool {
    place.is_multiple_of(SECTOR as u64) && place < END
}

/// What can be said without knowing the kind of data.
pub(super) fn judge_plainly(sector: &Sector, expected: &Sector) -> Option<Seen> {
    let all = |value: u8| sector.iter().all(|&byte| byte == value);
    match different_bits(sector, expected) {
        0 => Some(Seen::Good),
        bits if bits < FEW_BITS => Some(Seen::Flipped(bits)),
        _ if all(0) => Some(Seen::Zeros),
        _ if all(0xff) => Some(Seen::Ones),
        _ => None,
    }
}

/// The little-endian number at a place in a sector.
pub(super) fn word(sector: &Sector, at: usize) -> u64 {
    sector[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// How many bits of two sectors differ.
pub(super) fn different_bits(one: &Sector, other: &Sector) -> u32 {
    one.iter().zip(other).map(|(a, b)| (a ^ b).count_ones()).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sector(nonce: u64, position: u64) -> Sector {
        let mut sector = [0; SECTOR];
        Own::of(nonce).fill(position, &mut sector);
        sector
    }

    fn seen(nonce: u64, position: u64, found: &Sector) -> Seen {
        Own::of(nonce).judge(position, found, &sector(nonce, position))
    }

    #[test]
    fn field_c03_a_sector_says_whose_it_is() {
        let own = sector(7, 4096);
        assert_eq!(seen(7, 4096, &own), Seen::Good);
        assert_eq!(seen(7, 512, &own), Seen::Elsewhere(4096));
        assert_eq!(seen(8, 4096, &own), Seen::Stale);
        assert_eq!(seen(8, 0, &own), Seen::Stale);
        assert_eq!(seen(7, 4096, &[0; SECTOR]), Seen::Zeros);
        assert_eq!(seen(7, 4096, &[0xff; SECTOR]), Seen::Ones);
        assert_eq!(seen(7, 4096, &[0x55; SECTOR]), Seen::Garbage);
        // The head of another place alone proves nothing.
        let mut forged = own;
        forged[8..HEAD].copy_from_slice(&8192_u64.to_le_bytes());
        assert_eq!(seen(7, 512, &forged), Seen::Garbage);
        assert_ne!(Own::nonce_of("20250131T235959Z-0123abcd-capacity"), Own::nonce_of("20250131T235959Z-0123abce-capacity"));
    }

    #[test]
    fn what_was_written_before_is_stale_and_says_of_which_generation() {
        let mut data = Generations::of(u64::MAX, [0, 5].into());
        let mut expected = sector(0, 0);
        data.fill(FILE_SPAN, &mut expected);
        let older = sector(Generations::nonce_of(u64::MAX, 4), FILE_SPAN);
        assert_eq!(data.judge(FILE_SPAN, &expected.clone(), &expected), Seen::Good);
        assert_eq!(data.judge(FILE_SPAN, &older, &expected), Seen::Stale);
        assert_eq!(data.judge(FILE_SPAN, &sector(4, FILE_SPAN + 512), &expected), Seen::Elsewhere(FILE_SPAN + 512));
        assert_eq!((generation_of(u64::MAX, 5, &older), generation_of(u64::MAX, 5, &expected)), (Some(4), Some(5)));
        assert_eq!(generation_of(u64::MAX, 3, &older), None);
        // Static data lie beside them and stay of the first generation.
        data.fill(512, &mut expected);
        assert_eq!(expected, sector(u64::MAX, 512));
    }

    proptest! {
        #[test]
        fn few_wrong_bits_do_not_hide_whose_it_is(place in 0_u64..1 << 50, bits in prop::collection::btree_set(0..4096_usize, 1..20)) {
            let place = place * SECTOR as u64;
            let mut found = sector(7, place);
            for bit in &bits {
                found[bit / 8] ^= 1 << (bit % 8);
            }
            prop_assert_eq!(seen(7, place, &found), Seen::Flipped(bits.len() as u32));
            // In the head they hide it.
            if bits.iter().all(|bit| *bit >= HEAD * 8) {
                prop_assert_eq!(seen(7, place + 512, &found), Seen::Elsewhere(place));
            }
        }

        #[test]
        fn any_part_is_the_same_as_the_whole(start in 0_usize..60, len in 1_usize..60) {
            let mut whole = vec![0; 128 * SECTOR];
            Own::of(3).fill(1 << 40, &mut whole);
            let mut part = vec![0; len * SECTOR];
            Own::of(3).fill((1 << 40) + (start * SECTOR) as u64, &mut part);
            prop_assert_eq!(&whole[start * SECTOR..(start + len) * SECTOR], &part[..]);
        }
    }
}
