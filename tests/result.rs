//! The record and its views: shape, schema, storage, masking, what follows from the runs, and the text that people read.
#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests look at files directly and end where something is not there")]

#[path = "fixtures/records.rs"]
mod records;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use copysim::measure::{MAX_POINTS, Recorder};
use copysim::report;
use copysim::result::mask::{Identity, mask};
use copysim::result::summary::summarise;
use copysim::result::{Controller, Document, Measured, PhaseStatus, Source, SourceKind, Timeline, differences, flags, schema, store};
use records::{RUNS, good};
use serde_json::Value;

fn text(document: &Document) -> String {
    let text = report::render(document, "text").unwrap();
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
        assert_eq!(line.trim_end(), line, "trailing spaces");
    }
    text
}

#[test]
fn a_complete_run_reads_like_an_answer() {
    insta::assert_snapshot!(text(&good()));
}

#[test]
fn an_ordinary_user_is_told_what_could_not_be_cold_or_known() {
    insta::assert_snapshot!(text(&records::ordinary_user()));
}

#[test]
fn shared_blocks_have_seconds_and_no_rate() {
    let text = text(&records::shared_blocks());
    assert_eq!(text.matches("B/s").count(), 2, "only what the link can carry, and the head of the column: {text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_short_window_has_seconds_and_no_rate() {
    insta::assert_snapshot!(text(&records::too_short()));
}

#[test]
fn an_interruption_is_said_first_and_finished_runs_stay() {
    insta::assert_snapshot!(text(&records::interrupted()));
}

#[test]
fn data_that_differ_are_said_first_and_named() {
    insta::assert_snapshot!(text(&records::data_differ()));
}

#[test]
fn data_that_were_made_are_said_to_be() {
    insta::assert_snapshot!(text(&records::generated()));
}

#[test]
fn warm_data_are_no_measure_of_a_drive() {
    insta::assert_snapshot!(text(&records::not_cold()));
}

#[test]
fn a_failure_is_said_first_with_its_reason() {
    insta::assert_snapshot!(text(&records::failed()));
}

#[test]
fn a_faked_size_is_said_first_and_no_rate_is_given() {
    let text = text(&records::faked());
    assert_eq!(text.lines().next().unwrap(), "FAKED: This drive holds 7.90 GB of the 62.0 GB it claims: from there on it overwrites what was");
    assert_eq!(text.matches("DATA DIFFER:").count() + text.matches("FAILED:").count(), 0, "said once: {text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_cliff_a_stall_and_a_reset_are_said_with_their_place() {
    insta::assert_snapshot!(text(&records::cliff()));
}

#[test]
fn a_rate_that_does_not_count_has_no_course() {
    let mut document = records::cliff();
    document.runs.iter_mut().flat_map(|run| &mut run.phases).for_each(|phase| phase.flags.push(flags::NOT_COLD.flag(None, None)));
    document.summary = summarise(&document);
    let text = text(&document);
    assert!(!text.contains("for the first 2.10 GB") && text.contains("31.2 s, 70.1 s after the beginning"), "{text}");
}

#[test]
fn several_phases_and_drives_keep_apart() {
    insta::assert_snapshot!(text(&records::small_files()));
}

#[test]
fn a_block_trace_shows_what_the_devices_did_or_why_that_is_not_known() {
    insta::assert_snapshot!(text(&records::traced(&[])));
    let lost = text(&records::traced(&[0, 1, 2]));
    let section = lost.split("\n\n").find(|section| section.starts_with("WHAT THE DEVICES DID MEANWHILE")).unwrap();
    assert!(section.contains("not known: 1,406 of the kernel's block events were lost") && !section.contains('%'), "{section}");
    assert!(!text(&good()).contains("MEANWHILE"), "nobody asked");
}

/// Every text in a value by its place; of lists all are one place.
fn texts<'v>(value: &'v mut Value, at: &str, each: &mut dyn FnMut(&str, &mut String)) {
    match value {
        Value::String(text) => each(at, text),
        Value::Array(list) => list.iter_mut().for_each(|value| texts(value, &format!("{at}/*"), each)),
        Value::Object(fields) => fields.iter_mut().for_each(|(key, value)| texts(value, &format!("{at}/{key}"), each)),
        _ => {}
    }
}

/// Escapes for terminals in seven and eight bits, reordering, lines and returns of its own, what ends a cell or begins a tag elsewhere.
const EVIL: &str = "\u{1b}]0;gotcha\u{7}\u{202e}\u{9b}2J\r\n\u{200b}<script>|[b]";

#[test]
fn no_text_of_a_record_can_steer_the_terminal_in_any_view() {
    let mut records: Vec<Value> = records::all().iter().map(|(_, record)| serde_json::to_value(record).unwrap()).collect();
    // Where any text may stand: what a word of a closed set or a time must be can't be evil.
    let mut free = BTreeMap::<String, bool>::new();
    for record in &mut records {
        // A result without a label or an error has room for both.
        (record["label"], record["error"]) = (EVIL.into(), EVIL.into());
        record["drives"][0]["advice"] = serde_json::json!([EVIL]);
        let mut found = Vec::new();
        texts(record, "", &mut |place, _| found.push(place.to_owned()));
        for place in found.into_iter().filter(|place| place != "/schema") {
            free.entry(place.clone()).or_insert_with(|| {
                let mut changed = record.clone();
                texts(&mut changed, "", &mut |at, text| {
                    if at == place {
                        EVIL.clone_into(text);
                    }
                });
                Document::from_json(&changed.to_string()).is_ok()
            });
        }
    }
    let free: Vec<&String> = free.iter().filter(|(_, is_free)| **is_free).map(|(place, _)| place).collect();
    assert!(free.len() > 60 && free.iter().any(|place| place.ends_with("/evidence/*/because")), "{free:?}");
    let good = good();
    for mut record in records {
        texts(&mut record, "", &mut |place, text| {
            if free.iter().any(|free| *free == place) {
                EVIL.clone_into(text);
            }
        });
        let mut document = Document::from_json(&record.to_string()).unwrap();
        for phase in document.runs.iter_mut().flat_map(|run| &mut run.phases) {
            phase.device = std::mem::take(&mut phase.device).into_values().map(|counters| (EVIL.to_owned(), counters)).collect();
            phase.flags.push(flags::STALL.flag(Some(EVIL), None));
        }
        let mut views: Vec<String> = report::VIEWS.iter().map(|view| report::render(&document, view.name).unwrap()).collect();
        assert_eq!(Document::from_json(&views[1]).unwrap(), document, "JSON's escapes are the same text");
        views.extend([
            report::card::render(&document, &[EVIL.to_owned()]),
            report::differences(&document, &good),
            report::differences(&good, &document),
        ]);
        for (index, view) in views.iter().enumerate() {
            let bad = view.chars().find(|c| c.is_control() && *c != '\n' || matches!(c, '\u{202e}' | '\u{200b}'));
            assert_eq!(bad, None, "view {index}: {:?}", view.lines().find(|line| line.contains(bad.unwrap())));
            // Nor does it begin a line of its own.
            assert!(!view.lines().any(|line| line.starts_with('\u{200b}') || line.trim_start().starts_with("<script>")), "{view}");
        }
        assert!(views[0].contains("\\u{1b}]0;gotcha"));
    }
}

#[test]
fn field_h14_nothing_from_outside_can_steer_the_terminal() {
    let mut document = good();
    // Every view that there is; one for browsers has signs of its own to escape.
    assert_eq!(report::VIEWS.iter().map(|view| view.name).collect::<Vec<_>>(), ["text", "json"]);
    let evil = "\u{1b}]0;gotcha\u{7}\u{202e}\u{9b}2J\n<img src=x onerror=alert(1)>\"><b>a&b";
    document.drives[0].model = Some(evil.into());
    document.drives[0].path = Some(evil.into());
    document.label = Some(evil.into());
    document.error = Some(evil.into());
    document.scenarios[0].name = evil.into();
    document.corpora[0].name = evil.into();
    document.copysim.version = evil.into();
    document.hosts[0].cpu = Some(evil.into());
    let aftermath = document.aftermath.as_mut().unwrap();
    aftermath.kept[0].path = evil.into();
    aftermath.kept[0].what = evil.into();
    aftermath.remove_with = Some(evil.into());
    aftermath.unplug_because = Some(evil.into());
    for run in &mut document.runs {
        for phase in &mut run.phases {
            phase.name = evil.into();
            phase.window.quiet_reason = Some(evil.into());
            phase.error = Some(evil.into());
            phase.slowest_files[0].path = evil.into();
            phase.flags.push(flags::STALL.flag(Some(evil), None));
            phase.flags[0].code = evil.into();
            phase.evidence[0].because = evil.into();
            phase.flush.as_mut().unwrap().method = evil.into();
            phase.cache.as_mut().unwrap().method = evil.into();
        }
    }
    for status in [copysim::result::Status::Complete, copysim::result::Status::Failed] {
        document.status = status;
        let text = report::render(&document, "text").unwrap();
        let bad: Vec<char> = text.chars().filter(|c| c.is_control() && *c != '\n' || *c == '\u{202e}').collect();
        assert!(bad.is_empty(), "{bad:?}");
        assert!(text.contains("\\u{1b}]0;gotcha"));
    }
}

#[test]
fn unknown_is_never_printed_as_nothing() {
    let mut document = good();
    for run in &mut document.runs {
        let phase = &mut run.phases[0];
        phase.window = Default::default();
        (phase.engine, phase.flush, phase.cache, phase.time, phase.timeline, phase.integrity) = (None, None, None, None, None, None);
        phase.latency.clear();
        phase.device.clear();
        phase.evidence.clear();
        phase.slowest_files.clear();
    }
    document.drives[0] = copysim::result::Drive::unknown("d0", "h0");
    document.hosts[0] = Default::default();
    document.aftermath = None;
    document.summary = summarise(&document);
    assert!(document.summary.is_empty());
    insta::assert_snapshot!(text(&document));
}

#[test]
fn a_reservation_about_the_whole_takes_every_rate() {
    let mut document = good();
    document.flags.push(flags::SUSPENDED.flag(Some("41 s"), None));
    document.summary = summarise(&document);
    let text = text(&document);
    assert!(text.starts_with("A folder of 7,861 photos (8.41 GB) took 3 min 10 s to copy on this drive, but that is no measure"), "{text}");
    assert!(text.contains("suspended (invalid, the whole record): The machine was suspended inside the window: 41 s."), "{text}");
    assert!(!text.contains("44.2"), "{text}");
}

#[test]
fn what_a_drive_cannot_do_is_noted() {
    let mut document = good();
    let phase = &mut document.runs[1].phases[0];
    phase.status = PhaseStatus::Unsupported;
    phase.error = Some("this file system has no holes".into());
    document.summary = summarise(&document);
    let text = text(&document);
    assert!(text.contains("  copy, run 2, unsupported: this file system has no holes.\n"), "{text}");
}

#[test]
fn a_record_that_has_only_begun_can_be_shown() {
    let mut document = good();
    document.runs.clear();
    document.summary.clear();
    document.status = copysim::result::Status::Interrupted;
    let text = text(&document);
    assert!(text.starts_with("INTERRUPTED before the end. No run was begun.\n"), "{text}");
}

#[test]
fn a_format_that_does_not_exist_is_refused_with_those_that_do() {
    let error = report::render(&good(), "docx").unwrap_err();
    assert_eq!(error.to_string(), "there is no format \"docx\"; there are: text, json");
    assert_eq!(error.exit_code(), 2);
}

#[test]
fn the_json_view_is_the_record() {
    let document = good();
    let json = report::render(&document, "json").unwrap();
    assert_eq!(Document::from_json(&json).unwrap(), document);
}

#[test]
fn every_fixture_survives_a_round_trip() {
    for (name, document) in records::all() {
        let json = serde_json::to_string(&document).unwrap();
        assert_eq!(Document::from_json(&json).unwrap(), document, "{name}");
    }
}

#[test]
fn unknown_facts_are_null_and_whole_numbers_have_no_point() {
    let value = serde_json::to_value(records::interrupted()).unwrap();
    for pointer in ["/model", "/suite", "/corpora/0/extents", "/runs/0/phases/0/block", "/runs/0/phases/0/time/overlap_ns", "/runs/0/arm"] {
        assert_eq!(value.pointer(pointer), Some(&Value::Null), "{pointer}");
    }
    assert_eq!(value.pointer("/runs/0/phases/0/point"), Some(&serde_json::json!({})));
    assert_eq!(value.pointer("/hosts/0/name"), None);
    assert_eq!(value.pointer("/scenarios/0/scale_percent").unwrap().to_string(), "100");
    assert_eq!(value.pointer("/started_at"), Some(&serde_json::json!("2026-10-03T14:05:09Z")));
}

#[test]
fn fields_of_the_future_are_ignored() {
    let mut value = serde_json::to_value(good()).unwrap();
    value["tomorrow"] = serde_json::json!({"a": [1]});
    value["runs"][0]["phases"][0]["tomorrow"] = serde_json::json!(1);
    value["drives"][0]["smell"] = serde_json::json!("fine");
    assert_eq!(Document::from_json(&value.to_string()).unwrap(), good());
}

#[test]
fn records_that_cannot_be_read_say_why() {
    let valid = serde_json::to_value(good()).unwrap();
    let with = |schema: &str| {
        let mut value = valid.clone();
        value["schema"] = schema.into();
        value.to_string()
    };
    let mut damaged = valid.clone();
    damaged["status"] = "fine".into();
    for (text, why) in [
        (with("copysim.result/2"), "was written by a newer copysim: its schema is \"copysim.result/2\", this one reads up to \"copysim.result/1\""),
        (with("copysim.plan/1"), "this is no result of copysim: its schema is \"copysim.plan/1\""),
        (with("copysim.result/\u{1b}"), "its schema is \"copysim.result/\\u{1b}\""),
        ("{}".to_owned(), "this JSON is no result of copysim"),
        ("[1]".to_owned(), "this JSON is no result of copysim"),
        ("{\"schema\":".to_owned(), "this is not JSON: EOF"),
        (damaged.to_string(), "this result is damaged: unknown variant `fine`, expected one of `complete`, `failed`, `interrupted`"),
    ] {
        let error = Document::from_json(&text).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(error.exit_code(), 2);
    }
    assert_eq!(Document::from_json(&with("copysim.result/0")).unwrap().schema, "copysim.result/0");
}

/// The file that keeps the schema, so that a change of the record's shape is a visible change.
#[test]
fn the_schema_is_the_one_that_was_published() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/result.schema.json");
    let generated = schema::json();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    let [published, generated] = [published, generated].map(|text| serde_json::from_str::<Value>(&text).unwrap_or_default());
    assert!(
        published == generated,
        "the shape of the record is no longer that of docs/result.schema.json. If a field was only added, regenerate it:\n    \
         UPDATE=1 cargo test --test result schema\nIf a field was removed, renamed or given another type or meaning, raise SCHEMA_MAJOR and SCHEMA in \
         src/result/document.rs first, so that older views refuse the new records instead of misreading them."
    );
}

