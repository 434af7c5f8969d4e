//! Streams made by hand, and streams made at random.

use proptest::prelude::*;

use super::*;

const SOURCE: (u32, u32) = (7, 0);
const TARGET: (u32, u32) = (7, 1);

fn event(ns: u64, point: BlockPoint, device: (u32, u32), letters: &str, sector: u64, sectors: u32) -> BlockEvent {
    let mut rwbs = [0; 10];
    rwbs[..letters.len()].copy_from_slice(letters.as_bytes());
    BlockEvent { ns, point, device, sector, sectors, rwbs }
}

fn issued(ns: u64, device: (u32, u32), letters: &str, sector: u64, sectors: u32) -> BlockEvent {
    event(ns, BlockPoint::Issued, device, letters, sector, sectors)
}

fn completed(ns: u64, device: (u32, u32), letters: &str, sector: u64, sectors: u32) -> BlockEvent {
    event(ns, BlockPoint::Completed, device, letters, sector, sectors)
}

fn queued(ns: u64, letters: &str, sector: u64, sectors: u32) -> BlockEvent {
    event(ns, BlockPoint::Queued, TARGET, letters, sector, sectors)
}

/// The figures of a window from 100 to 200 ns.
fn follow(drives: &[Vec<(u32, u32)>], division: Division, events: &[BlockEvent]) -> Result<Figures, String> {
    let mut tracker = Tracker::new(drives, division);
    let mut opened = false;
    for event in events {
        if event.ns >= 100 && !std::mem::replace(&mut opened, true) {
            tracker.open(100);
            tracker.close(200);
        }
        tracker.event(event);
    }
    if !opened {
        tracker.open(100);
        tracker.close(200);
    }
    tracker.finish()
}

fn pair(events: &[BlockEvent]) -> Figures {
    follow(&[vec![TARGET], vec![SOURCE]], Division::Drives { source: 1, target: 0 }, events).unwrap()
}

fn one(events: &[BlockEvent]) -> Figures {
    follow(&[vec![TARGET]], Division::Directions, events).unwrap()
}

fn latencies(figures: &DriveFigures, op: BlockOp, span: BlockSpan) -> (u64, u64) {
    figures.latencies.get(&(op, span)).map_or((0, 0), |histogram| (histogram.n(), histogram.sum_ns()))
}

#[test]
fn two_drives_divide_the_window() {
    let figures = pair(&[
        // In flight when the window opens, and one still when it closes.
        issued(40, SOURCE, "RA", 0, 8),
        issued(110, TARGET, "W", 64, 16),
        completed(120, SOURCE, "RA", 0, 8),
        completed(150, TARGET, "W", 64, 16),
        issued(180, TARGET, "FF", 0, 0),
        completed(190, TARGET, "FF", u64::MAX, 0),
        issued(195, SOURCE, "R", 8, 8),
    ]);
    assert_eq!(figures.parts, Parts { only_source_ns: 10 + 5, only_target_ns: 30 + 10, both_ns: 10, none_ns: 30 + 5 });
    let [target, source] = [&figures.drives[0], &figures.drives[1]];
    assert_eq!((source.reads, source.read_bytes, source.union_ns, source.sum_ns), (1, 8 * 512, 25, 25));
    assert_eq!((target.writes, target.written_bytes, target.flushes, target.union_ns, target.flush_union_ns), (1, 16 * 512, 1, 50, 10));
    // The whole latency, not the part of it that lies in the window.
    assert_eq!(latencies(source, BlockOp::Read, BlockSpan::DispatchToComplete), (1, 80));
    assert_eq!(figures.events, 6);
}

#[test]
fn one_drive_is_divided_by_what_it_does() {
    let figures = one(&[
        issued(110, TARGET, "RM", 0, 8),
        issued(120, TARGET, "R", 8, 8),
        completed(130, TARGET, "RM", 0, 8),
        issued(140, TARGET, "DS", 100, 80),
        completed(150, TARGET, "R", 8, 8),
        completed(160, TARGET, "DS", 100, 80),
    ]);
    assert_eq!(figures.parts, Parts { only_source_ns: 30, only_target_ns: 10, both_ns: 10, none_ns: 50 });
    let drive = &figures.drives[0];
    assert_eq!((drive.reads, drive.metadata_reads, drive.metadata_read_bytes, drive.discards, drive.discarded_bytes), (2, 1, 4096, 1, 40_960));
    // Two at a time from 120 to 130 and from 140 to 150.
    assert_eq!((drive.union_ns, drive.sum_ns), (50, 70));
}

