//! Gates: thresholds that the trials of an arm must meet, such as `pass>=0.95`.

use super::summary::{ArmSummary, case_counts, mean_rate, summarize};
use super::trial::{Trial, TrialOutcome};
use crate::provider::price::Cost;
use crate::text::parse_duration;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A threshold that the trials of an arm must meet.
///
/// ```
/// use patter_core::experiment::{Gate, Trial};
/// let gate: Gate = "pass >= 95%".parse().unwrap();
/// assert_eq!(gate.to_string(), "pass>=0.95");
/// assert!(!gate.judge(&[Trial { passed: false, ..Trial::default() }]).passed);
/// assert_eq!("speed>=1".parse::<Gate>().unwrap_err().to_string(), "unknown metric `speed`");
/// let error = "pass>=95".parse::<Gate>().unwrap_err();
/// assert_eq!(error.to_string(), "`95` is not a pass rate, which is from 0 to 1");
/// assert_eq!(error.hint(), "write `95%`, or `0.95`");
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gate {
    metric: GateMetric,
    bound: Bound,
    limit: f64,
}

/// The metric of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateMetric {
    /// The pass rate.
    Pass,
    /// The median latency in milliseconds.
    LatencyP50,
    /// The 95th percentile of the latency in milliseconds.
    LatencyP95,
    /// The mean cost of a run in dollars.
    Cost,
    /// The cost of all runs in dollars.
    TotalCost,
    /// The mean number of tokens of a run.
    Tokens,
    /// The mean number of model calls of a run.
    Turns,
    /// The mean number of tool calls of a run.
    ToolCalls,
}

/// The side of the limit that passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    AtLeast,
    AtMost,
}

/// The result of a gate.
///
/// ```
/// use patter_core::experiment::GateResult;
/// let json = r#"{"gate": "pass>=0.95", "passed": true, "found": 1.0, "why": "pass is 1"}"#;
/// assert!(serde_json::from_str::<GateResult>(json).unwrap().passed);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateResult {
    /// The gate.
    pub gate: String,
    /// Whether the gate passed.
    pub passed: bool,
    /// Whether errors left it open if the gate passes. It has not passed then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undecided: bool,
    /// The value found, if known.
    pub found: Option<f64>,
    /// The value found, in words.
    pub why: String,
}

/// An error parsing a gate.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GateError {
    /// The bound is missing.
    #[error("`{0}` is not a gate")]
    Form(String),
    /// The metric does not exist.
    #[error("unknown metric `{0}`")]
    Metric(String),
    /// The limit is not a number.
    #[error("`{0}` is not a number")]
    Limit(String),
    /// The limit is not a possible value of the metric.
    #[error("`{limit}` is not {}", metric.expected())]
    Range {
        /// The metric.
        metric: GateMetric,
        /// The limit.
        limit: String,
    },
}

impl GateError {
    /// Returns a hint for fixing the error.
    pub fn hint(&self) -> String {
        match self {
            GateError::Form(_) | GateError::Limit(_) => {
                "write a metric, `>=` or `<=`, and a number, such as `pass>=0.95` or `latency_p95<=2000`".to_owned()
            }
            GateError::Range { metric: GateMetric::Pass, limit } => match limit.parse::<f64>() {
                Ok(share) if share > 1.0 && share < 2.0 => "the highest pass rate is `1`, or `100%`".to_owned(),
                Ok(percent) if (1.0..=100.0).contains(&percent) => {
                    format!("write `{limit}%`, or `{}`", percent / 100.0)
                }
                _ => "write a share, as in `pass>=95%` or `pass>=0.95`".to_owned(),
            },
            GateError::Range { metric: GateMetric::LatencyP50 | GateMetric::LatencyP95, .. } => {
                "write a time, as in `latency_p95<=2s`, or a number of milliseconds".to_owned()
            }
            GateError::Range { metric, .. } => format!("write a number, as in `{}<=10`", metric.name()),
            GateError::Metric(_) => {
                let names: Vec<_> = GateMetric::ALL.iter().map(|metric| metric.name()).collect();
                format!("available metrics: {}", names.join(", "))
            }
        }
    }
}

impl Gate {
    /// The default gate: all trials pass.
    pub const ALL_PASS: Self = Self { metric: GateMetric::Pass, bound: Bound::AtLeast, limit: 1.0 };

