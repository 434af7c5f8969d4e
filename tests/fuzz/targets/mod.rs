//! The targets: one for each format that comes from outside, with what must hold of whatever is put in. A new format is a function here and a line in the table.

mod capacity;
mod kernel;
mod manifest;
mod record;
mod specs;
mod workspace;

/// A format from outside.
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Good inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Takes an input; panics where something is wrong.
    pub run: fn(&[u8]),
    /// How many mutated inputs a short look takes.
    pub mutations: usize,
}

pub static TARGETS: &[Target] = &[
    Target { name: "scenario", seeds: specs::scenarios, run: specs::scenario, mutations: 4_000 },
    Target { name: "corpus", seeds: specs::corpora, run: specs::corpus, mutations: 3_000 },
    Target { name: "quantity", seeds: specs::quantities, run: specs::quantity, mutations: 20_000 },
    Target { name: "manifest", seeds: manifest::seeds, run: manifest::run, mutations: 4_000 },
    Target { name: "record", seeds: record::texts, run: record::text, mutations: 300 },
    Target { name: "record-parts", seeds: record::changes, run: record::changed, mutations: 300 },
    Target { name: "test-data", seeds: capacity::sectors, run: capacity::sector, mutations: 4_000 },
    Target { name: "check-note", seeds: capacity::notes, run: capacity::note, mutations: 3_000 },
    Target { name: "workspace", seeds: workspace::seeds, run: workspace::run, mutations: 600 },
    Target { name: "kernel-log", seeds: kernel::messages, run: kernel::message, mutations: 20_000 },
    Target { name: "block-trace", seeds: kernel::pages, run: kernel::page, mutations: 4_000 },
    Target { name: "machine", seeds: kernel::machines, run: kernel::machine, mutations: 250 },
];

/// Nothing in a text that is shown may steer a terminal, be invisible or reorder a line; lines end.
pub fn assert_shown(text: &str) {
    let hidden = |c: &char| {
        c.is_control() && *c != '\n'
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
    };
    if let Some(found) = text.chars().find(hidden) {
        let line = text.lines().find(|line| line.contains(found)).unwrap_or_default();
        panic!("{found:?} is shown in {line:?}");
    }
}

/// Takes pieces off an input: numbers of bytes that say how long the next is.
pub struct Input<'d>(pub &'d [u8]);

impl<'d> Input<'d> {
    /// The next so many bytes, or what is left.
    pub fn take(&mut self, len: usize) -> &'d [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// The next number of so many bytes, at most 8.
    pub fn number(&mut self, bytes: usize) -> u64 {
        self.take(bytes).iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
    }

    /// The next piece, whose length stands before it in two bytes.
    pub fn piece(&mut self) -> &'d [u8] {
        let len = self.number(2) as usize;
        self.take(len)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A piece as [`Input::piece`] takes it.
pub fn piece(data: &[u8]) -> Vec<u8> {
    let len = u16::try_from(data.len()).unwrap();
    [&len.to_le_bytes(), data].concat()
}
