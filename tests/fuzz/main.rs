//! Every format that comes from outside, mutated: a short look at each target on any machine, always with the same inputs. `fuzz/` goes on for as long as it is let, led by coverage.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests make their own fixtures, look at them from outside, end where something is wrong, and say what they did"
)]

#[path = "../fixtures/machine.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod machine;
mod mutate;
#[path = "../fixtures/records.rs"]
mod records;
mod targets;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use mutate::Mutator;
use targets::{TARGETS, Target};

/// No input takes longer, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// More memory than all of them together may take.
const MOST_KIB: u64 = 1 << 20;

/// Runs an input; an end by panic is told with the input.
fn run(target: &Target, data: &[u8]) {
    let begun = Instant::now();
    let done = catch_unwind(AssertUnwindSafe(|| (target.run)(data)));
    let shown: String = data.iter().take(4_000).map(|byte| byte.escape_ascii().to_string()).collect();
    assert!(done.is_ok(), "target {}: {} bytes: b\"{shown}\"", target.name, data.len());
    assert!(begun.elapsed() < PATIENCE, "target {} took {:?}: b\"{shown}\"", target.name, begun.elapsed());
}

/// The inputs that once were wrong.
fn findings(target: &Target) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/findings").join(target.name);
    let mut paths: Vec<_> = fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// `COPYSIM_FUZZ_ROUNDS` times as many inputs as usual.
fn rounds() -> usize {
    std::env::var("COPYSIM_FUZZ_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1)
}

fn look_at(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let (begun, seeds) = (Instant::now(), (target.seeds)());
    seeds.iter().chain(&findings(target)).for_each(|seed| run(target, seed));
    let mut mutator = Mutator::new(name, &seeds);
    let count = target.mutations * rounds();
    for _ in 0..count {
        run(target, &mutator.next());
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    println!("{name}: {} seeds, {count} mutations in {:.1} s", seeds.len(), begun.elapsed().as_secs_f64());
    assert!(peak.is_none_or(|peak| peak < MOST_KIB), "{name}: {peak:?} KiB of memory");
}

macro_rules! looks {
    ($($test:ident: $name:literal,)*) => {
        $(#[test] fn $test() { look_at($name); })*

        #[test]
        fn every_target_is_looked_at() {
            let known: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!([$($name),*], *known);
        }
    };
}

looks! {
    scenarios: "scenario",
    corpora: "corpus",
    quantities: "quantity",
    manifests: "manifest",
    records: "record",
    records_of_any_content: "record-parts",
    test_data: "test-data",
    notes_of_a_check: "check-note",
    workspaces: "workspace",
    messages_of_the_kernel: "kernel-log",
    block_events: "block-trace",
    machines: "machine",
}
