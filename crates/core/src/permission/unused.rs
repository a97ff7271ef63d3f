//! Rules that never apply, usually because a name is misspelt.

use super::{Rule, ToolPattern};
use crate::name::FullName;
use crate::text::nearest;
use crate::types::definition::Definition;
use std::fmt;

/// A rule that never applies, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnusedRule {
    /// It matches no tool.
    UnknownTool {
        /// The text of the rule.
        rule: String,
        /// A similar name.
        nearest: Option<String>,
    },
    /// No tool that it matches has a parameter that a condition is about.
    UnknownArgument {
        /// The text of the rule.
        rule: String,
        /// The name in the condition.
        argument: String,
        /// The parameter with a similar name.
        nearest: Option<String>,
    },
}

impl Rule {
    /// Returns why the rule never applies to any of these tools, or `None` if it may apply.
    ///
    /// ```
    /// use patter_core::{types::definition::Definition, name::FullName, permission::Rule};
    /// let tool = Definition::new("fetch", "Reads a page", "(url::Text)==>(::Text)").unwrap();
    /// let name = FullName::parse("fetch").unwrap();
    /// let unused = |text: &str| {
    ///     Rule::parse(text, "here").unwrap().unused([(&name, &tool)]).map(|unused| unused.to_string())
    /// };
    /// assert_eq!(unused("deny fecth").unwrap(), "`deny fecth` matches no tool");
    /// assert_eq!(
    ///     unused("deny fetch when urll is 'x'").unwrap(),
    ///     "no tool matched by `deny fetch when urll is \"x\"` has the parameter `urll`"
    /// );
    /// assert_eq!(unused("deny fetch when url is 'x'"), None);
    /// ```
    pub fn unused<'t>(&self, tools: impl IntoIterator<Item = (&'t FullName, &'t Definition)>) -> Option<UnusedRule> {
        let tools: Vec<_> = tools.into_iter().collect();
        let matched: Vec<_> = tools.iter().filter(|(name, _)| self.matches_tool(name)).map(|(_, tool)| *tool).collect();
        let rule = self.to_string();
        if matched.is_empty() {
            let written = match &self.tools {
                ToolPattern::All => return None,
                ToolPattern::Within(name) | ToolPattern::One(name) => name,
            };
            let near = nearest(written, tools.iter().map(|(name, _)| name.as_str()));
            return Some(UnusedRule::UnknownTool { rule, nearest: near.map(str::to_owned) });
        }
        let parameters =
            || matched.iter().flat_map(|tool| &tool.signature.parameters).map(|parameter| parameter.name.as_str());
        self.conditions.iter().find_map(|condition| {
            let argument = condition.argument.split('.').next().unwrap_or_default();
            let is_known = parameters().any(|name| name == argument);
            (!is_known).then(|| UnusedRule::UnknownArgument {
                rule: rule.clone(),
                argument: argument.to_owned(),
                nearest: nearest(argument, parameters()).map(str::to_owned),
            })
        })
    }
}

impl UnusedRule {
    /// Returns a hint on how to fix the rule.
    pub fn hint(&self) -> String {
        match self {
            UnusedRule::UnknownTool { nearest: Some(near), .. }
            | UnusedRule::UnknownArgument { nearest: Some(near), .. } => {
                format!("did you mean `{near}`?")
            }
            UnusedRule::UnknownTool { .. } => "run `patter tools` to list the tools with their full names".to_owned(),
            UnusedRule::UnknownArgument { .. } => "run `patter why` to see the parameters of a tool".to_owned(),
        }
    }
}

impl fmt::Display for UnusedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnusedRule::UnknownTool { rule, .. } => write!(f, "`{rule}` matches no tool"),
            UnusedRule::UnknownArgument { rule, argument, .. } => {
                write!(f, "no tool matched by `{rule}` has the parameter `{argument}`")
            }
        }
    }
}
