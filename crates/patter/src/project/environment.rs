//! Environment variables for tools and models, and the file `.env`.

use super::load::strip_dot;
use crate::file::read_settings;
use crate::os_error;
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

/// The variables that `${NAME}` in declarations refers to: the process environment, then the file `.env` of the project.
///
/// ```
/// use patter::project::Environment;
/// let environment = Environment::from_variables([("TOKEN", "t0p")]);
/// assert_eq!(environment.get("TOKEN").as_deref(), Some("t0p"));
/// assert_eq!(environment.get("OTHER"), None);
/// assert_eq!(format!("{environment:?}"), "Environment");
/// ```
#[derive(Clone, Default)]
pub struct Environment {
    /// Whether the process environment is consulted first.
    includes_process: bool,
    values: Arc<HashMap<String, String>>,
    /// The numbers of malformed lines in `.env`.
    bad_lines: Vec<usize>,
}

/// The origin of a variable's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableSource {
    /// The process environment.
    Process,
    /// The file `.env`, or values passed by the caller.
    File,
}

impl Environment {
    /// Reads the `.env` of a project, to be consulted after the process environment. An error names that file.
    pub fn read(root: Option<&Path>) -> io::Result<Self> {
        let path = strip_dot(root.unwrap_or(Path::new(".")).join(".env"));
        let failed = |reason: &str| io::Error::other(format!("cannot read `{}`: {reason}", path.display()));
        let text = match read_settings(&path) {
            Ok(text) => text,
            Err(error) => match error.kind() {
                ErrorKind::NotFound => String::new(),
                _ => return Err(failed(&os_error::describe(&error))),
            },
        };
        // Some editors write a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut values = HashMap::new();
        let mut bad_lines = Vec::new();
        for (line, text) in (1..).zip(text.lines().map(str::trim)) {
            match parse_assignment(text) {
                Some((name, value)) => {
                    values.insert(name, value);
                }
                None if text.is_empty() || text.starts_with('#') => {}
                None => bad_lines.push(line),
            }
        }
        Ok(Self { includes_process: true, values: Arc::new(values), bad_lines })
    }

    /// Creates an environment with the variables of the process, without `.env`.
    pub fn from_process() -> Self {
        Self { includes_process: true, ..Self::default() }
    }

    /// Returns the numbers of the lines in `.env` that are neither `NAME=value` nor comments. The other lines apply.
    pub fn bad_lines(&self) -> &[usize] {
        &self.bad_lines
    }

    /// Creates an environment with only the given variables.
    pub fn from_variables<K: Into<String>, V: Into<String>>(values: impl IntoIterator<Item = (K, V)>) -> Self {
        let values = values.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self { includes_process: false, values: Arc::new(values.collect()), bad_lines: Vec::new() }
    }

    /// Returns the value of a variable. An empty value counts as unset.
    pub fn get(&self, name: &str) -> Option<String> {
        self.look_up(name).map(|(value, _)| value)
    }

    /// Returns the origin of a variable's value, if it is set.
    pub fn source(&self, name: &str) -> Option<VariableSource> {
        self.look_up(name).map(|(_, source)| source)
    }

    fn look_up(&self, name: &str) -> Option<(String, VariableSource)> {
        let value = self.includes_process.then(|| std::env::var(name).ok()).flatten();
        let found = value.map(|value| (value, VariableSource::Process));
        let found = found.or_else(|| Some((self.values.get(name)?.clone(), VariableSource::File)));
        found.filter(|(value, _)| !value.is_empty())
    }
}

/// Shows no values, since they may be secret.
impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Environment")
    }
}

/// Parses a line `NAME=value`, where the value may be quoted.
fn parse_assignment(line: &str) -> Option<(String, String)> {
    let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
    let name = name.trim();
    let value = value.trim();
    let is_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
    if name.is_empty() || !name.chars().all(is_name) {
        return None;
    }
    let value = unquote(value).unwrap_or_else(|| value.split(" #").next().unwrap_or_default().trim_end());
    Some((name.to_owned(), value.to_owned()))
}

/// Returns the content of a quoted value, which ends before a comment or at the end of the line.
fn unquote(value: &str) -> Option<&str> {
    let quote = value.chars().next().filter(|first| matches!(first, '"' | '\''))?;
    let rest = value.strip_prefix(quote)?;
    let mut ends = rest.match_indices(quote).filter_map(|(at, _)| rest.split_at_checked(at));
    let is_end = |tail: &str| {
        let tail = tail.strip_prefix(quote).unwrap_or(tail).trim_start();
        tail.is_empty() || tail.starts_with('#')
    };
    ends.find(|(_, tail)| is_end(tail)).map(|(inside, _)| inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_lines_of_env() {
        let folder = tempfile::tempdir().unwrap();
        let text = "# comment\nPATTER_A=1\nexport PATTER_B = \"two words\" \nPATTER_C='x # y'\nPATTER_D=z # why\n\nnonsense\n= 1\nPATTER_E=\n";
        std::fs::write(folder.path().join(".env"), text).unwrap();
        let environment = Environment::read(Some(folder.path())).unwrap();
        let found = ["A", "B", "C", "D", "E"].map(|name| environment.get(&format!("PATTER_{name}")));
        let expected = [Some("1"), Some("two words"), Some("x # y"), Some("z"), None];
        assert_eq!(found, expected.map(|value| value.map(str::to_owned)));
        assert_eq!(environment.bad_lines(), [7, 8]);
        let quoted = "\u{feff}PATTER_A = \"a b\" # tail\nPATTER_B='it's'\nPATTER_C=\"#\"#x\nPATTER_D=\"open\nPATTER_E='' # none\n";
        std::fs::write(folder.path().join(".env"), quoted).unwrap();
        let environment = Environment::read(Some(folder.path())).unwrap();
        let found = ["A", "B", "C", "D", "E"].map(|name| environment.get(&format!("PATTER_{name}")));
        let expected = [Some("a b"), Some("it's"), Some("#"), Some("\"open"), None];
        assert_eq!(found, expected.map(|value| value.map(str::to_owned)));
        assert_eq!(environment.bad_lines(), [0; 0]);
        assert!(
            std::env::var("PATH").is_ok() && environment.get("PATH").is_some(),
            "the process environment takes precedence"
        );
    }
}
