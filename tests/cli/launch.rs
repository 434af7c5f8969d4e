//! The start of a program as a person measures it: signs of readiness, what fails, and that nothing it started is left.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::person::{Person, Ran, is_root, patiently, ran, skipped};
use crate::rights::{as_ordinary, ordinary};

/// No test of this file takes longer, whatever hangs.
const LONG: Duration = Duration::from_secs(60);

/// Starts a program as it is in the caches, without settling.
fn launches(person: &Person, options: &[&str], command: &[&str]) -> Ran {
    let args = [&["launch", "--settle", "0s", "--cache", "as-is", "--json", "record.json"], options, &["--"], command].concat();
    patiently(|| person.copysim(&args))
}

fn record(person: &Person) -> Value {
    serde_json::from_slice(&std::fs::read(person.home.path().join("record.json")).unwrap()).unwrap()
}

/// What a script is called by as a program of one argument.
fn shell(script: &str) -> [&str; 3] {
    ["sh", "-c", script]
}

fn first_launch(record: &Value) -> &Value {
    &record["runs"][0]["phases"][0]["launch"]
}

fn ready_ms(record: &Value) -> u64 {
    let ready_ns = first_launch(record)["ready_ns"].as_u64();
    assert!(ready_ns.is_some(), "{}", first_launch(record));
    ready_ns.unwrap() / 1_000_000
}

/// Processes whose command line has a text.
fn running(text: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let lines = processes.filter_map(|id| Some((std::fs::read(Path::new("/proc").join(&id).join("cmdline")).ok()?, id)));
    lines.filter(|(line, _)| String::from_utf8_lossy(line).replace('\0', " ").contains(text)).map(|(_, id)| id).collect()
}

#[test]
fn a_program_is_ready_when_it_has_ended_and_all_of_it_is_recorded() {
    let person = Person::new();
    let script = "echo on standard output; echo on standard error >&2; sleep 0.15; test -z \"$(cat)\"";
    let ran = launches(&person, &["--runs", "2"], &shell(script)).exits(0);
    // Its own output is kept out of the way.
    assert!(!ran.out.contains("\non standard") && !ran.err.contains("\non standard"), "{}{}", ran.out, ran.err);
    let said = ran.out.replace('\n', " ");
    assert!(said.starts_with("sh -c 'echo on standard output;") && said.contains(" … is ready after 1"), "{}", ran.out);
    let record = record(&person);
    let runs = record["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    for run in runs {
        let phase = &run["phases"][0];
        assert_eq!((phase["kind"].as_str(), phase["name"].as_str(), phase["status"].as_str()), (Some("launch"), Some("as it was"), Some("ok")));
        let launch = &phase["launch"];
        assert!((150..5_000).contains(&(launch["ready_ns"].as_u64().unwrap() / 1_000_000)), "{launch}");
        assert_eq!((launch["sign"].as_str(), launch["exit_code"].as_i64()), (Some("exit"), Some(0)));
        assert_eq!((launch["waits"][0]["n"].as_u64(), launch["waits"][2]["n"].as_u64()), (Some(1), Some(0)));
        // The shell and what it started: fork and exec cost faults and time.
        assert!(launch["faults"]["minor"].as_u64().unwrap() > 100 && launch["user_ns"].as_u64().unwrap() + launch["system_ns"].as_u64().unwrap() > 0);
        assert_eq!(phase["window"]["returned_ns"], launch["ready_ns"]);
        let known = &launch["files"];
        assert!(known["n"].as_u64().unwrap() >= 1 && known["own_bytes"].as_u64().unwrap() > 0, "{known}");
    }
    let headline = record["summary"].as_array().unwrap().iter().find(|line| line["headline"] == true).unwrap();
    assert_eq!((headline["metric"].as_str(), headline["n"].as_u64()), (Some("ready_ns"), Some(2)));
    assert_eq!(person.runs(["report", "record.json"]).exits(0).out, ran.out);
}

#[test]
fn signs_are_awaited_and_what_goes_on_after_them_is_ended() {
    let person = Person::new();
    let file = person.home.path().join("ready");
    let (by_file, by_line) = (format!("file:{}", file.display()), "line:server is ready".to_owned());
    for (sign, script) in [
        (&by_file, "sleep 0.2; echo > ready; sleep 6271"),
        (&by_line, "sleep 0.2; echo the server is ready now >&2; sleep 6271"),
        // It goes on in the background, in a session of its own, when its first process has long ended.
        (&by_line, "setsid sh -c 'sleep 0.2; echo server is ready; exec sleep 6271' & exit 0"),
    ] {
        let ran = launches(&person, &["--runs", "2", "--until", sign], &shell(script)).exits(0);
        let record = record(&person);
        assert!((200..5_000).contains(&ready_ms(&record)), "{script}: {}", ready_ms(&record));
        // Paths are masked.
        assert_eq!(first_launch(&record)["sign"].as_str(), Some(sign.replace(person.home.path().to_str().unwrap(), "~").as_str()));
        assert!(ran.out.contains("\nProgram   sh -c "), "{}", ran.out);
        assert_eq!(running("sleep 6271"), Vec::<String>::new(), "{script}");
    }
    // The file is still there, and no sign in itself.
    assert!(file.exists());
}

