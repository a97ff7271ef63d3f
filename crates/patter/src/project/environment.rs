//! The variables of the environment that tools may use, and the file `.env`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Where `${NAME}` in declarations is looked up: the environment of the process, then the file `.env` of the project.
///
/// ```
/// use patter::project::Environment;
/// let environment = Environment::of([("TOKEN", "t0p")]);
/// assert_eq!(environment.get("TOKEN").as_deref(), Some("t0p"));
/// assert_eq!(environment.get("OTHER"), None);
/// assert_eq!(format!("{environment:?}"), "Environment");
/// ```
#[derive(Clone, Default)]
pub struct Environment {
    process: bool,
    values: Arc<HashMap<String, String>>,
}

impl Environment {
    /// Reads the environment of the process and the `.env` of a project.
    pub fn read(root: Option<&Path>) -> std::io::Result<Self> {
        let path = root.unwrap_or(Path::new(".")).join(".env");
        let values = match std::fs::read_to_string(&path) {
            Ok(text) => text.lines().filter_map(assignment).collect(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => HashMap::new(),
            Err(error) => return Err(error),
        };
        Ok(Self { process: true, values: Arc::new(values) })
    }

    /// Returns an environment of these variables alone.
    pub fn of<K: Into<String>, V: Into<String>>(values: impl IntoIterator<Item = (K, V)>) -> Self {
        let values = values.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self { process: false, values: Arc::new(values.collect()) }
    }

    /// Returns the value of a variable; an empty one is none.
    pub fn get(&self, name: &str) -> Option<String> {
        let process = self.process.then(|| std::env::var(name).ok()).flatten();
        process.or_else(|| self.values.get(name).cloned()).filter(|value| !value.is_empty())
    }
}

/// Values are secrets, so none is shown.
impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Environment")
    }
}

/// Reads a line `NAME=value`, with quotes around the value or without; `None` for blank lines and comments.
fn assignment(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty() || name.starts_with('#') {
        return None;
    }
    let quoted = ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    let value = quoted.unwrap_or_else(|| value.split(" #").next().unwrap_or_default().trim_end());
    Some((name.to_owned(), value.to_owned()))
}
