//! The configuration of MCP servers, in `patter.toml` and in the JSON files of other programs.

use super::auth::{LoginStore, OauthConfig};
use super::config_error::{ConfigError, ConfigWarning, ServerConfigError};
use super::settings::{
    HttpProtocol, HttpTransport, ServerSandbox, ServerSettings, ToolFilter, Transport, VariableExpander,
};
use crate::file::read_settings;
use crate::tool::DEFAULT_TIMEOUT;
use crate::tool::sandbox::{Sandbox, SandboxLevel, SandboxPolicy};
use indexmap::IndexMap;
use patter_core::name::FullName;
use patter_core::text::parse_duration;
use reqwest::Url;
use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The default time limit for the start of a server. The first start may download it.
const DEFAULT_START_TIMEOUT: Duration = Duration::from_secs(60);
/// The headers that the transport sets.
const RESERVED_HEADERS: [&str; 5] =
    ["accept", "content-type", "last-event-id", "mcp-protocol-version", "mcp-session-id"];
/// The allowed time limits.
const TIME_LIMITS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_hours(24);

/// The section `[mcp.NAME]` of `patter.toml`: how to start an MCP server or connect to it.
///
/// Texts may contain `${VAR}`, or `${VAR:-default}` for variables that may be unset. The values of `env` and `headers`
/// are never shown.
///
/// ```
/// use patter::tool::mcp::ServerConfig;
/// use std::path::Path;
///
/// let config: ServerConfig = toml::from_str("command = 'npx'\nargs = ['some-server']\ntimeout = '5s'").unwrap();
/// let settings = config.settings("files", Path::new("patter.toml"), &|_| None).unwrap();
/// assert_eq!(settings.name(), "files");
///
/// let error = ServerConfig::default().settings("files", Path::new("patter.toml"), &|_| None).unwrap_err();
/// assert_eq!(error.to_string(), "`patter.toml`: the MCP server `files` has neither `command` nor `url`");
/// ```
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServerConfig {
    /// The program to start.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment variables.
    pub env: BTreeMap<String, String>,
    /// The folder to start it in, relative to the folder of the file.
    pub cwd: Option<PathBuf>,
    /// The files that it may change. By default, the project decides.
    pub sandbox: Option<SandboxLevel>,
    /// Whether it may use the network, within a sandbox.
    pub network: bool,
    /// Further folders that it may change, within a sandbox.
    pub writable: Vec<String>,
    /// Folders in the home folder that it may read, within a sandbox.
    pub readable: Vec<String>,
    /// The URL of a running server.
    pub url: Option<String>,
    /// The headers of each request to that URL.
    pub headers: BTreeMap<String, String>,
    /// How to log in at that URL.
    pub oauth: Option<OauthConfig>,
    /// The time limit of a call: seconds, or a text such as `30s`, `500ms`, `2m` or `1h`.
    #[serde(deserialize_with = "duration")]
    pub timeout: Option<Duration>,
    /// The time limit for the start of the server.
    #[serde(deserialize_with = "duration")]
    pub start_timeout: Option<Duration>,
    /// The protocol of a running server. By default, the older one is tried if the server rejects the newer.
    pub transport: Option<HttpProtocol>,
    /// The tools to use, as patterns such as `read_*`. By default, all of them.
    pub only: Option<Vec<String>>,
    /// The tools not to use, as patterns.
    pub except: Vec<String>,
    /// Whether the server may ask the person at the terminal for input during a call.
    pub elicitation: bool,
    /// Whether the server may ask the model of the agent during a call, if the person agrees.
    pub sampling: bool,
    /// The folders that the server may work on, relative to the folder of the file. By default, it is offered none.
    pub roots: Vec<PathBuf>,
    /// Whether there are tools to list and read the resources of the server. By default, if it has resources.
    pub resources: Option<bool>,
    /// Whether there are tools to list and get the prompts of the server. By default, if it has prompts.
    pub prompts: Option<bool>,
    /// Whether to ignore the server.
    pub disabled: bool,
}

