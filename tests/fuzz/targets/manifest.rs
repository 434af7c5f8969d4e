//! Manifests: what is taken is whole and in order, stays below its directory, and is written again as it was read.

use std::io::Write;
use std::path::Path;

use copysim::corpus::Corpus;
use copysim::corpus::catalogue::corpus;
use copysim::corpus::manifest::{Listed, Manifest, ManifestWriter};
use copysim::platform::{Files, Handle, OsFiles, Writer, memory_file};
use copysim::units::Scale;

const NAME: &str = "MANIFEST";
/// An input that begins so is given the root digest that its list has: else hardly any would be looked at beyond it.
const MENDED: u8 = b'+';

pub fn seeds() -> Vec<Vec<u8>> {
    let nowhere = copysim::catalogue::Environment { configuration: None };
    let names = ["small-files", "jpg", "mp3", "zero-fill"];
    let made = names.map(|name| written(&corpus(name, 3, Scale::from_hundredths(1), &nowhere).unwrap()));
    let mended = made.iter().map(|text| [&[MENDED], text.as_slice()].concat()).collect::<Vec<_>>();
    made.into_iter().chain(mended).collect()
}

/// A manifest of a corpus of which no byte was made.
fn written(corpus: &Corpus) -> Vec<u8> {
    let file = memory_file().unwrap();
    let mut writer = ManifestWriter::new(&OsFiles, file, NAME.into(), corpus).unwrap();
    for meta in corpus.files().unwrap() {
        let digest = blake3::hash(meta.path.as_bytes());
        writer.add(&Listed { meta, digest }).unwrap();
    }
    bytes(&writer.finish().unwrap().1)
}

fn bytes(file: &Handle) -> Vec<u8> {
    let mut data = vec![0; OsFiles.stat(file).unwrap().len as usize];
    let read = OsFiles.read_at(file, &mut data, 0).unwrap();
    assert_eq!(read, data.len());
    data
}

/// The text with the root digest of the lines that are its list.
fn mended(text: &[u8]) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    if lines.last().is_some_and(|line| line.starts_with(b"root")) {
        lines.pop();
    }
    let list: Vec<u8> = lines.iter().skip(2).flat_map(|line| line.iter().copied()).collect();
    [lines.concat(), format!("root {}\n", blake3::hash(&list).to_hex()).into_bytes()].concat()
}

pub fn run(data: &[u8]) {
    let data = match data.split_first() {
        Some((&MENDED, text)) => mended(text),
        _ => data.to_vec(),
    };
    let file = memory_file().unwrap();
    Writer { files: &OsFiles, file: &file }.write_all(&data).unwrap();
    let Ok(manifest) = Manifest::read(&OsFiles, file, Path::new(NAME)) else { return };
    let listed: Vec<Listed> = manifest.entries(&OsFiles).collect::<Result<_, _>>().unwrap();
    assert_eq!((listed.len() as u64, listed.iter().map(|file| file.meta.len).sum()), (manifest.corpus.file_count(), manifest.corpus.byte_count()));
    let mut writer = ManifestWriter::new(&OsFiles, memory_file().unwrap(), NAME.into(), &manifest.corpus).unwrap();
    for file in &listed {
        let path = &file.meta.path;
        assert!(!path.starts_with('/') && path.split('/').all(|part| !matches!(part, "" | "." | "..")) && !path.contains(char::is_control), "{path}");
        writer.add(file).unwrap();
    }
    let (root, again) = writer.finish().unwrap();
    assert_eq!(root, manifest.root);
    let again = Manifest::read(&OsFiles, again, Path::new(NAME)).unwrap();
    assert_eq!((again.root, again.corpus == manifest.corpus), (root, true));
    assert_eq!(again.entries(&OsFiles).collect::<Result<Vec<_>, _>>().unwrap(), listed);
}
