//! The kernel's block events by tracefs: an instance of our own, its ring buffers read as binary pages, and how many events did not fit into them.
//!
//! Layout of pages and of events within them: `Documentation/trace/ring-buffer-map.rst` and `include/linux/ring_buffer.h` of the kernel; where fields lie is
//! read from the `format` files beside the events.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// What happened to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockPoint {
    /// A file system, or a program by a device file, asked for it.
    Queued,
    /// The device got it.
    Issued,
    /// The device answered it, or a part of it.
    Completed,
    /// The device took it and gave it back: it will be issued again.
    Requeued,
}

/// One block event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockEvent {
    /// When, ns of the monotonic clock.
    pub ns: u64,
    /// What happened.
    pub point: BlockPoint,
    /// The whole disk, major and minor.
    pub device: (u32, u32),
    /// The first sector of 512 bytes.
    pub sector: u64,
    /// Sectors.
    pub sectors: u32,
    /// The kind in the kernel's letters: `RA`, `WS`, `FF`; unused bytes are 0.
    pub rwbs: [u8; 10],
}

const EVENTS: [(&str, BlockPoint); 4] = [
    ("block_bio_queue", BlockPoint::Queued),
    ("block_rq_issue", BlockPoint::Issued),
    ("block_rq_complete", BlockPoint::Completed),
    ("block_rq_requeue", BlockPoint::Requeued),
];

/// The memory of all processors' buffers together, KiB, and the least and most that one has. An event takes some 70 bytes.
const ALL_BUFFERS_KIB: u64 = 64 << 10;
const BUFFER_KIB: std::ops::RangeInclusive<u64> = 512..=4096;

const NAME: &str = "copysim-";

/// Block events of some devices, being recorded. It ends, and leaves nothing in tracefs, when this is dropped.
#[derive(Debug)]
pub struct BlockEvents {
    directory: PathBuf,
    format: BlockFormat,
    buffers: Vec<PathBuf>,
    pipes: Vec<File>,
    page: Vec<u8>,
    /// Pages that one buffer holds: no more are read at a time.
    pages: u64,
    /// Pages before which the kernel says that events are missing.
    gaps: u64,
}

