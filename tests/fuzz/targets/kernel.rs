//! What the kernel and the programs of a machine say: its log, its block events, and the files below `/proc` and `/sys`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use copysim::drive::{Counters, Drive, KernelNames, Processes, Thermometer, health, host};
use copysim::measure::block_trace::{Division, Tracker};
use copysim::platform::{BlockEvent, BlockFormat, BlockPoint, Host, Space};
use copysim::report::card;
use copysim::result::{Copysim, Document};
use copysim::scenario::facts;

use super::{Input, assert_shown, piece};
use crate::machine::Machine;

const MACHINES: [&str; 15] = [
    "sata-ssd",
    "nvme",
    "emmc",
    "sd-card",
    "bot-stick",
    "uas-dock",
    "usb3-at-usb2",
    "btrfs-pair",
    "crypt-nvme",
    "tunnel",
    "md-mirror",
    "virtual",
    "elsewhere",
    "btrfs-on-loops",
    "notebook",
];

pub fn messages() -> Vec<Vec<u8>> {
    let texts = [
        "3,1234,987654321,-;usb 2-1.4: reset SuperSpeed USB device number 5 using xhci_hcd\n SUBSYSTEM=usb\n DEVICE=+usb:2-1.4\n",
        "3,1,2,-;sd 2:0:0:0: [sda] tag#12 uas_eh_abort_handler 0 uas-tag 3 inflight: CMD OUT\n SUBSYSTEM=scsi\n DEVICE=+scsi:2:0:0:0\n",
        "3,1,2,-;I/O error, dev sdb, sector 204800 op 0x1:(WRITE) flags 0x4000 phys_seg 128 prio class 2\n DEVICE=b8:16\n",
        "3,1,2,-;nvme nvme0: I/O 321 QID 2 timeout, aborting\n",
        "4,1,2,-;EXT4-fs (nvme0n1p2): I/O error while writing superblock\n",
        "3,1,2,c;ata3.00: exception Emask 0x10 SAct 0x4 SErr 0x400000 action 0x6 frozen\n",
        "3,1,2,-;mmcblk0: error -110 sending stop command; card stuck\n",
        "no record at all",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

pub fn message(data: &[u8]) {
    static NAMES: OnceLock<Vec<KernelNames>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let machines = MACHINES.map(Machine::new);
        machines.iter().flat_map(|machine| machine.drives().into_iter().map(|(drive, _)| KernelNames::of(&machine.host(), &drive))).collect()
    });
    let record = String::from_utf8_lossy(data);
    for name in names {
        if let Some((_, line)) = name.report(&record) {
            // Views spell out the rest of what could be misread.
            assert!(line.chars().count() < 3_000 && !line.contains(char::is_control), "{line}");
        }
    }
}

const PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;
";
const EVENT: &str = "name: block_rq_issue
ID: 7
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;
\tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;
\tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;
\tfield:char rwbs[10];\toffset:28;\tsize:10;\tsigned:0;
";
const POINTS: [BlockPoint; 4] = [BlockPoint::Queued, BlockPoint::Issued, BlockPoint::Completed, BlockPoint::Requeued];

/// Whether the descriptions are in the input, the edges of the window, then pages.
pub fn pages() -> Vec<Vec<u8>> {
    let event = |kind: u16, device: u32, sector: u64, sectors: u32, rwbs: &[u8]| {
        let mut data = vec![0; 40];
        data[..2].copy_from_slice(&kind.to_ne_bytes());
        data[8..12].copy_from_slice(&device.to_ne_bytes());
        data[16..24].copy_from_slice(&sector.to_ne_bytes());
        data[24..28].copy_from_slice(&sectors.to_ne_bytes());
        data[28..28 + rwbs.len()].copy_from_slice(rwbs);
        let head: u32 = if cfg!(target_endian = "little") { 10 | 1000 << 5 } else { 10 << 27 | 1000 };
        [head.to_ne_bytes().as_slice(), &data].concat()
    };
    let page = |ns: u64, data: &[u8]| [ns.to_ne_bytes().as_slice(), &(data.len() as u64).to_ne_bytes(), data].concat();
    let copy = [(0, b"R"), (1, b"R"), (2, b"R"), (0, b"W"), (1, b"W"), (3, b"W"), (1, b"W"), (2, b"W"), (1, b"F"), (2, b"F")];
    let data: Vec<u8> = copy.into_iter().flat_map(|(kind, rwbs)| event(7 + kind, 8 << 20, 2048, 8, rwbs)).collect();
    let edges = [500_u64.to_le_bytes(), 1_000_000_u64.to_le_bytes()].concat();
    let own = [&[1], piece(PAGE.as_bytes()).as_slice(), &piece(EVENT.as_bytes())].concat();
    vec![
        [&[0], edges.as_slice(), &piece(&page(0, &data))].concat(),
        [&[0], edges.as_slice(), &piece(&page(0, &data)), &piece(&page(u64::MAX - 100, &data))].concat(),
        [own.as_slice(), &edges, &piece(&page(0, &data))].concat(),
    ]
}

