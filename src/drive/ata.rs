//! A drive on SATA: its link, and what it answers to IDENTIFY DEVICE (which the kernel keeps, so that nobody has to ask).

use std::path::{Path, PathBuf};

use super::link::{self, Hop};
use crate::platform::Host;
use crate::result::Sata;

/// A drive on an ATA port.
pub struct Ata {
    /// Its link.
    pub sata: Sata,
    /// The model in full; the SCSI layer shows 16 characters of it.
    pub model: Option<String>,
    /// The firmware's version in full; the SCSI layer shows 4 characters of it.
    pub firmware: Option<String>,
    /// The serial number.
    pub serial: Option<String>,
    /// The links between port and drive, the port first.
    pub hops: Vec<Hop>,
}

/// Reads the drive of a block device; `None` when it is on no ATA port.
#[must_use]
pub fn read(host: &Host, directory: &Path) -> Option<Ata> {
    let port = directory.ancestors().find(|ancestor| number(ancestor, "ata").is_some())?;
    let name = port.file_name()?.to_str()?;
    let number = number(port, "ata")?;
    let (channel, id) = target(directory)?;
    // Behind a port multiplier each drive has a link of its own beside the one that all share.
    let own = format!("link{number}.{channel}");
    let multiplied = !host.names(port.join(&own)).is_empty();
    let shared = format!("link{number}");
    let (link, device) = if multiplied { (own, format!("dev{number}.{channel}.0")) } else { (shared.clone(), format!("dev{number}.{id}")) };
    let fact = |link: &str, fact: &str| host.fact(port.join(link).join("ata_link").join(link).join(fact)).and_then(|text| speed(&text));
    let identity = host.fact(port.join(&link).join(&device).join("ata_device").join(&device).join("id"));
    let identity = identity.as_deref().and_then(Identity::parse);
    let power_policy = directory.ancestors().find_map(|ancestor| {
        let host_name = ancestor.file_name()?.to_str().filter(|name| name.starts_with("host"))?;
        host.fact(ancestor.join("scsi_host").join(host_name).join("link_power_management_policy"))
    });
    let hop = |link: &String| Some(Hop { name: format!("{name} {link}"), bytes_per_s: link::sata(fact(link, "sata_spd")?)? });
    let links: Vec<String> = if multiplied { vec![shared, link.clone()] } else { vec![link.clone()] };
    Some(Ata {
        sata: Sata {
            port: Some(name.to_owned()),
            negotiated_bits_per_s: fact(&link, "sata_spd"),
            declared_bits_per_s: identity.as_ref().and_then(Identity::fastest),
            port_bits_per_s: fact(&link, "hw_sata_spd_limit"),
            queue_depth: host.number(directory.join("device/queue_depth")).and_then(|depth| u32::try_from(depth).ok()),
            power_policy,
        },
        model: identity.as_ref().and_then(|identity| identity.text(27..47)),
        firmware: identity.as_ref().and_then(|identity| identity.text(23..27)),
        serial: identity.as_ref().and_then(|identity| identity.text(10..20)),
        hops: links.iter().filter_map(hop).collect(),
    })
}

fn number(directory: &Path, prefix: &str) -> Option<u32> {
    directory.file_name()?.to_str()?.strip_prefix(prefix)?.parse().ok()
}

/// Channel and number of the SCSI target on the way: `target4:0:1` is `(0, 1)`.
fn target(directory: &Path) -> Option<(u32, u32)> {
    let name = |path: PathBuf| path.file_name()?.to_str()?.strip_prefix("target").map(str::to_owned);
    let target = directory.ancestors().find_map(|ancestor| name(ancestor.to_owned()))?;
    let mut numbers = target.split(':').skip(1).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// `6.0 Gbps`; a link without a drive says `<unknown>`.
fn speed(text: &str) -> Option<u64> {
    match text {
        "1.5 Gbps" => Some(1_500_000_000),
        "3.0 Gbps" => Some(3_000_000_000),
        "6.0 Gbps" => Some(6_000_000_000),
        _ => None,
    }
}

/// The answer to IDENTIFY DEVICE (ACS-4, 7.13): 256 words.
struct Identity(Vec<u16>);

impl Identity {
    fn parse(text: &str) -> Option<Self> {
        let words: Vec<u16> = text.split_ascii_whitespace().map(|word| u16::from_str_radix(word, 16)).collect::<Result<_, _>>().ok()?;
        (words.len() == 256).then_some(Self(words))
    }

    /// The text in some words: two characters each, the first in the upper byte.
    fn text(&self, words: std::ops::Range<usize>) -> Option<String> {
        let bytes: Vec<u8> = self.0.get(words)?.iter().flat_map(|word| word.to_be_bytes()).collect();
        let text = String::from_utf8(bytes).ok()?;
        let text = text.trim_matches(['\0', ' ']).split_whitespace().collect::<Vec<_>>().join(" ");
        (!text.is_empty()).then_some(text)
    }

    /// The highest of the rates in word 76; 0 and 0xffff are none.
    fn fastest(&self) -> Option<u64> {
        let speeds = self.0.get(76).copied().filter(|speeds| *speeds != u16::MAX)?;
        [(3, 6_000_000_000), (2, 3_000_000_000), (1, 1_500_000_000)].into_iter().find(|(bit, _)| speeds >> bit & 1 == 1).map(|(_, rate)| rate)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_hold_two_characters_each() {
        let mut words = vec![0_u16; 256];
        words[76] = 0x850e;
        for (word, pair) in words[27..47].iter_mut().zip("Samsung SSD 860 EVO 250GB               ".as_bytes().chunks(2)) {
            *word = u16::from_be_bytes([pair[0], pair[1]]);
        }
        let text: Vec<String> = words.iter().map(|word| format!("{word:04x}")).collect();
        let identity = Identity::parse(&text.join(" ")).unwrap();
        assert_eq!((identity.text(27..47).as_deref(), identity.text(10..20)), (Some("Samsung SSD 860 EVO 250GB"), None));
        assert_eq!(identity.fastest(), Some(6_000_000_000));
        assert!(Identity::parse(&text[1..].join(" ")).is_none());
    }

    proptest! {
        #[test]
        fn no_answer_stops_the_reader(words in prop::collection::vec(any::<u16>(), 256), text in "[0-9a-f ]{0,40}") {
            let words: Vec<String> = words.iter().map(|word| format!("{word:04x}")).collect();
            let identity = Identity::parse(&words.join(" ")).unwrap();
            identity.text(27..47);
            identity.fastest();
            Identity::parse(&text);
        }
    }
}
