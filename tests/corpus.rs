//! Promise 1 (same work everywhere) and the verification of promise 4: corpora are exact, deterministic, and every damage is found and located.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests look at files from outside copysim, and end when something is wrong"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use copysim::Side;
use copysim::catalogue::Environment;
use copysim::corpus::catalogue::{CORPORA, corpus};
use copysim::corpus::generate::generate;
use copysim::corpus::locate::{Difference, Kind};
use copysim::corpus::manifest::Manifest;
use copysim::corpus::verify::{Subject, Verification, verify};
use copysim::corpus::{Corpus, FileMeta, identity, scan};
use copysim::platform::OS;
use copysim::progress::{Cancel, Counter};
use copysim::units::Scale;

struct Made {
    dir: tempfile::TempDir,
    corpus: Corpus,
    root: blake3::Hash,
}

impl Made {
    fn new(name: &str, seed: u64, scale: &str) -> Self {
        let corpus = corpus(name, seed, scale.parse().unwrap(), &Environment::default()).unwrap();
        Self::of(corpus)
    }

    fn of(corpus: Corpus) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let handle = OS.files.open_root(dir.path()).unwrap();
        let root = generate(OS, &corpus, &handle, dir.path(), 2, &Counter::default(), &Cancel::default(), &mut |_| Ok(())).unwrap();
        Self { dir, corpus, root }
    }

    fn tree(&self) -> PathBuf {
        self.dir.path().join("files")
    }

    fn manifest(&self) -> Manifest {
        let handle = OS.files.open_root(self.dir.path()).unwrap();
        Manifest::open(OS.files, &handle, self.dir.path()).unwrap().expect("a manifest")
    }

    fn verify(&self, tree: &Path) -> Verification {
        let handle = OS.files.open_root(tree).unwrap();
        let subject = Subject { files: OS.files, tree: &handle, path: tree, side: Side::Target };
        verify(subject, &self.manifest(), 2, &Counter::default(), &Cancel::default()).unwrap()
    }

    /// What a person's hand would make: another tree with the same content.
    fn copy(&self) -> tempfile::TempDir {
        let copy = tempfile::tempdir().unwrap();
        let done = std::process::Command::new("cp").arg("-r").arg(self.tree().join(".")).arg(copy.path()).status().unwrap();
        assert!(done.success());
        copy
    }
}

fn files_below(dir: &Path) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
            } else {
                let name = entry.path().strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
                found.insert(name, entry.metadata().unwrap().len());
            }
        }
    }
    found
}

#[test]
fn built_in_corpora_have_the_counts_and_bytes_that_the_readme_promises() {
    let expected = [
        ("jpg", 7_861, 8_410_300_000_u64),
        ("mp3", 1_691, 9_176_500_000),
        ("large-file", 1, 4_000_000_000),
        ("zero-fill", 64, 4_000_000_000),
        ("incompressible", 64, 4_000_000_000),
        ("mixed-25", 64, 4_000_000_000),
        ("mixed", 64, 4_000_000_000),
        ("mixed-75", 64, 4_000_000_000),
        ("compressible-8", 64, 4_000_000_000),
        ("compressible-46", 64, 4_000_000_000),
        ("compressible-67", 64, 4_000_000_000),
        ("small-files", 50_000, 600_000_000),
        ("office-suite", 3_584, 600_000_000),
        ("browser", 3_017, 350_000_000),
        ("photo-editor", 3_622, 900_000_000),
        ("game", 1_219, 1_600_000_000),
        ("ide", 4_822, 900_000_000),
        ("mailbox", 20_000, 320_000_000),
        ("pictures", 339, 2_370_000_000),
    ];
    assert_eq!(CORPORA.built_in.len(), expected.len());
    for (name, files, bytes) in expected {
        let corpus = corpus(name, 0, Scale::FULL, &Environment::default()).unwrap();
        let (mut count, mut sum) = (0, 0);
        for file in corpus.files().unwrap() {
            count += 1;
            sum += file.len;
            assert!(file.len < 1 << 32, "{} does not fit on FAT32", file.path);
            assert!(file.mtime % 2 == 0 && (315_532_800..4_354_819_200).contains(&file.mtime), "FAT can't store {}", file.mtime);
        }
        assert_eq!((count, sum), (files, bytes), "{name}");
    }
}

