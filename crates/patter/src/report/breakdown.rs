//! Latency distributions, pass rates by tag, and tool calls.

use super::number::{digits, duration, percent, plural, signed};
use super::svg::{self, Scale, percentile};
use super::view::{CaseView, ReportView};
use crate::experiment::Trial;
use crate::html::{Html, html};
use indexmap::{IndexMap, IndexSet};

/// The maximum number of tags to list, those with the most cases.
const MAX_TAGS: usize = 50;
/// The maximum number of tools to list, those with the most calls.
const MAX_TOOLS: usize = 100;

/// Returns the section on latency.
pub(super) fn latency(view: &ReportView) -> Html {
    let report = view.report;
    let arms: Vec<(&str, Vec<f64>)> =
        report.arms.iter().enumerate().map(|(index, arm)| (arm.name.as_str(), view.latencies(index))).collect();
    let all: Vec<f64> = arms.iter().flat_map(|(_, latencies)| latencies.iter().copied()).collect();
    let Some(scale) = Scale::new(&all) else { return Html::default() };
    let figures = arms.iter().map(|(name, latencies)| {
        let at = |share: f64| percentile(latencies, share).map(duration).unwrap_or_default();
        let label = match latencies.len() {
            0 => format!("{name}: no successful runs"),
            runs => format!(
                "{name}: {}, median {}, 95th percentile {}, maximum {}",
                plural(runs, "run"),
                at(0.5),
                at(0.95),
                at(1.0)
            ),
        };
        html!(
            "<figure class=\"latency\"><figcaption>{}</figcaption>{}</figure>",
            name,
            svg::histogram(latencies, &scale, &label)
        )
    });
    let note = if scale.is_logarithmic() { " The scale is logarithmic." } else { "" };
    html!(
        "<section id=\"latency\" aria-labelledby=\"latency-h\"><h2 id=\"latency-h\">Latency</h2><p class=\"aside\">The distribution \
         of run times, without failed runs.{}</p>{}</section>",
        note,
        figures.collect::<Html>()
    )
}

/// The cases of a tag: how many, and for each arm the sum of the pass rates and how many have one.
#[derive(Clone, Default)]
struct TagCases {
    cases: usize,
    arms: Vec<(f64, usize)>,
}

impl TagCases {
    fn add(&mut self, case: &CaseView) {
        self.cases += 1;
        self.arms.resize(case.arms.len(), (0.0, 0));
        for (arm, (sum, count)) in self.arms.iter_mut().enumerate() {
            if let Some(rate) = case.pass_rate(arm) {
                *sum += rate;
                *count += 1;
            }
        }
    }
}

/// Returns the pass rate of each tag; empty if cases have no tags.
pub(super) fn tags(view: &ReportView) -> Html {
    let report = view.report;
    let mut tags: IndexMap<&str, TagCases> = IndexMap::new();
    let mut untagged = TagCases::default();
    for case in &view.cases {
        // A tag that is given twice counts once.
        let own: IndexSet<&str> = case.info.tags.iter().map(String::as_str).collect();
        own.iter().for_each(|tag| tags.entry(tag).or_default().add(case));
        if own.is_empty() {
            untagged.add(case);
        }
    }
    if tags.is_empty() {
        return Html::default();
    }
    let omitted = tags.len().saturating_sub(MAX_TAGS);
    if omitted > 0 {
        tags.sort_by(|_, one, _, other| other.cases.cmp(&one.cases));
        tags.truncate(MAX_TAGS);
    }
    let row = |name: Html, tag: &TagCases| {
        let cells = tag.arms.iter().map(|(sum, count)| match count {
            0 => html!("<td>–</td>"),
            count => {
                let rate = sum / *count as f64;
                html!("<td>{}{}</td>", percent(rate), svg::bar(rate))
            }
        });
        html!("<tr><th scope=\"row\">{}</th><td>{}</td>{}</tr>", name, tag.cases, cells.collect::<Html>())
    };
    let mut rows: Html = tags.iter().map(|(tag, cases)| row(html!("{}", *tag), cases)).collect();
    if untagged.cases > 0 {
        rows.push(&row(html!("<i>no tag</i>"), &untagged));
    }
    let note = match omitted {
        0 => String::new(),
        omitted => format!(" {} with fewer cases are not listed.", plural(omitted, "tag")),
    };
    let heads: Html = report.arms.iter().map(|arm| html!("<th scope=\"col\">{}</th>", arm.name)).collect();
    html!(
        "<section id=\"tags\" aria-labelledby=\"tags-h\"><h2 id=\"tags-h\">Pass rate by tag</h2><div class=\"scroll\" tabindex=\"0\" \
         role=\"group\" aria-labelledby=\"tags-h\"><table class=\"figures\">\
         <thead><tr><th scope=\"col\">Tag</th><th scope=\"col\">Cases</th>{}</tr></thead><tbody>{}</tbody></table></div>\
         <p class=\"aside\">Each tag has only some of the cases: differences here are hints, and were not tested.{}</p></section>",
        heads,
        rows,
        note
    )
}

