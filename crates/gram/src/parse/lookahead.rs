//! Searching ahead of the parser.

use memchr::{memchr, memmem};

/// Cached results of searching ahead, so that repeated searches take constant time.
#[derive(Default)]
pub(super) struct Lookahead {
    /// Where the last search for `*/` started, and the end it found, if any.
    comment: Option<(usize, Option<usize>)>,
    /// For each quote, where the last search started, and the position it found, if any.
    quotes: [Option<(usize, Option<usize>)>; 3],
}

impl Lookahead {
    /// Returns the end of the first `*/` at or after `from`.
    pub(super) fn comment_end(&mut self, bytes: &[u8], from: usize) -> Option<usize> {
        if let Some((since, None)) = self.comment
            && from >= since
        {
            return None;
        }
        let end = memmem::find(bytes.get(from..)?, b"*/").map(|at| from + at + 2);
        self.comment = Some((from, end));
        end
    }

    /// Returns the first position of a quote at or after `from`.
    pub(super) fn quote(&mut self, bytes: &[u8], quote: u8, from: usize) -> Option<usize> {
        let slot = match quote {
            b'"' => self.quotes.get_mut(0)?,
            b'\'' => self.quotes.get_mut(1)?,
            _ => self.quotes.get_mut(2)?,
        };
        if let Some((since, found)) = *slot
            && from >= since
            && found.is_none_or(|at| at >= from)
        {
            return found;
        }
        let found = memchr(quote, bytes.get(from..)?).map(|at| from + at);
        *slot = Some((from, found));
        found
    }
}
