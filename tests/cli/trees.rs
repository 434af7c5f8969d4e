//! Trees that copysim did not make: odd names and times, links, FIFOs and devices, depths, widths, and sources that change under its hands. None of them ends in a
//! panic, a hang, or a verdict about a drive that did nothing wrong.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use copysim::platform::OS;
use copysim::result::{Document, store};
use filetime::{FileTime, set_file_mtime};

use crate::person::{Person, Ran, below, is_root, patiently, ran, skipped};

const PHOTO: &str = "files/DCIM/100MEDIA/IMG_0002.JPG";

/// A corpus of six photos on the drive.
fn photos(person: &Person) -> PathBuf {
    person.runs(["corpus", "generate", "jpg", person.target(), "--scale", "0.07%"]).exits(0);
    person.corpus()
}

fn generated_again(person: &Person) -> Ran {
    person.runs(["corpus", "generate", "jpg", person.target(), "--scale", "0.07%"]).exits(0)
}

fn verified(person: &Person) -> Ran {
    person.runs(["corpus", "verify", person.target()])
}

/// All files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = walkdir::WalkDir::new(directory).into_iter().map(Result::unwrap);
    entries.filter(|entry| entry.file_type().is_file()).map(|entry| entry.path().to_path_buf()).collect()
}

fn shift(corpus: &Path, by: impl Fn(usize) -> i64) {
    for (index, file) in files(&corpus.join("files")).iter().enumerate() {
        let time = FileTime::from_last_modification_time(&fs::metadata(file).unwrap());
        set_file_mtime(file, FileTime::from_unix_time(time.unix_seconds() + by(index), 0)).unwrap();
    }
}

#[test]
fn field_e01_times_that_a_file_system_rounds_make_no_other_corpus() {
    let person = Person::new();
    let corpus = photos(&person);
    for by in [1, -2, 1] {
        shift(&corpus, |_| by);
        assert!(generated_again(&person).err.contains("is there and complete"), "{by}");
        let out = verified(&person).exits(0).out;
        assert!(out.ends_with(": 6 of 6 files of jpg-v1-s0-p0.07 are good\n") && out.lines().count() == 1, "{out}");
    }
    // A little more on one file is another time; its bytes are right all the same.
    set_file_mtime(corpus.join(PHOTO), FileTime::from_unix_time(1_000_000_001, 0)).unwrap();
    assert!(verified(&person).exits(0).out.starts_with("another modification time, but the right bytes: 1 file\n"));
    assert!(generated_again(&person).err.contains("has another length or time than it was made with: it is made again"));
}

#[test]
fn field_e02_a_drive_from_another_time_zone_keeps_its_corpus() {
    let person = Person::new();
    let corpus = photos(&person);
    let sentence = "another modification time, but the right bytes: 6 files (as another time zone makes it)\n";
    // Two hours east, then as far west as there is, then back with summer time for some, each less coarse seconds.
    for by in [&(|_| 7201_i64) as &dyn Fn(usize) -> i64, &|_| -50_400, &|index| 50_398 + i64::from(index % 2 == 1) * 3600] {
        shift(&corpus, by);
        let out = verified(&person).exits(0).out;
        assert!(out.starts_with(sentence), "{out}");
        assert!(generated_again(&person).err.contains("is there and complete"));
    }
    shift(&corpus, |index| i64::from(index == 3) * 900);
    assert!(verified(&person).exits(0).out.starts_with("another modification time, but the right bytes: 6 files\n"));
    assert!(generated_again(&person).err.contains("it is made again"));
}

