//! Content: executables and libraries as they compress, with the header of a 64-bit ELF file and the sections that such files have.
//!
//! A file is a row of pages of 4 KiB, and a page's place in it says what it holds: symbols, their names, relocations, code, texts, constants, unwind tables, pointers. Each page is made
//! from its own place in the keystream, so that a range needs no page before it. Shares and tables are such that what a compressor leaves of a file is what it leaves of real ones.

use super::idioms::{self, Table};
use super::keystream::Keystream;
use super::{Content, FileBytes};

const PAGE: usize = 4096;
/// What is written beyond the end of a page before its end is noticed.
const OVER: usize = 24;
/// Random numbers for a page, of 32 bits. They suffice for pieces of five and a third bytes; a page of shorter ones takes some again.
const DRAWS: usize = 768;

/// What pages hold, and up to which percent of a file: the order and about the shares of a large C++ library without debugging information.
const SECTIONS: [(Section, u64); 8] = [
    (Section::Symbols, 2),
    (Section::Names, 8),
    (Section::Relocations, 15),
    (Section::Code, 66),
    (Section::Texts, 75),
    (Section::Constants, 83),
    (Section::Frames, 93),
    (Section::Pointers, 100),
];
/// Sections after which the next segment begins on a page of its own, and the rights of the segments (1 execute, 2 write, 4 read).
const SEGMENTS: [(Section, u32); 4] = [(Section::Relocations, 4), (Section::Code, 5), (Section::Frames, 4), (Section::Pointers, 6)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Symbols,
    Names,
    Relocations,
    Code,
    Texts,
    Constants,
    Frames,
    Pointers,
}

/// Executables and libraries.
pub(super) struct Program {
    names: Table,
    code: Table,
    texts: Table,
    constants: Table,
    frames: Table,
}

impl Program {
    pub(super) fn new() -> Self {
        Self {
            names: Table::new(&idioms::names()),
            code: Table::new(&idioms::code()),
            texts: Table::new(&idioms::texts()),
            constants: Table::new(&idioms::constants()),
            frames: Table::new(&idioms::frames()),
        }
    }

    /// Makes a page.
    fn page(&self, layout: &Layout, index: u64, keystream: &mut Keystream, out: &mut [u8; PAGE + OVER]) {
        let section = layout.section(index);
        // Rows of tables are longer than pieces: fewer numbers suffice.
        let count = match section {
            Section::Symbols | Section::Relocations => PAGE.div_ceil(24),
            Section::Pointers => PAGE / 8,
            _ => DRAWS,
        };
        let mut bytes = [0; 4 * DRAWS];
        keystream.fill(index * PAGE as u64, &mut bytes[..4 * count]);
        let mut draws = [0; DRAWS];
        draws.iter_mut().zip(bytes.chunks_exact(4)).for_each(|(draw, four)| *draw = u32::from_le_bytes([four[0], four[1], four[2], four[3]]));
        let draws = &draws[..count];
        let rows = draws.iter().copied();
        // Pointers that stand together point to places that do: the functions of a class.
        let near = layout.function(draws[0]);
        match section {
            Section::Symbols => table(out, rows.zip(0..).map(|(draw, row)| layout.symbol(index, row, draw))),
            Section::Relocations => table(out, rows.zip(0..).map(|(draw, row)| layout.relocation(index, row, near, draw))),
            Section::Pointers => table(out, rows.map(|draw| pointer(near, draw))),
            Section::Names => self.names.fill(draws, &mut out[..]),
            Section::Code => self.code.fill(draws, &mut out[..]),
            Section::Texts => self.texts.fill(draws, &mut out[..]),
            Section::Constants => self.constants.fill(draws, &mut out[..]),
            Section::Frames => self.frames.fill(draws, &mut out[..]),
        }
        if layout.ends_segment(index) {
            // Zeros up to the next page, after at least a quarter of this one.
            let used = PAGE / 4 + 12 * (draws[0] & 0xFF) as usize;
            out[used..].fill(0);
        }
        if index == 0 {
            let header = layout.header();
            out[..header.len()].copy_from_slice(&header);
        }
    }
}

impl Content for Program {
    fn min_len(&self) -> u64 {
        0
    }

    fn fill(&self, file: &FileBytes<'_>, mut offset: u64, mut buffer: &mut [u8]) {
        let layout = Layout { len: file.len };
        let mut keystream = Keystream::of(file);
        let mut page = [0; PAGE + OVER];
        while !buffer.is_empty() {
            let within = (offset % PAGE as u64) as usize;
            let (part, rest) = buffer.split_at_mut(buffer.len().min(PAGE - within));
            self.page(&layout, offset / PAGE as u64, &mut keystream, &mut page);
            part.copy_from_slice(&page[within..within + part.len()]);
            offset += part.len() as u64;
            buffer = rest;
        }
    }
}

/// Fills a page with rows of equal length.
fn table<const LEN: usize>(out: &mut [u8; PAGE + OVER], rows: impl Iterator<Item = [u8; LEN]>) {
    for (to, row) in out.chunks_exact_mut(LEN).zip(rows) {
        to.copy_from_slice(&row);
    }
}

/// Where things are in a file of some length. Addresses are places in the file.
struct Layout {
    len: u64,
}

