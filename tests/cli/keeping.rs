//! What stays on a drive, what goes, and that nothing else is touched.

use std::fs;

use copysim::result::store;

use crate::person::{Person, below};

#[test]
fn a_kept_copy_stays_until_it_is_cleaned() {
    let person = Person::new();
    let first = person.measures("jpg-same-drive", &["--runs", "2", "--keep"]).exits(0);
    let copies = below(&person.drive.path().join("copysim-workspace/runs"));
    assert_eq!(copies.len(), 1, "one copy of two runs: {copies:?}");
    let kept = |path: &std::path::Path| store::load(path).unwrap().aftermath.unwrap().kept;
    let named = kept(&person.results()[0]);
    assert!(named.iter().any(|kept| kept.path == copies[0].display().to_string() && kept.bytes == Some(5_887_210)), "{named:?}");
    assert!(first.out.contains("(copy, 5.89 MB)"), "{}", first.out);
    // The copy is whole, for whoever wants to look at it.
    let verified = person.runs(["corpus", "verify", copies[0].to_str().unwrap(), "--corpus", "jpg", "--scale", "0.07%"]).exits(0);
    assert!(verified.out.contains("6 of 6 files of jpg-v1-s0-p0.07 are good"), "{}", verified.out);

    let second = person.measures("jpg-same-drive", &["--runs", "1"]).exits(0);
    assert!(second.out.contains("(copy kept earlier)") && !second.err.contains("killed"), "{}{}", second.out, second.err);
    assert_eq!(below(&person.drive.path().join("copysim-workspace/runs")), copies);
    let third = person.measures("jpg-cross-drive", &["--runs", "1"]).exits(0);
    assert!(third.out.contains("Remove it with: "), "{}", third.out);

    person.runs(["clean", person.target()]).exits(0);
    assert!(below(person.drive.path()).is_empty());
}

#[test]
fn a_drive_on_which_nothing_is_kept_is_as_it_was() {
    let person = Person::new();
    fs::write(person.drive.path().join("letter.txt"), "dear").unwrap();
    let ran = person.measures("jpg-cross-drive", &["--runs", "1"]).exits(0);
    assert!(ran.out.contains("Nothing was left on the drive."), "{}", ran.out);
    assert_eq!(below(person.drive.path()), [person.drive.path().join("letter.txt")]);
}

#[test]
fn cleaning_removes_what_is_copysims_and_says_what_is_not() {
    let person = Person::new();
    let clean = || person.runs(["clean", person.target()]).exits(0);
    assert_eq!(person.redact(&clean().out), "there is nothing of copysim's in [DRIVE]\n");
    person.runs(["corpus", "generate", "small-files", person.target(), "--scale", "0.01%"]).exits(0);
    let workspace = person.drive.path().join("copysim-workspace");
    let strangers = [workspace.join("corpora/mine.txt"), workspace.join("notes.txt")];
    for stranger in &strangers {
        fs::write(stranger, "mine").unwrap();
    }
    // How much space they take is the file system's affair.
    let first = person.redact(&clean().out);
    let foreign =
        "left [DRIVE]/copysim-workspace/corpora/mine.txt: it is not copysim's\nleft [DRIVE]/copysim-workspace/notes.txt: it is not copysim's\n";
    assert!(first.starts_with("removed 7 files, ") && first.ends_with(&format!("kB, from [DRIVE]/copysim-workspace\n{foreign}")), "{first}");
    assert_eq!(person.redact(&clean().out), format!("removed 0 files, 0 B, from [DRIVE]/copysim-workspace\n{foreign}"));
    for stranger in &strangers {
        assert_eq!(fs::read_to_string(stranger).unwrap(), "mine");
        fs::remove_file(stranger).unwrap();
    }
    clean();
    assert!(below(person.drive.path()).is_empty());
    assert_eq!(person.redact(&clean().out), "there is nothing of copysim's in [DRIVE]\n");
}

#[test]
fn a_corpus_is_used_again_and_made_again_when_it_was_damaged() {
    let person = Person::new();
    let generate = || person.runs(["corpus", "generate", "jpg", person.target(), "--scale", "0.07%"]).exits(0);
    let first = generate();
    let corpus = person.corpus();
    let photo = corpus.join("files/DCIM/100MEDIA/IMG_0002.JPG");
    let again = generate();
    assert_eq!(first.out, again.out);
    assert!(again.err.contains("is there and complete: it is used again") && !again.err.contains("making"), "{}", again.err);

    type Damage<'a> = (&'a str, &'a dyn Fn());
    let damages: [Damage<'_>; 4] = [
        ("IMG_0002.JPG has another length", &|| fs::File::options().write(true).open(&photo).unwrap().set_len(1000).unwrap()),
        ("IMG_0002.JPG is missing", &|| fs::remove_file(&photo).unwrap()),
        ("is there but was never finished: it is made again", &|| fs::remove_file(corpus.join("MANIFEST")).unwrap()),
        ("is there but can't be used", &|| fs::write(corpus.join("MANIFEST"), "nonsense").unwrap()),
    ];
    for (sentence, damage) in damages {
        damage();
        let made = generate();
        assert!(made.err.contains(sentence) && made.err.contains("making jpg-v1-s0-p0.07"), "{sentence}: {}", made.err);
        assert_eq!(made.out, first.out);
        person.runs(["corpus", "verify", person.target()]).exits(0);
    }
    // A scenario that finds a damaged corpus makes it again as well.
    fs::remove_file(&photo).unwrap();
    let measured = person.measures("jpg-same-drive", &["--runs", "1"]).exits(0);
    assert!(measured.err.contains("it is made again") && measured.out.contains("all 6"), "{}", measured.err);
}
