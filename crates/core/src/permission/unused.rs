//! Rules that never apply, usually because a name is misspelt.

use super::condition::splits;
use super::{Condition, Rule, ToolPattern};
use crate::name::FullName;
use crate::text::nearest;
use crate::types::signature::{Field, Records, Shape, Type};
use std::borrow::Cow;
use std::fmt;

/// A tool that rules may be about.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownTool<'t> {
    /// The full name.
    pub name: FullName,
    /// The parameters; `None` if they are not known.
    pub parameters: Option<Cow<'t, [Field]>>,
    /// The record types that the parameters refer to.
    pub records: &'t Records,
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
#[derive(Debug, Clone, PartialEq)]
pub enum UnusedReason {
    /// It matches no tool.
    UnknownTool {
        /// A similar name or pattern.
        nearest: Option<String>,
    },
    /// No tool that it matches has a parameter that a condition is about.
    UnknownArgument {
        /// The name in the condition, as far as it is not known.
        argument: String,
        /// The parameter with a similar name.
        nearest: Option<String>,
    },
    /// No value of a parameter can meet a condition.
    ImpossibleCondition {
        /// The condition.
        condition: Condition,
        /// The type of the parameter.
        ty: Box<Type>,
    },
}

/// What the parameters of tools say about the path of a condition.
enum Target<'t> {
    /// The path leads to values of this type.
    Value(&'t Type),
    /// The path may lead to any value.
    Unknown,
    /// No field has this name. Both are paths from the parameter.
    Missing { path: String, fields: Vec<String> },
}

