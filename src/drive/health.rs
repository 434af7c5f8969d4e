//! Wear and heat of a drive now: from sysfs, which costs nothing, and from `smartctl`, where it is installed and may open the drive.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::smart::{self, reading};
use super::{Device, Transport};
use crate::platform::{Fact, Host};
use crate::result::{Health, HealthReading, Reading};

/// A drive that takes longer to answer is not asked.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks a physical drive; `None` for what has neither wear nor heat of its own: a loop device, a virtual disk, a volume made of others.
#[must_use]
pub fn read(host: &Host, device: &Device) -> Option<Health> {
    let asks_smartctl = match device.transport {
        Some(Transport::Ata | Transport::Nvme | Transport::Usb) => true,
        Some(Transport::Mmc) => false,
        Some(Transport::Virtio | Transport::Loop) => return None,
        // Behind other controllers there is a drive where SCSI names one.
        None => host.fact(device.place.join("device/vendor")).is_some(),
    };
    if !asks_smartctl && device.transport.is_none() {
        return None;
    }
    let of_card = card(host, &device.place.join("device"));
    let mut health = if asks_smartctl { ask(host, &device.name) } else { Health::default() };
    let known: Vec<Reading> = health.readings.iter().map(|reading| reading.what).collect();
    let more = heat(host, &device.place).into_iter().chain(of_card);
    health.readings.extend(more.filter(|reading| !known.contains(&reading.what)));
    health.readings.sort_by_key(|reading| reading.what);
    if health.readings.is_empty() && health.because.is_none() {
        health.because = Some("cards tell nothing about their wear".to_owned());
    }
    Some(health)
}

/// `-n standby`: a disk that sleeps is left asleep.
fn ask(host: &Host, name: &str) -> Health {
    let device = format!("/dev/{name}");
    let because = match host.ask("smartctl", &["--json=c", "-n", "standby", "-i", "-H", "-A", &device], PATIENCE) {
        Ok(answer) => return smart::parse(&answer),
        Err(error) => match error.kind() {
            std::io::ErrorKind::NotFound => "smartctl is not installed".to_owned(),
            std::io::ErrorKind::TimedOut => format!("smartctl gave no answer within {} s", PATIENCE.as_secs()),
            _ => format!("smartctl cannot be started: {error}"),
        },
    };
    Health { because: Some(because), ..Health::default() }
}

/// The directory of a drive's own sensor, where it has one that the kernel knows.
fn sensor(host: &Host, place: &Path) -> Option<PathBuf> {
    let device = place.join("device");
    let numbered = |name: &String| name.strip_prefix("hwmon").is_some_and(|number| !number.is_empty());
    let below = |directory: &Path| host.names(directory).into_iter().filter(numbered).map(|name| directory.join(name)).collect::<Vec<_>>();
    [below(&device), below(&device.join("hwmon"))].concat().into_iter().next()
}

/// The temperature of a drive while it works. Each reading may be a command to the drive.
#[derive(Debug)]
pub struct Thermometer(Fact);

impl Thermometer {
    /// That of a device, where it has one.
    #[must_use]
    pub fn of(host: &Host, device: &Device) -> Option<Self> {
        let thermometer = Self(host.open(sensor(host, &device.place)?.join("temp1_input")).ok()?);
        thermometer.celsius().is_some().then_some(thermometer)
    }

    /// Degrees Celsius now.
    #[must_use]
    pub fn celsius(&self) -> Option<i64> {
        let millidegrees: i64 = self.0.read(&mut [0; 32]).ok()?.trim().parse().ok()?;
        Some(millidegrees.div_euclid(1000))
    }
}

/// The temperature of the drive's own sensor: at the controller for NVMe, at the SCSI device for SATA with the driver `drivetemp`.
fn heat(host: &Host, place: &Path) -> Vec<HealthReading> {
    let Some(sensor) = sensor(host, place) else { return Vec::new() };
    let name = host.fact(sensor.join("name")).unwrap_or_else(|| "hwmon".to_owned());
    let degrees = |file: &str, what| {
        let millidegrees: i64 = host.fact(sensor.join(file))?.parse().ok()?;
        Some(reading(what, millidegrees.div_euclid(1000), Some(1), format!("{name} {file}")))
    };
    [degrees("temp1_input", Reading::Temperature), degrees("temp1_max", Reading::TemperatureLimit)].into_iter().flatten().collect()
}

/// The registers of an eMMC (JESD84-B51, 7.4.36 to 7.4.38): the share of life used in tenths, 11 for more than all of it, and the state of the reserve. 0 is "not defined".
fn card(host: &Host, device: &Path) -> Vec<HealthReading> {
    let stage = |text: &str| u8::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let life = host.fact(device.join("life_time")).unwrap_or_default();
    let kinds = [Reading::LifeUsedA, Reading::LifeUsedB].into_iter().zip(life.split_whitespace());
    let used = kinds.filter_map(|(what, text)| {
        let tenths = stage(text).filter(|stage| (1..=11).contains(stage))?;
        Some(reading(what, i64::from(tenths) * 10, Some(10), "life_time"))
    });
    let reserve = host.fact(device.join("pre_eol_info")).and_then(|text| stage(&text)).filter(|stage| (1..=3).contains(stage));
    used.chain(reserve.map(|stage| reading(Reading::PreEndOfLife, i64::from(stage), Some(1), "pre_eol_info"))).collect()
}
