//! How figures are written in tables and sentences: three digits, shares, lists of runs; what is unknown is a dash.

use crate::units::{count, duration};

/// What stands for an unknown figure in a table.
pub(super) const UNKNOWN: &str = "–";

/// A number whose unit stands in the head of its column: three significant digits, thousands separated.
pub(super) fn number(value: f64) -> String {
    match value {
        _ if value >= 999.5 => count(value.round() as u64),
        _ if value >= 99.95 => format!("{value:.0}"),
        _ if value >= 9.995 => format!("{value:.1}"),
        _ if value >= 0.9995 => format!("{value:.2}"),
        _ if value > 0.0 && value < 0.0005 => "<0.001".to_owned(),
        _ => format!("{value:.3}"),
    }
}

/// Nanoseconds as seconds, without the unit.
pub(super) fn seconds(ns: f64) -> String {
    number(ns / 1e9)
}

/// Nanoseconds as they are said: from one minute on in whole seconds.
pub(super) fn spoken(ns: u64) -> String {
    let seconds = ns.saturating_add(500_000_000) / 1_000_000_000;
    if (60..=100).contains(&seconds) { format!("{} min {:02} s", seconds / 60, seconds % 60) } else { duration(ns) }
}

/// A part of a whole in percent. Nothing and everything are said only where they are exact.
pub(super) fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return UNKNOWN.to_owned();
    }
    let percent = part as f64 / whole as f64 * 100.0;
    match percent {
        _ if part == 0 => "0 %".to_owned(),
        _ if percent < 0.1 => "<0.1 %".to_owned(),
        _ if percent < 9.95 => format!("{percent:.1} %"),
        _ if part < whole && percent >= 99.9 => ">99.9 %".to_owned(),
        _ if part != whole && (99.5..100.5).contains(&percent) => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

/// A part of a whole in percent with one decimal, to stand below others.
pub(super) fn tenths(part: u64, whole: u64) -> String {
    if whole == 0 { UNKNOWN.to_owned() } else { format!("{:.1} %", part as f64 / whole as f64 * 100.0) }
}

/// A figure, or the dash.
pub(super) fn or_unknown<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), show)
}

/// Runs by number: `run 2`, `runs 1, 3–4`, `both runs`, `all 3 runs`.
pub(super) fn runs(numbers: &[u32], total: usize) -> String {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    match total {
        2 if sorted.len() == total => return "both runs".to_owned(),
        3.. if sorted.len() == total => return format!("all {total} runs"),
        _ => {}
    }
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in &sorted {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let ranges: Vec<String> = ranges.iter().map(|(first, last)| if first == last { first.to_string() } else { format!("{first}–{last}") }).collect();
    format!("{} {}", if sorted.len() == 1 { "run" } else { "runs" }, ranges.join(", "))
}

/// A sentence that begins with a capital letter and ends in a full stop.
pub(super) fn sentence(text: &str) -> String {
    let mut characters = text.trim().chars();
    full_stop(&characters.next().map(|first| first.to_uppercase().chain(characters).collect::<String>()).unwrap_or_default())
}

/// The text, ending in a full stop unless it ends a sentence already.
pub(super) fn full_stop(text: &str) -> String {
    if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let shown = [0.0, 0.000_1, 0.4123, 1.0, 8.414, 44.28, 190.2, 1_234.5, 999.6].map(number);
        assert_eq!(shown, ["0.000", "<0.001", "0.412", "1.00", "8.41", "44.3", "190", "1,235", "1,000"]);
    }

    #[test]
    fn times_are_said_in_minutes_from_one_minute_on() {
        let shown = [59_400_000_000, 59_600_000_000, 65_120_000_000, 99_700_000_000, 190_180_000_000].map(spoken);
        assert_eq!(shown, ["59.4 s", "1 min 00 s", "1 min 05 s", "1 min 40 s", "3 min 10 s"]);
    }

    #[test]
    fn shares_say_nothing_and_everything_only_where_it_is_so() {
        let shown = [(0, 10), (1, 10_000), (1, 100), (5, 10), (9_999, 10_000), (10, 10), (1, 0)].map(|(part, whole)| share(part, whole));
        assert_eq!(shown, ["0 %", "<0.1 %", "1.0 %", "50 %", ">99.9 %", "100 %", "–"]);
    }

    #[test]
    fn runs_are_listed_as_people_do() {
        assert_eq!(runs(&[1, 2, 3], 3), "all 3 runs");
        assert_eq!(runs(&[2, 1], 2), "both runs");
        assert_eq!(runs(&[1], 1), "run 1");
        assert_eq!(runs(&[3, 1, 4], 5), "runs 1, 3–4");
    }
}
