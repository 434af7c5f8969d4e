//! The tables of a phase: its runs, where the copier waited, how long operations took, what the drives moved.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Row, Table, TableStyle};

use super::format::{UNKNOWN, number, or_unknown, seconds, share, tenths};
use super::group::Group;
use super::printable::{printable, wrap};
use super::text::{HANG, WIDTH};
use crate::measure::Histogram;
use crate::result::division::division;
use crate::result::{
    Between, BlockLatency, BlockOp, BlockRequests, BlockSpan, BlockTrace, DeviceCounters, Document, Overlap, Phase, PhaseStatus, Severity, Summary,
    Work,
};
use crate::units::{Bytes, count, duration};

/// Only a line below the head: nothing that a narrow terminal or a mail could tear apart.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('-').junction('-'));
const INDENT: usize = 2;

/// The runs, one a line, then median and range of those that count.
pub(super) fn runs(group: &Group<'_>) -> String {
    let mut rows: Vec<Vec<String>> = group.members.iter().map(|(run, phase)| run_row(group, *run, phase)).collect();
    let metrics = ["returned_ns", "durable_ns", "quiet_ns", "durable_bytes_per_s", "files_per_s"].map(|metric| group.summary(metric));
    if metrics.iter().flatten().any(|summary| summary.n > 1) {
        let unit = |metric: &str| {
            if metric.ends_with("_ns") {
                1e9
            } else if metric == "files_per_s" {
                1.0
            } else {
                1e6
            }
        };
        let row = |label: &str, show: &dyn Fn(&Summary) -> String| {
            let cells = metrics.iter().map(|summary| or_unknown(summary.filter(|summary| summary.n > 1), show));
            std::iter::once(label.to_owned()).chain(cells).chain([String::new(), String::new()]).collect::<Vec<_>>()
        };
        rows.push(vec![String::new(); 8]);
        rows.push(row("median", &|summary| number(summary.median / unit(&summary.metric))));
        rows.push(row("min–max", &|summary| {
            format!("{}–{}", number(summary.min / unit(&summary.metric)), number(summary.max / unit(&summary.metric)))
        }));
    }
    table(&["", "returned s", "durable s", "quiet s", "MB/s", "files/s", "verified", "marks"], &[0, 7], rows)
}

fn run_row(group: &Group<'_>, run: u32, phase: &Phase) -> Vec<String> {
    let time = |ns: Option<u64>| or_unknown(ns, |ns| seconds(ns as f64));
    let durable_s = phase.window.durable_ns.filter(|_| group.has_rate(phase)).map(|ns| ns as f64 / 1e9);
    let per_s = |amount: u64, unit: f64| or_unknown(durable_s.filter(|_| amount > 0), |seconds| number(amount as f64 / unit / seconds));
    let verified = or_unknown(phase.integrity.as_ref(), |found| {
        if found.files_good == found.files_checked {
            format!("all {}", count(found.files_good))
        } else {
            format!("{} of {}", count(found.files_good), count(found.files_checked))
        }
    });
    let window = &phase.window;
    vec![
        format!("run {run}"),
        time(window.returned_ns),
        time(window.durable_ns),
        time(window.quiet_ns),
        per_s(phase.bytes, 1e6),
        per_s(phase.files, 1.0),
        verified,
        marks(phase),
    ]
}

/// How the phase ended, if not well, and its flags, the gravest first. Notes are no marks: they leave the figure as it is.
pub(super) fn marks(phase: &Phase) -> String {
    let mut marks = Vec::new();
    match phase.status {
        PhaseStatus::Ok => {}
        PhaseStatus::Failed => marks.push("FAILED".to_owned()),
        other => marks.push(other.to_string()),
    }
    if phase.data_differ() {
        marks.push("DATA DIFFER".to_owned());
    }
    for severity in [Severity::Invalid, Severity::Weak] {
        let flags = phase.flags.iter().filter(|flag| flag.severity == severity && !(phase.data_differ() && flag.code == "data-differ"));
        marks.extend(flags.map(|flag| printable(&flag.code)));
    }
    marks.join(", ")
}

