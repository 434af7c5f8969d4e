//! What is plainly wrong with the way a drive is attached, mounted or feels: sentences from facts. What is not known gives none.

use crate::result::{Drive, Health, Reading};

const HIGH_SPEED: u64 = 480_000_000;
const SUPER_SPEED: u64 = 5_000_000_000;
/// From here on it is worth a word that a file system is nearly full.
const NEARLY_FULL_PERCENT: u8 = 95;

/// Fills in the advice of a drive that the user named, the first of these, and of those under it.
pub fn fill(drives: &mut [Drive]) {
    let passes_no_discards = drives.split_first().is_some_and(|(first, under)| blocks_discards(first, under));
    for (index, drive) in drives.iter_mut().enumerate() {
        drive.advice = of(drive);
        if index == 0 && passes_no_discards {
            drive.advice.push(
                "This volume does not pass discards on to the SSD below it, which slows down as it fills: allow them (where it is encrypted that shows which blocks are free)."
                    .to_owned(),
            );
        }
    }
}

/// The advice that the facts about one drive give by themselves.
#[must_use]
pub fn of(drive: &Drive) -> Vec<String> {
    [of_health(drive), of_usb(drive), of_pcie(drive), of_sata(drive), of_use(drive)].concat()
}

fn of_usb(drive: &Drive) -> Vec<String> {
    let Some(usb) = &drive.usb else { return Vec::new() };
    let mut advice = Vec::new();
    match (usb.negotiated_bits_per_s, usb.declared_bits_per_s) {
        (Some(HIGH_SPEED), Some(SUPER_SPEED..)) => advice.push(
            "This is a USB 3 device that runs as USB 2: 480 Mbit/s, at most 53.2 MB/s. Use a USB 3 port, a USB 3 cable and no USB 2 hub in between.".to_owned(),
        ),
        (Some(HIGH_SPEED), None) if usb.version.as_deref() == Some("2.10") => advice.push(
            "It runs as USB 2 (480 Mbit/s, at most 53.2 MB/s) and describes itself as USB 3 devices do then. If it is one: use a USB 3 port, a USB 3 cable and no USB 2 hub in \
             between."
                .to_owned(),
        ),
        (Some(negotiated), Some(declared)) if declared > negotiated && negotiated >= SUPER_SPEED => advice.push(format!(
            "The device can do {} and the link runs at {}: the port, the cable or a hub is slower than the device.",
            gbit(declared),
            gbit(negotiated)
        )),
        (Some(negotiated), _) if negotiated < HIGH_SPEED => {
            advice.push("It runs at the speed of USB 1, at most 1.2 MB/s: use another port or cable.".to_owned());
        }
        _ => {}
    }
    if usb.driver.as_deref() == Some("usb-storage") && usb.can_uas == Some(true) {
        advice.push(
            "The device can do USB Attached SCSI (UAS) and the kernel drives it by usb-storage, one command at a time. The kernel log says whether it avoids UAS because of a \
             known fault of the bridge."
                .to_owned(),
        );
    }
    advice
}

fn of_pcie(drive: &Drive) -> Vec<String> {
    let Some(pcie) = drive.pcie.as_ref().filter(|pcie| pcie.removable != Some(true)) else { return Vec::new() };
    let link = |speed: Option<u64>, width: Option<u32>| speed.zip(width);
    let (now, most) = (link(pcie.speed_mt_per_s, pcie.width), link(pcie.max_speed_mt_per_s, pcie.max_width));
    let port = link(pcie.port_speed_mt_per_s, pcie.port_width);
    let (Some(now), Some(most)) = (now, most) else { return Vec::new() };
    let shown = |(speed, width): (u64, u32)| format!("{} GT/s x{width}", speed as f64 / 1000.0);
    let below = |some: (u64, u32), other: (u64, u32)| some.0 < other.0 || some.1 < other.1;
    match port {
        Some(port) if below(now, (most.0.min(port.0), most.1.min(port.1))) => vec![format!(
            "Its PCIe link runs at {}, though the drive can do {} and the slot {}: reseat the drive, or look for a setting of the firmware.",
            shown(now),
            shown(most),
            shown(port)
        )],
        // At the lowest speed it is rather a tunnel, of which older kernels do not tell.
        Some(port) if below(port, most) && port.0 > 2_500 => vec![format!("Its slot ({}) is slower than the drive ({}).", shown(port), shown(most))],
        _ => Vec::new(),
    }
}

