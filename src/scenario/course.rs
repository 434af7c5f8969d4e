//! What the course of a window says: levels of the rate and where it changed, stalls, drift, messages of the kernel; and the flags that follow. A pure function of
//! what was sampled.

use super::window::Timed;
use super::witness::Seen;
use crate::measure::curve::{self, Shape};
use crate::result::{
    ChangePoint, Curve, CurveShape, Drift, Flag, KernelEvent, KernelMessage, Level, Measured, Phase, Place, RateChange, Series, Stalls, Timeline,
    flags,
};
use crate::units::{count, duration, levels_in_words, rate};

/// A drive that was busy for less than this share of a slow part waited for others: the kernel's estimate of its busy time is an upper bound.
const BUSY_SHARE: f64 = 0.7;
/// A fall counts when the last rate is lower than the one before the fall by this share: the drive did not get over it.
const FOR_GOOD: f64 = curve::LEAST_CHANGE;

/// Puts the course of a window into a phase whose timeline is there.
pub(crate) fn tell(timed: &Timed<'_>, target: &str, phase: &mut Phase) {
    if let Some(timeline) = phase.timeline.as_ref().filter(|timeline| !timeline.t_ns.is_empty()) {
        let (curve, found) = course(timeline, target, &timed.busy_ns, &timed.seen);
        phase.curve = Some(curve);
        // No rate follows from part of the work.
        phase.flags.extend(found.into_iter().filter(|flag| timed.done.failure.is_none() || flag.code == flags::STALL.code));
    }
    match &timed.seen.messages {
        Ok(messages) => {
            phase.flags.extend(of_kernel(messages));
            phase.kernel_log = Some(messages.clone());
        }
        Err(reason) => phase.kernel_log_reason = Some(reason.clone()),
    }
}

/// The curve of what the target wrote, or of the work where that was not counted; and what it means.
fn course(timeline: &Timeline, target: &str, busy_ns: &[Option<i64>], seen: &Seen) -> (Curve, Vec<Flag>) {
    let find = |of: &str, what: Measured| timeline.series.iter().find(|series| series.of == of && series.what == what);
    let moved = |series: &&Series| series.values.iter().flatten().any(|&value| value > 0);
    let of_drive = find(target, Measured::WrittenBytes).filter(moved);
    let (of, values) = match of_drive.or_else(|| find("work", Measured::WrittenBytes)) {
        Some(series) => (series.of.as_str(), series.values.as_slice()),
        None => ("work", [].as_slice()),
    };
    let celsius = find(target, Measured::Celsius).map(|series| series.values.as_slice());
    let looked = curve::look(&timeline.t_ns, values, &seen.stalls.longest, celsius);
    let (shape, mut because) = match &looked.shape {
        Shape::Unknown(why) => (CurveShape::Unknown, Some((*why).to_owned())),
        Shape::Steady(_) => (CurveShape::Steady, None),
        Shape::Ramp(_) => (CurveShape::Ramp, None),
        Shape::Levels(_) => (CurveShape::Levels, None),
    };
    let level = |level: &curve::Level| Level {
        from_bytes: level.from_bytes,
        to_bytes: level.to_bytes,
        from_ns: level.from_ns,
        to_ns: level.to_ns,
        stalled_ns: level.stalled_ns,
    };
    let levels: Vec<Level> = looked.shape.levels().iter().map(level).collect();
    let change = |pair: &[curve::Level]| ChangePoint {
        at_bytes: pair[1].from_bytes,
        at_ns: pair[1].from_ns,
        change: if pair[1].rate() < pair[0].rate() { RateChange::Fall } else { RateChange::Rise },
    };
    let change_points = looked.shape.levels().windows(2).map(change).collect();
    let drift = looked.drift.map(|drift| Drift {
        first_bytes: drift.first_bytes,
        first_ns: drift.first_ns,
        last_bytes: drift.last_bytes,
        last_ns: drift.last_ns,
        significant: drift.is_significant,
        celsius_correlation: drift.celsius_correlation,
    });
    let stalls = Stalls {
        count: seen.stalls.count,
        longest_ns: seen.stalls.longest_ns,
        total_ns: seen.stalls.total_ns,
        longest: seen.stalls.longest.iter().map(|gap| (gap.from_ns, gap.to_ns)).collect(),
    };
    let mut found = Vec::new();
    found.extend(stalled(&stalls));
    // Work goes into memory first: what happens to its rate is not the drive's doing.
    if of_drive.is_some() {
        let place = |at: Option<&Level>| Place {
            drive: Some(of.to_owned()),
            t_ns: at.map(|level| level.from_ns),
            bytes: at.map(|level| level.from_bytes),
            path: None,
        };
        let idle = |level: &Level| busy_share(&timeline.t_ns, busy_ns, level).is_some_and(|share| share < BUSY_SHARE);
        if let Some(slow) = fallen(&levels) {
            if idle(slow) {
                because = Some("the drive was not busy in the slower part: it waited for the work".to_owned());
            } else {
                found.push(flags::CLIFF.flag(Some(&in_words(&levels)), Some(place(Some(slow)))));
            }
        }
        let longest = levels.iter().max_by_key(|level| level.bytes_and_ns().1);
        if let (Some(drift), Some(longest)) = (drift.filter(|drift| drift.significant), longest)
            && !idle(longest)
        {
            let figures = format!("from {} to {}", rate(drift.first_bytes, drift.first_ns), rate(drift.last_bytes, drift.last_ns));
            found.push(flags::DRIFT.flag(Some(&figures), Some(place(None))));
        }
    }
    (Curve { of: of.to_owned(), what: Measured::WrittenBytes, shape, because, levels, change_points, stalls, drift }, found)
}

