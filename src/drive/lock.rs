//! One run for each physical drive: a name on the machine for each, and who holds it.

use std::path::Path;

use super::{DeviceNumber, mounts};
use crate::platform::{Host, NameLock, Stat, lock_name};
use crate::{Context, Error, Result, Side};

/// Physical drives that no other copysim of this machine measures meanwhile, whichever user runs it. Dropping it, or dying, gives them back.
#[derive(Debug)]
pub struct DriveLock {
    _names: Vec<NameLock>,
}

impl DriveLock {
    /// Locks the drives with these numbers (`Drive::lock_numbers` of all drives of a run at once, since a drive may be there twice).
    ///
    /// # Errors
    /// `Refused` when another process holds one of them.
    pub fn take(host: &Host, numbers: impl IntoIterator<Item = DeviceNumber>) -> Result<Self> {
        let mut numbers: Vec<DeviceNumber> = numbers.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut names = Vec::new();
        for (major, minor) in numbers {
            let name = format!("copysim-drive-{major}:{minor}");
            match lock_name(&name).during("take the lock", Side::Host, &name)? {
                Some(lock) => names.push(lock),
                None => return Err(Error::Refused(busy("measuring this drive", holder_of_name(host, &name)))),
            }
        }
        Ok(Self { _names: names })
    }
}

/// The sentence for what another copysim does.
pub(super) fn busy(doing: &str, holder: Option<u32>) -> String {
    let holder = holder.map(|pid| format!(" (PID {pid})")).unwrap_or_default();
    format!("another copysim is {doing}{holder}: wait until it has ended")
}

/// The process that holds a name, by the second socket's name in the kernel's list.
fn holder_of_name(host: &Host, name: &str) -> Option<u32> {
    let prefix = format!("@{name}-pid-");
    let list = host.bytes("/proc/net/unix")?;
    let list = String::from_utf8_lossy(&list);
    list.lines().filter_map(|line| line.split_whitespace().next_back()).find_map(|path| path.strip_prefix(&prefix)?.parse().ok())
}

/// The process that holds the lock of a file, by the kernel's list: `1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE 0 EOF`, device in hexadecimal.
pub(super) fn holder_of_file(host: &Host, path: &Path, file: &Stat) -> Option<u32> {
    // The list has the number of the mount, the file that of its subvolume.
    let mounts = host.bytes("/proc/self/mountinfo").map(|list| mounts::parse(&list)).unwrap_or_default();
    let mount = mounts::holding(&mounts, path, Some(file.device)).map_or(file.device, |mount| mount.device);
    let names = [file.device, mount].map(|(major, minor)| format!("{major:02x}:{minor:02x}:{}", file.inode));
    host.fact("/proc/locks")?.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // A "->" stands before the kind of those who wait.
        let held = fields.get(1) == Some(&"FLOCK") && names.iter().any(|name| fields.get(5) == Some(&name.as_str()));
        fields.get(4).filter(|_| held)?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests make their own fixtures")]

    use super::*;
    use crate::platform::Kind;

    /// A drive number of this process alone: no machine has such devices.
    fn own(minor: u32) -> DeviceNumber {
        (1_000_000 + std::process::id(), minor)
    }

    #[test]
    fn a_second_run_on_a_drive_is_refused_and_told_by_whom() {
        let host = Host::real();
        let first = DriveLock::take(&host, [own(1), own(2), own(1)]).unwrap();
        let error = DriveLock::take(&host, [own(0), own(2)]).unwrap_err();
        assert_eq!(error.to_string(), format!("another copysim is measuring this drive (PID {}): wait until it has ended", std::process::id()));
        assert_eq!(error.exit_code(), 2);
        // What the refused one had taken it gave back.
        let other = DriveLock::take(&host, [own(0)]).unwrap();
        drop(first);
        DriveLock::take(&host, [own(1), own(2)]).unwrap();
        drop(other);
    }

    #[test]
    fn the_holder_of_a_file_lock_is_found_by_device_and_inode() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let locks = "1: POSIX  ADVISORY  WRITE 11 08:10:77 0 EOF\n2: FLOCK  ADVISORY  WRITE 22 08:10:77 0 EOF\n2: -> FLOCK  ADVISORY  WRITE 33 08:10:77 0 EOF\n";
        std::fs::write(root.path().join("proc/locks"), locks).unwrap();
        let stat = |inode| Stat { kind: Kind::File, len: 0, stored_bytes: 0, mtime: (0, 0), mode: 0, device: (8, 16), inode, uid: 0 };
        let host = Host::at(root.path());
        let holder = |file| holder_of_file(&host, Path::new("/pool/file"), &file);
        assert_eq!((holder(stat(77)), holder(stat(78))), (Some(22), None));
        // A subvolume's number is not the one in the list.
        let file = Stat { device: (0, 36), ..stat(77) };
        assert_eq!(holder(file), None);
        std::fs::create_dir(root.path().join("proc/self")).unwrap();
        std::fs::write(root.path().join("proc/self/mountinfo"), "27 1 8:16 / /pool rw - btrfs /dev/sdb rw").unwrap();
        assert_eq!(holder(file), Some(22));
    }
}
