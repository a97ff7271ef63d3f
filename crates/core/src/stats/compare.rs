//! The comparison of arms, metric by metric.

use super::bootstrap::{careful_interval, deviation, mean};
use super::paired::{Paired, Tried};
use super::plan::{Goal, Spread, cases_for_rate, cases_for_shift, detectable_rate, detectable_shift};
use super::pool::{group_means, group_sums};
use super::verdict::{Setting, summary, verdict};
use super::{
    Assume, Better, CompareError, Comparison, Contrast, Counts, Estimate, Experiment, IntervalMethod, Kind, Metric,
    Options, Outcomes, Pair, Plan, Rng, Sequential, Stopping, Test, TestMethod, holm, mean_interval, sign_flip,
};
use libm::{exp, log1p};

/// Compares each arm with the baseline, metric by metric. The same experiment and options always give the same result.
///
/// It takes time in proportion to the cases times the resamples, for up to 2,000 cases; with more, cases are first put
/// together into 2,000 groups by lot, which changes neither the level of the tests nor the coverage of intervals.
pub fn compare(experiment: &Experiment, options: &Options) -> Result<Comparison, CompareError> {
    options.check()?;
    let tried = Tried::new(experiment)?;
    let metrics = &experiment.metrics;
    let others = || experiment.arms.iter().enumerate().skip(1);
    let family = others().len() * metrics.len();
    let mut contrasts = Vec::with_capacity(family);
    for (arm, name) in others() {
        for (place, metric) in metrics.iter().enumerate() {
            let draws = Draws { options, path: [arm as u64, place as u64] };
            contrasts.push(contrast(name, metric, &tried.pair(arm, place, metric), &draws, family));
        }
    }
    let ps: Vec<f64> = contrasts.iter().filter_map(|contrast| contrast.test).map(|test| test.p).collect();
    let tests = contrasts.iter_mut().filter_map(|contrast| contrast.test.as_mut());
    for (test, adjusted) in tests.zip(holm(&ps)) {
        test.adjusted = adjusted;
    }
    let baseline = experiment.arms.first().cloned().unwrap_or_default();
    let setting = Setting { baseline: &baseline, options, family };
    for contrast in &mut contrasts {
        contrast.verdict = verdict(contrast, setting);
    }
    let of_arms = contrasts.chunks(metrics.len().max(1));
    let summaries = others().zip(of_arms).map(|((_, arm), contrasts)| summary(arm, contrasts, setting)).collect();
    Ok(Comparison { baseline, options: options.clone(), contrasts, summaries })
}

/// Where the draws of a contrast come from. Each purpose has a stream of its own.
struct Draws<'o> {
    options: &'o Options,
    path: [u64; 2],
}

impl Draws<'_> {
    fn stream(&self, purpose: u64) -> Rng {
        let [arm, metric] = self.path;
        Rng::stream(self.options.seed, &[arm, metric, purpose])
    }
}

fn contrast(arm: &str, metric: &Metric, paired: &Paired, draws: &Draws, family: usize) -> Contrast {
    let pairs = &paired.pairs;
    let kind = match metric.kind {
        Kind::Ratio if pairs.iter().any(|pair| pair.baseline <= 0.0 || pair.arm <= 0.0) => Kind::Difference,
        kind => kind,
    };
    let differences = case_means(pairs, |pair| kind.difference(pair));
    let counts = counts(metric, paired, &differences);
    let mut contrast = Contrast::unmeasured(arm, metric, kind, counts);
    if pairs.is_empty() {
        return contrast;
    }
    let options = draws.options;
    let found = match options.stopping {
        Stopping::Anytime => at_any_time(kind, &differences, options.alpha),
        Stopping::Fixed if kind == Kind::Pass => passed(pairs, &differences, draws),
        Stopping::Fixed => measured(&differences, draws),
    };
    let baseline_mean = mean(&case_means(pairs, |pair| pair.baseline));
    if kind != metric.kind {
        contrast.margin = metric.margin * baseline_mean.abs();
    }
    contrast.baseline_mean = Some(baseline_mean);
    contrast.arm_mean = Some(mean(&case_means(pairs, |pair| pair.arm)));
    contrast.test = Some(found.test);
    contrast.effect = Some(if kind == Kind::Ratio { found.estimate.map(ratio) } else { found.estimate });
    contrast.superiority = Some((counts.better as f64 + counts.same as f64 / 2.0) / counts.cases as f64);
    if kind != Kind::Pass {
        contrast.standardized = deviation(&differences).filter(|&sd| sd > 0.0).map(|sd| mean(&differences) / sd);
    }
    if options.stopping == Stopping::Fixed {
        contrast.plan = Some(plan(&contrast, pairs, &differences, options, family));
        if kind == Kind::Ratio {
            contrast.difference = Some(estimate(&case_means(pairs, |pair| pair.arm - pair.baseline), draws, 2));
        }
    }
    contrast
}

/// A test and an estimate, on the scale of the differences.
struct Found {
    test: Test,
    estimate: Estimate,
}

/// Compares pass rates: exactly, with one run of each case; with repeats by the cases' means.
fn passed(pairs: &[Pair], differences: &[f64], draws: &Draws) -> Found {
    let alpha = draws.options.alpha;
    if let Some(outcomes) = outcomes(pairs, differences) {
        let p = outcomes.p();
        let (interval, method) = (outcomes.interval(alpha), Some(IntervalMethod::Score));
        return Found {
            test: Test { method: TestMethod::McNemar, p, adjusted: p },
            estimate: Estimate { value: outcomes.difference(), interval, method },
        };
    }
    // The mean of a case is a multiple of one over the number of its repeats.
    let repeats = pairs.chunk_by(|one, other| one.case == other.case).map(<[Pair]>::len);
    let unit = repeats.reduce(common_multiple).map(|multiple| 1.0 / multiple as f64);
    let estimate = match careful_interval(differences, alpha) {
        Some(interval) => {
            let method = Some(IntervalMethod::Careful);
            Estimate { value: mean(differences), interval: Some(interval), method }
        }
        None => estimate(differences, draws, 1),
    };
    Found { test: flip(differences, unit, draws), estimate }
}

