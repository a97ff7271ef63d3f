//! What is known of an MCP server once its configuration is checked.

use super::config::Mistake;
use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How an MCP server is reached: checked, and with all variables put in.
///
/// ```
/// use patter::tool::mcp::ServerConfig;
/// let config: ServerConfig = toml::from_str("url = 'https://example.com/mcp'").unwrap();
/// let settings = config.settings("web", "patter.toml".as_ref(), &|_| None).unwrap();
/// assert_eq!(format!("{settings:?}"), "Settings(web)");
/// ```
#[derive(Clone)]
pub struct Settings {
    pub(super) name: Arc<str>,
    pub(super) reach: Reach,
    pub(super) timeout: Duration,
    pub(super) start_timeout: Duration,
    pub(super) secrets: Secrets,
}

/// A way to reach a server.
#[derive(Clone)]
pub(super) enum Reach {
    /// It is started here, and spoken to over its input and output.
    Process { command: String, arguments: Vec<String>, environment: Vec<(String, String)>, folder: Option<PathBuf> },
    /// It runs already.
    Http { url: Url, headers: Vec<(HeaderName, HeaderValue)> },
}

impl Settings {
    /// Returns the name of the server.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Shows the name alone: the rest may hold secrets.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Settings({})", self.name)
    }
}

/// What no message may show: what variables stood for, and the values of the environment and of headers.
#[derive(Clone, Default)]
pub(super) struct Secrets(Arc<[String]>);

/// A shorter text is no secret, and would be found everywhere.
const SHORTEST_SECRET: usize = 6;

impl Secrets {
    /// Returns a text without the secrets.
    pub(super) fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for secret in self.0.iter().filter(|secret| text.contains(secret.as_str())).collect::<Vec<_>>() {
            text = Cow::Owned(text.replace(secret.as_str(), "***"));
        }
        text
    }
}

impl From<Vec<String>> for Secrets {
    fn from(mut secrets: Vec<String>) -> Self {
        secrets.retain(|secret| secret.len() >= SHORTEST_SECRET);
        // What contains another secret goes first, or its rest would stay.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self(secrets.into())
    }
}

/// Puts variables into texts, and remembers what must stay secret.
pub(super) struct Texts<'v> {
    variable: &'v dyn Fn(&str) -> Option<String>,
    secrets: Vec<String>,
}

impl<'v> Texts<'v> {
    pub(super) fn new(variable: &'v dyn Fn(&str) -> Option<String>) -> Self {
        Self { variable, secrets: Vec::new() }
    }

    /// Puts variables into a text: `${VAR}`, or `${VAR:-text}`.
    pub(super) fn put_in(&mut self, text: &str) -> Result<String, Mistake> {
        let mut done = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, next) = after.split_once('}').ok_or_else(|| Mistake::Unclosed(text.to_owned()))?;
            let (name, instead) = name.split_once(":-").map_or((name, None), |(name, text)| (name, Some(text)));
            done.push_str(before);
            match ((self.variable)(name).filter(|value| !value.is_empty()), instead) {
                (Some(value), _) => {
                    done.push_str(&value);
                    self.secrets.push(value);
                }
                (None, Some(text)) => done.push_str(text),
                (None, None) => return Err(Mistake::Variable(name.to_owned())),
            }
            rest = next;
        }
        done.push_str(rest);
        Ok(done)
    }

    /// Puts variables into values that are secret as a whole.
    pub(super) fn put_in_all(&mut self, values: &BTreeMap<String, String>) -> Result<Vec<(String, String)>, Mistake> {
        let mut done = Vec::new();
        for (name, value) in values {
            let value = self.put_in(value)?;
            self.secrets.push(value.clone());
            done.push((name.clone(), value));
        }
        Ok(done)
    }

    pub(super) fn secrets(self) -> Vec<String> {
        self.secrets
    }
}
