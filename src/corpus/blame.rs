//! Who is to blame for wrong bytes: the drive that was copied from, the drive that was copied to, or the machine between them.
//!
//! The rule, in this order:
//!
//! 1. What it was copied from, read again from its drive, is not what the manifest says, twice: the source. Where that lies in this machine's memory: the host.
//! 2. Readings of one file give different bytes, be it of the source or of the target: the host, that is its memory, a bus, a cable or a hub. Media give
//!    back the same wrong bytes.
//! 3. The source is right, or the bytes were made by copysim, and two readings of the target from its drive give the same wrong bytes: the target.
//! 4. Else it is unknown: a reading was not possible, or may have been answered by a cache.

use std::path::Path;

use super::locate::{Difference, Kind, Second};
use super::marks::{Marker, Marks};
use super::reread::make_cold;
use super::stream::CHUNK_BYTES;
use super::verify::open_file;
use crate::error::{Result, reason};
use crate::platform::{Files, Handle};
use crate::progress::Cancel;
use crate::result::Blame;

/// What the files were copied from.
#[derive(Clone, Copy)]
pub enum Origin<'a> {
    /// Files on a drive.
    Drive(&'a Handle),
    /// Files in this machine's memory.
    Memory(&'a Handle),
    /// The bytes were made while they were written.
    Made,
    /// Nobody knows: a copy made by other means.
    Unknown,
}

/// Who may have answered in place of the target, or of the source, though nothing was in this machine's page cache.
#[derive(Clone, Copy, Default)]
pub struct Hidden<'a> {
    /// In place of the target.
    pub target: Option<&'a str>,
    /// In place of the source.
    pub source: Option<&'a str>,
}

/// What is known of the file that was copied.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Right,
    Wrong,
    WrongInMemory,
    /// Two readings gave different bytes.
    Unstable,
    Made,
    /// Why nothing is known of it.
    Unknown(String),
}

/// Says of each difference who is to blame.
///
/// # Errors
/// `Interrupted`.
pub fn attribute(files: &dyn Files, origin: Origin<'_>, hidden: Hidden<'_>, differences: &mut [Difference], cancel: &Cancel) -> Result<()> {
    for difference in differences {
        cancel.check()?;
        if let (Some(Second::Agrees), Some(who)) = (&difference.second, hidden.target) {
            difference.second = Some(Second::NotPossible(format!("{who} may have answered in place of the drive")));
        }
        let seen = look(files, origin, hidden.source, difference, cancel)?;
        let failed = matches!(difference.kind, Kind::Unreadable { .. });
        difference.blame = Some(blame(difference.second.as_ref(), failed, &seen));
    }
    Ok(())
}

/// `failed` when the system answered a reading with an error.
fn blame(second: Option<&Second>, failed: bool, source: &Seen) -> (Blame, String) {
    let (who, because) = match (second, source) {
        (_, Seen::Wrong) => (Blame::Source, "the file that was copied is wrong itself when it is read again"),
        (_, Seen::WrongInMemory) => (Blame::Host, "the file that was copied lies in this machine's memory and is wrong itself"),
        (_, Seen::Unstable) => (
            Blame::Host,
            "two readings of the file that was copied gave different bytes: suspect memory, bus, cable or hub on the way from the source",
        ),
        (Some(Second::AsExpected | Second::Other), _) if failed => {
            (Blame::Unknown, "one reading failed and another did not: a weak place of the drive, or the way to it")
        }
        (Some(Second::AsExpected | Second::Other), _) => {
            (Blame::Host, "its readings do not agree, and media give back the same wrong bytes: suspect memory, bus, cable or hub")
        }
        (Some(Second::Agrees), Seen::Right) => (Blame::Target, "the file that was copied is right when it is read again from its drive"),
        (Some(Second::Agrees), Seen::Made) => (Blame::Target, "its bytes were made by copysim and came from no drive"),
        (Some(Second::Agrees), Seen::Unknown(why)) => return (Blame::Unknown, why.clone()),
        (Some(Second::NotPossible(_)) | None, _) => (Blame::Unknown, "there is no second reading from the drive"),
    };
    (who, because.to_owned())
}

