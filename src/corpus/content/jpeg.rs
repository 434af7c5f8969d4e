//! Content: baseline JPEG pictures as a camera writes them, of any length from about half a megabyte on.
//!
//! SOI, APP1 (EXIF with thumbnail), application segments that take what the scan leaves over, tables, scan, EOI. All that is not format is the keystream.

use super::keystream::Keystream;
use super::scan::{Picture, Scan, Steps, to_coefficients};
use super::window::Window;
use super::{Content, FileBytes, exif};

/// The pictures that a file may hold. Each has the aspect 4:3, and MCUs that its restart intervals divide.
const PICTURES: [Picture; 9] = [
    Picture { width: 1600, height: 1200, intervals_per_row: 4 },
    Picture { width: 2048, height: 1536, intervals_per_row: 4 },
    Picture { width: 2592, height: 1944, intervals_per_row: 6 },
    Picture { width: 3264, height: 2448, intervals_per_row: 6 },
    Picture { width: 4000, height: 3000, intervals_per_row: 10 },
    Picture { width: 8000, height: 6000, intervals_per_row: 20 },
    Picture { width: 16_000, height: 12_000, intervals_per_row: 40 },
    Picture { width: 32_000, height: 24_000, intervals_per_row: 80 },
    Picture { width: 64_000, height: 48_000, intervals_per_row: 160 },
];

/// A file gets the largest picture whose blocks have at least so many bytes: about what cameras spend.
const USUAL_BLOCK: u64 = 12;

const START_OF_IMAGE: [u8; 2] = [0xFF, 0xD8];
/// Bytes per block of the thumbnail.
const THUMBNAIL_BLOCK: u64 = 12;

/// How an application segment of our own starts, its length left out.
const FILLER_IDENTIFIER: &[u8; 8] = b"copysim\0";
const FILLER_HEAD: u64 = 4 + FILLER_IDENTIFIER.len() as u64;
/// A length of 16 bits that counts itself, after a marker of two bytes.
const LONGEST_SEGMENT: u64 = 2 + 65_535;

/// Pictures of noise.
pub(super) struct Jpeg;

impl Content for Jpeg {
    fn min_len(&self) -> u64 {
        let [smallest, ..] = PICTURES;
        Front::new(smallest, jiff::civil::DateTime::default()).len() + smallest.shortest_scan(0)
    }

    fn fill(&self, file: &FileBytes<'_>, offset: u64, buffer: &mut [u8]) {
        let layout = Layout::of(file);
        let mut keystream = Keystream::of(file);
        for mut window in Window::pieces(offset, buffer) {
            keystream.fill(window.offset(), window.bytes());
            to_coefficients(window.bytes());
            layout.stamp(&mut window);
        }
    }
}

/// What precedes the scan and has the same length in each file.
struct Front {
    start: Vec<u8>,
    thumbnail: Scan,
    tables: Vec<u8>,
}

impl Front {
    fn new(picture: Picture, date: jiff::civil::DateTime) -> Self {
        let thumbnail_len = exif::THUMBNAIL.shortest_scan(THUMBNAIL_BLOCK);
        let start = [&START_OF_IMAGE[..], &exif::segment(picture, date, thumbnail_len)].concat();
        let thumbnail = exif::THUMBNAIL.scan(start.len() as u64, thumbnail_len);
        Self { start, thumbnail, tables: picture.tables() }
    }

    fn len(&self) -> u64 {
        self.start.len() as u64 + self.thumbnail.len() + FILLER_HEAD + self.tables.len() as u64
    }
}

/// Where everything in a file is.
struct Layout {
    front: Front,
    filler_start: u64,
    fillers: u64,
    filler: Steps,
    tables_start: u64,
    scan: Scan,
}

impl Layout {
    fn of(file: &FileBytes<'_>) -> Self {
        let [smallest, larger @ ..] = PICTURES;
        let front_len = Front::new(smallest, file.date()).len();
        let fits = |picture: &Picture| front_len + picture.shortest_scan(USUAL_BLOCK) <= file.len;
        let picture = larger.into_iter().rev().find(fits).unwrap_or(smallest);
        let front = Front::new(picture, file.date());
        // The scan goes to the very end; its length does not depend on where it starts.
        let scan_len = picture.scan(0, file.len - front_len).len();
        let scan_start = file.len - scan_len;
        let scan = picture.scan(scan_start, scan_len);
        let filler_start = front.start.len() as u64 + front.thumbnail.len();
        let tables_start = scan_start - front.tables.len() as u64;
        let filler_len = tables_start - filler_start;
        let fillers = filler_len.div_ceil(LONGEST_SEGMENT);
        let filler = Steps { short: filler_len / fillers, extra: 1, longer: filler_len % fillers };
        Self { front, filler_start, fillers, filler, tables_start, scan }
    }

    fn stamp(&self, window: &mut Window<'_>) {
        self.scan.stamp(window);
        if window.offset() >= self.tables_start + self.front.tables.len() as u64 {
            return;
        }
        window.stamp(0, &self.front.start);
        self.front.thumbnail.stamp(window);
        window.stamp(self.tables_start, &self.front.tables);
        for index in self.filler.index(window.offset().saturating_sub(self.filler_start))..self.fillers {
            let start = self.filler_start + self.filler.start(index);
            if start >= window.end() {
                break;
            }
            let len = self.filler.start(index + 1) - self.filler.start(index) - 2;
            window.stamp(start, &[0xFF, 0xE9]);
            window.stamp(start + 2, &(len as u16).to_be_bytes());
            window.stamp(start + 4, FILLER_IDENTIFIER);
        }
    }
}
