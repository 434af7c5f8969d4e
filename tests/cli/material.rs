//! Corpora by hand: made, digested, verified wherever and however they were copied, and taken from a real folder.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::person::{Person, Ran, below};

/// What `corpus generate` prints: the root digest and where the files are.
fn generate(person: &Person, name: &str, more: &[&str]) -> (String, PathBuf) {
    let out = person.runs([&["corpus", "generate", name, person.target()], more].concat()).exits(0).out;
    let (digest, rest) = out.split_once("  ").unwrap();
    (digest.to_owned(), PathBuf::from(rest.lines().nth(1).unwrap()))
}

fn verify(person: &Person, directory: &Path, more: &[&str]) -> Ran {
    person.runs([&["corpus", "verify", directory.to_str().unwrap()], more].concat())
}

/// Another directory with the same content, as `cp -r` makes it: times are not carried over.
fn copy(person: &Person, from: &Path, to: &str) -> PathBuf {
    let to = person.home.path().join(to);
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    assert!(person.program("cp").arg("-r").args([from, &to]).status().unwrap().success());
    to
}

#[test]
fn the_digest_is_the_same_made_or_written() {
    let person = Person::new();
    let size = ["--scale", "0.07%", "--seed", "7"];
    let (written, files) = generate(&person, "jpg", &size);
    let made = person.runs([&["corpus", "digest", "jpg"], &size[..]].concat()).exits(0);
    assert_eq!(made.out, format!("{written}  jpg-v1-s7-p0.07\n"));
    let list = person.runs([&["corpus", "digest", "jpg", "--list"], &size[..]].concat()).exits(0).out;
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines.len(), 6 + 1);
    for line in &lines[..6] {
        let fields: Vec<&str> = line.splitn(4, ' ').collect();
        let file = files.join(fields[3]);
        assert_eq!(blake3::hash(&fs::read(&file).unwrap()).to_hex().as_str(), fields[0]);
        assert_eq!(fs::metadata(&file).unwrap().len().to_string(), fields[1]);
    }
    // The list is that of the manifest.
    let manifest = fs::read_to_string(files.parent().unwrap().join("MANIFEST")).unwrap();
    assert_eq!(manifest.lines().skip(2).take(6).collect::<Vec<_>>(), &lines[..6]);
}

#[test]
fn a_corpus_and_every_copy_of_it_can_be_verified() {
    let person = Person::new();
    let (_, files) = generate(&person, "jpg", &["--scale", "0.07%"]);
    let corpus = files.parent().unwrap();
    let good = "6 of 6 files of jpg-v1-s0-p0.07 are good\n";
    let is_good = |directory: &Path, more: &[&str]| {
        let ran = verify(&person, directory, more).exits(0);
        assert!(ran.out.ends_with(good), "{}: {}", directory.display(), ran.out);
        ran.out
    };
    // As it lies there: the corpus, its files, its workspace, the directory that was measured.
    for directory in [corpus, &files, &person.drive.path().join("copysim-workspace"), person.drive.path()] {
        assert!(is_good(directory, &[]).lines().count() == 1);
    }
    // Copied: with the manifest; by the name of the folder; by what it is said to be.
    let whole = copy(&person, corpus, "jpg-v1-s0-p0.07");
    assert!(is_good(&whole, &[]).starts_with("another modification time, but the right bytes: 6 files\n"));
    is_good(&whole.join("files"), &[]);
    let renamed = copy(&person, corpus, "stick/my copy");
    is_good(&renamed, &[]);
    is_good(&renamed.join("files"), &[]);
    fs::remove_file(whole.join("MANIFEST")).unwrap();
    is_good(&whole, &[]);
    is_good(&whole.join("files"), &[]);
    let bare = copy(&person, &files, "bare");
    is_good(&bare, &["--corpus", "jpg", "--scale", "0.07%"]);
    // Without a name the shape tells, if the scale is said.
    is_good(&bare, &["--scale", "0.07%"]);
    verify(&person, &bare, &[])
        .refuses("holds no manifest, and its names tell no corpus: say which it should be with --corpus NAME (and --seed, --scale)");
    // What it is not is not taken for it.
    let other = verify(&person, &bare, &["--corpus", "jpg", "--scale", "0.07%", "--seed", "1"]).exits(4);
    assert!(other.out.contains("0 of 6 files of jpg-v1-s1-p0.07 are good, 6 differ"), "{}", other.out);
}

