//! Error rates, coverage and power of tests, intervals and plans, over many simulated experiments.
//!
//! Seeds are fixed, so the results are deterministic; the bounds allow for random deviation. Setting the environment
//! variable `PATTER_SIMULATIONS` to a factor runs that many times as many experiments, with correspondingly tighter bounds.

use super::{from_pairs, from_repeats, normals, quick_options};
use patter_core::stats::distribution::binomial_at_least;
use patter_core::stats::plan::{Goal, cases_for_rate, cases_for_shift, power_of_rate, power_of_shift};
use patter_core::stats::{
    Assumption, CompareOptions, Conclusion, Direction, Metric, MetricKind, PairedOutcomes, Rng, Sequential, Stopping,
    compare, conservative_interval, holm, mean_interval, sign_flip,
};

/// Counts the experiments in which an event happens.
fn count(experiments: usize, seed: u64, happens: impl Fn(&mut Rng) -> bool) -> Share {
    let factor = std::env::var("PATTER_SIMULATIONS").ok().and_then(|factor| factor.parse().ok()).unwrap_or(1);
    let total = experiments * factor;
    let count = (0..total as u64).filter(|&experiment| happens(&mut Rng::stream(seed, &[experiment]))).count();
    Share { count, total }
}

struct Share {
    count: usize,
    total: usize,
}

impl Share {
    /// The probability of a random deviation beyond the bounds.
    const TOLERANCE: f64 = 1e-4;

    #[track_caller]
    fn at_most(self, expected: f64) -> Self {
        let chance = binomial_at_least(self.count, self.total, expected);
        assert!(chance > Self::TOLERANCE, "{} of {} is more than {expected}", self.count, self.total);
        self
    }

    #[track_caller]
    fn at_least(self, expected: f64) -> Self {
        let chance = 1.0 - binomial_at_least(self.count + 1, self.total, expected);
        assert!(chance > Self::TOLERANCE, "{} of {} is less than {expected}", self.count, self.total);
        self
    }

    #[track_caller]
    fn about(self, expected: f64) -> Self {
        self.at_most(expected).at_least(expected)
    }
}

fn flip_p(values: &[f64], rng: &mut Rng) -> f64 {
    sign_flip(values, None, 199, rng).p
}

#[test]
fn the_sign_flip_test_keeps_its_level() {
    // For any symmetric distribution, also with 20 differences, where signs are drawn.
    let shapes: [fn(f64) -> f64; 3] = [|z| z, |z| z * z * z, f64::signum];
    for (shape, seed) in shapes.into_iter().zip(1..) {
        let share = count(1_000, seed, |rng| {
            let values: Vec<f64> = normals(rng).map(shape).take(20).collect();
            flip_p(&values, rng) <= 0.05
        });
        // Differences of equal size have few distinct sums, so the level is not attained.
        if seed < 3 {
            share.about(0.05)
        } else {
            share.at_most(0.05)
        };
    }
}

#[test]
fn the_exact_test_never_exceeds_its_level() {
    // No simulation is needed: the error rate is a sum over all possible outcomes.
    for alpha in [0.05, 0.01] {
        for differing in 0..60 {
            let is_significant = |gain: usize| {
                PairedOutcomes { cases: 100, only_baseline: differing - gain, only_arm: gain }.p() <= alpha
            };
            let probability =
                |gain| binomial_at_least(gain, differing, 0.5) - binomial_at_least(gain + 1, differing, 0.5);
            let size: f64 = (0..=differing).filter(|&gain| is_significant(gain)).map(probability).sum();
            assert!(size <= alpha + 1e-12, "{differing}: {size}");
            assert!(differing < 40 || size > alpha / 5.0, "{differing}: {size}");
        }
    }
}

/// Returns the outcomes of a case under both arms.
fn outcome(rng: &mut Rng, discordance: f64, difference: f64) -> (f64, f64) {
    let draw = rng.unit();
    let gain = (discordance + difference) / 2.0;
    match draw {
        _ if draw < gain => (0.0, 1.0),
        _ if draw < discordance => (1.0, 0.0),
        _ if draw < (1.0 + discordance) / 2.0 => (1.0, 1.0),
        _ => (0.0, 0.0),
    }
}

fn outcomes(rng: &mut Rng, cases: usize, discordance: f64, difference: f64) -> PairedOutcomes {
    let drawn: Vec<(f64, f64)> = (0..cases).map(|_| outcome(rng, discordance, difference)).collect();
    let with = |pair: (f64, f64)| drawn.iter().filter(|&&drawn| drawn == pair).count();
    PairedOutcomes { cases, only_baseline: with((1.0, 0.0)), only_arm: with((0.0, 1.0)) }
}

