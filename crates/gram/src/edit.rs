//! Changes to a tree that leave everything else as it is.

use crate::parse::{Dialect, parse_shared};
use crate::{Diagnostic, Kind, Pattern, PatternKind, Span, Syntax, SyntaxId, Tree, Value, quote_name, span::offset};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A set of changes to a tree. Nothing happens before [`Edit::apply`].
///
/// Each change touches only the bytes it must: comments, layout, quoting and order of everything else stay.
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
    splices: Vec<Splice>,
    lists: BTreeMap<SyntaxId, ListEdit>,
    refused: Vec<EditError>,
}

#[derive(Debug, Clone)]
struct Splice {
    span: Span,
    text: String,
}

/// What happens to the items of a record or to the elements of a bracket pattern.
#[derive(Debug, Clone, Default)]
struct ListEdit {
    removed: Vec<SyntaxId>,
    added: Vec<String>,
}

/// Why a change could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditError {
    /// A reference or a path has no subject of its own: no labels, no record.
    NoSubject(Span),
    /// Only bracket patterns have elements.
    NotABracket(Span),
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EditError::NoSubject(_) => "a reference or a path has no labels and no record",
            EditError::NotABracket(_) => "only a bracket pattern has elements",
        })
    }
}

impl std::error::Error for EditError {}

impl Tree {
    /// Starts a set of changes.
    pub fn edit(&self) -> Edit<'_> {
        Edit { tree: self, splices: Vec::new(), lists: BTreeMap::new(), refused: Vec::new() }
    }
}

impl Edit<'_> {
    /// Sets a property, in place where it exists, else after the others.
    pub fn set_property(&mut self, pattern: Pattern<'_>, key: &str, value: &Value) -> &mut Self {
        self.set_property_text(pattern, key, &value.to_string())
    }

    /// Sets a property to a value written as gram, such as a fenced string.
    pub fn set_property_text(&mut self, pattern: Pattern<'_>, key: &str, value: &str) -> &mut Self {
        if let Some(property) = pattern.property(key) {
            return match property.value() {
                Some(old) => self.splice(old.span(), value),
                None => self.splice(property.syntax().span(), &format!("{}: {value}", quote_name(key))),
            };
        }
        let written = format!("{}: {value}", quote_name(key));
        match pattern.record() {
            Some(record) => self.add(record, written),
            None => match subject_end(pattern) {
                Some(end) => self.splice(Span::at(end), &format!(" {{{written}}}")),
                None => self.refuse(EditError::NoSubject(pattern.span())),
            },
        }
    }

    /// Removes a property, if it exists: all of them, where a key is given twice.
    pub fn remove_property(&mut self, pattern: Pattern<'_>, key: &str) -> &mut Self {
        if let Some(record) = pattern.record() {
            for property in pattern.properties().filter(|property| property.key() == key) {
                self.remove(record, property.syntax());
            }
        }
        self
    }

    /// Gives a pattern another name, or its first one.
    pub fn rename(&mut self, pattern: Pattern<'_>, name: &str) -> &mut Self {
        let name = quote_name(name);
        match pattern.identifier() {
            Some(old) => self.splice(old.span(), &name),
            None if pattern.kind() == PatternKind::Path => self.refuse(EditError::NoSubject(pattern.span())),
            None => self.splice(Span::at(pattern.syntax().span().start + 1), &name),
        }
    }

    /// Adds a label after the others, unless the pattern has it.
    pub fn add_label(&mut self, pattern: Pattern<'_>, label: &str) -> &mut Self {
        if pattern.has_label(label) {
            return self;
        }
        let before =
            pattern.syntax().children().take_while(|part| matches!(part.kind(), Kind::Identifier | Kind::Label));
        let end = before.last().map_or(pattern.syntax().span().start + 1, |part| part.span().end);
        match subject_end(pattern) {
            Some(_) => self.splice(Span::at(end), &format!(":{}", quote_name(label))),
            None => self.refuse(EditError::NoSubject(pattern.span())),
        }
    }

    /// Removes a label, if the pattern has it.
    pub fn remove_label(&mut self, pattern: Pattern<'_>, label: &str) -> &mut Self {
        let labels = pattern.syntax().children().filter(|part| part.kind() == Kind::Label);
        for part in labels.filter(|part| crate::pattern::label_name(*part) == label) {
            self.splice(part.span(), "");
        }
        self
    }

    /// Adds an element, written as gram, after the others of a bracket pattern.
    pub fn push_element(&mut self, pattern: Pattern<'_>, element: &str) -> &mut Self {
        match pattern.kind() {
            PatternKind::Bracket => self.add(pattern.syntax(), element.to_owned()),
            _ => self.refuse(EditError::NotABracket(pattern.span())),
        }
    }

    /// Removes an element of a bracket pattern.
    pub fn remove_element(&mut self, pattern: Pattern<'_>, element: Pattern<'_>) -> &mut Self {
        match pattern.kind() {
            PatternKind::Bracket => self.remove(pattern.syntax(), element.syntax()),
            _ => self.refuse(EditError::NotABracket(pattern.span())),
        }
    }

    /// Replaces a pattern, annotations included, by text. Other changes inside it go with it.
    pub fn replace(&mut self, pattern: Pattern<'_>, text: &str) -> &mut Self {
        self.splice(pattern.span(), text)
    }

    /// Returns the changes that could not be noted, and why. [`Edit::apply`] leaves them out.
    pub fn refused(&self) -> &[EditError] {
        &self.refused
    }

    /// Makes the changes and parses the result.
    ///
    /// Diagnostics tell of text that was put in and is not well-formed, and of mistakes that were there before.
    pub fn apply(self) -> (Tree, Vec<Diagnostic>) {
        let Edit { tree, mut splices, lists, .. } = self;
        for (list, changes) in lists {
            if let Some(list) = tree.get(list) {
                splice_list(list, &changes, &mut splices);
            }
        }
        let (source, foreign) = spliced(tree, splices);
        parse_shared(Arc::from(source), Dialect::Patter, foreign)
    }

    fn splice(&mut self, span: Span, text: &str) -> &mut Self {
        if !span.is_empty() {
            self.splices.retain(|splice| splice.span != span);
        }
        self.splices.push(Splice { span, text: text.to_owned() });
        self
    }

    fn add(&mut self, list: Syntax<'_>, text: String) -> &mut Self {
        self.lists.entry(list.id()).or_default().added.push(text);
        self
    }

    fn remove(&mut self, list: Syntax<'_>, item: Syntax<'_>) -> &mut Self {
        self.lists.entry(list.id()).or_default().removed.push(item.id());
        self
    }

    fn refuse(&mut self, error: EditError) -> &mut Self {
        self.refused.push(error);
        self
    }
}

