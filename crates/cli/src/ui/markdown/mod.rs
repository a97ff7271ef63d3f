//! Streaming Markdown for a terminal: each word is written as soon as it is complete and its style is known.
//!
//! Text is read character by character, so the output does not depend on how the input was split. What is ambiguous is
//! held back, at most until the end of the line, where it is written literally.

mod block;
mod flow;
mod inline;
mod table;

use crate::ui::style::{ACCENT, BOLD, DIM, LINK, PLAIN, Style, TITLE};
use crate::ui::text::escape;
use block::{Kind, LineStart, classify};
use flow::Flow;
use inline::{Span, scan, write_span};

/// The maximum length of text that is held back, in bytes; what is still ambiguous then is literal.
const MAX_HELD: usize = 400;
/// The maximum depth of block quotes.
const MAX_QUOTES: usize = 8;
/// The maximum length of a table that is held back until it ends, in bytes.
const MAX_TABLE: usize = 64 * 1024;
/// The indentation of code.
const CODE_INDENT: usize = 4;
/// The maximum width of a rule.
const RULE_WIDTH: usize = 40;

const HEADING: Style = BOLD;
const CODE: Style = ACCENT;

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
    /// The rows of a table that has not ended.
    table: Table,
}

/// Rows of a table, which are held back until all are known.
#[derive(Default)]
struct Table {
    rows: Vec<String>,
    /// The row that is being read.
    row: String,
    /// The prefix of its lines, such as the markers of quotes, and its width.
    lead: String,
    lead_width: usize,
    length: usize,
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
            table: Table::default(),
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
        self.end_table();
        self.flow.end();
        let out = self.flow.take();
        *self = Self::new(self.flow.width());
        out
    }

    fn read(&mut self, c: char) {
        match self.context {
            Context::Start => self.start(c),
            Context::Text(style) => self.text(c, style),
            Context::Row => self.row(c),
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
        let may_continue_table =
            matches!(found.kind, Kind::Row) || (matches!(found.kind, Kind::Quote) && self.quotes < MAX_QUOTES);
        if !may_continue_table {
            self.end_table();
        }
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
                if self.table.lead != lead {
                    self.end_table();
                }
                self.table.lead = lead;
                self.table.lead_width = lead_width;
                self.context = Context::Row;
            }
            Kind::Text => self.begin_text(&lead, lead_width, PLAIN),
        }
        true
    }

    /// Reads a character of a row of a table.
    fn row(&mut self, c: char) {
        let is_end = c == '\n';
        if !is_end {
            self.table.row.push(c);
            self.table.length += c.len_utf8();
        }
        let is_full = self.table.length >= MAX_TABLE;
        if is_end || is_full {
            let row = std::mem::take(&mut self.table.row);
            self.table.rows.push(row);
        }
        if is_full {
            self.end_table();
        }
        if is_end {
            self.context = Context::Start;
            self.quotes = 0;
            self.before = None;
        }
    }

    /// Writes the table that ended: aligned if it is one, and else as it was written.
    fn end_table(&mut self) {
        let Table { mut rows, lead, lead_width, .. } = std::mem::take(&mut self.table);
        rows.retain(|row| !row.is_empty());
        let columns = self.flow.width().saturating_sub(lead_width);
        let lines = table::render(&rows, columns).unwrap_or_else(|| rows.clone());
        for line in lines {
            self.flow.begin(&format!("{lead}{line}"), 0, "", 0);
            self.flow.line_break();
        }
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
        let length = write_span(found, style, &mut |c, style| self.flow.put(c, style));
        let (done, left) = text.split_at_checked(length).unwrap_or((text, ""));
        self.before = done.chars().next_back();
        left
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
