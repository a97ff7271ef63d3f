//! The texts of verdicts.

use super::{from_pairs, quick_options};
use patter_core::stats::{CompareOptions, Direction, Experiment, Metric, MetricKind, Stopping, TrialValues, compare};

#[track_caller]
fn check(metric: Metric, pairs: &[(f64, f64)], expected: &str) {
    let comparison = compare(&from_pairs(metric, pairs), &quick_options()).unwrap();
    assert_eq!(comparison.contrasts[0].verdict.text, expected);
    assert_eq!(comparison.summaries[0].text, expected);
}

/// Returns cases that neither arm, only one, or both pass.
fn passes(neither: usize, only_a: usize, only_b: usize, both: usize) -> Vec<(f64, f64)> {
    let cases = |count, pair| std::iter::repeat_n(pair, count);
    cases(neither, (0.0, 0.0))
        .chain(cases(only_a, (1.0, 0.0)))
        .chain(cases(only_b, (0.0, 1.0)))
        .chain(cases(both, (1.0, 1.0)))
        .collect()
}

/// Returns cases whose values under `b` are a multiple of those under `a`, with some variation.
fn times(cases: u32, factor: f64, spread: f64) -> Vec<(f64, f64)> {
    let deviation = |case: u32| f64::from(case * 37 % 101) / 100.0 - 0.5;
    (0..cases)
        .map(|case| f64::from(case % 7 + 1))
        .zip(0..)
        .map(|(a, case)| (a, a * factor * (spread * deviation(case)).exp()))
        .collect()
}

#[test]
fn pass_rates() {
    let pass = Metric::pass_rate;
    check(pass(), &passes(40, 5, 25, 30), "`b` is more correct by 10–30 points");
    check(pass(), &passes(40, 25, 5, 30), "`b` is less correct by 10–30 points");
    check(
        pass(),
        &passes(10, 4, 6, 30),
        "pass rate: no evidence of a difference (−9.4 to +18 points; 626 more cases would detect a difference of 5 points with 80% power)",
    );
    check(
        pass(),
        &passes(300, 8, 5, 700),
        "pass rate: the difference from `a` is below 5 points (−1.1 to +0.46 points)",
    );
    check(
        pass().margin(0.2),
        &passes(300, 20, 60, 700),
        "`b` is more correct by 2.1–5.4 points (below the margin of 20 points)",
    );
    check(
        pass(),
        &passes(10, 0, 0, 10),
        "pass rate: identical in all 20 cases (−16 to +16 points; 137 more cases would detect a difference of 5 points with 80% power)",
    );
    check(
        pass(),
        &passes(12, 7, 1, 1),
        "pass rate: not enough evidence that `b` is less correct (−52 to −2.6 points; 1227 more cases would detect a difference of 5 points with 80% power)",
    );
    check(
        pass(),
        &passes(0, 0, 0, 1),
        "pass rate: identical in the only case (−79 to +79 points; 816 more cases would detect a difference of 5 points with 80% power)",
    );
    check(pass(), &[], "pass rate: not measured in any pair");
}

#[test]
fn measurements() {
    let latency = Metric::latency;
    check(latency(), &times(60, 1.15, 0.3), "`b` is slower by 12–17%");
    check(latency(), &times(60, 0.5, 0.3), "`b` is faster by 49–51%");
    check(latency(), &times(60, 8.0, 0.3), "`b` is slower by a factor of 7.8–8.2");
    check(latency(), &times(60, 1.02, 0.5), "latency: the difference from `a` is below 10% (−2.3% to +5.6%)");
    check(latency(), &times(60, 1.02, 0.05), "`b` is slower by 1.6–2.4% (below the margin of 10%)");
    check(latency(), &times(60, 1.0, 0.05), "latency: the difference from `a` is below 10% (−0.43% to +0.34%)");
    check(latency(), &[(2.0, 3.0); 20], "`b` is slower by 50% in every case");
    check(latency(), &[(2.0, 2.0); 20], "latency: identical in all 20 cases");
    let score = || Metric::new("score", MetricKind::Difference, Direction::More);
    check(score(), &times(60, 1.5, 0.3), "`b` is higher in score by 1.7–2.3");
    check(score(), &times(60, 1.0, 3.0), "`b` is higher in score by 0.38–2.9");
    check(
        Metric::tokens(),
        &times(40, 1.0, 3.0),
        "tokens: no evidence of a difference (−26% to +34%; 656 more cases would detect a difference of 10% with 80% power)",
    );
    check(
        Metric::cost(),
        &times(40, 1.0, 3.0),
        "cost: no evidence of a difference (−26% to +34%; 656 more cases would detect a difference of 10% with 80% power)",
    );
    check(
        Metric::turns(),
        &times(12, 1.0, 0.8),
        "turns: no evidence of a difference (−18% to +13%; 47 more cases would detect a difference of 10% with 80% power)",
    );
    check(
        Metric::turns(),
        &[(0.0, 1.0), (2.0, 3.0), (1.0, 0.0)],
        "turns: no evidence of a difference (−2.5 to +3.2 turns; 1046 more cases would detect a difference of 0.1 turns with 80% power)",
    );
}

