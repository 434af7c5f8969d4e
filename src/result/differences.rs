//! In what two records differ besides their figures: machine, drive, link, work. Who compares their figures must know it.

use serde_json::Value;

use super::document::{Document, Host};
use super::drive::Drive;
use super::hardware::{Controller, Health};
use super::terms::Reading;
use crate::units::Bytes;

/// A drive fuller or emptier by less than this is not told.
const FILL_PERCENT: u8 = 5;
/// A drive warmer or colder by less than this at the start is not told.
const DEGREES: i64 = 10;

/// What differs between two records, as sentences, the machine first; empty when nothing that was recorded does. What only one of them knows is told as well.
#[must_use]
pub fn differences(a: &Document, b: &Document) -> Vec<String> {
    let mut found = Differences(Vec::new());
    found.of("copysim", &[Some(a.copysim.version.clone()), Some(b.copysim.version.clone())]);
    let (host_a, host_b) = (a.hosts.first(), b.hosts.first());
    let host = |name: &str, of: fn(&Host) -> Option<String>, found: &mut Differences| found.of(name, &[host_a.and_then(of), host_b.and_then(of)]);
    host("machine", |host| host.machine.clone(), &mut found);
    host("virtual machine", |host| host.virtualised.map(yes), &mut found);
    host("operating system", |host| host.os.clone(), &mut found);
    host("kernel", |host| host.kernel.clone(), &mut found);
    host("CPU", |host| host.cpu.clone(), &mut found);
    host("cores", |host| host.cores.map(|cores| cores.to_string()), &mut found);
    host("memory", |host| host.memory_bytes.map(size), &mut found);
    host("CPU governor", |host| host.cpu_governor.clone(), &mut found);
    host("CPU frequency driver", |host| host.cpu_frequency_driver.clone(), &mut found);
    host("deepest idle state", |host| host.deepest_idle_state.clone(), &mut found);
    host("power", |host| host.power.clone(), &mut found);
    host("swap", |host| host.swap_bytes.map(size), &mut found);
    host("controllers", controllers, &mut found);
    for (role, [first, second]) in roles(a, b) {
        found.of_drive(role, [a, b], [first, second]);
    }
    found.of_work(a, b);
    found.0
}

/// The drives that stand in the same role of both records.
fn roles<'d>(a: &'d Document, b: &'d Document) -> Vec<(&'static str, [Option<&'d Drive>; 2])> {
    let target = |document: &'d Document| {
        let roles = document.scenarios.first().map(|scenario| &scenario.roles);
        roles.and_then(|roles| document.drive(roles.subject()?)).or(document.drives.first())
    };
    let source = |document: &'d Document| {
        let roles = &document.scenarios.first()?.roles;
        document.drive(roles.source.as_deref().filter(|source| Some(*source) != roles.subject())?)
    };
    let mut all = vec![("drive", [target(a), target(b)])];
    let sources = [source(a), source(b)];
    if sources.iter().any(Option::is_some) {
        all.push(("source", sources));
    }
    all
}

struct Differences(Vec<String>);

impl Differences {
    fn of(&mut self, what: &str, values: &[Option<String>; 2]) {
        if values[0] != values[1] {
            let [first, second] = values.each_ref().map(|value| value.as_deref().unwrap_or("unknown"));
            self.0.push(format!("{what}: {first} against {second}"));
        }
    }

