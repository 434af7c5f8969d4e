//! Pictures whose entropy-coded data are random bytes: Huffman tables in which one byte is one coefficient.
//!
//! In baseline JPEG (ITU-T T.81, F.1.2) a coefficient is a Huffman code for its size, followed by as many bits as the size says. Here the code for size `n` has
//! `8 - n` bits, so that code and bits are one byte together: `0` + 7 bits, `10` + 6 bits, … `1111110` + 1 bit, and `11111110` for size 0, which ends a block. Then
//! every byte below 0xFE is a coefficient, a block ends at a byte, nothing is padded, and where each block starts follows from its index alone.
//!
//! Nothing would be stuffed either (F.1.2.3), which no other picture has: ffmpeg's probing then loses the end of the image. So one AC code of 9 bits, `111111110` for two
//! zeros and a coefficient of size 7, occurs once in a scan, as the first of its first block: 0xFF, the stuffed zero, and seven bits, three bytes for three coefficients.

use super::window::Window;

/// The byte that ends a block early (EOB): size 0.
const END_OF_BLOCK: u8 = 0xFE;
/// The symbol of a run of two zeros and a coefficient of size 7.
const TWO_ZEROS_AND_SIZE_7: u8 = 0x27;
/// A block has a DC coefficient, at least 8 AC coefficients and an end: below that the ends would make the picture compressible.
const SHORTEST_BLOCK: u64 = 10;
/// A block has at most 64 coefficients, and then no end.
const LONGEST_BLOCK: u64 = 64;
const PIXELS_PER_MCU: u32 = 16;
/// Four of luminance and one each of the colour differences (4:2:0).
const BLOCKS_PER_MCU: u64 = 6;

/// Turns keystream bytes into coefficients.
pub(super) fn to_coefficients(bytes: &mut [u8]) {
    for byte in bytes {
        *byte = byte.wrapping_sub(u8::from(*byte >= END_OF_BLOCK) << 1);
    }
}

/// The measures of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Picture {
    /// In pixels.
    pub(super) width: u16,
    /// In pixels.
    pub(super) height: u16,
    /// Into how many restart intervals a row of MCUs is cut; divides the MCUs of a row. Differences of DC coefficients add up within an interval only, so
    /// short ones keep random differences well inside the range of a coefficient.
    pub(super) intervals_per_row: u16,
}

impl Picture {
    fn mcus_per_interval(self) -> u64 {
        u64::from(u32::from(self.width).div_ceil(PIXELS_PER_MCU)) / u64::from(self.intervals_per_row)
    }

    fn intervals(self) -> u64 {
        u64::from(u32::from(self.height).div_ceil(PIXELS_PER_MCU)) * u64::from(self.intervals_per_row)
    }

    /// The length of the shortest scan, or of the shortest whose blocks have at least so many bytes.
    pub(super) fn shortest_scan(self, block_len: u64) -> u64 {
        self.intervals() * (self.mcus_per_interval() * BLOCKS_PER_MCU * block_len.max(SHORTEST_BLOCK) + 2)
    }

    /// The longest scan of this picture that fits into `available` bytes from `start` on; `available` is at least the shortest scan.
    pub(super) fn scan(self, start: u64, available: u64) -> Scan {
        let blocks = self.mcus_per_interval() * BLOCKS_PER_MCU;
        let intervals = self.intervals();
        let bytes_of_each_block = (available - 2 * intervals) / blocks;
        let (block_len, longer) = match bytes_of_each_block / intervals {
            len if len < LONGEST_BLOCK => (len, bytes_of_each_block % intervals),
            _ => (LONGEST_BLOCK, 0),
        };
        Scan { start, block_len, intervals, layout: Steps { short: blocks * block_len + 2, extra: blocks, longer } }
    }

    /// The segments from the quantisation tables to the start of the scan.
    pub(super) fn tables(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        let mut segment = |marker: u8, payload: &[&[u8]]| {
            let payload = payload.concat();
            out.extend([0xFF, marker]);
            out.extend((payload.len() as u16 + 2).to_be_bytes());
            out.extend(payload);
        };
        // Two tables, of luminance and of colour, that quantise nothing.
        segment(0xDB, &[&[0], &[1; 64], &[1], &[1; 64]]);
        // Baseline, 8 bits, three components: identifier, sampling, quantisation table.
        segment(0xC0, &[&[8], &self.height.to_be_bytes(), &self.width.to_be_bytes(), &[3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1]]);
        // One code each of 1 to 8 bits, for the sizes 7 to 0, for DC (class 0) and AC (class 1) coefficients alike; and the one of 9 bits, for AC.
        const SIZES: [u8; 8] = [7, 6, 5, 4, 3, 2, 1, 0];
        segment(0xC4, &[&[0x00], &[1; 8], &[0; 8], &SIZES, &[0x10], &[1; 9], &[0; 7], &SIZES, &[TWO_ZEROS_AND_SIZE_7]]);
        segment(0xDD, &[&(self.mcus_per_interval() as u16).to_be_bytes()]);
        // All three components in one scan of all 64 coefficients, with table 0 for both classes.
        segment(0xDA, &[&[3, 1, 0, 2, 0, 3, 0, 0, 63, 0]]);
        out
    }
}

