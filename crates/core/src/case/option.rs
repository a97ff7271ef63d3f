//! The sorts of checks and their options, read into checks.

use super::check::{Check, Expression, JsonPath, Letters, SchemaCheck, Times};
use super::fields::{Field, Fields};
use crate::{rule, text::nearest};
use patter_gram::{Diagnostic, Span};
use serde_json::Value as Json;

/// A sort of checks: how it is called and what may be said of it.
pub(super) struct Sort {
    /// The label in gram.
    pub(super) label: &'static str,
    /// The key in JSON, and the column in CSV.
    pub(super) key: &'static str,
    /// What is meant where only one value is given.
    pub(super) main: &'static str,
    /// All options that there are.
    options: &'static [&'static str],
    read: fn(&mut Fields) -> Option<Check>,
}

const fn sort(
    label: &'static str,
    key: &'static str,
    main: &'static str,
    options: &'static [&'static str],
    read: fn(&mut Fields) -> Option<Check>,
) -> Sort {
    Sort { label, key, main, options, read }
}

/// All sorts of checks.
pub(super) static SORTS: [Sort; 13] = [
    sort("Contains", "contains", "text", &["text", "ignoreCase", "not"], contains),
    sort("Equals", "equals", "text", &["text", "ignoreCase", "not"], equals),
    sort("Matches", "matches", "pattern", &["pattern", "not"], matches),
    sort("Schema", "schema", "schema", &["schema", "not"], schema),
    sort("JsonPath", "jsonPath", "path", &["path", "equals", "not"], json_path),
    sort("Called", "called", "tool", &["tool", "with", "times"], called),
    sort("NotCalled", "notCalled", "tool", &["tool", "with"], not_called),
    sort("Order", "order", "tools", &["tools"], order),
    sort("Turns", "turns", "most", &["most"], turns),
    sort("Latency", "latency", "most", &["most"], latency),
    sort("Cost", "cost", "most", &["most"], cost),
    sort("Judge", "judge", "criteria", &["agent", "criteria"], judge),
    sort("Command", "command", "run", &["run", "timeout"], command),
];

impl Sort {
    /// Finds the sort of a label, or tells what it may be.
    pub(super) fn of_label(label: &str, span: Span) -> Result<&'static Self, Diagnostic> {
        let found = SORTS.iter().find(|sort| sort.label == label);
        found.ok_or_else(|| no_check(label, span, |sort| sort.label))
    }

    /// Finds the sort of a key, or tells what it may be.
    fn of_key(key: &str) -> Result<&'static Self, Diagnostic> {
        let found = SORTS.iter().find(|sort| sort.key == key);
        found.ok_or_else(|| no_check(key, Span::at(0), |sort| sort.key))
    }

    /// Reads a check of this sort.
    pub(super) fn check(&self, fields: &mut Fields) -> Option<Check> {
        fields.known(self.options);
        let check = (self.read)(fields)?;
        // What is wrong is told; a check that would ask something else than what is written is none.
        fields.found.is_empty().then_some(check)
    }
}

impl Check {
    /// Reads a check as JSON: an object with the sort for its key, and the options for its value.
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
            let found = rule::BAD_CHECK.at(Span::at(0), "a check is an object with one key, its sort");
            return Err(vec![found.with_hint(r#"write `{"contains": "Hello"}`"#)]);
        };
        let sort = Sort::of_key(key).map_err(|found| vec![found])?;
        let what = format!("`{key}`");
        let mut fields = match value {
            Json::Object(options) if is_options(sort, options) => Fields::of_object(&what, options.clone()),
            main => {
                let entry = std::iter::once((sort.main.to_owned(), main.clone()));
                Fields::of_object(&what, entry.collect())
            }
        };
        sort.check(&mut fields).ok_or(fields.found)
    }
}

/// Tells whether an object has the options of a check. A schema is an object itself.
fn is_options(sort: &Sort, object: &serde_json::Map<String, Json>) -> bool {
    sort.key != "schema" || object.contains_key("schema")
}

fn no_check(name: &str, span: Span, named: fn(&Sort) -> &'static str) -> Diagnostic {
    let known: Vec<_> = SORTS.iter().map(named).collect();
    let found = rule::BAD_CHECK.at(span, format!("there is no check `{name}`"));
    found.with_hint(match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", known.join(", ")),
    })
}

/// Turns a check around where it says so.
fn perhaps_not(fields: &mut Fields, check: Check) -> Check {
    if fields.boolean("not") == Some(true) { Check::Not(Box::new(check)) } else { check }
}