    /// Checks the trials of an arm. A gate on an unknown value does not pass.
    ///
    /// Trials that ended with an error neither passed nor failed. A gate on the pass rate is decided only if it would be the
    /// same however they had ended.
    pub fn judge(&self, trials: &[Trial]) -> GateResult {
        let summary = summarize(trials);
        let found = self.metric.value(&summary);
        let is_met = |found: Option<f64>| found.is_some_and(|found| self.allows(found));
        let (passed, undecided) = match self.metric {
            GateMetric::Pass if summary.errors > 0 => {
                let trials: Vec<_> = trials.iter().collect();
                let if_errors = |outcome| is_met(mean_rate(&case_counts(&trials, Some(outcome))));
                let ends = [TrialOutcome::Passed, TrialOutcome::NotPassed].map(if_errors);
                (ends == [true; 2], ends.contains(&true) && ends.contains(&false))
            }
            _ => (is_met(found), false),
        };
        let name = self.metric.name();
        let value = |found: f64| {
            // A rounded value must not seem to be on the other side of the limit.
            let rounded = self.metric.round(found);
            if self.allows(rounded) == self.allows(found) { rounded } else { found }
        };
        let show = |found: f64| self.metric.show(value(found));
        let mut why = found.map_or_else(|| format!("{name} is unknown"), |found| format!("{name} is {}", show(found)));
        if self.metric == GateMetric::Pass && summary.errors > 0 {
            why.push_str(&match summary.decided() {
                0 => ", because all runs ended with an error".to_owned(),
                _ => format!(" without the {} of {} runs that ended with an error", summary.errors, summary.runs),
            });
        }
        GateResult { gate: self.to_string(), passed, undecided, found, why }
    }

    fn allows(&self, found: f64) -> bool {
        match self.bound {
            Bound::AtLeast => found >= self.limit,
            Bound::AtMost => found <= self.limit,
        }
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

    /// Returns the name.
    pub const fn name(self) -> &'static str {
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

    /// Describes the possible limits.
    const fn expected(self) -> &'static str {
        match self {
            Self::Pass => "a pass rate, which is from 0 to 1",
            Self::LatencyP50 | Self::LatencyP95 => "a latency",
            Self::Cost | Self::TotalCost => "a cost",
            Self::Tokens | Self::Turns | Self::ToolCalls => "a number of these",
        }
    }

    /// Reads a limit in the unit of the metric.
    fn parse_limit(self, text: &str) -> Result<f64, GateError> {
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        let unreadable = || GateError::Limit(text.to_owned());
        let wrong = || GateError::Range { metric: self, limit: text.to_owned() };
        let limit = match self {
            // The parser rounds once, so that 81.3% is the same number as 0.813.
            Self::Pass => match text.strip_suffix('%') {
                Some(percent) => number(&format!("{}e-2", percent.trim())).ok_or_else(unreadable)?,
                None => number(text).ok_or_else(unreadable)?,
            },
            _ if text.ends_with('%') => return Err(wrong()),
            Self::LatencyP50 | Self::LatencyP95 => match number(text) {
                Some(ms) => ms,
                None => parse_duration(text).map(|time| time.as_secs_f64() * 1e3).ok_or_else(unreadable)?,
            },
            Self::Cost | Self::TotalCost => number(text.trim_start_matches('$')).ok_or_else(unreadable)?,
            Self::Tokens | Self::Turns | Self::ToolCalls => number(text).ok_or_else(unreadable)?,
        };
        let is_possible = limit >= 0.0 && !(self == Self::Pass && limit > 1.0);
        if is_possible { Ok(limit) } else { Err(wrong()) }
    }

    /// Rounds a value to the digits worth showing.
    fn round(self, number: f64) -> f64 {
        match self {
            // Costs of single runs are small, and formatted with the digits that matter.
            Self::Cost | Self::TotalCost => number,
            _ if number.abs() >= 100.0 => number.round(),
            _ => (number * 10_000.0).round() / 10_000.0,
        }
    }

    /// Formats a value with its unit.
    fn show(self, value: f64) -> String {
        match self {
            Self::LatencyP50 | Self::LatencyP95 if value >= 1000.0 => format!("{} s", value / 1000.0),
            Self::LatencyP50 | Self::LatencyP95 => format!("{value} ms"),
            Self::Cost | Self::TotalCost => {
                Cost::from_dollars(value).map_or_else(|| format!("${value}"), |cost| cost.to_string())
            }
            Self::Pass | Self::Tokens | Self::Turns | Self::ToolCalls => value.to_string(),
        }
    }

    fn value(self, summary: &ArmSummary) -> Option<f64> {
        match self {
            Self::Pass => summary.pass_rate,
            Self::LatencyP50 => summary.latency_p50_ms.map(|ms| ms as f64),
            Self::LatencyP95 => summary.latency_p95_ms.map(|ms| ms as f64),
            Self::Cost => summary.mean_cost(),
            Self::TotalCost => summary.cost.map(Cost::dollars),
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
        let name = name.trim();
        let limit = limit.trim();
        let metric = GateMetric::ALL.into_iter().find(|metric| metric.name() == name);
        let metric = metric.ok_or_else(|| GateError::Metric(name.to_owned()))?;
        Ok(Self { metric, bound, limit: metric.parse_limit(limit)? })
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.bound {
            Bound::AtLeast => ">=",
            Bound::AtMost => "<=",
        };
        // Without spaces, as gates are usually written.
        write!(f, "{}{sign}{}", self.metric.name(), self.metric.show(self.limit).replace(' ', ""))
    }
}
