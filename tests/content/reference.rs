//! The formats once more, written slowly and obviously from their definitions: each must give the bytes of the real thing.

use crate::{MTIME, kind, make, test_key};

/// ChaCha8 with a 64-bit counter and a 64-bit stream, one byte at a time.
struct Chacha {
    key: [u8; 32],
    stream: u64,
    block: Option<(u64, [u8; 64])>,
}

impl Chacha {
    fn new(ordinal: u64) -> Self {
        Self { key: test_key(0), stream: ordinal, block: None }
    }

    fn byte(&mut self, at: u64) -> u8 {
        let counter = at / 64;
        let block = match self.block {
            Some((made, block)) if made == counter => block,
            _ => self.make(counter),
        };
        self.block = Some((counter, block));
        block[(at % 64) as usize]
    }

    fn make(&self, counter: u64) -> [u8; 64] {
        let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let mut input = [0_u32; 16];
        let constant_and_key = [&b"expand 32-byte k"[..], &self.key].concat();
        for (to, from) in input.iter_mut().zip(constant_and_key.chunks(4)) {
            *to = word(from);
        }
        input[12] = counter as u32;
        input[13] = (counter >> 32) as u32;
        input[14] = self.stream as u32;
        input[15] = (self.stream >> 32) as u32;
        let mut state = input;
        for _ in 0..4 {
            for [a, b, c, d] in
                [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15], [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]]
            {
                for (to, from, rotated, by) in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)] {
                    state[to] = state[to].wrapping_add(state[from]);
                    state[rotated] = (state[rotated] ^ state[to]).rotate_left(by);
                }
            }
        }
        let mut out = [0; 64];
        for (to, (made, given)) in out.chunks_mut(4).zip(state.iter().zip(input)) {
            to.copy_from_slice(&made.wrapping_add(given).to_le_bytes());
        }
        out
    }
}

#[test]
fn random_is_the_keystream() {
    for (ordinal, len) in [(0, 0), (1, 1), (2, 100_003), (u64::MAX, 5000)] {
        let mut keystream = Chacha::new(ordinal);
        let expected: Vec<u8> = (0..len).map(|at| keystream.byte(at)).collect();
        assert!(make("kind = 'random'", ordinal, "a", len) == expected, "{ordinal} {len}");
    }
}

#[test]
fn compressible_is_the_keystream_and_zeros_in_each_block() {
    for (percent, len) in [(0, 10_000), (1, 10_000), (8, 50_001), (46, 50_002), (67, 50_003), (90, 4097)] {
        let mut keystream = Chacha::new(3);
        let mut expected = Vec::new();
        for at in 0..len {
            let block = at / 4096;
            let block_len = if (block + 1) * 4096 <= len { 4096 } else { len % 4096 };
            let zeros_of_a_whole_block = if percent == 0 { 0 } else { 4096 * (percent + 1) / 100 };
            let zeros = zeros_of_a_whole_block * block_len / 4096;
            let random = keystream.byte(at);
            expected.push(if at - block * 4096 < block_len - zeros { random } else { 0 });
        }
        let spec = format!("kind = 'compressible'\ncompressible_percent = {percent}");
        assert!(make(&spec, 3, "a", len) == expected, "{percent} {len}");
    }
}

#[test]
fn interleaved_is_zero_where_the_count_of_zeros_would_fall_behind() {
    for (interleave, unit) in [("file", 1 << 40), ("128KiB", 131_072), ("4KiB", 4096)] {
        for (share, ordinal) in [(0, 0), (30, 1), (50, 7), (50, 8), (67, 99), (100, 5)] {
            let len = 600_000;
            let mut keystream = Chacha::new(ordinal);
            // Units are dealt one after another, from that of ordinal 0 on.
            let (mut dealt, mut zeros) = (0, 0);
            let mut is_zero = Vec::new();
            while (is_zero.len() as u64) < ordinal + len / unit + 1 {
                dealt += 1;
                let zero = zeros < dealt * share / 100;
                zeros += u64::from(zero);
                is_zero.push(zero);
            }
            let expected: Vec<u8> = (0..len).map(|at| if is_zero[(ordinal + at / unit) as usize] { 0 } else { keystream.byte(at) }).collect();
            let spec = format!("kind = 'interleaved'\nzero_share_percent = {share}\ninterleave = '{interleave}'");
            assert!(make(&spec, ordinal, "a", len) == expected, "{interleave} {share} {ordinal}");
        }
    }
}

