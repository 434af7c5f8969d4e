//! Every mistake is told in a sentence that says what to do instead, with exit code 2, before anything is touched.

use std::fs;

use crate::person::{LITTLE, Person, patiently, ran};

/// The refusal of a scenario with these arguments, after which the drive and the results are as they were.
#[track_caller]
fn refused(person: &Person, args: &[&str], sentence: &str) {
    let before = fs::read_dir(&person.drive).unwrap().count();
    patiently(|| person.copysim([&["scenario"], args].concat())).refuses(sentence);
    assert_eq!(fs::read_dir(&person.drive).unwrap().count(), before, "{args:?} left something on the drive");
    assert!(person.results().is_empty(), "{args:?} left a result");
}

#[test]
fn names_that_there_are_not() {
    let person = Person::new();
    let target = person.target();
    refused(&person, &["jpg-same-driv", target], "there is no scenario \"jpg-same-driv\": did you mean \"jpg-same-drive\"?");
    refused(&person, &["jpg", target], "there is no scenario \"jpg\": did you mean \"jpg-cross-drive\" or \"jpg-same-drive\"?");
    refused(&person, &["xyzzy", target], "there is no scenario \"xyzzy\": `copysim list` shows all");
    refused(&person, &["a\u{1b}[2Jb", target], "there is no scenario \"a\\u{1b}[2Jb\"");
    refused(&person, &["jpg-same-drive", target, "--engine", "bufferd"], "there is no engine \"bufferd\": choose buffered, copy-file-range");
    refused(&person, &["jpg-same-drive", target, "--engine", "command:cp -r"], "the command \"cp -r\" must say {source} and {target}");
    person.runs(["corpus", "digest", "jgp"]).refuses("there is no corpus \"jgp\": did you mean \"jpg\"?");
    person.runs(["frobnicate"]).refuses("unrecognized subcommand 'frobnicate'");
}

#[test]
fn quantities_that_are_none() {
    let person = Person::new();
    for (option, value, sentence) in [
        ("--scale", "0", "\"0\" is not a scale: write a share from 0.01% to 10000%"),
        ("--scale", "0.001%", "is not a scale"),
        ("--scale", "ten", "\"ten\" is not a number"),
        ("--max-write", "12 parsecs", "unknown unit \"parsecs\" in \"12 parsecs\": write bytes, kB, MB, GB, KiB, MiB or GiB"),
        ("--max-write", "1.5", "\"1.5\" is not a whole number of bytes"),
        ("--threads", "0", "0 is not in 1..=256"),
        ("--runs", "0", "0 is not in 1..=1000"),
        ("--settle", "soon", "expected number at 0"),
        ("--order", "random", "[possible values: manifest, readdir]"),
        ("--cache", "icy", "[possible values: cold, warm, as-is]"),
    ] {
        refused(&person, &["jpg-same-drive", person.target(), option, value], sentence);
    }
    refused(&person, &["jpg-same-drive", person.target(), "--quick", "--scale", "1%"], "'--quick' cannot be used with '--scale <SHARE>'");
    let write = ["jpg-same-drive", person.target(), "--max-write", "30 MB", "--scale", "0.1%"];
    refused(&person, &write, "33.6 MB would be written, more than --max-write 30.0 MB: use a smaller --scale or fewer --runs");
}

#[test]
fn field_j02_targets_that_are_none() {
    let person = Person::new();
    let (file, target) = (person.file("photo.jpg", ""), person.target());
    refused(&person, &["jpg-same-drive", "gone"], "gone does not exist: name a directory on the drive to measure");
    refused(&person, &["jpg-same-drive", ""], "a value is required for '[TARGET]' but none was supplied");
    refused(&person, &["jpg-same-drive", &file], "photo.jpg is not a directory: name a directory on the drive to measure");
    refused(&person, &["jpg-same-drive", "/dev/null"], "/dev/null is not a directory");
    refused(&person, &["jpg-same-drive", &format!("{target}\n")], "does not exist: name a directory on the drive to measure");
    // A drive itself, mounted or not, is no directory: to whatever it holds nothing happens.
    let is_block = |path: &std::path::PathBuf| {
        use std::os::unix::fs::FileTypeExt;
        fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device())
    };
    let device = crate::person::below("/dev".as_ref()).into_iter().find(is_block);
    for device in device.iter().map(|device| device.to_str().unwrap()) {
        refused(&person, &["jpg-same-drive", device], &format!("{device} is not a directory"));
        person.runs(["corpus", "generate", "jpg", device]).refuses(&format!("{device} is a device, pipe or socket: name a directory"));
        person.runs(["capacity", device, "--yes"]).refuses("is a device, pipe or socket: name a directory");
    }
    for command in
        [&["capacity", "", "--yes"][..], &["clean", ""], &["corpus", "generate", "jpg", ""], &["scenario", "jpg-cross-drive", target, "--source", ""]]
    {
        person.runs(command).exits(2);
    }
    let generate = |target: &str| person.runs(["corpus", "generate", "jpg", target]);
    generate("gone").refuses("gone does not exist: name a directory that does");
    generate("/dev/null").refuses("/dev/null is a device, pipe or socket: name a directory");
    person.runs(["clean", &file]).refuses("photo.jpg is a file: name a directory");
}

