//! Checks, and their descriptions.

use super::show::{excerpt, format_duration, format_json, format_times, quote_excerpt};
use crate::provider::price::Cost;
use jsonschema::Validator;
use regex::Regex;
use serde_json::Value as Json;
use std::fmt::{self, Display};
use std::sync::Arc;

/// A check of the result of a case. Its `Display` describes it in words.
///
/// ```
/// use patter_core::case::{Check, CallCount};
/// let with = serde_json::json!({"personName": "Alice"});
/// let check = Check::Called { tool: "sayHello".to_owned(), with: Some(with), times: CallCount::AT_LEAST_ONCE };
/// assert_eq!(check.to_string(), r#"calls sayHello with {"personName":"Alice"}"#);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Check {
    /// The answer contains a text.
    Contains {
        /// The text.
        text: String,
        /// Whether case matters.
        sensitivity: CaseSensitivity,
    },
    /// The answer equals a text, ignoring surrounding white space.
    Equals {
        /// The text.
        text: String,
        /// Whether case matters.
        sensitivity: CaseSensitivity,
    },
    /// The answer contains a match of a regular expression.
    Matches(Expression),
    /// The answer is JSON that matches a schema.
    Schema(SchemaCheck),
    /// The answer is JSON, and all values found at a path, at least one, equal a value.
    JsonPath {
        /// The path.
        path: JsonPath,
        /// The expected value; any value if `None`.
        equals: Option<Json>,
    },
    /// A check of the answer must fail.
    Not(Box<Check>),
    /// A tool is called.
    Called {
        /// The tool, under the agent's name for it.
        tool: String,
        /// The expected arguments; a call may have others as well.
        with: Option<Json>,
        /// The number of matching calls.
        times: CallCount,
    },
    /// A tool is not called.
    NotCalled {
        /// The tool, under the agent's name for it.
        tool: String,
        /// Restricts the check to calls with these arguments.
        with: Option<Json>,
    },
    /// Tools are called in this order; other calls may come in between.
    Order {
        /// The tools.
        tools: Vec<String>,
    },
    /// The number of model calls is limited.
    Turns {
        /// The maximum number of model calls.
        max: u32,
    },
    /// The duration is limited.
    Latency {
        /// The maximum duration in milliseconds.
        max_ms: u64,
    },
    /// The cost is limited.
    Cost {
        /// The maximum cost.
        max: Cost,
    },
    /// A judge agent finds that criteria are met. Has an effect.
    Judge {
        /// The agent: a file or a name.
        agent: String,
        /// The criteria, in words for the agent.
        criteria: String,
    },
    /// A program exits successfully. Has an effect.
    Command {
        /// The program and its arguments.
        run: Vec<String>,
        /// The time limit in milliseconds, if given.
        timeout_ms: Option<u64>,
    },
}

/// Whether a comparison of texts is case-sensitive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CaseSensitivity {
    /// Upper and lower case differ.
    #[default]
    Sensitive,
    /// Upper and lower case are equal.
    Insensitive,
}

/// A range of numbers of calls.
///
/// ```
/// use patter_core::case::CallCount;
/// assert!(CallCount::AT_LEAST_ONCE.allows(2) && !CallCount::AT_LEAST_ONCE.allows(0));
/// assert_eq!(CallCount { min: 1, max: Some(3) }.to_string(), "1 to 3 times");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallCount {
    /// The minimum.
    pub min: u32,
    /// The maximum, if there is one.
    pub max: Option<u32>,
}

/// A compiled regular expression. Searching takes time linear in the text.
///
/// ```
/// use patter_core::case::Expression;
/// assert!(Expression::parse("(?i)^hello").unwrap().is_match("Hello!"));
/// assert!(Expression::parse("(").is_err());
/// ```
#[derive(Debug, Clone)]
pub struct Expression(Regex);

