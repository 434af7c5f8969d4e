//! What the rate did, in one line.

use super::printable::printable;
use crate::result::{Curve, CurveShape, Flag, Phase, flags};
use crate::units::{count, duration, levels_in_words, rate};

/// The line; `None` where nothing was seen.
pub(super) fn line(phase: &Phase) -> Option<String> {
    let curve = phase.curve.as_ref()?;
    let mut words = match curve.shape {
        CurveShape::Unknown => return stood_still(curve).map(|stalls| format!("Rate of writing: unknown; {stalls}")),
        CurveShape::Steady => format!("steady, {}", levels(curve)),
        CurveShape::Levels => levels(curve),
        CurveShape::Ramp => match curve.drift {
            Some(drift) => {
                format!("{} at first, {} at last, bit by bit", rate(drift.first_bytes, drift.first_ns), rate(drift.last_bytes, drift.last_ns))
            }
            None => format!("{} in all, changing bit by bit", levels(curve)),
        },
    };
    if raised(&phase.flags, flags::CLIFF.code) {
        words.push_str(" (cliff)");
    }
    if let Some(because) = curve.because.as_deref() {
        words.push_str(&format!("; {}", printable(because)));
    }
    words.extend(stood_still(curve).map(|stalls| format!("; {stalls}")));
    // What the calls say is how fast memory took it, in part.
    let of = if curve.of == "work" { "Rate of the calls, memory included" } else { "Rate of writing" };
    Some(format!("{of}: {words}"))
}

fn raised(flags: &[Flag], code: &str) -> bool {
    flags.iter().any(|flag| flag.code == code)
}

fn levels(curve: &Curve) -> String {
    levels_in_words(curve.levels.iter().map(|level| {
        let (bytes, ns) = level.bytes_and_ns();
        (bytes, ns, level.to_bytes)
    }))
}

fn stood_still(curve: &Curve) -> Option<String> {
    match curve.stalls.count {
        0 => None,
        1 => Some(format!("stood still once, for {}", duration(curve.stalls.longest_ns))),
        n => Some(format!(
            "stood still {} times, {} in all, {} at the longest",
            count(n),
            duration(curve.stalls.total_ns),
            duration(curve.stalls.longest_ns)
        )),
    }
}
