//! The promise of [`super::look`], held on curves whose truth is known: levels, ramps and stalls under noise that remembers (AR(1), 0.5).
//!
//! The thresholds were frozen before the seed of this file was chosen. The noise has a standard deviation of 2 to 8 % of the rate; what drives show at 60 to 600 points is
//! 2 to 5 %. There is a limit to what anybody can find: a fall of 25 % that leaves three of 60 points on one side stands 8 standard errors out of noise of 5 %, 5 out
//! of 8 %, and 4 out of 10 %, where the largest of some hundred chance values is as large; at 10 % throughout some 190 of 200 are found.

use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng as _;

use super::*;

const SEED: u64 = 20_261_130;
const TOTAL: f64 = 2e9;

struct Chance(ChaCha8Rng);

impl Chance {
    fn of(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * ((self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64)
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.between(0.0, 1.0)).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.between(0.0, 1.0)).cos()
    }
}

/// Samples in even time (unevenly spread by a fifth where asked for) of work that has the rate `rate(share of all bytes)` under noise.
struct Simulated {
    t_ns: Vec<u64>,
    bytes: Vec<Option<i64>>,
}

fn simulate(chance: &mut Chance, uneven: bool, rate: impl Fn(f64) -> f64) -> Simulated {
    const PHI: f64 = 0.5;
    let (points, sd) = (chance.between(60.0, 601.0) as usize, chance.between(0.02, 0.08));
    let seconds: f64 = (0..5_000).map(|index| TOTAL / 5_000.0 / (1e8 * rate((f64::from(index) + 0.5) / 5_000.0))).sum();
    let (mut t_ns, mut bytes) = (vec![0], vec![Some(0)]);
    let (mut time, mut done, mut noise) = (0.0, 0.0, chance.normal());
    for _ in 1..points {
        let step = seconds / points as f64 * if uneven { chance.between(0.8, 1.2) } else { 1.0 };
        for _ in 0..20 {
            done += step / 20.0 * 1e8 * rate((done / TOTAL).min(1.0)) * (1.0 + sd * noise).max(0.1);
        }
        time += step;
        noise = PHI * noise + (1.0 - PHI * PHI).sqrt() * chance.normal();
        t_ns.push((time * 1e9) as u64);
        bytes.push(Some(done as i64));
    }
    Simulated { t_ns, bytes }
}

impl Simulated {
    fn shape(&self) -> Shape {
        look(&self.t_ns, &self.bytes, &[], None).shape
    }

    /// The same with two seconds without progress, sampled as before.
    fn stalled(&self, chance: &mut Chance) -> (Self, Gap) {
        let end = *self.t_ns.last().unwrap();
        let from_ns = (end as f64 * chance.between(0.03, 0.97)) as u64;
        let gap = Gap { from_ns, to_ns: from_ns + 2_000_000_000 };
        let at = |t_ns: u64| {
            let t_ns = if t_ns <= gap.from_ns { t_ns } else { t_ns.saturating_sub(gap.ns()).max(gap.from_ns) };
            let after = self.t_ns.partition_point(|&sample| sample <= t_ns).clamp(1, self.t_ns.len() - 1);
            let (t0, t1) = (self.t_ns[after - 1] as f64, self.t_ns[after] as f64);
            let (b0, b1) = (self.bytes[after - 1].unwrap() as f64, self.bytes[after].unwrap() as f64);
            (b0 + (b1 - b0) * (t_ns as f64 - t0) / (t1 - t0)) as i64
        };
        let steps = self.t_ns.len() as u64 - 1;
        let t_ns: Vec<u64> = (0..=steps).map(|step| (end + gap.ns()) / steps * step).collect();
        let bytes = t_ns.iter().map(|&t_ns| Some(at(t_ns))).collect();
        (Self { t_ns, bytes }, gap)
    }

    /// Slower by a factor: stalls are in seconds.
    fn slower(mut self, factor: u64) -> Self {
        self.t_ns.iter_mut().for_each(|t_ns| *t_ns *= factor);
        self
    }
}

/// How many falls of a share, anywhere from 5 to 95 % of the bytes, are found as the only change, within 3 % of all bytes.
fn found(seed: u64, fall: f64, uneven: bool) -> usize {
    let mut chance = Chance::of(seed);
    let hits = (0..200).filter(|_| {
        let place = chance.between(0.05, 0.95);
        let curve = simulate(&mut chance, uneven, |share| if share < place { 1.0 } else { 1.0 - fall });
        let total = curve.bytes.last().unwrap().unwrap() as f64;
        let shape = curve.shape();
        let near = |at: u64| (at as f64 - place * TOTAL).abs() <= 0.03 * total;
        matches!(shape.levels(), [fast, slow] if near(fast.to_bytes) && slow.rate() < fast.rate())
    });
    hits.count()
}

