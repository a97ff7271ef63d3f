//! How many cases it takes to see a difference, and which difference so many cases can show.
//!
//! Nothing here looks at the difference that was seen: power "at the observed effect" is only the p-value again (Hoenig
//! and Heisey 2001). What is taken from data is how much cases vary.

use super::bootstrap::mean;
use super::distribution::{
    binomial_at_least, noncentral_student_above, normal, normal_quantile, root, student_quantile,
};
use super::paired::Pair;
use libm::{exp, lgamma, log, log1p};
use serde::{Deserialize, Serialize};

/// More cases than this are not planned for.
pub const MOST_CASES: usize = 10_000_000;
/// With more differing cases than this, the normal approximation is as good as the exact sum.
const EXACT_DIFFERING: f64 = 500.0;

/// How sure a plan is to be.
///
/// ```
/// use patter_core::stats::plan::{Goal, cases_for_rate, cases_for_shift, detectable_rate};
/// let goal = Goal { alpha: 0.05, power: 0.8 };
/// // A difference of half a standard deviation takes 34 cases (Cohen 1988).
/// assert_eq!(cases_for_shift(0.5, 1.0, goal), Some(34));
/// // Three points, where one case in ten comes out differently.
/// let cases = cases_for_rate(0.03, 0.1, goal).unwrap();
/// assert!((860..930).contains(&cases), "{cases}");
/// assert!((detectable_rate(cases, 0.1, goal).unwrap() - 0.03).abs() < 0.001);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// How probable a false alarm may be, two-sided.
    pub alpha: f64,
    /// How probable it shall be that a true difference is seen.
    pub power: f64,
}

/// How much differences vary, in variances: from case to case, and from repeat to repeat of a case.
///
/// ```
/// use patter_core::stats::plan::Spread;
/// let spread = Spread { between: 1.0, within: Some(3.0) };
/// assert_eq!(spread.deviation(1.0), 2.0);
/// assert_eq!(spread.correlation(), Some(0.25));
/// assert!(spread.deviation(1_000.0) > 1.0); // no number of repeats stands for more cases
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Between cases; all of the variance where no case has repeats.
    pub between: f64,
    /// Between repeats of a case, where there are repeats.
    pub within: Option<f64>,
}

impl Spread {
    /// Estimates the spread of the differences of pairs, which are sorted by case, by an analysis of variance. It is
    /// `None` with fewer than two cases.
    pub fn of(pairs: &[Pair], difference: impl Fn(&Pair) -> f64) -> Option<Self> {
        let groups: Vec<Vec<f64>> = pairs
            .chunk_by(|one, other| one.case == other.case)
            .map(|case| case.iter().map(&difference).collect())
            .collect();
        let (cases, total) = (groups.len() as f64, pairs.len() as f64);
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
        let inside = |group: &Vec<f64>| {
            let mean = mean(group);
            group.iter().map(|value| square(value - mean)).sum::<f64>()
        };
        let within = groups.iter().map(inside).sum::<f64>() / (total - cases);
        // What stands for the number of repeats where cases have different numbers of them.
        let repeats =
            (total - groups.iter().map(|group| square(group.len() as f64)).sum::<f64>() / total) / (cases - 1.0);
        Some(Self { between: ((among - within) / repeats).max(0.0), within: Some(within) })
    }

    /// Returns the standard deviation of the mean difference of a case with so many repeats.
    pub fn deviation(&self, repeats: f64) -> f64 {
        (self.between + self.within.unwrap_or(0.0) / repeats.max(1.0)).sqrt()
    }

    /// Returns how alike repeats of a case are, from 0 to 1: the correlation within cases, where there are repeats.
    /// Near 1 more repeats are of little use, and more cases are needed.
    pub fn correlation(&self) -> Option<f64> {
        let total = self.between + self.within?;
        (total > 0.0).then(|| self.between / total)
    }
}

/// Returns the probability that a two-sided paired t-test sees a mean difference; the sign-flip test has the same in
/// the limit (Hoeffding 1952).
pub fn power_of_shift(cases: usize, shift: f64, deviation: f64, alpha: f64) -> f64 {
    if cases < 2 || deviation <= 0.0 || !shift.is_finite() {
        return 0.0;
    }
    let freedom = (cases - 1) as f64;
    let critical = student_quantile(1.0 - alpha / 2.0, freedom);
    let shift = shift.abs() / deviation * (cases as f64).sqrt();
    noncentral_student_above(critical, freedom, shift) + noncentral_student_above(critical, freedom, -shift)
}

