//! The machine as it stands in the record: what makes results of one machine differ from those of another.

use std::path::{Path, PathBuf};

use super::ids::{self, Names};
use crate::platform::Host;
use crate::result::{self, Controller};

const CPUS: &str = "/sys/devices/system/cpu";

/// Reads the facts about a machine. Its name only where it is to be identified.
#[must_use]
pub fn read(host: &Host, id: &str, identify: bool) -> result::Host {
    let line = |file: &str, key: &str| {
        let text = host.fact(file)?;
        let value = text.lines().find_map(|line| line.strip_prefix(key))?;
        Some(value.trim_start_matches([' ', '\t', ':', '=']).trim_matches('"').to_owned())
    };
    let kib = |key: &str| line("/proc/meminfo", key).and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024));
    let idle = deepest_idle(host);
    let (power, battery_percent) = power(host);
    let swap_bytes = kib("SwapTotal");
    result::Host {
        id: id.to_owned(),
        rank: 0,
        name: host.fact("/proc/sys/kernel/hostname").filter(|_| identify),
        os: line("/etc/os-release", "PRETTY_NAME"),
        kernel: host.fact("/proc/sys/kernel/osrelease"),
        cpu: line("/proc/cpuinfo", "model name"),
        memory_bytes: kib("MemTotal"),
        cores: cores(host),
        machine: machine(host),
        cpu_governor: over_cores(host, "cpufreq/scaling_governor"),
        cpu_frequency_driver: over_cores(host, "cpufreq/scaling_driver"),
        deepest_idle_state: idle.as_ref().map(|(name, _)| name.clone()),
        idle_exit_ns: idle.and_then(|(_, exit)| exit),
        power,
        battery_percent,
        virtualised: virtualised(host),
        hypervisor: hypervisor(host),
        swap_bytes,
        swap_used_bytes: swap_bytes.zip(kib("SwapFree")).map(|(total, free)| total.saturating_sub(free)),
        controllers: controllers(host),
    }
}

