//! Conversion of cases to JSON.

use super::Case;
use super::check::{CallCount, CaseSensitivity, Check};
use serde_json::{Map, Value as Json, json};

impl Case {
    /// Returns the case as in JSON Lines, without its location.
    ///
    /// ```
    /// use patter_core::case::{CaseFormat, read};
    /// let line = r#"{"id":"a","input":"Hi","checks":[{"contains":"Hello"}]}"#;
    /// let (cases, _) = read("a.jsonl", CaseFormat::JsonLines, line.as_bytes());
    /// assert_eq!(cases[0].to_json().to_string(), line);
    /// ```
    pub fn to_json(&self) -> Json {
        let mut object = Map::new();
        object.insert("id".to_owned(), self.id.as_str().into());
        object.insert(
            "input".to_owned(),
            match self.turns.as_slice() {
                [only] => only.as_str().into(),
                turns => turns.into(),
            },
        );
        if !self.tags.is_empty() {
            object.insert("tags".to_owned(), self.tags.as_slice().into());
        }
        if !self.checks.is_empty() {
            object.insert("checks".to_owned(), self.checks.iter().map(Check::to_json).collect());
        }
        Json::Object(object)
    }
}

impl Check {
    /// Returns the check as JSON, in the shortest form that [`Check::parse`] accepts.
    pub fn to_json(&self) -> Json {
        let (key, options) = self.options();
        let is_short = |value: &Json| match value {
            // An object would be read as the options; a schema only if it has that key.
            Json::Object(object) => key == "schema" && !object.contains_key("schema"),
            _ => true,
        };
        match options.as_slice() {
            [(_, value)] if is_short(value) => json!({ key: value }),
            _ => {
                let options: Map<_, _> = options.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
                json!({ key: options })
            }
        }
    }

    /// Returns the key of the kind, and the options that differ from their defaults.
    fn options(&self) -> (&'static str, Vec<(&'static str, Json)>) {
        match self {
            Check::Contains { text, sensitivity } => ("contains", text_options(text, *sensitivity)),
            Check::Equals { text, sensitivity } => ("equals", text_options(text, *sensitivity)),
            Check::Matches(expression) => ("matches", vec![("pattern", expression.as_str().into())]),
            Check::Schema(schema) => ("schema", vec![("schema", schema.schema().clone())]),
            Check::JsonPath { path, equals } => {
                ("jsonPath", with_optional("path", path.as_str(), "equals", equals.as_ref()))
            }
            Check::Not(check) => {
                let (key, mut options) = check.options();
                options.push(("not", true.into()));
                (key, options)
            }
            Check::Called { tool, with: arguments, times } => {
                let mut options = with_optional("tool", tool.as_str(), "with", arguments.as_ref());
                match (times.min, times.max) {
                    _ if *times == CallCount::AT_LEAST_ONCE => {}
                    (min, Some(max)) if min == max => options.push(("times", min.into())),
                    (min, max) => options.push(("times", json!([min, max]))),
                }
                ("called", options)
            }
            Check::NotCalled { tool, with: arguments } => {
                ("notCalled", with_optional("tool", tool.as_str(), "with", arguments.as_ref()))
            }
            Check::Order { tools } => ("order", vec![("tools", tools.as_slice().into())]),
            Check::Turns { max } => ("turns", vec![("most", (*max).into())]),
            Check::Latency { max_ms } => ("latency", vec![("most", duration(*max_ms))]),
            Check::Cost { max } => ("cost", vec![("most", max.dollars().into())]),
            Check::Judge { agent, criteria } => {
                ("judge", vec![("agent", agent.as_str().into()), ("criteria", criteria.as_str().into())])
            }
            Check::Command { run, timeout_ms } => {
                let timeout = timeout_ms.map(|timeout| ("timeout", duration(timeout)));
                ("command", std::iter::once(("run", run.as_slice().into())).chain(timeout).collect())
            }
        }
    }
}

fn text_options(text: &str, sensitivity: CaseSensitivity) -> Vec<(&'static str, Json)> {
    let ignore_case = (sensitivity == CaseSensitivity::Insensitive).then_some(("ignoreCase", true.into()));
    std::iter::once(("text", text.into())).chain(ignore_case).collect()
}

/// Returns the main option, and another one if it is set.
fn with_optional(
    main: &'static str,
    value: impl Into<Json>,
    other: &'static str,
    other_value: Option<&Json>,
) -> Vec<(&'static str, Json)> {
    let other = other_value.map(|value| (other, value.clone()));
    std::iter::once((main, value.into())).chain(other).collect()
}

fn duration(milliseconds: u64) -> Json {
    let is_whole = milliseconds.is_multiple_of(1_000);
    if is_whole { format!("{}s", milliseconds / 1_000) } else { format!("{milliseconds}ms") }.into()
}