#[test]
fn field_e06_absurd_times_are_told_and_end_nothing() {
    let person = Person::new();
    let corpus = photos(&person);
    let late = corpus.join(PHOTO);
    // What some file systems refuse others keep.
    for seconds in [i64::MAX, 1_831_276_800_000, -1, -157_766_400, -i64::MAX] {
        if let Err(error) = set_file_mtime(&late, FileTime::from_unix_time(seconds, 0)) {
            eprintln!("{seconds}: {error}");
            continue;
        }
        assert!(verified(&person).exits(0).out.starts_with("another modification time, but the right bytes: 1 file\n"), "{seconds}");
        person.runs(["corpus", "scan", person.target()]).exits(0);
        assert!(generated_again(&person).err.contains("it is made again"), "{seconds}");
    }
    // The note of a corpus, and a list in which a time is beyond all bounds.
    let long = format!(r#"{{"at_s":{},"bytes":1,"durable_ns":{}}}"#, i64::MIN, u64::MAX);
    fs::write(corpus.join("STAGED"), long).unwrap();
    let asked = person.measures("jpg-same-drive", &["--runs", "1"]).exits(2);
    assert!(asked.err.contains("jpg-same-drive takes about "), "{}", asked.err);
    person.measures("jpg-same-drive", &["--runs", "1", "--yes"]).exits(0);
    assert_eq!(store::load(&person.results()[0]).unwrap().corpora[0].staged_age_s, None);
    let manifest = fs::read_to_string(corpus.join("MANIFEST")).unwrap();
    let line = manifest.lines().find(|line| line.ends_with("IMG_0002.JPG")).unwrap();
    let time = line.split(' ').nth(2).unwrap();
    for absurd in [i64::MIN, i64::MAX] {
        let lines: String = manifest
            .lines()
            .filter(|line| line.contains("/IMG_"))
            .map(|line| line.replace(&format!(" {time} "), &format!(" {absurd} ")) + "\n")
            .collect();
        let head: String = manifest.lines().take(2).map(|line| format!("{line}\n")).collect();
        fs::write(corpus.join("MANIFEST"), format!("{head}{lines}root {}\n", blake3::hash(lines.as_bytes()).to_hex())).unwrap();
        assert!(verified(&person).exits(0).out.starts_with("another modification time, but the right bytes: "), "{absurd}");
        assert!(generated_again(&person).err.contains("it is made again"));
    }
}

#[test]
fn field_f01_names_that_are_no_text_are_shown_and_kept_as_bytes() {
    let person = Person::new();
    let odd = |name: &[u8]| OsStr::from_bytes(name).to_owned();
    let corpus = photos(&person);
    fs::write(corpus.join("files").join(odd(b"a\xff\xfe.bin")), "x").unwrap();
    fs::create_dir(corpus.join("files").join(odd(b"\x80d"))).unwrap();
    fs::write(corpus.join("files").join(odd(b"\x80d/z\\xff")), "x").unwrap();
    let out = verified(&person).exits(0).out;
    assert!(out.contains("\na\\xff\\xfe.bin: not part of the corpus\n") || out.starts_with("a\\xff\\xfe.bin: not part of the corpus\n"), "{out}");
    assert!(out.contains("\\x80d/z\\x5cxff: not part of the corpus\n"), "{out}");
    person.runs(["corpus", "scan", person.target()]).exits(0);

    // A drive that is called so: the record is text, names it, and the command that it gives finds it.
    let drive = person.home.path().join(odd(b"stick \xe4\xff"));
    fs::create_dir(&drive).unwrap();
    let args = ["scenario", "jpg-same-drive", "--runs", "1", "--scale", "0.07%", "--settle", "0s", "--identify"];
    let shown = patiently(|| {
        let mut command = person.copysim(args);
        command.arg(&drive);
        command
    });
    let shown = shown.exits(0);
    let record = store::load(&person.results()[0]).unwrap();
    let home = person.home.path().display();
    assert_eq!(record.drives[0].path.as_deref(), Some(format!("{home}/stick \\xe4\\xff").as_str()));
    let command = record.aftermath.unwrap().remove_with.unwrap();
    assert!(shown.out.contains(&format!("Remove it with: {command}\n")), "{}", shown.out);
    let program = Path::new(env!("CARGO_BIN_EXE_copysim")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    ran(person.program("sh").arg("-c").arg(command).env("PATH", path)).exits(0);
    assert!(below(&drive).is_empty());
}

/// Directories in each other, made by relative names: the path to the last is longer than any that the system takes.
fn deep(directory: &Path, levels: usize) {
    let name = "d".repeat(255);
    let mut dir = OS.files.open_root(directory).unwrap();
    for _ in 0..levels {
        OS.files.make_dir(&dir, Path::new(&name), 0o700).unwrap();
        dir = OS.files.open_dir(&dir, Path::new(&name)).unwrap();
    }
    OS.files.create(&dir, Path::new("file"), 0o600).unwrap();
}

#[test]
fn field_f08_paths_that_are_too_long_are_named_once_and_cleaned() {
    let person = Person::new();
    let corpus = photos(&person);
    deep(&corpus.join("files"), 17);
    let out = verified(&person).exits(0).out;
    assert!(out.contains("ddd/file: not part of the corpus\n") && out.ends_with("6 of 6 files of jpg-v1-s0-p0.07 are good\n"), "{out}");
    let scanned = person.runs(["corpus", "scan", corpus.join("files").to_str().unwrap()]).exits(0);
    assert!(scanned.out.contains("the shape of a folder of 6 files"), "{}", scanned.out);
    assert!(scanned.err.starts_with("left out: 1 that can't be looked at"), "{}", scanned.err);
    // Far deeper than any corpus, and than directories can be open at once.
    deep(&corpus.join("files/DCIM"), 1100);
    let out = verified(&person).exits(0).out;
    assert!(out.contains("d/: not part of the corpus\n") && out.ends_with("6 of 6 files of jpg-v1-s0-p0.07 are good\n"), "{out}");
    // A copy is not hindered by it, and all of it is copysim's to remove.
    person.measures("jpg-same-drive", &["--runs", "1"]).exits(0);
    person.runs(["clean", person.target()]).exits(0);
    assert!(below(person.drive.path()).is_empty());
}

#[test]
fn field_g01_a_source_within_the_target_or_around_it_is_copied_once() {
    let person = Person::new();
    let inner = person.drive.path().join("inner");
    fs::create_dir(&inner).unwrap();
    symlink(&inner, person.home.path().join("link")).unwrap();
    let cross = |source: &str, target: &str| {
        let args = ["scenario", "jpg-cross-drive", target, "--source", source, "--runs", "1", "--scale", "0.07%", "--settle", "0s"];
        patiently(|| person.copysim(args))
    };
    let outer = person.target();
    let inner_text = inner.to_str().unwrap();
    for (source, target) in [
        (outer.to_owned(), outer.to_owned()),
        (format!("{outer}/"), outer.to_owned()),
        (format!("{inner_text}/.."), format!("{outer}/.")),
        ("link".to_owned(), inner_text.to_owned()),
        ("link/".to_owned(), format!("{outer}/inner/")),
    ] {
        cross(&source, &target).refuses("is source and target at once: name two directories");
        assert!(below(&inner).is_empty() && below(person.drive.path()) == [inner.clone()]);
    }
    for (source, target) in [(outer, inner_text), (inner_text, outer)] {
        let out = cross(source, target).exits(0).out;
        assert!(out.contains("all 6"), "{out}");
        for directory in [outer, inner_text] {
            person.runs(["clean", directory]).exits(0);
        }
        assert_eq!(files(person.drive.path()), [""; 0].map(PathBuf::from));
    }
    if is_root() {
        let again = person.home.path().join("again");
        fs::create_dir(&again).unwrap();
        if Command::new("mount").arg("--bind").args([&inner, &again]).status().is_ok_and(|status| status.success()) {
            let refused = cross("again", inner_text);
            assert!(Command::new("umount").arg(&again).status().unwrap().success());
            refused.refuses("is source and target at once");
        }
    }
}

#[test]
fn field_g03_links_in_circles_and_into_nowhere_are_counted_and_not_followed() {
    let person = Person::new();
    let real = person.home.path().join("real");
    fs::create_dir_all(real.join("a/b")).unwrap();
    fs::write(real.join("a/b/file"), "12345").unwrap();
    let links = [("../..", "a/b/up"), ("nowhere", "dead"), ("two", "one"), ("one", "two"), ("a", "also a"), ("a/b/file", "also the file")];
    links.iter().for_each(|(to, name)| symlink(to, real.join(name)).unwrap());
    let scanned = person.runs(["corpus", "scan", "real"]).exits(0);
    assert_eq!(scanned.err, "left out: 6 symbolic links\n");
    assert!(scanned.out.contains("files = 1\nbytes = 5\n"), "{}", scanned.out);

    let corpus = photos(&person);
    links.iter().for_each(|(to, name)| symlink(to, corpus.join("files").join(name.replace('/', "_"))).unwrap());
    let out = verified(&person).exits(0).out;
    assert_eq!(out.matches(": not part of the corpus\n").count(), 6, "{out}");
    assert!(out.ends_with("6 of 6 files of jpg-v1-s0-p0.07 are good\n"), "{out}");
    // A link in the place of a file is not the file, wherever it leads.
    fs::rename(corpus.join(PHOTO), person.home.path().join("photo")).unwrap();
    symlink(person.home.path().join("photo"), corpus.join(PHOTO)).unwrap();
    let out = verified(&person).exits(4).out;
    assert!(out.contains("IMG_0002.JPG: missing\n"), "{out}");
    assert!(generated_again(&person).err.contains("IMG_0002.JPG is no file: it is made again"));
}

/// Tells whether something is opened.
struct OpenWatch(rustix::fd::OwnedFd);

impl OpenWatch {
    fn of(path: &Path) -> Self {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
        let watch = init(CreateFlags::NONBLOCK).unwrap();
        add_watch(&watch, path, WatchFlags::OPEN).unwrap();
        Self(watch)
    }

    fn was_opened(&self) -> bool {
        // The first of the events that there are; one that is only told to be removed was not opened.
        let mut event = [0; 512];
        let mask = rustix::io::read(&self.0, &mut event).ok().map(|_| u32::from_ne_bytes(event[4..8].try_into().unwrap()));
        mask.is_some_and(|mask| mask & rustix::fs::inotify::ReadFlags::OPEN.bits() != 0)
    }
}

#[test]
fn field_g07_fifos_sockets_and_devices_are_counted_and_never_opened() {
    let person = Person::new();
    let real = person.home.path().join("real");
    fs::create_dir(&real).unwrap();
    fs::write(real.join("file"), "12345").unwrap();
    let corpus = photos(&person);
    fs::remove_file(corpus.join(PHOTO)).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(real.join("socket")).unwrap();
    let mut odd = vec![real.join("fifo"), corpus.join("files/fifo"), corpus.join(PHOTO)];
    odd.iter().for_each(|path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success()));
    let mut said = "left out: 1 FIFO, 1 socket\n".to_owned();
    if is_root() {
        for (name, arguments) in [("zero", ["c", "1", "5"]), ("block", ["b", "7", "0"])] {
            let made = Command::new("mknod").arg(real.join(name)).args(arguments).status().is_ok_and(|status| status.success());
            assert!(made);
            odd.push(real.join(name));
        }
        said = "left out: 1 FIFO, 1 socket, 2 devices\n".to_owned();
    } else {
        skipped("only root makes devices");
    }
    let watches: Vec<OpenWatch> = odd.iter().map(|path| OpenWatch::of(path)).collect();
    let scanned = person.runs(["corpus", "scan", "real"]).exits(0);
    assert_eq!(scanned.err, said);
    assert!(scanned.out.contains("files = 1\nbytes = 5\n"), "{}", scanned.out);
    let out = verified(&person).exits(4).out;
    assert!(out.contains("IMG_0002.JPG: missing\n") && out.contains("fifo: not part of the corpus\n"), "{out}");
    // Files of F3 that are none.
    assert!(Command::new("mkfifo").arg(person.drive.path().join("1.h2w")).status().unwrap().success());
    let f3 = OpenWatch::of(&person.drive.path().join("1.h2w"));
    let checked = patiently(|| person.copysim(["capacity", person.target(), "--check"])).exits(2);
    assert!(checked.err.contains("there are no files of F3 or h2testw"), "{}", checked.err);
    let opened: Vec<&PathBuf> = odd.iter().zip(&watches).filter(|(_, watch)| watch.was_opened()).map(|(path, _)| path).collect();
    assert!(opened.is_empty() && !f3.was_opened(), "{opened:?}");
    // Nor when the corpus is looked at, which is then made again.
    let watch = OpenWatch::of(&corpus.join(PHOTO));
    assert!(generated_again(&person).err.contains("IMG_0002.JPG is no file: it is made again"));
    assert!(!watch.was_opened());
}

#[test]
fn field_g09_each_name_of_a_file_counts_as_a_file_and_that_is_said() {
    let person = Person::new();
    let real = person.home.path().join("real");
    fs::create_dir(&real).unwrap();
    fs::write(real.join("first"), vec![1; 5000]).unwrap();
    ["second", "third"].iter().for_each(|name| fs::hard_link(real.join("first"), real.join(name)).unwrap());
    let scanned = person.runs(["corpus", "scan", "real", "-o", "real.toml"]).exits(0);
    assert_eq!(scanned.err, "counted as files of their own: 2 further names of files (hard links)\n");
    // What the corpus is made of is what the estimate counts and what lies there.
    let made = person.runs(["corpus", "generate", "./real.toml", person.target()]).exits(0);
    assert!(made.out.contains("  3 files, 15.0 kB\n"), "{}", made.out);
    assert_eq!(files(&person.corpus().join("files")).iter().map(|file| fs::metadata(file).unwrap().len()).sum::<u64>(), 15_000);
    // Names of one file in a copy are as good as two files.
    let photos = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir_in(person.home.path())).unwrap();
    person.runs(["corpus", "generate", "zero-fill", photos.path().to_str().unwrap(), "--scale", "0.01%"]).exits(0);
    let corpus = below(&photos.path().join("copysim-workspace/corpora")).remove(0);
    let links = photos.path().join("links");
    assert!(Command::new("cp").arg("-rl").args([&corpus, &links]).status().unwrap().success());
    let out = person.runs(["corpus", "verify", links.to_str().unwrap()]).exits(0).out;
    assert!(out.ends_with("64 of 64 files of zero-fill-v1-s0-p0.01 are good\n"), "{out}");
}