/// Returns where a record may follow the name and the labels.
fn subject_end(pattern: Pattern<'_>) -> Option<u32> {
    if !matches!(pattern.kind(), PatternKind::Node | PatternKind::Bracket) {
        return None;
    }
    let is_subject = |kind| matches!(kind, Kind::Identifier | Kind::Label | Kind::Record);
    let parts = pattern.syntax().children().take_while(|part| is_subject(part.kind()));
    Some(parts.last().map_or(pattern.syntax().span().start + 1, |part| part.span().end))
}

/// Works out the splices that change the items of a list.
fn splice_list(list: Syntax<'_>, changes: &ListEdit, splices: &mut Vec<Splice>) {
    let tree = list.tree();
    let is_item = |item: &Syntax<'_>| match list.kind() {
        Kind::Bracket => item.kind().is_pattern(),
        _ => item.kind() == Kind::Property,
    };
    let items: Vec<_> = list.children().filter(is_item).collect();
    let is_removed = |item: &Syntax<'_>| changes.removed.contains(&item.id());
    let all_removed = items.iter().all(is_removed);
    let mut erase = |span: Span| splices.push(Splice { span: with_line(tree, span), text: String::new() });

    for (index, item) in items.iter().enumerate().filter(|(_, item)| is_removed(item)) {
        // An item goes with the comma after it.
        let next = items.get(index + 1);
        let comma = next.and_then(|next| punctuation(tree, b',', item.span().end, next.span().start));
        match comma {
            Some(comma) if is_blank(tree, item.span().end, comma.start) => {
                erase(Span::new(item.span().start, comma.end));
            }
            Some(comma) => {
                erase(item.span());
                erase(comma);
            }
            None => erase(item.span()),
        }
        // Where no item is left after it, the one before loses its comma.
        let is_tail = items.iter().skip(index).all(is_removed);
        if is_tail
            && let Some(before) = index.checked_sub(1).and_then(|before| items.get(before))
            && !is_removed(before)
            && let Some(comma) = punctuation(tree, b',', before.span().end, item.span().start)
        {
            erase(comma);
        }
    }
    if changes.added.is_empty() {
        if list.kind() == Kind::Bracket
            && all_removed
            && let Some(first) = items.first()
            && let Some(bar) = bar(list, first.span().start)
        {
            erase(bar);
        }
        return;
    }
    insert_items(list, &items, all_removed, &changes.added, splices);
}

