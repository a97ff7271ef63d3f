//! What is measured, and how it is spoken of.

use super::Pair;
use serde::{Deserialize, Serialize};

/// Something that is measured in each run.
///
/// ```
/// use patter_core::stats::{Better, Kind, Metric};
/// let calls = Metric::new("tool calls", Kind::Difference, Better::Less)
///     .words("makes more tool calls", "makes fewer tool calls")
///     .unit("calls")
///     .margin(0.5);
/// assert_eq!(calls.better, Better::Less);
/// assert_eq!(Metric::pass_rate().margin, 0.05);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Its name.
    pub name: String,
    /// What kind of values it has.
    pub kind: Kind,
    /// Which direction is better.
    pub better: Better,
    /// What can be said of an arm that has more of it, such as "is slower".
    pub more: String,
    /// What can be said of an arm that has less of it, such as "is faster".
    pub less: String,
    /// What it is measured in, such as "ms".
    pub unit: String,
    /// The smallest difference that matters: as a share (0.1 is 10 %) where ratios are compared, as it is otherwise.
    /// Smaller differences count as none, and plans are made to see this one.
    pub margin: f64,
}

/// What kind of values a metric has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// 1 where a case is passed, 0 where it is not.
    Pass,
    /// Numbers, compared by how many times larger they are. Where some are not above 0, they are compared as
    /// differences.
    Ratio,
    /// Numbers, compared by their difference.
    Difference,
}

/// Which direction is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More.
    More,
    /// Less.
    Less,
}

impl Metric {
    /// Returns the share of cases that are passed; five points matter.
    pub fn pass_rate() -> Self {
        Self::new("pass rate", Kind::Pass, Better::More).words("is more correct", "is less correct").margin(0.05)
    }

    /// Returns how long runs take, in milliseconds.
    pub fn latency() -> Self {
        Self::new("latency", Kind::Ratio, Better::Less).words("is slower", "is faster").unit("ms")
    }

    /// Returns how many tokens runs take.
    pub fn tokens() -> Self {
        Self::new("tokens", Kind::Ratio, Better::Less).words("uses more tokens", "uses fewer tokens").unit("tokens")
    }

    /// Returns what runs cost.
    pub fn cost() -> Self {
        Self::new("cost", Kind::Ratio, Better::Less).words("costs more", "costs less")
    }

    /// Returns how often the model is called.
    pub fn turns() -> Self {
        Self::new("turns", Kind::Ratio, Better::Less).words("takes more turns", "takes fewer turns").unit("turns")
    }

    /// Returns a metric of which a tenth matters.
    pub fn new(name: &str, kind: Kind, better: Better) -> Self {
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

    /// Says what can be said of an arm that has more of it, and of one that has less.
    #[must_use]
    pub fn words(mut self, more: &str, less: &str) -> Self {
        (self.more, self.less) = (more.to_owned(), less.to_owned());
        self
    }

    /// Says what it is measured in.
    #[must_use]
    pub fn unit(mut self, unit: &str) -> Self {
        unit.clone_into(&mut self.unit);
        self
    }

    /// Says the smallest difference that matters.
    #[must_use]
    pub const fn margin(mut self, margin: f64) -> Self {
        self.margin = margin;
        self
    }
}

impl Kind {
    /// Returns how much more the arm has in a pair: as a difference, or as the logarithm of a ratio.
    pub fn difference(self, pair: &Pair) -> f64 {
        match self {
            Kind::Pass | Kind::Difference => pair.arm - pair.baseline,
            Kind::Ratio => libm::log(pair.arm) - libm::log(pair.baseline),
        }
    }

    /// Returns the effect that is none.
    pub(super) const fn no_effect(self) -> f64 {
        match self {
            Kind::Pass | Kind::Difference => 0.0,
            Kind::Ratio => 1.0,
        }
    }

    /// Returns an effect as it is written: points, percent more, or as it is.
    pub(super) const fn shown(self, effect: f64) -> f64 {
        match self {
            Kind::Pass => effect * 100.0,
            Kind::Ratio => (effect - 1.0) * 100.0,
            Kind::Difference => effect,
        }
    }
}