#[test]
fn a_port_that_takes_connections_is_a_sign() {
    let person = Person::new();
    if person.program("python3").args(["-c", "pass"]).status().map_or(true, |status| !status.success()) {
        return skipped("there is no python3 to open a port");
    }
    // A port that nobody has.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let sign = format!("port:127.0.0.1:{port}");
    let server = format!("import socket, time; s = socket.create_server(('127.0.0.1', {port})); time.sleep(6272)");
    let refused = launches(&person, &["--until", &sign], &["python3", "-c", &server]).exits(2);
    assert!(refused.err.contains("something takes connections at port:127.0.0.1:"), "{}", refused.err);
    drop(taken);
    launches(&person, &["--runs", "1", "--until", &sign], &["python3", "-c", &server]).exits(0);
    assert!(ready_ms(&record(&person)) < 30_000);
    assert_eq!(running("time.sleep(6272)"), Vec::<String>::new());
}

#[test]
fn a_program_is_quiet_from_its_last_work_on() {
    let person = Person::new();
    // It computes for a while, then only waits, and would for long.
    let script = "end=$(($(date +%s%N) + 400000000)); while [ $(date +%s%N) -lt $end ]; do :; done; exec sleep 6273";
    launches(&person, &["--runs", "1", "--until", "quiet:500ms"], &shell(script)).exits(0);
    let ready = ready_ms(&record(&person));
    assert!((380..5_000).contains(&ready), "{ready}");
    assert_eq!(running("sleep 6273"), Vec::<String>::new());
}

#[test]
fn a_sign_that_never_comes_is_a_failure_with_its_last_words() {
    let person = Person::new();
    let begun = Instant::now();
    let ran = launches(&person, &["--until", "line:never", "--timeout", "300ms"], &shell("echo first; echo last words; sleep 6274")).exits(1);
    let sentence = "gave no sign within 300 ms: no line of its output had \"never\"; give it more time with --timeout, or name another sign with --until; \
                    it said: last words";
    assert!(ran.err.contains(sentence) && ran.err.contains("\n  first\n"), "{}", ran.err);
    assert!(begun.elapsed() < LONG);
    assert_eq!(running("sleep 6274"), Vec::<String>::new());
    assert!(ran.out.starts_with("FAILED: "), "{}", ran.out);
    let record = record(&person);
    assert_eq!((record["status"].as_str(), record["exit_code"].as_i64()), (Some("failed"), Some(1)));
    assert_eq!((record["runs"].as_array().unwrap().len(), record["summary"].as_array().unwrap().len()), (1, 0));
    // One that ends first, well or not, gives none either.
    let ended = launches(&person, &["--until", "line:never"], &shell("echo gone")).exits(1);
    assert!(ended.err.contains("ended, and no line of its output had \"never\"; it said: gone"), "{}", ended.err);
}

