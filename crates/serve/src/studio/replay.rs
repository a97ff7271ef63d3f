//! A session against the agent as it is on disk: where it would behave differently.

use super::page::{Page, PageError, Section, path_segment, respond};
use super::session::damaged;
use super::talk::read_entries;
use crate::host::{Host, unknown_agent};
use crate::token::{Access, Scope};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use patter::drive::Driver;
use patter::html::{Html, html, prose};
use patter_core::message::request::TemplateTool;
use patter_core::provider::ModelRef;
use patter_core::serve::{ApiError, ApiErrorKind};
use patter_core::session::replay::{Difference, OnDifference, ReplayComparison};
use patter_core::session::{Log, LogEntry};
use serde_json::json;
use std::sync::Arc;

/// Compares a session with the agent as it is on disk. Nothing is called.
pub(super) async fn show(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    access.require(Scope::Read)?;
    let (summary, entries) = read_entries(&host, &access, &id).await?;
    let failed = |error: String| ApiError::new(ApiErrorKind::Server, error);
    let (driver, is_edited) = host.driver_on_disk().map_err(|error| failed(error.to_string()))?;
    let log = Log::read(&entries).map_err(|error| damaged(&error))?;
    let driver = match chosen_model(&log) {
        Some(model) => driver.with_model(model),
        None => driver,
    };
    let parsed: Result<Vec<LogEntry>, _> = entries.iter().map(|entry| serde_json::from_str(entry)).collect();
    let comparison = compare(&driver, &summary.agent, parsed.map_err(|error| failed(error.to_string()))?)?;
    let part = path_segment(&id);
    let edited = if is_edited {
        html!(
            "<p class=\"banner\">The files changed since the server read them. This compares with the files as they are now.</p>"
        )
    } else {
        Html::default()
    };
    let body = html!(
        "<p><a href=\"/studio/sessions/{}\">Back to the timeline</a></p><h1>Replay against {}</h1>{}{}",
        part,
        summary.agent,
        edited,
        render(&comparison)
    );
    Ok(respond(&Page::new(Section::Runs, "Replay", body).with_style("runs.css"), &headers))
}

fn chosen_model(log: &Log) -> Option<ModelRef> {
    log.selection()?.model.as_ref()?.parse().ok()
}

fn compare(driver: &Driver, agent: &str, entries: Vec<LogEntry>) -> Result<ReplayComparison, ApiError> {
    let failed = |error: String| ApiError::new(ApiErrorKind::Server, error);
    let compiled = driver.compile_named(agent).ok_or_else(|| unknown_agent(agent))?;
    let compiled = compiled.map_err(|error| failed(error.to_string()))?;
    driver.compare(&compiled, entries, OnDifference::Continue).map_err(|error| failed(error.to_string()))
}

fn render(comparison: &ReplayComparison) -> Html {
    let same = comparison.identical;
    if comparison.divergences.is_empty() {
        return html!(
            "<section><p class=\"verdict\"><span class=\"ok\">No difference.</span></p><p>{} model calls would be the same, with the same decisions about their tool calls.</p></section>",
            same
        );
    }
    let items: Html = comparison
        .divergences
        .iter()
        .map(|divergence| {
            let differences: Html = divergence
                .differences
                .iter()
                .map(|difference| {
                    let (then, now) = texts(difference);
                    let sides = if then.is_empty() && now.is_empty() {
                        Html::default()
                    } else {
                        html!(
                            "<div class=\"sides\"><div><h3>Recorded</h3><pre tabindex=\"0\">{}</pre></div><div><h3>Now</h3><pre tabindex=\"0\">{}</pre></div></div>",
                            then,
                            now
                        )
                    };
                    html!("<li><p>{}</p>{}</li>", prose(&difference.to_string()), sides)
                })
                .collect();
            html!("<section><h2>{}</h2><ul class=\"plain\">{}</ul></section>", prose(&divergence.location.to_string()), differences)
        })
        .collect();
    html!(
        "<section><p class=\"verdict\">{} of {} model calls would differ.</p><p class=\"quiet\">Everything after the first difference \
         assumes the recorded replies; the model may have replied differently.</p></section>{}",
        comparison.divergences.len(),
        same + comparison.divergences.len(),
        items
    )
}

/// Returns the recorded and the current text of a difference.
fn texts(difference: &Difference) -> (String, String) {
    match difference {
        Difference::Instruction { then, now } => (then.clone(), now.clone()),
        Difference::ToolChanged { then, now } => {
            let text = |tool: &TemplateTool| format!("{}\n{:#}", tool.description, json!(tool.schema));
            (text(then), text(now))
        }
        Difference::ToolOrder { then, now } => (then.join("\n"), now.join("\n")),
        Difference::Returns { then: Some(then), now: Some(now) } => (format!("{then:#}"), format!("{now:#}")),
        Difference::Conversation { then, now, .. } => (format!("{:#}", json!(then)), format!("{:#}", json!(now))),
        _ => (String::new(), String::new()),
    }
}
