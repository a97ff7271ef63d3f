//! Where sessions are kept, as the command, the environment and the project say.

use super::LAST_AMONG;
use crate::diagnostics;
use clap::Args;
use patter::project::{Config, Environment};
use patter::store::{self, Location, SessionId, Store, StoreError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::runtime::Runtime;

/// Where sessions are kept.
#[derive(Args, Clone, Default)]
pub(crate) struct StoreOption {
    /// Where sessions are kept: a file, postgres://…, or none; also `PATTER_STORE`, or [store] in patter.toml
    #[arg(long, global = true, value_name = "URL")]
    pub(super) store: Option<String>,
}

/// A store, with what it runs on.
pub(crate) struct Stores {
    pub(crate) runtime: Runtime,
    pub(crate) store: Arc<dyn Store>,
}

impl StoreOption {
    /// Opens the store of the project around the current folder. Says why where it cannot.
    pub(crate) fn open(&self) -> io::Result<Option<Stores>> {
        let root = patter::project::find_root();
        let config = match Config::read(root.as_deref()) {
            Ok(config) => config,
            Err(error) => return diagnostics::unloaded(&error).map(|_| None),
        };
        let environment = Environment::read(root.as_deref()).unwrap_or_else(|_| Environment::of_process());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        match runtime.block_on(self.reopen(root.as_deref(), &config, &environment)) {
            Ok(store) => Ok(Some(Stores { runtime, store })),
            Err(error) => {
                diagnostics::error(&error.to_string(), error.hint().as_deref())?;
                Ok(None)
            }
        }
    }

    pub(super) async fn reopen(
        &self,
        root: Option<&Path>,
        config: &Config,
        environment: &Environment,
    ) -> Result<Arc<dyn Store>, StoreError> {
        match self.location(root, config, environment)? {
            Some(location) => store::open(&location).await,
            None => Err(StoreError::Unusable {
                message: "there is no store of sessions".to_owned(),
                hint: Some("--store names one".to_owned()),
            }),
        }
    }

    /// Returns where sessions are kept: as the command says, a variable, the project, or else a file of the project, or of
    /// the user where there is no project.
    pub(crate) fn location(
        &self,
        root: Option<&Path>,
        config: &Config,
        environment: &Environment,
    ) -> Result<Option<Location>, StoreError> {
        let named = self.store.clone().or_else(|| environment.get("PATTER_STORE")).or_else(|| config.store.url.clone());
        match named.as_deref() {
            Some("none") => Ok(None),
            Some(named) => Location::parse(named).map(Some),
            None => {
                let state = || environment.get("XDG_STATE_HOME").map(PathBuf::from);
                let home = || environment.get("HOME").map(|home| PathBuf::from(home).join(".local/state"));
                let ours =
                    root.map(|root| if root == Path::new(".") { ".patter".into() } else { root.join(".patter") });
                let folder = ours.or_else(|| state().or_else(home).map(|state| state.join("patter")));
                Ok(folder.map(|folder| Location::Sqlite(folder.join("sessions.db"))))
            }
        }
    }
}

pub(super) async fn unfinished(store: &dyn Store) -> Result<SessionId, StoreError> {
    let sessions = store.list(LAST_AMONG).await?;
    let is_open = |summary: &store::Summary| summary.state == store::SessionState::Running && !summary.is_experiment();
    let open = sessions.into_iter().find(is_open);
    open.map(|summary| summary.id).ok_or_else(|| StoreError::Unusable {
        message: "there is no session with a run that has not ended".to_owned(),
        hint: Some("`patter sessions` lists them all".to_owned()),
    })
}
