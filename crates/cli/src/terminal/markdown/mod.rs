//! Markdown for a terminal, while it comes: each word goes out as soon as it is complete and its style is known.
//!
//! Text is read character by character, so what comes out does not depend on the pieces in which it came. What cannot be
//! decided is held back, and never for longer than a line: at its end it goes out as it is.

mod block;
mod flow;
mod inline;

use crate::diagnostics::visible;
use anstyle::{AnsiColor, Style};
use block::{Begin, Kind, begin};
use flow::Flow;
use inline::{Found, scan};

/// The most that is held back, in bytes; what is not decided by then is text.
const MOST_HELD: usize = 400;
/// The most block quotes within one another.
const MOST_QUOTES: usize = 8;
/// How far code is moved to the right.
const CODE_INDENT: usize = 4;
/// How wide a rule is at most.
const RULE_WIDTH: usize = 40;

const PLAIN: Style = Style::new();
const DIM: Style = Style::new().dimmed();
const HEADING: Style = Style::new().bold();
const TITLE: Style = Style::new().bold().underline();
const CODE: Style = AnsiColor::Cyan.on_default();
const LINK: Style = AnsiColor::Blue.on_default();

/// Turns Markdown that comes in pieces into styled lines of a terminal.
pub(crate) struct Markdown {
    flow: Flow,
    place: Place,
    /// The beginning of a line, while it is not known what line it is.
    held: String,
    /// Text of a line that is not decided.
    rest: String,
    /// The character before it.
    before: Option<char>,
    /// How many quotes the line is in.
    quotes: usize,
}

/// Where the next character stands.
#[derive(Clone, Copy)]
enum Place {
    /// At the beginning of a line.
    Start,
    /// In running text.
    Text(Style),
    /// In a row of a table.
    Row,
    /// At the beginning of a line of code.
    CodeStart(Fence),
    /// In a line of code.
    Code(Fence),
}

/// What a block of code begins and ends with.
#[derive(Clone, Copy)]
struct Fence {
    marker: char,
    length: usize,
}

impl Markdown {
    /// Returns a renderer for lines of so many columns.
    pub(crate) fn new(width: usize) -> Self {
        let (held, rest) = (String::new(), String::new());
        Self { flow: Flow::new(width), place: Place::Start, held, rest, before: None, quotes: 0 }
    }

