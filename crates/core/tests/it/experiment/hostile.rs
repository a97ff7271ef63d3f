//! What cannot be compared, what is hard to compare, and what must not matter.

use super::{of_pairs, of_repeats, quick};
use patter_core::stats::plan::{Goal, cases_for_rate, cases_for_shift, detectable_rate, detectable_shift};
use patter_core::stats::{
    Assume, Better, Comparison, Experiment, Finding, Kind, Metric, ObserveError, Options, Rng, Sequential, Stopping,
    Trial, compare, distribution, mean_interval, sign_flip,
};

fn trial(arm: usize, case: usize, values: &[f64]) -> Trial {
    Trial { arm, case, repeat: 0, values: values.iter().copied().map(Some).collect() }
}

#[test]
fn what_is_wrong_with_an_experiment() {
    #[track_caller]
    fn check(arms: &[&str], metrics: Vec<Metric>, trials: Vec<Trial>, expected: &str) {
        let arms = arms.iter().copied().map(str::to_owned).collect();
        let error = compare(&Experiment { arms, metrics, trials }, &quick()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let pass = || vec![Metric::pass_rate()];
    let latency = || vec![Metric::latency()];
    check(&["a"], pass(), vec![], "a comparison needs at least two arms, not 1");
    check(&["a", "b"], pass(), vec![trial(2, 0, &[1.0])], "trial 1 is of arm 2, and there are 2");
    check(&["a", "b"], pass(), vec![trial(0, 0, &[1.0, 2.0])], "trial 1 has 2 values for 1 metrics");
    check(&["a", "b"], pass(), vec![trial(0, 0, &[0.5])], "the value of `pass rate` in trial 1 must be 0 or 1");
    for value in [f64::NAN, f64::INFINITY, -1e300] {
        let expected = "the value of `latency` in trial 2 is not a number below 1e90";
        check(&["a", "b"], latency(), vec![trial(0, 0, &[1.0]), trial(1, 0, &[value])], expected);
    }
    let twice = vec![trial(1, 7, &[1.0]), trial(0, 7, &[1.0]), trial(1, 7, &[0.0])];
    check(&["a", "b"], pass(), twice, "arm `b` has repeat 0 of case 7 twice");
    for margin in [0.0, f64::NAN] {
        let metric = vec![Metric::latency().margin(margin)];
        check(&["a", "b"], metric, vec![], "the margin of `latency` must be a number above 0");
    }
}

#[test]
fn what_is_wrong_with_options() {
    let check = |options: Options, expected: &str| {
        let experiment = of_pairs(Metric::pass_rate(), &[]);
        assert_eq!(compare(&experiment, &options).unwrap_err().to_string(), expected);
    };
    check(Options { alpha: f64::NAN, ..quick() }, "`alpha` must be between 0 and 0.5");
    check(Options { power: 1.0, ..quick() }, "`power` must be at least 0.5 and below 1");
    check(Options { resamples: 0, ..quick() }, "`resamples` must be from 100 to 1000000");
    let mut game = Sequential::new(Assume::Bounded);
    for difference in [f64::NAN, f64::INFINITY, 1e308] {
        assert_eq!(game.observe(difference), Err(ObserveError::NotANumber));
    }
    assert_eq!(ObserveError::NotANumber.to_string(), "a difference must be a number below 1e90");
    assert_eq!(ObserveError::OutOfBounds.to_string(), "a difference of pass rates must be from -1 to 1");
    assert_eq!(game.observe(1.5), Err(ObserveError::OutOfBounds));
    assert_eq!((game.len(), game.p()), (0, 1.0));
}

#[test]
fn little_data_is_no_evidence() {
    let kinds = [Metric::pass_rate(), Metric::latency(), Metric::new("score", Kind::Difference, Better::More)];
    for metric in kinds {
        for stopping in [Stopping::Fixed, Stopping::Anytime] {
            for cases in 0..5 {
                let experiment = of_pairs(metric.clone(), &vec![(0.0, 1.0); cases]);
                let comparison = compare(&experiment, &Options { stopping, ..quick() }).unwrap();
                let contrast = &comparison.contrasts[0];
                let expected = if cases == 0 { Finding::Unmeasured } else { Finding::Unclear };
                assert_eq!(contrast.verdict.finding, expected, "{contrast:?}");
                assert_eq!(contrast.test.map(|test| test.p <= 0.05), (cases > 0).then_some(false));
            }
        }
    }
}

#[test]
fn extreme_values_leave_numbers() {
    let values = [1e-300, 1e-5, 1.0, 1e5, 1e89];
    let pairs: Vec<(f64, f64)> = values.iter().flat_map(|&a| values.map(|b| (a, b))).collect();
    for kind in [Kind::Ratio, Kind::Difference] {
        for stopping in [Stopping::Fixed, Stopping::Anytime] {
            let experiment = of_pairs(Metric::new("x", kind, Better::More), &pairs);
            let comparison = compare(&experiment, &Options { stopping, ..quick() }).unwrap();
            let written = serde_json::to_string(&comparison).unwrap();
            assert!(comparison.contrasts[0].test.unwrap().p > 0.05, "{written}");
            assert!(!comparison.summaries[0].words.contains("NaN"), "{written}");
            assert_eq!(serde_json::from_str::<Comparison>(&written).unwrap(), comparison);
        }
    }
}

#[test]
fn outside_their_domain_functions_still_return() {
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
fn draws_are_those_of_the_generator_everywhere() {
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
fn order_and_names_do_not_matter() {
    let mut rng = Rng::new(5);
    let pairs: Vec<(f64, f64)> = (0..30).map(|_| (1.0 + rng.unit(), 1.1 + rng.unit())).collect();
    let experiment = of_pairs(Metric::latency(), &pairs);
    let expected = compare(&experiment, &quick()).unwrap();
    let mut reversed = experiment.clone();
    reversed.trials.reverse();
    assert_eq!(compare(&reversed, &quick()).unwrap(), expected);
    // One more arm changes nothing in what was drawn for the others.
    let mut more = experiment.clone();
    more.arms.push("c".to_owned());
    let with_more = compare(&more, &quick()).unwrap();
    assert_eq!(with_more.contrasts[0].effect, expected.contrasts[0].effect);
    assert_eq!(with_more.contrasts[1].verdict.finding, Finding::Unmeasured);
    // Another seed draws other cases, and comes to about the same.
    let other = compare(&experiment, &Options { seed: 1, ..quick() }).unwrap();
    assert_ne!(other.contrasts[0].effect, expected.contrasts[0].effect);
    assert_eq!(other.contrasts[0].verdict.finding, expected.contrasts[0].verdict.finding);
}

#[test]
fn swapping_the_arms_turns_the_result_around() {
    let mut rng = Rng::new(6);
    let pairs: Vec<(f64, f64)> = (0..25).map(|_| (1.0 + rng.unit(), 1.3 + rng.unit())).collect();
    let swapped: Vec<(f64, f64)> = pairs.iter().map(|&(a, b)| (b, a)).collect();
    let [one, other] = [pairs, swapped].map(|pairs| compare(&of_pairs(Metric::latency(), &pairs), &quick()).unwrap());
    let (one, other) = (&one.contrasts[0], &other.contrasts[0]);
    assert_eq!((one.verdict.finding, other.verdict.finding), (Finding::Worse, Finding::Better));
    assert_eq!(one.test.unwrap().p, other.test.unwrap().p);
    assert!((one.effect.unwrap().value * other.effect.unwrap().value - 1.0).abs() < 1e-12);
    assert_eq!(one.superiority.unwrap() + other.superiority.unwrap(), 1.0);
}

#[test]
fn very_many_cases_are_put_together() {
    let mut rng = Rng::new(7);
    let cases: Vec<Vec<(f64, f64)>> = (0..20_001)
        .map(|_| {
            let easy = 1.0 + rng.unit();
            vec![(easy, easy * (1.01 + 0.2 * (rng.unit() - 0.5)))]
        })
        .collect();
    let options = Options { resamples: 200, ..Options::default() };
    let comparison = compare(&of_repeats(Metric::latency(), &cases), &options).unwrap();
    let effect = comparison.contrasts[0].effect.unwrap();
    let logs: Vec<f64> = cases.iter().map(|case| (case[0].1 / case[0].0).ln()).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    assert!((effect.value - mean.exp()).abs() < 1e-12);
    // The interval is as wide as the spread of all cases makes it.
    let spread = (logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / logs.len() as f64).sqrt();
    let interval = effect.interval.unwrap();
    let expected = 2.0 * 1.96 * spread / (logs.len() as f64).sqrt();
    let width = interval.high.ln() - interval.low.ln();
    assert!((width / expected - 1.0).abs() < 0.2, "{width} {expected}");
}
