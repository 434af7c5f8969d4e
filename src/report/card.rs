//! The cards of drives and of the machine: what a person reads in ten seconds, and what a result says about them in a line.

use super::printable::{printable, wrap};
use super::text::{self, WIDTH};
use crate::result::{Document, Drive, Health, HealthReading, Host, Mmc, Pcie, Queue, Reading, Sata, Usb};
use crate::units::{Bytes, count, duration, rate};

/// The indent of what continues a line, and the width of its head.
const HANG: usize = 10;

/// Renders the cards of all drives that were named, then that of the machine, with a final newline. `remarks` are sentences about the drives together.
#[must_use]
pub fn render(document: &Document, remarks: &[String]) -> String {
    let mut parts: Vec<String> = document.drives.iter().filter(|drive| drive.path.is_some()).map(|drive| of_drive(document, drive)).collect();
    if !remarks.is_empty() {
        parts.push(remarks.iter().map(|remark| wrap(&printable(remark), WIDTH, 0)).collect::<Vec<_>>().join("\n"));
    }
    parts.extend(document.hosts.iter().map(of_host));
    parts.join("\n\n") + "\n"
}

fn line(head: &str, text: &str) -> String {
    wrap(&format!("{head:<9} {text}"), WIDTH, HANG)
}

fn of_drive(document: &Document, drive: &Drive) -> String {
    let mut lines = vec![line("Drive", &text::drive(document, drive))];
    lines.push(line("Mount", &mount(drive)));
    for device in document.chain(drive) {
        lines.extend(of_device(device, !drive.under.is_empty()));
    }
    let advice = advice(document, drive);
    if !advice.is_empty() {
        lines.push(format!("\nADVICE\n{}", advice.join("\n")));
    }
    lines.join("\n")
}

/// What is plainly wrong with a drive or with what is under it, each once, a paragraph each.
pub(super) fn advice(document: &Document, drive: &Drive) -> Vec<String> {
    let mut said: Vec<&String> = Vec::new();
    for sentence in document.chain(drive).into_iter().flat_map(|device| &device.advice) {
        if !said.contains(&sentence) {
            said.push(sentence);
        }
    }
    said.into_iter().map(|sentence| wrap(&format!("  {}", printable(sentence)), WIDTH, text::HANG)).collect()
}

/// In one line what the first line of a drive does not say: the most that its links carry, its driver, its scheduler.
pub(super) fn brief(document: &Document, drive: &Drive) -> Option<String> {
    let all = document.chain(drive);
    let mut facts: Vec<String> = drive.link_bytes_per_s.map(at_most).into_iter().collect();
    let mut add = |name: &str, of: &dyn Fn(&Drive) -> Option<String>| {
        let mut words: Vec<String> = all.iter().filter_map(|device| of(device)).map(|word| printable(&word)).collect();
        words.dedup();
        facts.extend((!words.is_empty()).then(|| format!("{name} {}", words.join(" and "))));
    };
    add("driver", &|device| device.driver.clone());
    add("scheduler", &|device| device.queue.as_ref()?.scheduler.clone().filter(|_| device.transport.is_some()));
    (!facts.is_empty()).then(|| facts.join(", "))
}

fn mount(drive: &Drive) -> String {
    let mut text = drive.source.as_deref().map_or_else(|| "unknown".to_owned(), printable);
    text.push_str(&drive.mount_point.as_deref().map_or_else(String::new, |point| format!(" on {}", printable(point))));
    text.push_str(&drive.uuid.as_deref().map_or_else(String::new, |uuid| format!(", UUID {}", printable(uuid))));
    text.push_str(&drive.mount_options.as_deref().map_or_else(String::new, |options| format!(": {}", printable(options).replace(',', ", "))));
    text
}

