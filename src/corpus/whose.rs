//! Whose bytes are these? Wrong sectors are looked for in all that a corpus should hold, which is made again for that once.
//!
//! What is found wrong is kept and the corpus streams by, not the other way round: memory grows with the damage, up to a limit, and never with the corpus.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::parts::Contents;
use super::stream::CHUNK_BYTES;
use super::{Corpus, FileMeta};
use crate::error::Result;
use crate::progress::Cancel;

/// The smallest unit that drives lose or put elsewhere.
pub const SECTOR: usize = 512;
/// So many sectors are looked for, about 12 MB of memory; of further ones it stays unknown whose they are.
const MOST: usize = 1 << 18;
/// So much of a corpus is made again; whose the bytes of further files are stays unknown.
const LONGEST: u64 = 64 << 30;
/// Part of a sector that is compared first. Not its beginning, which is the same in many files of a format.
const KEY_AT: usize = SECTOR / 2 - 4;
/// Bits of the sieve that most sectors fail at: small enough for a cache of the processor.
const SIEVE_BITS: u32 = 20;

/// A place in a corpus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: Arc<FileMeta>,
    /// Where in it.
    pub offset: u64,
}

impl Place {
    /// The place so many bytes further on.
    #[must_use]
    pub fn after(&self, bytes: u64) -> Self {
        Self { file: Arc::clone(&self.file), offset: self.offset + bytes }
    }
}

type Short = [u8; 16];

/// A sector that was found and is not what it should be.
struct Lost {
    key: Option<u64>,
    digest: Short,
    len: u16,
}

/// Sectors that are looked for.
pub struct Search<'a> {
    corpus: &'a Corpus,
    contents: Contents,
    key: [u8; 32],
    lost: Vec<Lost>,
    places: Vec<Option<Place>>,
    is_whole: bool,
}

impl<'a> Search<'a> {
    /// Looks in a corpus.
    ///
    /// # Errors
    /// `Refused` when the corpus can't be made.
    pub fn new(corpus: &'a Corpus) -> Result<Self> {
        Ok(Self { contents: corpus.contents()?, key: corpus.key(), corpus, lost: Vec::new(), places: Vec::new(), is_whole: true })
    }

    /// Makes bytes of a file as they should be.
    pub fn fill(&self, file: &FileMeta, offset: u64, buffer: &mut [u8]) {
        self.contents.fill(&file.bytes(&self.key), offset, buffer);
    }

    /// Remembers a sector to look for, or the part of one with which a file ends; `None` when there are too many already.
    pub fn add(&mut self, found: &[u8]) -> Option<u32> {
        if self.lost.len() >= MOST {
            return None;
        }
        let id = u32::try_from(self.lost.len()).ok()?;
        self.lost.push(Lost { key: key(found), digest: short(found), len: u16::try_from(found.len()).ok()? });
        Some(id)
    }

