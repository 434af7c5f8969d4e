//! The file that makes a directory a workspace: what it says, and what a killed creation may have left of it.

/// The name of the file.
pub const NAME: &str = "MARKER";

const FIRST_LINE: &str = "copysim-workspace ";
const VERSION: u32 = 1;
const EXPLANATION: &str = "copysim made everything in this directory and deletes it again: copysim clean DIR\n";

/// What the content of a marker file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    /// A workspace of ours.
    Valid,
    /// A workspace of a newer copysim, with its version.
    Newer(u32),
    /// What a creation leaves that was killed, or whose power was cut, before it had written the marker whole.
    HalfMade,
    /// Not ours.
    Foreign,
}

/// No marker is longer.
pub const MAX_BYTES: usize = 4096;

/// The content of a new marker; `id` tells workspaces apart.
pub fn content(id: u64) -> String {
    format!("{FIRST_LINE}{VERSION}\nid {id:016x}\n{EXPLANATION}")
}

/// Judges what was found.
pub fn judge(found: &[u8]) -> Marker {
    read(found).unwrap_or_else(|| {
        let whole = content(0);
        // The identifier is the only part that may differ.
        let id = whole.find("id ").map_or(0, |at| at + 3);
        let same = |(at, byte): (usize, &u8)| whole.as_bytes().get(at) == Some(byte) || (id..id + 16).contains(&at) && byte.is_ascii_hexdigit();
        let is_start = found.len() < whole.len() && found.iter().enumerate().all(same);
        let is_unwritten = found.len() <= whole.len() && found.iter().all(|&byte| byte == 0);
        if is_start || is_unwritten { Marker::HalfMade } else { Marker::Foreign }
    })
}

/// A marker that is whole.
fn read(found: &[u8]) -> Option<Marker> {
    let text = std::str::from_utf8(found).ok()?;
    let (first, rest) = text.strip_prefix(FIRST_LINE)?.split_once('\n')?;
    let version: u32 = first.parse().ok()?;
    if version > VERSION {
        return Some(Marker::Newer(version));
    }
    let (id, rest) = rest.strip_prefix("id ")?.split_once('\n')?;
    let valid = version == VERSION && id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) && rest == EXPLANATION;
    valid.then_some(Marker::Valid)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_marker_is_valid_and_every_start_of_one_half_made(id in any::<u64>(), cut in 0..1000_usize) {
            let whole = content(id);
            prop_assert_eq!(judge(whole.as_bytes()), Marker::Valid);
            let cut = cut % whole.len();
            prop_assert_eq!(judge(&whole.as_bytes()[..cut]), Marker::HalfMade);
            prop_assert_eq!(judge(&vec![0; cut]), Marker::HalfMade);
        }

        #[test]
        fn anything_else_is_foreign(bytes in prop::collection::vec(1..=255_u8, 1..100)) {
            prop_assume!(!content(0).as_bytes().starts_with(&bytes));
            prop_assert_eq!(judge(&bytes), Marker::Foreign);
        }
    }

    #[test]
    fn a_newer_version_is_told_and_a_changed_marker_is_foreign() {
        assert_eq!(judge(b"copysim-workspace 2\nanything"), Marker::Newer(2));
        assert_eq!(judge(content(7).replace("copysim made", "I made").as_bytes()), Marker::Foreign);
        assert_eq!(judge(format!("{} ", content(7)).as_bytes()), Marker::Foreign);
    }
}
