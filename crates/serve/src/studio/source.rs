//! Gram text as people read it: with colours, line numbers, and the findings of the check where they are.

use patter::gram::{Diagnostic, Kind, Span, Tree};
use patter::html::{Html, html};
use std::collections::BTreeMap;

/// The maximum number of lines that are shown. An agent is rarely longer than a few hundred.
const MAX_LINES: usize = 5000;

/// A part of the text, and what it is.
struct Piece {
    span: Span,
    class: &'static str,
}

/// Shows the lines of a text that a span touches, with the findings in them.
pub(super) fn show_source(tree: &Tree, part: Span, findings: &[&Diagnostic]) -> Html {
    let index = tree.line_index();
    let source = tree.source();
    let first = index.line(part.start);
    let last = index.line(part.end.max(part.start + 1) - 1);
    let pieces = pieces(tree);
    let mut by_line: BTreeMap<usize, Vec<&Diagnostic>> = BTreeMap::new();
    for finding in findings {
        by_line.entry(index.line(finding.span.start).clamp(first, last)).or_default().push(finding);
    }
    let mut at = 0;
    let mut lines = Html::default();
    for line in first..=last.min(first + MAX_LINES - 1) {
        let span = index.line_span(line);
        while pieces.get(at).is_some_and(|piece| piece.span.end <= span.start) {
            at += 1;
        }
        let found = by_line.get(&line).map(Vec::as_slice).unwrap_or_default();
        let text = show_line(source, span, pieces.get(at..).unwrap_or_default(), found);
        let notes: Html = found.iter().map(|finding| show_finding(finding)).collect();
        lines.push(&html!("<li id=\"L{}\" data-line=\"{}\"><code>{}</code>{}</li>", line, line, text, notes));
    }
    let hidden = (last - first + 1).saturating_sub(MAX_LINES);
    let rest = if hidden > 0 { html!("<p class=\"quiet\">{} more lines</p>", hidden) } else { Html::default() };
    html!("<ol class=\"source\" start=\"{}\">{}</ol>{}", first, lines, rest)
}

/// Returns the parts of a text that have a colour, in order and without overlaps.
fn pieces(tree: &Tree) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut end = 0;
    for syntax in tree.root().descendants() {
        let class = match syntax.kind() {
            Kind::Identifier | Kind::Reference => "name",
            Kind::Label => "label",
            Kind::Key | Kind::Annotation | Kind::Header | Kind::Tag => "key",
            Kind::String | Kind::Fence => "string",
            Kind::Integer | Kind::Decimal | Kind::Hexadecimal | Kind::Octal | Kind::Measurement | Kind::Range => {
                "number"
            }
            Kind::Boolean | Kind::Symbol => "word",
            Kind::Error => "error",
            _ => continue,
        };
        // What is inside of a piece has its colour.
        if syntax.span().start >= end && syntax.span().end > syntax.span().start {
            end = syntax.span().end;
            pieces.push(Piece { span: syntax.span(), class });
        }
    }
    pieces.extend(tree.comments().map(|comment| Piece { span: comment.span, class: "comment" }));
    pieces.sort_by_key(|piece| piece.span.start);
    pieces
}

/// Shows a line: its pieces, and marks where findings are.
fn show_line(source: &str, line: Span, pieces: &[Piece], findings: &[&Diagnostic]) -> Html {
    let text = line.slice(source).trim_end_matches(['\n', '\r']);
    let end = line.start + u32::try_from(text.len()).unwrap_or_default();
    let inside: Vec<_> = pieces.iter().take_while(|piece| piece.span.start < end).collect();
    // The line is cut wherever a piece or a finding starts or ends.
    let spans = inside.iter().map(|piece| piece.span).chain(findings.iter().map(|finding| finding.span));
    let mut cuts: Vec<_> = spans.flat_map(|span| [span.start, span.end]).map(|at| at.clamp(line.start, end)).collect();
    cuts.extend([line.start, end]);
    cuts.sort_unstable();
    cuts.dedup();
    let mut next = 0;
    let mut shown = Html::default();
    for (start, end) in cuts.iter().zip(cuts.iter().skip(1)) {
        while inside.get(next).is_some_and(|piece| piece.span.end <= *start) {
            next += 1;
        }
        let class = inside.get(next).filter(|piece| piece.span.start <= *start).map_or("", |piece| piece.class);
        let part = Span::new(*start, *end).slice(source);
        let part =
            if class.is_empty() { html!("{}", part) } else { html!("<span class=\"g-{}\">{}</span>", class, part) };
        let found = findings.iter().find(|finding| finding.span.start <= *start && *end <= finding.span.end);
        shown.push(&match found {
            Some(finding) => html!("<mark class=\"{}\">{}</mark>", severity(finding), part),
            None => part,
        });
    }
    shown
}

/// Shows a finding below its line.
pub(super) fn show_finding(finding: &Diagnostic) -> Html {
    let hint = match &finding.hint {
        Some(hint) => html!(" <span class=\"quiet\">{}</span>", patter::html::prose(hint)),
        None => Html::default(),
    };
    html!(
        "<p class=\"finding {}\"><b>{} {}</b> {}{}</p>",
        severity(finding),
        severity(finding),
        finding.code,
        patter::html::prose(&finding.message),
        hint
    )
}

/// Returns the name of a severity.
pub(super) fn severity(finding: &Diagnostic) -> &'static str {
    if finding.is_error() { "error" } else { "warning" }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use patter::gram::parse;

    fn shown(text: &str, findings: &[&Diagnostic]) -> String {
        let (tree, _) = parse(text);
        let all = Span::new(0, u32::try_from(text.len()).unwrap());
        show_source(&tree, all, findings).into_page()
    }

    /// Returns the text of markup.
    fn plain(page: &str) -> String {
        let mut text = String::new();
        let mut is_tag = false;
        for c in page.replace("</li>", "\n</li>").chars() {
            match c {
                '<' => is_tag = true,
                '>' => is_tag = false,
                c if !is_tag => text.push(c),
                _ => {}
            }
        }
        text.replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "\"")
            .replace("&#39;", "'")
            .replace("&amp;", "&")
    }

    #[test]
    fn no_character_is_lost() {
        for text in [
            "[a:Agent { model: 'demo', n: 1.5 } | b, `c/d`] // why\n(x)-->(y)\n",
            "[a:Agent {\n  instruction: ```\nLine & <b>\n```\n}]\n",
            "[broken:Agent { x: 'unclosed\n",
            "",
            "é `\u{1f600}` 'x\n\n'",
        ] {
            assert_eq!(plain(&shown(text, &[])).trim_end(), text.trim_end(), "{text}");
        }
    }

    #[test]
    fn findings_are_marked_where_they_are() {
        let text = "[a:Agent {\n  modle: 'demo'\n}]";
        let finding = Diagnostic::error("P004", Span::new(13, 18), "an agent has no property `modle`");
        let page = shown(text, &[&finding]);
        assert!(page.contains("<mark class=\"error\"><span class=\"g-key\">modle</span></mark>"), "{page}");
        let line = page.split("<li ").nth(2).unwrap();
        assert!(line.contains("<b>error P004</b> an agent has no property <code>modle</code>"), "{line}");
    }

    #[test]
    fn markup_in_text_is_text() {
        let page = shown("[a:Agent { x: '</code><script>alert(1)</script>' }]", &[]);
        assert!(!page.contains("<script"), "{page}");
    }
}