#[test]
fn siblings_share_names_sizes_and_times() {
    let shape = |name| corpus(name, 0, Scale::FULL, &Environment::default()).unwrap().files().unwrap().collect::<Vec<_>>();
    let first = shape("zero-fill");
    for name in ["incompressible", "mixed-25", "mixed", "mixed-75", "compressible-8", "compressible-46", "compressible-67"] {
        assert_eq!(first, shape(name), "{name}");
    }
}

#[test]
fn small_files_are_mostly_between_half_and_sixteen_kilobytes_in_a_deep_tree() {
    let corpus = corpus("small-files", 0, Scale::FULL, &Environment::default()).unwrap();
    let files: Vec<_> = corpus.files().unwrap().collect();
    let within = files.iter().filter(|file| (500..=16_000).contains(&file.len)).count();
    assert!(within * 10 > files.len() * 7, "{within} of {}", files.len());
    let depth = files.iter().map(|file| file.path.matches('/').count()).max();
    assert!(depth >= Some(6), "{depth:?}");
}

const PROGRAM_TREES: [&str; 5] = ["office-suite", "browser", "photo-editor", "game", "ide"];

#[test]
fn every_part_of_a_program_tree_has_its_files_and_bytes_at_any_scale_in_the_order_of_all_paths() {
    for (name, scale) in PROGRAM_TREES.into_iter().flat_map(|name| ["0.01%", "0.3%", "7%", "100%", "251%"].map(|scale| (name, scale))) {
        let corpus = corpus(name, 2, scale.parse().unwrap(), &Environment::default()).unwrap();
        let files: Vec<FileMeta> = corpus.files().unwrap().collect();
        assert!(files.windows(2).all(|pair| pair[0].path.as_bytes() < pair[1].path.as_bytes()), "{name} at {scale}");
        assert!((0..).zip(&files).all(|(ordinal, file)| file.ordinal == ordinal), "{name} at {scale}");
        let folded: BTreeSet<String> = files.iter().map(|file| file.path.to_ascii_lowercase()).collect();
        assert_eq!(folded.len(), files.len(), "{name} at {scale}: names collide where case is ignored");
        let mut counted = 0;
        for part in &corpus.spec.parts {
            let own: Vec<&FileMeta> = files.iter().filter(|file| file.path.starts_with(&part.place())).collect();
            let expected = part.scaled(corpus.scale());
            assert_eq!((own.len() as u64, own.iter().map(|file| file.len).sum()), expected, "{name} at {scale}: {}", part.directory);
            counted += own.len();
        }
        assert_eq!(counted, files.len());
        assert_eq!((files.len() as u64, files.iter().map(|file| file.len).sum()), (corpus.file_count(), corpus.byte_count()));
        assert!(scale != "100%" || files.iter().all(|file| file.len < 1_000_000_000), "{name}");
    }
}

#[test]
fn program_trees_have_the_directories_that_starts_look_into() {
    for name in PROGRAM_TREES {
        let corpus = corpus(name, 0, Scale::FULL, &Environment::default()).unwrap();
        let files: Vec<FileMeta> = corpus.files().unwrap().collect();
        for (directory, start) in
            [("bin", "ELF"), ("lib", "ELF"), ("plugins", "ELF"), ("resources", ""), ("fonts", ""), ("config", ""), ("cache", ""), ("share", "")]
        {
            let below = files.iter().find(|file| file.path.starts_with(&format!("{directory}/"))).unwrap();
            let mut bytes = [0; 4];
            corpus.contents().unwrap().fill(&below.bytes(&corpus.key()), 0, &mut bytes);
            assert_eq!(bytes[1..] == *b"ELF", start == "ELF", "{name}: {}", below.path);
        }
    }
}

/// Each file has the content of its own part: whatever looks at bytes goes by it.
#[test]
fn damage_across_the_parts_of_a_corpus_is_located() {
    let made = Made::new("game", 0, "0.3%");
    let files: Vec<_> = made.corpus.files().unwrap().collect();
    let large = |directory: &str| files.iter().find(|file| file.path.starts_with(directory) && file.len > 40_000).unwrap();
    let (program, archive) = (large("bin/"), large("resources/"));
    let copy = made.copy();
    let open = |file: &FileMeta| fs::OpenOptions::new().read(true).write(true).open(copy.path().join(&file.path)).unwrap();
    let mut moved = [0; 4096];
    open(program).read_exact_at(&mut moved, 12_288).unwrap();
    open(archive).write_all_at(&moved, 8192).unwrap();
    let found = made.verify(copy.path());
    let what: Vec<_> = found.differences.iter().map(|found| (&found.path, &found.kind, found.offset)).collect();
    assert_eq!(what, [(&archive.path, &Kind::Elsewhere { file: program.path.clone(), offset: 12_288 }, Some(8192))]);
}

