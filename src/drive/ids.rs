//! The system's own lists of USB and PCI numbers, where they are installed: what vendors and devices are called.

use crate::platform::Host;

/// Where systems keep the list of USB numbers.
pub const USB: [&str; 3] = ["/usr/share/hwdata/usb.ids", "/usr/share/misc/usb.ids", "/var/lib/usbutils/usb.ids"];
/// Where systems keep the list of PCI numbers.
pub const PCI: [&str; 2] = ["/usr/share/hwdata/pci.ids", "/usr/share/misc/pci.ids"];

/// One of the lists; empty where none is installed.
pub struct Names(String);

impl Names {
    /// Reads the first list that there is.
    #[must_use]
    pub fn read(host: &Host, places: &[&str]) -> Self {
        let bytes = places.iter().find_map(|place| host.bytes(place)).unwrap_or_default();
        Self(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// What a vendor's device is called, or its vendor alone; numbers are four hexadecimal digits.
    #[must_use]
    pub fn find(&self, vendor: &str, device: &str) -> Option<String> {
        let named = |line: &str, number: &str| {
            let (first, name) = line.split_once("  ")?;
            first.eq_ignore_ascii_case(number).then(|| name.trim().to_owned())
        };
        let mut lines = self.0.lines().skip_while(|line| named(line, vendor).is_none());
        // A vendor with several names has them behind slashes.
        let vendor = named(lines.next()?, vendor)?.split(" / ").next().unwrap_or_default().to_owned();
        let devices = lines.take_while(|line| line.starts_with('\t') || line.starts_with('#') || line.is_empty());
        let device = devices.filter_map(|line| line.strip_prefix('\t')).find_map(|line| named(line, device));
        Some(device.map_or_else(|| vendor.clone(), |device| format!("{vendor} {device}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_found_below_their_vendor_only() {
        let list = Names(
            "# a list\n8086  Intel\n\t9d2f  USB controller\n\t\t1028 0001  Laptop\n152D  JMicron / JMicron USA\n\t0578  JMS578\n\nC 01  Storage\n\t06  SATA\n"
                .to_owned(),
        );
        assert_eq!(list.find("152d", "0578").as_deref(), Some("JMicron JMS578"));
        assert_eq!(list.find("152d", "9d2f").as_deref(), Some("JMicron"));
        assert_eq!(list.find("8086", "1028").as_deref(), Some("Intel"));
        assert_eq!((list.find("1234", "0578"), list.find("", "")), (None, None));
    }
}