#[test]
fn field_g10_holes_count_by_length_where_a_copy_has_to_hold_them() {
    let person = Person::new();
    let real = person.home.path().join("real");
    fs::create_dir(&real).unwrap();
    fs::File::create(real.join("sparse")).unwrap().set_len(40_000_000_000_000).unwrap();
    let scanned = person.runs(["corpus", "scan", "real", "-o", "real.toml"]).exits(0);
    assert_eq!(scanned.err, "counted by their length: 1 file with holes, or compressed\n");
    let refused = person.runs(["corpus", "generate", "./real.toml", person.target()]).exits(2);
    assert!(refused.err.contains("but 40.0 TB are needed"), "{}", refused.err);
    assert!(below(person.drive.path()).is_empty());
    // A copy in which zeros became holes holds the same bytes.
    person.runs(["corpus", "generate", "zero-fill", person.target(), "--scale", "0.1%"]).exits(0);
    for file in files(&person.corpus().join("files")) {
        let time = FileTime::from_last_modification_time(&fs::metadata(&file).unwrap());
        let len = fs::metadata(&file).unwrap().len();
        fs::File::create(&file).unwrap().set_len(len).unwrap();
        set_file_mtime(&file, time).unwrap();
    }
    assert!(verified(&person).exits(0).out.ends_with("64 of 64 files of zero-fill-v1-s0-p0.1 are good\n"));
}

