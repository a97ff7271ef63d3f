//! The top of the page: the findings in words, and the arms.

use super::html::{Html, html, prose};
use super::number::{count, percent, plural, timestamp};
use super::transcript::mark;
use super::view::ReportView;
use crate::experiment::{ReportKind, summarize};
use indexmap::IndexSet;
use patter_core::stats::{Comparison, Conclusion, Contrast, Interval, Relevance, VerdictNote};

/// Returns the title and the verdict.
pub(super) fn header(view: &ReportView) -> Html {
    let report = view.report;
    let kind = match report.kind {
        ReportKind::Eval => "Evaluation",
        ReportKind::Ab => "Comparison",
    };
    let compared = report
        .comparison
        .iter()
        .flat_map(|comparison| comparison.summaries.iter().map(|summary| arm_verdict(comparison, &summary.arm)));
    let compared: Html = compared.collect();
    let verdict = match report.kind {
        ReportKind::Ab if !compared.is_empty() => compared,
        _ => html!("{}{}", pass_rates(view), compared),
    };
    let repeats =
        if report.repeats > 1 { format!(" × {} repeats", count(u64::from(report.repeats))) } else { String::new() };
    html!(
        "<header><p class=\"kind\">{}</p><h1>{}</h1>{}{}<p class=\"facts\">{}{} · {} · {}</p></header>",
        kind,
        report.title,
        verdict,
        gates(view),
        plural(report.cases.len(), "case"),
        repeats,
        plural(report.trials.len(), "run"),
        timestamp(report.began_ms)
    )
}

/// Returns the verdict on an arm: the findings as a headline, and the other metrics below.
fn arm_verdict(comparison: &Comparison, arm: &str) -> Html {
    let contrasts: Vec<&Contrast> = comparison.contrasts.iter().filter(|contrast| contrast.arm == arm).collect();
    let is_found = |contrast: &&Contrast| matches!(contrast.verdict.conclusion, Conclusion::Better | Conclusion::Worse);
    let found: Vec<&Contrast> = contrasts.iter().copied().filter(is_found).collect();
    let all_equal = contrasts.iter().all(|contrast| contrast.verdict.relevance == Relevance::Negligible);
    let headline = match found.first() {
        Some(_) => headline_of(arm, &found),
        None if all_equal && !contrasts.is_empty() => {
            format!("`{arm}` and `{}` are practically equal in every metric", comparison.baseline)
        }
        None => format!("No clear difference between `{arm}` and `{}`", comparison.baseline),
    };
    let notes: IndexSet<VerdictNote> =
        found.iter().flat_map(|contrast| contrast.verdict.notes.iter().copied()).collect();
    let caution = match found.first() {
        None if !all_equal => {
            html!("<p class=\"caution\">Absence of evidence is not evidence of absence.</p>")
        }
        _ => notes.into_iter().map(|note| html!("<p class=\"caution\">{}.</p>", note.to_string())).collect(),
    };
    let rest = contrasts
        .iter()
        .filter(|contrast| !is_found(contrast))
        .map(|contrast| html!("<li>{} {}</li>", finding(contrast), prose(&contrast.verdict.text)));
    html!("<p class=\"verdict\">{}.</p>{}<ul class=\"rest\">{}</ul>", prose(&headline), caution, rest.collect::<Html>())
}

/// Returns the claims about an arm as one sentence.
fn headline_of(arm: &str, found: &[&Contrast]) -> String {
    let predicates: Option<Vec<&str>> = found.iter().map(|contrast| contrast.verdict.predicate.as_deref()).collect();
    match predicates.as_deref().and_then(<[&str]>::split_last) {
        Some((last, [])) => format!("`{arm}` {last}"),
        Some((last, rest)) => format!("`{arm}` {} and {last}", rest.join(", ")),
        // Reports of earlier versions have only whole sentences.
        None => found.iter().map(|contrast| contrast.verdict.text.as_str()).collect::<Vec<_>>().join("; "),
    }
}

/// Returns a finding as a symbol with a word.
pub(super) fn finding(contrast: &Contrast) -> Html {
    match (contrast.verdict.conclusion, contrast.verdict.relevance) {
        (Conclusion::Better, _) => {
            html!("<span class=\"finding better\"><span aria-hidden=\"true\">▲</span> better</span>")
        }
        (Conclusion::Worse, _) => {
            html!("<span class=\"finding worse\"><span aria-hidden=\"true\">▼</span> worse</span>")
        }
        (Conclusion::Unclear, Relevance::Negligible) => {
            html!("<span class=\"finding\"><span aria-hidden=\"true\">=</span> as good as equal</span>")
        }
        (Conclusion::Unclear, _) => html!("<span class=\"finding\"><span aria-hidden=\"true\">?</span> unclear</span>"),
        (Conclusion::Unmeasured, _) => {
            html!("<span class=\"finding\"><span aria-hidden=\"true\">–</span> not measured</span>")
        }
    }
}

/// Returns how many runs of each arm passed.
fn pass_rates(view: &ReportView) -> Html {
    let is_multiple = view.report.arms.len() > 1;
    let arms = view.report.arms.iter().enumerate().map(|(index, arm)| {
        let all = summarize(view.runs(index));
        let name = if is_multiple { html!("<code>{}</code>: ", arm.name) } else { Html::default() };
        let Some(rate) = all.pass_rate else { return html!("<p class=\"verdict\">{}Nothing was run.</p>", name) };
        let words = match (all.passed, all.runs) {
            (passed, runs) if passed == runs => format!("All {} passed", plural(runs, "run")),
            (0, runs) => format!("None of {} passed", plural(runs, "run")),
            (passed, runs) => format!("{} of {} passed", count(passed as u64), plural(runs, "run")),
        };
        let interval = all.pass_interval.map_or(Html::default(), |Interval { low, high }| {
            html!(" (95% confidence interval {} to {})", percent(low), percent(high))
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

/// Returns a line on the gates.
fn gates(view: &ReportView) -> Html {
    let gates = &view.report.gates;
    let failed = gates.iter().filter(|gate| !gate.passed).count();
    match (gates.len(), failed) {
        (0, _) => Html::default(),
        (1, 0) => html!("<p class=\"gate\">{} The gate passed.</p>", mark(true)),
        (all, 0) => html!("<p class=\"gate\">{} All {} gates passed.</p>", mark(true), all),
        (1, _) => html!("<p class=\"gate\">{} The gate failed.</p>", mark(false)),
        (all, failed) => html!("<p class=\"gate\">{} {} of {} gates failed.</p>", mark(false), failed, all),
    }
}

/// Returns the section on the arms.
pub(super) fn arms(view: &ReportView, heading: &str) -> Html {
    let report = view.report;
    let is_compared = report.arms.len() > 1;
    let arms = report.arms.iter().enumerate().map(|(index, arm)| {
        let role = if index == 0 && is_compared { html!(" <i>baseline</i>") } else { Html::default() };
        let facts = [
            ("specified as", &arm.description),
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
