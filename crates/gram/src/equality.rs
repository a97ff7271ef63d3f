//! Semantic equality: what two texts say, not how they say it.

use crate::pattern::label_name;
use crate::{Arrow, Integer, Kind, Pattern, Syntax, Tree, Value};

/// Semantic equality: white space, comments, quoting, number bases and the kind of colon do not count.
impl PartialEq for Tree {
    fn eq(&self, other: &Self) -> bool {
        syntax_equal(self.root(), other.root())
    }
}

/// Semantic equality: white space, comments, quoting, number bases and the kind of colon do not count.
impl PartialEq for Pattern<'_> {
    fn eq(&self, other: &Self) -> bool {
        let annotations = |pattern: &Self| pattern.annotations().count();
        annotations(self) == annotations(other)
            && self.annotations().zip(other.annotations()).all(|(a, b)| syntax_equal(a.syntax(), b.syntax()))
            && syntax_equal(self.syntax(), other.syntax())
    }
}

/// Tells whether two pieces of syntax mean the same.
fn syntax_equal(a: Syntax<'_>, b: Syntax<'_>) -> bool {
    // Scalars by value, everything else part by part. Both trees list their parts in reading order, so one walk over
    // the two lists compares them without recursion.
    let mut left = a.descendants();
    let mut right = b.descendants();
    loop {
        match (left.next(), right.next()) {
            (None, None) => return true,
            (Some(a), Some(b)) => {
                if !nodes_equal(a, b) {
                    return false;
                }
                // The parts of a tagged string or a range were compared with it.
                if matches!(a.kind(), Kind::Tagged | Kind::Range) {
                    left.by_ref().take(a.size() as usize - 1).for_each(drop);
                    right.by_ref().take(b.size() as usize - 1).for_each(drop);
                }
            }
            _ => return false,
        }
    }
}

/// Compares two entries without their parts, but for how many parts they have.
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

/// Returns a name that is written as a number; `` `42` `` is a name like any other.
fn integer(name: Syntax<'_>) -> Option<Integer> {
    name.text().starts_with(|c: char| c == '-' || c.is_ascii_digit()).then(|| Integer::parse(name.text()))?
}
