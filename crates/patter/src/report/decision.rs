//! What to do, given a comparison: keep the baseline, switch to an arm, or wait for more evidence.

use patter_core::stats::{Comparison, Conclusion, Contrast, MetricKind, Relevance};
use std::cmp::Ordering;

/// What the comparison of an arm with the baseline suggests. The pass rate comes first; other metrics decide only if the
/// pass rates are known to be practically equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Advice {
    /// The arm is better, and not worse in any metric by an amount that matters.
    Switch,
    /// The arm is more correct, but worse in other metrics.
    AtAPrice,
    /// The baseline is better.
    Keep,
    /// Both are practically equal in every metric.
    Tie,
    /// The arm is better in some metrics and worse in others, and equally correct.
    TradeOff,
    /// There is not enough evidence about the pass rate.
    Unclear,
    /// The pass rate was not measured in any pair.
    Unmeasured,
}

/// The comparison of an arm with the baseline.
pub(super) struct ArmDecision<'c> {
    pub(super) arm: &'c str,
    pub(super) contrasts: Vec<&'c Contrast>,
    pub(super) advice: Advice,
}

impl<'c> ArmDecision<'c> {
    fn new(comparison: &'c Comparison, arm: &'c str) -> Self {
        let contrasts: Vec<&Contrast> = comparison.contrasts.iter().filter(|contrast| contrast.arm == arm).collect();
        let advice = advise(&contrasts);
        Self { arm, contrasts, advice }
    }

    /// Returns the contrast of the pass rate.
    pub(super) fn pass(&self) -> Option<&'c Contrast> {
        self.contrasts.iter().find(|contrast| contrast.kind == MetricKind::Pass).copied()
    }

    /// Iterates over the metrics with a given conclusion.
    fn with_conclusion(&self, conclusion: Conclusion) -> impl Iterator<Item = &'c Contrast> {
        self.contrasts.iter().copied().filter(move |contrast| contrast.verdict.conclusion == conclusion)
    }

    /// Explains the advice in sentences with names in backticks.
    pub(super) fn explain(&self, baseline: &str) -> String {
        let arm = self.arm;
        let claims = |conclusion| self.with_conclusion(conclusion).map(claim).collect::<Vec<_>>();
        let better = claims(Conclusion::Better);
        let worse = claims(Conclusion::Worse);
        let mut findings = Vec::new();
        if let Some(first) = join(if self.advice == Advice::Keep { &worse } else { &better }) {
            findings.push(first);
        }
        if let Some(second) = join(if self.advice == Advice::Keep { &better } else { &worse }) {
            findings.push(second);
        }
        let findings = findings.join(", but ");
        match self.advice {
            Advice::Tie => format!("`{arm}` and `{baseline}` are practically equal in every metric."),
            Advice::Unmeasured => self.open_question(),
            Advice::Unclear if self.is_equally_correct() => {
                format!("`{arm}` is as correct as `{baseline}`; whether it differs in other metrics is not clear.")
            }
            Advice::Unclear if findings.is_empty() => self.open_question(),
            Advice::Unclear => format!("`{arm}` {findings}. {}", self.open_question()),
            Advice::Switch | Advice::AtAPrice | Advice::Keep | Advice::TradeOff if self.is_equally_correct() => {
                format!("`{arm}` is as correct as `{baseline}`: it {findings}.")
            }
            Advice::Switch | Advice::AtAPrice | Advice::Keep | Advice::TradeOff => format!("`{arm}` {findings}."),
        }
    }

    /// Says what is not known about the pass rate.
    fn open_question(&self) -> String {
        self.pass().map(|pass| sentence(&pass.verdict.text)).unwrap_or_default()
    }

    fn is_equally_correct(&self) -> bool {
        self.pass().is_some_and(|pass| {
            pass.verdict.conclusion == Conclusion::Unclear && pass.verdict.relevance == Relevance::Negligible
        })
    }
}