#[test]
fn a_target_inside_a_workspace() {
    let person = Person::new();
    person.runs(["corpus", "generate", "small-files", person.target(), "--scale", "0.01%"]).exits(0);
    let workspace = format!("{}/copysim-workspace", person.target());
    for inside in [workspace.clone(), format!("{workspace}/corpora")] {
        let args = [&["jpg-same-drive", &inside], &LITTLE[..]].concat();
        refused(&person, &args, &format!("{inside} lies in a workspace of copysim's: name a directory outside"));
        person.runs(["clean", &inside]).refuses("lies in a workspace of copysim's");
    }
    // A workspace that was given another name is still one.
    let renamed = person.drive.path().join("renamed");
    fs::rename(&workspace, &renamed).unwrap();
    refused(&person, &[&["jpg-same-drive", renamed.to_str().unwrap()], &LITTLE[..]].concat(), "lies in a workspace of copysim's");
}

#[test]
fn what_bears_the_name_of_a_workspace_and_is_none() {
    let person = Person::new();
    let workspace = person.drive.path().join("copysim-workspace");
    fs::create_dir(&workspace).unwrap();
    fs::write(workspace.join("diary.txt"), "mine").unwrap();
    let sentence = "has no valid MARKER, so it is not copysim's and stays untouched: move it away, or name another directory";
    refused(&person, &[&["jpg-same-drive", person.target()], &LITTLE[..]].concat(), sentence);
    person.runs(["clean", person.target()]).refuses(sentence);
    assert_eq!(fs::read_to_string(workspace.join("diary.txt")).unwrap(), "mine");
}

#[test]
fn sources_that_have_no_part_or_are_none() {
    let person = Person::new();
    let (home, target) = (person.home.path().to_str().unwrap(), person.target());
    refused(&person, &["jpg-same-drive", target, "--source", home], &format!("jpg-same-drive copies within one drive: --source {home} has no part"));
    refused(&person, &["jpg-cross-drive", target, "--source", target], &format!("{target} is source and target at once: name two directories"));
    refused(&person, &["jpg-cross-drive", target, "--source", "gone"], "gone does not exist: name a directory to copy from");
    person.runs(["plan", "jpg-cross-drive", target, "--source", target]).refuses("is source and target at once");
}

#[test]
fn definitions_that_cannot_be_read_name_line_and_column() {
    let person = Person::new();
    let head = "name = \"mine\"\nversion = 1\nsummary = \"\"\n[[phase]]\n";
    for (text, sentences) in [
        (
            format!("{head}copy = {{ corpus = \"jpg\", form = \"source\" }}\n"),
            ["line 5, column 26", "unknown field `form`, expected `corpus` or `from`"],
        ),
        (format!("{head}move = {{}}\n"), ["line 5, column 1", "unknown variant `move`"]),
        ("name \"mine\"\n".to_owned(), ["line 1, column 6", "key with no value, expected `=`"]),
        (head.replace("[[phase]]\n", ""), ["my.toml:", "missing field `phase`"]),
        (format!("runs = 0\n{head}copy = {{ corpus = \"jpg\", from = \"source\" }}\n"), ["my.toml:", "runs = 0: a scenario runs at least once"]),
        (format!("{head}copy = {{ corpus = \"jgp\", from = \"source\" }}\n"), ["no corpus \"jgp\"", "did you mean \"jpg\"?"]),
    ] {
        let file = person.file("my.toml", &text);
        for sentence in sentences {
            refused(&person, &[&file, person.target()], sentence);
        }
    }
    refused(&person, &["gone.toml", person.target()], "cannot read gone.toml: no such file or directory (ENOENT)");
    let corpus = person.file("c.toml", &include_str!("../../corpora/jpg.toml").replace("files = 7861", "files = 0"));
    person.runs(["corpus", "digest", &corpus]).refuses("files = 0: a corpus has at least one file");
    let corpus = person.file("c.toml", &include_str!("../../corpora/jpg.toml").replace("[content]", "[contents]"));
    person.runs(["corpus", "digest", &corpus]).refuses("unknown field `contents`");
}

#[test]
fn too_little_room_names_the_scale_that_fits() {
    let person = Person::new();
    let err = patiently(|| person.copysim(["scenario", "jpg-same-drive", person.target(), "--scale", "10000%"])).exits(2).err;
    assert!(err.contains(" available, but 1.69 TB are needed; --scale ") && err.contains("% fits"), "{err}");
    assert_eq!(fs::read_dir(&person.drive).unwrap().count(), 0);
}

#[test]
fn results_that_are_none() {
    let person = Person::new();
    for (content, sentence) in [
        ("{", "this is not JSON: EOF"),
        ("{}", "this JSON is no result of copysim: it has no \"schema\""),
        (r#"{"schema":"other/1"}"#, "this is no result of copysim: its schema is \"other/1\""),
        (r#"{"schema":"copysim.result/2"}"#, "this result was written by a newer copysim"),
        (r#"{"schema":"copysim.result/1"}"#, "this result is damaged: missing field `id`"),
        ("", "this is not JSON"),
    ] {
        let file = person.file("result.json", content);
        person.runs(["report", &file]).refuses(sentence);
    }
    let file = person.file("result.json", "");
    fs::write(&file, [0xff, 0xfe, 0, 1]).unwrap();
    person.runs(["report", &file]).refuses("this is not JSON: it is not even text");
    let missing = person.runs(["report", "gone.json"]).exits(1);
    assert!(missing.err.contains("cannot read gone.json: no such file or directory (ENOENT)"), "{}", missing.err);
    person.runs(["report"]).refuses("<FILES>...");
}

#[test]
fn without_a_home_a_place_for_results_must_be_named() {
    let person = Person::new();
    let homeless = ran(person.copysim(["scenario", "jpg-same-drive", person.target()]).env_remove("HOME"));
    homeless.refuses("there is no place for results: neither XDG_DATA_HOME nor HOME is set; name one with --results DIR");
}
