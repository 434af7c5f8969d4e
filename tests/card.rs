//! The drive card and the host card: machines of every kind as trees of files, and this machine against `lsblk`.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests look at files directly, end where something is wrong, and say what they skip"
)]

#[path = "fixtures/machine.rs"]
mod machine;

use std::path::Path;
use std::process::Command;

use copysim::drive::{Drive, host};
use copysim::platform::{Host, OS, OsFiles};
use copysim::report::card;
use copysim::result::{Copysim, Document, mask};
use copysim::scenario::facts;
use machine::Machine;

/// What `copysim drive` finds out on a machine, without its host where that is not asked for.
fn document(machine: &Machine, with_host: bool) -> (Document, Vec<String>) {
    let drives = machine.drives();
    let mut document = Document::begin("", "2026-10-03T14:05:09Z".parse().unwrap(), Copysim::default());
    if with_host {
        document.hosts.push(host::read(&machine.host(), "h0", true));
    }
    for (index, (drive, space)) in drives.iter().enumerate() {
        document.drives.extend(facts::drives(&machine.host(), *space, drive, &format!("d{index}"), "h0"));
    }
    let drives: Vec<Drive> = drives.into_iter().map(|(drive, _)| drive).collect();
    (document, facts::shared(&drives))
}

fn card(document: &Document, remarks: &[String]) -> String {
    let text = card::render(document, remarks);
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
        assert_eq!(line.trim_end(), line, "trailing spaces");
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
    text
}

/// Card and record of the drives of a machine; the whole of what is found out, serial numbers too.
fn check(name: &str) {
    let machine = Machine::new(name);
    let (document, remarks) = document(&machine, false);
    insta::assert_snapshot!(format!("{name}-card"), card(&document, &remarks));
    insta::assert_json_snapshot!(format!("{name}-record"), document.drives);
    let json = serde_json::to_string(&document).unwrap();
    assert_eq!(Document::from_json(&json).unwrap(), document);
}

