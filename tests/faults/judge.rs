//! What is right after a fault: the table of those that may be passed over, and what every failure must say.

use copysim::Error;
use copysim::result::{Document, PhaseKind, Status};
use copysim::scenario::account::was_begun;

use super::faulty::{Fault, Shot};
use super::trial::{SAVE, Trial};

/// What undisturbed work came to.
pub struct Golden {
    kept: Vec<blake3::Hash>,
}

impl Golden {
    pub fn of(trial: &Trial) -> Self {
        Self { kept: trial.kept.clone() }
    }
}

/// Where a fault may be passed over, and why the result is true all the same: operation (empty for any), function, reason.
const PASSED_OVER: &[(&str, &str, &str)] = &[
    ("advise_sequential", "", "advice"),
    ("advise_needed", "", "advice"),
    ("start_writing", "", "only a matter of speed: everything is flushed later"),
    ("resident_bytes", "", "the record says that it is not known what the cache held"),
    ("extents", "", "the record says that it is not known where the data lie"),
    ("evict", "verify::compare", "advice: the bytes are compared all the same"),
    ("", "scenario::ceiling::measure", "the tool's own speed is a help, no part of the measurement; what it leaves is an error"),
    ("", "scenario::layout::Layout::sample", "the record says that it is not known where the data lie; the comparison reads the files"),
    ("", "scenario::stage::read_note", "a note that can't be read helps no estimate"),
    ("", "scenario::facts::space", "the record says that it is not known how much room there is; that is looked at again before anything is written"),
    ("open_root", "scenario::plan::Plan::resolve", "only how much room there is: looked at again before anything is written"),
    ("space", "scenario::plan::Plan::resolve", "only how much room there is: looked at again before anything is written"),
    ("", "directory::has_marker", "a directory of the user's that can't be looked into; its name was seen in the path"),
    ("open_dir", "directory::refuse_inside_workspace", "a directory above that can't be opened ends the look; its name was seen in the path"),
    ("stat_at", "workspace::Workspace::lock", "it is looked at again"),
    ("open_dir_beneath", "remove::Walk::open", "its owner's rights are given to it, and it is opened again"),
    ("", "capacity::bench::Bench::holds_system", "the next place tells; at worst no space is left for a system that can't be looked at"),
    ("open", "capacity::fill::Filler::write", "it is opened again when it is read"),
    ("space", "capacity::run::Check::write", "writing ends where nothing is taken any more"),
    ("evict", "capacity::", "how much stayed in memory is looked at, and told"),
    ("", "progress::Progress::forget", "where others are in it, it stays"),
    ("stat_at", "workspace::Workspace::collect_foreign", "what can't be looked at is taken for foreign, and stays"),
    ("stat_at", "scenario::kept::", "the record says that it is not known what else than bytes is kept"),
    ("open_dir", "verify::walk_sorted", "what is listed is compared all the same; only what is there too many is not seen"),
    ("open_root", "run::Bench::close", "the record says that it is not known whether the drive may be unplugged"),
    ("sync_filesystem", "run::Bench::close", "the record says that it is not known whether the drive may be unplugged"),
    ("open_root", "bench::Bench::leave", "the record says that it is not known whether the drive may be unplugged"),
    ("sync_filesystem", "bench::Bench::leave", "the record says that it is not known whether the drive may be unplugged"),
    ("", "scenario::memory::remove", "what can't be looked at before is not taken for a source that was left; the next start looks again"),
];

/// What may find nothing: it is made then, is not there to be removed, or is looked at again.
const MAY_BE_GONE: [&str; 5] = ["stat_at", "remove_file", "remove_dir", "open_dir_beneath", "lock_file"];

/// Sentences that say more than an errno's name.
const TOLD_OTHERWISE: &[(&str, &str)] = &[
    ("ENOENT", "does not exist"),
    ("ENOENT", "missing"),
    ("ENOENT", "not there"),
    ("ENOENT", "has no valid MARKER"),
    // What seemed to be gone was there.
    ("ENOENT", "ENOTEMPTY"),
    ("EACCES", "only root may"),
];

/// Where a full drive is no failure: function, reason.
const FULL_IS_RIGHT: &[(&str, &str)] = &[
    ("workspace::Workspace::probe", "it takes no data and has room for nothing, which is looked at before anything is written"),
    ("capacity::fill::Filler::write", "a check of the capacity writes until the drive is full"),
];

