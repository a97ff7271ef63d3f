//! An entry of a log, with everything that it says.

use super::figures::{duration, time};
use super::markdown;
use super::page::{Page, PageError, Section, path_segment, respond, respond_part};
use super::raw_request::{rebuilt_request, requesting_run};
use super::session::damaged;
use super::talk::read_entries;
use super::timeline::{Row, Timeline, log_until};
use super::transcript::entry_time;
use crate::host::{Host, api_error};
use crate::token::{Access, Scope};
use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use patter::html::{Html, html};
use patter::store::{self, SessionId};
use patter_core::message::attachment::AttachmentContents;
use patter_core::message::request::Reply;
use patter_core::run::{Run, RunInput};
use patter_core::serve::{ApiError, ApiErrorKind};
use patter_core::session::LogEntry;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// Whether the whole page is wanted.
#[derive(Debug, Deserialize)]
pub(super) struct EntryQuery {
    #[serde(default)]
    part: bool,
}

/// Shows an entry, as a page or as a part of one.
pub(super) async fn show(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path((id, number)): Path<(String, usize)>,
    Query(query): Query<EntryQuery>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    access.require(Scope::Read)?;
    let (_, entries) = read_entries(&host, &access, &id).await?;
    let missing = || ApiError::new(ApiErrorKind::NotFound, format!("the session has no entry {number}"));
    let text = entries.get(number).ok_or_else(missing)?;
    let entry: LogEntry =
        serde_json::from_str(text).map_err(|error| ApiError::new(ApiErrorKind::Server, error.to_string()))?;
    let timeline = Timeline::read(&entries, &host.project.config().prices()).map_err(|error| damaged(&error))?;
    let row = timeline.rows.iter().find(|row| row.number == number).cloned().unwrap_or_default();
    let log = log_until(&entries, number).map_err(|error| damaged(&error))?;
    let request = match &entry {
        LogEntry::InputReceived { run, input: RunInput::ModelReplied { .. } | RunInput::ModelFailed { .. } } => {
            let before = number
                .checked_sub(1)
                .map(|before| log_until(&entries, before))
                .transpose()
                .map_err(|error| damaged(&error))?;
            match before.as_ref().and_then(|log| Some((log, requesting_run(log, run)?))) {
                Some((log, run)) => rebuilt_request(log, run, &attachments(&host, &id, run).await?),
                None => None,
            }
        }
        _ => None,
    };
    let part = render(&id, &row, &entry, text, log.conversation().len(), request);
    if query.part {
        return Ok(respond_part(part, &headers));
    }
    let body = html!(
        "<p><a href=\"/studio/sessions/{}#{}\">Back to the timeline</a></p><h1>Entry {}</h1><div id=\"session\" data-session=\"{}\">{}</div>",
        path_segment(&id),
        number,
        number,
        id,
        part
    );
    let page = Page::new(Section::Runs, format!("Entry {number}"), body).with_style("talk.css").with_style("runs.css");
    Ok(respond(&page.with_module("session.js"), &headers))
}

/// Reads the attachments that the request of a run has.
async fn attachments(host: &Host, id: &str, run: &Run) -> Result<AttachmentContents, ApiError> {
    let stored = host.store.as_deref().zip(SessionId::parse(id).ok());
    let Some((store, id)) = stored else { return Ok(AttachmentContents::default()) };
    let contents = store::read_attachments(store, &id, Some(run.conversation())).await;
    contents.map_err(|error| api_error(&error.into()))
}

