//! How latencies are spread, which tags pass, and which tools are called.

use super::html::{Html, html};
use super::number::{count, digits, duration, percent, several, signed};
use super::svg::{self, Scale, percentile};
use super::view::View;
use crate::experiment::Trial;
use indexmap::{IndexMap, IndexSet};

/// Returns how long runs took.
pub(super) fn latency(view: &View) -> Html {
    let report = view.report;
    let arms: Vec<(&str, Vec<f64>)> =
        report.arms.iter().enumerate().map(|(place, arm)| (arm.name.as_str(), view.latencies(place))).collect();
    let all: Vec<f64> = arms.iter().flat_map(|(_, latencies)| latencies.iter().copied()).collect();
    let Some(scale) = Scale::of(&all) else { return Html::default() };
    let figures = arms.iter().map(|(name, latencies)| {
        let at = |share: f64| percentile(latencies, share).map(duration).unwrap_or_default();
        let label = match latencies.len() {
            0 => format!("{name}: no run that did not fail"),
            runs => format!(
                "{name}: {}, median {}, 95th percentile {}, most {}",
                several(runs, "run"),
                at(0.5),
                at(0.95),
                at(1.0)
            ),
        };
        html!(
            "<figure class=\"latency\"><figcaption>{}</figcaption>{}</figure>",
            name,
            svg::spread(latencies, &scale, &label)
        )
    });
    let note = if scale.is_logarithmic() { " The scale is logarithmic." } else { "" };
    html!(
        "<section id=\"latency\" aria-labelledby=\"latency-h\"><h2 id=\"latency-h\">Latency</h2><p class=\"aside\">How many runs took \
         how long, without runs that failed.{}</p>{}</section>",
        note,
        figures.collect::<Html>()
    )
}

/// Returns the pass rate of each tag; nothing where cases have no tags.
pub(super) fn tags(view: &View) -> Html {
    let report = view.report;
    let tags: IndexSet<&str> = report.cases.iter().flat_map(|case| &case.tags).map(String::as_str).collect();
    if tags.is_empty() {
        return Html::default();
    }
    let row = |name: Html, wanted: &dyn Fn(&[String]) -> bool| {
        let cases = report.cases.iter().filter(|case| wanted(&case.tags)).count();
        if cases == 0 {
            return Html::default();
        }
        let cells = (0..report.arms.len()).map(|arm| match view.pass_rate(arm, |case| wanted(&case.tags)) {
            Some(rate) => html!("<td>{}{}</td>", percent(rate), svg::bar(rate)),
            None => html!("<td>–</td>"),
        });
        html!("<tr><th scope=\"row\">{}</th><td>{}</td>{}</tr>", name, cases, cells.collect::<Html>())
    };
    let rows: Html = tags
        .iter()
        .map(|tag| row(html!("{}", *tag), &|tags: &[String]| tags.iter().any(|own| own == tag)))
        .chain([row(html!("<i>no tag</i>"), &|tags: &[String]| tags.is_empty())])
        .collect();
    let heads: Html = report.arms.iter().map(|arm| html!("<th scope=\"col\">{}</th>", arm.name)).collect();
    html!(
        "<section id=\"tags\" aria-labelledby=\"tags-h\"><h2 id=\"tags-h\">Pass rate by tag</h2><div class=\"scroll\"><table class=\"figures\">\
         <thead><tr><th scope=\"col\">Tag</th><th scope=\"col\">Cases</th>{}</tr></thead><tbody>{}</tbody></table></div>\
         <p class=\"aside\">Parts of the data have fewer cases than the whole: differences here are hints, and nothing was tested.</p></section>",
        heads,
        rows
    )
}

/// How often a tool was called by an arm.
#[derive(Clone, Default)]
struct Calls {
    made: usize,
    runs: usize,
    errors: usize,
}

/// Returns which tools were called; nothing where none were.
pub(super) fn tools(view: &View) -> Html {
    let report = view.report;
    let mut tools: IndexMap<&str, Vec<Calls>> = IndexMap::new();
    for arm in 0..report.arms.len() {
        for trial in view.runs(arm) {
            tally(&mut tools, arm, report.arms.len(), trial);
        }
    }
    if tools.is_empty() {
        return Html::default();
    }
    let runs: Vec<usize> = (0..report.arms.len()).map(|arm| view.runs(arm).count()).collect();
    let a_run = |calls: &Calls, arm: usize| calls.made as f64 / runs.get(arm).copied().unwrap_or(0).max(1) as f64;
    let is_pair = report.arms.len() == 2;
    let rows = tools.iter().map(|(tool, arms)| {
        let cells = arms.iter().enumerate().map(|(arm, calls)| {
            let errors = match calls.errors {
                0 => Html::default(),
                errors => html!(" · <span class=\"no\">{}</span>", several(errors, "error")),
            };
            html!(
                "<td>{} <span class=\"quiet\">a run</span><br><span class=\"quiet\">{} in {}{}</span></td>",
                digits(a_run(calls, arm)),
                several(calls.made, "call"),
                several(calls.runs, "run"),
                errors
            )
        });
        let change = match arms.as_slice() {
            [one, other] if is_pair => html!("<td>{}</td>", signed(a_run(other, 1) - a_run(one, 0))),
            _ => Html::default(),
        };
        html!("<tr><th scope=\"row\">{}</th>{}{}</tr>", *tool, cells.collect::<Html>(), change)
    });
    let heads: Html = report.arms.iter().map(|arm| html!("<th scope=\"col\">{}</th>", arm.name)).collect();
    let change = if is_pair { html!("<th scope=\"col\">Change</th>") } else { Html::default() };
    html!(
        "<section id=\"tools\" aria-labelledby=\"tools-h\"><h2 id=\"tools-h\">Tool calls</h2><div class=\"scroll\"><table class=\"figures\">\
         <thead><tr><th scope=\"col\">Tool</th>{}{}</tr></thead><tbody>{}</tbody></table></div>\
         <p class=\"aside\">Calls in all runs, {} in all.</p></section>",
        heads,
        change,
        rows.collect::<Html>(),
        count(tools.values().flatten().map(|calls| calls.made as u64).sum())
    )
}

fn tally<'r>(tools: &mut IndexMap<&'r str, Vec<Calls>>, arm: usize, arms: usize, trial: &'r Trial) {
    let mut seen: IndexSet<&str> = IndexSet::new();
    for used in &trial.tools {
        let calls = tools.entry(used.tool.as_str()).or_insert_with(|| vec![Calls::default(); arms]);
        let Some(calls) = calls.get_mut(arm) else { continue };
        calls.made += 1;
        calls.errors += usize::from(used.error.is_some());
        calls.runs += usize::from(seen.insert(used.tool.as_str()));
    }
}