/// The only record, and what was shown of it.
fn record(person: &Person) -> Document {
    let mut results = person.results();
    assert_eq!(results.len(), 1, "{results:?}");
    store::load(&results.remove(0)).unwrap()
}

fn flags(document: &Document) -> Vec<&str> {
    document.runs[0].phases[0].flags.iter().map(|flag| flag.code.as_str()).collect()
}

/// Copies by `cp`, and then does something more with `$s` and `$t`, the directories of the photos.
fn copies_and(more: &str) -> String {
    format!("command:s={{source}}/DCIM/100MEDIA t={{target}}/DCIM/100MEDIA; cp -rp {{source}}/. {{target}}/ && {more}")
}

#[test]
fn field_g12_a_source_that_changes_is_told_as_that_and_no_drive_is_blamed() {
    let changes = [
        ("date >> $s/IMG_0002.JPG && cp -p $s/IMG_0002.JPG $t/", &[][..]),
        ("truncate -s 100 $s/IMG_0002.JPG && cp -p $s/IMG_0002.JPG $t/", &[]),
        ("rm $s/IMG_0002.JPG $t/IMG_0002.JPG", &[]),
        ("date >> $s/IMG_0002.JPG", &["--no-verify"]),
    ];
    for (change, more) in changes {
        let person = Person::new();
        let ran = person.measures("jpg-same-drive", &[&["--runs", "1", "--engine", &copies_and(change)], more].concat()).exits(1);
        let sentence =
            "IMG_0002.JPG (source): it was changed while it was copied: nothing else may write there meanwhile. This says nothing about a drive";
        assert!(ran.err.contains(sentence), "{change}: {}", ran.err);
        assert!(ran.out.starts_with("FAILED: ") && !ran.out.contains("DIFFER"), "{change}: {}", ran.out);
        let record = record(&person);
        assert!(flags(&record).contains(&"source-changed") && !flags(&record).contains(&"data-differ"), "{change}: {:?}", flags(&record));
        assert!(record.summary.is_empty());
        if more.is_empty() {
            let integrity = record.runs[0].phases[0].integrity.clone().unwrap();
            assert_eq!((integrity.files_checked, integrity.files_good, integrity.mismatches.len()), (5, 5, 0), "{change}");
        }
        // What was staged is no corpus any more: the next start makes it again.
        assert!(generated_again(&person).err.contains("it is made again"), "{change}");
    }
    // Beside it another file is really damaged: that is what counts.
    let person = Person::new();
    let both = copies_and("date >> $s/IMG_0002.JPG && cp -p $s/IMG_0002.JPG $t/ && truncate -s 100 $t/IMG_0003.JPG");
    let ran = person.measures("jpg-same-drive", &["--runs", "1", "--engine", &both]).exits(4);
    assert!(ran.err.contains("1 of 5 files of the copy in ") && ran.err.contains("IMG_0003.JPG: truncated"), "{}", ran.err);
    let record = record(&person);
    assert!(["source-changed", "data-differ"].iter().all(|code| flags(&record).contains(code)), "{:?}", flags(&record));
}