impl ServerConfig {
    /// Validates the configuration and expands variables.
    pub fn settings(
        &self,
        name: &str,
        file: &Path,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<ServerSettings, ConfigError> {
        self.validate(name, file, variable).map_err(|error| ConfigError::Server {
            file: file.to_owned(),
            server: name.to_owned(),
            error,
        })
    }

    /// Returns the sandbox, if one is declared.
    pub(crate) fn declared_sandbox(&self) -> Result<Option<Sandbox>, ServerConfigError> {
        let has_sandbox = self.sandbox.is_some_and(|level| level != SandboxLevel::None);
        let settings = [
            ("network", self.network),
            ("writable", !self.writable.is_empty()),
            ("readable", !self.readable.is_empty()),
        ];
        if let Some((name, _)) = settings.into_iter().find(|(_, is_set)| *is_set && !has_sandbox) {
            return Err(ServerConfigError::NoSandbox(name));
        }
        Ok(self.sandbox.map(|level| Sandbox {
            level,
            network: self.network,
            writable: self.writable.clone(),
            readable: self.readable.clone(),
        }))
    }

    /// Returns the settings that decide what the server does, in a stable form, for its identity. It contains only what
    /// differs from the default, so that servers stay the same when there are new settings.
    pub(crate) fn decisive_settings(&self) -> Map<String, Json> {
        // All fields are named, so that a new one is not forgotten here.
        let Self {
            command,
            args,
            env,
            cwd,
            sandbox,
            network,
            writable,
            readable,
            url,
            headers,
            oauth,
            timeout,
            start_timeout,
            transport,
            only,
            except,
            elicitation,
            sampling,
            roots,
            resources,
            prompts,
            disabled,
        } = self;
        let choice = |choice: &Option<bool>| json!(choice.map(|choice| choice.to_string()));
        let milliseconds = |time: &Option<Duration>| json!(time.map(|time| time.as_millis().to_string()));
        let all = [
            ("args", json!(args)),
            ("command", json!(command)),
            ("cwd", json!(cwd.as_ref().map(|cwd| cwd.display().to_string()))),
            ("disabled", json!(disabled)),
            ("elicitation", json!(elicitation)),
            ("env", json!(env)),
            ("except", json!(except)),
            ("headers", json!(headers)),
            ("network", json!(network)),
            ("oauth", Json::Object(oauth.as_ref().map(OauthConfig::decisive_settings).unwrap_or_default())),
            // An empty list means no tools.
            ("only", json!(only.as_ref().map(|only| json!({ "tools": only })))),
            ("prompts", choice(prompts)),
            ("readable", json!(readable)),
            ("resources", choice(resources)),
            ("roots", json!(roots.iter().map(|root| root.display().to_string()).collect::<Vec<_>>())),
            ("sampling", json!(sampling)),
            ("sandbox", json!(sandbox.map(SandboxLevel::name))),
            ("start-timeout", milliseconds(start_timeout)),
            ("timeout", milliseconds(timeout)),
            ("transport", json!(transport.map(HttpProtocol::name))),
            ("url", json!(url)),
            ("writable", json!(writable)),
        ];
        without_defaults(all)
    }

    fn validate(
        &self,
        name: &str,
        file: &Path,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<ServerSettings, ServerConfigError> {
        // Providers must accept the name with the shortest possible tool name.
        let full_name = FullName::parse(name).and_then(|_| FullName::join(name, "t"));
        full_name.map_err(|error| ServerConfigError::Name(error.to_string()))?;
        if name.contains('/') {
            return Err(ServerConfigError::Name("the name contains `/`".to_owned()));
        }
        let mut expander = VariableExpander::new(variable);
        let transport = match (&self.command, &self.url) {
            (None, None) => return Err(ServerConfigError::NoTransport),
            (Some(_), Some(_)) => return Err(ServerConfigError::TwoTransports),
            (Some(_), None) if !self.headers.is_empty() => {
                return Err(ServerConfigError::Misplaced("headers", "command"));
            }
            (Some(_), None) if self.transport.is_some() => {
                return Err(ServerConfigError::Misplaced("transport", "command"));
            }
            (Some(_), None) if self.oauth.is_some() => {
                return Err(ServerConfigError::Misplaced("oauth", "command"));
            }
            (Some(command), None) => Transport::Process {
                command: expander.expand(command)?,
                arguments: self.args.iter().map(|text| expander.expand(text)).collect::<Result<_, _>>()?,
                environment: expander.expand_secrets(&self.env)?,
                folder: self.cwd.as_ref().map(|cwd| file.parent().unwrap_or(Path::new("")).join(cwd)),
                sandbox: ServerSandbox {
                    sandbox: self.declared_sandbox()?.unwrap_or_default(),
                    root: file
                        .parent()
                        .filter(|root| !root.as_os_str().is_empty())
                        .unwrap_or(Path::new("."))
                        .to_owned(),
                    policy: SandboxPolicy::default(),
                },
            },
            (None, Some(_)) if !self.args.is_empty() => return Err(ServerConfigError::Misplaced("args", "url")),
            (None, Some(_)) if !self.env.is_empty() => return Err(ServerConfigError::Misplaced("env", "url")),
            (None, Some(_)) if self.sandbox.is_some() => return Err(ServerConfigError::Misplaced("sandbox", "url")),
            (None, Some(_)) if self.cwd.is_some() => return Err(ServerConfigError::Misplaced("cwd", "url")),
            (None, Some(url)) => {
                let url = Url::parse(&expander.expand(url)?).map_err(|_| ServerConfigError::Url)?;
                if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
                    return Err(ServerConfigError::Url);
                }
                let mut headers = Vec::new();
                for (name, value) in expander.expand_values(&self.headers)? {
                    expander.add_secret(&value);
                    let is_reserved = RESERVED_HEADERS.iter().any(|reserved| name.eq_ignore_ascii_case(reserved));
                    let header = (name.parse().ok()).zip(value.parse().ok()).filter(|_| !is_reserved);
                    headers.push(header.ok_or(ServerConfigError::Header(name))?);
                }
                Transport::Http(HttpTransport { url, headers, protocol: self.transport })
            }
        };
        let timeout = self.timeout.unwrap_or(DEFAULT_TIMEOUT);
        let start_timeout = self.start_timeout.unwrap_or(DEFAULT_START_TIMEOUT);
        for (value, name) in [(timeout, "timeout"), (start_timeout, "start-timeout")] {
            if !TIME_LIMITS.contains(&value) {
                return Err(ServerConfigError::Time(name));
            }
        }
        let filter = ToolFilter { only: self.only.clone(), except: self.except.clone() };
        let oauth = self.oauth.clone().unwrap_or_default().settings(&mut expander)?;
        let folder = file.parent().unwrap_or(Path::new(""));
        let root = |path: &PathBuf| {
            let full = folder.join(path).canonicalize().ok().filter(|full| full.is_dir());
            let url = full.and_then(|full| Url::from_directory_path(full).ok());
            url.ok_or_else(|| ServerConfigError::Root(path.display().to_string()))
        };
        Ok(ServerSettings {
            name: name.into(),
            transport,
            timeout,
            start_timeout,
            filter,
            roots: self.roots.iter().map(root).collect::<Result<_, _>>()?,
            has_resources: self.resources.unwrap_or(true),
            has_prompts: self.prompts.unwrap_or(true),
            redactor: expander.into_redactor(),
            elicitation: self.elicitation,
            sampling: self.sampling,
            oauth,
            logins: LoginStore::none(),
        })
    }
}

/// Shows the names of variables and headers, but not their values.
impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConfig")
            .field("command", &self.command)
            .field("args", &self.args)
            .field("env", &self.env.keys())
            .field("cwd", &self.cwd)
            .field("sandbox", &self.sandbox)
            .field("network", &self.network)
            .field("writable", &self.writable)
            .field("readable", &self.readable)
            .field("url", &self.url)
            .field("headers", &self.headers.keys())
            .field("oauth", &self.oauth)
            .field("timeout", &self.timeout)
            .field("start_timeout", &self.start_timeout)
            .field("transport", &self.transport)
            .field("only", &self.only)
            .field("except", &self.except)
            .field("elicitation", &self.elicitation)
            .field("sampling", &self.sampling)
            .field("roots", &self.roots)
            .field("resources", &self.resources)
            .field("prompts", &self.prompts)
            .field("disabled", &self.disabled)
            .finish()
    }
}