impl BlockEvents {
    /// Begins to record the events of whole disks. `buffer_kib` is the size of each processor's buffer; `None` for one that fits the machine.
    ///
    /// # Errors
    /// `PermissionDenied` without root; what else the system answered; `InvalidData` when an event is not laid out as this understands it.
    pub fn start(tracefs: &Path, devices: &[(u32, u32)], buffer_kib: Option<u64>) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{NAME}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let directory = tracefs.join("instances").join(name);
        make_directory(&directory)?;
        // From here on the drop removes what was made.
        let mut events =
            Self { format: BlockFormat::default(), buffers: Vec::new(), pipes: Vec::new(), page: Vec::new(), pages: 0, gaps: 0, directory };
        events.set_up(devices, buffer_kib)?;
        Ok(events)
    }

    fn set_up(&mut self, devices: &[(u32, u32)], buffer_kib: Option<u64>) -> io::Result<()> {
        self.write("tracing_on", "0")?;
        self.write("trace_clock", "mono")?;
        // What does not fit is then counted as dropped, and what is there stays as it is while it is read.
        self.write("options/overwrite", "0")?;
        let processors: Vec<PathBuf> =
            names(&self.directory.join("per_cpu"))?.into_iter().filter(|path| path.join("trace_pipe_raw").exists()).collect();
        let fitting = (ALL_BUFFERS_KIB / processors.len().max(1) as u64).clamp(*BUFFER_KIB.start(), *BUFFER_KIB.end());
        let asked = buffer_kib.unwrap_or(fitting);
        self.write("buffer_size_kb", &asked.to_string())?;
        let text = self.text("buffer_size_kb")?;
        let given: u64 = text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0);
        if given < asked {
            return Err(io::Error::other(format!("the kernel gave {given} KiB of the {asked} KiB asked for as a buffer")));
        }
        self.format = BlockFormat::parse(&self.text("events/header_page")?, &[])?;
        self.page = vec![0; self.format.page_bytes()];
        self.pages = (given * 1024).div_ceil(self.page.len() as u64);
        // The kernel packs a device number into 12 and 20 bits.
        let wanted: Vec<String> = devices.iter().map(|(major, minor)| format!("dev == {}", major << 20 | minor)).collect();
        for (event, point) in EVENTS {
            let of_event = |file: &str| format!("events/block/{event}/{file}");
            self.format.add(&self.text(&of_event("format"))?, point)?;
            self.write(&of_event("filter"), &wanted.join(" || "))?;
            self.write(&of_event("enable"), "1")?;
        }
        for processor in &processors {
            self.pipes.push(open_waiting_never(&processor.join("trace_pipe_raw"))?);
        }
        self.buffers = processors.into_iter().map(|processor| processor.join("stats")).collect();
        self.write("tracing_on", "1")
    }

    /// Hands on the events that have come since the last reading: in the order of time for each processor, one processor after another.
    ///
    /// # Errors
    /// What the system answered; `InvalidData` when a page is not one.
    pub fn read(&mut self, each: &mut dyn FnMut(BlockEvent)) -> io::Result<()> {
        for pipe in &mut self.pipes {
            for _ in 0..self.pages {
                match pipe.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(length) => {
                        let page = self.page.get(..length).unwrap_or_default();
                        self.gaps += u64::from(self.format.events(page, each)?);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Ends the recording; what was recorded can still be read.
    ///
    /// # Errors
    /// What the system answered.
    pub fn stop(&self) -> io::Result<()> {
        self.write("tracing_on", "0")
    }

    /// How many events were lost since the start, by the counters of the buffers.
    ///
    /// # Errors
    /// What the system answered.
    pub fn lost(&self) -> io::Result<u64> {
        let mut lost = 0;
        for stats in &self.buffers {
            lost += lost_in(&text(stats)?);
        }
        Ok(lost.max(self.gaps))
    }

    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        write_existing(&self.directory.join(file), text)
    }

    fn text(&self, file: &str) -> io::Result<String> {
        text(&self.directory.join(file))
    }
}

impl Drop for BlockEvents {
    fn drop(&mut self) {
        // Where it can't be stopped it can't be removed either, and the next start tries again.
        let _ = self.stop();
        // An instance that is being read can't be removed.
        self.pipes.clear();
        let _ = remove(&self.directory);
    }
}

/// Removes the instances of processes of copysim that were killed. One that is still being read is left alone by the kernel itself.
#[must_use]
pub fn remove_left_over(tracefs: &Path) -> usize {
    // Without root there is nothing to see and nothing to do.
    let instances = names(&tracefs.join("instances")).unwrap_or_default();
    // Called before this process has any of its own: what bears its number is of one that had it before.
    let own = std::process::id().to_string();
    let gone = |pid: &str| pid == own || !Path::new("/proc").join(pid).exists();
    let left = |path: &&PathBuf| path.file_name().and_then(|name| owner(name.to_str()?)).is_some_and(gone);
    instances.iter().filter(left).filter(|path| remove(path).is_ok()).count()
}

/// The process of an instance by its name, `copysim-PID-NUMBER`.
fn owner(name: &str) -> Option<&str> {
    let (pid, number) = name.strip_prefix(NAME)?.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(pid) && is_number(number)).then_some(pid)
}

#[expect(clippy::disallowed_methods, reason = "this is the room of std::fs")]
fn make_directory(path: &Path) -> io::Result<()> {
    std::fs::create_dir(path)
}

#[expect(clippy::disallowed_methods, reason = "an instance of tracefs is no file of a drive")]
fn remove(path: &Path) -> io::Result<()> {
    std::fs::remove_dir(path)
}

#[expect(clippy::disallowed_methods, reason = "this is the room of std::fs")]
fn names(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut names = std::fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

#[expect(clippy::disallowed_methods, reason = "this is the room of std::fs")]
fn write_existing(path: &Path, text: &str) -> io::Result<()> {
    io::Write::write_all(&mut OpenOptions::new().write(true).truncate(true).open(path)?, text.as_bytes())
}

/// Reads a file of tracefs in one piece: the kernel gives some of them (`header_page`) to the first read alone, however little it takes.
#[expect(clippy::disallowed_methods, reason = "this is the room of std::fs")]
fn text(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut data = vec![0; 1 << 16];
    let mut length = 0;
    loop {
        match file.read(data.get_mut(length..).unwrap_or_default())? {
            0 => break,
            more => length += more,
        }
    }
    data.truncate(length);
    String::from_utf8(data).map_err(|_| damaged("a description is not text"))
}

#[expect(clippy::disallowed_methods, reason = "this is the room of std::fs")]
fn open_waiting_never(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

/// The lost events in a buffer's `stats`.
fn lost_in(stats: &str) -> u64 {
    let count = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let value: u64 = value.trim().parse().ok()?;
        matches!(name.trim(), "overrun" | "commit overrun" | "dropped events").then_some(value)
    };
    stats.lines().filter_map(count).sum()
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the kernel's trace is not as expected: {what}"))
}

/// How the kernel lays out its pages and the events on them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockFormat {
    layout: PageLayout,
    formats: Vec<Format>,
}

impl BlockFormat {
    /// Reads the text of `header_page`, and those of the `format` files of events with what each of them tells.
    ///
    /// # Errors
    /// `InvalidData` when something is not laid out as this understands it.
    pub fn parse(page: &str, events: &[(&str, BlockPoint)]) -> io::Result<Self> {
        let mut format = Self { layout: PageLayout::parse(page)?, formats: Vec::new() };
        events.iter().try_for_each(|(text, point)| format.add(text, *point))?;
        Ok(format)
    }

    fn add(&mut self, text: &str, point: BlockPoint) -> io::Result<()> {
        self.formats.push(Format::parse(text, point)?);
        Ok(())
    }

    /// Bytes of a page.
    #[must_use]
    pub fn page_bytes(&self) -> usize {
        self.layout.size()
    }

    /// Hands on the events of a page that are known; returns whether others are missing before it.
    ///
    /// # Errors
    /// `InvalidData` when it is no page.
    pub fn events(&self, page: &[u8], each: &mut dyn FnMut(BlockEvent)) -> io::Result<bool> {
        self.layout.events(page, &mut |ns, data| {
            if let Some(format) = Format::of(&self.formats, data) {
                each(format.event(ns, data)?);
            }
            Ok(())
        })
    }
}

/// A field of a fixed place: offset and length in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Field {
    offset: usize,
    size: usize,
}

