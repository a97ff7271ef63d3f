//! Metrics: the difference of each arm from the baseline, and the results of each arm.

use super::number::{count, digits, dollars, duration, effect, effect_range, p_value, percent, plural, value};
use super::summary::finding;
use super::view::ReportView;
use crate::experiment::{ArmSummary, summarize};
use crate::html::{Html, html, prose};
use patter_core::stats::{Comparison, Contrast, Estimate, Interval, MetricKind};

/// Returns the differences in detail, metric by metric; empty if nothing was compared.
pub(super) fn contrasts(view: &ReportView) -> Html {
    let Some(comparison) = &view.report.comparison else { return Html::default() };
    let is_multiple = comparison.summaries.len() > 1;
    let arms = comparison.summaries.iter().map(|summary| {
        let heading = match is_multiple {
            true => html!("<h3>{} <i>vs. {}</i></h3>", summary.arm, comparison.baseline),
            false => Html::default(),
        };
        let own = comparison.contrasts.iter().filter(|contrast| contrast.arm == summary.arm);
        html!("{}{}", heading, own.map(|contrast| metric(comparison, contrast, is_multiple)).collect::<Html>())
    });
    html!(
        "<section id=\"metrics\" aria-labelledby=\"metrics-h\"><h2 id=\"metrics-h\">Differences in detail</h2>{}</section>",
        arms.collect::<Html>()
    )
}

fn metric(comparison: &Comparison, contrast: &Contrast, is_nested: bool) -> Html {
    let metric = &contrast.metric;
    let name = if is_nested { html!("<h4>{}</h4>", metric.name) } else { html!("<h3>{}</h3>", metric.name) };
    let facts = facts(comparison, contrast);
    let facts = facts.into_iter().map(|(name, fact)| html!("<div><dt>{}</dt><dd>{}</dd></div>", name, prose(&fact)));
    html!(
        "<article class=\"metric\"><div class=\"says\">{}<p>{}</p><p>{}</p></div><dl>{}</dl></article>",
        name,
        finding(contrast),
        prose(&contrast.verdict.text),
        facts.collect::<Html>()
    )
}

/// Returns the details of a metric, as names and values.
fn facts(comparison: &Comparison, contrast: &Contrast) -> Vec<(String, String)> {
    let mut facts: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, fact: Option<String>| facts.extend(fact.map(|fact| (name.to_owned(), fact)));
    let mean = |mean: Option<f64>| mean.map(|mean| value(contrast, mean));
    add(&comparison.baseline, mean(contrast.baseline_mean));
    add(&contrast.arm, mean(contrast.arm_mean));
    let interval = contrast.effect.and_then(|effect| effect.interval);
    let interval = interval.map(|Interval { low, high }| format!(" ({})", effect_range(contrast, low, high)));
    let interval = interval.unwrap_or_default();
    add("difference", contrast.effect.map(|estimate| format!("{}{interval}", effect(contrast, estimate.value))));
    add("adjusted p", contrast.test.map(|test| format!("{} (unadjusted {})", p_value(test.adjusted), p_value(test.p))));
    add("effect size", effect_size(contrast));
    add("difference of means", contrast.difference.map(|difference| mean_difference(contrast, difference)));
    add("sample size", sample_size(comparison, contrast));
    facts
}

/// Describes the size of the effect relative to the variation between cases.
fn effect_size(contrast: &Contrast) -> Option<String> {
    let counts = contrast.counts;
    contrast.effect?;
    let cases = format!(
        "better in {}, equal in {}, worse in {} of {}",
        counts.better,
        counts.same,
        counts.worse,
        plural(counts.cases, "case")
    );
    Some(match contrast.standardized {
        Some(standardized) => format!("d = {}; {cases}", digits(standardized)),
        None => cases,
    })
}

/// Describes the difference of means, which determines totals such as the bill.
fn mean_difference(contrast: &Contrast, difference: Estimate) -> String {
    let with_sign = |amount: f64| {
        let sign = match amount {
            amount if amount < 0.0 => "−",
            amount if amount > 0.0 => "+",
            _ => "",
        };
        format!("{sign}{}", value(contrast, amount.abs()))
    };
    let interval =
        difference.interval.map(|Interval { low, high }| format!(" ({} to {})", with_sign(low), with_sign(high)));
    format!("{}{} per run", with_sign(difference.value), interval.unwrap_or_default())
}

