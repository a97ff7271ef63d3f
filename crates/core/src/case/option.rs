//! The kinds of checks, and the conversion of their options into checks.

use super::check::{CallCount, CaseSensitivity, Check, Expression, JsonPath, SchemaCheck};
use super::fields::{CaseField, CaseFields};
use crate::{rule, text::nearest};
use patter_gram::{Diagnostic, Span};
use serde_json::Value as Json;

/// A kind of check: its names and options.
pub(super) struct CheckKind {
    /// The label in gram.
    pub(super) label: &'static str,
    /// The key in JSON, and the column in CSV.
    pub(super) key: &'static str,
    /// The option that a single value stands for.
    pub(super) main: &'static str,
    /// All options.
    options: &'static [&'static str],
    read: fn(&mut CaseFields) -> Option<Check>,
}

const fn kind(
    label: &'static str,
    key: &'static str,
    main: &'static str,
    options: &'static [&'static str],
    read: fn(&mut CaseFields) -> Option<Check>,
) -> CheckKind {
    CheckKind { label, key, main, options, read }
}

/// All kinds of checks.
pub(super) static CHECK_KINDS: [CheckKind; 13] = [
    kind("Contains", "contains", "text", &["text", "ignoreCase", "not"], contains),
    kind("Equals", "equals", "text", &["text", "ignoreCase", "not"], equals),
    kind("Matches", "matches", "pattern", &["pattern", "not"], matches),
    kind("Schema", "schema", "schema", &["schema", "not"], schema),
    kind("JsonPath", "jsonPath", "path", &["path", "equals", "not"], json_path),
    kind("Called", "called", "tool", &["tool", "with", "times"], called),
    kind("NotCalled", "notCalled", "tool", &["tool", "with"], not_called),
    kind("Order", "order", "tools", &["tools"], order),
    kind("Turns", "turns", "most", &["most"], turns),
    kind("Latency", "latency", "most", &["most"], latency),
    kind("Cost", "cost", "most", &["most"], cost),
    kind("Judge", "judge", "criteria", &["agent", "criteria"], judge),
    kind("Command", "command", "run", &["run", "timeout"], command),
];

impl CheckKind {
    /// Returns the kind with a label, or a diagnostic that suggests one.
    pub(super) fn from_label(label: &str, span: Span) -> Result<&'static Self, Diagnostic> {
        let found = CHECK_KINDS.iter().find(|kind| kind.label == label);
        found.ok_or_else(|| unknown_check(label, span, |kind| kind.label))
    }

    /// Returns the kind with a key, or a diagnostic that suggests one.
    fn from_key(key: &str) -> Result<&'static Self, Diagnostic> {
        let found = CHECK_KINDS.iter().find(|kind| kind.key == key);
        found.ok_or_else(|| unknown_check(key, Span::at(0), |kind| kind.key))
    }

    /// Reads a check of this kind.
    pub(super) fn read_check(&self, fields: &mut CaseFields) -> Option<Check> {
        fields.reject_unknown(self.options);
        let check = (self.read)(fields)?;
        // A check with mistakes would not test what its author meant.
        fields.problems.is_empty().then_some(check)
    }
}

