//! Machine and drives as they stand in the record.

use std::path::PathBuf;

use crate::Result;
use crate::drive::{Device, Drive, Medium, Transport, advice, health};
use crate::path_text::path_text;
use crate::platform::{Host, Space, System};
use crate::result::{self, Copysim, Document, DriveKind, Health};

/// The space of the file system that a drive is on; unknown where it can't be asked.
#[must_use]
pub fn space(system: System<'_>, drive: &Drive) -> Space {
    system.files.open_root(&drive.path).and_then(|dir| system.files.space(&dir)).unwrap_or_default()
}

/// A drive that the user named and the physical ones under it, the named one first, with wear and heat as they are now.
#[must_use]
pub fn drives(host: &Host, space: Space, drive: &Drive, id: &str, host_id: &str) -> Vec<result::Drive> {
    let nearest = nearest(drive);
    // What root keeps for itself holds no data.
    let fill = |(total, free): (u64, u64)| u64::checked_div(total.saturating_sub(free).saturating_mul(100), total);
    let fill_percent = space.total_bytes.zip(space.free_bytes).and_then(fill).and_then(|percent| u8::try_from(percent).ok());
    let mount = drive.mount.as_ref();
    let mut all = vec![result::Drive {
        path: Some(path_text(&drive.path)),
        mount_point: mount.map(|mount| path_text(&mount.point)),
        fs_type: mount.map(|mount| mount.fs_type.clone()),
        mount_options: mount.map(|mount| mount.options.clone()),
        source: mount.map(|mount| path_text(mount.source.as_ref())).filter(|source| !source.is_empty()),
        uuid: drive.uuid.clone(),
        fill_percent,
        link_bytes_per_s: drive.link_bytes_per_s(),
        is_system_disk: drive.is_system_disk,
        kind: match drive.medium {
            Medium::Block => DriveKind::Block,
            Medium::Memory => DriveKind::Memory,
            Medium::Fuse => DriveKind::Fuse,
            Medium::Network => DriveKind::Network,
            Medium::Overlay | Medium::Unknown => DriveKind::Unknown,
        },
        ..nearest.map_or_else(|| result::Drive::unknown(id, host_id), |device| of_device(device, id, host_id))
    }];
    let below = below(drive);
    let id_of = |device: &Device| below.iter().position(|known| known.number == device.number).map(|index| format!("{id}.{}", index + 1));
    let ids = |devices: &[Device]| devices.iter().filter_map(id_of).collect::<Vec<_>>();
    all[0].under = ids(nearest.map_or(&drive.devices, |device| &device.under));
    for device in &below {
        let own = id_of(device).unwrap_or_default();
        all.push(result::Drive { kind: DriveKind::Block, under: ids(&device.under), ..of_device(device, &own, host_id) });
    }
    each_health(host, drive, &mut all, |record, now| record.health_before = now);
    advice::fill(&mut all);
    all
}

/// Machine and drives without a measurement.
pub struct Inventory {
    /// A record of nothing but these.
    pub document: Document,
    /// What the drives have to do with each other.
    pub remarks: Vec<String>,
}

/// Finds out what lies under directories.
///
/// # Errors
/// When a directory cannot be opened.
pub fn inventory(system: System<'_>, host: &Host, directories: &[PathBuf], identify: bool) -> Result<Inventory> {
    let drives = directories.iter().map(|directory| Drive::identify(host, system.files, directory)).collect::<Result<Vec<_>>>()?;
    let mut document = Document::begin("", system.clock.wall(), Copysim::default());
    document.hosts.push(crate::drive::host::read(host, "h0", identify));
    for (index, drive) in drives.iter().enumerate() {
        document.drives.extend(self::drives(host, space(system, drive), drive, &format!("d{index}"), "h0"));
    }
    Ok(Inventory { document, remarks: shared(&drives) })
}

