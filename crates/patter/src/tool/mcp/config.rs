//! What people write about MCP servers: in `patter.toml`, and in the JSON files of other programs.

use super::settings::{Reach, Settings, Texts};
use crate::tool::DEFAULT_TIMEOUT;
use indexmap::IndexMap;
use patter_core::name::FullName;
use reqwest::Url;
use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// How long a server may take to get ready where nothing else is said. The first start may download it.
const DEFAULT_START_TIMEOUT: Duration = Duration::from_secs(60);
/// The times that make sense.
const TIMES: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_hours(24);

/// The section `[mcp.NAME]` of `patter.toml`: how an MCP server is reached.
///
/// Texts may hold `${VAR}`, or `${VAR:-text}` with what stands in where the variable is not set. The values of `env`
/// and `headers` are never shown.
///
/// ```
/// use patter::tool::mcp::ServerConfig;
/// use std::path::Path;
///
/// let config: ServerConfig = toml::from_str("command = 'npx'\nargs = ['some-server']\ntimeout = '5s'").unwrap();
/// let settings = config.settings("files", Path::new("patter.toml"), &|_| None).unwrap();
/// assert_eq!(settings.name(), "files");
///
/// let neither = ServerConfig::default().settings("files", Path::new("patter.toml"), &|_| None).unwrap_err();
/// assert_eq!(neither.to_string(), "`patter.toml`: the MCP server `files` has neither `command` nor `url`");
/// ```
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServerConfig {
    /// The program to start.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables of its environment.
    pub env: BTreeMap<String, String>,
    /// The folder to start it in, seen from the folder of the file.
    pub cwd: Option<PathBuf>,
    /// The address of a server that runs already.
    pub url: Option<String>,
    /// Headers of each request to it.
    pub headers: BTreeMap<String, String>,
    /// How long a call may take: seconds, or a text such as `30s`, `500ms` or `2m`.
    #[serde(deserialize_with = "duration")]
    pub timeout: Option<Duration>,
    /// How long it may take until the server is ready.
    #[serde(deserialize_with = "duration")]
    pub start_timeout: Option<Duration>,
    /// Whether to leave it alone.
    pub disabled: bool,
}

/// What is wrong with the configuration of MCP servers.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read `{}`: {error}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The file is not of the form.
    #[error("`{}` lists no MCP servers: {message}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// What is said of a server is wrong.
    #[error("`{}`: the MCP server `{server}` {mistake}", file.display())]
    Server {
        /// The file.
        file: PathBuf,
        /// The server.
        server: String,
        /// What is wrong.
        mistake: Mistake,
    },
}

/// What is wrong with what is said of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Mistake {
    /// The name is not one of a toolbox.
    #[error("has a name that no toolbox can have: {0}")]
    Name(String),
    /// It says nowhere how the server is reached.
    #[error("has neither `command` nor `url`")]
    Neither,
    /// It says so twice.
    #[error("has both `command` and `url`")]
    Both,
    /// A setting goes with another way to reach a server.
    #[error("has `{0}`, which does not go with `{1}`")]
    Misplaced(&'static str, &'static str),
    /// A variable is not set.
    #[error("needs the variable `{0}`, which is not set")]
    Variable(String),
    /// A `${` has no end.
    #[error("has a `${{` without `}}` in `{0}`")]
    Unclosed(String),
    /// The address is none.
    #[error("has a `url` that is no address of an HTTP server")]
    Url,
    /// A header cannot be sent.
    #[error("has a header `{0}` that cannot be sent")]
    Header(String),
    /// The time is too short or too long.
    #[error("has a `{0}` that is not between a millisecond and a day")]
    Time(&'static str),
}

