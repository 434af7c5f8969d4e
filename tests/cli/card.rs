//! `copysim drive`, and what two results differ in.

use serde_json::Value;

use crate::person::{LITTLE, Person};

#[test]
fn drives_are_shown_without_being_touched() {
    let person = Person::new();
    let other = person.home.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let shown = person.runs(["drive", person.target(), other.to_str().unwrap()]).exits(0);
    assert_eq!(shown.err, "");
    assert_eq!(shown.out.matches("Drive     ").count(), 2, "{}", shown.out);
    assert!(shown.out.contains("\nHOST\nSystem    "), "{}", shown.out);
    assert!(shown.out.contains("lie on the same physical drive"), "{}", shown.out);
    assert_eq!(std::fs::read_dir(person.drive.path()).unwrap().count(), 0);
    let here = person.runs(["drive"]).exits(0);
    assert_eq!(here.out.matches("Drive     ").count(), 1);
    let missing = person.runs(["drive", "/no/such/place"]).exits(1);
    assert!(missing.err.contains("cannot open /no/such/place: no such file or directory (ENOENT)"), "{}", missing.err);
}

#[test]
fn the_same_facts_are_json_in_the_shapes_of_the_record() {
    let person = Person::new();
    let printed = person.runs(["drive", person.target(), "--json", "-"]).exits(0).out;
    let facts: Value = serde_json::from_str(&printed).unwrap();
    let keys: Vec<&String> = facts.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["drives", "hosts"]);
    serde_json::from_value::<Vec<copysim::result::Host>>(facts["hosts"].clone()).unwrap();
    let drives: Vec<copysim::result::Drive> = serde_json::from_value(facts["drives"].clone()).unwrap();
    assert!(drives[0].path.as_deref().is_some_and(|path| path.ends_with(person.drive.path().file_name().unwrap().to_str().unwrap())));
    assert_eq!(facts["hosts"][0].get("name"), None);
    person.runs(["drive", person.target(), "--json", "facts.json", "--identify"]).exits(0);
    let written: Value = serde_json::from_str(&std::fs::read_to_string(person.home.path().join("facts.json")).unwrap()).unwrap();
    assert_eq!(written["hosts"][0]["kernel"], facts["hosts"][0]["kernel"]);
    assert_eq!(written["hosts"][0]["name"].as_str(), std::fs::read_to_string("/proc/sys/kernel/hostname").ok().as_deref().map(str::trim));
}

#[test]
fn two_results_are_shown_with_what_they_differ_in() {
    let person = Person::new();
    let measure = |name: &str, more: &[&str]| {
        let args = [&["scenario", "jpg-same-drive", person.target(), "--runs", "1", "--quiet", "--json", name][..], &LITTLE, more].concat();
        person.runs(args).exits(0);
    };
    measure("one.json", &[]);
    measure("two.json", &["--threads", "2"]);
    let text = person.runs(["report", "one.json", "two.json"]).exits(0).out;
    let (_, differences) = text.split_once("WHAT DIFFERS BESIDES THE FIGURES (the first against the second)\n").unwrap();
    assert!(differences.contains("  threads: 1 against 2\n"), "{differences}");
    assert!(!differences.contains("kernel"), "{differences}");
    let json = person.runs(["report", "one.json", "two.json", "--format", "json"]).exits(0).out;
    assert!(!json.contains("WHAT DIFFERS"));
}
