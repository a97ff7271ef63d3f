//! The duration of a comparison of two arms by pass rate and latency, with 10,000 resamples.
//!
//! `cargo bench -p patter-core --bench compare` prints milliseconds on one core. The time grows with the number of cases up
//! to 2,000, and hardly beyond.
#![allow(clippy::print_stdout, missing_docs, reason = "a benchmark")]

use patter_core::stats::{CompareOptions, Experiment, Metric, Rng, Stopping, TrialValues, compare};
use std::hint::black_box;
use std::time::Instant;

fn main() {
    println!("{:>8} {:>10} {:>12}", "cases", "fixed ms", "anytime ms");
    for cases in [100, 2_000, 100_000] {
        let experiment = experiment(cases);
        let time = |stopping: Stopping| {
            let start = Instant::now();
            let compared = black_box(compare(&experiment, &CompareOptions { stopping, ..CompareOptions::default() }));
            assert!(compared.is_ok());
            start.elapsed().as_secs_f64() * 1e3
        };
        println!("{cases:>8} {:>10.1} {:>12.1}", time(Stopping::Fixed), time(Stopping::Anytime));
    }
}

fn experiment(cases: usize) -> Experiment {
    let mut rng = Rng::new(1);
    let mut trials = Vec::new();
    for case in 0..cases {
        for arm in 0..2 {
            let passed = f64::from(u8::from(rng.unit() < 0.7));
            trials.push(TrialValues { arm, case, repeat: 0, values: vec![Some(passed), Some(1.0 + rng.unit())] });
        }
    }
    let arms = vec!["a".to_owned(), "b".to_owned()];
    Experiment { arms, metrics: vec![Metric::pass_rate(), Metric::latency()], trials }
}
