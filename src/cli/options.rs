//! The options that all measuring commands share.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use crate::cache::evict::Wanted;
use crate::scenario::options::{Options, State};
use crate::units::{Bytes, Scale};
use crate::workload::copy::Order;

/// How much is measured.
#[derive(clap::Args)]
pub struct Measuring {
    /// Repetitions [default: what the scenario says, mostly 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,
    /// Seed of the corpora: another seed gives other bytes
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Size of the corpora, from 0.01% to 10000%
    #[arg(long, default_value = "100%", value_name = "SHARE")]
    scale: Scale,
    /// A quick look: --scale 5% --runs 1, and less settling
    #[arg(long, conflicts_with_all = ["runs", "scale"])]
    quick: bool,
    /// How bytes are moved: buffered, copy-file-range, null, or 'command:cp -r {source}/. {target}/'
    #[arg(long, default_value = "buffered")]
    engine: String,
    /// Copying threads
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// Order of files
    #[arg(long, value_enum, default_value_t = OrderArg::Manifest)]
    order: OrderArg,
    /// What this machine's caches hold when the clock starts
    #[arg(long, value_enum, default_value_t = CacheArg::Cold)]
    cache: CacheArg,
    /// How long the drive must have been idle before the clock starts [default: 5s, with --quick 1s]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    settle: Option<Duration>,
    /// Fill the drive to this share of its size first, with new data; of fill-drive: how full it is at the end
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    fill: Option<u8>,
    /// Bring the free space of the drive into a state first
    #[arg(long, value_enum, default_value_t = StateArg::AsIs)]
    state: StateArg,
    /// Do the same work once more with data that the drive has never seen: a drive that keeps equal data once shows then
    #[arg(long)]
    control: bool,
    /// No run begins later than this after the first
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    max_time: Option<Duration>,
    /// Refuse to write more than this
    #[arg(long, value_name = "BYTES")]
    max_write: Option<Bytes>,
    /// Do not watch drives and processes while the clock runs: only to see what watching costs
    #[arg(long, hide = true)]
    no_evidence: bool,
    /// Do not read copies again and compare them
    #[arg(long)]
    no_verify: bool,
    /// Keep the last copy
    #[arg(long)]
    keep: bool,
    /// Write one line per file copied to this file (CSV)
    #[arg(long, value_name = "FILE")]
    samples: Option<PathBuf>,
    /// Find out what the drives did meanwhile, from the kernel's block events (root, tracefs)
    #[arg(long)]
    block_trace: bool,
    /// Your own name for this measurement
    #[arg(long)]
    label: Option<String>,
    /// Keep host name, user name and home paths in the result
    #[arg(long)]
    identify: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum OrderArg {
    /// Bytewise by path
    Manifest,
    /// As the file system lists them: what cp does
    Readdir,
}

#[derive(Clone, Copy, ValueEnum)]
enum StateArg {
    /// As it happens to be
    AsIs,
    /// Written all over: no block that the drive knows to be free
    Dirty,
    /// Told to the drive to be free, before every run (root)
    Trimmed,
}

/// A whole percentage, with or without its sign.
fn percent(text: &str) -> Result<u8, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    number.parse().ok().filter(|&percent| percent <= 98).ok_or_else(|| "a share is between 0% and 98%".to_owned())
}

/// What the caches hold.
#[derive(Clone, Copy, ValueEnum)]
pub enum CacheArg {
    /// Empty: what you find after plugging in
    Cold,
    /// Full, as far as memory goes
    Warm,
    /// As they happen to be
    AsIs,
}

impl From<CacheArg> for Wanted {
    fn from(cache: CacheArg) -> Self {
        match cache {
            CacheArg::Cold => Self::Cold,
            CacheArg::Warm => Self::Warm,
            CacheArg::AsIs => Self::AsIs,
        }
    }
}

/// How things are shown.
#[derive(clap::Args)]
pub struct Showing {
    /// Nothing but the result
    #[arg(long, short)]
    pub quiet: bool,
    /// Colours
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
}

/// When to colour.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Measuring {
    /// The choices, resolved.
    pub fn resolve(self) -> Options {
        let quick_scale = || Scale::from_hundredths(500);
        Options {
            runs: if self.quick { Some(1) } else { self.runs },
            seed: self.seed,
            scale: if self.quick { quick_scale() } else { self.scale },
            engine: self.engine,
            threads: usize::from(self.threads),
            order: match self.order {
                OrderArg::Manifest => Order::Manifest,
                OrderArg::Readdir => Order::Readdir,
            },
            cache: self.cache.into(),
            settle: self.settle,
            fill: self.fill,
            state: match self.state {
                StateArg::AsIs => State::AsIs,
                StateArg::Dirty => State::Dirty,
                StateArg::Trimmed => State::Trimmed,
            },
            control: self.control,
            evidence: !self.no_evidence,
            verify: !self.no_verify,
            keep: self.keep,
            max_time: self.max_time,
            max_write: self.max_write.map(|bytes| bytes.0),
            quick: self.quick,
            yes: self.yes,
            identify: self.identify,
            label: self.label,
            strict: false,
            samples: self.samples,
            block_trace: self.block_trace,
        }
    }
}
