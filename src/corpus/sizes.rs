//! File sizes: drawn from the spec's spread, adding up to the corpus's bytes exactly, one after another in constant memory.

use super::random::{Choices, Shares};
use super::spec::SizesSpec;

/// The sizes of a corpus's files in manifest order.
pub struct Sizes<'a> {
    spec: &'a SizesSpec,
    choices: Choices,
    shares: Shares,
    least: u64,
    left: u64,
}

impl<'a> Sizes<'a> {
    /// The sizes of `files` files of `bytes` in all, none smaller than `least`.
    ///
    /// # Errors
    /// When there are too few bytes for so many files.
    pub fn new(spec: &'a SizesSpec, key: &[u8; 32], files: u64, bytes: u64, least: u64) -> Result<Self, String> {
        let least = match spec {
            // At a small scale the number of files is rounded up: what the spec wishes is met as far as the bytes suffice.
            SizesSpec::Lognormal { least_bytes, .. } => least.max((*least_bytes).min(bytes / files.max(1))),
            SizesSpec::Quantiles(_) => least,
        };
        let reserved = least.checked_mul(files).filter(|&reserved| reserved <= bytes);
        let Some(reserved) = reserved else {
            return Err(format!("{bytes} bytes are too few for {files} files of at least {least} bytes: use a larger --scale"));
        };
        let mut choices = Choices::new(key, "sizes");
        let mut weights = 0_u128;
        for _ in 0..files {
            weights += u128::from(weight(spec, &mut choices, least));
        }
        Ok(Self { spec, choices: Choices::new(key, "sizes"), shares: Shares::new(bytes - reserved, weights), least, left: files })
    }
}

impl Iterator for Sizes<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        let weight = weight(self.spec, &mut self.choices, self.least);
        Some(self.least + self.shares.next(weight))
    }
}

/// How much of the bytes above the least size a file draws, on a common scale.
fn weight(spec: &SizesSpec, choices: &mut Choices, least: u64) -> u64 {
    match spec {
        SizesSpec::Lognormal { sigma_hundredths, .. } => {
            let sigma = f64::from(*sigma_hundredths) / 100.0;
            // Between e^-12 and e^12 (sigma is at most 4, the deviate at most 3): fits 2^18..2^38 and keeps six digits.
            let scaled = libm::exp(sigma * choices.normal()) * f64::from(1 << 20);
            (scaled as u64).max(1)
        }
        SizesSpec::Quantiles(table) => {
            // A random place between two neighbours of the table.
            let steps = (table.len() - 1) as u64;
            let at = choices.below(steps << 16);
            let (index, part) = ((at >> 16) as usize, at & 0xFFFF);
            let (low, high) = (table[index], table[index + 1]);
            let size = low + u64::try_from((u128::from(high - low) * u128::from(part)) >> 16).unwrap_or(0);
            // Never 0: were all of them, the bytes would be shared out to nobody.
            (size.saturating_sub(least).min(1 << 40) << 10) + 1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sizes_add_up_exactly_and_keep_the_least(
            seed: [u8; 32], files in 1_u64..500, sigma in 0_u32..=400, least in 0_u64..10_000, extra in 0_u64..1 << 40
        ) {
            let spec = SizesSpec::Lognormal { sigma_hundredths: sigma, least_bytes: least };
            let bytes = files * least + extra;
            let sizes: Vec<u64> = Sizes::new(&spec, &seed, files, bytes, 0).unwrap().collect();
            prop_assert_eq!(sizes.len() as u64, files);
            prop_assert_eq!(sizes.iter().sum::<u64>(), bytes);
            prop_assert!(sizes.iter().all(|&size| size >= least));
        }
    }

    #[test]
    fn quantiles_reproduce_their_table() {
        let table = vec![0, 100, 200, 300, 10_000];
        let mean = (50 + 150 + 250 + 5150) / 4;
        let spec = SizesSpec::Quantiles(table);
        let mut sizes: Vec<u64> = Sizes::new(&spec, &[3; 32], 40_000, 40_000 * mean, 0).unwrap().collect();
        sizes.sort_unstable();
        for (quarter, expected) in [(10_000, 100_u64), (20_000, 200), (30_000, 300)] {
            assert!(sizes[quarter].abs_diff(expected) <= 12, "{} instead of {expected}", sizes[quarter]);
        }
    }

    #[test]
    fn a_wish_for_larger_files_than_there_are_bytes_for_gives_equal_ones() {
        let spec = SizesSpec::Lognormal { sigma_hundredths: 100, least_bytes: 4_000 };
        let sizes: Vec<u64> = Sizes::new(&spec, &[0; 32], 3, 10_000, 0).unwrap().collect();
        assert!(sizes.iter().sum::<u64>() == 10_000 && sizes.iter().all(|size| (3_333..3_335).contains(size)), "{sizes:?}");
    }

    #[test]
    fn too_few_bytes_are_refused() {
        let spec = SizesSpec::Lognormal { sigma_hundredths: 10, least_bytes: 0 };
        assert!(Sizes::new(&spec, &[0; 32], 10, 999, 100).is_err());
    }
}