#[test]
fn field_h17_every_run_keeps_its_own_value_and_only_those_that_count_are_summed_up() {
    let metric = |document: &Document, metric: &str| {
        let summary = summarise(document);
        summary.into_iter().find(|summary| summary.metric == metric)
    };
    let complete = metric(&good(), "durable_bytes_per_s").unwrap();
    let expected: Vec<f64> = RUNS.iter().map(|run| (8_410_300_000.0 / (run.1 as f64 / 1e9)).round()).collect();
    assert_eq!((complete.n, complete.headline, &complete.values), (3, true, &expected));
    assert_eq!((complete.min, complete.median, complete.max), (expected[2], expected[0], expected[1]));

    let left = |change: &dyn Fn(&mut copysim::result::Phase)| {
        let mut document = good();
        change(&mut document.runs[1].phases[0]);
        ["durable_bytes_per_s", "durable_ns"].map(|name| metric(&document, name).map(|summary| summary.n))
    };
    assert_eq!(left(&|phase| phase.flags.push(flags::SUSPENDED.flag(None, None))), [Some(2), Some(2)]);
    assert_eq!(left(&|phase| phase.flags.push(flags::FOREIGN_IO.flag(None, None))), [Some(3), Some(3)]);
    assert_eq!(left(&|phase| phase.status = PhaseStatus::Failed), [Some(2), Some(2)]);
    assert_eq!(left(&|phase| phase.integrity.as_mut().unwrap().files_good -= 1), [Some(2), Some(2)]);
    assert_eq!(left(&|phase| phase.window.durable_ns = Some(999_999_999)), [Some(2), Some(3)]);
    assert_eq!(left(&|phase| phase.window.durable_ns = None), [Some(2), Some(2)]);
    assert_eq!(left(&|phase| phase.bytes = 0), [Some(2), Some(3)]);

    let mut whole = good();
    whole.flags.push(flags::SUSPENDED.flag(None, None));
    assert_eq!(summarise(&whole), []);
    assert_eq!(metric(&records::too_short(), "durable_bytes_per_s"), None);
    assert_eq!(metric(&records::too_short(), "durable_ns").map(|summary| summary.n), Some(3));
}

