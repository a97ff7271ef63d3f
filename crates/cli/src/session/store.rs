//! The location of stored sessions.

use super::RECENT_SESSIONS;
use crate::error::{CommandError, ErrorKind};
use crate::place::Place;
use crate::setup::{new_runtime, require_trust};
use clap::Args;
use patter::project::{Config, DefinitionKind, Environment};
use patter::store::{self, SessionId, Store, StoreError, StoreLocation};
use patter::tool::CancellationToken;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::runtime::Runtime;

/// Where sessions are stored.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct StoreOption {
    /// Where to store sessions: a file, postgres://…, or none; also `PATTER_STORE`, or [store] in patter.toml
    #[arg(long, global = true, value_name = "URL")]
    store: Option<String>,
}

/// An open store, with the runtime it needs.
pub(crate) struct OpenStore {
    pub(crate) runtime: Runtime,
    pub(crate) store: Arc<dyn Store>,
}

impl StoreOption {
    /// Opens the store of the project around the current folder, for a command that reads what is there. A file that the
    /// command names must exist: creating an empty one would hide a typo.
    pub(crate) fn open_existing(&self) -> Result<OpenStore, CommandError> {
        let root = patter::project::find_root();
        let config = Config::read(root.as_deref())?;
        let environment = Environment::read(root.as_deref()).unwrap_or_else(|_| Environment::from_process());
        if self.is_given()
            && let Some(StoreLocation::Sqlite(path)) = self.location(root.as_deref(), &config, &environment)?
            && !path.exists()
        {
            let error = CommandError::usage(format!("there is no session store `{}`", path.display()));
            return Err(error
                .with_place(Place::file(path.display().to_string()))
                .with_hint("check the path; `patter run` creates a store"));
        }
        let runtime = new_runtime()?;
        self.require_trust(&runtime, root.as_deref(), &config, &environment)?;
        let store = runtime.block_on(self.connect(root.as_deref(), &config, &environment))?;
        Ok(OpenStore { runtime, store })
    }

    /// Makes the way in which the address of the store claims sessions that of its database. Returns the address, and whether it
    /// was another way.
    pub(crate) fn change_claims(&self) -> Result<(StoreLocation, bool), CommandError> {
        let root = patter::project::find_root();
        let config = Config::read(root.as_deref())?;
        let environment = Environment::read(root.as_deref()).unwrap_or_else(|_| Environment::from_process());
        let location = self.location(root.as_deref(), &config, &environment)?.ok_or_else(|| self.disabled())?;
        let runtime = new_runtime()?;
        self.require_trust(&runtime, root.as_deref(), &config, &environment)?;
        let changed = runtime.block_on(store::change_claims(&location))?;
        Ok((location, changed))
    }

    /// Makes sure that the user agrees to the store that a project names.
    fn require_trust(
        &self,
        runtime: &Runtime,
        root: Option<&Path>,
        config: &Config,
        environment: &Environment,
    ) -> Result<(), CommandError> {
        if self.is_given() {
            return Ok(());
        }
        let defined = config.definitions(root, environment);
        let stores = defined.iter().filter(|definition| definition.kind == DefinitionKind::Store);
        require_trust(runtime, &CancellationToken::new(), root, stores)
    }

    /// Opens the store of a project.
    pub(super) async fn connect(
        &self,
        root: Option<&Path>,
        config: &Config,
        environment: &Environment,
    ) -> Result<Arc<dyn Store>, CommandError> {
        let location = self.location(root, config, environment)?.ok_or_else(|| self.disabled())?;
        Ok(store::open(&location).await?)
    }

    /// Returns the option as it was written, to be added to another command.
    pub(crate) fn argument(&self) -> String {
        self.store.as_ref().map_or_else(String::new, |store| format!(" --store {store}"))
    }

    /// Returns the store that the command names.
    pub(crate) fn given(&self) -> Option<&str> {
        self.store.as_deref()
    }

    /// Returns whether the command names a store.
    pub(crate) fn is_given(&self) -> bool {
        self.store.is_some()
    }

    /// Returns the error of a command that needs a store.
    pub(crate) fn disabled(&self) -> CommandError {
        match &self.store {
            Some(_) => CommandError::usage("sessions are disabled (`--store none`)")
                .with_hint("name a file or a database with --store"),
            None => CommandError::new(ErrorKind::named("StoreError"), "sessions are disabled")
                .with_hint("pass --store to enable them"),
        }
    }

    /// Returns where sessions are stored: as named by the option, a variable or the project; by default in a file of the
    /// project, or of the user outside of a project.
    pub(crate) fn location(
        &self,
        root: Option<&Path>,
        config: &Config,
        environment: &Environment,
    ) -> Result<Option<StoreLocation>, CommandError> {
        if let Some(named) = &self.store {
            return parse(named, "--store").map_err(|error| error.with_kind(ErrorKind::Usage));
        }
        if let Some(named) = environment.get("PATTER_STORE") {
            return parse(&named, "`PATTER_STORE`");
        }
        if let Some(named) = &config.store.url {
            return parse(named, "`url` under `[store]` in patter.toml");
        }
        // The file `.env` of a folder does not decide where the user's sessions are.
        let process = Environment::from_process();
        let state = || process.get("XDG_STATE_HOME").map(PathBuf::from);
        let home = || process.get("HOME").map(|home| PathBuf::from(home).join(".local/state"));
        let in_project = root.map(|root| if root == Path::new(".") { ".patter".into() } else { root.join(".patter") });
        let folder = in_project.or_else(|| state().or_else(home).map(|state| state.join("patter")));
        Ok(folder.map(|folder| StoreLocation::Sqlite(folder.join("sessions.db"))))
    }
}

/// Parses a location, and adds to an error where it is set.
fn parse(text: &str, origin: &str) -> Result<Option<StoreLocation>, CommandError> {
    if text == "none" {
        return Ok(None);
    }
    let location = StoreLocation::parse(text);
    location.map(Some).map_err(|error| {
        let message = format!("{origin}: {error}");
        CommandError::from(error).with_message(message)
    })
}

/// Returns the last session with an unfinished run.
pub(super) async fn find_unfinished(store: &dyn Store) -> Result<SessionId, StoreError> {
    let sessions = store.list(RECENT_SESSIONS).await?;
    let is_open = |summary: &store::SessionSummary| summary.state.is_open() && !summary.is_experiment();
    let open = sessions.into_iter().find(is_open);
    open.map(|summary| summary.id).ok_or_else(|| StoreError::Unusable {
        message: "no session has an unfinished run".to_owned(),
        hint: Some("list all sessions with `patter sessions`".to_owned()),
    })
}
