//! What is wrong with a lab drive just now: everything here may be changed while the drive runs.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::log::{Kind, now_ns};
use super::store::Store;

/// How bytes come back wrong from a drive that says that all is well.
#[derive(Debug, Clone)]
pub enum Damage {
    /// Every byte of the range has these bits inverted.
    Flip(Range<u64>, u8),
    /// The range reads as zeros.
    Zero(Range<u64>),
    /// Two blocks of this length, at these offsets, are read in each other's place.
    Swap(u64, u64, u64),
    /// The range reads as bytes that were never written.
    Garbage(Range<u64>),
    /// The first read that touches the range has these bits inverted in it; all later ones are right.
    Once(Range<u64>, u8),
    /// Every read has other bits inverted in the range.
    Flicker(Range<u64>, u8),
}

/// What a drive that is smaller than it says does with what lies beyond its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beyond {
    /// It starts again at the beginning.
    Wraps,
    /// Writes are dropped, reads give zeros.
    Lost,
    /// Everything is the last block of this length before the end.
    Aliases(u64),
    /// Of what is written only so many bytes, the last ones, can be read; the rest gives zeros.
    Cached(u64),
}

/// The sector in which a cache keeps what was written.
const SECTOR: u64 = 512;

/// What a drive keeps of what was written beyond its end.
#[derive(Default)]
struct Kept {
    /// What a sector holds, and how often it stands among the ages.
    sectors: HashMap<u64, (Box<[u8]>, u32)>,
    /// Sectors by age, the oldest first; those that were written again stand there again.
    ages: VecDeque<u64>,
}

#[derive(Default)]
struct State {
    delay: Duration,
    hanging: bool,
    released_ns: u64,
    vanished: Option<i32>,
    errors: Vec<(Kind, Option<Range<u64>>, i32)>,
    damages: Vec<Damage>,
    /// So many more bytes of writes are kept; all later ones are dropped.
    kept_writes: Option<u64>,
    /// What was dropped so.
    dropped: Vec<Range<u64>>,
    end: Option<(u64, Beyond)>,
    kept: Kept,
}

/// The faults of one drive; none at first.
#[derive(Default)]
pub struct Faults {
    state: Mutex<State>,
    released: Condvar,
}

impl Faults {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Heals the drive and releases what hangs.
    pub fn clear(&self) {
        self.release();
        let mut state = self.lock();
        *state = State { released_ns: state.released_ns, ..State::default() };
    }

    /// Every request takes so much longer.
    pub fn delay(&self, delay: Duration) {
        self.lock().delay = delay;
    }

    /// Requests of a kind fail with an errno, everywhere or where they touch a range of bytes.
    pub fn fail(&self, kind: Kind, range: Option<Range<u64>>, errno: i32) {
        self.lock().errors.push((kind, range, errno));
    }

    /// Requests wait until `release`.
    pub fn hang(&self) {
        self.lock().hanging = true;
    }

    /// Lets waiting requests go on.
    pub fn release(&self) {
        let mut state = self.lock();
        if state.hanging {
            state.hanging = false;
            state.released_ns = now_ns();
            self.released.notify_all();
        }
    }

    /// The drive is unplugged: from now on every request fails at once with this errno.
    pub fn vanish(&self, errno: i32) {
        self.lock().vanished = Some(errno);
    }

    /// Reads come back damaged.
    pub fn damage(&self, damage: Damage) {
        self.lock().damages.push(damage);
    }

    /// The drive keeps so many more bytes of what is written, and drops all that follows without a word.
    pub fn drop_writes_after(&self, bytes: u64) {
        self.lock().kept_writes = Some(bytes);
    }

    /// Where writes were dropped.
    pub fn dropped(&self) -> Vec<Range<u64>> {
        self.lock().dropped.clone()
    }

    /// The drive stores less than it says.
    pub fn stores_only(&self, bytes: u64, beyond: Beyond) {
        let mut state = self.lock();
        (state.end, state.kept) = (Some((bytes, beyond)), Kept::default());
    }

    /// Waits while the drive hangs; returns when it was released last.
    pub fn wait_while_hanging(&self) -> u64 {
        let state = self.released.wait_while(self.lock(), |state| state.hanging).unwrap_or_else(PoisonError::into_inner);
        state.released_ns
    }

    /// The errno when the drive is gone.
    pub fn vanished(&self) -> Option<i32> {
        self.lock().vanished
    }

    /// The extra time of a request, and the errno that it fails with.
    pub fn verdict(&self, kind: Kind, range: &Range<u64>) -> (Duration, Option<i32>) {
        let state = self.lock();
        let errno = state.errors.iter().find(|(of, place, _)| *of == kind && place.as_ref().is_none_or(|place| overlap(place, range).is_some()));
        (state.delay, errno.map(|&(.., errno)| errno))
    }