fn per_second(level: &Level) -> f64 {
    let (bytes, ns) = level.bytes_and_ns();
    bytes as f64 / ns.max(1) as f64
}

/// The level that the first fall led to, when the rate stayed low until the end.
fn fallen(levels: &[Level]) -> Option<&Level> {
    let last = levels.last()?;
    let fall = levels.windows(2).find(|pair| per_second(&pair[1]) < per_second(&pair[0]))?;
    (per_second(last) < per_second(&fall[0]) * (1.0 - FOR_GOOD)).then_some(&fall[1])
}

/// The levels as a person says them: "410 MB/s for the first 12.3 GB, then 84 MB/s".
fn in_words(levels: &[Level]) -> String {
    levels_in_words(levels.iter().map(|level| {
        let (bytes, ns) = level.bytes_and_ns();
        (bytes, ns, level.to_bytes)
    }))
}

/// The share of a level's time in which the drive had something to do; `None` where that is not known.
fn busy_share(t_ns: &[u64], busy_ns: &[Option<i64>], level: &Level) -> Option<f64> {
    let within = t_ns.iter().zip(busy_ns).filter(|(t_ns, _)| (level.from_ns..=level.to_ns).contains(t_ns));
    let known: Vec<(u64, i64)> = within.filter_map(|(&t_ns, busy_ns)| Some((t_ns, (*busy_ns)?))).collect();
    let (first, last) = (known.first()?, known.last()?);
    let time = last.0.checked_sub(first.0).filter(|&time| time > 0)?;
    // The kernel's counter starts again at zero after 49 days.
    let busy = last.1.checked_sub(first.1).filter(|&busy| busy >= 0)?;
    Some(busy as f64 / time as f64)
}

fn stalled(stalls: &Stalls) -> Option<Flag> {
    let &(from_ns, to_ns) = stalls.longest.iter().max_by_key(|(from_ns, to_ns)| to_ns - from_ns)?;
    let figures = match stalls.count {
        1 => format!("{}, {} after the beginning", duration(to_ns - from_ns), duration(from_ns)),
        n => format!("{} times, {} in all, the longest {}", count(n), duration(stalls.total_ns), duration(stalls.longest_ns)),
    };
    Some(flags::STALL.flag(Some(&figures), Some(Place { drive: None, t_ns: Some(from_ns), bytes: None, path: None })))
}