#[test]
fn a_program_that_fails_is_no_start() {
    let person = Person::new();
    for sign in ["exit", "quiet:200ms", "line:x"] {
        let ran = launches(&person, &["--until", sign], &shell("echo cannot do it >&2; exit 7")).exits(1);
        assert!(ran.err.contains("failed with exit code 7: that is no start; it said: cannot do it"), "{}", ran.err);
    }
    assert_eq!(record(&person)["runs"][0]["phases"][0]["launch"]["exit_code"].as_i64(), Some(7));
    let killed = launches(&person, &[], &shell("kill -9 $$")).exits(1);
    assert!(killed.err.contains("was ended by signal 9: that is no start"), "{}", killed.err);
    // It may be executed and is none.
    let broken = person.file("broken", "#!/no/such/interpreter\n");
    std::fs::set_permissions(&broken, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let ran = launches(&person, &[], &[&broken]).exits(1);
    assert!(ran.err.contains("cannot start ") && ran.err.contains("(ENOENT)"), "{}", ran.err);
}

#[test]
fn what_cannot_be_meant_is_refused_with_its_reason() {
    let person = Person::new();
    for (args, words) in [
        (&["launch"][..], "COMMAND"),
        (&["launch", "--", "no-such-program-anywhere-1"], "there is no program \"no-such-program-anywhere-1\" on PATH"),
        (&["launch", "--", "./nowhere"], "there is no file ./nowhere"),
        (&["launch", "--until", "window", "--", "true"], "a sign is exit, port:HOST:PORT, file:PATH, line:TEXT, quiet or quiet:TIME"),
        (&["launch", "/no/such/directory", "--", "true"], "cannot open /no/such/directory"),
    ] {
        let ran = person.runs(args).exits(2);
        assert!(ran.err.contains(words), "{}", ran.err);
    }
    assert!(person.results().is_empty());
    let near = person.file("bin/starter", "#!/bin/sh\n");
    std::fs::set_permissions(&near, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/bin", person.home.path().join("bin").display());
    let ran = ran(person.copysim(["launch", "--", "stater"]).env("PATH", path)).exits(2);
    assert!(ran.err.contains("there is no program \"stater\" on PATH: did you mean \"starter\"?"), "{}", ran.err);
}

#[test]
fn cold_starts_come_before_warm_ones_and_cold_is_only_said_of_what_was() {
    let person = Person::with_a_drive();
    let args = ["launch", "--settle", "0s", "--runs", "2", "--json", "record.json", "--", "git", "--version"];
    let cold = if is_root() { "cold" } else { "partly cold" };
    let ran = patiently(|| person.copysim(args));
    if ran.err.contains("there is no program") {
        return skipped("there is no git");
    }
    let ran = ran.exits(0);
    let record = record(&person);
    for run in record["runs"].as_array().unwrap() {
        let names: Vec<&str> = run["phases"].as_array().unwrap().iter().map(|phase| phase["name"].as_str().unwrap()).collect();
        assert_eq!(names, [cold, "warm"]);
        let metadata = run["phases"][0]["cache"]["metadata"].as_str().unwrap();
        assert_eq!(metadata == "cold", is_root());
    }
    assert!(ran.out.contains(&format!("{cold} 1 ")) && ran.out.contains("warm 2 "), "{}", ran.out);
}

#[test]
fn an_ordinary_user_is_told_what_could_not_be_cold() {
    let Some(person) = ordinary(Person::with_a_drive()) else { return };
    let args = ["launch", "--settle", "0s", "--runs", "1", "--json", "record.json", "--", "cat", "/dev/null"];
    let ran = patiently(|| as_ordinary(&person, &args)).exits(0);
    let phase = &record(&person)["runs"][0]["phases"][0];
    assert_eq!((phase["name"].as_str(), phase["cache"]["metadata"].as_str()), (Some("partly cold"), Some("warm")));
    assert!(phase["flags"].to_string().contains("metadata-warm"), "{}", phase["flags"]);
    // What the kernel does not tell of a file of somebody else's is unknown, not warm.
    assert_ne!(phase["cache"]["data"].as_str(), Some("warm"), "{phase}");
    assert!(phase["launch"]["storage"]["read_bytes"].is_u64(), "{}", phase["launch"]);
    assert!(ran.out.contains(" partly cold") && ran.out.contains("fadvise DONTNEED on the program's file"), "{}", ran.out);
    assert!(!ran.out.contains(" ms cold"), "{}", ran.out);
}

#[test]
fn a_signal_ends_the_program_too_and_keeps_what_was_measured() {
    let person = Person::new();
    let begun = Instant::now();
    let args = [
        "launch",
        "--settle",
        "0s",
        "--cache",
        "as-is",
        "--until",
        "line:never",
        "--json",
        "record.json",
        "--",
        "sh",
        "-c",
        "setsid sleep 6275 & sleep 6275",
    ];
    let mut copysim = loop {
        let mut copysim = person.copysim(args).spawn().unwrap();
        while running("sleep 6275").len() < 3 && copysim.try_wait().unwrap().is_none() && begun.elapsed() < LONG {
            std::thread::sleep(Duration::from_millis(5));
        }
        // Another test may measure this drive just now.
        if copysim.try_wait().unwrap().is_none() || begun.elapsed() > LONG {
            break copysim;
        }
    };
    rustix::process::kill_process(rustix::process::Pid::from_child(&copysim), rustix::process::Signal::INT).unwrap();
    assert_eq!(copysim.wait().unwrap().code(), Some(130));
    assert_eq!(running("sleep 6275"), Vec::<String>::new());
    let record = record(&person);
    assert_eq!((record["status"].as_str(), record["runs"][0]["phases"][0]["status"].as_str()), (Some("interrupted"), Some("interrupted")));
}
