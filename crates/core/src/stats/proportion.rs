//! Pass rates of the same cases under two arms, one run of each case.

use super::Interval;
use super::distribution::{binomial_at_least, normal_quantile, root};
use serde::{Deserialize, Serialize};

/// How cases with one run in each arm came out.
///
/// ```
/// use patter_core::stats::Outcomes;
/// // Airway hyper-responsiveness of 21 children before and after a transplantation (Bentur et al. 2009).
/// let children = Outcomes { cases: 21, only_baseline: 7, only_arm: 1 };
/// assert!((children.p() - 0.0703).abs() < 1e-4);
/// assert!((children.mid_p() - 0.0391).abs() < 1e-4);
/// assert_eq!(children.difference(), -6.0 / 21.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcomes {
    /// How many cases there are.
    pub cases: usize,
    /// How many of them passed under the baseline only.
    pub only_baseline: usize,
    /// How many of them passed under the other arm only.
    pub only_arm: usize,
}

impl Outcomes {
    /// Returns the two-sided p-value of the exact test of McNemar (1947).
    ///
    /// Cases that came out alike say nothing; if the arms are alike, each of the others falls on either side as a coin
    /// does. The probability of a false alarm is never above the level, however few cases there are. That is why
    /// comparisons use it, though [`mid_p`](Self::mid_p) finds a little more.
    pub fn p(&self) -> f64 {
        (2.0 * binomial_at_least(self.most(), self.discordant(), 0.5)).min(1.0)
    }

    /// Returns the mid-p-value, which counts only half of the probability of what was seen (Fagerland, Lydersen and
    /// Laake 2013). It is nearly always within the level, and never far above it.
    pub fn mid_p(&self) -> f64 {
        let (most, discordant) = (self.most(), self.discordant());
        if 2 * most == discordant {
            return 1.0
                - 0.5 * (binomial_at_least(most, discordant, 0.5) - binomial_at_least(most + 1, discordant, 0.5));
        }
        binomial_at_least(most, discordant, 0.5) + binomial_at_least(most + 1, discordant, 0.5)
    }

    /// Returns how much higher the pass rate of the arm is.
    pub fn difference(&self) -> f64 {
        (self.only_arm as f64 - self.only_baseline as f64) / self.cases as f64
    }

    /// Returns the score interval of Tango (1998) for the difference. It keeps its coverage with few cases and where no
    /// case came out differently, where the interval of Wald shrinks to a point.
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

    /// Returns how many cases came out differently.
    pub const fn discordant(&self) -> usize {
        self.only_arm + self.only_baseline
    }

    fn most(&self) -> usize {
        self.only_arm.max(self.only_baseline)
    }

    /// Returns how many standard errors the difference is above `delta`, the error being that if `delta` were true.
    fn score(&self, delta: f64) -> f64 {
        let (n, gain, loss) = (self.cases as f64, self.only_arm as f64, self.only_baseline as f64);
        let linear = -gain - loss + (2.0 * n - gain + loss) * delta;
        let constant = -loss * delta * (1.0 - delta);
        let only_baseline = ((linear * linear - 8.0 * n * constant).max(0.0).sqrt() - linear) / (4.0 * n);
        let above = gain - loss - n * delta;
        let variance = n * (2.0 * only_baseline + delta * (1.0 - delta));
        if variance > 0.0 { above / variance.sqrt() } else { above.signum() * f64::INFINITY }
    }
}