/// Compares what is measured, by the cases' means.
fn measured(differences: &[f64], draws: &Draws) -> Found {
    Found { test: flip(differences, None, draws), estimate: estimate(differences, draws, 1) }
}

/// Compares in a way that holds whenever one looks.
fn at_any_time(kind: Kind, differences: &[f64], alpha: f64) -> Found {
    let mut game = Sequential::new(if kind == Kind::Pass { Assume::Bounded } else { Assume::Symmetric });
    for &difference in differences {
        // It takes everything: all values are finite, and means of zeros and ones are in bounds.
        let _ = game.observe(difference);
    }
    // What once spoke for the other side is no evidence for this one.
    let value = mean(differences);
    let p = if value < 0.0 { game.p_less() } else { game.p_more() };
    let interval = game.interval(alpha);
    let method = interval.map(|_| IntervalMethod::Anytime);
    Found { test: Test { method: TestMethod::Anytime, p, adjusted: p }, estimate: Estimate { value, interval, method } }
}

fn flip(differences: &[f64], unit: Option<f64>, draws: &Draws) -> Test {
    let rng = &mut draws.stream(0);
    let flipped = sign_flip(&group_sums(differences, rng), unit, draws.options.resamples, rng);
    let method = if flipped.drawn.is_some() { TestMethod::SignFlipDrawn } else { TestMethod::SignFlip };
    Test { method, p: flipped.p, adjusted: flipped.p }
}

fn estimate(differences: &[f64], draws: &Draws, purpose: u64) -> Estimate {
    let rng = &mut draws.stream(purpose);
    let Options { alpha, resamples, .. } = *draws.options;
    let found = mean_interval(&group_means(differences, rng), alpha, resamples, rng);
    let (interval, method) = found.unzip();
    Estimate { value: mean(differences), interval, method }
}

/// Plans for the margin. The level is that of the strictest step of Holm's method, so the power is at least the one
/// asked for.
fn plan(contrast: &Contrast, pairs: &[Pair], differences: &[f64], options: &Options, family: usize) -> Plan {
    let goal = Goal { alpha: options.alpha / family as f64, power: options.power };
    let margin = contrast.margin;
    let cases = contrast.counts.cases;
    if let Some(outcomes) = outcomes(pairs, differences).filter(|_| contrast.kind == Kind::Pass) {
        // Half a case more on either side: that none differed among a few cases does not mean that none ever will.
        let discordance = (outcomes.discordant() as f64 + 0.5) / (cases as f64 + 1.0);
        let detectable = detectable_rate(cases, discordance, goal);
        return Plan { detectable, cases: cases_for_rate(margin, discordance, goal), correlation: None };
    }
    let spread = Spread::of(pairs, |pair| contrast.kind.difference(pair));
    let varies = deviation(differences).is_some_and(|sd| sd > 0.0);
    let of_case = |spread: Spread| spread.deviation(pairs.len() as f64 / cases as f64);
    let deviation = spread.filter(|_| varies).map_or(0.0, of_case);
    let (shift, back): (f64, fn(f64) -> f64) = match contrast.kind {
        Kind::Ratio => (log1p(margin), |shift| ratio(shift) - 1.0),
        Kind::Pass | Kind::Difference => (margin, |shift| shift),
    };
    Plan {
        detectable: detectable_shift(cases, deviation, goal).map(back),
        cases: cases_for_shift(shift, deviation, goal),
        correlation: spread.and_then(|spread| spread.correlation()),
    }
}

/// Returns how cases came out that have one run each.
fn outcomes(pairs: &[Pair], differences: &[f64]) -> Option<Outcomes> {
    let count = |sign: f64| differences.iter().filter(|&&difference| difference == sign).count();
    let outcomes = Outcomes { cases: differences.len(), only_baseline: count(-1.0), only_arm: count(1.0) };
    (pairs.len() == differences.len()).then_some(outcomes)
}

fn counts(metric: &Metric, paired: &Paired, differences: &[f64]) -> Counts {
    let count = |test: fn(&f64) -> bool| differences.iter().filter(|difference| test(difference)).count();
    let (more, less) = (count(|difference| *difference > 0.0), count(|difference| *difference < 0.0));
    let (better, worse) = match metric.better {
        Better::More => (more, less),
        Better::Less => (less, more),
    };
    Counts {
        cases: differences.len(),
        pairs: paired.pairs.len(),
        incomplete: paired.incomplete,
        failed: paired.failed,
        better,
        same: differences.len() - more - less,
        worse,
    }
}

/// Returns the mean of each case.
fn case_means(pairs: &[Pair], value: impl Fn(&Pair) -> f64) -> Vec<f64> {
    let cases = pairs.chunk_by(|one, other| one.case == other.case);
    cases.map(|case| case.iter().map(&value).sum::<f64>() / case.len() as f64).collect()
}

/// Returns the ratio that has a logarithm, as far as numbers go.
fn ratio(logarithm: f64) -> f64 {
    exp(logarithm.clamp(-700.0, 700.0))
}

/// Returns the least common multiple, or a number that is too large to be of use.
fn common_multiple(one: usize, other: usize) -> usize {
    let (mut divisor, mut rest) = (one, other);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (one / divisor).saturating_mul(other)
}
