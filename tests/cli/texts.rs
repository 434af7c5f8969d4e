//! What a person reads before they measure anything.

use std::io::Read;
use std::process::Stdio;

use crate::person::{Person, ran};

/// What a command prints that succeeds without a word beside it.
fn prints(person: &Person, args: &[&str]) -> String {
    let ran = person.runs(args).exits(0);
    assert_eq!(ran.err, "", "{args:?}");
    for line in ran.out.lines() {
        assert!(line.chars().count() <= 115 || line.contains("/copysim-workspace"), "{} columns: {line}", line.chars().count());
    }
    ran.out
}

#[test]
fn help_says_what_there_is() {
    let person = Person::new();
    for (name, args) in [("help", &["--help"][..]), ("help_scenario", &["scenario", "--help"]), ("help_corpus", &["corpus", "--help"])] {
        insta::assert_snapshot!(name, prints(&person, args));
    }
    assert_eq!(prints(&person, &["--version"]), format!("copysim {}\n", env!("CARGO_PKG_VERSION")));
    // Without a command the help is shown, as for a mistake.
    let nothing = person.runs([""; 0]).exits(2);
    assert_eq!(nothing.err, prints(&person, &["--help"]));
}

#[test]
fn lists_name_every_thing_and_what_it_is() {
    let person = Person::new();
    let all = prints(&person, &["list"]);
    insta::assert_snapshot!("list", all);
    let parts = ["scenario", "corpus", "engine"].map(|kind| prints(&person, &["list", "--kind", kind]));
    assert_eq!(parts.join("\n"), all);
}

#[test]
fn definitions_are_shown_as_they_are_written() {
    let person = Person::new();
    let written = include_str!("../../corpora/jpg.toml");
    assert_eq!(prints(&person, &["show", "jpg"]), format!("# jpg (built in)\n{written}"));
    assert!(prints(&person, &["show", "jpg-same-drive"]).ends_with(include_str!("../../scenarios/jpg-same-drive.toml")));
    person.runs(["show", "jpgg"]).refuses("there is no scenario or corpus \"jpgg\": did you mean \"jpg\"?");
}

#[test]
fn a_plan_says_every_step_and_does_nothing() {
    let person = Person::new();
    let source = person.home.path().join("pictures");
    std::fs::create_dir(&source).unwrap();
    let plan = |args: &[&str]| {
        // Where lines break depends on how long the paths are.
        let text = person.redact(&prints(&person, &[&["plan"], args].concat()).replace("\n      ", " "));
        // What the machine is made of is not the same everywhere.
        let lines = text.lines().map(|line| match line.split_once(" on ").or_else(|| line.split_once(" in memory")) {
            Some((start, _)) if line.starts_with("  measures") || line.starts_with("  copies from") => format!("{start} …\n"),
            _ => format!("{line}\n"),
        });
        lines.collect::<String>()
    };
    insta::assert_snapshot!("plan_same_drive", plan(&["jpg-same-drive", person.target(), "--quick"]));
    let cross = ["mp3-cross-drive", person.target(), "--source", source.to_str().unwrap(), "--runs", "1", "--cache", "warm", "--keep", "--no-verify"];
    insta::assert_snapshot!("plan_cross_drive", plan(&cross));
    assert_eq!((std::fs::read_dir(&person.drive).unwrap().count(), std::fs::read_dir(&source).unwrap().count()), (0, 0));
}

#[test]
fn a_manual_page_and_completions_are_made_from_the_same_definitions() {
    let person = Person::new();
    let page = ran(person.copysim(["man"]).env("COLUMNS", "80")).exits(0).out;
    assert!(page.contains(".TH copysim 1") && page.contains("copysim\\-scenario"), "{page}");
    for shell in ["bash", "zsh", "fish"] {
        let script = person.runs(["completions", shell]).exits(0).out;
        assert!(script.contains("scenario") && script.contains("max-write"), "{shell}");
    }
    let syntax = person.program("bash").arg("-n").stdin(Stdio::piped()).spawn();
    if let Ok(mut bash) = syntax {
        let script = person.runs(["completions", "bash"]).out;
        std::io::Write::write_all(&mut bash.stdin.take().unwrap(), script.as_bytes()).unwrap();
        assert!(bash.wait().unwrap().success());
    }
}

#[test]
fn field_h12_a_reader_who_went_away_ends_the_program_quietly() {
    let person = Person::new();
    for args in [&["list"][..], &["--help"], &["man"], &["corpus", "digest", "small-files", "--scale", "10000%", "--list", "--quiet"]] {
        let mut program = person.copysim(args).spawn().unwrap();
        let mut out = program.stdout.take().unwrap();
        out.read_exact(&mut [0; 10]).unwrap();
        drop(out);
        let mut said = String::new();
        program.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!((program.wait().unwrap().code(), said.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn the_users_own_definitions_stand_beside_the_built_in_ones() {
    let person = Person::new();
    let corpus = include_str!("../../corpora/jpg.toml").replace("name = \"jpg\"", "name = \"holiday\"").replace("7,861 JPEG photos", "my photos");
    let scenario =
        "name = \"mine\"\nversion = 1\nsummary = \"copy my photos\"\nruns = 1\n[[phase]]\ncopy = { corpus = \"holiday\", from = \"target\" }\n";
    person.file("config/copysim/corpora/holiday.toml", &corpus);
    person.file("config/copysim/scenarios/mine.toml", scenario);
    person.file("config/copysim/scenarios/broken.toml", "name = ");
    let configured = |args: &[&str]| ran(person.copysim(args).env("XDG_CONFIG_HOME", person.home.path().join("config")));
    // How wide the column of names is depends on the longest of them.
    let list: Vec<String> = configured(&["list"]).exits(0).out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let list = list.join("\n");
    for line in ["mine copy my photos", "my photos in camera folders", "broken (not valid: "] {
        assert!(list.contains(line), "{line}\n{list}");
    }
    let shown = configured(&["show", "holiday"]).exits(0).out;
    assert_eq!(person.redact(&shown), format!("# holiday ([HOME]/config/copysim/corpora/holiday.toml)\n{corpus}"));
    let plan = configured(&["plan", "mine", person.target(), "--scale", "1%"]).exits(0).out;
    assert!(plan.contains("make holiday-v1-s0-p1 (79 files, 84.1 MB)"), "{plan}");
    configured(&["plan", "holidays"]).refuses("there is no scenario \"holidays\"");
    configured(&["corpus", "digest", "holidai"]).refuses("there is no corpus \"holidai\": did you mean \"holiday\"?");
}
