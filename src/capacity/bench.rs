//! What a check of any kind stands on: the drive of a directory, locked, described and counted; how its record begins and ends; what may be filled.

use std::path::Path;
use std::sync::Arc;

use crate::drive::pulse::Pulse;
use crate::drive::{Drive, DriveLock, Workspace};
use crate::error::{Context, Error, Result, Side};
use crate::path_text::path_text;
use crate::platform::{allow_many_open_files, ignore_unsupported};
use crate::result::mask::clean_command;
use crate::result::{self, Aftermath, Document, Kept, Phase, PhaseStatus, Roles, Status, summary};
use crate::scenario::account::unplug;
use crate::scenario::consent::is_much;
use crate::scenario::events::Event;
use crate::scenario::facts;
use crate::scenario::run::Around;
use crate::scenario::wall::WallClock;
use crate::scenario::window::{DriveCounters, Place, Watched};
use crate::units::{Bytes, Scale};

/// The file system of the running system keeps at least this free: a system without space stops.
const SYSTEM_RESERVE: u64 = 1 << 30;

/// The drive of a directory and all that a check of it works with.
#[derive(Clone, Copy)]
pub struct Bench<'a> {
    /// The system, the machine, who watches.
    pub around: Around<'a>,
    /// The moment since which the record counts, ns of the monotonic clock.
    pub began_ns: u64,
    /// The drive.
    pub drive: &'a Drive,
    /// Its counters.
    pub counted: &'a DriveCounters,
    /// Where the file system's device begins on the drive, where the places that the file system tells are places on one.
    pub device_start: Option<u64>,
}

/// Makes a record of a check. It is complete as far as things went, whatever the outcome.
pub fn recorded(
    around: Around<'_>,
    copysim: result::Copysim,
    label: Option<&String>,
    identify: bool,
    check: impl FnOnce(u64, &mut Document) -> Result<()>,
) -> (Document, Result<()>) {
    let clock = around.system.clock;
    let began_ns = clock.now_ns();
    let started_at = clock.wall();
    let id = blake3::hash(format!("{started_at} {} {began_ns}", std::process::id()).as_bytes()).to_hex()[..12].to_owned();
    let mut document = Document::begin(id, started_at, copysim);
    document.label = label.cloned();
    document.hosts.push(crate::drive::host::read(around.host, "h0", identify));
    let wall = WallClock::look(clock);
    let mut outcome = check(began_ns, &mut document);
    document.summary = summary::summarise(&document);
    document.flags.extend(wall.flag(clock));
    conclude(&mut document, &outcome);
    if was_begun(&document, &outcome)
        && let Err(failure) = (around.save)(&document)
        && outcome.is_ok()
    {
        outcome = Err(failure);
        conclude(&mut document, &outcome);
    }
    (document, outcome)
}

/// Whether there is anything to keep: what was refused before its first phase leaves no record.
#[must_use]
pub fn was_begun(document: &Document, outcome: &Result<()>) -> bool {
    !document.runs.is_empty() || !matches!(outcome, Err(Error::Refused(_)))
}

fn conclude(document: &mut Document, outcome: &Result<()>) {
    (document.status, document.exit_code, document.error) = match outcome {
        Ok(()) => (Status::Complete, Some(0), None),
        Err(error @ Error::Interrupted(_)) => (Status::Interrupted, Some(error.exit_code()), Some(error.to_string())),
        Err(error) => (Status::Failed, Some(error.exit_code()), Some(error.to_string())),
    };
}