fn count(seed: u64, curves: usize, mut hit: impl FnMut(&mut Chance) -> bool) -> usize {
    let mut chance = Chance::of(seed);
    (0..curves).filter(|_| hit(&mut chance)).count()
}

fn false_in_steady(seed: u64) -> usize {
    count(seed, 200, |chance| {
        let uneven = chance.between(0.0, 1.0) < 0.5;
        matches!(simulate(chance, uneven, |_| 1.0).shape(), Shape::Levels(_))
    })
}

#[test]
fn of_200_falls_by_half_195_are_found_where_they_are() {
    for uneven in [false, true] {
        let found = found(SEED, 0.50, uneven);
        println!("falls by 50 %: {found} of 200 found");
        assert!(found >= 195, "{found}");
    }
}

#[test]
fn of_200_falls_by_a_quarter_195_are_found_where_they_are() {
    for uneven in [false, true] {
        let found = found(SEED + 1, 0.25, uneven);
        println!("falls by 25 %: {found} of 200 found");
        assert!(found >= 195, "{found}");
    }
}

#[test]
fn of_200_steady_curves_at_most_2_are_taken_for_others() {
    let wrong = false_in_steady(SEED + 2);
    println!("steady: {wrong} of 200 taken for levels");
    assert!(wrong <= 2, "{wrong}");
}

#[test]
fn a_fall_that_is_too_small_to_matter_is_none() {
    let wrong = count(SEED + 3, 100, |chance| simulate(chance, false, |share| if share < 0.5 { 1.0 } else { 0.95 }).shape().falls());
    assert!(wrong <= 2, "{wrong}");
}

#[test]
fn a_ramp_is_called_one_and_is_no_cliff() {
    for to in [0.6, 0.4] {
        let ramps = count(SEED + 4, 100, |chance| matches!(simulate(chance, false, |share| 1.0 - (1.0 - to) * share).shape(), Shape::Ramp(_)));
        println!("ramps to {to}: {ramps} of 100 named");
        assert!(ramps >= 97, "{ramps}");
    }
}

#[test]
fn a_stall_of_2_seconds_is_no_cliff_whether_it_was_seen_or_not() {
    // Samples at 30 ms to 2 s: where the stall fills many of them, and where it hides in one or two.
    for factor in [1, 3, 10] {
        let wrong = count(SEED + 5, 60, |chance| {
            let (curve, gap) = simulate(chance, false, |_| 1.0).slower(factor).stalled(chance);
            let seen = look(&curve.t_ns, &curve.bytes, &[Gap { from_ns: gap.from_ns + 40_000_000, to_ns: gap.to_ns - 30_000_000 }], None).shape;
            [curve.shape(), seen].iter().any(|shape| !matches!(shape, Shape::Steady(_)))
        });
        println!("stalls, slower by {factor}: {wrong} of 60 wrong");
        assert!(wrong <= 1, "{wrong}");
    }
}

#[test]
fn a_cliff_beside_a_stall_is_still_one_and_its_rates_are_without_the_stall() {
    let right = count(SEED + 6, 100, |chance| {
        let place = chance.between(0.1, 0.9);
        let (curve, gap) = simulate(chance, false, |share| if share < place { 1.0 } else { 0.5 }).stalled(chance);
        let near = |level: &Level, rate: f64| (level.rate() / rate - 1.0).abs() < 0.1;
        let right = |shape: &Shape| matches!(shape.levels(), [fast, slow] if near(fast, 1e8) && near(slow, 5e7));
        right(&curve.shape()) && right(&look(&curve.t_ns, &curve.bytes, &[gap], None).shape)
    });
    println!("cliffs beside stalls: {right} of 100");
    assert!(right >= 95, "{right}");
}

#[test]
fn a_cache_of_two_levels_is_two_changes() {
    let right = count(SEED + 7, 100, |chance| {
        let first = chance.between(0.1, 0.4);
        let second = first + chance.between(0.15, 0.45);
        let rate = |share: f64| if share < first { 1.0 } else { if share < second { 0.6 } else { 0.25 } };
        let curve = simulate(chance, false, rate);
        let near = |at: u64, place: f64| (at as f64 / TOTAL - place).abs() < 0.03;
        matches!(curve.shape().levels(), [a, b, _] if near(a.to_bytes, first) && near(b.to_bytes, second))
    });
    println!("caches of two levels: {right} of 100");
    assert!(right >= 96, "{right}");
}

#[test]
fn a_rise_is_a_change_and_no_fall() {
    let right = count(SEED + 8, 50, |chance| {
        let place = chance.between(0.1, 0.9);
        let shape = simulate(chance, false, |share| if share < place { 0.6 } else { 1.0 }).shape();
        shape.levels().len() == 2 && !shape.falls()
    });
    assert!(right >= 48, "{right}");
}

