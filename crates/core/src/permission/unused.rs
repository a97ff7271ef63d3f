//! Rules that never apply, usually because a name is misspelt.

use super::{Rule, ToolPattern};
use crate::name::FullName;
use crate::text::nearest;
use std::fmt;

/// A tool that rules may be about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownTool {
    /// The full name.
    pub name: FullName,
    /// The names of the parameters; `None` if they are not known.
    pub parameters: Option<Vec<String>>,
}

/// A rule that never applies.
#[derive(Debug, Clone, PartialEq)]
pub struct UnusedRule {
    /// The rule.
    pub rule: Rule,
    /// The reason.
    pub reason: UnusedReason,
}

/// The reason why a rule never applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnusedReason {
    /// It matches no tool.
    UnknownTool {
        /// A similar name or pattern.
        nearest: Option<String>,
    },
    /// No tool that it matches has a parameter that a condition is about.
    UnknownArgument {
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
    /// use patter_core::{name::FullName, permission::{KnownTool, Rule}};
    /// let tools = [KnownTool { name: FullName::parse("web/fetch").unwrap(), parameters: Some(vec!["url".to_owned()]) }];
    /// let unused = |text: &str| Rule::parse(text, "here").unwrap().unused(&tools).map(|unused| unused.to_string());
    /// assert_eq!(unused("deny fecth").unwrap(), "`deny fecth` matches no tool");
    /// assert_eq!(
    ///     unused("deny fetch when urll is 'x'").unwrap(),
    ///     "no tool matched by `deny fetch when urll is \"x\"` has the parameter `urll`"
    /// );
    /// assert_eq!(unused("deny fetch when url is 'x'"), None);
    /// assert_eq!(unused("deny web/*"), None);
    /// ```
    pub fn unused(&self, tools: &[KnownTool]) -> Option<UnusedRule> {
        let matched: Vec<_> = tools.iter().filter(|tool| self.matches_tool(&tool.name)).collect();
        let unused = |reason| Some(UnusedRule { rule: self.clone(), reason });
        if matched.is_empty() && self.tools != ToolPattern::All {
            return unused(UnusedReason::UnknownTool { nearest: self.tools.nearest(tools) });
        }
        // A tool whose parameters are not known may have any.
        let known: Option<Vec<_>> = matched.iter().map(|tool| tool.parameters.as_deref()).collect();
        let known = known?;
        let parameters = || known.iter().copied().flatten().map(String::as_str);
        let argument = |text: &str| text.split('.').next().unwrap_or_default().to_owned();
        let mut arguments = self.conditions.iter().map(|condition| argument(&condition.argument));
        let argument = arguments.find(|argument| !known.is_empty() && !parameters().any(|name| name == argument))?;
        let nearest = nearest(&argument, parameters()).map(str::to_owned);
        unused(UnusedReason::UnknownArgument { argument, nearest })
    }
}

impl ToolPattern {
    /// Returns the pattern for known tools that this one is most likely a misspelling of.
    fn nearest(&self, tools: &[KnownTool]) -> Option<String> {
        let names = || tools.iter().map(|tool| &tool.name);
        match self {
            ToolPattern::All | ToolPattern::Toolkit { .. } => None,
            ToolPattern::Within(written) => {
                let toolboxes = names().filter_map(FullName::namespace);
                let organisations = toolboxes.clone().filter_map(|toolbox| toolbox.split('/').next());
                nearest(written, toolboxes.chain(organisations)).map(|near| format!("{near}/*"))
            }
            ToolPattern::One(written) => {
                let full = nearest(written, names().map(FullName::as_str));
                let own = written.rsplit('/').next().unwrap_or(written);
                // A tool of this name in another toolbox, or a tool that is named without its toolbox.
                let elsewhere = || names().find(|name| name.tool_name() == own && written.contains('/'));
                let bare =
                    || names().find(|name| Some(name.tool_name()) == nearest(own, names().map(FullName::tool_name)));
                full.or_else(|| elsewhere().or_else(bare).map(FullName::as_str)).map(str::to_owned)
            }
        }
    }
}

impl UnusedRule {
    /// Returns a hint on how to fix the rule.
    pub fn hint(&self) -> String {
        match &self.reason {
            UnusedReason::UnknownTool { nearest: Some(near) }
            | UnusedReason::UnknownArgument { nearest: Some(near), .. } => {
                format!("did you mean `{near}`?")
            }
            UnusedReason::UnknownTool { .. } => "run `patter tools` to list the tools with their full names".to_owned(),
            UnusedReason::UnknownArgument { .. } => "run `patter why` to see the parameters of a tool".to_owned(),
        }
    }
}

impl fmt::Display for UnusedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = &self.rule;
        match &self.reason {
            UnusedReason::UnknownTool { .. } => write!(f, "`{rule}` matches no tool"),
            UnusedReason::UnknownArgument { argument, .. } => {
                write!(f, "no tool matched by `{rule}` has the parameter `{argument}`")
            }
        }
    }
}
