//! Makes text from outside (names, models, messages) safe to print: nothing in it can move the cursor, colour the screen or reorder a line.

/// The text with every control and reordering character spelled out, `\u{1b}` for an escape.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => shown.extend(c.escape_default()),
            c if c.is_control() || invisible(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// A JSON text that is the same value, with such characters written as JSON's escapes: they stand in its strings alone.
#[must_use]
pub fn printable_json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\n' && (c.is_control() || invisible(c)) {
            shown.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Characters that change how others are shown or that show nothing: bidirectional controls, separators, zero-width, tags.
fn invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Breaks a text at spaces into lines of at most `width` characters, each but the first behind an indent. A word that is longer stays whole: a path
/// that was broken could not be copied.
#[must_use]
pub fn wrap(text: &str, width: usize, indent: usize) -> String {
    let mut lines = String::new();
    let mut column = 0;
    // Leading spaces are the first line's own indent.
    let start = text.len() - text.trim_start_matches(' ').len();
    lines.push_str(&text[..start]);
    column += start;
    let words: Vec<&str> = text[start..].split(' ').collect();
    for (index, word) in words.iter().enumerate() {
        let length = word.chars().count();
        if index > 0 {
            let glued: usize = words[index..].windows(2).take_while(|pair| belongs(pair[0], pair[1])).map(|pair| pair[1].chars().count() + 1).sum();
            if column + 1 + length + glued > width && !belongs(words[index - 1], word) {
                lines.truncate(lines.trim_end_matches(' ').len());
                lines.push('\n');
                lines.push_str(&" ".repeat(indent));
                column = indent;
            } else {
                lines.push(' ');
                column += 1;
            }
        }
        lines.push_str(word);
        column += length;
    }
    lines
}

/// Whether a word is the unit of the number before it.
fn belongs(number: &str, unit: &str) -> bool {
    const UNITS: [&str; 14] = ["B", "kB", "MB", "GB", "TB", "kB/s", "MB/s", "GB/s", "ns", "µs", "ms", "s", "min", "%"];
    let unit = unit.trim_end_matches(['.', ',', ';', ':', ')']);
    number.ends_with(|c: char| c.is_ascii_digit()) && UNITS.contains(&unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_could_steer_a_terminal_is_spelled_out() {
        assert_eq!(printable("a\u{1b}[2Jb\u{7}\u{9b}\n"), "a\\u{1b}[2Jb\\u{7}\\u{9b}\\n");
        assert_eq!(printable("gpj.\u{202e}exe"), "gpj.\\u{202e}exe");
        assert_eq!(printable("Fußgänger 写真 – ok"), "Fußgänger 写真 – ok");
    }

    #[test]
    fn long_lines_break_at_spaces_and_long_words_stay_whole() {
        assert_eq!(wrap("  one two three", 9, 4), "  one two\n    three");
        assert_eq!(wrap("see /a/very/long/path now", 10, 2), "see\n  /a/very/long/path\n  now");
        assert_eq!(wrap("a   b", 80, 0), "a   b");
        assert_eq!(wrap("it has 8.41 GB, or 9 s", 12, 0), "it has\n8.41 GB, or\n9 s");
    }

    proptest! {
        #[test]
        fn json_is_the_same_value_and_shows_no_control(text in any::<String>(), tail in "[\u{7f}-\u{9f}\u{202e}\u{e0041}]{0,3}") {
            let value = serde_json::json!({text.clone(): [tail, text]});
            let shown = printable_json(&serde_json::to_string_pretty(&value).unwrap());
            prop_assert!(!shown.chars().any(|c| c != '\n' && c.is_control() || invisible(c)));
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        }

        #[test]
        fn nothing_printable_is_a_control(text in any::<String>()) {
            prop_assert!(!printable(&text).chars().any(|c| c.is_control() || invisible(c)));
        }

        #[test]
        fn wrapping_loses_no_word(text in "[a-z ]{0,200}", width in 10_usize..60) {
            let wrapped = wrap(&text, width, 2);
            prop_assert_eq!(wrapped.split_whitespace().collect::<Vec<_>>(), text.split_whitespace().collect::<Vec<_>>());
        }
    }
}
