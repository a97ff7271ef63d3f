//! Edits that change only what they must.

mod list;
mod splice;

use crate::parse::{Dialect, parse_shared};
use crate::{Diagnostic, Kind, Pattern, PatternKind, Span, Syntax, SyntaxId, Tree, Value, quote_name};
use splice::{Splice, apply_splices};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

/// A set of changes to a tree, applied by [`Edit::apply`].
///
/// Each change touches only the bytes it must: comments, layout, quoting and order of everything else are kept. Changes
/// can be added in any order; if two conflict, the later one wins.
///
/// ```
/// let (tree, _) = patter_gram::parse("[a:Agent { // note\n  model: 'x'\n} | b]");
/// let agent = tree.patterns().next().unwrap();
/// let mut edit = tree.edit();
/// edit.rename(agent, "greeter");
/// edit.set_property(agent, "temperature", &"low".into());
/// edit.push_element(agent, "(c)");
/// let (tree, diagnostics) = edit.apply();
/// assert!(diagnostics.is_empty());
/// assert_eq!(
///     tree.to_string(),
///     "[greeter:Agent { // note\n  model: 'x',\n  temperature: \"low\"\n} | b, (c)]"
/// );
/// ```
#[derive(Debug, Clone)]
pub struct Edit<'t> {
    tree: &'t Tree,
    subjects: BTreeMap<SyntaxId, SubjectEdit>,
    replaced: BTreeMap<SyntaxId, Splice>,
    errors: Vec<EditError>,
}

/// The changes to one pattern.
#[derive(Debug, Clone, Default)]
struct SubjectEdit {
    name: Option<String>,
    /// Labels, and whether the pattern should have them.
    labels: Vec<(String, bool)>,
    /// Keys, and the text of their values; `None` removes them.
    properties: Vec<(String, Option<String>)>,
    removed_elements: HashSet<SyntaxId>,
    added_elements: Vec<String>,
}

/// An error that occurs when a change is not possible.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EditError {
    /// References and paths have no subject: no labels and no record.
    NoSubject(Span),
    /// Only bracket patterns have elements.
    NotABracket(Span),
    /// The value of a property cannot be written as gram.
    NotAValue(String),
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EditError::NoSubject(_) => f.write_str("references and paths have no labels or record"),
            EditError::NotABracket(_) => f.write_str("only bracket patterns have elements"),
            EditError::NotAValue(key) => write!(f, "the value for `{key}` cannot be written as gram"),
        }
    }
}

impl std::error::Error for EditError {}

impl Tree {
    /// Starts a set of changes.
    pub fn edit(&self) -> Edit<'_> {
        Edit { tree: self, subjects: BTreeMap::new(), replaced: BTreeMap::new(), errors: Vec::new() }
    }
}