#[test]
fn field_g13_attributes_that_move_by_themselves_raise_no_alarm() {
    // Times that are other ones when they are asked for again, while no byte changed.
    for (more, change) in [
        (&[][..], "touch -d '2001-01-01 00:00:01' $s/*"),
        (&["--no-verify"], "touch -d '2001-01-01 00:00:01' $s/*"),
        (&["--no-verify"], "touch -d '1960-01-01' $s/IMG_0002.JPG"),
    ] {
        let person = Person::new();
        person.measures("jpg-same-drive", &[&["--runs", "1", "--engine", &copies_and(change)], more].concat()).exits(0);
        assert!(!flags(&record(&person)).contains(&"source-changed"), "{change}");
    }
    // A copy that is wrong is not excused by a source whose time moved.
    let person = Person::new();
    let wrong = copies_and("touch -d '2001-01-01' $s/IMG_0002.JPG && truncate -s 100 $t/IMG_0002.JPG");
    person.measures("jpg-same-drive", &["--runs", "1", "--engine", &wrong]).exits(4);
    assert!(!flags(&record(&person)).contains(&"source-changed"));
}

#[test]
fn field_g14_a_directory_of_very_many_names_is_scanned_in_little_memory() {
    let person = Person::new();
    let real = person.home.path().join("real");
    fs::create_dir(&real).unwrap();
    let dir = OS.files.open_root(&real).unwrap();
    for number in 0..100_000 {
        OS.files.create(&dir, Path::new(&format!("{number:0100}")), 0o600).unwrap();
    }
    fs::write(real.join("one that holds something"), "x").unwrap();
    let scanned = person.runs(["corpus", "scan", "real"]).exits(0);
    assert!(scanned.out.contains("the shape of a folder of 100,001 files"), "{}", scanned.out);
    // The names alone are 10 MB, and as a list, with what belongs to each, several times as much.
    let little = person.home.path().join("little");
    fs::create_dir(&little).and_then(|()| fs::write(little.join("one"), "x")).unwrap();
    let fits = |megabytes: u64, folder: &str| {
        let line = format!("ulimit -v {} && exec {} corpus scan {folder}", megabytes * 1000, env!("CARGO_BIN_EXE_copysim"));
        person.program("sh").args(["-c", &line]).output().unwrap().status.success()
    };
    let Some(least) = (10..2000).step_by(5).find(|&megabytes| fits(megabytes, "little")) else { return skipped("memory can't be limited here") };
    eprintln!("{least} MB are enough for one file");
    assert!(fits(least + 15, "real"));
}

