//! Latencies: an HDR histogram for their distribution, and count, sum and extremes kept exactly beside it.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

use crate::{Error, Result};

/// The longest latency that has a bucket of its own, ns: one hour. Longer ones are counted in the last bucket.
const HIGHEST_NS: u64 = 3_600_000_000_000;
/// Significant decimal digits of a bucket.
const DIGITS: u8 = 3;
/// The head of the V2 encoding: cookie, length of the payload, offset, digits, lowest, highest, ratio.
const HEADER: usize = 40;

/// Latencies in ns, from 1 ns to 1 h at three significant digits.
#[derive(Clone, PartialEq)]
pub struct Histogram {
    buckets: hdrhistogram::Histogram<u64>,
    sum_ns: u64,
    extremes: Option<(u64, u64)>,
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram").field("n", &self.n()).field("sum_ns", &self.sum_ns).field("extremes", &self.extremes).finish_non_exhaustive()
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty one.
    #[expect(clippy::expect_used, reason = "the bounds are constants")]
    #[must_use]
    pub fn new() -> Self {
        let buckets = hdrhistogram::Histogram::new_with_bounds(1, HIGHEST_NS, DIGITS).expect("bounds that a histogram accepts");
        Self { buckets, sum_ns: 0, extremes: None }
    }

    /// Counts one latency.
    pub fn record(&mut self, ns: u64) {
        self.buckets.saturating_record(ns);
        self.include(ns, ns, ns);
    }

    /// Counts all that another one counted.
    pub fn merge(&mut self, other: &Self) {
        // Both have the same bounds, which is all that adding asks for.
        let _ = self.buckets.add(&other.buckets);
        if let Some((min, max)) = other.extremes {
            self.include(other.sum_ns, min, max);
        }
    }

    fn include(&mut self, sum_ns: u64, min: u64, max: u64) {
        self.sum_ns = self.sum_ns.saturating_add(sum_ns);
        self.extremes = Some(self.extremes.map_or((min, max), |(low, high)| (low.min(min), high.max(max))));
    }

