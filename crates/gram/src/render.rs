//! Rendering diagnostics for a terminal: message, excerpt with carets, hint.

use crate::span::offset;
use crate::{Diagnostic, LineIndex, Severity, Span};
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use std::borrow::Cow;

/// How to render diagnostics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rendering {
    /// Without colours.
    Plain,
    /// With ANSI colours.
    Colored,
}

/// Renders a diagnostic with the lines it refers to.
///
/// ```
/// use patter_gram::{LineIndex, Rendering, parse, render};
/// let source = "(a)->(b)";
/// let (_, diagnostics) = parse(source);
/// let rendered = render(&diagnostics[0], source, &LineIndex::new(source), "a.gram", Rendering::Plain);
/// assert!(rendered.starts_with("error[G021]: `->` is not an arrow\n --> a.gram:1:4\n"));
/// assert!(rendered.ends_with("= help: an arrow has two strokes: `-->`"));
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
    let path = &without_escapes(path);
    let mut marks = vec![Mark { kind: AnnotationKind::Primary, span: diagnostic.span, label: None }];
    for related in &diagnostic.related {
        marks.push(Mark {
            kind: AnnotationKind::Context,
            span: related.span,
            label: Some(without_escapes(&related.message)),
        });
    }
    let mut group = Group::with_title(level.primary_title(diagnostic.message.as_ref()).id(diagnostic.code));
    for excerpt in excerpts(&marks, source, index) {
        let snippet = Snippet::source(excerpt.text).line_start(excerpt.line).annotations(excerpt.annotations);
        if excerpt.is_whole {
            group = group.element(snippet.path(path.as_ref()));
        } else {
            // The excerpt starts mid-line, so the renderer cannot compute the column.
            let (line, column) = index.line_column(excerpt.mark_start);
            group = group.element(Origin::path(path.as_ref()).line(line).char_column(column)).element(snippet);
        }
    }
    if let Some(hint) = &diagnostic.hint {
        group = group.element(Level::HELP.message(without_escapes(hint)));
    }
    let renderer = match rendering {
        Rendering::Plain => Renderer::plain(),
        Rendering::Colored => Renderer::styled(),
    };
    let rendered = renderer.render(&[group]);
    // Between an explicit origin and its snippet, the renderer prints an empty `:::` line.
    let lines: Vec<_> = rendered.split('\n').filter(|line| !is_empty_mark(line)).collect();
    lines.join("\n")
}

/// Replaces the escape character, as the renderer does in excerpts: only colours of the renderer are escape sequences.
fn without_escapes(text: &str) -> Cow<'_, str> {
    if text.contains('\u{1b}') { Cow::Owned(text.replace('\u{1b}', "␛")) } else { Cow::Borrowed(text) }
}

/// Returns whether a line contains only `:::`, ignoring colours.
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
    label: Option<Cow<'d, str>>,
}

/// A few lines of the source, with the marks in them.
struct Excerpt<'d> {
    text: &'d str,
    line: usize,
    /// The offset of the first mark in the source.
    mark_start: u32,
    /// Whether the text starts at the beginning of its first line.
    is_whole: bool,
    annotations: Vec<Annotation<'d>>,
}

/// Marks share an excerpt if they are at most this many lines
const NEAR_LINES: usize = 12;
/// and this many bytes apart.
const NEAR_BYTES: u32 = 1_000;

/// Groups the marks into excerpts. The primary mark comes first; marks near it share its excerpt.
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
    /// How many bytes of a long line to show on each side of the marks.
    const AROUND: u32 = 200;
    let spans: Vec<_> = group.iter().map(|mark| truncate_to_line(mark.span, source, index)).collect();
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
        mark.kind.span(within(span.start)..within(span.end)).label(mark.label.clone())
    });
    let is_whole = start == index.line_span(line).start;
    Some(Excerpt { text, line, mark_start: spans.first()?.start, is_whole, annotations: annotations.collect() })
}

/// Truncates a span to its first line and to a length worth underlining.
fn truncate_to_line(span: Span, source: &str, index: &LineIndex<'_>) -> Span {
    const MAX_LENGTH: u32 = 120;
    let line_end = index.line_span(index.line(span.start)).end;
    let line = Span::new(span.start, line_end).slice(source).trim_end_matches(['\r', '\n']);
    let end = span.end.min(span.start + offset(line.len())).min(span.start.saturating_add(MAX_LENGTH));
    Span::new(span.start, floor_boundary(source, end).max(span.start))
}

fn floor_boundary(source: &str, at: u32) -> u32 {
    offset(source.floor_char_boundary(at as usize))
}
