//! The registry of flags: every reservation that copysim can make about a figure, how much it takes from it, and what it means.

use super::document::{Flag, Place};
use super::terms::Severity;

/// A reservation that copysim can make.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name in records and tables.
    pub code: &'static str,
    /// How much it takes from the figure. An [`Severity::Invalid`] one keeps the run out of the summary.
    pub severity: Severity,
    /// What happened, as a sentence without its full stop, so that figures can follow.
    pub sentence: &'static str,
    /// What it means for the figure, and what can be done.
    pub explanation: &'static str,
}

/// Declares one constant for each flag and the list of all.
macro_rules! registry {
    ($($name:ident = $code:literal, $severity:ident, $sentence:literal, $explanation:literal;)+) => {
        $(
            #[doc = concat!("`", $code, "`: ", $sentence, ".")]
            pub static $name: Entry = Entry { code: $code, severity: Severity::$severity, sentence: $sentence, explanation: $explanation };
        )+

        /// All of them.
        pub static ALL: &[&Entry] = &[$(&$name),+];
    };
}

registry! {
    SHARED_BLOCKS = "shared-blocks", Invalid, "The file system shared blocks instead of moving bytes",
        "The copy took almost no time because nothing was copied. The seconds are what a user of this file system waits; a rate would mean nothing.";
    SUSPENDED = "suspended", Invalid, "The machine was suspended inside the window",
        "The time includes sleep. Keep the machine awake and measure again.";
    NOT_COLD = "not-cold", Invalid, "Part of the data came from this machine's memory instead of the drive",
        "The figure is partly that of memory. Run as root, so that caches can be dropped, or say --cache warm if that is what you want to know.";
    FILES_IN_USE = "files-in-use", Weak, "Part of the program was in use and could not be brought out of memory",
        "A program that runs already, or whose interpreter does, is found in memory in part: its first start after the machine's own takes longer. End it, and measure again.";
    NOT_WARM = "not-warm", Weak, "A start that should have come from memory had to read from a drive",
        "Memory is short, or the program reads something else each time. The second start is slower than it could be.";
    IMPOSSIBLE_RATE = "impossible-rate", Invalid, "The rate is higher than the drive's link can carry",
        "Something other than the drive answered: a cache, or blocks that were shared or left out.";
    CACHED_WRITE = "cached-write", Invalid, "Data were still in this machine's memory when the clock stopped",
        "The drive had received fewer bytes than were written. The flush did not do what it promises.";
    DATA_DIFFER = "data-differ", Invalid, "What the drive gives back is not what was written",
        "No figure of a run that lost data is worth anything. Do not trust this drive, its cable or its hub with anything you need.";
    TOO_SHORT = "too-short", Weak, "The window was too short for a rate",
        "Below one second chance decides. The seconds stand; for a rate use a larger --scale.";
    METADATA_WARM = "metadata-warm", Weak, "Names and attributes were in this machine's memory; only the content was cold",
        "An ordinary user can drop cached content but not cached names. Small files come out a little too fast; run as root to measure both cold.";
    TOOL_LIMITED = "tool-limited", Weak, "copysim itself could not go much faster",
        "The drive may be faster than the figure says: it is a lower bound.";
    SOURCE_LIMITED = "source-limited", Weak, "The target waited for the source",
        "The time is what this pair of drives takes; the target alone may be faster. Use a faster source, or let the data be made in memory.";
    FOREIGN_IO = "foreign-io", Weak, "Other programs used the drive inside the window",
        "They took time from the measurement. Close them, or wait until the drive is idle.";
    COMPRESSED = "compressed", Weak, "The data were stored in less space than their length",
        "A compressing or sparse file system moved fewer bytes than the files have. The time stands; it is not the drive's own rate.";
    DEDUP_SUSPECTED = "dedup-suspected", Weak, "New data took longer than data that the drive had seen before",
        "A file system or a drive that keeps equal data once would do this: files of your own, new to the drive, take as long as the control.";
    STALL = "stall", Weak, "The work stood still for a while",
        "The drive, its cable or its hub stopped answering and went on later. The time includes the stop; look into the kernel's log.";
    DRIFT = "drift", Weak, "The rate went one way bit by bit",
        "The drive had not reached a steady state: heat, a cache that fills, or space that has to be cleared first.";
    DEVICE_RESET = "device-reset", Weak, "The kernel reset the drive or its link, lost it, or waited for it in vain",
        "The time includes that. Cable, hub, port or power are the usual reasons; try others before you judge the drive.";
    DEVICE_ERROR = "device-error", Weak, "The kernel reported failed requests of the drive",
        "They were repeated or given up. The drive or what it hangs on is not sound; look into the kernel's log.";
    FLUSH_UNKNOWN = "flush-unknown", Weak, "Whether the data reached the medium could not be found out",
        "The system said that it had flushed, but no counter of the drive confirms it. The drive may hold data in a volatile cache.";
    SOURCE_FRAGMENTED = "source-fragmented", Weak, "The source files lie in many pieces",
        "Reading them costs extra seeks, which matters on drives that turn. Stage the corpus again on a file system with room.";
    FIRST_RUN = "first-run", Note, "The first run differs clearly from the others",
        "A new copy, a sleeping drive or an empty write cache makes first runs differ. For one copy a day the first run is the true one.";
    AMPLIFIED = "amplified", Note, "The drive was given far more than was copied",
        "Every piece is written several times (a mirror, a journal of data), or small files cost more in bookkeeping than in content. The time is what you wait.";
    STATE_UNPROVEN = "state-unproven", Weak, "Whether the drive was in the state that was asked for is not shown",
        "It was told, or written to, as asked; its counters do not confirm that it took effect.";
    CLIFF = "cliff", Note, "The rate fell for good part of the way through",
        "The drive's fast cache was full. Before that point it is as fast as the first part, after it only as fast as the last.";
    POSITION_DIFFERS = "position-differs", Note, "The runs worked at different places of the drive",
        "On drives that turn, outer tracks are faster than inner ones; on flash it seldom matters.";
    SOURCE_CHANGED = "source-changed", Invalid, "The source was changed while it was copied",
        "Some other program wrote to it. The copy can't be compared with what the source was, and says nothing about a drive: measure again when nothing writes there.";
    ATTRIBUTES_LOST = "attributes-lost", Note, "The target does not keep all attributes of a file",
        "The data are there. Without times or permissions the copier did a little less than on a file system that keeps them.";
    CLOCK_SET = "clock-set", Note, "The wall clock was set during the measurement",
        "Durations come from another clock and stand; dates in this record can't be compared with each other.";
    HOST_COLD_ONLY = "host-cold-only", Note, "This machine's caches were cold; the drive's own cache cannot be seen",
        "A drive may answer from its own memory what it was just given. Large corpora make it matter little.";
}

