//! Statistics for comparing agents: which arm of an experiment is better, by how much, and with what confidence.
//!
//! [`compare`] takes an [`Experiment`], arms that were tried on the same cases, and returns a [`Comparison`] as data and
//! in words. Its parts can be used on their own.
//!
//! ```
//! use patter_core::stats::{CompareOptions, Conclusion, Experiment, Metric, TrialValues, compare};
//!
//! let mut trials = Vec::new();
//! for case in 0..40 {
//!     for arm in 0..2 {
//!         let passed = f64::from(case % 3 != 0);
//!         let latency = (100 + case) as f64 * if arm == 0 { 1.0 } else { 1.15 + (case % 5) as f64 / 100.0 };
//!         trials.push(TrialValues { arm, case: case as usize, repeat: 0, values: vec![Some(passed), Some(latency)] });
//!     }
//! }
//! let arms = vec!["terse".to_owned(), "verbose".to_owned()];
//! let experiment = Experiment { arms, metrics: vec![Metric::pass_rate(), Metric::latency()], trials };
//! let comparison = compare(&experiment, &CompareOptions::default())?;
//! assert_eq!(comparison.contrasts[1].verdict.conclusion, Conclusion::Worse);
//! assert_eq!(comparison.contrasts[1].verdict.text, "`verbose` is slower by 16.5–17.5%");
//! # Ok::<(), patter_core::stats::CompareError>(())
//! ```
//!
//! # What is compared
//!
//! The unit is the case, not the run: repeats of a case resemble each other more than other cases, so counting them as
//! separate cases would overstate the confidence. Each case counts once, with the mean of its repeats (a "cluster"). Runs
//! are paired by case and repeat, so variation between cases cancels out.
//!
//! | metric | test | interval |
//! |---|---|---|
//! | pass rate, one run per case | exact McNemar test (1947): [`PairedOutcomes`] | Tango's score interval (1998) |
//! | pass rate, several repeats | [`sign_flip`] of the mean differences per case (Fisher 1935), exact | [`mean_interval`]; [`conservative_interval`] if fewer than five cases differ |
//! | latency, tokens, cost, turns | [`sign_flip`] of the mean log ratios per case, or of differences if values are not positive | [`mean_interval`]: BCa bootstrap over cases (Efron 1987; Hesterberg 2015) |
//! | any of these, monitored during the experiment | [`Sequential`]: a betting game (Ville 1939; Waudby-Smith and Ramdas 2024) | its confidence sequence |
//!
//! If the arms are alike in every case, the tests keep their level: the sign-flip test attains it, the McNemar test stays
//! below it. If the arms differ and only their means are equal, they keep it asymptotically. Intervals are not adjusted:
//! each covers its own metric.
//!
//! The first metric is the primary one. It is tested first, at the full level, and corrected only for the number of arms, by
//! the method of [`holm`] (1979). The other metrics follow, as [`gatekeep`] describes: they need stronger evidence, unless
//! the primary metric differs.
//!
//! A ratio is one of geometric means, which describes how a typical case changes. Totals such as a bill change by the
//! difference of arithmetic means, which is reported as well.
//!
//! # Caveats
//!
//! - Pairs with an unknown value are left out. If one arm has no value for hard cases, the remaining ones flatter it:
//!   [`PairCounts`] and the [`VerdictNote`]s report how many pairs are left out.
//! - "N more cases would detect…" is a plan for a new comparison. Adding cases until something is found, while testing
//!   each time as if the number had been fixed, inflates the error rate; use [`Stopping::Anytime`] for that.
//! - With fewer than six differing cases, no exact test can be significant at 0.05; with several metrics, it takes more.
//! - If no case varies, there is no interval, because the data contain no information about the variance. If there are so
//!   few cases that an interval would say nothing, there is none either.
//! - With [`Stopping::Anytime`], cases must be numbered in the order in which they were drawn, and none may be skipped
//!   because it still runs: slow cases are often the ones that fail.
//!
//! Randomness comes only from the seed, and each part has its own stream: the same experiment, seed and number of resamples
//! produce the same bits on every platform, whatever else is compared. With `n` cases and `r` resamples a metric takes
//! about `3·n·r` steps, where `n` is at most 2,000: beyond that, cases are pooled randomly. `cargo bench -p patter-core
//! --bench compare` measures how long that takes. `cargo test -p patter-core --test it -- --ignored --nocapture
//! simulation_table` simulates experiments, and prints error rates, power, stopping and coverage.

mod metric;
mod paired;
mod interval;
pub mod distribution;
mod rng;
mod proportion;
mod permutation;
mod bootstrap;
mod pool;
mod sequential;
mod holm;
pub mod plan;
mod verdict;
mod comparison;
mod wording;
mod conclude;
mod compare;

pub use bootstrap::{IntervalMethod, acceleration, bca, bootstrap_means, conservative_interval, mean_interval};
pub(crate) use compare::common_multiple;
pub use compare::compare;
pub use comparison::{
    ArmStatistics, CompareError, CompareOptions, Comparison, Contrast, Estimate, PairCounts, PowerPlan, Stopping,
    TestMethod, TestResult,
};
pub use holm::{gatekeep, holm};
pub use interval::Interval;
pub use metric::{Direction, Metric, MetricKind};
pub use paired::{Experiment, ExperimentError, Pair, TrialValues};
pub use permutation::{SignFlipResult, sign_flip};
pub use proportion::PairedOutcomes;
pub use rng::Rng;
pub use sequential::{Assumption, ObserveError, Sequential};
pub use verdict::{Conclusion, MetricVerdict, Relevance, VerdictNote};
