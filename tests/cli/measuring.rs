//! A measurement from the command to the record: what is shown, what is kept, how it ends.

use std::fs;
use std::path::Path;

use copysim::catalogue::Environment;
use copysim::platform::{Host, OS};
use copysim::progress::Cancel;
use copysim::result::{Document, Status, store};
use copysim::scenario::consent;
use copysim::scenario::events::Silent;
use copysim::scenario::options::Options;
use copysim::scenario::plan::{Plan, Request};
use copysim::scenario::stage::Note;

use crate::person::{LITTLE, Person, below, is_root, patiently, ran, skipped};

/// The record in a text.
fn record(text: &str) -> Document {
    Document::from_json(text).unwrap()
}

#[test]
fn a_measurement_is_shown_kept_and_shown_again_byte_for_byte() {
    let person = Person::new();
    let shown = person.measures("jpg-same-drive", &["--label", "old stick"]).exits(0);
    let results = person.results();
    assert_eq!(results.len(), 1, "{results:?}");
    assert!(shown.err.ends_with(&format!("result: {}\n", results[0].display())), "{}", shown.err);
    let again = person.runs(["report", results[0].to_str().unwrap()]).exits(0);
    assert_eq!(again.out, shown.out);
    let whole = store::load(&results[0]).unwrap();
    assert_eq!((whole.status, whole.exit_code, whole.runs.len(), whole.label.as_deref()), (Status::Complete, Some(0), 3, Some("old stick")));
    for line in shown.out.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    for part in ["A folder of 6 photos (5.89 MB) ", "Scenario  jpg-same-drive", "all 6", "Remove it with: copysim clean ", "old stick"] {
        assert!(shown.out.contains(part), "{part}\n{}", shown.out);
    }
    for step in ["measuring ", "making jpg-v1-s0-p0.07 (6 files, 5.89 MB)", "run 1 of 3: copying 6 files, 5.89 MB", "run 3 of 3: comparing 6 files"] {
        assert!(shown.err.contains(step), "{step}\n{}", shown.err);
    }
    // The copies are gone and the corpus is there for the next time.
    assert!(below(&person.drive.path().join("copysim-workspace/runs")).is_empty());
    let second = person.measures("jpg-same-drive", &["--runs", "1"]).exits(0);
    assert!(second.err.contains("jpg-v1-s0-p0.07 is there and complete: it is used again"), "{}", second.err);
    // Several results are shown one after the other, and as JSON they are what was kept.
    let other = person.results().into_iter().find(|path| *path != results[0]).unwrap();
    let both = person.runs(["report", results[0].to_str().unwrap(), other.to_str().unwrap()]).exits(0).out;
    assert!(both.starts_with(&format!("{}\n{}\n", shown.out, second.out)), "{both}");
    let json = person.runs(["report", results[0].to_str().unwrap(), "--format", "json"]).exits(0).out;
    assert_eq!(record(&json), whole);
    person.runs(["report", results[0].to_str().unwrap(), "--format", "html"]).refuses("there is no format \"html\"; there are: text, json");
    person.runs(["report", results[0].to_str().unwrap(), "-o", "out/report.txt"]).exits(0);
    assert_eq!(fs::read_to_string(person.home.path().join("out/report.txt")).unwrap(), shown.out);
}