/// The entry with a code, `None` for a code of a newer copysim.
#[must_use]
pub fn explain(code: &str) -> Option<&'static Entry> {
    ALL.iter().copied().find(|entry| entry.code == code)
}

impl Entry {
    /// The flag for a record: the sentence and, where given, the figures behind it.
    #[must_use]
    pub fn flag(&self, figures: Option<&str>, at: Option<Place>) -> Flag {
        let message = match figures {
            Some(figures) => format!("{}: {figures}", self.sentence),
            None => self.sentence.to_owned(),
        };
        Flag { code: self.code.to_owned(), severity: self.severity, message, at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_code_is_there_once_and_can_be_explained() {
        let codes: BTreeSet<&str> = ALL.iter().map(|entry| entry.code).collect();
        assert_eq!(codes.len(), ALL.len());
        let promised = "shared-blocks suspended not-cold metadata-warm impossible-rate tool-limited source-limited foreign-io cached-write compressed \
            dedup-suspected too-short first-run cliff stall drift flush-unknown source-fragmented position-differs host-cold-only";
        for code in promised.split_whitespace() {
            assert_eq!(explain(code).map(|entry| entry.code), Some(code));
        }
        assert_eq!(explain("of-tomorrow"), None);
        for entry in ALL {
            assert!(!entry.sentence.ends_with('.') && entry.explanation.ends_with('.'), "{}", entry.code);
        }
    }

    #[test]
    fn a_flag_carries_the_figures_behind_it() {
        let flag = FOREIGN_IO.flag(Some("5.2 % of its traffic"), None);
        assert_eq!(flag.message, "Other programs used the drive inside the window: 5.2 % of its traffic");
        assert_eq!((flag.code.as_str(), flag.severity), ("foreign-io", Severity::Weak));
    }
}
