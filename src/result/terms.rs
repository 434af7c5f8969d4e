//! The closed sets of words in the record. A word may be added within a major version of the schema, never taken away or given another meaning.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares an enumeration whose variants are written in JSON and in print as the given words.
macro_rules! closed_set {
    ($(#[$about:meta])* $name:ident { $($(#[$meaning:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum $name {
            $($(#[$meaning])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// The word that stands for it in the record.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

closed_set! {
    /// Where the figures come from.
    Origin {
        /// Work was done on a drive.
        Measured = "measured",
        /// A model of a drive was asked.
        Simulated = "simulated",
        /// Several records, of one machine or many, were joined.
        Merged = "merged",
    }
}

closed_set! {
    /// How the whole record ended.
    Status {
        /// All that was planned was done.
        Complete = "complete",
        /// An error ended it.
        Failed = "failed",
        /// A signal or a limit ended it, or it is not over yet.
        Interrupted = "interrupted",
    }
}

closed_set! {
    /// How one phase ended.
    PhaseStatus {
        /// All of its work was done.
        Ok = "ok",
        /// An error ended it, or files failed.
        Failed = "failed",
        /// A signal or a limit ended it.
        Interrupted = "interrupted",
        /// It was planned and not begun.
        NotRun = "not-run",
        /// The system or the drive cannot do it.
        Unsupported = "unsupported",
    }
}

closed_set! {
    /// What a phase does.
    PhaseKind {
        /// Copies a corpus.
        Copy = "copy",
        /// Reads a corpus.
        Read = "read",
        /// Writes a corpus that comes from memory or is made while writing.
        Write = "write",
        /// Removes a corpus.
        Delete = "delete",
        /// Looks at every name and its attributes.
        Walk = "walk",
        /// Reads or writes blocks of one size in a large file or on a device.
        Block = "block",
        /// Starts a program.
        Launch = "launch",
        /// Plays a recorded stream of operations.
        Replay = "replay",
        /// Waits.
        Idle = "idle",
        /// Brings the drive into a state.
        Precondition = "precondition",
        /// Measures something known, to tell the drive from the tool.
        Control = "control",
    }
}

closed_set! {
    /// An answer that may not be had.
    Answer {
        /// Yes.
        Yes = "yes",
        /// No.
        No = "no",
        /// Nobody knows.
        Unknown = "unknown",
    }
}

closed_set! {
    /// Whether something was in this machine's caches when the window opened.
    Warmth {
        /// It was not.
        Cold = "cold",
        /// It was, or part of it.
        Warm = "warm",
        /// Nobody knows.
        Unknown = "unknown",
    }
}

closed_set! {
    /// What evidence is about.
    Proof {
        /// Data came from the drive, not from this machine's memory.
        Cold = "cold",
        /// The bytes went through the drive.
        Moved = "moved",
        /// The data reached the medium before the clock stopped.
        Durable = "durable",
        /// The rate is below what the link and the tool can do.
        BelowCeilings = "below-ceilings",
        /// The measured drive was not kept waiting by the source.
        SourceNotLimit = "source-not-limit",
        /// Names and attributes came from the drive, not from this machine's memory.
        ColdMetadata = "cold-metadata",
        /// The drive was in the state that was asked for.
        State = "state",
        /// Nobody else used the drives.
        Alone = "alone",
    }
}

closed_set! {
    /// What evidence says.
    Verdict {
        /// It is so.
        Holds = "holds",
        /// It is not so.
        Fails = "fails",
        /// It could not be found out.
        Unknown = "unknown",
    }
}

closed_set! {
    /// How much a flag takes from a figure.
    Severity {
        /// Good to know; the figure stands.
        Note = "note",
        /// The figure stands, with a reservation.
        Weak = "weak",
        /// The figure is no measure of the drive and stays out of the summary.
        Invalid = "invalid",
    }
}

closed_set! {
    /// Which direction of a metric is the better one.
    Better {
        /// More is better.
        Higher = "higher",
        /// Less is better.
        Lower = "lower",
    }
}

closed_set! {
    /// A group of calls in which a copier waits.
    Call {
        /// Opening and creating files.
        Open = "open",
        /// Reading.
        Read = "read",
        /// Writing.
        Write = "write",
        /// Closing.
        Close = "close",
        /// Directories, times, permissions, removals.
        Metadata = "metadata",
        /// Copying within the system (`copy_file_range`): reading and writing in one.
        Transfer = "transfer",
        /// Flushing to the drive.
        Flush = "flush",
        /// Waiting for data to be made.
        Generator = "generator",
        /// Waiting for another program that copies.
        Command = "command",
        /// Looking for files that are not there, and at those that are.
        LookUp = "look-up",
        /// Faulting pages of mapped files in.
        Fault = "fault",
        /// Processor time that a played program thinks.
        Think = "think",
        /// Nothing to do: before a thread got its first file, between files that were not handed out yet, and after its last until all had ended.
        Idle = "idle",
    }
}

closed_set! {
    /// The operation whose latency was measured.
    LatencyOp {
        /// One read call.
        Read = "read",
        /// One write call.
        Write = "write",
        /// One transfer within the system.
        Transfer = "transfer",
        /// One `fsync`.
        Fsync = "fsync",
        /// Opening an existing file.
        Open = "open",
        /// Making a file.
        Create = "create",
        /// Closing a file.
        Close = "close",
        /// One look for a file that is not there, or at one that is.
        LookUp = "look-up",
        /// One page of a mapped file.
        Fault = "fault",
        /// One file from open to close.
        File = "file",
        /// A program until it is ready.
        Ready = "ready",
    }
}

closed_set! {
    /// What a block device was asked for.
    BlockOp {
        /// Reading.
        Read = "read",
        /// Writing.
        Write = "write",
        /// Emptying its cache to the medium.
        Flush = "flush",
        /// Forgetting sectors.
        Discard = "discard",
        /// Anything else.
        Other = "other",
    }
}

closed_set! {
    /// Which part of a request's way a latency of a block device is of.
    BlockSpan {
        /// From when it was asked for, or the oldest of what was joined into it, until the device got it.
        QueueToDispatch = "queue-to-dispatch",
        /// From when the device got it to its last answer.
        DispatchToComplete = "dispatch-to-complete",
    }
}

closed_set! {
    /// What the source and the target of an overlap are.
    Between {
        /// Two drives.
        Drives = "drives",
        /// One drive that is both: reading is the source's part, everything else the target's.
        Directions = "directions",
        /// A target alone: nothing was read from a drive.
        Target = "target",
    }
}

closed_set! {
    /// From when a latency counts.
    StartPoint {
        /// From the moment at which the operation was begun.
        Submit = "submit",
        /// From the moment at which it should have begun.
        Intended = "intended",
    }
}

closed_set! {
    /// What a series of a timeline holds.
    Measured {
        /// Bytes read since the window opened.
        ReadBytes = "read_bytes",
        /// Bytes written since the window opened.
        WrittenBytes = "written_bytes",
        /// Operations since the window opened.
        Ops = "ops",
        /// Position in the work or on the device, bytes.
        Position = "position",
        /// Temperature, degrees Celsius.
        Celsius = "celsius",
    }
}

closed_set! {
    /// What the course of a rate looks like.
    CurveShape {
        /// One rate from beginning to end.
        Steady = "steady",
        /// It went up or down bit by bit.
        Ramp = "ramp",
        /// It changed at once, from level to level.
        Levels = "levels",
        /// There is too little to say.
        Unknown = "unknown",
    }
}

closed_set! {
    /// The direction in which a rate changed.
    RateChange {
        /// It fell.
        Fall = "rate-fall",
        /// It rose.
        Rise = "rate-rise",
    }
}

closed_set! {
    /// What the kernel reported about a drive.
    KernelEvent {
        /// The drive, its link or its controller was reset.
        Reset = "reset",
        /// A request was not answered in time.
        Timeout = "timeout",
        /// A request failed.
        IoError = "io-error",
        /// The drive went away.
        Disconnect = "disconnect",
        /// The link became slower.
        SlowerLink = "slower-link",
    }
}

closed_set! {
    /// Where the data of a phase that writes came from.
    SourceKind {
        /// Files on a drive.
        Drive = "drive",
        /// Memory that was filled before the window opened.
        Memory = "memory",
        /// Made while writing, ahead of the writer.
        Generated = "generated",
    }
}

closed_set! {
    /// What stands below a directory.
    DriveKind {
        /// A block device.
        Block = "block",
        /// Memory (tmpfs, ramfs).
        Memory = "memory",
        /// A file system in user space.
        Fuse = "fuse",
        /// A file system on another machine.
        Network = "network",
        /// Nobody knows.
        Unknown = "unknown",
    }
}

closed_set! {
    /// How a file differs from its manifest.
    Difference {
        /// It is not there.
        Missing = "missing",
        /// It cannot be read.
        Unreadable = "unreadable",
        /// It ends early; what is there is right.
        Truncated = "truncated",
        /// It goes on after its end.
        TooLong = "too-long",
        /// It holds the bytes of another file.
        Swapped = "swapped",
        /// Bytes became zero.
        Zeroed = "zeroed",
        /// A few bits changed.
        BitsFlipped = "bits-flipped",
        /// Bytes are those that belong to another place.
        Elsewhere = "elsewhere",
        /// Bytes are those of an earlier run: the write was lost.
        Stale = "stale",
        /// Bytes belong to no place that was written.
        Garbage = "garbage",
        /// Bytes changed to something else: in several ways, or to what is not known.
        Changed = "changed",
    }
}

impl Difference {
    /// What bytes are, as it stands behind them: "bytes 0 to 511: zero".
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Unreadable => "unreadable",
            Self::Truncated => "cut off",
            Self::TooLong => "too many",
            Self::Swapped | Self::Elsewhere => "the bytes of another place",
            Self::Zeroed => "zero",
            Self::BitsFlipped => "a few bits wrong",
            Self::Stale => "what an earlier run had written",
            Self::Garbage => "garbage",
            Self::Changed => "something else",
        }
    }
}

closed_set! {
    /// What a second reading from the drive showed of a file that differed at the first.
    SecondRead {
        /// The same wrong bytes.
        Agrees = "agrees",
        /// It differs from the first: the right bytes.
        DiffersAsExpected = "differs-as-expected",
        /// It differs from the first: other wrong bytes.
        DiffersOther = "differs-other",
        /// There was none, or it may have been answered by a cache.
        NotPossible = "not-possible",
    }
}

impl SecondRead {
    /// As part of a sentence.
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Agrees => "a second cold read agrees",
            Self::DiffersAsExpected => "a second cold read gave the right bytes",
            Self::DiffersOther => "a second cold read gave other wrong bytes",
            Self::NotPossible => "a second cold read was not possible",
        }
    }
}

closed_set! {
    /// Who is to blame for wrong bytes.
    Blame {
        /// The drive that was copied from.
        Source = "source",
        /// The drive that was copied to.
        Target = "target",
        /// The machine: its memory, a bus, a cable or a hub.
        Host = "host",
        /// Nobody can tell.
        Unknown = "unknown",
    }
}

impl Blame {
    /// As part of a sentence.
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Source => "the source is to blame",
            Self::Target => "the target is to blame",
            Self::Host => "the host is to blame",
            Self::Unknown => "who is to blame is unknown",
        }
    }
}

