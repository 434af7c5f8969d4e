//! Content: MPEG-1 Layer III songs of a constant bit rate with an ID3v2 tag.
//!
//! Frames are complete in themselves (no bit reservoir) and code silence; the rest of each is ancillary data (ISO/IEC 11172-3, 2.4.1.8), which is the keystream
//! without 0xFF, so that nothing but a header looks like one. What whole frames leave over goes into the tag.

use super::id3::{self, Tag};
use super::keystream::Keystream;
use super::window::Window;
use super::{Content, FileBytes};

/// Songs.
pub(super) struct Mp3;

/// What a song has at least.
const FEWEST_FRAMES: u64 = 8;

impl Content for Mp3 {
    fn min_len(&self) -> u64 {
        id3::LONGEST as u64 + RATES.map(|rate| rate.frame_start(FEWEST_FRAMES)).into_iter().fold(0, u64::max)
    }

    fn fill(&self, file: &FileBytes<'_>, offset: u64, buffer: &mut [u8]) {
        let mut keystream = Keystream::of(file);
        let layout = Layout::of(file, RATES[keystream.choose(BIT_RATE, RATES.len() as u32) as usize]);
        for mut window in Window::pieces(offset, buffer) {
            keystream.fill(window.offset(), window.bytes());
            for byte in window.bytes() {
                *byte = (*byte).min(0xFE);
            }
            layout.stamp(&mut window);
        }
    }
}

/// The question to the keystream which bit rate a song has.
const BIT_RATE: u64 = 0;

/// A bit rate at 44.1 kHz.
#[derive(Debug, Clone, Copy)]
struct Rate {
    /// The bit rate's index in a header.
    index: u8,
    /// The mean length of a frame is this over 49: 144 · bit rate / 44,100.
    frame_len_times_49: u64,
}

/// 192, 256 and 320 kb/s.
const RATES: [Rate; 3] = [
    Rate { index: 11, frame_len_times_49: 144 * 192_000 / 900 },
    Rate { index: 13, frame_len_times_49: 144 * 256_000 / 900 },
    Rate { index: 14, frame_len_times_49: 144 * 320_000 / 900 },
];

impl Rate {
    /// Where a frame starts after the tag: a frame is padded by a byte whenever the mean has gained a whole one.
    fn frame_start(self, frame: u64) -> u64 {
        frame * self.frame_len_times_49 / 49
    }

    /// The last frame that starts at or before a place.
    fn frame_at(self, place: u64) -> u64 {
        (49 * (place + 1)).div_ceil(self.frame_len_times_49) - 1
    }

    fn header(self, frame: u64) -> [u8; 4] {
        let padded = self.frame_start(frame + 1) - self.frame_start(frame) > self.frame_len_times_49 / 49;
        // MPEG-1 Layer III without checksum; bit rate, 44.1 kHz, padding; joint stereo (mid/side), original.
        [0xFF, 0xFB, self.index << 4 | u8::from(padded) << 1, 0x64]
    }
}

const HEADER: usize = 4;
const SIDE_INFORMATION: usize = 32;

/// The fixed bits of the side information: no main data of earlier frames, no main data at all, and for each of the two granules of two channels a global gain of 128 or more.
const SIDE_FIXED: [u8; SIDE_INFORMATION] = side_information(0, 0, 0b1000_0000);
/// The bits that come from the keystream and change nothing about silence: private bits, shared scale factors, and the lower bits of each global gain. Never eight in a row.
const SIDE_FREE: [u8; SIDE_INFORMATION] = side_information(0b111, 0xFF, 0b0011_1111);

/// Side information with these values and zeros elsewhere.
const fn side_information(private_bits: u8, scfsi: u8, global_gain: u8) -> [u8; SIDE_INFORMATION] {
    let mut bits = [0; SIDE_INFORMATION];
    // After main_data_begin (9 bits).
    put(&mut bits, 9, 3, private_bits);
    put(&mut bits, 12, 8, scfsi);
    // 59 bits for each granule and channel, in which part2_3_length (12) and big_values (9) precede the gain.
    let mut part = 0;
    while part < 4 {
        put(&mut bits, 20 + 59 * part + 21, 8, global_gain);
        part += 1;
    }
    bits
}

/// Writes `len` bits from bit `at` on.
const fn put(bits: &mut [u8; SIDE_INFORMATION], at: usize, len: usize, value: u8) {
    let mut bit = 0;
    while bit < len {
        if value >> (len - 1 - bit) & 1 == 1 {
            bits[(at + bit) / 8] |= 0x80 >> ((at + bit) % 8);
        }
        bit += 1;
    }
}

/// Where everything in a file is.
struct Layout {
    tag: Vec<u8>,
    frames_start: u64,
    rate: Rate,
}

impl Layout {
    fn of(file: &FileBytes<'_>, rate: Rate) -> Self {
        let tag = Tag::of(file);
        let for_frames = file.len - tag.len() as u64;
        let private_len = for_frames - rate.frame_start(rate.frame_at(for_frames));
        Self { tag: tag.bytes(private_len as usize), frames_start: tag.len() as u64 + private_len, rate }
    }

    fn stamp(&self, window: &mut Window<'_>) {
        window.stamp(0, &self.tag);
        let mut frame = self.rate.frame_at(window.offset().saturating_sub(self.frames_start));
        loop {
            let start = self.frames_start + self.rate.frame_start(frame);
            if start >= window.end() {
                return;
            }
            window.stamp(start, &self.rate.header(frame));
            let (skipped, part) = window.part(start + HEADER as u64, SIDE_INFORMATION as u64);
            for (byte, (fixed, free)) in part.iter_mut().zip(SIDE_FIXED.iter().zip(&SIDE_FREE).skip(skipped)) {
                *byte = *byte & free | fixed;
            }
            frame += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_where_their_lengths_add_up_to() {
        for (rate, base) in RATES.iter().zip([626, 835, 1044]) {
            let mut start = 0;
            for frame in 0..1000 {
                assert_eq!(rate.frame_start(frame), start);
                let padded = u64::from(rate.header(frame)[2] >> 1 & 1);
                for place in [start, start + 1, start + base + padded - 1] {
                    assert_eq!(rate.frame_at(place), frame, "{place}");
                }
                start += base + padded;
            }
        }
    }

    #[test]
    fn free_bits_are_none_of_the_fixed_ones_and_never_make_a_sync() {
        for (fixed, free) in SIDE_FIXED.iter().zip(SIDE_FREE) {
            assert_eq!(fixed & free, 0);
            assert_ne!(fixed | free, 0xFF);
        }
    }
}
