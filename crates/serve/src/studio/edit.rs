//! Editing the files of a project: findings while typing, what a change means, and saving without losing anything.

use super::file::EditedFile;
use super::page::{Page, PageError, Section, path_segment, respond};
use super::source::severity;
use crate::guard::read_body;
use crate::host::Host;
use crate::respond::{ErrorResponse, json};
use crate::settings::Editing;
use crate::token::{Access, Scope};
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use patter::diff::{Change, diff};
use patter::gram::{Diagnostic, Dialect};
use patter::html::html;
use patter::live::LiveProject;
use patter::project::{File, Project, ProjectCheck};
use patter_core::serve::{ApiError, ApiErrorKind};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::path::Path as FilePath;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// How many texts are checked at a time. Those who type fast wait for their own last text only.
static CHECKS: Semaphore = Semaphore::const_new(2);
/// The maximum number of findings and of changes that are sent.
const MAX_LISTED: usize = 200;

/// A text to check.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckRequest {
    text: String,
}

/// A text to save in place of the one with a hash.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SaveRequest {
    text: String,
    hash: String,
}

/// Returns whether a reader may edit files.
pub(super) fn is_allowed(host: &Host, access: &Access) -> bool {
    require(host, access).is_ok()
}

/// Returns the address of the page of a file.
pub(super) fn address(path: &str) -> String {
    format!("/studio/edit/{}", path_segment(path))
}

fn require(host: &Host, access: &Access) -> Result<(), ApiError> {
    if host.settings.editing == Editing::Off {
        let message = "this server does not edit files: start it with `--edit`";
        return Err(ApiError::new(ApiErrorKind::Forbidden, message));
    }
    access.require(Scope::Admin)?;
    match access.may_reach_all() {
        true => Ok(()),
        false => {
            Err(ApiError::new(ApiErrorKind::Forbidden, "the token does not permit this: it is for some agents only"))
        }
    }
}

/// Shows a file for editing.
pub(super) async fn show(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(path): Path<String>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    require(&host, &access)?;
    let driver = host.driver();
    let file = EditedFile::open(driver.project(), host.project.root(), &path)?;
    let loaded = driver.project().files().get(file.index).map(|file| file.tree.to_bytes()).unwrap_or_default();
    let note = match loaded == file.restored(&file.text).as_bytes() {
        true => html!(""),
        false => html!(
            "<p class=\"banner\">The file changed since the server read it. This is the file as it is on disk.</p>"
        ),
    };
    // A browser drops the first line break of a text area.
    let body = html!(
        "<header class=\"top\"><p class=\"kind\"><a href=\"/\">Project</a></p><h1>Edit</h1><p><code>{}</code></p></header>{}\
         <noscript><p class=\"banner\">Editing needs JavaScript.</p></noscript>\
         <form id=\"edit\" class=\"edit\" data-address=\"{}\" data-hash=\"{}\"><div class=\"sheet\">\
         <label class=\"hidden\" for=\"text\">Text of the file</label>\
         <pre id=\"numbers\" aria-hidden=\"true\"></pre>\
         <textarea id=\"text\" name=\"text\" spellcheck=\"false\" autocomplete=\"off\" autocapitalize=\"off\" wrap=\"off\">\n{}</textarea></div>\
         <aside><div class=\"actions\"><button class=\"primary\" id=\"save\" disabled>Review and save</button>\
         <span id=\"state\" class=\"quiet\" role=\"status\"></span></div>\
         <h2>Findings</h2><ul id=\"findings\" class=\"plain\"></ul><h2>Changes</h2><ul id=\"changes\" class=\"plain\"></ul></aside></form>\
         <dialog id=\"review\" aria-labelledby=\"review-title\"><h2 id=\"review-title\">Save the file?</h2><p id=\"review-note\"></p>\
         <ul id=\"review-changes\" class=\"plain\"></ul><div class=\"actions\"><button class=\"primary\" id=\"confirm\">Save</button>\
         <button id=\"reload\" class=\"danger\" hidden>Discard mine</button><button id=\"cancel\">Keep editing</button></div></dialog>",
        path,
        note,
        address(&path),
        file.hash,
        file.text
    );
    let page = Page::new(Section::Project, format!("Edit {path}"), body).wide();
    Ok(respond(&page.with_style("agent.css").with_style("edit.css").with_module("edit.js"), &headers))
}

/// Checks a text as if it were the file.
pub(super) async fn check(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(path): Path<String>,
    body: Body,
) -> Result<Response, ErrorResponse> {
    require(&host, &access)?;
    let request: CheckRequest = parse(&read_body(&host, body).await?)?;
    let _permit = CHECKS.acquire().await.map_err(|_| ApiError::new(ApiErrorKind::Unavailable, "the server stops"))?;
    let shared = Arc::clone(&host);
    let checked = blocking(move || {
        let driver = shared.driver();
        let file = EditedFile::open(driver.project(), shared.project.root(), &path)?;
        Ok(check_text(&shared.project, driver.project(), &file, &request.text))
    });
    Ok(json(&checked.await?))
}