impl Edit<'_> {
    /// Sets a property: in place if it exists, otherwise after the others.
    pub fn set_property(&mut self, pattern: Pattern<'_>, key: &str, value: &Value) -> &mut Self {
        let text = value.to_string();
        if Value::parse(&text).as_ref() != Some(value) {
            return self.reject(EditError::NotAValue(key.to_owned()));
        }
        self.change_property(pattern, key, Some(text))
    }

    /// Sets a property to a value written as gram, such as a fenced string.
    pub fn set_property_text(&mut self, pattern: Pattern<'_>, key: &str, value: &str) -> &mut Self {
        if Value::parse(value).is_none() {
            return self.reject(EditError::NotAValue(key.to_owned()));
        }
        self.change_property(pattern, key, Some(value.to_owned()))
    }

    /// Removes a property, if it exists, including all repetitions of the key.
    pub fn remove_property(&mut self, pattern: Pattern<'_>, key: &str) -> &mut Self {
        self.change_property(pattern, key, None)
    }

    /// Sets the name of a pattern.
    pub fn rename(&mut self, pattern: Pattern<'_>, name: &str) -> &mut Self {
        if pattern.kind() == PatternKind::Path {
            return self.reject(EditError::NoSubject(pattern.span()));
        }
        self.subject(pattern).name = Some(quote_name(name).into_owned());
        self
    }

    /// Adds a label after the others, unless the pattern already has it.
    pub fn add_label(&mut self, pattern: Pattern<'_>, label: &str) -> &mut Self {
        self.change_label(pattern, label, true)
    }

    /// Removes a label, if the pattern has it.
    pub fn remove_label(&mut self, pattern: Pattern<'_>, label: &str) -> &mut Self {
        self.change_label(pattern, label, false)
    }

    /// Adds an element, written as gram, to the end of a bracket pattern.
    pub fn push_element(&mut self, pattern: Pattern<'_>, element: &str) -> &mut Self {
        if pattern.kind() != PatternKind::Bracket {
            return self.reject(EditError::NotABracket(pattern.span()));
        }
        self.subject(pattern).added_elements.push(element.to_owned());
        self
    }

    /// Removes an element from a bracket pattern.
    pub fn remove_element(&mut self, pattern: Pattern<'_>, element: Pattern<'_>) -> &mut Self {
        if pattern.kind() != PatternKind::Bracket {
            return self.reject(EditError::NotABracket(pattern.span()));
        }
        self.subject(pattern).removed_elements.insert(element.syntax().id());
        self
    }

    /// Replaces a pattern, including its annotations, with text. Other changes inside it are discarded.
    pub fn replace(&mut self, pattern: Pattern<'_>, text: &str) -> &mut Self {
        let splice = Splice { span: pattern.span(), text: text.to_owned() };
        self.replaced.insert(pattern.syntax().id(), splice);
        self
    }

    /// Returns the errors of rejected changes. [`Edit::apply`] skips those changes.
    pub fn errors(&self) -> &[EditError] {
        &self.errors
    }

    /// Applies the changes and parses the result.
    ///
    /// The diagnostics cover both inserted text that is not well-formed and errors that were there before.
    pub fn apply(self) -> (Tree, Vec<Diagnostic>) {
        let mut splices: Vec<_> = self.replaced.into_values().collect();
        for (id, changes) in &self.subjects {
            if let Some(pattern) = self.tree.get(*id).and_then(Pattern::cast) {
                splice_subject(pattern, changes, &mut splices);
            }
        }
        let (source, invalid_bytes) = apply_splices(self.tree, splices);
        parse_shared(Arc::from(source), Dialect::Patter, invalid_bytes)
    }

    fn subject(&mut self, pattern: Pattern<'_>) -> &mut SubjectEdit {
        self.subjects.entry(pattern.syntax().id()).or_default()
    }

    fn change_property(&mut self, pattern: Pattern<'_>, key: &str, value: Option<String>) -> &mut Self {
        if !has_subject(pattern) {
            return self.reject(EditError::NoSubject(pattern.span()));
        }
        let properties = &mut self.subject(pattern).properties;
        properties.retain(|(other, _)| other != key);
        properties.push((key.to_owned(), value));
        self
    }

    fn change_label(&mut self, pattern: Pattern<'_>, label: &str, is_present: bool) -> &mut Self {
        if !has_subject(pattern) {
            return self.reject(EditError::NoSubject(pattern.span()));
        }
        let labels = &mut self.subject(pattern).labels;
        labels.retain(|(other, _)| other != label);
        labels.push((label.to_owned(), is_present));
        self
    }

    fn reject(&mut self, error: EditError) -> &mut Self {
        self.errors.push(error);
        self
    }
}

fn has_subject(pattern: Pattern<'_>) -> bool {
    matches!(pattern.kind(), PatternKind::Node | PatternKind::Bracket)
}

/// Computes the splices that change one pattern.
fn splice_subject(pattern: Pattern<'_>, changes: &SubjectEdit, splices: &mut Vec<Splice>) {
    let syntax = pattern.syntax();
    let inside = syntax.span().start + 1;
    // Insertions at the same offset keep their order: name, labels, record.
    if let Some(name) = &changes.name {
        let span = pattern.identifier().map_or(Span::at(inside), Syntax::span);
        splices.push(Splice { span, text: name.clone() });
    }
    let head = syntax.children().take_while(|part| matches!(part.kind(), Kind::Identifier | Kind::Label));
    let head_end = head.last().map_or(inside, |part| part.span().end);
    for (label, is_present) in &changes.labels {
        if !is_present {
            let labels = syntax.children().filter(|part| part.kind() == Kind::Label);
            let same = labels.filter(|part| crate::pattern::label_name(*part) == *label);
            splices.extend(same.map(|part| Splice { span: part.span(), text: String::new() }));
        } else if !pattern.has_label(label) {
            splices.push(Splice { span: Span::at(head_end), text: format!(":{}", quote_name(label)) });
        }
    }
    splice_properties(pattern, changes, head_end, splices);
    if !changes.removed_elements.is_empty() || !changes.added_elements.is_empty() {
        list::splice_items(syntax, &changes.removed_elements, &changes.added_elements, splices);
    }
}

fn splice_properties(pattern: Pattern<'_>, changes: &SubjectEdit, head_end: u32, splices: &mut Vec<Splice>) {
    let mut removed = HashSet::new();
    let mut added = Vec::new();
    for (key, value) in &changes.properties {
        let written = |value: &str| format!("{}: {value}", quote_name(key));
        match (value, pattern.property(key)) {
            (None, _) => {
                let same = pattern.properties().filter(|property| property.key() == *key);
                removed.extend(same.map(|property| property.syntax().id()));
            }
            (Some(value), Some(property)) => splices.push(match property.value() {
                Some(old) => Splice { span: old.span(), text: value.clone() },
                None => Splice { span: property.syntax().span(), text: written(value) },
            }),
            (Some(value), None) => added.push(written(value)),
        }
    }
    match pattern.record() {
        Some(record) if !removed.is_empty() || !added.is_empty() => {
            list::splice_items(record, &removed, &added, splices);
        }
        None if !added.is_empty() => {
            splices.push(Splice { span: Span::at(head_end), text: format!(" {{{}}}", added.join(", ")) });
        }
        _ => {}
    }
}
