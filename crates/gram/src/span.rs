//! Positions in a source text.

use std::borrow::Cow;
use std::ops::Range;

/// A range of bytes in a source text.
///
/// ```
/// use patter_gram::Span;
/// let span = Span::new(4, 9);
/// assert_eq!(span.slice("see hello there"), "hello");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset just after the last byte.
    pub end: u32,
}

impl Span {
    /// Returns the span from `start` up to but excluding `end`.
    pub const fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// Returns the empty span at `offset`.
    pub const fn at(offset: u32) -> Self {
        Self::new(offset, offset)
    }

    /// Returns the span as a range of byte offsets.
    pub const fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Returns the part of `source` that the span covers, or `""` if it is out of bounds or splits a character.
    #[inline]
    pub fn slice(self, source: &str) -> &str {
        source.get(self.range()).unwrap_or_default()
    }

    /// Returns the number of bytes covered.
    pub const fn len(self) -> usize {
        self.end.saturating_sub(self.start) as usize
    }

    /// Returns whether the span is empty.
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// Returns whether `other` lies within this span.
    pub const fn contains(self, other: Span) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// A map from byte offsets to lines and columns, both counted from 1.
///
/// Columns count characters, as editors show them.
///
/// ```
/// use patter_gram::LineIndex;
/// let index = LineIndex::new("ab\ncé d");
/// assert_eq!(index.line_column(0), (1, 1));
/// assert_eq!(index.line_column(7), (2, 4));
/// ```
#[derive(Debug, Clone)]
pub struct LineIndex<'s> {
    source: &'s str,
    lines: Cow<'s, Lines>,
}

/// The lines of a text.
#[derive(Debug, Clone)]
pub(crate) struct Lines {
    /// Where each line starts.
    starts: Vec<u32>,
    /// How many characters start before each multiple of [`STEP`] bytes, so that lookups in long lines are fast too.
    characters: Vec<u32>,
}

const STEP: usize = 256;

impl Lines {
    pub(crate) fn new(source: &str) -> Self {
        let mut starts = vec![0];
        let newlines = memchr::memchr_iter(b'\n', source.as_bytes());
        starts.extend(newlines.map(|at| offset(at + 1)));
        let counts = source.as_bytes().chunks(STEP).scan(0, |total, chunk| {
            let before = *total;
            *total += count_characters(chunk);
            Some(before)
        });
        Self { starts, characters: counts.collect() }
    }
}

impl<'s> LineIndex<'s> {
    /// Indexes the lines of a text. For a tree, [`Tree::line_index`](crate::Tree::line_index) does that only once.
    pub fn new(source: &'s str) -> Self {
        Self { source, lines: Cow::Owned(Lines::new(source)) }
    }

    pub(crate) fn from_lines(source: &'s str, lines: &'s Lines) -> Self {
        Self { source, lines: Cow::Borrowed(lines) }
    }

    /// Returns the line that contains an offset, counted from 1.
    pub fn line(&self, at: u32) -> usize {
        self.lines.starts.partition_point(|start| *start <= at)
    }

    /// Returns the line and the column of an offset, both counted from 1.
    pub fn line_column(&self, at: u32) -> (usize, usize) {
        let line = self.line(at);
        let before = self.characters_before(at) - self.characters_before(self.line_span(line).start);
        (line, before as usize + 1)
    }

    /// Returns the span of a line, counted from 1, including its line break.
    pub fn line_span(&self, line: usize) -> Span {
        let end = offset(self.source.len());
        let start_of = |index: usize| self.lines.starts.get(index).copied().unwrap_or(end);
        Span::new(start_of(line.saturating_sub(1)), start_of(line))
    }

    fn characters_before(&self, at: u32) -> u32 {
        let at = (at as usize).min(self.source.len());
        let block = at.min(self.source.len().saturating_sub(1)) / STEP;
        let counted = self.lines.characters.get(block).copied().unwrap_or(0);
        counted + count_characters(self.source.as_bytes().get(block * STEP..at).unwrap_or_default())
    }
}

fn count_characters(bytes: &[u8]) -> u32 {
    let is_continuation = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    offset(bytes.len() - bytes.iter().filter(is_continuation).count())
}

/// Narrows an offset to the 32 bits that spans use; larger texts are not parsed.
pub(crate) fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
