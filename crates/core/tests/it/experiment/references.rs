//! Numbers of SciPy and statsmodels, made by `reference.py`.

use patter_core::stats::plan::{Goal, Spread, cases_for_shift, detectable_shift, power_of_rate, power_of_shift};
use patter_core::stats::{
    Assume, Interval, Outcomes, Pair, Rng, Sequential, acceleration, bca, bootstrap_means, careful_interval,
    distribution, holm, mean_interval, sign_flip,
};
use serde_json::Value as Json;

/// Calls a check for each row of a section.
fn for_each(section: &str, check: impl Fn(&Json)) {
    let all: Json = serde_json::from_str(include_str!("reference.json")).unwrap();
    let rows = all.pointer(section).unwrap().as_array().unwrap();
    assert!(!rows.is_empty());
    rows.iter().for_each(check);
}

#[track_caller]
fn close(found: f64, expected: &Json, tolerance: f64) {
    let expected = expected.as_f64().unwrap();
    assert!((found - expected).abs() <= tolerance * expected.abs(), "{found} is not {expected}");
}

#[track_caller]
fn close_interval(found: Interval, expected: &Json, tolerance: f64) {
    for (found, expected) in [(found.low, &expected[0]), (found.high, &expected[1])] {
        let expected = expected.as_f64().unwrap();
        assert!((found - expected).abs() <= tolerance, "{found} is not {expected}");
    }
}