/// What several directories that the user named have to do with each other: which of them lie on one physical drive, and of which that is not known.
#[must_use]
pub fn shared(drives: &[Drive]) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut unknown: Vec<String> = Vec::new();
    for (index, drive) in drives.iter().enumerate() {
        for other in &drives[index + 1..] {
            match drive.same_physical(other) {
                Some(true) => remarks.push(format!(
                    "{} and {} lie on the same physical drive: a copy between them reads and writes it at once.",
                    drive.path.display(),
                    other.path.display()
                )),
                Some(false) => {}
                None => unknown.extend(
                    [drive, other].map(|drive| path_text(&drive.path)).into_iter().filter(|path| !unknown.contains(path)).collect::<Vec<_>>(),
                ),
            }
        }
    }
    if let Some((last, rest)) = unknown.split_last() {
        remarks.push(format!("Which of {} and {last} share a physical drive is not known.", rest.join(", ")));
    }
    remarks
}

/// Adds wear and heat as they are now, after all work, to what was recorded of a drive before it.
pub fn after(host: &Host, drive: &Drive, id: &str, recorded: &mut [result::Drive]) {
    if let Some(first) = recorded.iter().position(|record| record.id == id) {
        each_health(host, drive, &mut recorded[first..], |record, now| record.health_after = now);
        advice::fill(&mut recorded[first..=first + below(drive).len()]);
    }
}

/// One device directly under the directory is described with it; several, or what lies deeper, stand beside it.
fn nearest(drive: &Drive) -> Option<&Device> {
    drive.devices.first().filter(|_| drive.devices.len() == 1)
}

/// The devices that have a record of their own, in the order of their records.
fn below(drive: &Drive) -> Vec<&Device> {
    let mut devices: Vec<&Device> = Vec::new();
    for device in drive.devices.iter().flat_map(Device::all).skip(usize::from(nearest(drive).is_some())) {
        if devices.iter().all(|known| known.number != device.number) {
            devices.push(device);
        }
    }
    devices
}

fn each_health(host: &Host, drive: &Drive, records: &mut [result::Drive], mut keep: impl FnMut(&mut result::Drive, Option<Health>)) {
    // A physical drive below several volumes is asked once.
    let mut asked: Vec<(crate::drive::DeviceNumber, Option<Health>)> = Vec::new();
    let own = std::iter::once(nearest(drive)).chain(below(drive).into_iter().map(Some));
    for (device, record) in own.zip(records) {
        let Some(device) = device.filter(|device| device.under.is_empty()) else { continue };
        let known = asked.iter().find(|(number, _)| *number == device.number).map(|(_, health)| health.clone());
        let now = known.unwrap_or_else(|| health::read(host, device));
        asked.push((device.number, now.clone()));
        keep(record, now);
    }
}

fn of_device(device: &Device, id: &str, host_id: &str) -> result::Drive {
    let transport = device.transport.map(|transport| match transport {
        Transport::Usb => "usb",
        Transport::Nvme => "nvme",
        Transport::Mmc => "mmc",
        Transport::Virtio => "virtio",
        Transport::Ata if device.sata.as_ref().is_some_and(|link| link.negotiated_bits_per_s.is_some()) => "sata",
        Transport::Ata => "ata",
        Transport::Loop => "loop",
    });
    result::Drive {
        device: Some(device.name.clone()),
        model: device.model.clone(),
        firmware: device.firmware.clone(),
        serial: device.serial.clone(),
        size_bytes: device.size_bytes,
        rotational: device.rotational,
        removable: device.removable,
        transport: transport.map(str::to_owned),
        link_bits_per_s: device.link_bits_per_s(),
        link_bytes_per_s: device.link_bytes_per_s(),
        driver: device.driver.clone(),
        controller: device.controller.clone(),
        usb: device.usb.clone(),
        pcie: device.pcie.clone(),
        sata: device.sata.clone(),
        mmc: device.mmc.clone(),
        queue: Some(device.queue.clone()),
        ..result::Drive::unknown(id, host_id)
    }
}