/// Where another bit in what is written or read changes nothing that counts: function, reason.
const FLIPPED_UNSEEN: &[(&str, &str)] = &[
    ("workspace::Workspace::probe", "only that it is taken"),
    ("consent::write_probe", "only how fast it is taken"),
    ("workspace::Workspace::make_file", "a sign for other programs"),
    ("stage::write_note", "a note that can't be read helps no estimate"),
    ("workspace::Workspace::lock", "the next start looks, and does not touch a workspace that it can't tell to be its own"),
    ("launch::player::Stage::read", "what a start reads goes to nobody: the tree is compared after it"),
    ("manifest::Entries", "a time that is not the copy's, or a list that is read only to be in memory: digests, lengths and names decide"),
    ("manifest::Manifest::read", "the list has its digest; what stands before it names the corpus, which staging compares"),
];

fn is_in(struck: &std::backtrace::Backtrace, functions: &[(&str, &str)]) -> bool {
    let at = struck.to_string();
    functions.iter().any(|(function, _)| at.contains(function))
}

/// Whether the workspace can't be told to be copysim's any more, which is never touched: its marker was spoilt, or a file of it was said to be gone that is there.
fn is_untellable(shot: Shot, trial: &Trial) -> bool {
    let Some(struck) = &trial.struck else { return false };
    shot.fault == Fault::Flip && is_in(struck, &[("workspace::Workspace::lock", "")])
        || shot == Shot { operation: "remove_file", fault: Fault::Errno(libc::ENOENT), ..shot }
            && is_in(struck, &[("workspace::Workspace::take_down", "")])
}

/// How it ended, for the count.
pub fn ending(trial: &Trial) -> String {
    match &trial.outcome {
        Ok(()) => "right".to_owned(),
        Err(error) => format!("exit code {}", error.exit_code()),
    }
}

/// All that is wrong with what came of a fault.
pub fn faults_of(shot: Shot, trial: &Trial, golden: &Golden) -> Vec<String> {
    let mut wrong = if trial.damage.is_empty() || is_untellable(shot, trial) { Vec::new() } else { trial.damage.clone() };
    let mut say = |what: String| wrong.push(what);
    if trial.panicked {
        say("it panics".to_owned());
    }
    // Names cost much and are seldom needed.
    let place = || trial.struck.as_ref().map(|struck| function_of(&struck.to_string())).unwrap_or_default();
    match &trial.outcome {
        Ok(()) => {
            if trial.kept != golden.kept {
                say(format!("WRONG SUCCESS: the copy is another one, struck in {}", place()));
            }
            if !trial.unfinished.is_empty() {
                say(format!("it succeeds and leaves {:?}, struck in {}", trial.unfinished, place()));
            }
            if !may_pass(shot, trial) {
                say(format!("it succeeds though a call failed in {}", place()));
            }
        }
        Err(error) => {
            let text = error.to_string();
            if let Some(errno) = errno_name(shot.fault)
                && !text.contains(errno)
                // A check of the capacity says what the drive can't give back, not why.
                && !matches!(error, Error::Differ(_) if text.contains("unreadable"))
                && !TOLD_OTHERWISE.iter().any(|(otherwise, sentence)| *otherwise == errno && text.contains(sentence))
            {
                say(format!("{errno} is not told, struck in {}: {text}", place()));
            }
            let permits_refusal = matches!(shot.fault, Fault::Errno(libc::EROFS | libc::EACCES | libc::ENOENT | libc::EOPNOTSUPP));
            if error.exit_code() == 2 && matches!(shot.fault, Fault::Errno(_) | Fault::Gone(_)) && !permits_refusal {
                say(format!("a failure is told as a refusal, struck in {}: {text}", place()));
            }
            match error {
                Error::Io(failure) if failure.path.as_os_str().is_empty() => say(format!("no path is told: {text}")),
                // What a check of the capacity met and went on after, told at its end.
                Error::Internal(text) if text.contains("-capacity") && text.starts_with("cannot ") => {}
                Error::Internal(_) => say(format!("internal, struck in {}: {text}", place())),
                Error::Interrupted(_) => say("nobody interrupted it".to_owned()),
                _ => {}
            }
            // Removing may be what failed: it says so then.
            let removing = || place().contains("drive::remove::") || place().contains("remove_in");
            let may_stay = matches!(shot.fault, Fault::Gone(_)) || removing() && trial.names_left(&text);
            if !(trial.unfinished.is_empty() || may_stay) {
                say(format!("{:?} stay, struck in {}: {text}; {:?}", trial.unfinished, place(), trial.notices));
            }
        }
    }
    if let Some(document) = &trial.document {
        wrong.extend(faults_of_record(document, trial, shot.operation == SAVE));
    }
    wrong
}

