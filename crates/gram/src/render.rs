//! Diagnostics for people: message, excerpt with carets, hint.

use crate::span::offset;
use crate::{Diagnostic, LineIndex, Severity, Span};
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};

/// How to show diagnostics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rendering {
    /// Without colours.
    Plain,
    /// With ANSI colours.
    Colored,
}

/// Shows a diagnostic with the lines it is about.
///
/// ```
/// use patter_gram::{LineIndex, Rendering, parse, render};
/// let source = "(a)->(b)";
/// let (_, diagnostics) = parse(source);
/// let shown = render(&diagnostics[0], source, &LineIndex::new(source), "a.gram", Rendering::Plain);
/// assert!(shown.starts_with("error[G021]: `->` is not an arrow\n --> a.gram:1:4\n"));
/// assert!(shown.ends_with("= help: an arrow has two strokes: `-->`"));
/// ```
pub fn render(
    diagnostic: &Diagnostic,
    source: &str,
    index: &LineIndex<'_>,
    path: &str,
    rendering: Rendering,
) -> String {
    let level = match diagnostic.severity {
        Severity::Warning => Level::WARNING,
        Severity::Error => Level::ERROR,
    };
    let mut marks = vec![Mark { kind: AnnotationKind::Primary, span: diagnostic.span, label: None }];
    for related in &diagnostic.related {
        marks.push(Mark { kind: AnnotationKind::Context, span: related.span, label: Some(&related.message) });
    }
    let mut group = Group::with_title(level.primary_title(diagnostic.message.as_ref()).id(diagnostic.code));
    for excerpt in excerpts(&marks, source, index) {
        let snippet = Snippet::source(excerpt.text).line_start(excerpt.line).annotations(excerpt.annotations);
        if excerpt.is_whole {
            group = group.element(snippet.path(path));
        } else {
            // The excerpt starts within its line, so the column has to be told.
            let (line, column) = index.line_column(excerpt.mark_start);
            group = group.element(Origin::path(path).line(line).char_column(column)).element(snippet);
        }
    }
    if let Some(hint) = &diagnostic.hint {
        group = group.element(Level::HELP.message(hint.as_ref()));
    }
    let renderer = match rendering {
        Rendering::Plain => Renderer::plain(),
        Rendering::Colored => Renderer::styled(),
    };
    let shown = renderer.render(&[group]);
    // Where an excerpt has its place told apart, the renderer leaves an empty mark of another place between the two.
    let lines: Vec<_> = shown.split('\n').filter(|line| !is_empty_mark(line)).collect();
    lines.join("\n")
}

/// Tells whether a line, colours aside, is only `:::`.
fn is_empty_mark(line: &str) -> bool {
    let mut rest = line;
    let mut text = String::new();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        text.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    text.trim() == ":::"
}

struct Mark<'d> {
    kind: AnnotationKind,
    span: Span,
    label: Option<&'d str>,
}

/// Some lines of the source, with what to mark in them.
struct Excerpt<'d> {
    text: &'d str,
    line: usize,
    /// Where the first mark starts in the source.
    mark_start: u32,
    /// Whether it starts where its first line does.
    is_whole: bool,
    annotations: Vec<Annotation<'d>>,
}

/// Marks share an excerpt where at most this many lines,
const NEAR_LINES: usize = 12;
/// and this many bytes, are between them.
const NEAR_BYTES: u32 = 1_000;

/// Cuts out what to show. The primary mark comes first; others join it where they are near.
fn excerpts<'d>(marks: &[Mark<'d>], source: &'d str, index: &LineIndex<'_>) -> Vec<Excerpt<'d>> {
    let mut groups: Vec<Vec<&Mark<'d>>> = Vec::new();
    for mark in marks {
        let is_near = |other: &&Mark<'d>| {
            index.line(other.span.start).abs_diff(index.line(mark.span.start)) <= NEAR_LINES
                && other.span.start.abs_diff(mark.span.start) <= NEAR_BYTES
        };
        match groups.iter_mut().find(|group| group.iter().any(is_near)) {
            Some(group) => group.push(mark),
            None => groups.push(vec![mark]),
        }
    }
    groups.iter().filter_map(|group| excerpt(group, source, index)).collect()
}

fn excerpt<'d>(group: &[&Mark<'d>], source: &'d str, index: &LineIndex<'_>) -> Option<Excerpt<'d>> {
    /// Of a long line, this many bytes around the marks are shown.
    const AROUND: u32 = 200;
    let spans: Vec<_> = group.iter().map(|mark| on_first_line(mark.span, source, index)).collect();
    let first = spans.iter().map(|span| span.start).min()?;
    let last = spans.iter().map(|span| span.end).max()?;
    let line = index.line(first);
    let last_line = index.line(last);
    let start = index.line_span(line).start.max(first.saturating_sub(AROUND));
    let end = index.line_span(last_line).end.min(last.saturating_add(AROUND));
    let start = floor_boundary(source, start);
    let text = Span::new(start, floor_boundary(source, end)).slice(source).trim_end_matches(['\r', '\n']);
    let annotations = group.iter().zip(&spans).map(|(mark, span)| {
        let within = |at: u32| ((at.saturating_sub(start)) as usize).min(text.len());
        mark.kind.span(within(span.start)..within(span.end)).label(mark.label)
    });
    let is_whole = start == index.line_span(line).start;
    Some(Excerpt { text, line, mark_start: spans.first()?.start, is_whole, annotations: annotations.collect() })
}

/// Cuts a span that runs over several lines, or far along one, to what is worth showing.
fn on_first_line(span: Span, source: &str, index: &LineIndex<'_>) -> Span {
    const LONGEST: u32 = 120;
    let line_end = index.line_span(index.line(span.start)).end;
    let line = Span::new(span.start, line_end).slice(source).trim_end_matches(['\r', '\n']);
    let end = span.end.min(span.start + offset(line.len())).min(span.start.saturating_add(LONGEST));
    Span::new(span.start, floor_boundary(source, end).max(span.start))
}

fn floor_boundary(source: &str, at: u32) -> u32 {
    offset(source.floor_char_boundary(at as usize))
}