/// Saves a text, if the file is still the one that was edited.
pub(super) async fn save(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(path): Path<String>,
    body: Body,
) -> Result<Response, ErrorResponse> {
    require(&host, &access)?;
    let request: SaveRequest = parse(&read_body(&host, body).await?)?;
    let shared = Arc::clone(&host);
    let name = path.clone();
    let saved = blocking(move || {
        let driver = shared.driver();
        let file = EditedFile::open(driver.project(), shared.project.root(), &name)?;
        if file.hash != request.hash {
            return Ok(Err(
                json!({"error": {"message": "the file changed on disk"}, "hash": file.hash, "text": file.text}),
            ));
        }
        file.save(&request.text).map(Ok)
    });
    match saved.await? {
        Err(conflict) => {
            let mut response = json(&conflict);
            *response.status_mut() = StatusCode::CONFLICT;
            Ok(response)
        }
        Ok(hash) => {
            tracing::info!(file = path, "a file was edited in the studio");
            let (is_used, note) = adopt(&host.project, &path).await;
            Ok(json(&json!({"hash": hash, "used": is_used, "note": note})))
        }
    }
}

fn parse<'b, R: Deserialize<'b>>(body: &'b Bytes) -> Result<R, ApiError> {
    serde_json::from_slice(body).map_err(|error| ApiError::new(ApiErrorKind::Invalid, error.to_string()))
}

/// Runs work that reads files or takes long, beside what the server does.
async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> Result<R, ApiError> + Send + 'static,
) -> Result<R, ApiError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(ApiError::new(ApiErrorKind::Server, "the text cannot be checked")))
}

/// Lets the server use a file that was saved, unless more changed than that file, or something that people have to agree to.
async fn adopt(project: &LiveProject, path: &str) -> (bool, String) {
    let kept = |why: &str| {
        (
            false,
            format!("Saved. The server continues with the old version, because {why}. Restart it to use the new one."),
        )
    };
    match project.changes() {
        Ok(None) => (true, "Saved.".to_owned()),
        Ok(Some(changes)) if changes.files().any(|(file, _)| file != path) => kept("other files changed too"),
        Ok(Some(changes)) if !changes.definitions().is_empty() => {
            kept("it defines commands, servers or addresses that are new")
        }
        Ok(Some(changes)) => match project.accept(changes).await {
            Ok(_) => (true, "Saved. New turns use it.".to_owned()),
            Err(error) => kept(&error.to_string()),
        },
        Err(error) => kept(&error.to_string()),
    }
}

/// Returns the findings in a text, and what changes compared with the file.
fn check_text(live: &LiveProject, project: &Project, file: &EditedFile, text: &str) -> Json {
    let before = with_text(project, file.index, &file.text);
    let after = with_text(project, file.index, text);
    let config = live.config();
    let findings = ProjectCheck::read(&after, live.root(), config).findings(&after, config);
    let own = findings.iter().filter(|finding| finding.file == file.index).map(|finding| &finding.diagnostic);
    let elsewhere = findings.iter().filter(|finding| finding.file != file.index && finding.diagnostic.is_error());
    let elsewhere = elsewhere.map(|finding| {
        let place = after.location(finding.file, finding.diagnostic.span);
        json!({"severity": "error", "code": finding.diagnostic.code, "message": finding.diagnostic.message, "place": place})
    });
    let tree = after.files().get(file.index).map(|file| &file.tree);
    let own = own.filter_map(|finding| {
        Some(finding_json(finding, tree?.source(), tree?.line_index().line_column(finding.span.start)))
    });
    let changes = diff(&before, &after);
    json!({
        "findings": own.chain(elsewhere).take(MAX_LISTED).collect::<Vec<_>>(),
        "changes": changes.iter().take(MAX_LISTED).map(change_json).collect::<Vec<_>>(),
        "same": text == file.text,
    })
}

fn with_text(project: &Project, index: usize, text: &str) -> Project {
    let files = project.files().iter().enumerate().map(|(at, file)| match at == index {
        true => File::read(file.path.as_str(), text, Dialect::Patter),
        false => file.clone(),
    });
    Project::from_files(files.collect())
}

/// Browsers count in units of UTF-16.
fn units(source: &str, at: u32) -> usize {
    let before = source.get(..usize::try_from(at).unwrap_or_default()).unwrap_or(source);
    before.encode_utf16().count()
}

fn finding_json(finding: &Diagnostic, source: &str, (line, column): (usize, usize)) -> Json {
    json!({
        "severity": severity(finding),
        "code": finding.code,
        "message": finding.message,
        "hint": finding.hint,
        "line": line,
        "column": column,
        "start": units(source, finding.span.start),
        "end": units(source, finding.span.end),
    })
}

fn change_json(change: &Change) -> Json {
    let texts = change.texts.as_ref().map(|(old, new)| json!([old, new]));
    json!({"judgement": change.judgement.name(), "text": change.to_string(), "texts": texts})
}

/// Returns whether a path has the ending of gram files.
pub(super) fn is_gram(path: &FilePath) -> bool {
    path.extension().is_some_and(|ending| ending == "gram")
}
