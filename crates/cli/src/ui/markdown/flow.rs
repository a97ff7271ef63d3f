//! Filling lines with words.

use super::{PLAIN, Style};
use unicode_width::UnicodeWidthChar;

/// The minimum width of lines.
const MIN_WIDTH: usize = 20;
/// The maximum length of a word that is held back, in bytes.
const MAX_WORD: usize = 4096;
/// The maximum number of line breaks in a row.
const MAX_BREAKS: usize = 3;
const JOINER: char = '\u{200d}';
/// Modifiers of the emoji before them.
const SKIN_TONES: std::ops::RangeInclusive<char> = '\u{1f3fb}'..='\u{1f3ff}';

/// Fills lines with words. Each word is styled separately, so that no style is left open when other output is written.
pub(super) struct Flow {
    width: usize,
    out: String,
    column: usize,
    /// The prefix of wrapped lines, and its width.
    hang: String,
    hang_width: usize,
    word: String,
    word_width: usize,
    /// The open style of the word.
    open: Style,
    /// Whether the word is longer than a line, and is written as it arrives. The terminal wraps it.
    is_long: bool,
    /// Whether the last character joins the next one to it.
    is_joining: bool,
    spaces: usize,
    /// Line breaks to write before the next output.
    breaks: usize,
    has_output: bool,
}

impl Flow {
    pub(super) fn new(width: usize) -> Self {
        Self {
            width: width.max(MIN_WIDTH),
            out: String::new(),
            column: 0,
            hang: String::new(),
            hang_width: 0,
            word: String::new(),
            word_width: 0,
            open: PLAIN,
            is_long: false,
            is_joining: false,
            spaces: 0,
            breaks: 0,
            has_output: false,
        }
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Returns the output since the last call.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    /// Starts a line with a prefix, after the pending line breaks. Wrapped lines start with another prefix.
    pub(super) fn begin(&mut self, lead: &str, width: usize, hang: &str, hang_width: usize) {
        if self.has_output {
            self.out.push_str(&"\n".repeat(self.breaks.min(MAX_BREAKS)));
        }
        self.breaks = 0;
        self.has_output = true;
        self.spaces = 0;
        self.out.push_str(lead);
        hang.clone_into(&mut self.hang);
        self.column = width;
        self.hang_width = hang_width;
    }

    /// Adds a character of running text.
    pub(super) fn put(&mut self, c: char, style: Style) {
        let is_joined = std::mem::replace(&mut self.is_joining, c == JOINER) || SKIN_TONES.contains(&c);
        if c.is_whitespace() {
            self.end_word();
            self.spaces += usize::from(self.column > self.hang_width);
            return;
        }
        let width = match c.width().unwrap_or(0) {
            // Emoji that are joined, such as the members of a family, are one.
            2.. if is_joined => 0,
            width => width,
        };
        // Scripts without spaces can be wrapped between any two characters.
        let is_wide = width > 1;
        if is_wide {
            self.end_word();
        }
        let target = if self.is_long { &mut self.out } else { &mut self.word };
        push_styled(target, &mut self.open, c, style);
        self.word_width += width;
        if is_wide || self.word_width == 0 {
            // Combining characters stay with the one before them.
            self.end_word();
        } else if !self.is_long && self.is_too_long() {
            self.place_word();
            self.is_long = true;
        }
    }

    /// Adds a character of a line that is not wrapped.
    pub(super) fn put_raw(&mut self, c: char, style: Style) {
        push_styled(&mut self.out, &mut self.open, c, style);
    }

    /// Ends the line. The line break is written before the next output.
    pub(super) fn line_break(&mut self) {
        self.end_word();
        self.breaks += 1;
    }

    /// Ends the last line, if there was output.
    pub(super) fn end(&mut self) {
        self.end_word();
        if self.has_output {
            self.out.push('\n');
        }
    }

    /// Returns whether the word has to be written before it ends. Characters may have no width, so its length counts too.
    fn is_too_long(&self) -> bool {
        self.word_width > self.width.saturating_sub(self.hang_width) || self.word.len() > MAX_WORD
    }

    fn end_word(&mut self) {
        let target = if self.is_long || self.word.is_empty() { &mut self.out } else { &mut self.word };
        close(target, &mut self.open);
        if self.is_long {
            self.column = (self.column + self.word_width) % self.width;
        } else if !self.word.is_empty() {
            self.place_word();
            self.column += self.word_width;
        }
        self.word_width = 0;
        self.is_long = false;
    }

    /// Writes the word on this line or on the next.
    fn place_word(&mut self) {
        if self.column + self.spaces + self.word_width > self.width && self.column > self.hang_width {
            self.out.push('\n');
            self.out.push_str(&self.hang);
            self.column = self.hang_width;
        } else {
            self.out.push_str(&" ".repeat(self.spaces));
            self.column += self.spaces;
        }
        self.spaces = 0;
        self.out.push_str(&self.word);
        self.word.clear();
    }
}

fn push_styled(target: &mut String, open: &mut Style, c: char, style: Style) {
    if *open != style {
        close(target, open);
        target.push_str(&style.to_string());
        *open = style;
    }
    target.push(c);
}

fn close(target: &mut String, open: &mut Style) {
    if *open != PLAIN {
        target.push_str(&format!("{open:#}"));
        *open = PLAIN;
    }
}
