//! The comparison of arms, metric by metric.

use super::bootstrap::{conservative_interval, deviation, mean};
use super::conclude::{VerdictContext, summary, verdict};
use super::holm::strictest_level;
use super::paired::{MetricPairs, SortedTrials};
use super::plan::{Goal, VarianceComponents, cases_for_rate, cases_for_shift, detectable_rate, detectable_shift};
use super::pool::{group_means, group_sums};
use super::{
    Assumption, CompareError, CompareOptions, Comparison, Contrast, Direction, Estimate, Experiment, IntervalMethod,
    Metric, MetricKind, Pair, PairCounts, PairedOutcomes, PowerPlan, Rng, Sequential, Stopping, TestMethod, TestResult,
    gatekeep, mean_interval, sign_flip,
};
use libm::{exp, log1p};

/// The widest interval of a ratio that says anything: its upper bound is a hundred times the lower one.
const MAX_RATIO_RANGE: f64 = 100.0;

/// Compares each arm with the baseline, metric by metric. The first metric is the primary one, which is tested first: see
/// [`gatekeep`]. The result is deterministic.
///
/// The time is proportional to cases times resamples, for up to 2,000 cases. Beyond that, cases are first pooled into 2,000
/// random groups, which changes neither the level of the tests nor the coverage of the intervals.
pub fn compare(experiment: &Experiment, options: &CompareOptions) -> Result<Comparison, CompareError> {
    options.check()?;
    let sorted = SortedTrials::new(experiment)?;
    let metrics = &experiment.metrics;
    let others = || experiment.arms.iter().enumerate().skip(1);
    let arms = others().len();
    let primary_level = options.alpha / arms.max(1) as f64;
    let other_level = strictest_level(options.alpha, arms * metrics.len().saturating_sub(1));
    let mut contrasts = Vec::with_capacity(arms * metrics.len());
    for (arm, name) in others() {
        for (column, metric) in metrics.iter().enumerate() {
            let draws = Draws { options, path: [arm as u64, column as u64] };
            let level = if column == 0 { primary_level } else { other_level };
            contrasts.push(contrast(name, metric, &sorted.pair(arm, column), &draws, level));
        }
    }
    adjust(&mut contrasts, metrics.len());
    let baseline = experiment.arms.first().cloned().unwrap_or_default();
    let tests = contrasts.iter().filter(|contrast| contrast.test.is_some()).count();
    let context = VerdictContext { baseline: &baseline, options, tests };
    for contrast in &mut contrasts {
        contrast.verdict = verdict(contrast, context);
    }
    let contrasts_by_arm = contrasts.chunks(metrics.len().max(1));
    let summaries =
        others().zip(contrasts_by_arm).map(|((_, arm), contrasts)| summary(arm, contrasts, context)).collect();
    Ok(Comparison { baseline, options: options.clone(), contrasts, summaries })
}

/// Adjusts the p-values: those of the primary metric first, then the others. Each arm has a contrast per metric.
fn adjust(contrasts: &mut [Contrast], metrics: usize) {
    let is_primary = |index: usize| index.is_multiple_of(metrics.max(1));
    let ps = |primary: bool| -> Vec<f64> {
        let of_kind = contrasts.iter().enumerate().filter(|(index, _)| is_primary(*index) == primary);
        // What was not measured was not found to differ.
        of_kind.map(|(_, contrast)| contrast.test.map_or(1.0, |test| test.p)).collect()
    };
    let (primary, others) = gatekeep(&ps(true), &ps(false));
    let mut primary = primary.into_iter();
    let mut others = others.into_iter();
    for (index, contrast) in contrasts.iter_mut().enumerate() {
        let adjusted = if is_primary(index) { primary.next() } else { others.next() };
        if let (Some(test), Some(adjusted)) = (&mut contrast.test, adjusted) {
            test.adjusted = adjusted;
        }
    }
}

/// The source of a contrast's random draws. Each purpose has its own stream.
struct Draws<'o> {
    options: &'o CompareOptions,
    path: [u64; 2],
}

impl Draws<'_> {
    fn stream(&self, purpose: u64) -> Rng {
        let [arm, metric] = self.path;
        Rng::stream(self.options.seed, &[arm, metric, purpose])
    }
}

