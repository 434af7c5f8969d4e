//! A drive on USB: what its device declares against what was negotiated, the ports and hubs on the way, the bridge and its driver.

use std::path::{Path, PathBuf};

use super::ids::{self, Names};
use super::link::{self, Hop};
use crate::platform::Host;
use crate::result::Usb;

const SUPER_SPEED: u64 = 5_000_000_000;
/// No device declares more on a lane; what does is damaged.
const FASTEST: u64 = 80_000_000_000;

/// Reads the USB device that a block device hangs on, and the links on the way to it, the machine's own first; `None` when it hangs on none.
#[must_use]
pub fn read(host: &Host, directory: &Path) -> Option<(Usb, Vec<Hop>)> {
    // From the drive upwards: the device, the hubs above it, and last the machine's own hub, which has no port.
    let devices: Vec<PathBuf> = directory.ancestors().filter(|ancestor| host.fact(ancestor.join("idVendor")).is_some()).map(Path::to_owned).collect();
    let on_ports: Vec<&PathBuf> = devices.iter().filter(|device| port_path(device).is_some()).collect();
    let device = on_ports.first()?;
    let fact = |name: &str| host.fact(device.join(name));
    let (vendor_id, product_id) = (fact("idVendor"), fact("idProduct"));
    let path = port_path(device);
    let interface = directory.ancestors().find(|ancestor| {
        let name = ancestor.file_name().and_then(|name| name.to_str());
        name.zip(path.as_deref()).is_some_and(|(name, path)| name.strip_prefix(path).is_some_and(|rest| rest.starts_with(':')))
    });
    let usb = Usb {
        hubs: u32::try_from(on_ports.len() - 1).ok(),
        bridge: vendor_id.as_deref().zip(product_id.as_deref()).and_then(|(vendor, product)| Names::read(host, &ids::USB).find(vendor, product)),
        manufacturer: fact("manufacturer"),
        product: fact("product"),
        negotiated_bits_per_s: negotiated(host, device),
        declared_bits_per_s: declared(fact("version").as_deref(), host.bytes(device.join("bos_descriptors")).as_deref()),
        version: fact("version"),
        lanes: lanes(host, device),
        driver: interface.and_then(|interface| host.link_name(interface.join("driver"))),
        can_uas: host.bytes(device.join("descriptors")).as_deref().and_then(can_uas),
        port_path: path,
        vendor_id,
        product_id,
    };
    let hop = |device: &&PathBuf| {
        let bytes_per_s = link::usb(negotiated(host, device)?, lanes(host, device).unwrap_or(1))?;
        Some(Hop { name: format!("usb {}", port_path(device)?), bytes_per_s })
    };
    Some((usb, on_ports.iter().rev().filter_map(hop).collect()))
}

/// `2-1.4` of a device's directory; the machine's own hub (`usb2`) has none.
fn port_path(device: &Path) -> Option<String> {
    let name = device.file_name()?.to_str()?;
    name.starts_with(|first: char| first.is_ascii_digit()).then(|| name.to_owned())
}

/// The kernel gives megabits per second, `1.5` among them.
fn negotiated(host: &Host, device: &Path) -> Option<u64> {
    let text = host.fact(device.join("speed"))?;
    let (whole, tenths) = text.split_once('.').unwrap_or((&text, "0"));
    let tenths: u64 = tenths.parse().ok().filter(|tenths| *tenths < 10)?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(tenths * 100_000)
}

fn lanes(host: &Host, device: &Path) -> Option<u32> {
    let lanes = ["rx_lanes", "tx_lanes"].into_iter().filter_map(|fact| host.number(device.join(fact))).max()?;
    u32::try_from(lanes).ok().filter(|lanes| *lanes > 0)
}

/// The highest rate that a device declares: by the version in its device descriptor, and by its Binary Object Store, which says it at any rate. A version below 3 alone says
/// nothing: a USB 3 device says 2.10 where it runs as USB 2 (USB 3.2 specification, 9.6.1).
fn declared(version: Option<&str>, binary_object_store: Option<&[u8]>) -> Option<u64> {
    let major = version.and_then(|version| version.trim().split_once('.')?.0.parse::<u32>().ok());
    let by_version = major.filter(|major| *major >= 3).map(|_| SUPER_SPEED);
    by_version.max(binary_object_store.and_then(declared_by_store))
}

