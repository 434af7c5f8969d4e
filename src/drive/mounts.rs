//! The mounts of this process, as the kernel lists them in `/proc/self/mountinfo`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::DeviceNumber;

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Where it is mounted.
    pub point: PathBuf,
    /// The device number of the file system; major 0 is an anonymous one, which stands for no block device.
    pub device: DeviceNumber,
    /// The type of the file system: `ext4`, `vfat`, `fuse.sshfs`.
    pub fs_type: String,
    /// What is mounted: a device, a share, or a word of the file system's own.
    pub source: OsString,
    /// The options of the mount and of the file system, each once, separated by commas.
    pub options: String,
}

/// Reads a mount list; lines that are none are left out. Format: `Documentation/filesystems/proc.rst` of the kernel, section 3.5.
pub fn parse(list: &[u8]) -> Vec<Mount> {
    list.split(|&byte| byte == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<Mount> {
    // Single spaces separate; a field may be empty (the source of some mounts is).
    let mut fields = line.split(|&byte| byte == b' ');
    let device = fields.nth(2).and_then(|field| parse_number(std::str::from_utf8(field).ok()?))?;
    let point = unescape(fields.nth(1)?);
    let mount_options = fields.next()?;
    fields.find(|field| *field == b"-")?;
    let fs_type = fields.next()?;
    let source = unescape(fields.next()?);
    let options = join_options(mount_options, fields.next().unwrap_or_default());
    let fs_type = String::from_utf8_lossy(&unescape(fs_type)).into_owned();
    Some(Mount { point: OsString::from_vec(point).into(), device, fs_type, source: OsString::from_vec(source), options })
}

/// Reads `major:minor`.
pub fn parse_number(text: &str) -> Option<DeviceNumber> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Both lists of options as one. A mount is read-only when the mount or the file system is.
fn join_options(of_mount: &[u8], of_file_system: &[u8]) -> String {
    let both = [of_mount, of_file_system].map(|options| String::from_utf8_lossy(&unescape(options)).into_owned());
    let given: Vec<&str> = both.iter().flat_map(|options| options.split(',')).filter(|option| !option.is_empty()).collect();
    let read_only = given.contains(&"ro");
    let mut options: Vec<&str> = Vec::new();
    for option in given {
        if !(options.contains(&option) || read_only && option == "rw") {
            options.push(option);
        }
    }
    options.join(",")
}

/// Undoes the kernel's escapes: a backslash and three octal digits stand for a byte.
pub fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|digits| first == b'\\' && digits.iter().all(|digit| (b'0'..=b'7').contains(digit)) && digits[0] < b'4');
        if let Some(digits) = octal {
            bytes.push(digits.iter().fold(0, |value, digit| value * 8 + (digit - b'0')));
            rest = &after[3..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    bytes
}

/// Whether a file system of this type keeps its files in this machine's memory.
pub fn in_memory(fs_type: &str) -> bool {
    matches!(fs_type, "tmpfs" | "ramfs" | "devtmpfs")
}

/// The mount on which a resolved path lies. Of mounts stacked on one point the last is the one that is seen. `device`, where known, is the device number of the path itself:
/// it tells a mount from one that another hides, and is right where the list is not (in a changed root).
pub fn holding<'m>(mounts: &'m [Mount], path: &Path, device: Option<DeviceNumber>) -> Option<&'m Mount> {
    let of_device = |mount: &&Mount| Some(mount.device) == device;
    // Of equals `max_by_key` takes the last.
    let deepest = |accept: &dyn Fn(&&Mount) -> bool| {
        mounts.iter().filter(|mount| path.starts_with(&mount.point)).filter(accept).max_by_key(|mount| mount.point.components().count())
    };
    match device {
        // The subvolumes of some file systems have anonymous numbers that no mount has.
        None | Some((0, _)) => deepest(&of_device).or_else(|| deepest(&|_| true)),
        Some(_) => deepest(&of_device).or_else(|| mounts.iter().rfind(of_device)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use proptest::prelude::*;

    use super::*;

    fn escaped(bytes: &[u8]) -> Vec<u8> {
        let escape = |&byte: &u8| match byte {
            b' ' | b'\t' | b'\n' | b'\\' => format!("\\{byte:03o}").into_bytes(),
            _ => vec![byte],
        };
        bytes.iter().flat_map(escape).collect()
    }

    proptest! {
        #[test]
        fn what_the_kernel_escapes_is_read_back(
            names in prop::collection::vec(prop::collection::vec(1..=255_u8, 0..20), 1..5), source in prop::collection::vec(1..=255_u8, 0..20),
            device in any::<DeviceNumber>(), optional in 0..3_usize, fs_type in "[a-z0-9.]{1,12}",
        ) {
            let point = [b"/".as_slice(), &names.join(&b'/')].concat();
            let mut line = format!("36 35 {}:{} / ", device.0, device.1).into_bytes();
            line.extend(escaped(&point));
            line.extend(b" rw,noatime");
            line.extend(b" master:1".repeat(optional));
            line.extend(format!(" - {fs_type} ").into_bytes());
            line.extend(escaped(&source));
            line.extend(b" rw,errors=continue\n");
            let expected = Mount {
                point: OsString::from_vec(point).into(), device, fs_type, source: OsString::from_vec(source),
                options: "rw,noatime,errors=continue".into(),
            };
            prop_assert_eq!(parse(&line), vec![expected]);
        }

        #[test]
        fn nothing_that_is_not_a_mount_list_stops_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[0-9:/ \\\\rw-]{0,80}") {
            parse(&bytes);
            parse(text.as_bytes());
        }
    }

    fn list(lines: &[&str]) -> Vec<Mount> {
        let mounts = parse(lines.join("\n").as_bytes());
        assert_eq!(mounts.len(), lines.len());
        mounts
    }

    #[test]
    fn the_longest_prefix_by_components_and_the_last_of_a_stack_win() {
        let mounts = list(&[
            "27 1 254:0 / / rw - ext4 /dev/vda rw",
            "30 27 0:40 / /mnt/a rw - tmpfs one rw",
            "31 27 0:41 / /mnt/a rw - tmpfs two rw",
            "32 27 8:1 / /mnt/a\\040b ro - vfat /dev/sda1 rw",
        ]);
        let source = |path: &str| holding(&mounts, Path::new(path), None).map(|mount| mount.source.as_bytes().to_vec());
        assert_eq!(source("/mnt/a/x"), Some(b"two".to_vec()));
        assert_eq!(source("/mnt/a b/c"), Some(b"/dev/sda1".to_vec()));
        assert_eq!(source("/mnt/ab"), Some(b"/dev/vda".to_vec()));
        assert_eq!(mounts[3].options, "ro");
    }

    #[test]
    fn the_device_number_tells_a_hidden_mount_from_the_one_that_is_seen() {
        let mounts = list(&[
            "27 1 254:0 / / rw - ext4 /dev/vda rw",
            "30 27 8:1 / /mnt/a rw - ext4 /dev/sda1 rw",
            "31 27 8:2 / /mnt rw - ext4 /dev/sda2 rw",
            "32 27 0:35 / /pool rw - btrfs /dev/sdb rw",
        ]);
        let point = |path, device| holding(&mounts, Path::new(path), Some(device)).map(|mount| mount.point.clone());
        assert_eq!(point("/mnt/a", (8, 2)), Some("/mnt".into()));
        assert_eq!(point("/pool/subvolume", (0, 36)), Some("/pool".into()));
        assert_eq!(point("/elsewhere", (8, 1)), Some("/mnt/a".into()));
        assert_eq!(point("/elsewhere", (9, 9)), None);
    }
}