fn contrast(arm: &str, metric: &Metric, paired: &MetricPairs, draws: &Draws, level: f64) -> Contrast {
    let pairs = &paired.pairs;
    let options = draws.options;
    let kind = match metric.kind {
        // With interim looks, the first 0 would change the method halfway.
        MetricKind::Ratio if options.stopping == Stopping::Anytime => MetricKind::Difference,
        MetricKind::Ratio if pairs.iter().any(|pair| pair.baseline <= 0.0 || pair.arm <= 0.0) => MetricKind::Difference,
        kind => kind,
    };
    let differences = case_means(pairs, |pair| pair.difference(kind));
    let counts = counts(metric, paired, &differences);
    let mut contrast = Contrast::unmeasured(arm, metric, kind, counts);
    if pairs.is_empty() {
        return contrast;
    }
    let found = match options.stopping {
        Stopping::Anytime => compare_anytime(kind, &differences, options.alpha),
        Stopping::Fixed if kind == MetricKind::Pass => compare_pass_rates(pairs, &differences, draws),
        Stopping::Fixed => compare_means(&differences, draws),
    };
    let baseline_mean = mean(&case_means(pairs, |pair| pair.baseline));
    if kind != metric.kind {
        contrast.margin = metric.margin * baseline_mean.abs();
    }
    contrast.baseline_mean = Some(baseline_mean);
    contrast.arm_mean = Some(mean(&case_means(pairs, |pair| pair.arm)));
    contrast.test = Some(found.test);
    contrast.effect = Some(if kind == MetricKind::Ratio { ratio_estimate(found.estimate) } else { found.estimate });
    contrast.superiority = Some((counts.better as f64 + counts.same as f64 / 2.0) / counts.cases as f64);
    if kind != MetricKind::Pass {
        contrast.standardized = deviation(&differences).filter(|&sd| sd > 0.0).map(|sd| mean(&differences) / sd);
    }
    if options.stopping == Stopping::Fixed {
        contrast.plan = Some(plan(&contrast, pairs, &differences, Goal { alpha: level, power: options.power }));
        if kind == MetricKind::Ratio {
            contrast.difference = Some(estimate(&case_means(pairs, |pair| pair.arm - pair.baseline), draws, 2));
        }
    }
    contrast
}

/// A test and an estimate, on the scale of the differences.
struct TestAndEstimate {
    test: TestResult,
    estimate: Estimate,
}

/// Compares pass rates: exactly if there is one run per case, by the means per case if there are repeats.
fn compare_pass_rates(pairs: &[Pair], differences: &[f64], draws: &Draws) -> TestAndEstimate {
    let alpha = draws.options.alpha;
    if let Some(outcomes) = outcomes(pairs, differences) {
        let p = outcomes.p();
        return TestAndEstimate {
            test: TestResult { method: TestMethod::McNemar, p, adjusted: p },
            estimate: Estimate {
                value: outcomes.difference(),
                interval: outcomes.interval(alpha),
                method: Some(IntervalMethod::Score),
            },
        };
    }
    // The mean of a case is a multiple of the reciprocal of its number of repeats.
    let repeats = pairs.chunk_by(|one, other| one.case == other.case).map(<[Pair]>::len);
    let unit = repeats.reduce(common_multiple).map(|multiple| 1.0 / multiple as f64);
    let estimate = match conservative_interval(differences, alpha) {
        Some(interval) => {
            let method = Some(IntervalMethod::Conservative);
            Estimate { value: mean(differences), interval: Some(interval), method }
        }
        None => estimate(differences, draws, 1),
    };
    TestAndEstimate { test: flip(differences, unit, draws), estimate }
}

/// Compares measured values by the means per case.
fn compare_means(differences: &[f64], draws: &Draws) -> TestAndEstimate {
    TestAndEstimate { test: flip(differences, None, draws), estimate: estimate(differences, draws, 1) }
}

/// Compares in a way that is valid at any time.
fn compare_anytime(kind: MetricKind, differences: &[f64], alpha: f64) -> TestAndEstimate {
    let mut game = Sequential::new(if kind == MetricKind::Pass { Assumption::Bounded } else { Assumption::Symmetric });
    for &difference in differences {
        // This cannot fail: all values are finite, and means of zeros and ones are in bounds.
        let _ = game.observe(difference);
    }
    // Earlier evidence for the other side does not count for this one.
    let value = mean(differences);
    let p = if value < 0.0 { game.p_less() } else { game.p_more() };
    let interval = game.interval(alpha);
    let method = interval.map(|_| IntervalMethod::Anytime);
    TestAndEstimate {
        test: TestResult { method: TestMethod::Anytime, p, adjusted: p },
        estimate: Estimate { value, interval, method },
    }
}

