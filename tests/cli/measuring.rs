//! A measurement from the command to the record: what is shown, what is kept, how it ends.

use std::fs;
use std::path::Path;
use std::process::Command;

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

#[test]
fn field_h08_the_users_language_changes_no_figure() {
    let person = Person::new();
    person.measures("jpg-same-drive", &["--runs", "1"]).exits(0);
    let result = person.results().remove(0);
    let view = |language: &str, format: &str| {
        let mut command = person.copysim(["report", result.to_str().unwrap(), "--format", format]);
        ran(command.env("LC_ALL", language).env("LANG", language).env("LC_NUMERIC", language).env("LANGUAGE", "de")).exits(0).out
    };
    for format in ["text", "json"] {
        let plain = view("C", format);
        for language in ["de_DE.UTF-8", "fr_FR.UTF-8", "ar_EG.UTF-8", "none"] {
            assert_eq!(view(language, format), plain, "{language}");
        }
    }
    assert!(view("de_DE.UTF-8", "text").contains("5.89 MB"));
}

#[test]
fn field_h11_bytes_of_a_way_that_failed_are_counted_once() {
    let person = Person::new();
    // Three files of 40 MB, of which the system copies only the first 16 MB.
    let corpus = include_str!("../../corpora/large-file.toml").replace("large-file", "large").replace("4_000_000_000", "40_000_000");
    person.file("large.toml", &corpus);
    let scenario = "name = \"mine\"\nversion = 1\nsummary = \"\"\nruns = 1\n[[phase]]\ncopy = { corpus = \"./large.toml\", from = \"target\" }\n";
    person.file("mine.toml", scenario);
    let traced = patiently(|| {
        let mut command = person.program("strace");
        command.args(["-f", "-qq", "-o", "trace", "-e", "trace=copy_file_range", "-e", "inject=copy_file_range:error=EOPNOTSUPP:when=2+"]);
        command.args([env!("CARGO_BIN_EXE_copysim"), "scenario", "./mine.toml", person.target(), "--settle", "0s", "--engine", "copy-file-range"]);
        // Calls are counted by thread: those of a copy are then its own.
        command.args(["--threads", "2"]);
        if command.status().is_err() { Command::new("false") } else { command }
    });
    if traced.code != 0 && traced.err.is_empty() {
        return skipped("there is no strace to let a call fail");
    }
    let traced = traced.exits(0);
    let record = store::load(&person.results()[0]).unwrap();
    let phase = &record.runs[0].phases[0];
    let injected = fs::read_to_string(person.home.path().join("trace")).unwrap().matches("INJECTED").count();
    assert!(injected > 0 && phase.engine.as_ref().unwrap().mechanism.contains("read-write for some files"), "{injected} {:?}", phase.engine);
    let work = phase.work.unwrap();
    assert_eq!((phase.bytes, work.read_bytes, work.written_bytes), (40_000_000, 40_000_000, 40_000_000));
    assert!(traced.out.contains("all 1") || traced.out.contains("1 file"), "{}", traced.out);
}

#[test]
fn field_h11_a_copy_that_fails_has_no_rate_and_what_it_moved_is_not_added_to_the_next() {
    let person = Person::new();
    let failed = person.measures("jpg-same-drive", &["--engine", "command:cp -r {source}/. {target}/; false"]).exits(1);
    assert!(!failed.out.contains("B/s, "), "{}", failed.out);
    let record = store::load(&person.results()[0]).unwrap();
    assert!(record.summary.is_empty());
    person.measures("jpg-same-drive", &["--runs", "2"]).exits(0);
    let record = store::load(person.results().last().unwrap()).unwrap();
    let bytes: Vec<u64> = record.runs.iter().map(|run| run.phases[0].bytes).collect();
    assert!(bytes == [5_887_210; 2] || record.status == Status::Failed, "{bytes:?}");
}

