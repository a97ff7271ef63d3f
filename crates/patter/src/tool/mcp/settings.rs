//! The validated settings of an MCP server.

use super::auth::{Credentials, LoginStore, OauthSettings};
use super::config_error::ServerConfigError;
use super::requests::PERSON_TIMEOUT;
use crate::http::host_and_port;
use crate::tool::redact::Redactor;
use crate::tool::sandbox::{Sandbox, SandboxPolicy};
use patter_core::text::Glob;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use serde::Deserialize;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The settings of an MCP server: validated, and with variables expanded.
///
/// ```
/// use patter::tool::mcp::ServerConfig;
/// let config: ServerConfig = toml::from_str("url = 'https://example.com/mcp'").unwrap();
/// let settings = config.settings("web", "patter.toml".as_ref(), &|_| None).unwrap();
/// assert_eq!(format!("{settings:?}"), "ServerSettings(web)");
/// ```
#[derive(Clone)]
pub struct ServerSettings {
    pub(super) name: Arc<str>,
    pub(super) transport: Transport,
    pub(super) timeout: Duration,
    pub(super) start_timeout: Duration,
    /// The tools that are used.
    pub(super) filter: ToolFilter,
    /// The URLs of the folders that the server may work on.
    pub(super) roots: Vec<Url>,
    /// Whether there are tools for the resources of the server, if it has any.
    pub(super) has_resources: bool,
    /// Whether there are tools for the prompts of the server, if it has any.
    pub(super) has_prompts: bool,
    /// Hides the values of variables and headers.
    pub(super) redactor: Arc<Redactor>,
    /// Whether the server may ask the person for input.
    pub(super) elicitation: bool,
    /// Whether the server may ask the agent's model.
    pub(super) sampling: bool,
    pub(super) oauth: OauthSettings,
    /// Where tokens are stored.
    pub(super) logins: LoginStore,
}

/// The way to communicate with a server.
#[derive(Clone)]
pub(super) enum Transport {
    /// Over the stdin and stdout of a process that is started here.
    Process {
        command: String,
        arguments: Vec<String>,
        environment: Vec<(String, String)>,
        folder: Option<PathBuf>,
        sandbox: ServerSandbox,
    },
    /// Over HTTP with a running server.
    Http(HttpTransport),
}

/// How to connect to a running server.
#[derive(Clone)]
pub(super) struct HttpTransport {
    pub(super) url: Url,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    /// The protocol that the server knows, or nothing to find out.
    pub(super) protocol: Option<HttpProtocol>,
}

/// A protocol over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HttpProtocol {
    /// One endpoint, with sessions (2025-03-26 and later).
    Http,
    /// A stream of server-sent events, and an endpoint for messages (2024-11-05).
    Sse,
}

impl HttpProtocol {
    /// Returns the name, as it is written in settings.
    pub(super) const fn name(self) -> &'static str {
        match self {
            HttpProtocol::Http => "http",
            HttpProtocol::Sse => "sse",
        }
    }
}

/// The tools of a server that are used: those that `only` names, or all, except those that `except` names.
#[derive(Clone, Default)]
pub(super) struct ToolFilter {
    pub(super) only: Option<Vec<String>>,
    pub(super) except: Vec<String>,
}

impl ToolFilter {
    /// Returns whether a tool is used.
    pub(super) fn allows(&self, tool: &str) -> bool {
        let is_named = |patterns: &[String]| patterns.iter().any(|pattern| Glob::new(pattern).matches(tool));
        self.only.as_deref().is_none_or(is_named) && !is_named(&self.except)
    }

    /// Returns whether a tool may be used whose name here is known, but maybe not the one that the server gives it.
    pub(super) fn may_allow(&self, tool: &str) -> bool {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*' | '?');
        let mut patterns = self.only.iter().flatten().chain(&self.except);
        self.allows(tool) || !patterns.all(|pattern| pattern.chars().all(is_plain))
    }

    /// Iterates over the patterns that name none of these tools.
    pub(super) fn unused<'f>(&'f self, tools: &'f HashSet<String>) -> impl Iterator<Item = &'f str> {
        let all = self.only.iter().flatten().chain(&self.except).map(String::as_str);
        all.filter(|pattern| {
            let glob = Glob::new(pattern);
            !tools.iter().any(|tool| glob.matches(tool))
        })
    }
}

/// What the process of a server may do.
#[derive(Clone)]
pub(super) struct ServerSandbox {
    pub(super) sandbox: Sandbox,
    /// The folder that the folders of the sandbox are relative to.
    pub(super) root: PathBuf,
    pub(super) policy: SandboxPolicy,
}

impl ServerSettings {
    /// Returns the settings with the sandbox that a project has for a server, given what it declares.
    #[must_use]
    pub(crate) fn with_policy(mut self, policy: &SandboxPolicy, declared: Option<&Sandbox>) -> Self {
        if let Transport::Process { sandbox, .. } = &mut self.transport {
            sandbox.sandbox = policy.sandbox(declared);
            sandbox.policy = policy.clone();
        }
        self
    }

