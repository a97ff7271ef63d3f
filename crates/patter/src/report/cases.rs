//! The table of cases: a row for each, which opens its transcripts.

use super::html::{Html, html};
use super::number::{count, dollars, duration, several};
use super::transcript::{room, shortened, sign, transcripts};
use super::view::{Case, View};
use crate::experiment::{ReportKind, Trial};
use patter_core::provider::price::Cost;

/// More cases than this are not listed: those that passed everywhere are left out first.
const MOST: usize = 5_000;
/// How much of what a person said stands in the table.
const INPUT: usize = 160;
/// How much of why a check was not passed stands in the table.
const WHY: usize = 140;

/// Returns the section.
pub(super) fn cases(view: &View) -> Html {
    let (listed, left_out) = listed(view);
    let arms = view.report.arms.iter().enumerate().map(|(place, arm)| {
        let is_baseline = place == 0 && view.report.arms.len() > 1;
        let role = if is_baseline { html!(" <i>baseline</i>") } else { Html::default() };
        html!("<th scope=\"col\" role=\"columnheader\">{}{}</th>", arm.name, role)
    });
    let room = room(view);
    let rows: Html = listed.iter().map(|(number, case)| row(view, *number, case, room)).collect();
    let note = match left_out {
        0 => Html::default(),
        left_out => html!(
            "<p class=\"note\">{} that passed everywhere are left out of this list.</p>",
            several(left_out, "case")
        ),
    };
    html!(
        "<section id=\"cases\" aria-labelledby=\"cases-h\"><h2 id=\"cases-h\">Cases</h2>{}{}\
         <table class=\"cases\" role=\"table\"><caption class=\"aside\">Every case with the outcome of each repeat. Latency, tokens and \
         cost are medians over the repeats that did not fail.</caption><thead role=\"rowgroup\"><tr role=\"row\">\
         <th scope=\"col\" role=\"columnheader\">Case</th>{}</tr></thead>{}</table></section>",
        note,
        controls(view, listed.len()),
        arms.collect::<Html>(),
        rows
    )
}

/// Returns the cases to list with their numbers, and how many are left out.
fn listed<'v, 'r>(view: &'v View<'r>) -> (Vec<(usize, &'v Case<'r>)>, usize) {
    let all = || view.cases.iter().enumerate().map(|(place, case)| (place + 1, case));
    let Some(surplus) = view.cases.len().checked_sub(MOST).filter(|surplus| *surplus > 0) else {
        return (all().collect(), 0);
    };
    let mut dropped = 0;
    let mut keeps = |case: &Case| {
        let drop = dropped < surplus && !case.has_unpassed();
        dropped += usize::from(drop);
        !drop
    };
    let kept: Vec<_> = all().filter(|(_, case)| keeps(case)).take(MOST).collect();
    let left_out = view.cases.len() - kept.len();
    (kept, left_out)
}

/// Returns what filters and sorts the table. It is of no use without the script, which shows it.
fn controls(view: &View, listed: usize) -> Html {
    let is_ab = view.report.kind == ReportKind::Ab && view.report.arms.len() > 1;
    let differ = if is_ab { html!("<option value=\"differ\">arms that differ</option>") } else { Html::default() };
    let failed = if view.cases.iter().any(Case::has_failed) {
        html!("<option value=\"error\">runs that failed</option>")
    } else {
        Html::default()
    };
    let by = if is_ab { "largest change of" } else { "highest" };
    let sorts =
        ["latency", "tokens", "cost"].map(|figure| html!("<option value=\"{}\">{} {}</option>", figure, by, figure));
    html!(
        "<form class=\"controls\" id=\"controls\" hidden>\
         <label>Find <input id=\"find\" type=\"search\" autocomplete=\"off\" placeholder=\"id, text or tag\"></label>\
         <label>Show <select id=\"only\"><option value=\"\">all cases</option><option value=\"fail\">not passed</option>{}{}</select></label>\
         <label>Sort by <select id=\"sort\"><option value=\"\">order of the file</option><option value=\"id\">id</option>\
         <option value=\"fails\">most failures</option>{}</select></label>\
         <p id=\"shown\" role=\"status\">{}</p></form>",
        differ,
        failed,
        sorts.into_iter().collect::<Html>(),
        several(listed, "case")
    )
}

fn row(view: &View, number: usize, case: &Case, room: usize) -> Html {
    let flags = [("fail", case.has_unpassed()), ("differ", case.differs()), ("error", case.has_failed())];
    let flags: Vec<&str> = flags.into_iter().filter(|(_, holds)| *holds).map(|(flag, _)| flag).collect();
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
        turns => html!(" <i>+ {}</i>", several(turns - 1, "more turn")),
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
        shortened(input, INPUT),
        more,
        cells,
        case.arms.len() + 1,
        case.info.id,
        transcripts(view, case, room)
    )
}

/// Returns what came of a case under an arm.
fn cell(view: &View, case: &Case, arm: usize) -> Html {
    let runs = case.arms.get(arm).map(Vec::as_slice).unwrap_or_default();
    let name = view.report.arms.get(arm).map(|arm| arm.name.as_str()).unwrap_or_default();
    if runs.is_empty() {
        return html!("<td role=\"cell\" data-arm=\"{}\"><span class=\"quiet\">not run</span></td>", name);
    }
    let signs: Html = runs.iter().map(|trial| sign(trial.passed)).collect();
    let figures = [
        ("latency", case.figure(arm, latency).map(duration)),
        ("tokens", case.figure(arm, tokens).map(|tokens| format!("{}\u{a0}tokens", count(tokens.round() as u64)))),
        ("cost", case.figure(arm, cost).map(dollars)),
    ];
    let figures = figures.into_iter().filter_map(|(name, figure)| Some((name, figure?)));
    let figures: Html =
        figures.map(|(name, figure)| html!("<div><dt>{}</dt><dd>{}</dd></div>", name, figure)).collect();
    let why = runs
        .iter()
        .find_map(|trial| why(trial))
        .map_or(Html::default(), |why| html!("<p class=\"why\">{}</p>", shortened(&why, WHY)));
    html!(
        "<td role=\"cell\" data-arm=\"{}\"><div class=\"result\"><span class=\"signs\">{}</span><dl>{}</dl></div>{}</td>",
        name,
        signs,
        figures,
        why
    )
}

/// Returns why a run is not passed.
fn why(trial: &Trial) -> Option<String> {
    if let Some(failure) = &trial.failure {
        return Some(format!("the run failed: {}", failure.message));
    }
    let missed = trial.judged.iter().find(|judged| !judged.passed)?;
    Some(if missed.why.is_empty() { missed.check.clone() } else { format!("{}: {}", missed.check, missed.why) })
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