#[test]
fn arms_points_and_phases_are_summed_up_apart() {
    let mut document = good();
    let mut other = document.runs.clone();
    other.iter_mut().for_each(|run| run.arm = Some("b".into()));
    document.runs.extend(other);
    document.runs[0].phases[0].point.queue_depth = Some(4);
    let rates: Vec<_> = summarise(&document).into_iter().filter(|summary| summary.headline).collect();
    let found: Vec<_> = rates.iter().map(|summary| (summary.arm.as_deref(), summary.point.queue_depth, summary.n)).collect();
    assert_eq!(found, [(None, Some(4), 1), (None, None, 2), (Some("b"), None, 3)]);
}

#[test]
fn a_result_is_saved_whole_rewritten_in_place_and_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let results = dir.path().join("not/yet/there");
    let mut document = records::interrupted();
    let first = store::save(&document, &results).unwrap();
    assert_eq!(first.file_name().unwrap(), "2026-10-03T14-05-09Z-jpg-same-drive-01K6N3Z9Q4.json");
    document = good();
    assert_eq!(store::save(&document, &results).unwrap(), first);
    assert_eq!(store::load(&first).unwrap(), document);
    assert_eq!(std::fs::read_dir(&results).unwrap().count(), 1);
}

#[test]
fn names_from_specs_cannot_leave_the_directory() {
    let mut document = good();
    document.scenarios[0].name = "../../etc/pass wd\u{1b}".into();
    document.id = "a/b".into();
    assert_eq!(store::file_name(&document), "2026-10-03T14-05-09Z-------etc-pass-wd--a-b.json");
    document.scenarios.push(document.scenarios[0].clone());
    assert!(store::file_name(&document).contains("-and-1-more-"));
}

