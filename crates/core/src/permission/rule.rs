//! Permission rules, such as `deny fs/writeFile when path matches "/etc/*"`.

use super::{Condition, Decision};
use crate::name::FullName;
use serde_json::{Map, Value as Json};
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// A permission rule: a decision on the calls of some tools, under some conditions.
///
/// ```
/// use patter_core::permission::{Decision, Rule};
/// let rule = Rule::parse(r#"ask shop/refund when amount > 100"#, "patter.toml").unwrap();
/// assert_eq!(rule.decision, Decision::Ask);
/// assert_eq!(rule.to_string(), "ask shop/refund when amount > 100");
/// assert_eq!(Rule::with_decision(Decision::Deny, "fs/*", "agent.gram").unwrap().to_string(), "deny fs/*");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// The decision on the calls.
    pub decision: Decision,
    /// The tools that the rule is about.
    pub tools: ToolPattern,
    /// The conditions on the arguments, all of which must be met.
    pub conditions: Vec<Condition>,
    /// Where the rule comes from, for people.
    pub origin: Arc<str>,
}

/// A pattern of tool names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolPattern {
    /// All tools: `*`.
    All,
    /// All tools of a toolbox or an organisation: `fs/*`.
    Within(String),
    /// A single name.
    One(String),
    /// The tools of a toolkit.
    Toolkit {
        /// The name of the toolkit.
        name: String,
        /// The names of its tools.
        tools: Vec<String>,
    },
}

/// An error in a permission rule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RuleError {
    /// It does not start with a decision.
    #[error("{}", invalid_decision(.0))]
    Decision(String),
    /// The tool name is invalid.
    #[error("{}", invalid_tools(.0))]
    Tools(String),
    /// A condition is invalid.
    #[error("`{condition}` is not a valid condition in the rule `{rule}`")]
    Condition {
        /// The invalid part.
        condition: String,
        /// The rule.
        rule: String,
    },
}

fn invalid_decision(word: &str) -> String {
    match word {
        "" => "the rule is empty".to_owned(),
        _ => format!("a rule must start with `allow`, `ask` or `deny`, not `{word}`"),
    }
}

fn invalid_tools(pattern: &str) -> String {
    match pattern {
        "" => "the rule names no tools".to_owned(),
        _ => format!("`{pattern}` is not a tool name or pattern"),
    }
}

impl RuleError {
    /// Returns a hint on how to fix the error.
    pub fn hint(&self) -> &'static str {
        match self {
            RuleError::Decision(_) => "for example, `deny fs/writeFile`",
            RuleError::Tools(_) => "use a full name, such as `fs/writeFile`, or all tools of a toolbox, such as `fs/*`",
            RuleError::Condition { .. } => {
                "for example, `when path matches \"/etc/*\"` or `when amount > 100 and currency is \"EUR\"`"
            }
        }
    }
}

impl Rule {
    /// Parses a rule that starts with its decision. The origin is where the rule comes from, for people.
    pub fn parse(text: &str, origin: impl Into<Arc<str>>) -> Result<Self, RuleError> {
        let (word, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
        let decision = match word {
            "allow" => Decision::Allow,
            "ask" => Decision::Ask,
            "deny" => Decision::Deny,
            other => return Err(RuleError::Decision(other.to_owned())),
        };
        Self::with_decision(decision, rest, origin)
    }

    /// Parses a rule whose decision is known, as in `deny: ["fs/writeFile when path matches '/etc/*'"]`.
    pub fn with_decision(decision: Decision, text: &str, origin: impl Into<Arc<str>>) -> Result<Self, RuleError> {
        let text = text.trim();
        let invalid = |condition: &str| RuleError::Condition {
            condition: condition.trim().to_owned(),
            rule: format!("{} {text}", decision.name()),
        };
        let (tools, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let tools = ToolPattern::parse(tools).ok_or_else(|| RuleError::Tools(tools.to_owned()))?;
        let rest = rest.trim();
        let conditions = match rest.strip_prefix("when") {
            None if rest.is_empty() => Vec::new(),
            Some(conditions) if conditions.starts_with(char::is_whitespace) => {
                Condition::parse_all(conditions).map_err(|part| invalid(&part))?
            }
            _ => return Err(invalid(rest)),
        };
        Ok(Self { decision, tools, conditions, origin: origin.into() })
    }

    /// Returns whether the rule is about a tool.
    ///
    /// A name without a toolbox is a full name. In `ask` and `deny` rules it also matches the tools of that name in any
    /// toolbox, so that no tool escapes them by being in a toolbox.
    pub fn matches_tool(&self, tool: &FullName) -> bool {
        match &self.tools {
            ToolPattern::All => true,
            ToolPattern::Within(namespace) => {
                tool.as_str().strip_prefix(namespace.as_str()).is_some_and(|rest| rest.starts_with('/'))
            }
            ToolPattern::One(name) => self.matches_name(name, tool),
            // A tool with the name of the toolkit does not escape either.
            ToolPattern::Toolkit { name, tools } => {
                tools.iter().any(|name| self.matches_name(name, tool))
                    || (self.decision > Decision::Allow && self.matches_name(name, tool))
            }
        }
    }

    fn matches_name(&self, name: &str, tool: &FullName) -> bool {
        tool.as_str() == name || (self.decision > Decision::Allow && tool.tool_name() == name)
    }

    /// Returns whether the arguments meet all conditions.
    pub fn matches_arguments(&self, arguments: &Map<String, Json>) -> bool {
        self.conditions.iter().all(|condition| condition.is_met(arguments, self.decision))
    }
}

impl ToolPattern {
    fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(ToolPattern::All);
        }
        if let Some(namespace) = text.strip_suffix("/*") {
            return FullName::join(namespace, "x").ok().map(|_| ToolPattern::Within(namespace.to_owned()));
        }
        FullName::parse(text).ok().map(|name| ToolPattern::One(name.as_str().to_owned()))
    }
}

/// Formats the rule in the form in which it is parsed, without its origin.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.decision.name(), self.tools)?;
        for (index, condition) in self.conditions.iter().enumerate() {
            write!(f, " {} {condition}", if index == 0 { "when" } else { "and" })?;
        }
        Ok(())
    }
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ToolPattern::All => f.write_str("*"),
            ToolPattern::Within(namespace) => write!(f, "{namespace}/*"),
            ToolPattern::One(name) | ToolPattern::Toolkit { name, .. } => f.write_str(name),
        }
    }
}