impl ConfigError {
    /// Returns what to do about it.
    pub fn hint(&self) -> Option<String> {
        let ConfigError::Server { mistake, .. } = self else { return None };
        match mistake {
            Mistake::Name(_) => Some("use letters, digits, `-` and `_`, but no `__`".to_owned()),
            Mistake::Neither => {
                Some("write `command` for a program to start, or `url` for a server that runs".to_owned())
            }
            Mistake::Both => Some("a server is either started or reached by its address: remove one".to_owned()),
            Mistake::Variable(name) => Some(format!("set it, or write `${{{name}:-text}}` to say what stands in")),
            _ => None,
        }
    }
}

/// What was passed over in a JSON file of another program.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigWarning {
    /// A key means nothing here.
    #[error("the MCP server `{server}` has a key `{key}` that means nothing here")]
    UnknownKey {
        /// The server.
        server: String,
        /// The key.
        key: String,
    },
    /// The transport is not supported.
    #[error("the MCP server `{server}` is left out: it uses `{transport}`, and only `stdio` and `http` are supported")]
    Transport {
        /// The server.
        server: String,
        /// The transport.
        transport: String,
    },
}

impl ServerConfig {
    /// Checks it, and puts in the variables.
    pub fn settings(
        &self,
        name: &str,
        file: &Path,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Settings, ConfigError> {
        self.checked(name, file, variable).map_err(|mistake| ConfigError::Server {
            file: file.to_owned(),
            server: name.to_owned(),
            mistake,
        })
    }

    fn checked(&self, name: &str, file: &Path, variable: &dyn Fn(&str) -> Option<String>) -> Result<Settings, Mistake> {
        // A name and the shortest tool behind it must be names for a provider.
        let named = FullName::parse(name).and_then(|_| FullName::within(name, "t"));
        named.map_err(|error| Mistake::Name(error.to_string()))?;
        if name.contains('/') {
            return Err(Mistake::Name("the name has `/`".to_owned()));
        }
        let mut texts = Texts::new(variable);
        let reach = match (&self.command, &self.url) {
            (None, None) => return Err(Mistake::Neither),
            (Some(_), Some(_)) => return Err(Mistake::Both),
            (Some(_), None) if !self.headers.is_empty() => return Err(Mistake::Misplaced("headers", "command")),
            (Some(command), None) => Reach::Process {
                command: texts.put_in(command)?,
                arguments: self.args.iter().map(|text| texts.put_in(text)).collect::<Result<_, _>>()?,
                environment: texts.put_in_all(&self.env)?,
                folder: self.cwd.as_ref().map(|cwd| file.parent().unwrap_or(Path::new("")).join(cwd)),
            },
            (None, Some(_)) if !self.args.is_empty() => return Err(Mistake::Misplaced("args", "url")),
            (None, Some(_)) if !self.env.is_empty() => return Err(Mistake::Misplaced("env", "url")),
            (None, Some(_)) if self.cwd.is_some() => return Err(Mistake::Misplaced("cwd", "url")),
            (None, Some(url)) => {
                let url = Url::parse(&texts.put_in(url)?).map_err(|_| Mistake::Url)?;
                if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
                    return Err(Mistake::Url);
                }
                let mut headers = Vec::new();
                for (name, value) in texts.put_in_all(&self.headers)? {
                    texts.keep_secret(&value);
                    let header = (name.parse().ok()).zip(value.parse().ok());
                    headers.push(header.ok_or(Mistake::Header(name))?);
                }
                Reach::Http { url, headers }
            }
        };
        let timeout = self.timeout.unwrap_or(DEFAULT_TIMEOUT);
        let start_timeout = self.start_timeout.unwrap_or(DEFAULT_START_TIMEOUT);
        for (value, name) in [(timeout, "timeout"), (start_timeout, "start-timeout")] {
            if !TIMES.contains(&value) {
                return Err(Mistake::Time(name));
            }
        }
        Ok(Settings { name: name.into(), reach, timeout, start_timeout, secrets: texts.secrets() })
    }
}

