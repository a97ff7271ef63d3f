//! Derivation of verdicts from contrasts.
//!
//! A difference is claimed only if its p-value, adjusted for other metrics and arms, is at most the level. A result without
//! evidence is never called "no difference": that requires the whole interval to be within the margin.

use super::wording::{DOLLARS, amount, factors, range, signed_range};
use super::{
    ArmStatistics, CompareOptions, Conclusion, Contrast, Direction, Interval, Metric, MetricKind, MetricVerdict,
    PairCounts, Relevance, VerdictNote,
};

/// From this ratio on, an increase is stated as a factor, because percentages that large are hard to read.
const MULTIPLE: f64 = 3.0;

/// The context of a contrast: the baseline, the options, and the number of tests of the comparison.
#[derive(Clone, Copy)]
pub(super) struct VerdictContext<'e> {
    pub(super) baseline: &'e str,
    pub(super) options: &'e CompareOptions,
    pub(super) tests: usize,
}

/// Returns the verdict on a contrast.
pub(super) fn verdict(contrast: &Contrast, context: VerdictContext) -> MetricVerdict {
    let conclusion = conclude(contrast, context.options.alpha);
    let relevance = relevance(contrast);
    let predicate = matches!(conclusion, Conclusion::Better | Conclusion::Worse).then(|| claim(contrast, relevance));
    let mut verdict =
        MetricVerdict { conclusion, relevance, text: String::new(), predicate, notes: notes(contrast.counts) };
    verdict.text = describe(contrast, &verdict, &format!("`{}`", contrast.arm), context);
    verdict
}

/// Returns the verdicts on an arm as one sentence: first differences, then practically equal metrics, then unclear ones.
pub(super) fn summary(arm: &str, contrasts: &[Contrast], context: VerdictContext) -> ArmStatistics {
    let mut ordered: Vec<&Contrast> = contrasts.iter().collect();
    ordered.sort_by_key(|contrast| match (contrast.verdict.conclusion, contrast.verdict.relevance) {
        (Conclusion::Better | Conclusion::Worse, _) => 0,
        (Conclusion::Unclear, Relevance::Negligible) => 1,
        (Conclusion::Unclear, _) => 2,
        (Conclusion::Unmeasured, _) => 3,
    });
    let name = format!("`{arm}`");
    let clauses = ordered.iter().enumerate().map(|(index, contrast)| {
        let subject = if index == 0 { &name } else { "it" };
        describe(contrast, &contrast.verdict, subject, context)
    });
    ArmStatistics { arm: arm.to_owned(), text: clauses.collect::<Vec<_>>().join("; ") }
}

fn conclude(contrast: &Contrast, alpha: f64) -> Conclusion {
    let (Some(effect), Some(test)) = (contrast.effect, contrast.test) else { return Conclusion::Unmeasured };
    let null = contrast.kind.null_effect();
    if test.adjusted > alpha || effect.value == null {
        return Conclusion::Unclear;
    }
    match (effect.value > null, contrast.metric.better) {
        (true, Direction::More) | (false, Direction::Less) => Conclusion::Better,
        (true, Direction::Less) | (false, Direction::More) => Conclusion::Worse,
    }
}

fn relevance(contrast: &Contrast) -> Relevance {
    let Some(Interval { low, high }) = contrast.effect.and_then(|effect| effect.interval) else {
        return Relevance::Unknown;
    };
    let margin = contrast.margin;
    let (min, max) = match contrast.kind {
        MetricKind::Ratio => (1.0 / (1.0 + margin), 1.0 + margin),
        MetricKind::Pass | MetricKind::Difference => (-margin, margin),
    };
    if min < low && high < max {
        Relevance::Negligible
    } else if high < min || max < low {
        Relevance::Relevant
    } else {
        Relevance::Unknown
    }
}

fn notes(counts: PairCounts) -> Vec<VerdictNote> {
    let missing = (counts.incomplete > 0).then_some(VerdictNote::MissingValues { pairs: counts.incomplete });
    missing.into_iter().collect()
}

/// Describes a verdict in words, with its notes in brackets.
fn describe(contrast: &Contrast, verdict: &MetricVerdict, subject: &str, context: VerdictContext) -> String {
    let mut text = match (&verdict.predicate, verdict.conclusion) {
        (Some(predicate), _) => format!("{subject} {predicate}"),
        (None, Conclusion::Unmeasured) => format!("{}: not measured in any pair", contrast.metric.name),
        (None, _) => no_claim(contrast, verdict.relevance, subject, context),
    };
    for note in &verdict.notes {
        text.push_str(&format!(" ({note})"));
    }
    text
}

