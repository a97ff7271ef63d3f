//! Whole experiments, simulated: error rates, power, stopping and coverage, for a table and within bounds.
//!
//! `cargo test -p patter-core --test it -- --ignored --nocapture simulation_table` prints the table, of 200 experiments each or
//! as many as `PATTER_SIMULATIONS` says; it takes minutes. A few experiments of each kind run as a test, with fixed seeds and generous bounds.
//!
//! Runs have a pass rate that depends on the case, and latency, tokens, cost and turns that depend on each other, on the case
//! and on whether the run passed. They are compared exactly as those of `patter ab`.

use super::normals;
use patter_core::experiment::{
    ArmInfo, BlockOrder, CaseInfo, Plan, ReportKind, Trial, compare_arms, is_conclusive, leading_blocks,
};
use patter_core::message::conversation::Usage;
use patter_core::provider::price::Cost;
use patter_core::stats::{CompareOptions, Comparison, Conclusion, MetricKind, Rng, Stopping};

/// A kind of experiment.
#[derive(Clone, Copy)]
struct Scenario {
    name: &'static str,
    cases: usize,
    repeats: u32,
    arms: usize,
    /// The difference between the pass rates of the last arm and the first.
    effect: f64,
    /// By how much the last arm is slower and uses more tokens.
    factor: f64,
    /// How many times as long a failed run of the last arm takes.
    slow_failures: f64,
    /// How many runs at a time; with it, the experiment may stop early.
    concurrency: Option<usize>,
}

const BASE: Scenario = Scenario {
    name: "",
    cases: 40,
    repeats: 1,
    arms: 2,
    effect: 0.0,
    factor: 1.0,
    slow_failures: 1.0,
    concurrency: None,
};

const SCENARIOS: [Scenario; 14] = [
    Scenario { name: "null, 40 cases", ..BASE },
    Scenario { name: "null, 200 cases", cases: 200, ..BASE },
    Scenario { name: "null, 40 cases × 5 repeats", repeats: 5, ..BASE },
    Scenario { name: "null, 3 arms", arms: 3, ..BASE },
    Scenario { name: "null, slow failures", slow_failures: 25.0, ..BASE },
    Scenario { name: "+25 points, 40 cases", effect: 0.25, ..BASE },
    Scenario { name: "+25 points, 40 cases × 5 repeats", effect: 0.25, repeats: 5, ..BASE },
    Scenario { name: "+25 points in one of 3 arms", effect: 0.25, arms: 3, ..BASE },
    Scenario { name: "equal pass rates, 30% slower", factor: 1.3, ..BASE },
    Scenario { name: "+25 points and 30% slower", effect: 0.25, factor: 1.3, ..BASE },
    Scenario { name: "stop early: null", cases: 200, concurrency: Some(4), ..BASE },
    Scenario {
        name: "stop early: null, slow failures",
        cases: 200,
        concurrency: Some(32),
        slow_failures: 25.0,
        ..BASE
    },
    Scenario { name: "stop early: +25 points", cases: 200, concurrency: Some(4), effect: 0.25, ..BASE },
    Scenario {
        name: "stop early: null, 3 arms × 3 repeats",
        cases: 100,
        repeats: 3,
        arms: 3,
        concurrency: Some(4),
        ..BASE
    },
];

/// How often something happened in the experiments of a scenario.
#[derive(Debug, Default)]
struct Tally {
    experiments: usize,
    /// A difference of pass rates was claimed for the last arm, and for any arm.
    pass: usize,
    any_pass: usize,
    /// A difference of another metric was claimed for any arm.
    any_other: usize,
    /// Any difference was claimed.
    any: usize,
    /// The interval of the pass rate of the last arm covers the true difference.
    covered: usize,
    /// It was claimed that the last arm is worse in latency.
    slower: usize,
    stopped: usize,
    used_cases: usize,
}

impl Scenario {
    fn simulate(&self, experiments: usize, seed: u64) -> Tally {
        let mut tally = Tally { experiments, ..Tally::default() };
        for experiment in 0..experiments as u64 {
            self.add(&mut tally, &mut Rng::stream(seed, &[experiment]));
        }
        tally
    }