fn of_sata(drive: &Drive) -> Vec<String> {
    let mut advice = Vec::new();
    if let Some((sata, negotiated)) = drive.sata.as_ref().and_then(|sata| Some((sata, sata.negotiated_bits_per_s?))) {
        let (declared, port) = (sata.declared_bits_per_s, sata.port_bits_per_s);
        if let Some(declared) = declared.filter(|declared| *declared > negotiated) {
            advice.push(if port.is_some_and(|port| port > negotiated) {
                format!("The SATA link runs at {}, though drive and port can do more: check the cable and the kernel log.", gbit(negotiated))
            } else {
                format!("The SATA link runs at {}, the drive can do {}: use a faster port.", gbit(negotiated), gbit(declared))
            });
        }
    }
    if drive.driver.as_deref() == Some("ata_piix") {
        advice.push("The SATA controller works in IDE mode, without command queuing: switch it to AHCI in the firmware's settings.".to_owned());
    }
    advice
}

fn of_use(drive: &Drive) -> Vec<String> {
    let mut advice = Vec::new();
    if drive.mount_options.as_deref().is_some_and(|options| options.split(',').any(|option| option == "sync")) {
        advice.push(
            "It is mounted with the option sync: every write waits for the medium. Mount it without, and eject it before you unplug it.".to_owned(),
        );
    }
    if drive.fs_type.as_deref() == Some("fuseblk") {
        advice.push("Its file system runs as a program (FUSE), which is slower than a driver of the kernel's: figures are of both.".to_owned());
    }
    if is_ssd(drive) && discards(drive) == Some(false) {
        advice.push("No discard (TRIM) reaches this SSD, so it slows down as it fills: the bridge does not pass it on, or the kernel does not know that it does.".to_owned());
    }
    if let Some(percent) = drive.fill_percent.filter(|percent| *percent >= NEARLY_FULL_PERCENT) {
        advice.push(format!("The file system is {percent} % full: it writes into what gaps there are, and flash has little room to work."));
    }
    advice
}

/// Whether flash is behind a bus of disks: cards and virtual disks are not called SSDs.
fn is_ssd(drive: &Drive) -> bool {
    drive.rotational == Some(false) && matches!(drive.transport.as_deref(), Some("sata" | "ata" | "nvme" | "usb"))
}

fn discards(drive: &Drive) -> Option<bool> {
    drive.queue.as_ref()?.discard_max_bytes.map(|most| most > 0)
}

/// Whether a volume that is made of SSDs holds discards back that these could take.
fn blocks_discards(volume: &Drive, under: &[Drive]) -> bool {
    // What lies below a loop device is a file, of which the device makes holes.
    let made_of_devices = volume.transport.is_none() && !under.is_empty();
    let ssds: Vec<&Drive> = under.iter().filter(|drive| is_ssd(drive)).collect();
    made_of_devices && discards(volume) == Some(false) && !ssds.is_empty() && ssds.iter().all(|drive| discards(drive) == Some(true))
}

