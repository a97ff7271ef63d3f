//! Keys of providers: from a variable, or printed by a command.

use super::access::ProviderAccess;
use super::error::ModelError;
use crate::http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use crate::os_error;
use crate::project::{Environment, KeyCommand, KeySource};
use crate::tool::command::INHERITED_VARIABLES;
use crate::tool::process::{ProcessCommand, ProcessOutcome, RunningProcess, StdinSource};
use crate::tool::scripts::{ScriptHashes, Scripts};
use patter_core::provider::{KeyHeader, Provider};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::OnceCell;

/// The time that a command has to print a key. It may ask the user to unlock something.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);
/// The size limit of what a command prints, in bytes.
const MAX_OUTPUT: usize = 64 * 1024;

/// The key of a provider.
pub(super) struct ProviderKey {
    header: HeaderName,
    is_bearer: bool,
    source: Source,
}

enum Source {
    /// There is none.
    None,
    /// The value of a variable.
    Variable { name: String, value: String },
    /// The output of a command.
    Command(Arc<CommandKey>),
}

/// A key that a command prints, once for all requests until it is rejected.
pub(super) struct CommandKey {
    provider: Provider,
    command: KeyCommand,
    root: PathBuf,
    environment: Environment,
    scripts: Scripts,
    current: Mutex<Arc<OnceCell<String>>>,
}

impl ProviderKey {
    /// Returns the key of a provider. `shared` is one that other models of the provider use too.
    pub(super) fn new(
        access: &ProviderAccess,
        environment: &Environment,
        root: &Path,
        shared: Option<Arc<CommandKey>>,
    ) -> Result<Self, ModelError> {
        let (header, is_bearer) = match (access.settings.key_header.as_deref(), access.endpoint.key_header) {
            (Some(name), _) if name.eq_ignore_ascii_case("bearer") => (AUTHORIZATION, true),
            (Some(name), _) => {
                let invalid = |_| ModelError::config(format!("`{name}` is not the name of a header"));
                (HeaderName::from_bytes(name.as_bytes()).map_err(invalid)?, false)
            }
            (None, KeyHeader::Bearer) => (AUTHORIZATION, true),
            (None, KeyHeader::Named(name)) => (HeaderName::from_static(name), false),
        };
        let source = match &access.key {
            None => Source::None,
            Some(KeySource::Variable(name)) => {
                Source::Variable { name: name.clone(), value: environment.get(name).unwrap_or_default() }
            }
            Some(KeySource::Command(command)) => Source::Command(
                shared.unwrap_or_else(|| CommandKey::new(access.provider, command.clone(), environment, root)),
            ),
        };
        Ok(Self { header, is_bearer, source })
    }

    /// Returns the value, if it is known without running a command.
    pub(super) fn known(&self) -> Option<&str> {
        match &self.source {
            Source::Variable { value, .. } => Some(value),
            Source::None | Source::Command(_) => None,
        }
    }

    /// Returns the command that prints the key, if that is where it comes from.
    pub(super) fn command(&self) -> Option<Arc<CommandKey>> {
        match &self.source {
            Source::Command(key) => Some(Arc::clone(key)),
            Source::None | Source::Variable { .. } => None,
        }
    }

    /// Returns where the key is, for people; `None` if there is none.
    pub(super) fn place(&self) -> Option<String> {
        match &self.source {
            Source::None => None,
            Source::Variable { name, .. } => Some(format!("`{name}`")),
            Source::Command(key) => Some(format!("the output of `{}`", key.command.command.join(" "))),
        }
    }

    /// Returns the key. A command runs if it has not printed the key yet.
    pub(super) async fn get(&self) -> Result<Option<String>, ModelError> {
        match &self.source {
            Source::None => Ok(None),
            Source::Variable { value, .. } => Ok(Some(value.clone())),
            Source::Command(key) => key.get().await.map(Some),
        }
    }