impl Check {
    /// Parses a check from JSON: an object with the kind as its key and the options as its value.
    ///
    /// ```
    /// use patter_core::case::Check;
    /// use serde_json::json;
    /// let short = Check::parse(&json!({"called": "sayHello"})).unwrap();
    /// assert_eq!(short, Check::parse(&json!({"called": {"tool": "sayHello"}})).unwrap());
    /// assert_eq!(short.to_json(), json!({"called": "sayHello"}));
    /// let wrong = Check::parse(&json!({"contians": "x"})).unwrap_err();
    /// assert_eq!(wrong[0].message, "there is no check `contians`");
    /// assert_eq!(wrong[0].hint.as_deref(), Some("did you mean `contains`?"));
    /// ```
    pub fn parse(json: &Json) -> Result<Self, Vec<Diagnostic>> {
        let entry = json.as_object().filter(|object| object.len() == 1).and_then(|object| object.iter().next());
        let Some((key, value)) = entry else {
            let problem = rule::BAD_CHECK.at(Span::at(0), "a check is an object with one key, the kind of check");
            return Err(vec![problem.with_hint(r#"write `{"contains": "Hello"}`"#)]);
        };
        let kind = CheckKind::from_key(key).map_err(|problem| vec![problem])?;
        let owner = format!("`{key}`");
        let mut fields = match value {
            Json::Object(options) if is_options(kind, options) => CaseFields::from_object(&owner, options.clone()),
            main => {
                let entry = std::iter::once((kind.main.to_owned(), main.clone()));
                let short = Some((kind.main, key.clone()));
                CaseFields { short, ..CaseFields::from_object(&owner, entry.collect()) }
            }
        };
        kind.read_check(&mut fields).ok_or(fields.problems)
    }
}

/// Returns whether an object contains the options of a check. A schema is an object itself.
fn is_options(kind: &CheckKind, object: &serde_json::Map<String, Json>) -> bool {
    kind.key != "schema" || object.contains_key("schema")
}

fn unknown_check(name: &str, span: Span, name_of: fn(&CheckKind) -> &'static str) -> Diagnostic {
    let known: Vec<_> = CHECK_KINDS.iter().map(name_of).collect();
    let problem = rule::BAD_CHECK.at(span, format!("there is no check `{name}`"));
    problem.with_hint(match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("available checks: {}", known.join(", ")),
    })
}

/// Negates a check if its option `not` is set.
fn negate_if_set(fields: &mut CaseFields, check: Check) -> Check {
    if fields.boolean("not") == Some(true) { Check::Not(Box::new(check)) } else { check }
}

fn text_and_sensitivity(fields: &mut CaseFields) -> Option<(String, CaseSensitivity)> {
    fields.require("text");
    let sensitivity = if fields.boolean("ignoreCase") == Some(true) {
        CaseSensitivity::Insensitive
    } else {
        CaseSensitivity::Sensitive
    };
    Some((fields.text("text")?, sensitivity))
}

fn contains(fields: &mut CaseFields) -> Option<Check> {
    let (text, sensitivity) = text_and_sensitivity(fields)?;
    Some(negate_if_set(fields, Check::Contains { text, sensitivity }))
}

fn equals(fields: &mut CaseFields) -> Option<Check> {
    let (text, sensitivity) = text_and_sensitivity(fields)?;
    Some(negate_if_set(fields, Check::Equals { text, sensitivity }))
}

fn matches(fields: &mut CaseFields) -> Option<Check> {
    fields.require("pattern");
    let text = fields.text("pattern")?;
    let expression = report_invalid(fields, "pattern", "regular expression", Expression::parse(&text), "")?;
    Some(negate_if_set(fields, Check::Matches(expression)))
}

fn schema(fields: &mut CaseFields) -> Option<Check> {
    fields.require("schema");
    let schema = match fields.json("schema")? {
        // A text contains JSON, as in a table.
        Json::String(text) => {
            serde_json::from_str(&text).map_err(|error| error.to_string()).and_then(SchemaCheck::parse)
        }
        schema => SchemaCheck::parse(schema),
    };
    let schema = report_invalid(fields, "schema", "JSON Schema", schema, "")?;
    Some(negate_if_set(fields, Check::Schema(schema)))
}

fn json_path(fields: &mut CaseFields) -> Option<Check> {
    fields.require("path");
    let text = fields.text("path")?;
    let path = report_invalid(fields, "path", "JSON path", JsonPath::parse(&text), "for example, `$.items[0].name`")?;
    let equals = fields.json("equals");
    Some(negate_if_set(fields, Check::JsonPath { path, equals }))
}

fn called(fields: &mut CaseFields) -> Option<Check> {
    fields.require("tool");
    let with = arguments(fields);
    let times = fields.call_count("times").unwrap_or(CallCount::AT_LEAST_ONCE);
    Some(Check::Called { tool: fields.text("tool")?, with, times })
}

fn not_called(fields: &mut CaseFields) -> Option<Check> {
    fields.require("tool");
    let with = arguments(fields);
    Some(Check::NotCalled { tool: fields.text("tool")?, with })
}

fn order(fields: &mut CaseFields) -> Option<Check> {
    fields.require("tools");
    let tools = fields.texts("tools")?;
    if tools.len() < 2 {
        let span = fields.get("tools").map_or(fields.span, |field| field.span);
        let problem = rule::BAD_CHECK.at(span, "an order requires at least two tools");
        fields.problems.push(problem.with_hint("to check a single call, use `Called`"));
    }
    Some(Check::Order { tools })
}

fn turns(fields: &mut CaseFields) -> Option<Check> {
    fields.require("most");
    Some(Check::Turns { max: fields.count("most")? })
}

fn latency(fields: &mut CaseFields) -> Option<Check> {
    fields.require("most");
    Some(Check::Latency { max_ms: fields.milliseconds("most")? })
}

fn cost(fields: &mut CaseFields) -> Option<Check> {
    fields.require("most");
    Some(Check::Cost { max: fields.dollars("most")? })
}

fn judge(fields: &mut CaseFields) -> Option<Check> {
    if fields.short.is_some() {
        let problem = rule::BAD_CHECK.at(fields.span, format!("{} requires `agent`", fields.owner));
        let hint = r#"write `{"judge": {"agent": "judge.gram", "criteria": "…"}}`"#;
        fields.problems.push(problem.with_hint(hint));
        return None;
    }
    fields.require("agent");
    fields.require("criteria");
    let agent = fields.text("agent");
    let criteria = fields.text("criteria");
    Some(Check::Judge { agent: agent?, criteria: criteria? })
}

fn command(fields: &mut CaseFields) -> Option<Check> {
    fields.require("run");
    let timeout_ms = fields.milliseconds("timeout");
    let run = fields.texts("run")?;
    if run.is_empty() {
        fields.problems.push(rule::BAD_CHECK.at(fields.span, "`run` is empty"));
    }
    Some(Check::Command { run, timeout_ms })
}

/// Reads the expected arguments of a call.
fn arguments(fields: &mut CaseFields) -> Option<Json> {
    let CaseField { value, span, .. } = fields.get("with")?.clone();
    if !value.is_object() {
        fields.problems.push(rule::WRONG_VALUE.at(span, "`with` must be an object of arguments by name"));
    }
    Some(value)
}

/// Returns a parsed value, or reports why it is invalid, with a hint if there is one.
fn report_invalid<T>(
    fields: &mut CaseFields,
    key: &str,
    noun: &str,
    parsed: Result<T, String>,
    hint: &'static str,
) -> Option<T> {
    let span = fields.get(key).map_or(fields.span, |field| field.span);
    let report = |error: String| {
        let found = rule::BAD_EXPRESSION.at(span, format!("invalid {noun}: {error}"));
        fields.problems.push(if hint.is_empty() { found } else { found.with_hint(hint) });
    };
    parsed.map_err(report).ok()
}
