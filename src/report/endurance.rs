//! What became of a drive that was written over again and again: sizes, rounds, rates over time, the loss, wear before and after.

use super::capacity::one;
use super::card::health;
use super::format::{number, or_unknown};
use super::printable::wrap;
use super::tables::table;
use super::text::{HANG, WIDTH};
use crate::result::{Document, Endurance, EnduranceEnd, EnduranceRounds};
use crate::units::{Bytes, count, duration};

/// Lines of the table; the record has more.
const LINES: usize = 12;
/// Ranges that are shown.
const SHOWN: usize = 10;

/// The section.
pub(super) fn section(document: &Document, found: &Endurance) -> String {
    let mut lines = vec!["WHAT THE DRIVE ENDURED".to_owned()];
    let mut line = |name: &str, text: String| lines.push(wrap(&format!("  {name:<14}  {text}"), WIDTH, 18));
    line("static data", format!("{} in {} files, written once", Bytes(found.static_bytes), count(found.static_files)));
    line("written over", format!("up to {} in {} files a round", Bytes(found.round_bytes), count(found.round_files)));
    line(
        "rounds",
        format!("{} good, {} written and {} read again in all", count(found.rounds_good), Bytes(found.written_bytes), Bytes(found.read_bytes)),
    );
    line(
        "ended by",
        match found.ended_by {
            EnduranceEnd::Loss => "the first loss".to_owned(),
            EnduranceEnd::MaxTime => format!("--max-time, after {}", duration(found.elapsed_ns)),
            EnduranceEnd::MaxWrite => format!("--max-write, after {}", duration(found.elapsed_ns)),
            EnduranceEnd::Interrupted => format!("a signal, after {}", duration(found.elapsed_ns)),
            EnduranceEnd::Failed => format!("something else that failed, after {}", duration(found.elapsed_ns)),
        },
    );
    // A drive without wear of its own is described by those below it.
    for drive in document.drives.iter().filter(|drive| drive.health_before.is_some() || drive.health_after.is_some()) {
        let shown = |health_of: Option<&_>| health_of.map_or_else(|| "unknown".to_owned(), health);
        line("wear before", shown(drive.health_before.as_ref()));
        line("wear after", shown(drive.health_after.as_ref()));
    }
    if document.drives.iter().all(|drive| drive.health_before.is_none() && drive.health_after.is_none()) {
        line("wear", "unknown: nothing under this directory tells it".to_owned());
    }
    if let Some(loss) = &found.loss {
        for range in loss.ranges.iter().take(SHOWN) {
            lines.push(wrap(&format!("    {}", one(range)), WIDTH, HANG + 2));
        }
        if loss.ranges.len() > SHOWN {
            lines.push(format!("    … and {} more in the record", count((loss.ranges.len() - SHOWN) as u64)));
        }
    }
    if !found.rounds.is_empty() {
        lines.push(table(&["rounds", "written so far", "write MB/s", "read MB/s", "wrong", "kernel"], &[0], rows(found)));
    }
    lines.join("\n")
}

/// The course of the rounds, in lines of about equally many.
fn rows(found: &Endurance) -> Vec<Vec<String>> {
    let mut so_far = found.static_bytes;
    let mut rows = Vec::new();
    for rounds in found.rounds.chunks(found.rounds.len().div_ceil(LINES).max(1)) {
        let Some(sum) = rounds.iter().copied().reduce(EnduranceRounds::and) else { continue };
        so_far += sum.written_bytes;
        let last = sum.first + sum.count - 1;
        let rate = |bytes: u64, ns: u64| or_unknown((ns > 0 && bytes > 0).then(|| bytes as f64 * 1e3 / ns as f64), number);
        rows.push(vec![
            if sum.count == 1 { last.to_string() } else { format!("{}–{last}", sum.first) },
            Bytes(so_far).to_string(),
            rate(sum.written_bytes, sum.write_ns),
            rate(sum.read_bytes, sum.read_ns),
            if sum.bad_bytes == 0 { "0".to_owned() } else { Bytes(sum.bad_bytes).to_string() },
            or_unknown(sum.kernel_messages, count),
        ]);
    }
    rows
}
