//! Quantities as people write and read them: bytes, durations, shares. MB and GB are powers of ten, MiB and GiB powers of two.

use std::fmt;
use std::str::FromStr;

/// A number of bytes, read from what people write: `4000000000`, `1.5 GB`, `128KiB`, `10k`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Bytes(pub u64);

const UNITS: [(&str, u64); 20] = [
    ("", 1),
    ("b", 1),
    ("k", 1_000),
    ("kb", 1_000),
    ("m", 1_000_000),
    ("mb", 1_000_000),
    ("g", 1_000_000_000),
    ("gb", 1_000_000_000),
    ("t", 1_000_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("byte", 1),
    ("bytes", 1),
    ("ki", 1 << 10),
    ("mi", 1 << 20),
    ("gi", 1 << 30),
    ("ti", 1 << 40),
];

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (value, unit) = split_unit(text)?;
        // A small b behind a large letter is a bit to some and a byte to others: eight times as many are too many.
        if unit.ends_with('b') && unit.starts_with(|c: char| c.is_ascii_uppercase()) {
            return Err(format!("\"{text}\": bits or bytes? Write {}B for bytes", &unit[..unit.len() - 1]));
        }
        let unit = unit.to_ascii_lowercase();
        let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|&(_, factor)| factor);
        let factor = factor.ok_or_else(|| format!("unknown unit \"{unit}\" in \"{text}\": write bytes, kB, MB, GB, KiB, MiB or GiB"))?;
        value.times(factor).map(Self).ok_or_else(|| format!("\"{text}\" is not a whole number of bytes below 18 EB"))
    }
}

impl fmt::Display for Bytes {
    /// Three significant digits with a decimal unit: `8.41 GB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = scaled(self.0 as f64);
        if unit.is_empty() { write!(f, "{} B", self.0) } else { write!(f, "{} {unit}B", significant(value)) }
    }
}

/// A rate, derived from bytes and nanoseconds: `44.3 MB/s`.
#[must_use]
pub fn rate(bytes: u64, ns: u64) -> String {
    if ns == 0 {
        return "–".to_owned();
    }
    let (value, unit) = scaled(bytes as f64 * 1e9 / ns as f64);
    if unit.is_empty() { format!("{value:.0} B/s") } else { format!("{} {unit}B/s", significant(value)) }
}

/// Stretches of work, each with its bytes, its ns and the bytes done at its end, as a person says them: `410 MB/s for the first 12.3 GB, then 84.0 MB/s`.
#[must_use]
pub fn levels_in_words(levels: impl Iterator<Item = (u64, u64, u64)>) -> String {
    /// What comes after so many levels is not listed.
    const LISTED: usize = 4;
    let levels: Vec<(u64, u64, u64)> = levels.collect();
    let mut words: Vec<String> = Vec::new();
    for (index, &(bytes, ns, until)) in levels.iter().enumerate().take(LISTED) {
        let rate = rate(bytes, ns);
        words.push(match index {
            0 if levels.len() == 1 => rate,
            0 => format!("{rate} for the first {}", Bytes(until)),
            _ if index + 1 == levels.len() => format!("then {rate}"),
            _ => format!("then {rate} for {}", Bytes(bytes)),
        });
    }
    if let Some(&(bytes, ns, _)) = levels.get(LISTED..).and_then(<[_]>::last) {
        words.push(format!("in the end {}", rate(bytes, ns)));
    }
    words.join(", ")
}

/// Nanoseconds in words that a person would use: `3 min 10 s`, `12.4 s`, `340 ms`.
#[must_use]
pub fn duration(ns: u64) -> String {
    let seconds = ns as f64 / 1e9;
    if ns < 1_000 {
        return format!("{ns} ns");
    }
    if ns < 1_000_000 {
        return format!("{} µs", significant(seconds * 1e6));
    }
    if ns < 999_500_000 {
        return format!("{} ms", significant(seconds * 1e3));
    }
    if seconds < 99.95 {
        return format!("{seconds:.1} s");
    }
    let whole = seconds.round() as u64;
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    if hours > 0 { format!("{hours} h {minutes:02} min") } else { format!("{minutes} min {seconds:02} s") }
}

/// A count with thousands separated: `7,861`.
#[must_use]
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of files: `1 file`, `7,861 files`.
#[must_use]
pub fn files(number: u64) -> String {
    if number == 1 { "1 file".to_owned() } else { format!("{} files", count(number)) }
}

/// A scale in hundredths of a percent, read from what people write: `20%`, `20`, `0.5 %`. From 0.01 % to 10,000 %.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scale(u32);

impl Scale {
    /// 100 %: the same as no scale.
    pub const FULL: Self = Self(10_000);

    /// A scale of so many hundredths of a percent, brought into the allowed range.
    #[must_use]
    pub fn from_hundredths(hundredths: u32) -> Self {
        Self(hundredths.clamp(1, 1_000_000))
    }

    /// Hundredths of a percent.
    #[must_use]
    pub fn hundredths(self) -> u32 {
        self.0
    }

