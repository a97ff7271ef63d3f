//! What is to be said of a comparison, in words.
//!
//! A difference is claimed only where its p-value, adjusted for all metrics and arms, is within the level. That nothing
//! was found is never called "no difference": that is said only where the whole interval lies within the margin.

use super::wording::{amount, either, range, signed_range};
use super::{Better, Contrast, Counts, Interval, Kind, Options, Summary};
use serde::{Deserialize, Serialize};

/// What is to be said of one metric of an arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// What was found.
    pub finding: Finding,
    /// Whether it matters.
    pub matters: Matters,
    /// The same in words, without a full stop.
    pub words: String,
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// The arm does better.
    Better,
    /// The arm does worse.
    Worse,
    /// There is no evidence of a difference. That does not mean that there is none.
    Unclear,
    /// There are no pairs.
    Unmeasured,
}

/// Whether a difference is as large as the margin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Matters {
    /// The whole interval is within the margin: the arms are as good as equal.
    No,
    /// The whole interval is beyond the margin.
    Yes,
    /// The data do not tell.
    Unknown,
}

/// Where a contrast stands: what it is compared with, how, and as one of how many tests.
#[derive(Clone, Copy)]
pub(super) struct Setting<'e> {
    pub(super) baseline: &'e str,
    pub(super) options: &'e Options,
    pub(super) family: usize,
}

/// Returns what is to be said of a contrast.
pub(super) fn verdict(contrast: &Contrast, setting: Setting) -> Verdict {
    let finding = finding(contrast, setting.options.alpha);
    let matters = matters(contrast);
    let words = clause(contrast, finding, matters, &format!("`{}`", contrast.arm), setting);
    Verdict { finding, matters, words }
}

/// Returns the verdicts on an arm as one sentence: first what was found, then what is as good as equal, then what is
/// unclear.
pub(super) fn summary(arm: &str, contrasts: &[Contrast], setting: Setting) -> Summary {
    let mut ordered: Vec<&Contrast> = contrasts.iter().collect();
    ordered.sort_by_key(|contrast| match (contrast.verdict.finding, contrast.verdict.matters) {
        (Finding::Better | Finding::Worse, _) => 0,
        (Finding::Unclear, Matters::No) => 1,
        (Finding::Unclear, _) => 2,
        (Finding::Unmeasured, _) => 3,
    });
    let named = format!("`{arm}`");
    let clauses = ordered.iter().enumerate().map(|(place, contrast)| {
        let subject = if place == 0 { &named } else { "it" };
        clause(contrast, contrast.verdict.finding, contrast.verdict.matters, subject, setting)
    });
    Summary { arm: arm.to_owned(), words: clauses.collect::<Vec<_>>().join("; ") }
}

fn finding(contrast: &Contrast, alpha: f64) -> Finding {
    let (Some(effect), Some(test)) = (contrast.effect, contrast.test) else { return Finding::Unmeasured };
    let none = contrast.kind.no_effect();
    if test.adjusted > alpha || effect.value == none {
        return Finding::Unclear;
    }
    match (effect.value > none, contrast.metric.better) {
        (true, Better::More) | (false, Better::Less) => Finding::Better,
        (true, Better::Less) | (false, Better::More) => Finding::Worse,
    }
}

fn matters(contrast: &Contrast) -> Matters {
    let Some(Interval { low, high }) = contrast.effect.and_then(|effect| effect.interval) else {
        return Matters::Unknown;
    };
    let margin = contrast.margin;
    let (least, most) = match contrast.kind {
        Kind::Ratio => (1.0 / (1.0 + margin), 1.0 + margin),
        Kind::Pass | Kind::Difference => (-margin, margin),
    };
    if least < low && high < most {
        Matters::No
    } else if high < least || most < low {
        Matters::Yes
    } else {
        Matters::Unknown
    }
}

