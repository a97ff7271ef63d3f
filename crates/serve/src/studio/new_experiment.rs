//! Starting, stopping and resuming experiments.

use super::experiments::{parse_id, read_error};
use super::page::{Page, PageError, Section, reachable_agents, respond};
use crate::experiment::ExperimentRequest;
use crate::guard::read_body;
use crate::host::{Host, unknown_agent};
use crate::respond::{ErrorResponse, json};
use crate::token::{Access, Scope};
use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use patter::case::{self, CaseFormat};
use patter::experiment::StoredTrials;
use patter::html::{Html, html};
use patter_core::serve::{ApiError, ApiErrorKind};
use serde::{Deserialize, Serialize};
use serde_json::json as object;
use std::fs;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

/// How many arms the form has room for.
const ARMS: usize = 3;
/// The maximum number of arms.
const MAX_ARMS: usize = 20;
/// The maximum number of runs per case.
const MAX_REPEATS: u32 = 1000;
/// How many files are searched for cases, and how deep.
const MAX_SEARCHED: usize = 5000;
const MAX_DEPTH: usize = 3;
/// The largest gram file that is searched for cases.
const MAX_GRAM_BYTES: u64 = 1 << 20;

/// An experiment, as the form describes it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StartRequest {
    agent: String,
    /// A file with cases, relative to the root of the project.
    cases: String,
    #[serde(default)]
    arms: Vec<ArmRequest>,
    #[serde(default = "once")]
    repeats: u32,
    #[serde(default)]
    stops_early: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArmRequest {
    name: String,
    what: String,
}

fn once() -> u32 {
    1
}

/// Shows the form for a new experiment.
pub(super) async fn show(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    require(&host, &access)?;
    let agents: Html = reachable_agents(&host, &access).iter().map(|name| html!("<option>{}</option>", name)).collect();
    let root = root(&host);
    let files = tokio::task::spawn_blocking(move || case_files(&root)).await.unwrap_or_default();
    let files: Html = files.iter().map(|file| html!("<option value=\"{}\"></option>", file)).collect();
    let arm = |number: usize| {
        html!(
            "<div class=\"arm-row\"><label>Name <input name=\"name\" maxlength=\"60\"></label>\
             <label>What differs <input name=\"what\" maxlength=\"500\" aria-describedby=\"arm-help\" placeholder=\"{}\"></label></div>",
            match number {
                0 => "base",
                1 => "model:Provider/name",
                _ => "agent:other.gram",
            }
        )
    };
    let arms: Html = (0..ARMS).map(arm).collect();
    let body = html!(
        "<h1>New experiment</h1><form id=\"new-experiment\" class=\"form\">\
         <label>Agent <select name=\"agent\" required>{}</select></label>\
         <label>Cases <input name=\"cases\" list=\"case-files\" required autocomplete=\"off\" placeholder=\"cases.gram\"></label><datalist id=\"case-files\">{}</datalist>\
         <fieldset><legend>Arms to compare</legend><p class=\"quiet\" id=\"arm-help\">Without arms, the agent is evaluated. An arm is <code>base</code> for the agent as it is, a file with toolboxes, \
         <code>model:Provider/name</code>, <code>agent:FILE</code> or <code>git:REVISION</code>. The first arm is the one that the others are compared with.</p>{}</fieldset>\
         <label>Runs per case <input type=\"number\" name=\"repeats\" value=\"1\" min=\"1\" max=\"{}\"></label>\
         <label class=\"check\"><input type=\"checkbox\" name=\"stops_early\"> Stop as soon as the result is clear</label>\
         <p class=\"quiet\">Calls that need an approval are refused.</p>\
         <p class=\"actions\"><button class=\"primary\">Start</button><a class=\"button\" href=\"/studio/experiments\">Cancel</a></p>\
         <p id=\"problem\" class=\"problem\" role=\"alert\"></p></form>",
        agents,
        files,
        arms,
        MAX_REPEATS
    );
    let page = Page::new(Section::Experiments, "New experiment", body).with_style("runs.css");
    Ok(respond(&page.with_module("new-experiment.js"), &headers))
}

/// Starts an experiment, and returns its id.
pub(super) async fn start(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    body: Body,
) -> Result<Response, ErrorResponse> {
    require(&host, &access)?;
    let body = read_body(&host, body).await?;
    let wanted: StartRequest = serde_json::from_slice(&body).map_err(|error| invalid(error.to_string()))?;
    run(&host, read_request(&host, &access, wanted)?).await
}

/// Resumes an experiment that was started here and interrupted.
pub(super) async fn resume(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
) -> Result<Response, ErrorResponse> {
    require(&host, &access)?;
    let session = parse_id(&id)?;
    let store = host.require_store()?;
    let read = StoredTrials::read_with_request(&*store, &session).await;
    let (_, stored) = read.map_err(|error| read_error(&id, &error))?;
    let stored = stored.ok_or_else(|| {
        invalid("the experiment was not started in the studio; repeat its command to resume it".to_owned())
    })?;
    let wanted: StartRequest = serde_json::from_value(stored)
        .map_err(|error| invalid(format!("what was asked for cannot be read: {error}")))?;
    let request = read_request(&host, &access, wanted)?;
    run(&host, ExperimentRequest { resumed: Some(session), ..request }).await
}

