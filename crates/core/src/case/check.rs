//! What a check asks, and how that is said.

use super::show::{brief, duration, excerpt, shown, times};
use crate::provider::price::Cost;
use jsonschema::Validator;
use regex::Regex;
use serde_json::Value as Json;

use std::fmt::{self, Display};
use std::sync::Arc;

/// What must be true of what comes of a case. Shown, it says so in words.
///
/// ```
/// use patter_core::case::{Check, Times};
/// let with = serde_json::json!({"personName": "Alice"});
/// let check = Check::Called { tool: "sayHello".to_owned(), with: Some(with), times: Times::SOME };
/// assert_eq!(check.to_string(), r#"calls sayHello with {"personName":"Alice"}"#);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Check {
    /// The answer contains a text.
    Contains {
        /// The text.
        text: String,
        /// Whether capital and small letters are different.
        letters: Letters,
    },
    /// The answer is a text, apart from blanks around it.
    Equals {
        /// The text.
        text: String,
        /// Whether capital and small letters are different.
        letters: Letters,
    },
    /// A regular expression is found in the answer.
    Matches(Expression),
    /// The answer is JSON that a schema allows.
    Schema(SchemaCheck),
    /// All that a path finds in the answer, which is JSON, is a value; it finds something.
    JsonPath {
        /// The path.
        path: JsonPath,
        /// The value; anything where there is none.
        equals: Option<Json>,
    },
    /// A check of the answer that must fail.
    Not(Box<Check>),
    /// A tool is called.
    Called {
        /// The tool, by the name that the agent has for it.
        tool: String,
        /// What the arguments must have; others may stand beside.
        with: Option<Json>,
        /// How often.
        times: Times,
    },
    /// A tool is not called.
    NotCalled {
        /// The tool, by the name that the agent has for it.
        tool: String,
        /// Only calls that have these among their arguments.
        with: Option<Json>,
    },
    /// Tools are called one after the other; other calls may stand between.
    Order {
        /// The tools.
        tools: Vec<String>,
    },
    /// The model is called at most so often.
    Turns {
        /// How often.
        most: u32,
    },
    /// It takes at most so long.
    Latency {
        /// How many milliseconds.
        most_ms: u64,
    },
    /// It costs at most so much.
    Cost {
        /// How much.
        most: Cost,
    },
    /// An agent finds that criteria are met. Needs an effect.
    Judge {
        /// The agent: a file, or a name.
        agent: String,
        /// What must be so, in words for the agent.
        criteria: String,
    },
    /// A program ends well. Needs an effect.
    Command {
        /// The program and its arguments.
        run: Vec<String>,
        /// How long it may take, in milliseconds, where that is said.
        timeout_ms: Option<u64>,
    },
}

/// Whether capital and small letters are different.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Letters {
    /// They are.
    #[default]
    Exact,
    /// They are not.
    AnyCase,
}

/// How often a tool is called.
///
/// ```
/// use patter_core::case::Times;
/// assert!(Times::SOME.allows(2) && !Times::SOME.allows(0));
/// assert_eq!(Times { least: 1, most: Some(3) }.to_string(), "1 to 3 times");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Times {
    /// The least number of calls.
    pub least: u32,
    /// The most, where there is one.
    pub most: Option<u32>,
}

/// A regular expression that has been read. Takes time in proportion to the text it is looked for in.
///
/// ```
/// use patter_core::case::Expression;
/// assert!(Expression::parse("(?i)^hello").unwrap().is_match("Hello!"));
/// assert!(Expression::parse("(").is_err());
/// ```
#[derive(Debug, Clone)]
pub struct Expression(Regex);

/// A JSON Schema that has been read.
///
/// ```
/// use patter_core::case::SchemaCheck;
/// use serde_json::json;
/// let schema = SchemaCheck::parse(json!({"type": "object", "required": ["name"]})).unwrap();
/// assert_eq!(schema.wrong(&json!({"name": "Ada"})), None);
/// assert_eq!(schema.wrong(&json!({})).unwrap(), "\"name\" is a required property");
/// ```
#[derive(Debug, Clone)]
pub struct SchemaCheck {
    schema: Json,
    validator: Arc<Validator>,
}

/// A JSON path (RFC 9535) that has been read.
///
/// ```
/// use patter_core::case::JsonPath;
/// let path = JsonPath::parse("$.items[*].id").unwrap();
/// assert_eq!(path.find(&serde_json::json!({"items": [{"id": 1}, {"id": 2}]})), [1, 2]);
/// assert_eq!(JsonPath::parse("items").unwrap_err(), "a path begins with `$`");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    source: String,
    path: serde_json_path::JsonPath,
}

impl Times {
    /// Once or more.
    pub const SOME: Self = Self { least: 1, most: None };

    /// Tells whether a number of calls is right.
    pub fn allows(self, calls: usize) -> bool {
        let is_most = |most: u32| calls as u64 <= u64::from(most);
        calls as u64 >= u64::from(self.least) && self.most.is_none_or(is_most)
    }
}