/// Returns the decision on each arm, in order.
pub(super) fn decisions(comparison: &Comparison) -> Vec<ArmDecision<'_>> {
    comparison.summaries.iter().map(|summary| ArmDecision::new(comparison, &summary.arm)).collect()
}

/// Returns the arm to prefer to the baseline: of those with nearly the highest pass rate, the one that is worse in the
/// fewest metrics.
pub(super) fn preferred<'d, 'c>(decisions: &'d [ArmDecision<'c>]) -> Option<&'d ArmDecision<'c>> {
    let rate = |decision: &ArmDecision| decision.pass().and_then(|pass| pass.arm_mean).unwrap_or(0.0);
    let margin = |decision: &ArmDecision| decision.pass().map(|pass| pass.margin).unwrap_or(0.0);
    let losses = |decision: &ArmDecision| decision.with_conclusion(Conclusion::Worse).count();
    let candidates =
        || decisions.iter().filter(|decision| matches!(decision.advice, Advice::Switch | Advice::AtAPrice));
    let highest = candidates().map(rate).fold(0.0, f64::max);
    let near = candidates().filter(|decision| rate(decision) >= highest - margin(decision));
    // The first of several that are equal.
    near.reduce(|best, next| match losses(best).cmp(&losses(next)).then(rate(next).total_cmp(&rate(best))) {
        Ordering::Greater => next,
        Ordering::Equal | Ordering::Less => best,
    })
}

/// Returns whether a metric is the same in every case.
pub(super) fn is_identical(contrast: &Contrast) -> bool {
    contrast.effect.is_some() && contrast.counts.same == contrast.counts.cases
}

fn advise(contrasts: &[&Contrast]) -> Advice {
    let Some(pass) = contrasts.iter().find(|contrast| contrast.kind == MetricKind::Pass) else {
        return Advice::Unmeasured;
    };
    let has = |conclusion| contrasts.iter().any(|contrast| contrast.verdict.conclusion == conclusion);
    let is_price = |contrast: &&Contrast| {
        contrast.verdict.conclusion == Conclusion::Worse && contrast.verdict.relevance != Relevance::Negligible
    };
    match (pass.verdict.conclusion, pass.verdict.relevance) {
        (Conclusion::Better, _) if contrasts.iter().any(is_price) => Advice::AtAPrice,
        (Conclusion::Better, _) => Advice::Switch,
        (Conclusion::Worse, _) => Advice::Keep,
        (Conclusion::Unmeasured, _) => Advice::Unmeasured,
        (Conclusion::Unclear, Relevance::Relevant | Relevance::Unknown) => Advice::Unclear,
        (Conclusion::Unclear, Relevance::Negligible) => match (has(Conclusion::Better), has(Conclusion::Worse)) {
            (true, true) => Advice::TradeOff,
            (true, false) => Advice::Switch,
            (false, true) => Advice::Keep,
            (false, false) if contrasts.iter().all(|contrast| is_equal(contrast)) => Advice::Tie,
            (false, false) => Advice::Unclear,
        },
    }
}

fn is_equal(contrast: &Contrast) -> bool {
    contrast.verdict.relevance == Relevance::Negligible || is_identical(contrast)
}

/// Returns the claim about an arm, without its subject.
fn claim(contrast: &Contrast) -> String {
    match &contrast.verdict.predicate {
        Some(predicate) => predicate.clone(),
        // Reports of earlier versions have only whole sentences.
        None => contrast.verdict.text.trim_start_matches(&format!("`{}` ", contrast.arm)).to_owned(),
    }
}

/// Joins claims to a list: `a, b and c`.
fn join(claims: &[String]) -> Option<String> {
    match claims.split_last()? {
        (last, []) => Some(last.clone()),
        (last, rest) => Some(format!("{} and {last}", rest.join(", "))),
    }
}

/// Turns a phrase into a sentence.
fn sentence(phrase: &str) -> String {
    let mut characters = phrase.chars();
    let first: String = characters.next().map(|first| first.to_uppercase().collect()).unwrap_or_default();
    format!("{first}{}.", characters.as_str())
}
