//! Every operation of the platform layer fails once at every call of it, in every way: whatever fails, nothing panics, nothing hangs, nothing passes for
//! right that is not, the exit code and the record say what happened, and nothing stays behind that the next start does not remove.
#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests make their own fixtures and look at them from outside")]

mod faulty;
mod judge;
mod place;
mod trial;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use copysim::capacity::run as capacity;
use copysim::scenario::options::Options;
use copysim::workload::copy::Order;
use faulty::{Fault, OPERATIONS, Shot};
use judge::Golden;
use trial::{Case, From, SAVE, Trial, Work};

/// A trial that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);
/// Trials at once.
const WORKERS: usize = 3;

/// What a drive, a file system or the system answers.
const ERRNOS: [i32; 12] = [
    libc::EIO,
    libc::ENOSPC,
    libc::EROFS,
    libc::EACCES,
    libc::ENOENT,
    libc::EDQUOT,
    libc::EMFILE,
    libc::ENODEV,
    libc::ETIMEDOUT,
    libc::EINTR,
    libc::ESTALE,
    libc::EOPNOTSUPP,
];

static CASES: [fn() -> Case; 12] = [
    || Case {
        name: "same drive, buffered",
        corpus: "small-files",
        scale: 1,
        work: Work::Measure { from: From::Target, options: Options { runs: Some(2), keep: true, control: true, ..Options::default() } },
        caches: None,
        has_memory: true,
    },
    || Case {
        name: "from a directory, copy-file-range, two threads",
        corpus: "small-files",
        scale: 1,
        work: Work::Measure {
            from: From::Directory,
            options: Options {
                runs: Some(1),
                keep: true,
                engine: "copy-file-range".to_owned(),
                threads: 2,
                order: Order::Readdir,
                state: copysim::scenario::options::State::Trimmed,
                ..Options::default()
            },
        },
        caches: Some((1, libc::EACCES)),
        // A call of a thread's does not tell for what the thread was made: the tool's own speed is not looked at here.
        has_memory: false,
    },
    || Case {
        name: "from memory, read before, buffered",
        corpus: "small-files",
        scale: 1,
        work: Work::Measure {
            from: From::Memory,
            options: Options { runs: Some(1), keep: true, cache: copysim::cache::evict::Wanted::Warm, ..Options::default() },
        },
        caches: None,
        has_memory: true,
    },
    || Case {
        name: "made while it is written",
        corpus: "small-files",
        scale: 1,
        work: Work::Measure { from: From::Generator, options: Options { runs: Some(1), keep: true, ..Options::default() } },
        caches: None,
        has_memory: true,
    },
    || Case {
        name: "copied by another program onto a drive that is made full first",
        corpus: "small-files",
        scale: 1,
        work: Work::Measure {
            from: From::Target,
            options: Options {
                runs: Some(1),
                keep: true,
                engine: "command:cp -r {source}/. {target}/".to_owned(),
                fill: Some(62),
                ..Options::default()
            },
        },
        caches: None,
        has_memory: true,
    },
    || Case {
        name: "onto a drive that is written all over first",
        corpus: "small-files",
        scale: 1,
        work: Work::Measure {
            from: From::Target,
            options: Options { runs: Some(1), keep: true, state: copysim::scenario::options::State::Dirty, ..Options::default() },
        },
        caches: None,
        has_memory: true,
    },
    || Case {
        name: "a drive filled up",
        corpus: "small-files",
        scale: 1,
        work: Work::Measure { from: From::New, options: Options { runs: Some(1), fill: Some(70), ..Options::default() } },
        caches: None,
        has_memory: true,
    },
    || Case {
        name: "a start that is played",
        corpus: "browser",
        scale: 15,
        work: Work::Measure { from: From::Start, options: Options { runs: Some(1), ..Options::default() } },
        caches: None,
        has_memory: true,
    },
    || Case {
        name: "a check of the capacity",
        corpus: "small-files",
        scale: 1,
        work: Work::Capacity { options: capacity::Options { size: Some(2_500_000), yes: true, ..capacity::Options::default() }, again: false },
        caches: None,
        has_memory: true,
    },
    || Case {
        name: "a check of the capacity that was kept, read again",
        corpus: "small-files",
        scale: 1,
        work: Work::Capacity { options: capacity::Options { size: Some(1 << 20), yes: true, ..capacity::Options::default() }, again: true },
        caches: None,
        has_memory: true,
    },
    || Case { name: "a corpus made and compared", corpus: "small-files", scale: 1, work: Work::Corpus, caches: None, has_memory: true },
    || Case { name: "a corpus of larger files made and compared", corpus: "jpg", scale: 1, work: Work::Corpus, caches: None, has_memory: true },
];

