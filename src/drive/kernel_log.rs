//! Which of the kernel's messages are about a drive, and what they report: resets, timeouts, errors. Pure: the messages come from elsewhere.

use super::{Device, DeviceNumber, Drive};
use crate::platform::Host;
use crate::result::KernelEvent;

/// A message is cut to this many characters.
const LONGEST: usize = 240;

/// The names under which the kernel speaks of a drive.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KernelNames {
    /// Disks; their partitions are `sda1`, `nvme0n1p1`.
    disks: Vec<String>,
    numbers: Vec<DeviceNumber>,
    /// Controllers, SCSI hosts and addresses, USB ports, ATA and MMC ports, PCI addresses of NVMe drives.
    others: Vec<String>,
}

impl KernelNames {
    /// The names of what is under a directory, down to the physical devices.
    #[must_use]
    pub fn of(host: &Host, drive: &Drive) -> Self {
        let mut names = Self::default();
        for device in drive.devices.iter().flat_map(Device::all) {
            let (major, minor) = device.number;
            let place = host.resolve(format!("/sys/dev/block/{major}:{minor}")).unwrap_or_default();
            names.add(&device.name, device.number, &place.to_string_lossy());
        }
        names
    }

    fn add(&mut self, name: &str, number: DeviceNumber, place: &str) {
        self.disks.push(name.to_owned());
        self.numbers.push(number);
        let parts: Vec<&str> = place.split('/').collect();
        let numbered =
            |part: &str, bus: &str| part.strip_prefix(bus).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()));
        let of_digits = |part: &str, separators: &[char], count: usize, radix: u32| {
            let numbers: Vec<&str> = part.split(separators).collect();
            numbers.len() == count && numbers.iter().all(|number| !number.is_empty() && number.chars().all(|c| c.is_digit(radix)))
        };
        let scsi = |part: &str| of_digits(part, &[':'], 4, 10);
        let usb = |part: &str| {
            part.split_once('-').is_some_and(|(bus, ports)| of_digits(bus, &[], 1, 10) && ports.split('.').all(|port| of_digits(port, &[], 1, 10)))
        };
        let pci = |part: &str| of_digits(part, &[':', '.'], 4, 16) && part.contains('.');
        // The one nearest to the drive: above it lie hubs and bridges that others share.
        let mut nearest = |is: &dyn Fn(&str) -> bool| self.others.extend(parts.iter().rev().find(|part| is(part)).map(|part| (*part).to_owned()));
        nearest(&scsi);
        nearest(&usb);
        for bus in ["host", "ata", "mmc", "nvme"] {
            nearest(&|part| numbered(part, bus));
        }
        if parts.contains(&"nvme") {
            nearest(&pci);
        }
    }

    /// What a record of the kernel's log reports about this drive; `None` when it is about something else, or nothing that matters here.
    #[must_use]
    pub fn report(&self, record: &str) -> Option<(KernelEvent, String)> {
        let (_, said) = record.split_once(';')?;
        let mut lines = said.lines();
        let text = lines.next()?;
        let event = event(text)?;
        let device = lines.find_map(|line| line.trim_start().strip_prefix("DEVICE="));
        (device.is_some_and(|device| self.is_device(device)) || self.is_named(text)).then(|| (event, shown(text)))
    }

    /// Whether a property `DEVICE=` names the drive: `b8:16`, `+scsi:2:0:0:0`, `+usb:2-1.4`.
    fn is_device(&self, device: &str) -> bool {
        if let Some((major, minor)) = device.strip_prefix('b').and_then(|number| number.split_once(':')) {
            return self.numbers.iter().any(|&number| Ok(number.0) == major.parse() && Ok(number.1) == minor.parse());
        }
        let name = device.strip_prefix('+').and_then(|device| device.split_once(':')).map(|(_, name)| name);
        name.is_some_and(|name| {
            self.others.iter().any(|other| other == name || name.strip_prefix(other.as_str()).is_some_and(|rest| rest.starts_with(':')))
        })
    }

    fn is_named(&self, text: &str) -> bool {
        self.disks.iter().any(|disk| names(text, disk, true)) || self.others.iter().any(|other| names(text, other, false))
    }
}

/// Whether a text holds a name as a word: `sda` is no part of `sdaa` or of `sdb`, `2-1` is none of `2-1.4`, `ata1` none of `ata10`. A disk's name may be followed by
/// the number of a partition.
fn names(text: &str, name: &str, is_disk: bool) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let mut rest = &text[at + name.len()..];
        if is_disk {
            let partition = rest.strip_prefix('p').unwrap_or(rest).trim_start_matches(|c: char| c.is_ascii_digit());
            rest = partition;
        }
        let mut after = rest.chars();
        let (next, then) = (after.next(), after.next());
        let digit_follows = then.is_some_and(|c| c.is_ascii_digit());
        let goes_on = match next {
            // `ata3.00` is the device on port `ata3`; `2-1.4` is behind the hub `2-1`.
            Some('.') => digit_follows && !name.starts_with("ata"),
            Some('-') => digit_follows,
            // `2-1.4:1.0` is an interface of the USB device `2-1.4`; an address of numbers would be a longer one.
            Some(':') => digit_follows && !name.contains('-'),
            Some(c) => c.is_alphanumeric(),
            None => false,
        };
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | ':' | '_')) && !goes_on
    })
}