    /// Writes as this drive does.
    pub fn write(&self, store: &Store, offset: u64, data: &[u8]) {
        let data = &data[..self.keeps(offset, data.len() as u64) as usize];
        self.each_part(offset, data.len(), |at, part| match at {
            Some(at) => store.write(at, &data[part]),
            None => self.keep(offset + part.start as u64, &data[part]),
        });
    }

    /// Reads as this drive does.
    pub fn read(&self, store: &Store, offset: u64, buffer: &mut [u8]) {
        self.each_part(offset, buffer.len(), |at, part| match at {
            Some(at) => store.read(at, &mut buffer[part]),
            None => self.recall(offset + part.start as u64, &mut buffer[part]),
        });
        let range = offset..offset + buffer.len() as u64;
        let within = |place: &Range<u64>| overlap(place, &range).map(|hit| (hit.start - offset) as usize..(hit.end - offset) as usize);
        let invert = |bytes: &mut [u8], bits: u8| bytes.iter_mut().for_each(|byte| *byte ^= bits);
        self.lock().damages.retain_mut(|damage| {
            match damage {
                Damage::Flip(place, bits) => within(place).into_iter().for_each(|hit| invert(&mut buffer[hit], *bits)),
                Damage::Zero(place) => within(place).into_iter().for_each(|hit| buffer[hit].fill(0)),
                Damage::Garbage(place) => {
                    if let Some(hit) = within(place) {
                        let first = offset + hit.start as u64;
                        for (byte, at) in buffer[hit].iter_mut().zip(first..) {
                            *byte = (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8;
                        }
                    }
                }
                Damage::Once(place, bits) => {
                    if let Some(hit) = within(place) {
                        invert(&mut buffer[hit], *bits);
                        return false;
                    }
                }
                Damage::Flicker(place, bits) => {
                    if let Some(hit) = within(place) {
                        invert(&mut buffer[hit], *bits);
                        // Never none.
                        *bits = bits.wrapping_add(1).max(1);
                    }
                }
                Damage::Swap(first, second, length) => {
                    for (here, there) in [(*first, *second), (*second, *first)] {
                        if let Some(hit) = within(&(here..here + *length)) {
                            store.read(offset + hit.start as u64 - here + there, &mut buffer[hit]);
                        }
                    }
                }
            }
            true
        });
    }

    /// How much of a write is kept, from its beginning on.
    fn keeps(&self, offset: u64, length: u64) -> u64 {
        let mut state = self.lock();
        let Some(left) = &mut state.kept_writes else { return length };
        let kept = length.min(*left / SECTOR * SECTOR);
        *left -= kept;
        if kept < length {
            *left = 0;
            state.dropped.push(offset + kept..offset + length);
        }
        kept
    }

    /// Calls `visit` with where each part of a range is stored, if anywhere.
    fn each_part(&self, offset: u64, length: usize, mut visit: impl FnMut(Option<u64>, Range<usize>)) {
        let Some((end, beyond)) = self.lock().end else { return visit(Some(offset), 0..length) };
        let mut done = 0;
        while done < length {
            let place = offset + done as u64;
            // Where it is stored, and how much follows there.
            let (at, follow) = match beyond {
                _ if place < end => (Some(place), end - place),
                Beyond::Wraps => (Some(place % end), end - place % end),
                Beyond::Aliases(block) => (Some(end - block + place % block), block - place % block),
                Beyond::Lost | Beyond::Cached(_) => (None, u64::MAX),
            };
            let take = usize::try_from(follow).unwrap_or(usize::MAX).min(length - done);
            visit(at, done..done + take);
            done += take;
        }
    }

    /// Keeps what is written beyond the end, where this drive has a cache for it.
    fn keep(&self, offset: u64, data: &[u8]) {
        let mut state = self.lock();
        let Some((_, Beyond::Cached(bytes))) = state.end else { return };
        let Kept { sectors, ages } = &mut state.kept;
        for (sector, data) in (offset / SECTOR..).zip(data.chunks(SECTOR as usize)) {
            let times = sectors.get(&sector).map_or(0, |(_, times)| *times);
            sectors.insert(sector, (data.into(), times + 1));
            ages.push_back(sector);
            while ages.len() as u64 > bytes / SECTOR {
                let Some(oldest) = ages.pop_front() else { break };
                match sectors.get_mut(&oldest) {
                    Some((_, times)) if *times > 1 => *times -= 1,
                    _ => drop(sectors.remove(&oldest)),
                }
            }
        }
    }

    /// Reads what was kept; zeros where nothing is.
    fn recall(&self, offset: u64, buffer: &mut [u8]) {
        let state = self.lock();
        for (sector, data) in (offset / SECTOR..).zip(buffer.chunks_mut(SECTOR as usize)) {
            match state.kept.sectors.get(&sector) {
                Some((kept, _)) => data.copy_from_slice(&kept[..data.len()]),
                None => data.fill(0),
            }
        }
    }
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> Option<Range<u64>> {
    let both = one.start.max(other.start)..one.end.min(other.end);
    (!both.is_empty()).then_some(both)
}
