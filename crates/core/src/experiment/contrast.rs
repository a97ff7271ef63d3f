//! Comparing arms: translates trials into the measurements that the statistics compare.

use super::report::Report;
use super::trial::Trial;
use crate::provider::price::Cost;
use crate::stats::{
    self, CompareError, CompareOptions, Comparison, Conclusion, Direction, Experiment, Metric, MetricKind, Relevance,
    Stopping, compare,
};
use std::collections::HashMap;

/// Compares the first arm with each other arm: pass rate, latency, tokens, cost, turns and tool calls.
///
/// ```
/// use patter_core::experiment::{Trial, compare_arms};
/// use patter_core::stats::CompareOptions;
/// let run = |arm: &str, case: u64| Trial {
///     arm: arm.to_owned(),
///     case: case.to_string(),
///     passed: arm == "b" || case % 2 == 0,
///     latency_ms: 100 + case,
///     ..Trial::default()
/// };
/// let trials: Vec<_> = (0..20).flat_map(|case| [run("a", case), run("b", case)]).collect();
/// let comparison = compare_arms(&["a".to_owned(), "b".to_owned()], &trials, &CompareOptions::default()).unwrap();
/// assert!(comparison.summaries[0].text.starts_with("`b` is more correct by "));
/// ```
pub fn compare_arms(arms: &[String], trials: &[Trial], options: &CompareOptions) -> Result<Comparison, CompareError> {
    let numbers = number_cases(arms, trials, options.stopping);
    // The pass rate is always compared; other metrics only if some trial has a value above zero.
    let has_any = |value: &Value| trials.iter().any(|trial| value(trial).is_some_and(|value| value > 0.0));
    let compared = metrics(options.stopping).into_iter().enumerate();
    let compared = compared.filter(|(index, (_, value))| *index == 0 || has_any(value));
    let (metrics, values): (Vec<_>, Vec<_>) = compared.map(|(_, metric)| metric).unzip();
    let measured = trials.iter().filter_map(|trial| {
        let arm = arms.iter().position(|arm| *arm == trial.arm)?;
        let case = *numbers.get(trial.case.as_str())?;
        // The measurements of a failed run are unknown.
        let value = |value: &Value| if trial.failure.is_some() { None } else { value(trial) };
        Some(stats::TrialValues {
            arm,
            case,
            repeat: trial.repeat as usize,
            values: values.iter().map(value).collect(),
        })
    });
    let experiment = Experiment { arms: arms.to_vec(), metrics, trials: measured.collect() };
    compare(&experiment, options)
}

/// Returns whether the experiment can stop: each arm is known to be more or less correct than the baseline, or not to
/// differ meaningfully.
pub fn is_conclusive(comparison: &Comparison) -> bool {
    let mut passes = comparison.contrasts.iter().filter(|contrast| contrast.kind == MetricKind::Pass).peekable();
    passes.peek().is_some()
        && passes.all(|contrast| {
            matches!(contrast.verdict.conclusion, Conclusion::Better | Conclusion::Worse)
                || contrast.verdict.relevance == Relevance::Negligible
        })
}

/// Compares a report with an earlier one on the cases they share. Both have one arm.
pub fn compare_reports(before: &Report, after: &Report, options: &CompareOptions) -> Result<Comparison, CompareError> {
    let arms = ["before".to_owned(), "now".to_owned()];
    let has = |report: &Report, trial: &Trial| report.cases.iter().any(|case| case.id == trial.case);
    let renamed = |trial: &Trial, arm: &str| Trial { arm: arm.to_owned(), ..trial.clone().without_details() };
    let first = |report: &Report| report.arms.first().map(|arm| arm.name.clone()).unwrap_or_default();
    let earlier = first(before);
    let later = first(after);
    let old = before.arm_trials(&earlier).filter(|trial| has(after, trial)).map(|trial| renamed(trial, "before"));
    let new = after.arm_trials(&later).filter(|trial| has(before, trial)).map(|trial| renamed(trial, "now"));
    compare_arms(&arms, &old.chain(new).collect::<Vec<_>>(), options)
}

/// Reads a measurement of a trial.
type Value = fn(&Trial) -> Option<f64>;

fn metrics(stopping: Stopping) -> [(Metric, Value); 6] {
    let calls = Metric::new("tool calls", MetricKind::Difference, Direction::Less)
        .phrases("makes more tool calls", "makes fewer tool calls")
        .unit("calls")
        .margin(0.5);
    // With interim looks, values that may be 0 are compared by differences from the start.
    let steady = |metric: Metric| match stopping {
        Stopping::Anytime => Metric { kind: MetricKind::Difference, ..metric },
        Stopping::Fixed => metric,
    };
    [
        (Metric::pass_rate(), |trial| Some(f64::from(u8::from(trial.passed)))),
        (steady(Metric::latency()), |trial| Some(trial.latency_ms as f64)),
        (steady(Metric::tokens()), |trial| Some(trial.tokens() as f64)),
        (steady(Metric::cost()), |trial| trial.cost.map(Cost::dollars)),
        (steady(Metric::turns()), |trial| Some(f64::from(trial.model_calls))),
        (calls, |trial| Some(trial.tools.len() as f64)),
    ]
}

/// Numbers cases in the order of their first trials. With interim looks, only complete cases count.
fn number_cases<'t>(arms: &[String], trials: &'t [Trial], stopping: Stopping) -> HashMap<&'t str, usize> {
    let mut cases: HashMap<&str, (u64, usize)> = HashMap::new();
    for trial in trials {
        let case = cases.entry(&trial.case).or_insert((trial.order, 0));
        *case = (case.0.min(trial.order), case.1 + 1);
    }
    let repeats = trials.iter().map(|trial| trial.repeat as usize + 1).max().unwrap_or(1);
    let is_complete = |count: usize| stopping == Stopping::Fixed || count == repeats * arms.len();
    let mut order: Vec<_> = cases.into_iter().filter(|(_, (_, count))| is_complete(*count)).collect();
    order.sort_unstable_by_key(|(case, (first, _))| (*first, *case));
    order.into_iter().enumerate().map(|(number, (case, _))| (case, number)).collect()
}