    /// How many were counted.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.buckets.len()
    }

    /// Their sum, exact, ns.
    #[must_use]
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// The shortest, exact, ns.
    #[must_use]
    pub fn min_ns(&self) -> Option<u64> {
        self.extremes.map(|(min, _)| min)
    }

    /// The longest, exact, ns.
    #[must_use]
    pub fn max_ns(&self) -> Option<u64> {
        self.extremes.map(|(_, max)| max)
    }

    /// The latency that a share `p` (0 to 1) of all does not exceed, ns, to three digits; `None` when fewer than 10/(1−p) were counted, since the
    /// figure would then rest on fewer than ten of them.
    #[must_use]
    pub fn percentile(&self, p: f64) -> Option<u64> {
        // The tolerance is for p: 1 − 0.9 is a little less than 0.1.
        let above = self.n() as f64 * (1.0 - p) * (1.0 + 1e-9);
        let (min, max) = self.extremes?;
        let allowed = (0.0..1.0).contains(&p) && above >= 10.0;
        allowed.then(|| self.buckets.value_at_quantile(p).clamp(min, max))
    }

    /// How many were longer than this, and about how long these were together, ns, to three digits.
    #[must_use]
    pub fn above(&self, limit_ns: u64) -> (u64, u64) {
        let longer = self.buckets.iter_recorded().filter(|bucket| bucket.value_iterated_to() > limit_ns);
        longer.fold((0, 0), |(n, sum), bucket| {
            let here = bucket.count_at_value();
            (n + here, sum + here.saturating_mul(bucket.value_iterated_to()))
        })
    }

    /// The distribution in the V2 encoding of HdrHistogram, base64.
    #[must_use]
    pub fn to_base64(&self) -> String {
        let mut encoded = Vec::new();
        // Writing to memory cannot fail, and no count comes near the 2^63 that cannot be encoded.
        let _ = V2Serializer::new().serialize(&self.buckets, &mut encoded);
        STANDARD.encode(encoded)
    }

    /// A histogram from its encoding and what was kept beside it.
    ///
    /// # Errors
    /// [`Error::Refused`] when the text is not what [`Self::to_base64`] makes, or the figures beside it do not fit it.
    pub fn from_base64(text: &str, sum_ns: u64, min_ns: Option<u64>, max_ns: Option<u64>) -> Result<Self> {
        let refused = |why: &str| Error::Refused(format!("a histogram of this result is damaged: {why}"));
        let data = STANDARD.decode(text).map_err(|error| refused(&error.to_string()))?;
        let empty = Self::new();
        // The decoder trusts the head with its memory and long numbers with its arithmetic, so both are looked at first.
        let (header, payload) = data.split_at_checked(HEADER).ok_or_else(|| refused("it is too short"))?;
        let ours = STANDARD.decode(empty.to_base64()).unwrap_or_default();
        let same_bounds = ours.get(..4) == header.get(..4) && ours.get(8..HEADER) == header.get(8..);
        let length = header.get(4..8).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
        if !same_bounds || length.and_then(|length| usize::try_from(length).ok()) != Some(payload.len()) {
            return Err(refused("its head is not that of a histogram from 1 ns to 1 h with 3 digits"));
        }
        if payload.windows(6).any(|window| window.iter().all(|byte| byte & 0x80 != 0)) {
            return Err(refused("a count is beyond all bounds"));
        }
        let decoded = Deserializer::new().deserialize(&mut data.as_slice()).map_err(|error| refused(&error.to_string()))?;
        let mut histogram = empty;
        histogram.buckets.add(&decoded).map_err(|error| refused(&error.to_string()))?;
        histogram.sum_ns = sum_ns;
        histogram.extremes = min_ns.zip(max_ns);
        if histogram.extremes.is_some_and(|(min, max)| min > max) || histogram.extremes.is_none() != histogram.buckets.is_empty() {
            return Err(refused("its extremes do not fit it"));
        }
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|&ns| histogram.record(ns));
        histogram
    }

    fn decode(histogram: &Histogram, text: &str) -> Result<Histogram> {
        Histogram::from_base64(text, histogram.sum_ns(), histogram.min_ns(), histogram.max_ns())
    }

    proptest! {
        #[test]
        fn what_is_beside_it_is_exact_and_the_rest_holds_three_digits(values in prop::collection::vec(0..HIGHEST_NS, 20..200)) {
            let histogram = of(&values);
            let mut sorted = values.clone();
            sorted.sort_unstable();
            prop_assert_eq!((histogram.n(), histogram.sum_ns()), (values.len() as u64, values.iter().sum()));
            prop_assert_eq!((histogram.min_ns(), histogram.max_ns()), (Some(sorted[0]), sorted.last().copied()));
            let exact = sorted[(sorted.len() - 1) / 2] as f64;
            let found = histogram.percentile(0.5).unwrap() as f64;
            prop_assert!((found - exact).abs() <= exact / 1000.0 + 1.0, "{found} for {exact}");
        }

        #[test]
        fn encoding_and_decoding_change_nothing(values in prop::collection::vec(any::<u64>(), 0..100)) {
            let histogram = of(&values);
            prop_assert_eq!(decode(&histogram, &histogram.to_base64()).unwrap(), histogram);
        }

        #[test]
        fn merging_is_counting_together(left in prop::collection::vec(any::<u64>(), 0..50), right in prop::collection::vec(any::<u64>(), 0..50)) {
            let mut merged = of(&left);
            merged.merge(&of(&right));
            prop_assert_eq!(merged, of(&[left, right].concat()));
        }

        #[test]
        fn damaged_text_is_refused_or_read_but_never_a_panic(values in prop::collection::vec(1..HIGHEST_NS, 1..50), at in 0_usize..400, byte in any::<u8>()) {
            let histogram = of(&values);
            let mut data = STANDARD.decode(histogram.to_base64()).unwrap();
            let at = at % data.len();
            data[at] = byte;
            let _ = decode(&histogram, &STANDARD.encode(&data));
            data.truncate(at);
            prop_assert!(decode(&histogram, &STANDARD.encode(&data)).is_err());
        }
    }

    #[test]
    fn a_number_that_the_decoder_cannot_negate_is_refused() {
        let histogram = of(&[5]);
        let mut data = STANDARD.decode(histogram.to_base64()).unwrap();
        data.truncate(HEADER);
        data.extend([0xff; 9]);
        data[4..8].copy_from_slice(&9_u32.to_be_bytes());
        assert!(decode(&histogram, &STANDARD.encode(&data)).unwrap_err().to_string().contains("beyond all bounds"));
    }

    #[test]
    fn a_percentile_needs_ten_values_above_it() {
        for (p, needed) in [(0.5, 20), (0.9, 100), (0.99, 1_000), (0.999, 10_000)] {
            let values: Vec<u64> = (1..=needed).collect();
            assert!(of(&values).percentile(p).is_some(), "{p}");
            assert_eq!(of(&values[1..]).percentile(p), None, "{p}");
        }
        assert_eq!([1.0, 1.5, -0.1, f64::NAN].map(|p| of(&[1; 5_000]).percentile(p)), [None; 4]);
        assert_eq!(Histogram::new().percentile(0.5), None);
    }

    #[test]
    fn what_is_longer_than_an_hour_is_counted_and_its_sum_is_exact() {
        let histogram = of(&[HIGHEST_NS * 3, u64::MAX]);
        assert_eq!((histogram.n(), histogram.max_ns(), histogram.sum_ns()), (2, Some(u64::MAX), u64::MAX));
    }
}