/// Reads the file that was copied again, twice where it is wrong.
fn look(files: &dyn Files, origin: Origin<'_>, hidden: Option<&str>, difference: &Difference, cancel: &Cancel) -> Result<Seen> {
    let (tree, in_memory) = match origin {
        Origin::Drive(tree) => (tree, false),
        Origin::Memory(tree) => (tree, true),
        Origin::Made => return Ok(Seen::Made),
        Origin::Unknown => return Ok(Seen::Unknown("what it was copied from is not known".to_owned())),
    };
    let hidden = hidden.filter(|_| !in_memory);
    let mut first: Option<Marks> = None;
    loop {
        let (marks, cold) = match read(files, tree, difference, in_memory, cancel)? {
            Ok(read) => read,
            Err(why) => return Ok(Seen::Unknown(format!("the file that was copied cannot be read again: {why}"))),
        };
        let is_right = marks.digest == difference.expected_digest;
        let doubt = cold.err().or_else(|| hidden.map(|who| format!("{who} may have answered in place of its drive")));
        match (&first, doubt) {
            (Some(before), _) if *before != marks => return Ok(Seen::Unstable),
            (_, Some(doubt)) if is_right || first.is_some() => {
                let seems = if is_right { "right" } else { "wrong itself" };
                return Ok(Seen::Unknown(format!("the file that was copied seems {seems}, but {doubt}")));
            }
            (_, None) if is_right => return Ok(Seen::Right),
            (Some(_), _) => return Ok(if in_memory { Seen::WrongInMemory } else { Seen::Wrong }),
            (None, _) => first = Some(marks),
        }
    }
}

type Read = Result<(Marks, Result<(), String>), String>;

/// Reads the file that was copied, from its drive if that can be had; what the system answered otherwise.
fn read(files: &dyn Files, tree: &Handle, difference: &Difference, in_memory: bool, cancel: &Cancel) -> Result<Read> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut marker = Marker::new(difference.expected_bytes);
    let (file, stat) = match open_file(files, tree, Path::new(&difference.path)) {
        Ok(Some(opened)) => opened,
        Ok(None) => return Ok(Err("it is no file".to_owned())),
        Err((_, error)) => return Ok(Err(reason(&error))),
    };
    let cold = if in_memory { Ok(()) } else { make_cold(files, &file, stat.len) };
    loop {
        cancel.check()?;
        match files.read(&file, &mut buffer) {
            Ok(0) => return Ok(Ok((marker.finish(), cold))),
            Ok(read) => marker.add(&buffer[..read]),
            Err(error) => return Ok(Err(reason(&error))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_is_kept() {
        use Blame::{Host, Source, Target, Unknown};
        let not_possible = || Second::NotPossible("why".into());
        let unknown = || Seen::Unknown("not known".into());
        for (second, seen, who) in [
            (Some(Second::Agrees), Seen::Right, Target),
            (Some(Second::Agrees), Seen::Made, Target),
            (Some(Second::Agrees), Seen::Wrong, Source),
            (Some(Second::Agrees), Seen::WrongInMemory, Host),
            (Some(Second::Agrees), Seen::Unstable, Host),
            (Some(Second::Agrees), unknown(), Unknown),
            (Some(Second::AsExpected), Seen::Right, Host),
            (Some(Second::AsExpected), unknown(), Host),
            (Some(Second::AsExpected), Seen::Made, Host),
            (Some(Second::Other), Seen::Right, Host),
            (Some(Second::Other), Seen::Wrong, Source),
            (Some(not_possible()), Seen::Right, Unknown),
            (Some(not_possible()), Seen::Wrong, Source),
            (None, Seen::Made, Unknown),
        ] {
            assert_eq!(blame(second.as_ref(), false, &seen).0, who, "{second:?} {seen:?}");
        }
        assert_eq!(blame(Some(&Second::Agrees), false, &unknown()).1, "not known");
        // A weak sector reads at the second try: that is no sign of this machine.
        for second in [Second::AsExpected, Second::Other] {
            assert_eq!(blame(Some(&second), true, &Seen::Right).0, Unknown);
        }
        assert_eq!(blame(Some(&Second::Agrees), true, &Seen::Right).0, Target);
    }
}
