//! Markup that is safe by how it is made: what comes from data is escaped unless it is markup already.

use std::fmt::{self, Display, Write};

/// A piece of a page. Only [`html!`] makes one of a text, and only of texts that are written in the program.
#[derive(Debug, Clone, Default)]
pub(super) struct Html(String);

/// Something that has a place in markup.
pub(super) trait Show {
    fn show(&self) -> impl Display;
}

/// Makes markup of a template in the program and values, which are escaped. Names in braces are not possible, as the
/// template comes out of `concat!`: so no value goes in unescaped.
macro_rules! html {
    ($template:literal $(, $value:expr)* $(,)?) => {
        $crate::report::html::Html::written(
            format!(concat!($template) $(, $crate::report::html::Show::show(&$value))*)
        )
    };
}
pub(super) use html;

impl Html {
    /// Takes what [`html!`] has written.
    pub(super) fn written(markup: String) -> Self {
        Self(markup)
    }

    pub(super) fn push(&mut self, other: &Html) {
        self.0.push_str(&other.0);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn into_page(self) -> String {
        self.0
    }
}

impl FromIterator<Html> for Html {
    fn from_iter<I: IntoIterator<Item = Html>>(pieces: I) -> Self {
        let mut all = Html::default();
        for piece in pieces {
            all.push(&piece);
        }
        all
    }
}

struct Escaped<'t>(&'t str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| match character {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            '\'' => f.write_str("&#39;"),
            '\n' | '\t' => f.write_char(character),
            // Browsers change or drop these, and those that turn the direction of text could make it read otherwise.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}' => f.write_char('\u{fffd}'),
            '\r' => Ok(()),
            control if control.is_control() => f.write_char('\u{fffd}'),
            other => f.write_char(other),
        })
    }
}

impl Show for Html {
    fn show(&self) -> impl Display {
        &self.0
    }
}

impl Show for str {
    fn show(&self) -> impl Display {
        Escaped(self)
    }
}

impl Show for String {
    fn show(&self) -> impl Display {
        Escaped(self)
    }
}

impl<T: Show + ?Sized> Show for &T {
    fn show(&self) -> impl Display {
        (**self).show()
    }
}

macro_rules! numbers {
    ($($number:ty),*) => { $(impl Show for $number {
        fn show(&self) -> impl Display {
            *self
        }
    })* };
}
numbers!(usize, u32, u64);

/// A place or size in a drawing, in as few digits as are seen.
impl Show for f64 {
    fn show(&self) -> impl Display {
        let rounded = (self * 10.0).round() / 10.0;
        if rounded.is_finite() { rounded + 0.0 } else { 0.0 }
    }
}

/// Returns a sentence in which names stand in backticks. Lines do not break before the unit of a number.
pub(super) fn prose(words: &str) -> Html {
    let words = words.replace(" %", "\u{a0}%").replace(" points", "\u{a0}points");
    let parts: Vec<&str> = words.split('`').collect();
    // What is left open is no name.
    let closed = parts.len() - (parts.len() + 1) % 2;
    let piece = |(place, part): (usize, &&str)| match place % 2 {
        1 if place < closed => html!("<code>{}</code>", part),
        1 => html!("`{}", part),
        _ => html!("{}", part),
    };
    parts.iter().enumerate().map(piece).collect()
}
