//! Complete comparisons: the choice of methods, and missing values.

use super::{from_pairs, from_repeats, quick_options};
use patter_core::stats::{
    CompareOptions, Comparison, Conclusion, Direction, Experiment, IntervalMethod, Metric, MetricKind, PairedOutcomes,
    Relevance, Rng, Stopping, TestMethod, TrialValues, VerdictNote, compare, gatekeep,
};

#[test]
fn methods_are_chosen_by_the_data() {
    #[track_caller]
    fn check(
        metric: Metric,
        cases: &[Vec<(f64, f64)>],
        stopping: Stopping,
        expected: (MetricKind, TestMethod, IntervalMethod),
    ) {
        let comparison =
            compare(&from_repeats(metric, cases), &CompareOptions { stopping, ..quick_options() }).unwrap();
        let contrast = &comparison.contrasts[0];
        let found = (contrast.kind, contrast.test.unwrap().method, contrast.effect.unwrap().method.unwrap());
        assert_eq!(found, expected);
    }
    let once = |values: fn(usize) -> (f64, f64), cases: usize| -> Vec<Vec<(f64, f64)>> {
        (0..cases).map(|case| vec![values(case)]).collect()
    };
    let passes =
        |case: usize| (f64::from(u8::from(case.is_multiple_of(2))), f64::from(u8::from(case.is_multiple_of(3))));
    let times = |case: usize| (10.0 + case as f64, 12.0 + (case * case % 17) as f64);
    let zeros = |case: usize| ((case % 4) as f64, (case % 3) as f64);
    let twice: Vec<Vec<(f64, f64)>> = (0..30).map(|case| vec![passes(case), passes(case + 1)]).collect();
    let mut rarely = vec![vec![(1.0, 1.0); 2]; 30];
    rarely[3] = vec![(0.0, 1.0), (1.0, 1.0)];
    use IntervalMethod::{Bootstrap, Conservative, Score, Student};
    use MetricKind::{Difference, Pass, Ratio};
    use Stopping::{Anytime, Fixed};
    use TestMethod::{McNemar, SignFlip, SignFlipDrawn};
    check(Metric::pass_rate(), &once(passes, 30), Fixed, (Pass, McNemar, Score));
    check(Metric::pass_rate(), &twice, Fixed, (Pass, SignFlip, Bootstrap));
    check(Metric::pass_rate(), &rarely, Fixed, (Pass, SignFlip, Conservative));
    check(Metric::pass_rate(), &twice, Anytime, (Pass, TestMethod::Anytime, IntervalMethod::Anytime));
    check(Metric::latency(), &once(times, 30), Fixed, (Ratio, SignFlipDrawn, Bootstrap));
    check(Metric::latency(), &once(times, 8), Fixed, (Ratio, SignFlip, Student));
    check(Metric::latency(), &once(zeros, 30), Fixed, (Difference, SignFlipDrawn, Bootstrap));
    check(Metric::latency(), &once(times, 30), Anytime, (Difference, TestMethod::Anytime, IntervalMethod::Anytime));
}

#[test]
fn margins_fit_what_is_compared() {
    // With interim looks and with zeros, a ratio is compared by difference: its margin is a share of the baseline, so that
    // eight times the cost of a hundredth of a cent is not "below 0.1".
    for (unit, first) in [(0.0001, 0.0001), (0.0001, 0.0), (2_000.0, 2_000.0)] {
        let pairs: Vec<(f64, f64)> = (0..60)
            .map(|case| if case == 0 { (first, first) } else { (unit, unit * (7.8 + 0.01 * f64::from(case))) })
            .collect();
        for stopping in [Stopping::Anytime, Stopping::Fixed] {
            let options = CompareOptions { stopping, ..quick_options() };
            let comparison = compare(&from_pairs(Metric::cost(), &pairs), &options).unwrap();
            let contrast = &comparison.contrasts[0];
            assert_eq!(contrast.verdict.conclusion, Conclusion::Worse, "{contrast:?}");
            assert_eq!(contrast.verdict.relevance, Relevance::Relevant, "{contrast:?}");
            let is_scaled = contrast.kind == MetricKind::Difference;
            let expected = if is_scaled { 0.1 * contrast.baseline_mean.unwrap() } else { 0.1 };
            assert!((contrast.margin / expected - 1.0).abs() < 1e-12, "{contrast:?}");
        }
    }
    // A tenth of the baseline is the smallest difference that matters, whatever the unit.
    let pairs: Vec<(f64, f64)> = (0..200).map(|case| (2_000.0, 2_000.0 + f64::from(case % 5) - 2.0)).collect();
    let options = CompareOptions { stopping: Stopping::Anytime, ..quick_options() };
    let comparison = compare(&from_pairs(Metric::latency(), &pairs), &options).unwrap();
    assert_eq!(comparison.contrasts[0].verdict.relevance, Relevance::Negligible, "{comparison:?}");
}