/// Whether this is a virtual machine. x86 tells it by a flag of the CPU; elsewhere only a hypervisor that names itself is known.
#[must_use]
pub fn virtualised(host: &Host) -> Option<bool> {
    if hypervisor(host).is_some() {
        return Some(true);
    }
    let cpu = host.fact("/proc/cpuinfo")?;
    let flags = cpu.lines().find_map(|line| line.strip_prefix("flags")?.split_once(':'))?.1;
    Some(flags.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// The hypervisor, by the firmware that it shows; `Microsoft Corporation` and `Google` make real machines as well, so the product counts there.
fn hypervisor(host: &Host) -> Option<String> {
    let dmi = |fact: &str| host.fact(Path::new("/sys/class/dmi/id").join(fact)).unwrap_or_default();
    let (vendor, product) = (dmi("sys_vendor"), dmi("product_name"));
    let known = match vendor.as_str() {
        "QEMU" => "QEMU",
        "VMware, Inc." => "VMware",
        "innotek GmbH" => "VirtualBox",
        "Xen" => "Xen",
        "Parallels Software International Inc." | "Parallels International GmbH." => "Parallels",
        "Microsoft Corporation" if product == "Virtual Machine" => "Hyper-V",
        "Amazon EC2" if !product.contains(".metal") => "Amazon EC2",
        "Google" if product == "Google Compute Engine" => "Google Compute Engine",
        "Apple Inc." if product.starts_with("Apple Virtualization") => "Apple Virtualization",
        _ if product == "KVM" || product.starts_with("Standard PC (") => "QEMU",
        _ => return host.fact("/sys/hypervisor/type"),
    };
    Some(known.to_owned())
}

fn machine(host: &Host) -> Option<String> {
    let dmi = |fact: &str| host.fact(Path::new("/sys/class/dmi/id").join(fact));
    // What a board says whose maker filled nothing in.
    let filled = |text: &String| {
        !["To be filled by O.E.M.", "To Be Filled By O.E.M.", "System manufacturer", "System Product Name", "Default string"].contains(&text.as_str())
    };
    let named = [dmi("sys_vendor"), dmi("product_name")].into_iter().flatten().filter(filled).collect::<Vec<_>>().join(" ");
    let of_tree = || host.fact("/proc/device-tree/model").map(|model| model.trim_end_matches('\0').to_owned());
    Some(named).filter(|named| !named.is_empty()).or_else(of_tree)
}

/// The cores that this process may run on, of which a limit on its share of time may leave fewer.
fn cores(host: &Host) -> Option<u32> {
    let status = host.fact("/proc/self/status")?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim();
    let allowed = list.split(',').map(range_length).sum::<Option<u32>>()?;
    let share = std::thread::available_parallelism().ok().filter(|_| host.is_real());
    Some(share.and_then(|share| u32::try_from(share.get()).ok()).map_or(allowed, |share| share.min(allowed)))
}

/// The length of `3` or `0-7`.
fn range_length(range: &str) -> Option<u32> {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    last.parse::<u32>().ok()?.checked_sub(first.parse().ok()?)?.checked_add(1)
}

/// What a fact says of all cores: one word, or several where they differ.
fn over_cores(host: &Host, fact: &str) -> Option<String> {
    let core = |name: &String| name.strip_prefix("cpu").is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
    let mut words: Vec<String> =
        host.names(CPUS).iter().filter(|name| core(name)).filter_map(|name| host.fact(Path::new(CPUS).join(name).join(fact))).collect();
    words.sort();
    words.dedup();
    (!words.is_empty()).then(|| words.join(", "))
}

/// The deepest idle state of the first core that is not switched off, and how long leaving it takes, ns.
fn deepest_idle(host: &Host) -> Option<(String, Option<u64>)> {
    let directory = Path::new(CPUS).join("cpu0/cpuidle");
    let mut states: Vec<(u32, PathBuf)> =
        host.names(&directory).iter().filter_map(|name| Some((name.strip_prefix("state")?.parse().ok()?, directory.join(name)))).collect();
    states.sort();
    let (_, deepest) = states.iter().rev().find(|(_, state)| host.number(state.join("disable")) == Some(0))?;
    let exit_us = host.number(deepest.join("latency"));
    Some((host.fact(deepest.join("name"))?, exit_us.and_then(|us| us.checked_mul(1000))))
}

/// Where the power comes from, and how full the battery is. The batteries of mice are none of the machine's.
fn power(host: &Host) -> (Option<String>, Option<u8>) {
    let supplies = Path::new("/sys/class/power_supply");
    let all: Vec<PathBuf> = host.names(supplies).iter().map(|name| supplies.join(name)).collect();
    let own: Vec<&PathBuf> = all.iter().filter(|supply| host.fact(supply.join("scope")).as_deref() != Some("Device")).collect();
    let of_kind = |kind: &'static str| own.iter().filter(move |supply| host.fact(supply.join("type")).as_deref() == Some(kind));
    let online = ["Mains", "USB"].into_iter().any(|kind| of_kind(kind).any(|supply| host.number(supply.join("online")) == Some(1)));
    let battery = of_kind("Battery").next();
    let status = battery.and_then(|battery| host.fact(battery.join("status")));
    let percent = battery.and_then(|battery| u8::try_from(host.number(battery.join("capacity"))?).ok());
    let source = match status.as_deref() {
        Some("Discharging") => Some("battery"),
        Some("Charging" | "Full" | "Not charging") => Some("mains"),
        _ => online.then_some("mains"),
    };
    (source.map(str::to_owned), percent)
}

/// Storage, USB and card controllers on the PCI bus, by their class (PCI Code and ID assignment specification).
fn controllers(host: &Host) -> Vec<Controller> {
    let bus = Path::new("/sys/bus/pci/devices");
    let mut found = Vec::new();
    for address in host.names(bus) {
        let function = bus.join(&address);
        let number = |fact: &str| host.fact(function.join(fact)).map(|text| text.trim_start_matches("0x").to_owned());
        let Some(mode) = number("class").and_then(|class| mode(u32::from_str_radix(&class, 16).ok()?)) else { continue };
        found.push(Controller {
            address,
            vendor_id: number("vendor"),
            device_id: number("device"),
            name: None,
            mode: Some(mode.to_owned()),
            driver: host.link_name(function.join("driver")),
        });
    }
    if !found.is_empty() {
        let names = Names::read(host, &ids::PCI);
        for controller in &mut found {
            controller.name =
                controller.vendor_id.as_deref().zip(controller.device_id.as_deref()).and_then(|(vendor, device)| names.find(vendor, device));
        }
    }
    found
}

/// What a controller works as; `None` for what no drive hangs on.
fn mode(class: u32) -> Option<&'static str> {
    Some(match class >> 8 {
        0x0100 => "SCSI",
        0x0101 => "IDE",
        0x0104 => "RAID",
        0x0106 if class & 0xff == 1 => "AHCI",
        0x0106 => "SATA",
        0x0107 => "SAS",
        0x0108 => "NVMe",
        0x0102..=0x01ff => "storage",
        0x0805 => "SD host",
        0x0c03 => match class & 0xff {
            0x00 => "UHCI",
            0x10 => "OHCI",
            0x20 => "EHCI",
            0x30 => "xHCI",
            0x40 => "USB4",
            _ => return None,
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores_are_counted() {
        assert_eq!((range_length("3"), range_length("0-7"), range_length("7-3"), range_length("")), (Some(1), Some(8), None, None));
    }

    #[test]
    fn classes_say_what_a_controller_works_as() {
        let modes = [0x01_06_01, 0x01_01_8a, 0x01_08_02, 0x0c_03_30, 0x03_00_00, 0x0c_03_fe].map(mode);
        assert_eq!(modes, [Some("AHCI"), Some("IDE"), Some("NVMe"), Some("xHCI"), None, None]);
    }
}
