//! Ways of moving bytes: one per file below this directory, and the table of them. None knows what it is measured for.

mod buffered;
mod command;
mod copy_file_range;
mod null;

use std::io;
use std::path::Path;

use crate::corpus::FileMeta;
use crate::error::{Context, Error, Result, Side};
use crate::measure::calls::{Calls, Op};
use crate::platform::{Files, Handle, Kind, is_unsupported};
use crate::progress::{Cancel, Counter};
use crate::workload::samples::FileLog;

pub use command::Command;

/// So much of a file is asked for before its copy is made, so that the drive works meanwhile; the rest is left to the system's own reading ahead.
const NEEDED: u64 = 4 << 20;
/// What a file's owner may do while it is being written; the permissions of its source come last.
const OWNER: u32 = 0o600;

/// The two ends of a copy and what is shared while it runs.
#[derive(Clone, Copy)]
pub struct Trees<'a> {
    /// The operations.
    pub files: &'a dyn Files,
    /// The directory that is copied.
    pub source: &'a Handle,
    /// What it is called in messages.
    pub source_path: &'a Path,
    /// The directory that it is copied to.
    pub target: &'a Handle,
    /// What it is called in messages.
    pub target_path: &'a Path,
    /// The permission bits that new files do not get.
    pub umask: u32,
    /// In place of what is read, other data of the same shape are written, which differ for each such number: a control.
    pub fresh: Option<u64>,
    /// How far the copy is.
    pub counter: &'a Counter,
    /// Whether it should stop.
    pub cancel: &'a Cancel,
    /// Where a line for each file goes, if anywhere.
    pub log: Option<&'a FileLog>,
}

/// A way of copying one file after another. Several threads may use one engine at once.
pub trait FileEngine: Send + Sync {
    /// Copies one file with its content and modification time; returns the bytes moved.
    ///
    /// # Errors
    /// What the system answered, with path and side.
    fn copy(&self, trees: Trees<'_>, path: &Path, calls: &mut Calls<'_>, buffer: &mut Vec<u8>) -> Result<u64>;

    /// The mechanism that was really used so far.
    fn mechanism(&self) -> &'static str;
}

/// An engine that was chosen.
pub enum Engine {
    /// Copies file by file, in this process.
    Files(&'static str, Box<dyn FileEngine>),
    /// Copies the whole tree by another program.
    Command(Command),
}

/// A line of the table.
pub struct Entry {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does.
    pub summary: &'static str,
    make: fn() -> Box<dyn FileEngine>,
}

/// All engines that copy file by file; `command:…` stands beside them.
pub const ENGINES: [Entry; 3] = [
    Entry {
        name: "buffered",
        summary: "one file after another, 1 MiB read and write through the page cache: what a file manager does",
        make: || Box::new(buffered::Buffered),
    },
    Entry {
        name: "copy-file-range",
        summary: "lets the system copy (copy_file_range): may share blocks instead of moving bytes",
        make: || Box::new(copy_file_range::CopyFileRange::default()),
    },
    Entry { name: "null", summary: "does everything except the work: the tool's own cost", make: || Box::new(null::Null) },
];

impl Engine {
    /// The engine of a name, or of `command:TEMPLATE`.
    ///
    /// # Errors
    /// `Refused` with the names that there are.
    pub fn named(name: &str) -> Result<Self> {
        if let Some(template) = name.strip_prefix("command:") {
            return Command::new(template).map(Self::Command);
        }
        match ENGINES.iter().find(|entry| entry.name == name) {
            Some(entry) => Ok(Self::Files(entry.name, (entry.make)())),
            None => {
                let names: Vec<&str> = ENGINES.iter().map(|entry| entry.name).collect();
                Err(Error::Refused(format!(
                    "there is no engine \"{}\": choose {} or 'command:… {{source}} … {{target}}'",
                    name.escape_debug(),
                    names.join(", ")
                )))
            }
        }
    }

    /// Its name for the record.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Files(name, _) => (*name).to_owned(),
            Self::Command(command) => format!("command:{}", command.template()),
        }
    }

    /// The mechanism that was really used.
    #[must_use]
    pub fn mechanism(&self) -> &'static str {
        match self {
            Self::Files(_, engine) => engine.mechanism(),
            Self::Command(_) => "external program",
        }
    }

    /// Whether it moves anything at all.
    #[must_use]
    pub fn moves_bytes(&self) -> bool {
        !matches!(self, Self::Files("null", _))
    }
}