fn clause(contrast: &Contrast, finding: Finding, matters: Matters, subject: &str, setting: Setting) -> String {
    let mut words = match finding {
        Finding::Better | Finding::Worse => claim(contrast, matters, subject),
        Finding::Unclear => no_claim(contrast, matters, subject, setting),
        Finding::Unmeasured => format!("{} was not measured in any pair", contrast.metric.name),
    };
    let Counts { incomplete, failed, .. } = contrast.counts;
    for (count, one, many) in [
        (incomplete, "pair without both values is left out", "pairs without both values are left out"),
        (
            failed,
            "pair has a failed run, which counts as not passed",
            "pairs have failed runs, which count as not passed",
        ),
    ] {
        if count > 0 {
            words.push_str(&format!(" ({count} {})", if count == 1 { one } else { many }));
        }
    }
    words
}

/// Says that there is a difference, and how large it is.
fn claim(contrast: &Contrast, matters: Matters, subject: &str) -> String {
    let Contrast { kind, metric, .. } = contrast;
    let Some(effect) = contrast.effect else { return String::new() };
    let says = direction(contrast);
    let size = amount(kind.shown(effect.value).abs(), *kind, &metric.unit);
    let mut words = match effect.interval {
        Some(interval) if !interval.contains(kind.no_effect()) => {
            let (one, other) = (kind.shown(interval.low).abs(), kind.shown(interval.high).abs());
            format!("{subject} {says} by {}", range(one.min(other), one.max(other), *kind, &metric.unit))
        }
        Some(interval) => format!("{subject} {says}, but by how much is not clear: {}", signed(contrast, interval)),
        None if contrast.standardized.is_none() && contrast.counts.cases > 1 => {
            format!("{subject} {says} by {size} in every case")
        }
        None => format!("{subject} {says} by about {size}"),
    };
    if matters == Matters::No {
        words.push_str(&format!(", less than the {} that would matter", margin(contrast)));
    }
    words
}

/// Says that no difference was found, and what that means.
fn no_claim(contrast: &Contrast, matters: Matters, subject: &str, setting: Setting) -> String {
    let Contrast { kind, metric, counts, .. } = contrast;
    let (Some(effect), Some(test)) = (contrast.effect, contrast.test) else { return String::new() };
    let Setting { baseline, options, family } = setting;
    let interval = effect.interval.map(|interval| format!(" ({})", signed(contrast, interval))).unwrap_or_default();
    let hint = test.p <= options.alpha || effect.interval.is_some_and(|interval| !interval.contains(kind.no_effect()));
    let mut words = match (matters, hint) {
        (Matters::No, _) => {
            format!("{subject} and `{baseline}` differ in {} by less than {}{interval}", metric.name, margin(contrast))
        }
        (_, true) => format!("not enough evidence that {subject} {}{interval}", direction(contrast)),
        (_, false) => format!("no evidence that {subject} {}{interval}", either(&metric.more, &metric.less)),
    };
    if test.p <= options.alpha && matters != Matters::No {
        words.push_str(&format!(", with {family} tests at once"));
    }
    if counts.same == counts.cases {
        let cases = if counts.cases == 1 { "the only case" } else { &format!("all {} cases", counts.cases) };
        words.push_str(&format!(", being the same in {cases}"));
    }
    if matters == Matters::No {
        return words;
    }
    let more = contrast.plan.and_then(|plan| plan.cases?.checked_sub(counts.cases)).filter(|&more| more > 0);
    if let Some(more) = more {
        let cases = if more == 1 { "case" } else { "cases" };
        let (margin, power) = (margin(contrast), amount(options.power * 100.0, Kind::Ratio, ""));
        words.push_str(&format!("; {more} more {cases} would show a difference of {margin} ({power} power)"));
    }
    words
}

/// Returns what can be said of the arm, as the effect has it.
fn direction(contrast: &Contrast) -> &str {
    let more = contrast.effect.is_some_and(|effect| effect.value > contrast.kind.no_effect());
    if more { &contrast.metric.more } else { &contrast.metric.less }
}

fn margin(contrast: &Contrast) -> String {
    let Contrast { kind, metric, .. } = contrast;
    let effect = if *kind == Kind::Ratio { 1.0 + contrast.margin } else { contrast.margin };
    amount(kind.shown(effect), *kind, &metric.unit)
}

fn signed(contrast: &Contrast, interval: Interval) -> String {
    let kind = contrast.kind;
    signed_range(kind.shown(interval.low), kind.shown(interval.high), kind, &contrast.metric.unit)
}