#[test]
fn intervals_of_pass_rates_cover_the_true_value() {
    for (cases, discordance, difference, seed) in [(30, 0.3, 0.1, 1), (100, 0.2, 0.0, 2), (200, 0.05, 0.03, 3)] {
        let share = count(2_000, seed, |rng| {
            outcomes(rng, cases, discordance, difference).interval(0.05).unwrap().contains(difference)
        });
        // Outcomes are discrete, so the coverage oscillates around the level.
        share.at_least(0.94).at_most(0.965);
    }
}

#[test]
fn intervals_of_means_cover_the_true_value() {
    type Shape = fn(f64) -> f64;
    let shapes: [(Shape, f64); 2] = [(|z| z, 0.0), (|z| (0.5 * z).exp(), 0.125f64.exp())];
    for (cases, experiments) in [(6, 1_000), (12, 500), (30, 300)] {
        for (index, (shape, truth)) in shapes.into_iter().enumerate() {
            let share = count(experiments, index as u64, |rng| {
                let values: Vec<f64> = normals(rng).map(shape).take(cases).collect();
                let (interval, _) = mean_interval(&values, 0.05, 399, rng).unwrap();
                interval.contains(truth)
            });
            // Few resamples and an estimated skewness cost a point; skewed values need more cases for full coverage.
            let expected = if index == 0 { 0.94 } else { 0.92 };
            share.at_least(expected).at_most(0.965);
        }
    }
}

#[test]
fn intervals_of_pass_rates_with_repeats_cover_the_true_value() {
    // The share of cases in which the arms differ, and the pass rate there. If hardly any differ, bounds are conservative.
    for (cases, differing, wins, seed) in [(40, 0.5, 0.6, 1), (60, 0.03, 1.0, 2)] {
        let share = count(250, seed, |rng| {
            let mut draw = || {
                let [baseline, arm] = if rng.unit() < differing { [1.0 - wins, wins] } else { [1.0, 1.0] };
                let mut passed = |rate: f64| f64::from(u8::from(rng.unit() < rate));
                (0..3).map(|_| passed(arm) - passed(baseline)).sum::<f64>() / 3.0
            };
            let means: Vec<f64> = (0..cases).map(|_| draw()).collect();
            let interval = conservative_interval(&means, 0.05)
                .or_else(|| mean_interval(&means, 0.05, 399, rng).map(|(interval, _)| interval));
            interval.unwrap().contains(differing * (2.0 * wins - 1.0))
        });
        share.at_least(0.935);
    }
}

#[test]
fn repeats_do_not_count_as_cases() {
    // Cases vary a lot, repeats of a case little. Counting runs instead would find a difference in a third of all
    // experiments.
    let share = count(200, 1, |rng| {
        let cases: Vec<Vec<(f64, f64)>> = (0..18)
            .map(|_| {
                let [centre, noise @ ..]: [f64; 6] = std::array::from_fn(|_| normals(rng).next().unwrap());
                noise.map(|noise| (0.0, centre + 0.3 * noise)).to_vec()
            })
            .collect();
        let metric = Metric::new("score", MetricKind::Difference, Direction::More);
        // The seed varies, because otherwise all experiments would share the same few draws.
        let options = CompareOptions { resamples: 199, seed: rng.next_u64(), ..CompareOptions::default() };
        let comparison = compare(&from_repeats(metric, &cases), &options).unwrap();
        comparison.contrasts[0].verdict.conclusion != Conclusion::Unclear
    });
    share.about(0.05);
}

#[test]
fn adjusted_tests_keep_the_level_together() {
    // Nine tests that depend on each other, because three arms share a baseline.
    let share = count(400, 2, |rng| {
        let runs: Vec<Vec<f64>> = (0..12).map(|_| normals(rng).take(18).collect()).collect();
        let (baselines, arms) = runs.split_at(3);
        let mut ps = Vec::new();
        for (index, arm) in arms.iter().enumerate() {
            let differences: Vec<f64> = arm.iter().zip(&baselines[index % 3]).map(|(arm, base)| arm - base).collect();
            ps.push(sign_flip(&differences, None, 299, rng).p);
        }
        holm(&ps).iter().any(|&p| p <= 0.05)
    });
    share.at_most(0.05).at_least(0.02);
}