/// States the difference and its size.
fn claim(contrast: &Contrast, relevance: Relevance) -> String {
    let Contrast { kind, metric, .. } = contrast;
    let Some(effect) = contrast.effect else { return String::new() };
    let phrase = direction_phrase(contrast);
    let size = amount(kind.display_value(effect.value).abs(), *kind, unit(metric));
    let mut text = match effect.interval {
        Some(interval) if !interval.contains(kind.null_effect()) => {
            let low = kind.display_value(interval.low).abs();
            let high = kind.display_value(interval.high).abs();
            match kind {
                MetricKind::Ratio if interval.low >= MULTIPLE => {
                    format!("{phrase} by a factor of {}", factors(interval.low, interval.high))
                }
                _ => format!("{phrase} by {}", range(low.min(high), low.max(high), *kind, unit(metric))),
            }
        }
        Some(interval) => format!("{phrase} by an uncertain amount ({})", format_interval(contrast, interval)),
        None if contrast.standardized.is_none() && contrast.counts.cases > 1 => {
            format!("{phrase} by {size} in every case")
        }
        None => format!("{phrase} by about {size}"),
    };
    if relevance == Relevance::Negligible {
        text.push_str(&format!(" (below the margin of {})", format_margin(contrast)));
    }
    text
}

/// States that no difference was found, and what that means.
fn no_claim(contrast: &Contrast, relevance: Relevance, subject: &str, context: VerdictContext) -> String {
    let Contrast { kind, metric, counts, .. } = contrast;
    let (Some(effect), Some(test)) = (contrast.effect, contrast.test) else { return String::new() };
    let VerdictContext { baseline, options, tests } = context;
    let name = &metric.name;
    let margin = format_margin(contrast);
    let interval = effect.interval.map(|interval| format_interval(contrast, interval));
    let cases = if counts.cases == 1 { "the only case".to_owned() } else { format!("all {} cases", counts.cases) };
    let is_identical = counts.same == counts.cases;
    let is_negligible = relevance == Relevance::Negligible;
    let is_suggestive =
        test.p <= options.alpha || effect.interval.is_some_and(|interval| !interval.contains(kind.null_effect()));
    let mut text = match (is_identical, is_negligible) {
        (true, true) => format!("{name}: identical in {cases}, so the difference from `{baseline}` is below {margin}"),
        (false, true) => format!("{name}: the difference from `{baseline}` is below {margin}"),
        (true, false) => format!("{name}: identical in {cases}"),
        (false, false) if is_suggestive => {
            format!("{name}: not enough evidence that {subject} {}", direction_phrase(contrast))
        }
        // Without an interval, nothing says what "no evidence" leaves possible.
        (false, false) if effect.interval.is_none() => format!("{name}: too few cases for a conclusion"),
        (false, false) => format!("{name}: no evidence of a difference"),
    };
    if test.p <= options.alpha && !is_negligible {
        text.push_str(&format!(" after correcting for {tests} tests"));
    }
    let missing = contrast.plan.and_then(|plan| plan.cases?.checked_sub(counts.cases));
    let plan = missing.filter(|&missing| missing > 0 && !is_negligible).map(|missing| {
        let cases = if missing == 1 { "case" } else { "cases" };
        let power = amount(options.power * 100.0, MetricKind::Ratio, "");
        format!("{missing} more {cases} would detect a difference of {margin} with {power} power")
    });
    let details: Vec<_> = interval.into_iter().chain(plan).collect();
    if !details.is_empty() {
        text.push_str(&format!(" ({})", details.join("; ")));
    }
    text
}

/// Returns the unit of a metric. That of costs is written before the number.
fn unit(metric: &Metric) -> &str {
    if metric.name == "cost" { DOLLARS } else { &metric.unit }
}

/// Returns the phrase for the direction of the effect, such as "is slower".
fn direction_phrase(contrast: &Contrast) -> &str {
    let is_more = contrast.effect.is_some_and(|effect| effect.value > contrast.kind.null_effect());
    if is_more { &contrast.metric.more } else { &contrast.metric.less }
}

fn format_margin(contrast: &Contrast) -> String {
    let Contrast { kind, metric, .. } = contrast;
    let effect = if *kind == MetricKind::Ratio { 1.0 + contrast.margin } else { contrast.margin };
    amount(kind.display_value(effect), *kind, unit(metric))
}

fn format_interval(contrast: &Contrast, interval: Interval) -> String {
    let kind = contrast.kind;
    let low = kind.display_value(interval.low);
    let high = kind.display_value(interval.high);
    signed_range(low, high, kind, unit(&contrast.metric))
}
