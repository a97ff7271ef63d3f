//! The table of cases: a row for each, with expandable transcripts.
//!
//! The most telling cases come first. Only the first rows are part of the document; the others are text that the browser
//! does not parse until the script shows them, so that a page with thousands of cases opens quickly.

use super::number::{count, dollars, duration, plural};
use super::transcript::{mark, shorten, transcript_budget, transcripts};
use super::view::{CaseView, ReportView};
use crate::experiment::{ReportKind, Trial, TrialOutcome};
use crate::html::{Html, html};
use indexmap::IndexMap;
use patter_core::provider::price::Cost;
use serde_json::{Value as Json, json};

/// The maximum number of cases to list.
const MAX_CASES: usize = 20_000;
/// The number of rows in the document; the script adds the others.
const DOCUMENT_ROWS: usize = 200;
/// The number of bytes of all transcripts from which on they are left out.
const MAX_TRANSCRIPTS: usize = 6_000_000;
/// The number of characters of a user message in the table.
const INPUT: usize = 160;
/// The number of characters of the reason of a failed check in the table.
const REASON: usize = 140;
/// The maximum number of repeats that have a mark each.
const MARKS: usize = 5;
/// The number of arms from which on there is no room for tokens and costs.
const MANY_ARMS: usize = 4;
/// Separates rows that are not part of the document. Control characters do not occur in escaped text.
const SEPARATOR: &str = "\u{1e}";

/// A column of figures of an arm.
struct Figure {
    name: &'static str,
    read: fn(&Trial) -> Option<f64>,
    format: fn(f64) -> String,
}

const FIGURES: [Figure; 3] = [
    Figure { name: "latency", read: latency, format: duration },
    Figure { name: "tokens", read: tokens, format: |tokens| count(tokens.round() as u64) },
    Figure { name: "cost", read: cost, format: dollars },
];

/// Returns the section.
pub(super) fn cases(view: &ReportView) -> Html {
    let figures = known_figures(view);
    let ranked = ranked_cases(view);
    let omitted = view.cases.len() - ranked.len();
    let budget = transcript_budget(view);
    let mut document = Html::default();
    let mut later: Vec<Html> = Vec::new();
    let mut transcript_bytes = 0;
    let mut without_transcripts = 0;
    for (position, (number, case)) in ranked.iter().enumerate() {
        let transcripts = match transcript_bytes < MAX_TRANSCRIPTS {
            true => transcripts(view, case, budget),
            false => Html::default(),
        };
        transcript_bytes += transcripts.len();
        without_transcripts += usize::from(transcripts.is_empty());
        let row = row(view, *number, case, &figures, &transcripts);
        if position < DOCUMENT_ROWS {
            document.push(&row);
        } else {
            later.push(row);
        }
    }
    let mut notes = Vec::new();
    if omitted > 0 {
        notes.push(format!("{} that passed under every arm are not listed.", plural(omitted, "case")));
    }
    if without_transcripts > 0 && without_transcripts < ranked.len() {
        let cases = plural(without_transcripts, "case");
        notes.push(format!(
            "{cases} have no transcripts here, to keep the page small; the JSON report has all of them."
        ));
    }
    let notes: Html = notes.iter().map(|note| html!("<p class=\"note\">{}</p>", note)).collect();
    let only_some = match later.len() {
        0 => Html::default(),
        rest => html!(
            "<noscript><p class=\"note\">Showing the {} most telling cases; the other {} need JavaScript.</p></noscript>",
            DOCUMENT_ROWS,
            count(rest as u64)
        ),
    };
    html!(
        "<section id=\"cases\" aria-labelledby=\"cases-h\"><h2 id=\"cases-h\">Cases</h2>{}{}{}\
         <table class=\"cases figures-{}{}\" role=\"table\"><caption class=\"aside\">{}</caption>{}{}</table>\
         <nav class=\"pages\" id=\"pages\" aria-label=\"Pages of cases\" hidden><button type=\"button\" id=\"previous\">Previous</button>\
         <button type=\"button\" id=\"next\">Next</button></nav>{}</section>",
        notes,
        only_some,
        controls(view, ranked.len()),
        figures.len(),
        if view.report.arms.len() >= MANY_ARMS { " many" } else { "" },
        caption(view),
        head(view, &figures),
        document,
        data(view, &ranked, &later)
    )
}

