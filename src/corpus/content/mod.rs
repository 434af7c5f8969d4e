//! What files contain: one kind of content per file below this directory, and the table of them.

mod compressible;
mod exif;
mod id3;
mod idioms;
mod interleaved;
mod jpeg;
mod keystream;
mod mp3;
mod program;
mod random;
mod scan;
mod text;
mod vocabulary;
mod window;
mod zero;

pub use interleaved::Interleave;
pub use keystream::corpus_key;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A file whose bytes are wanted: all that its content may depend on.
#[derive(Debug, Clone, Copy)]
pub struct FileBytes<'a> {
    /// The key of the corpus (name, version and seed).
    pub key: &'a [u8; 32],
    /// Which file of the corpus: selects its keystream.
    pub ordinal: u64,
    /// Path within the corpus, with `/`.
    pub path: &'a str,
    /// Length in bytes.
    pub len: u64,
    /// Modification time, seconds since 1970.
    pub mtime: i64,
}

impl FileBytes<'_> {
    /// The modification time in UTC, held between the years 0 and 9999 that tags in files can express.
    fn date(&self) -> jiff::civil::DateTime {
        const YEAR_0: i64 = -62_167_219_200;
        const END_OF_YEAR_9999: i64 = 253_402_300_799;
        let seconds = self.mtime.clamp(YEAR_0, END_OF_YEAR_9999);
        jiff::civil::DateTime::constant(1970, 1, 1, 0, 0, 0, 0).saturating_add(jiff::SignedDuration::from_secs(seconds))
    }
}

/// A kind of content: a pure function from file and place to bytes.
pub trait Content: Send + Sync {
    /// The smallest file that this kind can make.
    fn min_len(&self) -> u64;

    /// Fills `buffer` with the bytes of the file from `offset` on. `offset + buffer.len()` is at most `file.len`, which is at least `min_len`.
    fn fill(&self, file: &FileBytes<'_>, offset: u64, buffer: &mut [u8]);
}

/// The kinds of content, as specs name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ContentKind {
    /// Baseline JPEG pictures as a camera writes them.
    Jpeg,
    /// MPEG-1 Layer III songs of a constant bit rate with an ID3v2 tag.
    Mp3,
    /// Nothing but zero bytes.
    Zero,
    /// The keystream itself: incompressible, no block twice.
    Random,
    /// Blocks of 4 KiB of which a stated share can be compressed away.
    Compressible,
    /// Zero and random by turns, in a stated share.
    Interleaved,
    /// Text as source trees hold it, in the look of the file's extension.
    Text,
    /// Executables and libraries as they compress, with the header of a 64-bit ELF file.
    Program,
}

/// What files contain, as a corpus spec states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContentSpec {
    /// The kind of content.
    pub kind: ContentKind,
    /// `compressible` only: the share of every 4 KiB block that a compressor removes, in percent, 0 to 90.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compressible_percent: Option<u8>,
    /// `interleaved` only: the share of zero bytes, in percent, 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero_share_percent: Option<u8>,
    /// `interleaved` only: what is either zero or random as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interleave: Option<Interleave>,
}

impl ContentSpec {
    /// A kind without keys.
    #[must_use]
    pub fn of(kind: ContentKind) -> Self {
        Self { kind, compressible_percent: None, zero_share_percent: None, interleave: None }
    }
}

/// The content that a spec asks for: the table of kinds.
///
/// # Errors
/// A sentence that names the key that is missing, out of range, or foreign to the kind.
pub fn content(spec: &ContentSpec) -> Result<Box<dyn Content>, String> {
    let mut keys = Keys { kind: spec.kind, spec: *spec };
    let content: Box<dyn Content> = match spec.kind {
        ContentKind::Jpeg => Box::new(jpeg::Jpeg),
        ContentKind::Mp3 => Box::new(mp3::Mp3),
        ContentKind::Zero => Box::new(zero::Zero),
        ContentKind::Random => Box::new(random::Random),
        ContentKind::Compressible => Box::new(compressible::Compressible::new(keys.compressible_percent()?)),
        ContentKind::Interleaved => Box::new(interleaved::Interleaved::new(keys.zero_share_percent()?, keys.interleave()?)),
        ContentKind::Text => Box::new(text::Text::new()),
        ContentKind::Program => Box::new(program::Program::new()),
    };
    keys.none_left()?;
    Ok(content)
}

/// The optional keys of a spec: each kind takes its own, and what is left over is foreign to it.
struct Keys {
    kind: ContentKind,
    spec: ContentSpec,
}

impl Keys {
    fn compressible_percent(&mut self) -> Result<u8, String> {
        let value = self.spec.compressible_percent.take();
        self.percent("compressible_percent", value, compressible::MAX_PERCENT)
    }

    fn zero_share_percent(&mut self) -> Result<u8, String> {
        let value = self.spec.zero_share_percent.take();
        self.percent("zero_share_percent", value, 100)
    }

