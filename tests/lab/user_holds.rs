//! An ordinary user and file systems without a drive: everything is done, and what can't be known is called unknown.

use serde_json::{Value, json};

use crate::lab::drive::Speed;
use crate::lab::memory_fs::{MemoryFs, Nature};
use crate::lab::mount::{FileSystem, LabDrive};
use crate::needs;
use crate::program::{Order, Truth, ratio};

#[test]
fn field_a04_an_ordinary_user_measures_cold_data_and_gets_one_mark() {
    needs!("mkfs.ext4", "setpriv");
    let lab = LabDrive::builder().file_system(FileSystem::Ext4).speed(Speed::rate(50_000_000)).start().unwrap();
    let home = crate::users_directory(lab.path());
    for scenario in ["large-file-same-drive", "jpg-same-drive"] {
        let scale = if scenario.starts_with("jpg") { "--scale 1%" } else { "--scale 2%" };
        let ended = Order::new(scenario, &home).with(scale).with("--runs 2").by_nobody().paced(&[&lab]);
        assert_eq!(ended.runs(), 2);
        for run in [1, 2] {
            let phase = ended.phase(run);
            phase.is_proven(&["metadata-warm"]);
            assert_eq!((phase.flags("weak"), phase.flags("invalid")), (vec!["metadata-warm"], vec![]));
            assert_eq!((&phase["cache"]["data"], &phase["cache"]["metadata"]), (&json!("cold"), &json!("warm")));
            assert_eq!(phase.verdict("cold-metadata"), "fails", "{}", phase["evidence"]);
            let truth = Truth::after(&lab.log, phase.opened_ns());
            assert!(
                truth.read_bytes >= phase.number("/bytes") && ratio(phase.number("/device/d0/read_bytes"), truth.read_bytes) < 1.005,
                "{truth:?}"
            );
        }
        assert!(ended.has_headline());
    }
}

#[test]
fn a_file_system_without_a_drive_is_measured_and_its_unknowns_are_named() {
    needs!();
    let memory = MemoryFs::start(512 << 20).unwrap();
    for scenario in ["large-file-same-drive", "large-file-cross-drive"] {
        let ended = Order::new(scenario, memory.path()).with("--scale 4% --runs 1").done();
        let phase = ended.phase(1);
        println!("{scenario}: {} {}", phase["evidence"], phase["flags"]);
        assert_eq!(phase["device"], json!({}));
        assert_eq!(phase.verdicts(), [if scenario.contains("same") { "unknown" } else { "holds" }, "unknown", "unknown"]);
        assert_eq!(phase["window"]["quiet_ns"], Value::Null);
        assert!(phase["window"]["quiet_reason"].is_string(), "{}", phase["window"]);
        assert!(phase["window"]["durable_ns"].is_u64() && phase.flags("weak").contains(&"flush-unknown"), "{}", phase["flags"]);
        assert!(phase.flags("invalid").is_empty());
        phase.is_verified();
    }
}

#[test]
fn field_b03_a_file_system_that_can_not_flush_gets_no_rate() {
    needs!();
    let memory = MemoryFs::with(Nature { capacity: 512 << 20, fsync: Some(libc::EOPNOTSUPP), ..Nature::default() }).unwrap();
    let ended = Order::new("large-file-same-drive", memory.path()).with("--scale 4% --runs 1").done();
    let phase = ended.phase(1);
    println!("{} {} {} {}", phase["evidence"], phase["flags"], phase["flush"], phase["window"]);
    assert_eq!(phase["window"]["durable_ns"], Value::Null);
    assert_eq!(phase.verdict("durable"), "unknown");
    assert!(phase.flags("weak").contains(&"flush-unknown"), "{}", phase["flags"]);
    assert!(!ended.has_headline(), "{}", ended.record["summary"]);
    phase.is_verified();
}