/// What follows from messages of the kernel.
fn of_kernel(messages: &[KernelMessage]) -> Vec<Flag> {
    let of = |entry: &'static flags::Entry, is: fn(KernelEvent) -> bool| {
        let those: Vec<&KernelMessage> = messages.iter().filter(|message| is(message.kind)).collect();
        let first = those.first()?;
        let figures = if those.len() == 1 { first.line.clone() } else { format!("{} messages, the first: {}", those.len(), first.line) };
        let place = Place { drive: Some(first.drive.clone()), t_ns: Some(first.t_ns), bytes: None, path: None };
        Some(entry.flag(Some(&figures), Some(place)))
    };
    [of(&flags::DEVICE_RESET, |kind| kind != KernelEvent::IoError), of(&flags::DEVICE_ERROR, |kind| kind == KernelEvent::IoError)]
        .into_iter()
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::stall::{self, Gap};

    const MS: u64 = 1_000_000;

    /// A minute of samples; the rate of a second in MB/s follows from the bytes so far.
    fn timeline(of: &str, rate: impl Fn(f64) -> f64) -> Timeline {
        let mut bytes = 0.0;
        let (t_ns, values): (Vec<u64>, Vec<Option<i64>>) = (0..120_u64)
            .map(|index| {
                let sample = (index * 500 * MS, Some(bytes as i64));
                // Some noise, the same in every test.
                bytes += rate(bytes) * 0.5e6 * (1.0 + ((index * 7919 % 13) as f64 - 6.0) / 200.0);
                sample
            })
            .unzip();
        let work = Series { of: "work".into(), what: Measured::WrittenBytes, values: vec![Some(1); t_ns.len()] };
        Timeline { t_ns, series: vec![work, Series { of: of.into(), what: Measured::WrittenBytes, values }] }
    }

    fn seen() -> Seen {
        Seen { stalls: stall::Stalls::default(), messages: Ok(Vec::new()) }
    }

    fn busy(share: f64) -> Vec<Option<i64>> {
        (0..120).map(|index| Some((f64::from(index) * 500e6 * share) as i64)).collect()
    }

    fn codes(flags: &[Flag]) -> Vec<&str> {
        flags.iter().map(|flag| flag.code.as_str()).collect()
    }

    fn cliff(bytes: f64) -> f64 {
        if bytes < 4e9 { 400.0 } else { 80.0 }
    }

    #[test]
    fn a_fall_of_a_busy_drive_is_a_cliff_with_its_place_and_in_words() {
        let (curve, flags) = course(&timeline("d0", cliff), "d0", &busy(1.0), &seen());
        assert_eq!((curve.shape, curve.levels.len(), codes(&flags)), (CurveShape::Levels, 2, vec!["cliff"]));
        let at = flags[0].at.as_ref().unwrap();
        assert!(at.bytes.unwrap().abs_diff(4_000_000_000) < 100_000_000 && at.drive.as_deref() == Some("d0"), "{at:?}");
        assert_eq!(curve.change_points, [ChangePoint { at_bytes: at.bytes.unwrap(), at_ns: at.t_ns.unwrap(), change: RateChange::Fall }]);
        assert!(flags[0].message.contains("MB/s for the first 4.0"), "{}", flags[0].message);
        assert!(flags[0].message.contains(", then 8") || flags[0].message.contains(", then 7"), "{}", flags[0].message);
    }

    #[test]
    fn a_fall_of_a_drive_that_waits_for_its_source_is_none_of_its_own() {
        let (curve, flags) = course(&timeline("d0", cliff), "d0", &busy(0.3), &seen());
        assert_eq!((curve.shape, codes(&flags)), (CurveShape::Levels, vec![]));
        assert!(curve.because.unwrap().contains("waited"));
        // Where busy time is not known the drive is not excused.
        assert_eq!(codes(&course(&timeline("d0", cliff), "d0", &[], &seen()).1), ["cliff"]);
    }

    #[test]
    fn work_without_counters_has_a_course_and_no_cliff() {
        let (mut curve, flags) = course(&timeline("work", cliff), "d0", &[], &seen());
        // The first series of that name stands still.
        assert_eq!((curve.of.as_str(), curve.shape, flags.len()), ("work", CurveShape::Unknown, 0));
        let mut only = timeline("work", cliff);
        only.series.remove(0);
        (curve, _) = course(&only, "d0", &[], &seen());
        assert_eq!((curve.of.as_str(), curve.shape), ("work", CurveShape::Levels));
        assert!(course(&only, "d0", &[], &seen()).1.is_empty());
    }

    #[test]
    fn a_rise_and_a_dip_that_is_got_over_are_no_cliff_and_a_ramp_is_a_drift() {
        let rise = course(&timeline("d0", |bytes| if bytes < 1e9 { 100.0 } else { 300.0 }), "d0", &busy(1.0), &seen());
        assert_eq!((rise.0.change_points[0].change, codes(&rise.1)), (RateChange::Rise, vec![]));
        let dip = course(&timeline("d0", |bytes| if (2e9..3e9).contains(&bytes) { 100.0 } else { 300.0 }), "d0", &busy(1.0), &seen());
        assert_eq!((dip.0.levels.len(), codes(&dip.1)), (3, vec![]));
        let ramp = course(&timeline("d0", |bytes| 200.0 - bytes / 1e8), "d0", &busy(1.0), &seen());
        assert_eq!((ramp.0.shape, codes(&ramp.1)), (CurveShape::Ramp, vec!["drift"]));
        let steady = course(&timeline("d0", |_| 200.0), "d0", &busy(1.0), &seen());
        assert_eq!((steady.0.shape, steady.0.levels.len(), codes(&steady.1)), (CurveShape::Steady, 1, vec![]));
    }

    #[test]
    fn field_c13_stalls_and_messages_are_flags_with_their_place() {
        let gap = Gap { from_ns: 3_000 * MS, to_ns: 5_100 * MS };
        let stalls = stall::Stalls { count: 1, longest_ns: gap.ns(), total_ns: gap.ns(), longest: vec![gap] };
        let (curve, flags) = course(&timeline("d0", |_| 200.0), "d0", &busy(1.0), &Seen { stalls, ..seen() });
        assert_eq!((codes(&flags), curve.stalls.count), (vec!["stall"], 1));
        assert!(flags[0].message.ends_with(": 2.1 s, 3.0 s after the beginning"), "{}", flags[0].message);
        let message = |kind, line: &str| KernelMessage { t_ns: 5, drive: "d0".into(), kind, line: line.into() };
        let flags = of_kernel(&[message(KernelEvent::Timeout, "waits"), message(KernelEvent::Reset, "reset"), message(KernelEvent::IoError, "bad")]);
        assert_eq!(codes(&flags), ["device-reset", "device-error"]);
        assert!(flags[0].message.ends_with(": 2 messages, the first: waits") && flags[1].message.ends_with(": bad"));
        assert!(of_kernel(&[]).is_empty());
    }
}