/// A file being written: fixed bytes, or what the keystream has for that place.
struct Writer {
    out: Vec<u8>,
    keystream: Chacha,
}

impl Writer {
    fn fixed(&mut self, bytes: &[u8]) {
        self.out.extend(bytes);
    }

    fn keystream_byte(&mut self) -> u8 {
        self.keystream.byte(self.out.len() as u64)
    }

    /// A coefficient, or a byte in a segment: 0xFE and 0xFF are 0xFC and 0xFD.
    fn picture_byte(&mut self) {
        let byte = self.keystream_byte();
        self.out.push(if byte >= 0xFE { byte - 2 } else { byte });
    }

    fn song_byte(&mut self) {
        let byte = self.keystream_byte();
        self.out.push(if byte == 0xFF { 0xFE } else { byte });
    }

    fn tables(&mut self, width: u16, height: u16, restart: u16) {
        self.fixed(&[0xFF, 0xDB, 0, 2 + 2 * 65, 0]);
        self.fixed(&[1; 64]);
        self.fixed(&[1]);
        self.fixed(&[1; 64]);
        self.fixed(&[
            0xFF,
            0xC0,
            0,
            17,
            8,
            (height >> 8) as u8,
            height as u8,
            (width >> 8) as u8,
            width as u8,
            3,
            1,
            0x22,
            0,
            2,
            0x11,
            1,
            3,
            0x11,
            1,
        ]);
        self.fixed(&[0xFF, 0xC4, 0, 2 + 17 + 8 + 17 + 9]);
        self.fixed(&[0x00, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 7, 6, 5, 4, 3, 2, 1, 0]);
        self.fixed(&[0x10, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 7, 6, 5, 4, 3, 2, 1, 0, 0x27]);
        self.fixed(&[0xFF, 0xDD, 0, 4, (restart >> 8) as u8, restart as u8]);
        self.fixed(&[0xFF, 0xDA, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 63, 0]);
    }

    /// A scan whose first intervals have blocks of one byte more; each block ends with an end of block unless it has all 64 coefficients.
    fn scan(&mut self, intervals: u64, mcus: u64, block_len: u64, longer: u64) {
        for interval in 0..intervals {
            let block_len = if interval < longer { block_len + 1 } else { block_len };
            for block in 0..mcus * 6 {
                let start = self.out.len();
                self.picture_byte();
                if interval == 0 && block == 0 {
                    self.fixed(&[0xFF, 0x00]);
                    self.picture_byte();
                    *self.out.last_mut().unwrap() &= 0x7F;
                }
                while ((self.out.len() - start) as u64) < if block_len == 64 { 64 } else { block_len - 1 } {
                    self.picture_byte();
                }
                if block_len < 64 {
                    self.fixed(&[0xFE]);
                }
            }
            self.fixed(&[0xFF, if interval == intervals - 1 { 0xD9 } else { 0xD0 + (interval % 8) as u8 }]);
        }
    }
}

