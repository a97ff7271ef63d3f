//! Arms compared: the runs of an experiment as the statistics take them.

use super::report::{Report, Trial};
use patter_core::stats::Trial as Measured;
use patter_core::stats::{
    Better, CompareError, Comparison, Experiment, Finding, Kind, Matters, Metric, Options, Stopping, compare,
};
use std::collections::HashMap;

/// Compares arms by their runs, the first with each other: whether they pass, and what they take.
///
/// ```
/// use patter::experiment::{Trial, compare_arms};
/// use patter_core::stats::Options;
/// let run = |arm: &str, case: u64| Trial {
///     arm: arm.to_owned(),
///     case: case.to_string(),
///     passed: arm == "b" || case % 2 == 0,
///     latency_ms: 100 + case,
///     ..Trial::default()
/// };
/// let trials: Vec<_> = (0..20).flat_map(|case| [run("a", case), run("b", case)]).collect();
/// let comparison = compare_arms(&["a".to_owned(), "b".to_owned()], &trials, &Options::default()).unwrap();
/// assert!(comparison.summaries[0].words.starts_with("`b` is more correct by "));
/// ```
pub fn compare_arms(arms: &[String], trials: &[Trial], options: &Options) -> Result<Comparison, CompareError> {
    let numbers = numbered(arms, trials, options.stopping);
    let (mut metrics, values): (Vec<_>, Vec<_>) = metrics(options.stopping).into_iter().unzip();
    // What nobody measured, or what is nothing everywhere, is not compared.
    let has_any = |value: &Value| trials.iter().any(|trial| value(trial).is_some_and(|value| value > 0.0));
    let kept: Vec<bool> = values.iter().enumerate().map(|(place, value)| place == 0 || has_any(value)).collect();
    let mut is_kept = kept.iter();
    metrics.retain(|_| *is_kept.next().unwrap_or(&false));
    let values: Vec<_> = values.into_iter().zip(&kept).filter(|(_, kept)| **kept).map(|(value, _)| value).collect();
    let measured = trials.iter().filter_map(|trial| {
        let arm = arms.iter().position(|arm| *arm == trial.arm)?;
        let case = *numbers.get(trial.case.as_str())?;
        // Of a run that failed nothing is known.
        let value = |value: &Value| if trial.failure.is_some() { None } else { value(trial) };
        Some(Measured { arm, case, repeat: trial.repeat as usize, values: values.iter().map(value).collect() })
    });
    let experiment = Experiment { arms: arms.to_vec(), metrics, trials: measured.collect() };
    compare(&experiment, options)
}

/// Tells whether what was found is enough to stop: of each arm it is known whether it is more or less correct, or that it
/// makes no difference that matters.
pub fn is_enough(comparison: &Comparison) -> bool {
    let mut passes = comparison.contrasts.iter().filter(|contrast| contrast.kind == Kind::Pass).peekable();
    passes.peek().is_some()
        && passes.all(|contrast| {
            matches!(contrast.verdict.finding, Finding::Better | Finding::Worse)
                || contrast.verdict.matters == Matters::No
        })
}

/// Compares a report with an earlier one, by the cases that both have. Both are of one arm.
pub fn compare_reports(before: &Report, after: &Report, options: &Options) -> Result<Comparison, CompareError> {
    let arms = ["before".to_owned(), "now".to_owned()];
    let has = |report: &Report, trial: &Trial| report.cases.iter().any(|case| case.id == trial.case);
    let renamed = |trial: &Trial, arm: &str| Trial { arm: arm.to_owned(), ..trial.clone().brief() };
    let first = |report: &Report| report.arms.first().map(|arm| arm.name.clone()).unwrap_or_default();
    let [earlier, later] = [first(before), first(after)];
    let old = before.of_arm(&earlier).filter(|trial| has(after, trial)).map(|trial| renamed(trial, "before"));
    let new = after.of_arm(&later).filter(|trial| has(before, trial)).map(|trial| renamed(trial, "now"));
    compare_arms(&arms, &old.chain(new).collect::<Vec<_>>(), options)
}

/// Reads a value of a run.
type Value = fn(&Trial) -> Option<f64>;

fn metrics(stopping: Stopping) -> [(Metric, Value); 6] {
    let calls = Metric::new("tool calls", Kind::Difference, Better::Less)
        .words("makes more tool calls", "makes fewer tool calls")
        .unit("calls")
        .margin(0.5);
    // What may be 0 is compared by differences from the start, where someone looks in between.
    let steady = |metric: Metric| match stopping {
        Stopping::Anytime => Metric { kind: Kind::Difference, ..metric },
        Stopping::Fixed => metric,
    };
    [
        (Metric::pass_rate(), |trial| Some(f64::from(u8::from(trial.passed)))),
        (steady(Metric::latency()), |trial| Some(trial.latency_ms as f64)),
        (steady(Metric::tokens()), |trial| Some(trial.tokens() as f64)),
        (steady(Metric::cost()), |trial| trial.cost.map(patter_core::provider::price::Cost::dollars)),
        (steady(Metric::turns()), |trial| Some(f64::from(trial.model_calls))),
        (calls, |trial| Some(trial.tools.len() as f64)),
    ]
}

/// Numbers cases in the order of their first runs. Where someone looks in between, only those count that are complete.
fn numbered<'t>(arms: &[String], trials: &'t [Trial], stopping: Stopping) -> HashMap<&'t str, usize> {
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
