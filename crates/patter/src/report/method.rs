//! Gates, the judge, how it was run, and what the figures mean.

use super::html::{Html, html, prose};
use super::number::{count, digits, duration, moment, percent, several};
use super::transcript::sign;
use super::view::View;
use patter_core::stats::Stopping;

/// Returns what was asked of the figures; nothing where nothing was.
pub(super) fn gates(view: &View) -> Html {
    let gates = &view.report.gates;
    if gates.is_empty() {
        return Html::default();
    }
    let rows = gates.iter().map(|gate| {
        let word = if gate.passed { "holds" } else { "does not hold" };
        html!(
            "<tr><th scope=\"row\"><code>{}</code></th><td>{} {}</td><td>{}</td></tr>",
            gate.gate,
            sign(gate.passed),
            word,
            prose(&gate.why)
        )
    });
    html!(
        "<section id=\"gates\" aria-labelledby=\"gates-h\"><h2 id=\"gates-h\">Gates</h2><div class=\"scroll\"><table class=\"figures\">\
         <thead><tr><th scope=\"col\">Gate</th><th scope=\"col\">Outcome</th><th scope=\"col\">Found</th></tr></thead>\
         <tbody>{}</tbody></table></div></section>",
        rows.collect::<Html>()
    )
}

/// Returns who judged answers, and by what instruction.
pub(super) fn judges(view: &View) -> Html {
    let judges = &view.report.judges;
    if judges.is_empty() {
        return Html::default();
    }
    let each = judges.iter().map(|judge| {
        let instruction = match judge.instruction.is_empty() {
            true => html!("<p class=\"quiet\">It has no instruction.</p>"),
            false => html!("<pre>{}</pre>", judge.instruction),
        };
        html!(
            "<article><h3>{}</h3><p>The agent <code>{}</code> (version <code>{}</code>) with the model <code>{}</code> was told:</p>{}</article>",
            judge.name,
            judge.agent,
            judge.agent_hash,
            judge.model,
            instruction
        )
    });
    html!(
        "<section id=\"judge\" aria-labelledby=\"judge-h\"><h2 id=\"judge-h\">Judges</h2><p class=\"aside\">Where a check asks for a \
         judgement, a model gave it. That is an opinion, and may favour answers of its own kind.</p>{}</section>",
        each.collect::<Html>()
    )
}

/// Returns how it was run.
pub(super) fn method(view: &View) -> Html {
    let report = view.report;
    let options = report.comparison.as_ref().map(|comparison| &comparison.options);
    let mut facts: Vec<(&str, Html)> = vec![
        ("began", moment(report.began_ms)),
        (
            "ended",
            html!(
                "{}, after {}",
                moment(report.ended_ms),
                duration(report.ended_ms.saturating_sub(report.began_ms) as f64)
            ),
        ),
        ("cases", html!("{}", count(report.cases.len() as u64))),
        ("repeats", html!("{}", report.repeats)),
        ("runs", html!("{}", count(report.trials.len() as u64))),
        ("seed", html!("{}", report.seed)),
    ];
    if let Some(options) = options {
        facts.push(("level", html!("{}", digits(options.alpha))));
        facts.push(("resamples", html!("{}", count(options.resamples as u64))));
    }
    facts.push(("patter", html!("{}", report.version)));
    let missing = (report.cases.len() * report.arms.len()).saturating_mul(report.repeats as usize);
    let missing = missing.saturating_sub(report.trials.len() - view.strays);
    if missing > 0 {
        facts.push(("not run", html!("{} that were planned have no result", several(missing, "run"))));
    }
    if view.strays > 0 {
        facts.push(("left out", html!("{} of arms or cases that are not listed", several(view.strays, "run"))));
    }
    let facts = facts.into_iter().map(|(name, fact)| html!("<div><dt>{}</dt><dd>{}</dd></div>", name, fact));
    html!(
        "<section id=\"method\" aria-labelledby=\"method-h\"><h2 id=\"method-h\">How it was run</h2><dl class=\"wide\">{}</dl>{}</section>",
        facts.collect::<Html>(),
        if options.is_some() { notes(view) } else { Html::default() }
    )
}

/// Returns what the figures mean, in plain words.
fn notes(view: &View) -> Html {
    let Some(comparison) = &view.report.comparison else { return Html::default() };
    let options = &comparison.options;
    let stopping = match options.stopping {
        Stopping::Fixed => html!(""),
        Stopping::Anytime => html!(
            "<p>Someone looked while it ran, and what came out decided when it ended. Tests and intervals are of a kind that \
             allows that: they are wider than those of an experiment of fixed size.</p>"
        ),
    };
    html!(
        "<h3>What the figures mean</h3>\
         <p>Arms were run on the same cases, one beside the other in random order, and are compared case by case: what makes a case \
         hard or slow is the same for both and cancels out. Repeats of a case count as one case, by their mean.</p>\
         <p>An interval has the true difference in it with {} confidence. The p-value says how often chance alone would show a \
         difference like this one or a larger one if there were none. It is adjusted (Holm) for {} made here, so that the \
         probability of calling anything at all a difference wrongly is at most {}.</p>\
         <p>Pass rates of single runs are tested exactly (McNemar) and have score intervals (Tango). All else is tested by flipping \
         the signs of the cases’ differences, and has bootstrap intervals (BCa) over cases. Latency, tokens and cost are compared by \
         ratios, which say how a typical case changes; what changes in the bill is the difference of the means. The effect size d is \
         the mean difference over its standard deviation from case to case.</p>\
         <p>A run that failed counts as not passed, and its latency and cost are unknown.</p>{}",
        percent(1.0 - options.alpha),
        several(comparison.contrasts.len(), "test"),
        digits(options.alpha),
        stopping
    )
}

/// Returns the foot of the page.
pub(super) fn footer(view: &View) -> Html {
    html!(
        "<footer><p>Made by patter {}. This page is one file and asks for nothing from anywhere.</p></footer>",
        view.report.version
    )
}