/// The promise at other seeds: for those who change a threshold.
#[test]
#[ignore = "takes minutes; run it after changing what decides"]
fn the_promise_holds_at_twenty_other_seeds() {
    for seed in 1..=20 {
        let falls = [0.50, 0.25].map(|fall| found(seed, fall, seed % 2 == 0));
        let wrong = false_in_steady(1_000 + seed);
        println!("seed {seed}: {falls:?} of 200 falls by 50 and 25 % found, {wrong} of 200 steady ones taken for others");
        assert!(falls.iter().all(|&found| found >= 195) && wrong <= 2, "{seed}");
    }
}

#[test]
fn too_little_says_nothing_and_nothing_breaks_it() {
    let shape = |t_ns: &[u64], bytes: &[Option<i64>]| look(t_ns, bytes, &[], None).shape;
    assert_eq!(shape(&[], &[]), Shape::Unknown("nothing moved"));
    assert_eq!(shape(&[0, 5], &[Some(3), Some(3)]), Shape::Unknown("nothing moved"));
    assert!(matches!(shape(&[0, 5, 9], &[Some(3), None, Some(9)]), Shape::Unknown(_)));
    // No noise at all, a step without noise, times that stand, bytes that fall, negative ones.
    let t_ns: Vec<u64> = (0..100).map(|index| index * 1_000_000_000).collect();
    let even: Vec<Option<i64>> = (0..100).map(|index| Some(index * 1_000_000)).collect();
    assert!(matches!(shape(&t_ns, &even), Shape::Steady(_)));
    let step: Vec<Option<i64>> = (0..100_i64).map(|index| Some(index.min(50) * 4_000_000 + (index - 50).max(0) * 1_000_000)).collect();
    let Shape::Levels(levels) = shape(&t_ns, &step) else { panic!("{:?}", shape(&t_ns, &step)) };
    assert_eq!(levels.iter().map(|level| (level.to_bytes / 1_000_000, level.to_ns / 1_000_000_000)).collect::<Vec<_>>()[0], (200, 50));
    let broken: Vec<Option<i64>> =
        (0..100).map(|index| if index % 7 == 0 { None } else { Some(if index % 11 == 0 { -5 } else { index * 1_000_000 }) }).collect();
    assert!(matches!(shape(&t_ns, &broken), Shape::Steady(_)));
    assert!(matches!(shape(&[7; 100], &even), Shape::Unknown(_)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn whatever_was_sampled_its_levels_follow_each_other(
        steps in prop::collection::vec((0..3_000_000_000_u64, prop::option::of(0..1_000_000_000_i64)), 0..120),
        gaps in prop::collection::vec((0..200_000_000_000_u64, 0..5_000_000_000_u64), 0..4),
    ) {
        let (mut t, mut b) = (0, 0);
        let (t_ns, bytes): (Vec<u64>, Vec<Option<i64>>) = steps
            .iter()
            .map(|&(ns, moved)| {
                t += ns;
                b += moved.unwrap_or(0);
                (t, moved.map(|_| b))
            })
            .unzip();
        let gaps: Vec<Gap> = gaps.iter().map(|&(from_ns, ns)| Gap { from_ns, to_ns: from_ns + ns }).collect();
        let shape = look(&t_ns, &bytes, &gaps, Some(&bytes)).shape;
        for level in shape.levels() {
            prop_assert!(level.from_bytes <= level.to_bytes && level.from_ns <= level.to_ns && level.rate().is_finite(), "{level:?}");
        }
        for pair in shape.levels().windows(2) {
            prop_assert!(pair[0].to_bytes == pair[1].from_bytes && pair[0].to_ns == pair[1].from_ns, "{pair:?}");
        }
    }
}

#[test]
fn drift_is_measured_in_thirds_and_temperature_is_set_beside_it() {
    let mut chance = Chance::of(SEED + 9);
    let curve = simulate(&mut chance, false, |share| 1.0 - 0.4 * share);
    let celsius: Vec<Option<i64>> =
        (0..curve.t_ns.len()).map(|index| (index % 3 == 0).then_some(30 + (index * 40 / curve.t_ns.len()) as i64)).collect();
    let drift = look(&curve.t_ns, &curve.bytes, &[], Some(&celsius)).drift.unwrap();
    assert!(drift.is_significant && (0.65..0.85).contains(&drift.ratio()), "{drift:?}");
    assert!(drift.celsius_correlation.unwrap() < -0.7, "{drift:?}");
    let steady = vec![Some(40); curve.t_ns.len()];
    assert_eq!(look(&curve.t_ns, &curve.bytes, &[], Some(&steady)).drift.unwrap().celsius_correlation, None);
    // After a cliff only what happens within the longer level is drift.
    let drifts = count(SEED + 10, 100, |chance| {
        let curve = simulate(chance, false, |share| if share < 0.3 { 1.0 } else { 0.4 });
        look(&curve.t_ns, &curve.bytes, &[], None).drift.is_some_and(|drift| drift.is_significant)
    });
    assert!(drifts <= 3, "{drifts}");
}
