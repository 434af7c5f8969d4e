//! A virtual machine that keeps its free memory: one that gives it back to its host pays for a page with a fault there when it is next used, milliseconds for each MiB.

use std::fs;
use std::path::Path;

use crate::lab::system::complain;

/// From which order on free pages are reported to the host: the kernel's parameter.
const SETTING: &str = "/sys/module/page_reporting/parameters/page_reporting_order";
/// How much of the free memory is fetched once, in tenths.
const FETCHED_TENTHS: u64 = 8;

/// While this lives no free memory is given back. Nothing happens where the machine has no such host.
pub struct KeptMemory {
    was: Option<String>,
}

impl KeptMemory {
    /// Ends the giving back, and touches most of the free memory, so that the host has given it before anything is measured.
    pub fn start() -> Self {
        let was = fs::read_to_string(SETTING).ok();
        let order: Option<u32> = was.as_ref().and_then(|was| was.trim().parse().ok());
        // The greatest order that the kernel accepts is never reached.
        let never = order.and_then(|order| (order + 1..=order + 8).rev().find(|order| fs::write(SETTING, order.to_string()).is_ok()));
        if never.is_none() {
            return Self { was: None };
        }
        fetch();
        Self { was }
    }
}

fn fetch() {
    let facts = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kilobytes = facts.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let bytes = kilobytes.unwrap_or(0) * 1024 / 10 * FETCHED_TENTHS;
    let mut memory: Vec<u8> = Vec::new();
    if memory.try_reserve_exact(bytes as usize).is_ok() {
        memory.resize(bytes as usize, 1);
    }
    std::hint::black_box(&memory);
}

impl Drop for KeptMemory {
    fn drop(&mut self) {
        if let Some(was) = &self.was {
            complain("page reporting", fs::write(Path::new(SETTING), was));
        }
    }
}
