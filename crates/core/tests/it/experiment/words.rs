//! What verdicts say.

use super::{of_pairs, quick};
use patter_core::stats::{Better, Experiment, Kind, Metric, Options, Stopping, Trial, compare};

#[track_caller]
fn check(metric: Metric, pairs: &[(f64, f64)], expected: &str) {
    let comparison = compare(&of_pairs(metric, pairs), &quick()).unwrap();
    assert_eq!(comparison.contrasts[0].verdict.words, expected);
    assert_eq!(comparison.summaries[0].words, expected);
}

/// Returns so many cases that neither passes, that only one passes, that both pass.
fn passes(neither: usize, only_a: usize, only_b: usize, both: usize) -> Vec<(f64, f64)> {
    let of = |count, pair| std::iter::repeat_n(pair, count);
    of(neither, (0.0, 0.0))
        .chain(of(only_a, (1.0, 0.0)))
        .chain(of(only_b, (0.0, 1.0)))
        .chain(of(both, (1.0, 1.0)))
        .collect()
}

/// Returns cases whose values under `b` are that many times those under `a`, give or take.
fn times(cases: u32, factor: f64, spread: f64) -> Vec<(f64, f64)> {
    let off = |case: u32| f64::from(case * 37 % 101) / 100.0 - 0.5;
    (0..cases)
        .map(|case| f64::from(case % 7 + 1))
        .zip(0..)
        .map(|(a, case)| (a, a * factor * (spread * off(case)).exp()))
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
        "no evidence that `b` is more or less correct (−9.4 to +18 points); 626 more cases would show a difference \
         of 5 points (80 % power)",
    );
    check(
        pass(),
        &passes(300, 8, 5, 700),
        "`b` and `a` differ in pass rate by less than 5 points (−1.1 to +0.46 points)",
    );
    check(
        pass().margin(0.2),
        &passes(300, 20, 60, 700),
        "`b` is more correct by 2.1–5.4 points, less than the 20 points that would matter",
    );
    check(
        pass(),
        &passes(10, 0, 0, 10),
        "no evidence that `b` is more or less correct (−16 to +16 points), being the same in all 20 cases; 137 more \
         cases would show a difference of 5 points (80 % power)",
    );
    check(
        pass(),
        &passes(12, 7, 1, 1),
        "not enough evidence that `b` is less correct (−52 to −2.6 points); 1227 more cases would show a difference \
         of 5 points (80 % power)",
    );
    check(
        pass(),
        &passes(0, 0, 0, 1),
        "no evidence that `b` is more or less correct (−79 to +79 points), being the same in the only case; 816 \
         more cases would show a difference of 5 points (80 % power)",
    );
    check(pass(), &[], "pass rate was not measured in any pair");
}

#[test]
fn measurements() {
    let latency = Metric::latency;
    check(latency(), &times(60, 1.15, 0.3), "`b` is slower by 12–17 %");
    check(latency(), &times(60, 0.5, 0.3), "`b` is faster by 49–51 %");
    check(latency(), &times(60, 1.02, 0.5), "`b` and `a` differ in latency by less than 10 % (−2.3 to +5.6 %)");
    check(latency(), &times(60, 1.02, 0.05), "`b` is slower by 1.6–2.4 %, less than the 10 % that would matter");
    check(latency(), &times(60, 1.0, 0.05), "`b` and `a` differ in latency by less than 10 % (−0.43 to +0.34 %)");
    check(latency(), &[(2.0, 3.0); 20], "`b` is slower by 50 % in every case");
    check(latency(), &[(2.0, 2.0); 20], "no evidence that `b` is slower or faster, being the same in all 20 cases");
    let score = || Metric::new("score", Kind::Difference, Better::More);
    check(score(), &times(60, 1.5, 0.3), "`b` is higher in score by 1.7–2.3");
    check(score(), &times(60, 1.0, 3.0), "`b` is higher in score by 0.38–2.9");
    check(
        Metric::tokens(),
        &times(40, 1.0, 3.0),
        "no evidence that `b` uses more or fewer tokens (−26 to +34 %); 656 more cases would show a difference of \
         10 % (80 % power)",
    );
    check(
        Metric::cost(),
        &times(40, 1.0, 3.0),
        "no evidence that `b` costs more or less (−26 to +34 %); 656 more cases would show a difference of 10 % (80 \
         % power)",
    );
    check(
        Metric::turns(),
        &times(12, 1.0, 0.8),
        "no evidence that `b` takes more or fewer turns (−18 to +13 %); 47 more cases would show a difference of 10 \
         % (80 % power)",
    );
    check(
        Metric::turns(),
        &[(0.0, 1.0), (2.0, 3.0), (1.0, 0.0)],
        "no evidence that `b` takes more or fewer turns (−2.5 to +3.2 turns); 1046 more cases would show a \
         difference of 0.1 turns (80 % power)",
    );
}

