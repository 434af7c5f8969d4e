//! How numbers that may have a fraction are written: `100`, not `100.0`.

/// A scale as percent: a whole number where it is one.
pub(super) mod percent {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use crate::units::Scale;

    pub(in crate::result) fn serialize<S: Serializer>(scale: &Scale, serializer: S) -> Result<S::Ok, S::Error> {
        super::plain::one(&scale.percent(), serializer)
    }

    pub(in crate::result) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Scale, D::Error> {
        f64::deserialize(deserializer)?.to_string().parse().map_err(de::Error::custom)
    }
}

/// Numbers: whole ones where they are whole.
pub(super) mod plain {
    use serde::{Serialize, Serializer};

    struct Plain(f64);

    impl Serialize for Plain {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            one(&self.0, serializer)
        }
    }

    pub(in crate::result) fn one<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        /// Up to here every whole number is exact in an `f64`.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if value.fract() == 0.0 && (0.0..EXACT).contains(value) { serializer.serialize_u64(*value as u64) } else { serializer.serialize_f64(*value) }
    }

    pub(in crate::result) fn list<S: Serializer>(values: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(|&value| Plain(value)))
    }
}