#[test]
fn the_mcnemar_and_sign_flip_tests_agree() {
    // The same outcomes as single runs and as two equal repeats have the same exact distribution.
    let mut rng = Rng::new(1);
    let single: Vec<(f64, f64)> =
        (0..120).map(|_| (f64::from(u8::from(rng.unit() < 0.5)), f64::from(u8::from(rng.unit() < 0.7)))).collect();
    let double: Vec<Vec<(f64, f64)>> = single.iter().map(|&pair| vec![pair; 2]).collect();
    let p = |experiment: &Experiment| compare(experiment, &quick_options()).unwrap().contrasts[0].test.unwrap().p;
    let one = p(&from_pairs(Metric::pass_rate(), &single));
    let other = p(&from_repeats(Metric::pass_rate(), &double));
    assert!(one < 0.05 && (one / other - 1.0).abs() < 1e-9, "{one} {other}");
}

#[test]
fn effect_sizes_are_computed() {
    let check =
        |metric: Metric, pairs: &[(f64, f64)], means, difference: Option<f64>, standardized: f64, superiority| {
            let comparison = compare(&from_pairs(metric, pairs), &quick_options()).unwrap();
            let contrast = &comparison.contrasts[0];
            assert_eq!((contrast.baseline_mean, contrast.arm_mean), means);
            assert_eq!(contrast.difference.map(|estimate| estimate.value), difference);
            assert!((contrast.standardized.unwrap() - standardized).abs() < 1e-9, "{contrast:?}");
            assert_eq!(contrast.superiority, Some(superiority));
        };
    let score = Metric::new("score", MetricKind::Difference, Direction::More);
    let pairs = [(1.0, 2.0), (1.0, 3.0), (1.0, 1.0), (1.0, 0.0)];
    // The differences are 1, 2, 0 and −1: their mean is 0.5, their variance 5/3.
    check(score, &pairs, (Some(1.0), Some(1.5)), None, 0.5 / (5.0f64 / 3.0).sqrt(), 0.625);
    // The logarithms of the ratios, in units of ln 2, are 1, 1, 0 and 2.
    let pairs = [(1.0, 2.0), (2.0, 4.0), (4.0, 4.0), (1.0, 4.0)];
    check(Metric::cost(), &pairs, (Some(2.0), Some(3.5)), Some(1.5), 1.0 / (2.0f64 / 3.0).sqrt(), 0.125);
}

#[test]
fn missing_values_are_reported() {
    let some = |passed, time| vec![Some(passed), Some(time)];
    let mut trials = Vec::new();
    for case in 0..12 {
        for arm in 0..2 {
            let values = match (arm, case) {
                (1, 0..=1) => vec![None, None], // the run ended with an error
                (0, 2) => vec![Some(1.0), None],
                (1, 3) => continue, // the trial is missing
                _ => some(1.0, 5.0),
            };
            trials.push(TrialValues { arm, case, repeat: 0, values });
        }
    }
    let arms = vec!["a".to_owned(), "b".to_owned()];
    let experiment = Experiment { arms, metrics: vec![Metric::pass_rate(), Metric::latency()], trials };
    let comparison = compare(&experiment, &quick_options()).unwrap();
    let [passes, times] = &comparison.contrasts[..] else { panic!() };
    let counts = passes.counts;
    // What is unknown is neither a pass nor a failure.
    assert_eq!((counts.cases, counts.incomplete, counts.same, counts.worse), (9, 3, 9, 0));
    assert_eq!(passes.effect.unwrap().value, PairedOutcomes { cases: 9, only_baseline: 0, only_arm: 0 }.difference());
    let counts = times.counts;
    assert_eq!((counts.cases, counts.incomplete, counts.same), (8, 4, 8));
    assert_eq!((times.baseline_mean, times.arm_mean, times.standardized), (Some(5.0), Some(5.0), None));
    assert!(passes.verdict.text.ends_with(" (3 pairs with missing values are left out)"), "{}", passes.verdict.text);
    assert!(times.verdict.text.ends_with(" (4 pairs with missing values are left out)"), "{}", times.verdict.text);
    assert_eq!(passes.verdict.notes, [VerdictNote::MissingValues { pairs: 3 }]);
    assert_eq!(times.verdict.notes, [VerdictNote::MissingValues { pairs: 4 }]);
    let json = serde_json::to_value(&passes.verdict).unwrap();
    assert_eq!(json["notes"][0], serde_json::json!({"kind": "missing_values", "pairs": 3}));
}