/// A compiled JSON Schema.
///
/// ```
/// use patter_core::case::SchemaCheck;
/// use serde_json::json;
/// let schema = SchemaCheck::parse(json!({"type": "object", "required": ["name"]})).unwrap();
/// assert_eq!(schema.first_error(&json!({"name": "Ada"})), None);
/// assert_eq!(schema.first_error(&json!({})).unwrap(), "\"name\" is a required property");
/// ```
#[derive(Debug, Clone)]
pub struct SchemaCheck {
    schema: Json,
    validator: Arc<Validator>,
}

/// A parsed JSON path (RFC 9535).
///
/// ```
/// use patter_core::case::JsonPath;
/// let path = JsonPath::parse("$.items[*].id").unwrap();
/// assert_eq!(path.find(&serde_json::json!({"items": [{"id": 1}, {"id": 2}]})), [1, 2]);
/// assert_eq!(JsonPath::parse("items").unwrap_err(), "a path must start with `$`");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    source: String,
    path: serde_json_path::JsonPath,
}

impl CallCount {
    /// One or more calls.
    pub const AT_LEAST_ONCE: Self = Self { min: 1, max: None };

    /// Returns whether a number of calls is within the range.
    pub fn allows(self, calls: usize) -> bool {
        let calls = calls as u64;
        calls >= u64::from(self.min) && self.max.is_none_or(|max| calls <= u64::from(max))
    }
}

impl Expression {
    /// Compiles an expression, or describes what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        Regex::new(text).map(Self).map_err(|error| match &error {
            // The message shows the expression on several lines; the last line has the error.
            regex::Error::Syntax(message) => {
                let last = message.lines().last().unwrap_or_default();
                last.trim_start_matches("error: ").to_owned()
            }
            _ => "it is too large".to_owned(),
        })
    }

    /// Returns the source of the expression.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns whether a text contains a match.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

impl SchemaCheck {
    /// Compiles a schema, or describes what is wrong with it.
    pub fn parse(schema: Json) -> Result<Self, String> {
        match jsonschema::validator_for(&schema) {
            Ok(validator) => Ok(Self { schema, validator: Arc::new(validator) }),
            Err(error) if error.instance_path().as_str().is_empty() => Err(error.to_string()),
            Err(error) => Err(format!("at {}, {error}", error.instance_path())),
        }
    }

    /// Returns the schema.
    pub fn schema(&self) -> &Json {
        &self.schema
    }

    /// Returns the first error of a value, if it does not match.
    pub fn first_error(&self, value: &Json) -> Option<String> {
        let error = self.validator.iter_errors(value).next()?;
        let at = error.instance_path().as_str();
        Some(if at.is_empty() { error.to_string() } else { format!("at {at}, {error}") })
    }
}

impl JsonPath {
    /// The maximum length of a path in bytes.
    const MAX_LENGTH: usize = 500;
    /// The maximum number of certain operators. Each nested filter doubles the time to parse a path, and each `..` may
    /// visit the whole value again.
    const MAX_OPERATORS: [(&'static str, usize); 3] = [("?", 4), ("(", 20), ("..", 2)];

    /// Parses a path, or describes what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if !text.starts_with('$') {
            return Err("a path must start with `$`".to_owned());
        }
        if text.len() > Self::MAX_LENGTH {
            return Err(format!("it is longer than {} bytes", Self::MAX_LENGTH));
        }
        for (operator, max) in Self::MAX_OPERATORS {
            if text.matches(operator).count() > max {
                return Err(format!("it contains `{operator}` more than {max} times"));
            }
        }
        let path = serde_json_path::JsonPath::parse(text).map_err(|error| {
            let at = text.chars().count().min(error.position());
            // The parser often knows no more than where it stopped.
            match error.message() {
                "parser error" => format!("unexpected text at character {}", at + 1),
                message => format!("at character {}, {message}", at + 1),
            }
        })?;
        Ok(Self { source: text.to_owned(), path })
    }

    /// Returns the source of the path.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Returns all values at the path.
    pub fn find<'v>(&self, value: &'v Json) -> Vec<&'v Json> {
        self.path.query(value).all()
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl PartialEq for SchemaCheck {
    fn eq(&self, other: &Self) -> bool {
        self.schema == other.schema
    }
}