#[test]
fn a_corpus_on_a_drive_is_what_its_manifest_says() {
    for (name, scale) in
        [("jpg", "0.2%"), ("mp3", "0.5%"), ("small-files", "1%"), ("mixed", "0.5%"), ("large-file", "0.1%"), ("browser", "1%"), ("game", "0.2%")]
    {
        let made = Made::new(name, 3, scale);
        let found = files_below(&made.tree());
        let listed: BTreeMap<_, _> = made.corpus.files().unwrap().map(|file| (file.path, file.len)).collect();
        assert_eq!(found, listed, "{name}");
        assert_eq!(found.len() as u64, made.corpus.file_count());
        assert_eq!(found.values().sum::<u64>(), made.corpus.byte_count());
        let manifest = made.manifest();
        assert_eq!(manifest.root, made.root);
        for listed in manifest.entries(OS.files) {
            let listed = listed.unwrap();
            let path = made.tree().join(&listed.meta.path);
            assert_eq!(blake3::hash(&fs::read(&path).unwrap()), listed.digest, "{}", path.display());
            assert_eq!(filetime::FileTime::from_last_modification_time(&fs::metadata(&path).unwrap()).unix_seconds(), listed.meta.mtime);
        }
        assert!(made.verify(&made.tree()).is_good());
    }
}

#[test]
fn the_same_spec_seed_and_scale_give_the_same_bytes_and_any_other_do_not() {
    let root = |name, seed, scale| Made::new(name, seed, scale).root;
    let first = root("jpg", 1, "0.05%");
    assert_eq!(first, root("jpg", 1, "0.05%"));
    assert_ne!(first, root("jpg", 2, "0.05%"));
    assert_ne!(root("incompressible", 0, "0.01%"), root("compressible-8", 0, "0.01%"));
}