    /// Adds the key to the headers of a request.
    pub(super) fn insert(&self, key: &str, headers: &mut HeaderMap) -> Result<(), ModelError> {
        let key = key.trim();
        let text = if self.is_bearer { format!("Bearer {key}") } else { key.to_owned() };
        let mut value = HeaderValue::from_str(&text).map_err(|_| {
            let place = self.place().unwrap_or_default();
            ModelError::config(format!("the key in {place} contains characters that a header cannot contain"))
        })?;
        value.set_sensitive(true);
        headers.insert(self.header.clone(), value);
        Ok(())
    }

    /// Forgets a key that was rejected, so that the command prints a new one. Returns whether that may help.
    pub(super) fn forget(&self, rejected: &str) -> bool {
        match &self.source {
            Source::Command(key) => key.forget(rejected),
            Source::None | Source::Variable { .. } => false,
        }
    }
}

impl CommandKey {
    /// Returns a key that a command prints when it is needed. It runs in the root of the project.
    pub(super) fn new(provider: Provider, command: KeyCommand, environment: &Environment, root: &Path) -> Arc<Self> {
        let scripts = Scripts::read(&command.command, &[root], root, &mut ScriptHashes::default());
        Arc::new(Self {
            provider,
            command,
            root: root.to_owned(),
            environment: environment.clone(),
            scripts,
            current: Mutex::default(),
        })
    }

    async fn get(&self) -> Result<String, ModelError> {
        let cell = Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner));
        cell.get_or_try_init(|| self.run()).await.cloned()
    }

    fn forget(&self, rejected: &str) -> bool {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current = current.get().is_some_and(|key| key == rejected);
        if is_current {
            *current = Arc::default();
        }
        is_current
    }

    async fn run(&self) -> Result<String, ModelError> {
        // What it prints may be a part of the key, so it is never shown.
        let failed = |reason: String| ModelError::Configuration {
            message: format!("the command that prints the key of {} {reason}", self.provider.name()),
            hint: Some(format!("run `{}` yourself to see why", self.command.command.join(" "))),
        };
        self.scripts.check().map_err(|failure| failed(format!("is not run: {}", failure.message())))?;
        let (program, arguments) = self.command.command.split_first().ok_or_else(|| failed("is empty".to_owned()))?;
        let names = INHERITED_VARIABLES.iter().copied().chain(self.command.env.iter().map(String::as_str));
        let command = ProcessCommand::new(ProcessCommand::program_file(&self.root, program))
            .args(arguments)
            .envs(names.filter_map(|name| Some((name, self.environment.get(name)?))))
            .folder(&self.root)
            .stdin(StdinSource::Null);
        let run = async {
            let process = RunningProcess::spawn(&command).await;
            let process =
                process.map_err(|error| failed(format!("cannot be started: {}", os_error::describe(&error))))?;
            match process.run(Vec::new(), MAX_OUTPUT, 0).await {
                Ok(ProcessOutcome::Exited(output)) if output.status.success() => Ok(output.stdout),
                Ok(ProcessOutcome::Exited(output)) => Err(failed(match output.status.code() {
                    Some(code) => format!("exited with code {code}"),
                    None => "was killed by a signal".to_owned(),
                })),
                Ok(ProcessOutcome::OutputLimit { .. }) => Err(failed(format!("printed more than {MAX_OUTPUT} bytes"))),
                Err(_) => Err(failed("could not be read".to_owned())),
            }
        };
        let output = tokio::time::timeout(COMMAND_TIMEOUT, run)
            .await
            .map_err(|_| failed(format!("did not finish within {} s", COMMAND_TIMEOUT.as_secs())))??;
        let text = String::from_utf8(output).map_err(|_| failed("printed something that is not text".to_owned()))?;
        let key = text.lines().map(str::trim).find(|line| !line.is_empty());
        key.map(str::to_owned).ok_or_else(|| failed("printed nothing".to_owned()))
    }
}