fn of_health(drive: &Drive) -> Vec<String> {
    let mut advice = Vec::new();
    let Some(now) = drive.health_after.as_ref().or(drive.health_before.as_ref()) else { return advice };
    let value = |what| now.value(what);
    if now.passed == Some(false) {
        advice.push("The drive says of itself that it is failing: bring what is on it elsewhere.".to_owned());
    }
    if let Some(percent) = value(Reading::LifeUsed).filter(|percent| *percent >= 100) {
        advice.push(format!("The drive has used up its rated life ({percent} %)."));
    }
    if [Reading::LifeUsedA, Reading::LifeUsedB].into_iter().filter_map(value).any(|percent| percent > 100) {
        advice.push("The eMMC has exceeded its estimated life.".to_owned());
    }
    match value(Reading::PreEndOfLife) {
        Some(2) => advice.push("The eMMC has used 80 % of its reserve blocks.".to_owned()),
        Some(3) => advice.push("The eMMC has used 90 % of its reserve blocks: bring what is on it elsewhere.".to_owned()),
        _ => {}
    }
    if let Some((spare, limit)) = value(Reading::Spare).zip(value(Reading::SpareLimit)).filter(|(spare, limit)| spare <= limit) {
        advice.push(format!("The drive has {spare} % of its reserve left, and warns from {limit} % on."));
    }
    if let Some((degrees, limit)) = value(Reading::Temperature).zip(value(Reading::TemperatureLimit)).filter(|(degrees, limit)| degrees >= limit) {
        advice.push(format!("The drive is at {degrees} °C, and warns from {limit} °C on: it will slow itself down."));
    }
    let errors = |health: &Option<Health>| health.as_ref().and_then(|health| health.value(Reading::LinkErrors));
    if let Some((before, after)) = errors(&drive.health_before).zip(errors(&drive.health_after)).filter(|(before, after)| after > before) {
        advice.push(format!("Its link made {} errors during the measurement: check the cable.", after - before));
    }
    advice
}