fn of_device(drive: &Drive, among_others: bool) -> Vec<String> {
    let Some(name) = drive.device.as_deref().map(printable) else { return Vec::new() };
    let mut facts = vec![name];
    if among_others {
        facts.extend(drive.model.as_deref().map(printable));
        facts.extend(drive.size_bytes.map(|bytes| Bytes(bytes).to_string()));
    }
    // What is made of other devices has no firmware and no link of its own.
    let physical = drive.transport.as_deref().is_some_and(|transport| !matches!(transport, "loop" | "virtio"));
    if physical {
        facts.push(format!("firmware {}", known(drive.firmware.as_deref())));
    }
    facts.extend(drive.serial.as_deref().map(|serial| format!("serial {}", printable(serial))));
    let mut lines = vec![line("Device", &facts.join(", "))];
    lines.extend(link(drive).map(|text| line("Link", &text)));
    lines.extend(drive.queue.as_ref().map(|found| line("Queue", &queue(found))));
    lines.extend(drive.health_before.as_ref().map(|found| line("Health", &health(found))));
    lines
}

fn known(text: Option<&str>) -> String {
    text.map_or_else(|| "unknown".to_owned(), printable)
}

fn at_most(bytes_per_s: u64) -> String {
    format!("at most {}", rate(bytes_per_s, 1_000_000_000))
}

fn link(drive: &Drive) -> Option<String> {
    let mut facts = match (&drive.usb, &drive.sata, &drive.pcie, &drive.mmc) {
        (Some(found), ..) => usb(found),
        (_, Some(found), ..) => sata(found),
        (.., Some(found), _) => pcie(found),
        (.., Some(found)) => mmc(found),
        // A loop device hangs on no link: its file does.
        _ => drive.transport.iter().filter(|transport| *transport != "loop").map(|transport| text::spelled(&printable(transport))).collect(),
    };
    if facts.is_empty() {
        return None;
    }
    facts.extend(drive.link_bytes_per_s.map(at_most));
    facts.extend(drive.driver.as_deref().map(|driver| format!("driver {}", printable(driver))));
    facts.extend(drive.controller.as_deref().map(|address| format!("controller {}", printable(address))));
    Some(facts.join(", "))
}

fn bits(rate: Option<u64>) -> String {
    rate.map_or_else(|| "an unknown rate".to_owned(), text::link_rate)
}

fn usb(usb: &Usb) -> Vec<String> {
    let mut first = format!("USB at {}", bits(usb.negotiated_bits_per_s));
    if let Some(declared) = usb.declared_bits_per_s.filter(|declared| Some(*declared) > usb.negotiated_bits_per_s) {
        first.push_str(&format!(" (the device declares {})", text::link_rate(declared)));
    }
    let mut facts = vec![first];
    let hubs = match usb.hubs {
        Some(0) => " without a hub".to_owned(),
        Some(1) => " behind a hub".to_owned(),
        Some(hubs) => format!(" behind {hubs} hubs"),
        None => String::new(),
    };
    facts.extend(usb.port_path.as_deref().map(|path| format!("port {}{hubs}", printable(path))));
    if let (Some(vendor), Some(product)) = (&usb.vendor_id, &usb.product_id) {
        let name = usb.bridge.as_deref().or(usb.product.as_deref()).map_or_else(String::new, |name| format!(" ({})", printable(name)));
        facts.push(format!("{}:{}{name}", printable(vendor), printable(product)));
    }
    facts.extend(usb.can_uas.map(|can| if can { "can do UAS" } else { "cannot do UAS" }.to_owned()));
    facts
}

fn sata(sata: &Sata) -> Vec<String> {
    let ends: Vec<String> = [("drive", sata.declared_bits_per_s), ("port", sata.port_bits_per_s)]
        .into_iter()
        .filter_map(|(end, rate)| Some(format!("{end} {}", text::link_rate(rate?))))
        .collect();
    let ends = if ends.is_empty() { String::new() } else { format!(" ({})", ends.join(", ")) };
    let mut facts = vec![format!("SATA at {}{ends}", bits(sata.negotiated_bits_per_s))];
    facts.extend(sata.port.as_deref().map(|port| format!("port {}", printable(port))));
    facts.extend(sata.queue_depth.map(|depth| format!("queue depth {depth}")));
    facts.extend(sata.power_policy.as_deref().map(|policy| format!("link power {}", printable(policy))));
    facts
}

