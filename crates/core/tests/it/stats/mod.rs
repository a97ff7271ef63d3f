//! Statistics: against reference values of other programs, by simulation, and in words.

mod comparisons;
mod hostile;
mod references;
mod simulations;
mod table;
mod verdicts;

use patter_core::stats::{CompareOptions, Experiment, Metric, Rng, TrialValues};

/// Returns normally distributed numbers, by the method of Box and Muller.
fn normals(rng: &mut Rng) -> impl Iterator<Item = f64> {
    std::iter::from_fn(|| {
        let radius = (-2.0 * (1.0 - rng.unit()).ln()).sqrt();
        let angle = std::f64::consts::TAU * rng.unit();
        Some([radius * angle.cos(), radius * angle.sin()])
    })
    .flatten()
}

/// Returns an experiment with a single metric and one run per case, from the values under both arms.
fn from_pairs(metric: Metric, pairs: &[(f64, f64)]) -> Experiment {
    let cases: Vec<Vec<(f64, f64)>> = pairs.iter().map(|&pair| vec![pair]).collect();
    from_repeats(metric, &cases)
}

/// Returns an experiment with a single metric, from the pairs of the repeats of each case.
fn from_repeats(metric: Metric, cases: &[Vec<(f64, f64)>]) -> Experiment {
    let mut trials = Vec::new();
    for (case, repeats) in cases.iter().enumerate() {
        for (repeat, &(a, b)) in repeats.iter().enumerate() {
            trials.push(TrialValues { arm: 0, case, repeat, values: vec![Some(a)] });
            trials.push(TrialValues { arm: 1, case, repeat, values: vec![Some(b)] });
        }
    }
    Experiment { arms: vec!["a".to_owned(), "b".to_owned()], metrics: vec![metric], trials }
}

fn quick_options() -> CompareOptions {
    CompareOptions { resamples: 999, ..CompareOptions::default() }
}