/// Returns how many cases show a mean difference, if case differences have such a standard deviation. It is `None`
/// where there is no difference to show, no spread, or no number of cases that is worth planning.
pub fn cases_for_shift(shift: f64, deviation: f64, goal: Goal) -> Option<usize> {
    let possible = shift != 0.0 && deviation > 0.0;
    possible.then(|| fewest(|cases| power_of_shift(cases, shift, deviation, goal.alpha) >= goal.power)).flatten()
}

/// Returns the smallest mean difference that so many cases show.
pub fn detectable_shift(cases: usize, deviation: f64, goal: Goal) -> Option<f64> {
    let lacks = |shift: f64| power_of_shift(cases, shift, deviation, goal.alpha) - goal.power;
    let far = deviation * 1e4;
    (cases >= 2 && deviation > 0.0 && lacks(far) >= 0.0).then(|| smallest(far, lacks))
}

/// Returns the probability that the exact test of McNemar sees a difference of pass rates, if so large a share of the
/// cases comes out differently. The share is at least the difference.
///
/// It is the exact sum over all numbers of differing cases; with many of them the normal approximation (Connor 1987)
/// with correction for continuity.
pub fn power_of_rate(cases: usize, difference: f64, discordance: f64, alpha: f64) -> f64 {
    let difference = difference.abs().min(1.0);
    let discordance = discordance.clamp(difference, 1.0);
    if cases == 0 || discordance <= 0.0 {
        return 0.0;
    }
    let n = cases as f64;
    if n * discordance > EXACT_DIFFERING {
        let z = normal_quantile(1.0 - alpha / 2.0);
        let spread = (discordance - difference * difference).sqrt();
        return normal((n.sqrt() * difference - 1.0 / n.sqrt() - z * discordance.sqrt()) / spread.max(1e-12));
    }
    let win = (0.5 + difference / discordance / 2.0).min(1.0);
    let reach = 7.0 * (n * discordance).sqrt() + 7.0;
    let (first, last) = ((n * discordance - reach).max(0.0) as usize, ((n * discordance + reach) as usize).min(cases));
    let mut least = first / 2;
    (first..=last)
        .map(|differing| {
            // As the number of differing cases rises by one, that of wins that it takes rises by one or not at all.
            while least <= differing && 2.0 * binomial_at_least(least, differing, 0.5) > alpha {
                least += 1;
            }
            let seen = binomial_at_least(least, differing, win) + binomial_at_least(least, differing, 1.0 - win);
            chance(differing, cases, discordance) * seen
        })
        .sum()
}

/// Returns how many cases show a difference of pass rates, if so large a share of cases comes out differently.
pub fn cases_for_rate(difference: f64, discordance: f64, goal: Goal) -> Option<usize> {
    let possible = difference != 0.0 && difference.abs() <= 1.0;
    possible.then(|| fewest(|cases| power_of_rate(cases, difference, discordance, goal.alpha) >= goal.power)).flatten()
}

/// Returns the smallest difference of pass rates that so many cases show, where they show any. A difference larger than
/// the share of differing cases takes that share along.
pub fn detectable_rate(cases: usize, discordance: f64, goal: Goal) -> Option<f64> {
    let lacks = |difference: f64| power_of_rate(cases, difference, discordance, goal.alpha) - goal.power;
    (lacks(1.0) >= 0.0).then(|| smallest(1.0, lacks))
}

/// Returns the smallest number of cases that is enough, if more are enough too.
fn fewest(enough: impl Fn(usize) -> bool) -> Option<usize> {
    let mut high = 2;
    while !enough(high) {
        high *= 2;
        if high > MOST_CASES {
            return None;
        }
    }
    let mut low = high / 2;
    while low + 1 < high {
        let middle = low.midpoint(high);
        if enough(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

/// Returns the smallest size that is enough, below a value that is.
fn smallest(far: f64, lacks: impl Fn(f64) -> f64) -> f64 {
    // Differences of all sizes are equally well told apart on a logarithmic scale.
    exp(root(log(far * 1e-9), log(far), |size| lacks(exp(size))))
}

/// Returns the probability of exactly `k` successes in `n` trials.
fn chance(k: usize, n: usize, p: f64) -> f64 {
    if p >= 1.0 {
        return if k == n { 1.0 } else { 0.0 };
    }
    let (k, n) = (k as f64, n as f64);
    let ways = lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0);
    exp(ways + k * log(p) + (n - k) * log1p(-p))
}
