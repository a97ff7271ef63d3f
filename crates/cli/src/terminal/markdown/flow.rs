//! Words into lines.

use anstyle::Style;
use unicode_width::UnicodeWidthChar;

/// The narrowest lines there are.
const NARROWEST: usize = 20;
/// How long a word is at most before it goes out, in bytes.
const MOST_WORD: usize = 4096;
/// Two empty lines are as good as more.
const MOST_BREAKS: usize = 3;
const PLAIN: Style = Style::new();

/// Fills lines with words. Each word is styled for itself, so that nothing is left open where others write too.
pub(super) struct Flow {
    width: usize,
    out: String,
    column: usize,
    /// What lines after the first begin with, and how wide that is.
    hang: String,
    hang_width: usize,
    word: String,
    word_width: usize,
    /// The style that is open in the word.
    open: Style,
    /// The word is longer than a line, and goes out as it comes: the terminal breaks it where it must.
    is_long: bool,
    spaces: usize,
    /// The lines that were ended, and are written when something follows.
    breaks: usize,
    is_begun: bool,
}

impl Flow {
    pub(super) fn new(width: usize) -> Self {
        Self {
            width: width.max(NARROWEST),
            out: String::new(),
            column: 0,
            hang: String::new(),
            hang_width: 0,
            word: String::new(),
            word_width: 0,
            open: PLAIN,
            is_long: false,
            spaces: 0,
            breaks: 0,
            is_begun: false,
        }
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Returns what was written since the last time.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    /// Begins a line with a lead, after the lines that were ended; if it is broken, it goes on with another.
    pub(super) fn begin(&mut self, lead: &str, width: usize, hang: &str, hang_width: usize) {
        if self.is_begun {
            self.out.push_str(&"\n".repeat(self.breaks.min(MOST_BREAKS)));
        }
        (self.breaks, self.is_begun, self.spaces) = (0, true, 0);
        self.out.push_str(lead);
        hang.clone_into(&mut self.hang);
        (self.column, self.hang_width) = (width, hang_width);
    }

    /// Adds a character of running text.
    pub(super) fn put(&mut self, c: char, style: Style) {
        if c.is_whitespace() {
            self.end_word();
            self.spaces += usize::from(self.column > self.hang_width);
            return;
        }
        let width = c.width().unwrap_or(0);
        // Scripts without spaces can be broken between any two characters.
        let is_wide = width > 1;
        if is_wide {
            self.end_word();
        }
        let target = if self.is_long { &mut self.out } else { &mut self.word };
        push_styled(target, &mut self.open, c, style);
        self.word_width += width;
        if is_wide {
            self.end_word();
        } else if !self.is_long && self.is_too_long() {
            self.place_word();
            self.is_long = true;
        }
    }

    /// Adds a character of a line that is not broken.
    pub(super) fn put_raw(&mut self, c: char, style: Style) {
        push_styled(&mut self.out, &mut self.open, c, style);
    }

    /// Ends the line. It is written when something follows.
    pub(super) fn line_break(&mut self) {
        self.end_word();
        self.breaks += 1;
    }

    /// Ends the last line, if there is one.
    pub(super) fn end(&mut self) {
        self.end_word();
        if self.is_begun {
            self.out.push('\n');
        }
    }

    /// Characters may have no width, so it is not the only measure.
    fn is_too_long(&self) -> bool {
        self.word_width > self.width.saturating_sub(self.hang_width) || self.word.len() > MOST_WORD
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
        (self.word_width, self.is_long) = (0, false);
    }

    /// Writes the word, on this line or on the next.
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
        target.push_str(&style.render().to_string());
        *open = style;
    }
    target.push(c);
}

fn close(target: &mut String, open: &mut Style) {
    if *open != PLAIN {
        target.push_str(&open.render_reset().to_string());
        *open = PLAIN;
    }
}