impl Expression {
    /// Reads an expression, or tells what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        Regex::new(text).map(Self).map_err(|error| match &error {
            // The message draws the expression over several lines; the last says what is wrong.
            regex::Error::Syntax(drawn) => {
                let last = drawn.lines().last().unwrap_or_default();
                last.trim_start_matches("error: ").to_owned()
            }
            _ => "it is too large".to_owned(),
        })
    }

    /// Returns the expression as it was written.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Tells whether a text has something that the expression describes.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

impl SchemaCheck {
    /// Reads a schema, or tells what is wrong with it.
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

    /// Tells what is wrong with a value, if anything is: the first thing.
    pub fn wrong(&self, value: &Json) -> Option<String> {
        let error = self.validator.iter_errors(value).next()?;
        let at = error.instance_path().as_str();
        Some(if at.is_empty() { error.to_string() } else { format!("at {at}, {error}") })
    }
}

impl JsonPath {
    /// How long a path may be, in bytes.
    const LONGEST: usize = 500;
    /// How often a path may have a sign. Each filter in a filter doubles the time that it takes to read the path, and each
    /// `..` may look at everything again.
    const MOST: [(&'static str, usize); 3] = [("?", 4), ("(", 20), ("..", 2)];

    /// Reads a path, or tells what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if !text.starts_with('$') {
            return Err("a path begins with `$`".to_owned());
        }
        if text.len() > Self::LONGEST {
            return Err(format!("it is longer than {} bytes", Self::LONGEST));
        }
        for (sign, most) in Self::MOST {
            if text.matches(sign).count() > most {
                return Err(format!("it has more than {most} of `{sign}`"));
            }
        }
        let path = serde_json_path::JsonPath::parse(text).map_err(|error| {
            let at = text.chars().count().min(error.position());
            format!("at character {}, {}", at + 1, error.message())
        })?;
        Ok(Self { source: text.to_owned(), path })
    }

    /// Returns the path as it was written.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Returns all that the path finds.
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

impl Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.least, self.most) {
            (least, Some(most)) if least == most => f.write_str(&times(least as usize)),
            (0, Some(most)) => write!(f, "at most {}", times(most as usize)),
            (least, Some(most)) => write!(f, "{least} to {}", times(most as usize)),
            (least, None) => write!(f, "at least {}", times(least as usize)),
        }
    }
}

impl Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Check::Not(check) => check.negated(f),
            Check::Contains { text, letters } => write!(f, "contains {}{}", shown(text), suffix(*letters)),
            Check::Equals { text, letters } => write!(f, "equals {}{}", shown(text), suffix(*letters)),
            Check::Matches(expression) => write!(f, "matches {}", shown(expression.as_str())),
            Check::Schema(schema) => write!(f, "fits the schema {}", brief(schema.schema())),
            Check::JsonPath { path, equals: Some(equals) } => write!(f, "has {} at {}", brief(equals), path.as_str()),
            Check::JsonPath { path, equals: None } => write!(f, "has something at {}", path.as_str()),
            Check::Called { tool, with, times } => {
                write!(f, "calls {tool}{}", arguments(with.as_ref()))?;
                if *times == Times::SOME { Ok(()) } else { write!(f, " {times}") }
            }
            Check::NotCalled { tool, with } => write!(f, "does not call {tool}{}", arguments(with.as_ref())),
            Check::Order { tools } => write!(f, "calls {}", tools.join(", then ")),
            Check::Turns { most: 1 } => f.write_str("takes one turn"),
            Check::Turns { most } => write!(f, "takes at most {most} turns"),
            Check::Latency { most_ms } => write!(f, "takes at most {}", duration(*most_ms)),
            Check::Cost { most } => write!(f, "costs at most {most}"),
            Check::Judge { agent, criteria } => write!(f, "{agent} agrees: {}", excerpt(criteria)),
            Check::Command { run, .. } => write!(f, "passes {}", excerpt(&run.join(" "))),
        }
    }
}

impl Check {
    fn negated(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Check::Contains { text, letters } => write!(f, "does not contain {}{}", shown(text), suffix(*letters)),
            Check::Equals { text, letters } => write!(f, "does not equal {}{}", shown(text), suffix(*letters)),
            Check::Matches(expression) => write!(f, "does not match {}", shown(expression.as_str())),
            Check::Schema(schema) => write!(f, "does not fit the schema {}", brief(schema.schema())),
            Check::JsonPath { path, equals: Some(equals) } => {
                write!(f, "does not have {} at {}", brief(equals), path.as_str())
            }
            Check::JsonPath { path, equals: None } => write!(f, "has nothing at {}", path.as_str()),
            other => write!(f, "not: {other}"),
        }
    }

    /// Tells whether the check is of what the agent answered, and not of how it came to that.
    pub(super) fn is_of_answer(&self) -> bool {
        match self {
            Check::Contains { .. }
            | Check::Equals { .. }
            | Check::Matches(_)
            | Check::Schema(_)
            | Check::JsonPath { .. } => true,
            Check::Not(check) => check.is_of_answer(),
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

fn suffix(letters: Letters) -> &'static str {
    match letters {
        Letters::Exact => "",
        Letters::AnyCase => " in capital or small letters",
    }
}

fn arguments(with: Option<&Json>) -> String {
    with.map(|with| format!(" with {}", brief(with))).unwrap_or_default()
}
