//! A control group of the kernel that gives this process little memory: what it reads goes out of memory again before it is read the next time.

use std::io;
use std::path::{Path, PathBuf};

use super::Host;

/// What our groups are called, with the number of their process.
const PREFIX: &str = "copysim-memory-";

/// A group that this process has entered, with all of its threads.
#[derive(Debug)]
pub struct MemoryGroup {
    group: PathBuf,
    /// Where the process was before.
    home: PathBuf,
    left: bool,
}

/// The hierarchy of groups that limits memory.
struct Hierarchy {
    /// The group of this process.
    home: PathBuf,
    /// The group in which a new one is made.
    parent: PathBuf,
    /// The file that holds the limit.
    limit: &'static str,
}

#[expect(clippy::disallowed_methods, reason = "this is the room of std::fs")]
impl MemoryGroup {
    /// Makes a group that may have so many bytes in memory, page cache included, and enters it. What the process has in memory already is not counted.
    ///
    /// # Errors
    /// `Unsupported` where there is no such hierarchy; what the system answered else: no right, most likely.
    pub fn enter(host: &Host, bytes: u64) -> io::Result<Self> {
        let Hierarchy { home, parent, limit } = Hierarchy::of(host).ok_or(io::ErrorKind::Unsupported)?;
        let group = parent.join(format!("{PREFIX}{}", std::process::id()));
        std::fs::create_dir(&group)?;
        let this = Self { group, home, left: false };
        std::fs::write(this.group.join(limit), bytes.to_string())?;
        std::fs::write(this.group.join("cgroup.procs"), std::process::id().to_string())?;
        Ok(this)
    }

    /// How many pages of files had to be read again because they had been put out of memory: `workingset_refault_file` of `memory.stat`.
    #[must_use]
    pub fn refaulted_pages(&self) -> Option<u64> {
        let text = std::fs::read_to_string(self.group.join("memory.stat")).ok()?;
        // Its name before Linux 5.9.
        let of = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
        of("workingset_refault_file").or_else(|| of("workingset_refault"))
    }

    /// Goes back to where the process was before, and removes the group.
    ///
    /// # Errors
    /// What the system answered; the process may then still have little memory.
    pub fn leave(mut self) -> io::Result<()> {
        self.go()
    }

    fn go(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.left, true) {
            return Ok(());
        }
        let moved = std::fs::write(self.home.join("cgroup.procs"), std::process::id().to_string());
        moved.and(std::fs::remove_dir(&self.group))
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // Whoever wants to know leaves by name.
        let _ = self.go();
    }
}

/// Removes the groups of processes that were killed: they are empty. Returns how many.
#[expect(clippy::disallowed_methods, reason = "this is the room of std::fs")]
pub fn remove_memory_groups(host: &Host) -> usize {
    let Some(Hierarchy { parent, .. }) = Hierarchy::of(host) else { return 0 };
    let names = std::fs::read_dir(&parent).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let ours = names.filter(|name| name.to_str().and_then(|name| name.strip_prefix(PREFIX)).is_some_and(|rest| rest.parse::<u32>().is_ok()));
    // One that a process is in is not removed.
    ours.filter(|name| std::fs::remove_dir(parent.join(name)).is_ok()).count()
}

impl Hierarchy {
    /// The one in which memory can be limited: of version 1 where it has the controller, else of version 2.
    fn of(host: &Host) -> Option<Self> {
        let own = host.fact("/proc/self/cgroup")?;
        let mounts = host.fact("/proc/self/mountinfo")?;
        let first = own.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            controllers.split(',').any(|controller| controller == "memory").then_some(path)
        });
        if let Some(path) = first {
            let home = mounted(host, &mounts, path, |kind, options| kind == "cgroup" && options.split(',').any(|option| option == "memory"))?;
            return Some(Self { parent: home.clone(), home, limit: "memory.limit_in_bytes" });
        }
        let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
        let home = mounted(host, &mounts, path, |kind, _| kind == "cgroup2")?;
        // A group with processes can't divide memory among groups below it; one beside it can have some. The root may do both.
        let root = mounted(host, &mounts, "/", |kind, _| kind == "cgroup2")?;
        let parent = if home == root { root } else { home.parent()?.to_owned() };
        enable_memory(&parent);
        Some(Self { home, parent, limit: "memory.max" })
    }
}

