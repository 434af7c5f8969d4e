//! What `smartctl --json` says about a drive, in one set of words: units and directions are those of the drive's family, and what is not known for sure is left out.

use serde_json::Value;

use crate::result::{Health, HealthReading, Reading, Unit, Worse};

const GIB: u64 = 1 << 30;
const MIB_32: u64 = 32 << 20;
/// Attributes count sectors of this size whatever the drive's own are.
const SECTOR: u64 = 512;
/// NVMe counts data in thousands of 512 bytes (NVM Express base specification, SMART / Health Information log).
const NVME_DATA_UNIT: u64 = 512_000;

/// A reading of a kind that always has the same unit and direction.
#[must_use]
pub fn reading(what: Reading, value: i64, step: Option<u64>, from: impl Into<String>) -> HealthReading {
    let (unit, worse) = match what {
        Reading::Temperature => (Unit::Celsius, Worse::Up),
        Reading::TemperatureLimit => (Unit::Celsius, Worse::Neither),
        Reading::LifeUsed | Reading::LifeUsedA | Reading::LifeUsedB => (Unit::Percent, Worse::Up),
        Reading::PreEndOfLife => (Unit::Stage, Worse::Up),
        Reading::Spare => (Unit::Percent, Worse::Down),
        Reading::SpareLimit => (Unit::Percent, Worse::Neither),
        Reading::HostWritten | Reading::HostRead | Reading::MediumWritten => (Unit::Bytes, Worse::Neither),
        Reading::PowerOn => (Unit::Hours, Worse::Neither),
        Reading::PowerCycles => (Unit::Count, Worse::Neither),
        Reading::UnsafeShutdowns | Reading::MediaErrors | Reading::Reallocated | Reading::Pending | Reading::LinkErrors => (Unit::Count, Worse::Up),
        Reading::CriticalWarning => (Unit::Bits, Worse::Up),
    };
    HealthReading { what, value, unit, worse, step, from: from.into() }
}

/// Reads an answer of smartctl, of whatever shape.
#[must_use]
pub fn parse(answer: &[u8]) -> Health {
    let Ok(value) = serde_json::from_slice::<Value>(answer) else {
        return Health { because: Some("smartctl gave no JSON: it is older than 7.0".to_owned()), ..Health::default() };
    };
    let mut found = Found { readings: Vec::new() };
    of_nvme(&value, &mut found);
    of_attributes(&value, &mut found);
    // smartctl itself knows how a family counts hours and where its temperature is.
    for (what, pointer) in [
        (Reading::Temperature, "/temperature/current"),
        (Reading::PowerOn, "/power_on_time/hours"),
        (Reading::PowerCycles, "/power_cycle_count"),
        (Reading::LifeUsed, "/endurance_used/current_percent"),
        (Reading::Spare, "/spare_available/current_percent"),
        (Reading::SpareLimit, "/spare_available/threshold_percent"),
    ] {
        if what != Reading::Temperature || temperature_means_something(&value) {
            found.add_number(&value, pointer, what, 1, &format!("smartctl {}", pointer[1..].replace('/', ".")));
        }
    }
    let passed = value.pointer("/smart_status/passed").and_then(Value::as_bool);
    let because = if found.readings.is_empty() { Some(why_nothing(&value)) } else { None };
    Health { passed, readings: found.readings, because }
}

/// Why there is nothing: smartctl's own words, or that the drive says nothing.
fn why_nothing(value: &Value) -> String {
    let messages = value.pointer("/smartctl/messages").and_then(Value::as_array);
    let texts: Vec<&str> = messages.into_iter().flatten().filter_map(|message| message.get("string")?.as_str()).collect();
    match texts.iter().find(|text| text.contains("Permission denied")) {
        Some(_) => "smartctl may not open the drive: only root may".to_owned(),
        None if texts.is_empty() => "the drive tells smartctl nothing".to_owned(),
        None => format!("smartctl: {}", texts.join("; ").split_whitespace().collect::<Vec<_>>().join(" ")),
    }
}

struct Found {
    readings: Vec<HealthReading>,
}