/// Runs an experiment, and returns its id as soon as it has started.
async fn run(host: &Arc<Host>, request: ExperimentRequest) -> Result<Response, ErrorResponse> {
    let stop = host.draining.child_token();
    let id = host.experiments.start(request, stop, |work| host.spawn_work(work)).await?;
    Ok(json(&object!({ "id": id.as_str() })))
}

/// Stops an experiment. It can be resumed.
pub(super) async fn stop(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
) -> Result<Response, ErrorResponse> {
    require(&host, &access)?;
    let session = parse_id(&id)?;
    if !host.experiments.stop(&session) {
        let message = format!("this server does not run the experiment `{id}`");
        return Err(ApiError::new(ApiErrorKind::Busy, message).into());
    }
    Ok(json(&object!({ "id": id })))
}

/// Experiments may use every model and file, so they are for those who may reach all agents.
pub(super) fn require(host: &Host, access: &Access) -> Result<(), ApiError> {
    access.require(Scope::Run)?;
    if !access.may_reach_all() {
        let message = "the token does not permit this: it is for some agents only";
        return Err(ApiError::new(ApiErrorKind::Forbidden, message));
    }
    if !host.experiments.can_start() {
        return Err(invalid("this server starts no experiments".to_owned()));
    }
    Ok(())
}

fn invalid(message: String) -> ApiError {
    ApiError::new(ApiErrorKind::Invalid, message)
}

fn read_request(host: &Host, access: &Access, wanted: StartRequest) -> Result<ExperimentRequest, ApiError> {
    if !reachable_agents(host, access).contains(&wanted.agent) {
        return Err(unknown_agent(&wanted.agent));
    }
    let driver = host.driver();
    let project = driver.project();
    let declared = project.agents().find(|(_, agent)| agent.name().as_deref() == Some(wanted.agent.as_str()));
    let file = declared.and_then(|(declaration, _)| project.files().get(declaration.file));
    let file = file.map(|file| PathBuf::from(&file.path)).ok_or_else(|| unknown_agent(&wanted.agent))?;
    let cases = find_inside(&root(host), &wanted.cases)
        .ok_or_else(|| invalid(format!("there is no file `{}` in the project", wanted.cases)))?;
    if CaseFormat::from_path(&wanted.cases).is_none() {
        return Err(invalid(format!("`{}` has no cases: use *.gram, *.jsonl or *.csv", wanted.cases)));
    }
    let arms: Vec<_> = wanted.arms.iter().filter(|arm| !(arm.name.is_empty() && arm.what.is_empty())).collect();
    if arms.len() == 1 || arms.len() > MAX_ARMS {
        return Err(invalid(format!(
            "a comparison has 2 to {MAX_ARMS} arms; leave all of them empty to evaluate the agent"
        )));
    }
    if !(1..=MAX_REPEATS).contains(&wanted.repeats) {
        return Err(invalid(format!("a case can run 1 to {MAX_REPEATS} times")));
    }
    let asked = serde_json::to_value(&wanted).map_err(|error| invalid(error.to_string()))?;
    Ok(ExperimentRequest {
        asked,
        resumed: None,
        file,
        agent: wanted.agent,
        cases: vec![cases],
        arms: arms.iter().map(|arm| format!("{}={}", arm.name, arm.what)).collect(),
        repeats: wanted.repeats,
        stops_early: wanted.stops_early,
    })
}

/// Returns the folder of the project.
fn root(host: &Host) -> PathBuf {
    host.project.root().unwrap_or_else(|| FilePath::new(".")).to_owned()
}

/// Returns a file of a folder, unless the path leads out of it.
fn find_inside(root: &FilePath, path: &str) -> Option<PathBuf> {
    let root = root.canonicalize().ok()?;
    let file = root.join(path).canonicalize().ok()?;
    (file.starts_with(&root) && file.is_file()).then_some(file)
}

/// Returns the files below a folder that have cases, relative to it. There may be more if the folder is large.
fn case_files(root: &FilePath) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![(root.to_owned(), 0)];
    let mut seen = 0;
    while let Some((folder, depth)) = open.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            seen += 1;
            if seen > MAX_SEARCHED {
                return found;
            }
            let name = entry.file_name();
            let is_skipped = name.to_string_lossy().starts_with('.') || name == "node_modules" || name == "target";
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && !is_skipped && depth < MAX_DEPTH => open.push((path, depth + 1)),
                Ok(kind) if kind.is_file() && !is_skipped && has_cases(&path) => {
                    found.extend(path.strip_prefix(root).ok().map(|path| path.display().to_string()));
                }
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// Returns whether a file has cases. Other files end in `.jsonl` or `.csv` too, so only those with a telling name count.
fn has_cases(path: &FilePath) -> bool {
    let text = path.to_string_lossy();
    match CaseFormat::from_path(&text) {
        None => false,
        Some(CaseFormat::Gram) => {
            let is_small = fs::metadata(path).is_ok_and(|metadata| metadata.len() <= MAX_GRAM_BYTES);
            let bytes = if is_small { fs::read(path).unwrap_or_default() } else { Vec::new() };
            !case::read(&text, CaseFormat::Gram, &bytes).0.is_empty()
        }
        Some(_) => path.file_name().is_some_and(|name| name.to_string_lossy().contains("case")),
    }
}