closed_set! {
    /// What a drive says about its wear and heat.
    Reading {
        /// How warm it is.
        Temperature = "temperature",
        /// From which temperature on it warns.
        TemperatureLimit = "temperature-limit",
        /// The share of its rated life that it has used; may exceed 100.
        LifeUsed = "life-used",
        /// The share of the life of an eMMC's first kind of memory that is used, at most: it is told in steps of ten.
        LifeUsedA = "life-used-a",
        /// The share of the life of an eMMC's second kind of memory that is used, at most.
        LifeUsedB = "life-used-b",
        /// Reserve blocks of an eMMC: 1 normal, 2 warning (80 % used), 3 urgent (90 % used).
        PreEndOfLife = "pre-end-of-life",
        /// Reserve blocks that are left.
        Spare = "spare",
        /// The reserve from which on it warns.
        SpareLimit = "spare-limit",
        /// What hosts have written to it in its life.
        HostWritten = "host-written",
        /// What hosts have read from it in its life.
        HostRead = "host-read",
        /// What it has written to its own memory in its life.
        MediumWritten = "medium-written",
        /// How long it has been on.
        PowerOn = "power-on",
        /// How often it was switched on.
        PowerCycles = "power-cycles",
        /// How often it lost power without warning.
        UnsafeShutdowns = "unsafe-shutdowns",
        /// Errors of its medium.
        MediaErrors = "media-errors",
        /// Sectors or blocks that were replaced.
        Reallocated = "reallocated",
        /// Sectors that wait for being replaced.
        Pending = "pending",
        /// Errors on its cable.
        LinkErrors = "link-errors",
        /// The warnings of NVMe, a bit each.
        CriticalWarning = "critical-warning",
    }
}