fn pcie(pcie: &Pcie) -> Vec<String> {
    let link = |speed: Option<u64>, width: Option<u32>| Some(format!("{} GT/s x{}", speed? as f64 / 1000.0, width?));
    let now = link(pcie.speed_mt_per_s, pcie.width).unwrap_or_else(|| "at an unknown rate".to_owned());
    let ends = [("drive", link(pcie.max_speed_mt_per_s, pcie.max_width)), ("slot", link(pcie.port_speed_mt_per_s, pcie.port_width))];
    let ends: Vec<String> = ends.into_iter().filter_map(|(end, most)| Some(format!("{end} {}", most?))).collect();
    let ends = if ends.is_empty() { String::new() } else { format!(" ({})", ends.join(", ")) };
    let mut facts = vec![format!("PCIe {now}{ends}")];
    facts.extend((pcie.removable == Some(true)).then(|| "through a tunnel or a removable slot, whose stated rate says little".to_owned()));
    facts
}

fn mmc(mmc: &Mmc) -> Vec<String> {
    let kind = match mmc.card_type.as_deref() {
        Some("MMC") => "eMMC".to_owned(),
        other => known(other),
    };
    let mut facts = vec![kind];
    facts.push(match (mmc.timing.as_deref(), mmc.clock_hz, mmc.bus_width) {
        (Some(timing), Some(clock), Some(width)) => format!("{} at {} MHz, {width} bits", printable(timing), clock as f64 / 1e6),
        _ => "bus mode unknown".to_owned(),
    });
    facts.extend(mmc.speed_classes.as_deref().map(printable));
    facts.extend(mmc.date.as_deref().map(|date| format!("made {}", printable(date))));
    facts
}

fn queue(queue: &Queue) -> String {
    let mut facts = vec![format!("scheduler {}", known(queue.scheduler.as_deref()))];
    facts.extend(queue.read_ahead_bytes.map(|bytes| format!("read-ahead {}", binary(bytes))));
    facts.extend(queue.max_request_bytes.map(|bytes| format!("requests up to {}", binary(bytes))));
    facts.extend(queue.logical_block_bytes.map(|logical| match queue.physical_block_bytes {
        Some(physical) if physical != logical => format!("sectors of {logical} B, physically {physical} B"),
        _ => format!("sectors of {logical} B"),
    }));
    facts.push(format!("write cache {}", known(queue.write_cache.as_deref())));
    facts.push(match queue.discard_max_bytes {
        Some(0) => "no discard".to_owned(),
        Some(_) => "discard".to_owned(),
        None => "discard unknown".to_owned(),
    });
    facts.join(", ")
}

