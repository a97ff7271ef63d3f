//! What is expected of an arm: `pass>=0.95`.

use super::Trial;
use super::summary::{Summary, summary};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Something that must be true of all runs of an arm together.
///
/// ```
/// use patter::experiment::{Gate, Trial};
/// let gate: Gate = "pass >= 95%".parse().unwrap();
/// assert_eq!(gate.to_string(), "pass>=0.95");
/// assert!(!gate.judge(&[Trial { passed: false, ..Trial::default() }]).passed);
/// assert_eq!("speed>=1".parse::<Gate>().unwrap_err().to_string(), "there is no metric `speed`");
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gate {
    metric: GateMetric,
    bound: Bound,
    limit: f64,
}

/// What a gate looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GateMetric {
    Pass,
    LatencyP50,
    LatencyP95,
    Cost,
    TotalCost,
    Tokens,
    Turns,
    ToolCalls,
}

/// Which side of the limit is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    AtLeast,
    AtMost,
}

/// What came of a gate.
///
/// ```
/// use patter::experiment::GateResult;
/// let json = r#"{"gate": "pass>=0.95", "passed": true, "found": 1.0, "why": "pass is 1"}"#;
/// assert!(serde_json::from_str::<GateResult>(json).unwrap().passed);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateResult {
    /// What was expected.
    pub gate: String,
    /// Whether it is so.
    pub passed: bool,
    /// What was found; nothing where it is not known.
    pub found: Option<f64>,
    /// What was found, in words.
    pub why: String,
}

/// Why a text is no gate.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GateError {
    /// It has no bound.
    #[error("`{0}` is no gate")]
    Form(String),
    /// There is no such metric.
    #[error("there is no metric `{0}`")]
    Metric(String),
    /// The limit is no number.
    #[error("`{0}` is no number")]
    Limit(String),
}

impl GateError {
    /// Returns what to do about it.
    pub fn hint(&self) -> String {
        match self {
            GateError::Form(_) | GateError::Limit(_) => "write it as in `pass>=0.95` or `latency_p95<=2000`".to_owned(),
            GateError::Metric(_) => {
                let names: Vec<_> = GateMetric::ALL.iter().map(|metric| metric.name()).collect();
                format!("there are {}", names.join(", "))
            }
        }
    }
}

impl Gate {
    /// The gate where none is given: everything passes.
    pub const ALL_PASS: Self = Self { metric: GateMetric::Pass, bound: Bound::AtLeast, limit: 1.0 };

    /// Judges the runs of an arm. What is not known is not as expected.
    pub fn judge(&self, trials: &[Trial]) -> GateResult {
        let found = self.metric.of(&summary(trials));
        let passed = found.is_some_and(|found| match self.bound {
            Bound::AtLeast => found >= self.limit,
            Bound::AtMost => found <= self.limit,
        });
        let name = self.metric.name();
        let why = found.map_or_else(|| format!("{name} is not known"), |found| format!("{name} is {}", rounded(found)));
        GateResult { gate: self.to_string(), passed, found, why }
    }
}

impl GateMetric {
    const ALL: [Self; 8] = [
        Self::Pass,
        Self::LatencyP50,
        Self::LatencyP95,
        Self::Cost,
        Self::TotalCost,
        Self::Tokens,
        Self::Turns,
        Self::ToolCalls,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::LatencyP50 => "latency_p50",
            Self::LatencyP95 => "latency_p95",
            Self::Cost => "cost",
            Self::TotalCost => "total_cost",
            Self::Tokens => "tokens",
            Self::Turns => "turns",
            Self::ToolCalls => "tool_calls",
        }
    }

    fn of(self, summary: &Summary) -> Option<f64> {
        match self {
            Self::Pass => summary.pass_rate,
            Self::LatencyP50 => summary.latency_p50_ms.map(|ms| ms as f64),
            Self::LatencyP95 => summary.latency_p95_ms.map(|ms| ms as f64),
            Self::Cost => summary.cost.map(|cost| cost.dollars() / summary.runs.max(1) as f64),
            Self::TotalCost => summary.cost.map(patter_core::provider::price::Cost::dollars),
            Self::Tokens => summary.mean(summary.tokens),
            Self::Turns => summary.mean(summary.model_calls),
            Self::ToolCalls => summary.mean(summary.tool_calls),
        }
    }
}

impl FromStr for Gate {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Self, GateError> {
        let bounds = [(">=", Bound::AtLeast), ("<=", Bound::AtMost)];
        let split = bounds.into_iter().find_map(|(sign, bound)| Some((text.split_once(sign)?, bound)));
        let ((name, limit), bound) = split.ok_or_else(|| GateError::Form(text.trim().to_owned()))?;
        let (name, limit) = (name.trim(), limit.trim());
        let metric = GateMetric::ALL.into_iter().find(|metric| metric.name() == name);
        let metric = metric.ok_or_else(|| GateError::Metric(name.to_owned()))?;
        let (digits, unit) = match limit.strip_suffix('%') {
            Some(digits) => (digits.trim(), 100.0),
            None => (limit.trim_start_matches('$'), 1.0),
        };
        let number = digits.parse().ok().filter(|number: &f64| number.is_finite());
        let number = number.ok_or_else(|| GateError::Limit(limit.to_owned()))?;
        Ok(Self { metric, bound, limit: number / unit })
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.bound {
            Bound::AtLeast => ">=",
            Bound::AtMost => "<=",
        };
        write!(f, "{}{sign}{}", self.metric.name(), self.limit)
    }
}

/// Returns a number with as many places as say something.
fn rounded(number: f64) -> f64 {
    if number.abs() >= 100.0 { number.round() } else { (number * 10_000.0).round() / 10_000.0 }
}
