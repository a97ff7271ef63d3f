//! Adding and removing list items: the properties of a record, the elements of a bracket pattern.

use super::splice::Splice;
use crate::format::line_break;
use crate::{Kind, Span, Syntax, SyntaxId, Tree, span::offset};
use std::collections::HashSet;

/// Computes the splices that remove items from a list and add others at its end.
pub(super) fn splice_items(list: Syntax<'_>, removed: &HashSet<SyntaxId>, added: &[String], splices: &mut Vec<Splice>) {
    let is_item = |item: &Syntax<'_>| match list.kind() {
        Kind::Bracket => item.kind().is_pattern(),
        _ => item.kind() == Kind::Property,
    };
    let items: Vec<_> = list.children().filter(is_item).collect();
    let last_kept = items.iter().rposition(|item| !removed.contains(&item.id()));
    remove(list, &items, removed, last_kept, added.is_empty(), splices);
    if !added.is_empty() {
        insert(list, &items, last_kept, added, splices);
    }
}

fn remove(
    list: Syntax<'_>,
    items: &[Syntax<'_>],
    removed: &HashSet<SyntaxId>,
    last_kept: Option<usize>,
    ends_list: bool,
    splices: &mut Vec<Splice>,
) {
    let tree = list.tree();
    let mut erase = |span: Span| splices.push(Splice { span: widen_to_line(tree, span), text: String::new() });
    for (index, item) in items.iter().enumerate().filter(|(_, item)| removed.contains(&item.id())) {
        // An item is removed together with the comma after it.
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
    }
    // If no item follows it any more, the last kept item loses its comma.
    if let Some(last) = last_kept
        && let (Some(item), Some(next)) = (items.get(last), items.get(last + 1))
        && ends_list
        && let Some(comma) = punctuation(tree, b',', item.span().end, next.span().start)
    {
        erase(comma);
    }
    if let (Kind::Bracket, None, Some(first), true) = (list.kind(), last_kept, items.first(), ends_list)
        && let Some(bar) = bar(list, first.span().start)
    {
        erase(bar);
    }
}

fn insert(
    list: Syntax<'_>,
    items: &[Syntax<'_>],
    last_kept: Option<usize>,
    added: &[String],
    splices: &mut Vec<Splice>,
) {
    let tree = list.tree();
    let mut put = |at: u32, text: String| splices.push(Splice { span: Span::at(at), text });
    let Some((last, first)) = items.last().zip(items.first()) else {
        let inside = list.children().last().map_or(list.span().start + 1, |part| part.span().end);
        let opening = match (list.kind(), list.children().next()) {
            (Kind::Bracket, Some(_)) => " | ",
            (Kind::Bracket, None) => "| ",
            _ => "",
        };
        return put(inside, format!("{opening}{}", added.join(", ")));
    };
    let Some(kept) = last_kept.and_then(|index| items.get(index)) else {
        // All items are removed; the new ones replace the first.
        let space = if list.kind() == Kind::Bracket { " " } else { "" };
        let is_first_on_line = widen_to_line(tree, first.span()).start == first.span().start;
        let space = if is_first_on_line { "" } else { space };
        return put(first.span().start, format!("{space}{}", added.join(", ")));
    };
    // If a removed item follows the last kept one, the comma between them is already there.
    let next = last_kept.and_then(|index| items.get(index + 1));
    let has_comma = next.is_some_and(|next| punctuation(tree, b',', kept.span().end, next.span().start).is_some());
    let end = last.span().end;
    let Some(indent) = own_line_indent(list, items, last) else {
        let separator = if has_comma { " " } else { ", " };
        return put(end, format!("{separator}{}", added.join(", ")));
    };
    // If the last item has its own line, so do the new ones, after any comment that ends that line.
    let new_line = format!("{}{indent}", line_break(tree));
    if !has_comma {
        put(kept.span().end, ",".to_owned());
    }
    let separator = format!(",{new_line}");
    put(line_comment_end(tree, end), format!("{new_line}{}", added.join(&separator)));
}

/// Returns the indentation of the last item, if it is on its own line.
fn own_line_indent(list: Syntax<'_>, items: &[Syntax<'_>], last: &Syntax<'_>) -> Option<String> {
    let before = match items.len() {
        0 | 1 => bar(list, last.span().end).map_or(list.span().start, |bar| bar.start),
        count => items.get(count - 2).map_or(list.span().start, |item| item.span().end),
    };
    let gap = Span::new(before, last.span().start).slice(list.tree().source());
    let line = gap.rfind('\n')?;
    Some(gap.get(line + 1..).unwrap_or_default().chars().take_while(|c| c.is_whitespace()).collect())
}

/// Returns the bar of a bracket pattern, searching from the end of the subject up to `before`.
fn bar(list: Syntax<'_>, before: u32) -> Option<Span> {
    let is_subject = |kind| matches!(kind, Kind::Identifier | Kind::Label | Kind::Record);
    let parts = list.children().take_while(|part| is_subject(part.kind()));
    let from = parts.last().map_or(list.span().start + 1, |part| part.span().end);
    punctuation(list.tree(), b'|', from, before)
}

/// Finds a punctuation mark between two tokens, outside comments.
fn punctuation(tree: &Tree, mark: u8, from: u32, to: u32) -> Option<Span> {
    let comments = tree.comment_spans();
    let mut at = from;
    for comment in comments.iter().skip(comments.partition_point(|comment| comment.end <= from)) {
        let gap = Span::new(at, comment.start.min(to)).slice(tree.source());
        if let Some(found) = gap.bytes().position(|byte| byte == mark) {
            return Some(Span::new(at + offset(found), at + offset(found) + 1));
        }
        if comment.start >= to {
            return None;
        }
        at = comment.end;
    }
    let found = Span::new(at, to).slice(tree.source()).bytes().position(|byte| byte == mark)?;
    Some(Span::new(at + offset(found), at + offset(found) + 1))
}

/// Returns the end of the comments that follow on the same line, or `from` if there are none.
fn line_comment_end(tree: &Tree, from: u32) -> u32 {
    let comments = tree.comment_spans();
    let first = comments.partition_point(|comment| comment.start < from);
    let mut end = from;
    for comment in comments.iter().skip(first) {
        let gap = Span::new(end, comment.start).slice(tree.source());
        if !gap.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b',')) {
            break;
        }
        end = comment.end;
    }
    end
}