/// Each damage is done to a copy and must be found as what it is, where it is.
#[test]
fn every_kind_of_damage_is_found_and_located() {
    let made = Made::new("jpg", 0, "0.15%");
    let files: Vec<_> = made.corpus.files().unwrap().collect();
    let (first, second, third) = (&files[2], &files[5], &files[9]);
    let check = |damage: &dyn Fn(&Path), expected: &[(&str, Kind, Option<u64>, Option<u64>)]| {
        let copy = made.copy();
        assert!(made.verify(copy.path()).is_good());
        damage(copy.path());
        let found = made.verify(copy.path());
        assert!(!found.is_good() || found.extra_files > 0);
        let what = |d: &Difference| (d.path.clone(), d.kind.clone(), d.offset, d.len);
        let expected: Vec<_> = expected.iter().map(|(path, kind, offset, len)| ((*path).to_owned(), kind.clone(), *offset, *len)).collect();
        assert_eq!(found.differences.iter().map(what).collect::<Vec<_>>(), expected);
        assert_eq!(found.files_checked - found.files_good, expected.len() as u64);
        found
    };
    let open = |path: PathBuf| fs::OpenOptions::new().read(true).write(true).open(path).unwrap();

    let flip = |copy: &Path| {
        let file = open(copy.join(&first.path));
        let mut byte = [0];
        file.read_exact_at(&mut byte, 123_457).unwrap();
        file.write_all_at(&[byte[0] ^ 0x10], 123_457).unwrap();
    };
    check(&flip, &[(&first.path, Kind::BitsFlipped { bits: 1 }, Some(123_457), Some(1))]);

    let zero = |copy: &Path| open(copy.join(&first.path)).write_all_at(&[0; 4096], 40_960).unwrap();
    check(&zero, &[(&first.path, Kind::Zeroed, Some(40_960), Some(4096))]);

    let truncate = |copy: &Path| open(copy.join(&first.path)).set_len(100_000).unwrap();
    check(&truncate, &[(&first.path, Kind::Truncated, Some(100_000), Some(first.len - 100_000))]);

    let empty = |copy: &Path| open(copy.join(&first.path)).set_len(0).unwrap();
    check(&empty, &[(&first.path, Kind::Truncated, Some(0), Some(first.len))]);

    let lengthen = |copy: &Path| open(copy.join(&first.path)).write_all_at(b"more", first.len).unwrap();
    check(&lengthen, &[(&first.path, Kind::TooLong, Some(first.len), Some(4))]);

    let swap = |copy: &Path| {
        let (a, b, spare) = (copy.join(&first.path), copy.join(&second.path), copy.join("spare"));
        fs::rename(&a, &spare).unwrap();
        fs::rename(&b, &a).unwrap();
        fs::rename(&spare, &b).unwrap();
    };
    check(
        &swap,
        &[
            (&first.path, Kind::Swapped { with: second.path.clone() }, None, None),
            (&second.path, Kind::Swapped { with: first.path.clone() }, None, None),
        ],
    );

    let remove = |copy: &Path| fs::remove_file(copy.join(&third.path)).unwrap();
    check(&remove, &[(&third.path, Kind::Missing, None, None)]);

    let replace = |copy: &Path| open(copy.join(&third.path)).write_all_at(&[0x5A; 10_000], 300_001).unwrap();
    let found = check(&replace, &[(&third.path, Kind::Garbage, Some(300_001), Some(10_000))]);
    assert!(found.differences[0].sentence().contains("10000 bytes from byte 300001"), "{}", found.differences[0].sentence());

    let exchange = |copy: &Path| {
        let (one, other) = (open(copy.join(&first.path)), open(copy.join(&second.path)));
        let (mut a, mut b) = ([0; 4096], [0; 4096]);
        one.read_exact_at(&mut a, 8192).and_then(|()| other.read_exact_at(&mut b, 40_960)).unwrap();
        one.write_all_at(&b, 8192).and_then(|()| other.write_all_at(&a, 40_960)).unwrap();
    };
    let elsewhere = |file: &FileMeta, offset| Kind::Elsewhere { file: file.path.clone(), offset };
    let found = check(
        &exchange,
        &[(&first.path, elsewhere(second, 40_960), Some(8192), Some(4096)), (&second.path, elsewhere(first, 8192), Some(40_960), Some(4096))],
    );
    assert!(found.differences.iter().all(|found| found.different_bytes > Some(4000) && found.bits > Some(16_000)), "{:?}", found.differences);

    let several = |copy: &Path| {
        let file = open(copy.join(&third.path));
        for offset in [8192, 81_920] {
            file.write_all_at(&[0; 512], offset).unwrap();
        }
    };
    let found = check(&several, &[(&third.path, Kind::Zeroed, Some(8192), Some(81_920 + 512 - 8192))]);
    assert_eq!(found.differences[0].ranges.iter().map(|range| (range.offset, range.len)).collect::<Vec<_>>(), [(8192, 512), (81_920, 512)]);

    let add = |copy: &Path| fs::write(copy.join("DCIM/zz stranger"), "x").unwrap();
    let found = check(&add, &[]);
    assert_eq!((found.extra_files, found.extra_examples), (1, vec!["DCIM/zz stranger".to_owned()]));

    let link = |copy: &Path| {
        fs::remove_file(copy.join(&first.path)).unwrap();
        std::os::unix::fs::symlink(copy.join(&second.path), copy.join(&first.path)).unwrap();
    };
    let copy = made.copy();
    link(copy.path());
    assert_eq!(made.verify(copy.path()).differences.len(), 1, "a symbolic link is not the file");

    let fifo = made.copy();
    fs::remove_file(fifo.path().join(&first.path)).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(fifo.path().join(&first.path)).status().unwrap().success());
    assert_eq!(made.verify(fifo.path()).differences.len(), 1, "a FIFO is not the file, and does not hang");
}

#[test]
fn a_manifest_that_ends_early_after_it_was_opened_compares_nothing_as_good() {
    let made = Made::new("small-files", 0, "0.02%");
    let (path, manifest) = (made.dir.path().join("MANIFEST"), made.manifest());
    let good = fs::read(&path).unwrap();
    let ends: Vec<usize> = good.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    let tree = OS.files.open_root(&made.tree()).unwrap();
    let compare = || {
        let subject = Subject { files: OS.files, tree: &tree, path: &made.tree(), side: Side::Target };
        verify(subject, &manifest, 2, &Counter::default(), &Cancel::default()).map(|found| found.is_good())
    };
    assert!(matches!(compare(), Ok(true)));
    for end in &ends[2..ends.len() - 1] {
        fs::write(&path, &good[..*end]).unwrap();
        assert!(compare().is_err(), "the first {end} bytes of {}", good.len());
    }
}

