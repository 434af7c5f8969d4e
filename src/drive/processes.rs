//! Who uses the drives of this machine: the storage I/O that the kernel books to processes.

use std::collections::BTreeMap;

use crate::platform::Host;

/// What was moved on behalf of processes, on whatever drives: bytes that had to be read from storage, and bytes of pages that were made dirty, less those
/// that were thrown away before they were written (`Documentation/filesystems/proc.rst` of the kernel, `/proc/PID/io`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessIo {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

impl ProcessIo {
    /// Reads the text of `/proc/PID/io`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.trim().parse::<u64>().ok());
        let cancelled = field("cancelled_write_bytes").unwrap_or(0);
        Some(Self { read_bytes: field("read_bytes")?, written_bytes: field("write_bytes")?.saturating_sub(cancelled) })
    }

    /// What was moved since an earlier look.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
        }
    }

    /// Both added up.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { read_bytes: self.read_bytes.saturating_add(other.read_bytes), written_bytes: self.written_bytes.saturating_add(other.written_bytes) }
    }

    /// Both together.
    #[must_use]
    pub fn sum(self) -> u64 {
        self.read_bytes.saturating_add(self.written_bytes)
    }
}

/// All processes at one moment.
#[derive(Debug, Clone, Default)]
pub struct Processes {
    own: Option<ProcessIo>,
    /// The others that can be seen, with what tells a process from a later one of the same number; threads of the kernel work for everybody and are left out.
    others: BTreeMap<(u32, u64), (String, ProcessIo)>,
    /// Another process could not be seen.
    has_hidden: bool,
}

/// What processes moved between two moments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Moved {
    /// This process and the children that it waited for.
    pub own: Option<ProcessIo>,
    /// All others that can be seen. One that began and ended in between is missing.
    pub others: ProcessIo,
    /// Whether there are others that can't be seen.
    pub has_hidden: bool,
    /// The name of the one that moved most, if any did.
    pub busiest: Option<String>,
}

/// The threads of this process, and of the programs that it started, that sleep in the kernel and can't be woken (state D), with how often each went to sleep so
/// far: one with the same number as before sleeps the same sleep.
#[must_use]
pub fn sleepers(host: &Host) -> BTreeMap<u32, u64> {
    /// A program that starts others without end is not followed without end.
    const PROCESSES: usize = 100;
    let mut found = BTreeMap::new();
    let mut processes = vec!["self".to_owned()];
    let mut next = 0;
    while let Some(process) = processes.get(next).cloned() {
        next += 1;
        for thread in host.names(format!("/proc/{process}/task")) {
            let about = format!("/proc/{process}/task/{thread}");
            if let Some(children) = host.fact(format!("{about}/children")).filter(|_| processes.len() < PROCESSES) {
                processes.extend(children.split_ascii_whitespace().map(str::to_owned));
            }
            let asleep = host.fact(format!("{about}/status")).as_deref().and_then(asleep);
            found.extend(thread.parse().ok().zip(asleep));
        }
    }
    found
}

/// How often a thread went to sleep, by its `status`, where it sleeps and can't be woken.
fn asleep(status: &str) -> Option<u64> {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim));
    if field("State")?.starts_with('D') { field("voluntary_ctxt_switches")?.parse().ok() } else { None }
}

/// The fields of `/proc/PID/stat` that matter: the name, whether it is a thread of the kernel, and when it began.
fn parse_stat(text: &str) -> Option<(String, bool, u64)> {
    // The name stands in brackets and may hold anything, brackets too.
    let (head, rest) = text.rsplit_once(')')?;
    let name = head.split_once('(')?.1;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    const PF_KTHREAD: u32 = 0x0020_0000;
    let flags: u32 = fields.get(6)?.parse().ok()?;
    Some((name.to_owned(), flags & PF_KTHREAD != 0, fields.get(19)?.parse().ok()?))
}

