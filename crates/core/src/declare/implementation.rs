//! Options that all tools with an implementation have in common.

use crate::declare::property::{self, ValueKind};
use crate::types::signature::Signature;
use crate::{rule, text::nearest};
use patter_gram::{Diagnostic, Pattern, Span, Value};
use std::time::Duration;

/// The options of a tool that do not depend on the kind of implementation.
///
/// ```
/// use patter_core::declare::{Effect, ToolOptions};
/// let (tree, _) = patter_core::gram::parse("[a:Http {timeout: 5s, effect: 'reads', concurrency: 2}]");
/// let options = ToolOptions::read(tree.patterns().next().unwrap()).unwrap();
/// assert_eq!(options.timeout, Some(std::time::Duration::from_secs(5)));
/// assert_eq!((options.effect, options.concurrency), (Some(Effect::Reads), Some(2)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolOptions {
    /// The maximum duration of a call.
    pub timeout: Option<Duration>,
    /// The effect of a call.
    pub effect: Option<Effect>,
    /// Whether a call may be repeated if its outcome is unknown.
    pub idempotent: Option<bool>,
    /// Whether higher layers may not override the tool.
    pub sealed: bool,
    /// The maximum number of concurrent calls.
    pub concurrency: Option<usize>,
}

/// The effect of a call, from the most harmless on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Effect {
    /// It only computes.
    Pure,
    /// It reads from this machine.
    Reads,
    /// It uses the network.
    Network,
    /// It changes something.
    Writes,
}

impl ToolOptions {
    /// The properties and the kinds of their values.
    pub(crate) const PROPERTIES: [(&'static str, ValueKind); 5] = [
        ("timeout", ValueKind::Duration),
        ("effect", ValueKind::OneOf(&["pure", "reads", "network", "writes"])),
        ("idempotent", ValueKind::Boolean),
        ("sealed", ValueKind::Boolean),
        ("concurrency", ValueKind::Integer { min: 1 }),
    ];

    /// Reads the options of a declaration.
    pub fn read(pattern: Pattern<'_>) -> Result<Self, Vec<Diagnostic>> {
        let check = |(name, kind): (&str, ValueKind)| property::check_value(pattern.property(name)?, kind);
        let found: Vec<_> = Self::PROPERTIES.into_iter().filter_map(check).collect();
        if !found.is_empty() {
            return Err(found);
        }
        let boolean = |name: &str| match pattern.value(name) {
            Some(Value::Boolean(boolean)) => Some(boolean),
            _ => None,
        };
        Ok(Self {
            timeout: pattern.value("timeout").and_then(|value| property::duration(&value)),
            effect: match pattern.value("effect") {
                Some(Value::String(word) | Value::Symbol(word)) => Effect::parse(&word),
                _ => None,
            },
            idempotent: boolean("idempotent"),
            sealed: boolean("sealed").unwrap_or(false),
            concurrency: match pattern.value("concurrency") {
                Some(Value::Integer(calls)) => calls.to_i64().and_then(|calls| usize::try_from(calls).ok()),
                _ => None,
            },
        })
    }
}

/// Returns the diagnostic for a placeholder that is not a parameter.
pub(crate) fn unknown_placeholder(name: &str, span: Span, signature: &Signature) -> Diagnostic {
    let names: Vec<_> = signature.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
    let found = rule::UNKNOWN_PLACEHOLDER.at(span, format!("`{{{name}}}` is not a parameter of this tool"));
    found.with_hint(match nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean `{{{near}}}`?"),
        None if names.is_empty() => {
            "the tool has no parameters; write `${NAME}` for an environment variable".to_owned()
        }
        None => format!("parameters: {}; write `{{{{` and `}}}}` for literal braces", names.join(", ")),
    })
}

impl Effect {
    /// Parses the name of an effect.
    pub fn parse(name: &str) -> Option<Self> {
        [Effect::Pure, Effect::Reads, Effect::Network, Effect::Writes].into_iter().find(|effect| effect.name() == name)
    }

    /// Returns the name of the effect.
    pub const fn name(self) -> &'static str {
        match self {
            Effect::Pure => "pure",
            Effect::Reads => "reads",
            Effect::Network => "network",
            Effect::Writes => "writes",
        }
    }
}
