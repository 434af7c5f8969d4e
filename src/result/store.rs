//! Where records lie: the user's data directory or one that was named, one file each, always whole.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::course::Timeline;
use super::document::Document;
use crate::platform::{Files, read_text, write_atomically};
use crate::{Context, Error, Result, Side};

/// The largest record, bytes a scenario.
pub const MAX_BYTES: usize = 1 << 20;

/// The user's directory for results: `$XDG_DATA_HOME/copysim/results`, by default below `~/.local/share`.
///
/// # Errors
/// [`Error::Refused`] when the environment names neither.
pub fn default_dir(env: &dyn Fn(&str) -> Option<OsString>) -> Result<PathBuf> {
    // The XDG specification has relative paths ignored.
    let absolute = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/share")));
    data.map(|data| data.join("copysim/results"))
        .ok_or_else(|| Error::Refused("there is no place for results: neither XDG_DATA_HOME nor HOME is set; name one with --results DIR".to_owned()))
}

/// The name of a record's file: when, what, which. Portable, and in the order of time.
#[must_use]
pub fn file_name(document: &Document) -> String {
    let portable = |text: &str| -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' };
        text.chars().map(plain).take(60).collect()
    };
    let when = document.started_at.strftime("%Y-%m-%dT%H-%M-%SZ");
    let what = match document.scenarios.as_slice() {
        [] => String::new(),
        [only] => format!("-{}", portable(&only.name)),
        [first, rest @ ..] => format!("-{}-and-{}-more", portable(&first.name), rest.len()),
    };
    format!("{when}{what}-{}.json", portable(&document.id))
}

/// Makes the directory of results if it is missing and shows that it can be written to: found out before hours of measuring, not after.
///
/// # Errors
/// What the system answered.
pub fn prepare(files: &dyn Files, dir: &Path) -> Result<()> {
    let path = dir.join(".copysim-can-write");
    write_atomically(&path, b"").during("keep results: write", Side::Host, &path)?;
    let opened = files.open_root(dir).during("open", Side::Host, dir)?;
    files.remove_file(&opened, Path::new(".copysim-can-write")).during("remove", Side::Host, path)
}

/// Writes a record into a directory, over an earlier state of the same record; a reader sees the old or the new one whole. Gives the path.
///
/// # Errors
/// What the system answered; the old state is then untouched.
pub fn save(document: &Document, dir: &Path) -> Result<PathBuf> {
    let path = dir.join(file_name(document));
    let mut json = bounded_json(document)?;
    json.push('\n');
    write_atomically(&path, json.as_bytes()).during("write", Side::Host, &path)?;
    Ok(path)
}

/// Reads a record.
///
/// # Errors
/// What the system answered; [`Error::Refused`] naming the file when it is not a record that this version can read.
pub fn load(path: &Path) -> Result<Document> {
    let text = match read_text(path) {
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            return Err(Error::Refused(format!("{}: this is not JSON: it is not even text", path.display())));
        }
        read => read.during("read", Side::Host, path)?,
    };
    Document::from_json(&text).map_err(|error| match error {
        Error::Refused(why) => Error::Refused(format!("{}: {why}", path.display())),
        other => other,
    })
}

/// The JSON of a record within [`MAX_BYTES`] a scenario: where it is larger, every second sample of the timelines goes until it fits. A record
/// that is too large for other reasons is kept whole: a finished run is never thrown away.
fn bounded_json(document: &Document) -> Result<String> {
    let limit = MAX_BYTES * document.scenarios.len().max(1);
    let encode = |document: &Document| {
        serde_json::to_string(document).map_err(|error| Error::Internal(format!("the result cannot be written as JSON: {error}")))
    };
    let mut json = encode(document)?;
    if json.len() < limit {
        return Ok(json);
    }
    let mut thinned = document.clone();
    let mut points = usize::MAX;
    while json.len() >= limit {
        timelines(&mut thinned).for_each(Timeline::halve);
        json = encode(&thinned)?;
        let left = timelines(&mut thinned).map(|timeline| timeline.t_ns.len()).sum();
        if left == points {
            break;
        }
        points = left;
    }
    Ok(json)
}

fn timelines(document: &mut Document) -> impl Iterator<Item = &mut Timeline> {
    document.runs.iter_mut().flat_map(|run| &mut run.phases).filter_map(|phase| phase.timeline.as_mut())
}