    fn interleave(&mut self) -> Result<Interleave, String> {
        let value = self.spec.interleave.take();
        value.ok_or_else(|| self.missing("interleave", "\"file\", \"128KiB\" or \"4KiB\""))
    }

    fn percent(&self, key: &str, value: Option<u8>, most: u8) -> Result<u8, String> {
        let value = value.ok_or_else(|| self.missing(key, &format!("0 to {most}")))?;
        if value <= most { Ok(value) } else { Err(format!("the key `{key}` is {value}, but may be 0 to {most}")) }
    }

    fn missing(&self, key: &str, values: &str) -> String {
        format!("content of kind {} needs the key `{key}` ({values})", name(self.kind))
    }

    fn none_left(&self) -> Result<(), String> {
        let ContentSpec { kind: _, compressible_percent, zero_share_percent, interleave } = self.spec;
        let left = [
            ("compressible_percent", compressible_percent.is_some()),
            ("zero_share_percent", zero_share_percent.is_some()),
            ("interleave", interleave.is_some()),
        ];
        match left.iter().find(|(_, present)| *present) {
            Some((key, _)) => Err(format!("the key `{key}` does not belong to content of kind {}: remove it", name(self.kind))),
            None => Ok(()),
        }
    }
}

/// The name of a kind in a sentence, quoted as in a spec.
fn name(kind: ContentKind) -> String {
    serde_json::to_string(&kind).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(spec: &str) -> Result<Box<dyn Content>, String> {
        let spec: ContentSpec = toml::from_str(spec).map_err(|error| error.message().to_owned())?;
        content(&spec)
    }

    fn refusal(spec: &str) -> String {
        parse(spec).err().unwrap_or_else(|| panic!("accepted: {spec}"))
    }

    #[test]
    fn each_kind_resolves_from_its_own_keys() {
        for spec in [
            "kind = 'jpeg'",
            "kind = 'mp3'",
            "kind = 'zero'",
            "kind = 'random'",
            "kind = 'text'",
            "kind = 'program'",
            "kind = 'compressible'\ncompressible_percent = 46",
            "kind = 'interleaved'\nzero_share_percent = 100\ninterleave = 'file'",
            "kind = 'interleaved'\nzero_share_percent = 0\ninterleave = '128KiB'",
            "kind = 'interleaved'\nzero_share_percent = 50\ninterleave = '4KiB'",
        ] {
            assert!(parse(spec).is_ok(), "{spec}: {:?}", parse(spec).err());
        }
    }

    #[test]
    fn refusals_name_the_key() {
        assert_eq!(
            refusal("kind = 'jpeg'\ncompressible_percent = 5"),
            "the key `compressible_percent` does not belong to content of kind \"jpeg\": remove it"
        );
        assert_eq!(
            refusal("kind = 'compressible'\ncompressible_percent = 5\ninterleave = 'file'"),
            "the key `interleave` does not belong to content of kind \"compressible\": remove it"
        );
        assert_eq!(refusal("kind = 'compressible'"), "content of kind \"compressible\" needs the key `compressible_percent` (0 to 90)");
        assert_eq!(refusal("kind = 'compressible'\ncompressible_percent = 91"), "the key `compressible_percent` is 91, but may be 0 to 90");
        assert_eq!(
            refusal("kind = 'interleaved'\nzero_share_percent = 101\ninterleave = 'file'"),
            "the key `zero_share_percent` is 101, but may be 0 to 100"
        );
        assert_eq!(
            refusal("kind = 'interleaved'\nzero_share_percent = 1"),
            "content of kind \"interleaved\" needs the key `interleave` (\"file\", \"128KiB\" or \"4KiB\")"
        );
        assert!(refusal("kind = 'zero'\nshare = 1").contains("unknown field `share`"));
        assert!(refusal("kind = 'noise'").contains("unknown variant `noise`"));
    }

    #[test]
    fn a_spec_survives_writing_and_reading() {
        let spec = ContentSpec {
            kind: ContentKind::Interleaved,
            compressible_percent: None,
            zero_share_percent: Some(50),
            interleave: Some(Interleave::Blocks128KiB),
        };
        let written = toml::to_string(&spec).unwrap();
        assert_eq!(written, "kind = \"interleaved\"\nzero_share_percent = 50\ninterleave = \"128KiB\"\n");
        assert_eq!(toml::from_str::<ContentSpec>(&written).unwrap(), spec);
    }

    #[test]
    fn dates_stay_within_what_tags_can_express() {
        let date = |mtime| FileBytes { key: &[0; 32], ordinal: 0, path: "", len: 0, mtime }.date().to_string();
        assert_eq!(date(1_000_000_000), "2001-09-09T01:46:40");
        assert_eq!(date(-1), "1969-12-31T23:59:59");
        assert_eq!(date(i64::MIN), "0000-01-01T00:00:00");
        assert_eq!(&date(i64::MAX)[..4], "9999");
    }
}
