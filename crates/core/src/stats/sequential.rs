//! Sequential tests, which may be monitored and stopped at any time.

use super::Interval;
use super::distribution::root;
use super::paired::MAX_VALUE;
use libm::log;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The number of bets on each side.
const BETS: usize = 20;

/// The assumption about differences if the arms are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Assumption {
    /// Differences are from −1 to 1 with a mean of 0: pass rates.
    Bounded,
    /// Differences are symmetric about 0: measured values.
    Symmetric,
}

/// A test that may be evaluated after every case, so that an experiment can stop as soon as it is significant, without
/// exceeding its level.
///
/// It is a betting game (Shafer 2021): one unit is bet on the next difference at fair odds, split into 20 bets with `λ` from
/// 0.025 to 0.975, each of which grows to `Π(1 + λ·x)`. If the arms are alike, the expected gain is 0, and the capital
/// ever reaches `1/α` with a probability of at most `α` (Ville 1939). One game bets on "more", one on "less", and p is
/// twice the inverse of the higher maximum capital. Bounded differences are used as `x` directly (Waudby-Smith and Ramdas
/// 2024). Others are divided by twice the standard deviation of the previous ones and clipped at ±1, which limits the
/// influence of outliers.
///
/// The price: to detect exactly the planned difference with the same power, it takes 1.5 times (bounded) to twice (others)
/// as many cases as a test with a fixed number. On average it stops at about that number (bounded) or a quarter above it
/// (others), and much earlier if the difference is larger.
///
/// ```
/// use patter_core::stats::{Assumption, Sequential};
/// let mut test = Sequential::new(Assumption::Bounded);
/// while test.p() > 0.05 {
///     test.observe(1.0)?; // the arm passes what the baseline fails
/// }
/// assert_eq!(test.len(), 8);
/// assert!(test.interval(0.05).unwrap().low > 0.0);
/// # Ok::<(), patter_core::stats::ObserveError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sequential {
    assumption: Assumption,
    differences: Vec<ScaledDifference>,
    /// The capital of each bet.
    more: Vec<f64>,
    less: Vec<f64>,
    /// The maximum capital of each game so far.
    max_on_more: f64,
    max_on_less: f64,
    /// The mean and the sum of squares of the differences so far.
    mean: f64,
    squares: f64,
}

/// A difference, and the scale it is measured by.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct ScaledDifference {
    difference: f64,
    scale: f64,
}

/// An invalid difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ObserveError {
    /// The difference is not finite, or too large.
    #[error("a difference must be a number below 1e90")]
    NotANumber,
    /// The difference is outside the assumed bounds.
    #[error("a difference of pass rates must be from -1 to 1")]
    OutOfBounds,
}

impl Sequential {
    /// Creates a test without cases.
    pub fn new(assumption: Assumption) -> Self {
        let initial = vec![1.0; BETS];
        Self {
            assumption,
            differences: Vec::new(),
            more: initial.clone(),
            less: initial,
            max_on_more: 1.0,
            max_on_less: 1.0,
            mean: 0.0,
            squares: 0.0,
        }
    }

    /// Observes the difference of the next case. The order of cases must not depend on their outcomes.
    pub fn observe(&mut self, difference: f64) -> Result<(), ObserveError> {
        if difference.is_nan() || difference.abs() >= MAX_VALUE {
            return Err(ObserveError::NotANumber);
        }
        if self.assumption == Assumption::Bounded && difference.abs() > 1.0 {
            return Err(ObserveError::OutOfBounds);
        }
        // The scale is fixed before the difference is known.
        let before = self.differences.len() as f64;
        let scale = if before < 2.0 { 0.0 } else { 2.0 * (self.squares / (before - 1.0)).sqrt() };
        let scaled = ScaledDifference { difference, scale };
        let x = stake(self.assumption, scaled, 0.0);
        play(&mut self.more, x);
        play(&mut self.less, -x);
        let off = difference - self.mean;
        self.mean += off / (before + 1.0);
        self.squares += off * (difference - self.mean);
        self.differences.push(scaled);
        self.max_on_more = self.max_on_more.max(capital(&self.more));
        self.max_on_less = self.max_on_less.max(capital(&self.less));
        Ok(())
    }

