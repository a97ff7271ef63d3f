//! Rules: `deny fs/writeFile when path matches "/etc/*"`.

use super::{Condition, Decision};
use crate::name::FullName;
use serde_json::{Map, Value as Json};
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// A rule: what becomes of the calls of some tools, under some conditions.
///
/// ```
/// use patter_core::permission::{Decision, Rule};
/// let rule = Rule::parse(r#"ask shop/refund when amount > 100"#, "patter.toml").unwrap();
/// assert_eq!(rule.decision, Decision::Ask);
/// assert_eq!(rule.to_string(), "ask shop/refund when amount > 100");
/// assert_eq!(Rule::of(Decision::Deny, "fs/*", "agent.gram").unwrap().to_string(), "deny fs/*");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// What becomes of the calls.
    pub decision: Decision,
    /// Which tools it is about.
    pub names: Names,
    /// What must hold for the arguments, all of it.
    pub conditions: Vec<Condition>,
    /// Where the rule stands, for people.
    pub origin: Arc<str>,
}

/// The tools that a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Names {
    /// All tools: `*`.
    All,
    /// All tools of a toolbox or of an organisation: `fs/*`.
    Within(String),
    /// One name.
    One(String),
}

/// Why a text is no rule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RuleError {
    /// It does not begin with a decision.
    #[error("a rule begins with `allow`, `ask` or `deny`, not with `{0}`")]
    Decision(String),
    /// It names no tools.
    #[error("`{0}` names no tools")]
    Names(String),
    /// What follows the names is no condition.
    #[error("`{0}` is no condition")]
    Condition(String),
}

impl RuleError {
    /// Returns what to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            RuleError::Decision(_) => "write, for example, `deny fs/writeFile`",
            RuleError::Names(_) => "write a full name, as in `fs/writeFile`, or all tools of a toolbox, as in `fs/*`",
            RuleError::Condition(_) => {
                "write, for example, `when path matches \"/etc/*\"` or `when amount > 100 and currency is \"EUR\"`"
            }
        }
    }
}

impl Rule {
    /// Reads a rule that begins with its decision. The origin says where it stands, for people.
    pub fn parse(text: &str, origin: impl Into<Arc<str>>) -> Result<Self, RuleError> {
        let (word, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
        let decision = match word {
            "allow" => Decision::Allow,
            "ask" => Decision::Ask,
            "deny" => Decision::Deny,
            other => return Err(RuleError::Decision(other.to_owned())),
        };
        Self::of(decision, rest, origin)
    }

    /// Reads a rule whose decision is known, as in `deny: ["fs/writeFile when path matches '/etc/*'"]`.
    pub fn of(decision: Decision, text: &str, origin: impl Into<Arc<str>>) -> Result<Self, RuleError> {
        let text = text.trim();
        let (names, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let names = Names::parse(names).ok_or_else(|| RuleError::Names(names.to_owned()))?;
        let rest = rest.trim();
        let conditions = match rest.strip_prefix("when") {
            None if rest.is_empty() => Vec::new(),
            Some(conditions) if conditions.starts_with(char::is_whitespace) => {
                Condition::parse_all(conditions).map_err(|part| RuleError::Condition(part.trim().to_owned()))?
            }
            _ => return Err(RuleError::Condition(rest.to_owned())),
        };
        Ok(Self { decision, names, conditions, origin: origin.into() })
    }

    /// Tells whether the rule is about a tool.
    ///
    /// A name without a toolbox is the full name of a tool. Rules that ask or deny also take it for the name within any
    /// toolbox, so that none escapes them by its toolbox.
    pub fn names_tool(&self, tool: &FullName) -> bool {
        match &self.names {
            Names::All => true,
            Names::Within(namespace) => {
                tool.as_str().strip_prefix(namespace.as_str()).is_some_and(|rest| rest.starts_with('/'))
            }
            Names::One(name) => {
                tool.as_str() == name || (self.decision > Decision::Allow && tool.own() == name.as_str())
            }
        }
    }

    /// Tells whether the arguments are such that the rule applies.
    pub fn holds(&self, arguments: &Map<String, Json>) -> bool {
        self.conditions.iter().all(|condition| condition.holds(arguments, self.decision))
    }
}

impl Names {
    fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Names::All);
        }
        if let Some(namespace) = text.strip_suffix("/*") {
            return FullName::within(namespace, "x").ok().map(|_| Names::Within(namespace.to_owned()));
        }
        FullName::parse(text).ok().map(|name| Names::One(name.as_str().to_owned()))
    }
}

/// Writes the rule as it is read, without its origin.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.decision.name(), self.names)?;
        for (index, condition) in self.conditions.iter().enumerate() {
            write!(f, " {} {condition}", if index == 0 { "when" } else { "and" })?;
        }
        Ok(())
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Names::All => f.write_str("*"),
            Names::Within(namespace) => write!(f, "{namespace}/*"),
            Names::One(name) => f.write_str(name),
        }
    }
}