/// The calls of an operation that are struck: all where there are few; else the first, the last and some between.
fn sample(count: u64) -> Vec<u64> {
    let between = (count / 12).max(1);
    (1..=count).filter(|&n| n <= 20 || n + 5 > count || n % between == 0).collect()
}

fn faults(operation: &str) -> Vec<Fault> {
    let mut faults: Vec<Fault> = ERRNOS.into_iter().map(Fault::Errno).collect();
    faults.extend([Fault::Gone(libc::EIO), Fault::Gone(libc::ENODEV)]);
    match operation {
        "read" | "read_at" | "write" => faults.extend([Fault::Short, Fault::Nothing, Fault::Flip]),
        // The record is kept by the system's own means, whose errors come as they are.
        SAVE => faults = [libc::EIO, libc::ENOSPC, libc::EROFS].map(Fault::Errno).to_vec(),
        "copy_range" => faults.extend([Fault::Short, Fault::Nothing]),
        _ => {}
    }
    faults
}

fn starts_programs(case: &Case) -> bool {
    matches!(&case.work, Work::Measure { options, .. } if options.engine.starts_with("command:"))
}

/// The next number, below an end.
fn next_below(next: &AtomicUsize, end: usize) -> Option<usize> {
    next.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |at| (at < end).then_some(at + 1)).ok()
}

/// A trial on a thread of its own; none when it hangs.
fn tried(case: usize, shot: Option<Shot>) -> Option<Box<Trial>> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let trial = Box::new(CASES[case]().try_with(shot));
        // Whoever does not wait any longer needs no answer.
        let _ = send.send(trial);
    });
    receive.recv_timeout(PATIENCE).ok()
}

#[test]
fn field_a04_caches_that_can_not_be_dropped_are_told_and_what_is_copied_is_right() {
    let golden = Golden::of(&CASES[0]().try_with(None));
    let mut endings = BTreeMap::<String, u64>::new();
    for errno in [libc::EACCES, libc::EIO, libc::EROFS] {
        for n in 1..=6 {
            let trial = Case { caches: Some((n, errno)), ..CASES[0]() }.try_with(None);
            *endings.entry(judge::ending(&trial)).or_default() += 1;
            let shot = Shot { operation: "drop_all", n, fault: Fault::Errno(errno) };
            assert_eq!(judge::faults_of(shot, &trial, &golden), [""; 0]);
        }
    }
    // At first the files are dropped one by one instead; later nothing stands for it.
    assert!(endings["right"] >= 3 && endings["exit code 1"] >= 3, "{endings:?}");
}

/// The lines for each file go past the file operations, to wherever the user says.
#[test]
fn samples_that_can_not_be_kept_are_told_and_the_record_is_kept() {
    let options = Options { runs: Some(1), keep: true, samples: Some("/dev/full".into()), ..Options::default() };
    let trial = Case { work: Work::Measure { from: From::Target, options }, ..CASES[0]() }.try_with(None);
    let error = trial.outcome.as_ref().unwrap_err();
    assert!(error.exit_code() == 1 && error.to_string().contains("/dev/full") && error.to_string().contains("ENOSPC"), "{error}");
    assert!(trial.document.is_some() && trial.saved.last() == trial.document.as_ref() && trial.unfinished.is_empty() && trial.damage.is_empty());
}

#[test]
fn field_c05_a_wrong_read_that_does_not_come_again_is_located_nowhere() {
    let case = &CASES[CASES.len() - 1];
    let count = case().try_with(None).counts[OPERATIONS.iter().position(|name| *name == "read").unwrap()];
    let told: Vec<String> = (1..=count)
        .filter_map(|n| match case().try_with(Some(Shot { operation: "read", n, fault: Fault::Flip })).outcome {
            Err(copysim::Error::Differ(sentence)) => Some(sentence),
            // What is read of the corpus's own lists, and the end of a file.
            _ => None,
        })
        .collect();
    assert!(!told.is_empty() && told.iter().all(|sentence| sentence.contains(": changed") && !sentence.contains("bytes from byte")), "{told:?}");
}

