//! Streaming Markdown for a terminal: each word is written as soon as it is complete and its style is known.
//!
//! Text is read character by character, so the output does not depend on how the input was split. What is ambiguous is
//! held back, at most until the end of the line, where it is written literally.

mod block;
mod flow;
mod inline;

use crate::ui::escape;
use anstyle::{AnsiColor, Style};
use block::{Kind, LineStart, classify};
use flow::Flow;
use inline::{Span, scan};

/// The maximum length of text that is held back, in bytes; what is still ambiguous then is literal.
const MAX_HELD: usize = 400;
/// The maximum depth of block quotes.
const MAX_QUOTES: usize = 8;
/// The indentation of code.
const CODE_INDENT: usize = 4;
/// The maximum width of a rule.
const RULE_WIDTH: usize = 40;

const PLAIN: Style = Style::new();
const DIM: Style = Style::new().dimmed();
const HEADING: Style = Style::new().bold();
const TITLE: Style = Style::new().bold().underline();
const CODE: Style = AnsiColor::Cyan.on_default();
const LINK: Style = AnsiColor::Blue.on_default();

/// A renderer of Markdown that arrives in pieces.
pub(crate) struct Markdown {
    flow: Flow,
    context: Context,
    /// The start of a line whose kind is not known yet.
    held: String,
    /// Text of a line that is still ambiguous.
    rest: String,
    /// The character before it.
    before: Option<char>,
    /// The depth of block quotes of the line.
    quotes: usize,
}

/// The context of the next character.
#[derive(Clone, Copy)]
enum Context {
    /// At the start of a line.
    Start,
    /// In running text.
    Text(Style),
    /// In a row of a table.
    Row,
    /// At the start of a line of code.
    CodeStart(Fence),
    /// In a line of code.
    Code(Fence),
}

/// The fence of a code block.
#[derive(Clone, Copy)]
struct Fence {
    marker: char,
    length: usize,
}

impl Markdown {
    /// Returns a renderer for lines of this width.
    pub(crate) fn new(width: usize) -> Self {
        Self {
            flow: Flow::new(width),
            context: Context::Start,
            held: String::new(),
            rest: String::new(),
            before: None,
            quotes: 0,
        }
    }

