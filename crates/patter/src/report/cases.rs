//! The table of cases: a row for each, with expandable transcripts.

use super::html::{Html, html};
use super::number::{count, dollars, duration, plural};
use super::transcript::{mark, shorten, transcript_budget, transcripts};
use super::view::{CaseView, ReportView};
use crate::experiment::{ReportKind, Trial};
use patter_core::provider::price::Cost;

/// The maximum number of cases to list; those that passed under every arm are omitted first.
const MAX_CASES: usize = 5_000;
/// The number of characters of a user message in the table.
const INPUT: usize = 160;
/// The number of characters of the reason of a failed check in the table.
const REASON: usize = 140;

/// Returns the section.
pub(super) fn cases(view: &ReportView) -> Html {
    let (listed, omitted) = listed_cases(view);
    let arms = view.report.arms.iter().enumerate().map(|(index, arm)| {
        let is_baseline = index == 0 && view.report.arms.len() > 1;
        let role = if is_baseline { html!(" <i>baseline</i>") } else { Html::default() };
        html!("<th scope=\"col\" role=\"columnheader\">{}{}</th>", arm.name, role)
    });
    let budget = transcript_budget(view);
    let rows: Html = listed.iter().map(|(number, case)| row(view, *number, case, budget)).collect();
    let note = match omitted {
        0 => Html::default(),
        omitted => html!("<p class=\"note\">Not listed: {} that passed under every arm.</p>", plural(omitted, "case")),
    };
    html!(
        "<section id=\"cases\" aria-labelledby=\"cases-h\"><h2 id=\"cases-h\">Cases</h2>{}{}\
         <table class=\"cases\" role=\"table\"><caption class=\"aside\">Every case with the result of each repeat. Latency, tokens and \
         cost are medians over the repeats that did not fail.</caption><thead role=\"rowgroup\"><tr role=\"row\">\
         <th scope=\"col\" role=\"columnheader\">Case</th>{}</tr></thead>{}</table></section>",
        note,
        controls(view, listed.len()),
        arms.collect::<Html>(),
        rows
    )
}

/// Returns the cases to list with their numbers, and how many are omitted.
fn listed_cases<'v, 'r>(view: &'v ReportView<'r>) -> (Vec<(usize, &'v CaseView<'r>)>, usize) {
    let all = || view.cases.iter().enumerate().map(|(index, case)| (index + 1, case));
    let Some(surplus) = view.cases.len().checked_sub(MAX_CASES).filter(|surplus| *surplus > 0) else {
        return (all().collect(), 0);
    };
    let mut skipped = 0;
    let mut is_listed = |case: &CaseView| {
        let skip = skipped < surplus && !case.has_unpassed();
        skipped += usize::from(skip);
        !skip
    };
    let listed: Vec<_> = all().filter(|(_, case)| is_listed(case)).take(MAX_CASES).collect();
    let omitted = view.cases.len() - listed.len();
    (listed, omitted)
}

/// Returns the controls that filter and sort the table. They are hidden until the script runs.
fn controls(view: &ReportView, listed: usize) -> Html {
    let is_ab = view.report.kind == ReportKind::Ab && view.report.arms.len() > 1;
    let differ = if is_ab { html!("<option value=\"differ\">arms differ</option>") } else { Html::default() };
    let failed = if view.cases.iter().any(CaseView::has_failed) {
        html!("<option value=\"error\">failed runs</option>")
    } else {
        Html::default()
    };
    let by = if is_ab { "largest change in" } else { "highest" };
    let sorts =
        ["latency", "tokens", "cost"].map(|figure| html!("<option value=\"{}\">{} {}</option>", figure, by, figure));
    html!(
        "<form class=\"controls\" id=\"controls\" hidden>\
         <label>Find <input id=\"find\" type=\"search\" autocomplete=\"off\" placeholder=\"id, text or tag\"></label>\
         <label>Show <select id=\"only\"><option value=\"\">all cases</option><option value=\"fail\">not passed</option>{}{}</select></label>\
         <label>Sort by <select id=\"sort\"><option value=\"\">file order</option><option value=\"id\">id</option>\
         <option value=\"fails\">most failures</option>{}</select></label>\
         <p id=\"shown\" role=\"status\">{}</p></form>",
        differ,
        failed,
        sorts.into_iter().collect::<Html>(),
        plural(listed, "case")
    )
}

