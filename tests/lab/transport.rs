//! The rig's own time: what the loop device and FUSE add to a request on its way to a lab drive and back, measured so that it can be taken off.
//!
//! Whoever uses the block device then sees the latency and the rate that were ordered, not those plus the rig's.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

use super::drive::{Drive, Speed};
use super::log::{Kind, now_ns};

const ALIGNMENT: usize = 4096;
const SMALL: usize = 4096;
const LARGE: usize = 1 << 20;
const ROUNDS: usize = 21;
/// Long enough for processors to fall asleep, as they do when a drive is slow: waking them is part of the rig's own time.
const LATENCY: Duration = Duration::from_millis(3);

/// A buffer that direct I/O accepts.
pub struct Aligned(Vec<u8>);

impl Aligned {
    pub fn new(length: usize) -> Self {
        Self(vec![0; length + ALIGNMENT])
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        let start = self.0.as_ptr().align_offset(ALIGNMENT);
        let length = self.0.len() - ALIGNMENT;
        &mut self.0[start..start + length]
    }
}

/// Time on the way in nanoseconds: of a request without bytes, and of each MiB.
#[derive(Debug, Clone, Copy, Default)]
struct Way {
    base_ns: u64,
    mib_ns: u64,
}

/// The rig's own time by kind of request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Transport {
    read: Way,
    write: Way,
}

impl Transport {
    /// The rig's own time for a request.
    pub fn ns(&self, kind: Kind, length: u64) -> u64 {
        match kind {
            Kind::Read => self.read.base_ns + self.read.mib_ns * length / LARGE as u64,
            Kind::Write => self.write.base_ns + self.write.mib_ns * length / LARGE as u64,
            Kind::Flush | Kind::Discard => self.write.base_ns,
        }
    }

    /// Measures it on an idle drive, whose first MiB is overwritten, and takes it off from then on.
    ///
    /// # Errors
    /// The block device can't be read or written directly.
    pub fn settle(drive: &Drive, device: &Path, speed: Speed) -> io::Result<()> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(device)?;
        let mut buffer = Aligned::new(LARGE);
        drive.set_speed(Speed { latency: LATENCY, ..Speed::default() });
        drive.limit(true);
        let mut median = |kind: Kind, length: usize| -> io::Result<u64> {
            let bytes = &mut buffer.bytes()[..length];
            let mut times = Vec::new();
            for _ in 0..ROUNDS {
                let (began, before) = (now_ns(), drive.log.sums());
                match kind {
                    Kind::Read => file.read_exact_at(bytes, 0)?,
                    _ => file.write_all_at(bytes, 0)?,
                }
                let (ended, after) = (now_ns(), drive.log.sums());
                // The kernel may cut the larger request into a few.
                let requests = after.reads + after.writes - before.reads - before.writes;
                times.push((ended - began).saturating_sub(requests * LATENCY.as_nanos() as u64));
            }
            times.sort_unstable();
            Ok(times[ROUNDS / 2])
        };
        let mut way = |kind| -> io::Result<Way> {
            let (base_ns, large_ns) = (median(kind, SMALL)?, median(kind, LARGE)?);
            Ok(Way { base_ns, mib_ns: large_ns.saturating_sub(base_ns) })
        };
        let transport = Self { write: way(Kind::Write)?, read: way(Kind::Read)? };
        drive.limit(false);
        drive.set_speed(speed);
        drive.set_transport(transport);
        Ok(())
    }
}
