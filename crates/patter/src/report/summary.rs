//! The first screen: what to do, why, and how sure that is.

use super::decision::{Advice, ArmDecision, decisions, is_identical, preferred};
use super::forest::forest;
use super::number::{count, digits, dollars, duration, percent, plural, timestamp};
use super::svg;
use super::transcript::{mark, shorten};
use super::view::ReportView;
use crate::experiment::{ArmSummary, ReportKind, Trial, TrialOutcome, summarize};
use crate::html::{Html, html, prose};
use patter_core::stats::{Comparison, Conclusion, Contrast, Interval, MetricKind, Relevance};

/// The number of characters of the reason why runs have no answer.
const REASON: usize = 200;

/// Returns the title, what to know before reading the results, and the results.
pub(super) fn header(view: &ReportView) -> Html {
    let report = view.report;
    let kind = match report.kind {
        ReportKind::Eval => "Evaluation",
        ReportKind::Ab => "Comparison",
    };
    let repeats =
        if report.repeats > 1 { format!(" × {} repeats", count(u64::from(report.repeats))) } else { String::new() };
    let compared = report.comparison.as_ref().map(|comparison| compared(view, comparison)).unwrap_or_default();
    let results = match report.kind {
        ReportKind::Ab if !compared.is_empty() => compared,
        ReportKind::Ab | ReportKind::Eval => html!("{}{}{}", evaluated(view), gates(view), compared),
    };
    html!(
        "<header><p class=\"kind\">{} · {}{} · {} · {}</p><h1>{}</h1>{}{}</header>",
        kind,
        plural(report.cases.len(), "case"),
        repeats,
        plural(report.trials.len(), "run"),
        timestamp(report.began_ms),
        report.title,
        banners(view),
        results
    )
}

/// Returns what limits the results: missing runs, an early end, errors, and runs without an answer.
fn banners(view: &ReportView) -> Html {
    let planned = view.report.planned();
    let done = view.done();
    let mut banners = Vec::new();
    if done < planned {
        let amount = format!("{} of {} ran", count(done as u64), plural(planned, "planned run"));
        banners.push(match view.is_interrupted() {
            true => banner("Incomplete", &format!("{amount}. The results are preliminary.")),
            false => banner(
                "Stopped early",
                &format!("{amount}. The tests and intervals allow for stopping as soon as the result is clear."),
            ),
        });
    }
    let runs_with = |has: &dyn Fn(&Trial) -> bool| -> String {
        let arms = view.report.arms.iter().enumerate().filter_map(|(index, arm)| {
            let found = view.runs(index).filter(|trial| has(trial)).count();
            let runs = plural(view.runs(index).count(), "run");
            (found > 0).then(|| format!("{} of {runs} of `{}`", count(found as u64), arm.name))
        });
        arms.collect::<Vec<_>>().join(", ")
    };
    if let Some(message) = view.common_message(Trial::error) {
        let runs = runs_with(&|trial| trial.error().is_some());
        let message = shorten(message, REASON);
        banners
            .push(banner("Errors", &format!("{runs} could not be judged, and are left out; most often: {message}.")));
    }
    if let Some(message) = view.common_message(unanswered) {
        let runs = runs_with(&|trial| unanswered(trial).is_some());
        let message = shorten(message, REASON);
        banners.push(banner(
            "Runs without an answer",
            &format!("{runs} did not answer, and count as not passed; most often: {message}."),
        ));
    }
    banners.into_iter().collect()
}

/// Returns why an agent did not answer, or not within its limits.
fn unanswered(trial: &Trial) -> Option<&str> {
    let failure = trial.failure.as_ref().filter(|_| trial.outcome() == TrialOutcome::NotPassed)?;
    Some(failure.message.as_str())
}

fn banner(title: &str, text: &str) -> Html {
    html!("<p class=\"banner\"><strong>{}.</strong> {}</p>", title, prose(text))
}