#[test]
fn plans_reach_their_power() {
    let goal = Goal { alpha: 0.05, power: 0.8 };
    let cases = cases_for_shift(0.6, 1.0, goal).unwrap();
    let power = power_of_shift(cases, 0.6, 1.0, 0.05);
    assert!((0.8..0.83).contains(&power), "{power}");
    count(1_500, 3, |rng| {
        let values: Vec<f64> = normals(rng).map(|z| z + 0.6).take(cases).collect();
        flip_p(&values, rng) <= 0.05
    })
    // With few cases the sign-flip test is slightly weaker than the planned t-test.
    .at_least(power - 0.02)
    .at_most(power + 0.01);

    let cases = cases_for_rate(0.15, 0.25, goal).unwrap();
    let power = power_of_rate(cases, 0.15, 0.25, 0.05);
    assert!((0.8..0.83).contains(&power), "{power}");
    let found = |rng: &mut Rng| outcomes(rng, cases, 0.25, 0.15).p() <= 0.05;
    count(1_000, 4, found).about(power);

    // The switch from the exact sum to the approximation is continuous.
    let [exact, approximate] = [2_499, 2_501].map(|cases| power_of_rate(cases, 0.025, 0.2, 0.05));
    assert!((exact - approximate).abs() < 0.005 && exact > 0.7, "{exact} {approximate}");
}

/// Returns differences of cases with a true difference: of pass rates, of normal values, or of heavy-tailed values.
fn differences(kind: usize, truth: f64, cases: usize, rng: &mut Rng) -> (Assumption, Vec<f64>) {
    let pass_difference = |rng: &mut Rng| {
        let (a, b) = outcome(rng, 0.25, truth);
        b - a
    };
    match kind {
        0 => (Assumption::Bounded, (0..cases).map(|_| pass_difference(rng)).collect()),
        1 => (Assumption::Symmetric, normals(rng).map(|z| z + truth).take(cases).collect()),
        _ => (Assumption::Symmetric, normals(rng).map(|z| z * z * z * z * z + truth).take(cases).collect()),
    }
}

/// Observes cases until a condition holds. Returns whether it did.
fn observe_until((assumption, values): (Assumption, Vec<f64>), until: impl Fn(&Sequential) -> bool) -> bool {
    let mut test = Sequential::new(assumption);
    values.iter().any(|&value| {
        test.observe(value).unwrap();
        until(&test)
    })
}

#[test]
fn sequential_tests_may_be_evaluated_after_every_case() {
    // Stopping at the first small p-value keeps the level, and intervals cover the true value at all times.
    for kind in 0..3 {
        let found = |rng: &mut Rng| observe_until(differences(kind, 0.0, 150, rng), |test| test.p() <= 0.05);
        count(500, 5, found).at_most(0.05);
        let is_missed = |test: &Sequential| {
            test.len().is_multiple_of(40) && test.interval(0.05).is_some_and(|interval| !interval.contains(0.15))
        };
        count(50, 6, |rng| observe_until(differences(kind, 0.15, 160, rng), is_missed)).at_most(0.05);
    }
    // Tests for a fixed number of cases do not keep the level here.
    let share = count(100, 7, |rng| {
        let values: Vec<f64> = normals(rng).take(200).collect();
        (1..=10).any(|look| flip_p(&values[..look * 20], rng) <= 0.05)
    });
    share.at_least(0.12);
}

#[test]
fn sequential_tests_have_power() {
    let goal = Goal { alpha: 0.05, power: 0.8 };
    let cases = [cases_for_rate(0.15, 0.25, goal).unwrap(), cases_for_shift(0.6, 1.0, goal).unwrap()];
    for (kind, (truth, cases)) in [0.15, 0.6].into_iter().zip(cases).enumerate() {
        let found = |rng: &mut Rng| observe_until(differences(kind, truth, 2 * cases, rng), |test| test.p() <= 0.05);
        count(300, 8, found).at_least(0.8);
    }
}

#[test]
fn a_clearly_better_arm_is_detected_early() {
    let mut rng = Rng::new(9);
    let pairs: Vec<(f64, f64)> = (0..40).map(|_| outcome(&mut rng, 0.5, 0.45)).collect();
    let options = CompareOptions { stopping: Stopping::Anytime, ..quick_options() };
    let comparison = compare(&from_pairs(Metric::pass_rate(), &pairs), &options).unwrap();
    let contrast = &comparison.contrasts[0];
    assert_eq!(contrast.verdict.conclusion, Conclusion::Better, "{contrast:?}");
    assert!(contrast.effect.unwrap().interval.unwrap().low > 0.0);
    assert_eq!(contrast.plan, None);
}