impl Display for CallCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.min, self.max) {
            (min, Some(max)) if min == max => f.write_str(&format_times(min as usize)),
            (0, Some(max)) => write!(f, "at most {}", format_times(max as usize)),
            (min, Some(max)) => write!(f, "{min} to {}", format_times(max as usize)),
            (min, None) => write!(f, "at least {}", format_times(min as usize)),
        }
    }
}

impl Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Check::Not(check) => check.fmt_negated(f),
            Check::Contains { text, sensitivity } => {
                write!(f, "contains {}{}", quote_excerpt(text), suffix(*sensitivity))
            }
            Check::Equals { text, sensitivity } => write!(f, "equals {}{}", quote_excerpt(text), suffix(*sensitivity)),
            Check::Matches(expression) => write!(f, "matches {}", quote_excerpt(expression.as_str())),
            Check::Schema(schema) => write!(f, "matches the schema {}", format_json(schema.schema())),
            Check::JsonPath { path, equals: Some(equals) } => {
                write!(f, "has {} at {}", format_json(equals), path.as_str())
            }
            Check::JsonPath { path, equals: None } => write!(f, "has a value at {}", path.as_str()),
            Check::Called { tool, with, times } => {
                write!(f, "calls {tool}{}", arguments(with.as_ref()))?;
                if *times == CallCount::AT_LEAST_ONCE { Ok(()) } else { write!(f, " {times}") }
            }
            Check::NotCalled { tool, with } => write!(f, "does not call {tool}{}", arguments(with.as_ref())),
            Check::Order { tools } => write!(f, "calls {}", tools.join(", then ")),
            Check::Turns { max: 1 } => f.write_str("takes at most 1 turn"),
            Check::Turns { max } => write!(f, "takes at most {max} turns"),
            Check::Latency { max_ms } => write!(f, "takes at most {}", format_duration(*max_ms)),
            Check::Cost { max } => write!(f, "costs at most {max}"),
            Check::Judge { agent, criteria } => write!(f, "{agent} agrees: {}", excerpt(criteria)),
            Check::Command { run, .. } => write!(f, "command succeeds: {}", excerpt(&run.join(" "))),
        }
    }
}

impl Check {
    fn fmt_negated(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Check::Contains { text, sensitivity } => {
                write!(f, "does not contain {}{}", quote_excerpt(text), suffix(*sensitivity))
            }
            Check::Equals { text, sensitivity } => {
                write!(f, "does not equal {}{}", quote_excerpt(text), suffix(*sensitivity))
            }
            Check::Matches(expression) => write!(f, "does not match {}", quote_excerpt(expression.as_str())),
            Check::Schema(schema) => write!(f, "does not match the schema {}", format_json(schema.schema())),
            Check::JsonPath { path, equals: Some(equals) } => {
                write!(f, "does not have {} at {}", format_json(equals), path.as_str())
            }
            Check::JsonPath { path, equals: None } => write!(f, "has no value at {}", path.as_str()),
            other => write!(f, "not: {other}"),
        }
    }

    /// Returns whether the check is about the answer, not about calls, time or cost.
    pub(super) fn is_about_answer(&self) -> bool {
        match self {
            Check::Contains { .. }
            | Check::Equals { .. }
            | Check::Matches(_)
            | Check::Schema(_)
            | Check::JsonPath { .. } => true,
            Check::Not(check) => check.is_about_answer(),
            Check::Called { .. }
            | Check::NotCalled { .. }
            | Check::Order { .. }
            | Check::Turns { .. }
            | Check::Latency { .. }
            | Check::Cost { .. }
            | Check::Judge { .. }
            | Check::Command { .. } => false,
        }
    }
}

fn suffix(sensitivity: CaseSensitivity) -> &'static str {
    match sensitivity {
        CaseSensitivity::Sensitive => "",
        CaseSensitivity::Insensitive => " (ignoring case)",
    }
}

fn arguments(with: Option<&Json>) -> String {
    with.map(|with| format!(" with {}", format_json(with))).unwrap_or_default()
}
