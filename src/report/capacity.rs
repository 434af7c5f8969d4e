//! What a check of the capacity found, in full: sizes, places, and what came back instead of the data.

use super::format::share;
use super::printable::{printable, wrap};
use super::text::{HANG, WIDTH};
use crate::result::{Capacity, CapacityRange, Found, Ground};
use crate::units::{Bytes, count};

/// Ranges that are shown; the record has more.
const SHOWN: usize = 10;

/// The section.
pub(super) fn section(found: &Capacity) -> String {
    let mut lines = vec!["WHAT THE DRIVE HOLDS".to_owned()];
    let mut line = |name: &str, text: String| lines.push(wrap(&format!("  {name:<14}  {text}"), WIDTH, 18));
    line("verdict", found.verdict.to_string());
    line(
        "read again",
        format!("{} ({} bytes){}", Bytes(found.tested_bytes), count(found.tested_bytes), if found.is_whole { "" } else { "; not all of it" }),
    );
    line("good", format!("{} ({})", Bytes(found.good_bytes), share(found.good_bytes, found.tested_bytes)));
    for (kind, bytes) in found.found.iter().filter(|(kind, bytes)| **kind != Found::Good && **bytes > 0) {
        line(kind.as_str(), format!("{} ({})", Bytes(*bytes), share(*bytes, found.tested_bytes)));
    }
    if let Some(claimed) = found.claimed_bytes {
        line("claimed size", format!("{} ({} bytes)", Bytes(claimed), count(claimed)));
    }
    let by = match found.ground {
        Some(Ground::Physical) => "by where the file system says that the data lie",
        Some(Ground::FillOrder) | None => "by the order of writing: where the data lie is not known",
    };
    if let Some(real) = found.real_bytes {
        line("real size", format!("{} ({} bytes), {by}", Bytes(real), count(real)));
    }
    if let Some(first) = found.first_bad_byte {
        line("first bad byte", format!("{} of the drive, {by}", count(first)));
    }
    if let (Some(file), Some(byte)) = (&found.first_bad_file, found.first_bad_file_byte) {
        line("in the data", format!("{} from byte {} on", printable(file), count(byte)));
    }
    if found.read_twice > 0 {
        line("read twice", format!("{} bad places, of which {} were right then", count(found.read_twice), count(found.right_then)));
    }
    for range in found.ranges.iter().take(SHOWN) {
        lines.push(wrap(&format!("    {}", one(range)), WIDTH, HANG + 2));
    }
    if found.ranges.len() > SHOWN {
        lines.push(format!("    … and {} more in the record", count((found.ranges.len() - SHOWN) as u64)));
    }
    for trouble in &found.troubles {
        lines.push(wrap(&format!("  {}", printable(trouble)), WIDTH, HANG));
    }
    lines.join("\n")
}

/// A range in words.
pub(super) fn one(range: &CapacityRange) -> String {
    let from = match (&range.from_file, range.from_byte) {
        (Some(file), Some(byte)) => format!(", what was written to {} from byte {} on", printable(file), count(byte)),
        _ => String::new(),
    };
    format!("{} from byte {}: {} {}{from}", printable(&range.file), count(range.first_byte), Bytes(range.bytes), range.found.in_words())
}
