//! Declarations: typed views over patterns.
//!
//! The pattern is the only truth. A getter reads it each time; a setter returns a changed declaration and keeps all that
//! it does not touch, comments and the rest of the file included. Declarations made in Rust are patterns too: they are
//! written and read like those in files.

/// Gives a view what all declarations have in common.
macro_rules! declaration {
    ($view:ident) => {
        impl $view {
            /// Returns the pattern.
            pub fn pattern(&self) -> Option<patter_gram::Pattern<'_>> {
                self.place.pattern()
            }

            /// Returns the file that it stands in.
            pub fn tree(&self) -> &patter_gram::Tree {
                self.place.tree()
            }

            /// Returns where it stands in its file.
            pub fn span(&self) -> patter_gram::Span {
                self.pattern().map_or(patter_gram::Span::at(0), patter_gram::Pattern::span)
            }

            /// Returns the name.
            pub fn name(&self) -> Option<std::borrow::Cow<'_, str>> {
                self.pattern()?.name()
            }

            /// Returns the description.
            pub fn description(&self) -> Option<std::borrow::Cow<'_, str>> {
                self.place.text("description")
            }

            /// Returns the same with another name.
            #[must_use]
            pub fn with_name(&self, name: &str) -> Self {
                Self { place: self.place.renamed(name) }
            }

            /// Returns the same with another description.
            #[must_use]
            pub fn with_description(&self, description: &str) -> Self {
                Self { place: self.place.with_text("description", description) }
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
mod agent;
mod setting;
mod tool;
mod toolbox;
mod implementation;
pub mod http;
pub mod command;
pub mod project;

pub use agent::{Agent, AgentParts, Element};
pub use command::CommandSpec;
pub use http::HttpSpec;
use implementation::unknown_hole;
pub use implementation::{Conduct, Effect};
pub use setting::Bounds;
pub use tool::{ToolSpec, ToolSpecError};
pub use toolbox::{RecordType, Toolbox};

pub(crate) use tool::no_signature;

use patter_gram::{Pattern, PatternKind, Span, Syntax, SyntaxId, Tree};
use std::borrow::Cow;

/// What a pattern declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Declares {
    /// An agent.
    Agent,
    /// A tool, to be bound.
    Tool,
    /// A tool with an implementation, as a toolbox holds them.
    Implementation,
    /// A namespace of tools.
    Toolbox,
    /// A record type.
    Record,
    /// A list of cases.
    Cases,
    /// A case, as a list holds them.
    Case,
}

impl Declares {
    /// The labels that declare something.
    pub const LABELS: [&'static str; 9] =
        ["Agent", "Tool", "ToolSpecification", "Http", "Command", "Toolbox", "Object", "Cases", "Case"];

    /// Tells what a pattern declares, by its labels.
    ///
    /// ```
    /// use patter_core::{declare::Declares, gram::parse};
    /// let (tree, _) = parse("[a:Agent] [b]");
    /// let found: Vec<_> = tree.patterns().map(Declares::of).collect();
    /// assert_eq!(found, [Some(Declares::Agent), None]);
    /// ```
    pub fn of(pattern: Pattern<'_>) -> Option<Self> {
        if pattern.kind() != PatternKind::Bracket {
            return None;
        }
        pattern.labels().find_map(|label| match label.as_ref() {
            "Agent" => Some(Declares::Agent),
            "Tool" | "ToolSpecification" => Some(Declares::Tool),
            "Http" | "Command" => Some(Declares::Implementation),
            "Toolbox" => Some(Declares::Toolbox),
            "Object" => Some(Declares::Record),
            "Cases" => Some(Declares::Cases),
            "Case" => Some(Declares::Case),
            _ => None,
        })
    }

    /// Names the sort of declaration, for messages.
    pub const fn noun(self) -> &'static str {
        match self {
            Declares::Agent => "agent",
            Declares::Tool | Declares::Implementation => "tool",
            Declares::Toolbox => "toolbox",
            Declares::Record => "record type",
            Declares::Cases => "list of cases",
            Declares::Case => "case",
        }
    }
}