/// Returns the decision between arms, the cases won and lost, and the plot of all differences.
fn compared(view: &ReportView, comparison: &Comparison) -> Html {
    let decisions = decisions(comparison);
    if decisions.is_empty() {
        return Html::default();
    }
    let preferred = preferred(&decisions);
    let headline = match view.report.kind {
        ReportKind::Ab => headline(&comparison.baseline, &decisions, preferred),
        ReportKind::Eval => change_headline(&decisions),
    };
    let explained = preferred.or(if let [only] = decisions.as_slice() { Some(only) } else { None });
    let explained = explained.map_or(Html::default(), |decision| reasons(decision, &comparison.baseline));
    let others = decisions.iter().filter(|decision| preferred.is_some_and(|preferred| preferred.arm != decision.arm));
    let untested = match others.filter(|decision| matches!(decision.advice, Advice::Switch | Advice::AtAPrice)).count()
    {
        0 => Html::default(),
        _ => html!(
            "<p class=\"caution\">Each arm was compared with <code>{}</code>, not with the other arms.</p>",
            comparison.baseline
        ),
    };
    if decisions.iter().all(|decision| decision.advice == Advice::Unmeasured) {
        return html!("<p class=\"verdict\">{}</p>{}", headline, explained);
    }
    let tallies: Html = decisions.iter().map(|decision| tally(view, comparison, decision)).collect();
    html!(
        "<p class=\"verdict\">{}{}</p>{}{}<div class=\"tallies\">{}</div>{}",
        if view.is_interrupted() { "So far: " } else { "" },
        headline,
        explained,
        untested,
        tallies,
        forest(comparison, &decisions)
    )
}

/// Returns the advice in a few words.
fn headline(baseline: &str, decisions: &[ArmDecision], preferred: Option<&ArmDecision>) -> Html {
    let all = |advice: Advice| decisions.iter().all(|decision| decision.advice == advice);
    match preferred {
        Some(ArmDecision { advice: Advice::AtAPrice, arm, .. }) => {
            return html!("<code>{}</code> is more correct, at a price", arm);
        }
        Some(preferred) => return html!("Switch to <code>{}</code>", preferred.arm),
        None => {}
    }
    if all(Advice::Keep) {
        return html!("Keep <code>{}</code>", baseline);
    }
    if all(Advice::Unmeasured) {
        return html!("Cannot decide");
    }
    if all(Advice::Tie) {
        return html!("Practically equal");
    }
    match decisions {
        [ArmDecision { advice: Advice::TradeOff, arm, .. }] => html!("<code>{}</code> is a trade-off", arm),
        [ArmDecision { advice: Advice::Unclear, .. }] => {
            html!("No clear winner yet between <code>{}</code> and <code>{}</code>", baseline, arm_of(decisions))
        }
        _ => html!("Keep <code>{}</code> for now: no arm is clearly better", baseline),
    }
}

fn arm_of<'c>(decisions: &[ArmDecision<'c>]) -> &'c str {
    decisions.first().map(|decision| decision.arm).unwrap_or_default()
}

/// Returns how an agent has changed since an earlier report.
fn change_headline(decisions: &[ArmDecision]) -> Html {
    match decisions.first().map(|decision| decision.advice) {
        Some(Advice::AtAPrice) => html!("More correct than the baseline, at a price"),
        Some(Advice::Switch) => html!("Better than the baseline"),
        Some(Advice::Keep) => html!("Worse than the baseline"),
        Some(Advice::Tie) => html!("Practically equal to the baseline"),
        Some(Advice::TradeOff) => html!("As correct as the baseline, better and worse in other metrics"),
        Some(Advice::Unclear) => html!("No clear change from the baseline"),
        Some(Advice::Unmeasured) | None => html!("No case in common with the baseline"),
    }
}

/// Explains the advice on an arm, with caveats.
fn reasons(decision: &ArmDecision, baseline: &str) -> Html {
    let mut notes: Vec<String> = Vec::new();
    let found = |contrast: &&&Contrast| matches!(contrast.verdict.conclusion, Conclusion::Better | Conclusion::Worse);
    let explained = decision.explain(baseline);
    for note in decision.contrasts.iter().filter(found).flat_map(|contrast| &contrast.verdict.notes) {
        let note = note.to_string();
        if !notes.contains(&note) && !explained.contains(&note) {
            notes.push(note);
        }
    }
    let notes: Vec<String> = notes.iter().map(|note| format!("{note}.")).collect();
    let notes = if notes.is_empty() { Html::default() } else { html!("<p class=\"caution\">{}</p>", notes.join(" ")) };
    html!("<p class=\"because\">{}</p>{}", prose(&explained), notes)
}

/// Returns the pass rates of two arms, and how many cases were won and lost.
fn tally(view: &ReportView, comparison: &Comparison, decision: &ArmDecision) -> Html {
    let Some(pass) = decision.pass() else { return Html::default() };
    let rate = |mean: Option<f64>| mean.map_or_else(|| "–".to_owned(), percent);
    let counts = pass.counts;
    let part = |number: usize, name: &str| {
        let text = html!("<b>{}</b> {}", count(number as u64), name);
        match view.report.kind {
            ReportKind::Ab => {
                html!("<li class=\"{}\"><a href=\"#cases\" data-only=\"{}\">{}</a></li>", name, name, text)
            }
            // The cases of the earlier report are not on the page.
            ReportKind::Eval => html!("<li class=\"{}\">{}</li>", name, text),
        }
    };
    html!(
        "<div class=\"tally\"><p class=\"rates\"><span><span class=\"arm\">{}</span> <b>{}</b></span> <span>→ <span class=\"arm\">{}</span> \
         <b>{}</b></span> <span class=\"quiet\">passed</span></p>{}<ul>{}{}{}<li class=\"quiet\">of {}</li></ul></div>",
        comparison.baseline,
        rate(pass.baseline_mean),
        decision.arm,
        rate(pass.arm_mean),
        svg::stack(counts.better, counts.same, counts.worse),
        part(counts.better, "won"),
        part(counts.worse, "lost"),
        part(counts.same, "same"),
        plural(counts.cases, "case")
    )
}