fn reference_jpeg(ordinal: u64, len: u64, (width, height, intervals, mcus): (u16, u16, u64, u64)) -> Vec<u8> {
    let mut file = Writer { out: Vec::new(), keystream: Chacha::new(ordinal) };
    file.fixed(&[0xFF, 0xD8]);

    // EXIF. Places are counted from the byte after "Exif\0\0".
    let directory = |fields: u32| 2 + 12 * fields + 4;
    let main = 8;
    let main_values = main + directory(9);
    let camera = main_values + 8 + 18 + 8 + 8 + 20;
    let camera_values = camera + directory(8);
    let small = camera_values + 20 + 20;
    let small_values = small + directory(6);
    let thumbnail = small_values + 8 + 8;
    let thumbnail_headers = 2 + 134 + 19 + 55 + 6 + 14;
    let thumbnail_len = thumbnail_headers + 8 * (10 * 6 * 12 + 2);
    let mut exif = Vec::new();
    let field = |exif: &mut Vec<u8>, tag: u16, kind: u16, count: u32, value: u32| {
        exif.extend(tag.to_le_bytes());
        exif.extend(kind.to_le_bytes());
        exif.extend(count.to_le_bytes());
        exif.extend(value.to_le_bytes());
    };
    let date = b"2023:11:14 22:13:20\0";
    assert_eq!(MTIME, 1_700_000_000, "the date is that of the tests");
    exif.extend(b"II*\0\x08\0\0\0");
    exif.extend([9, 0]);
    field(&mut exif, 0x010F, 2, 8, main_values);
    field(&mut exif, 0x0110, 2, 18, main_values + 8);
    field(&mut exif, 0x0112, 3, 1, 1);
    field(&mut exif, 0x011A, 5, 1, main_values + 26);
    field(&mut exif, 0x011B, 5, 1, main_values + 34);
    field(&mut exif, 0x0128, 3, 1, 2);
    field(&mut exif, 0x0132, 2, 20, main_values + 42);
    field(&mut exif, 0x0213, 3, 1, 1);
    field(&mut exif, 0x8769, 4, 1, camera);
    exif.extend(small.to_le_bytes());
    exif.extend(b"copysim\0");
    exif.extend(format!("Noise {width:>5}x{height:<5}\0").as_bytes());
    exif.extend([72, 0, 0, 0, 1, 0, 0, 0, 72, 0, 0, 0, 1, 0, 0, 0]);
    exif.extend(date);
    exif.extend([8, 0]);
    field(&mut exif, 0x9000, 7, 4, u32::from_le_bytes(*b"0230"));
    field(&mut exif, 0x9003, 2, 20, camera_values);
    field(&mut exif, 0x9004, 2, 20, camera_values + 20);
    field(&mut exif, 0x9101, 7, 4, u32::from_le_bytes([1, 2, 3, 0]));
    field(&mut exif, 0xA000, 7, 4, u32::from_le_bytes(*b"0100"));
    field(&mut exif, 0xA001, 3, 1, 1);
    field(&mut exif, 0xA002, 4, 1, u32::from(width));
    field(&mut exif, 0xA003, 4, 1, u32::from(height));
    exif.extend([0; 4]);
    exif.extend(date);
    exif.extend(date);
    exif.extend([6, 0]);
    field(&mut exif, 0x0103, 3, 1, 6);
    field(&mut exif, 0x011A, 5, 1, small_values);
    field(&mut exif, 0x011B, 5, 1, small_values + 8);
    field(&mut exif, 0x0128, 3, 1, 2);
    field(&mut exif, 0x0201, 4, 1, thumbnail);
    field(&mut exif, 0x0202, 4, 1, thumbnail_len);
    exif.extend([0; 4]);
    exif.extend([72, 0, 0, 0, 1, 0, 0, 0, 72, 0, 0, 0, 1, 0, 0, 0]);
    file.fixed(&[0xFF, 0xE1]);
    file.fixed(&((2 + 6 + exif.len() as u32 + thumbnail_len) as u16).to_be_bytes());
    file.fixed(b"Exif\0\0");
    file.fixed(&exif);
    file.fixed(&[0xFF, 0xD8]);
    file.tables(160, 120, 10);
    file.scan(8, 10, 12, 0);

    // The longest scan that fits, and a segment for the rest.
    let tables_len = 134 + 19 + 55 + 6 + 14;
    let room = len - file.out.len() as u64 - 12 - tables_len;
    let scan_len = |block_len, longer| intervals * (mcus * 6 * block_len + 2) + longer * mcus * 6;
    let block_len = (10..=64).rev().find(|&block_len| scan_len(block_len, 0) <= room).unwrap();
    let longer = (0..intervals).rev().find(|&longer| scan_len(block_len, longer) <= room).unwrap();
    let filler = 12 + room - scan_len(block_len, longer);
    file.fixed(&[0xFF, 0xE9]);
    file.fixed(&((filler - 2) as u16).to_be_bytes());
    file.fixed(b"copysim\0");
    for _ in 12..filler {
        file.picture_byte();
    }
    file.tables(width, height, mcus as u16);
    file.scan(intervals, mcus, block_len, longer);
    file.out
}

