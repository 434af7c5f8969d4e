//! How fast each kind of content is made, as a share of the bare keystream's rate: alternating pairs, with the keystream against itself as control.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use copysim::corpus::content::{Content, FileBytes, content, corpus_key};
use copysim::platform::{Clock, OsClock};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

const FILE: usize = 8 << 20;
/// What a writer asks for at once.
const BUFFER: usize = 1 << 20;
const PAIRS: usize = 21;
/// The 97.5 % quantile of Student's t with 20 degrees of freedom.
const T_QUANTILE: f64 = 2.086;

const KINDS: [(&str, &str, &str); 8] = [
    ("random", "kind = 'random'", "a.bin"),
    ("jpeg", "kind = 'jpeg'", "a.jpg"),
    ("mp3", "kind = 'mp3'", "Artist/Album/01 Title.mp3"),
    ("text", "kind = 'text'", "a.js"),
    ("program", "kind = 'program'", "a.so"),
    ("compressible 46 %", "kind = 'compressible'\ncompressible_percent = 46", "a.bin"),
    ("interleaved 4 KiB, 50 %", "kind = 'interleaved'\nzero_share_percent = 50\ninterleave = '4KiB'", "a.bin"),
    ("zero", "kind = 'zero'", "a.bin"),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let key = corpus_key("benchmark", 1, 0);
    let mut buffer = vec![0; BUFFER];
    println!("{:<24} {:>10} {:>9}  95 % interval", "", "MB/s", "ratio");
    report("keystream (control)", FILE, &mut buffer, &mut |buffer| keystream(&key, buffer), &mut |buffer| keystream(&key, buffer));
    for (name, spec, path) in KINDS {
        let kind = content(&toml::from_str(spec)?)?;
        report(name, FILE, &mut buffer, &mut |buffer| fill(&*kind, &key, path, FILE, buffer), &mut |buffer| keystream(&key, buffer));
    }
    // The shortest picture has the ends of blocks closest together.
    let jpeg = content(&toml::from_str("kind = 'jpeg'")?)?;
    let shortest = usize::try_from(jpeg.min_len())?;
    let mut repeated = |buffer: &mut [u8]| (0..FILE / shortest).for_each(|_| fill(&*jpeg, &key, "a.jpg", shortest, buffer));
    let mut bare = |buffer: &mut [u8]| (0..FILE / shortest).for_each(|_| stream(&key, shortest, buffer));
    report("jpeg, shortest", FILE / shortest * shortest, &mut buffer, &mut repeated, &mut bare);
    Ok(())
}

fn keystream(key: &[u8; 32], buffer: &mut [u8]) {
    stream(key, FILE, buffer);
}

fn stream(key: &[u8; 32], len: usize, buffer: &mut [u8]) {
    let mut generator = ChaCha8Rng::from_seed(*key);
    for start in (0..len).step_by(buffer.len()) {
        let part = buffer.len().min(len - start);
        generator.fill_bytes(&mut buffer[..part]);
        std::hint::black_box(&mut *buffer);
    }
}

fn fill(kind: &dyn Content, key: &[u8; 32], path: &str, len: usize, buffer: &mut [u8]) {
    let file = FileBytes { key, ordinal: 3, path, len: len as u64, mtime: 1_700_000_000 };
    for start in (0..len).step_by(buffer.len()) {
        let part = buffer.len().min(len - start);
        kind.fill(&file, start as u64, &mut buffer[..part]);
        std::hint::black_box(&mut *buffer);
    }
}

type Work<'a> = &'a mut dyn FnMut(&mut [u8]);

/// Measures alternating pairs and prints the ratio of rates with the interval of the mean of the pairs' log-ratios.
fn report(name: &str, bytes: usize, buffer: &mut [u8], subject: Work<'_>, bare: Work<'_>) {
    let mut seconds = |work: &mut dyn FnMut(&mut [u8])| {
        let start = OsClock.now_ns();
        work(buffer);
        (OsClock.now_ns() - start) as f64 / 1e9
    };
    seconds(subject);
    seconds(bare);
    let mut log_ratios = Vec::new();
    let mut fastest = f64::INFINITY;
    for pair in 0..PAIRS {
        // Who goes first alternates, so that a drift of the machine favours neither.
        let (own, other) = if pair % 2 == 0 {
            let own = seconds(subject);
            (own, seconds(bare))
        } else {
            let other = seconds(bare);
            (seconds(subject), other)
        };
        fastest = fastest.min(own);
        log_ratios.push((other / own).ln());
    }
    let n = PAIRS as f64;
    let mean = log_ratios.iter().sum::<f64>() / n;
    let variance = log_ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = T_QUANTILE * (variance / n).sqrt();
    let (ratio, low, high) = (mean.exp(), (mean - half).exp(), (mean + half).exp());
    println!("{name:<24} {:>10.0} {ratio:>9.3}  {low:.3} to {high:.3}", bytes as f64 / fastest / 1e6);
}
