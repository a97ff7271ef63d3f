//! Paired pass rates of two arms, with one run per case.

use super::Interval;
use super::distribution::{binomial_at_least, normal_quantile, root};
use serde::{Deserialize, Serialize};

/// The outcomes of cases with one run per arm.
///
/// ```
/// use patter_core::stats::PairedOutcomes;
/// // Airway hyper-responsiveness of 21 children before and after a transplantation (Bentur et al. 2009).
/// let children = PairedOutcomes { cases: 21, only_baseline: 7, only_arm: 1 };
/// assert!((children.p() - 0.0703).abs() < 1e-4);
/// assert!((children.mid_p() - 0.0391).abs() < 1e-4);
/// assert_eq!(children.difference(), -6.0 / 21.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairedOutcomes {
    /// The number of cases.
    pub cases: usize,
    /// The number of cases that passed only under the baseline.
    pub only_baseline: usize,
    /// The number of cases that passed only under the other arm.
    pub only_arm: usize,
}

impl PairedOutcomes {
    /// Returns the two-sided p-value of the exact McNemar test (1947).
    ///
    /// Cases with equal outcomes carry no information; if the arms are alike, each of the others is a fair coin toss. The
    /// probability of a false positive never exceeds the level, however few cases there are. Comparisons use it for that
    /// reason, although [`mid_p`](Self::mid_p) has slightly more power.
    pub fn p(&self) -> f64 {
        (2.0 * binomial_at_least(self.larger_side(), self.discordant(), 0.5)).min(1.0)
    }

    /// Returns the mid-p-value, which counts only half of the probability of the observed outcome (Fagerland, Lydersen and
    /// Laake 2013). Its error rate is almost always within the level, and never far above it.
    pub fn mid_p(&self) -> f64 {
        let larger = self.larger_side();
        let discordant = self.discordant();
        if 2 * larger == discordant {
            return 1.0
                - 0.5 * (binomial_at_least(larger, discordant, 0.5) - binomial_at_least(larger + 1, discordant, 0.5));
        }
        binomial_at_least(larger, discordant, 0.5) + binomial_at_least(larger + 1, discordant, 0.5)
    }

    /// Returns the difference of the pass rates, arm minus baseline.
    pub fn difference(&self) -> f64 {
        (self.only_arm as f64 - self.only_baseline as f64) / self.cases as f64
    }

    /// Returns Tango's score interval (1998) for the difference. It keeps its coverage with few cases, and also if no case
    /// differs, where the Wald interval shrinks to a point.
    pub fn interval(&self, alpha: f64) -> Option<Interval> {
        if self.cases == 0 {
            return None;
        }
        let z = normal_quantile(1.0 - alpha / 2.0);
        let difference = self.difference();
        let low = if difference <= -1.0 { -1.0 } else { root(-1.0, difference, |delta| z - self.score(delta)) };
        let high = if difference >= 1.0 { 1.0 } else { root(difference, 1.0, |delta| -z - self.score(delta)) };
        Some(Interval { low, high })
    }

    /// Returns the number of cases with different outcomes.
    pub const fn discordant(&self) -> usize {
        self.only_arm + self.only_baseline
    }

    fn larger_side(&self) -> usize {
        self.only_arm.max(self.only_baseline)
    }

    /// Returns how many standard errors the difference is above `delta`, with the standard error under `delta`.
    fn score(&self, delta: f64) -> f64 {
        let n = self.cases as f64;
        let gain = self.only_arm as f64;
        let loss = self.only_baseline as f64;
        let linear = -gain - loss + (2.0 * n - gain + loss) * delta;
        let constant = -loss * delta * (1.0 - delta);
        let only_baseline = ((linear * linear - 8.0 * n * constant).max(0.0).sqrt() - linear) / (4.0 * n);
        let above = gain - loss - n * delta;
        let variance = n * (2.0 * only_baseline + delta * (1.0 - delta));
        if variance > 0.0 { above / variance.sqrt() } else { above.signum() * f64::INFINITY }
    }
}