impl Rule {
    /// Returns why the rule never applies to any of these tools, or `None` if it may apply.
    ///
    /// ```
    /// use patter_core::{name::FullName, permission::{KnownTool, Rule}, types::signature::{Records, Signature}};
    /// let signature = Signature::parse("(url::Text)==>(pages::Array {elementType: 'Int'})==>(::Text)").unwrap();
    /// let (records, parameters) = (Records::default(), Some(signature.parameters.into()));
    /// let tools = [KnownTool { name: FullName::parse("web/fetch").unwrap(), parameters, records: &records }];
    /// let unused = |text: &str| Rule::parse(text, "here").unwrap().unused(&tools).map(|unused| unused.to_string());
    /// assert_eq!(unused("deny fecth").unwrap(), "`deny fecth` matches no tool");
    /// assert_eq!(
    ///     unused("deny fetch when urll is 'x'").unwrap(),
    ///     "no tool matched by `deny fetch when urll is \"x\"` has the parameter `urll`"
    /// );
    /// assert_eq!(unused("deny fetch when url > 5").unwrap(), "`deny fetch when url > 5` never applies: `url` is a Text");
    /// assert_eq!(unused("deny fetch when url is 'x' and pages > 5"), None);
    /// assert_eq!(unused("deny web/*"), None);
    /// ```
    pub fn unused(&self, tools: &[KnownTool<'_>]) -> Option<UnusedRule> {
        let matched: Vec<_> = tools.iter().filter(|tool| self.matches_tool(&tool.name)).collect();
        let unused = |reason| Some(UnusedRule { rule: self.clone(), reason });
        if matched.is_empty() && self.tools != ToolPattern::All {
            return unused(UnusedReason::UnknownTool { nearest: self.tools.nearest(tools) });
        }
        if matched.is_empty() {
            return None;
        }
        unused(self.conditions.iter().find_map(|condition| condition.unused(&matched))?)
    }
}

impl Condition {
    /// Returns why the condition is not met by any call of these tools, or `None` if it may be.
    fn unused(&self, tools: &[&KnownTool<'_>]) -> Option<UnusedReason> {
        let mut targets = Vec::new();
        for tool in tools {
            match &tool.parameters {
                Some(parameters) => find_targets(parameters, &self.argument, "", tool.records, &mut targets),
                // A tool whose parameters are not known may have any.
                None => return None,
            }
        }
        let is_possible = targets.iter().any(|target| match target {
            Target::Value(ty) => self.can_be_met(ty),
            Target::Unknown => true,
            Target::Missing { .. } => false,
        });
        if is_possible {
            return None;
        }
        let impossible = targets.iter().find_map(|target| match target {
            Target::Value(ty) => Some(Box::new((*ty).clone())),
            Target::Unknown | Target::Missing { .. } => None,
        });
        if let Some(ty) = impossible {
            return Some(UnusedReason::ImpossibleCondition { condition: self.clone(), ty });
        }
        // The longest known part of the path is the one that was meant.
        let depth = |path: &str| path.matches('.').count();
        let missing = targets.iter().filter_map(|target| match target {
            Target::Missing { path, .. } => Some(path),
            Target::Value(_) | Target::Unknown => None,
        });
        let argument = missing.max_by_key(|path| depth(path)).cloned().unwrap_or_else(|| self.argument.clone());
        let fields = targets.iter().flat_map(|target| match target {
            Target::Missing { path, fields } if depth(path) == depth(&argument) => fields.as_slice(),
            _ => &[],
        });
        let nearest = nearest(&argument, fields.map(String::as_str)).map(str::to_owned);
        Some(UnusedReason::UnknownArgument { argument, nearest })
    }
}

/// Finds what a path leads to, through lists to their elements.
fn find_targets<'t>(
    fields: &'t [Field],
    path: &str,
    parent: &str,
    records: &'t Records,
    targets: &mut Vec<Target<'t>>,
) {
    let full = |name: &str| if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") };
    let mut is_missing = true;
    for (name, rest) in splits(path) {
        let Some(field) = fields.iter().find(|field| field.name == name) else { continue };
        is_missing = false;
        let mut ty = &field.ty;
        while let Shape::Array(item) = &ty.shape {
            ty = item;
        }
        let inner = match &ty.shape {
            Shape::Object(fields) => fields.as_slice(),
            Shape::Record(name) => records.get(name).map(|record| record.fields.as_slice()).unwrap_or_default(),
            _ => &[],
        };
        match (&ty.shape, rest) {
            (_, None) => targets.push(Target::Value(ty)),
            (Shape::Any | Shape::Schema(_), Some(_)) => targets.push(Target::Unknown),
            (Shape::Object(_) | Shape::Record(_), Some(_)) if inner.is_empty() => targets.push(Target::Unknown),
            (_, Some(rest)) => find_targets(inner, rest, &full(name), records, targets),
        }
    }
    if is_missing {
        let name = path.split('.').next().unwrap_or(path);
        let fields = fields.iter().map(|field| full(&field.name)).collect();
        targets.push(Target::Missing { path: full(name), fields });
    }
}

impl ToolPattern {
    /// Returns the pattern for known tools that this one is most likely a misspelling of.
    fn nearest(&self, tools: &[KnownTool<'_>]) -> Option<String> {
        let names = || tools.iter().map(|tool| &tool.name);
        match self {
            ToolPattern::All | ToolPattern::Toolkit { .. } => None,
            ToolPattern::Within(written) => {
                let toolboxes = names().filter_map(FullName::namespace);
                let organisations = toolboxes.clone().filter_map(|toolbox| toolbox.split('/').next());
                nearest(written, toolboxes.chain(organisations)).map(|near| format!("{near}/*"))
            }
            ToolPattern::One(written) if names().filter_map(FullName::namespace).any(|toolbox| toolbox == written) => {
                Some(format!("{written}/*"))
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
    /// Returns the message about something that is written like a rule, such as the calls of a hook.
    pub fn message_about(&self, rule: &dyn fmt::Display) -> String {
        match &self.reason {
            UnusedReason::UnknownTool { .. } => format!("`{rule}` matches no tool"),
            UnusedReason::UnknownArgument { argument, .. } => {
                format!("no tool matched by `{rule}` has the parameter `{argument}`")
            }
            UnusedReason::ImpossibleCondition { condition, ty } => {
                let argument = &condition.argument;
                let kind = match (&ty.facets.allowed, &ty.shape) {
                    (Some(_), _) => "never has such a value",
                    (None, Shape::Text) => "is a Text",
                    (None, Shape::Integer | Shape::Number) => "is a number",
                    (None, Shape::Boolean) => "is a Bool",
                    _ => "is an object",
                };
                format!("`{rule}` never applies: `{argument}` {kind}")
            }
        }
    }

    /// Returns a hint on how to fix the rule.
    pub fn hint(&self) -> String {
        match &self.reason {
            UnusedReason::UnknownTool { nearest: Some(near) }
            | UnusedReason::UnknownArgument { nearest: Some(near), .. } => {
                format!("did you mean `{near}`?")
            }
            UnusedReason::UnknownTool { .. } => "run `patter tools` to list the tools with their full names".to_owned(),
            UnusedReason::UnknownArgument { .. } => "run `patter why` to see the parameters of a tool".to_owned(),
            UnusedReason::ImpossibleCondition { ty, .. } => match (&ty.facets.allowed, &ty.shape) {
                (Some(allowed), _) => {
                    let allowed: Vec<_> = allowed.iter().map(ToString::to_string).collect();
                    format!("the possible values are {}", allowed.join(", "))
                }
                (None, Shape::Text) => "compare it with text in quotes".to_owned(),
                (None, Shape::Integer | Shape::Number) => "compare it with a number".to_owned(),
                (None, Shape::Boolean) => "compare it with `true` or `false`".to_owned(),
                _ => "name a field of it, as in `order.total > 100`".to_owned(),
            },
        }
    }
}

impl fmt::Display for UnusedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message_about(&self.rule))
    }
}