fn caption(view: &ReportView) -> &'static str {
    match (view.report.arms.len() > 1, view.report.repeats > 1) {
        (false, false) => "Cases that did not pass come first.",
        (false, true) => "Cases that did not pass come first. Figures are medians over the repeats with an answer.",
        (true, false) => "Cases in which the arms differ or that did not pass come first.",
        (true, true) => {
            "Cases in which the arms differ or that did not pass come first. Figures are medians over the repeats with an \
             answer."
        }
    }
}

/// Returns the figures that some trial has.
fn known_figures(view: &ReportView) -> Vec<Figure> {
    let is_known = |figure: &Figure| {
        let has_value = |trial: &Trial| (figure.read)(trial).is_some_and(|value| value > 0.0);
        figure.name == "latency" || view.report.trials.iter().any(has_value)
    };
    let room = if view.report.arms.len() >= MANY_ARMS { 1 } else { FIGURES.len() };
    FIGURES.into_iter().filter(is_known).take(room).collect()
}

/// Returns the cases to list with their numbers, the most telling ones first.
fn ranked_cases<'v, 'r>(view: &'v ReportView<'r>) -> Vec<(usize, &'v CaseView<'r>)> {
    let mut cases: Vec<_> = view.cases.iter().enumerate().map(|(index, case)| (index + 1, case)).collect();
    cases.sort_by_cached_key(|(_, case)| match () {
        () if case.is_lost() => 0,
        () if case.is_won() => 1,
        () if case.has_error() => 2,
        () if case.has_unpassed() => 3,
        () => 4,
    });
    cases.truncate(MAX_CASES);
    cases
}

/// Returns the controls that filter and sort the table. They are hidden until the script runs.
fn controls(view: &ReportView, listed: usize) -> Html {
    let is_ab = view.report.kind == ReportKind::Ab && view.report.arms.len() > 1;
    let has_error = view.cases.iter().any(CaseView::has_error);
    let filters = [
        ("fail", "not passed", true),
        ("lost", "lost", is_ab),
        ("won", "won", is_ab),
        ("same", "same", is_ab),
        ("error", "errors", has_error),
    ];
    let filters = filters.into_iter().filter(|(.., is_shown)| *is_shown);
    let filters = filters.map(|(value, name, _)| html!("<option value=\"{}\">{}</option>", value, name));
    let by = if is_ab { "largest change in" } else { "highest" };
    let sorts = FIGURES.map(|Figure { name, .. }| html!("<option value=\"{}\">{} {}</option>", name, by, name));
    html!(
        "<form class=\"controls\" id=\"controls\" hidden>\
         <label>Find <input id=\"find\" type=\"search\" autocomplete=\"off\" placeholder=\"id, text or tag\"></label>\
         <label>Show <select id=\"only\"><option value=\"\">all cases</option>{}</select></label>\
         <label>Sort by <select id=\"sort\"><option value=\"\">relevance</option><option value=\"file\">file order</option>\
         <option value=\"id\">id</option><option value=\"fails\">most failures</option>{}</select></label>\
         <p id=\"shown\" role=\"status\">{}</p></form>",
        filters.collect::<Html>(),
        sorts.into_iter().collect::<Html>(),
        plural(listed, "case")
    )
}