/// What is wrong when every call of an operation is struck, or each in turn.
fn wrong_with(case: &(dyn Fn() -> Case + Sync), shots: impl IntoIterator<Item = Shot>) -> Vec<String> {
    let golden = Golden::of(&case().try_with(None));
    let told = |shot: Shot| {
        let trial = case().try_with(Some(shot));
        assert!(trial.struck.is_some() || shot.n > 0, "{shot:?} struck nothing");
        judge::faults_of(shot, &trial, &golden).into_iter().map(move |what| format!("{}: {shot:?}: {what}", case().name))
    };
    shots.into_iter().flat_map(told).collect()
}

#[test]
fn field_b05_calls_that_move_little_at_a_time_make_whole_files() {
    // Files of the last case are read and written in several pieces.
    for (index, operations) in [(0, &["read", "write"][..]), (1, &["copy_range"]), (3, &["write"]), (5, &["read", "read_at", "write"])] {
        let shots = operations.iter().map(|operation| Shot { operation, n: 0, fault: Fault::Short });
        for shot in shots.clone() {
            assert!(CASES[index]().try_with(Some(shot)).outcome.is_ok(), "{shot:?}");
        }
        assert_eq!(wrong_with(&CASES[index], shots), [""; 0]);
    }
    // A write that takes nothing, again and again, is no progress: an error and no spin.
    for index in [0, 3, 5] {
        let trial = tried(index, Some(Shot { operation: "write", n: 0, fault: Fault::Nothing })).expect("it spins");
        assert!(trial.outcome.is_err() && !trial.panicked, "{:?}", trial.outcome);
    }
}

#[test]
fn field_b07_a_source_that_gives_nothing_is_no_copy_even_where_none_is_compared() {
    for (engine, operations) in [("buffered", &["read"][..]), ("copy-file-range", &["copy_range", "read"])] {
        let case = || {
            let options = Options { runs: Some(1), keep: true, verify: false, engine: engine.to_owned(), ..Options::default() };
            Case { name: engine, work: Work::Measure { from: From::Directory, options }, ..CASES[1]() }
        };
        let counts = case().try_with(None).counts;
        for operation in operations {
            let count = counts[OPERATIONS.iter().position(|name| name == operation).unwrap()];
            let all = std::iter::once(0).chain(sample(count));
            let shots = all.map(|n| Shot { operation, n, fault: Fault::Nothing });
            assert_eq!(wrong_with(&case, shots.collect::<Vec<_>>()), [""; 0], "{engine}, {operation}");
        }
    }
}

#[test]
fn field_b03_what_can_not_be_flushed_is_told_from_what_failed_to() {
    for errno in [libc::EOPNOTSUPP, libc::EINVAL, libc::ENOSYS] {
        let trial = CASES[3]().try_with(Some(Shot { operation: "sync", n: 0, fault: Fault::Errno(errno) }));
        assert!(trial.outcome.is_ok(), "{errno}: {:?}", trial.outcome);
        let document = trial.document.unwrap();
        let phase = &document.runs[0].phases[0];
        let flush = phase.flush.as_ref().unwrap();
        assert_eq!((flush.method.as_str(), flush.reaches_medium), ("none: the file system can't flush", copysim::result::Answer::Unknown));
        assert!(phase.window.durable_ns.is_none() && document.summary.iter().all(|line| !line.headline), "{:?}", document.summary);
    }
    for operation in ["sync", "sync_filesystem"] {
        for errno in [libc::EIO, libc::ENOSPC, libc::EDQUOT] {
            let trial = CASES[3]().try_with(Some(Shot { operation, n: 0, fault: Fault::Errno(errno) }));
            let error = trial.outcome.unwrap_err();
            assert!(error.exit_code() == 1 && error.to_string().contains("(E"), "{operation} {errno}: {error}");
        }
    }
}

