//! Whether tests, intervals, plans and games keep what they promise, over many made-up experiments.
//!
//! Seeds are fixed, so the results are too; the bounds say how far from the promise chance may take them. With the
//! variable `PATTER_SIMULATIONS` set to a factor, there are that many times as many experiments, and the bounds are as
//! much closer.

use super::{normals, of_pairs, of_repeats, quick};
use patter_core::stats::distribution::binomial_at_least;
use patter_core::stats::plan::{Goal, cases_for_rate, cases_for_shift, power_of_rate, power_of_shift};
use patter_core::stats::{
    Assume, Better, Finding, Kind, Metric, Options, Outcomes, Rng, Sequential, Stopping, careful_interval, compare,
    holm, mean_interval, sign_flip,
};

/// Counts in how many of so many experiments something happens.
fn count(experiments: usize, seed: u64, happens: impl Fn(&mut Rng) -> bool) -> Share {
    let factor = std::env::var("PATTER_SIMULATIONS").ok().and_then(|factor| factor.parse().ok()).unwrap_or(1);
    let of = experiments * factor;
    let seen = (0..of as u64).filter(|&experiment| happens(&mut Rng::stream(seed, &[experiment]))).count();
    Share { seen, of }
}

struct Share {
    seen: usize,
    of: usize,
}

impl Share {
    /// Chance may take a share so far that only one in ten thousand would be farther.
    const RARE: f64 = 1e-4;

    #[track_caller]
    fn at_most(self, promised: f64) -> Self {
        let chance = binomial_at_least(self.seen, self.of, promised);
        assert!(chance > Self::RARE, "{} of {} is more than {promised}", self.seen, self.of);
        self
    }

    #[track_caller]
    fn at_least(self, promised: f64) -> Self {
        let chance = 1.0 - binomial_at_least(self.seen + 1, self.of, promised);
        assert!(chance > Self::RARE, "{} of {} is less than {promised}", self.seen, self.of);
        self
    }

    #[track_caller]
    fn about(self, promised: f64) -> Self {
        self.at_most(promised).at_least(promised)
    }
}

fn flip_p(values: &[f64], rng: &mut Rng) -> f64 {
    sign_flip(values, None, 199, rng).p
}

#[test]
fn flipped_signs_give_no_more_false_alarms_than_they_may() {
    // Whatever the distribution, if only it is symmetric; also with 20 differences, where signs are drawn.
    let shapes: [fn(f64) -> f64; 3] = [|z| z, |z| z * z * z, f64::signum];
    for (shape, seed) in shapes.into_iter().zip(1..) {
        let share = count(1_000, seed, |rng| {
            let values: Vec<f64> = normals(rng).map(shape).take(20).collect();
            flip_p(&values, rng) <= 0.05
        });
        // Differences that are all of one size have few different sums, and the level is not used up.
        if seed < 3 {
            share.about(0.05)
        } else {
            share.at_most(0.05)
        };
    }
}

#[test]
fn the_exact_test_never_exceeds_its_level() {
    // No simulation is needed: the probability of a false alarm is a sum over all ways in which cases may come out.
    for alpha in [0.05, 0.01] {
        for differing in 0..60 {
            let alarm =
                |gain: usize| Outcomes { cases: 100, only_baseline: differing - gain, only_arm: gain }.p() <= alpha;
            let chance = |gain| binomial_at_least(gain, differing, 0.5) - binomial_at_least(gain + 1, differing, 0.5);
            let size: f64 = (0..=differing).filter(|&gain| alarm(gain)).map(chance).sum();
            assert!(size <= alpha + 1e-12, "{differing}: {size}");
            assert!(differing < 40 || size > alpha / 5.0, "{differing}: {size}");
        }
    }
}

/// Returns a case of a pass rate: whether each arm passes, with a difficulty that both share.
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

fn outcomes(rng: &mut Rng, cases: usize, discordance: f64, difference: f64) -> Outcomes {
    let drawn: Vec<(f64, f64)> = (0..cases).map(|_| outcome(rng, discordance, difference)).collect();
    let with = |pair: (f64, f64)| drawn.iter().filter(|&&drawn| drawn == pair).count();
    Outcomes { cases, only_baseline: with((1.0, 0.0)), only_arm: with((0.0, 1.0)) }
}