fn head(view: &ReportView, figures: &[Figure]) -> Html {
    let arms = view.report.arms.iter().enumerate().map(|(index, arm)| {
        let is_baseline = index == 0 && view.report.arms.len() > 1;
        let role = if is_baseline { html!(" <i>baseline</i>") } else { Html::default() };
        html!(
            "<th scope=\"colgroup\" role=\"columnheader\" colspan=\"{}\">{}{}</th>",
            figures.len() + 1,
            arm.name,
            role
        )
    });
    let columns = view.report.arms.iter().map(|_| {
        let figures = figures
            .iter()
            .map(|figure| html!("<th scope=\"col\" role=\"columnheader\" class=\"n\">{}</th>", figure.name));
        html!("<th scope=\"col\" role=\"columnheader\" class=\"r\">result</th>{}", figures.collect::<Html>())
    });
    html!(
        "<thead role=\"rowgroup\"><tr role=\"row\"><th scope=\"col\" role=\"columnheader\" rowspan=\"2\">Case</th>{}</tr>\
         <tr role=\"row\">{}</tr></thead>",
        arms.collect::<Html>(),
        columns.collect::<Html>()
    )
}

fn row(view: &ReportView, number: usize, case: &CaseView, figures: &[Figure], transcripts: &Html) -> Html {
    let tags = case.info.tags.iter().map(|tag| html!(" <span class=\"tag\">{}</span>", tag)).collect::<Html>();
    let input = case.info.turns.first().map(String::as_str).unwrap_or_default();
    let more = match case.info.turns.len() {
        0 | 1 => Html::default(),
        turns => html!(" <i>+ {}</i>", plural(turns - 1, "more turn")),
    };
    let cells: Html = (0..case.arms.len()).map(|arm| cells(view, case, arm, figures)).collect();
    let columns = figures.len() + 1;
    let reasons = reasons(view, case, columns);
    // The head of the row stands beside the reasons, too.
    let span = if reasons.is_empty() { html!("") } else { html!(" rowspan=\"2\"") };
    let details = match transcripts.is_empty() {
        true => Html::default(),
        false => html!(
            "<tr role=\"row\"><td role=\"cell\" colspan=\"{}\"><details><summary>Transcripts<span class=\"hidden\"> of {}</span>\
             </summary>{}</details></td></tr>",
            case.arms.len() * columns + 1,
            case.info.id,
            transcripts
        ),
    };
    html!(
        "<tbody role=\"rowgroup\" id=\"case-{}\"><tr role=\"row\"><th scope=\"row\" role=\"rowheader\"{}><a href=\"#case-{}\">{}</a>{}\
         <p>{}{}</p></th>{}</tr>{}{}</tbody>",
        number,
        span,
        number,
        case.info.id,
        tags,
        shorten(input, INPUT),
        more,
        cells,
        reasons,
        details
    )
}

/// Returns a row with the reasons why runs did not pass, below each arm if there is room; empty if all passed.
fn reasons(view: &ReportView, case: &CaseView, columns: usize) -> Html {
    let reasons = case.arms.iter().zip(&view.report.arms).map(|(runs, arm)| {
        let reason = runs.iter().find_map(|trial| failure_reason(trial));
        (arm.name.as_str(), shorten(reason.as_deref().unwrap_or_default(), REASON))
    });
    let reasons: Vec<(&str, String)> = reasons.collect();
    if reasons.iter().all(|(_, reason)| reason.is_empty()) {
        return Html::default();
    }
    let cells: Html = if case.arms.len() < MANY_ARMS {
        let cell = |(arm, reason): &(&str, String)| {
            html!("<td role=\"cell\" colspan=\"{}\" data-arm=\"{}\">{}</td>", columns, *arm, reason)
        };
        reasons.iter().map(cell).collect()
    } else {
        let mut arms: IndexMap<&str, Vec<&str>> = IndexMap::new();
        for (arm, reason) in reasons.iter().filter(|(_, reason)| !reason.is_empty()) {
            arms.entry(reason).or_default().push(arm);
        }
        let lines = arms.iter().map(|(reason, arms)| html!("<p><b>{}</b> {}</p>", arms.join(", "), *reason));
        html!("<td role=\"cell\" colspan=\"{}\">{}</td>", columns * case.arms.len(), lines.collect::<Html>())
    };
    html!("<tr role=\"row\" class=\"why\">{}</tr>", cells)
}