/// Where everything in a scan is: restart intervals one after another, each of the same number of blocks and followed by a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scan {
    start: u64,
    /// Bytes of a block; one more in the first `layout.longer` intervals.
    block_len: u64,
    intervals: u64,
    layout: Steps,
}

impl Scan {
    /// Bytes of the scan with its end of image.
    pub(super) fn len(&self) -> u64 {
        self.layout.start(self.intervals)
    }

    /// Stamps the ends of blocks and the markers that fall into the window.
    pub(super) fn stamp(&self, window: &mut Window<'_>) {
        let end = self.start + self.len();
        if window.end() <= self.start || window.offset() >= end {
            return;
        }
        // Behind the DC coefficient of the first block.
        window.stamp(self.start + 1, &[0xFF, 0]);
        for byte in window.part(self.start + 3, 1).1 {
            *byte &= 0x7F;
        }
        let first = self.layout.index(window.offset().saturating_sub(self.start));
        for interval in first..self.intervals {
            let start = self.start + self.layout.start(interval);
            if start >= window.end() {
                break;
            }
            let marker = self.start + self.layout.start(interval + 1) - 2;
            let block_len = self.block_len + u64::from(interval < self.layout.longer);
            if block_len < LONGEST_BLOCK {
                let (skipped, part) = window.part(start, marker - start);
                let before_first_end = (block_len as usize - 1) - skipped % block_len as usize;
                for end_of_block in part.iter_mut().skip(before_first_end).step_by(block_len as usize) {
                    *end_of_block = END_OF_BLOCK;
                }
            }
            let last = interval + 1 == self.intervals;
            window.stamp(marker, &[0xFF, if last { 0xD9 } else { 0xD0 + (interval % 8) as u8 }]);
        }
    }
}

/// A row of steps of which the first `longer` have `extra` more than the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Steps {
    /// Length of an ordinary step.
    pub(super) short: u64,
    /// What the longer ones have in addition.
    pub(super) extra: u64,
    /// How many are longer.
    pub(super) longer: u64,
}

impl Steps {
    /// Where a step starts.
    pub(super) fn start(&self, index: u64) -> u64 {
        index * self.short + index.min(self.longer) * self.extra
    }

    /// The step in which a place lies.
    pub(super) fn index(&self, place: u64) -> u64 {
        let all_longer = self.start(self.longer);
        if place < all_longer { place / (self.short + self.extra) } else { self.longer + (place - all_longer) / self.short }
    }
}

#[cfg(test)]
mod tests {
    use super::super::FileBytes;
    use super::super::keystream::Keystream;
    use super::*;

    #[test]
    fn coefficients_are_all_bytes_below_the_end_of_block() {
        let mut bytes: Vec<u8> = (0..=255).collect();
        to_coefficients(&mut bytes);
        assert_eq!(bytes[..254], (0..254).collect::<Vec<u8>>());
        assert_eq!(bytes[254..], [252, 253]);
    }

    #[test]
    fn steps_find_the_place_that_they_start() {
        let steps = Steps { short: 10, extra: 3, longer: 4 };
        for place in 0..200 {
            let index = steps.index(place);
            assert!(steps.start(index) <= place && place < steps.start(index + 1), "{place}");
        }
    }

    #[test]
    fn a_scan_leaves_less_than_a_byte_of_each_block_of_an_interval() {
        let picture = Picture { width: 1600, height: 1200, intervals_per_row: 4 };
        let least = picture.shortest_scan(0);
        assert_eq!(least, 300 * (25 * 6 * 10 + 2));
        let most = 300 * (25 * 6 * 64 + 2);
        for available in (least..most).step_by(77).chain([most - 1, most]) {
            let left = available - picture.scan(0, available).len();
            assert!(left < 25 * 6, "{available}: {left}");
        }
        assert_eq!(picture.scan(0, most + 1_000_000).len(), most);
    }

    #[test]
    fn decoders_take_blocks_of_every_length() {
        let picture = Picture { width: 160, height: 120, intervals_per_row: 1 };
        let front = [&[0xFF, 0xD8][..], &picture.tables()].concat();
        let key = [5; 32];
        for block_len in SHORTEST_BLOCK..=LONGEST_BLOCK {
            for longer_bytes in [0, 60, 7 * 60] {
                let scan = picture.scan(front.len() as u64, picture.shortest_scan(block_len) + longer_bytes);
                let mut file = front.clone();
                file.resize(front.len() + scan.len() as usize, 0);
                let (_, scan_bytes) = file.split_at_mut(front.len());
                let described = FileBytes { key: &key, ordinal: block_len, path: "", len: 0, mtime: 0 };
                Keystream::of(&described).fill(front.len() as u64, scan_bytes);
                to_coefficients(scan_bytes);
                for mut window in Window::pieces(front.len() as u64, scan_bytes) {
                    scan.stamp(&mut window);
                }
                let options = zune_jpeg::zune_core::options::DecoderOptions::new_safe().set_strict_mode(true);
                let cursor = zune_jpeg::zune_core::bytestream::ZCursor::new(&file);
                assert_eq!(zune_jpeg::JpegDecoder::new_with_options(cursor, options).decode().unwrap().len(), 160 * 120 * 3);
                assert_eq!(jpeg_decoder::Decoder::new(&file[..]).decode().unwrap().len(), 160 * 120 * 3);
            }
        }
    }
}