/// Where the copier waited, the longest first, as shares with bars.
pub(super) fn waits(phase: &Phase) -> Option<String> {
    let time = phase.time.as_ref()?;
    let mut parts: Vec<(&str, u64)> = time.calls_ns.iter().map(|(call, ns)| (call.as_str(), *ns)).filter(|(_, ns)| *ns > 0).collect();
    parts.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    parts.push(("outside calls", time.outside_ns));
    let whole = parts.iter().fold(0_u64, |sum, (_, ns)| sum.saturating_add(*ns));
    let mut lines = vec![bars(&parts, whole)];
    lines.extend(went(phase));
    if let (Some(user), Some(system)) = (time.user_ns, time.system_ns) {
        let watching = time.evidence_ns.map_or_else(String::new, |ns| format!("; {} of it for watching", duration(ns)));
        lines.push(format!("  CPU time of copysim in the window: {} own, {} in the kernel{watching}", duration(user), duration(system)));
    }
    Some(lines.join("\n"))
}

/// Times of a whole with their shares and bars, a line each.
fn bars(parts: &[(&str, u64)], whole: u64) -> String {
    const BAR: u64 = 40;
    let width = parts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line = |(name, ns): &(&str, u64)| {
        let length = (u128::from(*ns) * u128::from(BAR)).checked_div(u128::from(whole)).unwrap_or(0);
        let bar = "#".repeat(usize::try_from(length).unwrap_or(0));
        format!("  {name:<width$}  {:>11}  {:>6}  {bar}", duration(*ns), tenths(*ns, whole)).trim_end().to_owned()
    };
    parts.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Where the time went, in one line, the longest first.
fn went(phase: &Phase) -> Option<String> {
    let divided = division(phase)?;
    let whole = divided.whole_ns();
    let target = if divided.source_ns == 0 && divided.both_ns == 0 { "drive" } else { "target" };
    let mut parts = [
        ("source", divided.source_ns),
        (target, divided.target_ns),
        ("source and target at once", divided.both_ns),
        ("flush", divided.flush_ns),
        ("this machine", divided.machine_ns),
    ];
    parts.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    // What is unknown comes last, whatever it is: it is the reservation to all before it.
    let shown = parts.into_iter().chain([("unknown", divided.unknown_ns)]).filter(|(_, ns)| ns.saturating_mul(200) >= whole);
    let shown: Vec<String> = shown.map(|(name, ns)| format!("{} {name}", share(ns, whole))).collect();
    Some(wrap(&format!("  The time went: {}", shown.join(", ")), WIDTH, HANG))
}

/// What the devices did meanwhile, by the block trace; why that is not known where a trace was asked for.
pub(super) fn meanwhile(document: &Document, phase: &Phase) -> Option<String> {
    let trace = phase.block_trace.as_ref()?;
    let Some(overlap) = phase.time.as_ref().and_then(|time| time.overlap_ns) else {
        let reason = trace.reason.as_deref().unwrap_or("the reason was not recorded");
        return Some(wrap(&format!("  {UNKNOWN} not known: {}", printable(reason)), WIDTH, HANG));
    };
    let Overlap { only_source_ns, only_target_ns, both_ns, none_ns, .. } = overlap;
    let parts = match overlap.between {
        Between::Drives => {
            vec![("only the source", only_source_ns), ("only the target", only_target_ns), ("source and target", both_ns), ("neither", none_ns)]
        }
        Between::Directions => {
            vec![("only reading", only_source_ns), ("only writing", only_target_ns), ("reading and writing", both_ns), ("nothing", none_ns)]
        }
        Between::Target => vec![("the target", only_target_ns), ("nothing", none_ns)],
    };
    let mut text = bars(&parts, overlap.window_ns());
    let rows = trace.requests.iter().map(|(id, requests)| request_row(document, phase, trace, id, requests, overlap.window_ns())).collect();
    text.push_str("\n\n");
    text.push_str(&table(&["", "busy", "flushing", "mean depth", "metadata read", "waits", "read takes", "write takes"], &[0], rows));
    Some(text)
}

fn request_row(document: &Document, phase: &Phase, trace: &BlockTrace, id: &str, requests: &BlockRequests, window_ns: u64) -> Vec<String> {
    let median = |wanted: &dyn Fn(&BlockLatency) -> bool| {
        let mut all = Histogram::new();
        let found = trace.latency.iter().filter(|latency| latency.drive == id && wanted(latency));
        // A histogram that cannot be read leaves the figure to the others.
        found.filter_map(|latency| latency.histogram().ok()).for_each(|histogram| all.merge(&histogram));
        or_unknown(all.percentile(0.5), duration)
    };
    let takes = |op: BlockOp| median(&|latency: &BlockLatency| latency.op == op && latency.span == BlockSpan::DispatchToComplete);
    vec![
        drive_name(document, id),
        or_unknown(phase.device.get(id).and_then(|device| device.inflight_union_ns), |ns| share(ns, window_ns)),
        share(requests.flush_union_ns, window_ns),
        or_unknown((window_ns > 0).then_some(()), |()| number(requests.inflight_sum_ns as f64 / window_ns as f64)),
        Bytes(requests.metadata_read_bytes).to_string(),
        median(&|latency| latency.span == BlockSpan::QueueToDispatch),
        takes(BlockOp::Read),
        takes(BlockOp::Write),
    ]
}

/// How long operations took. A percentile that too few operations support is a dash.
pub(super) fn latencies(phase: &Phase) -> Option<String> {
    let mut rows = Vec::new();
    for latency in &phase.latency {
        // A histogram that cannot be read leaves its percentiles unknown; what is beside it still stands.
        let histogram = latency.histogram().ok();
        let percentile = |p: f64| or_unknown(histogram.as_ref().and_then(|histogram| histogram.percentile(p)), duration);
        rows.push(vec![latency.op.to_string(), count(latency.n), percentile(0.5), percentile(0.99), or_unknown(latency.max_ns, duration)]);
    }
    let mut text = if rows.is_empty() { String::new() } else { table(&["", "n", "median", "99 % within", "longest"], &[0], rows) };
    for (index, file) in phase.slowest_files.iter().take(3).enumerate() {
        if !text.is_empty() {
            text.push('\n');
        }
        let lead = if index == 0 { "slowest files:" } else { "              " };
        text.push_str(&wrap(&format!("  {lead}  {:>7}  {} ({})", duration(file.ns), printable(&file.path), Bytes(file.bytes)), WIDTH, 27));
    }
    (!text.is_empty()).then_some(text)
}

/// What each drive moved against what the copy asked for.
pub(super) fn devices(document: &Document, phase: &Phase) -> Option<String> {
    // Another program's requests are not seen: its content is what it was asked to copy.
    let asked = phase.work.unwrap_or(Work { read_bytes: phase.bytes, written_bytes: phase.bytes, ..Work::default() });
    let against = |bytes: u64, asked: u64| if asked == 0 { Bytes(bytes).to_string() } else { format!("{} ({})", Bytes(bytes), share(bytes, asked)) };
    let mut rows = Vec::new();
    for (id, moved) in &phase.device {
        let DeviceCounters { read_bytes, written_bytes, flushes, discards, foreign_bytes, .. } = *moved;
        let total = read_bytes.saturating_add(written_bytes);
        rows.push(vec![
            drive_name(document, id),
            against(read_bytes, asked.read_bytes),
            against(written_bytes, asked.written_bytes),
            or_unknown(flushes, count),
            or_unknown(discards, count),
            or_unknown(foreign_bytes, |foreign| share(foreign, total)),
        ]);
    }
    if rows.is_empty() {
        return None;
    }
    let mut asked_for = vec![
        "asked for".to_owned(),
        Bytes(asked.read_bytes).to_string(),
        Bytes(asked.written_bytes).to_string(),
        or_unknown(phase.work.map(|work| work.flushes), count),
    ];
    asked_for.extend([String::new(), String::new()]);
    rows.insert(0, asked_for);
    Some(table(&["", "read", "written", "flushes", "discards", "by others"], &[0], rows))
}

fn drive_name(document: &Document, id: &str) -> String {
    let name = document.drive(id).and_then(|drive| drive.device.as_deref().or(drive.model.as_deref()));
    printable(name.unwrap_or(id))
}

/// A table within the width of the view, indented; the columns given are left-aligned, all others right-aligned.
pub(super) fn table(head: &[&str], left: &[usize], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Dynamic).set_width(u16::try_from(WIDTH - INDENT).unwrap_or(80));
    table.set_header(head.to_vec());
    for row in rows {
        table.add_row(Row::from(row));
    }
    let last = head.len() - 1;
    for (index, column) in table.column_iter_mut().enumerate() {
        // Only the last column may be broken: it holds words, the others figures.
        if index != last {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
        column.set_padding((0, 1)).set_cell_alignment(if left.contains(&index) { CellAlignment::Left } else { CellAlignment::Right });
    }
    let indent = " ".repeat(INDENT);
    let lines: Vec<String> = table.lines().map(|line| format!("{indent}{}", line.trim_end()).trim_end().to_owned()).collect();
    lines.join("\n")
}

/// What is said where a whole table is missing.
pub(super) fn missing() -> String {
    format!("  {UNKNOWN} not recorded")
}
