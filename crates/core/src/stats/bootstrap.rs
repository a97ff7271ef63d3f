//! Intervals for means over cases, mainly by the bootstrap.

use super::distribution::{binomial_at_least, normal, normal_quantile, root, student_quantile};
use super::{Interval, Rng};
use serde::{Deserialize, Serialize};

/// The minimum number of cases for an interval. With two, Student's interval is twelve standard errors wide on either side.
const MIN_CASES: usize = 3;
/// The minimum number of cases for the bootstrap. With fewer, it underestimates the tails.
const MIN_BOOTSTRAP_CASES: usize = 10;
/// The number of differing cases below which pass rates get the conservative interval.
const MIN_DIFFERING_CASES: usize = 5;

/// The method by which an interval was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntervalMethod {
    /// The score interval for the difference of paired proportions (Tango 1998).
    Score,
    /// The bootstrap over cases, corrected for bias and skewness (Efron 1987) and widened for few cases (Hesterberg 2015).
    Bootstrap,
    /// Student's interval, for fewer than ten cases.
    Student,
    /// Exact bounds on how often cases differ at all (Clopper and Pearson 1934): conservative, if very few do.
    #[serde(alias = "careful")]
    Conservative,
    /// A confidence sequence, which is valid at all times simultaneously.
    Anytime,
}

/// Returns an interval for the population mean, from one value per case.
///
/// There is none for fewer than three values or if all are equal, because the data contain too little information about the
/// variance. With three to nine values it is Student's. From ten on it is the BCa bootstrap, with the normal quantile `z`
/// replaced by `t·√(n/(n−1))`: the bootstrap distribution is too narrow by that root, and does not account for `t`.
///
/// No interval for a mean is exact for all distributions. In simulations, 95% intervals covered the true mean in 94 to 95%
/// of the experiments with 10 to 100 normal values, in 93 to 94% with values as skewed as latencies often are (lognormal,
/// σ = 0.5), and in 88 to 92% with σ = 1, where Student's interval reaches 85 to 91%. Logarithms are less skewed.
///
/// ```
/// use patter_core::stats::{IntervalMethod, Rng, mean_interval};
/// let values: Vec<f64> = (0..40).map(|index| f64::from(index % 8)).collect();
/// let (interval, method) = mean_interval(&values, 0.05, 2_000, &mut Rng::new(1)).unwrap();
/// assert!(interval.low < 3.5 && 3.5 < interval.high);
/// assert_eq!(method, IntervalMethod::Bootstrap);
/// assert_eq!(mean_interval(&[3.0], 0.05, 2_000, &mut Rng::new(1)), None);
/// ```
pub fn mean_interval(
    values: &[f64],
    alpha: f64,
    resamples: usize,
    rng: &mut Rng,
) -> Option<(Interval, IntervalMethod)> {
    let n = values.len() as f64;
    let mean = mean(values);
    let sd = deviation(values)?;
    if sd == 0.0 || values.len() < MIN_CASES {
        return None;
    }
    let t = student_quantile(1.0 - alpha / 2.0, n - 1.0);
    if values.len() < MIN_BOOTSTRAP_CASES {
        let reach = t * sd / n.sqrt();
        return Some((Interval { low: mean - reach, high: mean + reach }, IntervalMethod::Student));
    }
    let means = bootstrap_means(values, resamples, rng);
    let interval = bca(&means, mean, acceleration(values), t * (n / (n - 1.0)).sqrt());
    Some((interval?, IntervalMethod::Bootstrap))
}

/// Returns bounds for the mean of values from −1 to 1 of which very few are nonzero, where the bootstrap is too narrow.
///
/// The mean is at most the share of positive values, and at least the negated share of negative values. Returns `None`
/// if enough values are nonzero for [`mean_interval`].
pub fn conservative_interval(values: &[f64], alpha: f64) -> Option<Interval> {
    let count = |test: fn(&f64) -> bool| values.iter().filter(|value| test(value)).count();
    let above = count(|value| *value > 0.0);
    let below = count(|value| *value < 0.0);
    if values.is_empty() || above + below >= MIN_DIFFERING_CASES {
        return None;
    }
    let upper_bound = |count: usize| match count {
        _ if count == values.len() => 1.0,
        _ => root(0.0, 1.0, |share| binomial_at_least(count + 1, values.len(), share) - (1.0 - alpha / 2.0)),
    };
    Some(Interval { low: -upper_bound(below), high: upper_bound(above) })
}

/// Returns the means of resamples drawn with replacement, in ascending order.
pub fn bootstrap_means(values: &[f64], resamples: usize, rng: &mut Rng) -> Vec<f64> {
    let n = values.len();
    let mut draw = || (0..n).map(|_| values.get(rng.below(n)).copied().unwrap_or(0.0)).sum::<f64>() / n as f64;
    let mut means: Vec<f64> = (0..resamples).map(|_| draw()).collect();
    means.sort_unstable_by(f64::total_cmp);
    means
}

/// Returns the BCa interval (Efron 1987) from replicates in ascending order; `z` is the normal quantile of the level.
///
/// Returns `None` if all replicates are on one side of the estimate.
pub fn bca(replicates: &[f64], estimate: f64, acceleration: f64, z: f64) -> Option<Interval> {
    let below = replicates.partition_point(|&value| value < estimate);
    let at_most = replicates.partition_point(|&value| value <= estimate);
    let bias = normal_quantile((below + at_most) as f64 / (2 * replicates.len()) as f64);
    if !bias.is_finite() {
        return None;
    }
    let end = |z: f64| {
        let sum = bias + z;
        let room = 1.0 - acceleration * sum;
        // Beyond the pole of the formula, the interval extends to the last replicate.
        let moved = if room > 0.0 { bias + sum / room } else { sum.signum() * f64::INFINITY };
        quantile(replicates, normal(moved))
    };
    Some(Interval { low: end(-z)?, high: end(z)? })
}

/// Returns the acceleration of a mean by the jackknife: a sixth of the skewness of the values, divided by the square root
/// of their number.
pub fn acceleration(values: &[f64]) -> f64 {
    let mean = mean(values);
    let sum = |power: fn(f64) -> f64| values.iter().map(|value| power(value - mean)).sum::<f64>();
    let squares = sum(|off| off * off);
    if squares > 0.0 { sum(|off| off * off * off) / (6.0 * squares * squares.sqrt()) } else { 0.0 }
}

/// Returns a quantile of values in ascending order, with linear interpolation.
fn quantile(sorted: &[f64], p: f64) -> Option<f64> {
    let position = p * sorted.len().saturating_sub(1) as f64;
    let low = *sorted.get(position as usize)?;
    let high = sorted.get(position as usize + 1).copied().unwrap_or(low);
    Some(low + (high - low) * position.fract())
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the standard deviation of a sample of at least two values: 0 if they differ only by rounding.
pub(super) fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    let sd = (squares / (values.len().checked_sub(1).filter(|&freedom| freedom > 0)?) as f64).sqrt();
    Some(if sd <= mean.abs() * 1e-12 { 0.0 } else { sd })
}