#[test]
fn files_that_are_no_results_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.json");
    assert!(store::load(&path).unwrap_err().to_string().contains("x.json: no such file or directory (ENOENT)"));
    std::fs::write(&path, b"\xff\xfe").unwrap();
    assert!(store::load(&path).unwrap_err().to_string().ends_with("x.json: this is not JSON: it is not even text"));
    std::fs::write(&path, b"hello").unwrap();
    assert!(store::load(&path).unwrap_err().to_string().contains("x.json: this is not JSON: expected value"));
}

#[test]
fn results_go_where_the_environment_says() {
    let env = |pairs: &'static [(&str, &str)]| move |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value));
    assert_eq!(store::default_dir(&env(&[("HOME", "/h"), ("XDG_DATA_HOME", "/d")])).unwrap(), Path::new("/d/copysim/results"));
    assert_eq!(store::default_dir(&env(&[("HOME", "/h"), ("XDG_DATA_HOME", "relative")])).unwrap(), Path::new("/h/.local/share/copysim/results"));
    assert!(store::default_dir(&env(&[])).unwrap_err().to_string().contains("--results DIR"));
}

#[test]
fn a_record_stays_below_one_mebibyte_a_scenario() {
    let dir = tempfile::tempdir().unwrap();
    let mut document = good();
    let mut recorder = Recorder::new(6);
    (0..100_000_u64).for_each(|t| recorder.offer(t * 100_000_000, &[Some(1 << 50); 6]));
    let names = [("work", Measured::ReadBytes); 6];
    let timeline = Timeline::of(recorder.finish(), &names);
    assert!(timeline.t_ns.len() <= MAX_POINTS);
    let last = timeline.t_ns.last().copied();
    for run in &mut document.runs {
        run.phases[0].timeline = Some(timeline.clone());
        run.phases = vec![run.phases[0].clone(); 8];
    }
    let path = store::save(&document, dir.path()).unwrap();
    assert!(serde_json::to_string(&document).unwrap().len() > store::MAX_BYTES);
    let size = usize::try_from(std::fs::metadata(&path).unwrap().len()).unwrap();
    assert!((store::MAX_BYTES / 4..=store::MAX_BYTES).contains(&size), "{size}");
    let loaded = store::load(&path).unwrap();
    let kept = loaded.runs[0].phases[0].timeline.clone().unwrap();
    assert_eq!((kept.t_ns.first(), kept.t_ns.last().copied()), (timeline.t_ns.first(), last));
    assert!(kept.series.iter().all(|series| series.values.len() == kept.t_ns.len()));
    // Too large for another reason: kept whole.
    document.label = Some("x".repeat(2 << 20));
    let path = store::save(&document, dir.path()).unwrap();
    assert_eq!(store::load(&path).unwrap().label, document.label);
}

