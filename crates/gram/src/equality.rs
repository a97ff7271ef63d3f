//! Semantic equality: the same meaning, however it is spelled.

use crate::pattern::label_name;
use crate::{Arrow, Integer, Kind, Pattern, Syntax, Tree, Value};

/// Semantic equality: white space, comments, quoting, number bases and the kind of colon are ignored.
impl PartialEq for Tree {
    fn eq(&self, other: &Self) -> bool {
        syntax_equal(self.root(), other.root())
    }
}

/// Semantic equality: white space, comments, quoting, number bases and the kind of colon are ignored.
impl PartialEq for Pattern<'_> {
    fn eq(&self, other: &Self) -> bool {
        let annotations = |pattern: &Self| pattern.annotations().count();
        annotations(self) == annotations(other)
            && self.annotations().zip(other.annotations()).all(|(a, b)| syntax_equal(a.syntax(), b.syntax()))
            && syntax_equal(self.syntax(), other.syntax())
    }
}

/// Returns whether two subtrees have the same meaning.
fn syntax_equal(a: Syntax<'_>, b: Syntax<'_>) -> bool {
    // Scalars are compared by value, everything else node by node. Both trees list their nodes in reading order, so one
    // walk over the two lists needs no recursion.
    let mut left = a.descendants();
    let mut right = b.descendants();
    loop {
        match (left.next(), right.next()) {
            (None, None) => return true,
            (Some(a), Some(b)) => {
                if !nodes_equal(a, b) {
                    return false;
                }
                // The children of tagged strings and ranges are part of the value just compared.
                if matches!(a.kind(), Kind::Tagged | Kind::Range) {
                    left.by_ref().take(a.size() as usize - 1).for_each(drop);
                    right.by_ref().take(b.size() as usize - 1).for_each(drop);
                }
            }
            _ => return false,
        }
    }
}

/// Compares two nodes by themselves: of their children only the number.
fn nodes_equal(a: Syntax<'_>, b: Syntax<'_>) -> bool {
    let kind = a.kind();
    let other = b.kind();
    if kind.is_value() && other.is_value() {
        return match (kind, other) {
            (Kind::Array, Kind::Array) | (Kind::Map, Kind::Map) => a.children().count() == b.children().count(),
            (Kind::Array | Kind::Map, _) | (_, Kind::Array | Kind::Map) => false,
            _ => Value::read(a) == Value::read(b),
        };
    }
    if kind != other {
        return false;
    }
    match kind {
        Kind::Identifier | Kind::Reference => match (integer(a), integer(b)) {
            (None, None) => a.unquoted() == b.unquoted(),
            (a, b) => a == b,
        },
        Kind::Label => label_name(a) == label_name(b),
        Kind::Key => a.unquoted() == b.unquoted(),
        Kind::Arrow => {
            let glyph = |syntax| Arrow::cast(syntax).map(Arrow::glyph);
            glyph(a) == glyph(b) && a.children().count() == b.children().count()
        }
        Kind::Error => a.text() == b.text(),
        _ => a.children().count() == b.children().count(),
    }
}

/// Returns the integer that a name is written as. `` `42` `` is quoted, so it is not an integer.
fn integer(name: Syntax<'_>) -> Option<Integer> {
    name.text().starts_with(|c: char| c == '-' || c.is_ascii_digit()).then(|| Integer::parse(name.text()))?
}
