//! How the kernel treats a block device: sector sizes, scheduler, read-ahead, write cache, discard. Meanings: `Documentation/ABI/stable/sysfs-block` of the kernel.

use std::path::Path;

use crate::platform::Host;
use crate::result::Queue;

/// Reads the queue of a block device by its place in sysfs.
#[must_use]
pub fn read(host: &Host, directory: &Path) -> Queue {
    let path = |fact: &str| directory.join("queue").join(fact);
    let number = |fact: &str| host.number(path(fact));
    let kib = |fact: &str| number(fact).and_then(|kib| kib.checked_mul(1024));
    Queue {
        logical_block_bytes: number("logical_block_size"),
        physical_block_bytes: number("physical_block_size"),
        scheduler: host.fact(path("scheduler")).and_then(|line| chosen(&line)),
        read_ahead_bytes: kib("read_ahead_kb"),
        max_request_bytes: kib("max_sectors_kb"),
        requests: number("nr_requests"),
        write_cache: host.fact(path("write_cache")),
        discard_max_bytes: number("discard_max_bytes"),
    }
}

/// Of `none [mq-deadline] kyber` the one in brackets; a lone word is the only one there is.
fn chosen(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    let bracketed = line.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    let lone = words.next().filter(|_| words.next().is_none());
    bracketed.or(lone).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_in_use_is_the_one_in_brackets() {
        assert_eq!(chosen("none [mq-deadline] kyber bfq").as_deref(), Some("mq-deadline"));
        assert_eq!((chosen("none").as_deref(), chosen("none kyber"), chosen("")), (Some("none"), None, None));
    }
}