    /// Returns what the process of the server may do, if it has one.
    pub(super) fn sandbox(&self) -> Option<&ServerSandbox> {
        match &self.transport {
            Transport::Process { sandbox, .. } => Some(sandbox),
            Transport::Http { .. } => None,
        }
    }

    /// Returns the name of the server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sets where the user's logins are stored, and which authorization servers may be contacted although they are not
    /// public: `localhost:8080`, `10.0.0.0/8`. By default there are no logins.
    #[must_use]
    pub fn with_logins(mut self, store: LoginStore, allowed: &[String]) -> Self {
        self.logins = store;
        self.oauth.allowed = allowed.to_vec();
        self
    }

    /// Returns the host and the port of a server with a URL, or the program of one that is started.
    pub fn address(&self) -> String {
        match &self.transport {
            Transport::Process { command, .. } => self.redactor.redact(command),
            Transport::Http(HttpTransport { url, .. }) => host_and_port(url),
        }
    }

    /// Returns the time that questions may add to a call.
    pub(super) fn question_time(&self) -> Duration {
        if self.elicitation || self.sampling { PERSON_TIMEOUT } else { Duration::ZERO }
    }

    /// Returns the credentials for requests, unless `headers` contain an authorization.
    pub(super) fn credentials(&self) -> Option<Arc<Credentials>> {
        match &self.transport {
            Transport::Http(HttpTransport { url, headers, .. })
                if !headers.iter().any(|(name, _)| name == AUTHORIZATION) =>
            {
                Credentials::new(url, &self.logins, &self.oauth.allowed, self.timeout, &self.redactor)
            }
            _ => None,
        }
    }
}

/// Shows only the name: the rest may contain secrets.
impl fmt::Debug for ServerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerSettings({})", self.name)
    }
}

/// The length in bytes from which the value of any environment variable is treated as a secret.
const MIN_SECRET_LENGTH: usize = 8;

/// Returns whether the name of a variable says that its value is a secret.
fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["KEY", "TOKEN", "SECRET", "PASS", "PWD", "AUTH", "CREDENTIAL"].iter().any(|word| name.contains(word))
}

/// Expands variables in texts, and collects their values as secrets.
pub(super) struct VariableExpander<'v> {
    variable: &'v dyn Fn(&str) -> Option<String>,
    secrets: Vec<String>,
}

impl<'v> VariableExpander<'v> {
    pub(super) fn new(variable: &'v dyn Fn(&str) -> Option<String>) -> Self {
        Self { variable, secrets: Vec::new() }
    }

    /// Expands `${VAR}` and `${VAR:-default}` in a text.
    pub(super) fn expand(&mut self, text: &str) -> Result<String, ServerConfigError> {
        let mut expanded = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, next) = after.split_once('}').ok_or_else(|| ServerConfigError::Unclosed(text.to_owned()))?;
            let (name, default) = name.split_once(":-").map_or((name, None), |(name, text)| (name, Some(text)));
            expanded.push_str(before);
            match ((self.variable)(name).filter(|value| !value.is_empty()), default) {
                (Some(value), _) => {
                    expanded.push_str(&value);
                    self.secrets.push(value);
                }
                (None, Some(default)) => expanded.push_str(default),
                (None, None) => return Err(ServerConfigError::Variable(name.to_owned())),
            }
            rest = next;
        }
        expanded.push_str(rest);
        Ok(expanded)
    }

    /// Expands variables in the values of a map.
    pub(super) fn expand_values(
        &mut self,
        values: &BTreeMap<String, String>,
    ) -> Result<Vec<(String, String)>, ServerConfigError> {
        values.iter().map(|(name, value)| Ok((name.clone(), self.expand(value)?))).collect()
    }

    /// Expands variables in the values of environment variables. The values are secret, unless they are evidently not:
    /// replacing `true` in results would hide nothing.
    pub(super) fn expand_secrets(
        &mut self,
        values: &BTreeMap<String, String>,
    ) -> Result<Vec<(String, String)>, ServerConfigError> {
        let expanded = self.expand_values(values)?;
        for (name, value) in &expanded {
            let is_path = value.starts_with(['/', '.', '~']);
            if !is_path && (value.len() >= MIN_SECRET_LENGTH || is_secret_name(name)) {
                self.add_secret(value);
            }
        }
        Ok(expanded)
    }

    /// Adds a text that is secret as a whole.
    pub(super) fn add_secret(&mut self, text: &str) {
        self.secrets.push(text.to_owned());
    }

    pub(super) fn into_redactor(self) -> Arc<Redactor> {
        Arc::new(Redactor::new(&self.secrets))
    }
}