#[test]
fn every_damage_is_named_with_its_place() {
    let person = Person::new();
    let (_, files) = generate(&person, "jpg", &["--scale", "0.07%"]);
    let corpus = files.parent().unwrap();
    let photo = |copy: &Path, number: u32| copy.join(format!("files/DCIM/100MEDIA/IMG_000{number}.JPG"));
    let open = |path: PathBuf| fs::File::options().read(true).write(true).open(path).unwrap();
    let len = fs::metadata(photo(corpus, 2)).unwrap().len();
    let mut number = 0;
    let mut check = |damage: &dyn Fn(&Path), sentence: &str, bad: u32| {
        number += 1;
        let copy = copy(&person, corpus, &format!("copy {number}"));
        damage(&copy);
        let ran = verify(&person, &copy, &[]).exits(if bad == 0 { 0 } else { 4 });
        assert!(ran.out.contains(&format!("IMG_0002.JPG: {sentence}\n")) || ran.out.starts_with(&format!("{sentence}\n")), "{sentence}: {}", ran.out);
        let differ = if bad == 0 { String::new() } else { format!(", {bad} differ") };
        assert!(ran.out.ends_with(&format!("{} of 6 files of jpg-v1-s0-p0.07 are good{differ}\n", 6 - bad)), "{}", ran.out);
        assert!(ran.err.starts_with("comparing ") && ran.err.lines().count() == 1, "{}", ran.err);
    };
    check(&|copy| fs::remove_file(photo(copy, 2)).unwrap(), "missing", 1);
    check(&|copy| open(photo(copy, 2)).set_len(1000).unwrap(), &format!("truncated: ends at byte 1000 of {len}"), 1);
    check(&|copy| open(photo(copy, 2)).write_all_at(b"more", len).unwrap(), &format!("too long: {} bytes instead of {len}", len + 4), 1);
    check(&|copy| open(photo(copy, 2)).write_all_at(&[0; 8192], 4096).unwrap(), "zeroed: 8192 bytes from byte 4096 on are zero", 1);
    check(
        &|copy| open(photo(copy, 2)).write_all_at(&[0x5A; 1000], 30_001).unwrap(),
        "garbage: 1000 bytes from byte 30001 on belong to no place of the corpus",
        1,
    );
    let flip = |copy: &Path| {
        let file = open(photo(copy, 2));
        let mut byte = [0];
        file.read_exact_at(&mut byte, 12_345).unwrap();
        file.write_all_at(&[byte[0] ^ 4], 12_345).unwrap();
    };
    check(&flip, "one bit flipped at byte 12345", 1);
    let swap = |copy: &Path| {
        let [two, three, spare] = [photo(copy, 2), photo(copy, 3), copy.join("spare")];
        fs::rename(&two, &spare).and_then(|()| fs::rename(&three, &two)).and_then(|()| fs::rename(&spare, &three)).unwrap();
    };
    check(&swap, "swapped: holds the bytes of DCIM/100MEDIA/IMG_0003.JPG", 2);
    check(&|copy| fs::write(copy.join("files/DCIM/virus\u{1b}[2J.exe"), "").unwrap(), "DCIM/virus\\u{1b}[2J.exe: not part of the corpus", 0);
}

