//! What every window says towards its proofs: the start from which copies, starts of programs and checks of a drive add what only they know.

use super::evidence::{Copier, Observed, Origin};
use super::window::{Timed, Watched};
use crate::cache::evict::Wanted;
use crate::result::Call;

/// What was seen of a window in which data of our own were written to the target.
pub(crate) fn of_window(watched: &Watched<'_>, timed: &Timed<'_>) -> Observed {
    let (done, moved, drive) = (&timed.done, timed.moved(), watched.target.drive);
    Observed {
        bytes: done.bytes,
        files: done.files,
        copier: Copier::Copysim,
        durable_ns: timed.durable_ns,
        origin: Origin::Generated,
        target: drive.medium,
        same_drive: false,
        wanted: Wanted::Cold,
        cache: None,
        source_stored_bytes: None,
        cache_below: false,
        cache_elsewhere: drive.cache_elsewhere(),
        source_counted: Vec::new(),
        target_counted: timed.target_counted().into_iter().flatten().collect(),
        shared_share: None,
        copy_stored_share: None,
        copy_encoded_share: None,
        flush: timed.flush.clone(),
        tool_ns: done.thread_ns.saturating_sub(done.calls.total_ns()),
        system_ns: timed.cpu().system_ns,
        read_ns: None,
        tool_bytes_per_s: None,
        link_bytes_per_s: drive.link_bytes_per_s(),
        target_busy_ns: None,
        // A program behind the file system does the reading and writing for us.
        own_io: moved.own.filter(|_| !drive.is_fuse()),
        others_io: moved.others,
        hidden_processes: moved.has_hidden,
        busiest: moved.busiest,
        baseline_bytes_per_s: None,
        source_layout: None,
        thread_ns: done.thread_ns,
        generator_ns: done.calls.group_ns(Call::Generator),
        suspended_ns: timed.suspended_ns(),
        data_differ: None,
    }
}
