//! Whether what is to be written fits, asked before anything is written.

use crate::platform::Space;
use crate::units::{Bytes, Scale, count};
use crate::{Error, Result};

/// What is to be written to a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Need {
    /// Bytes in files.
    pub bytes: u64,
    /// Files and directories.
    pub inodes: u64,
    /// The length of the largest file.
    pub largest_file: u64,
}

/// At most this is left free for the file system's own needs besides `OVERHEAD_BYTES` for each name.
const MARGIN_BYTES: u64 = 64_000_000;
/// What a name costs on average beyond its bytes: the unused end of its last block, its entry and its inode.
const OVERHEAD_BYTES: u64 = 4096;

impl Need {
    /// The free space that this takes: its bytes, 4 KiB for each name, and a margin of 1 % but at most 64 MB.
    #[must_use]
    pub fn space_bytes(&self) -> u64 {
        let margin = (self.bytes / 100).min(MARGIN_BYTES);
        self.bytes.saturating_add(self.inodes.saturating_mul(OVERHEAD_BYTES)).saturating_add(margin)
    }
}

/// What a drive can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Room {
    /// Its space now.
    pub space: Space,
    /// The largest file that it can hold, where it has a limit.
    pub max_file_bytes: Option<u64>,
}

impl Room {
    /// Refuses what does not fit, naming what is there, what is needed and the largest `--scale` that would fit. `need` tells what a scale needs: more for a larger one.
    ///
    /// `Some` is a warning: the file system does not say what space it has, so that only writing will tell.
    ///
    /// # Errors
    /// `Refused`, for `place`, which is how a person knows the directory.
    pub fn check(&self, place: &str, scale: Scale, need: &dyn Fn(Scale) -> Need) -> Result<Option<String>> {
        let wanted = need(scale);
        let Some(reason) = self.obstacle(&wanted) else {
            return Ok(self
                .space
                .available_bytes
                .is_none()
                .then(|| format!("{place} does not say how much space it has; {} will be written and may not fit", Bytes(wanted.space_bytes()))));
        };
        let advice = match largest_scale_below(scale, |scale| self.obstacle(&need(scale)).is_none()) {
            Some(scale) => format!("--scale {scale}% fits"),
            None => "no --scale makes it fit".to_owned(),
        };
        Err(Error::Refused(format!("{place} {reason}; {advice}")))
    }

    fn obstacle(&self, need: &Need) -> Option<String> {
        let bytes = need.space_bytes();
        if let Some(limit) = self.max_file_bytes.filter(|&limit| need.largest_file > limit) {
            return Some(format!(
                "cannot hold a file of {}: files on it end at {} (FAT32: 4 GiB less one byte)",
                Bytes(need.largest_file),
                Bytes(limit)
            ));
        }
        if let Some(available) = self.space.available_bytes.filter(|&available| bytes > available) {
            return Some(format!("has {} available, but {} are needed", Bytes(available), Bytes(bytes)));
        }
        let available = self.space.available_inodes.filter(|&available| need.inodes > available)?;
        Some(format!("has room for {} more files (inodes), but {} are needed", count(available), count(need.inodes)))
    }
}

/// The largest scale below another for which `fits` holds, exact to the hundredth of a percent. `fits` must not hold again above one for which it does not.
#[must_use]
pub fn largest_scale_below(scale: Scale, fits: impl Fn(Scale) -> bool) -> Option<Scale> {
    // The smallest scale, 0.01 %, is one hundredth.
    let of = |hundredths: u32| format!("{}.{:02}", hundredths / 100, hundredths % 100).parse::<Scale>().ok();
    let (mut fitting, mut too_large) = (0, scale.hundredths());
    while too_large - fitting > 1 {
        let middle = fitting.midpoint(too_large);
        if of(middle).is_some_and(&fits) { fitting = middle } else { too_large = middle }
    }
    of(fitting)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GB: u64 = 1_000_000_000;

    fn room(available_bytes: Option<u64>, available_inodes: Option<u64>, max_file_bytes: Option<u64>) -> Room {
        Room { space: Space { total_bytes: available_bytes, free_bytes: available_bytes, available_bytes, available_inodes }, max_file_bytes }
    }

    fn linear(bytes: u64, inodes: u64, largest: u64) -> impl Fn(Scale) -> Need {
        move |scale| Need { bytes: scale.of(bytes), inodes: scale.of(inodes), largest_file: scale.of(largest) }
    }

    fn refusal(room: Room, need: &dyn Fn(Scale) -> Need) -> String {
        let error = room.check("/media/stick", Scale::FULL, need).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        error.to_string()
    }

    #[test]
    fn a_refusal_names_what_is_there_what_is_needed_and_what_fits() {
        let need = linear(8 * GB, 1000, GB);
        assert_eq!(room(Some(9 * GB), Some(2000), None).check("/media/stick", Scale::FULL, &need).unwrap(), None);
        // At 61.56 %: 4.9248 GB + 616 × 4096 B + 49.248 MB = 4.9766 GB; at 61.57 %: 4.9774 GB.
        assert_eq!(
            refusal(room(Some(4_977_000_000), None, None), &need),
            "/media/stick has 4.98 GB available, but 8.07 GB are needed; --scale 61.56% fits"
        );
        assert_eq!(
            refusal(room(Some(9 * GB), Some(50), None), &need),
            "/media/stick has room for 50 more files (inodes), but 1,000 are needed; --scale 5% fits"
        );
        assert!(refusal(room(Some(100), None, None), &need).ends_with("; no --scale makes it fit"));
    }

    #[test]
    fn field_d07_the_file_limit_of_fat_is_checked_to_the_byte() {
        let fat = room(Some(100 * GB), None, Some(u64::from(u32::MAX)));
        assert_eq!(fat.check("x", Scale::FULL, &linear(5 * GB, 1, (1 << 32) - 1)).unwrap(), None);
        assert_eq!(
            refusal(fat, &linear(5 * GB, 1, 1 << 33)),
            "/media/stick cannot hold a file of 8.59 GB: files on it end at 4.29 GB (FAT32: 4 GiB less one byte); --scale 49.99% fits"
        );
    }

    #[test]
    fn field_d05_unknown_space_is_a_warning_and_no_obstacle() {
        let warning = room(None, None, None).check("/mnt/share", Scale::FULL, &linear(u64::MAX, 10, 1)).unwrap();
        assert!(warning.unwrap().starts_with("/mnt/share does not say how much space it has"));
    }

    proptest! {
        #[test]
        fn the_scale_named_fits_and_the_next_does_not(bytes in 1..u64::MAX, inodes in 1..u64::MAX, available in any::<u64>(), left in 1..u64::MAX) {
            let room = room(Some(available), Some(left), None);
            let need = linear(bytes, inodes, 1);
            let fits = |scale| room.obstacle(&need(scale)).is_none();
            if !fits(Scale::FULL) {
                let best = largest_scale_below(Scale::FULL, fits);
                prop_assert!(best.is_none_or(fits));
                let next = best.map_or(1, |best| best.hundredths() + 1);
                let next = format!("{}.{:02}", next / 100, next % 100).parse().unwrap();
                prop_assert!(!fits(next));
            }
        }
    }
}