/// Returns settings without those that are empty, false or missing, which are the defaults.
pub(super) fn without_defaults<const N: usize>(settings: [(&str, Json); N]) -> Map<String, Json> {
    let is_set = |value: &Json| match value {
        Json::Null | Json::Bool(false) => false,
        Json::Array(items) => !items.is_empty(),
        Json::Object(fields) => !fields.is_empty(),
        _ => true,
    };
    settings.into_iter().filter(|(_, value)| is_set(value)).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Reads a JSON file with `mcpServers`, as other programs write it.
pub fn read_servers(file: &Path) -> Result<(IndexMap<String, ServerConfig>, Vec<ConfigWarning>), ConfigError> {
    let text = read_settings(file).map_err(|error| ConfigError::Unreadable { file: file.to_owned(), error })?;
    parse_servers(&text, file)
}

/// Parses the text of a JSON file with `mcpServers`. Unsupported entries are returned as warnings.
///
/// ```
/// use patter::tool::mcp::parse_servers;
/// let text = r#"{"mcpServers": {"files": {"command": "npx", "autoApprove": []}}}"#;
/// let (servers, warnings) = parse_servers(text, "mcp.json".as_ref()).unwrap();
/// assert_eq!(servers["files"].command.as_deref(), Some("npx"));
/// assert_eq!(warnings[0].to_string(), "the MCP server `files` has an unsupported key `autoApprove`");
/// ```
pub fn parse_servers(
    text: &str,
    file: &Path,
) -> Result<(IndexMap<String, ServerConfig>, Vec<ConfigWarning>), ConfigError> {
    let malformed = |message: String| ConfigError::Malformed { file: file.to_owned(), message };
    let json: Json = serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?;
    let entries = json.get("mcpServers").ok_or_else(|| malformed("`mcpServers` is missing".to_owned()))?;
    let entries = entries.as_object().ok_or_else(|| malformed("`mcpServers` is not an object".to_owned()))?;
    let mut servers = IndexMap::new();
    let mut warnings = Vec::new();
    for (server, entry) in entries {
        let entry = entry.as_object().ok_or_else(|| malformed(format!("the server `{server}` is not an object")))?;
        let mut known = Map::new();
        let mut is_supported = true;
        for (key, value) in entry {
            match (key.as_str(), value.as_str()) {
                ("type" | "transport", Some("stdio")) => {}
                ("type" | "transport", Some("http" | "streamable-http" | "streamableHttp")) => {
                    known.insert("transport".to_owned(), "http".into());
                }
                ("type" | "transport", Some("sse")) => {
                    known.insert("transport".to_owned(), "sse".into());
                }
                ("type" | "transport", Some(transport)) => {
                    is_supported = false;
                    warnings.push(ConfigWarning::Transport { server: server.clone(), transport: transport.to_owned() });
                }
                ("command" | "args" | "env" | "cwd" | "url" | "headers" | "disabled", _) => {
                    known.insert(key.clone(), value.clone());
                }
                ("includeTools", _) => {
                    known.insert("only".to_owned(), value.clone());
                }
                ("excludeTools", _) => {
                    known.insert("except".to_owned(), value.clone());
                }
                // `timeout` is unsupported too: it is in seconds in some programs, in milliseconds in others.
                _ => warnings.push(ConfigWarning::UnknownKey { server: server.clone(), key: key.clone() }),
            }
        }
        if is_supported {
            let config = serde_json::from_value(Json::Object(known));
            let config = config.map_err(|error| malformed(format!("invalid server `{server}`: {error}")))?;
            servers.insert(server.clone(), config);
        }
    }
    Ok((servers, warnings))
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum DurationForm {
        Seconds(f64),
        Text(String),
    }
    const EXPECTED: &str = "a number of seconds or a duration such as `30s`, `500ms`, `2m` or `1h`";
    let invalid = |value: Unexpected<'_>| D::Error::invalid_value(value, &EXPECTED);
    match DurationForm::deserialize(deserializer).map_err(|_| D::Error::custom(format!("expected {EXPECTED}")))? {
        DurationForm::Seconds(seconds) => {
            Duration::try_from_secs_f64(seconds).map(Some).map_err(|_| invalid(Unexpected::Float(seconds)))
        }
        DurationForm::Text(text) => parse_duration(&text).map(Some).ok_or_else(|| invalid(Unexpected::Str(&text))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Json {
        let config: ServerConfig = toml::from_str(text).unwrap();
        Json::Object(config.decisive_settings())
    }

    #[test]
    fn defaults_do_not_decide_what_a_server_does() {
        assert_eq!(settings(""), json!({}));
        let explicit = "command = 'a'\nargs = []\nenv = {}\nnetwork = false\nwritable = []\nreadable = []\nheaders = {}\n\
                        oauth = {}\nexcept = []\nelicitation = false\nsampling = false\ndisabled = false\n";
        assert_eq!(settings(explicit), json!({ "command": "a" }));
        // Locks contain a hash of this text.
        assert_eq!(
            settings("url = 'https://a.example'\ntimeout = 5\nonly = []\nsandbox = 'none'").to_string(),
            r#"{"only":{"tools":[]},"sandbox":"none","timeout":"5000","url":"https://a.example"}"#
        );
    }

    #[test]
    fn every_setting_decides_what_a_server_does() {
        let all = [
            "command = 'a'",
            "args = ['a']",
            "env = { A = 'a' }",
            "env = { A = 'b' }",
            "cwd = 'a'",
            "sandbox = 'none'",
            "sandbox = 'read-only'",
            "network = true",
            "writable = ['a']",
            "readable = ['a']",
            "url = 'a'",
            "headers = { A = 'a' }",
            "oauth = { client-id = 'a' }",
            "oauth = { issuer = 'a' }",
            "oauth = { client-metadata-url = 'a' }",
            "oauth = { redirect-uri = 'a' }",
            "oauth = { scopes = ['a'] }",
            "timeout = 1",
            "start-timeout = 1",
            "transport = 'http'",
            "transport = 'sse'",
            "only = []",
            "only = ['a']",
            "except = ['a']",
            "elicitation = true",
            "sampling = true",
            "roots = ['a']",
            "resources = true",
            "resources = false",
            "prompts = true",
            "prompts = false",
            "disabled = true",
        ];
        let found: std::collections::BTreeSet<_> = all.iter().map(|text| settings(text).to_string()).collect();
        assert_eq!(found.len(), all.len(), "{found:#?}");
        assert!(!found.contains("{}"), "{found:#?}");
        // A secret may change at any time.
        assert_eq!(settings("oauth = { client-secret = 'a' }"), json!({}));
    }
}
