//! Declarations: typed views over patterns.
//!
//! The pattern is the only source of truth. Getters read it on each call; setters return a changed declaration and leave
//! everything else unchanged, including comments and the rest of the file. Declarations created in Rust are patterns
//! too: they are formatted and parsed like those in files.

/// Implements what all declarations have in common.
macro_rules! declaration {
    ($view:ident) => {
        #[allow(clippy::needless_update, reason = "some views know more than their pattern")]
        impl $view {
            /// Returns the pattern.
            pub fn pattern(&self) -> Option<patter_gram::Pattern<'_>> {
                self.pattern.get()
            }

            /// Returns the tree of the file that contains the declaration.
            pub fn tree(&self) -> &patter_gram::Tree {
                self.pattern.tree()
            }

            /// Returns the span in the file.
            pub fn span(&self) -> patter_gram::Span {
                self.pattern().map_or(patter_gram::Span::at(0), patter_gram::Pattern::span)
            }

            /// Returns the name.
            pub fn name(&self) -> Option<std::borrow::Cow<'_, str>> {
                self.pattern()?.name()
            }

            /// Returns the description.
            pub fn description(&self) -> Option<std::borrow::Cow<'_, str>> {
                self.pattern.text("description")
            }

            /// Returns the declaration with a different name.
            #[must_use]
            pub fn with_name(&self, name: &str) -> Self {
                Self { pattern: self.pattern.with_name(name), ..self.clone() }
            }

            /// Returns the declaration with a different description.
            #[must_use]
            pub fn with_description(&self, description: &str) -> Self {
                Self { pattern: self.pattern.with_text("description", description), ..self.clone() }
            }

            /// Returns the declaration without a description.
            #[must_use]
            pub fn without_description(&self) -> Self {
                Self { pattern: self.pattern.without_property("description"), ..self.clone() }
            }
        }

        impl std::fmt::Display for $view {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.pattern().map_or("", |pattern| pattern.syntax().text()))
            }
        }
    };
}

pub(crate) mod property;
pub mod template;
mod tool;
mod agent;
mod setting;
mod toolbox;
mod toolkit;
mod extend;
mod pipe;
pub mod workflow;
mod implementation;
pub mod sandbox;
pub mod http;
pub mod command;
pub mod project;
pub mod scope;

pub use agent::{Agent, AgentParts, DuplicateElementError, Element};
pub use command::CommandSpec;
pub use extend::MAX_BASES;
pub(crate) use extend::{EXTENDS, base_name, extends_span};
pub use http::HttpSpec;
use implementation::unknown_placeholder;
pub use implementation::{Effect, ToolOptions};
pub(crate) use pipe::{is_pipe, pipe_findings};
pub use setting::DeclaredLimits;
pub use tool::{ToolSpec, ToolSpecError};
pub use toolbox::{RecordType, Toolbox};
pub use toolkit::{Member, Toolkit};

pub(crate) use tool::no_signature;

use patter_gram::{Pattern, PatternKind, Span, Syntax, SyntaxId, Tree};
use std::borrow::Cow;

/// The kind of a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeclarationKind {
    /// An agent, or a workflow, which is an agent for those who call it.
    Agent,
    /// A tool without an implementation.
    Tool,
    /// A tool with an implementation, as in a toolbox.
    Implementation,
    /// A namespace of tools.
    Toolbox,
    /// A named set of tools.
    Toolkit,
    /// A record type.
    Record,
    /// A list of cases.
    Cases,
    /// A case in a list.
    Case,
    /// Something that the project must not do.
    Policy,
    /// A named set of policies.
    Policies,
    /// When an agent runs.
    Schedule,
}

impl DeclarationKind {
    /// The labels of declarations.
    pub const LABELS: [&'static str; 15] = [
        "Agent",
        "Workflow",
        "Pipe",
        "Tool",
        "ToolSpecification",
        "Http",
        "Command",
        "Toolbox",
        "Toolkit",
        "Object",
        "Cases",
        "Case",
        "Policy",
        "Policies",
        "Schedule",
    ];

    /// Returns the kind of declaration that a pattern is, judged by its labels.
    ///
    /// ```
    /// use patter_core::{declare::DeclarationKind, gram::parse};
    /// let (tree, _) = parse("[a:Agent] [b]");
    /// let kinds: Vec<_> = tree.patterns().map(DeclarationKind::from_pattern).collect();
    /// assert_eq!(kinds, [Some(DeclarationKind::Agent), None]);
    /// ```
    pub fn from_pattern(pattern: Pattern<'_>) -> Option<Self> {
        if pattern.kind() != PatternKind::Bracket {
            return None;
        }
        pattern.labels().find_map(|label| match label.as_ref() {
            "Agent" | "Workflow" | "Pipe" => Some(DeclarationKind::Agent),
            "Tool" | "ToolSpecification" => Some(DeclarationKind::Tool),
            "Http" | "Command" => Some(DeclarationKind::Implementation),
            "Toolbox" => Some(DeclarationKind::Toolbox),
            "Toolkit" => Some(DeclarationKind::Toolkit),
            "Object" => Some(DeclarationKind::Record),
            "Cases" => Some(DeclarationKind::Cases),
            "Case" => Some(DeclarationKind::Case),
            "Policy" => Some(DeclarationKind::Policy),
            "Policies" => Some(DeclarationKind::Policies),
            "Schedule" => Some(DeclarationKind::Schedule),
            _ => None,
        })
    }

