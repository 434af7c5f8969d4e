//! The keystream of a file: ChaCha8, seekable to any byte.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use super::FileBytes;

/// Bytes that the generator makes at once. Seeking to a multiple of it wastes nothing.
const BATCH: usize = 256;

/// Where a file's keystream serves for choices instead of bytes: beyond any length of a file.
const CHOICES: u64 = 1 << 63;

/// The key of a corpus: BLAKE3 key derivation over its name, version and seed.
#[must_use]
pub fn corpus_key(name: &str, version: u32, seed: u64) -> [u8; 32] {
    // Numbers of fixed width come first, so that no two corpora have the same material.
    let material = [&version.to_le_bytes()[..], &seed.to_le_bytes()[..], name.as_bytes()].concat();
    blake3::derive_key("copysim 2026-11-30 keystream of a corpus", &material)
}

/// The keystream of one file: the ChaCha8 stream of that number under the key of the corpus.
pub(super) struct Keystream(ChaCha8Rng);

impl Keystream {
    /// The keystream that belongs to a file.
    pub(super) fn of(file: &FileBytes<'_>) -> Self {
        let mut generator = ChaCha8Rng::from_seed(*file.key);
        generator.set_stream(file.ordinal);
        Self(generator)
    }

    /// Fills `buffer` with the keystream from byte `offset` on.
    pub(super) fn fill(&mut self, offset: u64, buffer: &mut [u8]) {
        // The generator hands out whole words and starts at whole batches, so a ragged head comes out of a batch of its own.
        let skipped = (offset % BATCH as u64) as usize;
        self.0.set_word_pos(u128::from((offset - skipped as u64) / 4));
        let mut rest = buffer;
        if skipped > 0 {
            let mut batch = [0; BATCH];
            self.0.fill_bytes(&mut batch);
            let (head, tail) = rest.split_at_mut(rest.len().min(BATCH - skipped));
            head.copy_from_slice(&batch[skipped..skipped + head.len()]);
            rest = tail;
        }
        self.0.fill_bytes(rest);
    }

    /// The answer to the question of that number: evenly one of `answers`.
    pub(super) fn choose(&mut self, question: u64, answers: u32) -> u32 {
        let mut word = [0; 4];
        self.fill(CHOICES + 4 * question, &mut word);
        ((u64::from(u32::from_le_bytes(word)) * u64::from(answers)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(key: &[u8; 32], ordinal: u64) -> FileBytes<'_> {
        FileBytes { key, ordinal, path: "a", len: u64::MAX, mtime: 0 }
    }

    #[test]
    fn keys_differ_by_name_version_and_seed_and_stay_the_same_for_ever() {
        let key = corpus_key("jpg", 1, 0);
        assert_eq!(blake3::hash(&key).to_hex()[..16].to_owned(), "efe5a172e9757723");
        for other in [corpus_key("jp", 1, 0), corpus_key("jpg", 2, 0), corpus_key("jpg", 1, 1), corpus_key("jpg", 1, 1 << 63)] {
            assert_ne!(key, other);
        }
    }

    /// ChaCha8 with a zero key and stream 0: the first test vector of Strombergson's draft-strombergson-chacha-test-vectors.
    #[test]
    fn it_is_chacha8() {
        let mut bytes = [0; 16];
        Keystream::of(&file(&[0; 32], 0)).fill(0, &mut bytes);
        assert_eq!(bytes, [0x3e, 0x00, 0xef, 0x2f, 0x89, 0x5f, 0x40, 0xd6, 0x7f, 0x5b, 0xb8, 0xe8, 0x1f, 0x09, 0xa5, 0xa1]);
    }

    #[test]
    fn choices_reach_every_answer_and_no_other() {
        let key = [7; 32];
        let mut seen = [0; 3];
        for ordinal in 0..300 {
            seen[Keystream::of(&file(&key, ordinal)).choose(1, 3) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| n > 60), "{seen:?}");
    }

    proptest! {
        #[test]
        fn any_range_is_the_same_as_the_bytes_read_one_by_one(base in any::<u64>(), ordinal in any::<u64>(), start in 0_usize..600, len in 0_usize..1500) {
            let key = [9; 32];
            let base = base >> 1;
            let mut stream = Keystream::of(&file(&key, ordinal));
            let mut range = vec![0; len];
            stream.fill(base + start as u64, &mut range);
            for (index, &byte) in range.iter().enumerate() {
                let mut single = [0];
                stream.fill(base + (start + index) as u64, &mut single);
                prop_assert_eq!(byte, single[0]);
            }
        }
    }
}
