//! Cases: what a person says to an agent, and checks of what comes of it.
//!
//! Cases are written in gram, as JSON Lines or as CSV, and all three mean the same. [`read`] reads them; [`Check::judge`]
//! judges what was observed. Two sorts of checks need an effect, another agent or a program; whoever runs the cases
//! performs those.

mod answer;
mod check;
mod difference;
mod fields;
mod gram;
mod judge;
mod lines;
mod option;
mod show;
mod table;
mod write;

pub use answer::json_in;
pub use check::{Check, Expression, JsonPath, Letters, SchemaCheck, Times};
pub use judge::{Judged, Observed};

pub(crate) use gram::{alone, read_list};

use patter_gram::Diagnostic;
use std::collections::HashSet;

/// A case: what a person says, and what must be true of what comes of it.
///
/// A case without checks passes when it is answered.
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
    /// What it is called; no two cases of a file have the same.
    pub id: String,
    /// What the person says, one after the other, each once the one before is answered.
    pub turns: Vec<String>,
    /// What it belongs to.
    pub tags: Vec<String>,
    /// What must be true of what comes of it.
    pub checks: Vec<Check>,
    /// Where it stands: `file:line`.
    pub place: String,
}

/// How cases are written.
///
/// ```
/// use patter_core::case::CaseFormat;
/// assert_eq!(CaseFormat::of("tests/hello.jsonl"), Some(CaseFormat::JsonLines));
/// assert_eq!(CaseFormat::of("hello.txt"), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CaseFormat {
    /// As patterns.
    Gram,
    /// As JSON, a case in each line.
    JsonLines,
    /// As a table with a header, a case in each row.
    Csv,
}

/// Something in a file of cases that cannot be read.
///
/// ```
/// use patter_core::case::{CaseFormat, read};
/// let (cases, problems) = read("a.jsonl", CaseFormat::JsonLines, b"{\"inptu\": \"Hi\"}\n{\"input\": \"Hello\"}");
/// assert_eq!(cases.len(), 1);
/// assert_eq!(problems[0].to_string(), "a.jsonl:1: a case has no `inptu`");
/// assert_eq!(problems[0].hint.as_deref(), Some("did you mean `input`?"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseProblem {
    /// Where: `file:line`.
    pub place: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl CaseFormat {
    /// The endings of files with cases.
    pub const ENDINGS: [&'static str; 4] = ["gram", "jsonl", "ndjson", "csv"];

    /// Tells the format of a file by the ending of its name.
    pub fn of(path: &str) -> Option<Self> {
        let (_, ending) = path.rsplit_once('.')?;
        match ending.to_ascii_lowercase().as_str() {
            "gram" => Some(CaseFormat::Gram),
            "jsonl" | "ndjson" => Some(CaseFormat::JsonLines),
            "csv" => Some(CaseFormat::Csv),
            _ => None,
        }
    }
}

/// Reads the cases of a file. What cannot be read is told, and the rest is read: a case with a mistake is left out.
pub fn read(path_for_messages: &str, format: CaseFormat, bytes: &[u8]) -> (Vec<Case>, Vec<CaseProblem>) {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut reading = Reading { path: path_for_messages, cases: Vec::new(), ids: HashSet::new(), problems: Vec::new() };
    match format {
        CaseFormat::Gram => gram::read(&mut reading, bytes),
        CaseFormat::JsonLines => lines::read(&mut reading, bytes),
        CaseFormat::Csv => table::read(&mut reading, bytes),
    }
    let Reading { cases, mut problems, .. } = reading;
    if cases.is_empty() && problems.is_empty() {
        let hint = match format {
            CaseFormat::Gram => {
                "write `[:Cases | [greets:Case { input: \"Hello!\" } | (:Contains { text: \"Hello\" })]]`"
            }
            CaseFormat::JsonLines => {
                r#"write a case in each line: `{"input": "Hello!", "checks": [{"contains": "Hello"}]}`"#
            }
            CaseFormat::Csv => "write a row for each case, after a first row with the names of the columns",
        };
        let message = "there are no cases".to_owned();
        problems.push(CaseProblem { place: path_for_messages.to_owned(), message, hint: Some(hint.to_owned()) });
    }
    (cases, problems)
}

impl std::fmt::Display for CaseProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// A file that is being read.
struct Reading<'p> {
    path: &'p str,
    cases: Vec<Case>,
    ids: HashSet<String>,
    problems: Vec<CaseProblem>,
}

impl Reading<'_> {
    fn place(&self, line: usize) -> String {
        format!("{}:{line}", self.path)
    }

    fn problem(&mut self, line: usize, message: impl Into<String>, hint: Option<String>) {
        self.problems.push(CaseProblem { place: self.place(line), message: message.into(), hint });
    }

    fn found(&mut self, line: usize, diagnostics: Vec<Diagnostic>) {
        for found in diagnostics {
            self.problem(line, found.message.into_owned(), found.hint.map(std::borrow::Cow::into_owned));
        }
    }

    /// Takes a case, unless its id is taken.
    fn case(&mut self, line: usize, case: Case) {
        if self.ids.insert(case.id.clone()) {
            self.cases.push(case);
        } else {
            let message = format!("there are two cases `{}`", case.id);
            self.problem(line, message, Some("give one of the two another name".to_owned()));
        }
    }
}