impl Processes {
    /// Looks at all processes.
    #[must_use]
    pub fn look(host: &Host) -> Self {
        let own_id = std::process::id();
        let mut seen = Self { own: host.fact("/proc/self/io").as_deref().and_then(ProcessIo::parse), ..Self::default() };
        for id in host.names("/proc").iter().filter_map(|name| name.parse::<u32>().ok()).filter(|&id| id != own_id) {
            // One that has just ended is gone.
            let Some((name, of_kernel, began)) = host.fact(format!("/proc/{id}/stat")).as_deref().and_then(parse_stat) else { continue };
            if of_kernel {
                continue;
            }
            match host.fact(format!("/proc/{id}/io")).as_deref().and_then(ProcessIo::parse) {
                Some(io) => drop(seen.others.insert((id, began), (name, io))),
                None => seen.has_hidden = true,
            }
        }
        seen
    }

    /// What was moved since an earlier look.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Moved {
        let mut others = ProcessIo::default();
        let mut busiest: Option<(u64, &str)> = None;
        for (key, (name, io)) in &self.others {
            let moved = io.since(earlier.others.get(key).map_or(ProcessIo::default(), |(_, before)| *before));
            others = others.plus(moved);
            if moved.sum() > busiest.map_or(0, |(most, _)| most) {
                busiest = Some((moved.sum(), name));
            }
        }
        Moved {
            own: self.own.zip(earlier.own).map(|(now, before)| now.since(before)),
            others,
            has_hidden: self.has_hidden || earlier.has_hidden,
            busiest: busiest.map(|(_, name)| name.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests make their own fixtures")]

    use super::*;

    fn process(root: &std::path::Path, id: &str, name: &str, flags: u32, began: u64, io: Option<(u64, u64, u64)>) {
        let directory = root.join("proc").join(id);
        std::fs::create_dir_all(&directory).unwrap();
        let stat = format!("{id} ({name}) S 1 1 1 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 {began} 0 0");
        std::fs::write(directory.join("stat"), stat).unwrap();
        match io {
            Some((read, written, cancelled)) => {
                let text = format!("rchar: 1\nwchar: 2\nread_bytes: {read}\nwrite_bytes: {written}\ncancelled_write_bytes: {cancelled}\n");
                std::fs::write(directory.join("io"), text).unwrap();
            }
            None => drop(std::fs::remove_file(directory.join("io"))),
        }
    }

    #[test]
    fn others_are_added_up_and_the_busiest_is_named() {
        let root = tempfile::tempdir().unwrap();
        let host = Host::at(root.path());
        process(root.path(), "self", "copysim", 0, 5, Some((1_000, 0, 0)));
        process(root.path(), "4000001", "rsync) (x", 0, 7, Some((10, 500, 100)));
        process(root.path(), "4000002", "kworker/0:1", 0x0020_0000, 1, Some((9, 9, 0)));
        let before = Processes::look(&host);
        process(root.path(), "self", "copysim", 0, 5, Some((3_000, 4_000, 0)));
        process(root.path(), "4000001", "rsync) (x", 0, 7, Some((10, 900, 100)));
        process(root.path(), "4000003", "new", 0, 9, Some((7, 0, 0)));
        let moved = Processes::look(&host).since(&before);
        assert_eq!(moved.own, Some(ProcessIo { read_bytes: 2_000, written_bytes: 4_000 }));
        assert_eq!((moved.others, moved.has_hidden), (ProcessIo { read_bytes: 7, written_bytes: 400 }, false));
        assert_eq!(moved.busiest.as_deref(), Some("rsync) (x"));
        // A number that was given again is another process.
        process(root.path(), "4000001", "other", 0, 8, Some((0, 1_000, 0)));
        assert_eq!(Processes::look(&host).since(&before).others.written_bytes, 1_000);
        process(root.path(), "4000001", "other", 0, 8, None);
        assert!(Processes::look(&host).since(&before).has_hidden);
    }

    #[test]
    fn this_process_is_seen_as_it_is() {
        let moved = Processes::look(&Host::real());
        if moved.own.is_none() {
            println!("skipped: this kernel books no I/O to processes");
        }
        assert!(moved.others.keys().all(|(id, _)| *id != std::process::id()));
    }
}
