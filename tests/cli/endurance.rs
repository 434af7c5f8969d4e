//! An endurance test as a person makes it: what it refuses, what it says, what it leaves.

use serde_json::Value;

use crate::person::{Person, Ran, below, patiently};

fn tests(person: &Person, more: &[&str]) -> Ran {
    let args = [&["endurance", person.target(), "--json", "record.json"], more].concat();
    patiently(|| person.copysim(&args))
}

#[test]
fn a_drive_that_keeps_its_word_is_told_so_and_left_as_it_was() {
    let person = Person::with_a_drive();
    std::fs::write(person.drive.path().join("mine"), "mine").unwrap();
    let ran = tests(&person, &["--max-write", "24MiB", "--size", "4MiB", "--yes"]).exits(0);
    assert!(ran.out.starts_with("Nothing was lost: 25.2 MB were written in 5 rounds within "), "{}", ran.out);
    assert!(ran.err.contains("this writes to the drive up to 25.2 MB, which wears it"), "{}", ran.err);
    let record: Value = serde_json::from_slice(&std::fs::read(person.home.path().join("record.json")).unwrap()).unwrap();
    let phases = record["runs"][0]["phases"].as_array().unwrap();
    let names: Vec<&str> = phases.iter().map(|phase| phase["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["static", "rewrite", "reread", "last look"]);
    let found = &phases[3]["endurance"];
    let rounds = found["rounds"].as_array().unwrap();
    assert_eq!((rounds.len(), found["written_bytes"].as_u64(), found["static_files"].as_u64()), (5, Some(24 << 20), Some(4)));
    let sum = |field: &str| rounds.iter().map(|round| round[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("written_bytes"), sum("bad_bytes")), (20 << 20, 0));
    // Each round reads what it wrote and a quarter of the static data; at the end all is read once more.
    assert_eq!((sum("read_bytes"), found["read_bytes"].as_u64()), (25 << 20, Some(33 << 20)));
    assert!(rounds.iter().all(|round| round["write_ns"].as_u64() > Some(0) && round["read_ns"].as_u64() > Some(0)));
    assert_eq!(phases[2]["integrity"]["stale_detectable"], true);
    assert_eq!(below(person.drive.path()), [person.drive.path().join("mine")]);
    assert_eq!(person.results().len(), 1, "{:?}", person.results());
    // A result can be shown again.
    assert_eq!(person.runs(["report", "record.json"]).exits(0).out, ran.out);
}

#[test]
fn it_ends_when_the_time_is_over() {
    let person = Person::with_a_drive();
    let ran = tests(&person, &["--max-time", "100ms", "--size", "1MiB", "--yes"]).exits(0);
    assert!(ran.out.contains("--max-time, after "), "{}", ran.out);
}

#[test]
fn what_cannot_be_meant_is_refused_with_its_reason() {
    let person = Person::new();
    person.runs(["endurance"]).exits(2);
    for (arguments, words) in [
        (&[][..], "writing without end wears any drive out: say --max-time (2h) or --max-write (500GB), or both"),
        (&["--max-write", "20MB", "--size", "100"], "--size: at least 1.05 MB are needed to say anything"),
        (&["--max-write", "20MB", "--size", "20MB"], "--max-write 20.0 MB leaves nothing to write over beside 19.9 MB of static data"),
        (&["--max-write", "900TB", "--size", "400TB", "--yes"], "static data and those that are written over take 800 TB"),
        (&["--max-time", "16min"], "this writes to the drive for up to 16m, which wears it: say --yes to do that"),
    ] {
        let ran = tests(&person, arguments).exits(2);
        assert!(ran.err.contains(words), "{}", ran.err);
        assert_eq!(below(person.drive.path()), Vec::<std::path::PathBuf>::new());
    }
}