#[test]
fn intervals_of_pass_rates_hold_the_truth() {
    for (cases, discordance, difference, seed) in [(30, 0.3, 0.1, 1), (100, 0.2, 0.0, 2), (200, 0.05, 0.03, 3)] {
        let share = count(2_000, seed, |rng| {
            outcomes(rng, cases, discordance, difference).interval(0.05).unwrap().contains(difference)
        });
        // Outcomes are whole numbers, so the coverage goes up and down about the level.
        share.at_least(0.94).at_most(0.965);
    }
}

#[test]
fn intervals_of_means_hold_the_truth() {
    type Shape = fn(f64) -> f64;
    let shapes: [(Shape, f64); 2] = [(|z| z, 0.0), (|z| (0.5 * z).exp(), 0.125f64.exp())];
    for (cases, experiments) in [(6, 1_000), (12, 500), (30, 300)] {
        for (place, (shape, truth)) in shapes.into_iter().enumerate() {
            let share = count(experiments, place as u64, |rng| {
                let values: Vec<f64> = normals(rng).map(shape).take(cases).collect();
                let (interval, _) = mean_interval(&values, 0.05, 399, rng).unwrap();
                interval.contains(truth)
            });
            // Few draws and an estimated skewness cost a point; what leans to one side takes more cases to be quite
            // right.
            let promised = if place == 0 { 0.94 } else { 0.92 };
            share.at_least(promised).at_most(0.965);
        }
    }
}

#[test]
fn intervals_of_pass_rates_with_repeats_hold_the_truth() {
    // How often arms differ in a case, how often the other one passes there: where hardly any differ, bounds are
    // careful.
    for (cases, differing, wins, seed) in [(40, 0.5, 0.6, 1), (60, 0.03, 1.0, 2)] {
        let share = count(250, seed, |rng| {
            let mut draw = || {
                let [baseline, arm] = if rng.unit() < differing { [1.0 - wins, wins] } else { [1.0, 1.0] };
                let mut passed = |rate: f64| f64::from(u8::from(rng.unit() < rate));
                (0..3).map(|_| passed(arm) - passed(baseline)).sum::<f64>() / 3.0
            };
            let means: Vec<f64> = (0..cases).map(|_| draw()).collect();
            let interval = careful_interval(&means, 0.05)
                .or_else(|| mean_interval(&means, 0.05, 399, rng).map(|(interval, _)| interval));
            interval.unwrap().contains(differing * (2.0 * wins - 1.0))
        });
        share.at_least(0.935);
    }
}

#[test]
fn repeats_of_a_case_are_not_taken_for_cases() {
    // Cases differ a lot, repeats of a case little. Whoever counts runs finds a difference in a third of all
    // experiments.
    let share = count(200, 1, |rng| {
        let cases: Vec<Vec<(f64, f64)>> = (0..18)
            .map(|_| {
                let [of_case, noise @ ..]: [f64; 6] = std::array::from_fn(|_| normals(rng).next().unwrap());
                noise.map(|noise| (0.0, of_case + 0.3 * noise)).to_vec()
            })
            .collect();
        let metric = Metric::new("score", Kind::Difference, Better::More);
        // The seed must not always be the same, or all experiments have the luck of the same few draws.
        let options = Options { resamples: 199, seed: rng.next_u64(), ..Options::default() };
        let comparison = compare(&of_repeats(metric, &cases), &options).unwrap();
        comparison.contrasts[0].verdict.finding != Finding::Unclear
    });
    share.about(0.05);
}

#[test]
fn all_tests_together_give_no_more_false_alarms_than_one_may() {
    // Nine tests, which depend on one another because three arms share a baseline.
    let share = count(400, 2, |rng| {
        let runs: Vec<Vec<f64>> = (0..12).map(|_| normals(rng).take(18).collect()).collect();
        let (baselines, arms) = runs.split_at(3);
        let mut ps = Vec::new();
        for (place, arm) in arms.iter().enumerate() {
            let differences: Vec<f64> = arm.iter().zip(&baselines[place % 3]).map(|(arm, base)| arm - base).collect();
            ps.push(sign_flip(&differences, None, 299, rng).p);
        }
        holm(&ps).iter().any(|&p| p <= 0.05)
    });
    share.at_most(0.05).at_least(0.02);
}

