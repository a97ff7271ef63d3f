//! ProjectPaths in files.

use patter::gram::{LineIndex, Span};
use patter::project::Project;
use serde_json::{Map, Value as Json, json};
use std::fmt;

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    file: String,
    line: Option<usize>,
    column: Option<usize>,
}

impl Place {
    /// Returns a file without a place in it.
    pub(crate) fn file(file: impl Into<String>) -> Self {
        Self { file: file.into(), line: None, column: None }
    }

    /// Returns the start of a span in a file of a project.
    pub(crate) fn in_project(project: &Project, file: usize, span: Span) -> Option<Self> {
        let file = project.files().get(file)?;
        Some(Self::in_source(&file.path, file.tree.source(), span))
    }

    /// Returns the start of a span in a text.
    pub(crate) fn in_source(file: &str, source: &str, span: Span) -> Self {
        let (line, column) = LineIndex::new(source).line_column(span.start);
        Self { file: file.to_owned(), line: Some(line), column: Some(column) }
    }

    /// Parses `file:line:column` or `file:line`; anything else is the name of a file.
    pub(crate) fn parse(text: &str) -> Self {
        let split = |text: &str| {
            let (rest, number) = text.rsplit_once(':')?;
            Some((rest.to_owned(), number.parse::<usize>().ok()?))
        };
        match split(text) {
            None => Self::file(text),
            Some((rest, last)) => match split(&rest) {
                Some((file, line)) => Self { file, line: Some(line), column: Some(last) },
                None => Self { file: rest, line: Some(last), column: None },
            },
        }
    }

    /// Returns whether the line is known.
    pub(crate) const fn has_line(&self) -> bool {
        self.line.is_some()
    }

    pub(crate) fn to_json(&self) -> Json {
        let mut place = Map::new();
        place.insert("file".to_owned(), json!(self.file));
        if let Some(line) = self.line {
            place.insert("line".to_owned(), json!(line));
        }
        if let Some(column) = self.column {
            place.insert("column".to_owned(), json!(column));
        }
        Json::Object(place)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        self.line.iter().chain(&self.column).try_for_each(|number| write!(f, ":{number}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_parsed() {
        let table = [
            ("a.gram", ("a.gram", None, None)),
            ("a.gram:3", ("a.gram", Some(3), None)),
            ("a:b.gram:3:5", ("a:b.gram", Some(3), Some(5))),
        ];
        for (text, (file, line, column)) in table {
            let place = Place::parse(text);
            assert_eq!(place, Place { file: file.to_owned(), line, column });
            assert_eq!(place.to_string(), text);
        }
    }
}