#[test]
fn field_b09_whatever_fails_is_told_and_nothing_passes_for_right_that_is_not() {
    let begun = Instant::now();
    // New files then lack rights that the corpus has: setting them is tried too.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let panics = std::sync::Arc::new(AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&panics);
    std::panic::set_hook(Box::new(move |info| {
        counted.fetch_add(1, Ordering::SeqCst);
        eprintln!("{info}");
    }));
    let mut hits: BTreeMap<&str, u64> = OPERATIONS.iter().map(|name| (*name, 0)).collect();
    let (mut shots, mut golden) = (Vec::new(), Vec::new());
    for (index, case) in CASES.iter().enumerate() {
        let dry = tried(index, None).expect("undisturbed work ends");
        let name = case().name;
        assert!(dry.outcome.is_ok() && dry.damage.is_empty(), "{name}: {:?} {:?}", dry.outcome, dry.damage);
        for (operation, count) in OPERATIONS.into_iter().zip(dry.counts).chain([(SAVE, dry.saved.len() as u64)]) {
            *hits.entry(operation).or_default() += count;
            for (turn, n) in sample(count).into_iter().enumerate() {
                let all = faults(operation);
                // The first two calls in every way, the others in one way after the other.
                let every = if turn < 2 { 1 } else { 20 };
                shots.extend(
                    all.into_iter().enumerate().filter(|(at, _)| (at + turn) % every == 0).map(|(_, fault)| (index, Shot { operation, n, fault })),
                );
            }
        }
        golden.push(Golden::of(&dry));
    }
    let (next, wrong, missed) = (AtomicUsize::new(0), Mutex::new(Vec::new()), AtomicUsize::new(0));
    let (hangs, endings) = (AtomicUsize::new(0), Mutex::new(BTreeMap::<String, u64>::new()));
    // What starts other programs comes after everything else: a program that is being started has the locks of its neighbours, too.
    shots.sort_by_key(|(case, _)| starts_programs(&CASES[*case]()));
    let alone = shots.partition_point(|(case, _)| !starts_programs(&CASES[*case]()));
    for end in [alone, shots.len()] {
        thread::scope(|scope| {
            for _ in 0..WORKERS {
                scope.spawn(|| {
                    while let Some((case, shot)) = next_below(&next, end).map(|at| &shots[at]) {
                        let verdict = match tried(*case, Some(*shot)) {
                            None => {
                                hangs.fetch_add(1, Ordering::SeqCst);
                                vec!["it hangs".to_owned()]
                            }
                            Some(trial) => {
                                missed.fetch_add(usize::from(trial.struck.is_none() && shot.operation != SAVE), Ordering::SeqCst);
                                *endings.lock().unwrap().entry(judge::ending(&trial)).or_default() += 1;
                                judge::faults_of(*shot, &trial, &golden[*case])
                            }
                        };
                        let told = |what| format!("{}: {} call {}, {:?}: {what}", CASES[*case]().name, shot.operation, shot.n, shot.fault);
                        wrong.lock().unwrap().extend(verdict.into_iter().map(told));
                    }
                });
            }
        });
    }
    let wrong = wrong.into_inner().unwrap();
    eprintln!("operations and how often each is called undisturbed:");
    for (operation, count) in &hits {
        eprintln!("  {operation:18} {count:6}");
    }
    eprintln!("endings: {:?}", endings.into_inner().unwrap());
    eprintln!(
        "{} triples of operation, fault and call in {:.1} s, of which {} calls did not come; {} panics, {} hangs, {} wrong",
        shots.len(),
        begun.elapsed().as_secs_f64(),
        missed.into_inner(),
        panics.load(Ordering::SeqCst),
        hangs.into_inner(),
        wrong.len()
    );
    assert_eq!(panics.load(Ordering::SeqCst), 0);
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    // Extents one by one are asked for of a drive whose place on its device is known; rights are given where a directory lacks them, which root does not feel.
    // Only `endurance` writes files over; it has no trial here yet.
    let seldom = |name: &str| ["each_extent", "grant_owner", "open_to_write_over"].contains(&name);
    let never: Vec<_> = hits.iter().filter(|(name, count)| **count == 0 && !seldom(name)).collect();
    assert!(never.is_empty(), "never called: {never:?}");
}