impl Field {
    /// The field of a name in a `format` file: `field:TYPE NAME; offset:N; size:N; signed:N;`.
    fn named(format: &str, name: &str) -> io::Result<Self> {
        let find = |line: &str| {
            let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
            let declared = parts.next()?.split_whitespace().next_back()?;
            let number = |part: Option<&str>, label: &str| part?.strip_prefix(label)?.trim().parse::<usize>().ok();
            (declared.split('[').next() == Some(name)).then_some(())?;
            Some(Self { offset: number(parts.next(), "offset:")?, size: number(parts.next(), "size:")? })
        };
        format.lines().find_map(find).ok_or_else(|| damaged(&format!("no field {name}")))
    }

    fn bytes<'d>(&self, data: &'d [u8]) -> io::Result<&'d [u8]> {
        data.get(self.offset..).and_then(|rest| rest.get(..self.size)).ok_or_else(|| damaged("an event is too short"))
    }

    /// A number of 2, 4 or 8 bytes in the machine's own order.
    fn number(&self, data: &[u8]) -> io::Result<u64> {
        let bytes = self.bytes(data)?;
        match bytes.len() {
            2 => bytes.try_into().ok().map(|bytes| u64::from(u16::from_ne_bytes(bytes))),
            4 => bytes.try_into().ok().map(|bytes| u64::from(u32::from_ne_bytes(bytes))),
            8 => bytes.try_into().ok().map(u64::from_ne_bytes),
            _ => None,
        }
        .ok_or_else(|| damaged("a number has an odd size"))
    }
}

/// Where an event keeps what is needed of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Format {
    id: u64,
    point: BlockPoint,
    device: Field,
    sector: Field,
    sectors: Field,
    rwbs: Field,
}

/// The number of an event's kind stands first in each.
const KIND: Field = Field { offset: 0, size: 2 };

