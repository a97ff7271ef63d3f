//! Experiments: outcomes of trials, gates, comparisons and baselines.

use patter_core::case::CheckResult;
use patter_core::experiment::{
    ArmErrors, ArmInfo, BaselineCases, BlockOrder, CaseInfo, Completion, Gate, Plan, Report, ReportKind, Trial,
    TrialOutcome, compare_arms, compare_with_baseline, junit, leading_blocks, regressions, summarize,
};
use patter_core::message::conversation::Usage;
use patter_core::provider::price::Cost;
use patter_core::run::{FailureKind, RunFailure};
use patter_core::stats::{CompareOptions, Conclusion, Stopping};

fn trial(arm: &str, case: usize, passed: bool) -> Trial {
    Trial { arm: arm.to_owned(), case: case.to_string(), passed, latency_ms: 100, ..Trial::default() }
}

fn failed(arm: &str, case: usize, kind: FailureKind, message: &str) -> Trial {
    let failure = Some(RunFailure { kind, message: message.to_owned() });
    Trial { failure, ..trial(arm, case, false) }
}

fn checked(arm: &str, case: usize, results: &[(bool, bool)]) -> Trial {
    let result = |&(passed, error)| CheckResult { check: "a check".to_owned(), passed, error, why: "why".to_owned() };
    let judged: Vec<_> = results.iter().map(result).collect();
    Trial { passed: judged.iter().all(|judged| judged.passed), judged, ..trial(arm, case, false) }
}

fn arms() -> [String; 2] {
    ["a".to_owned(), "b".to_owned()]
}

#[test]
fn errors_are_not_outcomes() {
    use TrialOutcome::{Error, NotPassed, Passed};
    let check = |trial: Trial, expected: TrialOutcome| assert_eq!(trial.outcome(), expected, "{trial:?}");
    check(trial("a", 0, true), Passed);
    check(trial("a", 0, false), NotPassed);
    check(checked("a", 0, &[(true, false), (true, false)]), Passed);
    check(checked("a", 0, &[(true, false), (false, false)]), NotPassed);
    check(checked("a", 0, &[(true, false), (false, true)]), Error);
    // The other check already decided.
    check(checked("a", 0, &[(false, false), (false, true)]), NotPassed);
    for kind in [FailureKind::Configuration, FailureKind::Model, FailureKind::Store] {
        check(failed("a", 0, kind, "down"), Error);
    }
    let limits = [FailureKind::ModelCalls, FailureKind::ToolCalls, FailureKind::Tokens, FailureKind::Deadline];
    for kind in limits.into_iter().chain([FailureKind::Answer]) {
        check(failed("a", 0, kind, "too long"), NotPassed);
    }
}

#[test]
fn an_arm_with_only_errors_is_not_compared() {
    let mut trials: Vec<_> = (0..40).map(|case| trial("a", case, case % 4 != 0)).collect();
    trials.extend((0..40).map(|case| failed("b", case, FailureKind::Model, "HTTP 400: no such model")));
    let verdict = |trials: &[Trial]| {
        let comparison = compare_arms(&arms(), trials, &CompareOptions::default()).unwrap();
        (comparison.contrasts[0].verdict.conclusion, comparison.summaries[0].text.clone())
    };
    let expected = "cannot compare `b` with `a`: all 40 runs of `b` ended with an error: HTTP 400: no such model";
    assert_eq!(verdict(&trials), (Conclusion::Unmeasured, expected.to_owned()));
    // The same if the baseline has them.
    let swapped: Vec<_> = trials
        .iter()
        .map(|trial| Trial { arm: if trial.arm == "a" { "b" } else { "a" }.to_owned(), ..trial.clone() })
        .collect();
    let expected = "cannot compare `b` with `a`: all 40 runs of `a` ended with an error: HTTP 400: no such model";
    assert_eq!(verdict(&swapped), (Conclusion::Unmeasured, expected.to_owned()));
    // A failing judge does not blame the agent.
    for trial in &mut trials[40..] {
        *trial = checked("b", trial.case.parse().unwrap(), &[(false, true)]);
    }
    assert!(verdict(&trials).1.ends_with("all 40 runs of `b` ended with an error: why"), "{}", verdict(&trials).1);
    // A few errors are left out, and reported.
    for (number, trial) in trials[40..].iter_mut().enumerate() {
        if number >= 3 {
            *trial = self::trial("b", number, true);
        }
    }
    let (conclusion, text) = verdict(&trials);
    assert_eq!(conclusion, Conclusion::Better);
    assert!(text.contains("is more correct") && text.contains("(3 pairs with missing values are left out)"), "{text}");
    let errors = ArmErrors::find("b", &trials).unwrap();
    assert_eq!((errors.errors, errors.runs, errors.is_undecidable()), (3, 40, false));
    assert_eq!(ArmErrors::find("a", &trials), None);
}