#[test]
fn what_two_records_differ_in_is_said_and_nothing_else() {
    assert_eq!(differences(&good(), &good()), Vec::<String>::new());
    let mut other = good();
    other.hosts[0].kernel = Some("6.12.48".into());
    other.hosts[0].cpu_governor = Some("performance".into());
    other.hosts[0].virtualised = Some(true);
    let drive = &mut other.drives[0];
    (drive.link_bits_per_s, drive.driver, drive.firmware) = (Some(480_000_000), Some("uas".into()), Some("1.27".into()));
    drive.fill_percent = Some(46);
    let mut document = good();
    let found = differences(&document, &other);
    assert_eq!(
        found,
        [
            "virtual machine: unknown against yes",
            "kernel: 6.1.0-38-amd64 against 6.12.48",
            "CPU governor: unknown against performance",
            "firmware: unknown against 1.27",
            "link: 5 Gbit/s against 480 Mbit/s",
            "driver: usb-storage against uas",
        ]
    );
    other = good();
    other.drives[0].fill_percent = Some(47);
    (document.drives[0].serial, other.drives[0].serial) = (Some("4C53".into()), Some("4C54".into()));
    other.corpora[0].root_digest = "cd".repeat(32);
    other.scenarios[0].scale_percent = "5%".parse().unwrap();
    let controller = |mode: &str| Controller {
        address: "0000:00:17.0".into(),
        vendor_id: Some("8086".into()),
        device_id: Some("a352".into()),
        name: None,
        mode: Some(mode.into()),
        driver: Some("ahci".into()),
    };
    let mut trimmed = good();
    trimmed.hosts[0].controllers = vec![controller("RAID")];
    trimmed.scenarios[0].spec = serde_json::json!({ "options": { "state": "trimmed", "fill_percent": 85, "verify": false } });
    let mut dirty = good();
    dirty.hosts[0].controllers = vec![controller("AHCI")];
    dirty.scenarios[0].spec = serde_json::json!({ "options": { "state": "dirty", "fill_percent": null, "verify": true } });
    assert_eq!(
        differences(&trimmed, &dirty),
        [
            "controllers: 8086:a352 as RAID by ahci against 8086:a352 as AHCI by ahci",
            "state: trimmed against dirty",
            "fill_percent: 85 against none",
            "verify: false against true",
        ]
    );
    let found = differences(&document, &other);
    let expected =
        ["drive: another one of the same model", "full: 42 % against 47 %", "scale: 100 % against 5 %", "corpora: of one name and different bytes"];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    assert!(found.iter().zip(expected).all(|(found, expected)| found.starts_with(expected)), "{found:?}");
    other.drives[0].model = Some("a\u{1b}[2J".into());
    assert!(report::differences(&document, &other).contains("a\\u{1b}[2J"));
    assert_eq!(report::differences(&good(), &good()), "Nothing that was recorded about machine, drive and work differs between the two.\n");
}

