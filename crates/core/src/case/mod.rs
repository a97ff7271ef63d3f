//! Test cases: user messages for an agent, and checks of the result.
//!
//! Cases are written in gram, JSON Lines or CSV, which are equivalent. [`read`] reads them; [`Check::judge`] judges an
//! [`Observation`]. Two kinds of checks have effects, since they run an agent or a program; the caller performs those.

mod show;
mod check;
mod fields;
mod option;
mod lines;
mod table;
mod gram;
mod write;
mod answer;
mod difference;
mod judge;

pub use answer::extract_json;
pub use check::{CallCount, CaseSensitivity, Check, Expression, JsonPath, SchemaCheck};
pub use judge::{CheckResult, Observation};

pub(crate) use gram::{misplaced_case, read_cases};

use patter_gram::Diagnostic;
use std::collections::HashSet;

/// A test case: user messages, and checks of the result.
///
/// A case without checks passes if the agent answers.
///
/// ```
/// use patter_core::case::{CaseFormat, read};
/// let text = r#"[:Cases | [greets:Case {input: "I am Ada"} | (:Contains {text: "Ada"}), (:Turns {most: 3})]]"#;
/// let (cases, problems) = read("cases.gram", CaseFormat::Gram, text.as_bytes());
/// assert!(problems.is_empty());
/// assert_eq!((cases[0].id.as_str(), cases[0].turns.as_slice()), ("greets", ["I am Ada".to_owned()].as_slice()));
/// assert_eq!(cases[0].checks[0].to_string(), "contains \"Ada\"");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The name of the case, unique within a file.
    pub id: String,
    /// The user messages in order. Each is sent once the previous one is answered.
    pub turns: Vec<String>,
    /// The tags, to select cases by.
    pub tags: Vec<String>,
    /// The checks of the result.
    pub checks: Vec<Check>,
    /// The location of the case: `file:line`.
    pub location: String,
}

/// The format of a file with cases.
///
/// ```
/// use patter_core::case::CaseFormat;
/// assert_eq!(CaseFormat::from_path("tests/hello.jsonl"), Some(CaseFormat::JsonLines));
/// assert_eq!(CaseFormat::from_path("hello.txt"), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CaseFormat {
    /// Patterns in gram notation.
    Gram,
    /// One JSON object per line.
    JsonLines,
    /// A table with a header row and one case per row.
    Csv,
}

/// A problem in a file with cases.
///
/// ```
/// use patter_core::case::{CaseFormat, read};
/// let (cases, problems) = read("a.jsonl", CaseFormat::JsonLines, b"{\"inptu\": \"Hi\"}\n{\"input\": \"Hello\"}");
/// assert_eq!(cases.len(), 1);
/// assert_eq!(problems[0].to_string(), "a.jsonl:1: a case has no property `inptu`");
/// assert_eq!(problems[0].hint.as_deref(), Some("did you mean `input`?"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseProblem {
    /// The location: `file:line`.
    pub location: String,
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

impl CaseFormat {
    /// The file name extensions of supported formats.
    pub const EXTENSIONS: [&'static str; 4] = ["gram", "jsonl", "ndjson", "csv"];

    /// Returns the format of a file by its extension.
    pub fn from_path(path: &str) -> Option<Self> {
        let (_, extension) = path.rsplit_once('.')?;
        match extension.to_ascii_lowercase().as_str() {
            "gram" => Some(CaseFormat::Gram),
            "jsonl" | "ndjson" => Some(CaseFormat::JsonLines),
            "csv" => Some(CaseFormat::Csv),
            _ => None,
        }
    }
}

/// Reads the cases of a file. Cases with mistakes are reported and left out; the rest is returned.
pub fn read(path_for_messages: &str, format: CaseFormat, bytes: &[u8]) -> (Vec<Case>, Vec<CaseProblem>) {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut reader =
        CaseReader { path: path_for_messages, cases: Vec::new(), ids: HashSet::new(), problems: Vec::new() };
    match format {
        CaseFormat::Gram => gram::read(&mut reader, bytes),
        CaseFormat::JsonLines => lines::read(&mut reader, bytes),
        CaseFormat::Csv => table::read(&mut reader, bytes),
    }
    let CaseReader { cases, mut problems, .. } = reader;
    if cases.is_empty() && problems.is_empty() {
        let hint = match format {
            CaseFormat::Gram => {
                "write `[:Cases | [greets:Case { input: \"Hello!\" } | (:Contains { text: \"Hello\" })]]`"
            }
            CaseFormat::JsonLines => {
                r#"write one case per line: `{"input": "Hello!", "checks": [{"contains": "Hello"}]}`"#
            }
            CaseFormat::Csv => "write a header row with the column names, then one row per case",
        };
        let message = "no cases found".to_owned();
        problems.push(CaseProblem { location: path_for_messages.to_owned(), message, hint: Some(hint.to_owned()) });
    }
    (cases, problems)
}

impl std::fmt::Display for CaseProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.location, self.message)
    }
}

/// The cases and problems of a file while it is read.
struct CaseReader<'p> {
    path: &'p str,
    cases: Vec<Case>,
    ids: HashSet<String>,
    problems: Vec<CaseProblem>,
}

impl CaseReader<'_> {
    fn location(&self, line: usize) -> String {
        format!("{}:{line}", self.path)
    }

    fn problem(&mut self, line: usize, message: impl Into<String>, hint: Option<String>) {
        self.problems.push(CaseProblem { location: self.location(line), message: message.into(), hint });
    }

    fn report(&mut self, line: usize, diagnostics: Vec<Diagnostic>) {
        for diagnostic in diagnostics {
            let hint = diagnostic.hint.map(std::borrow::Cow::into_owned);
            self.problem(line, diagnostic.message.into_owned(), hint);
        }
    }

    /// Adds a case, unless its id is taken.
    fn add_case(&mut self, line: usize, case: Case) {
        if self.ids.insert(case.id.clone()) {
            self.cases.push(case);
        } else {
            let message = format!("duplicate case `{}`", case.id);
            self.problem(line, message, Some("rename one of the two".to_owned()));
        }
    }
}