#[test]
fn what_says_whose_machine_it_was_is_masked_in_what_is_shown_too_and_the_command_still_works() {
    let person = Person::new();
    // A drive in the person's home, with a space in its name.
    let drive = person.home.path().join("my drive");
    fs::create_dir(&drive).unwrap();
    let measure = |more: &[&str]| {
        let args = [&["scenario", "jpg-same-drive", drive.to_str().unwrap(), "--runs", "1"], &LITTLE[..], more].concat();
        patiently(|| person.copysim(&args)).exits(0).out
    };
    let home = person.home.path().to_str().unwrap();
    let shown = measure(&[]);
    assert!(!shown.contains(home) && shown.contains("Kept: ~/my drive/copysim-workspace/corpora/jpg-v1-s0-p0.07 "), "{shown}");
    let command = shown.lines().find_map(|line| line.strip_prefix("Remove it with: ")).unwrap();
    assert_eq!(command, "copysim clean ~/my\\ drive");
    let named = measure(&["--identify"]);
    assert!(named.contains(&format!("Remove it with: copysim clean {home}/my\\ drive\n")), "{named}");
    let program = Path::new(env!("CARGO_BIN_EXE_copysim")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    ran(person.program("sh").arg("-c").arg(command).env("PATH", path)).exits(0);
    assert_eq!(below(&drive), Vec::<std::path::PathBuf>::new());
}

#[test]
fn results_go_where_they_were_wished() {
    let person = Person::new();
    let to = |more: &[&str]| person.measures("jpg-same-drive", &[&["--runs", "1"], more].concat()).exits(0);
    let json = to(&["--json", "-"]);
    let printed = record(&json.out);
    assert_eq!((printed.runs.len(), person.results().len()), (1, 1));
    assert_eq!(store::load(&person.results()[0]).unwrap(), printed);
    let text = to(&["--results", "kept", "--json", "sub/one.json"]).out;
    let kept = below(&person.home.path().join("kept"));
    assert_eq!((kept.len(), person.results().len()), (1, 1), "{kept:?}");
    assert!(text.contains("Scenario  jpg-same-drive"));
    assert_eq!(record(&fs::read_to_string(person.home.path().join("sub/one.json")).unwrap()), store::load(&kept[0]).unwrap());
}

#[test]
fn quiet_prints_the_result_and_where_it_is() {
    let person = Person::new();
    let ran = person.measures("jpg-same-drive", &["--runs", "1", "--quiet"]).exits(0);
    assert_eq!(ran.err, format!("result: {}\n", person.results()[0].display()));
    assert!(ran.out.contains("Scenario  jpg-same-drive"));
}

#[test]
fn samples_have_a_line_for_each_file_of_each_run() {
    let person = Person::new();
    person.measures("jpg-same-drive", &["--runs", "2", "--samples", "files.csv"]).exits(0);
    let text = fs::read_to_string(person.home.path().join("files.csv")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[0], lines.len()), ("run,start_ns,ns,bytes,path", 1 + 2 * 6));
    let bytes = |run: &str| -> u64 {
        lines[1..].iter().filter(|line| line.starts_with(run)).map(|line| line.split(',').nth(3).unwrap().parse::<u64>().unwrap()).sum()
    };
    assert_eq!([bytes("1,"), bytes("2,")], [5_887_210, 5_887_210]);
    // A file that can't be opened is told before anything is done.
    let other = Person::new();
    let failed = other.measures("jpg-same-drive", &["--samples", "/dev/null/files.csv"]).exits(1);
    assert!(failed.err.contains("cannot open /dev/null/files.csv: not a directory (ENOTDIR)"), "{}", failed.err);
    assert!(below(other.drive.path()).is_empty());
}

#[test]
fn strict_makes_an_invalid_figure_a_failure_and_nothing_else_does() {
    let person = Person::new();
    if !person.target().starts_with("/dev/shm") {
        return skipped("there is no place in memory, which is never cold");
    }
    let strict = person.measures("jpg-same-drive", &["--runs", "1", "--cache", "as-is", "--strict"]).exits(3);
    assert!(strict.out.contains("not-cold (invalid, run 1)"), "{}", strict.out);
    assert_eq!(store::load(&person.results()[0]).unwrap().exit_code, Some(3));
    person.measures("jpg-same-drive", &["--runs", "1"]).exits(0);
}

#[test]
fn a_place_for_results_that_takes_none_is_found_out_before_measuring() {
    let person = Person::new();
    let ran = person.measures("jpg-same-drive", &["--results", "/dev/null/results"]).exits(1);
    assert!(ran.err.contains("cannot keep results: write /dev/null/results/"), "{}", ran.err);
    assert_eq!((ran.out.as_str(), below(person.drive.path()).len()), ("", 0));
}

