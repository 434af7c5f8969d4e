//! Median and range of repeated runs. There is no mean: one run that waited for something else would carry it away.

use std::cmp::Ordering;

/// A number that can be ordered and halved without overflow.
pub trait Value: Copy {
    /// The total order.
    fn order(&self, other: &Self) -> Ordering;
    /// The mean of two, rounded down for integers.
    fn between(self, other: Self) -> Self;
}

impl Value for u64 {
    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }

    fn between(self, other: Self) -> Self {
        self.midpoint(other)
    }
}

impl Value for f64 {
    fn order(&self, other: &Self) -> Ordering {
        self.total_cmp(other)
    }

    fn between(self, other: Self) -> Self {
        self.midpoint(other)
    }
}

/// The middle and the ends of a set of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread<T> {
    /// The middle value, or the mean of the middle two.
    pub median: T,
    /// The least.
    pub min: T,
    /// The greatest.
    pub max: T,
}

/// The spread of some values; of none there is none.
#[must_use]
pub fn spread<T: Value>(values: &[T]) -> Option<Spread<T>> {
    let mut sorted = values.to_vec();
    sorted.sort_by(Value::order);
    let (&min, &max) = (sorted.first()?, sorted.last()?);
    let (&low, &high) = (sorted.get((sorted.len() - 1) / 2)?, sorted.get(sorted.len() / 2)?);
    Some(Spread { median: low.between(high), min, max })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(spread(&[7_u64, 1, 4]), Some(Spread { median: 4, min: 1, max: 7 }));
        assert_eq!(spread(&[1_u64, 4]), Some(Spread { median: 2, min: 1, max: 4 }));
        assert_eq!(spread(&[u64::MAX, u64::MAX - 2]), Some(Spread { median: u64::MAX - 1, min: u64::MAX - 2, max: u64::MAX }));
        assert_eq!(spread(&[1.0, 2.0]), Some(Spread { median: 1.5, min: 1.0, max: 2.0 }));
        assert_eq!(spread::<u64>(&[]), None);
    }

    proptest! {
        #[test]
        fn half_of_the_values_lie_on_each_side(values in prop::collection::vec(any::<u64>(), 1..40), rotate in 0_usize..40) {
            let found = spread(&values).unwrap();
            prop_assert!(values.iter().filter(|value| **value <= found.median).count() * 2 >= values.len());
            prop_assert!(values.iter().filter(|value| **value >= found.median).count() * 2 >= values.len());
            prop_assert_eq!(Some(&found.min), values.iter().min());
            prop_assert_eq!(Some(&found.max), values.iter().max());
            let mut turned = values.clone();
            turned.rotate_left(rotate % values.len());
            prop_assert_eq!(spread(&turned), Some(found));
        }
    }
}
