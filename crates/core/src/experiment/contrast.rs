//! Comparing arms: translates trials into the measurements that the statistics compare.

use super::error::ArmErrors;
use super::trial::{Trial, TrialOutcome};
use crate::provider::price::Cost;
use crate::stats::{
    self, CompareError, CompareOptions, Comparison, Conclusion, Contrast, Direction, Experiment, Metric, MetricKind,
    Relevance, compare,
};
use std::collections::HashMap;

/// Compares the first arm with each other arm: pass rate, latency, tokens, cost, turns and tool calls.
///
/// With [`Stopping::Anytime`](stats::Stopping::Anytime), the trials must be those of [`leading_blocks`](super::leading_blocks).
/// An arm with too many errors is not compared; the verdicts say why.
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
pub fn compare_arms<'t>(
    arms: &[String],
    trials: impl IntoIterator<Item = &'t Trial>,
    options: &CompareOptions,
) -> Result<Comparison, CompareError> {
    let trials: Vec<&Trial> = trials.into_iter().collect();
    let errors: Vec<_> = arms.iter().map(|arm| ArmErrors::find(arm, trials.iter().copied())).collect();
    let undecidable = |arm: usize| errors.get(arm).and_then(Option::as_ref).filter(|errors| errors.is_undecidable());
    let indices: HashMap<&str, usize> = arms.iter().map(String::as_str).zip(0..).collect();
    let arm_index = |trial: &Trial| indices.get(trial.arm.as_str()).copied();
    let numbers = number_cases(&trials);
    // The pass rate is always compared; other metrics only if some trial has a value above zero.
    let has_any = |value: &Value| trials.iter().any(|trial| value(trial).is_some_and(|value| value > 0.0));
    let compared = metrics().into_iter().enumerate();
    let compared = compared.filter(|(index, (_, value))| *index == 0 || has_any(value));
    let (metrics, values): (Vec<_>, Vec<_>) = compared.map(|(_, metric)| metric).unzip();
    let measured = trials.iter().filter_map(|trial| {
        let arm = arm_index(trial).filter(|&arm| undecidable(arm).is_none())?;
        let case = *numbers.get(trial.case.as_str())?;
        Some(stats::TrialValues {
            arm,
            case,
            repeat: trial.repeat as usize,
            values: values.iter().map(|value| value(trial)).collect(),
        })
    });
    let experiment = Experiment { arms: arms.to_vec(), metrics, trials: measured.collect() };
    let mut comparison = compare(&experiment, options)?;
    for summary in &mut comparison.summaries {
        let own = indices.get(summary.arm.as_str()).and_then(|&arm| undecidable(arm));
        let Some(errors) = undecidable(0).or(own) else { continue };
        summary.text = format!("cannot compare `{}` with `{}`: {errors}", summary.arm, comparison.baseline);
        for contrast in comparison.contrasts.iter_mut().filter(|contrast| contrast.arm == summary.arm) {
            contrast.verdict.text = format!("{}: cannot decide: {errors}", contrast.metric.name);
            contrast.verdict.notes.clear();
        }
    }
    Ok(comparison)
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

/// Returns the contrasts in which an arm is worse, by an amount that may matter.
pub fn regressions(comparison: &Comparison) -> impl Iterator<Item = &Contrast> {
    comparison.contrasts.iter().filter(|contrast| {
        contrast.verdict.conclusion == Conclusion::Worse && contrast.verdict.relevance != Relevance::Negligible
    })
}

/// Reads a measurement of a trial; `None` if it is unknown.
type Value = fn(&Trial) -> Option<f64>;

fn metrics() -> [(Metric, Value); 6] {
    let calls = Metric::new("tool calls", MetricKind::Difference, Direction::Less)
        .phrases("makes more tool calls", "makes fewer tool calls")
        .unit("calls")
        .margin(0.5);
    [
        (Metric::pass_rate(), passed),
        (Metric::latency(), |trial| answered(trial).map(|trial| trial.latency_ms as f64)),
        (Metric::tokens(), |trial| answered(trial).map(|trial| trial.tokens() as f64)),
        (Metric::cost(), |trial| answered(trial).and_then(|trial| trial.cost.map(Cost::dollars))),
        (Metric::turns(), |trial| answered(trial).map(|trial| f64::from(trial.model_calls))),
        (calls, |trial| answered(trial).map(|trial| trial.tools.len() as f64)),
    ]
}

fn passed(trial: &Trial) -> Option<f64> {
    match trial.outcome() {
        TrialOutcome::Passed => Some(1.0),
        TrialOutcome::NotPassed => Some(0.0),
        TrialOutcome::Error => None,
    }
}

/// Returns the trial if there is an answer. What a run took until it failed is not what an answer takes.
fn answered(trial: &Trial) -> Option<&Trial> {
    trial.failure.is_none().then_some(trial)
}

/// Numbers cases in the order of their first trials.
fn number_cases<'t>(trials: &[&'t Trial]) -> HashMap<&'t str, usize> {
    let mut cases: HashMap<&str, u64> = HashMap::new();
    for trial in trials {
        let first = cases.entry(&trial.case).or_insert(trial.order);
        *first = trial.order.min(*first);
    }
    let mut order: Vec<_> = cases.into_iter().collect();
    order.sort_unstable_by_key(|(case, first)| (*first, *case));
    order.into_iter().zip(0..).map(|((case, _), number)| (case, number)).collect()
}
