//! The record of a drive: the directory that the user named, and what is under it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::hardware::{Health, Mmc, Pcie, Queue, Sata, Usb};
use super::terms::DriveKind;

/// A directory that the user named, and all that was found out about what is under it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Drive {
    /// Its id in this record.
    pub id: String,
    /// The machine it is on.
    pub host: String,
    /// The ids of the drives directly under it: a volume's disk, the members of an array. These may have others under them.
    pub under: Vec<String>,
    /// The directory that the user named.
    pub path: Option<String>,
    /// Where its file system is mounted.
    pub mount_point: Option<String>,
    /// The type of its file system.
    pub fs_type: Option<String>,
    /// The options it is mounted with.
    pub mount_options: Option<String>,
    /// What is mounted: a partition, a share, a word of the file system's own.
    pub source: Option<String>,
    /// The identifier of its file system; only with `--identify`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// The device, as the system names it.
    pub device: Option<String>,
    /// The model, as the drive says.
    pub model: Option<String>,
    /// The vendor, as the drive says.
    pub vendor: Option<String>,
    /// The version of its firmware, as the drive says.
    pub firmware: Option<String>,
    /// The serial number; only with `--identify`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// Its size.
    pub size_bytes: Option<u64>,
    /// How full its file system was at the start.
    pub fill_percent: Option<u8>,
    /// Whether it turns.
    pub rotational: Option<bool>,
    /// Whether it can be taken out.
    pub removable: Option<bool>,
    /// How it is attached: usb, sata, nvme, mmc, …
    pub transport: Option<String>,
    /// The rate that its link negotiated, bits/s: a ceiling.
    pub link_bits_per_s: Option<u64>,
    /// The most payload that can pass, bytes/s: the slowest link on the way from the machine to the drive, less its line coding. A warning and not a proof:
    /// what links say of themselves is sometimes wrong.
    pub link_bytes_per_s: Option<u64>,
    /// The driver that moves its data: `uas`, `usb-storage`, `ahci`, `nvme`, …
    pub driver: Option<String>,
    /// The PCI address of its controller.
    pub controller: Option<String>,
    /// Its USB attachment.
    pub usb: Option<Usb>,
    /// Its PCI Express link.
    pub pcie: Option<Pcie>,
    /// Its SATA link.
    pub sata: Option<Sata>,
    /// Its card.
    pub mmc: Option<Mmc>,
    /// How the kernel treats it.
    pub queue: Option<Queue>,
    /// Wear and heat before the first window.
    pub health_before: Option<Health>,
    /// Wear and heat after the last window.
    pub health_after: Option<Health>,
    /// What is plainly wrong with the way it is attached or used, as sentences.
    #[serde(default)]
    pub advice: Vec<String>,
    /// Whether the running system is on it.
    pub is_system_disk: Option<bool>,
    /// What it is.
    pub kind: DriveKind,
}

impl Drive {
    /// A drive of which nothing is known.
    #[must_use]
    pub fn unknown(id: impl Into<String>, host: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            host: host.into(),
            under: Vec::new(),
            path: None,
            mount_point: None,
            fs_type: None,
            mount_options: None,
            source: None,
            uuid: None,
            device: None,
            model: None,
            vendor: None,
            firmware: None,
            serial: None,
            size_bytes: None,
            fill_percent: None,
            rotational: None,
            removable: None,
            transport: None,
            link_bits_per_s: None,
            link_bytes_per_s: None,
            driver: None,
            controller: None,
            usb: None,
            pcie: None,
            sata: None,
            mmc: None,
            queue: None,
            health_before: None,
            health_after: None,
            advice: Vec::new(),
            is_system_disk: None,
            kind: DriveKind::Unknown,
        }
    }
}