/// A pattern in a tree that it keeps alive.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    tree: Tree,
    id: SyntaxId,
}

impl Place {
    pub(crate) fn of(pattern: Pattern<'_>) -> Self {
        Self { tree: pattern.syntax().tree().clone(), id: pattern.syntax().id() }
    }

    /// Returns the place of the first pattern of a tree.
    pub(crate) fn first_of(tree: Tree) -> Self {
        let id = tree.patterns().next().map_or(tree.root().id(), |pattern| pattern.syntax().id());
        Self { tree, id }
    }

    /// Returns the pattern, if the tree has it; a place made by [`Place::of`] always has.
    pub(crate) fn pattern(&self) -> Option<Pattern<'_>> {
        self.tree.get(self.id).and_then(Pattern::cast)
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns the property of the pattern as a text.
    pub(crate) fn text(&self, key: &str) -> Option<Cow<'_, str>> {
        self.pattern()?.get(key).and_then(Syntax::read_text)
    }

    /// Changes the pattern, and finds it again: a change does not move it among the patterns of the file.
    pub(crate) fn edited(&self, change: impl FnOnce(&mut patter_gram::Edit<'_>, Pattern<'_>)) -> Self {
        let Some(pattern) = self.pattern() else { return self.clone() };
        let ordinal = self.tree.walk().position(|other| other.syntax().id() == self.id);
        let mut edit = self.tree.edit();
        change(&mut edit, pattern);
        let (tree, _) = edit.apply();
        let id = ordinal.and_then(|ordinal| tree.walk().nth(ordinal)).map(|pattern| pattern.syntax().id());
        match id {
            Some(id) => Self { tree, id },
            None => self.clone(),
        }
    }
}

impl Place {
    /// Gives the pattern another name.
    pub(crate) fn renamed(&self, name: &str) -> Self {
        self.edited(|edit, pattern| {
            edit.rename(pattern, name);
        })
    }

    /// Sets a property to a text, fenced where it has several lines.
    pub(crate) fn with_text(&self, key: &str, text: &str) -> Self {
        let value = written(text, "  ");
        self.edited(|edit, pattern| {
            edit.set_property_text(pattern, key, &value);
        })
    }

    /// Adds an element after the others.
    pub(crate) fn with_element(&self, element: &str) -> Self {
        self.edited(|edit, pattern| {
            edit.push_element(pattern, element);
        })
    }

    /// Removes the elements of a name.
    pub(crate) fn without_element(&self, name: &str) -> Self {
        self.edited(|edit, pattern| {
            for element in pattern.elements().filter(|element| element.name().as_deref() == Some(name)) {
                edit.remove_element(pattern, element);
            }
        })
    }
}

/// Semantic equality of the patterns, wherever they stand.
impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        self.pattern() == other.pattern()
    }
}

/// Writes a text as a value: fenced where it has several lines, else in quotes.
pub(crate) fn written(text: &str, indent: &str) -> String {
    if !text.contains('\n') || text.contains("```") || text.ends_with('`') || text != patter_gram::dedent(text) {
        return patter_gram::quote(text);
    }
    let lines: Vec<_> =
        text.lines().map(|line| if line.is_empty() { String::new() } else { format!("{indent}  {line}") }).collect();
    format!("```\n{}\n{indent}```", lines.join("\n"))
}

/// Returns the span that stands for a whole declaration in a diagnostic: its name and labels.
pub(crate) fn head_span(pattern: Pattern<'_>) -> Span {
    let span = pattern.syntax().span();
    if pattern.kind() != PatternKind::Bracket {
        return span;
    }
    let parts = pattern.syntax().children();
    let head = parts.take_while(|part| matches!(part.kind(), patter_gram::Kind::Identifier | patter_gram::Kind::Label));
    Span::new(span.start, head.last().map_or(span.start + 1, |last| last.span().end))
}
