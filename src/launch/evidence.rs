//! What follows from what was seen of a start: proofs with their reasons, and flags. Pure functions: nothing is looked at here.

use crate::cache::evict::{Prepared, Wanted};
use crate::drive::{Counters, Medium, ProcessIo};
use crate::result::{Evidence, Flag, LaunchFiles, Proof, Verdict, Warmth, flags};
use crate::units::{Bytes, count, duration, files as files_in_words, rate};

/// A machine that slept for longer than this was suspended; the two clocks are read one after the other.
const SUSPENDED_NS: u64 = 50_000_000;
/// Others may move this share of what the drive moved before it matters …
const FOREIGN_SHARE: f64 = 0.02;
/// … and this much, which no start of a program feels.
const FOREIGN_BYTES: u64 = 256 << 10;
/// A warm start that had to read more than this from the drive was not warm.
const WARM_BYTES: u64 = 256 << 10;
const SECOND_NS: u64 = 1_000_000_000;

/// What was seen of a start.
#[derive(Debug, Clone)]
pub(super) struct Observed {
    pub wanted: Wanted,
    pub medium: Medium,
    pub cache: Prepared,
    pub files: LaunchFiles,
    /// What the drive's devices counted: the nearest ones, and the physical ones under them where these are others.
    pub counted: Vec<Counters>,
    /// What the kernel booked to the program and all that it started.
    pub program_io: Option<ProcessIo>,
    /// What it booked to this process in the same time.
    pub own_io: Option<ProcessIo>,
    /// What it booked to all others that can be seen.
    pub others_io: ProcessIo,
    /// Which of them moved most.
    pub busiest: Option<String>,
    /// What the drive moved before the window, bytes/s.
    pub baseline_bytes_per_s: Option<u64>,
    /// Below the file system lies a file that this machine may cache and that was not dropped.
    pub cache_below: bool,
    /// Who else may hold what was read before.
    pub cache_elsewhere: Option<&'static str>,
    /// For how long the machine slept in the window.
    pub suspended_ns: u64,
}

/// What follows.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Conclusions {
    pub evidence: Vec<Evidence>,
    pub flags: Vec<Flag>,
    /// What others moved.
    pub foreign_bytes: Option<u64>,
}

impl Conclusions {
    fn prove(&mut self, proof: Proof, verdict: Verdict, because: impl Into<String>) {
        self.evidence.push(Evidence { proof, verdict, because: because.into() });
    }
}

/// Draws the conclusions.
pub(super) fn conclude(seen: &Observed) -> Conclusions {
    let mut found = Conclusions::default();
    match seen.wanted {
        Wanted::Cold => {
            cold(seen, &mut found);
            metadata(seen, &mut found);
        }
        Wanted::Warm => warm(seen, &mut found),
        Wanted::AsIs => found.prove(Proof::Cold, Verdict::Unknown, "caches were left as they were"),
    }
    alone(seen, &mut found);
    if seen.suspended_ns > SUSPENDED_NS {
        found.flags.push(flags::SUSPENDED.flag(Some(&duration(seen.suspended_ns)), None));
    }
    found
}

/// The least that any level of devices served.
fn served(seen: &Observed) -> Option<Counters> {
    seen.counted.iter().copied().min_by_key(|counters| counters.read_bytes)
}

/// "the drive served 12.3 MB in 345 reads"
fn served_in_words(counters: &Counters) -> String {
    let reads = if counters.reads == 1 { "1 read".to_owned() } else { format!("{} reads", count(counters.reads)) };
    format!("the drive served {} in {reads}", Bytes(counters.read_bytes))
}

/// What of the program's files could not be brought out of memory.
fn in_use(files: &LaunchFiles) -> Option<String> {
    let bytes = files.resident_bytes.filter(|bytes| *bytes > 0)?;
    let names: Vec<&str> = files.resident.iter().map(|path| path.rsplit('/').next().unwrap_or(path)).collect();
    let known = files_in_words(files.n);
    Some(format!(
        "of {known} of it that are known ({}) {} stayed in memory because programs that run use them: {}",
        Bytes(files.bytes),
        Bytes(bytes),
        names.join(", ")
    ))
}