/// Returns the result and the figures of a case under an arm.
fn cells(view: &ReportView, case: &CaseView, arm: usize, figures: &[Figure]) -> Html {
    let runs = case.arms.get(arm).map(Vec::as_slice).unwrap_or_default();
    let name = view.report.arms.get(arm).map(|arm| arm.name.as_str()).unwrap_or_default();
    let passed = runs.iter().filter(|trial| trial.passed).count();
    let result: Html = match runs.len() {
        0 => html!("<span class=\"quiet\">not run</span>"),
        1..=MARKS => runs.iter().map(|trial| run_mark(trial)).collect(),
        all => html!("{} {}/{}", mark(passed == all), passed, all),
    };
    let figures = figures.iter().map(|figure| {
        let value = case.figure(arm, figure.read).map_or_else(|| "–".to_owned(), figure.format);
        html!("<td role=\"cell\" class=\"n\">{}</td>", value)
    });
    html!("<td role=\"cell\" class=\"r\" data-arm=\"{}\">{}</td>{}", name, result, figures.collect::<Html>())
}

/// Returns a mark for a run, which may have ended with an error.
fn run_mark(trial: &Trial) -> Html {
    match trial.outcome() {
        TrialOutcome::Error => html!("<span class=\"bad\" role=\"img\" aria-label=\"error\">!</span>"),
        TrialOutcome::Passed | TrialOutcome::NotPassed => mark(trial.passed),
    }
}

/// Returns what the script needs: an index of all rows, and the rows that are not part of the document.
fn data(view: &ReportView, ranked: &[(usize, &CaseView)], later: &[Html]) -> Html {
    let is_compared = view.report.arms.len() > 1;
    let index = ranked.iter().map(|(number, case)| {
        let flags = [
            ("fail", case.has_unpassed()),
            ("lost", case.is_lost()),
            ("won", case.is_won()),
            ("same", is_compared && !case.is_lost() && !case.is_won()),
            ("error", case.has_error()),
        ];
        let flags: Vec<&str> = flags.into_iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag).collect();
        let fails = case.runs().filter(|trial| trial.outcome() == TrialOutcome::NotPassed).count();
        let [latency, tokens, cost] = FIGURES.map(|figure| sort_key(case, figure.read));
        let input = case.info.turns.first().map(|text| shorten(text, INPUT)).unwrap_or_default();
        let text = format!("{} {} {input}", case.info.id, case.info.tags.join(" "));
        json!([number, case.info.id, text, flags.join(" "), fails, latency, tokens, cost])
    });
    let index = Json::Array(index.collect()).to_string();
    let separator = Html::from_markup(SEPARATOR.to_owned());
    let rows: Html = later.iter().flat_map(|row| [row, &separator]).collect();
    html!(
        "<script type=\"application/json\" id=\"index\">{}</script><script type=\"text/plain\" id=\"rows\">{}</script>",
        Html::from_markup(escape_script(&index)),
        rows
    )
}

/// Returns the value by which a case is sorted: the largest change between arms, or the value of the only arm.
fn sort_key(case: &CaseView, figure: fn(&Trial) -> Option<f64>) -> Option<f64> {
    let first = case.figure(0, figure);
    let others = (1..case.arms.len()).filter_map(|arm| Some((case.figure(arm, figure)? - first?).abs()));
    if case.arms.len() > 1 { others.reduce(f64::max) } else { first }
}

/// Escapes JSON so that it can neither end the element that contains it nor be taken for markup.
fn escape_script(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\'' => escaped.push_str(&format!("\\u{:04x}", u32::from(character))),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Returns why a trial did not pass, with the check that failed.
fn failure_reason(trial: &Trial) -> Option<String> {
    if let Some(error) = trial.error() {
        return Some(format!("error: {error}"));
    }
    if let Some(failure) = &trial.failure {
        return Some(format!("no answer: {}", failure.message));
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
