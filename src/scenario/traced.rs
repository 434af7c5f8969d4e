//! What a block trace came to, in the words of the record.

use super::events::Event;
use super::window::{Timed, Watched};
use crate::drive::block_trace::Reads;
use crate::measure::block_trace::{DriveFigures, Figures};
use crate::result::{Between, BlockLatency, BlockRequests, BlockTrace, Overlap, Phase};

/// What a drive must have moved by its own counters before a trace that knows nothing of it is not believed.
const NOTICED_BYTES: u64 = 1_000_000;

/// Puts into the phase what a trace found, or why it found nothing; a phase for which none was asked stays as it is. The counters of the drives are in it already.
pub(crate) fn record(watched: &Watched<'_>, timed: &Timed<'_>, phase: &mut Phase) {
    let (Some(outcome), Some(reads)) = (&timed.trace, watched.traced) else { return };
    let between = match reads {
        Reads::Drive(_) => Between::Drives,
        Reads::Target => Between::Directions,
        Reads::Nothing => Between::Target,
    };
    let ids: Vec<&str> = [Some(watched.target.id), watched.source.map(|place| place.id)].into_iter().flatten().collect();
    let figures = outcome.figures.as_ref().map_err(Clone::clone).and_then(|figures| believed(figures, &ids, phase).map(|()| figures));
    let mut block_trace = BlockTrace { lost: outcome.lost, ..BlockTrace::default() };
    match figures {
        Ok(figures) => {
            block_trace.events = figures.events;
            for (id, drive) in ids.iter().zip(&figures.drives) {
                block_trace.requests.insert((*id).to_owned(), requests(drive));
                block_trace.latency.extend(drive.latencies.iter().map(|((op, span), histogram)| BlockLatency::of(id, *op, *span, histogram)));
                if let Some(device) = phase.device.get_mut(*id) {
                    device.inflight_union_ns = Some(drive.union_ns);
                }
            }
            let parts = figures.parts;
            if let Some(time) = &mut phase.time {
                time.overlap_ns = Some(Overlap {
                    between,
                    only_source_ns: parts.only_source_ns,
                    only_target_ns: parts.only_target_ns,
                    both_ns: parts.both_ns,
                    none_ns: parts.none_ns,
                });
            }
        }
        Err(reason) => {
            watched.observer.on(Event::Notice(format!("no block trace: {reason}")));
            block_trace.reason = Some(reason);
        }
    }
    phase.block_trace = Some(block_trace);
}

/// Whether the trace saw what the drives counted; the error says where it did not.
fn believed(figures: &Figures, ids: &[&str], phase: &Phase) -> Result<(), String> {
    for (id, drive) in ids.iter().zip(&figures.drives) {
        let counted = phase.device.get(*id).map_or(0, |device| device.read_bytes.saturating_add(device.written_bytes));
        let traced = drive.read_bytes.saturating_add(drive.written_bytes);
        if counted >= NOTICED_BYTES && traced < counted / 2 {
            return Err(format!("the kernel's block events tell of {traced} bytes and the counters of drive {id} of {counted}"));
        }
    }
    Ok(())
}

fn requests(drive: &DriveFigures) -> BlockRequests {
    BlockRequests {
        reads: drive.reads,
        read_bytes: drive.read_bytes,
        metadata_reads: drive.metadata_reads,
        metadata_read_bytes: drive.metadata_read_bytes,
        writes: drive.writes,
        written_bytes: drive.written_bytes,
        flushes: drive.flushes,
        discards: drive.discards,
        discarded_bytes: drive.discarded_bytes,
        flush_union_ns: drive.flush_union_ns,
        inflight_sum_ns: drive.sum_ns,
    }
}
