//! Power analysis: how many cases are needed to detect a difference, and which difference a number of cases can detect.
//!
//! Nothing here depends on the observed difference: power "at the observed effect" is the p-value in disguise (Hoenig and
//! Heisey 2001). Only the variance of cases is taken from the data.

use super::bootstrap::mean;
use super::distribution::{
    binomial_at_least, noncentral_student_above, normal, normal_quantile, root, student_quantile,
};
use super::paired::Pair;
use libm::{exp, lgamma, log, log1p};
use serde::{Deserialize, Serialize};

/// The maximum number of cases to plan for.
pub const MAX_CASES: usize = 10_000_000;
/// The expected number of differing cases beyond which the normal approximation replaces the exact sum.
const MAX_EXACT_DIFFERING: f64 = 500.0;

/// The error probabilities a plan aims for.
///
/// ```
/// use patter_core::stats::plan::{Goal, cases_for_rate, cases_for_shift, detectable_rate};
/// let goal = Goal { alpha: 0.05, power: 0.8 };
/// // A difference of half a standard deviation takes 34 cases (Cohen 1988).
/// assert_eq!(cases_for_shift(0.5, 1.0, goal), Some(34));
/// // Three points, if one case in ten differs.
/// let cases = cases_for_rate(0.03, 0.1, goal).unwrap();
/// assert!((860..930).contains(&cases), "{cases}");
/// assert!((detectable_rate(cases, 0.1, goal).unwrap() - 0.03).abs() < 0.001);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// The probability of a false positive, two-sided.
    pub alpha: f64,
    /// The probability of detecting a true difference.
    pub power: f64,
}

/// The variance of differences between cases, and between repeats of a case.
///
/// ```
/// use patter_core::stats::plan::VarianceComponents;
/// let variance = VarianceComponents { between: 1.0, within: Some(3.0) };
/// assert_eq!(variance.deviation(1.0), 2.0);
/// assert_eq!(variance.correlation(), Some(0.25));
/// assert!(variance.deviation(1_000.0) > 1.0); // repeats cannot replace cases
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct VarianceComponents {
    /// The variance between cases; the total variance if no case has repeats.
    pub between: f64,
    /// The variance between repeats of a case, if there are repeats.
    pub within: Option<f64>,
}

impl VarianceComponents {
    /// Estimates the variance of the differences of pairs, which must be sorted by case, by an analysis of variance.
    /// Returns `None` for fewer than two cases.
    pub fn estimate(pairs: &[Pair], difference: impl Fn(&Pair) -> f64) -> Option<Self> {
        let groups: Vec<Vec<f64>> = pairs
            .chunk_by(|one, other| one.case == other.case)
            .map(|case| case.iter().map(&difference).collect())
            .collect();
        let cases = groups.len() as f64;
        let total = pairs.len() as f64;
        if groups.len() < 2 {
            return None;
        }
        let grand = groups.iter().flatten().sum::<f64>() / total;
        let square = |off: f64| off * off;
        let among: f64 = groups.iter().map(|group| group.len() as f64 * square(mean(group) - grand)).sum();
        let among = among / (cases - 1.0);
        if groups.len() == pairs.len() {
            return Some(Self { between: among, within: None });
        }
        let sum_of_squares = |group: &Vec<f64>| {
            let mean = mean(group);
            group.iter().map(|value| square(value - mean)).sum::<f64>()
        };
        let within = groups.iter().map(sum_of_squares).sum::<f64>() / (total - cases);
        // The effective number of repeats if cases have different numbers of them.
        let repeats =
            (total - groups.iter().map(|group| square(group.len() as f64)).sum::<f64>() / total) / (cases - 1.0);
        Some(Self { between: ((among - within) / repeats).max(0.0), within: Some(within) })
    }

    /// Returns the standard deviation of the mean difference of a case with this many repeats.
    pub fn deviation(&self, repeats: f64) -> f64 {
        (self.between + self.within.unwrap_or(0.0) / repeats.max(1.0)).sqrt()
    }

    /// Returns the correlation between repeats of a case, from 0 to 1, if there are repeats. Near 1, more repeats are of
    /// little use, and more cases are needed.
    pub fn correlation(&self) -> Option<f64> {
        let total = self.between + self.within?;
        (total > 0.0).then(|| self.between / total)
    }
}

/// Returns the power of a two-sided paired t-test for a mean difference. The sign-flip test has the same power
/// asymptotically (Hoeffding 1952).
pub fn power_of_shift(cases: usize, shift: f64, deviation: f64, alpha: f64) -> f64 {
    if cases < 2 || deviation <= 0.0 || !shift.is_finite() {
        return 0.0;
    }
    let freedom = (cases - 1) as f64;
    let critical = student_quantile(1.0 - alpha / 2.0, freedom);
    let shift = shift.abs() / deviation * (cases as f64).sqrt();
    noncentral_student_above(critical, freedom, shift) + noncentral_student_above(critical, freedom, -shift)
}