#[test]
fn too_few_cases() {
    // Student's interval of two log ratios would reach from −100% to +710553%.
    check(
        Metric::latency(),
        &[(1.0, 2.0), (1.0, 4.0)],
        "latency: too few cases for a conclusion (208 more cases would detect a difference of 10% with 80% power)",
    );
    check(Metric::latency(), &[(1.0, 2.0)], "latency: too few cases for a conclusion");
    // With wild values, more cases do not help.
    let wild = [(1.0, 9.0), (1.0, 0.1), (1.0, 80.0), (1.0, 0.5)];
    let comparison = compare(&from_pairs(Metric::cost(), &wild), &quick_options()).unwrap();
    let contrast = &comparison.contrasts[0];
    assert!(contrast.effect.unwrap().interval.is_none(), "{contrast:?}");
    assert!(contrast.verdict.text.starts_with("cost: too few cases for a conclusion ("), "{}", contrast.verdict.text);
}

#[test]
fn differences_of_uncertain_size() {
    // All nine cases have more under `b`, which is significant; one of them is such an outlier that the mean is uncertain.
    let pairs: Vec<(f64, f64)> = (1..9).map(|case| (0.0, f64::from(case))).chain([(0.0, 300.0)]).collect();
    let score = Metric::new("score", MetricKind::Difference, Direction::More);
    check(score, &pairs, "`b` is higher in score by an uncertain amount (−38 to +113)");
    let always = Metric::pass_rate();
    check(always, &passes(0, 0, 12, 0), "`b` is more correct by 52–100 points");
}

#[test]
fn several_metrics_are_one_sentence() {
    let passes = passes(20, 14, 18, 100);
    let times = times(152, 1.15, 0.5);
    let mut trials = Vec::new();
    for (case, (passed, time)) in passes.iter().zip(&times).enumerate() {
        let tokens = if case == 3 { None } else { Some(100.0 + case as f64) };
        trials.push(TrialValues { arm: 0, case, repeat: 0, values: vec![Some(passed.0), Some(time.0), tokens] });
        trials.push(TrialValues { arm: 1, case, repeat: 0, values: vec![Some(passed.1), Some(time.1), tokens] });
    }
    let arms = vec!["a".to_owned(), "b".to_owned()];
    let metrics = vec![Metric::pass_rate().margin(0.1), Metric::latency(), Metric::tokens()];
    let experiment = Experiment { arms, metrics, trials };
    let summary = |options: &CompareOptions| compare(&experiment, options).unwrap().summaries.remove(0).text;
    assert_eq!(
        summary(&quick_options()),
        "`b` is slower by 12–18%; pass rate: no evidence of a difference (−4.8 to +10 points; 26 more cases would detect a difference of 10 points with 80% power); tokens: identical in all 151 cases (1 pair with a missing value is left out)"
    );
    assert_eq!(
        summary(&CompareOptions { stopping: Stopping::Anytime, ..quick_options() }),
        "`b` is slower by 0.42–0.85 ms; pass rate: no evidence of a difference (−9 to +14 points); tokens: identical in all 151 cases (1 pair with a missing value is left out)"
    );
}

#[test]
fn the_correction_for_several_metrics_is_mentioned() {
    let mut trials = Vec::new();
    for (case, (a, b)) in times(30, 1.065, 0.4).into_iter().enumerate() {
        for (arm, value) in [a, b].into_iter().enumerate() {
            let values = vec![Some(1.0), Some(value), Some(1.0), Some(1.0)];
            trials.push(TrialValues { arm, case, repeat: 0, values });
        }
    }
    let metrics = vec![Metric::pass_rate(), Metric::latency().margin(0.02), Metric::cost(), Metric::turns()];
    let mut experiment = Experiment { arms: vec!["a".to_owned(), "b".to_owned()], metrics, trials };
    // The first metric is corrected for arms only.
    let first = Experiment {
        metrics: vec![Metric::latency()],
        trials: experiment.trials.iter().map(|trial| TrialValues { values: vec![trial.values[1]], ..*trial }).collect(),
        arms: experiment.arms.clone(),
    };
    assert_eq!(compare(&first, &quick_options()).unwrap().summaries[0].text, "`b` is slower by 0.67–10%");
    // If it differs, the others are corrected for each other only.
    let latency = |experiment: &Experiment| compare(experiment, &quick_options()).unwrap().contrasts.remove(1);
    let before = latency(&experiment).test.unwrap();
    experiment.trials.iter_mut().filter(|trial| trial.arm == 0).for_each(|trial| trial.values[0] = Some(0.0));
    let after = latency(&experiment).test.unwrap();
    assert!(before.p == after.p && (before.adjusted / after.adjusted - 5.0).abs() < 1e-9, "{before:?} {after:?}");
    experiment.trials.iter_mut().for_each(|trial| trial.values[0] = Some(1.0));
    assert_eq!(
        compare(&experiment, &quick_options()).unwrap().contrasts[1].verdict.text,
        "latency: not enough evidence that `b` is slower after correcting for 4 tests (+1.1% to +10%; 485 more cases would detect a difference of 2% with 80% power)"
    );
}
