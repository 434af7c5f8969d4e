//! Whether the data had reached the medium when the clock stopped.

use super::{Conclusions, Observed};
use crate::drive::Medium;
use crate::result::{Answer, Flush, Proof, Verdict, flags};
use crate::units::count;

pub(super) fn conclude(seen: &Observed, found: &mut Conclusions) {
    let Flush { method, device_flushes, volatile_cache, reaches_medium } = &seen.flush;
    let counted = match device_flushes {
        Some(1) => "the device counted 1 flush".to_owned(),
        Some(flushes) => format!("the device counted {} flushes", count(*flushes)),
        None => "the device counts no flushes".to_owned(),
    };
    let cache = match volatile_cache {
        Some(true) => "it has a volatile cache",
        Some(false) => "it has no volatile cache",
        None => "whether it has a volatile cache is not known",
    };
    let because = format!("{method}; {counted}; {cache}");
    match reaches_medium {
        _ if seen.target == Medium::Memory => found.prove(Proof::Durable, Verdict::Fails, "the target is memory: nothing in it is durable"),
        _ if seen.durable_ns.is_none() => {
            found.flags.push(flags::FLUSH_UNKNOWN.flag(None, None));
            found.prove(Proof::Durable, Verdict::Unknown, because);
        }
        Answer::Yes => found.prove(Proof::Durable, Verdict::Holds, because),
        Answer::No => {
            found.flags.push(flags::CACHED_WRITE.flag(Some(&because), None));
            found.prove(Proof::Durable, Verdict::Fails, because);
        }
        Answer::Unknown => {
            found.flags.push(flags::FLUSH_UNKNOWN.flag(None, None));
            found.prove(Proof::Durable, Verdict::Unknown, because);
        }
    }
}
