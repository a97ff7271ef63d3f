//! Transcripts of a case, the arms side by side, with differences marked.

use super::changes::{Version, mark_changes};
use super::number::{count, duration, plural};
use super::view::{CaseView, ReportView};
use crate::experiment::Trial;
use crate::html::{Html, html, prose};
use patter_core::message::conversation::{Message, ToolCall};
use std::collections::HashMap;

/// The approximate number of characters of all transcripts of a page.
const PAGE: usize = 3_000_000;
/// The minimum and maximum number of characters of one transcript.
const TRANSCRIPT: std::ops::RangeInclusive<usize> = 1_200..=24_000;
/// The number of characters to which a message is never shortened further.
const MESSAGE: usize = 120;
/// The maximum number of steps shown of a turn: the first and the last ones.
const STEPS: usize = 60;
/// The length of the note about omitted characters; shortening by less would save nothing.
const NOTE: usize = 30;

/// Returns the maximum number of characters of a transcript.
pub(super) fn transcript_budget(view: &ReportView) -> usize {
    (PAGE / view.report.trials.len().max(1)).clamp(*TRANSCRIPT.start(), *TRANSCRIPT.end())
}

/// Returns all transcripts of a case, repeat by repeat.
pub(super) fn transcripts(view: &ReportView, case: &CaseView, budget: usize) -> Html {
    let mut repeats: Vec<u32> = case.runs().map(|trial| trial.repeat).collect();
    repeats.sort_unstable();
    repeats.dedup();
    let is_repeated = repeats.len() > 1;
    repeats
        .iter()
        .enumerate()
        .map(|(index, repeat)| one_repeat(view, case, *repeat, is_repeated.then_some(index + 1), budget))
        .collect()
}

fn one_repeat(view: &ReportView, case: &CaseView, repeat: u32, number: Option<usize>, budget: usize) -> Html {
    let runs: Vec<Option<RunTranscript>> = case
        .arms
        .iter()
        .map(|runs| runs.iter().find(|trial| trial.repeat == repeat).map(|trial| RunTranscript::new(trial, budget)))
        .collect();
    let heading = number.map_or(Html::default(), |number| html!("<h3>Repeat {}</h3>", number));
    let turns = runs.iter().flatten().map(|run| run.turns.len()).max().unwrap_or(0).max(case.info.turns.len());
    let sides = |side: &dyn Fn(usize, &RunTranscript) -> Html| -> Html {
        let columns = runs.iter().zip(&view.report.arms).enumerate().map(|(arm, (run, info))| match run {
            Some(run) => html!("<div class=\"side\"><p class=\"arm\">{}</p>{}</div>", info.name, side(arm, run)),
            None => html!("<div class=\"side\"><p class=\"arm\">{}</p><p class=\"quiet\">not run</p></div>", info.name),
        });
        html!("<div class=\"sides\">{}</div>", columns.collect::<Html>())
    };
    let transcripts: Html = (0..turns.max(1))
        .map(|turn| {
            let message = runs.iter().flatten().find_map(|run| run.turns.get(turn)?.message.as_deref());
            let message = message.or(case.info.turns.get(turn).map(String::as_str)).unwrap_or_default();
            let is_last = turn + 1 >= turns;
            let steps = sides(&|arm, run| {
                let checks = if is_last { check_results(run.trial) } else { Html::default() };
                html!("{}{}", steps(&runs, arm, run, turn), checks)
            });
            html!("<p class=\"said\"><b>User</b>{}</p>{}", shorten(message, budget), steps)
        })
        .collect();
    html!("{}{}", heading, transcripts)
}

/// Returns the results of the checks of a run.
fn check_results(trial: &Trial) -> Html {
    let failure = trial.failure.as_ref().map_or(Html::default(), |failure| {
        html!("<li class=\"no\">{} no answer: {}</li>", mark(false), failure.message)
    });
    let checks = trial.judged.iter().map(|judged| {
        let why = if judged.why.is_empty() { String::new() } else { format!(": {}", judged.why) };
        let class = if judged.passed { "yes" } else { "no" };
        html!(
            "<li class=\"{}\">{} {}{}</li>",
            class,
            mark(judged.passed),
            prose(&judged.check),
            prose(&shorten(&why, 600))
        )
    });
    let figures = format!(
        "{} · {} tokens · {}{}",
        duration(trial.latency_ms as f64),
        count(trial.tokens()),
        plural(trial.model_calls as usize, "model call"),
        trial.cost.map(|cost| format!(" · {cost}")).unwrap_or_default()
    );
    html!("<ul class=\"checks\">{}{}</ul><p class=\"quiet\">{}</p>", failure, checks.collect::<Html>(), figures)
}

/// Returns a mark for passed or not passed, with a label for screen readers.
pub(super) fn mark(passed: bool) -> Html {
    match passed {
        true => html!("<span class=\"ok\" role=\"img\" aria-label=\"passed\">✓</span>"),
        false => html!("<span class=\"bad\" role=\"img\" aria-label=\"not passed\">✗</span>"),
    }
}

/// The transcript of a run.
struct RunTranscript<'r> {
    trial: &'r Trial,
    turns: Vec<TurnTranscript>,
}