/// What a message reports, by the words that the drivers use (sd, usb-storage, uas, libata, nvme, mmc, the block layer).
fn event(text: &str) -> Option<KernelEvent> {
    const WORDS: [(KernelEvent, &[&str]); 5] = [
        (
            KernelEvent::Disconnect,
            &[
                "usb disconnect",
                "device offlined",
                "rejecting i/o to offline device",
                "rejecting i/o to dead device",
                "removing after probe failure",
                " removed",
                "disabling device",
                "disable device",
            ],
        ),
        (KernelEvent::SlowerLink, &["limiting sata link speed", "limiting speed to", "not running at top speed"]),
        (
            KernelEvent::Reset,
            &[
                "reset low-speed",
                "reset full-speed",
                "reset high-speed",
                "reset superspeed",
                "reset controller",
                "resetting",
                "device_reset",
                "device reset",
                "bus reset",
                "link reset",
            ],
        ),
        (KernelEvent::Timeout, &["timeout", "timed out", "uas_eh_abort_handler", "abort"]),
        (
            KernelEvent::IoError,
            &[
                "i/o error",
                "medium error",
                "critical target error",
                "protection error",
                "lost async page write",
                "failed command",
                "hostbyte=",
                "sense key",
                "exception emask",
                "card stuck",
            ],
        ),
    ];
    let text = text.to_lowercase();
    WORDS.iter().find(|(_, words)| words.iter().any(|word| text.contains(word))).map(|(event, _)| *event)
}

