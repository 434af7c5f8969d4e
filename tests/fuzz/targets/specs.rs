//! What people write: scenarios and corpora in TOML, quantities on a command line.

use std::ffi::OsStr;

use copysim::corpus::Corpus;
use copysim::corpus::catalogue::CORPORA;
use copysim::corpus::spec::CorpusSpec;
use copysim::drive::names::{is_copy_name, is_corpus_name};
use copysim::scenario::catalogue::SCENARIOS;
use copysim::scenario::spec::ScenarioSpec;
use copysim::units::{self, Bytes, Scale};

/// Files of a corpus that are looked at.
const MOST_FILES: u64 = 3_000;

pub fn scenarios() -> Vec<Vec<u8>> {
    SCENARIOS.built_in.iter().map(|(_, text)| text.as_bytes().to_vec()).collect()
}

pub fn scenario(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(spec) = ScenarioSpec::parse(text) {
        let written = toml::to_string(&spec).expect("a scenario can be written");
        assert_eq!(ScenarioSpec::parse(&written), Ok(spec), "{written}");
    }
}

pub fn corpora() -> Vec<Vec<u8>> {
    let nested = "name = \"mine\"\nversion = 1\nsummary = \"\"\nfiles = 7\nbytes = 70000\nsizes = { quantiles = [0, 10, 4000] }\n\
                  tree = { nested = { directories = [1, 3], files = [2, 5] } }\ncontent = { kind = \"random\" }\n";
    let parts = "name = \"parts\"\nversion = 1\nsummary = \"\"\n\
                 [[part]]\ndirectory = \"lib\"\nfiles = 70\nbytes = 70000\nsizes = { quantiles = [0, 10, 4000] }\n\
                 tree = { named = { prefix = \"lib\", endings = [\".so\", \".so.5\"], files_per_folder = 9 } }\ncontent = { kind = \"program\" }\n\
                 [[part]]\ndirectory = \"cache/entries\"\nfiles = 9\nbytes = 900\nsizes = { lognormal = { sigma_hundredths = 50, least_bytes = 3 } }\n\
                 tree = { hashed = { suffix = \".bin\" } }\ncontent = { kind = \"text\" }\n";
    CORPORA.built_in.iter().map(|(_, text)| (*text).to_owned()).chain([nested, parts].map(str::to_owned)).map(String::into_bytes).collect()
}

pub fn corpus(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(spec) = CorpusSpec::parse(text) else { return };
    let written = toml::to_string(&spec).expect("a corpus can be written");
    assert_eq!(CorpusSpec::parse(&written).as_ref(), Ok(&spec), "{written}");
    let seed = u64::from(data[data.len() / 2]) << 56;
    for scale in [Scale::from_hundredths(1), Scale::from_hundredths(u32::from(data[0]) * 100), Scale::FULL] {
        // Whether there are enough bytes is found out by drawing all sizes, which takes as long as there are many files.
        if spec.scaled(scale).0 > MOST_FILES {
            continue;
        }
        if let Ok(corpus) = Corpus::new(spec.clone(), seed, scale) {
            look(&corpus);
        }
    }
}

/// All files have names of their own in order and below their directory, their lengths add up, and their bytes can be made.
fn look(corpus: &Corpus) {
    assert!(is_corpus_name(OsStr::new(&corpus.id())), "{}", corpus.id());
    let (key, contents) = (corpus.key(), corpus.contents().unwrap());
    let (mut last, mut count, mut bytes) = (String::new(), 0, 0);
    let mut buffer = [0; 600];
    for file in corpus.files().unwrap() {
        assert!(last.as_bytes() < file.path.as_bytes(), "{last} {}", file.path);
        assert!(file.path.split('/').all(|part| !matches!(part, "" | "." | "..")) && !file.path.contains(char::is_control), "{}", file.path);
        assert!(file.len >= contents.min_len(file.ordinal));
        (count, bytes) = (count + 1, bytes + file.len);
        if count <= 2 {
            let part = &mut buffer[..file.len.min(600) as usize];
            contents.fill(&file.bytes(&key), 0, part);
            contents.fill(&file.bytes(&key), file.len - part.len() as u64, part);
        }
        last = file.path;
    }
    assert_eq!((count, bytes), (corpus.file_count(), corpus.byte_count()));
}

pub fn quantities() -> Vec<Vec<u8>> {
    let texts =
        ["4000000000", "1.5 GB", "128KiB", "0.01%", "10000 %", "jpg-v1-s0-p0.5", "20250131T235959Z-0123abcd-kept", "99999999999999999999 TiB"];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

pub fn quantity(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(Bytes(bytes)) = text.parse() {
        assert_eq!(bytes.to_string().parse(), Ok(Bytes(bytes)));
        let _ = (Bytes(bytes).to_string(), units::duration(bytes), units::count(bytes), units::rate(bytes, 3));
    }
    if let Ok(scale) = text.parse::<Scale>() {
        assert_eq!(scale.to_string().parse(), Ok(scale));
        assert!(scale.of(u64::MAX) > 0 && scale.of(1) > 0);
    }
    let name = OsStr::new(&*text);
    assert!(!(is_copy_name(name) && is_corpus_name(name)), "{text}");
    assert!(!(is_copy_name(name) || is_corpus_name(name)) || !text.contains('/') && !text.starts_with('.'), "{text}");
}