    /// Returns the two-sided p-value so far. It never increases, and may be compared with a level at any time. The values of
    /// several metrics may be adjusted by [`holm`](super::holm).
    pub fn p(&self) -> f64 {
        self.p_more().min(self.p_less())
    }

    /// Returns the part of the two-sided p-value for "more".
    pub fn p_more(&self) -> f64 {
        (2.0 / self.max_on_more).min(1.0)
    }

    /// Returns the part of the two-sided p-value for "less".
    pub fn p_less(&self) -> f64 {
        (2.0 / self.max_on_less).min(1.0)
    }

    /// Returns the number of cases.
    pub const fn len(&self) -> usize {
        self.differences.len()
    }

    /// Returns whether there are no cases yet.
    pub const fn is_empty(&self) -> bool {
        self.differences.is_empty()
    }

    /// Returns an interval for the mean of the differences, or for their centre of symmetry: all values against which the
    /// same game would not have won. The intervals after each case cover the true value simultaneously with a probability
    /// of `1 − alpha`. Returns `None` while the interval is unbounded.
    pub fn interval(&self, alpha: f64) -> Option<Interval> {
        let goal = 2.0 / alpha;
        let (min, max) = match self.assumption {
            Assumption::Bounded => (-1.0, 1.0),
            Assumption::Symmetric => {
                let differences = self.differences.iter().map(|scaled| scaled.difference);
                let min = differences.clone().reduce(f64::min)?;
                let max = differences.reduce(f64::max)?;
                let beyond = (max - min).max(1e-9 * max.abs().max(min.abs()));
                (min - beyond, max + beyond)
            }
        };
        // The capital of the game on "more than the centre" decreases as the centre rises.
        let low = match self.capital_against(min, 1.0) < goal {
            true if self.assumption == Assumption::Symmetric => return None,
            true => min,
            false => root(min, max, |centre| log(goal) - log(self.capital_against(centre, 1.0))),
        };
        let high = match self.capital_against(max, -1.0) < goal {
            true if self.assumption == Assumption::Symmetric => return None,
            true => max,
            false => root(min, max, |centre| log(self.capital_against(centre, -1.0)) - log(goal)),
        };
        Some(Interval { low, high })
    }

    /// Returns the capital of the game on one side of a centre.
    fn capital_against(&self, centre: f64, side: f64) -> f64 {
        let mut parts = [1.0; BETS];
        for &scaled in &self.differences {
            play(&mut parts, side * stake(self.assumption, scaled, centre));
        }
        capital(&parts)
    }
}

/// Plays one round. Clamping to finite numbers only loses capital, so the test stays valid.
fn play(parts: &mut [f64], x: f64) {
    for (part, bet) in parts.iter_mut().zip(0u32..) {
        let bet = (f64::from(bet) + 0.5) / BETS as f64;
        let next = (*part * (1.0 + bet * x)).min(1e300);
        *part = if next > 1e-300 { next } else { 0.0 };
    }
}

/// Returns the outcome that is bet on: from −1 to 1, with a mean of 0 if the centre is right, and decreasing in the centre.
fn stake(assumption: Assumption, scaled: ScaledDifference, centre: f64) -> f64 {
    let off = scaled.difference - centre;
    match assumption {
        Assumption::Bounded => off / (1.0 + centre.abs()),
        Assumption::Symmetric if off == 0.0 => 0.0,
        Assumption::Symmetric if scaled.scale == 0.0 => off.signum(),
        Assumption::Symmetric => (off / scaled.scale).clamp(-1.0, 1.0),
    }
}

/// Returns the average capital of the bets.
fn capital(parts: &[f64]) -> f64 {
    parts.iter().map(|part| part / parts.len() as f64).sum()
}