fn text(fields: &mut Fields) -> Option<(String, Letters)> {
    fields.needs("text");
    let letters = if fields.boolean("ignoreCase") == Some(true) { Letters::AnyCase } else { Letters::Exact };
    Some((fields.text("text")?, letters))
}

fn contains(fields: &mut Fields) -> Option<Check> {
    let (text, letters) = text(fields)?;
    Some(perhaps_not(fields, Check::Contains { text, letters }))
}

fn equals(fields: &mut Fields) -> Option<Check> {
    let (text, letters) = text(fields)?;
    Some(perhaps_not(fields, Check::Equals { text, letters }))
}

fn matches(fields: &mut Fields) -> Option<Check> {
    fields.needs("pattern");
    let text = fields.text("pattern")?;
    let expression = compiled(fields, "pattern", "regular expression", Expression::parse(&text))?;
    Some(perhaps_not(fields, Check::Matches(expression)))
}

fn schema(fields: &mut Fields) -> Option<Check> {
    fields.needs("schema");
    let schema = match fields.json("schema")? {
        // A text is taken for JSON, as in a table.
        Json::String(text) => {
            serde_json::from_str(&text).map_err(|error| error.to_string()).and_then(SchemaCheck::parse)
        }
        schema => SchemaCheck::parse(schema),
    };
    let schema = compiled(fields, "schema", "JSON Schema", schema)?;
    Some(perhaps_not(fields, Check::Schema(schema)))
}

fn json_path(fields: &mut Fields) -> Option<Check> {
    fields.needs("path");
    let text = fields.text("path")?;
    let path = compiled(fields, "path", "JSON path", JsonPath::parse(&text))?;
    let equals = fields.json("equals");
    Some(perhaps_not(fields, Check::JsonPath { path, equals }))
}

fn called(fields: &mut Fields) -> Option<Check> {
    fields.needs("tool");
    let (with, times) = (arguments(fields), fields.times("times").unwrap_or(Times::SOME));
    Some(Check::Called { tool: fields.text("tool")?, with, times })
}

fn not_called(fields: &mut Fields) -> Option<Check> {
    fields.needs("tool");
    let with = arguments(fields);
    Some(Check::NotCalled { tool: fields.text("tool")?, with })
}

fn order(fields: &mut Fields) -> Option<Check> {
    fields.needs("tools");
    let tools = fields.texts("tools")?;
    if tools.len() < 2 {
        let span = fields.get("tools").map_or(fields.span, |field| field.span);
        let found = rule::BAD_CHECK.at(span, "an order has two tools or more");
        fields.found.push(found.with_hint("to ask for one call, write the check `Called`"));
    }
    Some(Check::Order { tools })
}

fn turns(fields: &mut Fields) -> Option<Check> {
    fields.needs("most");
    Some(Check::Turns { most: fields.count("most")? })
}

fn latency(fields: &mut Fields) -> Option<Check> {
    fields.needs("most");
    Some(Check::Latency { most_ms: fields.milliseconds("most")? })
}

fn cost(fields: &mut Fields) -> Option<Check> {
    fields.needs("most");
    Some(Check::Cost { most: fields.dollars("most")? })
}

fn judge(fields: &mut Fields) -> Option<Check> {
    fields.needs("agent");
    fields.needs("criteria");
    let (agent, criteria) = (fields.text("agent"), fields.text("criteria"));
    Some(Check::Judge { agent: agent?, criteria: criteria? })
}

fn command(fields: &mut Fields) -> Option<Check> {
    fields.needs("run");
    let timeout_ms = fields.milliseconds("timeout");
    let run = fields.texts("run")?;
    if run.is_empty() {
        fields.found.push(rule::BAD_CHECK.at(fields.span, "`run` names no program"));
    }
    Some(Check::Command { run, timeout_ms })
}

/// Reads what the arguments of a call must have.
fn arguments(fields: &mut Fields) -> Option<Json> {
    let Field { value, span, .. } = fields.get("with")?.clone();
    if !value.is_object() {
        fields.found.push(rule::WRONG_VALUE.at(span, "`with` takes the arguments of a call, by their names"));
    }
    Some(value)
}

/// Takes what has been compiled, or reports why it could not be.
fn compiled<T>(fields: &mut Fields, key: &str, noun: &str, made: Result<T, String>) -> Option<T> {
    let span = fields.get(key).map_or(fields.span, |field| field.span);
    made.map_err(|error| fields.found.push(rule::BAD_EXPRESSION.at(span, format!("this is no {noun}: {error}")))).ok()
}
