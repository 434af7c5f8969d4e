//! Data that a drive has never seen, of any amount: to fill it, and to write its free space all over.

use std::path::Path;

use crate::corpus::Corpus;
use crate::corpus::content::{ContentKind, ContentSpec};
use crate::corpus::spec::{CorpusSpec, PartSpec, SizesSpec, TreeSpec};
use crate::error::{Error, Result};
use crate::platform::{Clock, Space};
use crate::units::Scale;

/// Bytes in a file of a filling: what every file system can hold.
const FILE_BYTES: u64 = 1_000_000_000;

/// Bytes that are missing until a file system is so full: the share of its size that an ordinary user can't write to any more.
#[must_use]
pub fn missing_bytes(percent: u8, space: Space) -> u64 {
    let (Some(total), Some(available)) = (space.total_bytes, space.available_bytes) else { return 0 };
    let wanted = u128::from(total) * u128::from(percent) / 100;
    u64::try_from(wanted).unwrap_or(u64::MAX).saturating_sub(total.saturating_sub(available))
}

/// What fills a file system to a share of its size.
///
/// # Errors
/// `Refused` where it is as full already, or does not say what space it has.
pub fn up_to(percent: u8, space: Space, clock: &dyn Clock, scale: Scale, place: &Path) -> Result<Corpus> {
    if space.total_bytes.is_none() || space.available_bytes.is_none() {
        return Err(Error::Refused(format!("{} does not say how much space it has: how much would fill it is not known", place.display())));
    }
    match missing_bytes(percent, space) {
        0 => Err(Error::Refused(format!("{} is {percent} % full already: name a larger share with --fill", place.display()))),
        bytes => fresh(bytes, clock, scale),
    }
}

/// So many bytes that nobody has written before: their seed is the time.
///
/// # Errors
/// As of any corpus.
pub fn fresh(bytes: u64, clock: &dyn Clock, scale: Scale) -> Result<Corpus> {
    let nanoseconds = clock.wall().as_nanosecond().unsigned_abs();
    let seed = u64::try_from(nanoseconds & u128::from(u64::MAX)).unwrap_or(0);
    let spec = CorpusSpec {
        name: "fill".to_owned(),
        version: 1,
        summary: "files of random data of about 1 GB".to_owned(),
        noun: "files".to_owned(),
        parts: vec![PartSpec {
            directory: String::new(),
            files: bytes.div_ceil(FILE_BYTES).max(1),
            bytes,
            sizes: SizesSpec::Lognormal { sigma_hundredths: 0, least_bytes: 0 },
            tree: TreeSpec::Numbered { prefix: "fill-".to_owned(), suffix: ".bin".to_owned() },
            content: ContentSpec::of(ContentKind::Random),
        }],
    };
    Corpus::new(spec, seed, scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::FakeClock;

    fn space(total: u64, available: u64) -> Space {
        Space { total_bytes: Some(total), free_bytes: Some(available), available_bytes: Some(available), available_inodes: None }
    }

    #[test]
    fn what_is_missing_is_a_share_of_the_whole_less_what_is_used() {
        assert_eq!(missing_bytes(50, space(1_000, 900)), 400);
        assert_eq!(missing_bytes(50, space(1_000, 400)), 0);
        assert_eq!(missing_bytes(98, space(u64::MAX, u64::MAX)), u64::MAX / 100 * 98 + 14);
        assert_eq!(missing_bytes(50, Space::default()), 0);
    }

    #[test]
    fn a_filling_has_all_its_bytes_in_files_of_any_file_system_and_is_new_each_time() {
        let clock = FakeClock::default();
        let place = Path::new("/there");
        let corpus = up_to(50, space(10_000_000_000, 10_000_000_000), &clock, Scale::FULL, place).unwrap();
        assert_eq!((corpus.byte_count(), corpus.file_count()), (5_000_000_000, 5));
        assert!(corpus.files().unwrap().all(|file| file.len < u64::from(u32::MAX)));
        clock.sleep(std::time::Duration::from_nanos(1));
        assert_ne!(fresh(1, &clock, Scale::FULL).unwrap().seed, corpus.seed);
        assert!(up_to(50, space(10, 5), &clock, Scale::FULL, place).is_err() && up_to(50, Space::default(), &clock, Scale::FULL, place).is_err());
    }
}
