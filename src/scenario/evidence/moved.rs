//! Whether the bytes of the copy went through the target's drive, and what became of those that did not.

use super::{Conclusions, MOVED_SHARE, Observed, least_share, percent};
use crate::drive::Medium;
use crate::result::{Answer, Proof, Verdict, flags};
use crate::units::Bytes;

/// A file of this length has its own blocks.
const LARGE_FILE: u64 = 16 << 10;
/// A drive that took this many times what was copied was given more than a file system's bookkeeping.
const AMPLIFIED_SHARE: f64 = 1.5;

fn compressed(found: &mut Conclusions, because: String) {
    found.flags.push(flags::COMPRESSED.flag(Some(&because), None));
    found.prove(Proof::Moved, Verdict::Fails, because);
}

pub(super) fn conclude(seen: &Observed, found: &mut Conclusions) {
    let share = least_share(&seen.target_counted, |counters| counters.written_bytes, seen.bytes);
    let wrote = share.map_or_else(String::new, |share| format!("the drive took {} of the {} copied", percent(share), Bytes(seen.bytes)));
    if seen.shares_blocks() {
        let because = format!("{} of the copy shares its blocks with other files; {wrote}", percent(seen.shared_share.unwrap_or(0.0)));
        found.flags.push(flags::SHARED_BLOCKS.flag(Some(&because), None));
        return found.prove(Proof::Moved, Verdict::Fails, because);
    }
    let stored = seen.copy_stored_share;
    match share {
        _ if seen.target == Medium::Memory => {
            found.flags.push(flags::CACHED_WRITE.flag(Some("the target is memory"), None));
            found.prove(Proof::Moved, Verdict::Fails, "the target lies in memory, which is no drive");
        }
        None => {
            let because = if stored.is_some_and(|stored| stored < MOVED_SHARE) {
                found.flags.push(flags::COMPRESSED.flag(None, None));
                "the target stores less than was copied, and there are no counters of a drive"
            } else {
                "there are no counters of a drive to see it by"
            };
            found.prove(Proof::Moved, Verdict::Unknown, because);
        }
        // Where every piece is written twice, half as many bytes look like all of them. Files that are small may be stored in fewer blocks for other reasons.
        Some(_) if seen.bytes / seen.files.max(1) >= LARGE_FILE && stored.is_some_and(|stored| stored < MOVED_SHARE) => {
            compressed(found, format!("{wrote}, which it stores in {} of their length", percent(stored.unwrap_or(0.0))));
        }
        Some(_) if seen.copy_encoded_share.is_some_and(|encoded| encoded > 1.0 - MOVED_SHARE) => {
            compressed(found, format!("{wrote}, of which it stores {} compressed", percent(seen.copy_encoded_share.unwrap_or(0.0))));
        }
        Some(share) if share >= MOVED_SHARE && seen.others_may_have_written() => {
            found.prove(Proof::Moved, Verdict::Unknown, format!("{wrote}, but others may have written it"));
        }
        Some(share) if share >= MOVED_SHARE => {
            if share >= AMPLIFIED_SHARE {
                found.flags.push(flags::AMPLIFIED.flag(Some(&wrote), None));
            }
            found.prove(Proof::Moved, Verdict::Holds, wrote);
        }
        Some(_) if stored.is_some_and(|stored| stored < MOVED_SHARE) => {
            compressed(found, format!("{wrote}, which it stores in {} of their length", percent(stored.unwrap_or(0.0))));
        }
        // Stored as long as it is, written less: it is still on its way, or was compressed where it can't be seen.
        Some(share) => {
            let flag = if seen.flush.reaches_medium == Answer::Yes && share > 0.0 { &flags::COMPRESSED } else { &flags::CACHED_WRITE };
            found.flags.push(flag.flag(Some(&wrote), None));
            found.prove(Proof::Moved, Verdict::Fails, wrote);
        }
    }
}