fn flip(differences: &[f64], unit: Option<f64>, draws: &Draws) -> TestResult {
    let rng = &mut draws.stream(0);
    let flipped = sign_flip(&group_sums(differences, rng), unit, draws.options.resamples, rng);
    let method = if flipped.drawn.is_some() { TestMethod::SignFlipDrawn } else { TestMethod::SignFlip };
    TestResult { method, p: flipped.p, adjusted: flipped.p }
}

fn estimate(differences: &[f64], draws: &Draws, purpose: u64) -> Estimate {
    let rng = &mut draws.stream(purpose);
    let CompareOptions { alpha, resamples, .. } = *draws.options;
    let found = mean_interval(&group_means(differences, rng), alpha, resamples, rng);
    let (interval, method) = found.unzip();
    Estimate { value: mean(differences), interval, method }
}

/// Returns the estimate of a ratio from that of its logarithm. A range so wide that it says nothing is left out.
fn ratio_estimate(estimate: Estimate) -> Estimate {
    let estimate = estimate.map(ratio);
    match estimate.interval {
        Some(interval) if interval.high > interval.low * MAX_RATIO_RANGE => {
            Estimate { interval: None, method: None, ..estimate }
        }
        _ => estimate,
    }
}

/// Plans for the margin, at the strictest level that may apply to the test, so the power is at least the requested one.
fn plan(contrast: &Contrast, pairs: &[Pair], differences: &[f64], goal: Goal) -> PowerPlan {
    let margin = contrast.margin;
    let cases = contrast.counts.cases;
    if let Some(outcomes) = outcomes(pairs, differences).filter(|_| contrast.kind == MetricKind::Pass) {
        // Adding half a case on either side accounts for rare differences that did not occur among a few cases.
        let discordance = (outcomes.discordant() as f64 + 0.5) / (cases as f64 + 1.0);
        let detectable = detectable_rate(cases, discordance, goal);
        return PowerPlan { detectable, cases: cases_for_rate(margin, discordance, goal), correlation: None };
    }
    let variance = VarianceComponents::estimate(pairs, |pair| pair.difference(contrast.kind));
    let varies = deviation(differences).is_some_and(|sd| sd > 0.0);
    let case_deviation = |variance: VarianceComponents| variance.deviation(pairs.len() as f64 / cases as f64);
    let deviation = variance.filter(|_| varies).map_or(0.0, case_deviation);
    let (shift, back): (f64, fn(f64) -> f64) = match contrast.kind {
        MetricKind::Ratio => (log1p(margin), |shift| ratio(shift) - 1.0),
        MetricKind::Pass | MetricKind::Difference => (margin, |shift| shift),
    };
    PowerPlan {
        detectable: detectable_shift(cases, deviation, goal).map(back),
        cases: cases_for_shift(shift, deviation, goal),
        correlation: variance.and_then(|variance| variance.correlation()),
    }
}

/// Returns the outcomes of cases, if each has one run.
fn outcomes(pairs: &[Pair], differences: &[f64]) -> Option<PairedOutcomes> {
    let count = |sign: f64| differences.iter().filter(|&&difference| difference == sign).count();
    let outcomes = PairedOutcomes { cases: differences.len(), only_baseline: count(-1.0), only_arm: count(1.0) };
    (pairs.len() == differences.len()).then_some(outcomes)
}

fn counts(metric: &Metric, paired: &MetricPairs, differences: &[f64]) -> PairCounts {
    let count = |test: fn(&f64) -> bool| differences.iter().filter(|difference| test(difference)).count();
    let more = count(|difference| *difference > 0.0);
    let less = count(|difference| *difference < 0.0);
    let (better, worse) = match metric.better {
        Direction::More => (more, less),
        Direction::Less => (less, more),
    };
    PairCounts {
        cases: differences.len(),
        pairs: paired.pairs.len(),
        incomplete: paired.incomplete,
        better,
        same: differences.len() - more - less,
        worse,
    }
}

/// Returns the mean value of each case.
fn case_means(pairs: &[Pair], value: impl Fn(&Pair) -> f64) -> Vec<f64> {
    let cases = pairs.chunk_by(|one, other| one.case == other.case);
    cases.map(|case| case.iter().map(&value).sum::<f64>() / case.len() as f64).collect()
}

/// Returns the ratio with a logarithm, clamped to finite numbers.
fn ratio(logarithm: f64) -> f64 {
    exp(logarithm.clamp(-700.0, 700.0))
}

/// Returns the least common multiple, or `usize::MAX` on overflow.
pub(crate) fn common_multiple(one: usize, other: usize) -> usize {
    let mut divisor = one;
    let mut rest = other;
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (one / divisor).saturating_mul(other)
}
