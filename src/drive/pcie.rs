//! PCI Express links on the way to a drive: what they run at and what they could.

use std::path::Path;

use super::link::{self, Hop};
use crate::platform::Host;
use crate::result::Pcie;

/// The speed of the first PCI Express, millions of transfers/s.
const LOWEST: u64 = 2_500;

/// The PCI functions that a place in sysfs lies below, the machine's own port first.
pub fn functions(directory: &Path) -> Vec<&Path> {
    let mut functions: Vec<&Path> = directory.ancestors().filter(|ancestor| address(ancestor).is_some()).collect();
    functions.reverse();
    functions
}

/// `0000:3d:00.0` where a directory is a PCI function.
pub fn address(directory: &Path) -> Option<&str> {
    let name = directory.file_name()?.to_str()?;
    let hexadecimal = |text: &str, digits: usize| text.len() >= digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (domain, rest) = name.split_once(':')?;
    let (bus, rest) = rest.split_once(':')?;
    let (device, function) = rest.split_once('.')?;
    (hexadecimal(domain, 4) && hexadecimal(bus, 2) && hexadecimal(device, 2) && hexadecimal(function, 1)).then_some(name)
}

/// The link of the PCI function nearest to a drive.
#[must_use]
pub fn read(host: &Host, directory: &Path) -> Option<Pcie> {
    let functions = functions(directory);
    let (own, above) = functions.split_last()?;
    let port = above.last();
    Some(Pcie {
        address: address(own).map(str::to_owned),
        speed_mt_per_s: speed(host, own, "current_link_speed"),
        width: width(host, own, "current_link_width"),
        max_speed_mt_per_s: speed(host, own, "max_link_speed"),
        max_width: width(host, own, "max_link_width"),
        port_speed_mt_per_s: port.and_then(|port| speed(host, port, "max_link_speed")),
        port_width: port.and_then(|port| width(host, port, "max_link_width")),
        removable: removable(host, &functions),
    })
}

/// The links on the way, the machine's own first. A tunnel (Thunderbolt, USB4) states a speed that has nothing to do with what it carries: where the kernel calls it removable
/// none of them is taken at its word. Kernels before 5.14 do not, so bridges at the lowest speed, which is what tunnels state, are left out as well; a drive's own link is taken.
#[must_use]
pub fn hops(host: &Host, directory: &Path) -> Vec<Hop> {
    let functions = functions(directory);
    if removable(host, &functions) == Some(true) {
        return Vec::new();
    }
    let hop = |function: &&Path| {
        let speed = speed(host, function, "current_link_speed").filter(|speed| *speed > LOWEST || functions.last() == Some(function))?;
        let bytes_per_s = link::pcie(speed, width(host, function, "current_link_width")?)?;
        Some(Hop { name: format!("pci {}", address(function)?), bytes_per_s })
    };
    functions.iter().filter_map(hop).collect()
}

fn removable(host: &Host, functions: &[&Path]) -> Option<bool> {
    let words: Vec<String> = functions.iter().filter_map(|function| host.fact(function.join("removable"))).collect();
    let any = |wanted: &str| words.iter().any(|word| word == wanted);
    if any("removable") { Some(true) } else { any("fixed").then_some(false) }
}

/// `8.0 GT/s PCIe`, from older kernels `8 GT/s`; a function without a link says that its speed is unknown.
fn speed(host: &Host, function: &Path, fact: &str) -> Option<u64> {
    parse_speed(&host.fact(function.join(fact))?)
}

fn parse_speed(text: &str) -> Option<u64> {
    let (number, unit) = text.split_once(' ')?;
    let (whole, tenths) = number.split_once('.').unwrap_or((number, "0"));
    let tenths: u64 = tenths.parse().ok().filter(|tenths| *tenths < 10)?;
    whole.parse::<u64>().ok()?.checked_mul(1_000)?.checked_add(tenths * 100).filter(|_| unit.starts_with("GT/s"))
}

fn width(host: &Host, function: &Path, fact: &str) -> Option<u32> {
    u32::try_from(host.number(function.join(fact))?).ok().filter(|width| (1..=32).contains(width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_read_as_old_and_new_kernels_write_them() {
        let speeds = ["8.0 GT/s PCIe", "2.5 GT/s PCIe", "16 GT/s", "Unknown", "Unknown speed", "8.0", "x GT/s", "8.15 GT/s"].map(parse_speed);
        assert_eq!(speeds, [Some(8_000), Some(2_500), Some(16_000), None, None, None, None, None]);
    }

    #[test]
    fn functions_are_found_on_the_way_and_nothing_else_is() {
        let place = Path::new("/sys/devices/pci0000:00/0000:00:1d.0/10000:3d:00.0/nvme/nvme0/nvme0n1");
        let found: Vec<&str> = functions(place).into_iter().filter_map(address).collect();
        assert_eq!(found, ["0000:00:1d.0", "10000:3d:00.0"]);
        assert!(functions(Path::new("/sys/devices/platform/host6/target6:0:0/6:0:0:0/block/sdb")).is_empty());
    }
}