    /// Takes the next piece, and returns what can be written by now. What would drive the terminal is made visible.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        for c in visible(&piece.replace('\r', " ")).chars() {
            self.take(c);
        }
        self.flow.take()
    }

    /// Ends the text: returns what was held back, and the end of the line if there is one to end.
    pub(crate) fn end(&mut self) -> String {
        self.take('\n');
        self.flow.end();
        let out = self.flow.take();
        *self = Self::new(self.flow.width());
        out
    }

    fn take(&mut self, c: char) {
        match self.place {
            Place::Start => self.start(c),
            Place::Text(style) => self.text(c, style),
            Place::Row if c == '\n' => self.end_line(Place::Start),
            Place::Row => self.flow.put_raw(c, PLAIN),
            Place::CodeStart(fence) => self.code_start(c, fence),
            Place::Code(fence) if c == '\n' => self.end_line(Place::CodeStart(fence)),
            Place::Code(_) => self.flow.put_raw(c, PLAIN),
        }
    }

    /// Holds the beginning of a line until it is known what line it is.
    fn start(&mut self, c: char) {
        let ended = c == '\n';
        if !ended {
            self.held.push(c);
        }
        let must_decide = ended || self.held.len() > MOST_HELD;
        let Some(found) = begin(&self.held, must_decide) else { return };
        let held = std::mem::take(&mut self.held);
        let rest = held.get(found.length..).unwrap_or_default();
        if self.begin_line(&found, rest) {
            rest.chars().for_each(|c| self.take(c));
            if ended {
                self.take('\n');
            }
        }
    }

    /// Begins a line; tells whether its rest is still to be read.
    fn begin_line(&mut self, found: &Begin, rest: &str) -> bool {
        // The space after the mark of a quote belongs to it.
        let indent = found.indent.saturating_sub(usize::from(self.quotes > 0)).min(self.flow.width() / 3);
        let quotes = format!("{DIM}│{DIM:#} ").repeat(self.quotes);
        let (lead, lead_width) = (format!("{quotes}{:indent$}", ""), self.quotes * 2 + indent);
        match &found.kind {
            Kind::Blank => {
                if self.quotes > 0 {
                    self.flow.begin(&quotes, self.quotes * 2, "", 0);
                }
                self.end_line(Place::Start);
                return false;
            }
            Kind::Rule => {
                let rule = "─".repeat(self.flow.width().saturating_sub(lead_width).min(RULE_WIDTH));
                self.flow.begin(&format!("{lead}{DIM}{rule}{DIM:#}"), lead_width, "", 0);
                self.end_line(Place::Start);
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
                (self.place, self.quotes) = (Place::CodeStart(fence), 0);
                return false;
            }
            Kind::Quote if self.quotes < MOST_QUOTES => {
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
                (self.place, self.before) = (Place::Text(PLAIN), None);
            }
            Kind::Row => {
                self.flow.begin(&lead, lead_width, "", 0);
                self.place = Place::Row;
            }
            Kind::Text => self.begin_text(&lead, lead_width, PLAIN),
        }
        true
    }

    fn begin_text(&mut self, lead: &str, width: usize, style: Style) {
        self.flow.begin(lead, width, lead, width);
        (self.place, self.before) = (Place::Text(style), None);
    }

    /// Takes a character of running text, and writes what is decided by it.
    fn text(&mut self, c: char, style: Style) {
        let ended = c == '\n';
        if !ended {
            self.rest.push(c);
        }
        let rest = std::mem::take(&mut self.rest);
        let mut left = rest.as_str();
        while !left.is_empty() {
            let must_decide = ended || left.len() > MOST_HELD;
            let found = scan(left, self.before, must_decide);
            if matches!(found, Found::Undecided) {
                break;
            }
            left = self.write(left, &found, style);
        }
        left.clone_into(&mut self.rest);
        if ended {
            self.end_line(Place::Start);
        }
    }

    /// Writes what was found at the beginning of a text, and returns what comes after it.
    fn write<'t>(&mut self, text: &'t str, found: &Found<'t>, style: Style) -> &'t str {
        let length = match *found {
            Found::Undecided => 0,
            Found::Plain { length, shown } => {
                shown.chars().for_each(|c| self.flow.put(c, style));
                length
            }
            Found::Code { length, content } => {
                let style = CODE.effects(CODE.get_effects() | style.get_effects());
                content.chars().for_each(|c| self.flow.put(c, style));
                length
            }
            Found::Styled { length, content, effects } => {
                self.write_all(content, style.effects(style.get_effects() | effects));
                length
            }
            Found::Link { length, content, address } => {
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

    /// Writes text that is complete.
    fn write_all(&mut self, mut text: &str, style: Style) {
        self.before = None;
        while !text.is_empty() {
            let found = scan(text, self.before, true);
            text = self.write(text, &found, style);
        }
    }

    /// Holds the beginning of a line of code while it may be the end of the code.
    fn code_start(&mut self, c: char, fence: Fence) {
        let is_line = |held: &str| held.trim().chars().count() >= fence.length;
        match c {
            '\n' if is_line(&self.held) => {
                self.held.clear();
                self.place = Place::Start;
            }
            '\n' if self.held.trim().is_empty() => {
                self.held.clear();
                self.end_line(Place::CodeStart(fence));
            }
            '\n' => {
                self.write_code(fence);
                self.end_line(Place::CodeStart(fence));
            }
            _ => {
                self.held.push(c);
                let marks = self.held.trim();
                let may_end = marks.chars().all(|c| c == fence.marker) && self.held.len() <= MOST_HELD;
                if !may_end {
                    self.write_code(fence);
                }
            }
        }
    }

    fn write_code(&mut self, fence: Fence) {
        self.flow.begin(&" ".repeat(CODE_INDENT), CODE_INDENT, "", 0);
        std::mem::take(&mut self.held).chars().for_each(|c| self.flow.put_raw(c, PLAIN));
        self.place = Place::Code(fence);
    }

    fn end_line(&mut self, next: Place) {
        self.flow.line_break();
        (self.place, self.quotes, self.before) = (next, 0, None);
    }
}

#[cfg(test)]
#[path = "../markdown_tests.rs"]
mod tests;