impl Found {
    /// Keeps the first of a kind.
    fn add(&mut self, what: Reading, value: Option<u64>, factor: u64, from: &str) {
        let scaled = value.and_then(|value| value.checked_mul(factor)).and_then(|value| i64::try_from(value).ok());
        if let Some(value) = scaled.filter(|_| self.readings.iter().all(|reading| reading.what != what)) {
            self.readings.push(reading(what, value, Some(factor), from));
        }
    }

    fn add_number(&mut self, of: &Value, pointer: &str, what: Reading, factor: u64, from: &str) {
        self.add(what, of.pointer(pointer).and_then(Value::as_u64), factor, from);
    }
}

fn of_nvme(value: &Value, found: &mut Found) {
    let Some(log) = value.get("nvme_smart_health_information_log") else { return };
    for (field, what, factor) in [
        ("critical_warning", Reading::CriticalWarning, 1),
        ("temperature", Reading::Temperature, 1),
        ("percentage_used", Reading::LifeUsed, 1),
        ("available_spare", Reading::Spare, 1),
        ("available_spare_threshold", Reading::SpareLimit, 1),
        ("data_units_written", Reading::HostWritten, NVME_DATA_UNIT),
        ("data_units_read", Reading::HostRead, NVME_DATA_UNIT),
        ("power_on_hours", Reading::PowerOn, 1),
        ("power_cycles", Reading::PowerCycles, 1),
        ("unsafe_shutdowns", Reading::UnsafeShutdowns, 1),
        ("media_errors", Reading::MediaErrors, 1),
    ] {
        found.add_number(log, &format!("/{field}"), what, factor, &format!("NVMe {field}"));
    }
}

/// The table of ATA. Only names that smartctl's own database gives to the family say in what a drive counts; those that it gives to any drive are guesses.
fn of_attributes(value: &Value, found: &mut Found) {
    let family = value.get("model_family").and_then(Value::as_str);
    let known = value.get("in_smartctl_database").and_then(Value::as_bool).unwrap_or(family.is_some());
    let table = value.pointer("/ata_smart_attributes/table").and_then(Value::as_array);
    for attribute in table.into_iter().flatten() {
        let (Some(id), Some(name)) = (attribute.get("id").and_then(Value::as_u64), attribute.get("name").and_then(Value::as_str)) else { continue };
        let from = format!("{id} {name}");
        let raw = attribute.pointer("/raw/value").and_then(Value::as_u64);
        // The standard's own numbers, which all families agree on.
        match id {
            5 => found.add(Reading::Reallocated, raw, 1, &from),
            197 => found.add(Reading::Pending, raw, 1, &from),
            199 => found.add(Reading::LinkErrors, raw, 1, &from),
            _ => {}
        }
        if known {
            if let Some((what, factor)) = counted_in(name) {
                found.add(what, raw, factor, &from);
            }
            if tells_life(name, family.unwrap_or_default()) {
                // The normalised value counts down from 100 in all of them, also in those whose raw value counts up.
                let left = attribute.get("value").and_then(Value::as_u64);
                found.add(Reading::LifeUsed, left.and_then(|left| 100_u64.checked_sub(left)), 1, &from);
            }
        }
    }
}

/// What an attribute's raw value counts and in what, by the name that the database gives it.
fn counted_in(name: &str) -> Option<(Reading, u64)> {
    Some(match name {
        "Host_Writes_32MiB" => (Reading::HostWritten, MIB_32),
        "Host_Writes_GiB" | "Lifetime_Writes_GiB" | "Total_Writes_GiB" => (Reading::HostWritten, GIB),
        "Total_Writes_GB" => (Reading::HostWritten, 1_000_000_000),
        "Total_LBAs_Written" | "Total_Host_Sector_Write" => (Reading::HostWritten, SECTOR),
        "Host_Reads_32MiB" => (Reading::HostRead, MIB_32),
        "Host_Reads_GiB" | "Lifetime_Reads_GiB" | "Total_Reads_GiB" => (Reading::HostRead, GIB),
        "Total_Reads_GB" => (Reading::HostRead, 1_000_000_000),
        "Total_LBAs_Read" => (Reading::HostRead, SECTOR),
        "NAND_Writes_1GiB" | "NAND_GiB_Written" | "Flash_Writes_GiB" | "Lifetime_NAND_Prg_GiB" => (Reading::MediumWritten, GIB),
        "NAND_Writes_32MiB" => (Reading::MediumWritten, MIB_32),
        "Nand_Sectors_Written" => (Reading::MediumWritten, SECTOR),
        _ => return None,
    })
}