/// The calls of a tool under an arm.
#[derive(Clone, Default)]
struct Calls {
    count: usize,
    runs: usize,
    errors: usize,
}

/// Returns the section on tool calls; empty if there were none.
pub(super) fn tools(view: &ReportView) -> Html {
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
    let total: usize = tools.values().flatten().map(|calls| calls.count).sum();
    if tools.len() > MAX_TOOLS {
        let calls = |arms: &[Calls]| arms.iter().map(|calls| calls.count).sum::<usize>();
        tools.sort_by(|_, one, _, other| calls(other).cmp(&calls(one)));
        tools.truncate(MAX_TOOLS);
    }
    let runs: Vec<usize> = (0..report.arms.len()).map(|arm| view.runs(arm).count()).collect();
    let per_run = |calls: &Calls, arm: usize| calls.count as f64 / runs.get(arm).copied().unwrap_or(0).max(1) as f64;
    let is_pair = report.arms.len() == 2;
    let rows = tools.iter().map(|(tool, arms)| {
        let cells = arms.iter().enumerate().map(|(arm, calls)| {
            let errors = match calls.errors {
                0 => Html::default(),
                errors => html!(" · <span class=\"no\">{}</span>", plural(errors, "error")),
            };
            html!(
                "<td>{} <span class=\"quiet\">per run</span><br><span class=\"quiet\">{} in {}{}</span></td>",
                digits(per_run(calls, arm)),
                plural(calls.count, "call"),
                plural(calls.runs, "run"),
                errors
            )
        });
        let change = match arms.as_slice() {
            [one, other] if is_pair => html!("<td>{}</td>", signed(per_run(other, 1) - per_run(one, 0))),
            _ => Html::default(),
        };
        html!("<tr><th scope=\"row\">{}</th>{}{}</tr>", *tool, cells.collect::<Html>(), change)
    });
    let heads: Html = report.arms.iter().map(|arm| html!("<th scope=\"col\">{}</th>", arm.name)).collect();
    let change = if is_pair { html!("<th scope=\"col\">Change</th>") } else { Html::default() };
    html!(
        "<section id=\"tools\" aria-labelledby=\"tools-h\"><h2 id=\"tools-h\">Tool calls</h2><div class=\"scroll\" tabindex=\"0\" \
         role=\"group\" aria-labelledby=\"tools-h\"><table class=\"figures\">\
         <thead><tr><th scope=\"col\">Tool</th>{}{}</tr></thead><tbody>{}</tbody></table></div>\
         <p class=\"aside\">{} in total.</p></section>",
        heads,
        change,
        rows.collect::<Html>(),
        plural(total, "call")
    )
}

fn tally<'r>(tools: &mut IndexMap<&'r str, Vec<Calls>>, arm: usize, arms: usize, trial: &'r Trial) {
    let mut seen: IndexSet<&str> = IndexSet::new();
    for used in &trial.tools {
        let calls = tools.entry(used.tool.as_str()).or_insert_with(|| vec![Calls::default(); arms]);
        let Some(calls) = calls.get_mut(arm) else { continue };
        calls.count += 1;
        calls.errors += usize::from(used.error.is_some());
        calls.runs += usize::from(seen.insert(used.tool.as_str()));
    }
}
