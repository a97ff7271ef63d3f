//! Invalid experiments, extreme values, and invariances.

use super::{from_pairs, from_repeats, quick_options};
use patter_core::stats::plan::{Goal, cases_for_rate, cases_for_shift, detectable_rate, detectable_shift};
use patter_core::stats::{
    Assumption, CompareOptions, Comparison, Conclusion, Direction, Experiment, Metric, MetricKind, ObserveError, Rng,
    Sequential, Stopping, TrialValues, compare, distribution, mean_interval, sign_flip,
};

fn trial(arm: usize, case: usize, values: &[f64]) -> TrialValues {
    TrialValues { arm, case, repeat: 0, values: values.iter().copied().map(Some).collect() }
}

#[test]
fn invalid_experiments_are_rejected() {
    #[track_caller]
    fn check(arms: &[&str], metrics: Vec<Metric>, trials: Vec<TrialValues>, expected: &str) {
        let arms = arms.iter().copied().map(str::to_owned).collect();
        let error = compare(&Experiment { arms, metrics, trials }, &quick_options()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let pass = || vec![Metric::pass_rate()];
    let latency = || vec![Metric::latency()];
    check(&["a"], pass(), vec![], "a comparison needs at least two arms, not 1");
    check(&["a", "b"], pass(), vec![trial(2, 0, &[1.0])], "trial 1 refers to arm 2, but there are 2 arms");
    check(&["a", "b"], pass(), vec![trial(0, 0, &[1.0, 2.0])], "trial 1 has 2 values for 1 metrics");
    check(&["a", "b"], pass(), vec![trial(0, 0, &[0.5])], "the value of `pass rate` in trial 1 must be 0 or 1");
    for value in [f64::NAN, f64::INFINITY, -1e300] {
        let expected = "the value of `latency` in trial 2 is not a number below 1e90";
        check(&["a", "b"], latency(), vec![trial(0, 0, &[1.0]), trial(1, 0, &[value])], expected);
    }
    let duplicate = vec![trial(1, 7, &[1.0]), trial(0, 7, &[1.0]), trial(1, 7, &[0.0])];
    check(&["a", "b"], pass(), duplicate, "arm `b` has two trials for repeat 0 of case 7");
    for margin in [0.0, f64::NAN] {
        let metric = vec![Metric::latency().margin(margin)];
        check(&["a", "b"], metric, vec![], "the margin of `latency` must be a positive number");
    }
}

#[test]
fn invalid_options_and_observations_are_rejected() {
    let check = |options: CompareOptions, expected: &str| {
        let experiment = from_pairs(Metric::pass_rate(), &[]);
        assert_eq!(compare(&experiment, &options).unwrap_err().to_string(), expected);
    };
    check(CompareOptions { alpha: f64::NAN, ..quick_options() }, "`alpha` must be between 0 and 0.5");
    check(CompareOptions { power: 1.0, ..quick_options() }, "`power` must be at least 0.5 and below 1");
    check(CompareOptions { resamples: 0, ..quick_options() }, "`resamples` must be from 100 to 1000000");
    let mut test = Sequential::new(Assumption::Bounded);
    for difference in [f64::NAN, f64::INFINITY, 1e308] {
        assert_eq!(test.observe(difference), Err(ObserveError::NotANumber));
    }
    assert_eq!(ObserveError::NotANumber.to_string(), "a difference must be a number below 1e90");
    assert_eq!(ObserveError::OutOfBounds.to_string(), "a difference of pass rates must be from -1 to 1");
    assert_eq!(test.observe(1.5), Err(ObserveError::OutOfBounds));
    assert_eq!((test.len(), test.p()), (0, 1.0));
}

#[test]
fn few_cases_are_not_significant() {
    let kinds = [Metric::pass_rate(), Metric::latency(), Metric::new("score", MetricKind::Difference, Direction::More)];
    for metric in kinds {
        for stopping in [Stopping::Fixed, Stopping::Anytime] {
            for cases in 0..5 {
                let experiment = from_pairs(metric.clone(), &vec![(0.0, 1.0); cases]);
                let comparison = compare(&experiment, &CompareOptions { stopping, ..quick_options() }).unwrap();
                let contrast = &comparison.contrasts[0];
                let expected = if cases == 0 { Conclusion::Unmeasured } else { Conclusion::Unclear };
                assert_eq!(contrast.verdict.conclusion, expected, "{contrast:?}");
                assert_eq!(contrast.test.map(|test| test.p <= 0.05), (cases > 0).then_some(false));
            }
        }
    }
}

#[test]
fn extreme_values_stay_finite() {
    let values = [1e-300, 1e-5, 1.0, 1e5, 1e89];
    let pairs: Vec<(f64, f64)> = values.iter().flat_map(|&a| values.map(|b| (a, b))).collect();
    for kind in [MetricKind::Ratio, MetricKind::Difference] {
        for stopping in [Stopping::Fixed, Stopping::Anytime] {
            let experiment = from_pairs(Metric::new("x", kind, Direction::More), &pairs);
            let comparison = compare(&experiment, &CompareOptions { stopping, ..quick_options() }).unwrap();
            let json = serde_json::to_string(&comparison).unwrap();
            assert!(comparison.contrasts[0].test.unwrap().p > 0.05, "{json}");
            assert!(!comparison.summaries[0].text.contains("NaN"), "{json}");
            assert_eq!(serde_json::from_str::<Comparison>(&json).unwrap(), comparison);
        }
    }
}

#[test]
fn functions_return_outside_their_domain() {
    assert!(distribution::normal_quantile(-0.1).is_nan() && distribution::beta(0.0, 1.0, 0.5).is_nan());
    assert_eq!(distribution::normal_quantile(1.0), f64::INFINITY);
    assert!((-39.0..-38.0).contains(&distribution::normal_quantile(5e-324)));
    assert_eq!(sign_flip(&[], None, 100, &mut Rng::new(0)).p, 1.0);
    assert_eq!(sign_flip(&[0.0; 40], Some(1.0), 100, &mut Rng::new(0)).p, 1.0);
    assert_eq!(mean_interval(&[], 0.05, 100, &mut Rng::new(0)), None);
    assert_eq!(mean_interval(&[0.1; 30], 0.05, 100, &mut Rng::new(0)), None);
    assert_eq!(Rng::new(0).below(0), 0);
    let goal = Goal { alpha: 0.05, power: 0.8 };
    assert_eq!(cases_for_shift(0.0, 1.0, goal), None);
    assert_eq!(cases_for_shift(1e-9, 1.0, goal), None);
    assert_eq!(cases_for_shift(1.0, f64::NAN, goal), None);
    assert_eq!(detectable_shift(1, 1.0, goal), None);
    assert_eq!(cases_for_rate(2.0, 0.1, goal), None);
    assert_eq!(cases_for_rate(1.0, 1.0, goal), Some(6));
    assert_eq!(detectable_rate(5, 0.1, goal), None);
}

#[test]
fn the_generator_is_the_same_on_every_platform() {
    let mut rng = Rng::new(0);
    let drawn: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
    assert_eq!(drawn, [5987356902031041503, 7051070477665621255, 6633766593972829180]);
    let counts = (0..6_000).fold([0; 6], |mut counts, _| {
        counts[rng.below(6)] += 1;
        counts
    });
    assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
}

#[test]
fn the_order_of_trials_does_not_matter() {
    let mut rng = Rng::new(5);
    let pairs: Vec<(f64, f64)> = (0..30).map(|_| (1.0 + rng.unit(), 1.1 + rng.unit())).collect();
    let experiment = from_pairs(Metric::latency(), &pairs);
    let expected = compare(&experiment, &quick_options()).unwrap();
    let mut reversed = experiment.clone();
    reversed.trials.reverse();
    assert_eq!(compare(&reversed, &quick_options()).unwrap(), expected);
    // An additional arm does not change the draws of the others.
    let mut more = experiment.clone();
    more.arms.push("c".to_owned());
    let with_more = compare(&more, &quick_options()).unwrap();
    assert_eq!(with_more.contrasts[0].effect, expected.contrasts[0].effect);
    assert_eq!(with_more.contrasts[1].verdict.conclusion, Conclusion::Unmeasured);
    // Another seed draws other cases, with about the same result.
    let other = compare(&experiment, &CompareOptions { seed: 1, ..quick_options() }).unwrap();
    assert_ne!(other.contrasts[0].effect, expected.contrasts[0].effect);
    assert_eq!(other.contrasts[0].verdict.conclusion, expected.contrasts[0].verdict.conclusion);
}

#[test]
fn swapping_the_arms_inverts_the_result() {
    let mut rng = Rng::new(6);
    let pairs: Vec<(f64, f64)> = (0..25).map(|_| (1.0 + rng.unit(), 1.3 + rng.unit())).collect();
    let swapped: Vec<(f64, f64)> = pairs.iter().map(|&(a, b)| (b, a)).collect();
    let [one, other] =
        [pairs, swapped].map(|pairs| compare(&from_pairs(Metric::latency(), &pairs), &quick_options()).unwrap());
    let one = &one.contrasts[0];
    let other = &other.contrasts[0];
    assert_eq!((one.verdict.conclusion, other.verdict.conclusion), (Conclusion::Worse, Conclusion::Better));
    assert_eq!(one.test.unwrap().p, other.test.unwrap().p);
    assert!((one.effect.unwrap().value * other.effect.unwrap().value - 1.0).abs() < 1e-12);
    assert_eq!(one.superiority.unwrap() + other.superiority.unwrap(), 1.0);
}

#[test]
fn very_many_cases_are_pooled() {
    let mut rng = Rng::new(7);
    let cases: Vec<Vec<(f64, f64)>> = (0..20_001)
        .map(|_| {
            let easy = 1.0 + rng.unit();
            vec![(easy, easy * (1.01 + 0.2 * (rng.unit() - 0.5)))]
        })
        .collect();
    let options = CompareOptions { resamples: 200, ..CompareOptions::default() };
    let comparison = compare(&from_repeats(Metric::latency(), &cases), &options).unwrap();
    let effect = comparison.contrasts[0].effect.unwrap();
    let logs: Vec<f64> = cases.iter().map(|case| (case[0].1 / case[0].0).ln()).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    assert!((effect.value - mean.exp()).abs() < 1e-12);
    // The width of the interval corresponds to the deviation of all cases.
    let deviation = (logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / logs.len() as f64).sqrt();
    let interval = effect.interval.unwrap();
    let expected = 2.0 * 1.96 * deviation / (logs.len() as f64).sqrt();
    let width = interval.high.ln() - interval.low.ln();
    assert!((width / expected - 1.0).abs() < 0.2, "{width} {expected}");
}