/// A message with its controls spelled out, cut to a length.
fn shown(text: &str) -> String {
    let mut shown = String::new();
    for (count, c) in text.trim_end().chars().enumerate() {
        match c {
            _ if count == LONGEST => {
                shown.push('…');
                break;
            }
            c if c.is_control() => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    const STICK: &str = "/sys/devices/pci0000:00/0000:00:14.0/usb2/2-1/2-1.4/2-1.4:1.0/host2/target2:0:0/2:0:0:0/block/sdb";
    const NVME: &str = "/sys/devices/pci0000:00/0000:00:1d.0/0000:03:00.0/nvme/nvme0/nvme0n1";
    const SATA: &str = "/sys/devices/pci0000:00/0000:00:17.0/ata3/host4/target4:0:0/4:0:0:0/block/sda";
    const CARD: &str = "/sys/devices/platform/soc/fe340000.mmc/mmc_host/mmc0/mmc0:aaaa/block/mmcblk0";

    fn names_of(name: &str, number: DeviceNumber, place: &str) -> KernelNames {
        let mut names = KernelNames::default();
        names.add(name, number, place);
        names
    }

    fn found(names: &KernelNames, text: &str) -> Option<&'static str> {
        names.report(&format!("4,1234,987654321,-;{text}\n")).map(|(event, _)| event.as_str())
    }

    #[test]
    fn a_place_in_sysfs_gives_the_names() {
        assert_eq!(names_of("sdb", (8, 16), STICK).others, ["2:0:0:0", "2-1.4", "host2"]);
        assert_eq!(names_of("nvme0n1", (259, 0), NVME).others, ["nvme0", "0000:03:00.0"]);
        assert_eq!(names_of("sda", (8, 0), SATA).others, ["4:0:0:0", "host4", "ata3"]);
        assert_eq!(names_of("mmcblk0", (179, 0), CARD).others, ["mmc0"]);
        assert!(names_of("loop3", (7, 3), "/sys/devices/virtual/block/loop3").others.is_empty());
    }

    #[test]
    fn field_c13_trouble_of_a_usb_drive_is_recognised() {
        let names = names_of("sdb", (8, 16), STICK);
        for (text, event) in [
            ("usb 2-1.4: reset SuperSpeed USB device number 5 using xhci_hcd", "reset"),
            ("sd 2:0:0:0: [sdb] tag#12 uas_eh_abort_handler 0 uas-tag 3 inflight: CMD OUT", "timeout"),
            ("scsi host2: uas_eh_device_reset_handler start", "reset"),
            ("sd 2:0:0:0: [sdb] tag#0 FAILED Result: hostbyte=DID_ERROR driverbyte=DRIVER_OK cmd_age=31s", "io-error"),
            ("I/O error, dev sdb, sector 204800 op 0x1:(WRITE) flags 0x4000 phys_seg 128 prio class 2", "io-error"),
            ("Buffer I/O error on dev sdb1, logical block 25344, lost async page write", "io-error"),
            ("usb 2-1.4: USB disconnect, device number 5", "disconnect"),
            ("sd 2:0:0:0: rejecting I/O to offline device", "disconnect"),
            ("usb 2-1.4: not running at top speed; connect to a high speed hub", "slower-link"),
            ("usb-storage 2-1.4:1.0: device reset failed", "reset"),
        ] {
            assert_eq!(found(&names, text), Some(event), "{text}");
        }
    }

    #[test]
    fn trouble_of_others_and_what_is_no_trouble_is_left_out() {
        let names = names_of("sdb", (8, 16), STICK);
        for text in [
            "usb 2-1: reset SuperSpeed USB device number 2 using xhci_hcd",
            "usb 2-1.41: reset SuperSpeed USB device number 9 using xhci_hcd",
            "usb 2-1.4.2: USB disconnect, device number 7",
            "usb 12-1.4: USB disconnect, device number 7",
            "I/O error, dev sdbb, sector 1",
            "I/O error, dev sda, sector 1",
            "sd 12:0:0:0: [sdx] timeout",
            "sd 2:0:0:01: timeout",
            "scsi host21: uas_eh_device_reset_handler start",
            "sd 2:0:0:0: [sdb] 61440000 512-byte logical blocks: (31.5 GB/29.3 GiB)",
            "usb 2-1.4: SerialNumber: 0123456789ABCDEF",
            "",
        ] {
            assert_eq!(found(&names, text), None, "{text}");
        }
        assert_eq!(names.report("no record at all"), None);
    }

    #[test]
    fn trouble_of_nvme_sata_and_cards_is_recognised() {
        let nvme = names_of("nvme0n1", (259, 0), NVME);
        assert_eq!(found(&nvme, "nvme nvme0: I/O 321 QID 2 timeout, aborting"), Some("timeout"));
        assert_eq!(found(&nvme, "nvme nvme0: I/O 12 QID 3 timeout, reset controller"), Some("reset"));
        assert_eq!(found(&nvme, "nvme nvme0: Abort status: 0x371"), Some("timeout"));
        assert_eq!(found(&nvme, "nvme 0000:03:00.0: controller is down; will reset: resetting"), Some("reset"));
        assert_eq!(found(&nvme, "critical medium error, dev nvme0n1, sector 5 op 0x0:(READ)"), Some("io-error"));
        assert_eq!(found(&nvme, "EXT4-fs (nvme0n1p2): I/O error while writing superblock"), Some("io-error"));
        assert_eq!(found(&nvme, "nvme nvme01: I/O 1 QID 2 timeout, aborting"), None);
        let sata = names_of("sda", (8, 0), SATA);
        assert_eq!(found(&sata, "ata3.00: exception Emask 0x10 SAct 0x4 SErr 0x400000 action 0x6 frozen"), Some("io-error"));
        assert_eq!(found(&sata, "ata3.00: failed command: WRITE FPDMA QUEUED"), Some("io-error"));
        assert_eq!(found(&sata, "ata3: hard resetting link"), Some("reset"));
        assert_eq!(found(&sata, "ata3: limiting SATA link speed to 3.0 Gbps"), Some("slower-link"));
        assert_eq!(found(&sata, "ata30: hard resetting link"), None);
        let card = names_of("mmcblk0", (179, 0), CARD);
        assert_eq!(found(&card, "mmc0: Timeout waiting for hardware interrupt."), Some("timeout"));
        assert_eq!(found(&card, "mmcblk0: error -110 sending stop command; card stuck"), Some("io-error"));
        assert_eq!(found(&card, "mmc0: card aaaa removed"), Some("disconnect"));
    }

    #[test]
    fn the_properties_of_a_record_name_the_drive_where_its_text_does_not() {
        let names = names_of("sdb", (8, 16), STICK);
        let record = |device: &str| format!("3,1,2,-;device offlined - not ready after error recovery\n SUBSYSTEM=scsi\n DEVICE={device}\n");
        for device in ["+scsi:2:0:0:0", "b8:16", "+usb:2-1.4", "+usb:2-1.4:1.0"] {
            assert!(names.report(&record(device)).is_some(), "{device}");
        }
        for device in ["+scsi:2:0:0:1", "b8:1", "b8:160", "c8:16", "+usb:2-1", "+usb:2-1.40", "", "+", "b"] {
            assert!(names.report(&record(device)).is_none(), "{device}");
        }
    }

    #[test]
    fn a_hostile_message_is_spelled_out_and_cut() {
        let names = names_of("sdb", (8, 16), STICK);
        let record = format!("3,1,2,-;sdb: timeout \u{1b}[2J\u{7} {}", "x".repeat(5_000));
        let (_, line) = names.report(&record).unwrap();
        assert!(!line.chars().any(char::is_control) && line.chars().count() < 300 && line.contains("\\u{1b}"), "{line}");
    }
}