#[test]
fn the_source_is_compared_where_there_is_one() {
    let (one, mut other) = (records::small_files(), records::small_files());
    other.drives.last_mut().unwrap().fs_type = Some("xfs".into());
    assert_eq!(differences(&one, &other), ["source, file system: ext4 against xfs"]);
    other.scenarios[0].roles.source = None;
    assert_eq!(differences(&one, &other), ["source: a drive against none"]);
}

#[test]
fn drives_that_are_under_each_other_end() {
    let mut document = good();
    document.drives[0].transport = None;
    for index in 1..200 {
        document.drives.push(copysim::result::Drive::unknown(format!("d{index}"), "h0"));
    }
    let ids: Vec<String> = document.drives.iter().map(|drive| drive.id.clone()).collect();
    for drive in &mut document.drives {
        drive.under.clone_from(&ids);
    }
    assert!(report::render(&document, "text").unwrap().contains("Drive     SanDisk Ultra USB 3.0 on unknown, 61.5 GB"));
    assert_eq!(document.chain(&document.drives[0]).len(), 200);
    assert!(differences(&document, &document).is_empty());
}

#[test]
fn advice_is_given_once_and_cannot_steer_the_terminal() {
    let mut document = good();
    document.drives[0].advice = vec!["Use\u{1b}[2J another port.".into(), "Use\u{1b}[2J another port.".into()];
    let text = text(&document);
    assert!(text.contains("ADVICE\n  Use\\u{1b}[2J another port.\n\n"), "{text}");
    document.drives[0].advice.clear();
    assert!(!report::render(&document, "text").unwrap().contains("ADVICE"));
}

