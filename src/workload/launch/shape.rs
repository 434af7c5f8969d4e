//! What a start asks of a drive, in the figures in which recorded starts are published: requests, bytes, sizes, depth, sequence.

use serde::{Deserialize, Serialize};

use super::play::{Act, Play};
use crate::result::LaunchShape;

/// The shape that a scenario states for its start, at 100 %.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShapeSpec {
    /// Where the figures come from.
    pub source: String,
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Share of reads and writes that are asked for while nothing else is, percent.
    pub alone_percent: u64,
    /// Share of reads and writes that begin where the one before of the same file, by the same thread, ended, percent.
    pub sequential_percent: u64,
    /// Sizes and the share of reads and writes that have them, percent. Of sizes that are not named nothing is stated.
    pub sizes: Vec<SizeShare>,
}

/// The share of a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeShare {
    /// The size, a power of two.
    pub bytes: u64,
    /// The share of reads and writes, percent.
    pub percent: u64,
}

/// The shape of a play.
#[must_use]
pub fn shape(play: &Play) -> LaunchShape {
    let mut shape = LaunchShape { think_ns: play.think_ns(), ..LaunchShape::default() };
    for step in &play.steps {
        // As many items as are done at once: the last one of a step may be alone, and is not counted so.
        let is_alone = step.at_once.min(u32::try_from(step.items.len()).unwrap_or(u32::MAX)) <= 1;
        for item in &step.items {
            // Where the last read and the last write ended.
            let (mut read_to, mut written_to) = (None, None);
            for act in &item.acts {
                let (bytes, follows) = match act {
                    Act::Read { offset, len } => (*len, read_to.replace(offset + len) == Some(*offset)),
                    Act::Fault { offset, len } => (*len, read_to.replace(offset + len) == Some(*offset)),
                    Act::Write { len } => (*len, written_to.replace(()).is_some()),
                    other => {
                        match other {
                            Act::Flush => shape.flushes += 1,
                            Act::Miss(_) => shape.misses += 1,
                            Act::Open => shape.opens += 1,
                            _ => {}
                        }
                        continue;
                    }
                };
                if let Act::Write { .. } = act {
                    shape.writes += 1;
                    shape.written_bytes += bytes;
                } else {
                    shape.reads += 1;
                    shape.read_bytes += bytes;
                    shape.faults += u64::from(matches!(act, Act::Fault { .. }));
                }
                shape.alone += u64::from(is_alone);
                shape.sequential += u64::from(follows);
                if bytes.is_power_of_two() {
                    *shape.by_size.entry(bytes).or_default() += 1;
                }
            }
        }
    }
    shape
}

/// In what a shape differs from what a scenario states by more than one point, or one percent of a number; a phrase for each.
#[must_use]
pub fn differences(shape: &LaunchShape, stated: &ShapeSpec) -> Vec<String> {
    let mut differences = Vec::new();
    let numbers = [
        ("reads", shape.reads, stated.reads),
        ("read_bytes", shape.read_bytes, stated.read_bytes),
        ("writes", shape.writes, stated.writes),
        ("written_bytes", shape.written_bytes, stated.written_bytes),
    ];
    for (what, is, stated) in numbers {
        if is.abs_diff(stated) * 100 > stated {
            differences.push(format!("{what}: {is}, stated are {stated}"));
        }
    }
    let sizes = stated.sizes.iter().map(|size| {
        let is = shape.by_size.get(&size.bytes).copied().unwrap_or(0);
        (format!("sizes of {}", size.bytes), is, size.percent)
    });
    let shares = [
        ("alone_percent".to_owned(), shape.alone, stated.alone_percent),
        ("sequential_percent".to_owned(), shape.sequential, stated.sequential_percent),
    ];
    for (what, is, stated) in shares.into_iter().chain(sizes) {
        let is = is as f64 * 100.0 / (shape.reads + shape.writes).max(1) as f64;
        if (is - stated as f64).abs() > 1.0 {
            differences.push(format!("{what}: {is:.1} %, stated are {stated} %"));
        }
    }
    differences
}
