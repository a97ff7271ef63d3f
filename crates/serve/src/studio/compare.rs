//! Two sessions side by side.

use super::conversation::{Activity, Scene, totals, turns};
use super::figures::{count, duration, plural};
use super::page::{Page, PageError, Section, path_segment, respond};
use super::talk::read;
use super::transcript::{Step, Transcript, TurnState, TurnView};
use crate::host::Host;
use crate::token::{Access, Scope};
use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;
use patter::html::{Html, html};
use patter::report::{Version, mark_changes};
use patter::store::SessionSummary;
use patter_core::message::conversation::ToolOutcome;
use patter_core::provider::price::Prices;
use patter_core::serve::ApiError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many turns are compared.
const MAX_TURNS: usize = 200;
/// How much of a text is compared word by word. The whole is beside it.
const MAX_TEXT: usize = 4000;

/// Shows two sessions side by side, turn by turn.
pub(super) async fn show(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    access.require(Scope::Read)?;
    let query = query.unwrap_or_default();
    // Ids of sessions need no escapes.
    let ids: Vec<_> = query.split('&').filter_map(|pair| pair.strip_prefix("session=")).collect();
    let [one, other] = ids.as_slice() else {
        return Err(ApiError::invalid("session", "choose exactly two sessions to compare").into());
    };
    let sides = [read(&host, &access, one).await?, read(&host, &access, other).await?];
    let prices = host.project.config().prices();
    let heads: Html = sides.iter().map(|(summary, transcript)| head(&prices, summary, transcript)).collect();
    let [(_, left), (_, right)] = &sides;
    let length = left.turns.len().max(right.turns.len()).min(MAX_TURNS);
    let pairs: Html = (0..length)
        .map(|index| {
            let one = left.turns.get(index);
            let other = right.turns.get(index);
            let is_same = one.zip(other).is_some_and(|(one, other)| outline(one) == outline(other));
            let mark = if is_same {
                html!("<span class=\"state\">same</span>")
            } else {
                html!("<span class=\"state failed\">differs</span>")
            };
            let changes = match one.zip(other) {
                Some((one, other)) if !is_same => differences(one, other),
                _ => Html::default(),
            };
            let cells: Html = sides
                .iter()
                .zip([one, other])
                .map(|((summary, _), turn)| html!("<div class=\"side\">{}</div>", cell(&prices, summary, turn)))
                .collect();
            html!(
                "<section class=\"pair\"><h2>Message {} {}</h2>{}<div class=\"sides\">{}</div></section>",
                index + 1,
                mark,
                changes,
                cells
            )
        })
        .collect();
    let body = html!("<h1>Compare two sessions</h1><div class=\"sides heads\">{}</div>{}", heads, pairs);
    let page = Page::new(Section::Runs, "Compare", body).wide().with_style("talk.css").with_style("runs.css");
    Ok(respond(&page, &headers))
}

fn head(prices: &Prices, summary: &SessionSummary, transcript: &Transcript) -> Html {
    let mut tokens = 0;
    let mut took = 0;
    for turn in &transcript.turns {
        let (usage, _) = totals(prices, turn);
        tokens += usage.input_tokens + usage.output_tokens;
        took += turn.ended_ms.saturating_sub(turn.started_ms);
    }
    let title = if summary.title.is_empty() { summary.id.as_str() } else { &summary.title };
    html!(
        "<div class=\"side\"><h2><a href=\"/studio/sessions/{}\">{}</a></h2><p class=\"facts\"><span>{}</span><span>{}</span>\
         <span>{} tokens</span><span>{}</span></p></div>",
        path_segment(summary.id.as_str()),
        title,
        summary.agent,
        plural(u64::try_from(transcript.turns.len()).unwrap_or(0), "message"),
        count(tokens),
        duration(took)
    )
}

fn cell(prices: &Prices, summary: &SessionSummary, turn: Option<&TurnView>) -> Html {
    let Some(turn) = turn else { return html!("<p class=\"quiet\">No such message.</p>") };
    let bindings = BTreeMap::new();
    let scene =
        Scene { session: summary.id.as_str(), prices, waiting: &[], bindings: &bindings, activity: Activity::Idle };
    turns(&scene, std::slice::from_ref(turn))
}

/// A part of a turn that is compared: what it is, and its text. Times are none.
type Line = (String, String);

/// Returns what two turns are compared by: messages, texts, calls and results.
fn outline(turn: &TurnView) -> Vec<Line> {
    fn add(steps: &[Step], lines: &mut Vec<Line>) {
        for step in steps {
            match step {
                Step::Text(text) => lines.push(("reply".to_owned(), text.clone())),
                Step::Note(text) => lines.push(("note".to_owned(), text.clone())),
                // It differs each time, and is not what the agent did.
                Step::Thought(_) => {}
                Step::Call(call) => {
                    lines.push((format!("calls {}", call.tool), call.arguments.clone()));
                    add(&call.steps, lines);
                    let result = call.outcome.as_ref().map(ToolOutcome::text).unwrap_or_default();
                    lines.push((format!("result of {}", call.tool), result));
                }
            }
        }
    }
    let mut lines = vec![("message".to_owned(), turn.input.clone())];
    add(&turn.steps, &mut lines);
    let end = match &turn.state {
        TurnState::Failed(message) => message.clone(),
        state => format!("{state:?}").to_lowercase(),
    };
    lines.push(("end".to_owned(), end));
    lines
}

/// Shows what differs between two turns, word by word.
fn differences(one: &TurnView, other: &TurnView) -> Html {
    let left = outline(one);
    let mut right: Vec<_> = outline(other).into_iter().map(Some).collect();
    let mut rows = Html::default();
    for (label, old) in &left {
        let same_label = |line: &&mut Option<Line>| line.as_ref().is_some_and(|(other, _)| other == label);
        let Some((_, new)) = right.iter_mut().find(same_label).and_then(Option::take) else {
            rows.push(&row(label, &html!("<del>{}</del>", shown(old)), &Html::default()));
            continue;
        };
        if *old != new {
            let old = shown(old);
            let new = shown(&new);
            rows.push(&row(label, &mark_changes(&old, &new, Version::Old), &mark_changes(&new, &old, Version::New)));
        }
    }
    for (label, new) in right.into_iter().flatten() {
        rows.push(&row(&label, &Html::default(), &html!("<ins>{}</ins>", shown(&new))));
    }
    html!("<details class=\"changes\" open><summary>What differs</summary>{}</details>", rows)
}

fn row(label: &str, old: &Html, new: &Html) -> Html {
    html!("<h3>{}</h3><div class=\"sides\"><p class=\"side\">{}</p><p class=\"side\">{}</p></div>", label, old, new)
}

fn shown(text: &str) -> String {
    patter::text::truncate(text, MAX_TEXT)
}