#[test]
fn a_place_for_results_that_goes_away_meanwhile_costs_no_figure() {
    let person = Person::new();
    let (results, temporary) = (person.home.path().join("results"), person.home.path().join("temporary"));
    fs::create_dir(&temporary).unwrap();
    // A copier that takes the place away, as an unplugged drive would.
    let copier = format!("command:cp -r {{source}}/. {{target}}/ && rm -rf {0} && touch {0}", results.display());
    let args = [&["scenario", "jpg-same-drive", person.target(), "--runs", "2", "--results", "results", "--engine", &copier], &LITTLE[..]].concat();
    let ran = patiently(|| {
        let mut command = person.copysim(&args);
        command.env("TMPDIR", &temporary);
        command
    });
    let ran = ran.exits(1);
    assert!(ran.out.contains("Scenario  jpg-same-drive") && ran.out.contains("run 2"), "{}", ran.out);
    let kept = below(&temporary);
    assert_eq!((kept.len(), store::load(&kept[0]).unwrap().runs.len()), (1, 2), "{kept:?}");
    assert!(ran.err.contains(&format!("result: {}\n", kept[0].display())), "{}", ran.err);
    assert!(ran.err.contains("copysim: cannot write results/"), "{}", ran.err);
}

#[test]
fn a_scenario_of_ones_own_by_path_finds_its_corpus_beside_itself() {
    let person = Person::new();
    person.file(
        "mine/corpora/tiny.toml",
        &include_str!("../../corpora/large-file.toml").replace("large-file", "tiny").replace("4_000_000_000", "40_000"),
    );
    let scenario =
        "name = \"mine\"\nversion = 1\nsummary = \"\"\nruns = 1\n[[phase]]\ncopy = { corpus = \"corpora/tiny.toml\", from = \"source\" }\n";
    let scenario = person.file("mine/scenario.toml", scenario);
    let args = ["scenario", &scenario, person.target(), "--source", "source", "--settle", "0s"];
    fs::create_dir(person.home.path().join("source")).unwrap();
    let ran = patiently(|| person.copysim(args)).exits(0);
    assert!(ran.out.contains("A file of 40.0 kB") && ran.err.contains("making tiny-v1-s0-p100 (1 file, 40.0 kB)"), "{}{}", ran.out, ran.err);
    // What was kept lies on the source, and that is what is named for removal.
    assert!(ran.out.contains("Remove it with: copysim clean ~/source\n"), "{}", ran.out);
    assert!(below(person.drive.path()).is_empty());
    let mixed = person.measures("jpg-cross-drive", &["--source", "source", "--runs", "1", "--keep"]).exits(0);
    assert!(mixed.out.contains(&format!("Remove it with: copysim clean {} && copysim clean ~/source\n", person.target())), "{}", mixed.out);
}

#[test]
fn copies_by_any_engine_thread_and_order_are_compared() {
    let person = Person::new();
    for more in [
        &["--threads", "3"][..],
        &["--order", "readdir"],
        &["--engine", "copy-file-range"],
        &["--engine", "command:cp -rp {source}/. {target}/"],
        &["--cache", "warm"],
    ] {
        let out = person.measures("jpg-same-drive", &[more, &["--runs", "1"]].concat()).exits(0).out;
        assert!(out.contains("all 6"), "{more:?}: {out}");
    }
    let unverified = person.measures("jpg-same-drive", &["--no-verify", "--runs", "1"]).exits(0).out;
    assert!(!unverified.contains("all 6"), "{unverified}");
}

#[test]
fn a_copier_that_fails_or_lies_is_told_and_its_copy_removed() {
    let person = Person::new();
    let failed = person.measures("jpg-same-drive", &["--engine", "command:echo no luck >&2; false {source} {target}"]).exits(1);
    assert!(failed.err.contains("failed (exit status: 1): no luck"), "{}", failed.err);
    assert!(failed.out.starts_with("FAILED: the command "), "{}", failed.out);
    let lazy = "command:cp -r {source}/. {target}/ && truncate -s 100 {target}/DCIM/100MEDIA/IMG_0003.JPG";
    let lied = person.measures("jpg-same-drive", &["--engine", lazy]).exits(4);
    assert!(lied.err.contains("1 of 6 files of the copy in ") && lied.err.contains("IMG_0003.JPG: truncated: ends at byte 100 of "), "{}", lied.err);
    assert!(lied.out.starts_with("DATA DIFFER: 1 of 6 files are not what was written (copy, run 1)."), "{}", lied.out);
    assert!(below(&person.drive.path().join("copysim-workspace/runs")).is_empty());
    let kept = person.results().into_iter().map(|path| store::load(&path).unwrap());
    let mut statuses: Vec<_> = kept.map(|found| (found.status, found.exit_code)).collect();
    statuses.sort_by_key(|(_, code)| *code);
    assert_eq!(statuses, [(Status::Failed, Some(1)), (Status::Failed, Some(4))]);
}