fn gbit(bits_per_s: u64) -> String {
    format!("{} Gbit/s", bits_per_s as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::smart::reading;
    use crate::result::{Pcie, Queue, Sata, Usb};

    fn drive() -> Drive {
        Drive::unknown("d0", "h0")
    }

    fn usb(negotiated: u64, declared: Option<u64>, version: &str, driver: &str, can_uas: Option<bool>) -> Vec<String> {
        let usb = Usb {
            negotiated_bits_per_s: Some(negotiated),
            declared_bits_per_s: declared,
            version: Some(version.to_owned()),
            driver: Some(driver.to_owned()),
            can_uas,
            ..Usb::default()
        };
        of(&Drive { usb: Some(usb), ..drive() })
    }

    fn begins(advice: &[String], sentences: &[&str]) {
        assert_eq!(advice.len(), sentences.len(), "{advice:?}");
        for (advice, sentence) in advice.iter().zip(sentences) {
            assert!(advice.starts_with(sentence), "{advice}");
        }
    }

    #[test]
    fn what_is_unknown_or_right_gives_no_advice() {
        assert!(of(&drive()).is_empty());
        assert!(usb(5_000_000_000, Some(5_000_000_000), "3.20", "uas", Some(true)).is_empty());
        assert!(usb(480_000_000, None, "2.00", "usb-storage", Some(false)).is_empty());
        assert!(usb(480_000_000, None, "2.00", "usb-storage", None).is_empty());
    }

    #[test]
    fn field_c18_slow_usb_and_bulk_only_are_told() {
        begins(&usb(480_000_000, Some(10_000_000_000), "2.10", "uas", Some(true)), &["This is a USB 3 device"]);
        begins(&usb(480_000_000, None, "2.10", "usb-storage", Some(true)), &["It runs as USB 2 (480", "The device can do USB Attached"]);
        begins(&usb(5_000_000_000, Some(10_000_000_000), "3.20", "uas", None), &["The device can do 10 Gbit/s and the link runs at 5 Gbit/s"]);
        begins(&usb(12_000_000, None, "1.10", "usb-storage", None), &["It runs at the speed of USB 1"]);
    }

    #[test]
    fn a_link_below_both_ends_is_told_apart_from_a_slow_slot_and_a_tunnel() {
        let link = |now: (u64, u32), port: (u64, u32), removable| {
            let pcie = Pcie {
                speed_mt_per_s: Some(now.0),
                width: Some(now.1),
                max_speed_mt_per_s: Some(16_000),
                max_width: Some(4),
                port_speed_mt_per_s: Some(port.0),
                port_width: Some(port.1),
                removable,
                ..Pcie::default()
            };
            of(&Drive { pcie: Some(pcie), ..drive() })
        };
        begins(
            &link((8_000, 2), (16_000, 16), None),
            &["Its PCIe link runs at 8 GT/s x2, though the drive can do 16 GT/s x4 and the slot 16 GT/s x16"],
        );
        begins(&link((8_000, 4), (8_000, 4), None), &["Its slot (8 GT/s x4) is slower than the drive (16 GT/s x4)"]);
        begins(&link((16_000, 4), (16_000, 16), None), &[]);
        begins(&link((2_500, 4), (2_500, 4), Some(true)), &[]);
        begins(&link((16_000, 4), (2_500, 4), None), &[]);
        let sata = |port| {
            let sata = Sata {
                negotiated_bits_per_s: Some(3_000_000_000),
                declared_bits_per_s: Some(6_000_000_000),
                port_bits_per_s: port,
                ..Sata::default()
            };
            of(&Drive { sata: Some(sata), ..drive() })
        };
        begins(&sata(Some(6_000_000_000)), &["The SATA link runs at 3 Gbit/s, though"]);
        begins(&sata(Some(3_000_000_000)), &["The SATA link runs at 3 Gbit/s, the drive can do 6 Gbit/s"]);
    }

    #[test]
    fn mounts_and_discards_are_told() {
        let options = |options: &str| of(&Drive { mount_options: Some(options.to_owned()), ..drive() });
        begins(&options("rw,sync,relatime"), &["It is mounted with the option sync"]);
        begins(&options("rw,dirsync,async"), &[]);
        let ssd = |transport: &str, most| {
            let queue = Some(Queue { discard_max_bytes: most, ..Queue::default() });
            Drive { rotational: Some(false), transport: Some(transport.to_owned()), queue, ..drive() }
        };
        begins(&of(&ssd("usb", Some(0))), &["No discard (TRIM) reaches this SSD"]);
        for right in [ssd("usb", None), ssd("sata", Some(4096)), ssd("virtio", Some(0)), Drive { rotational: Some(true), ..ssd("usb", Some(0)) }] {
            begins(&of(&right), &[]);
        }
        let mut volume = [Drive { transport: None, ..ssd("", Some(0)) }, ssd("nvme", Some(4096))];
        fill(&mut volume);
        begins(&volume[0].advice, &["This volume does not pass discards on"]);
        volume[1].queue = None;
        fill(&mut volume);
        begins(&volume[0].advice, &[]);
        begins(
            &of(&Drive { fill_percent: Some(97), fs_type: Some("fuseblk".to_owned()), ..drive() }),
            &["Its file system runs", "The file system is 97 % full"],
        );
    }

    #[test]
    fn wear_heat_and_cables_are_told() {
        let health = |readings: &[(Reading, i64)]| {
            Some(Health { readings: readings.iter().map(|&(what, value)| reading(what, value, None, "")).collect(), ..Health::default() })
        };
        let with = |readings: &[(Reading, i64)]| of(&Drive { health_before: health(readings), ..drive() });
        begins(&with(&[(Reading::LifeUsed, 100)]), &["The drive has used up its rated life (100 %)"]);
        begins(&with(&[(Reading::LifeUsed, 99), (Reading::Spare, 11), (Reading::SpareLimit, 10), (Reading::LifeUsedA, 100)]), &[]);
        begins(&with(&[(Reading::Spare, 10), (Reading::SpareLimit, 10)]), &["The drive has 10 % of its reserve left"]);
        begins(&with(&[(Reading::Temperature, 84), (Reading::TemperatureLimit, 83)]), &["The drive is at 84 °C"]);
        begins(&with(&[(Reading::LifeUsedB, 110), (Reading::PreEndOfLife, 3)]), &["The eMMC has exceeded", "The eMMC has used 90 %"]);
        let failing = Drive { health_before: Some(Health { passed: Some(false), ..Health::default() }), ..drive() };
        begins(&of(&failing), &["The drive says of itself that it is failing"]);
        let cable = Drive { health_before: health(&[(Reading::LinkErrors, 3)]), health_after: health(&[(Reading::LinkErrors, 10)]), ..drive() };
        begins(&of(&cable), &["Its link made 7 errors"]);
    }
}