#[test]
fn a_request_in_flight_all_along_fills_the_window() {
    assert_eq!(one(&[issued(10, TARGET, "W", 0, 8), completed(900, TARGET, "W", 0, 8)]).parts, Parts { only_target_ns: 100, ..Parts::default() });
    assert_eq!(one(&[issued(10, TARGET, "W", 0, 8)]).drives[0].union_ns, 100);
    assert_eq!(one(&[]).parts, Parts { none_ns: 100, ..Parts::default() });
}

#[test]
fn a_request_that_is_answered_in_parts_is_in_flight_until_the_last() {
    let figures = one(&[issued(110, TARGET, "R", 0, 64), completed(120, TARGET, "R", 0, 16), completed(150, TARGET, "R", 16, 48)]);
    let drive = &figures.drives[0];
    assert_eq!((drive.union_ns, drive.reads, drive.read_bytes), (40, 1, 64 * 512));
    assert_eq!(latencies(drive, BlockOp::Read, BlockSpan::DispatchToComplete), (1, 40));
}

#[test]
fn a_request_that_is_given_back_is_not_in_flight_until_it_is_issued_again() {
    let figures = one(&[
        issued(110, TARGET, "W", 0, 8),
        event(115, BlockPoint::Requeued, TARGET, "W", 0, 8),
        issued(130, TARGET, "W", 0, 8),
        completed(140, TARGET, "W", 0, 8),
    ]);
    assert_eq!((figures.drives[0].union_ns, figures.drives[0].writes), (15, 1));
}

#[test]
fn the_answers_of_a_flush_with_data_are_told_apart() {
    // As ext4's journal has it: a flush, the data, a flush, and the whole once more, without sectors.
    let figures = one(&[
        queued(105, "FWFSM", 24, 2),
        issued(110, TARGET, "FF", 0, 0),
        completed(120, TARGET, "FF", u64::MAX, 0),
        issued(125, TARGET, "WSM", 24, 2),
        completed(130, TARGET, "WSM", 24, 2),
        issued(140, TARGET, "FF", 0, 0),
        completed(150, TARGET, "FF", u64::MAX, 0),
        completed(151, TARGET, "WSM", 24, 0),
    ]);
    let drive = &figures.drives[0];
    assert_eq!((drive.flushes, drive.writes, drive.union_ns, drive.flush_union_ns), (2, 1, 25, 20));
    assert_eq!(latencies(drive, BlockOp::Write, BlockSpan::QueueToDispatch), (1, 20));
}

#[test]
fn waiting_counts_from_the_oldest_part_whether_parts_are_joined_or_split() {
    let figures = one(&[
        // Two that become one.
        queued(101, "W", 8, 8),
        queued(103, "W", 0, 8),
        issued(111, TARGET, "W", 0, 16),
        // One that becomes two.
        queued(120, "W", 100, 100),
        issued(125, TARGET, "W", 100, 60),
        issued(140, TARGET, "W", 160, 40),
        // What is not of this kind does not count.
        queued(150, "R", 500, 8),
        issued(160, TARGET, "W", 500, 8),
    ]);
    assert_eq!(latencies(&figures.drives[0], BlockOp::Write, BlockSpan::QueueToDispatch), (3, 10 + 5 + 20));
}

#[test]
fn two_requests_for_the_same_sectors_are_two() {
    let figures =
        one(&[issued(110, TARGET, "R", 0, 8), issued(120, TARGET, "R", 0, 8), completed(130, TARGET, "R", 0, 8), completed(150, TARGET, "R", 0, 8)]);
    assert_eq!((figures.drives[0].union_ns, figures.drives[0].sum_ns, figures.drives[0].reads), (40, 50, 2));
}