/// Returns a finding as a symbol with a word.
pub(super) fn finding(contrast: &Contrast) -> Html {
    let (class, symbol, word) = match (contrast.verdict.conclusion, contrast.verdict.relevance) {
        (Conclusion::Better, _) => ("better", "▲", "better"),
        (Conclusion::Worse, _) => ("worse", "▼", "worse"),
        (Conclusion::Unclear, Relevance::Negligible) => ("equal", "=", "equal"),
        (Conclusion::Unclear, _) if is_identical(contrast) && contrast.kind != MetricKind::Pass => {
            ("equal", "=", "identical")
        }
        (Conclusion::Unclear, _) => ("unclear", "?", "unclear"),
        (Conclusion::Unmeasured, _) => ("unclear", "–", "not measured"),
    };
    html!("<span class=\"finding {}\"><span aria-hidden=\"true\">{}</span> {}</span>", class, symbol, word)
}

/// Returns how many runs of each arm passed, and its figures.
fn evaluated(view: &ReportView) -> Html {
    let is_multiple = view.report.arms.len() > 1;
    let arms = view.report.arms.iter().enumerate().map(|(index, arm)| {
        let all = summarize(view.runs(index));
        let name = if is_multiple { html!("<code>{}</code>: ", arm.name) } else { Html::default() };
        let Some(rate) = all.pass_rate else {
            let words = if all.runs == 0 { "Nothing was run" } else { "Every run ended with an error" };
            return html!("<p class=\"verdict\">{}{}</p>", name, words);
        };
        let words = match (all.passed, all.decided()) {
            (passed, runs) if passed == runs => format!("All {} passed", plural(runs, "run")),
            (0, runs) => format!("None of {} passed", plural(runs, "run")),
            (passed, runs) => format!("{} of {} passed", count(passed as u64), plural(runs, "run")),
        };
        html!("<p class=\"verdict\">{}{}</p>{}", name, words, figures(&all, rate))
    });
    arms.collect()
}

/// Returns the figures of an arm.
fn figures(all: &ArmSummary, rate: f64) -> Html {
    let interval =
        all.pass_interval.map(|Interval { low, high }| format!("95% CI {} to {}", percent(low), percent(high)));
    let p95 = all.latency_p95_ms.map(|ms| format!("95th percentile {}", duration(ms as f64)));
    let cost = all.cost.map(|cost| format!("{cost} in total"));
    let figures = [
        ("pass rate", Some(percent(rate)), interval),
        ("latency", all.latency_p50_ms.map(|ms| duration(ms as f64)), p95),
        (
            "tokens per run",
            all.mean(all.tokens).filter(|mean| *mean > 0.0).map(|mean| count(mean.round() as u64)),
            None,
        ),
        ("cost per run", all.mean_cost().map(dollars), cost),
        ("model calls per run", all.mean(all.model_calls).map(digits), None),
        ("tool calls per run", all.mean(all.tool_calls).filter(|mean| *mean > 0.0).map(digits), None),
    ];
    let figures = figures.into_iter().filter_map(|(name, figure, note)| {
        let note = note.map_or(Html::default(), |note| html!("<dd class=\"quiet\">{}</dd>", note));
        Some(html!("<div><dt>{}</dt><dd>{}</dd>{}</div>", name, figure?, note))
    });
    html!("<dl class=\"figures-strip\">{}</dl>", figures.collect::<Html>())
}

/// Returns the results of the gates.
fn gates(view: &ReportView) -> Html {
    let gates = view.report.gates.iter().map(|gate| {
        let word = match (gate.passed, gate.undecided) {
            (true, _) => "passed",
            (false, true) => "undecided",
            (false, false) => "failed",
        };
        html!("<li>{} <code>{}</code> {}: {}</li>", mark(gate.passed), gate.gate, word, prose(&gate.why))
    });
    let gates: Html = gates.collect();
    if gates.is_empty() { gates } else { html!("<ul class=\"gates\" aria-label=\"Gates\">{}</ul>", gates) }
}