#[test]
fn without_a_whole_manifest_there_is_no_corpus() {
    let made = Made::new("small-files", 0, "0.2%");
    let path = made.dir.path().join("MANIFEST");
    let good = fs::read(&path).unwrap();
    let open = || {
        let handle = OS.files.open_root(made.dir.path()).unwrap();
        Manifest::open(OS.files, &handle, made.dir.path()).map(|manifest| manifest.is_some())
    };
    assert!(matches!(open(), Ok(true)));
    let line = good.iter().position(|&byte| byte == b'\n').unwrap();
    let damages: Vec<Vec<u8>> = vec![
        good[..good.len() - 1].to_vec(),
        good[..good.len() - 70].to_vec(),
        good[..line].to_vec(),
        Vec::new(),
        [&good[..], b"more\n"].concat()[..].to_vec(),
        String::from_utf8(good.clone()).unwrap().replacen(" node_modules/", " /etc/", 1).into_bytes(),
        String::from_utf8(good.clone()).unwrap().replacen(" node_modules/", " ../", 1).into_bytes(),
        vec![0xFF; 3000],
    ];
    for (index, damage) in damages.iter().enumerate() {
        fs::write(&path, damage).unwrap();
        // What follows the root digest is not part of the manifest.
        let expected_good = index == 4;
        assert_eq!(matches!(open(), Ok(true)), expected_good, "damage {index}");
    }
    fs::remove_file(&path).unwrap();
    assert!(matches!(open(), Ok(false)));
}

#[test]
fn a_cancelled_generation_leaves_no_manifest() {
    let corpus = corpus("jpg", 0, "0.2%".parse().unwrap(), &Environment::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let handle = OS.files.open_root(dir.path()).unwrap();
    let cancel = Cancel::default();
    cancel.request(2);
    let error = generate(OS, &corpus, &handle, dir.path(), 2, &Counter::default(), &cancel, &mut |_| Ok(())).unwrap_err();
    assert_eq!(error.exit_code(), 130);
    assert!(!dir.path().join("MANIFEST").exists());
}

#[test]
fn a_hand_made_copy_tells_which_corpus_it_is() {
    let environment = Environment::default();
    let made = Made::new("mp3", 0, "0.3%");
    let copy = made.copy();
    let claim = identity::Claim { scale: Some("0.3%".parse().unwrap()), ..Default::default() };
    assert_eq!(identity::corpus_of(OS, copy.path(), &claim, &environment).unwrap(), made.corpus);
    let named = copy.path().join(made.corpus.id());
    fs::create_dir(&named).unwrap();
    assert_eq!(identity::corpus_of(OS, &named, &Default::default(), &environment).unwrap(), made.corpus);
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(identity::corpus_of(OS, empty.path(), &Default::default(), &environment).unwrap_err().exit_code(), 2);
}

#[test]
fn a_scanned_folder_becomes_a_corpus_of_its_shape_without_its_names() {
    let real = tempfile::tempdir().unwrap();
    for directory in ["secret", "secret/plans", "b", "b/c/d"] {
        fs::create_dir_all(real.path().join(directory)).unwrap();
    }
    let sizes = [10, 20, 5_000, 70_000, 0, 123_456, 1_000, 999];
    let places = ["a", "secret/x", "secret/y", "secret/plans/1", "secret/plans/2", "b/c/d/deep", "b/z", "secret/plans/3"];
    for (place, size) in places.iter().zip(sizes) {
        fs::write(real.path().join(place), vec![1; size]).unwrap();
    }
    std::os::unix::fs::symlink("nowhere", real.path().join("link")).unwrap();
    let (spec, remarks) = scan::scan(real.path(), "mine", &Cancel::default(), &mut |_| ()).unwrap();
    assert_eq!(spec.scaled(Scale::FULL), (8, sizes.iter().sum::<usize>() as u64));
    assert_eq!(remarks, scan::Remarks { links: 1, ..Default::default() });
    let text = toml::to_string(&spec).unwrap();
    assert!(!text.contains("secret") && !text.contains("deep"));
    let made = Made::of(Corpus::new(copysim::corpus::spec::CorpusSpec::parse(&text).unwrap(), 0, Scale::FULL).unwrap());
    let found = files_below(&made.tree());
    assert_eq!((found.len(), found.values().sum::<u64>()), (8, spec.scaled(Scale::FULL).1));
    let depth = |path: &str| path.matches('/').count();
    let mut depths: Vec<_> = found.keys().map(|path| depth(path)).collect();
    let mut expected: Vec<_> = places.iter().map(|path| depth(path)).collect();
    depths.sort_unstable();
    expected.sort_unstable();
    assert_eq!(depths, expected);
}
