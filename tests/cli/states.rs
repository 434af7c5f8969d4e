//! The state of a drive before it is measured, and what is done after it: filled, trimmed, compared with a control.

use copysim::result::{Document, PhaseKind, PhaseStatus, store};

use crate::person::{LITTLE, Person, below};

fn only_result(person: &Person) -> Document {
    let results = person.results();
    assert_eq!(results.len(), 1, "{results:?}");
    store::load(&results[0]).unwrap()
}

#[test]
fn a_drive_is_filled_first_and_emptied_afterwards() {
    let person = Person::new();
    let shown = person.measures("jpg-same-drive", &["--runs", "2", "--fill", "2%", "--yes"]).exits(0);
    let document = only_result(&person);
    let phases: Vec<_> = document.runs.iter().map(|run| run.phases.iter().map(|phase| phase.name.as_str()).collect::<Vec<_>>()).collect();
    assert_eq!(phases, [vec!["fill", "copy"], vec!["copy"]]);
    let filling = &document.runs[0].phases[0];
    assert_eq!((filling.kind, filling.status), (PhaseKind::Precondition, PhaseStatus::Ok));
    assert!(filling.bytes > 1_000_000 && shown.out.contains("Prepared  filled with "), "{}", shown.out);
    assert!(document.summary.iter().all(|summary| summary.phase == "copy"), "a filling is no result");
    assert!(below(&person.drive.path().join("copysim-workspace/runs")).is_empty());
}

#[test]
fn a_control_does_the_same_work_with_other_data_and_is_no_result() {
    let person = Person::new();
    person.measures("jpg-same-drive", &["--runs", "2", "--control"]).exits(0);
    let document = only_result(&person);
    assert_eq!(document.runs[0].phases.len(), 1);
    let [control, copy] = document.runs[1].phases.as_slice() else { panic!("{:?}", document.runs[1].phases.len()) };
    assert_eq!((control.kind, control.status), (PhaseKind::Control, PhaseStatus::Ok));
    assert_eq!((control.files, control.bytes, control.work), (copy.files, copy.bytes, copy.work));
    assert!(control.integrity.is_none() && copy.integrity.is_some(), "what is not the corpus is not compared with it");
    assert!(document.summary.iter().all(|summary| summary.phase == "copy"));
}

#[test]
fn field_a11_what_the_control_writes_is_new_in_every_block_and_differs_from_run_to_run() {
    use copysim::engine::{Engine, Trees};
    use copysim::measure::calls::Calls;
    use copysim::platform::OS;
    let place = tempfile::tempdir().unwrap();
    let data: Vec<u8> = vec![7; 3_000_000];
    let dirs = ["from", "a", "b"].map(|name| place.path().join(name));
    dirs.iter().for_each(|dir| std::fs::create_dir(dir).unwrap());
    ["x", "y"].iter().for_each(|name| std::fs::write(dirs[0].join(name), &data).unwrap());
    let written = |dir: &std::path::Path, number: u64| {
        let [source, target] = [&dirs[0], &dir.to_path_buf()].map(|path| OS.files.open_root(path).unwrap());
        let (counter, cancel) = Default::default();
        let trees = Trees {
            files: OS.files,
            source: &source,
            source_path: &dirs[0],
            target: &target,
            target_path: dir,
            umask: 0,
            fresh: Some(number),
            counter: &counter,
            cancel: &cancel,
            log: None,
        };
        let Engine::Files(_, engine) = Engine::named("buffered").unwrap() else { panic!("another engine") };
        for name in ["x", "y"] {
            engine.copy(trees, name.as_ref(), &mut Calls::new(OS.clock), &mut Vec::new()).unwrap();
        }
        ["x", "y"].map(|name| std::fs::read(dir.join(name)).unwrap())
    };
    let all = [written(&dirs[1], 1), written(&dirs[2], 2)].concat();
    let blocks: std::collections::HashSet<&[u8]> = all.iter().flat_map(|file| file.chunks(4096)).collect();
    assert_eq!(blocks.len(), 4 * data.len().div_ceil(4096), "two blocks are equal");
    let changed = all[0].iter().zip(&data).filter(|(new, old)| new != old).count();
    assert!(changed * 512 <= data.len() * 8 + 512 * 8, "they compress no worse than before: {changed}");
}

#[test]
fn filling_is_a_scenario_of_its_own_with_its_curve() {
    let person = Person::new();
    let shown = person.runs([&["scenario", "fill-drive", person.target(), "--fill", "3", "--yes"], &LITTLE[..2], &["--scale", "2%"][..0]].concat());
    let shown = shown.exits(0);
    let document = only_result(&person);
    let phase = &document.runs[0].phases[0];
    assert_eq!((phase.kind, phase.name.as_str()), (PhaseKind::Write, "fill"));
    assert_eq!(phase.integrity.as_ref().map(|found| (found.files_checked, found.files_good)), Some((phase.files, phase.files)));
    assert!(phase.timeline.is_some() && shown.out.contains("fill"), "{}", shown.out);
    assert!(below(person.drive.path()).is_empty(), "nothing is kept of it");
}

#[test]
fn what_cannot_be_had_is_said_before_anything_is_written() {
    let person = Person::new();
    for (args, sentence) in [
        (["--fill", "99%"], "a share is between 0% and 98%"),
        (["--fill", "many"], "a share is between 0% and 98%"),
        (["--state", "wet"], "[possible values: as-is, dirty, trimmed]"),
    ] {
        let refused = person.measures("jpg-same-drive", &args).exits(2);
        assert!(refused.err.contains(sentence), "{}", refused.err);
    }
    person.measures("fill-drive", &["--control"]).refuses("what this scenario writes is new to the drive anyway");
    person.measures("jpg-same-drive", &["--control", "--engine", "copy-file-range"]).refuses("only the engine \"buffered\" can write other data");
    person.measures("fill-drive", &["--threads", "2"]).refuses("writes data that are made meanwhile, which --threads can't do");
    assert!(below(person.drive.path()).is_empty());
    // A file system in memory has nothing to tell to anybody: that is found out when it is told.
    let trimmed = person.measures("jpg-same-drive", &["--state", "trimmed"]);
    let trimmed = trimmed.exits(2);
    assert!(trimmed.err.contains("--state trimmed: ") && below(person.drive.path()).is_empty(), "{}", trimmed.err);
    person.runs(["scenario", "fill-drive", "--yes"]).refuses("fill-drive fills a drive: name a directory on it");
}