/// Finds the drive of a directory, locks and describes it, checks it, and describes its wear again.
///
/// # Errors
/// `Refused` for what is no directory that can be worked in or is in use, and what the check answered.
pub fn on_drive_of(
    directory: &Path,
    around: Around<'_>,
    began_ns: u64,
    document: &mut Document,
    check: impl FnOnce(Bench<'_>, &mut Document) -> Result<()>,
) -> Result<()> {
    let Around { system, host, observer, .. } = around;
    // Refuses, with its reason, what is no directory that can be worked in.
    drop(Workspace::open_existing(system, directory)?);
    let drive = Drive::identify(host, system.files, directory)?;
    observer.on(Event::Notice(format!("checking {drive}")));
    // With fewer files open at once some are opened again.
    let _ = allow_many_open_files();
    on_drive(&drive, around, began_ns, document, check)
}

/// Locks and describes a drive, does the work, and describes its wear again.
///
/// # Errors
/// `Refused` when it is in use, and what the work answered.
pub fn on_drive(
    drive: &Drive,
    around: Around<'_>,
    began_ns: u64,
    document: &mut Document,
    work: impl FnOnce(Bench<'_>, &mut Document) -> Result<()>,
) -> Result<()> {
    let Around { system, host, observer, .. } = around;
    observer.on(Event::On(vec![Arc::new(Pulse::of(host, drive))]));
    let _lock = DriveLock::take(host, drive.lock_numbers())?;
    document.drives = facts::drives(host, facts::space(system, drive), drive, "d0", "h0");
    let counted = DriveCounters::open(host, drive);
    let bench = Bench { around, began_ns, drive, counted: &counted, device_start: device_start(around, drive) };
    let done = work(bench, document);
    facts::after(host, drive, "d0", &mut document.drives);
    done
}

/// Where the file system's device begins on its drive, where the places that it tells are places on one.
fn device_start(around: Around<'_>, drive: &Drive) -> Option<u64> {
    const SECTOR_BYTES: u64 = 512;
    let fs_type = drive.mount.as_ref().map(|mount| mount.fs_type.as_str())?;
    let (major, minor) = drive.file_system;
    let is_plain = matches!(fs_type, "ext2" | "ext3" | "ext4" | "xfs" | "f2fs" | "ntfs3" | "vfat" | "msdos" | "exfat") && drive.devices.len() == 1;
    is_plain.then(|| around.host.number(format!("/sys/dev/block/{major}:{minor}/start")).unwrap_or(0) * SECTOR_BYTES)
}

/// What a workspace's file system has.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// How much of it may be filled.
    pub free_bytes: Option<u64>,
    /// How large it is.
    pub total_bytes: Option<u64>,
}

impl Bench<'_> {
    /// Says in the record what is done.
    pub fn describe(&self, name: &str, spec: serde_json::Value, document: &mut Document) {
        document.scenarios.push(result::Scenario {
            name: name.to_owned(),
            spec_digest: blake3::hash(spec.to_string().as_bytes()).to_hex().to_string(),
            spec,
            scale_percent: Scale::FULL,
            roles: Roles { source: None, target: Some("d0".to_owned()) },
        });
    }

    /// Tells what is kept should all end here.
    pub fn under_way(&self, document: &Document, phase: &Phase) {
        self.around.observer.on(Event::SoFar(Box::new(document.clone())));
        self.around.observer.on(Event::UnderWay(Box::new(Phase { status: PhaseStatus::Interrupted, ..phase.clone() })));
    }

    /// What every window of the check has.
    #[must_use]
    pub fn watched<'w>(&'w self, title: &'w str) -> Watched<'w> {
        let Around { system, host, observer, cancel, .. } = self.around;
        let target = Place { drive: self.drive, counted: self.counted, id: "d0" };
        Watched { system, host, observer, cancel, title, evidence: true, traced: None, target, source: None }
    }

    /// Opens the workspace, and says what a run that was killed had left in it.
    ///
    /// # Errors
    /// As [`Workspace::open_or_create`].
    pub fn workspace(&self) -> Result<Workspace<'_>> {
        let workspace = Workspace::open_or_create(self.around.system, &self.drive.path)?;
        let leftovers = workspace.leftovers();
        if leftovers.runs > 0 {
            self.around.observer.on(Event::Notice(format!("removed what a run that was killed had left: {}", leftovers.removal)));
        }
        Ok(workspace)
    }

    /// Whether the running system writes to this very file system.
    fn holds_system(&self) -> bool {
        let files = self.around.system.files;
        let number = |path: &str| files.open_root(&self.around.host.path(path)).and_then(|dir| files.stat(&dir)).map(|stat| stat.device);
        ["/", "/var", "/home"].iter().any(|path| number(path).is_ok_and(|number| number == self.drive.file_system))
    }

    /// How much may be filled.
    ///
    /// # Errors
    /// What the system answered.
    pub fn room(&self, workspace: &Workspace<'_>) -> Result<Room> {
        let files = self.around.system.files;
        let space = files.space(workspace.handle()).during("ask for the space of", Side::Target, workspace.path())?;
        let reserve = if self.holds_system() { SYSTEM_RESERVE } else { 0 };
        Ok(Room { free_bytes: space.available_bytes.map(|free| free.saturating_sub(reserve)), total_bytes: space.total_bytes })
    }

    /// Ends in a workspace: says what of the test data could not be removed, and what is kept, and flushes.
    ///
    /// # Errors
    /// The failure of the removal, or of removing the empty workspace.
    pub fn leave(&self, workspace: Workspace<'_>, removed: Result<()>, mut kept: Vec<Kept>, document: &mut Document) -> Result<()> {
        let Around { system, observer, .. } = self.around;
        let directory = workspace.directory().to_path_buf();
        if let Err(left) = &removed {
            observer.on(Event::Notice(format!("the test data could not be removed: {left}; the file system may be damaged: make a new one")));
            kept.push(Kept { path: path_text(workspace.path()), bytes: None, what: "test data that could not be removed".to_owned() });
        }
        let emptied = workspace.remove_if_empty();
        let files = system.files;
        let flushed = files.open_root(&directory).and_then(|directory| files.sync_filesystem(&directory)).or_else(ignore_unsupported);
        let (answer, because) = unplug(self.drive, flushed.is_ok(), document);
        document.aftermath = Some(Aftermath {
            remove_with: (!kept.is_empty()).then(|| clean_command(&directory)),
            kept,
            unplug: answer,
            unplug_because: Some(because.to_owned()),
        });
        removed.and(emptied)
    }

    /// What the drive says that it holds.
    #[must_use]
    pub fn claimed_bytes(&self) -> Option<u64> {
        match self.drive.devices.as_slice() {
            [only] => only.size_bytes,
            _ => None,
        }
    }

    /// Asks where something takes long or is much for a file system of this size. `less` says how to have less of it.
    ///
    /// # Errors
    /// `Refused` when nobody says yes.
    pub fn ask(&self, what: &str, time_ns: u64, bytes: u64, total_bytes: Option<u64>, less: &str) -> Result<()> {
        let Around { observer, cancel, .. } = self.around;
        if !is_much(time_ns, bytes, total_bytes) {
            return Ok(());
        }
        match observer.ask(&format!("{what}. Go on?")) {
            Some(true) => Ok(()),
            Some(false) => {
                cancel.check()?;
                Err(Error::Refused("not started: the answer was no".to_owned()))
            }
            None => Err(Error::Refused(format!("{what}: say --yes to do that, or {less} for less"))),
        }
    }

    /// Refuses what does not fit: "… has … that may be filled, and --size says …".
    ///
    /// # Errors
    /// `Refused` with what was asked for and what there is.
    pub fn must_fit(&self, bytes: u64, free_bytes: Option<u64>, asked: &str) -> Result<()> {
        match free_bytes.filter(|free| bytes > *free) {
            Some(free) => {
                let path = path_text(&self.drive.path);
                Err(Error::Refused(format!("{path} has {} that may be filled, and {asked} {}", Bytes(free), Bytes(bytes))))
            }
            None => Ok(()),
        }
    }
}
