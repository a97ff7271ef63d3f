//! The head of the page: what was found, in words, and what was compared.

use super::html::{Html, html, prose};
use super::number::{count, moment, percent, several};
use super::transcript::sign;
use super::view::View;
use crate::experiment::{ReportKind, summary};
use indexmap::IndexSet;
use patter_core::stats::{Comparison, Contrast, Finding, Interval, Matters};

/// Returns the title and the verdict.
pub(super) fn header(view: &View) -> Html {
    let report = view.report;
    let kind = match report.kind {
        ReportKind::Eval => "Evaluation",
        ReportKind::Ab => "Comparison",
    };
    let compared = report
        .comparison
        .iter()
        .flat_map(|comparison| comparison.summaries.iter().map(|summary| of_arm(comparison, &summary.arm)));
    let compared: Html = compared.collect();
    let verdict = match report.kind {
        ReportKind::Ab if !compared.is_empty() => compared,
        _ => html!("{}{}", of_totals(view), compared),
    };
    let repeats =
        if report.repeats > 1 { format!(" × {} repeats", count(u64::from(report.repeats))) } else { String::new() };
    html!(
        "<header><p class=\"kind\">{}</p><h1>{}</h1>{}{}<p class=\"facts\">{}{} · {} · {}</p></header>",
        kind,
        report.title,
        verdict,
        gates(view),
        several(report.cases.len(), "case"),
        repeats,
        several(report.trials.len(), "run"),
        moment(report.began_ms)
    )
}

/// Returns what is to be said of an arm: large what was found, and all the rest below it.
fn of_arm(comparison: &Comparison, arm: &str) -> Html {
    let contrasts: Vec<&Contrast> = comparison.contrasts.iter().filter(|contrast| contrast.arm == arm).collect();
    let is_found = |contrast: &&&Contrast| matches!(contrast.verdict.finding, Finding::Better | Finding::Worse);
    let found: Vec<&str> = contrasts.iter().filter(is_found).map(|contrast| without_notes(contrast).0).collect();
    let all_equal = contrasts.iter().all(|contrast| contrast.verdict.matters == Matters::No);
    let headline = match found.first() {
        Some(_) => joined(arm, &found),
        None if all_equal && !contrasts.is_empty() => {
            format!("`{arm}` and `{}` are as good as equal in everything that was measured", comparison.baseline)
        }
        None => format!("No clear difference between `{arm}` and `{}`", comparison.baseline),
    };
    let notes: IndexSet<&str> =
        contrasts.iter().filter(is_found).flat_map(|contrast| without_notes(contrast).1).collect();
    let caution = match found.first() {
        None if !all_equal => {
            html!("<p class=\"caution\">That nothing was found does not mean that there is nothing.</p>")
        }
        _ => notes.into_iter().map(|note| html!("<p class=\"caution\">{}.</p>", note)).collect(),
    };
    let rest = contrasts
        .iter()
        .filter(|contrast| !is_found(contrast))
        .map(|contrast| html!("<li>{} {}</li>", finding(contrast), prose(&contrast.verdict.words)));
    html!("<p class=\"verdict\">{}.</p>{}<ul class=\"rest\">{}</ul>", prose(&headline), caution, rest.collect::<Html>())
}

/// Returns a verdict apart from the notes on pairs at its end, which stand in brackets.
fn without_notes(contrast: &Contrast) -> (&str, Vec<&str>) {
    let counts = contrast.counts;
    let (mut words, mut notes) = (contrast.verdict.words.as_str(), Vec::new());
    for _ in [counts.incomplete, counts.failed].into_iter().filter(|count| *count > 0) {
        if let Some((before, note)) = words.strip_suffix(')').and_then(|words| words.rsplit_once(" (")) {
            words = before;
            notes.push(note);
        }
    }
    (words, notes)
}

/// Returns findings as one sentence that names the arm once.
fn joined(arm: &str, found: &[&str]) -> String {
    let named = format!("`{arm}` ");
    let clauses: Vec<&str> = found
        .iter()
        .enumerate()
        .map(|(place, words)| if place == 0 { words } else { words.strip_prefix(&named).unwrap_or(words) })
        .collect();
    match clauses.split_last() {
        Some((last, [])) => (*last).to_owned(),
        // "It is better, but by how much is not clear" and the like have commas of their own.
        Some((last, before)) if clauses.iter().any(|clause| clause.contains(',')) => {
            format!("{}; {last}", before.join("; "))
        }
        Some((last, before)) => format!("{} and {last}", before.join(", ")),
        None => String::new(),
    }
}

