//! The statistics of comparing agents: whether one arm of an experiment is better than another, by how much, and how
//! sure that is.
//!
//! [`compare`] takes an [`Experiment`], arms that were tried on the same cases, and returns a [`Comparison`], which is
//! data and words. Everything it is made of can be used by itself.
//!
//! ```
//! use patter_core::stats::{Experiment, Finding, Metric, Options, Trial, compare};
//!
//! let mut trials = Vec::new();
//! for case in 0..40 {
//!     for arm in 0..2 {
//!         let passed = f64::from(case % 3 != 0);
//!         let latency = (100 + case) as f64 * if arm == 0 { 1.0 } else { 1.15 + (case % 5) as f64 / 100.0 };
//!         trials.push(Trial { arm, case: case as usize, repeat: 0, values: vec![Some(passed), Some(latency)] });
//!     }
//! }
//! let arms = vec!["terse".to_owned(), "verbose".to_owned()];
//! let experiment = Experiment { arms, metrics: vec![Metric::pass_rate(), Metric::latency()], trials };
//! let comparison = compare(&experiment, &Options::default())?;
//! assert_eq!(comparison.contrasts[1].verdict.finding, Finding::Worse);
//! assert_eq!(comparison.contrasts[1].verdict.words, "`verbose` is slower by 16.5–17.5 %");
//! # Ok::<(), patter_core::stats::CompareError>(())
//! ```
//!
//! # What is compared
//!
//! The case is the unit, not the run: repeats of a case are more alike than other cases, and counting them as cases of
//! their own makes everything look surer than it is. So each case counts once, by the mean of its repeats ("clusters").
//! Runs are paired by case and repeat, and what differs from case to case cancels out.
//!
//! | what | test | interval |
//! |---|---|---|
//! | pass rate, one run of each case | exact test of McNemar (1947): [`Outcomes`] | score interval of Tango (1998) |
//! | pass rate, several repeats | [`sign_flip`] of the cases' mean differences (Fisher 1935), exact | [`mean_interval`]; [`careful_interval`] where fewer than five cases differ |
//! | latency, tokens, cost, turns | [`sign_flip`] of the cases' mean log ratios, or differences where values are not above 0 | [`mean_interval`]: BCa bootstrap over cases (Efron 1987; Hesterberg 2015) |
//! | any of these, looked at while it runs | [`Sequential`]: a betting game (Ville 1939; Waudby-Smith and Ramdas 2024) | its confidence sequence |
//!
//! The tests keep their level if the arms are alike in every case: flipped signs use it up, the test of McNemar stays
//! below it. If the arms differ and only their means are alike, they keep it with many cases. All p-values of a
//! comparison, over arms and metrics, are adjusted by [`holm`] (1979). Intervals are not: each holds for its metric by
//! itself.
//!
//! A ratio is that of geometric means, which says how a typical case changes. The bill changes by the difference of
//! arithmetic means, which is beside it.
//!
//! # What to mind
//!
//! - A run that failed counts as not passed; its latency and cost are unknown, and its pair is left out there. If one
//!   arm fails on the hard cases, what is left flatters it: [`Counts`] tells how many pairs are left out, and so do the
//!   words.
//! - "N more cases would show…" is a plan for a new comparison. Whoever adds cases until something is found, and tests
//!   each time as if the number had been fixed, finds something too often; [`Stopping::Anytime`] is for that.
//! - With fewer than six cases that differ, no exact test can find anything at 0.05, and with several metrics it takes
//!   more.
//! - Where no case varies, there is no interval, because the data say nothing of the spread.
//!
//! Nothing here is random but what the seed says, and each part has a stream of its own: the same experiment, seed and
//! number of resamples give the same bits, whatever the platform and whatever else is compared. With `n` cases and `r`
//! resamples a metric takes about `3·n·r` steps, `n` being at most 2,000: above, cases are put together by lot. `cargo
//! bench -p patter-core --bench compare` tells how long that is.

mod bootstrap;
mod compare;
mod comparison;
pub mod distribution;
mod holm;
mod interval;
mod metric;
mod paired;
mod permutation;
pub mod plan;
mod pool;
mod proportion;
mod rng;
mod sequential;
mod verdict;
mod wording;

pub use bootstrap::{IntervalMethod, acceleration, bca, bootstrap_means, careful_interval, mean_interval};
pub use compare::compare;
pub use comparison::{
    CompareError, Comparison, Contrast, Counts, Estimate, Options, Plan, Stopping, Summary, Test, TestMethod,
};
pub use holm::holm;
pub use interval::Interval;
pub use metric::{Better, Kind, Metric};
pub use paired::{Experiment, ExperimentError, Pair, Trial};
pub use permutation::{SignFlip, sign_flip};
pub use proportion::Outcomes;
pub use rng::Rng;
pub use sequential::{Assume, ObserveError, Sequential};
pub use verdict::{Finding, Matters, Verdict};
