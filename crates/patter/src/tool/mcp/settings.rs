//! What is known of an MCP server once its configuration is checked.

use super::config::Mistake;
use crate::tool::secrets::Secrets;
use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
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
    /// What no message may show: what variables stand for, and headers.
    pub(super) secrets: Arc<Secrets>,
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

    /// Puts variables into values that have names.
    pub(super) fn put_in_all(&mut self, values: &BTreeMap<String, String>) -> Result<Vec<(String, String)>, Mistake> {
        values.iter().map(|(name, value)| Ok((name.clone(), self.put_in(value)?))).collect()
    }

    /// Remembers that a text must stay secret as a whole.
    pub(super) fn keep_secret(&mut self, text: &str) {
        self.secrets.push(text.to_owned());
    }

    pub(super) fn secrets(self) -> Arc<Secrets> {
        Arc::new(Secrets::new(&self.secrets))
    }
}