    fn of_drive(&mut self, role: &str, documents: [&Document; 2], drives: [Option<&Drive>; 2]) {
        let name = |what: &str| if role == "drive" { what.to_owned() } else { format!("{role}, {what}") };
        if drives.iter().filter(|drive| drive.is_some()).count() == 1 {
            let [first, second] = drives.map(|drive| Some(if drive.is_some() { "a drive" } else { "none" }.to_owned()));
            return self.of(role, &[first, second]);
        }
        // A volume knows its file system, and what it is made of the rest: each fact of all of them, in order.
        let chains = [0, 1].map(|side| drives[side].map(|drive| documents[side].chain(drive)).unwrap_or_default());
        let both = |of: &dyn Fn(&Drive) -> Option<String>| {
            chains.each_ref().map(|chain| {
                let words: Vec<String> = chain.iter().filter_map(|drive| of(drive)).collect();
                (!words.is_empty()).then(|| words.join(" + "))
            })
        };
        let serials = both(&|drive| drive.serial.clone());
        let models = both(&|drive| {
            Some([drive.vendor.as_deref(), drive.model.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(" "))
                .filter(|name| !name.is_empty())
        });
        if serials.iter().all(Option::is_some) && serials[0] != serials[1] && models[0] == models[1] {
            self.0.push(format!("{}: another one of the same model", name("drive")));
        }
        self.of(&name("model"), &models);
        self.of(&name("firmware"), &both(&|drive| drive.firmware.clone()));
        self.of(&name("size"), &both(&|drive| drive.size_bytes.map(size)));
        self.of(&name("kind"), &both(&|drive| Some(drive.kind.to_string())));
        self.of(&name("attached by"), &both(&|drive| drive.transport.clone()));
        self.of(&name("link"), &both(&|drive| drive.link_bits_per_s.map(bits)));
        self.of(&name("USB port"), &both(&|drive| drive.usb.as_ref()?.port_path.clone()));
        self.of(&name("driver"), &both(&|drive| drive.driver.clone()));
        self.of(&name("file system"), &both(&|drive| drive.fs_type.clone()));
        self.of(&name("mount options"), &both(&|drive| drive.mount_options.clone()));
        self.of(&name("scheduler"), &both(&|drive| drive.queue.as_ref()?.scheduler.clone()));
        self.of(&name("read-ahead"), &both(&|drive| drive.queue.as_ref()?.read_ahead_bytes.map(|bytes| format!("{bytes} B"))));
        self.of(&name("write cache"), &both(&|drive| drive.queue.as_ref()?.write_cache.clone()));
        let fills = drives.map(|drive| drive.and_then(|drive| drive.fill_percent));
        if !matches!(fills, [Some(first), Some(second)] if first.abs_diff(second) < FILL_PERCENT) {
            self.of(&name("full"), &fills.map(|fill| fill.map(|percent| format!("{percent} %"))));
        }
        let read =
            |chain: &Vec<&Drive>, what| chain.iter().find_map(|drive| drive.health_before.as_ref().and_then(|health: &Health| health.value(what)));
        let degrees = chains.each_ref().map(|chain| read(chain, Reading::Temperature));
        if !matches!(degrees, [Some(first), Some(second)] if first.abs_diff(second) < DEGREES.unsigned_abs()) {
            self.of(&name("temperature at the start"), &degrees.map(|degrees| degrees.map(|degrees| format!("{degrees} °C"))));
        }
        self.of(&name("life used"), &chains.each_ref().map(|chain| read(chain, Reading::LifeUsed).map(|percent| format!("{percent} %"))));
    }

    fn of_work(&mut self, a: &Document, b: &Document) {
        let scenarios = [a, b].map(|document| document.scenarios.first());
        self.of("scenario", &scenarios.map(|scenario| scenario.map(|scenario| scenario.name.clone())));
        self.of("scale", &scenarios.map(|scenario| scenario.map(|scenario| format!("{} %", scenario.scale_percent))));
        let option = |name: &str| scenarios.map(|scenario| scenario?.spec.pointer(&format!("/options/{name}")).map(word));
        for name in ["engine", "threads", "order", "cache", "state", "fill_percent", "control", "verify", "evidence", "settle_s"] {
            self.of(name, &option(name));
        }
        let digests = [a, b].map(|document| document.corpora.iter().map(|corpus| corpus.root_digest.as_str()).collect::<Vec<_>>());
        let same_names = |documents: [&Document; 2]| {
            let [first, second] =
                documents.map(|document| document.corpora.iter().map(|corpus| (&corpus.name, corpus.scale_percent)).collect::<Vec<_>>());
            first == second
        };
        if digests[0] != digests[1] && same_names([a, b]) {
            self.0.push("corpora: of one name and different bytes (version or seed)".to_owned());
        }
    }
}

fn word(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        value => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
    }
}

/// What the controllers are, how they work and by which driver, in the order of their addresses, which may change from one start of a machine to the next.
fn controllers(host: &Host) -> Option<String> {
    let word = |word: &Option<String>| word.as_deref().unwrap_or("unknown").to_owned();
    let each = |controller: &Controller| {
        let id = [&controller.vendor_id, &controller.device_id].map(word).join(":");
        format!("{id} as {} by {}", word(&controller.mode), word(&controller.driver))
    };
    (!host.controllers.is_empty()).then(|| host.controllers.iter().map(each).collect::<Vec<_>>().join(" + "))
}

fn yes(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}

fn size(bytes: u64) -> String {
    Bytes(bytes).to_string()
}

fn bits(bits_per_s: u64) -> String {
    if bits_per_s < 1_000_000_000 { format!("{} Mbit/s", bits_per_s as f64 / 1e6) } else { format!("{} Gbit/s", bits_per_s as f64 / 1e9) }
}
