//! Experiments: their list, their progress, and their reports.

use super::figures::{count, plural, time};
use super::new_experiment;
use super::page::{Page, PageError, Section, path_segment, respond};
use crate::host::{Host, api_error};
use crate::respond::{ErrorResponse, json};
use crate::token::{Access, Scope};
use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use patter::experiment::{Completion, NewTrials, Report, ReportKind, StoredTrials, StoredTrialsError, Trial};
use patter::html::{Html, html};
use patter::report;
use patter::stats::CompareOptions;
use patter::store::{SessionId, SessionState, SessionSummary, Store, StoreError};
use patter_core::serve::{ApiError, ApiErrorKind};
use serde::Deserialize;
use serde_json::json as object;
use std::collections::HashMap;
use std::sync::Arc;

/// How many sessions are searched for experiments.
const MAX_SEARCHED: usize = 5000;
/// How many cases are listed while an experiment runs. The report has all of them.
const MAX_CASES: usize = 500;

/// Whether an experiment goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    /// It runs, started here or elsewhere.
    Running,
    /// Nobody runs it, and it can be resumed.
    Interrupted,
    Ended,
}

impl Activity {
    async fn read(host: &Host, store: &dyn Store, id: &SessionId, state: SessionState) -> Self {
        if !state.is_open() {
            return Activity::Ended;
        }
        if host.experiments.is_running(id) {
            return Activity::Running;
        }
        // Whoever runs an experiment has claimed it.
        match store.claim(id).await {
            Err(StoreError::Busy { .. }) => Activity::Running,
            _ => Activity::Interrupted,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Activity::Running => "running",
            Activity::Interrupted => "interrupted",
            Activity::Ended => "ended",
        }
    }

    fn badge(self) -> Html {
        let class = match self {
            Activity::Running => "running",
            Activity::Interrupted => "failed",
            Activity::Ended => "",
        };
        html!("<span class=\"state {}\">{}</span>", class, self.name())
    }
}

/// Lists the experiments, newest first.
pub(super) async fn list(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    access.require(Scope::Read)?;
    let store = host.require_store()?;
    let sessions = store.list(MAX_SEARCHED).await.map_err(|error| api_error(&error.into()))?;
    let mut rows = Html::default();
    for session in sessions.iter().filter(|session| session.is_experiment()) {
        let activity = Activity::read(&host, &*store, &session.id, session.state).await;
        rows.push(&row(session, activity));
    }
    let list = if rows.is_empty() {
        html!(
            "<section class=\"empty\"><p>No experiments yet.</p><p class=\"quiet\">An experiment runs cases against an agent, and measures whether a \
             change makes it better. <code>patter eval</code> and <code>patter ab</code> run them too.</p></section>"
        )
    } else {
        html!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Experiments\"><table class=\"sessions\"><thead><tr>\
             <th scope=\"col\">Experiment</th><th scope=\"col\">State</th><th scope=\"col\" class=\"n\">Runs</th><th scope=\"col\">Started</th></tr></thead>\
             <tbody>{}</tbody></table></div>",
            rows
        )
    };
    let new = host.experiments.can_start().then(|| {
        html!(
            "<p class=\"actions\"><a class=\"button primary\" href=\"/studio/experiments/new\">New experiment</a></p>"
        )
    });
    let body = html!("<h1>Experiments</h1>{}{}", new.unwrap_or_default(), list);
    Ok(respond(&Page::new(Section::Experiments, "Experiments", body).with_style("runs.css"), &headers))
}

fn row(session: &SessionSummary, activity: Activity) -> Html {
    html!(
        "<tr><td><a href=\"/studio/experiments/{}\">{}</a><br><span class=\"quiet\">{}</span></td><td>{}</td><td class=\"n\">{}</td>\
         <td class=\"when\">{}</td></tr>",
        path_segment(session.id.as_str()),
        session.title,
        session.id.as_str(),
        activity.badge(),
        count(session.entries.saturating_sub(1)),
        time(session.created_ms)
    )
}