#[test]
fn a_masked_record_says_nothing_about_its_owner() {
    let mut document = good();
    document.hosts[0].name = Some("annas-laptop".into());
    document.drives[0].serial = Some("4C530001AB".into());
    document.drives[0].path = Some("/media/anna/STICK".into());
    document.copysim.arguments =
        ["scenario", "jpg", "/media/anna/STICK", "--results=/home/anna/r", "annas-laptop:/x", "4C530001AB"].map(String::from).into();
    document.error = Some("cannot open /home/anna/a.jpg (source): it is gone".into());
    let env = |name: &str| [("HOME", "/home/anna"), ("USER", "anna")].iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    let open = document.clone();
    mask(&mut document, &Identity::from_env(&env)).unwrap();
    let json = serde_json::to_string(&document).unwrap();
    for secret in ["anna", "4C530001AB", "laptop"] {
        assert!(!json.contains(secret), "{secret} in {json}");
    }
    assert_eq!(document.copysim.arguments, ["scenario", "jpg", "/media/user/STICK", "--results=~/r", "HOST:/x", "SERIAL"]);
    assert_eq!((&document.runs, &document.summary), (&open.runs, &open.summary), "figures are left alone");
    assert_eq!((&document.drives[0].serial, &document.hosts[0].name), (&None, &None));
    let once = document.clone();
    mask(&mut document, &Identity::from_env(&env)).unwrap();
    assert_eq!(document, once);
}

/// A record of runs that took so long, ns, for so many bytes.
fn record_of(bytes: u64, durations_ns: &[u64]) -> Document {
    let mut document = good();
    let run = document.runs[0].clone();
    document.runs = durations_ns.iter().map(|_| run.clone()).collect();
    for (run, ns) in document.runs.iter_mut().zip(durations_ns) {
        let phase = &mut run.phases[0];
        phase.bytes = bytes;
        (phase.window.returned_ns, phase.window.durable_ns, phase.window.quiet_ns) = (Some(*ns), Some(*ns), Some(*ns));
    }
    document.summary = summarise(&document);
    document
}

#[test]
fn a_copy_within_a_drive_is_said_to_be_also_in_a_suite_with_a_source_of_its_own() {
    let says = |source: Option<&str>, kind: SourceKind, counted: &[&str]| {
        let mut document = good();
        document.scenarios[0].roles.source = source.map(str::to_owned);
        for phase in document.runs.iter_mut().flat_map(|run| &mut run.phases) {
            phase.source = Some(Source { kind, wait_ns: None });
            let counters = *phase.device.values().next().unwrap();
            phase.device = counted.iter().map(|id| ((*id).to_owned(), counters)).collect();
        }
        if text(&document).contains(" to copy on this drive") { "on" } else { "to" }
    };
    // Source and target are one, whatever was counted.
    assert_eq!(says(Some("d0"), SourceKind::Drive, &["d0"]), "on");
    assert_eq!(says(Some("d0"), SourceKind::Drive, &[]), "on");
    // Another drive took part, or nobody counted.
    assert_eq!(says(Some("d1"), SourceKind::Drive, &["d0", "d1"]), "to");
    assert_eq!(says(Some("d1"), SourceKind::Drive, &[]), "to");
    assert_eq!(says(None, SourceKind::Memory, &["d0"]), "to");
    // Copies of a suite that had a source of its own for others.
    assert_eq!(says(Some("d1"), SourceKind::Drive, &["d0"]), "on");
    assert_eq!(says(None, SourceKind::Drive, &["d0"]), "on");
}

#[test]
fn field_h01_no_bytes_and_no_time_are_no_rate_in_any_view() {
    for (bytes, ns) in [(0, 0), (0, 5_000_000_000), (1, 0), (1, 1), (8_410_300_000, 0)] {
        let mut document = record_of(bytes, &[ns, ns, ns]);
        document.runs.iter_mut().flat_map(|run| &mut run.phases).for_each(|phase| {
            phase.files = u64::from(bytes > 0);
            phase.time.as_mut().unwrap().calls_ns.clear();
        });
        document.summary = summarise(&document);
        assert!(document.summary.iter().all(|summary| summary.metric.ends_with("_ns")), "{bytes} {ns}: {:?}", document.summary);
        for view in report::VIEWS {
            let shown = report::render(&document, view.name).unwrap();
            assert!(!shown.contains("NaN") && !shown.contains("inf "), "{bytes} {ns}: {shown}");
        }
        assert_eq!(Document::from_json(&report::render(&document, "json").unwrap()).unwrap(), document);
    }
}

