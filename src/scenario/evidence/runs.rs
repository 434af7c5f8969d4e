//! What follows from all runs together: whether the first stands apart, whether they worked at the same place, whether a control differs.

use super::SHORTEST_NS;
use crate::measure::statistics::spread;
use crate::result::{Flag, flags};
use crate::units::{Bytes, duration};

/// A first run that is slower or faster than the others by more than this share of their median, and by twice what they differ among themselves, stands apart.
const APART_SHARE: f64 = 0.20;
/// Copies that lie further apart than this share of the drive lie on other tracks.
const POSITION_SHARE: f64 = 0.10;
/// A control that takes longer than the copy by more than this share wrote what the copy did not have to.
const CONTROL_SHARE: f64 = 0.15;

/// What follows from the durable times of all runs, in order: whether the first one stands apart. Others may be compared with each other, not with it.
#[must_use]
pub fn compare_runs(durable_ns: &[u64]) -> Vec<Flag> {
    let [first, rest @ ..] = durable_ns else { return Vec::new() };
    let Some(others) = spread(rest).filter(|_| rest.len() >= 2) else { return Vec::new() };
    let median = others.median.max(1) as f64;
    let apart = (*first as f64 - median).abs() / median;
    let among = (others.max - others.min) as f64 / median;
    if apart <= APART_SHARE || among > apart / 2.0 {
        return Vec::new();
    }
    vec![flags::FIRST_RUN.flag(Some(&format!("{} instead of {}", duration(*first), duration(others.median))), None)]
}

/// Whether the copies of all runs lie at the same place of the drive: by the mean place of each, in bytes, on a drive of a size.
#[must_use]
pub fn compare_places(places: &[u64], drive_bytes: Option<u64>) -> Vec<Flag> {
    let (Some(found), Some(drive)) = (spread(places), drive_bytes.filter(|&bytes| bytes > 0)) else { return Vec::new() };
    if (found.max - found.min) as f64 / drive as f64 <= POSITION_SHARE {
        return Vec::new();
    }
    let place = |place: u64| format!("{:.0} %", place as f64 * 100.0 / drive as f64);
    let figures = format!("between {} and {} of the way through {}", place(found.min), place(found.max), Bytes(drive));
    vec![flags::POSITION_DIFFERS.flag(Some(&figures), None)]
}

/// Whether writing fresh data takes longer than copying data that the drive has: it is suspected then to keep equal data once.
#[must_use]
pub fn compare_control(copies_ns: &[u64], control_ns: Option<u64>) -> Option<Flag> {
    let (copies, control) = (spread(copies_ns)?, control_ns?);
    let copy = copies.median;
    if copy < SHORTEST_NS || control <= copies.max {
        return None;
    }
    let slower = control as f64 / copy.max(1) as f64 - 1.0;
    let figures = format!("the same work with fresh data took {} instead of {}", duration(control), duration(copy));
    (slower > CONTROL_SHARE).then(|| flags::DEDUP_SUSPECTED.flag(Some(&figures), None))
}