/// Shows an experiment: its progress while it runs, and its report afterwards.
pub(super) async fn show(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    access.require(Scope::Read)?;
    let store = host.require_store()?;
    let session = parse_id(&id)?;
    let read = StoredTrials::read_with_request(&*store, &session).await;
    let (mut report, request) = read.map_err(|error| read_error(&id, &error))?;
    let state = match report.completion {
        Completion::Complete | Completion::StoppedEarly => SessionState::Idle,
        Completion::Interrupted => SessionState::Running,
    };
    let activity = Activity::read(&host, &*store, &session, state).await;
    let page = if activity == Activity::Running {
        let body = progress(&host, &session, &report);
        Page::new(Section::Experiments, report.title.clone(), body).with_module("experiment.js")
    } else {
        if report.kind == ReportKind::Ab {
            let stopping = report.blocks.stopping();
            let options = CompareOptions { seed: report.seed, stopping, ..CompareOptions::default() };
            report.comparison = report.compare(&options).ok();
        }
        let part = path_segment(&id);
        let failure = host.experiments.failure(&session);
        let failure =
            failure.map(|message| html!("<p class=\"banner\" role=\"alert\">The experiment failed: {}</p>", message));
        let is_interrupted = activity == Activity::Interrupted;
        let can_resume = request.is_some() && new_experiment::require(&host, &access).is_ok();
        let resume = is_interrupted.then(|| resume_action(&session, can_resume));
        let body = html!(
            "{}{}{}<p class=\"actions\"><a class=\"button\" href=\"/api/experiments/{}\">Report as JSON</a></p>",
            failure.unwrap_or_default(),
            resume.unwrap_or_default(),
            report::fragment(&report),
            part
        );
        let page = Page::new(Section::Experiments, report.title.clone(), body)
            .with_style("report.css")
            .with_module("report.js")
            .wide();
        if is_interrupted { page.with_module("resume-experiment.js") } else { page }
    };
    Ok(respond(&page.with_style("runs.css"), &headers))
}

/// Returns how to resume an interrupted experiment: a button, if that can be done here.
fn resume_action(id: &SessionId, can_resume: bool) -> Html {
    if can_resume {
        html!(
            "<p class=\"banner actions\"><span>This experiment was interrupted.</span> \
             <button id=\"resume\" data-id=\"{}\">Resume</button> <span id=\"problem\" class=\"problem\" role=\"alert\"></span></p>",
            id.as_str()
        )
    } else {
        html!(
            "<p class=\"banner\">This experiment was interrupted. To resume it, repeat the command that started it.</p>"
        )
    }
}

/// How many trials passed, of how many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Tally {
    passed: u64,
    all: u64,
}

impl Tally {
    fn of<'t>(trials: impl Iterator<Item = &'t Trial>) -> Self {
        let count =
            |tally: Self, trial: &Trial| Self { passed: tally.passed + u64::from(trial.passed), all: tally.all + 1 };
        trials.fold(Self::default(), count)
    }

    /// Returns a cell of a table. A module of the page counts on.
    fn cell(self, case: &str, arm: &str) -> Html {
        let class = match self {
            Self { all: 0, .. } => "",
            Self { passed, all } if passed == all => "passed",
            Self { passed: 0, .. } => "failed",
            _ => "mixed",
        };
        let text = if self.all == 0 { "·".to_owned() } else { format!("{} of {}", self.passed, self.all) };
        html!(
            "<td class=\"{}\" data-case=\"{}\" data-arm=\"{}\" data-passed=\"{}\" data-all=\"{}\">{}</td>",
            class,
            case,
            arm,
            self.passed,
            self.all,
            text
        )
    }
}

