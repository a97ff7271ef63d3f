//! What all tools with an implementation may say of their calls.

use crate::declare::property::{self, Takes};
use crate::types::signature::Signature;
use crate::{rule, text::nearest};
use patter_gram::{Diagnostic, Pattern, Span, Value};
use std::time::Duration;

/// What a tool with an implementation says of its calls, whatever the implementation.
///
/// ```
/// use patter_core::declare::{Conduct, Effect};
/// let (tree, _) = patter_core::gram::parse("[a:Http {timeout: 5s, effect: 'reads', concurrency: 2}]");
/// let conduct = Conduct::read(tree.patterns().next().unwrap()).unwrap();
/// assert_eq!(conduct.timeout, Some(std::time::Duration::from_secs(5)));
/// assert_eq!((conduct.effect, conduct.concurrency), (Some(Effect::Reads), Some(2)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conduct {
    /// How long a call may take.
    pub timeout: Option<Duration>,
    /// What a call touches.
    pub effect: Option<Effect>,
    /// Whether a call may be made again when it is not known how the first ended.
    pub idempotent: Option<bool>,
    /// Whether no other layer may put a tool in its place.
    pub sealed: bool,
    /// How many calls may run at once.
    pub concurrency: Option<usize>,
}

/// What a call touches, from the most harmless on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Effect {
    /// Nothing: it computes.
    Pure,
    /// It reads from this machine.
    Reads,
    /// It goes out to the network.
    Network,
    /// It changes something.
    Writes,
}

impl Conduct {
    /// The properties, with what they take.
    pub(crate) const PROPERTIES: [(&'static str, Takes); 5] = [
        ("timeout", Takes::Duration),
        ("effect", Takes::Word(&["pure", "reads", "network", "writes"])),
        ("idempotent", Takes::Boolean),
        ("sealed", Takes::Boolean),
        ("concurrency", Takes::Integer { least: 1 }),
    ];

    /// Reads what a declaration says.
    pub fn read(pattern: Pattern<'_>) -> Result<Self, Vec<Diagnostic>> {
        let wrong = |(name, takes): (&str, Takes)| property::wrong(pattern.property(name)?, takes);
        let found: Vec<_> = Self::PROPERTIES.into_iter().filter_map(wrong).collect();
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

/// Reports a hole that names no parameter.
pub(crate) fn unknown_hole(name: &str, span: Span, signature: &Signature) -> Diagnostic {
    let names: Vec<_> = signature.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
    let found = rule::UNKNOWN_HOLE.at(span, format!("`{{{name}}}` is no parameter of this tool"));
    found.with_hint(match nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean `{{{near}}}`?"),
        None if names.is_empty() => "it has none; write `${NAME}` for a variable of the environment".to_owned(),
        None => format!("it has {}", names.join(", ")),
    })
}

impl Effect {
    /// Reads a name.
    pub fn parse(name: &str) -> Option<Self> {
        [Effect::Pure, Effect::Reads, Effect::Network, Effect::Writes].into_iter().find(|effect| effect.name() == name)
    }

    /// Returns the name as it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Effect::Pure => "pure",
            Effect::Reads => "reads",
            Effect::Network => "network",
            Effect::Writes => "writes",
        }
    }
}
