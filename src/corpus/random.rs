//! Random choices of names, sizes and times: one reproducible sequence for each purpose.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A sequence of random numbers that depends on its key and purpose alone.
pub struct Choices(ChaCha8Rng);

impl Choices {
    /// The sequence for a purpose under a key.
    #[must_use]
    pub fn new(key: &[u8; 32], purpose: &str) -> Self {
        let mut hasher = blake3::Hasher::new_keyed(key);
        hasher.update(purpose.as_bytes());
        Self(ChaCha8Rng::from_seed(*hasher.finalize().as_bytes()))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `limit`, which is not 0. The bias is below `limit` / 2^64.
    pub fn below(&mut self, limit: u64) -> u64 {
        let wide = u128::from(self.bits()) * u128::from(limit);
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// A standard normal deviate, cut at ±3, by the Box–Muller transform in pure-Rust floating point: the same on every machine.
    pub fn normal(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
        let unit = |bits: u64| ((bits >> 11) as f64 + 0.5) * STEP;
        let (radius, turn) = (unit(self.bits()), unit(self.bits()));
        let deviate = libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(std::f64::consts::TAU * turn);
        deviate.clamp(-3.0, 3.0)
    }
}

/// Shares `total` among takers in proportion to weights that are given one by one: exact to the unit, in constant memory.
pub struct Shares {
    total: u128,
    weights: u128,
    passed: u128,
    given: u128,
    /// Low bits of the weights that are left out, so that a product with the total fits in 128 bits.
    shift: u32,
}

impl Shares {
    /// `weights` is the sum of all weights that will be given.
    #[must_use]
    pub fn new(total: u64, weights: u128) -> Self {
        let weights = weights.max(1);
        let shift = 64_u32.saturating_sub(weights.leading_zeros());
        Self { total: total.into(), weights, passed: 0, given: 0, shift }
    }

    /// The share of the next taker.
    pub fn next(&mut self, weight: u64) -> u64 {
        self.passed = (self.passed + u128::from(weight)).min(self.weights);
        let upto = (self.passed >> self.shift) * self.total / (self.weights >> self.shift);
        let share = upto - self.given;
        self.given = upto;
        u64::try_from(share).unwrap_or(u64::MAX)
    }
}

/// `total` things shared among `groups`, each with between half and one and a half times the mean.
pub fn uneven(key: &[u8; 32], purpose: &str, groups: u64, total: u64) -> impl Iterator<Item = u64> + use<> {
    let weight = |choices: &mut Choices| 50 + choices.below(101);
    let mut counted = Choices::new(key, purpose);
    let sum: u128 = (0..groups).map(|_| u128::from(weight(&mut counted))).sum();
    let mut shares = Shares::new(total, sum);
    let mut choices = Choices::new(key, purpose);
    (0..groups).map(move |_| shares.next(weight(&mut choices)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_add_up_to_the_total(total: u64, weights in prop::collection::vec(0_u64..=u64::MAX, 1..200)) {
            let sum: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
            prop_assume!(sum > 0);
            let mut shares = Shares::new(total, sum);
            let given: u128 = weights.iter().map(|&weight| u128::from(shares.next(weight))).sum();
            prop_assert_eq!(given, u128::from(total));
        }

        #[test]
        fn below_stays_below(seed: [u8; 32], limit in 1_u64..) {
            let mut choices = Choices::new(&seed, "test");
            for _ in 0..50 {
                prop_assert!(choices.below(limit) < limit);
            }
        }
    }

    #[test]
    fn purposes_do_not_share_their_sequence() {
        let key = [7; 32];
        assert_ne!(Choices::new(&key, "sizes").bits(), Choices::new(&key, "names").bits());
        assert_eq!(Choices::new(&key, "sizes").bits(), Choices::new(&key, "sizes").bits());
    }

    #[test]
    fn normal_deviates_have_mean_zero_and_deviation_one() {
        let mut choices = Choices::new(&[1; 32], "normal");
        let values: Vec<f64> = (0..20_000).map(|_| choices.normal()).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / values.len() as f64;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "mean {mean}, variance {variance}");
    }
}
