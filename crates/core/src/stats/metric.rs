//! Metrics, and the phrases that describe them.

use serde::{Deserialize, Serialize};

/// A quantity measured in each run.
///
/// ```
/// use patter_core::stats::{Direction, MetricKind, Metric};
/// let calls = Metric::new("tool calls", MetricKind::Difference, Direction::Less)
///     .phrases("makes more tool calls", "makes fewer tool calls")
///     .unit("calls")
///     .margin(0.5);
/// assert_eq!(calls.better, Direction::Less);
/// assert_eq!(Metric::pass_rate().margin, 0.05);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// The name.
    pub name: String,
    /// The kind of its values.
    pub kind: MetricKind,
    /// Which direction is better.
    pub better: Direction,
    /// The phrase for an arm with a higher value, such as "is slower".
    pub more: String,
    /// The phrase for an arm with a lower value, such as "is faster".
    pub less: String,
    /// The unit, such as "ms".
    pub unit: String,
    /// The smallest difference that matters: relative (0.1 is 10%) if ratios are compared, absolute otherwise. Smaller
    /// differences are negligible, and plans aim to detect this one.
    pub margin: f64,
}

/// The kind of a metric's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricKind {
    /// 1 if a case passed, 0 if not.
    Pass,
    /// Numbers compared by their ratio, or by their difference if some are not positive.
    Ratio,
    /// Numbers compared by their difference.
    Difference,
}

/// The direction in which a metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Higher values are better.
    More,
    /// Lower values are better.
    Less,
}

impl Metric {
    /// Returns the share of passed cases, with a margin of five points.
    pub fn pass_rate() -> Self {
        Self::new("pass rate", MetricKind::Pass, Direction::More)
            .phrases("is more correct", "is less correct")
            .margin(0.05)
    }

    /// Returns the duration of runs in milliseconds.
    pub fn latency() -> Self {
        Self::new("latency", MetricKind::Ratio, Direction::Less).phrases("is slower", "is faster").unit("ms")
    }

    /// Returns the number of tokens that runs use.
    pub fn tokens() -> Self {
        Self::new("tokens", MetricKind::Ratio, Direction::Less)
            .phrases("uses more tokens", "uses fewer tokens")
            .unit("tokens")
    }

    /// Returns the cost of runs.
    pub fn cost() -> Self {
        Self::new("cost", MetricKind::Ratio, Direction::Less).phrases("costs more", "costs less")
    }

    /// Returns the number of model calls.
    pub fn turns() -> Self {
        Self::new("turns", MetricKind::Ratio, Direction::Less)
            .phrases("takes more turns", "takes fewer turns")
            .unit("turns")
    }

    /// Creates a metric with a margin of 10%, or 0.1.
    pub fn new(name: &str, kind: MetricKind, better: Direction) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            better,
            more: format!("is higher in {name}"),
            less: format!("is lower in {name}"),
            unit: String::new(),
            margin: 0.1,
        }
    }

    /// Sets the phrases for an arm with a higher and a lower value.
    #[must_use]
    pub fn phrases(mut self, more: &str, less: &str) -> Self {
        more.clone_into(&mut self.more);
        less.clone_into(&mut self.less);
        self
    }

    /// Sets the unit.
    #[must_use]
    pub fn unit(mut self, unit: &str) -> Self {
        unit.clone_into(&mut self.unit);
        self
    }

    /// Sets the smallest difference that matters.
    #[must_use]
    pub const fn margin(mut self, margin: f64) -> Self {
        self.margin = margin;
        self
    }
}

impl MetricKind {
    /// Returns the effect that means no difference.
    pub(super) const fn null_effect(self) -> f64 {
        match self {
            MetricKind::Pass | MetricKind::Difference => 0.0,
            MetricKind::Ratio => 1.0,
        }
    }

    /// Converts an effect to the number to display: points, percent, or the difference itself.
    pub(super) const fn display_value(self, effect: f64) -> f64 {
        match self {
            MetricKind::Pass => effect * 100.0,
            MetricKind::Ratio => (effect - 1.0) * 100.0,
            MetricKind::Difference => effect,
        }
    }
}