#[test]
fn gates_count() {
    #[track_caller]
    fn check(gate: &str, trials: &[Trial], passed: bool, undecided: bool, why: &str) {
        let result = gate.parse::<Gate>().unwrap().judge(trials);
        assert_eq!((result.passed, result.undecided, result.why.as_str()), (passed, undecided, why), "{gate}");
    }
    // Six cases with five repeats: the mean of their rates is 0.7999999999999999.
    let passes = [5, 5, 5, 4, 4, 1];
    let trials: Vec<_> = passes
        .iter()
        .enumerate()
        .flat_map(|(case, &passes)| (0..5).map(move |repeat| Trial { repeat, ..trial("a", case, repeat < passes) }))
        .collect();
    assert!(passes.map(|passes| f64::from(passes) / 5.0).iter().sum::<f64>() / 6.0 < 0.8);
    check("pass>=0.8", &trials, true, false, "pass is 0.8");
    check("pass>=80%", &trials, true, false, "pass is 0.8");
    check("pass<=0.8", &trials, true, false, "pass is 0.8");
    check("pass>=0.81", &trials, false, false, "pass is 0.8");
    // Each case counts once, however often it ran: (1/1 + 2/5) / 2.
    let runs = [(0, true), (1, true), (1, true), (1, false), (1, false), (1, false)];
    let uneven: Vec<_> = runs.iter().map(|&(case, passed)| trial("a", case, passed)).collect();
    check("pass>=0.7", &uneven, true, false, "pass is 0.7");
    // A rounded value does not seem to meet the limit.
    let almost: Vec<_> = (0..20_000).map(|case| trial("a", case, case > 0)).collect();
    check("pass>=1", &almost, false, false, "pass is 0.99995");
    // Errors are neither: a gate is decided only if they cannot change it.
    let with_errors = |errors: usize| -> Vec<Trial> {
        (0..10)
            .map(|case| match case < errors {
                true => failed("a", case, FailureKind::Model, "down"),
                false => trial("a", case, case != 9),
            })
            .collect()
    };
    check("pass>=0.5", &with_errors(2), true, false, "pass is 0.875 without the 2 of 10 runs that ended with an error");
    check("pass>=0.8", &with_errors(2), false, true, "pass is 0.875 without the 2 of 10 runs that ended with an error");
    check(
        "pass>=95%",
        &with_errors(2),
        false,
        false,
        "pass is 0.875 without the 2 of 10 runs that ended with an error",
    );
    check("pass>=0.5", &with_errors(10), false, true, "pass is unknown, because all runs ended with an error");
    check("pass>=0.5", &[], false, false, "pass is unknown");
}