fn is_blank(tree: &Tree, from: u32, to: u32) -> bool {
    Span::new(from, to).slice(tree.source()).bytes().all(|byte| matches!(byte, b' ' | b'\t'))
}

/// Widens the span of removed text: to the whole line if nothing else is on it, otherwise over the spaces before it, or
/// after it if it starts the line or the list.
fn widen_to_line(tree: &Tree, span: Span) -> Span {
    const SPACES: [char; 2] = [' ', '\t'];
    let before = tree.source().get(..span.start as usize).unwrap_or_default();
    let after = tree.source().get(span.end as usize..).unwrap_or_default();
    let line_before = before.trim_end_matches(SPACES);
    let start = offset(line_before.len());
    let rest = after.trim_start_matches(SPACES);
    let end = span.end + offset(after.len() - rest.len());
    let starts_line = line_before.ends_with('\n');
    let starts_list = before.ends_with('{') && !rest.starts_with(['\n', '\r', '/']);
    match (starts_line, rest.starts_with('\n') || rest.starts_with("\r\n")) {
        (true, true) => {
            let line_break = if line_before.ends_with("\r\n") { 2 } else { 1 };
            Span::new(start - line_break, span.end)
        }
        (true, false) => Span::new(span.start, end),
        (false, _) if starts_list => Span::new(span.start, end),
        (false, _) => Span::new(start, span.end),
    }
}
