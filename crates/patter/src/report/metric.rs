//! Metrics: the difference of each arm from the baseline, and each arm by itself.

use super::html::{Html, html, prose};
use super::number::{count, digits, dollars, duration, effect, p_value, percent, several, shown, value};
use super::summary::finding;
use super::svg;
use super::view::View;
use crate::experiment::{Summary, summary};
use patter_core::stats::{Comparison, Contrast, Estimate, Interval, Kind};

/// Returns what differs, metric by metric; nothing where nothing was compared.
pub(super) fn contrasts(view: &View) -> Html {
    let Some(comparison) = &view.report.comparison else { return Html::default() };
    let several_arms = comparison.summaries.len() > 1;
    let arms = comparison.summaries.iter().map(|summary| {
        let heading = match several_arms {
            true => html!("<h3>{} <i>against {}</i></h3>", summary.arm, comparison.baseline),
            false => Html::default(),
        };
        let own = comparison.contrasts.iter().filter(|contrast| contrast.arm == summary.arm);
        html!("{}{}", heading, own.map(|contrast| metric(comparison, contrast, several_arms)).collect::<Html>())
    });
    html!(
        "<section id=\"metrics\" aria-labelledby=\"metrics-h\"><h2 id=\"metrics-h\">Differences</h2>\
         <p class=\"aside\">The dot is what was seen, the line where the truth is with {} confidence. In the shaded band differences are too \
         small to matter.</p>{}</section>",
        percent(1.0 - comparison.options.alpha),
        arms.collect::<Html>()
    )
}

fn metric(comparison: &Comparison, contrast: &Contrast, is_below: bool) -> Html {
    let metric = &contrast.metric;
    let name = if is_below { html!("<h4>{}</h4>", metric.name) } else { html!("<h3>{}</h3>", metric.name) };
    let interval = contrast.effect.and_then(|effect| effect.interval).map(|interval| ends(contrast, interval));
    let label = match (contrast.effect, &interval) {
        (Some(seen), Some(interval)) => format!("{}: {}, {interval}", metric.name, effect(contrast, seen.value)),
        (Some(seen), None) => format!("{}: {}", metric.name, effect(contrast, seen.value)),
        (None, _) => String::new(),
    };
    let drawing = if contrast.effect.is_some() {
        html!(
            "<figure>{}<figcaption><span>← {}</span><span>{} →</span></figcaption></figure>",
            svg::interval(contrast, &label),
            metric.less,
            metric.more
        )
    } else {
        Html::default()
    };
    let facts = facts(comparison, contrast, interval);
    let facts = facts.into_iter().map(|(name, fact)| html!("<div><dt>{}</dt><dd>{}</dd></div>", name, prose(&fact)));
    html!(
        "<article class=\"metric\"><div class=\"says\">{}<p>{}</p><p>{}</p></div>{}<dl>{}</dl></article>",
        name,
        finding(contrast),
        prose(&contrast.verdict.words),
        drawing,
        facts.collect::<Html>()
    )
}

/// Returns what is known of a metric, as names and values.
fn facts(comparison: &Comparison, contrast: &Contrast, interval: Option<String>) -> Vec<(String, String)> {
    let mut facts: Vec<(String, String)> = Vec::new();
    let mut tell = |name: &str, fact: Option<String>| facts.extend(fact.map(|fact| (name.to_owned(), fact)));
    let mean = |mean: Option<f64>| mean.map(|mean| value(contrast, mean));
    tell(&comparison.baseline, mean(contrast.baseline_mean));
    tell(&contrast.arm, mean(contrast.arm_mean));
    let interval = interval.map(|interval| format!(" ({interval})")).unwrap_or_default();
    tell("difference", contrast.effect.map(|seen| format!("{}{interval}", effect(contrast, seen.value))));
    tell("p, adjusted", contrast.test.map(|test| format!("{} (alone {})", p_value(test.adjusted), p_value(test.p))));
    tell("effect size", size(contrast));
    tell("of the means", contrast.difference.map(|difference| of_means(contrast, difference)));
    tell("to see more", plan(comparison, contrast));
    facts
}

/// Returns how large the effect is beside how cases vary.
fn size(contrast: &Contrast) -> Option<String> {
    let counts = contrast.counts;
    contrast.effect?;
    let cases = format!(
        "better in {}, the same in {}, worse in {} of {}",
        counts.better,
        counts.same,
        counts.worse,
        several(counts.cases, "case")
    );
    Some(match contrast.standardized {
        Some(standardized) => format!("d = {}; {cases}", digits(standardized)),
        None => cases,
    })
}

