//! What arms said and did in a case, side by side, with what differs marked.

use super::html::{Html, html, prose};
use super::number::{count, duration, several};
use super::view::{Case, View};
use crate::experiment::Trial;
use patter_core::message::conversation::Message;
use similar::{ChangeTag, TextDiff};
use std::collections::HashMap;

/// How many characters all transcripts of a page have together, about.
const PAGE: usize = 3_000_000;
/// The bounds for one transcript.
const TRANSCRIPT: std::ops::RangeInclusive<usize> = 200..=24_000;
/// A message is not cut below this for the sake of others.
const MESSAGE: usize = 120;
/// A turn with more steps than this is shown by its first and last ones.
const STEPS: usize = 60;
/// A note on what is missing takes as much room as this, so no less than this is cut.
const NOTE: usize = 30;
/// Texts that have less than this in common are two texts, and no changes are marked.
const ALIKE: f32 = 0.3;

/// Returns how many characters one transcript may have.
pub(super) fn room(view: &View) -> usize {
    (PAGE / view.report.trials.len().max(1)).clamp(*TRANSCRIPT.start(), *TRANSCRIPT.end())
}

/// Returns all transcripts of a case, repeat by repeat.
pub(super) fn transcripts(view: &View, case: &Case, room: usize) -> Html {
    let mut repeats: Vec<u32> = case.runs().map(|trial| trial.repeat).collect();
    repeats.sort_unstable();
    repeats.dedup();
    let is_repeated = repeats.len() > 1;
    repeats
        .iter()
        .enumerate()
        .map(|(place, repeat)| one_repeat(view, case, *repeat, is_repeated.then_some(place + 1), room))
        .collect()
}

fn one_repeat(view: &View, case: &Case, repeat: u32, number: Option<usize>, room: usize) -> Html {
    let runs: Vec<Option<Run>> = case
        .arms
        .iter()
        .map(|runs| runs.iter().find(|trial| trial.repeat == repeat).map(|trial| Run::of(trial, room)))
        .collect();
    let heading = number.map_or(Html::default(), |number| html!("<h4>Repeat {}</h4>", number));
    let turns = runs.iter().flatten().map(|run| run.turns.len()).max().unwrap_or(0).max(case.info.turns.len());
    let sides = |side: &dyn Fn(usize, &Run) -> Html| -> Html {
        let columns = runs.iter().zip(&view.report.arms).enumerate().map(|(arm, (run, info))| match run {
            Some(run) => html!("<div class=\"side\"><h5>{}</h5>{}</div>", info.name, side(arm, run)),
            None => html!("<div class=\"side\"><h5>{}</h5><p class=\"quiet\">not run</p></div>", info.name),
        });
        html!("<div class=\"sides\">{}</div>", columns.collect::<Html>())
    };
    let told: Html = (0..turns.max(1))
        .map(|turn| {
            let said = runs.iter().flatten().find_map(|run| run.turns.get(turn)?.said.as_deref());
            let said = said.or(case.info.turns.get(turn).map(String::as_str)).unwrap_or_default();
            let is_last = turn + 1 >= turns;
            let steps = sides(&|arm, run| {
                let checks = if is_last { judged(run.trial) } else { Html::default() };
                html!("{}{}", steps(&runs, arm, run, turn), checks)
            });
            html!("<p class=\"said\"><b>Person</b>{}</p>{}", shortened(said, room), steps)
        })
        .collect();
    html!("{}{}", heading, told)
}

/// What came of the checks of a run.
fn judged(trial: &Trial) -> Html {
    let failure = trial.failure.as_ref().map_or(Html::default(), |failure| {
        html!("<li class=\"no\">{} the run failed: {}</li>", sign(false), failure.message)
    });
    let checks = trial.judged.iter().map(|judged| {
        let why = if judged.why.is_empty() { String::new() } else { format!(": {}", judged.why) };
        let class = if judged.passed { "yes" } else { "no" };
        html!(
            "<li class=\"{}\">{} {}{}</li>",
            class,
            sign(judged.passed),
            prose(&judged.check),
            prose(&shortened(&why, 600))
        )
    });
    let figures = format!(
        "{} · {} tokens · {}{}",
        duration(trial.latency_ms as f64),
        count(trial.tokens()),
        several(trial.model_calls as usize, "model call"),
        trial.cost.map(|cost| format!(" · {cost}")).unwrap_or_default()
    );
    html!("<ul class=\"checks\">{}{}</ul><p class=\"quiet\">{}</p>", failure, checks.collect::<Html>(), figures)
}

/// Returns the sign for what passed or not, which is read aloud in words.
pub(super) fn sign(passed: bool) -> Html {
    match passed {
        true => html!("<span class=\"ok\" role=\"img\" aria-label=\"passed\">✓</span>"),
        false => html!("<span class=\"bad\" role=\"img\" aria-label=\"not passed\">✗</span>"),
    }
}

/// The conversation of a run, as it is shown.
struct Run<'r> {
    trial: &'r Trial,
    turns: Vec<Turn>,
}

/// What a person said, and what came of it.
#[derive(Default)]
struct Turn {
    said: Option<String>,
    steps: Vec<Step>,
    /// How many steps are left out after the first ones.
    skipped: usize,
}

struct Step {
    label: String,
    text: String,
    /// Whether it is what a tool got or gave.
    is_data: bool,
}

