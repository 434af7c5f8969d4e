//! A check of the capacity as a person makes it: what it refuses, what it says, what it leaves; and files of F3, made here by another program than copysim.

use std::path::Path;

use serde_json::Value;

use crate::person::{Person, Ran, below, patiently};

fn checks(person: &Person, more: &[&str]) -> Ran {
    let args = [&["capacity", person.target(), "--json", "record.json"], more].concat();
    patiently(|| person.copysim(&args))
}

fn found(person: &Person) -> Value {
    let record: Value = serde_json::from_slice(&std::fs::read(person.home.path().join("record.json")).unwrap()).unwrap();
    record["runs"][0]["phases"].as_array().unwrap().last().unwrap()["capacity"].clone()
}

/// Sectors of a file of F3, by its published recipe.
fn h2w(number: u64, sectors: u64) -> Vec<u8> {
    let words = (0..sectors).flat_map(|sector| {
        let offset = (number - 1) * (1 << 30) + sector * 512;
        std::iter::successors(Some(offset), |word| Some(word.wrapping_mul(4_294_967_311).wrapping_add(17))).take(64)
    });
    words.flat_map(u64::to_le_bytes).collect()
}

#[test]
fn a_drive_that_holds_all_is_told_so_and_left_as_it_was() {
    let person = Person::with_a_drive();
    std::fs::write(person.drive.path().join("mine"), "mine").unwrap();
    let ran = checks(&person, &["--size", "20 MB", "--yes"]).exits(0);
    assert!(ran.out.starts_with("All 20.0 MB that were written hold what was written; the rest of the drive was not tried.\n"), "{}", ran.out);
    let found = found(&person);
    assert_eq!((found["verdict"].as_str(), found["tested_bytes"].as_u64()), (Some("holds-all"), Some(20_000_000 / 512 * 512)));
    assert_eq!(below(person.drive.path()), [person.drive.path().join("mine")]);
    assert_eq!(person.results().len(), 1, "{:?}", person.results());
}

#[test]
fn kept_data_are_read_again_and_clean_removes_them() {
    let person = Person::with_a_drive();
    for arguments in [&["--size", "9 MB", "--yes", "--keep"][..], &["--keep"], &[]] {
        let ran = checks(&person, arguments).exits(0);
        let kept = below(&person.drive.path().join("copysim-workspace/runs"));
        assert_eq!(kept.len(), usize::from(arguments.contains(&"--keep")), "{kept:?} {}", ran.err);
        assert_eq!(ran.err.contains("are read again"), !arguments.contains(&"--size"), "{}", ran.err);
        assert_eq!(found(&person)["verdict"], "holds-all");
    }
    checks(&person, &["--size", "9 MB", "--yes", "--keep"]).exits(0);
    // Another measurement leaves them alone; clean does not.
    let kept = below(&person.drive.path().join("copysim-workspace/runs"));
    person.measures("jpg-same-drive", &["--runs", "1"]).exits(0);
    assert_eq!(below(&person.drive.path().join("copysim-workspace/runs")), kept);
    person.runs(["clean", person.target()]).exits(0);
    assert_eq!(below(person.drive.path()), Vec::<std::path::PathBuf>::new());
}

#[test]
fn what_cannot_be_filled_is_refused_with_its_reason() {
    let person = Person::with_a_drive();
    person.runs(["capacity"]).exits(2);
    person.runs(["capacity", "nowhere"]).refuses("does not exist: name a directory that does");
    for (arguments, words) in [
        (&["--size", "900 TB", "--yes"][..], "that may be filled, and --size says 900 TB"),
        (&["--size", "100"], "--size: at least 1.05 MB are needed to say anything"),
        (&["--size", "30 MB", "--max-write", "20 MB"], "30.0 MB would be written, more than --max-write 20.0 MB"),
        (&["--check"], "there are no files of F3 or h2testw"),
        (&["--check", "--keep"], "cannot be used with"),
    ] {
        let ran = checks(&person, arguments).exits(2);
        assert!(ran.err.contains(words), "{}", ran.err);
        assert_eq!(below(person.drive.path()), Vec::<std::path::PathBuf>::new());
    }
}

#[test]
fn a_drive_is_not_filled_without_consent() {
    let person = Person::new();
    // All of it is more than a tenth; nobody can be asked.
    let ran = checks(&person, &[]).exits(2);
    assert!(ran.err.contains("say --yes to do that, or --size for less"), "{}", ran.err);
    assert_eq!(below(person.drive.path()), Vec::<std::path::PathBuf>::new());
}

#[test]
fn files_of_f3_are_checked_and_nothing_is_written() {
    let person = Person::with_a_drive();
    let put = |name: &str, data: &[u8]| std::fs::write(person.drive.path().join(name), data).unwrap();
    put("1.h2w", &h2w(1, 4000));
    put("2.h2w", &h2w(2, 3000));
    put("note.txt", b"mine");
    let before = below(person.drive.path());
    let ran = checks(&person, &[]).exits(0);
    assert!(ran.out.starts_with("All 3.58 MB of test data are what F3 or h2testw wrote.\n"), "{}", ran.out);
    assert!(ran.err.contains("they are checked and nothing is written"), "{}", ran.err);

    let mut second = h2w(2, 3000);
    second[512 * 100..512 * 101].copy_from_slice(&h2w(1, 8)[512 * 7..]);
    second[512 * 200 + 9] ^= 1;
    second[512 * 300..512 * 310].fill(0);
    put("2.h2w", &second);
    let ran = checks(&person, &["--check"]).exits(4);
    assert!(ran.out.starts_with("DATA DIFFER: "), "{}", ran.out);
    let found = found(&person);
    assert_eq!(found["found"], serde_json::json!({"good": 512 * 6988, "elsewhere": 512, "bits-flipped": 512, "zeros": 5120}));
    let first = &found["ranges"][0];
    assert_eq!((first["file"].as_str(), first["first_byte"].as_u64()), (Some("2.h2w"), Some(51_200)));
    assert_eq!((first["from_file"].as_str(), first["from_byte"].as_u64()), (Some("1.h2w"), Some(3584)));
    assert_eq!(before, below(Path::new(person.target())));
}