/// Returns the number of cases needed to detect a mean difference, given the standard deviation over cases. Returns `None`
/// if the difference or the deviation is 0, or if it would take more than [`MAX_CASES`].
pub fn cases_for_shift(shift: f64, deviation: f64, goal: Goal) -> Option<usize> {
    let possible = shift != 0.0 && deviation > 0.0;
    possible.then(|| min_cases(|cases| power_of_shift(cases, shift, deviation, goal.alpha) >= goal.power)).flatten()
}

/// Returns the smallest mean difference that a number of cases can detect.
pub fn detectable_shift(cases: usize, deviation: f64, goal: Goal) -> Option<f64> {
    let surplus = |shift: f64| power_of_shift(cases, shift, deviation, goal.alpha) - goal.power;
    let far = deviation * 1e4;
    (cases >= 2 && deviation > 0.0 && surplus(far) >= 0.0).then(|| smallest_detectable(far, surplus))
}

/// Returns the power of the exact McNemar test for a difference of pass rates, given the share of cases that differ. The
/// share is at least the difference.
///
/// Computes the exact sum over all numbers of differing cases, or with many of them the normal approximation (Connor 1987)
/// with continuity correction.
pub fn power_of_rate(cases: usize, difference: f64, discordance: f64, alpha: f64) -> f64 {
    let difference = difference.abs().min(1.0);
    let discordance = discordance.clamp(difference, 1.0);
    if cases == 0 || discordance <= 0.0 {
        return 0.0;
    }
    let n = cases as f64;
    if n * discordance > MAX_EXACT_DIFFERING {
        let z = normal_quantile(1.0 - alpha / 2.0);
        let spread = (discordance - difference * difference).sqrt();
        return normal((n.sqrt() * difference - 1.0 / n.sqrt() - z * discordance.sqrt()) / spread.max(1e-12));
    }
    let win = (0.5 + difference / discordance / 2.0).min(1.0);
    let reach = 7.0 * (n * discordance).sqrt() + 7.0;
    let first = (n * discordance - reach).max(0.0) as usize;
    let last = ((n * discordance + reach) as usize).min(cases);
    let mut needed = first / 2;
    (first..=last)
        .map(|differing| {
            // Each additional differing case raises the number of wins needed by at most one.
            while needed <= differing && 2.0 * binomial_at_least(needed, differing, 0.5) > alpha {
                needed += 1;
            }
            let detected = binomial_at_least(needed, differing, win) + binomial_at_least(needed, differing, 1.0 - win);
            binomial(differing, cases, discordance) * detected
        })
        .sum()
}

/// Returns the number of cases needed to detect a difference of pass rates, given the share of cases that differ.
pub fn cases_for_rate(difference: f64, discordance: f64, goal: Goal) -> Option<usize> {
    let possible = difference != 0.0 && difference.abs() <= 1.0;
    possible
        .then(|| min_cases(|cases| power_of_rate(cases, difference, discordance, goal.alpha) >= goal.power))
        .flatten()
}

/// Returns the smallest difference of pass rates that a number of cases can detect, if any. A difference larger than the
/// share of differing cases raises that share.
pub fn detectable_rate(cases: usize, discordance: f64, goal: Goal) -> Option<f64> {
    let surplus = |difference: f64| power_of_rate(cases, difference, discordance, goal.alpha) - goal.power;
    (surplus(1.0) >= 0.0).then(|| smallest_detectable(1.0, surplus))
}

/// Returns the smallest sufficient number of cases, assuming that more cases are sufficient, too.
fn min_cases(is_enough: impl Fn(usize) -> bool) -> Option<usize> {
    let mut high = 2;
    while !is_enough(high) {
        high *= 2;
        if high > MAX_CASES {
            return None;
        }
    }
    let mut low = high / 2;
    while low + 1 < high {
        let middle = low.midpoint(high);
        if is_enough(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

/// Returns the smallest sufficient difference, given a larger one that is sufficient.
fn smallest_detectable(far: f64, surplus: impl Fn(f64) -> f64) -> f64 {
    // On a logarithmic scale, the precision is the same for all sizes.
    exp(root(log(far * 1e-9), log(far), |size| surplus(exp(size))))
}

/// Returns the probability of exactly `k` successes in `n` trials.
fn binomial(k: usize, n: usize, p: f64) -> f64 {
    if p >= 1.0 {
        return if k == n { 1.0 } else { 0.0 };
    }
    let k = k as f64;
    let n = n as f64;
    let log_ways = lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0);
    exp(log_ways + k * log(p) + (n - k) * log1p(-p))
}
