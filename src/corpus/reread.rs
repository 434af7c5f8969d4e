//! Reads a file that differs a second time, from the drive, beside the right bytes.

use std::io;
use std::path::Path;

use super::FileMeta;
use super::locate::{Difference, Kind, Second};
use super::marks::{Marker, Marks};
use super::sectors::Sectors;
use super::stream::CHUNK_BYTES;
use super::verify::{Subject, open_file};
use super::whose::Search;
use crate::cache::evict::evict_open;
use crate::error::{Result, reason};
use crate::platform::{Files, Handle};
use crate::progress::Cancel;
use crate::result::Warmth;

/// Evicts an open file and makes sure that nothing of it is in this machine's memory.
///
/// # Errors
/// The reason why the next reading need not be one of the drive.
pub(super) fn make_cold(files: &dyn Files, file: &Handle, len: u64) -> Result<(), String> {
    match evict_open(files, &[(file, len)]).data {
        Warmth::Cold => Ok(()),
        Warmth::Warm => Err("this machine does not let go of what it has in memory of it".to_owned()),
        Warmth::Unknown => Err("what this machine has in memory of it can't be seen".to_owned()),
    }
}

/// Fills the buffer from an offset on as far as the file goes.
pub(super) fn read_full(files: &dyn Files, file: &Handle, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match files.read_at(file, &mut buffer[filled..], offset + filled as u64)? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

/// Reads the file again. What is wrong in it is returned, where that says more than is known already.
///
/// # Errors
/// `Interrupted`. What the system answered is told in the difference.
pub(super) fn reread(
    subject: Subject<'_>,
    meta: &FileMeta,
    difference: &mut Difference,
    search: &mut Search<'_>,
    cancel: &Cancel,
) -> Result<Option<Sectors>> {
    let files = subject.files;
    let was_unreadable = matches!(difference.kind, Kind::Unreadable { .. });
    let (file, stat) = match open_file(files, subject.tree, Path::new(&meta.path)) {
        Ok(Some(opened)) => opened,
        answer => {
            difference.second = Some(match answer {
                Err(_) if was_unreadable => Second::Agrees,
                Err((_, error)) => Second::NotPossible(reason(&error)),
                Ok(_) => Second::NotPossible("it is no file".to_owned()),
            });
            return Ok(None);
        }
    };
    let cold = make_cold(files, &file, stat.len);
    let _ = files.advise_sequential(&file);
    let (mut expected, mut found) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
    let (mut right, mut marker) = (Marker::new(meta.len), Marker::new(meta.len));
    let mut sectors = Sectors::default();
    // A file that is another one as a whole is told by its name.
    let is_located = matches!(difference.kind, Kind::Swapped { .. });
    let mut offset = 0;
    loop {
        cancel.check()?;
        let filled = match read_full(files, &file, &mut found, offset) {
            Ok(filled) => filled,
            Err(error) => {
                difference.second = Some(if was_unreadable { Second::Agrees } else { Second::Other });
                difference.offset.get_or_insert(offset);
                if !was_unreadable {
                    difference.kind = Kind::Unreadable { reason: reason(&error) };
                }
                return Ok(None);
            }
        };
        marker.add(&found[..filled]);
        let wanted = right_bytes(meta, offset, &mut expected, &mut right, search);
        if !is_located {
            let both = filled.min(wanted);
            sectors.compare(offset, &expected[..both], &found[..both], search);
        }
        offset += CHUNK_BYTES as u64;
        if filled < CHUNK_BYTES {
            break;
        }
    }
    // What is missing of the file is marked as well, so that both have marks as far.
    while right_bytes(meta, offset, &mut expected, &mut right, search) > 0 {
        cancel.check()?;
        offset += CHUNK_BYTES as u64;
    }
    let (right, again) = (right.finish(), marker.finish());
    let is_right = again.digest == difference.expected_digest;
    difference.second = Some(match (&difference.found, cold) {
        (Some(first), Ok(())) if *first == again => Second::Agrees,
        (Some(first), Err(why)) if *first == again => Second::NotPossible(why),
        // Two readings that differ are two, wherever they come from.
        _ if is_right => Second::AsExpected,
        _ => Second::Other,
    });
    if is_right {
        place_by_marks(difference, &right);
        return Ok(None);
    }
    if difference.found.is_none() || is_located {
        return Ok(None);
    }
    difference.found_bytes = Some(again.len);
    Ok(Some(sectors))
}

/// Makes the right bytes of the chunk at an offset and marks them; how many there are.
fn right_bytes(meta: &FileMeta, offset: u64, buffer: &mut [u8], marker: &mut Marker, search: &Search<'_>) -> usize {
    let Some(left) = meta.len.checked_sub(offset).filter(|left| *left > 0) else { return 0 };
    let len = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
    search.fill(meta, offset, &mut buffer[..len]);
    marker.add(&buffer[..len]);
    len
}

/// The first reading was wrong somewhere, and its bytes are gone: the marks tell about where.
fn place_by_marks(difference: &mut Difference, right: &Marks) {
    if let Some(place) = difference.found.as_ref().and_then(|found| found.differ(right)) {
        (difference.offset, difference.len) = (Some(place.start), Some(place.end - place.start));
    }
}