#[test]
fn what_can_not_be_known_is_not_told() {
    let without_begin = follow(&[vec![TARGET]], Division::Target, &[completed(150, TARGET, "R", 0, 8)]);
    assert!(without_begin.unwrap_err().contains("never seen to begin"));
    // Before the window it does no harm, nor on a drive that is none of these.
    assert!(follow(&[vec![TARGET]], Division::Target, &[completed(50, TARGET, "R", 0, 8), completed(150, SOURCE, "R", 0, 8)]).is_ok());
    let mut late = Tracker::new(&[vec![TARGET]], Division::Target);
    late.event(&issued(150, TARGET, "W", 0, 8));
    late.open(100);
    late.close(200);
    assert!(late.finish().unwrap_err().contains("too late"));
    assert!(Tracker::new(&[vec![TARGET]], Division::Target).finish().is_err());
}

#[test]
fn the_letters_of_the_kernel_are_understood() {
    let kinds = ["R", "RA", "RSM", "W", "WFS", "FWFSM", "FF", "F", "D", "DE", "FWS", "N", ""]
        .map(|letters| kind(&event(0, BlockPoint::Issued, TARGET, letters, 0, 0).rwbs));
    use BlockOp::{Discard, Flush, Other, Read, Write};
    let ops = [Read, Read, Read, Write, Write, Write, Flush, Flush, Discard, Discard, Write, Other, Other];
    assert_eq!(kinds.map(|(op, _)| op), ops);
    assert_eq!(kinds.map(|(_, metadata)| metadata).iter().filter(|&&metadata| metadata).count(), 2);
}

proptest! {
    #[test]
    fn the_parts_add_up_to_the_window_and_no_union_exceeds_it(
        requests in prop::collection::vec((0_u64..300, 1_u64..120, any::<bool>(), prop::sample::select(vec!["R", "W", "FF", "D"]), any::<bool>()), 0..60),
        division in 0..3,
    ) {
        let mut events = Vec::new();
        for (index, &(start, length, source, letters, answered)) in requests.iter().enumerate() {
            let device = if source { SOURCE } else { TARGET };
            let (sector, sectors) = if letters == "FF" { (0, 0) } else { (index as u64 * 8, 8) };
            events.push(queued(start, letters, sector, sectors));
            events.push(issued(start, device, letters, sector, sectors));
            if answered {
                events.push(completed(start + length, device, letters, if letters == "FF" { u64::MAX } else { sector }, sectors));
            }
        }
        events.sort_by_key(|event| event.ns);
        let (drives, division) = match division {
            0 => (vec![vec![TARGET], vec![SOURCE]], Division::Drives { source: 1, target: 0 }),
            1 => (vec![vec![TARGET, SOURCE]], Division::Directions),
            _ => (vec![vec![TARGET, SOURCE]], Division::Target),
        };
        let figures = follow(&drives, division, &events).unwrap();
        let Parts { only_source_ns, only_target_ns, both_ns, none_ns } = figures.parts;
        prop_assert_eq!(only_source_ns + only_target_ns + both_ns + none_ns, 100);
        for drive in &figures.drives {
            prop_assert!(drive.union_ns <= 100 && drive.flush_union_ns <= drive.union_ns && drive.sum_ns >= drive.union_ns);
        }
        // The same by looking at every nanosecond.
        let flights = |wanted: &dyn Fn(bool) -> bool, ns: u64| requests.iter().any(|&(start, length, source, letters, answered)| {
            let until = if answered { start + length } else { u64::MAX };
            let is_source = if drives.len() == 2 { source } else { division == Division::Directions && letters == "R" };
            wanted(is_source) && start <= ns && ns < until
        });
        // A flush has no number: of two at a time the first answer counts for the first, so nothing is said of them one by one, but of all.
        let both = (100..200).filter(|&ns| flights(&|source| source, ns) && flights(&|source| !source, ns)).count() as u64;
        if requests.iter().all(|request| request.3 != "FF") {
            prop_assert_eq!(both_ns, both);
        }
    }
}