fn insert_items(
    list: Syntax<'_>,
    items: &[Syntax<'_>],
    all_removed: bool,
    added: &[String],
    splices: &mut Vec<Splice>,
) {
    let tree = list.tree();
    let mut put = |at: u32, text: String| splices.push(Splice { span: Span::at(at), text });
    let Some(last) = items.last() else {
        let inside = list.children().last().map_or(list.span().start + 1, |part| part.span().end);
        let bar = if list.kind() == Kind::Bracket { " | " } else { "" };
        return put(inside, format!("{bar}{}", added.join(", ")));
    };
    let end = last.span().end;
    // Items on lines of their own get company on lines of their own, after the comment that ends the last line.
    let before = match items.len() {
        1 => bar(list, end).map_or(list.span().start, |bar| bar.start),
        count => items.get(count - 2).map_or(end, |item| item.span().end),
    };
    let gap = Span::new(before, last.span().start).of(tree.source());
    let Some(line) = gap.rfind('\n') else {
        let separator = match (all_removed, list.kind()) {
            (false, _) => ", ",
            (true, Kind::Bracket) => " ",
            (true, _) => "",
        };
        return put(end, format!("{separator}{}", added.join(", ")));
    };
    let indent: String = gap.get(line + 1..).unwrap_or_default().chars().take_while(|c| c.is_whitespace()).collect();
    let separator = format!(",\n{indent}");
    let text = format!("\n{indent}{}", added.join(&separator));
    if !all_removed {
        put(end, ",".to_owned());
    }
    put(line_comment_end(tree, end), text);
}

/// Returns the bar of a bracket pattern that has elements, the first of which ends at or before `before`.
fn bar(list: Syntax<'_>, before: u32) -> Option<Span> {
    let is_subject = |kind| matches!(kind, Kind::Identifier | Kind::Label | Kind::Record);
    let parts = list.children().take_while(|part| is_subject(part.kind()));
    let from = parts.last().map_or(list.span().start + 1, |part| part.span().end);
    punctuation(list.tree(), b'|', from, before)
}

/// Finds a punctuation mark between two tokens, outside of comments.
fn punctuation(tree: &Tree, mark: u8, from: u32, to: u32) -> Option<Span> {
    let comments = tree.comment_spans();
    let mut at = from;
    for comment in comments.iter().skip(comments.partition_point(|comment| comment.end <= from)) {
        let gap = Span::new(at, comment.start.min(to)).of(tree.source());
        if let Some(found) = gap.bytes().position(|byte| byte == mark) {
            return Some(Span::new(at + offset(found), at + offset(found) + 1));
        }
        if comment.start >= to {
            return None;
        }
        at = comment.end;
    }
    let found = Span::new(at, to).of(tree.source()).bytes().position(|byte| byte == mark)?;
    Some(Span::new(at + offset(found), at + offset(found) + 1))
}

/// Returns the end of the comments that follow on the same line, or `from` if there are none.
fn line_comment_end(tree: &Tree, from: u32) -> u32 {
    let comments = tree.comment_spans();
    let first = comments.partition_point(|comment| comment.start < from);
    let mut end = from;
    for comment in comments.iter().skip(first) {
        let gap = Span::new(end, comment.start).of(tree.source());
        if !gap.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b',')) {
            break;
        }
        end = comment.end;
    }
    end
}

fn is_blank(tree: &Tree, from: u32, to: u32) -> bool {
    Span::new(from, to).of(tree.source()).bytes().all(|byte| matches!(byte, b' ' | b'\t'))
}

/// Widens the span of removed text: over the whole line where nothing else stands on it, else over the blanks before
/// it, or after it where it starts the line.
fn with_line(tree: &Tree, span: Span) -> Span {
    const BLANKS: [char; 2] = [' ', '\t'];
    let before = tree.source().get(..span.start as usize).unwrap_or_default();
    let after = tree.source().get(span.end as usize..).unwrap_or_default();
    let line_before = before.trim_end_matches(BLANKS);
    let start = offset(line_before.len());
    let rest = after.trim_start_matches(BLANKS);
    let end = span.end + offset(after.len() - rest.len());
    match (line_before.ends_with('\n'), rest.starts_with('\n') || rest.starts_with("\r\n")) {
        (true, true) => {
            let line_break = if line_before.ends_with("\r\n") { 2 } else { 1 };
            Span::new(start - line_break, span.end)
        }
        (true, false) => Span::new(span.start, end),
        (false, _) => Span::new(start, span.end),
    }
}

/// Applies splices. Where one lies within another, the outer one wins.
fn spliced(tree: &Tree, mut splices: Vec<Splice>) -> (String, Vec<(u32, u8)>) {
    // Stable, so that insertions at one place keep their order; the longest change at a place comes first.
    splices.sort_by_key(|splice| (splice.span.start, std::cmp::Reverse(splice.span.end)));
    let mut source = String::with_capacity(tree.source().len());
    let mut foreign = Vec::new();
    let mut at = 0;
    let keep = |source: &mut String, foreign: &mut Vec<(u32, u8)>, kept: Span| {
        let first = tree.foreign().partition_point(|(place, _)| *place < kept.start);
        let inside = tree.foreign().iter().skip(first).take_while(|(place, _)| *place < kept.end);
        foreign.extend(inside.map(|(place, byte)| (place - kept.start + offset(source.len()), *byte)));
        source.push_str(kept.of(tree.source()));
    };
    let mut erases = false;
    for splice in splices {
        if splice.span.start < at {
            // What is erased may reach over blanks to the next change, which still counts; what is replaced may not.
            if erases {
                source.push_str(&splice.text);
                at = at.max(splice.span.end);
            }
            continue;
        }
        keep(&mut source, &mut foreign, Span::new(at, splice.span.start));
        source.push_str(&splice.text);
        erases = splice.text.is_empty();
        at = splice.span.end;
    }
    keep(&mut source, &mut foreign, Span::new(at, offset(tree.source().len())));
    (source, foreign)
}
