//! A session as a timeline of the entries of its log.

use super::conversation::Activity;
use super::figures::{count, duration, plural, time};
use super::page::{Page, PageError, Section, path_segment, respond};
use super::talk::{activity, read_entries};
use super::timeline::{Kind, Row, Timeline, TimelineKey};
use crate::host::{Host, api_error};
use crate::respond::{ErrorResponse, json};
use crate::token::{Access, Scope};
use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use patter::html::{Html, html};
use patter::session::{Recording, with_media};
use patter::store::{SessionId, SessionState, SessionSummary};
use patter_core::serve::{ApiError, ApiErrorKind};
use patter_core::session::LogError;
use serde::Deserialize;
use serde_json::json as object;
use std::sync::Arc;

/// How many rows are sent at a time.
const PAGE: usize = 100;
/// How many rows may be asked for at a time.
const MAX_ROWS: usize = 400;

/// Which rows are wanted.
#[derive(Debug, Deserialize)]
pub(super) struct RowsQuery {
    #[serde(default)]
    from: usize,
    count: Option<usize>,
}

pub(super) fn damaged(error: &LogError) -> ApiError {
    ApiError::new(ApiErrorKind::Server, error.to_string())
}

/// Returns the timeline of a session that the reader may see.
async fn read_timeline(host: &Host, access: &Access, id: &str) -> Result<(SessionSummary, Arc<Timeline>), ApiError> {
    let missing = || ApiError::new(ApiErrorKind::NotFound, format!("there is no session `{id}`"));
    let session = SessionId::parse(id).map_err(|_| missing())?;
    let summary = host.find_session(access, &session).await?.ok_or_else(missing)?;
    let key = |summary: &SessionSummary| TimelineKey {
        id: summary.id.clone(),
        created_ms: summary.created_ms,
        entries: summary.entries,
    };
    if let Some(timeline) = host.timelines.get(&key(&summary)) {
        return Ok((summary, timeline));
    }
    let (summary, entries) = read_entries(host, access, id).await?;
    let timeline =
        Arc::new(Timeline::read(&entries, &host.project.config().prices()).map_err(|error| damaged(&error))?);
    host.timelines.insert(key(&summary), Arc::clone(&timeline));
    Ok((summary, timeline))
}

/// Returns whether the last run of a session is under way. Only the log of one that is not idle has to be read for that.
async fn read_activity(host: &Host, summary: &SessionSummary) -> Result<Activity, ApiError> {
    if summary.state == SessionState::Idle {
        return Ok(Activity::Idle);
    }
    let (summary, log) = host.read_session(&summary.id).await?;
    Ok(activity(host, &summary, &log))
}

/// Shows a session.
pub(super) async fn show(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
    Query(query): Query<RowsQuery>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    access.require(Scope::Read)?;
    let (summary, timeline) = read_timeline(&host, &access, &id).await?;
    let activity = read_activity(&host, &summary).await?;
    let part = path_segment(&id);
    let span = timeline.span();
    let rows: Html = timeline.rows.iter().skip(query.from).take(PAGE).map(|row| render_row(&part, row, span)).collect();
    let total = timeline.rows.len();
    let more = (query.from + PAGE < total).then(|| {
        html!(
            "<p class=\"more\"><a href=\"/studio/sessions/{}?from={}\">Later entries</a></p>",
            part,
            query.from + PAGE
        )
    });
    let body = html!(
        "<div id=\"session\" data-session=\"{}\" data-total=\"{}\" data-span=\"{}\" data-first=\"{}\">{}<div class=\"panes\"><div class=\"list\">\
         <div class=\"legend\" aria-hidden=\"true\"><span>#</span><span>Entry</span><span></span><span>Tokens</span><span>Cost</span><span>Time</span></div>\
         <div id=\"rows\" tabindex=\"0\" role=\"region\" aria-label=\"Entries of the log\"><ol id=\"window\" start=\"{}\">{}</ol></div>{}</div>\
         <section id=\"detail\" aria-label=\"Entry\" aria-live=\"polite\"><p class=\"quiet\">Choose an entry to see all of it.</p></section></div></div>",
        summary.id.as_str(),
        total,
        span,
        query.from,
        header(&summary, &timeline, activity),
        query.from,
        rows,
        more.unwrap_or_default()
    );
    let title = if summary.title.is_empty() { id } else { summary.title.clone() };
    let page = Page::new(Section::Runs, title, body).wide().with_style("talk.css").with_style("runs.css");
    Ok(respond(&page.with_module("session.js"), &headers))
}