fn render(id: &str, row: &Row, entry: &LogEntry, text: &str, messages: usize, request: Option<Json>) -> Html {
    let at = entry_time(entry).map(|at| html!("<div><dt>At</dt><dd>{}</dd></div>", time(at)));
    let took = (row.took > 0).then(|| html!("<div><dt>Took</dt><dd>{}</dd></div>", duration(row.took)));
    let tokens = (!row.tokens.is_empty()).then(|| html!("<div><dt>Tokens</dt><dd>{}</dd></div>", row.tokens));
    let cost = (!row.cost.is_empty()).then(|| html!("<div><dt>Cost</dt><dd>{}</dd></div>", row.cost));
    let model = (!row.model.is_empty()).then(|| html!("<div><dt>Model</dt><dd>{}</dd></div>", row.model));
    let facts: Html = [model, at, took, tokens, cost].into_iter().flatten().collect();
    let raw: Json = serde_json::from_str(text).unwrap_or_default();
    let request = request.map(|request| {
        html!(
            "<details><summary>Request, as it would be sent</summary><pre tabindex=\"0\">{}</pre></details>",
            format!("{request:#}")
        )
    });
    let fork = if messages == 0 {
        Html::default()
    } else {
        html!("<button data-action=\"fork\" data-messages=\"{}\">Fork after this entry</button>", messages)
    };
    html!(
        "<h2>{} <i>{}</i></h2><dl><div><dt>Entry</dt><dd><a href=\"/studio/sessions/{}#{}\">{}</a></dd></div>\
         <div><dt>Agent</dt><dd>{}</dd></div>{}</dl><div class=\"actions\">{}</div>{}{}\
         <details><summary>Entry, as it is stored</summary><pre tabindex=\"0\">{}</pre></details>",
        row.name,
        row.kind.name(),
        path_segment(id),
        row.number,
        row.number,
        row.agent,
        facts,
        fork,
        content(entry),
        request.unwrap_or_default(),
        format!("{raw:#}")
    )
}

/// Renders what an entry is about.
fn content(entry: &LogEntry) -> Html {
    match entry {
        LogEntry::RunStarted { start, .. } => block("Message", &start.input),
        LogEntry::InputReceived { input, .. } => match input {
            RunInput::ModelReplied { reply, rulings, .. } => {
                let rulings: Html = reply
                    .calls
                    .iter()
                    .zip(rulings)
                    .map(|(call, ruling)| {
                        html!("<p class=\"quiet\"><code>{}</code>: {}</p>", call.tool, ruling.because)
                    })
                    .collect();
                html!("{}{}", reply_html(reply), rulings)
            }
            RunInput::FellBack { because, .. } => html!("<p class=\"bad\">{}</p>", because),
            RunInput::ModelFailed { failure, .. } | RunInput::LimitReached { failure, .. } => {
                html!("<p class=\"bad\">{}</p>", failure.message)
            }
            RunInput::CallFinished { outcome, .. } => block("Result", &pretty(&outcome.text())),
            RunInput::Compacted {
                compaction: patter_core::message::conversation::Message::Compacted { summary, .. },
                ..
            } => block("Summary", summary),
            RunInput::ContextExceeded { message, .. } => block("The provider says", message),
            RunInput::CallRefused { reason, .. } => block("Reason", reason),
            RunInput::ReplyInterrupted { text } => block("Received until then", text),
            _ => Html::default(),
        },
        LogEntry::Forked { messages, .. } => block("Messages", &format!("{:#}", json!(messages))),
        _ => Html::default(),
    }
}

fn reply_html(reply: &Reply) -> Html {
    let calls: Html = reply
        .calls
        .iter()
        .map(|call| html!("<h3><code>{}</code></h3><pre tabindex=\"0\">{}</pre>", call.tool, pretty(&call.arguments)))
        .collect();
    let text = if reply.text.is_empty() { Html::default() } else { markdown::render(&reply.text) };
    html!("{}{}", text, calls)
}

fn block(name: &str, text: &str) -> Html {
    html!("<h3>{}</h3><pre tabindex=\"0\">{}</pre>", name, text)
}

fn pretty(text: &str) -> String {
    match serde_json::from_str::<Json>(text) {
        Ok(value @ (Json::Object(_) | Json::Array(_))) => format!("{value:#}"),
        _ => text.to_owned(),
    }
}