/// Returns what was found as a sign with words.
pub(super) fn finding(contrast: &Contrast) -> Html {
    match (contrast.verdict.finding, contrast.verdict.matters) {
        (Finding::Better, _) => {
            html!("<span class=\"finding better\"><span aria-hidden=\"true\">▲</span> better</span>")
        }
        (Finding::Worse, _) => html!("<span class=\"finding worse\"><span aria-hidden=\"true\">▼</span> worse</span>"),
        (Finding::Unclear, Matters::No) => {
            html!("<span class=\"finding\"><span aria-hidden=\"true\">=</span> as good as equal</span>")
        }
        (Finding::Unclear, _) => html!("<span class=\"finding\"><span aria-hidden=\"true\">?</span> unclear</span>"),
        (Finding::Unmeasured, _) => {
            html!("<span class=\"finding\"><span aria-hidden=\"true\">–</span> not measured</span>")
        }
    }
}

/// Returns how many runs passed, for each arm.
fn of_totals(view: &View) -> Html {
    let several_arms = view.report.arms.len() > 1;
    let arms = view.report.arms.iter().enumerate().map(|(place, arm)| {
        let all = summary(view.runs(place));
        let name = if several_arms { html!("<code>{}</code>: ", arm.name) } else { Html::default() };
        let Some(rate) = all.pass_rate else { return html!("<p class=\"verdict\">{}Nothing was run.</p>", name) };
        let words = match (all.passed, all.runs) {
            (passed, runs) if passed == runs => format!("All {} passed", several(runs, "run")),
            (0, runs) => format!("None of {} passed", several(runs, "run")),
            (passed, runs) => format!("{} of {} passed", count(passed as u64), several(runs, "run")),
        };
        let interval = all.pass_interval.map_or(Html::default(), |Interval { low, high }| {
            html!("; with 95 % confidence it is {} to {} for cases like these", percent(low), percent(high))
        });
        html!(
            "<p class=\"verdict\">{}{}.</p><p class=\"caution\">Pass rate {}{}.</p>",
            name,
            words,
            percent(rate),
            interval
        )
    });
    arms.collect()
}

/// Returns whether gates hold.
fn gates(view: &View) -> Html {
    let gates = &view.report.gates;
    let missed = gates.iter().filter(|gate| !gate.passed).count();
    match (gates.len(), missed) {
        (0, _) => Html::default(),
        (1, 0) => html!("<p class=\"gate\">{} The gate holds.</p>", sign(true)),
        (all, 0) => html!("<p class=\"gate\">{} All {} gates hold.</p>", sign(true), all),
        (1, _) => html!("<p class=\"gate\">{} The gate does not hold.</p>", sign(false)),
        (all, 1) => html!("<p class=\"gate\">{} 1 of {} gates does not hold.</p>", sign(false), all),
        (all, missed) => {
            html!("<p class=\"gate\">{} {} of {} gates do not hold.</p>", sign(false), missed, all)
        }
    }
}

/// Returns what was run.
pub(super) fn arms(view: &View, heading: &str) -> Html {
    let report = view.report;
    let is_compared = report.arms.len() > 1;
    let arms = report.arms.iter().enumerate().map(|(place, arm)| {
        let role = if place == 0 && is_compared { html!(" <i>baseline</i>") } else { Html::default() };
        let facts = [
            ("given as", &arm.what),
            ("agent", &arm.agent),
            ("model", &arm.model),
            ("file", &arm.file),
            ("agent version", &arm.agent_hash),
            ("tools version", &arm.bindings_hash),
        ];
        let facts = facts.into_iter().filter(|(_, fact)| !fact.is_empty());
        let facts = facts.map(|(name, fact)| html!("<div><dt>{}</dt><dd>{}</dd></div>", name, fact));
        html!("<article><h3>{}{}</h3><dl>{}</dl></article>", arm.name, role, facts.collect::<Html>())
    });
    html!(
        "<section id=\"arms\" aria-labelledby=\"arms-h\"><h2 id=\"arms-h\">{}</h2><div class=\"arms\">{}</div></section>",
        heading,
        arms.collect::<Html>()
    )
}