#[test]
fn means_are_those_of_answers() {
    let usage = Usage { input_tokens: 90, output_tokens: 10, ..Usage::default() };
    let cost = Cost::from_dollars(0.1);
    let answered = |case| Trial { usage, cost, model_calls: 2, ..trial("a", case, true) };
    let mut trials: Vec<_> = (0..11).map(answered).collect();
    trials.push(Trial { cost: Some(Cost::FREE), ..failed("a", 11, FailureKind::Model, "down") });
    trials.push(Trial { cost, usage, ..failed("a", 12, FailureKind::Deadline, "too slow") });
    let summary = summarize(&trials);
    assert_eq!((summary.runs, summary.answered(), summary.decided(), summary.errors), (13, 11, 12, 1));
    assert_eq!((summary.mean(summary.tokens), summary.mean(summary.model_calls)), (Some(100.0), Some(2.0)));
    assert_eq!((summary.mean_cost(), summary.cost), (Some(0.1), Cost::from_dollars(1.2)));
    assert_eq!(summary.pass_rate, Some(11.0 / 12.0));
    for gate in ["tokens<=100", "tokens>=100", "turns>=2", "cost<=0.1", "cost>=$0.1", "total_cost<=1.2"] {
        assert!(gate.parse::<Gate>().unwrap().judge(&trials).passed, "{gate}");
    }
}

#[test]
fn impossible_gates_are_refused() {
    let check = |gate: &str, message: &str, hint: &str| {
        let error = gate.parse::<Gate>().unwrap_err();
        assert_eq!((error.to_string().as_str(), error.hint().as_str()), (message, hint), "{gate}");
    };
    check("pass>=95", "`95` is not a pass rate, which is from 0 to 1", "write `95%`, or `0.95`");
    check("pass>=1.01", "`1.01` is not a pass rate, which is from 0 to 1", "the highest pass rate is `1`, or `100%`");
    check(
        "pass>=120%",
        "`120%` is not a pass rate, which is from 0 to 1",
        "write a share, as in `pass>=95%` or `pass>=0.95`",
    );
    check(
        "pass>=-1",
        "`-1` is not a pass rate, which is from 0 to 1",
        "write a share, as in `pass>=95%` or `pass>=0.95`",
    );
    let time = "write a time, as in `latency_p95<=2s`, or a number of milliseconds";
    check("latency_p95<=50%", "`50%` is not a latency", time);
    check("latency_p50<=-5", "`-5` is not a latency", time);
    check("cost<=10%", "`10%` is not a cost", "write a number, as in `cost<=10`");
    check("tokens<=10%", "`10%` is not a number of these", "write a number, as in `tokens<=10`");
    let form = "write a metric, `>=` or `<=`, and a number, such as `pass>=0.95` or `latency_p95<=2000`";
    check("latency_p95<=fast", "`fast` is not a number", form);
    check("pass>0.9", "`pass>0.9` is not a gate", form);
    for (gate, canonical) in [
        ("latency_p95<=2s", "latency_p95<=2s"),
        ("latency_p50<=1500", "latency_p50<=1.5s"),
        ("latency_p50<=200", "latency_p50<=200ms"),
        ("cost<=0.000015", "cost<=$0.000015"),
        ("pass>=81.3%", "pass>=0.813"),
    ] {
        assert_eq!(gate.parse::<Gate>().unwrap().to_string(), canonical);
    }
}