/// Shows the names of variables and headers, never their values.
impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConfig")
            .field("command", &self.command)
            .field("args", &self.args)
            .field("env", &self.env.keys())
            .field("cwd", &self.cwd)
            .field("url", &self.url)
            .field("headers", &self.headers.keys())
            .field("timeout", &self.timeout)
            .field("start_timeout", &self.start_timeout)
            .field("disabled", &self.disabled)
            .finish()
    }
}

/// Reads a file with `mcpServers`, as other programs have it.
pub fn read_servers(file: &Path) -> Result<(IndexMap<String, ServerConfig>, Vec<ConfigWarning>), ConfigError> {
    let text =
        std::fs::read_to_string(file).map_err(|error| ConfigError::Unreadable { file: file.to_owned(), error })?;
    servers_of(&text, file)
}

/// Reads the text of a file with `mcpServers`. What means nothing here is told, not refused.
///
/// ```
/// use patter::tool::mcp::servers_of;
/// let text = r#"{"mcpServers": {"files": {"command": "npx", "autoApprove": []}}}"#;
/// let (servers, warnings) = servers_of(text, "mcp.json".as_ref()).unwrap();
/// assert_eq!(servers["files"].command.as_deref(), Some("npx"));
/// assert_eq!(warnings[0].to_string(), "the MCP server `files` has a key `autoApprove` that means nothing here");
/// ```
pub fn servers_of(
    text: &str,
    file: &Path,
) -> Result<(IndexMap<String, ServerConfig>, Vec<ConfigWarning>), ConfigError> {
    let malformed = |message: String| ConfigError::Malformed { file: file.to_owned(), message };
    let json: Json = serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?;
    let listed = json.get("mcpServers").ok_or_else(|| malformed("there is no `mcpServers`".to_owned()))?;
    let listed = listed.as_object().ok_or_else(|| malformed("`mcpServers` is not an object".to_owned()))?;
    let (mut servers, mut warnings) = (IndexMap::new(), Vec::new());
    for (server, entry) in listed {
        let entry = entry.as_object().ok_or_else(|| malformed(format!("the server `{server}` is not an object")))?;
        let mut known = Map::new();
        let mut is_supported = true;
        for (key, value) in entry {
            match (key.as_str(), value.as_str()) {
                ("type" | "transport", Some("stdio" | "http" | "streamable-http" | "streamableHttp")) => {}
                ("type" | "transport", Some(transport)) => {
                    is_supported = false;
                    warnings.push(ConfigWarning::Transport { server: server.clone(), transport: transport.to_owned() });
                }
                ("command" | "args" | "env" | "cwd" | "url" | "headers" | "disabled", _) => {
                    known.insert(key.clone(), value.clone());
                }
                // Some programs mean seconds by `timeout`, others milliseconds.
                _ => warnings.push(ConfigWarning::UnknownKey { server: server.clone(), key: key.clone() }),
            }
        }
        if is_supported {
            let config = serde_json::from_value(Json::Object(known));
            let config = config.map_err(|error| malformed(format!("the server `{server}` is wrong: {error}")))?;
            servers.insert(server.clone(), config);
        }
    }
    Ok((servers, warnings))
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Seconds(f64),
        Text(String),
    }
    const FORM: &str = "seconds, or a text such as `30s`, `500ms` or `2m`";
    let wrong = |shown: Unexpected<'_>| D::Error::invalid_value(shown, &FORM);
    match Written::deserialize(deserializer).map_err(|_| D::Error::custom(format!("expected {FORM}")))? {
        Written::Seconds(seconds) => {
            Duration::try_from_secs_f64(seconds).map(Some).map_err(|_| wrong(Unexpected::Float(seconds)))
        }
        Written::Text(text) => {
            let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            let scale = match text.strip_prefix(number) {
                Some("ms") => 0.001,
                Some("s" | "") => 1.0,
                Some("m") => 60.0,
                _ => return Err(wrong(Unexpected::Str(&text))),
            };
            let seconds = number.trim().parse::<f64>().ok().map(|number| number * scale);
            let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            duration.map(Some).ok_or_else(|| wrong(Unexpected::Str(&text)))
        }
    }
}
