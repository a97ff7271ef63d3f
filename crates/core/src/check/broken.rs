//! Text that could not be read as gram, so that nothing more is said of it.

use patter_gram::{Diagnostic, Span};

/// The places of a file with mistakes of the notation.
pub(super) struct Broken {
    /// Where each place starts, in order, and where the last of all up to it ends.
    places: Vec<(u32, u32)>,
}

impl Broken {
    pub(super) fn of(diagnostics: &[Diagnostic]) -> Self {
        let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error());
        let mut places: Vec<_> = errors.map(|error| (error.span.start, error.span.end)).collect();
        places.sort_unstable();
        let mut last = 0;
        for (_, end) in &mut places {
            last = last.max(*end);
            *end = last;
        }
        Self { places }
    }

    /// Tells whether a piece of text shares any with a place that is broken.
    pub(super) fn overlaps(&self, span: Span) -> bool {
        let before = self.places.partition_point(|(start, _)| *start < span.end);
        let last = before.checked_sub(1).and_then(|last| self.places.get(last));
        last.is_some_and(|(_, end)| *end > span.start)
    }
}