    /// Percent, for the record.
    #[must_use]
    pub fn percent(self) -> f64 {
        f64::from(self.0) / 100.0
    }

    /// `value` scaled, rounded up: nothing stays nothing, and something stays at least 1.
    #[must_use]
    pub fn of(self, value: u64) -> u64 {
        let scaled = (u128::from(value) * u128::from(self.0)).div_ceil(u128::from(Self::FULL.0));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

impl FromStr for Scale {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        let number = trimmed.strip_suffix('%').unwrap_or(trimmed);
        let (value, unit) = split_unit(number)?;
        let hundredths = value.times(100).filter(|_| unit.is_empty()).and_then(|value| u32::try_from(value).ok());
        hundredths
            .filter(|value| (1..=1_000_000).contains(value))
            .map(Self)
            .ok_or_else(|| format!("\"{text}\" is not a scale: write a share from 0.01% to 10000%, at most two decimals"))
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 100, self.0 % 100) {
            (whole, 0) => write!(f, "{whole}"),
            (whole, part) if part % 10 == 0 => write!(f, "{whole}.{}", part / 10),
            (whole, part) => write!(f, "{whole}.{part:02}"),
        }
    }
}

/// An exact decimal number: digits and how many of them stand after the point.
struct Decimal {
    digits: u128,
    decimals: u32,
}

impl Decimal {
    /// The product with `factor`, where it is a whole number below 2^64.
    fn times(&self, factor: u64) -> Option<u64> {
        let divisor = 10_u128.checked_pow(self.decimals)?;
        let product = self.digits.checked_mul(u128::from(factor))?;
        if product % divisor != 0 { None } else { u64::try_from(product / divisor).ok() }
    }
}

fn split_unit(text: &str) -> Result<(Decimal, &str), String> {
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',' | '_'))).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let number: String = number.chars().filter(|c| !matches!(c, ',' | '_')).collect();
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    let decimals = u32::try_from(fraction.len()).map_err(|_| format!("\"{text}\" is too long"))?;
    let digits = format!("{whole}{fraction}").parse().map_err(|_| format!("\"{text}\" is not a number"))?;
    Ok((Decimal { digits, decimals }, unit.trim()))
}

fn scaled(value: f64) -> (f64, &'static str) {
    let mut value = value;
    for unit in ["", "k", "M", "G", "T"] {
        if value < 999.5 {
            return (value, unit);
        }
        value /= 1000.0;
    }
    (value, "P")
}

/// Three significant digits without a trailing point.
fn significant(value: f64) -> String {
    let decimals = if value >= 99.95 { 0 } else { usize::from(value < 9.995) + 1 };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_h06_bytes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("0", 0),
            ("4000000000", 4_000_000_000),
            ("4,000,000,000", 4_000_000_000),
            ("1.5 GB", 1_500_000_000),
            ("128KiB", 131_072),
            ("10k", 10_000),
            ("0.5kib", 512),
            (" 2 MiB ", 2_097_152),
            ("3 Gi", 3 << 30),
            ("1 mb", 1_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["", "MB", "1.5", "-1", "12 parsecs", "99999999999TB", "1e9", "1.2.3", "100 Mb", "1Gb", "8 Kb", "8 Mib"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    #[test]
    fn scales_are_exact_shares() {
        assert_eq!("20%".parse(), Ok(Scale(2_000)));
        assert_eq!("0.01 %".parse(), Ok(Scale(1)));
        assert_eq!("100".parse(), Ok(Scale::FULL));
        for text in ["0", "0.001%", "10001%", "x", "5 GB", ""] {
            assert!(text.parse::<Scale>().is_err(), "{text}");
        }
        assert_eq!(Scale(2_000).of(7_861), 1_573);
        assert_eq!(Scale(1).of(64), 1);
        assert_eq!([Scale(2_000), Scale(50), Scale(1)].map(|scale| scale.to_string()), ["20", "0.5", "0.01"]);
    }

    #[test]
    fn field_h06_quantities_are_written_with_three_digits() {
        assert_eq!([0, 999, 1_000, 8_410_300_000, 999_600].map(|n| Bytes(n).to_string()), ["0 B", "999 B", "1.00 kB", "8.41 GB", "1.00 MB"]);
        assert_eq!(
            [850, 12_400_000_000, 340_000_000, 190_000_000_000, 7_260_000_000_000].map(duration),
            ["850 ns", "12.4 s", "340 ms", "3 min 10 s", "2 h 01 min"]
        );
        assert_eq!([7_861, 50, 1_000_000].map(count), ["7,861", "50", "1,000,000"]);
        assert_eq!([0, 1, 7_861].map(files), ["0 files", "1 file", "7,861 files"]);
        assert_eq!(rate(8_410_300_000, 190_000_000_000), "44.3 MB/s");
        assert_eq!([rate(1_000_000_000, 1_000_000_000), rate(1 << 30, 1_000_000_000)], ["1.00 GB/s", "1.07 GB/s"]);
        assert_eq!("100 Mb".parse::<Bytes>().unwrap_err(), "\"100 Mb\": bits or bytes? Write MB for bytes");
    }
}