impl<'r> Run<'r> {
    fn of(trial: &'r Trial, room: usize) -> Self {
        let mut turns: Vec<Turn> = Vec::new();
        for message in &trial.conversation {
            if let Message::User { text } = message {
                turns.push(Turn { said: Some(text.clone()), ..Turn::default() });
                continue;
            }
            if turns.is_empty() {
                turns.push(Turn::default());
            }
            let Some(turn) = turns.last_mut() else { continue };
            match message {
                Message::Assistant { text, calls, .. } => {
                    if !text.is_empty() {
                        turn.steps.push(Step { label: "Agent".to_owned(), text: text.clone(), is_data: false });
                    }
                    let called = |call: &patter_core::message::conversation::ToolCall| {
                        let label = format!("calls {}", call.tool);
                        Step { label, text: call.arguments.clone(), is_data: true }
                    };
                    turn.steps.extend(calls.iter().map(called));
                }
                Message::Tool { tool, outcome, .. } => {
                    turn.steps.push(Step { label: format!("{tool} gives"), text: outcome.text(), is_data: true });
                }
                Message::User { .. } => {}
            }
        }
        if turns.is_empty() && !trial.content.is_empty() {
            let steps = vec![Step { label: "Agent".to_owned(), text: trial.content.clone(), is_data: false }];
            turns.push(Turn { steps, ..Turn::default() });
        }
        let steps: usize = turns.iter().map(|turn| turn.steps.len().min(STEPS)).sum();
        let share = (room / steps.max(1)).max(MESSAGE.min(room));
        for turn in &mut turns {
            if turn.steps.len() > STEPS {
                turn.skipped = turn.steps.len() - STEPS;
                turn.steps.drain(STEPS / 2..STEPS / 2 + turn.skipped);
            }
            for step in &mut turn.steps {
                step.text = shortened(&step.text, share);
            }
        }
        Self { trial, turns }
    }
}

/// Returns the steps of an arm in a turn, marked by what differs from the baseline; in the baseline, where there is one
/// other arm, by what differs from that.
fn steps(runs: &[Option<Run>], arm: usize, run: &Run, turn: usize) -> Html {
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
        .map(|(place, step)| {
            let class = if step.is_data { " data" } else { "" };
            let (only, text) = match (other, counterparts.get(&place)) {
                (None, _) => (Html::default(), html!("{}", step.text)),
                (_, Some(counterpart)) => (Html::default(), marked(&step.text, counterpart, arm > 0)),
                (_, None) => (html!(" <i>only here</i>"), html!("{}", step.text)),
            };
            let side = if only.is_empty() { "" } else { " only" };
            html!("<div class=\"step{}{}\"><b>{}</b>{}<p>{}</p></div>", class, side, step.label, only, text)
        })
        .collect();
    if own.skipped > 0 {
        let note = html!("<p class=\"quiet\">… {} left out here …</p>", several(own.skipped, "step"));
        shown.insert(shown.len() / 2, note);
    }
    shown.into_iter().collect()
}

/// Returns for each step, by its place, the text of the step of another arm that it corresponds to: one that is the same
/// if there is one, else the next of its kind. Seen from the other arm, the same steps correspond.
fn counterparts<'s>(own: &[Step], others: &'s [Step]) -> HashMap<usize, &'s str> {
    let mut found = HashMap::new();
    let mut taken = vec![false; others.len()];
    let same: fn(&Step, &Step) -> bool = |one, other| one.label == other.label && one.text == other.text;
    for fits in [same, |one, other| one.label == other.label] {
        for (place, step) in own.iter().enumerate() {
            if found.contains_key(&place) {
                continue;
            }
            let free = others.iter().zip(&mut taken).find(|(other, taken)| !**taken && fits(step, other));
            if let Some((other, taken)) = free {
                *taken = true;
                found.insert(place, other.text.as_str());
            }
        }
    }
    found
}

/// Returns a text with the words marked that its counterpart does not have.
fn marked(own: &str, other: &str, is_arm: bool) -> Html {
    if own == other {
        return html!("{}", own);
    }
    let (old, new) = if is_arm { (other, own) } else { (own, other) };
    let diff = TextDiff::from_words(old, new);
    if diff.ratio() < ALIKE {
        return html!("<span class=\"other\">{}</span>", own);
    }
    let wanted = if is_arm { ChangeTag::Insert } else { ChangeTag::Delete };
    // Neighbouring words are marked as one.
    let mut runs: Vec<(bool, String)> = Vec::new();
    for change in diff.iter_all_changes() {
        let differs = change.tag() == wanted;
        if !differs && change.tag() != ChangeTag::Equal {
            continue;
        }
        match runs.last_mut() {
            Some((same, text)) if *same == differs => text.push_str(change.value()),
            _ => runs.push((differs, change.value().to_owned())),
        }
    }
    // So is what only a space parts.
    for place in 1..runs.len().saturating_sub(1) {
        if let Some((differs, text)) = runs.get_mut(place)
            && text.trim().is_empty()
        {
            *differs = true;
        }
    }
    let mut joined: Vec<(bool, String)> = Vec::new();
    for (differs, text) in runs {
        match joined.last_mut() {
            Some((same, before)) if *same == differs => before.push_str(&text),
            _ => joined.push((differs, text)),
        }
    }
    let piece = |(differs, text): (bool, String)| match (differs, is_arm) {
        (false, _) => html!("{}", text),
        (true, true) => html!("<ins>{}</ins>", text),
        (true, false) => html!("<del>{}</del>", text),
    };
    joined.into_iter().map(piece).collect()
}

/// Returns the beginning of a text, with a note on how much is missing.
pub(super) fn shortened(text: &str, most: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(most).filter(|_| text.chars().nth(most + NOTE).is_some()) else {
        return text.to_owned();
    };
    let (kept, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    format!("{kept} … [{} characters more]", count(rest.chars().count() as u64))
}