    /// Returns the noun for the kind, for messages.
    pub const fn noun(self) -> &'static str {
        match self {
            DeclarationKind::Agent => "agent",
            DeclarationKind::Tool | DeclarationKind::Implementation => "tool",
            DeclarationKind::Toolbox => "toolbox",
            DeclarationKind::Toolkit => "toolkit",
            DeclarationKind::Record => "record type",
            DeclarationKind::Cases => "list of cases",
            DeclarationKind::Case => "case",
            DeclarationKind::Policy => "policy",
            DeclarationKind::Policies => "set of policies",
            DeclarationKind::Schedule => "schedule",
        }
    }
}

/// A pattern that owns its tree.
#[derive(Debug, Clone)]
pub(crate) struct OwnedPattern {
    tree: Tree,
    id: SyntaxId,
    /// The patterns that it extends, nearest first. What it does not say itself, they say.
    bases: Vec<OwnedPattern>,
}

impl OwnedPattern {
    pub(crate) fn new(pattern: Pattern<'_>) -> Self {
        Self { tree: pattern.syntax().tree().clone(), id: pattern.syntax().id(), bases: Vec::new() }
    }

    /// Returns the pattern with the patterns that it extends, nearest first.
    pub(crate) fn with_bases<'b>(self, bases: impl IntoIterator<Item = Pattern<'b>>) -> Self {
        Self { bases: bases.into_iter().map(OwnedPattern::new).collect(), ..self }
    }

    /// Iterates over the patterns that it extends, nearest first.
    pub(crate) fn bases(&self) -> impl Iterator<Item = Pattern<'_>> {
        self.bases.iter().filter_map(OwnedPattern::get)
    }

    /// Returns the first pattern of a tree.
    pub(crate) fn first_in(tree: Tree) -> Self {
        let id = tree.patterns().next().map_or(tree.root().id(), |pattern| pattern.syntax().id());
        Self { tree, id, bases: Vec::new() }
    }

    /// Returns the pattern. This is `None` only if [`OwnedPattern::first_in`] was given a tree without patterns.
    pub(crate) fn get(&self) -> Option<Pattern<'_>> {
        self.tree.get(self.id).and_then(Pattern::cast)
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns the value of a property, its own or an inherited one.
    pub(crate) fn property(&self, key: &str) -> Option<Syntax<'_>> {
        self.get().into_iter().chain(self.bases()).find_map(|pattern| pattern.get(key))
    }

    /// Returns the text of a property, its own or an inherited one.
    pub(crate) fn text(&self, key: &str) -> Option<Cow<'_, str>> {
        self.property(key).and_then(Syntax::read_text)
    }

    /// Edits the pattern, and finds it again in the new tree, where it has the same position among the patterns.
    pub(crate) fn edit(&self, change: impl FnOnce(&mut patter_gram::Edit<'_>, Pattern<'_>)) -> Self {
        let Some(pattern) = self.get() else { return self.clone() };
        let ordinal = self.tree.walk().position(|other| other.syntax().id() == self.id);
        let mut edit = self.tree.edit();
        change(&mut edit, pattern);
        let (tree, _) = edit.apply();
        let id = ordinal.and_then(|ordinal| tree.walk().nth(ordinal)).map(|pattern| pattern.syntax().id());
        match id {
            Some(id) => Self { tree, id, bases: self.bases.clone() },
            None => self.clone(),
        }
    }
}

impl OwnedPattern {
    /// Returns the pattern with a different name.
    pub(crate) fn with_name(&self, name: &str) -> Self {
        self.edit(|edit, pattern| {
            edit.rename(pattern, name);
        })
    }

    /// Returns the pattern with a property set to a text.
    pub(crate) fn with_text(&self, key: &str, text: &str) -> Self {
        let value = format_text(text, "  ");
        self.edit(|edit, pattern| {
            edit.set_property_text(pattern, key, &value);
        })
    }

    /// Returns the pattern without a property.
    pub(crate) fn without_property(&self, key: &str) -> Self {
        self.edit(|edit, pattern| {
            edit.remove_property(pattern, key);
        })
    }

    /// Returns the pattern with another element at the end.
    pub(crate) fn with_element(&self, element: &str) -> Self {
        self.edit(|edit, pattern| {
            edit.push_element(pattern, element);
        })
    }

    /// Returns the pattern without the elements with a name.
    pub(crate) fn without_element(&self, name: &str) -> Self {
        self.edit(|edit, pattern| {
            for element in pattern.elements().filter(|element| element.name().as_deref() == Some(name)) {
                edit.remove_element(pattern, element);
            }
        })
    }
}

/// Semantic equality of the patterns, regardless of their position.
impl PartialEq for OwnedPattern {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get() && self.bases == other.bases
    }
}

/// Formats a text as a value: fenced if it has several lines, otherwise quoted.
pub(crate) fn format_text(text: &str, indent: &str) -> String {
    if !text.contains('\n') || text.contains("```") || text.ends_with('`') || text != patter_gram::dedent(text) {
        return patter_gram::quote(text);
    }
    let lines: Vec<_> =
        text.lines().map(|line| if line.is_empty() { String::new() } else { format!("{indent}  {line}") }).collect();
    format!("```\n{}\n{indent}```", lines.join("\n"))
}

/// Returns the span that marks a whole declaration in a diagnostic: its name and labels.
pub(crate) fn head_span(pattern: Pattern<'_>) -> Span {
    let span = pattern.syntax().span();
    if pattern.kind() != PatternKind::Bracket {
        return span;
    }
    let parts = pattern.syntax().children();
    let head = parts.take_while(|part| matches!(part.kind(), patter_gram::Kind::Identifier | patter_gram::Kind::Label));
    Span::new(span.start, head.last().map_or(span.start + 1, |last| last.span().end))
}