#[test]
fn field_h02_rates_are_bytes_over_time_of_each_run_and_never_a_mean() {
    const MIB_100: u64 = 100 << 20;
    let document = record_of(MIB_100, &[1_000_000_000, 9_000_000_000]);
    let rate = document.summary.iter().find(|summary| summary.headline).unwrap();
    let each = [104_857_600.0, 11_650_844.0];
    assert_eq!((rate.values.as_slice(), rate.n, rate.min, rate.max), (&each[..], 2, each[1], each[0]));
    assert_eq!(rate.median, f64::midpoint(each[0], each[1]));
    // A third tells the middle from the mean.
    let document = record_of(MIB_100, &[1_000_000_000, 9_000_000_000, 9_000_000_000]);
    assert_eq!(document.summary.iter().find(|summary| summary.headline).unwrap().median, each[1]);
    // Several threads are one phase: their bytes together over the one window, not a sum of their rates.
    let phase = &document.runs[0].phases[0];
    assert_eq!((phase.bytes, phase.window.durable_ns), (MIB_100, Some(1_000_000_000)));
    let schema = schema::json();
    assert!(schema.contains("the useful bytes, each counted once. Rates are derived from it."), "the formula is said where the field is described");
}

#[test]
fn field_h04_whatever_happened_the_record_is_json_for_everybody() {
    fn numbers_are_finite(value: &Value) -> bool {
        match value {
            Value::Number(number) => number.as_f64().is_some_and(f64::is_finite),
            Value::Array(values) => values.iter().all(numbers_are_finite),
            Value::Object(members) => members.values().all(numbers_are_finite),
            _ => true,
        }
    }
    let edges = [record_of(u64::MAX, &[1_000_000_000]), record_of(u64::MAX, &[u64::MAX]), record_of(1, &[u64::MAX, 0])];
    for (name, document) in records::all().into_iter().chain(edges.map(|document| ("edge", document))) {
        let text = report::render(&document, "json").unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert!(numbers_are_finite(&value), "{name}");
        assert!(
            document.summary.iter().all(|summary| summary.values.iter().chain([&summary.median, &summary.min, &summary.max]).all(|v| v.is_finite()))
        );
        assert!(Document::from_json(&text).unwrap() == document, "{name}");
    }
    // Nor is a record taken that has other words for numbers.
    let text = report::render(&good(), "json").unwrap();
    for word in ["NaN", "Infinity", "-Infinity", "1e999"] {
        let median = good().summary[0].median;
        let broken = text.replacen(&format!("\"median\": {median}"), &format!("\"median\": {word}"), 1);
        assert!(broken != text, "there is no {median}");
        assert_eq!(Document::from_json(&broken).unwrap_err().exit_code(), 2, "{word}");
    }
}

#[test]
fn field_h07_figures_are_kept_in_one_unit_whatever_their_size() {
    let records = [900, 500_000, 35_000_000, 1_400_000_000].map(|rate| record_of(rate * 10, &[10_000_000_000]));
    let rates = records.each_ref().map(|document| document.summary.iter().find(|summary| summary.headline).unwrap().median);
    assert_eq!(rates, [900.0, 500_000.0, 35_000_000.0, 1_400_000_000.0]);
    for (document, shown) in records.iter().zip([" 900 B/s", " 500 kB/s", " 35.0 MB/s", " 1.40 GB/s"]) {
        let text = text(document);
        assert!(text.contains(shown), "{shown}: {text}");
        // The column has one unit in its head, and no figure in it has one of its own.
        let head = text.lines().find(|line| line.contains("MB/s") && line.contains("run")).unwrap_or_default();
        assert!(!head.contains("kB/s") && !head.contains("GB/s"), "{head}");
    }
    // What was written for people is not read back.
    let mut value = serde_json::to_value(&records[2]).unwrap();
    value["summary"][0]["median"] = "35.0 MB/s".into();
    assert!(Document::from_json(&value.to_string()).unwrap_err().to_string().contains("this result is damaged: invalid type: string"));
}