#[test]
fn field_g15_few_descriptors_are_enough_and_too_few_are_told_as_that() {
    let person = Person::new();
    person.runs(["corpus", "generate", "small-files", person.target(), "--scale", "2%"]).exits(0);
    // Of a deep tree more directories are open at once than files, of a wide one fewer: in each the limit is met elsewhere first.
    person.runs(["corpus", "generate", "jpg", person.target(), "--scale", "0.5%"]).exits(0);
    let limited = |limit: u32, args: &[&str]| {
        let program = env!("CARGO_BIN_EXE_copysim");
        let line = format!("ulimit -n {limit} && exec {program} \"$@\"");
        let args = args.to_vec();
        patiently(|| {
            let mut command = person.program("sh");
            command.args(["-c", &line, "sh"]).args(&args);
            command
        })
    };
    let measure = |limit: u32, threads: &str| {
        let target = person.target();
        limited(limit, &["scenario", "small-files-same-drive", target, "--scale", "2%", "--runs", "1", "--settle", "0s", "--threads", threads])
    };
    let copied = measure(64, "8").exits(0);
    assert!(copied.out.contains("all 1,000"), "{}", copied.out);
    limited(32, &["corpus", "verify", person.target()]).exits(0);
    // What this machine is short of says nothing about a drive.
    for limit in 6..24 {
        for ran in [limited(limit, &["corpus", "verify", person.target()]), measure(limit, "16")] {
            assert!(matches!(ran.code, 0 | 1) || ran.code == 2 && !ran.err.contains("panicked"), "{limit}: {} {}", ran.code, ran.err);
            assert!(!ran.out.contains("DIFFER") && !ran.out.contains(" differ"), "{limit}: {}", ran.out);
            let is_told = ran.err.contains("EMFILE") || ran.err.contains("os error 24") || ran.err.contains("too many open files");
            assert!(ran.code == 0 || is_told, "{limit}: {}", ran.err);
        }
    }
}