impl Trees<'_> {
    /// Opens a source file and makes its copy with the same permissions. Returns both, and the source's modification time and length.
    fn open_pair(self, path: &Path, calls: &mut Calls<'_>) -> Result<Pair> {
        let Self { files, source, target, .. } = self;
        let from = calls.time(Op::Open, || files.open(source, path)).during("open", Side::Source, self.source_path.join(path))?;
        let stat = calls.time(Op::Metadata, || files.stat(&from)).during("look at", Side::Source, self.source_path.join(path))?;
        if stat.kind != Kind::File {
            let foreign = io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file: something else was put in its place");
            return Err(foreign).during("copy", Side::Source, self.source_path.join(path));
        }
        // Advice only: what cp gives, and the first bytes asked for at once, since a whole piece is waited for before any of it is written.
        let _ = calls.time(Op::Metadata, || files.advise_sequential(&from));
        let _ = calls.time(Op::Asking, || files.advise_needed(&from, stat.len.min(NEEDED)));
        let mode = stat.mode | OWNER;
        let to = calls.time(Op::Create, || files.create(target, path, mode)).during("create", Side::Target, self.target_path.join(path))?;
        Ok(Pair { from, to, inode: stat.inode, mode: stat.mode, mtime: stat.mtime, len: stat.len })
    }

    /// Carries time and permissions over and closes both files.
    fn close_pair(self, path: &Path, pair: Pair, calls: &mut Calls<'_>) -> Result<()> {
        let Pair { from, to, mode, mtime, .. } = pair;
        self.finish_target(path, to, mode, mtime, calls)?;
        calls.time(Op::Close, || self.files.close(from)).during("close", Side::Source, self.source_path.join(path))
    }

    /// Gives a new file its time and then its permissions, which may take away the right to write to it, and closes it. A file system that keeps neither
    /// has the data all the same: that is counted, not failed.
    fn finish_target(self, path: &Path, file: Handle, mode: u32, mtime: (i64, u32), calls: &mut Calls<'_>) -> Result<()> {
        let Self { files, target_path, umask, .. } = self;
        let mut is_kept = true;
        let mut set = |answer: io::Result<()>, operation: &'static str| match answer {
            Err(error) if is_unsupported(&error) => {
                is_kept = false;
                Ok(())
            }
            answer => answer.during(operation, Side::Target, target_path.join(path)),
        };
        set(calls.time(Op::Metadata, || files.set_mtime(&file, mtime)), "set the time of")?;
        if mode & umask != 0 || mode & OWNER != OWNER {
            set(calls.time(Op::Metadata, || files.set_mode(&file, mode)), "set the permissions of")?;
        }
        calls.metadata_lost += u64::from(!is_kept);
        calls.time(Op::Close, || files.close(file)).during("close", Side::Target, target_path.join(path))
    }

    /// A source that ended before its length was reached was cut meanwhile: what was copied of it is no copy.
    fn is_whole(self, path: &Path, pair: &Pair, moved: u64) -> Result<()> {
        if moved == pair.len {
            return Ok(());
        }
        let cut = io::Error::new(io::ErrorKind::UnexpectedEof, format!("it ended after {moved} of {} bytes: was it changed meanwhile?", pair.len));
        Err(cut).during("read", Side::Source, self.source_path.join(path))
    }

    /// Writes all of `data`, which belongs at `offset`, however little the system takes at a time.
    fn write_all(self, path: &Path, file: &Handle, mut offset: u64, mut data: &[u8], calls: &mut Calls<'_>) -> Result<()> {
        while !data.is_empty() {
            let written = calls.time(Op::Write, || self.files.write(file, data)).and_then(|written| match written {
                0 => Err(io::ErrorKind::WriteZero.into()),
                written => Ok(written),
            });
            let written = written.during_at(offset, "write to", Side::Target, self.target_path.join(path))?;
            calls.writes += 1;
            calls.written_bytes += written as u64;
            self.counter.add_bytes(written as u64);
            offset += written as u64;
            data = &data[written..];
        }
        Ok(())
    }
}

struct Pair {
    from: Handle,
    to: Handle,
    inode: u64,
    mode: u32,
    mtime: (i64, u32),
    len: u64,
}

/// Writes files whose bytes come from elsewhere, one after another: the target's half of a copy.
pub struct TargetWriter<'a> {
    trees: Trees<'a>,
    open: Option<Handle>,
}

impl<'a> TargetWriter<'a> {
    /// Writes below the target.
    #[must_use]
    pub fn new(trees: Trees<'a>) -> Self {
        Self { trees, open: None }
    }

    /// Writes the next piece of a file: at offset 0 the file is made, at its end it gets its time and is closed.
    ///
    /// # Errors
    /// What the system answered, with path and side.
    pub fn write(&mut self, file: &FileMeta, offset: u64, data: &[u8], calls: &mut Calls<'_>) -> Result<()> {
        const MODE: u32 = 0o644;
        let Trees { files, target, target_path, .. } = self.trees;
        let path = Path::new(&file.path);
        let handle = match self.open.take() {
            Some(handle) => handle,
            None => calls.time(Op::Create, || files.create(target, path, MODE)).during("create", Side::Target, target_path.join(path))?,
        };
        self.trees.write_all(path, &handle, offset, data, calls)?;
        if offset + data.len() as u64 == file.len {
            self.trees.finish_target(path, handle, MODE, (file.mtime, 0), calls)
        } else {
            self.open = Some(handle);
            Ok(())
        }
    }
}