pub fn page(data: &[u8]) {
    let mut input = Input(data);
    let (mut page, mut event) = (PAGE.to_owned(), EVENT.to_owned());
    if input.number(1) % 2 == 1 {
        page = String::from_utf8_lossy(input.piece()).into_owned();
        event = String::from_utf8_lossy(input.piece()).into_owned();
    }
    // The number of each kind is that of the first and so many more.
    let kind = |index: usize| event.replace("ID: 7", &format!("ID: {}", 7 + index));
    let texts: Vec<(String, BlockPoint)> = POINTS.into_iter().enumerate().map(|(index, point)| (kind(index), point)).collect();
    let texts: Vec<(&str, BlockPoint)> = texts.iter().map(|(text, point)| (text.as_str(), *point)).collect();
    let Ok(format) = BlockFormat::parse(&page, &texts) else { return };
    assert!(format.page_bytes() <= 1 << 20);
    let (opened_ns, closed_ns) = (input.number(8), input.number(8));
    let mut events: Vec<BlockEvent> = Vec::new();
    while !input.is_empty() && format.events(input.piece(), &mut |event| events.push(event)).is_ok() {}
    events.sort_by_key(|event| event.ns);
    for division in [Division::Directions, Division::Target, Division::Drives { source: 1, target: 0 }] {
        let mut tracker = Tracker::new(&[vec![(8, 0)], vec![(8, 16)]], division);
        tracker.open(opened_ns);
        tracker.close(closed_ns);
        events.iter().for_each(|event| tracker.event(event));
        let _ = tracker.finish();
    }
}

/// A machine whose files are changed, for each thread its own.
struct Changed {
    machine: Machine,
    drives: Vec<(PathBuf, (u32, u32), Space)>,
    /// All files that a machine has, with what they say.
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Changed {
    fn new(name: &str) -> Self {
        let machine = Machine::new(name);
        let root = machine.host().path("/");
        let entries = walkdir::WalkDir::new(&root).sort_by_file_name().into_iter().filter_map(Result::ok).filter(|entry| entry.file_type().is_file());
        let files = entries.map(|entry| (entry.path().to_owned(), fs::read(entry.path()).unwrap())).collect();
        let drives = machine.drives().into_iter().map(|(drive, space)| (drive.path.clone(), drive.file_system, space)).collect();
        Self { machine, drives, files }
    }
}

/// All that is found out about a machine and its drives, and the card of it.
fn find_out(host: &Host, drives: &[(PathBuf, (u32, u32), Space)]) {
    let mut document = Document::begin("", jiff::Timestamp::UNIX_EPOCH, Copysim::default());
    document.hosts.push(host::read(host, "h0", true));
    let mut found = Vec::new();
    for (index, (path, number, space)) in drives.iter().enumerate() {
        let drive = Drive::of(host, path.clone(), *number);
        document.drives.extend(facts::drives(host, *space, &drive, &format!("d{index}"), "h0"));
        let _ = (KernelNames::of(host, &drive), drive.lock_numbers(), drive.volatile_cache(), drive.cache_elsewhere(), drive.max_file_bytes());
        for device in drive.leaves() {
            let _ = (health::read(host, device), Thermometer::of(host, device).map(|thermometer| thermometer.celsius()));
        }
        found.push(drive);
    }
    let _ = (Processes::look(host).since(&Processes::look(host)), copysim::drive::block_trace::clean(host));
    assert_shown(&card::render(&document, &facts::shared(&found)));
    let written = serde_json::to_string(&document).unwrap();
    assert_eq!(Document::from_json(&written).unwrap(), document);
}

/// Which machine, then files by their numbers and what they say instead.
pub fn machines() -> Vec<Vec<u8>> {
    let number = |machine: &Changed, name: &str| machine.files.iter().position(|(path, _)| path.ends_with(name));
    let mut seeds = Vec::new();
    for (index, name) in MACHINES.iter().enumerate() {
        seeds.push(vec![index as u8]);
        let machine = Changed::new(name);
        for file in
            ["proc/self/mountinfo", "proc/meminfo", "proc/cpuinfo", "descriptors", "csd", "stat", "current_link_speed", "-dev-sda", "backing_file"]
        {
            if let Some(file) = number(&machine, file) {
                let content = &machine.files[file].1;
                seeds.push([&[index as u8], (file as u16).to_le_bytes().as_slice(), &piece(&content[..content.len().min(60_000)])].concat());
            }
        }
    }
    seeds
}

pub fn machine(data: &[u8]) {
    thread_local! {
        static CHANGED: OnceLock<Vec<Changed>> = const { OnceLock::new() };
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = Counters::parse(text).map(|counters| counters.since(&counters.plus(&counters)));
    }
    CHANGED.with(|changed| {
        let changed = changed.get_or_init(|| MACHINES.iter().map(|name| Changed::new(name)).collect());
        let mut input = Input(data);
        let Changed { machine, drives, files } = &changed[input.number(1) as usize % changed.len()];
        let mut spoilt: Vec<&(PathBuf, Vec<u8>)> = Vec::new();
        for _ in 0..8 {
            if input.is_empty() {
                break;
            }
            let file = &files[input.number(2) as usize % files.len()];
            write(&file.0, input.piece());
            spoilt.push(file);
        }
        find_out(&machine.host(), drives);
        spoilt.iter().for_each(|(path, content)| write(path, content));
    });
}

fn write(path: &Path, content: &[u8]) {
    fs::write(path, content).unwrap();
}
