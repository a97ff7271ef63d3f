//! The tree as an indented outline, for people.

use crate::{Kind, LineIndex, Syntax, Tree};
use std::fmt::{self, Write};

/// Writes a tree as an outline: one line per node with its kind, its position and, for leaves, its text.
///
/// ```
/// let (tree, _) = patter_gram::parse("(a:B)");
/// assert_eq!(patter_gram::outline(&tree), "file 1:1-1:6\n  node 1:1-1:6\n    identifier 1:2-1:3 a\n    label 1:3-1:5 :B\n");
/// ```
pub fn outline(tree: &Tree) -> String {
    let index = LineIndex::new(tree.source());
    let mut out = String::new();
    // Ends of the enclosing subtrees; their number is the depth.
    let mut ends: Vec<u32> = Vec::new();
    for (at, syntax) in (0_u32..).zip(tree.root().descendants()) {
        while ends.last().is_some_and(|end| *end <= at) {
            ends.pop();
        }
        let (line, column) = index.line_column(syntax.span().start);
        let (end_line, end_column) = index.line_column(syntax.span().end);
        let name = format!("{:?}", syntax.kind()).to_lowercase();
        let indent = ends.len() * 2;
        let _ = write!(out, "{:indent$}{name} {line}:{column}-{end_line}:{end_column}", "");
        if let Some(text) = leaf_text(syntax) {
            let _ = write!(out, " {text}");
        }
        out.push('\n');
        ends.push(at + syntax.size());
    }
    out
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&outline(self))
    }
}

/// Returns the text of a leaf on one line, truncated if it is long.
fn leaf_text(syntax: Syntax<'_>) -> Option<String> {
    const MAX_CHARACTERS: usize = 60;
    if syntax.size() > 1
        || matches!(syntax.kind(), Kind::File | Kind::Node | Kind::Bracket | Kind::Record | Kind::Map | Kind::Array)
    {
        return None;
    }
    let text: String = syntax.text().chars().map(|c| if c == '\n' { '⏎' } else { c }).collect();
    // Control characters in an untrusted text must not reach the terminal.
    let text = text.replace(|c: char| c.is_control() && c != '\t', "␦");
    Some(match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    })
}