#[test]
fn jpeg_is_what_its_definition_says() {
    let min = kind("kind = 'jpeg'").min_len();
    let pictures = [(1600, 1200, 300, 25), (2048, 1536, 384, 32), (2592, 1944, 732, 27), (3264, 2448, 918, 34), (4000, 3000, 1880, 25)];
    for (ordinal, len, picture) in
        [(0, min, 0), (1, min + 1, 0), (2, 555_555, 0), (3, 1_070_001, 1), (4, 1_500_000, 2), (5, 2_999_999, 3), (6, 4_000_000, 4)]
    {
        let path = "DCIM/100NOISE/IMG_0001.JPG";
        assert!(make("kind = 'jpeg'", ordinal, path, len) == reference_jpeg(ordinal, len, pictures[picture]), "{len}");
    }
}

fn reference_mp3(ordinal: u64, len: u64) -> Vec<u8> {
    let mut file = Writer { out: Vec::new(), keystream: Chacha::new(ordinal) };
    let word: Vec<u8> = (0..4).map(|index| file.keystream.byte((1 << 63) + index)).collect();
    let choice = u64::from(u32::from_le_bytes([word[0], word[1], word[2], word[3]])) * 3 / (1 << 32);
    let (bit_rate, index) = [(192_000, 0xB0), (256_000, 0xD0), (320_000, 0xE0)][choice as usize];

    let texts: [(&[u8; 4], &str); 5] = [(b"TIT2", "A Title"), (b"TALB", "An Album"), (b"TPE1", "Some Artist"), (b"TRCK", "07"), (b"TDRC", "2023")];
    let tag_len = 10 + texts.iter().map(|(_, text)| 11 + text.len() as u64).sum::<u64>() + 18;
    // Frames whose padding keeps their mean at 144 · bit rate / 44,100: an accumulator that pads when it overflows.
    let mut frames = Vec::new();
    let (mut frames_len, mut over) = (0, 0);
    loop {
        over += 144 * bit_rate % 44_100;
        let padded = over >= 44_100;
        over %= 44_100;
        let frame_len = 144 * bit_rate / 44_100 + u64::from(padded);
        if tag_len + frames_len + frame_len > len {
            break;
        }
        frames_len += frame_len;
        frames.push((frame_len, padded));
    }
    let private = len - tag_len - frames_len;

    let seven_bits = |number: u64| [0, 0, (number >> 7) as u8 & 0x7F, number as u8 & 0x7F];
    file.fixed(b"ID3\x04\0\0");
    file.fixed(&seven_bits(tag_len - 10 + private));
    for (name, text) in texts {
        file.fixed(name);
        file.fixed(&seven_bits(1 + text.len() as u64));
        file.fixed(&[0, 0, 3]);
        file.fixed(text.as_bytes());
    }
    file.fixed(b"PRIV");
    file.fixed(&seven_bits(8 + private));
    file.fixed(b"\0\0copysim\0");
    for _ in 0..private {
        file.song_byte();
    }
    for (frame_len, padded) in frames {
        file.fixed(&[0xFF, 0xFB, index + if padded { 2 } else { 0 }, 0x64]);
        // Side information, a bit at a time: name, number of bits, and what they are.
        let (zero, random): (&str, &str) = ("0", "?");
        let mut bits = zero.repeat(9) + &random.repeat(3) + &random.repeat(8);
        for _granule_and_channel in 0..4 {
            bits += &(zero.repeat(12) + &zero.repeat(9) + "10" + &random.repeat(6) + &zero.repeat(4 + 1 + 15 + 4 + 3 + 1 + 1 + 1));
        }
        assert_eq!(bits.len(), 32 * 8);
        for byte in bits.as_bytes().chunks(8) {
            file.song_byte();
            let made = file.out.last_mut().unwrap();
            for (place, bit) in byte.iter().enumerate() {
                let mask = 0x80 >> place;
                match bit {
                    b'0' => *made &= !mask,
                    b'1' => *made |= mask,
                    _ => {}
                }
            }
        }
        for _ in 36..frame_len {
            file.song_byte();
        }
    }
    file.out
}

#[test]
fn mp3_is_what_its_definition_says() {
    let min = kind("kind = 'mp3'").min_len();
    for (ordinal, len) in (0..12).map(|ordinal| (ordinal, min + 97 * ordinal)).chain([(12, 500_000), (13, 1_234_567)]) {
        let made = make("kind = 'mp3'", ordinal, "Some Artist/An Album/07 A Title.mp3", len);
        assert!(made == reference_mp3(ordinal, len), "{ordinal} {len}");
    }
}
