//! Whether the rate is below what the link can carry, and below what the tool itself can do.

use super::{Conclusions, Copier, Observed, percent};
use crate::result::{Proof, Verdict, flags};
use crate::units::rate;

/// The copier may take this share of the window, its time outside calls and that of the processor within them together, before it is called a limit.
const TOOL_SHARE: f64 = 0.20;
/// From memory to memory the copier must be so many times faster than on the drive.
const HEADROOM: f64 = 1.5;
/// Clocks and rounding.
const TOLERANCE: f64 = 1.01;
const SECOND_NS: u64 = 1_000_000_000;

pub(super) fn conclude(seen: &Observed, found: &mut Conclusions) {
    if seen.shares_blocks() {
        return found.prove(Proof::BelowCeilings, Verdict::Unknown, "blocks were shared: there is no rate to compare");
    }
    let tool_share = (seen.tool_ns + seen.system_ns) as f64 / seen.thread_ns.max(1) as f64;
    let copied = |ns: u64| seen.bytes as f64 * 1e9 / ns.max(1) as f64;
    let of_copier = if seen.copier == Copier::OtherProgram { "the other program's processor time is" } else { "copysim itself took" };
    let mut because = vec![format!("{of_copier} {} of the time", percent(tool_share))];
    // Of nothing, or in no time, there is no rate.
    let tool = seen.tool_bytes_per_s.filter(|&tool| tool > 0 && seen.bytes > 0);
    let headroom = tool.zip(seen.durable_ns.filter(|&ns| ns > 0)).map(|(tool, ns)| tool as f64 / copied(ns));
    if let (Some(tool), Some(headroom)) = (tool, headroom) {
        because.push(format!("from memory to memory it copies {}, {headroom:.1} times as much", rate(tool, SECOND_NS)));
    }
    let link = seen.link_bytes_per_s;
    because.push(match link {
        Some(link) => format!("the link can carry {}", rate(link, SECOND_NS)),
        None => "what the link can carry is not known".to_owned(),
    });
    let because = because.join("; ");
    let impossible = link.zip(seen.durable_ns).is_some_and(|(link, ns)| copied(ns) > link as f64 * TOLERANCE);
    let limited = tool_share > TOOL_SHARE || headroom.is_some_and(|headroom| headroom < HEADROOM);
    if let (true, Some(link), Some(ns)) = (impossible, link, seen.durable_ns) {
        let figures = format!("{} over a link of {}", rate(seen.bytes, ns), rate(link, SECOND_NS));
        found.flags.push(flags::IMPOSSIBLE_RATE.flag(Some(&figures), None));
    }
    if limited {
        found.flags.push(flags::TOOL_LIMITED.flag(Some(&because), None));
    }
    let verdict = match (impossible || limited, link) {
        (true, _) => Verdict::Fails,
        (false, Some(_)) if headroom.is_some() => Verdict::Holds,
        (false, _) => Verdict::Unknown,
    };
    found.prove(Proof::BelowCeilings, verdict, because);
}
