//! The colours of the program, each named by what it marks.
//!
//! In a text, a style is a marker that contains a random number of this process. Text from elsewhere cannot contain one,
//! so the writer knows which escape sequences are the program's own: it turns markers into escape sequences, and shows
//! all others literally.

use anstyle::{AnsiColor, Effects};
use std::borrow::Cow;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

pub(crate) const PLAIN: Style = Style(anstyle::Style::new());
pub(crate) const BOLD: Style = Style(anstyle::Style::new().bold());
pub(crate) const DIM: Style = Style(anstyle::Style::new().dimmed());
/// Success, or something added.
pub(crate) const GOOD: Style = Style(AnsiColor::Green.on_default());
/// Failure, or something removed.
pub(crate) const BAD: Style = Style(AnsiColor::Red.on_default());
/// Something that needs attention.
pub(crate) const CAUTION: Style = Style(AnsiColor::Yellow.on_default());
/// Names of tools, and places.
pub(crate) const ACCENT: Style = Style(AnsiColor::Cyan.on_default());
/// The word `error`.
pub(crate) const ERROR: Style = Style(AnsiColor::BrightRed.on_default().bold());
/// The word `warning`.
pub(crate) const WARNING: Style = Style(AnsiColor::BrightYellow.on_default().bold());
/// The word `help`.
pub(crate) const HELP: Style = Style(AnsiColor::BrightCyan.on_default().bold());
/// The title of a Markdown text.
pub(super) const TITLE: Style = Style(anstyle::Style::new().bold().underline());
/// The address of a link.
pub(super) const LINK: Style = Style(AnsiColor::Blue.on_default());

/// A style, written into a text as `{STYLE}…{STYLE:#}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style(anstyle::Style);

impl Style {
    pub(crate) const fn bold(self) -> Self {
        Self(self.0.bold())
    }

    /// Adds effects.
    pub(super) fn with_effects(self, effects: Effects) -> Self {
        Self(self.0.effects(self.0.get_effects() | effects))
    }

    /// Adds the effects of another style.
    pub(super) fn with_effects_of(self, other: Self) -> Self {
        self.with_effects(other.0.get_effects())
    }

    /// Takes the colour of another style.
    pub(super) fn with_color_of(self, other: Self) -> Self {
        Self(self.0.fg_color(other.0.get_fg_color()))
    }
}

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sequences = match f.alternate() {
            true => self.0.render_reset().to_string(),
            false => self.0.render().to_string(),
        };
        f.write_str(&mark(&sequences))
    }
}

/// The start of an escape sequence of the program.
static MARKER: LazyLock<String> = LazyLock::new(|| format!("{ESCAPE}{:016x}", RandomState::new().hash_one(0)));

const ESCAPE: char = '\u{1b}';

/// Marks the escape sequences of a text as those of the program. There must be none from elsewhere in it.
pub(crate) fn mark(text: &str) -> String {
    text.replace(ESCAPE, &MARKER)
}

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'t> {
    /// An escape sequence of the program, without the escape character.
    Style(&'t str),
    /// Text from anywhere.
    Text(&'t str),
}

/// Splits a text into its styles and what is between them.
pub(super) fn parts(text: &str) -> impl Iterator<Item = Part<'_>> {
    text.split(MARKER.as_str()).enumerate().flat_map(|(index, piece)| {
        // Each piece but the first starts with what follows the marker: an escape sequence, if it was not cut off.
        let (style, text) = match piece.find('m') {
            Some(end) if index > 0 && is_style(piece.get(..end).unwrap_or_default()) => piece.split_at(end + 1),
            _ => ("", piece),
        };
        [Part::Style(style), Part::Text(text)]
            .into_iter()
            .filter(|part| !matches!(part, Part::Style("") | Part::Text("")))
    })
}

/// Returns whether an escape sequence without its end sets a style.
fn is_style(sequence: &str) -> bool {
    sequence.strip_prefix('[').is_some_and(|codes| codes.bytes().all(|byte| byte.is_ascii_digit() || byte == b';'))
}

/// Returns a text without the styles of the program.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(MARKER.as_str()) {
        return Cow::Borrowed(text);
    }
    let texts = parts(text).filter_map(|part| match part {
        Part::Text(text) => Some(text),
        Part::Style(_) => None,
    });
    Cow::Owned(texts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_styles_of_the_program_are_styles() {
        let text = format!("a{ERROR}b\u{1b}[1mc{ERROR:#}d");
        let expected = [
            Part::Text("a"),
            Part::Style("[1m"),
            Part::Style("[91m"),
            Part::Text("b\u{1b}[1mc"),
            Part::Style("[0m"),
            Part::Text("d"),
        ];
        assert_eq!(parts(&text).collect::<Vec<_>>(), expected);
        assert_eq!(plain(&text), "ab\u{1b}[1mcd");
        // A marker that was cut off does not make text a style.
        let cut = format!("{}]0;m\u{7}", MARKER.as_str());
        assert_eq!(parts(&cut).collect::<Vec<_>>(), [Part::Text("]0;m\u{7}")]);
    }
}