    fn add(&self, tally: &mut Tally, rng: &mut Rng) {
        let names: Vec<String> = (0..self.arms).map(|arm| format!("arm {arm}")).collect();
        let stopping = if self.concurrency.is_some() { Stopping::Anytime } else { Stopping::Fixed };
        let options = CompareOptions { resamples: 999, seed: rng.next_u64(), stopping, ..CompareOptions::default() };
        let trials = self.run(&names, &options, rng);
        let planned = self.cases * self.arms * self.repeats as usize;
        tally.stopped += usize::from(trials.len() < planned);
        tally.used_cases += trials.len() / self.arms / self.repeats as usize;
        let comparison = compare_arms(&names, &trials, &options).unwrap();
        let claims = |is_pass: Option<bool>| {
            comparison.contrasts.iter().any(|contrast| {
                let is_claimed = matches!(contrast.verdict.conclusion, Conclusion::Better | Conclusion::Worse);
                is_claimed && is_pass.is_none_or(|is_pass| (contrast.kind == MetricKind::Pass) == is_pass)
            })
        };
        tally.any += usize::from(claims(None));
        tally.any_pass += usize::from(claims(Some(true)));
        tally.any_other += usize::from(claims(Some(false)));
        let last = |metric: &str| {
            let is_last = |arm: &str| Some(arm) == names.last().map(String::as_str);
            let found = comparison.contrasts.iter().find(|one| is_last(&one.arm) && one.metric.name == metric);
            found.unwrap()
        };
        let pass = last("pass rate");
        tally.pass += usize::from(pass.verdict.conclusion == Conclusion::Better);
        tally.covered +=
            usize::from(pass.effect.unwrap().interval.is_some_and(|interval| interval.contains(self.effect)));
        tally.slower += usize::from(last("latency").verdict.conclusion == Conclusion::Worse);
    }

    /// Runs the experiment, in simulated time if it may stop early.
    fn run(&self, names: &[String], options: &CompareOptions, rng: &mut Rng) -> Vec<Trial> {
        let arm = |name: &String| ArmInfo { name: name.clone(), ..ArmInfo::default() };
        let case = |id: usize| CaseInfo { id: id.to_string(), ..CaseInfo::default() };
        let plan = Plan {
            arms: names.iter().map(arm).collect(),
            cases: (0..self.cases).map(case).collect(),
            repeats: self.repeats,
            seed: rng.next_u64(),
            blocks: if self.concurrency.is_some() { BlockOrder::ByCase } else { BlockOrder::Mixed },
            ..Plan::new("simulation", ReportKind::Ab)
        };
        // How hard and how long a case is.
        let cases: Vec<(f64, f64)> = (0..self.cases)
            .map(|_| (0.3 + 0.3 * (rng.unit() - 0.5), (normals(rng).next().unwrap() * 0.5).exp()))
            .collect();
        let trials: Vec<Trial> = plan
            .planned_trials()
            .into_iter()
            .map(|planned| {
                let (rate, size) = cases[planned.case];
                let is_last = planned.arm + 1 == self.arms;
                let passed = rng.unit() < if is_last { rate + self.effect } else { rate };
                let noise = (normals(rng).next().unwrap() * 0.25).exp();
                let slow = if is_last && !passed { self.slow_failures } else { 1.0 };
                let factor = if is_last { self.factor } else { 1.0 };
                let tokens = (1_000.0 * size * noise * factor).round();
                Trial {
                    arm: names[planned.arm].clone(),
                    case: planned.case.to_string(),
                    repeat: planned.repeat,
                    order: planned.order,
                    passed,
                    latency_ms: (tokens * slow * (0.8 + 0.4 * rng.unit())).max(1.0) as u64,
                    usage: Usage { input_tokens: tokens as u64, output_tokens: tokens as u64 / 4, ..Usage::default() },
                    cost: Some(Cost::from_picodollars(tokens as u128 * 1_000_000)),
                    model_calls: 1 + (rng.unit() * 3.0) as u32,
                    ..Trial::default()
                }
            })
            .collect();
        match self.concurrency {
            None => trials,
            Some(concurrency) => self.stop_early(names, options, trials, concurrency),
        }
    }

