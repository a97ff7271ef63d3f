//! The studio: pages about the project, its conversations and its runs.
//!
//! A page is complete when it arrives: what it shows is HTML that was written here, and can be read without JavaScript. Small
//! modules add what changes while people look at it, over the routes that other clients use too.

mod asset;
mod login;
mod page;
mod figures;
mod markdown;
mod transcript;
mod conversation;
mod view;
mod source;
mod project;
mod query;
mod callable;
mod agent;
mod tool;
mod file;
mod edit;
mod talk;
mod timeline;
mod raw_request;
mod runs;
mod session;
mod entry;
mod replay;
mod compare;
mod case;
mod experiments;
mod new_experiment;
mod inbox;

pub(crate) use login::{Logins, cookie_token, is_open_route, login_page, prepare_logins};
pub(crate) use view::ProjectViews;

pub(crate) use timeline::TimelineCache;

use crate::host::Host;
use axum::Router;
use axum::routing::{get, post};
use std::sync::Arc;

/// Returns the routes of the pages. They are not described by `/openapi.json`, because they are not for programs.
pub(crate) fn routes() -> Router<Arc<Host>> {
    Router::new()
        .route("/", get(project::show))
        .route("/studio/map.svg", get(project::map))
        .route("/studio/query", get(query::find))
        .route("/studio/agents/{name}", get(agent::show))
        .route("/studio/tools/{name}", get(tool::show))
        .route("/studio/edit/{path}", get(edit::show).post(edit::save))
        .route("/studio/edit/{path}/check", post(edit::check))
        .route("/studio/talk", get(talk::choose))
        .route("/studio/talk/{id}", get(talk::show))
        .route("/studio/talk/{id}/turns", get(talk::show_turns))
        .route("/studio/markdown", post(talk::render_markdown))
        .route("/studio/sessions", get(runs::list))
        .route("/studio/sessions/{id}", get(session::show))
        .route("/studio/sessions/{id}/rows", get(session::rows))
        .route("/studio/sessions/{id}/export", get(session::export))
        .route("/studio/sessions/{id}/replay", get(replay::show))
        .route("/studio/sessions/{id}/case", get(case::show))
        .route("/studio/sessions/{id}/entries/{number}", get(entry::show))
        .route("/studio/compare", get(compare::show))
        .route("/studio/experiments", get(experiments::list).post(new_experiment::start))
        .route("/studio/experiments/new", get(new_experiment::show))
        .route("/studio/experiments/{id}", get(experiments::show))
        .route("/studio/experiments/{id}/progress", get(experiments::read_progress))
        .route("/studio/experiments/{id}/stop", post(new_experiment::stop))
        .route("/studio/experiments/{id}/resume", post(new_experiment::resume))
        .route("/studio/inbox", get(inbox::list))
        .route("/studio/login", post(login::log_in))
        .route("/studio/assets/{version}/{*path}", get(asset::serve))
}
