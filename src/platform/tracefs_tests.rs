//! Pages made by hand, damaged pages, and the kernel itself where there is root.
#![expect(clippy::disallowed_methods, reason = "tests make their own fixtures and look at tracefs")]

use std::process::Command;

use proptest::prelude::*;

use super::*;

const ISSUE: &str = "name: block_rq_issue
ID: 2104
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;
\tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;
\tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;
\tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;
\tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;
";
const PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;
";

fn layout() -> PageLayout {
    PageLayout::parse(PAGE).unwrap()
}

fn head(kind: u32, delta: u32) -> Vec<u8> {
    if cfg!(target_endian = "little") { kind | delta << 5 } else { kind << 27 | delta }.to_ne_bytes().to_vec()
}

fn page(ns: u64, flags: u64, data: &[u8]) -> Vec<u8> {
    [ns.to_ne_bytes().as_slice(), &(data.len() as u64 | flags).to_ne_bytes(), data].concat()
}

type Entries = Vec<(u64, Vec<u8>)>;

fn read(page: &[u8]) -> io::Result<(Entries, bool)> {
    let mut events = Vec::new();
    let gap = layout().events(page, &mut |ns, data| {
        events.push((ns, data.to_vec()));
        Ok(())
    })?;
    Ok((events, gap))
}

#[test]
fn every_kind_of_entry_moves_the_time_as_it_should() {
    let long = [head(0, 5), 12_u32.to_ne_bytes().to_vec(), vec![7; 8]].concat();
    let stamp = [head(31, 40), 1_u32.to_ne_bytes().to_vec()].concat();
    let extend = [head(30, 3), 2_u32.to_ne_bytes().to_vec()].concat();
    let discarded = [head(29, 10), 8_u32.to_ne_bytes().to_vec(), vec![9; 4]].concat();
    let data = [head(2, 100), vec![1; 8], extend, long, discarded, stamp, head(1, 1), vec![2; 4], head(29, 0), vec![5; 16]].concat();
    let (events, gap) = read(&page(1000, 0, &data)).unwrap();
    let second = 1100 + (2 << 27) + 3 + 5;
    assert_eq!(events, [(1100, vec![1; 8]), (second, vec![7; 8]), ((1 << 27) + 41, vec![2; 4])]);
    assert!(!gap && read(&page(1, EVENTS_MISSING, &[])).unwrap().1);
    assert_eq!(layout().size(), 4096);
}

#[test]
fn an_event_is_read_by_its_format() {
    let format = Format::parse(ISSUE, BlockPoint::Issued).unwrap();
    let mut data = vec![0; 64];
    data[..2].copy_from_slice(&2104_u16.to_ne_bytes());
    data[8..12].copy_from_slice(&(7_u32 << 20 | 3).to_ne_bytes());
    data[16..24].copy_from_slice(&98_324_u64.to_ne_bytes());
    data[24..28].copy_from_slice(&2048_u32.to_ne_bytes());
    data[34..37].copy_from_slice(b"WSM");
    let event = Format::of(&[format], &data).unwrap().event(5, &data).unwrap();
    assert_eq!((event.device, event.sector, event.sectors, &event.rwbs[..4]), ((7, 3), 98_324, 2048, b"WSM\0".as_slice()));
    data[0] ^= 1;
    assert!(Format::of(&[format], &data).is_none());
    assert!(format.event(5, &data[..40]).is_err());
    assert!(Format::parse(&ISSUE.replace("nr_sector", "other"), BlockPoint::Issued).is_err());
}

#[test]
fn what_was_lost_is_added_up() {
    assert_eq!(lost_in("entries: 9\noverrun: 3\ncommit overrun: 5\nbytes: 2080\noldest event ts: 13418.6\ndropped events: 7\nread events: 1\n"), 15);
}

#[test]
fn only_names_of_our_own_are_ours() {
    assert_eq!(owner("copysim-123-0"), Some("123"));
    for name in ["copysim-123", "copysim-x-1", "copysim-1-", "copysim--1", "other-1-1", "copysim-1-2-3", ""] {
        assert_eq!(owner(name), None, "{name}");
    }
}

proptest! {
    #[test]
    fn a_damaged_page_is_refused_or_read_but_never_a_panic(data in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(&data);
        let _ = read(&page(7, 0, &data));
    }
}