impl Format {
    fn parse(text: &str, point: BlockPoint) -> io::Result<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:")?.trim().parse().ok()).ok_or_else(|| damaged("an event without a number"))?;
        if Field::named(text, "common_type")? != KIND {
            return Err(damaged("the number of an event is elsewhere"));
        }
        let field = |name: &str| Field::named(text, name);
        Ok(Self { id, point, device: field("dev")?, sector: field("sector")?, sectors: field("nr_sector")?, rwbs: field("rwbs")? })
    }

    /// The format of an event, if it is one of those asked for.
    fn of<'f>(formats: &'f [Self], data: &[u8]) -> Option<&'f Self> {
        let id = KIND.number(data).ok()?;
        formats.iter().find(|format| format.id == id)
    }

    fn event(&self, ns: u64, data: &[u8]) -> io::Result<BlockEvent> {
        let device = u32::try_from(self.device.number(data)?).map_err(|_| damaged("a device number"))?;
        let sectors = u32::try_from(self.sectors.number(data)?).map_err(|_| damaged("a number of sectors"))?;
        let mut rwbs = [0; 10];
        for (letter, &byte) in rwbs.iter_mut().zip(self.rwbs.bytes(data)?.iter().take_while(|&&byte| byte != 0)) {
            *letter = byte;
        }
        Ok(BlockEvent { ns, point: self.point, device: (device >> 20, device & 0xF_FFFF), sector: self.sector.number(data)?, sectors, rwbs })
    }
}

/// How a page of the ring buffer is laid out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct PageLayout {
    time: Field,
    length: Field,
    data: Field,
}

/// No machine has larger pages.
const LARGEST_PAGE: usize = 1 << 20;
/// The bits of a page's length that are one, and the one that says that events were lost before the page.
const LENGTH_BITS: u64 = (1 << 27) - 1;
const EVENTS_MISSING: u64 = 1 << 31;

impl PageLayout {
    fn parse(text: &str) -> io::Result<Self> {
        let layout = Self { time: Field::named(text, "timestamp")?, length: Field::named(text, "commit")?, data: Field::named(text, "data")? };
        let end = layout.data.offset.checked_add(layout.data.size);
        if end.is_none_or(|end| end > LARGEST_PAGE) {
            return Err(damaged("a page is larger than any"));
        }
        Ok(layout)
    }

    fn size(&self) -> usize {
        self.data.offset + self.data.size
    }

    /// Hands on the time and the data of every event in a page; returns whether events are missing before it.
    fn events(&self, page: &[u8], each: &mut dyn FnMut(u64, &[u8]) -> io::Result<()>) -> io::Result<bool> {
        const WORD: usize = 4;
        const PADDING: u32 = 29;
        const TIME_EXTEND: u32 = 30;
        const TIME_STAMP: u32 = 31;
        let mut ns = self.time.number(page)?;
        let length = self.length.number(page)?;
        let used = usize::try_from(length & LENGTH_BITS).map_err(|_| damaged("a page's length"))?;
        let mut rest = page.get(self.data.offset..).and_then(|data| data.get(..used)).ok_or_else(|| damaged("a page is too short"))?;
        while !rest.is_empty() {
            let (head, after) = split_word(rest)?;
            // Five bits of kind or length and 27 of time, as the compiler packs them: from the low end on little-endian machines, from the high end on others.
            let (kind, delta) = if cfg!(target_endian = "little") { (head & 31, head >> 5) } else { (head >> 27, head & ((1 << 27) - 1)) };
            if kind == PADDING && delta == 0 {
                // Nothing follows on this page.
                break;
            }
            if (1..PADDING).contains(&kind) {
                ns = ns.wrapping_add(u64::from(delta));
                let (data, next) = after.split_at_checked(kind as usize * WORD).ok_or_else(|| damaged("an event beyond its page"))?;
                each(ns, data)?;
                rest = next;
                continue;
            }
            let (second, after) = split_word(after)?;
            let long = u64::from(second) << 27 | u64::from(delta);
            match kind {
                TIME_EXTEND => ns = ns.wrapping_add(long),
                // Its upper five bits are those of the time before; the monotonic clock reaches them after 18 years.
                TIME_STAMP => ns = long,
                // The second word is its own length and that of what follows.
                _ => {
                    ns = ns.wrapping_add(u64::from(delta));
                    let length = (second as usize).checked_sub(WORD).ok_or_else(|| damaged("an event's length"))?;
                    let (data, next) = after.split_at_checked(length).ok_or_else(|| damaged("an event beyond its page"))?;
                    if kind == 0 {
                        each(ns, data)?;
                    }
                    rest = next;
                    continue;
                }
            }
            rest = after;
        }
        Ok(length & EVENTS_MISSING != 0)
    }
}

fn split_word(data: &[u8]) -> io::Result<(u32, &[u8])> {
    data.split_first_chunk().map(|(word, rest)| (u32::from_ne_bytes(*word), rest)).ok_or_else(|| damaged("half a word"))
}

#[cfg(test)]
#[path = "tracefs_tests.rs"]
mod tests;