    /// Makes the corpus again and looks at every sector of it.
    ///
    /// # Errors
    /// `Interrupted`, or when the corpus can't be made.
    pub fn run(&mut self, threads: usize, cancel: &Cancel) -> Result<()> {
        let mut index: Vec<(u64, usize)> = self.lost.iter().enumerate().filter_map(|(id, lost)| Some((lost.key?, id))).collect();
        if index.is_empty() {
            return Ok(());
        }
        index.sort_unstable();
        let mut sieve = vec![0_u64; 1 << (SIEVE_BITS - 6)];
        index.iter().for_each(|(key, _)| sieve[hole(*key).0] |= hole(*key).1);
        self.is_whole = self.corpus.byte_count() <= LONGEST;
        let mut left = LONGEST;
        let pieces = self.corpus.files()?.take_while(move |file| left.checked_sub(file.len).map(|rest| left = rest).is_some()).flat_map(|file| {
            let file = Arc::new(file);
            (0..file.len).step_by(CHUNK_BYTES).map(move |offset| (Arc::clone(&file), offset))
        });
        let (pieces, places) = (Mutex::new(pieces), Mutex::new(vec![None; self.lost.len()]));
        let this = &*self;
        let look = || {
            let mut buffer = vec![0; CHUNK_BYTES];
            while cancel.signal().is_none() {
                let Some((file, start)) = pieces.lock().unwrap_or_else(PoisonError::into_inner).next() else { return };
                let len = usize::try_from(file.len - start).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
                // What follows the end of a file in its last block is zero.
                let padded = len.next_multiple_of(SECTOR);
                buffer[len..padded].fill(0);
                this.fill(&file, start, &mut buffer[..len]);
                for (sector, offset) in buffer[..padded].chunks(SECTOR).zip((start..).step_by(SECTOR)) {
                    let Some(key) = key(sector).filter(|key| sieve[hole(*key).0] & hole(*key).1 != 0) else { continue };
                    let first = index.partition_point(|(known, _)| *known < key);
                    for (_, id) in index[first..].iter().take_while(|(known, _)| *known == key) {
                        if this.lost[*id].digest == short(sector) {
                            let place = Place { file: Arc::clone(&file), offset };
                            let mut places = places.lock().unwrap_or_else(PoisonError::into_inner);
                            // Of several the first, whichever thread comes to it first.
                            if places[*id].as_ref().is_none_or(|known| order(&place) < order(known)) {
                                places[*id] = Some(place);
                            }
                        }
                    }
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..threads.max(1) {
                scope.spawn(look);
            }
        });
        cancel.check()?;
        self.places = places.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(())
    }

    /// Where in the corpus a sector was found: the first place of all.
    #[must_use]
    pub fn place(&self, id: u32) -> Option<&Place> {
        self.places.get(id as usize)?.as_ref()
    }

    /// Whether a sector that was not found is nowhere in the corpus. Parts of sectors are not looked for.
    #[must_use]
    pub fn is_nowhere(&self, id: u32) -> bool {
        self.is_whole && self.lost.get(id as usize).is_some_and(|lost| lost.key.is_some())
    }

    /// Whether a sector is what stands at a place.
    #[must_use]
    pub fn is_at(&self, id: u32, place: &Place) -> bool {
        let Some((lost, left)) = self.lost.get(id as usize).zip(place.file.len.checked_sub(place.offset)) else { return false };
        let mut sector = [0; SECTOR];
        let len = usize::from(lost.len);
        let made = usize::try_from(left).map_or(len, |left| left.min(len));
        self.fill(&place.file, place.offset, &mut sector[..made]);
        made > 0 && short(&sector[..len]) == lost.digest
    }
}

/// The key of a whole sector.
fn key(sector: &[u8]) -> Option<u64> {
    let bytes = sector.get(KEY_AT..).filter(|_| sector.len() == SECTOR)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}

/// The bit of the sieve that belongs to a key: word and mask.
fn hole(key: u64) -> (usize, u64) {
    let bit = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - SIEVE_BITS);
    ((bit / 64) as usize, 1 << (bit % 64))
}

fn short(data: &[u8]) -> Short {
    let mut short = Short::default();
    short.copy_from_slice(&blake3::hash(data).as_bytes()[..16]);
    short
}

fn order(place: &Place) -> (u64, u64) {
    (place.file.ordinal, place.offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Environment;
    use crate::corpus::catalogue::corpus;
    use crate::units::Scale;

    #[test]
    fn bytes_of_any_place_are_found_and_others_are_not() {
        let corpus = corpus("jpg", 0, Scale::from_hundredths(15), &Environment::default()).unwrap();
        let files: Vec<FileMeta> = corpus.files().unwrap().collect();
        let mut search = Search::new(&corpus).unwrap();
        let at = |search: &Search<'_>, file: usize, offset: u64, len: usize| {
            let mut bytes = vec![0; len];
            search.fill(&files[file], offset, &mut bytes);
            bytes
        };
        let middle = search.add(&at(&search, 7, 300 * 512, SECTOR)).unwrap();
        let last_start = files[3].len / 512 * 512;
        let mut tail = at(&search, 3, last_start, (files[3].len - last_start) as usize);
        tail.resize(SECTOR, 0);
        let end = search.add(&tail).unwrap();
        let garbage = search.add(&[0x5A; SECTOR]).unwrap();
        let part = search.add(&at(&search, 2, 1024, 100)).unwrap();
        search.run(2, &Cancel::default()).unwrap();
        let place = |id| search.place(id).map(|place| (place.file.path.clone(), place.offset));
        assert_eq!(place(middle), Some((files[7].path.clone(), 300 * 512)));
        assert_eq!(place(end), Some((files[3].path.clone(), last_start)));
        assert_eq!((place(garbage), place(part)), (None, None));
        assert!(search.is_nowhere(garbage) && !search.is_nowhere(part));
        let second = Place { file: Arc::new(files[2].clone()), offset: 1024 };
        assert!(search.is_at(part, &second) && !search.is_at(part, &second.after(512)) && !search.is_at(garbage, &second));
        assert!(!search.is_at(part, &second.after(files[2].len)));
    }
}