/// tracefs mounted for a test; detached again at the end.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn new() -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount").args(["-t", "tracefs", "tracefs"]).arg(place.path()).output().is_ok_and(|output| output.status.success());
        mounted.then(|| Self(place))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A copysim that runs beside this test may have found it.
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

/// A loop device on a file, and its number.
struct Loop(String, (u32, u32), #[expect(dead_code, reason = "it holds the file")] tempfile::TempDir);

impl Loop {
    fn new() -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("image");
        File::create(&file).unwrap().set_len(16 << 20).unwrap();
        let output = Command::new("losetup").args(["--find", "--show"]).arg(&file).output().ok().filter(|output| output.status.success())?;
        let device = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        let number = text(Path::new(&format!("/sys/block/{}/dev", device.strip_prefix("/dev/")?))).unwrap();
        let (major, minor) = number.trim().split_once(':').unwrap();
        Some(Self(device, (major.parse().unwrap(), minor.parse().unwrap()), place))
    }

    /// Writes blocks of 4 KiB past the cache.
    fn write(&self, blocks: u64) {
        let target = format!("of={}", self.0);
        let arguments = ["if=/dev/zero", &target, "bs=4k", &format!("count={blocks}"), "oflag=direct", "status=none"];
        assert!(Command::new("dd").args(arguments).status().unwrap().success());
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).status();
    }
}

fn root() -> Option<(Mounted, Loop)> {
    let ready = rustix::process::geteuid().is_root().then(|| Mounted::new().zip(Loop::new())).flatten();
    if ready.is_none() {
        println!("skipped: needs root, tracefs and a loop device");
    }
    ready
}

#[test]
fn the_kernel_is_understood_and_nothing_is_left() {
    let Some((tracefs, device)) = root() else { return };
    let mut events = BlockEvents::start(tracefs.0.path(), &[device.1], None).unwrap();
    let directory = events.directory.clone();
    device.write(64);
    events.stop().unwrap();
    let mut seen = Vec::new();
    events.read(&mut |event| seen.push(event)).unwrap();
    assert_eq!(events.lost().unwrap(), 0);
    let of = |point| seen.iter().filter(move |event| event.point == point && event.rwbs[0] == b'W' && event.sectors > 0);
    for point in [BlockPoint::Queued, BlockPoint::Issued, BlockPoint::Completed] {
        assert_eq!((of(point).count(), of(point).map(|event| event.sectors).sum::<u32>()), (64, 512), "{point:?}: {seen:?}");
    }
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let now_ns = now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs();
    assert!(seen.iter().all(|event| event.device == device.1 && (now_ns - 60_000_000_000..=now_ns).contains(&event.ns)), "{now_ns} {seen:?}");
    assert!(directory.exists());
    drop(events);
    assert!(!directory.exists());
}

#[test]
fn what_does_not_fit_into_the_buffer_is_counted_as_lost() {
    let Some((tracefs, device)) = root() else { return };
    let mut events = BlockEvents::start(tracefs.0.path(), &[device.1], Some(4)).unwrap();
    device.write(512);
    events.stop().unwrap();
    let mut seen = 0_u64;
    events.read(&mut |_| seen += 1).unwrap();
    let lost = events.lost().unwrap();
    println!("{seen} read, {lost} lost");
    // 512 writes have three events each, other requests have some, too.
    assert!(lost > 0 && seen > 0 && seen + lost >= 3 * 512, "{seen} {lost}");
}

#[test]
fn an_instance_of_a_killed_process_is_removed_and_a_living_one_is_not() {
    let Some((tracefs, device)) = root() else { return };
    let events = BlockEvents::start(tracefs.0.path(), &[device.1], Some(64)).unwrap();
    // No process has this number: it is above what the kernel gives.
    let left = tracefs.0.path().join("instances/copysim-99999999-0");
    std::fs::create_dir(&left).unwrap();
    // Another copysim that starts just now may be quicker.
    println!("{} removed", remove_left_over(tracefs.0.path()));
    assert!(!left.exists() && events.directory.exists());
}

#[test]
fn without_tracefs_there_is_an_error_and_no_panic() {
    let place = tempfile::tempdir().unwrap();
    assert!(BlockEvents::start(place.path(), &[(7, 0)], None).is_err());
    assert_eq!(remove_left_over(place.path()), 0);
}