/// Returns the view of an experiment that runs: how far it is, and how many runs of each case passed under each arm.
fn progress(host: &Host, id: &SessionId, report: &Report) -> Html {
    let planned = report.arms.len() * report.cases.len() * report.repeats as usize;
    let done = report.trials.len();
    let stop = host.experiments.is_running(id).then(|| html!("<button id=\"stop\">Stop</button>"));
    let arms: Html = report.arms.iter().map(|arm| html!("<th scope=\"col\">{}</th>", arm.name)).collect();
    let mut trials: HashMap<(&str, &str), Vec<&Trial>> = HashMap::new();
    for trial in &report.trials {
        trials.entry((&trial.case, &trial.arm)).or_default().push(trial);
    }
    let row = |case: &str| -> Html {
        let tally = |arm: &str| Tally::of(trials.get(&(case, arm)).into_iter().flatten().copied());
        report.arms.iter().map(|arm| tally(&arm.name).cell(case, &arm.name)).collect()
    };
    let totals: Html = report
        .arms
        .iter()
        .map(|arm| Tally::of(report.trials.iter().filter(|trial| trial.arm == arm.name)).cell("", &arm.name))
        .collect();
    let cases: Html = report
        .cases
        .iter()
        .take(MAX_CASES)
        .map(|case| html!("<tr><th scope=\"row\">{}</th>{}</tr>", case.id, row(&case.id)))
        .collect();
    let left_out = report.cases.len().saturating_sub(MAX_CASES);
    let more = (left_out > 0)
        .then(|| html!("<p class=\"quiet\">{} more are in the report.</p>", plural(left_out as u64, "case")));
    html!(
        "<h1>{}</h1><div id=\"experiment\" data-id=\"{}\" data-known=\"{}\"><p class=\"actions\"><label for=\"progress\">Progress</label> \
         <progress id=\"progress\" max=\"{}\" value=\"{}\"></progress> <span id=\"done\" role=\"status\">{} of {}</span>{}</p>\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Cases\"><table class=\"matrix\"><caption>Runs that passed</caption>\
         <thead><tr><th scope=\"col\">Case</th>{}</tr></thead><tbody><tr class=\"all\"><th scope=\"row\">all</th>{}</tr>{}</tbody></table></div>{}</div>",
        report.title,
        id.as_str(),
        // The plan is an entry too.
        done + 1,
        planned,
        done,
        done,
        planned,
        stop.unwrap_or_default(),
        arms,
        totals,
        cases,
        more.unwrap_or_default()
    )
}

/// Which trials are known.
#[derive(Debug, Deserialize)]
pub(super) struct ProgressQuery {
    #[serde(default)]
    known: u64,
}

/// Returns the trials that ended since.
pub(super) async fn read_progress(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
    Query(query): Query<ProgressQuery>,
) -> Result<Response, ErrorResponse> {
    access.require(Scope::Read)?;
    let store = host.require_store()?;
    let session = parse_id(&id)?;
    let new = StoredTrials::read_new(&*store, &session, query.known).await.map_err(|error| read_error(&id, &error))?;
    let NewTrials { trials, entries, state } = new;
    let activity = Activity::read(&host, &*store, &session, state).await;
    let told = |trial: &Trial| object!({"arm": trial.arm, "case": trial.case, "passed": trial.passed});
    let trials: Vec<_> = trials.iter().map(told).collect();
    Ok(json(&object!({"known": entries, "state": activity.name(), "trials": trials})))
}

pub(super) fn parse_id(id: &str) -> Result<SessionId, ApiError> {
    SessionId::parse(id).map_err(|_| missing(id))
}

fn missing(id: &str) -> ApiError {
    ApiError::new(ApiErrorKind::NotFound, format!("there is no experiment `{id}`"))
}

pub(super) fn read_error(id: &str, error: &StoredTrialsError) -> ApiError {
    match error {
        StoredTrialsError::Store(StoreError::NotFound { .. }) | StoredTrialsError::NotAnExperiment { .. } => {
            missing(id)
        }
        error => ApiError::new(ApiErrorKind::Server, error.to_string()),
    }
}
