//! Looking while it runs, and stopping when it is clear.

use super::Interval;
use super::distribution::root;
use super::paired::LARGEST;
use libm::log;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How many bets are held on each side.
const BETS: usize = 20;

/// What is assumed of differences if the arms are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Assume {
    /// Differences are from −1 to 1, and their mean is 0: pass rates.
    Bounded,
    /// Differences are as often above 0 as below by the same amount: everything that is measured.
    Symmetric,
}

/// A test that may be looked at after every case, and a run that stops the moment it has found something, without more
/// false alarms than its level.
///
/// It is a game (Shafer 2021): one unit is bet on the next difference at fair odds, in 20 parts of `λ` = 0.025 to
/// 0.975, each of which becomes `Π(1 + λ·x)`. If the arms are alike nobody expects to win, and the capital ever reaches
/// `1/α` with a probability of at most `α` (Ville 1939). One game is on "the arm has more", one on "less", and p is
/// twice the inverse of the better one's highest capital. Bounded differences are their own `x` (Waudby-Smith and
/// Ramdas 2024). Others are divided by twice the standard deviation of those before them and cut off at ±1, so a wild
/// value does no harm.
///
/// What it costs: if the difference is just what was planned for, it takes one and a half times (bounded) to twice
/// (others) as many cases to be as likely to see it as a test at a fixed number. On average it stops at about that
/// number (bounded) or a quarter above it (others), and far earlier if the difference is larger.
///
/// ```
/// use patter_core::stats::{Assume, Sequential};
/// let mut watch = Sequential::new(Assume::Bounded);
/// while watch.p() > 0.05 {
///     watch.observe(1.0)?; // the arm passes what the baseline fails
/// }
/// assert_eq!(watch.len(), 8);
/// assert!(watch.interval(0.05).unwrap().low > 0.0);
/// # Ok::<(), patter_core::stats::ObserveError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sequential {
    assume: Assume,
    seen: Vec<Seen>,
    /// The capital of each bet.
    more: Vec<f64>,
    less: Vec<f64>,
    /// The highest that each game has had.
    most_on_more: f64,
    most_on_less: f64,
    /// Mean and sum of squares of the differences until now.
    mean: f64,
    squares: f64,
}

/// A difference, and what it is measured by.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Seen {
    difference: f64,
    scale: f64,
}

/// Why a difference cannot be observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ObserveError {
    /// It cannot be reckoned with.
    #[error("a difference must be a number below 1e90")]
    NotANumber,
    /// It is beyond what was assumed.
    #[error("a difference of pass rates must be from -1 to 1")]
    OutOfBounds,
}

impl Sequential {
    /// Starts without any case.
    pub fn new(assume: Assume) -> Self {
        let even = vec![1.0; BETS];
        Self {
            assume,
            seen: Vec::new(),
            more: even.clone(),
            less: even,
            most_on_more: 1.0,
            most_on_less: 1.0,
            mean: 0.0,
            squares: 0.0,
        }
    }

    /// Takes the difference of the next case, in an order that does not depend on what comes out.
    pub fn observe(&mut self, difference: f64) -> Result<(), ObserveError> {
        if difference.is_nan() || difference.abs() >= LARGEST {
            return Err(ObserveError::NotANumber);
        }
        if self.assume == Assume::Bounded && difference.abs() > 1.0 {
            return Err(ObserveError::OutOfBounds);
        }
        // The measure is fixed before the difference is known.
        let before = self.seen.len() as f64;
        let scale = if before < 2.0 { 0.0 } else { 2.0 * (self.squares / (before - 1.0)).sqrt() };
        let seen = Seen { difference, scale };
        let x = stake(self.assume, seen, 0.0);
        play(&mut self.more, x);
        play(&mut self.less, -x);
        let off = difference - self.mean;
        self.mean += off / (before + 1.0);
        self.squares += off * (difference - self.mean);
        self.seen.push(seen);
        self.most_on_more = self.most_on_more.max(capital(&self.more));
        self.most_on_less = self.most_on_less.max(capital(&self.less));
        Ok(())
    }

    /// Returns the two-sided p-value until now. It only falls, and may be compared with a level at any time. Those of
    /// several metrics may be adjusted by [`holm`](super::holm).
    pub fn p(&self) -> f64 {
        self.p_more().min(self.p_less())
    }

    /// Returns the part of the two-sided p-value that speaks for "more".
    pub fn p_more(&self) -> f64 {
        (2.0 / self.most_on_more).min(1.0)
    }

    /// Returns the part of the two-sided p-value that speaks for "less".
    pub fn p_less(&self) -> f64 {
        (2.0 / self.most_on_less).min(1.0)
    }

    /// Returns how many cases there are.
    pub const fn len(&self) -> usize {
        self.seen.len()
    }

    /// Returns whether there is no case yet.
    pub const fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// Returns the mean of all differences, or the centre they are symmetric about, as an interval: all values against
    /// which the same game would not have won. All such intervals, after each case, hold at once with a probability of
    /// `1 − alpha`. It is `None` while it has no bounds.
    pub fn interval(&self, alpha: f64) -> Option<Interval> {
        let goal = 2.0 / alpha;
        let (least, most) = match self.assume {
            Assume::Bounded => (-1.0, 1.0),
            Assume::Symmetric => {
                let differences = self.seen.iter().map(|seen| seen.difference);
                let (least, most) = (differences.clone().reduce(f64::min)?, differences.reduce(f64::max)?);
                let beyond = (most - least).max(1e-9 * most.abs().max(least.abs()));
                (least - beyond, most + beyond)
            }
        };
        // The game on "more than the centre" has won the less, the higher the centre is.
        let low = match self.capital_against(least, 1.0) < goal {
            true if self.assume == Assume::Symmetric => return None,
            true => least,
            false => root(least, most, |centre| log(goal) - log(self.capital_against(centre, 1.0))),
        };
        let high = match self.capital_against(most, -1.0) < goal {
            true if self.assume == Assume::Symmetric => return None,
            true => most,
            false => root(least, most, |centre| log(self.capital_against(centre, -1.0)) - log(goal)),
        };
        Some(Interval { low, high })
    }

    /// Returns the capital of the game on one side of a centre.
    fn capital_against(&self, centre: f64, side: f64) -> f64 {
        let mut parts = [1.0; BETS];
        for &seen in &self.seen {
            play(&mut parts, side * stake(self.assume, seen, centre));
        }
        capital(&parts)
    }
}

/// Plays one round. What is beyond the limits of numbers is given away, at both ends: who does that stays honest.
fn play(parts: &mut [f64], x: f64) {
    for (part, bet) in parts.iter_mut().zip(0u32..) {
        let bet = (f64::from(bet) + 0.5) / BETS as f64;
        let grown = (*part * (1.0 + bet * x)).min(1e300);
        *part = if grown > 1e-300 { grown } else { 0.0 };
    }
}

/// Returns what is bet on: from −1 to 1, on average 0 if differences are centred as said, and falling as the centre
/// rises.
fn stake(assume: Assume, seen: Seen, centre: f64) -> f64 {
    let off = seen.difference - centre;
    match assume {
        Assume::Bounded => off / (1.0 + centre.abs()),
        Assume::Symmetric if off == 0.0 => 0.0,
        Assume::Symmetric if seen.scale == 0.0 => off.signum(),
        Assume::Symmetric => (off / seen.scale).clamp(-1.0, 1.0),
    }
}

/// Returns what the parts have on average.
fn capital(parts: &[f64]) -> f64 {
    parts.iter().map(|part| part / parts.len() as f64).sum()
}