#[test]
fn a_difference_whose_size_is_unknown() {
    // All nine cases have more under `b`, which is no accident; one of them has so much more that the mean may be
    // anything.
    let pairs: Vec<(f64, f64)> = (1..9).map(|case| (0.0, f64::from(case))).chain([(0.0, 300.0)]).collect();
    let score = Metric::new("score", Kind::Difference, Better::More);
    check(score, &pairs, "`b` is higher in score, but by how much is not clear: −38 to +113");
    let always = Metric::pass_rate();
    check(always, &passes(0, 0, 12, 0), "`b` is more correct by 52–100 points");
}

#[test]
fn several_metrics_are_one_sentence() {
    let (passes, times) = (passes(20, 14, 18, 100), times(152, 1.15, 0.5));
    let mut trials = Vec::new();
    for (case, (passed, time)) in passes.iter().zip(&times).enumerate() {
        let tokens = if case == 3 { None } else { Some(100.0 + case as f64) };
        trials.push(Trial { arm: 0, case, repeat: 0, values: vec![Some(passed.0), Some(time.0), tokens] });
        trials.push(Trial { arm: 1, case, repeat: 0, values: vec![Some(passed.1), Some(time.1), tokens] });
    }
    let arms = vec!["a".to_owned(), "b".to_owned()];
    let metrics = vec![Metric::pass_rate().margin(0.1), Metric::latency(), Metric::tokens()];
    let experiment = Experiment { arms, metrics, trials };
    let words = |options: &Options| compare(&experiment, options).unwrap().summaries.remove(0).words;
    assert_eq!(
        words(&quick()),
        "`b` is slower by 12–18 %; no evidence that it is more or less correct (−4.8 to +10 points); 77 more cases \
         would show a difference of 10 points (80 % power); no evidence that it uses more or fewer tokens, being \
         the same in all 151 cases (1 pair without both values is left out)"
    );
    assert_eq!(
        words(&Options { stopping: Stopping::Anytime, ..quick() }),
        "`b` is slower by 11–19 %; no evidence that it is more or less correct (−9 to +14 points); no evidence that \
         it uses more or fewer tokens, being the same in all 151 cases (1 pair without both values is left out)"
    );
}

#[test]
fn what_is_lost_by_looking_at_several_metrics_is_told() {
    let mut trials = Vec::new();
    for (case, (a, b)) in times(30, 1.065, 0.4).into_iter().enumerate() {
        for (arm, value) in [a, b].into_iter().enumerate() {
            let values = vec![Some(value), Some(1.0), Some(1.0), Some(1.0)];
            trials.push(Trial { arm, case, repeat: 0, values });
        }
    }
    let metrics = vec![Metric::latency().margin(0.02), Metric::tokens(), Metric::cost(), Metric::turns()];
    let experiment = Experiment { arms: vec!["a".to_owned(), "b".to_owned()], metrics, trials };
    assert_eq!(
        compare(&experiment, &quick()).unwrap().contrasts[0].verdict.words,
        "not enough evidence that `b` is slower (+0.67 to +10 %), with 4 tests at once; 372 more cases would show a \
         difference of 2 % (80 % power)"
    );
}
