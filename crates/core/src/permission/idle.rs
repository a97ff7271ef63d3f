//! Rules that can never decide anything, because nothing is called so.

use super::{Names, Rule};
use crate::name::FullName;
use crate::text::nearest;
use crate::types::definition::Definition;
use std::fmt;

/// Why a rule can never decide anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Idle {
    /// It names no tool.
    Tool {
        /// The rule, as it is written.
        rule: String,
        /// A name that looks like the one it has.
        nearest: Option<String>,
    },
    /// No tool that it names takes the argument of a condition.
    Argument {
        /// The rule, as it is written.
        rule: String,
        /// The argument.
        argument: String,
        /// A parameter that looks like it.
        nearest: Option<String>,
    },
}

impl Rule {
    /// Tells why the rule can never decide anything, among these tools; `None` if it can.
    ///
    /// ```
    /// use patter_core::{types::definition::Definition, name::FullName, permission::Rule};
    /// let tool = Definition::new("fetch", "Reads a page", "(url::Text)==>(::Text)").unwrap();
    /// let name = FullName::parse("fetch").unwrap();
    /// let idle = |text: &str| Rule::parse(text, "here").unwrap().idle([(&name, &tool)]).map(|idle| idle.to_string());
    /// assert_eq!(idle("deny fecth").unwrap(), "`deny fecth` names no tool");
    /// assert_eq!(idle("deny fetch when urll is 'x'").unwrap(), "no tool of `deny fetch when urll is \"x\"` takes `urll`");
    /// assert_eq!(idle("deny fetch when url is 'x'"), None);
    /// ```
    pub fn idle<'t>(&self, tools: impl IntoIterator<Item = (&'t FullName, &'t Definition)>) -> Option<Idle> {
        let tools: Vec<_> = tools.into_iter().collect();
        let named: Vec<_> = tools.iter().filter(|(name, _)| self.names_tool(name)).map(|(_, tool)| *tool).collect();
        let rule = self.to_string();
        if named.is_empty() {
            let written = match &self.names {
                Names::All => return None,
                Names::Within(name) | Names::One(name) => name,
            };
            let near = nearest(written, tools.iter().map(|(name, _)| name.as_str()));
            return Some(Idle::Tool { rule, nearest: near.map(str::to_owned) });
        }
        let parameters =
            || named.iter().flat_map(|tool| &tool.signature.parameters).map(|parameter| parameter.name.as_str());
        self.conditions.iter().find_map(|condition| {
            let argument = condition.argument.split('.').next().unwrap_or_default();
            let is_taken = parameters().any(|name| name == argument);
            (!is_taken).then(|| Idle::Argument {
                rule: rule.clone(),
                argument: argument.to_owned(),
                nearest: nearest(argument, parameters()).map(str::to_owned),
            })
        })
    }
}

impl Idle {
    /// Returns what to do about it.
    pub fn hint(&self) -> String {
        match self {
            Idle::Tool { nearest: Some(near), .. } | Idle::Argument { nearest: Some(near), .. } => {
                format!("did you mean `{near}`?")
            }
            Idle::Tool { .. } => "it decides nothing; `patter tools` lists the tools by their full names".to_owned(),
            Idle::Argument { .. } => "the condition never holds; `patter why` shows what a tool takes".to_owned(),
        }
    }
}

impl fmt::Display for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Idle::Tool { rule, .. } => write!(f, "`{rule}` names no tool"),
            Idle::Argument { rule, argument, .. } => write!(f, "no tool of `{rule}` takes `{argument}`"),
        }
    }
}