#[test]
fn interim_looks_wait_for_slow_cases() {
    // Failures of `b` take long. Of the first eight cases, those that failed still run.
    let arm = |name: &str| ArmInfo { name: name.to_owned(), ..ArmInfo::default() };
    let case = |number: usize| CaseInfo { id: number.to_string(), ..CaseInfo::default() };
    let plan = Plan {
        arms: vec![arm("a"), arm("b")],
        cases: (0..8).map(case).collect(),
        repeats: 2,
        blocks: BlockOrder::ByCase,
        ..Plan::new("slow", ReportKind::Ab)
    };
    let planned = plan.planned_trials();
    let run = |order: usize| {
        let planned = planned[order];
        let name = plan.arms[planned.arm].name.clone();
        Trial { order: planned.order, repeat: planned.repeat, ..trial(&name, planned.case, true) }
    };
    let slow = 9;
    let done: Vec<_> = (0..planned.len()).filter(|&order| order != slow).map(run).collect();
    let leading = leading_blocks(&done, 2, 2, BlockOrder::ByCase);
    assert_eq!(leading.iter().map(|trial| trial.order).collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
    let leading = leading_blocks(&done, 2, 2, BlockOrder::Mixed);
    assert_eq!(leading.len(), 8);
    let all: Vec<_> = (0..planned.len()).map(run).collect();
    assert_eq!(leading_blocks(&all, 2, 2, BlockOrder::ByCase).len(), planned.len());
    assert_eq!(leading_blocks(&all[..3], 2, 2, BlockOrder::ByCase).len(), 0);
}

fn report(hashes: &[&str], passed: bool) -> Report {
    let mut report = Report::new("Greeting", ReportKind::Eval);
    report.arms = vec![ArmInfo { name: "agent".to_owned(), ..ArmInfo::default() }];
    for (number, hash) in hashes.iter().enumerate() {
        report.cases.push(CaseInfo { id: number.to_string(), hash: (*hash).to_owned(), ..CaseInfo::default() });
        report.trials.push(trial("agent", number, passed));
    }
    report
}

#[test]
fn changed_cases_are_not_compared_with_a_baseline() {
    let before = report(&["x"; 10], true);
    let now = report(&["x", "x", "x", "x", "x", "x", "x", "y", "y", "x", "x"], false);
    let cases = BaselineCases::find(&before.cases, &now.cases);
    assert_eq!(
        (cases.same.len(), cases.changed.as_slice(), cases.unverified),
        (8, &["7".to_owned(), "8".to_owned()][..], 0)
    );
    let comparison = compare_with_baseline(&before, &now, &cases, &CompareOptions::default()).unwrap();
    assert_eq!(comparison.contrasts[0].counts.cases, 8);
    assert_eq!(
        regressions(&comparison).map(|contrast| contrast.metric.name.as_str()).collect::<Vec<_>>(),
        ["pass rate"]
    );
    let better = compare_with_baseline(&now, &before, &cases, &CompareOptions::default()).unwrap();
    assert_eq!(regressions(&better).count(), 0);
    // Reports of earlier versions do not say what the checks were.
    let unknown = BaselineCases::find(&report(&[""; 10], true).cases, &now.cases);
    assert_eq!((unknown.same.len(), unknown.changed.len(), unknown.unverified), (10, 0, 10));
}

#[test]
fn reports_of_many_cases_take_linear_time() {
    // With a scan per case, this takes minutes.
    let report = report(&vec!["x"; 30_000], true);
    assert_eq!(junit(&report).matches("<testcase").count(), 30_000);
    let cases = BaselineCases::find(&report.cases, &report.cases);
    let options = CompareOptions { resamples: 100, stopping: Stopping::Fixed, ..CompareOptions::default() };
    let comparison = compare_with_baseline(&report, &report, &cases, &options).unwrap();
    assert_eq!(comparison.contrasts[0].counts.same, 30_000);
}

#[test]
fn interrupted_experiments_have_provisional_verdicts() {
    let arms = ["a", "b"].map(|name| ArmInfo { name: name.to_owned(), ..ArmInfo::default() });
    let mut report = Report::new("Greeting", ReportKind::Ab);
    report.arms = arms.to_vec();
    report.cases = (0..40).map(|id| CaseInfo { id: id.to_string(), ..CaseInfo::default() }).collect();
    // The twenty-first run of forty cases under two arms is missing, and those after it have to wait.
    report.trials = (0..60)
        .filter(|order| *order != 20)
        .map(|order| {
            let arm = if order % 2 == 0 { "a" } else { "b" };
            Trial { order, ..trial(arm, order as usize / 2, arm == "b") }
        })
        .collect();
    report.completion = Completion::Interrupted;
    let compared = report.compare(&CompareOptions::default()).unwrap();
    assert_eq!(compared.contrasts[0].counts.cases, 10);
    let text = &compared.summaries[0].text;
    assert!(text.starts_with("provisional, by 20 of 80 runs: `b` is more correct by "), "{text}");
}