#[test]
fn a_corpus_of_parts_is_made_used_again_and_known_by_its_shape() {
    let person = Person::new();
    let (digest, files) = generate(&person, "browser", &["--scale", "1%"]);
    let again = person.runs(["corpus", "generate", "browser", person.target(), "--scale", "1%"]).exits(0);
    assert!(again.err.contains("it is used again") && again.out.starts_with(&digest), "{}{}", again.err, again.out);
    let good = "226 of 226 files of browser-v1-s0-p1 are good\n";
    let whole = verify(&person, person.drive.path(), &[]).exits(0);
    assert!(whole.out.ends_with(good), "{}", whole.out);
    let bare = copy(&person, &files, "bare");
    let found = verify(&person, &bare, &["--scale", "1%"]).exits(0);
    assert!(found.out.ends_with(good), "{}", found.out);
    let library = bare.join("lib/engine/libengine.so");
    fs::File::options().write(true).open(&library).unwrap().set_len(40_000).unwrap();
    let damaged = verify(&person, &bare, &["--scale", "1%"]).exits(4);
    assert!(damaged.out.contains("lib/engine/libengine.so: truncated: ends at byte 40000 of 1500000\n"), "{}", damaged.out);
}

#[test]
fn what_is_no_corpus_is_refused() {
    let person = Person::new();
    verify(&person, person.drive.path(), &[]).refuses("holds no manifest, and its names tell no corpus");
    let gone = verify(&person, &person.drive.path().join("gone"), &[]).exits(1);
    assert!(gone.err.contains("no such file or directory (ENOENT)"), "{}", gone.err);
    person.runs(["corpus", "generate", "small-files", person.target(), "--scale", "0.01%"]).exits(0);
    fs::remove_file(person.corpus().join("MANIFEST")).unwrap();
    verify(&person, person.drive.path(), &[]).refuses("there is no finished corpus in ");
    fs::write(person.corpus().join("MANIFEST"), "copysim-manifest/1\n").unwrap();
    let broken = verify(&person, person.drive.path(), &[]);
    assert_ne!(broken.code, 0, "{}", broken.out);
}

#[test]
fn a_scanned_folder_becomes_a_corpus() {
    let person = Person::new();
    for (name, len) in [("secret plans/a.doc", 10_000), ("secret plans/b/c.doc", 2_000), ("top.txt", 300), ("empty", 0)] {
        person.file(&format!("real/{name}"), &"x".repeat(len));
    }
    std::os::unix::fs::symlink("gone", person.home.path().join("real/link")).unwrap();
    let scanned = person.runs(["corpus", "scan", "real", "--name", "mine", "-o", "corpora/mine.toml"]).exits(0);
    assert_eq!(scanned.err, "left out: 1 symbolic link\n");
    let text = fs::read_to_string(person.home.path().join("corpora/mine.toml")).unwrap();
    assert!(!text.contains("secret") && text.contains("the shape of a folder of 4 files"), "{text}");
    let printed = person.runs(["corpus", "scan", "real", "--name", "mine"]).exits(0);
    assert_eq!(printed.out, text);
    let (_, files) = generate(&person, "corpora/mine.toml", &[]);
    let found = walkdir::WalkDir::new(&files).into_iter().map(Result::unwrap).filter(|entry| entry.file_type().is_file());
    let (count, bytes) = found.fold((0, 0), |(count, bytes), entry| (count + 1, bytes + entry.metadata().unwrap().len()));
    assert_eq!((count, bytes), (4, 12_300));
    verify(&person, &files, &[]).exits(0);
    fs::create_dir(person.home.path().join("nothing")).unwrap();
    person.runs(["corpus", "scan", "nothing"]).refuses("nothing holds no files to take the shape of");
    let gone = person.runs(["corpus", "scan", "gone"]).exits(1);
    assert!(gone.err.contains("cannot open gone (source): no such file or directory (ENOENT)"), "{}", gone.err);
}

#[test]
fn a_corpus_that_does_not_fit_leaves_nothing() {
    let person = Person::new();
    let refused = person.runs(["corpus", "generate", "jpg", person.target(), "--scale", "10000%"]).exits(2);
    assert!(refused.err.contains("% fits"), "{}", refused.err);
    assert!(below(person.drive.path()).is_empty());
}