/// A message of the user, and the steps that followed.
#[derive(Default)]
struct TurnTranscript {
    message: Option<String>,
    steps: Vec<Step>,
    /// The number of steps omitted in the middle.
    omitted: usize,
}

struct Step {
    label: String,
    text: String,
    /// Whether the text is the input or output of a tool.
    is_data: bool,
}

impl<'r> RunTranscript<'r> {
    fn new(trial: &'r Trial, budget: usize) -> Self {
        let mut turns: Vec<TurnTranscript> = Vec::new();
        for message in &trial.conversation {
            if let Message::User { text, .. } = message {
                turns.push(TurnTranscript { message: Some(text.clone()), ..TurnTranscript::default() });
                continue;
            }
            if turns.is_empty() {
                turns.push(TurnTranscript::default());
            }
            let Some(turn) = turns.last_mut() else { continue };
            match message {
                Message::Assistant { text, calls, .. } => {
                    if !text.is_empty() {
                        turn.steps.push(Step { label: "Agent".to_owned(), text: text.clone(), is_data: false });
                    }
                    let call_step = |call: &ToolCall| {
                        let label = format!("calls {}", call.tool);
                        Step { label, text: call.arguments.clone(), is_data: true }
                    };
                    turn.steps.extend(calls.iter().map(call_step));
                }
                Message::Tool { tool, outcome, .. } => {
                    turn.steps.push(Step { label: format!("{tool} returns"), text: outcome.text(), is_data: true });
                }
                Message::Compacted { summary, .. } => {
                    let label = "summary of earlier messages".to_owned();
                    turn.steps.push(Step { label, text: summary.clone(), is_data: true });
                }
                Message::User { .. } => {}
            }
        }
        if turns.is_empty() && !trial.content.is_empty() {
            let steps = vec![Step { label: "Agent".to_owned(), text: trial.content.clone(), is_data: false }];
            turns.push(TurnTranscript { steps, ..TurnTranscript::default() });
        }
        let steps: usize = turns.iter().map(|turn| turn.steps.len().min(STEPS)).sum();
        let share = (budget / steps.max(1)).max(MESSAGE.min(budget));
        for turn in &mut turns {
            if turn.steps.len() > STEPS {
                turn.omitted = turn.steps.len() - STEPS;
                turn.steps.drain(STEPS / 2..STEPS / 2 + turn.omitted);
            }
            for step in &mut turn.steps {
                step.text = shorten(&step.text, share);
            }
        }
        Self { trial, turns }
    }
}

/// Returns the steps of an arm in a turn, with differences from the baseline marked. If there are two arms, the baseline is
/// marked with the differences from the other arm.
fn steps(runs: &[Option<RunTranscript>], arm: usize, run: &RunTranscript, turn: usize) -> Html {
    let Some(own) = run.turns.get(turn) else { return html!("<p class=\"quiet\">not reached</p>") };
    let other = match (arm, runs.len()) {
        (0, 2) => runs.last(),
        (0, _) => None,
        _ => runs.first(),
    };
    let other = other.and_then(|other| other.as_ref()?.turns.get(turn));
    let counterparts = other.map(|other| counterparts(&own.steps, &other.steps)).unwrap_or_default();
    let mut shown: Vec<Html> = own
        .steps
        .iter()
        .enumerate()
        .map(|(index, step)| {
            let class = if step.is_data { " data" } else { "" };
            let version = if arm > 0 { Version::New } else { Version::Old };
            let (only, text) = match (other, counterparts.get(&index)) {
                (None, _) => (Html::default(), html!("{}", step.text)),
                (_, Some(counterpart)) => (Html::default(), mark_changes(&step.text, counterpart, version)),
                (_, None) => (html!(" <i>only here</i>"), html!("{}", step.text)),
            };
            let side = if only.is_empty() { "" } else { " only" };
            html!("<div class=\"step{}{}\"><b>{}</b>{}<p>{}</p></div>", class, side, step.label, only, text)
        })
        .collect();
    if own.omitted > 0 {
        let note = html!("<p class=\"quiet\">… {} omitted …</p>", plural(own.omitted, "step"));
        shown.insert(shown.len() / 2, note);
    }
    shown.into_iter().collect()
}

/// Returns the text of the corresponding step of another arm, by the index of the step: an equal step if there is one,
/// otherwise the next one with the same label. The correspondence is symmetric.
fn counterparts<'s>(own: &[Step], others: &'s [Step]) -> HashMap<usize, &'s str> {
    let mut found = HashMap::new();
    let mut taken = vec![false; others.len()];
    let same: fn(&Step, &Step) -> bool = |one, other| one.label == other.label && one.text == other.text;
    for is_match in [same, |one, other| one.label == other.label] {
        for (index, step) in own.iter().enumerate() {
            if found.contains_key(&index) {
                continue;
            }
            let free = others.iter().zip(&mut taken).find(|(other, taken)| !**taken && is_match(step, other));
            if let Some((other, taken)) = free {
                *taken = true;
                found.insert(index, other.text.as_str());
            }
        }
    }
    found
}

/// Shortens a text, with a note about how many characters are missing.
pub(super) fn shorten(text: &str, max_chars: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(max_chars).filter(|_| text.chars().nth(max_chars + NOTE).is_some())
    else {
        return text.to_owned();
    };
    let (start, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    format!("{start} … [{} more characters]", count(rest.chars().count() as u64))
}