#[test]
fn field_h12_a_reader_who_goes_away_in_the_middle_costs_neither_record_nor_cleaning() {
    let person = Person::new();
    for (stdout, stderr) in [(true, false), (false, true), (true, true)] {
        let before = person.results().len();
        let code = loop {
            let args = [&["scenario", "jpg-same-drive", person.target(), "--runs", "1"], &LITTLE[..]].concat();
            let mut child = person.copysim(&args).spawn().unwrap();
            let (out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
            // It has begun to say something, and nobody listens any more.
            std::io::Read::read_exact(&mut err, &mut [0; 5]).unwrap();
            let (out, err) = ((!stdout).then_some(out), (!stderr).then_some(err));
            let rest = err.map(|mut err| std::io::read_to_string(&mut err).unwrap()).unwrap_or_default();
            drop(out.map(|mut out| std::io::read_to_string(&mut out).unwrap()));
            let code = child.wait().unwrap().code();
            assert!(!rest.contains("panicked"), "{rest}");
            // Another measurement of this drive is waited for.
            if code != Some(2) {
                break code;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        };
        assert_eq!(code, Some(0), "{stdout} {stderr}");
        assert_eq!(person.results().len(), before + 1);
        assert!(below(&person.drive.path().join("copysim-workspace/runs")).is_empty());
    }
    // Nor is it needed from the beginning.
    let closed = patiently(|| {
        let mut command = person.program("sh");
        let line =
            format!("exec {} scenario jpg-same-drive {} --runs 1 --scale 0.07% --settle 0s >&-", env!("CARGO_BIN_EXE_copysim"), person.target());
        command.args(["-c", &line]);
        command
    });
    assert!(!closed.err.contains("panicked"), "{}", closed.err);
    assert!(below(&person.drive.path().join("copysim-workspace/runs")).is_empty());
}

/// The system's clocks, of which the one on the wall is set while it is looked at.
struct SetBack {
    looks: std::sync::atomic::AtomicU64,
}

impl copysim::platform::Clock for SetBack {
    fn now_ns(&self) -> u64 {
        OS.clock.now_ns()
    }

    fn boot_ns(&self) -> u64 {
        OS.clock.boot_ns()
    }

    fn wall(&self) -> jiff::Timestamp {
        // Each look is an hour before the last.
        let looks = self.looks.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        OS.clock.wall() - jiff::SignedDuration::from_hours(looks as i64)
    }

    fn work(&self, duration: std::time::Duration) {
        OS.clock.work(duration);
    }

    fn sleep(&self, duration: std::time::Duration) {
        OS.clock.sleep(duration);
    }
}

#[test]
fn field_h18_a_wall_clock_that_is_set_back_changes_no_duration_and_is_noted() {
    let person = Person::new();
    let clock = SetBack { looks: Default::default() };
    let system = copysim::platform::System { clock: &clock, ..OS };
    let options = Options { scale: "0.07%".parse().unwrap(), runs: Some(2), settle: Some(std::time::Duration::ZERO), ..Options::default() };
    let (host, cancel) = (Host::real(), Cancel::default());
    let begun = std::time::Instant::now();
    let (document, outcome) = loop {
        let request = Request { scenario: "jpg-same-drive", target: Some(person.drive.path()), source: None, options: options.clone() };
        let plan = Plan::resolve(request, system, &host, &Environment::default()).unwrap();
        let around = copysim::scenario::run::Around { system, host: &host, observer: &Silent, cancel: &cancel, save: &|_| Ok(()) };
        let done = copysim::scenario::run::run(&plan, around, copysim::result::Copysim::default());
        if !done.1.as_ref().is_err_and(|error| error.to_string().contains("another copysim is")) {
            break done;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    };
    outcome.unwrap();
    let limit = begun.elapsed().as_nanos() as u64;
    for phase in document.runs.iter().flat_map(|run| &run.phases) {
        let ends = [phase.window.returned_ns, phase.window.durable_ns, Some(phase.start_ns)];
        assert!(ends.iter().flatten().all(|ns| *ns > 0 && *ns < limit), "{ends:?} of {limit}");
        assert!(!phase.flags.iter().any(|flag| flag.code == "suspended"));
    }
    let noted: Vec<&str> = document.flags.iter().filter(|flag| flag.code == "clock-set").map(|flag| flag.message.as_str()).collect();
    assert!(noted.len() == 1 && noted[0].starts_with("The wall clock was set during the measurement: back by "), "{noted:?}");
    assert_eq!(document.corpora[0].staged_age_s, None, "a corpus is not younger than nothing");
}

#[test]
fn field_j08_what_can_not_be_removed_is_named_and_costs_no_figure() {
    if !is_root() {
        return skipped("only root mounts something into a copy");
    }
    let person = Person::new();
    // Not where the copier's own speed is looked at, in a place that all tests share.
    let mounts = format!("case {{target}} in {}/*) mkdir {{target}}/other && mount -t tmpfs copysim-test {{target}}/other;; esac", person.target());
    let ran = person.measures("jpg-same-drive", &["--runs", "1", "--engine", &format!("command:cp -r {{source}}/. {{target}}/ && {mounts}")]);
    let runs = below(&person.drive.path().join("copysim-workspace/runs"));
    let other = runs.first().map(|run| run.join("other"));
    let unmounted = other.as_ref().is_some_and(|other| Command::new("umount").arg(other).status().unwrap().success());
    if !unmounted {
        return skipped("nothing can be mounted here");
    }
    let ran = ran.exits(1);
    assert!(ran.err.contains(&format!("copysim: cannot open {}", other.unwrap().display())), "{}", ran.err);
    // What was measured is shown and kept.
    let phase = store::load(&person.results()[0]).unwrap().runs.remove(0).phases.remove(0);
    assert_eq!((phase.status, phase.files), (copysim::result::PhaseStatus::Ok, 6));
    assert!(phase.window.durable_ns.is_some() && ran.out.contains("all 6"), "{}", ran.out);
    // All else of the copy is gone, and the next start removes the rest.
    assert_eq!(below(&runs[0]), [runs[0].join("other")]);
    let next = person.measures("jpg-same-drive", &["--runs", "1"]).exits(0);
    assert!(next.err.contains("removed what a run that was killed had left: 0 files"), "{}", next.err);
    assert!(below(&person.drive.path().join("copysim-workspace/runs")).is_empty());
}

#[test]
fn what_ended_while_it_made_a_workspace_in_memory_is_removed_by_the_next_start() {
    // No process has this number.
    let place = std::path::PathBuf::from(format!("/dev/shm/copysim-{}-99999999", rustix::process::geteuid().as_raw()));
    let workspace = place.join("copysim-workspace");
    if fs::create_dir_all(&workspace).is_err() {
        return skipped("there is no /dev/shm");
    }
    fs::write(workspace.join("MARKER"), "").unwrap();
    let person = Person::new();
    person.measures("jpg-same-drive", &["--runs", "1"]).exits(0);
    assert!(!place.exists());
}