#[test]
fn plans_are_met() {
    let goal = Goal { alpha: 0.05, power: 0.8 };
    let cases = cases_for_shift(0.6, 1.0, goal).unwrap();
    let power = power_of_shift(cases, 0.6, 1.0, 0.05);
    assert!((0.8..0.83).contains(&power), "{power}");
    count(1_500, 3, |rng| {
        let values: Vec<f64> = normals(rng).map(|z| z + 0.6).take(cases).collect();
        flip_p(&values, rng) <= 0.05
    })
    // The sign-flip test with few cases is a little weaker than the t-test that was planned for.
    .at_least(power - 0.02)
    .at_most(power + 0.01);

    let cases = cases_for_rate(0.15, 0.25, goal).unwrap();
    let power = power_of_rate(cases, 0.15, 0.25, 0.05);
    assert!((0.8..0.83).contains(&power), "{power}");
    let found = |rng: &mut Rng| outcomes(rng, cases, 0.25, 0.15).p() <= 0.05;
    count(1_000, 4, found).about(power);

    // Where the exact sum gives way to an approximation, nothing jumps.
    let [exact, approximate] = [2_499, 2_501].map(|cases| power_of_rate(cases, 0.025, 0.2, 0.05));
    assert!((exact - approximate).abs() < 0.005 && exact > 0.7, "{exact} {approximate}");
}

/// Returns differences of cases that are truly that far apart: of pass rates, of something normal, of something wild.
fn differences(kind: usize, truth: f64, cases: usize, rng: &mut Rng) -> (Assume, Vec<f64>) {
    let of_rates = |rng: &mut Rng| {
        let (a, b) = outcome(rng, 0.25, truth);
        b - a
    };
    match kind {
        0 => (Assume::Bounded, (0..cases).map(|_| of_rates(rng)).collect()),
        1 => (Assume::Symmetric, normals(rng).map(|z| z + truth).take(cases).collect()),
        _ => (Assume::Symmetric, normals(rng).map(|z| z * z * z * z * z + truth).take(cases).collect()),
    }
}

/// Plays a game until something holds, or all cases are played.
fn play((assume, values): (Assume, Vec<f64>), until: impl Fn(&Sequential) -> bool) -> bool {
    let mut game = Sequential::new(assume);
    values.iter().any(|&value| {
        game.observe(value).unwrap();
        until(&game)
    })
}

#[test]
fn games_may_be_looked_at_after_every_case() {
    // Whoever stops as soon as the p-value is small is wrong no more often than promised, and intervals hold all the
    // time.
    for kind in 0..3 {
        let found = |rng: &mut Rng| play(differences(kind, 0.0, 150, rng), |game| game.p() <= 0.05);
        count(500, 5, found).at_most(0.05);
        let left_out = |game: &Sequential| {
            game.len().is_multiple_of(40) && game.interval(0.05).is_some_and(|interval| !interval.contains(0.15))
        };
        count(50, 6, |rng| play(differences(kind, 0.15, 160, rng), left_out)).at_most(0.05);
    }
    // The tests for a fixed number of cases do not keep it: that is what the games are for.
    let share = count(100, 7, |rng| {
        let values: Vec<f64> = normals(rng).take(200).collect();
        (1..=10).any(|look| flip_p(&values[..look * 20], rng) <= 0.05)
    });
    share.at_least(0.12);
}

#[test]
fn games_find_what_is_there() {
    let goal = Goal { alpha: 0.05, power: 0.8 };
    let cases = [cases_for_rate(0.15, 0.25, goal).unwrap(), cases_for_shift(0.6, 1.0, goal).unwrap()];
    for (kind, (truth, cases)) in [0.15, 0.6].into_iter().zip(cases).enumerate() {
        let found = |rng: &mut Rng| play(differences(kind, truth, 2 * cases, rng), |game| game.p() <= 0.05);
        count(300, 8, found).at_least(0.8);
    }
}

#[test]
fn an_arm_that_is_better_from_the_start_ends_the_experiment_early() {
    let mut rng = Rng::new(9);
    let pairs: Vec<(f64, f64)> = (0..40).map(|_| outcome(&mut rng, 0.5, 0.45)).collect();
    let options = Options { stopping: Stopping::Anytime, ..quick() };
    let comparison = compare(&of_pairs(Metric::pass_rate(), &pairs), &options).unwrap();
    let contrast = &comparison.contrasts[0];
    assert_eq!(contrast.verdict.finding, Finding::Better, "{contrast:?}");
    assert!(contrast.effect.unwrap().interval.unwrap().low > 0.0);
    assert_eq!(contrast.plan, None);
}