impl Layout {
    fn pages(&self) -> u64 {
        self.len.div_ceil(PAGE as u64)
    }

    /// The page at which a section that begins at so many percent begins.
    fn page_at(&self, percent: u64) -> u64 {
        (self.pages() * percent + 50) / 100
    }

    /// The section that a page belongs to.
    fn section(&self, page: u64) -> Section {
        let found = SECTIONS.iter().find(|(_, end)| page < self.page_at(*end));
        found.map_or(Section::Pointers, |(section, _)| *section)
    }

    fn end_of(&self, section: Section) -> u64 {
        let end = SECTIONS.iter().find(|(known, _)| *known == section).map_or(100, |(_, end)| *end);
        self.page_at(end)
    }

    /// Whether a page is the last of its segment, but not of the file.
    fn ends_segment(&self, page: u64) -> bool {
        page + 1 < self.pages() && SEGMENTS.iter().any(|(last, _)| self.end_of(*last) == page + 1)
    }

    /// Start and length of the code.
    fn code(&self) -> (u64, u64) {
        let start = self.end_of(Section::Relocations);
        (start * PAGE as u64, (self.end_of(Section::Code) - start) * PAGE as u64)
    }

    /// A place in the code, at a multiple of 16 as functions are.
    fn function(&self, draw: u32) -> u64 {
        let (start, len) = self.code();
        start + (((len >> 4) * u64::from(draw)) >> 32 << 4)
    }

    /// A row of the symbol table: place of the name, kind (a global function), section, address, length.
    fn symbol(&self, page: u64, row: u64, draw: u32) -> [u8; 24] {
        let name = ((page * 170 + row) * 23 + u64::from(draw & 7)) as u32;
        let head = u64::from(name) | 0x000C_0012 << 32;
        rows([head, self.function(draw), u64::from(draw & 0xFF) << (draw >> 8 & 3)])
    }

    /// A row of the relocations: which pointer, how (relative to where the file is loaded), and what it points to.
    fn relocation(&self, page: u64, row: u64, near: u64, draw: u32) -> [u8; 24] {
        let pointer = self.end_of(Section::Frames) * PAGE as u64 + 8 * (page * 170 + row);
        rows([pointer, 8, near + u64::from(draw & 0x3FF0)])
    }

    /// The header of the file and those of its segments, as the System V ABI and its AMD64 supplement define them. The sections have no names, as in files that are
    /// stripped to what a loader needs.
    fn header(&self) -> Vec<u8> {
        const HEADER: u16 = 64;
        const SEGMENT: u16 = 56;
        let mut out = b"\x7FELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        // A shared object for AMD64, version 1.
        out.extend([3, 0, 62, 0, 1, 0, 0, 0]);
        out.extend(self.code().0.to_le_bytes());
        out.extend(u64::from(HEADER).to_le_bytes());
        out.extend([0; 8 + 4]);
        [HEADER, SEGMENT, SEGMENTS.len() as u16, 64, 0, 0].iter().for_each(|number| out.extend(number.to_le_bytes()));
        let mut start = 0;
        for (last, rights) in SEGMENTS {
            let end = (self.end_of(last) * PAGE as u64).min(self.len);
            let len = end - start;
            out.extend([1_u32, rights].iter().flat_map(|number| number.to_le_bytes()));
            out.extend([start, start, start, len, len, PAGE as u64].iter().flat_map(|number| number.to_le_bytes()));
            start = end;
        }
        out
    }
}

/// A pointer to a function near some other, or, as often, none.
fn pointer(near: u64, draw: u32) -> [u8; 8] {
    if draw & 1 == 0 { [0; 8] } else { (near + u64::from(draw & 0x0FF0)).to_le_bytes() }
}

fn rows(numbers: [u64; 3]) -> [u8; 24] {
    let mut row = [0; 24];
    row.chunks_exact_mut(8).zip(numbers).for_each(|(to, number)| to.copy_from_slice(&number.to_le_bytes()));
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_follow_each_other_and_end_with_the_file() {
        for len in (0..300_000).step_by(777).chain([4095, 4096, 4097, 900_000_000, 10_000_000_000_000_000]) {
            let layout = Layout { len };
            let header = layout.header();
            assert_eq!(header.len(), 64 + 4 * 56);
            let number = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().unwrap());
            let mut end = 0;
            for segment in 0..4 {
                let at = 64 + 56 * segment;
                assert_eq!((number(at + 8), number(at + 16)), (end, end), "{len}");
                end += number(at + 32);
            }
            assert_eq!(end, len);
            assert!(number(24) <= len.next_multiple_of(4096), "{len}");
        }
    }

    #[test]
    fn every_section_has_its_share_of_a_large_file_and_code_is_what_a_small_one_is() {
        let layout = Layout { len: 1 << 30 };
        let mut start = 0;
        for (section, end) in SECTIONS {
            let pages = (0..layout.pages()).filter(|&page| layout.section(page) == section).count() as u64;
            assert!(pages.abs_diff(layout.pages() * (end - start) / 100) <= 1, "{section:?}");
            start = end;
        }
        assert_eq!(Layout { len: 100 }.section(0), Section::Code);
    }
}
