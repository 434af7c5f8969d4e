//! The targets of `tests/fuzz`, led by coverage (libFuzzer): `COPYSIM_FUZZ_TARGET` names the target, `COPYSIM_FUZZ_SEEDS` a directory that is given its seeds first.
#![no_main]

#[path = "../../tests/fixtures/machine.rs"]
#[expect(dead_code, reason = "tests use more of it")]
mod machine;
#[path = "../../tests/fixtures/records.rs"]
#[expect(dead_code, reason = "tests use more of them")]
mod records;
#[path = "../../tests/fuzz/targets/mod.rs"]
mod targets;

use std::sync::OnceLock;

use targets::{TARGETS, Target};

fn target() -> &'static Target {
    static CHOSEN: OnceLock<&Target> = OnceLock::new();
    CHOSEN.get_or_init(|| {
        let name = std::env::var("COPYSIM_FUZZ_TARGET").unwrap_or_default();
        TARGETS.iter().find(|target| target.name == name).unwrap_or_else(|| {
            let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            panic!("COPYSIM_FUZZ_TARGET is one of {}", names.join(" "))
        })
    })
}

fn write_seeds() {
    let Some(directory) = std::env::var_os("COPYSIM_FUZZ_SEEDS").map(std::path::PathBuf::from) else { return };
    std::fs::create_dir_all(&directory).unwrap();
    for (number, seed) in (target().seeds)().iter().enumerate() {
        std::fs::write(directory.join(format!("seed-{number}")), seed).unwrap();
    }
}

libfuzzer_sys::fuzz_target!(init: write_seeds(), |data: &[u8]| (target().run)(data));