/// Lets the groups below this one be limited in memory, where they are not yet. Where that is refused, setting a limit fails.
#[expect(clippy::disallowed_methods, reason = "this is the room of std::fs")]
fn enable_memory(parent: &Path) {
    let control = parent.join("cgroup.subtree_control");
    let enabled = std::fs::read_to_string(&control).is_ok_and(|text| text.split_whitespace().any(|controller| controller == "memory"));
    if !enabled {
        let _ = std::fs::write(control, "+memory");
    }
}

/// Where a group of a hierarchy is mounted: a line of mountinfo has the root of the mount, its place, and behind a dash its kind, source and options.
fn mounted(host: &Host, mounts: &str, group: &str, is_it: impl Fn(&str, &str) -> bool) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (front, back) = line.split_once(" - ")?;
        let mut back = back.split(' ');
        let (kind, options) = (back.next()?, back.nth(1)?);
        let mut front = front.split(' ').skip(3);
        let (root, place) = (front.next()?, front.next()?);
        if !is_it(kind, options) {
            return None;
        }
        let below = Path::new(group).strip_prefix(root).ok()?;
        Some(host.path(Path::new(place).join(below)))
    })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "this is the room of std::fs")]
mod tests {
    use super::*;

    fn machine(cgroup: &str, mountinfo: &str, directories: &[&str]) -> (tempfile::TempDir, Host) {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc/self")).unwrap();
        std::fs::write(root.path().join("proc/self/cgroup"), cgroup).unwrap();
        std::fs::write(root.path().join("proc/self/mountinfo"), mountinfo).unwrap();
        for directory in directories {
            std::fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        let host = Host::at(root.path());
        (root, host)
    }

    fn read(root: &tempfile::TempDir, path: &str) -> String {
        std::fs::read_to_string(root.path().join(path)).unwrap_or_default()
    }

    #[test]
    fn version_1_limits_a_group_below_ones_own() {
        let line = "30 20 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";
        let (root, host) = machine("4:memory:/a/b\n0::/\n", line, &["sys/fs/cgroup/memory/a/b"]);
        let group = MemoryGroup::enter(&host, 1 << 20).unwrap();
        let place = format!("sys/fs/cgroup/memory/a/b/{PREFIX}{}", std::process::id());
        assert_eq!(read(&root, &format!("{place}/memory.limit_in_bytes")), "1048576");
        assert_eq!(read(&root, &format!("{place}/cgroup.procs")), std::process::id().to_string());
        std::fs::write(root.path().join(&place).join("memory.stat"), "cache 5\nworkingset_refault_file 77\n").unwrap();
        assert_eq!(group.refaulted_pages(), Some(77));
        // A directory of a real hierarchy has files that do not keep it from being removed; this one has.
        assert!(group.leave().is_err());
        assert_eq!(read(&root, "sys/fs/cgroup/memory/a/b/cgroup.procs"), std::process::id().to_string());
    }

    #[test]
    fn version_2_limits_a_group_beside_ones_own() {
        let line = "30 20 0:26 /system /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n29 20 0:25 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let (root, host) = machine("0::/system/shell\n", line, &["sys/fs/cgroup/shell"]);
        let group = MemoryGroup::enter(&host, 4096).unwrap();
        let place = format!("sys/fs/cgroup/{PREFIX}{}", std::process::id());
        assert_eq!(read(&root, &format!("{place}/memory.max")), "4096");
        assert_eq!(read(&root, "sys/fs/cgroup/cgroup.subtree_control"), "+memory");
        drop(group);
        assert_eq!(read(&root, "sys/fs/cgroup/shell/cgroup.procs"), std::process::id().to_string());
    }

    #[test]
    fn without_a_hierarchy_it_is_unsupported() {
        let (_root, host) = machine("1:name=systemd:/\n", "", &[]);
        assert_eq!(MemoryGroup::enter(&host, 1).unwrap_err().kind(), io::ErrorKind::Unsupported);
        assert_eq!(remove_memory_groups(&host), 0);
    }

    #[test]
    fn groups_of_killed_processes_are_removed_and_others_stay() {
        let line = "30 20 0:26 / /cg rw - cgroup cgroup rw,memory\n";
        let (root, host) = machine("4:memory:/\n", line, &["cg/copysim-memory-12", "cg/copysim-memory-x", "cg/other"]);
        assert_eq!(remove_memory_groups(&host), 1);
        assert!(root.path().join("cg/copysim-memory-x").exists() && root.path().join("cg/other").exists());
    }
}