/// The capabilities of a Binary Object Store (USB 3.2 specification, 9.6.2): SuperSpeed has a bit for each rate, SuperSpeedPlus a list of rates of a lane.
fn declared_by_store(store: &[u8]) -> Option<u64> {
    const CAPABILITY: u8 = 0x10;
    const OF_SUPER_SPEED: u8 = 0x03;
    const OF_SUPER_SPEED_PLUS: u8 = 0x0a;
    let mut fastest = None;
    for descriptor in Descriptors(store).filter(|descriptor| descriptor.get(1) == Some(&CAPABILITY)) {
        match descriptor.get(2) {
            Some(&OF_SUPER_SPEED) if descriptor.get(4).is_some_and(|speeds| speeds & 0b1000 != 0) => fastest = fastest.max(Some(SUPER_SPEED)),
            Some(&OF_SUPER_SPEED_PLUS) => {
                let rates = descriptor.get(12..).unwrap_or_default().chunks_exact(4).filter_map(|rate| {
                    let exponent = u32::from(rate[0] >> 4 & 0b11);
                    let mantissa = u64::from(u16::from_le_bytes([rate[2], rate[3]]));
                    mantissa.checked_mul(1_000_u64.pow(exponent)).filter(|rate| (SUPER_SPEED..=FASTEST).contains(rate))
                });
                fastest = fastest.max(rates.max());
            }
            _ => {}
        }
    }
    fastest
}

/// Whether an alternate setting of an interface is USB Attached SCSI: class 8 (mass storage), subclass 6 (SCSI), protocol 0x62. `None` when the descriptors break off before
/// that is known.
fn can_uas(descriptors: &[u8]) -> Option<bool> {
    const INTERFACE: u8 = 4;
    let mut walked = Descriptors(descriptors);
    let (mut interfaces, mut uas) = (0, false);
    for descriptor in walked.by_ref().filter(|descriptor| descriptor.get(1) == Some(&INTERFACE)) {
        interfaces += 1;
        uas |= descriptor.get(5..8) == Some(&[8, 6, 0x62]);
    }
    (uas || walked.0.is_empty() && interfaces > 0).then_some(uas)
}

/// Walks descriptors by their own lengths and stops where one is too short or does not fit; what could not be walked is left in it.
struct Descriptors<'a>(&'a [u8]);

impl<'a> Iterator for Descriptors<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(*self.0.first()?);
        let (descriptor, rest) = self.0.split_at_checked(length).filter(|_| length >= 2)?;
        self.0 = rest;
        Some(descriptor)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A device, a configuration, one interface with Bulk-Only Transport and, where wished, a second setting with UAS.
    fn descriptors(uas: bool) -> Vec<u8> {
        let device = [18, 1, 0x20, 3, 0, 0, 0, 9, 0x2d, 0x15, 0x78, 5, 0, 1, 1, 2, 3, 1];
        let configuration = [9, 2, 0, 0, 1, 1, 0, 0xc0, 0];
        let bulk_only = [9, 4, 0, 0, 2, 8, 6, 0x50, 0];
        let endpoint = [7, 5, 0x81, 2, 0, 4, 0];
        let attached_scsi = [9, 4, 0, 1, 4, 8, 6, 0x62, 0];
        let mut bytes = [device.as_slice(), &configuration, &bulk_only, &endpoint].concat();
        if uas {
            bytes.extend([attached_scsi.as_slice(), &endpoint].concat());
        }
        bytes
    }

    #[test]
    fn uas_is_an_alternate_setting_and_unknown_where_the_descriptors_break_off() {
        assert_eq!((can_uas(&descriptors(true)), can_uas(&descriptors(false))), (Some(true), Some(false)));
        let whole = descriptors(true);
        assert_eq!((can_uas(&whole[..45]), can_uas(&[]), can_uas(&[0, 0])), (None, None, None));
        let mut stuck = descriptors(false);
        stuck.extend([0, 4, 0]);
        assert_eq!(can_uas(&stuck), None);
    }

    /// A SuperSpeed capability and one of SuperSpeedPlus with a rate of 10 Gbit/s, each way.
    const STORE: [u8; 42] = [
        5, 0x0f, 42, 0, 3, 7, 0x10, 2, 2, 0, 0, 0, 10, 0x10, 3, 0, 0x0e, 0, 1, 10, 255, 7, 20, 0x10, 10, 0, 1, 0, 0, 0, 0, 0x11, 0, 0, 0x30, 0x40,
        10, 0, 0xb0, 0x40, 10, 0,
    ];

    #[test]
    fn field_c18_what_a_device_declares_is_read_at_any_rate() {
        assert_eq!(declared(Some("2.10"), Some(&STORE)), Some(10_000_000_000));
        assert_eq!(declared(Some("2.10"), Some(&STORE[..22])), Some(SUPER_SPEED));
        assert_eq!(declared(Some("2.10"), Some(&STORE[..12])), None);
        assert_eq!((declared(Some("3.20"), None), declared(Some("2.10"), None), declared(None, None)), (Some(SUPER_SPEED), None, None));
    }

    proptest! {
        #[test]
        fn no_descriptors_stop_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..300), cut in 0..60_usize, at in 0..60_usize, value in any::<u8>()) {
            let mut damaged = descriptors(true);
            damaged.truncate(cut);
            if let Some(byte) = damaged.get_mut(at) {
                *byte = value;
            }
            for bytes in [bytes, damaged] {
                can_uas(&bytes);
                prop_assert!(declared_by_store(&bytes).is_none_or(|rate| (SUPER_SPEED..=FASTEST).contains(&rate)));
            }
        }
    }
}