    /// Starts trials in their order, several at a time, and looks at the leading blocks whenever some have ended.
    fn stop_early(
        &self,
        names: &[String],
        options: &CompareOptions,
        trials: Vec<Trial>,
        concurrency: usize,
    ) -> Vec<Trial> {
        let total = trials.len();
        let mut waiting = trials.into_iter();
        let mut running: Vec<(u64, Trial)> =
            waiting.by_ref().take(concurrency).map(|trial| (trial.latency_ms, trial)).collect();
        let mut done: Vec<Trial> = Vec::new();
        let mut looked_at = 0;
        let mut is_enough = false;
        while let Some(next) = (0..running.len()).min_by_key(|&index| (running[index].0, running[index].1.order)) {
            let (now, ended) = running.swap_remove(next);
            done.push(ended);
            if !is_enough {
                running.extend(waiting.next().map(|trial| (now + trial.latency_ms, trial)));
            }
            if is_enough || done.len() < looked_at + total / 20 {
                continue;
            }
            looked_at = done.len();
            // Only the pass rate decides; without values, the other metrics are not compared.
            let brief: Vec<Trial> = done.iter().map(pass_only).collect();
            let leading = leading_blocks(&brief, self.arms, self.repeats, BlockOrder::ByCase);
            is_enough =
                compare_arms(names, leading, options).is_ok_and(|compared: Comparison| is_conclusive(&compared));
        }
        done.sort_by_key(|trial| trial.order);
        done
    }
}

fn pass_only(trial: &Trial) -> Trial {
    Trial { latency_ms: 0, usage: Usage::default(), cost: None, model_calls: 0, ..trial.clone() }
}

impl Tally {
    fn share(&self, count: usize) -> f64 {
        count as f64 / self.experiments as f64
    }
}

#[test]
#[ignore = "takes minutes"]
fn simulation_table() {
    let experiments = std::env::var("PATTER_SIMULATIONS").ok().and_then(|number| number.parse().ok()).unwrap_or(200);
    println!("{experiments} experiments each; level 5%; shares in percent\n");
    println!(
        "| scenario | pass rate found | false: pass | false: others | false: any | slower found | covered | stopped | cases used |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (scenario, seed) in SCENARIOS.iter().zip(100..) {
        let tally = scenario.simulate(experiments, seed);
        let percent = |count: usize| format!("{:.1}", 100.0 * tally.share(count));
        // With slow failures, latency differs indeed.
        let is_null = scenario.effect == 0.0;
        let no_others = scenario.factor == 1.0 && scenario.slow_failures == 1.0;
        let only_if = |applies: bool, count: usize| if applies { percent(count) } else { "–".to_owned() };
        println!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {:.0} of {} |",
            scenario.name,
            only_if(!is_null, tally.pass),
            only_if(is_null, tally.any_pass),
            only_if(no_others, tally.any_other),
            only_if(is_null && no_others, tally.any),
            only_if(!no_others, tally.slower),
            percent(tally.covered),
            only_if(scenario.concurrency.is_some(), tally.stopped),
            tally.used_cases as f64 / experiments as f64,
            scenario.cases,
        );
    }
}

/// The bounds are far from what the table shows, so that only a real change exceeds them.
#[test]
fn simulated_experiments_keep_their_promises() {
    let scenario = |name: &str| SCENARIOS.into_iter().find(|scenario| scenario.name == name).unwrap();
    let null = Scenario { cases: 25, ..scenario("null, 40 cases") }.simulate(30, 1);
    assert!(null.any <= 6 && null.covered >= 24, "{null:?}");
    let repeats = Scenario { cases: 12, ..scenario("null, 40 cases × 5 repeats") }.simulate(15, 2);
    assert!(repeats.any <= 5 && repeats.covered >= 10, "{repeats:?}");
    let arms = Scenario { cases: 15, ..scenario("null, 3 arms") }.simulate(15, 3);
    assert!(arms.any <= 5, "{arms:?}");
    // Holm's correction for all metrics found a third.
    let effect = scenario("+25 points, 40 cases").simulate(30, 4);
    assert!(effect.pass >= 13, "{effect:?}");
    let slower = scenario("equal pass rates, 30% slower").simulate(10, 5);
    assert!(slower.slower >= 6, "{slower:?}");
    // Looking only at what had ended stopped 178 of 200 of these.
    let slow = Scenario { cases: 60, ..scenario("stop early: null, slow failures") }.simulate(8, 6);
    assert!(slow.any_pass <= 2 && slow.stopped <= 2, "{slow:?}");
    let early = Scenario { cases: 60, effect: 0.5, ..scenario("stop early: +25 points") }.simulate(8, 7);
    assert!(early.pass >= 6 && early.stopped >= 5, "{early:?}");
}