#[test]
fn field_c08_a_hole_in_a_copy_is_no_copy() {
    let person = Person::new();
    // What a copier leaves that believes a file system in which data still to be written look like a hole: its copy agrees with the source as it saw it.
    let holed = "command:cp -r {source}/. {target}/ && fallocate -p -o 4096 -l 8192 {target}/DCIM/100MEDIA/IMG_0003.JPG";
    let ran = person.measures("jpg-same-drive", &["--engine", holed, "--runs", "1"]);
    if ran.err.contains("Operation not supported") || ran.err.contains("not found") {
        return skipped("there is no fallocate that makes holes here");
    }
    let ran = ran.exits(4);
    assert!(ran.err.contains("IMG_0003.JPG: zeroed: 8192 bytes from byte 4096 on are zero"), "{}", ran.err);
    assert!(ran.out.starts_with("DATA DIFFER: 1 of 6 files are not what was written (copy, run 1)."), "{}", ran.out);
    // A copy with holes where zeros are is right: what counts is what is read.
    let zeros = "command:cp -r --sparse=always {source}/. {target}/";
    let sparse =
        [&["scenario", "zero-fill-same-drive", person.target(), "--engine", zeros, "--runs", "1", "--scale", "0.2%", "--settle", "0s"][..]].concat();
    patiently(|| person.copysim(&sparse)).exits(0);
}

/// A plan for a drive of any size, through the library.
fn consent(scale: &str, yes: bool, durable_ns: u64, total_bytes: u64) -> Result<(), String> {
    let options = Options { scale: scale.parse().unwrap(), yes, ..Options::default() };
    let person = Person::new();
    let request = Request { scenario: "jpg-same-drive", target: Some(person.drive.path()), source: None, options };
    let plan = Plan::resolve(request, OS, &Host::real(), &Environment::default()).unwrap();
    let note = Note { at_s: 0, bytes: 256_000_000, durable_ns };
    let asked = consent::ask(&plan, note, 0, Some(total_bytes), &Silent, &Cancel::default());
    asked.map_err(|error| {
        assert_eq!(error.exit_code(), 2);
        error.to_string()
    })
}

#[test]
fn much_time_or_space_needs_a_yes_or_a_smaller_scale_which_is_named() {
    const TB: u64 = 1_000_000_000_000;
    for (durable_ns, total_bytes) in [(256_000_000, 100_000_000_000), (10_000_000_000, 4 * TB), (100_000_000_000, 20_000_000_000)] {
        let refused = consent("100%", false, durable_ns, total_bytes).unwrap_err();
        assert!(refused.starts_with("jpg-same-drive takes about ") && refused.contains(": say --yes to do that, or --scale "), "{refused}");
        consent("100%", true, durable_ns, total_bytes).unwrap();
        let scale = refused.split("--scale ").nth(1).unwrap().split(' ').next().unwrap();
        consent(scale, false, durable_ns, total_bytes).unwrap();
    }
    // 1 GB/s on a large drive needs no question.
    consent("100%", false, 256_000_000, 4 * TB).unwrap();
}

#[test]
fn a_small_drive_is_not_filled_without_a_yes() {
    if !is_root() {
        return skipped("only root mounts a small drive");
    }
    let person = Person::new();
    let small = crate::rights::Mounted::tmpfs(person.home.path(), "size=100m");
    let Some(small) = small else { return skipped("no tmpfs can be mounted") };
    let path = small.path().to_str().unwrap();
    let measure = |more: &[&str]| {
        let args = [&["scenario", "jpg-same-drive", path, "--runs", "1", "--settle", "0s"], more].concat();
        patiently(|| person.copysim(&args))
    };
    let refused = measure(&["--scale", "0.2%"]).exits(2);
    assert!(refused.err.contains(": say --yes to do that, or --scale "), "{}", refused.err);
    assert_eq!((below(small.path()).len(), person.results().len(), refused.out.as_str()), (0, 0, ""));
    let scale = refused.err.split("or --scale ").nth(1).unwrap().split(' ').next().unwrap();
    measure(&["--scale", scale]).exits(0);
    measure(&["--scale", "0.2%", "--yes"]).exits(0);
}
