//! The variables of the environment that tools may use, and the file `.env`.

use super::strip_dot;
use std::collections::HashMap;
use std::io::{self, ErrorKind};
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
    /// The lines of `.env` that could not be read.
    bad_lines: Vec<usize>,
}

/// Where the value of a variable comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The environment of the process.
    Process,
    /// The file `.env`, or whoever made the environment.
    File,
}

impl Environment {
    /// Reads the environment of the process and the `.env` of a project. An error names that file.
    pub fn read(root: Option<&Path>) -> io::Result<Self> {
        let path = strip_dot(root.unwrap_or(Path::new(".")).join(".env"));
        let named = |why: String| io::Error::other(format!("cannot read `{}`: {why}", path.display()));
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => match error.kind() {
                ErrorKind::NotFound => String::new(),
                ErrorKind::IsADirectory => return Err(named("it is a folder".to_owned())),
                ErrorKind::InvalidData => return Err(named("it is not UTF-8".to_owned())),
                _ => return Err(named(error.to_string())),
            },
        };
        // Some editors put a mark at the beginning.
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let (mut values, mut bad_lines) = (HashMap::new(), Vec::new());
        for (line, text) in (1..).zip(text.lines().map(str::trim)) {
            match assignment(text) {
                Some((name, value)) => {
                    values.insert(name, value);
                }
                None if text.is_empty() || text.starts_with('#') => {}
                None => bad_lines.push(line),
            }
        }
        Ok(Self { process: true, values: Arc::new(values), bad_lines })
    }

    /// Returns the environment of the process, without any `.env`.
    pub fn of_process() -> Self {
        Self { process: true, ..Self::default() }
    }

    /// Returns the lines of `.env` that are neither `NAME=value` nor comments. The others were read.
    pub fn bad_lines(&self) -> &[usize] {
        &self.bad_lines
    }

    /// Returns an environment of these variables alone.
    pub fn of<K: Into<String>, V: Into<String>>(values: impl IntoIterator<Item = (K, V)>) -> Self {
        let values = values.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self { process: false, values: Arc::new(values.collect()), bad_lines: Vec::new() }
    }

    /// Returns the value of a variable; an empty one is none.
    pub fn get(&self, name: &str) -> Option<String> {
        self.found(name).map(|(value, _)| value)
    }

    /// Returns where the value of a variable comes from, if it has one.
    pub fn source(&self, name: &str) -> Option<Source> {
        self.found(name).map(|(_, source)| source)
    }

    fn found(&self, name: &str) -> Option<(String, Source)> {
        let process = self.process.then(|| std::env::var(name).ok()).flatten();
        let found = process.map(|value| (value, Source::Process));
        let found = found.or_else(|| Some((self.values.get(name)?.clone(), Source::File)));
        found.filter(|(value, _)| !value.is_empty())
    }
}

/// Values are secrets, so none is shown.
impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Environment")
    }
}

/// Reads a line `NAME=value`, with quotes around the value or without.
fn assignment(line: &str) -> Option<(String, String)> {
    let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let is_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
    if name.is_empty() || !name.chars().all(is_name) {
        return None;
    }
    let value = quoted(value).unwrap_or_else(|| value.split(" #").next().unwrap_or_default().trim_end());
    Some((name.to_owned(), value.to_owned()))
}

/// Returns what is in the quotes that a value has around it, before a comment or the end.
fn quoted(value: &str) -> Option<&str> {
    let quote = value.chars().next().filter(|first| matches!(first, '"' | '\''))?;
    let rest = value.strip_prefix(quote)?;
    let mut ends = rest.match_indices(quote).filter_map(|(at, _)| rest.split_at_checked(at));
    let is_over = |tail: &str| {
        let tail = tail.strip_prefix(quote).unwrap_or(tail).trim_start();
        tail.is_empty() || tail.starts_with('#')
    };
    ends.find(|(_, tail)| is_over(tail)).map(|(inside, _)| inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_env() {
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
        assert!(std::env::var("PATH").is_ok() && environment.get("PATH").is_some(), "the process comes first");
    }
}