    /// Adds a piece of text, and returns what can be written. Control characters are escaped.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        for c in escape(&piece.replace('\r', " ")).chars() {
            self.read(c);
        }
        self.flow.take()
    }

    /// Ends the text, and returns what was held back, with a line break if a line is open.
    pub(crate) fn end(&mut self) -> String {
        self.read('\n');
        self.flow.end();
        let out = self.flow.take();
        *self = Self::new(self.flow.width());
        out
    }

    fn read(&mut self, c: char) {
        match self.context {
            Context::Start => self.start(c),
            Context::Text(style) => self.text(c, style),
            Context::Row if c == '\n' => self.end_line(Context::Start),
            Context::Row => self.flow.put_raw(c, PLAIN),
            Context::CodeStart(fence) => self.code_start(c, fence),
            Context::Code(fence) if c == '\n' => self.end_line(Context::CodeStart(fence)),
            Context::Code(_) => self.flow.put_raw(c, PLAIN),
        }
    }

    /// Holds the start of a line until its kind is known.
    fn start(&mut self, c: char) {
        let ended = c == '\n';
        if !ended {
            self.held.push(c);
        }
        let must_decide = ended || self.held.len() > MAX_HELD;
        let Some(found) = classify(&self.held, must_decide) else { return };
        let held = std::mem::take(&mut self.held);
        let rest = held.get(found.length..).unwrap_or_default();
        if self.begin_line(&found, rest) {
            rest.chars().for_each(|c| self.read(c));
            if ended {
                self.read('\n');
            }
        }
    }

    /// Starts a line, and returns whether the rest of it still has to be read.
    fn begin_line(&mut self, found: &LineStart, rest: &str) -> bool {
        // The space after the marker of a quote is part of the marker.
        let indent = found.indent.saturating_sub(usize::from(self.quotes > 0)).min(self.flow.width() / 3);
        let quotes = format!("{DIM}│{DIM:#} ").repeat(self.quotes);
        let lead = format!("{quotes}{:indent$}", "");
        let lead_width = self.quotes * 2 + indent;
        match &found.kind {
            Kind::Blank => {
                if self.quotes > 0 {
                    self.flow.begin(&quotes, self.quotes * 2, "", 0);
                }
                self.end_line(Context::Start);
                return false;
            }
            Kind::Rule => {
                let rule = "─".repeat(self.flow.width().saturating_sub(lead_width).min(RULE_WIDTH));
                self.flow.begin(&format!("{lead}{DIM}{rule}{DIM:#}"), lead_width, "", 0);
                self.end_line(Context::Start);
                return false;
            }
            Kind::Fence { marker, length } => {
                let fence = Fence { marker: *marker, length: *length };
                let label = rest.trim();
                if !label.is_empty() {
                    self.flow.begin(&format!("{lead}{:CODE_INDENT$}", ""), 0, "", 0);
                    label.chars().for_each(|c| self.flow.put_raw(c, DIM));
                    self.flow.line_break();
                }
                self.context = Context::CodeStart(fence);
                self.quotes = 0;
                return false;
            }
            Kind::Quote if self.quotes < MAX_QUOTES => {
                self.quotes += 1;
                return true;
            }
            Kind::Quote => {
                self.begin_text(&lead, lead_width, PLAIN);
                self.text('>', PLAIN);
            }
            Kind::Heading(level) => self.begin_text(&lead, lead_width, if *level == 1 { TITLE } else { HEADING }),
            Kind::Item(marker) => {
                let width = marker.chars().count() + 1;
                let hang = format!("{lead}{:width$}", "");
                self.flow.begin(&format!("{lead}{DIM}{marker}{DIM:#} "), lead_width + width, &hang, lead_width + width);
                self.context = Context::Text(PLAIN);
                self.before = None;
            }
            Kind::Row => {
                self.flow.begin(&lead, lead_width, "", 0);
                self.context = Context::Row;
            }
            Kind::Text => self.begin_text(&lead, lead_width, PLAIN),
        }
        true
    }

    fn begin_text(&mut self, lead: &str, width: usize, style: Style) {
        self.flow.begin(lead, width, lead, width);
        self.context = Context::Text(style);
        self.before = None;
    }

    /// Reads a character of running text, and writes what is no longer ambiguous.
    fn text(&mut self, c: char, style: Style) {
        let ended = c == '\n';
        if !ended {
            self.rest.push(c);
        }
        let rest = std::mem::take(&mut self.rest);
        let mut left = rest.as_str();
        while !left.is_empty() {
            let must_decide = ended || left.len() > MAX_HELD;
            let found = scan(left, self.before, must_decide);
            if matches!(found, Span::Undecided) {
                break;
            }
            left = self.write(left, &found, style);
        }
        left.clone_into(&mut self.rest);
        if ended {
            self.end_line(Context::Start);
        }
    }

    /// Writes what was found at the start of a text, and returns the rest.
    fn write<'t>(&mut self, text: &'t str, found: &Span<'t>, style: Style) -> &'t str {
        let length = match *found {
            Span::Undecided => 0,
            Span::Plain { length, shown } => {
                shown.chars().for_each(|c| self.flow.put(c, style));
                length
            }
            Span::Code { length, content } => {
                let style = CODE.effects(CODE.get_effects() | style.get_effects());
                content.chars().for_each(|c| self.flow.put(c, style));
                length
            }
            Span::Styled { length, content, effects } => {
                self.write_all(content, style.effects(style.get_effects() | effects));
                length
            }
            Span::Link { length, content, address } => {
                let link = style.fg_color(LINK.get_fg_color());
                self.write_all(content, link);
                if !address.is_empty() && content != address {
                    let address = if content.is_empty() { address.to_owned() } else { format!(" ({address})") };
                    address.chars().for_each(|c| self.flow.put(c, DIM));
                }
                length
            }
        };
        let (done, left) = text.split_at_checked(length).unwrap_or((text, ""));
        self.before = done.chars().next_back();
        left
    }

    /// Writes a complete text.
    fn write_all(&mut self, mut text: &str, style: Style) {
        self.before = None;
        while !text.is_empty() {
            let found = scan(text, self.before, true);
            text = self.write(text, &found, style);
        }
    }

    /// Holds the start of a line of code while it may be the closing fence.
    fn code_start(&mut self, c: char, fence: Fence) {
        let is_line = |held: &str| held.trim().chars().count() >= fence.length;
        match c {
            '\n' if is_line(&self.held) => {
                self.held.clear();
                self.context = Context::Start;
            }
            '\n' if self.held.trim().is_empty() => {
                self.held.clear();
                self.end_line(Context::CodeStart(fence));
            }
            '\n' => {
                self.write_code(fence);
                self.end_line(Context::CodeStart(fence));
            }
            _ => {
                self.held.push(c);
                let marks = self.held.trim();
                let may_end = marks.chars().all(|c| c == fence.marker) && self.held.len() <= MAX_HELD;
                if !may_end {
                    self.write_code(fence);
                }
            }
        }
    }

    fn write_code(&mut self, fence: Fence) {
        self.flow.begin(&" ".repeat(CODE_INDENT), CODE_INDENT, "", 0);
        std::mem::take(&mut self.held).chars().for_each(|c| self.flow.put_raw(c, PLAIN));
        self.context = Context::Code(fence);
    }

    fn end_line(&mut self, next: Context) {
        self.flow.line_break();
        self.context = next;
        self.quotes = 0;
        self.before = None;
    }
}

#[cfg(test)]
#[path = "../markdown_tests.rs"]
mod tests;