/// Whether the start had to be read from the drive.
fn cold(seen: &Observed, found: &mut Conclusions) {
    let drive = served(seen);
    let (verdict, because, flag) = match (seen.cache.data, drive) {
        (..) if seen.medium == Medium::Memory => (Verdict::Fails, "it lies in memory, which is no drive".to_owned(), Some(&flags::NOT_COLD)),
        (_, Some(counters)) if counters.read_bytes == 0 => (Verdict::Fails, "the drive served nothing".to_owned(), Some(&flags::NOT_COLD)),
        (_, Some(counters)) if seen.program_io.is_some_and(|io| io.read_bytes == 0) => (
            Verdict::Fails,
            format!("{}, but nothing of it to this program: what it is made of was in use", served_in_words(&counters)),
            Some(&flags::NOT_COLD),
        ),
        (Warmth::Warm, _) => {
            let resident = seen.files.own_resident_bytes.unwrap_or(0);
            let of = seen.files.own_bytes.unwrap_or(0);
            (
                Verdict::Fails,
                format!("{} of its own file of {} stayed in memory: it runs already", Bytes(resident), Bytes(of)),
                Some(&flags::FILES_IN_USE),
            )
        }
        (_, None) => {
            let elsewhere = seen.cache_elsewhere.map_or_else(String::new, |who| format!("; {who} may hold it"));
            (Verdict::Unknown, format!("there are no counters of a drive to see it by{elsewhere}"), None)
        }
        (_, Some(_)) if seen.cache_below => {
            (Verdict::Unknown, "below the loop device lies a file that this machine may cache, and only root can drop that".to_owned(), None)
        }
        (Warmth::Unknown, Some(counters)) => {
            (Verdict::Unknown, format!("{}; whether anything was in memory before could not be seen", served_in_words(&counters)), None)
        }
        (Warmth::Cold, Some(counters)) if seen.cache.metadata != Warmth::Cold => {
            let words = "its own file, its interpreter and its libraries were brought out of memory; of what else it reads that is not known";
            (Verdict::Unknown, format!("{}; {words}", served_in_words(&counters)), None)
        }
        (Warmth::Cold, Some(counters)) => {
            let in_use = in_use(&seen.files).map_or_else(String::new, |words| format!("; {words}"));
            (Verdict::Holds, format!("{}{in_use}", served_in_words(&counters)), None)
        }
    };
    if let Some(entry) = flag {
        found.flags.push(entry.flag(Some(&because), None));
    }
    if verdict == Verdict::Holds {
        found.flags.push(flags::HOST_COLD_ONLY.flag(None, None));
    }
    found.prove(Proof::Cold, verdict, because);
}

/// Names and attributes: they are cold when the system has dropped them.
fn metadata(seen: &Observed, found: &mut Conclusions) {
    let (verdict, because) = match (seen.cache.metadata, served(seen)) {
        (Warmth::Cold, Some(counters)) if counters.reads > 0 => (Verdict::Holds, "they were dropped with everything else"),
        (Warmth::Cold, _) => (Verdict::Unknown, "they were dropped, but nothing of a drive confirms it"),
        (Warmth::Unknown, _) => (Verdict::Unknown, "whether names and attributes were cached could not be seen"),
        (Warmth::Warm, _) => {
            found.flags.push(flags::METADATA_WARM.flag(None, None));
            (Verdict::Fails, "only root can drop names and attributes from this machine's cache")
        }
    };
    found.prove(Proof::ColdMetadata, verdict, because);
}

/// Whether everything came from memory, as was wanted.
fn warm(seen: &Observed, found: &mut Conclusions) {
    // What the program itself had to have read, where that is known: a drive may serve others.
    let read = seen.program_io.map(|io| io.read_bytes).or_else(|| served(seen).map(|counters| counters.read_bytes));
    let (verdict, because) = match read {
        None => (Verdict::Unknown, "there are no counters to see it by".to_owned()),
        Some(0) => (Verdict::Holds, "it was started before, and nothing had to be read from a drive".to_owned()),
        Some(bytes) if bytes <= WARM_BYTES => {
            (Verdict::Holds, format!("it was started before, and only {} had to be read from a drive", Bytes(bytes)))
        }
        Some(bytes) => (Verdict::Fails, format!("it was started before, but {} had to be read from a drive", Bytes(bytes))),
    };
    if verdict == Verdict::Fails {
        found.flags.push(flags::NOT_WARM.flag(Some(&because), None));
    }
    found.prove(Proof::State, verdict, because);
}

