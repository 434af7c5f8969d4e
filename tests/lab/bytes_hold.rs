//! Wrong bytes are known for what they are, where they are and whose fault they are: every kind at once, each in a file of its own.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::failures_hold::place_of;
use crate::lab::drive::Speed;
use crate::lab::faults::Damage;
use crate::lab::log::Kind;
use crate::lab::mount::{FileSystem, LabDrive};
use crate::program::Order;
use crate::{left_in, needs};

/// The pictures below a directory, in order.
fn pictures(directory: &Path) -> Vec<PathBuf> {
    let entries = walkdir::WalkDir::new(directory).sort_by_file_name().into_iter().map(|entry| entry.unwrap().into_path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("jpg"))).collect()
}

#[test]
fn wrong_bytes_are_known_for_what_they_are_and_whose_fault_they_are() {
    needs!("mkfs.ext4", "filefrag");
    let lab = LabDrive::builder().file_system(FileSystem::Ext4).speed(Speed::rate(100_000_000)).start().unwrap();
    let running = Order::new("jpg-same-drive", lab.path()).with("--scale 0.2% --runs 1").start_before_the_window(&lab);
    let corpora = lab.path().join("copysim-workspace/corpora");
    let sources = pictures(&corpora);
    let flip_at = |file: &Path, byte: u64| {
        let place = place_of(file, byte);
        Damage::Flip(place..place + 1, 0b11)
    };
    // What is wrong at the source is copied as it is.
    lab.faults.damage(flip_at(&sources[9], 70_001));
    running.wait_for("waiting until the drive is quiet");
    let copies = pictures(&lab.path().join("copysim-workspace/runs"));
    assert_eq!((copies.len(), left_in(lab.path()).is_empty()), (sources.len(), false));
    std::fs::remove_file(&copies[11]).unwrap();
    std::fs::File::options().write(true).open(&copies[10]).unwrap().set_len(50_000).unwrap();
    let block = |file: usize, byte: u64| place_of(&copies[file], byte)..place_of(&copies[file], byte) + 4096;
    lab.faults.damage(flip_at(&copies[0], 12_345));
    lab.faults.damage(Damage::Zero(block(1, 20_480)));
    lab.faults.damage(Damage::Garbage(block(2, 40_960)));
    lab.faults.damage(Damage::Swap(block(3, 8192).start, block(4, 61_440).start, 4096));
    lab.faults.damage(Damage::Once(block(5, 81_920), 0x10));
    lab.faults.damage(Damage::Flicker(block(6, 4096).start..block(6, 4096).start + 1, 1));
    lab.faults.fail(Kind::Read, Some(block(7, 16_384)), libc::EIO);
    lab.faults.damage(Damage::Zero(block(8, 8192)));
    lab.faults.damage(Damage::Garbage(block(8, 32_768)));
    let ended = running.end();
    println!("{}{}", ended.err, ended.out);
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    let integrity = &ended.phase(1)["integrity"];
    assert_eq!((integrity["stale_detectable"].as_bool(), integrity["stale_because"].is_string()), (Some(false), true));
    let mut found: HashMap<&str, &Value> =
        integrity["mismatches"].as_array().unwrap().iter().map(|mismatch| (mismatch["path"].as_str().unwrap(), mismatch)).collect();
    let path = |file: usize| sources[file].strip_prefix(corpora.join("jpg-v1-s0-p0.2/files")).unwrap().to_str().unwrap();
    let mut of = |file: usize| found.remove(path(file)).unwrap_or_else(|| panic!("{} is taken for good", path(file)));
    let words = |found: &Value| ["difference", "second_read", "blame"].map(|field| found[field].as_str().unwrap_or("null").to_owned());
    let numbers = |found: &Value, fields: [&str; 2]| fields.map(|field| found[field].as_u64());

    for (file, what, first, last) in [(0, "bits-flipped", 12_345, 12_345), (1, "zeroed", 20_480, 24_575), (2, "garbage", 40_960, 45_055)] {
        let found = of(file);
        assert_eq!(words(found), [what, "agrees", "target"], "{found}");
        assert_eq!(numbers(found, ["first_byte", "last_byte"]), [Some(first), Some(last)], "{found}");
        assert_eq!((found["range_count"].as_u64(), found["ranges"][0]["difference"].as_str()), (Some(1), Some(what)), "{found}");
        if what == "bits-flipped" {
            assert_eq!(numbers(found, ["different_bytes", "different_bits"]), [Some(1), Some(2)], "{found}");
        }
    }
    for (file, at, whose, there) in [(3, 8192, 4, 61_440), (4, 61_440, 3, 8192)] {
        let found = of(file);
        assert_eq!(words(found), ["elsewhere", "agrees", "target"], "{found}");
        assert_eq!(numbers(found, ["first_byte", "last_byte"]), [Some(at), Some(at + 4095)], "{found}");
        assert_eq!((found["from_file"].as_str(), found["from_byte"].as_u64()), (Some(path(whose)), Some(there)), "{found}");
    }
    let once = of(5);
    assert_eq!(words(once), ["changed", "differs-as-expected", "host"], "{once}");
    let [first, last] = numbers(once, ["first_byte", "last_byte"]);
    assert!(first <= Some(81_920) && last >= Some(86_015) && last < first.map(|first| first + 131_072), "{once}");
    let flicker = of(6);
    assert_eq!(words(flicker), ["bits-flipped", "differs-other", "host"], "{flicker}");
    assert_eq!(numbers(flicker, ["first_byte", "last_byte"]), [Some(4096), Some(4096)]);
    assert_eq!(words(of(7)), ["unreadable", "agrees", "target"]);
    let several = of(8);
    assert_eq!(words(several), ["changed", "agrees", "target"], "{several}");
    let ranges: Vec<_> =
        several["ranges"].as_array().unwrap().iter().map(|range| (range["first_byte"].as_u64(), range["difference"].as_str())).collect();
    assert_eq!(ranges, [(Some(8192), Some("zeroed")), (Some(32_768), Some("garbage"))]);
    let source = of(9);
    assert_eq!(words(source), ["bits-flipped", "agrees", "source"], "{source}");
    assert_eq!(numbers(source, ["first_byte", "different_bits"]), [Some(70_001), Some(2)], "{source}");
    let truncated = of(10);
    assert_eq!(
        (words(truncated), truncated["first_byte"].as_u64()),
        (["truncated", "agrees", "target"].map(str::to_owned), Some(50_000)),
        "{truncated}"
    );
    assert_eq!(words(of(11))[..2], ["missing", "not-possible"]);
    assert!(found.is_empty(), "{found:?}");
    for words in ["hold the bytes of", "a second cold read agrees: the target is to blame"] {
        // Lines are broken where they are full.
        assert!(ended.out.split_whitespace().collect::<Vec<_>>().join(" ").contains(words), "{}", ended.out);
    }
    lab.faults.clear();
}
