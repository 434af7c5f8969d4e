//! Whether the data came from the drive, not from this machine's memory.

use super::{Conclusions, MOVED_SHARE, Observed, Origin, least_share, percent};
use crate::cache::evict::Wanted;
use crate::drive::Medium;
use crate::result::{Proof, Severity, Verdict, Warmth, flags};
use crate::units::Bytes;

pub(super) fn conclude(seen: &Observed, found: &mut Conclusions) {
    let Some(cache) = &seen.cache else {
        let what = if seen.origin == Origin::Generated { "made while it was written" } else { "in memory on purpose" };
        return found.prove(Proof::Cold, Verdict::Holds, format!("the source is {what}: nothing was read from a drive"));
    };
    let stored = seen.source_stored_bytes.unwrap_or(seen.bytes);
    let share = least_share(&seen.source_counted, |counters| counters.read_bytes, stored);
    found.device_read_share = share;
    let length = if seen.source_stored_bytes.is_some() { "stored" } else { "that the files have" };
    let served = share.map(|share| format!("the drive served {} of the {} {length}", percent(share), Bytes(stored)));
    let (verdict, because) = match (cache.data, share) {
        (_, _) if seen.origin == Origin::Drive(Medium::Memory) => (Verdict::Fails, "the source lies in memory, which is no drive".to_owned()),
        (Warmth::Warm, _) => {
            let resident = cache.resident_bytes.unwrap_or(0) as f64 / cache.sampled_bytes.max(1) as f64;
            (Verdict::Fails, format!("{} of a sample was in this machine's cache before the window", percent(resident)))
        }
        _ if seen.shares_blocks() => (Verdict::Unknown, "blocks were shared: nothing had to be read".to_owned()),
        (Warmth::Cold, Some(share)) if share < MOVED_SHARE && seen.source_stored_bytes.is_none() => {
            let served = served.unwrap_or_default();
            (
                Verdict::Unknown,
                format!("nothing was cached by this machine, and {served}; in how many bytes the file system stores them is not known"),
            )
        }
        (_, Some(share)) if share < MOVED_SHARE && stored > 0 => {
            (Verdict::Fails, format!("only part came from the drive: {}", served.unwrap_or_default()))
        }
        (Warmth::Unknown, _) => (Verdict::Unknown, "whether content was cached could not be seen".to_owned()),
        (Warmth::Cold, None) => {
            let elsewhere = seen.cache_elsewhere.map_or_else(String::new, |who| format!("; {who} may hold it"));
            (Verdict::Unknown, format!("nothing was cached by this machine, but there are no counters of a drive to confirm it{elsewhere}"))
        }
        (Warmth::Cold, Some(_)) if seen.cache_below => {
            (Verdict::Unknown, "below the loop device lies a file that this machine may cache, and only root can drop that".to_owned())
        }
        (Warmth::Cold, Some(_)) if seen.others_may_have_read(stored) => {
            (Verdict::Unknown, format!("{}, but others may have read it", served.unwrap_or_default()))
        }
        (Warmth::Cold, Some(_)) => {
            let warm = if cache.metadata == Warmth::Warm { "; names and attributes were warm" } else { "" };
            (Verdict::Holds, format!("nothing was cached, and {}{warm}", served.unwrap_or_default()))
        }
    };
    if verdict == Verdict::Fails {
        let mut flag = flags::NOT_COLD.flag(Some(&because), None);
        if seen.wanted == Wanted::Warm {
            // Asked for: the figure is what the person wants to know.
            flag.severity = Severity::Weak;
        }
        found.flags.push(flag);
    } else {
        if cache.metadata == Warmth::Warm {
            found.flags.push(flags::METADATA_WARM.flag(None, None));
        }
        if verdict == Verdict::Holds {
            found.flags.push(flags::HOST_COLD_ONLY.flag(None, None));
        }
    }
    found.prove(Proof::Cold, verdict, because);
    metadata(seen, cache.metadata, stored, found);
}

/// The least that a drive serves of metadata: a block …
const LEAST_METADATA: u64 = 4096;
/// … and for each file half of the smallest inode in use.
const INODE: u64 = 64;

/// Names and attributes: they are cold when the system has dropped them, and the drive served more than content then.
fn metadata(seen: &Observed, warmth: Warmth, stored: u64, found: &mut Conclusions) {
    let beyond = seen.source_counted.iter().map(|counters| counters.read_bytes.saturating_sub(stored)).min();
    let (verdict, because) = match (warmth, beyond) {
        (Warmth::Warm, _) => (Verdict::Fails, "only root can drop names and attributes from this machine's cache".to_owned()),
        (Warmth::Unknown, _) => (Verdict::Unknown, "whether names and attributes were cached could not be seen".to_owned()),
        (Warmth::Cold, None) => (Verdict::Unknown, "they were dropped, but there are no counters of a drive to confirm it".to_owned()),
        (Warmth::Cold, Some(bytes)) if bytes < LEAST_METADATA.max(seen.files.saturating_mul(INODE)) => {
            (Verdict::Unknown, format!("they were dropped, and the drive served only {} besides the content", Bytes(bytes)))
        }
        (Warmth::Cold, Some(bytes)) => (Verdict::Holds, format!("they were dropped, and the drive served {} besides the content", Bytes(bytes))),
    };
    found.prove(Proof::ColdMetadata, verdict, because);
}