/// Whether nobody else used the drive. Reads are exact: what the nearest devices served less what was booked to the program and to this process. Of what was
/// written in excess only as much counts as others are known to have written.
fn alone(seen: &Observed, found: &mut Conclusions) {
    let (Some(counters), Some(program), Some(own)) = (seen.counted.first(), seen.program_io, seen.own_io) else {
        return found.prove(Proof::Alone, Verdict::Unknown, "there are no counters to see it by");
    };
    let ours = program.plus(own);
    let read = counters.read_bytes.saturating_sub(ours.read_bytes);
    let written = counters.written_bytes.saturating_sub(ours.written_bytes).min(seen.others_io.written_bytes.saturating_sub(program.written_bytes));
    let (foreign, moved) = (read + written, counters.read_bytes + counters.written_bytes);
    found.foreign_bytes = Some(foreign);
    let share = foreign as f64 / moved.max(1) as f64;
    let mut because = format!("others moved {}, {:.1} % of all that went through the drive", Bytes(foreign), share * 100.0);
    if let Some(before) = seen.baseline_bytes_per_s.filter(|before| *before > 0) {
        because += &format!("; before the window it was {}", rate(before, SECOND_NS));
    }
    if share > FOREIGN_SHARE && foreign > FOREIGN_BYTES {
        if let Some(busiest) = &seen.busiest {
            because += &format!("; the program that moved most, on whatever drive, was {busiest}");
        }
        found.flags.push(flags::FOREIGN_IO.flag(Some(&because), None));
        return found.prove(Proof::Alone, Verdict::Fails, because);
    }
    found.prove(Proof::Alone, Verdict::Holds, because);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Severity;

    fn io(read_bytes: u64, written_bytes: u64) -> ProcessIo {
        ProcessIo { read_bytes, written_bytes }
    }

    fn seen(wanted: Wanted) -> Observed {
        let (data, metadata) = if wanted == Wanted::Cold { (Warmth::Cold, Warmth::Cold) } else { (Warmth::Warm, Warmth::Warm) };
        Observed {
            wanted,
            medium: Medium::Block,
            cache: Prepared { method: String::new(), data, metadata, resident_bytes: Some(0), sampled_bytes: 0 },
            files: LaunchFiles {
                n: 3,
                bytes: 5_000_000,
                own_bytes: Some(3_000_000),
                resident_bytes: Some(2_000_000),
                own_resident_bytes: Some(0),
                resident: vec!["/lib/libc.so.6".to_owned()],
            },
            counted: vec![Counters { reads: 50, read_bytes: 3_200_000, ..Counters::default() }],
            program_io: Some(io(3_100_000, 0)),
            own_io: Some(io(50_000, 0)),
            others_io: io(0, 0),
            busiest: Some("dd".to_owned()),
            baseline_bytes_per_s: Some(0),
            cache_below: false,
            cache_elsewhere: None,
            suspended_ns: 0,
        }
    }

    fn verdict(seen: &Observed, proof: Proof) -> (Verdict, String) {
        let found = conclude(seen);
        let evidence = found.evidence.iter().find(|evidence| evidence.proof == proof).unwrap();
        (evidence.verdict, evidence.because.clone())
    }

    fn codes(seen: &Observed) -> Vec<String> {
        conclude(seen).flags.into_iter().filter(|flag| flag.severity != Severity::Note).map(|flag| flag.code).collect()
    }

    #[test]
    fn a_cold_start_is_one_that_the_drive_served() {
        let good = seen(Wanted::Cold);
        let (holds, because) = verdict(&good, Proof::Cold);
        assert_eq!(
            (holds, because.as_str()),
            (
                Verdict::Holds,
                "the drive served 3.20 MB in 50 reads; of 3 files of it that are known (5.00 MB) 2.00 MB stayed in memory because programs that run use them: libc.so.6"
            )
        );
        assert_eq!(verdict(&good, Proof::ColdMetadata).0, Verdict::Holds);
        assert!(codes(&good).is_empty());
        let nothing = Observed { counted: vec![Counters::default()], ..good.clone() };
        assert_eq!((verdict(&nothing, Proof::Cold).0, codes(&nothing)), (Verdict::Fails, vec!["not-cold".to_owned()]));
        let of_others = Observed { program_io: Some(io(0, 0)), ..good.clone() };
        assert_eq!(verdict(&of_others, Proof::Cold).0, Verdict::Fails);
        let memory = Observed { medium: Medium::Memory, ..good.clone() };
        assert_eq!((verdict(&memory, Proof::Cold).0, codes(&memory)), (Verdict::Fails, vec!["not-cold".to_owned()]));
        let uncounted = Observed { counted: Vec::new(), ..good.clone() };
        assert_eq!(verdict(&uncounted, Proof::Cold).0, Verdict::Unknown);
        let looped = Observed { cache_below: true, ..good };
        assert_eq!(verdict(&looped, Proof::Cold).0, Verdict::Unknown);
    }

    #[test]
    fn a_program_that_runs_already_is_not_cold_and_says_so() {
        let mut running = seen(Wanted::Cold);
        running.cache.data = Warmth::Warm;
        running.files.own_resident_bytes = Some(2_900_000);
        assert!(verdict(&running, Proof::Cold).1.contains("2.90 MB of its own file of 3.00 MB stayed in memory"));
        assert_eq!(codes(&running), ["files-in-use"]);
    }

    #[test]
    fn an_ordinary_user_gets_its_files_cold_and_its_names_warm() {
        let mut user = seen(Wanted::Cold);
        user.cache.metadata = Warmth::Warm;
        assert_eq!(verdict(&user, Proof::Cold).0, Verdict::Unknown);
        assert_eq!(verdict(&user, Proof::ColdMetadata).0, Verdict::Fails);
        assert_eq!(codes(&user), ["metadata-warm"]);
    }

    #[test]
    fn a_warm_start_reads_nothing() {
        let read =
            |bytes| Observed { program_io: Some(io(bytes, 0)), counted: vec![Counters::default()], own_io: Some(io(0, 0)), ..seen(Wanted::Warm) };
        assert_eq!(verdict(&read(0), Proof::State).0, Verdict::Holds);
        assert!(codes(&read(0)).is_empty());
        assert_eq!((verdict(&read(9_000_000), Proof::State).0, codes(&read(9_000_000))), (Verdict::Fails, vec!["not-warm".to_owned()]));
        assert_eq!(verdict(&Observed { program_io: None, counted: Vec::new(), ..seen(Wanted::Warm) }, Proof::State).0, Verdict::Unknown);
    }

    #[test]
    fn others_are_what_neither_the_program_nor_copysim_moved() {
        let good = seen(Wanted::Cold);
        assert_eq!((verdict(&good, Proof::Alone).0, conclude(&good).foreign_bytes), (Verdict::Holds, Some(50_000)));
        let crowded = Observed { counted: vec![Counters { reads: 90, read_bytes: 9_000_000, ..Counters::default() }], ..good.clone() };
        let (fails, because) = verdict(&crowded, Proof::Alone);
        assert!(fails == Verdict::Fails && because.ends_with("was dd"), "{because}");
        assert_eq!(codes(&crowded), ["foreign-io"]);
        // The file system's own writing is nobody's.
        let journal = Counters { written_bytes: 900_000, ..good.counted[0] };
        assert_eq!(verdict(&Observed { counted: vec![journal], ..good.clone() }, Proof::Alone).0, Verdict::Holds);
        let others = Observed { counted: vec![journal], others_io: io(0, 800_000), ..good };
        assert_eq!((verdict(&others, Proof::Alone).0, conclude(&others).foreign_bytes), (Verdict::Fails, Some(850_000)));
    }

    #[test]
    fn sleep_within_the_window_is_no_start() {
        assert_eq!(codes(&Observed { suspended_ns: 2_000_000_000, ..seen(Wanted::Cold) }), ["suspended"]);
    }
}