/// Describes what the experiment could detect, and how many cases the smallest difference that matters would take.
fn sample_size(comparison: &Comparison, contrast: &Contrast) -> Option<String> {
    let plan = contrast.plan?;
    let margin_text = |margin: f64| {
        let effect = if contrast.kind == MetricKind::Ratio { 1.0 + margin } else { margin };
        amount(contrast, effect)
    };
    let detectable =
        plan.detectable.map(|least| format!("this experiment could detect {} or more", margin_text(least)));
    let needed = plan.cases.map(|cases| {
        let power = percent(comparison.options.power);
        let margin = margin_text(contrast.margin);
        format!("detecting {margin} with {power} power takes {}", plural(cases, "case"))
    });
    let repeats = plan.correlation.filter(|_| needed.is_some()).map(|correlation| match correlation {
        near if near > 0.8 => "repeats are alike, so more cases help, but more repeats do not".to_owned(),
        _ => "more repeats help too".to_owned(),
    });
    let parts: Vec<String> = [detectable, needed, repeats].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Formats the size of an effect, without its sign.
fn amount(contrast: &Contrast, size: f64) -> String {
    effect(contrast, size).trim_start_matches(['+', '−']).to_owned()
}

/// A row of the table of results: its name, and how to format the value of an arm.
type Line<'l> = (&'l str, &'l dyn Fn(&ArmSummary) -> Option<String>);

/// Returns the results of each arm; empty if there is only one, whose results are at the top.
pub(super) fn totals(view: &ReportView) -> Html {
    let report = view.report;
    if report.arms.len() < 2 {
        return Html::default();
    }
    let arms: Vec<ArmSummary> = (0..report.arms.len()).map(|arm| summarize(view.runs(arm))).collect();
    let heads: Html = report.arms.iter().map(|arm| html!("<th scope=\"col\">{}</th>", arm.name)).collect();
    let lines: [Line; 10] = [
        ("pass rate", &|arm| {
            let interval =
                arm.pass_interval.map(|Interval { low, high }| format!(" ({} to {})", percent(low), percent(high)));
            arm.pass_rate.map(|rate| percent(rate) + &interval.unwrap_or_default())
        }),
        ("without an answer", &|arm| Some(format!("{} of {}", count(arm.unanswered as u64), count(arm.runs as u64)))),
        ("errors", &|arm| Some(format!("{} of {}", count(arm.errors as u64), count(arm.runs as u64)))),
        ("latency, median", &|arm| arm.latency_p50_ms.map(|ms| duration(ms as f64))),
        ("latency, 95th percentile", &|arm| arm.latency_p95_ms.map(|ms| duration(ms as f64))),
        ("tokens per run", &|arm| arm.mean(arm.tokens).map(|tokens| count(tokens.round() as u64))),
        ("cost per run", &|arm| arm.mean_cost().map(dollars)),
        ("total cost", &|arm| arm.cost.map(|cost| cost.to_string())),
        ("model calls per run", &|arm| arm.mean(arm.model_calls).map(digits)),
        ("tool calls per run", &|arm| arm.mean(arm.tool_calls).map(digits)),
    ];
    let rows = lines.into_iter().map(|(name, line)| {
        let cells = arms.iter().map(|arm| html!("<td>{}</td>", line(arm).unwrap_or_else(|| "–".to_owned())));
        html!("<tr><th scope=\"row\">{}</th>{}</tr>", name, cells.collect::<Html>())
    });
    html!(
        "<section id=\"totals\" aria-labelledby=\"totals-h\"><h2 id=\"totals-h\">Results by arm</h2><div class=\"scroll\" tabindex=\"0\" role=\"group\" \
         aria-labelledby=\"totals-h\"><table class=\"figures\">\
         <thead><tr><td></td>{}</tr></thead><tbody>{}</tbody></table></div><p class=\"aside\">Pass rates have 95% confidence \
         intervals, in which each case counts once. Runs without an answer do not count for the \
         figures below it; – means unknown.</p></section>",
        heads,
        rows.collect::<Html>()
    )
}