fn numbers(json: &Json) -> Vec<f64> {
    json.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

fn count(json: &Json) -> usize {
    json.as_u64().unwrap() as usize
}

#[test]
fn distributions() {
    for_each("/distributions", |row| {
        let at = numbers(&row[1]);
        let (found, tolerance) = match row[0].as_str().unwrap() {
            "normal" => (distribution::normal(at[0]), 1e-12),
            "normal_quantile" => (distribution::normal_quantile(at[0]), 1e-12),
            "beta" => (distribution::beta(at[0], at[1], at[2]), 1e-10),
            "binomial_at_least" => (distribution::binomial_at_least(at[0] as usize, at[1] as usize, at[2]), 1e-10),
            "student" => (distribution::student(at[0], at[1]), 1e-11),
            "student_quantile" => (distribution::student_quantile(at[0], at[1]), 1e-10),
            "noncentral_student_above" => (distribution::noncentral_student_above(at[0], at[1], at[2]), 1e-8),
            name => panic!("{name}"),
        };
        close(found, &row[2], tolerance);
    });
}

#[test]
fn paired_proportions() {
    for_each("/proportions", |row| {
        let [cases, only_baseline, only_arm] = numbers(&row["outcomes"])[..] else { panic!() };
        let outcomes =
            Outcomes { cases: cases as usize, only_baseline: only_baseline as usize, only_arm: only_arm as usize };
        close(outcomes.p(), &row["p"], 1e-10);
        close(outcomes.mid_p(), &row["mid_p"], 1e-10);
        close_interval(outcomes.interval(0.05).unwrap(), &row["score_95"], 1e-9);
        close_interval(outcomes.interval(0.01).unwrap(), &row["score_99"], 1e-9);
    });
}

#[test]
fn flipped_signs() {
    for_each("/sign_flips", |row| {
        let values = numbers(&row["values"]);
        let found = sign_flip(&values, row["unit"].as_f64(), 20_000, &mut Rng::new(1));
        match found.drawn {
            None => close(found.p, &row["p"], 1e-10),
            // Drawn signs come as near as so many draws can: within five standard errors.
            Some(drawn) => {
                let p = row["p"].as_f64().unwrap();
                assert!((found.p - p).abs() < 5.0 * (p * (1.0 - p) / drawn as f64).sqrt(), "{} {p}", found.p);
            }
        }
    });
}

#[test]
fn bootstraps() {
    for_each("/bootstraps", |row| {
        let values = numbers(&row["values"]);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        close(acceleration(&values), &row["acceleration"], 1e-9);
        let z = distribution::normal_quantile(0.95);
        let fixed = bca(&numbers(&row["replicates"]), mean, acceleration(&values), z).unwrap();
        close_interval(fixed, &row["bca_90"], 1e-9);
        let means = bootstrap_means(&values, 20_000, &mut Rng::new(3));
        let z = distribution::normal_quantile(0.975);
        let drawn = bca(&means, mean, acceleration(&values), z).unwrap();
        // A quantile in the tail of so many draws has an error of about 0.02 standard errors; whole numbers have means
        // in steps.
        let steps = 1.01 / values.len() as f64;
        close_interval(drawn, &row["drawn_95"], steps.max(0.1 * row["standard_error"].as_f64().unwrap()));
        // What is used is a little wider, as Student's interval is.
        let (used, _) = mean_interval(&values, 0.05, 20_000, &mut Rng::new(3)).unwrap();
        assert!(used.low < drawn.low && drawn.high < used.high);
    });
}

#[test]
fn few_cases() {
    for_each("/bootstraps", |row| {
        let values = numbers(&row["values"]);
        let (few, _) = mean_interval(&values[..8], 0.05, 999, &mut Rng::new(1)).unwrap();
        close_interval(few, &row["student_of_8_95"], 1e-9);
    });
    for_each("/careful", |row| {
        let [cases, below, above] = [0, 1, 2].map(|place| count(&row["counts"][place]));
        let mut values = vec![0.0; cases - below - above];
        values.extend(vec![-0.25; below]);
        values.extend(vec![0.5; above]);
        close_interval(careful_interval(&values, 0.05).unwrap(), &row["interval"], 1e-9);
    });
}

#[test]
fn adjusted_p_values() {
    for_each("/holm", |row| {
        let found = holm(&numbers(&row["ps"]));
        for (found, expected) in found.iter().zip(row["adjusted"].as_array().unwrap()) {
            close(*found, expected, 1e-12);
        }
    });
}

#[test]
fn spread_between_and_within_cases() {
    for_each("/spreads", |row| {
        let cases = row["cases"].as_array().unwrap().iter().map(count);
        let pairs: Vec<Pair> =
            cases.zip(numbers(&row["values"])).map(|(case, arm)| Pair { case, baseline: 0.0, arm }).collect();
        let found = Spread::of(&pairs, |pair| pair.arm).unwrap();
        close(found.between, &row["between"], 1e-10);
        match found.within {
            Some(within) => close(within, &row["within"], 1e-10),
            None => assert!(row["within"].is_null()),
        }
    });
}

#[test]
fn plans() {
    for_each("/plans/shifts", |row| {
        let (shift, cases, alpha) =
            (row["shift"].as_f64().unwrap(), count(&row["cases"]), row["alpha"].as_f64().unwrap());
        let power = power_of_shift(cases, shift * 3.0, 3.0, alpha);
        close(power, &row["power"], 1e-8);
        let back = detectable_shift(cases, 3.0, Goal { alpha, power }).unwrap();
        assert!((back / (shift * 3.0) - 1.0).abs() < 1e-4, "{back}");
    });
    for_each("/plans/needed", |row| {
        let goal = Goal { alpha: row["alpha"].as_f64().unwrap(), power: row["power"].as_f64().unwrap() };
        assert_eq!(cases_for_shift(row["shift"].as_f64().unwrap(), 1.0, goal), Some(count(&row["cases"])));
    });
    for_each("/plans/rates", |row| {
        let at = |name: &str| row[name].as_f64().unwrap();
        let found = power_of_rate(count(&row["cases"]), at("difference"), at("discordance"), at("alpha"));
        close(found, &row["power"], 1e-9);
    });
}

#[test]
fn games() {
    for_each("/sequences", |row| {
        let mut game = Sequential::new(if row["assume"] == "bounded" { Assume::Bounded } else { Assume::Symmetric });
        for (value, p) in numbers(&row["values"]).into_iter().zip(row["p"].as_array().unwrap()) {
            game.observe(value).unwrap();
            close(game.p(), p, 1e-10);
        }
        close_interval(game.interval(0.1).unwrap(), &row["interval_90"], 1e-9);
    });
}
