//! What the links between a machine and its drives can carry at most: the line rate less its coding, and the narrowest place on the way.

use std::collections::BTreeMap;

/// A link on the way from the machine to a drive. Drives whose ways have a link of the same name share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// Its name on this machine.
    pub name: String,
    /// The most payload that it carries in one direction.
    pub bytes_per_s: u64,
}

/// The payload of a USB link, one direction, bytes/s; `None` for a rate without bulk transfers.
///
/// USB 2.0 specification, table 5-9 and 5-10: at most 19 packets of 64 B in a frame of 1 ms at full speed, 13 packets of 512 B in a microframe of 125 µs at high speed.
/// USB 3.2 specification, chapter 6: 8b/10b at 5 GT/s for each lane, 128b/132b above. Headers and link commands come on top, so real rates are lower.
#[must_use]
pub fn usb(bits_per_s: u64, lanes: u32) -> Option<u64> {
    match bits_per_s / u64::from(lanes.max(1)) {
        12_000_000 => Some(19 * 64 * 1_000),
        480_000_000 => Some(13 * 512 * 8_000),
        5_000_000_000 => coded(bits_per_s, 8, 10),
        10_000_000_000.. => coded(bits_per_s, 128, 132),
        _ => None,
    }
}

/// The payload of a PCI Express link, one direction, bytes/s, from millions of transfers/s of each lane and the number of lanes.
///
/// PCI Express base specification: 8b/10b up to 5 GT/s, 128b/130b up to 32 GT/s; at 64 GT/s 236 of the 256 bytes of a flit are for packets.
/// Packet headers come on top, so real rates are lower.
#[must_use]
pub fn pcie(mt_per_s: u64, width: u32) -> Option<u64> {
    let bits = mt_per_s.checked_mul(1_000_000)?.checked_mul(u64::from(width))?;
    match mt_per_s {
        2_500 | 5_000 => coded(bits, 8, 10),
        8_000 | 16_000 | 32_000 => coded(bits, 128, 130),
        64_000 => coded(bits, 236, 256),
        _ => None,
    }
}

/// The payload of a SATA link, one direction, bytes/s: 8b/10b (Serial ATA specification, 7.2).
#[must_use]
pub fn sata(bits_per_s: u64) -> Option<u64> {
    coded(bits_per_s, 8, 10)
}

/// The payload of an SD or eMMC bus, bytes/s: a bit for each line at every edge of the clock that carries data (JESD84-B51, 6.15; SD physical layer specification, 3.9).
#[must_use]
pub fn mmc(clock_hz: u64, width: u32, double_data_rate: bool) -> Option<u64> {
    clock_hz.checked_mul(u64::from(width))?.checked_mul(if double_data_rate { 2 } else { 1 }).map(|bits| bits / 8)
}

fn coded(bits_per_s: u64, data: u64, line: u64) -> Option<u64> {
    let bytes = u128::from(bits_per_s) * u128::from(data) / u128::from(line) / 8;
    u64::try_from(bytes).ok()
}

/// The most payload that reaches several drives together, each given by its way from the machine on. What they share counts once. `None` where a drive has a way without
/// a known link.
#[must_use]
pub fn capacity(ways: &[&[Hop]]) -> Option<u64> {
    let mut branches: BTreeMap<&str, (u64, Vec<&[Hop]>)> = BTreeMap::new();
    for way in ways {
        let (first, rest) = way.split_first()?;
        let branch = branches.entry(&first.name).or_insert((first.bytes_per_s, Vec::new()));
        branch.0 = branch.0.min(first.bytes_per_s);
        branch.1.push(rest);
    }
    if branches.is_empty() {
        return None;
    }
    // Beyond a link whose own limit is known, what is not known can only narrow it further.
    let limits = branches.into_values().map(|(own, rest)| capacity(&rest).map_or(own, |beyond| own.min(beyond)));
    Some(limits.fold(0, u64::saturating_add))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_less_their_coding_are_those_of_the_specifications() {
        let usb_rates =
            [(1_500_000, 1), (12_000_000, 1), (480_000_000, 1), (5_000_000_000, 1), (10_000_000_000, 2), (10_000_000_000, 1), (20_000_000_000, 2)];
        let usb_rates = usb_rates.map(|(bits, lanes)| usb(bits, lanes));
        let expected = [None, Some(1_216_000), Some(53_248_000), Some(500_000_000), Some(1_000_000_000), Some(1_212_121_212), Some(2_424_242_424)];
        assert_eq!(usb_rates, expected);
        let lanes = [(2_500, 1), (5_000, 2), (8_000, 4), (16_000, 4), (64_000, 1), (7_000, 1)].map(|(mt, width)| pcie(mt, width));
        assert_eq!(lanes, [Some(250_000_000), Some(1_000_000_000), Some(3_938_461_538), Some(7_876_923_076), Some(7_375_000_000), None]);
        assert_eq!(
            (sata(6_000_000_000), mmc(200_000_000, 8, true), mmc(50_000_000, 4, false)),
            (Some(600_000_000), Some(400_000_000), Some(25_000_000))
        );
        assert_eq!(pcie(u64::MAX, 2), None);
    }

    fn way(hops: &[(&str, u64)]) -> Vec<Hop> {
        hops.iter().map(|&(name, bytes_per_s)| Hop { name: name.to_owned(), bytes_per_s }).collect()
    }

    #[test]
    fn the_narrowest_place_counts_and_what_is_shared_counts_once() {
        let together = |ways: &[Vec<Hop>]| capacity(&ways.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let (one, two) = (way(&[("hub", 500), ("a", 500)]), way(&[("hub", 500), ("b", 40)]));
        assert_eq!(together(std::slice::from_ref(&one)), Some(500));
        assert_eq!(together(&[one.clone(), two.clone()]), Some(500));
        assert_eq!(together(&[two.clone(), two.clone()]), Some(40));
        assert_eq!(together(&[two.clone(), way(&[("c", 100)])]), Some(140));
        assert_eq!(together(&[two, way(&[])]), None);
        assert_eq!(together(&[way(&[("hub", 500)]), way(&[("hub", 500), ("a", 10)])]), Some(500));
        assert_eq!(together(&[]), None);
    }
}