fn header(summary: &SessionSummary, timeline: &Timeline, activity: Activity) -> Html {
    let part = path_segment(summary.id.as_str());
    let title = if summary.title.is_empty() { summary.id.as_str() } else { &summary.title };
    let forked = summary.forked_from.as_ref().map(|from| {
        html!(
            "<span>forked from <a href=\"/studio/sessions/{}\">{}</a></span>",
            path_segment(from.as_str()),
            from.as_str()
        )
    });
    let is_message = |row: &&Row| row.kind == Kind::Message && row.depth == 0;
    let messages = u64::try_from(timeline.rows.iter().filter(is_message).count()).unwrap_or(0);
    let run = match activity {
        Activity::Interrupted => {
            html!("<button data-action=\"resume\">Resume</button><button data-action=\"cancel\">Give up</button>")
        }
        Activity::Running | Activity::Waiting => html!("<button data-action=\"cancel\">Stop</button>"),
        Activity::Idle => html!("<button data-action=\"undo\">Undo the last message</button>"),
    };
    html!(
        "<header class=\"head\"><div><h1>{}</h1><p class=\"facts\"><span>{}</span><span class=\"state {}\">{}</span><span>{}</span><span>{}</span>\
         <span>{} tokens</span>{}<span>{}</span>{}</p></div><div class=\"actions\"><a class=\"button\" href=\"/studio/talk/{}\">Conversation</a>\
         <a class=\"button\" href=\"/studio/sessions/{}/replay\">Replay against the agent</a>\
         <a class=\"button\" href=\"/studio/sessions/{}/case\">Make a case</a>\
         <a class=\"button\" href=\"/studio/sessions/{}/export\" download>Export</a>{}<button class=\"danger\" data-action=\"delete\">Delete</button></div></header>",
        title,
        summary.agent,
        activity.name(),
        activity.name(),
        plural(messages, "message"),
        duration(timeline.span()),
        count(timeline.usage.input_tokens + timeline.usage.output_tokens),
        timeline.cost.as_ref().map(|cost| html!("<span>{}</span>", cost)).unwrap_or_default(),
        time(summary.created_ms),
        forked.unwrap_or_default(),
        part,
        part,
        part,
        part,
        run
    )
}

/// Renders a row. The script of the page renders rows in the same way.
fn render_row(session: &str, row: &Row, span: u64) -> Html {
    let scaled =
        |ms: u64| u32::try_from(ms.saturating_mul(10_000) / span.max(1)).map_or(0.0, |part| f64::from(part) / 100.0);
    let start = scaled(row.start).min(99.6);
    let width = scaled(row.took).max(0.4).min(100.0 - start);
    html!(
        "<li class=\"row {}{}\" id=\"{}\"><a href=\"/studio/sessions/{}/entries/{}\"><span class=\"num\">{}</span><span class=\"name depth-{}\"><b>{}</b> {}</span>\
         <svg class=\"bar-track\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect x=\"{}\" y=\"2\" width=\"{}\" height=\"6\"/></svg>\
         <span class=\"n\">{}</span><span class=\"n\">{}</span><span class=\"n\">{}</span></a></li>",
        row.kind.name(),
        if row.failed { " failed" } else { "" },
        row.number,
        session,
        row.number,
        row.number,
        row.depth.min(6),
        row.name,
        row.text,
        start,
        width,
        row.tokens,
        row.cost,
        if row.took > 0 { duration(row.took) } else { String::new() }
    )
}

/// Returns rows as JSON.
pub(super) async fn rows(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
    Query(query): Query<RowsQuery>,
) -> Result<Response, ErrorResponse> {
    access.require(Scope::Read)?;
    let (_, timeline) = read_timeline(&host, &access, &id).await?;
    let count = query.count.unwrap_or(PAGE).min(MAX_ROWS);
    let rows: Vec<_> = timeline.rows.iter().skip(query.from).take(count).collect();
    Ok(json(&object!({"total": timeline.rows.len(), "span": timeline.span(), "rows": rows})))
}

/// Sends a session as a recording.
pub(super) async fn export(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
) -> Result<Response, PageError> {
    access.require(Scope::Read)?;
    let (summary, entries) = read_entries(&host, &access, &id).await?;
    let entries = with_media(&*host.require_store()?, &summary.id, entries).await;
    let entries = entries.map_err(|error| api_error(&error.into()))?;
    let name = format!("attachment; filename=\"{}.jsonl\"", summary.id.as_str());
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/jsonl")),
        (header::CONTENT_DISPOSITION, HeaderValue::from_str(&name).unwrap_or(HeaderValue::from_static("attachment"))),
    ];
    Ok((headers, Recording::from_log(&summary.id, &entries)).into_response())
}
