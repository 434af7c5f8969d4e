//! A rate against what the link can carry: a lab drive that shows itself as one on USB 2, to a copysim that reads its facts there.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use copysim::catalogue::Environment;
use copysim::platform::{Host, OS};
use copysim::progress::Cancel;
use copysim::result::{Copysim, Document, Proof, Verdict};
use copysim::scenario::events::Silent;
use copysim::scenario::options::Options;
use copysim::scenario::plan::{Plan, Request};
use copysim::scenario::run::{Around, run};
use copysim::units::Scale;

use crate::lab::drive::Speed;
use crate::lab::mount::{FileSystem, LabDrive};
use crate::needs;

/// The facts of this machine, but for the drive, which hangs on a USB 2 port.
fn plugged_into_usb2(lab: &LabDrive) -> (tempfile::TempDir, Host) {
    let root = tempfile::tempdir().unwrap();
    let real = Path::new("/sys/block").join(lab.device().file_name().unwrap());
    let bus = root.path().join("sys/devices/pci0000:00/0000:00:14.0/usb1");
    let port = bus.join("1-1");
    // By its own name it would be taken for the loop device that it is.
    let disk = port.join("1-1:1.0/host0/target0:0:0/0:0:0:0/block/sdz");
    fs::create_dir_all(&disk).unwrap();
    for (directory, vendor) in [(&bus, "1d6b"), (&port, "0781")] {
        for (fact, value) in [("idVendor", vendor), ("idProduct", "0002"), ("speed", "480"), ("version", " 2.00")] {
            fs::write(directory.join(fact), value).unwrap();
        }
    }
    for fact in ["dev", "size", "stat", "removable", "queue"] {
        symlink(real.join(fact), disk.join(fact)).unwrap();
    }
    let number = fs::read_to_string(real.join("dev")).unwrap();
    let numbers = root.path().join("sys/dev/block");
    fs::create_dir_all(&numbers).unwrap();
    symlink(&disk, numbers.join(number.trim())).unwrap();
    for outside in ["proc/self", "proc/meminfo", "proc/swaps", "tmp", "var", "dev", "root", "home"] {
        let inside = root.path().join(outside);
        fs::create_dir_all(inside.parent().unwrap()).unwrap();
        symlink(Path::new("/").join(outside), inside).unwrap();
    }
    // In a virtual machine a port would say nothing.
    fs::write(root.path().join("proc/cpuinfo"), "flags : fpu\n").unwrap();
    let host = Host::at(root.path());
    (root, host)
}

#[test]
fn field_a01_a_rate_below_that_of_the_link_holds_and_one_above_is_impossible() {
    for (rate, verdict, impossible) in [(30_000_000, Verdict::Holds, false), (200_000_000, Verdict::Fails, true)] {
        needs!("mkfs.ext4");
        let lab = LabDrive::builder().file_system(FileSystem::Ext4).speed(Speed::rate(rate)).start().unwrap();
        let (_root, host) = plugged_into_usb2(&lab);
        let options = Options {
            runs: Some(1),
            scale: Scale::from_hundredths(if impossible { 1_000 } else { 150 }),
            settle: Some(std::time::Duration::from_millis(200)),
            yes: true,
            verify: false,
            ..Options::default()
        };
        let request = Request { scenario: "large-file-cross-drive", target: Some(lab.path()), source: None, options };
        let plan = Plan::resolve(request, OS, &host, &Environment::default()).unwrap();
        assert_eq!(plan.target_drive.link_bytes_per_s(), Some(53_248_000));
        let cancel = Cancel::default();
        let around = Around { system: OS, host: &host, observer: &Silent, cancel: &cancel, save: &|_: &Document| Ok(()) };
        let (document, outcome) = run(&plan, around, Copysim::default());
        outcome.unwrap();
        let phase = &document.runs[0].phases[0];
        println!("{:?} {:?}", phase.evidence, phase.flags);
        let found = phase.evidence.iter().find(|evidence| evidence.proof == Proof::BelowCeilings).unwrap();
        assert_eq!(found.verdict, verdict, "{}", found.because);
        assert_eq!(phase.flags.iter().any(|flag| flag.code == "impossible-rate"), impossible);
        // An impossible rate is none to quote.
        assert_eq!(document.summary.is_empty(), impossible);
    }
}