fn faults_of_record(document: &Document, trial: &Trial, is_save: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    let expected = match &trial.outcome {
        Ok(()) => (Status::Complete, Some(0), None),
        Err(error) => (Status::Failed, Some(error.exit_code()), Some(error.to_string())),
    };
    if (document.status, document.exit_code, document.error.clone()) != expected {
        wrong.push(format!("the record says {:?} {:?} {:?} of {:?}", document.status, document.exit_code, document.error, trial.outcome));
    }
    let text = serde_json::to_string(document).unwrap();
    match Document::from_json(&text) {
        Ok(again) if again == *document => {}
        Ok(_) => wrong.push("the record is another one when it is read again".to_owned()),
        Err(error) => wrong.push(format!("the record can't be read again: {error}")),
    }
    if was_begun(document, &trial.outcome) && !is_save && trial.saved.last() != Some(document) {
        wrong.push("the record that was kept is not the last one".to_owned());
    }
    let compared = || document.runs.iter().flat_map(|run| &run.phases).filter_map(|phase| phase.integrity.as_ref());
    if trial.outcome.is_ok() && compared().any(|integrity| integrity.files_good != integrity.files_checked) {
        wrong.push("WRONG SUCCESS: files differ".to_owned());
    }
    wrong
}

/// Whether the work may be right though this was struck.
fn may_pass(shot: Shot, trial: &Trial) -> bool {
    if shot.operation == SAVE {
        return (trial.saved.len() as u64) < shot.n;
    }
    let Some(struck) = &trial.struck else { return true };
    match shot.fault {
        // Any system may do less than it was asked for.
        Fault::Short => return true,
        // Standard readers and writers try again.
        Fault::Errno(libc::EINTR) => return true,
        // Nothing can be written there, so nothing waits to be.
        Fault::Errno(libc::EROFS) if shot.operation == "sync_filesystem" && struck.to_string().contains("verify::verify") => return true,
        Fault::Errno(libc::ENOSPC | libc::EDQUOT) | Fault::Nothing if is_in(struck, FULL_IS_RIGHT) => return true,
        Fault::Flip if is_in(struck, FLIPPED_UNSEEN) => return true,
        // The data of a control are new and compared with nothing: only its time counts.
        Fault::Flip if has_control(trial) && is_in(struck, &[("engine::buffered", "")]) => return true,
        // A name that is gone meanwhile need not be removed; that it is, is looked at.
        Fault::Errno(libc::ENOENT) if MAY_BE_GONE.contains(&shot.operation) => return true,
        Fault::Nothing if shot.operation == "copy_range" => return true,
        Fault::Errno(libc::EOPNOTSUPP) if ["sync", "sync_filesystem", "copy_range"].contains(&shot.operation) => return true,
        // The data are there; that a file system keeps no times or permissions is counted.
        Fault::Errno(libc::EOPNOTSUPP) if ["set_mode", "set_mtime"].contains(&shot.operation) && is_in(struck, &[("Trees::finish_target", "")]) => {
            return true;
        }
        _ => {}
    }
    // Without debugging information functions have no names; the results were looked at all the same.
    if !cfg!(debug_assertions) {
        return true;
    }
    let mut at = None;
    PASSED_OVER
        .iter()
        .filter(|(operation, ..)| operation.is_empty() || *operation == shot.operation)
        .any(|(_, function, _)| function.is_empty() || at.get_or_insert_with(|| struck.to_string()).contains(function))
}

fn has_control(trial: &Trial) -> bool {
    let phases = trial.document.iter().flat_map(|document| &document.runs).flat_map(|run| &run.phases);
    phases.into_iter().any(|phase| phase.kind == PhaseKind::Control)
}

/// The innermost functions of copysim's in a backtrace.
fn function_of(backtrace: &str) -> String {
    let functions = backtrace.lines().filter_map(|line| line.trim().split_once(": ").map(|(_, name)| name)).filter(|name| name.contains("copysim::"));
    let names: Vec<&str> = functions.filter(|name| !name.contains("Faulty")).take(3).collect();
    names.join(" < ")
}

fn errno_name(fault: Fault) -> Option<&'static str> {
    let (Fault::Errno(errno) | Fault::Gone(errno)) = fault else { return None };
    Some(match errno {
        libc::EIO => "EIO",
        libc::ENOSPC => "ENOSPC",
        libc::EROFS => "EROFS",
        libc::EACCES => "EACCES",
        libc::ENOENT => "ENOENT",
        libc::EDQUOT => "EDQUOT",
        libc::EMFILE => "EMFILE",
        libc::ENODEV => "ENODEV",
        libc::ETIMEDOUT => "ETIMEDOUT",
        libc::EINTR => "EINTR",
        libc::ESTALE => "ESTALE",
        _ => "EOPNOTSUPP",
    })
}