closed_set! {
    /// What a reading is counted in.
    Unit {
        /// Degrees Celsius.
        Celsius = "celsius",
        /// Percent.
        Percent = "percent",
        /// Bytes.
        Bytes = "bytes",
        /// Hours.
        Hours = "hours",
        /// How often, or how many.
        Count = "count",
        /// A stage of a scale.
        Stage = "stage",
        /// Bits, each with a meaning.
        Bits = "bits",
    }
}

closed_set! {
    /// Which way a reading gets worse.
    Worse {
        /// More is worse.
        Up = "up",
        /// Less is worse.
        Down = "down",
        /// It only tells how much was done, or where a limit is.
        Neither = "neither",
    }
}

closed_set! {
    /// What a check of the capacity comes to.
    CapacityVerdict {
        /// All that was written was read back.
        HoldsAll = "holds-all",
        /// The size is faked: addresses beyond the real end are taken for others, whose data they overwrite.
        Wraps = "wraps",
        /// The size is faked: what is written beyond the real end is gone.
        Discards = "discards",
        /// The size is faked: one block stands for all addresses beyond the real end.
        Aliases = "aliases",
        /// The size is faked: beyond the real end only what was written last can be read for a while.
        HidesBehindCache = "hides-behind-cache",
        /// The size may be right, but data were lost in places.
        Damaged = "damaged",
        /// Too little was read to say.
        Unknown = "unknown",
    }
}