/// Returns the difference of means, which is what changes in a sum such as the bill.
fn of_means(contrast: &Contrast, difference: Estimate) -> String {
    let written = |amount: f64| {
        let sign = match amount {
            amount if amount < 0.0 => "−",
            amount if amount > 0.0 => "+",
            _ => "",
        };
        format!("{sign}{}", value(contrast, amount.abs()))
    };
    let interval =
        difference.interval.map(|Interval { low, high }| format!(" ({} to {})", written(low), written(high)));
    format!("{}{} a run", written(difference.value), interval.unwrap_or_default())
}

/// Returns what it would take to see the smallest difference that matters.
fn plan(comparison: &Comparison, contrast: &Contrast) -> Option<String> {
    let plan = contrast.plan?;
    let of_margin = |margin: f64| {
        let effect = if contrast.kind == Kind::Ratio { 1.0 + margin } else { margin };
        amount(contrast, effect)
    };
    let able = plan.detectable.map(|least| format!("this experiment was able to show {} or more", of_margin(least)));
    let needs = plan.cases.map(|cases| {
        let power = percent(comparison.options.power);
        format!("{} show {} with {power} power", several(cases, "case"), of_margin(contrast.margin))
    });
    let alike = plan.correlation.filter(|_| needs.is_some()).map(|correlation| match correlation {
        near if near > 0.8 => "repeats are alike, so more cases help and more repeats do not".to_owned(),
        _ => "more repeats help too".to_owned(),
    });
    let said: Vec<String> = [able, needs, alike].into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join("; "))
}

fn ends(contrast: &Contrast, interval: Interval) -> String {
    let (low, high) = (shown(contrast.kind, interval.low), shown(contrast.kind, interval.high));
    format!("{} to {}", super::number::signed(low), super::number::signed(high))
}

/// Returns a size without a sign.
fn amount(contrast: &Contrast, size: f64) -> String {
    effect(contrast, size).trim_start_matches(['+', '−']).to_owned()
}

/// A figure of an arm: its name, and how it is read.
type Line<'l> = (&'l str, &'l dyn Fn(&Summary) -> Option<String>);

/// Returns each arm by itself.
pub(super) fn totals(view: &View, heading: &str) -> Html {
    let report = view.report;
    let arms: Vec<Summary> = (0..report.arms.len()).map(|arm| summary(view.runs(arm))).collect();
    let heads: Html = report.arms.iter().map(|arm| html!("<th scope=\"col\">{}</th>", arm.name)).collect();
    let lines: [Line; 9] = [
        ("pass rate", &|arm| {
            let interval =
                arm.pass_interval.map(|Interval { low, high }| format!(" ({} to {})", percent(low), percent(high)));
            arm.pass_rate.map(|rate| percent(rate) + &interval.unwrap_or_default())
        }),
        ("runs that failed", &|arm| Some(format!("{} of {}", count(arm.failed as u64), count(arm.runs as u64)))),
        ("latency, median", &|arm| arm.latency_p50_ms.map(|ms| duration(ms as f64))),
        ("latency, 95th percentile", &|arm| arm.latency_p95_ms.map(|ms| duration(ms as f64))),
        ("tokens a run", &|arm| arm.mean(arm.tokens).map(|tokens| count(tokens.round() as u64))),
        ("cost a run", &|arm| Some(dollars(arm.cost?.dollars() / arm.runs.max(1) as f64))),
        ("cost of all runs", &|arm| arm.cost.map(|cost| cost.to_string())),
        ("model calls a run", &|arm| arm.mean(arm.model_calls).map(digits)),
        ("tool calls a run", &|arm| arm.mean(arm.tool_calls).map(digits)),
    ];
    let rows = lines.into_iter().map(|(name, line)| {
        let cells = arms.iter().map(|arm| html!("<td>{}</td>", line(arm).unwrap_or_else(|| "–".to_owned())));
        html!("<tr><th scope=\"row\">{}</th>{}</tr>", name, cells.collect::<Html>())
    });
    html!(
        "<section id=\"totals\" aria-labelledby=\"totals-h\"><h2 id=\"totals-h\">{}</h2><div class=\"scroll\"><table class=\"figures\">\
         <thead><tr><td></td>{}</tr></thead><tbody>{}</tbody></table></div><p class=\"aside\">The interval of a pass rate has 95 % confidence \
         and counts each case once. Runs that failed have no latency here; – is what is not known.</p></section>",
        heading,
        heads,
        rows.collect::<Html>()
    )
}
