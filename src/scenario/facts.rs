//! Machine and drives as they stand in the record.

use crate::drive::{Device, Drive, Medium, Transport};
use crate::platform::{Host, System};
use crate::result::{self, DriveKind};

/// The machine.
#[must_use]
pub fn host(host: &Host, id: &str, identify: bool) -> result::Host {
    let line = |file: &str, key: &str| {
        let text = host.fact(file)?;
        let value = text.lines().find_map(|line| line.strip_prefix(key))?;
        Some(value.trim_start_matches([' ', '\t', ':', '=']).trim_matches('"').to_owned())
    };
    let memory = line("/proc/meminfo", "MemTotal").and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    result::Host {
        id: id.to_owned(),
        rank: 0,
        name: host.fact("/proc/sys/kernel/hostname").filter(|_| identify),
        os: line("/etc/os-release", "PRETTY_NAME"),
        kernel: host.fact("/proc/sys/kernel/osrelease"),
        cpu: line("/proc/cpuinfo", "model name"),
        memory_bytes: memory.map(|kib| kib * 1024),
        cores: std::thread::available_parallelism().ok().and_then(|cores| u32::try_from(cores.get()).ok()),
    }
}

/// A drive that the user named and the physical ones under it, the named one first.
#[must_use]
pub fn drives(system: System<'_>, drive: &Drive, id: &str, host_id: &str) -> Vec<result::Drive> {
    let nearest = drive.devices.first().filter(|_| drive.devices.len() == 1);
    let space = system.files.open_root(&drive.path).and_then(|dir| system.files.space(&dir)).unwrap_or_default();
    let fill_percent =
        space.total_bytes.zip(space.available_bytes).and_then(|(total, available)| u8::try_from((total - available) * 100 / total).ok());
    let mount = drive.mount.as_ref();
    let mut all = vec![result::Drive {
        path: Some(drive.path.display().to_string()),
        mount_point: mount.map(|mount| mount.point.display().to_string()),
        fs_type: mount.map(|mount| mount.fs_type.clone()),
        mount_options: mount.map(|mount| mount.options.clone()),
        fill_percent,
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
    // One device directly under the directory is described with it; several, or what lies deeper, stand beside it.
    let below: Vec<&Device> = match nearest {
        Some(device) => device.under.iter().collect(),
        None => drive.devices.iter().collect(),
    };
    let mut under = Vec::new();
    for (index, device) in below.into_iter().enumerate() {
        let own = format!("{id}.{}", index + 1);
        all.push(result::Drive { kind: DriveKind::Block, ..of_device(device, &own, host_id) });
        under.push(own);
    }
    all[0].under = under;
    all
}

fn of_device(device: &Device, id: &str, host_id: &str) -> result::Drive {
    let transport = device.transport.map(|transport| match transport {
        Transport::Usb => "usb",
        Transport::Nvme => "nvme",
        Transport::Mmc => "mmc",
        Transport::Virtio => "virtio",
        Transport::Ata => "ata",
        Transport::Loop => "loop",
    });
    result::Drive {
        device: Some(device.name.clone()),
        model: device.model.clone(),
        size_bytes: device.size_bytes,
        rotational: device.rotational,
        removable: device.removable,
        transport: transport.map(str::to_owned),
        ..result::Drive::unknown(id, host_id)
    }
}