/// Whether an attribute's normalised value is the share of life that is left. Wear levelling counts mean it at Samsung; elsewhere they are counts or ranges.
fn tells_life(name: &str, family: &str) -> bool {
    match name {
        "SSD_Life_Left" | "Percent_Lifetime_Remain" | "Percent_Lifetime_Used" | "Remaining_Lifetime_Perc" | "Media_Wearout_Indicator" => true,
        "Wear_Leveling_Count" => family.starts_with("Samsung"),
        _ => false,
    }
}

/// A temperature outside the range that the drive itself has seen is none: some controllers without a sensor fill the field with something.
fn temperature_means_something(value: &Value) -> bool {
    let table = value.pointer("/ata_smart_attributes/table").and_then(Value::as_array);
    let of_temperature = table.into_iter().flatten().find(|attribute| attribute.get("id").and_then(Value::as_u64) == Some(194));
    let text = of_temperature.and_then(|attribute| attribute.pointer("/raw/string")?.as_str());
    let range = text.and_then(|text| text.split_once("(Min/Max ")?.1.split_once(')')?.0.split_once('/'));
    let range = range.and_then(|(min, max)| Some((min.trim().parse::<i64>().ok()?, max.trim().parse::<i64>().ok()?)));
    match (range, value.pointer("/temperature/current").and_then(Value::as_i64)) {
        (Some((min, max)), Some(current)) => (min..=max).contains(&current),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn attribute(id: u64, name: &str, value: u64, raw: u64, text: &str) -> Value {
        json!({"id": id, "name": name, "value": value, "worst": value, "thresh": 0, "raw": {"value": raw, "string": text}})
    }

    fn ata(family: Option<&str>, table: &[Value]) -> Health {
        let mut answer =
            json!({"smartctl": {"exit_status": 0}, "smart_status": {"passed": true}, "ata_smart_attributes": {"revision": 1, "table": table}});
        if let Some(family) = family {
            answer["model_family"] = family.into();
            answer["in_smartctl_database"] = true.into();
        }
        parse(answer.to_string().as_bytes())
    }

    #[test]
    fn the_same_number_means_what_the_family_says() {
        let table = |name| vec![attribute(241, name, 100, 3, "3")];
        let written = |family, name| ata(family, &table(name)).readings.into_iter().map(|r| (r.what, r.value, r.step)).collect::<Vec<_>>();
        let of = |what, unit: u64| vec![(what, 3 * unit as i64, Some(unit))];
        assert_eq!(written(Some("Intel 520 Series SSDs"), "Host_Writes_32MiB"), of(Reading::HostWritten, MIB_32));
        assert_eq!(written(Some("SandForce Driven SSDs"), "Lifetime_Writes_GiB"), of(Reading::HostWritten, GIB));
        assert_eq!(written(Some("Samsung based SSDs"), "Total_LBAs_Written"), of(Reading::HostWritten, 512));
        assert_eq!(written(Some("Silicon Motion based SSDs"), "Lifetime_NAND_Prg_GiB"), of(Reading::MediumWritten, GIB));
        assert_eq!(written(None, "Total_LBAs_Written"), vec![]);
    }

    #[test]
    fn life_counts_up_whichever_way_the_drive_counts() {
        let used = |family, id, name, value, raw| ata(Some(family), &[attribute(id, name, value, raw, "")]).value(Reading::LifeUsed);
        assert_eq!(used("Crucial/Micron Client SSDs", 202, "Percent_Lifetime_Remain", 88, 12), Some(12));
        assert_eq!(used("Crucial/Micron RealSSD", 202, "Percent_Lifetime_Used", 88, 12), Some(12));
        assert_eq!(used("SandForce Driven SSDs", 231, "SSD_Life_Left", 97, 97), Some(3));
        assert_eq!(used("Seagate", 231, "Temperature_Celsius", 97, 30), None);
        assert_eq!(used("Samsung based SSDs", 177, "Wear_Leveling_Count", 95, 72), Some(5));
        assert_eq!(used("Phison Driven SSDs", 177, "Wear_Leveling_Count", 95, 72), None);
        assert_eq!(used("SandForce Driven SSDs", 177, "Wear_Range_Delta", 0, 2), None);
        assert_eq!(used("Intel", 233, "Media_Wearout_Indicator", 200, 0), None);
    }

    #[test]
    fn a_temperature_outside_what_the_drive_has_seen_is_none() {
        let with = |current: i64, text: &str| {
            let answer =
                json!({"temperature": {"current": current}, "ata_smart_attributes": {"table": [attribute(194, "Temperature_Celsius", 1, 1, text)]}});
            parse(answer.to_string().as_bytes()).value(Reading::Temperature)
        };
        assert_eq!((with(1, "1 (Min/Max 127/129)"), with(31, "31 (Min/Max 18/52)"), with(31, "31")), (None, Some(31), Some(31)));
    }

    #[test]
    fn the_log_of_nvme_has_its_own_units() {
        let answer = json!({"smart_status": {"passed": true}, "temperature": {"current": 41}, "power_on_time": {"hours": 812},
            "nvme_smart_health_information_log": {"critical_warning": 0, "temperature": 41, "available_spare": 100, "available_spare_threshold": 10,
                "percentage_used": 104, "data_units_read": 20, "data_units_written": 18_446_744_073_709_551_615_u64, "media_errors": 0}});
        let health = parse(answer.to_string().as_bytes());
        let value = |what| health.value(what);
        assert_eq!((value(Reading::Temperature), value(Reading::LifeUsed), value(Reading::HostRead)), (Some(41), Some(104), Some(10_240_000)));
        assert_eq!((value(Reading::HostWritten), value(Reading::PowerOn), health.passed), (None, Some(812), Some(true)));
    }

    #[test]
    fn where_there_is_nothing_it_says_why() {
        let because = |answer: &str| parse(answer.as_bytes()).because.unwrap();
        let denied =
            r#"{"smartctl":{"messages":[{"string":"Smartctl open device: /dev/sda failed: Permission denied","severity":"error"}],"exit_status":2}}"#;
        assert_eq!(because(denied), "smartctl may not open the drive: only root may");
        assert_eq!(because("smartctl 6.6 ..."), "smartctl gave no JSON: it is older than 7.0");
        assert_eq!((because("{}").as_str(), because("[]").as_str()), ("the drive tells smartctl nothing", "the drive tells smartctl nothing"));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let key = prop::sample::select(vec![
            "smartctl",
            "messages",
            "ata_smart_attributes",
            "table",
            "id",
            "name",
            "raw",
            "value",
            "string",
            "temperature",
            "current",
            "model_family",
            "nvme_smart_health_information_log",
            "percentage_used",
            "data_units_written",
        ]);
        let word = prop::sample::select(vec!["Host_Writes_32MiB", "SSD_Life_Left", "(Min/Max 1/", "(Min/Max 9/1)", ""]).prop_map(|word| json!(word));
        let leaf = prop_oneof![any::<u64>().prop_map(|n| json!(n)), any::<i64>().prop_map(|n| json!(n)), any::<bool>().prop_map(|b| json!(b)), word];
        leaf.prop_recursive(5, 60, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((key.clone(), inner), 0..6)
                    .prop_map(|members| members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_answer_stops_the_reader(value in any_json(), bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            for health in [parse(value.to_string().as_bytes()), parse(&bytes)] {
                prop_assert!(!health.readings.is_empty() || health.because.is_some());
            }
        }
    }
}