macro_rules! machines {
    ($($test:ident: $name:literal,)*) => { $(#[test] fn $test() { check($name); })* };
}

machines! {
    a_sata_ssd: "sata-ssd",
    an_nvme_drive: "nvme",
    an_emmc: "emmc",
    an_sd_card: "sd-card",
    a_stick_with_bulk_only_transport: "bot-stick",
    a_dock_with_two_drives_of_one_serial_number: "uas-dock",
    a_usb_3_drive_at_usb_2_speed: "usb3-at-usb2",
    a_btrfs_of_two_disks: "btrfs-pair",
    an_encrypted_volume_on_nvme: "crypt-nvme",
    an_nvme_drive_in_a_tunnel: "tunnel",
    a_mirror_behind_a_port_multiplier: "md-mirror",
    a_loop_device_in_a_virtual_machine: "virtual",
    shares_programs_memory_and_overlays: "elsewhere",
    a_btrfs_of_two_loop_devices: "btrfs-on-loops",
}

#[test]
fn hosts_are_told_as_they_are() {
    for name in ["sata-ssd", "emmc", "virtual"] {
        let machine = Machine::new(name);
        let mut document = Document::begin("", "2026-10-03T14:05:09Z".parse().unwrap(), Copysim::default());
        document.hosts.push(host::read(&machine.host(), "h0", false));
        insta::assert_snapshot!(format!("{name}-host-card"), card(&document, &[]));
        insta::assert_json_snapshot!(format!("{name}-host-record"), document.hosts);
    }
}

#[test]
fn where_nothing_is_known_everything_is_unknown() {
    let root = tempfile::tempdir().unwrap();
    let empty = Host::at(root.path());
    let drive = Drive::of(&empty, "/x".into(), (8, 2));
    let mut document = Document::begin("", "2026-10-03T14:05:09Z".parse().unwrap(), Copysim::default());
    document.hosts.push(host::read(&empty, "h0", true));
    document.drives = facts::drives(&empty, Default::default(), &drive, "d0", "h0");
    assert_eq!(drive.link_bytes_per_s(), None);
    insta::assert_snapshot!(card(&document, &[]));
}

#[test]
fn two_drives_of_one_serial_number_are_two_and_two_directories_of_one_drive_are_one() {
    let dock = Machine::new("uas-dock").drives();
    assert_eq!(dock[0].0.devices[0].serial, dock[1].0.devices[0].serial);
    assert_eq!(dock[0].0.same_physical(&dock[1].0), Some(false));
    let image = Machine::new("virtual").drives();
    assert_eq!(image[0].0.same_physical(&image[1].0), Some(true));
}

#[test]
fn ceilings_are_those_of_the_narrowest_place() {
    let ceilings = |name| Machine::new(name).drives().iter().map(|(drive, _)| drive.link_bytes_per_s()).collect::<Vec<_>>();
    assert_eq!(ceilings("sata-ssd"), [Some(600_000_000)]);
    assert_eq!(ceilings("nvme"), [Some(1_969_230_769)]);
    assert_eq!(ceilings("crypt-nvme"), [Some(7_876_923_076)]);
    assert_eq!(ceilings("emmc"), [Some(200_000_000)]);
    assert_eq!(ceilings("sd-card"), [None]);
    assert_eq!(ceilings("bot-stick"), [Some(53_248_000)]);
    assert_eq!(ceilings("uas-dock"), [Some(500_000_000); 2]);
    assert_eq!(ceilings("btrfs-pair"), [Some(600_000_000 + 300_000_000)]);
    assert_eq!(ceilings("md-mirror"), [Some(300_000_000)]);
    assert_eq!(ceilings("virtual"), [None; 2]);
    assert_eq!(ceilings("elsewhere"), [None; 6]);
    // Where the kernel does not say that it is a tunnel, its bridges are known by their speed.
    let tunnel = Machine::new("tunnel");
    let ceiling = || tunnel.drives()[0].0.link_bytes_per_s();
    assert_eq!(ceiling(), None);
    tunnel.set("/sys/devices/pci0000:00/0000:00:1c.4/0000:06:00.0/0000:07:01.0/0000:09:00.0/removable", "unknown");
    assert_eq!(ceiling(), Some(3_938_461_538));
}

#[test]
fn a_masked_card_names_no_drive_no_server_and_no_owner() {
    let identity = mask::Identity { homes: vec!["/home/anna".into()], users: vec!["anna".into()], ..Default::default() };
    for name in ["sata-ssd", "nvme", "emmc", "sd-card", "bot-stick", "uas-dock", "usb3-at-usb2", "btrfs-pair", "virtual", "elsewhere"] {
        let (mut document, remarks) = document(&Machine::new(name), true);
        let own: Vec<String> = document.drives.iter().flat_map(|drive| [drive.serial.clone(), drive.uuid.clone()]).flatten().collect();
        assert_eq!(own.is_empty(), matches!(name, "virtual" | "elsewhere"), "{name}");
        mask::mask(&mut document, &identity).unwrap();
        assert!(document.drives.iter().all(|drive| drive.serial.is_none() && drive.uuid.is_none()));
        let texts = [serde_json::to_string(&document).unwrap(), card(&document, &remarks)];
        for secret in own.iter().map(String::as_str).chain(["atlas", "anna", "nas.home", "//nas", "192.168", "WORK"]) {
            assert!(texts.iter().all(|text| !text.contains(secret)), "{name}: {secret}: {}", texts[1]);
        }
    }
}

#[test]
fn nothing_that_a_drive_says_can_steer_the_terminal() {
    let machine = Machine::new("usb3-at-usb2");
    let device = "/sys/devices/pci0000:00/0000:00:14.0/usb1/1-3";
    let evil = "x\u{1b}]0;gotcha\u{7}\u{202e}\u{9b}2J";
    for fact in ["idProduct", "product", "version", "1-3:1.0/host4/target4:0:0/4:0:0:0/model", "1-3:1.0/host4/target4:0:0/4:0:0:0/rev"] {
        machine.set(&format!("{device}/{fact}"), evil);
    }
    machine.set(&format!("{device}/1-3:1.0/host4/target4:0:0/4:0:0:0/block/sdb/queue/scheduler"), &format!("[{evil}]"));
    machine.set("/answers/smartctl/-dev-sdb", &serde_json::json!({"smartctl": {"messages": [{"string": evil}]}}).to_string());
    machine.set("/proc/sys/kernel/osrelease", evil);
    let (document, remarks) = document(&machine, true);
    let text = card(&document, &remarks);
    assert!(text.matches("gotcha").count() >= 4 && !text.contains('\u{202e}'), "{text}");
}

#[test]
fn a_drive_that_wears_during_a_measurement_is_read_before_and_after() {
    let machine = Machine::new("sata-ssd");
    let (drive, space) = machine.drives().remove(0);
    let mut recorded = facts::drives(&machine.host(), space, &drive, "d0", "h0");
    let answer = machine.host().fact("/answers/smartctl/-dev-sda").unwrap();
    machine.set(
        "/answers/smartctl/-dev-sda",
        &answer.replace("29803511234", "29803511334").replace(
            "\"CRC_Error_Count\",\"value\":100,\"worst\":100,\"thresh\":0,\"raw\":{\"value\":0",
            "\"CRC_Error_Count\",\"value\":100,\"worst\":100,\"thresh\":0,\"raw\":{\"value\":4",
        ),
    );
    facts::after(&machine.host(), &drive, "d0", &mut recorded);
    let written = |health: &Option<copysim::result::Health>| health.as_ref().unwrap().value(copysim::result::Reading::HostWritten).unwrap();
    assert_eq!(written(&recorded[0].health_after) - written(&recorded[0].health_before), 100 * 512);
    assert!(recorded[0].advice.iter().any(|advice| advice.starts_with("Its link made 4 errors")), "{:?}", recorded[0].advice);
}

#[test]
fn a_volume_is_made_of_what_lies_directly_under_it() {
    let (document, _) = document(&Machine::new("md-mirror"), false);
    let under = |id: &str| document.drive(id).unwrap().under.clone();
    assert_eq!((under("d0"), under("d0.1"), under("d0.2")), (vec!["d0.1".to_owned(), "d0.2".to_owned()], vec![], vec![]));
    let machine = Machine::new("btrfs-on-loops");
    let (document, remarks) = self::document(&machine, false);
    let names: Vec<&str> = document.drives.iter().filter_map(|drive| drive.device.as_deref()).collect();
    assert_eq!(names, ["loop3", "vda", "loop4"], "the disk under both is there once");
    let text = card(&document, &remarks);
    assert!(text.starts_with("Drive     loop device on /var/one + loop device on /var/two, 3.07 GB, loop, the system disk; btrfs\n"), "{text}");
}

/// This machine, as `lsblk` sees it: what both know must be the same.
#[test]
fn this_machine_is_seen_as_lsblk_sees_it() {
    let Ok(output) = Command::new("lsblk").args(["-O", "--json", "--bytes"]).output() else {
        println!("skipped: lsblk is not installed");
        return;
    };
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut listed = Vec::new();
    flatten(&answer["blockdevices"], &mut listed);
    let mut compared = 0;
    for directory in ["/", "/home", "/dev/shm", "."] {
        let Ok(drive) = Drive::identify(&Host::real(), &OsFiles, Path::new(directory)) else { continue };
        let records = facts::drives(&Host::real(), facts::space(OS, &drive), &drive, "d0", "h0");
        for record in records.iter().filter(|record| record.device.is_some()) {
            let name = record.device.as_deref().unwrap();
            let Some(other) = listed.iter().find(|other| other["kname"].as_str() == Some(name)) else { panic!("lsblk does not list {name}") };
            let queue = record.queue.as_ref().unwrap();
            let number = |key: &str| other[key].as_u64().or_else(|| other[key].as_str()?.parse().ok());
            let word = |key: &str| other[key].as_str().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
            let same = |key: &str, ours: Option<u64>| {
                assert!(number(key).is_none() || ours.is_none() || number(key) == ours, "{name} {key}: {ours:?} {other}");
            };
            same("size", record.size_bytes);
            same("log-sec", queue.logical_block_bytes);
            same("phy-sec", queue.physical_block_bytes);
            same("disc-max", queue.discard_max_bytes);
            same("ra", queue.read_ahead_bytes.map(|bytes| bytes / 1024));
            same("rq-size", queue.requests);
            assert!(other["rota"].as_bool().is_none_or(|rotates| record.rotational.is_none_or(|ours| ours == rotates)), "{other}");
            assert!(other["rm"].as_bool().is_none_or(|removable| Some(removable) == record.removable), "{other}");
            // lsblk rounds up, and files are written meanwhile.
            let fill = word("fsuse%").and_then(|share| share.trim_end_matches('%').parse::<u8>().ok());
            assert!(
                fill.is_none_or(|fill| record.fill_percent.is_none_or(|ours| ours.abs_diff(fill) <= 1)),
                "{name}: {:?} {other}",
                record.fill_percent
            );
            assert!(word("sched").is_none_or(|scheduler| queue.scheduler.as_deref().is_none_or(|ours| ours == scheduler)), "{other}");
            if let (Some(serial), Some(ours)) = (word("serial"), &record.serial) {
                assert_eq!(serial, *ours);
            }
            compared += 1;
        }
    }
    println!("{compared} devices compared");
}

fn flatten(devices: &serde_json::Value, all: &mut Vec<serde_json::Value>) {
    for device in devices.as_array().into_iter().flatten() {
        flatten(&device["children"], all);
        all.push(device.clone());
    }
}