/// Powers of two as they are set: `128 KiB`.
fn binary(bytes: u64) -> String {
    match bytes {
        0 => "0 B".to_owned(),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

/// Wear and heat in a line.
pub(super) fn health(health: &Health) -> String {
    let mut facts: Vec<String> = health
        .passed
        .map(|passed| if passed { "the drive says that it is well" } else { "THE DRIVE SAYS THAT IT IS FAILING" }.to_owned())
        .into_iter()
        .collect();
    facts.extend(health.readings.iter().filter_map(worth_reading));
    let because = health.because.as_deref().map(printable);
    match (facts.is_empty(), because) {
        (true, because) => because.map_or_else(|| "unknown".to_owned(), |because| format!("unknown: {because}")),
        (false, None) => facts.join(", "),
        (false, Some(because)) => format!("{}; the rest is unknown: {because}", facts.join(", ")),
    }
}

/// A reading in words; limits and counts of errors that did not happen are left to the record.
fn worth_reading(reading: &HealthReading) -> Option<String> {
    let value = reading.value;
    let number = count(value.unsigned_abs());
    let bytes = Bytes(value.unsigned_abs());
    Some(match reading.what {
        Reading::Temperature => format!("{value} °C"),
        Reading::LifeUsed => format!("{value} % of its life used"),
        Reading::LifeUsedA => format!("at most {value} % of its life used (kind A)"),
        Reading::LifeUsedB => format!("at most {value} % (kind B)"),
        Reading::PreEndOfLife => match value {
            1 => "reserve normal".to_owned(),
            2 => "reserve 80 % used".to_owned(),
            _ => "reserve 90 % used".to_owned(),
        },
        Reading::Spare => format!("{value} % of its reserve left"),
        Reading::HostWritten => format!("{bytes} written in its life"),
        Reading::HostRead => format!("{bytes} read"),
        Reading::MediumWritten => format!("{bytes} written inside"),
        Reading::PowerOn => format!("{number} h on"),
        Reading::Reallocated if value > 0 => format!("{number} sectors replaced"),
        Reading::Pending if value > 0 => format!("{number} sectors waiting to be replaced"),
        Reading::MediaErrors if value > 0 => format!("{number} errors of its medium"),
        Reading::LinkErrors if value > 0 => format!("{number} errors on its link"),
        Reading::CriticalWarning if value > 0 => format!("warnings 0x{value:02x}"),
        Reading::Reallocated | Reading::Pending | Reading::MediaErrors | Reading::LinkErrors | Reading::CriticalWarning => return None,
        Reading::TemperatureLimit | Reading::SpareLimit | Reading::PowerCycles | Reading::UnsafeShutdowns => return None,
    })
}

fn of_host(host: &Host) -> String {
    let mut lines = vec!["HOST".to_owned()];
    let join = |facts: Vec<Option<String>>| {
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        if facts.is_empty() { "unknown".to_owned() } else { facts.join(", ") }
    };
    let shown = |text: &Option<String>| text.as_deref().map(printable);
    lines.push(line(
        "System",
        &join(vec![shown(&host.name), shown(&host.os), host.kernel.as_deref().map(|kernel| format!("kernel {}", printable(kernel)))]),
    ));
    let virtualised = match (host.virtualised, &host.hypervisor) {
        (_, Some(by)) => format!("virtual ({})", printable(by)),
        (Some(true), None) => "virtual".to_owned(),
        (Some(false), None) => "not virtual".to_owned(),
        (None, None) => "whether it is virtual is unknown".to_owned(),
    };
    lines.push(line("Machine", &format!("{}, {virtualised}", known(host.machine.as_deref()))));
    let governor = host.cpu_governor.as_deref().map(|governor| {
        let driver = host.cpu_frequency_driver.as_deref().map_or_else(String::new, |driver| format!(" ({})", printable(driver)));
        format!("governor {}{driver}", printable(governor))
    });
    let idle = host.deepest_idle_state.as_deref().map(|state| {
        let exit = host.idle_exit_ns.map_or_else(String::new, |exit| format!(" (left in {})", duration(exit)));
        format!("deepest idle state {}{exit}", printable(state))
    });
    let unknown = |what: &str| Some(format!("{what} unknown"));
    lines.push(line(
        "CPU",
        &join(vec![shown(&host.cpu), host.cores.map(text::cores), governor.or_else(|| unknown("governor")), idle.or_else(|| unknown("idle states"))]),
    ));
    let swap = host.swap_bytes.map(|total| match host.swap_used_bytes {
        _ if total == 0 => "no swap".to_owned(),
        Some(used) => format!("swap {} ({} in use)", Bytes(total), Bytes(used)),
        None => format!("swap {}", Bytes(total)),
    });
    lines.push(line("Memory", &join(vec![host.memory_bytes.map(|bytes| Bytes(bytes).to_string()), swap.or_else(|| unknown("swap"))])));
    lines.push(line("Power", &join(vec![shown(&host.power), host.battery_percent.map(|percent| format!("battery {percent} % full"))])));
    for controller in &host.controllers {
        let number = controller
            .vendor_id
            .as_deref()
            .zip(controller.device_id.as_deref())
            .map(|(vendor, device)| format!("{}:{}", printable(vendor), printable(device)));
        let driver = format!("driver {}", known(controller.driver.as_deref()));
        lines.push(line(
            &shown(&controller.mode).unwrap_or_default(),
            &join(vec![Some(printable(&controller.address)), number, shown(&controller.name), Some(driver)]),
        ));
    }
    lines.join("\n")
}