#[test]
fn all_arms_are_compared_with_the_first() {
    let mut trials = Vec::new();
    for case in 0..30 {
        let easy = 1.0 + (case * 7 % 11) as f64;
        for (arm, factor) in [1.0, 1.0, 0.5].into_iter().enumerate() {
            let noise = 1.0 + ((case * 31 + arm * 17) % 13) as f64 / 50.0;
            trials.push(TrialValues { arm, case, repeat: 0, values: vec![Some(1.0), Some(easy * factor * noise)] });
        }
    }
    let arms = ["now", "same", "fast"].map(str::to_owned).to_vec();
    let metrics = vec![Metric::pass_rate(), Metric::latency().margin(0.2)];
    let comparison = compare(&Experiment { arms, metrics, trials }, &quick_options()).unwrap();
    let found: Vec<_> = comparison
        .contrasts
        .iter()
        .map(|contrast| (contrast.arm.as_str(), contrast.metric.name.as_str(), contrast.verdict.conclusion))
        .collect();
    use Conclusion::{Better, Unclear};
    let expected = [
        ("same", "pass rate", Unclear),
        ("same", "latency", Unclear),
        ("fast", "pass rate", Unclear),
        ("fast", "latency", Better),
    ];
    assert_eq!(found, expected);
    // The first metric is adjusted for the arms only, the other one follows.
    let [(same, same_time), (fast, fast_time)] = [0, 2].map(|index| {
        let test = |index: usize| comparison.contrasts[index].test.unwrap();
        (test(index), test(index + 1))
    });
    let (primary, others) = gatekeep(&[same.p, fast.p], &[same_time.p, fast_time.p]);
    assert_eq!((vec![same.adjusted, fast.adjusted], vec![same_time.adjusted, fast_time.adjusted]), (primary, others));
    assert_eq!(comparison.contrasts[1].verdict.relevance, Relevance::Negligible);
    assert_eq!(comparison.contrasts[3].verdict.relevance, Relevance::Relevant);
    assert_eq!(comparison.contrasts[3].superiority, Some(1.0));
    let summaries: Vec<_> = comparison.summaries.iter().map(|summary| summary.arm.as_str()).collect();
    assert_eq!(summaries, ["same", "fast"]);
}

#[test]
fn plans_account_for_cases_and_repeats() {
    let mut rng = Rng::new(3);
    let mut cases = |repeats: usize| -> Vec<Vec<(f64, f64)>> {
        let mut case = || {
            let centre = rng.unit() - 0.5;
            (0..repeats).map(|_| (0.0, centre + 3.0 * (rng.unit() - 0.5))).collect()
        };
        (0..200).map(|_| case()).collect()
    };
    let metric = || Metric::new("score", MetricKind::Difference, Direction::More).margin(0.1);
    let [one, four] =
        [1, 4].map(|repeats| compare(&from_repeats(metric(), &cases(repeats)), &quick_options()).unwrap());
    let [one, four] = [one, four].map(|comparison| comparison.contrasts[0].plan.unwrap());
    // The variance is 1/12 between cases and 9/12 between repeats.
    let ideal = |repeats: f64| (1.96f64 + 0.8416).powi(2) * (1.0 + 9.0 / repeats) / 12.0 / 0.01;
    for (plan, repeats) in [(one, 1.0), (four, 4.0)] {
        let cases = plan.cases.unwrap() as f64;
        assert!((cases / ideal(repeats) - 1.0).abs() < 0.25, "{cases} {}", ideal(repeats));
        let detectable = plan.detectable.unwrap();
        assert!((detectable / (0.1 * (cases / 200.0).sqrt()) - 1.0).abs() < 0.02, "{detectable}");
    }
    assert_eq!(one.correlation, None);
    assert!((four.correlation.unwrap() - 0.1).abs() < 0.06, "{four:?}");
}

#[test]
fn comparisons_are_serializable() {
    let pairs: Vec<(f64, f64)> = (1..20).map(|case| (f64::from(case), f64::from(case) * 1.1)).collect();
    let comparison = compare(&from_pairs(Metric::cost(), &pairs), &quick_options()).unwrap();
    let json = serde_json::to_value(&comparison).unwrap();
    assert_eq!(serde_json::from_value::<Comparison>(json.clone()).unwrap(), comparison);
    let verdict = &json["contrasts"][0]["verdict"];
    assert_eq!((&verdict["finding"], &verdict["matters"]), (&"worse".into(), &"unknown".into()));
    assert_eq!(verdict["words"].as_str().unwrap(), format!("`b` {}", verdict["predicate"].as_str().unwrap()));
    assert_eq!(json["contrasts"][0]["test"]["method"], "sign_flip_drawn");
    let experiment = from_pairs(Metric::cost(), &pairs);
    let json = serde_json::to_string(&experiment).unwrap();
    assert_eq!(serde_json::from_str::<Experiment>(&json).unwrap(), experiment);
}
