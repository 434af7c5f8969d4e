//! Names made of words: the i-th of n, ascending, without a list of them in memory.

use crate::corpus::random::Choices;

/// Words in ascending order; none holds a byte below the separators used between them.
pub const ADJECTIVES: [&str; 48] = [
    "Amber",
    "Ancient",
    "Autumn",
    "Blue",
    "Bright",
    "Broken",
    "Calm",
    "Cold",
    "Copper",
    "Crimson",
    "Crystal",
    "Dark",
    "Distant",
    "Early",
    "Electric",
    "Empty",
    "Endless",
    "Fading",
    "First",
    "Frozen",
    "Gentle",
    "Glass",
    "Golden",
    "Green",
    "Hidden",
    "Hollow",
    "Iron",
    "Last",
    "Little",
    "Lonely",
    "Long",
    "Lost",
    "Lunar",
    "Midnight",
    "Northern",
    "Open",
    "Paper",
    "Quiet",
    "Red",
    "Restless",
    "Silent",
    "Silver",
    "Slow",
    "Southern",
    "Velvet",
    "Wandering",
    "White",
    "Winter",
];

/// As [`ADJECTIVES`].
pub const NOUNS: [&str; 64] = [
    "Anchor", "Arrow", "Avenue", "Bell", "Bird", "Boat", "Bridge", "Canyon", "Castle", "Circle", "City", "Cloud", "Coast", "Compass", "Country",
    "Dawn", "Desert", "Door", "Dream", "Echo", "Engine", "Evening", "Field", "Fire", "Forest", "Garden", "Ghost", "Harbour", "Heart", "Hill",
    "Horizon", "House", "Island", "Journey", "Kingdom", "Lake", "Lantern", "Letter", "Light", "Machine", "Map", "Market", "Meadow", "Mirror", "Moon",
    "Morning", "Mountain", "Ocean", "Orchard", "Rain", "Ribbon", "River", "Road", "Season", "Shadow", "Ship", "Signal", "Sky", "Song", "Star",
    "Station", "Stone", "Summer", "Window",
];

/// Parts of package, directory and file names in source trees; lower case.
pub const CODE_WORDS: [&str; 96] = [
    "abort", "action", "adapter", "array", "assert", "async", "base", "batch", "binary", "bind", "buffer", "builder", "cache", "call", "chunk",
    "cipher", "client", "codec", "color", "compare", "config", "context", "cookie", "core", "cursor", "debug", "decode", "define", "diff", "digest",
    "dispatch", "emitter", "encode", "entry", "error", "escape", "event", "extract", "factory", "fetch", "filter", "flat", "format", "frame", "fs",
    "glob", "graph", "handler", "hash", "header", "hook", "http", "index", "inspect", "iterator", "json", "key", "layout", "lexer", "list", "loader",
    "locale", "logger", "map", "matcher", "merge", "meta", "mime", "mixin", "module", "node", "object", "option", "parser", "path", "pattern",
    "pipe", "plugin", "pool", "promise", "proxy", "query", "queue", "range", "reader", "reducer", "regex", "render", "resolve", "result", "router",
    "runner", "scanner", "schema", "socket", "stream",
];

/// Ascending names over the product of word lists: `words[0][a] + separator + words[1][b] …`, with a number behind where the words do not suffice.
pub struct Names<'a> {
    lists: &'a [&'a [&'a str]],
    separator: char,
    count: u64,
    numbers: u64,
    salt: [u8; 32],
}

impl<'a> Names<'a> {
    /// `count` names that differ from those under another key or purpose.
    pub fn new(lists: &'a [&'a [&'a str]], separator: char, count: u64, key: &[u8; 32], purpose: &str) -> Self {
        let words: u64 = lists.iter().map(|list| list.len() as u64).product();
        let numbers = if count <= words { 1 } else { 10_u64.pow(super::digits(count.div_ceil(words), 2) as u32) };
        Self { lists, separator, count, numbers, salt: *blake3::keyed_hash(key, purpose.as_bytes()).as_bytes() }
    }

    /// The name at `index`, which is below the count.
    pub fn get(&self, index: u64) -> String {
        let words: u64 = self.lists.iter().map(|list| list.len() as u64).product();
        let places = u128::from(words) * u128::from(self.numbers);
        let start = |index: u64| u64::try_from(u128::from(index) * places / u128::from(self.count.max(1))).unwrap_or(u64::MAX);
        let (first, next) = (start(index), start(index + 1));
        // Any place of the name's own stretch keeps the order.
        let mut place = first + Choices::new(&self.salt, &index.to_string()).below((next - first).max(1));
        let number = place % self.numbers;
        place /= self.numbers;
        let mut parts = Vec::with_capacity(self.lists.len());
        for list in self.lists.iter().rev() {
            parts.push(list[(place % list.len() as u64) as usize]);
            place /= list.len() as u64;
        }
        parts.reverse();
        let mut name = parts.join(self.separator.encode_utf8(&mut [0; 4]));
        if self.numbers > 1 {
            let width = super::digits(self.numbers - 1, 2);
            name.push_str(&format!("{}{number:0width$}", self.separator));
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_of_programs_begins_with_another() {
        assert!(CODE_WORDS.windows(2).all(|pair| !pair[1].starts_with(pair[0])));
    }

    #[test]
    fn word_lists_ascend_and_compose_in_order() {
        for list in [&ADJECTIVES[..], &NOUNS[..], &CODE_WORDS[..]] {
            assert!(list.windows(2).all(|pair| pair[0] < pair[1]));
        }
        for count in [1, 7, 3_000, 3_072, 3_073, 20_000] {
            let names = Names::new(&[&ADJECTIVES, &NOUNS], ' ', count, &[9; 32], "test");
            let all: Vec<String> = (0..count).map(|index| names.get(index)).collect();
            assert!(all.windows(2).all(|pair| format!("{}/", pair[0]) < format!("{}/", pair[1])), "{count}");
        }
    }
}
