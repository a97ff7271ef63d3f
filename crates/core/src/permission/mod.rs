//! Permissions: which calls are made, which are asked for first, which are refused.
//!
//! Permissions are rules over the full names of tools, passed in, never ambient. The strictest rule that matches a call
//! decides; a call that no rule matches is refused.

mod condition;
mod idle;
mod rule;

pub use condition::{Condition, Test};
pub use idle::Idle;
pub use rule::{Names, Rule, RuleError};

use crate::name::FullName;
use indexmap::IndexSet;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use std::fmt;

/// What becomes of a call. A later one is stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It is made.
    Allow,
    /// It is made if someone approves.
    Ask,
    /// It is refused.
    Deny,
}

/// A decision, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict<'p> {
    /// What becomes of the call.
    pub decision: Decision,
    /// What decided it.
    pub because: Because<'p>,
}

/// What decided on a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Because<'p> {
    /// A rule.
    Rule(&'p Rule),
    /// The agent declares the tool, and no rule says when it is allowed.
    Declared,
    /// Nothing matched.
    NothingMatched,
}

/// The permissions of a run: the tools that its agent declares, and rules.
///
/// ```
/// use patter_core::{name::FullName, permission::{Decision, Permissions, Rule}};
/// use serde_json::json;
/// let write = FullName::parse("fs/writeFile").unwrap();
/// let permissions = Permissions::declared([write.clone()])
///     .with(Rule::parse("ask fs/*", "patter.toml").unwrap())
///     .with(Rule::parse(r#"deny fs/writeFile when path matches "/etc/*""#, "patter.toml").unwrap());
/// let decide = |path: &str| permissions.decide(&write, json!({"path": path}).as_object().unwrap()).decision;
/// assert_eq!(decide("notes.txt"), Decision::Ask);
/// assert_eq!(decide("/etc/passwd"), Decision::Deny);
/// assert_eq!(decide("/tmp/../etc/passwd"), Decision::Deny);
/// let other = FullName::parse("fs/readFile").unwrap();
/// assert_eq!(Permissions::default().decide(&other, &Default::default()).decision, Decision::Deny);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Permissions {
    declared: IndexSet<FullName>,
    rules: Vec<Rule>,
}

impl Permissions {
    /// Starts from the tools that an agent declares: they are allowed, unless rules say more of them.
    pub fn declared(tools: impl IntoIterator<Item = FullName>) -> Self {
        Self { declared: tools.into_iter().collect(), rules: Vec::new() }
    }

    /// Adds a rule.
    #[must_use]
    pub fn with(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Adds rules.
    #[must_use]
    pub fn with_all(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.rules.extend(rules);
        self
    }

    /// Returns the rules, in the order in which they were added.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Decides on a call. The arguments are those with the defaults put in.
    ///
    /// A tool that the agent declares is allowed without a rule; if rules say when it is allowed, then only when one of
    /// them matches.
    pub fn decide(&self, tool: &FullName, arguments: &Map<String, Json>) -> Verdict<'_> {
        let naming = self.rules.iter().filter(|rule| rule.names_tool(tool));
        let matching = naming.clone().filter(|rule| rule.holds(arguments));
        // Of equally strict rules the first one is told.
        let strictest = matching.reduce(|first, other| if other.decision > first.decision { other } else { first });
        if let Some(rule) = strictest {
            return Verdict { decision: rule.decision, because: Because::Rule(rule) };
        }
        let mut allowing = naming.filter(|rule| rule.decision == Decision::Allow);
        if self.declared.contains(tool) && allowing.next().is_none() {
            return Verdict { decision: Decision::Allow, because: Because::Declared };
        }
        Verdict { decision: Decision::Deny, because: Because::NothingMatched }
    }

    /// Returns the rules that may decide on calls of a tool, whatever their arguments.
    pub fn naming(&self, tool: &FullName) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(|rule| rule.names_tool(tool))
    }
}

impl Decision {
    /// Returns the word as it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Decision::Allow => "allow",
            Decision::Ask => "ask",
            Decision::Deny => "deny",
        }
    }
}

impl fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Because::Rule(rule) => write!(f, "`{rule}` in {}", rule.origin),
            Because::Declared => f.write_str("the agent declares it"),
            Because::NothingMatched => f.write_str("no rule allows it"),
        }
    }
}
