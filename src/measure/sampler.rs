//! Takes samples beside a piece of work, on a thread of its own.

use std::thread;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};

use super::{Recorder, Samples};
use crate::platform::{Clock, Usage};

/// Time between two samples. The recorder thins them out when there are too many.
const INTERVAL: Duration = Duration::from_millis(50);

/// Does the work while `look` reads the values of `series` series now and then, at the beginning, and at the end. Also returns the processor time that the
/// looking took, ns.
pub fn sampled<T>(
    clock: &dyn Clock,
    series: usize,
    mut look: impl FnMut() -> Vec<Option<i64>> + Send,
    work: impl FnOnce() -> T,
) -> (T, Samples, u64) {
    thread::scope(|scope| {
        let (stop, stopped) = bounded::<()>(0);
        let start = clock.now_ns();
        let sampler = scope.spawn(move || {
            let mut recorder = Recorder::new(series);
            loop {
                let values = look();
                recorder.offer(clock.now_ns() - start, &values);
                if stopped.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
            }
            let values = look();
            recorder.offer(clock.now_ns() - start, &values);
            let used = Usage::of_thread();
            (recorder.finish(), used.user_ns + used.system_ns)
        });
        let done = work();
        drop(stop);
        // A sampler that died leaves the work valid and the timeline empty.
        let (samples, used_ns) = sampler.join().unwrap_or_default();
        (done, samples, used_ns)
    })
}