#[test]
fn field_g16_files_that_may_only_be_read_are_copied_compared_and_removed() {
    let person = Person::with_a_drive();
    let corpus = photos(&person);
    for file in files(&corpus.join("files")) {
        fs::set_permissions(file, fs::Permissions::from_mode(0o444)).unwrap();
    }
    for directory in ["files/DCIM/100MEDIA", "files/DCIM", "files"] {
        fs::set_permissions(corpus.join(directory), fs::Permissions::from_mode(0o555)).unwrap();
    }
    if is_root() {
        for entry in walkdir::WalkDir::new(person.drive.path()).into_iter().chain(walkdir::WalkDir::new(person.home.path())) {
            std::os::unix::fs::chown(entry.unwrap().path(), Some(65534), Some(65534)).unwrap();
        }
    }
    if !crate::rights::as_ordinary(&person, &["--version"]).output().is_ok_and(|output| output.status.success()) {
        return skipped("the program can't be started without rights here");
    }
    let args = ["scenario", "jpg-same-drive", person.target(), "--scale", "0.07%", "--settle", "0s", "--runs", "1", "--keep"];
    let copied = patiently(|| crate::rights::as_ordinary(&person, &args)).exits(0);
    assert!(copied.out.contains("all 6"), "{}", copied.out);
    let kept = below(&person.drive.path().join("copysim-workspace/runs"));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&kept[0].join("DCIM/100MEDIA/IMG_0002.JPG")), 0o444);
    ran(&mut crate::rights::as_ordinary(&person, &["clean", person.target()])).exits(0);
    assert!(below(person.drive.path()).is_empty());
}

#[test]
fn field_h01_nothing_at_all_and_a_single_byte_give_seconds_and_no_rate() {
    for (lengths, bytes) in [(&[0, 0][..], "0 B"), (&[1], "1 B"), (&[0, 1], "1 B")] {
        let person = Person::new();
        for (index, len) in lengths.iter().enumerate() {
            person.file(&format!("real/{index}"), &"x".repeat(*len));
        }
        person.runs(["corpus", "scan", "real", "--name", "tiny", "-o", "tiny.toml"]).exits(0);
        let scenario = "name = \"mine\"\nversion = 1\nsummary = \"\"\nruns = 2\n[[phase]]\ncopy = { corpus = \"./tiny.toml\", from = \"target\" }\n";
        person.file("mine.toml", scenario);
        let shown = patiently(|| person.copysim(["scenario", "./mine.toml", person.target(), "--settle", "0s"])).exits(0);
        let rates = ["NaN", "inf", " 0 B/s"].iter().filter(|word| shown.out.contains(*word)).count();
        assert_eq!(rates, 0, "{lengths:?}: {}", shown.out);
        assert!(shown.out.contains(bytes), "{}", shown.out);
        let record = record(&person);
        assert!(record.summary.iter().all(|summary| !summary.metric.ends_with("per_s")), "{:?}", record.summary);
        let text = fs::read_to_string(&person.results()[0]).unwrap();
        assert!(!text.contains("NaN") && !text.contains("Infinity"));
        person.runs(["report", person.results()[0].to_str().unwrap()]).exits(0);
        person.runs(["corpus", "verify", person.target()]).exits(0);
    }
}
