//! Text with syntax errors, about which nothing more is reported.

use patter_gram::{Diagnostic, Span, code};

/// The spans of the syntax errors in a file.
pub(super) struct BrokenSpans {
    /// The start of each span, in order, with the furthest end of all spans up to it.
    spans: Vec<(u32, u32)>,
}

impl BrokenSpans {
    pub(super) fn new(diagnostics: &[Diagnostic]) -> Self {
        let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error());
        let mut spans: Vec<_> = errors.map(|error| (start(error), error.span.end.max(start(error) + 1))).collect();
        spans.sort_unstable();
        let mut last = 0;
        for (_, end) in &mut spans {
            last = last.max(*end);
            *end = last;
        }
        Self { spans }
    }

    /// Returns whether a span overlaps with a syntax error.
    pub(super) fn overlaps(&self, span: Span) -> bool {
        let before = self.spans.partition_point(|(start, _)| *start < span.end);
        let last = before.checked_sub(1).and_then(|last| self.spans.get(last));
        last.is_some_and(|(_, end)| *end > span.start)
    }
}

/// Returns where an error starts. Everything after a bracket that is not closed may be misunderstood, so it starts there.
fn start(error: &Diagnostic) -> u32 {
    let openers = error.related.iter().filter(|_| error.code == code::UNCLOSED);
    openers.map(|opener| opener.span.start).chain([error.span.start]).min().unwrap_or_default()
}
