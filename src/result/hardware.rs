//! What a drive and a machine are made of, as it stands in the record: links, queues, wear and heat, controllers. What was not found out is null.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::terms::{Reading, Unit, Worse};

/// How a drive is attached by USB.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Usb {
    /// The bus and the ports on the way from it: `2-1.4` is port 4 of the hub at port 1 of bus 2.
    pub port_path: Option<String>,
    /// How many hubs lie between the machine's own port and the device.
    pub hubs: Option<u32>,
    /// The vendor's number, four hexadecimal digits.
    pub vendor_id: Option<String>,
    /// The product's number, four hexadecimal digits.
    pub product_id: Option<String>,
    /// What vendor and product are called in the system's list of USB numbers: mostly the chip that bridges USB to the drive.
    pub bridge: Option<String>,
    /// What the device calls its maker.
    pub manufacturer: Option<String>,
    /// What the device calls itself.
    pub product: Option<String>,
    /// The version of USB in its device descriptor, as negotiated: a USB 3 device says 2.10 at a USB 2 port.
    pub version: Option<String>,
    /// The rate that was negotiated, bits/s, of all lanes.
    pub negotiated_bits_per_s: Option<u64>,
    /// The highest rate that the device declares, bits/s, from its device descriptor and its Binary Object Store; it may do more.
    pub declared_bits_per_s: Option<u64>,
    /// Lanes in use, of the direction that has more.
    pub lanes: Option<u32>,
    /// The driver: `uas` or `usb-storage`.
    pub driver: Option<String>,
    /// Whether one of its alternate settings is USB Attached SCSI.
    pub can_uas: Option<bool>,
}

/// The PCI Express link of a drive.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Pcie {
    /// Where it is: domain, bus, device, function.
    pub address: Option<String>,
    /// Transfers/s of each lane now, in millions (8 GT/s are 8,000).
    pub speed_mt_per_s: Option<u64>,
    /// Lanes in use.
    pub width: Option<u32>,
    /// Transfers/s of each lane at most, in millions.
    pub max_speed_mt_per_s: Option<u64>,
    /// Lanes at most.
    pub max_width: Option<u32>,
    /// What the port above can do at most, millions of transfers/s of each lane.
    pub port_speed_mt_per_s: Option<u64>,
    /// The lanes of the port above.
    pub port_width: Option<u32>,
    /// Whether it is tunnelled or can be pulled out (Thunderbolt, USB4): the speed that the link states then says little.
    pub removable: Option<bool>,
}

/// The SATA link of a drive.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Sata {
    /// The kernel's name of the port: `ata1`.
    pub port: Option<String>,
    /// The rate that was negotiated, bits/s.
    pub negotiated_bits_per_s: Option<u64>,
    /// The highest rate that the drive declares, bits/s.
    pub declared_bits_per_s: Option<u64>,
    /// The rate that the machine's port is limited to, bits/s.
    pub port_bits_per_s: Option<u64>,
    /// Commands that may be under way at once; 1 is no native command queuing.
    pub queue_depth: Option<u32>,
    /// How the link saves power, in the kernel's words.
    pub power_policy: Option<String>,
}

/// An eMMC or an SD card.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Mmc {
    /// The kernel's name of its host: `mmc0`.
    pub host: Option<String>,
    /// `MMC` (an eMMC, mostly) or `SD`.
    pub card_type: Option<String>,
    /// The maker's number, as the card says.
    pub manufacturer_id: Option<String>,
    /// The maker's customer, as the card says.
    pub oem_id: Option<String>,
    /// Month and year of manufacture.
    pub date: Option<String>,
    /// What an SD card promises: speed class, UHS grade, video class, application class (`C10 U3 V30 A2`).
    pub speed_classes: Option<String>,
    /// The timing of its bus, in the kernel's words; only root can read it.
    pub timing: Option<String>,
    /// The clock of its bus, Hz; only root can read it.
    pub clock_hz: Option<u64>,
    /// The lines of its bus; only root can read it.
    pub bus_width: Option<u32>,
}

/// How the kernel treats a block device.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Queue {
    /// The smallest piece that can be addressed.
    pub logical_block_bytes: Option<u64>,
    /// The smallest piece that the drive says it writes in one go.
    pub physical_block_bytes: Option<u64>,
    /// The scheduler in use.
    pub scheduler: Option<String>,
    /// How far the kernel reads ahead.
    pub read_ahead_bytes: Option<u64>,
    /// The largest request that the kernel sends.
    pub max_request_bytes: Option<u64>,
    /// Requests that the kernel holds at most.
    pub requests: Option<u64>,
    /// What the kernel takes its cache for: `write back` or `write through`, which it also assumes of devices that do not say.
    pub write_cache: Option<String>,
    /// The most that one discard can cover; 0 is a device that cannot discard.
    pub discard_max_bytes: Option<u64>,
}

/// Wear and heat of a drive at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// What the drive says of itself as a whole: false when it expects to fail.
    pub passed: Option<bool>,
    /// What was read, each with its unit and direction.
    pub readings: Vec<HealthReading>,
    /// Why there is not more: the program is missing, or may not open the drive.
    pub because: Option<String>,
}

impl Health {
    /// The value of a reading.
    #[must_use]
    pub fn value(&self, what: Reading) -> Option<i64> {
        self.readings.iter().find(|reading| reading.what == what).map(|reading| reading.value)
    }
}

/// One thing that a drive or its driver says about its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HealthReading {
    /// What it is.
    pub what: Reading,
    /// How much.
    pub value: i64,
    /// In what.
    pub unit: Unit,
    /// Which way is the worse one.
    pub worse: Worse,
    /// The smallest difference that two readings can show, in the unit; null where it is not known.
    pub step: Option<u64>,
    /// Where it was read, in its own words: `241 Host_Writes_32MiB`.
    pub from: String,
}

/// A controller of the machine that drives may hang on: storage, USB, cards.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Controller {
    /// Where it is on the PCI bus.
    pub address: String,
    /// The vendor's number, four hexadecimal digits.
    pub vendor_id: Option<String>,
    /// The device's number, four hexadecimal digits.
    pub device_id: Option<String>,
    /// What it is called in the system's list of PCI numbers.
    pub name: Option<String>,
    /// What it works as, by its class: `AHCI`, `IDE`, `RAID`, `NVMe`, `xHCI`, …
    pub mode: Option<String>,
    /// The driver that is bound to it.
    pub driver: Option<String>,
}
