//! A drive that is an eMMC or an SD card: what it says it is, and the mode of its bus where the kernel tells (to root, in debugfs).

use std::path::{Path, PathBuf};

use super::link::{self, Hop};
use crate::platform::Host;
use crate::result::Mmc;

/// Reads the card of a block device and its bus.
#[must_use]
pub fn read(host: &Host, directory: &Path) -> (Mmc, Vec<Hop>) {
    let fact = |name: &str| host.fact(directory.join("device").join(name));
    let name = host_name(directory);
    let bus = name.as_deref().and_then(|name| host.fact(Path::new("/sys/kernel/debug").join(name).join("ios"))).map(|text| Bus::parse(&text));
    let bus = bus.unwrap_or_default();
    let hop = name.as_deref().zip(bus.bytes_per_s()).map(|(name, bytes_per_s)| Hop { name: name.to_owned(), bytes_per_s });
    let card = Mmc {
        card_type: fact("type"),
        manufacturer_id: fact("manfid"),
        oem_id: fact("oemid"),
        date: fact("date"),
        speed_classes: fact("ssr").as_deref().and_then(speed_classes),
        timing: bus.timing,
        clock_hz: bus.clock_hz,
        bus_width: bus.width,
        host: name,
    };
    (card, hop.into_iter().collect())
}

/// `mmc0`: the directory below `mmc_host`.
fn host_name(directory: &Path) -> Option<String> {
    let below: PathBuf = directory.iter().skip_while(|part| *part != "mmc_host").skip(1).take(1).collect();
    below.to_str().filter(|name| !name.is_empty()).map(str::to_owned)
}

/// What the kernel's debugfs says about the bus.
#[derive(Debug, Default, PartialEq, Eq)]
struct Bus {
    clock_hz: Option<u64>,
    width: Option<u32>,
    timing: Option<String>,
    double_data_rate: Option<bool>,
}

impl Bus {
    fn parse(text: &str) -> Self {
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).map(str::trim);
        let clock = |key: &str| value(key)?.strip_suffix(" Hz")?.parse().ok().filter(|clock| *clock > 0);
        // A number of the kernel's and, in brackets, its meaning.
        let meaning = |key: &str| value(key)?.split_once(" (")?.1.strip_suffix(')');
        let number = |key: &str| value(key)?.split(' ').next()?.parse::<u32>().ok();
        Self {
            clock_hz: clock("actual clock").or_else(|| clock("clock")),
            width: meaning("bus width").and_then(|meaning| meaning.strip_suffix(" bits")?.parse().ok()),
            timing: meaning("timing spec").map(str::to_owned),
            // Of the kernel's list (include/linux/mmc/host.h) 7 is DDR50, 8 DDR52, 10 HS400; up to 10 the others carry data at one edge.
            double_data_rate: number("timing spec").filter(|timing| *timing <= 10).map(|timing| matches!(timing, 7 | 8 | 10)),
        }
    }

    fn bytes_per_s(&self) -> Option<u64> {
        link::mmc(self.clock_hz?, self.width?, self.double_data_rate?)
    }
}

/// The classes in an SD card's status register (SD physical layer specification, 4.10.2): 64 bytes in hexadecimal.
fn speed_classes(register: &str) -> Option<String> {
    let byte = |index: usize| u8::from_str_radix(register.get(2 * index..2 * index + 2)?, 16).ok();
    byte(63)?;
    let class = match byte(8)? {
        1 => Some(2),
        2 => Some(4),
        3 => Some(6),
        4 => Some(10),
        _ => None,
    };
    let mut classes: Vec<String> = class.map(|class| format!("C{class}")).into_iter().collect();
    let mut add = |letter: char, value: u8| {
        if value > 0 {
            classes.push(format!("{letter}{value}"));
        }
    };
    add('U', byte(14)? >> 4);
    add('V', byte(15)?);
    add('A', byte(21)? & 0x0f);
    (!classes.is_empty()).then(|| classes.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HS400: &str = "clock:\t\t200000000 Hz\nactual clock:\t192000000 Hz\nvdd:\t\t21 (3.3 ~ 3.4 V)\nbus mode:\t2 (push-pull)\nbus width:\t3 (8 bits)\n\
        timing spec:\t10 (mmc HS400)\nsignal voltage:\t1 (1.80 V)\n";

    #[test]
    fn the_bus_is_read_where_the_kernel_tells_it() {
        let bus = Bus::parse(HS400);
        assert_eq!((bus.clock_hz, bus.width, bus.timing.as_deref()), (Some(192_000_000), Some(8), Some("mmc HS400")));
        assert_eq!(bus.bytes_per_s(), Some(384_000_000));
        let sd = Bus::parse("clock:\t\t208000000 Hz\nbus width:\t2 (4 bits)\ntiming spec:\t6 (sd uhs SDR104)");
        assert_eq!(sd.bytes_per_s(), Some(104_000_000));
        assert_eq!(Bus::parse("clock:\t\t0 Hz\nbus width: x\ntiming spec:\t99 (?)").bytes_per_s(), None);
        assert_eq!(Bus::parse(""), Bus::default());
    }

    #[test]
    fn classes_are_those_of_the_status_register() {
        let register = |speed: u8, uhs: u8, video: u8, application: u8| {
            let mut bytes = [0_u8; 64];
            (bytes[8], bytes[14], bytes[15], bytes[21]) = (speed, uhs << 4, video, application);
            bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        assert_eq!(speed_classes(&register(4, 3, 30, 2)).as_deref(), Some("C10 U3 V30 A2"));
        assert_eq!(speed_classes(&register(1, 0, 0, 0)).as_deref(), Some("C2"));
        assert_eq!((speed_classes(&register(0, 0, 0, 0)), speed_classes("80"), speed_classes(&"zz".repeat(64))), (None, None, None));
    }
}