closed_set! {
    /// What a stretch of test data turned out to be.
    Found {
        /// What was written there.
        Good = "good",
        /// What was written elsewhere in this run.
        Elsewhere = "elsewhere",
        /// Zeros.
        Zeros = "zeros",
        /// Ones.
        Ones = "ones",
        /// What an earlier run had written.
        Stale = "stale",
        /// What was written there, but for a few bits.
        BitsFlipped = "bits-flipped",
        /// Anything else.
        Garbage = "garbage",
        /// The system gave no data.
        Unreadable = "unreadable",
        /// Several of these, too small to be told apart.
        Mixed = "mixed",
    }
}

impl Found {
    /// As it stands behind an amount: "8.19 kB unreadable".
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Elsewhere => "of another place",
            Self::Zeros => "zeros",
            Self::Ones => "ones",
            Self::Stale => "of an earlier run",
            Self::BitsFlipped => "with a few bits wrong",
            Self::Garbage => "garbage",
            Self::Unreadable => "unreadable",
            Self::Mixed => "of several kinds",
        }
    }
}

closed_set! {
    /// What ended an endurance test.
    EnduranceEnd {
        /// The drive lost something.
        Loss = "loss",
        /// The limit on time.
        MaxTime = "max-time",
        /// The limit on bytes.
        MaxWrite = "max-write",
        /// A signal.
        Interrupted = "interrupted",
        /// Something else than the drive failed.
        Failed = "failed",
    }
}

closed_set! {
    /// From where places on a drive are known.
    Ground {
        /// The file system said where on the device the data lie.
        Physical = "physical",
        /// From the order of writing: about the same on a drive that was empty.
        FillOrder = "fill-order",
    }
}