fn row(view: &ReportView, number: usize, case: &CaseView, budget: usize) -> Html {
    let flags = [("fail", case.has_unpassed()), ("differ", case.differs()), ("error", case.has_failed())];
    let flags: Vec<&str> = flags.into_iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag).collect();
    let fails = case.runs().filter(|trial| !trial.passed).count();
    let key = |figure: fn(&Trial) -> Option<f64>| {
        let first = case.figure(0, figure);
        let others = (1..case.arms.len()).filter_map(|arm| Some((case.figure(arm, figure)? - first?).abs()));
        let key = if case.arms.len() > 1 { others.reduce(f64::max) } else { first };
        key.map(|key| format!("{key:.9}")).unwrap_or_default()
    };
    let tags = case.info.tags.iter().map(|tag| html!(" <span class=\"tag\">{}</span>", tag)).collect::<Html>();
    let input = case.info.turns.first().map(String::as_str).unwrap_or_default();
    let more = match case.info.turns.len() {
        0 | 1 => Html::default(),
        turns => html!(" <i>+ {}</i>", plural(turns - 1, "more turn")),
    };
    let cells: Html = (0..case.arms.len()).map(|arm| cell(view, case, arm)).collect();
    html!(
        "<tbody role=\"rowgroup\" id=\"case-{}\" data-is=\"{}\" data-fails=\"{}\" data-latency=\"{}\" data-tokens=\"{}\" \
         data-cost=\"{}\"><tr role=\"row\"><th scope=\"row\" role=\"rowheader\"><a href=\"#case-{}\">{}</a>{}\
         <p>{}{}</p></th>{}</tr><tr role=\"row\"><td role=\"cell\" colspan=\"{}\"><details><summary>Transcripts\
         <span class=\"aside\"> of {}</span></summary>{}</details></td></tr></tbody>",
        number,
        flags.join(" "),
        fails,
        key(latency),
        key(tokens),
        key(cost),
        number,
        case.info.id,
        tags,
        shorten(input, INPUT),
        more,
        cells,
        case.arms.len() + 1,
        case.info.id,
        transcripts(view, case, budget)
    )
}

/// Returns the result of a case under an arm.
fn cell(view: &ReportView, case: &CaseView, arm: usize) -> Html {
    let runs = case.arms.get(arm).map(Vec::as_slice).unwrap_or_default();
    let name = view.report.arms.get(arm).map(|arm| arm.name.as_str()).unwrap_or_default();
    if runs.is_empty() {
        return html!("<td role=\"cell\" data-arm=\"{}\"><span class=\"quiet\">not run</span></td>", name);
    }
    let marks: Html = runs.iter().map(|trial| mark(trial.passed)).collect();
    let figures = [
        ("latency", case.figure(arm, latency).map(duration)),
        ("tokens", case.figure(arm, tokens).map(|tokens| format!("{}\u{a0}tokens", count(tokens.round() as u64)))),
        ("cost", case.figure(arm, cost).map(dollars)),
    ];
    let figures = figures.into_iter().filter_map(|(name, figure)| Some((name, figure?)));
    let figures: Html =
        figures.map(|(name, figure)| html!("<div><dt>{}</dt><dd>{}</dd></div>", name, figure)).collect();
    let reason = runs
        .iter()
        .find_map(|trial| failure_reason(trial))
        .map_or(Html::default(), |reason| html!("<p class=\"why\">{}</p>", shorten(&reason, REASON)));
    html!(
        "<td role=\"cell\" data-arm=\"{}\"><div class=\"result\"><span class=\"signs\">{}</span><dl>{}</dl></div>{}</td>",
        name,
        marks,
        figures,
        reason
    )
}

/// Returns why a trial did not pass, with the check that failed.
fn failure_reason(trial: &Trial) -> Option<String> {
    if let Some(failure) = &trial.failure {
        return Some(format!("the run failed: {}", failure.message));
    }
    let failed = trial.judged.iter().find(|judged| !judged.passed)?;
    Some(if failed.why.is_empty() { failed.check.clone() } else { format!("{}: {}", failed.check, failed.why) })
}

fn latency(trial: &Trial) -> Option<f64> {
    Some(trial.latency_ms as f64)
}

fn tokens(trial: &Trial) -> Option<f64> {
    Some(trial.tokens() as f64)
}

fn cost(trial: &Trial) -> Option<f64> {
    trial.cost.map(Cost::dollars)
}
