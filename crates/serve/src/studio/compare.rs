//! Two sessions side by side.

use super::conversation::{Activity, Scene, totals, turns};
use super::figures::{count, duration, plural};
use super::page::{Page, PageError, Section, path_segment, respond};
use super::talk::read;
use super::transcript::{Step, Transcript, TurnView};
use crate::host::Host;
use crate::token::{Access, Scope};
use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;
use patter::html::{Html, html};
use patter::store::SessionSummary;
use patter_core::message::conversation::ToolOutcome;
use patter_core::provider::price::Prices;
use patter_core::serve::ApiError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many turns are compared.
const MAX_TURNS: usize = 200;

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
            let cells: Html = sides
                .iter()
                .zip([one, other])
                .map(|((summary, _), turn)| html!("<div class=\"side\">{}</div>", cell(&prices, summary, turn)))
                .collect();
            html!(
                "<section class=\"pair\"><h2>Message {} {}</h2><div class=\"sides\">{}</div></section>",
                index + 1,
                mark,
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

/// Returns what two turns are compared by: messages, texts, calls and results, but not times.
fn outline(turn: &TurnView) -> Vec<String> {
    fn add(steps: &[Step], lines: &mut Vec<String>) {
        for step in steps {
            match step {
                Step::Text(text) | Step::Note(text) => lines.push(text.clone()),
                Step::Call(call) => {
                    let result = call.outcome.as_ref().map(ToolOutcome::text).unwrap_or_default();
                    lines.push(format!("{} {} {result}", call.tool, call.arguments));
                    add(&call.steps, lines);
                }
            }
        }
    }
    let mut lines = vec![turn.input.clone(), format!("{:?}", turn.state)];
    add(&turn.steps, &mut lines);
    lines
}
