//! Judges, the method, how to read the figures, and what exactly was run.

use super::number::{count, digits, duration, percent, plural, timestamp};
use super::view::ReportView;
use crate::experiment::Report;
use crate::html::{Html, html};
use patter_core::stats::Stopping;

/// Returns the judges with their instructions; empty if there are none.
pub(super) fn judges(view: &ReportView) -> Html {
    let judges = &view.report.judges;
    if judges.is_empty() {
        return Html::default();
    }
    let each = judges.iter().map(|judge| {
        let instruction = match judge.instruction.is_empty() {
            true => html!("<p class=\"quiet\">No instruction.</p>"),
            false => html!("<pre>{}</pre>", judge.instruction),
        };
        html!(
            "<article><h3>{}</h3><p>The agent <code>{}</code> (version <code>{}</code>) with the model <code>{}</code> and the instruction:</p>{}</article>",
            judge.name,
            judge.agent,
            judge.agent_hash,
            judge.model,
            instruction
        )
    });
    html!(
        "<section id=\"judge\" aria-labelledby=\"judge-h\"><h2 id=\"judge-h\">Judges</h2><p class=\"aside\">Some checks were \
         decided by a model. Its verdicts are opinions, and may favour answers from similar models.</p>{}</section>",
        each.collect::<Html>()
    )
}

/// Returns the section on the method.
pub(super) fn method(view: &ReportView) -> Html {
    let report = view.report;
    let options = report.comparison.as_ref().map(|comparison| &comparison.options);
    let mut facts: Vec<(&str, Html)> = vec![
        ("started", timestamp(report.began_ms)),
        (
            "ended",
            html!(
                "{}, after {}",
                timestamp(report.ended_ms),
                duration(report.ended_ms.saturating_sub(report.began_ms) as f64)
            ),
        ),
        ("cases", html!("{}", count(report.cases.len() as u64))),
        ("repeats", html!("{}", report.repeats)),
        ("runs", html!("{}", count(report.trials.len() as u64))),
        ("seed", html!("{}", report.seed)),
    ];
    if let Some(options) = options {
        facts.push(("significance level", html!("{}", digits(options.alpha))));
        facts.push(("resamples", html!("{}", count(options.resamples as u64))));
    }
    facts.push(("patter version", html!("{}", report.version)));
    let missing = report.planned().saturating_sub(view.done());
    if missing > 0 {
        facts.push(("not run", html!("{} without a result", plural(missing, "planned run"))));
    }
    if view.unlisted > 0 {
        facts.push(("omitted", html!("{} of unlisted arms or cases", plural(view.unlisted, "run"))));
    }
    let facts = facts.into_iter().map(|(name, fact)| html!("<div><dt>{}</dt><dd>{}</dd></div>", name, fact));
    html!(
        "<section id=\"method\" aria-labelledby=\"method-h\"><h2 id=\"method-h\">Method</h2><dl class=\"wide\">{}</dl>{}{}</section>",
        facts.collect::<Html>(),
        if options.is_some() { notes(view) } else { Html::default() },
        arms(view)
    )
}

/// Returns what exactly was run, with the hashes that identify it.
fn arms(view: &ReportView) -> Html {
    let report = view.report;
    let is_compared = report.arms.len() > 1;
    let arms = report.arms.iter().enumerate().map(|(index, arm)| {
        let role = if index == 0 && is_compared { html!(" <i>baseline</i>") } else { Html::default() };
        let facts = [
            ("specified as", &arm.description),
            ("agent", &arm.agent),
            ("model", &arm.model),
            ("file", &arm.file),
            ("agent hash", &arm.agent_hash),
            ("tools hash", &arm.bindings_hash),
        ];
        let facts = facts.into_iter().filter(|(_, fact)| !fact.is_empty());
        let facts = facts.map(|(name, fact)| html!("<div><dt>{}</dt><dd>{}</dd></div>", name, fact));
        html!("<article><h4>{}{}</h4><dl>{}</dl></article>", arm.name, role, facts.collect::<Html>())
    });
    let arms: Html = arms.collect();
    let heading = if is_compared { "Arms" } else { "Agent" };
    if arms.is_empty() { arms } else { html!("<h3>{}</h3><div class=\"arms\">{}</div>", heading, arms) }
}

/// Returns an explanation of the figures.
fn notes(view: &ReportView) -> Html {
    let Some(comparison) = &view.report.comparison else { return Html::default() };
    let options = &comparison.options;
    let stopping = match options.stopping {
        Stopping::Fixed => html!(""),
        Stopping::Anytime => html!(
            "<p>The results were inspected while the experiment ran and decided when it ended. The tests and intervals \
             allow for that, and are more conservative than those of an experiment of fixed size.</p>"
        ),
    };
    html!(
        "<h3>How to read the figures</h3>\
         <p>All arms ran the same cases, interleaved in random order, and are compared case by case: what makes a case hard or \
         slow affects all arms alike and cancels out. Repeats of a case count as one case, by their mean.</p>\
         <p>An interval contains the true difference with {} confidence. The p-value is the probability that chance alone would \
         produce a difference at least this large if there were none. The pass rate is tested first, \
         and adjusted (Holm) only for the number of arms: the probability of a false finding is at most {}. The other metrics \
         follow, adjusted for each other. They need stronger evidence unless the pass rate differs.</p>\
         <p>Pass rates of single runs are tested exactly (McNemar) and have score intervals (Tango). All other metrics are tested by \
         flipping the signs of the differences of cases, and have bootstrap intervals (BCa) over cases. Latency, tokens and cost are \
         compared by ratios, which describe how a typical case changes; the bill changes by the difference of the means. The effect \
         size d is the mean difference divided by its standard deviation across cases.</p>\
         <p>A run without an answer within its limits counts as not passed; its latency and cost are unknown. A run that ended \
         with an error of a model, a judge or a program neither passed nor failed, and is left out.</p>{}",
        percent(1.0 - options.alpha),
        digits(options.alpha),
        stopping
    )
}

/// Returns the footer of the page.
pub(super) fn footer(report: &Report) -> Html {
    html!(
        "<footer><p>Generated by patter {}. This page is self-contained and makes no network requests.</p></footer>",
        report.version
    )
}
