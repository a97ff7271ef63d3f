//! Markup that is safe by construction: data is escaped, unless it is markup already. The pages that Patter writes, reports
//! and the studio, are made of it, and share a theme.

use patter_core::text::Escaped;
use std::fmt::Display;

/// The colours and fonts of all pages, and their base styles.
pub const THEME: &str = include_str!("theme.css");

/// A piece of markup. [`html!`](crate::html::html) creates it from literals in the program and escaped values.
///
/// ```
/// use patter::html::html;
/// assert_eq!(html!("<b>{}</b>", "1 < 2").into_page(), "<b>1 &lt; 2</b>");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Html(String);

/// A value that can be inserted into markup.
pub trait ToHtml {
    /// Returns what is inserted.
    fn to_html(&self) -> impl Display;
}

/// Creates markup from a literal template and values, which are escaped. The template is passed through `concat!`, which
/// rules out inline arguments such as `{name}`, so no value is inserted unescaped.
#[doc(hidden)]
#[macro_export]
macro_rules! __html {
    ($template:literal $(, $value:expr)* $(,)?) => {
        $crate::html::Html::from_markup(
            format!(concat!($template) $(, $crate::html::ToHtml::to_html(&$value))*)
        )
    };
}
#[doc(inline)]
pub use __html as html;

impl Html {
    /// Wraps markup as it is. It must not contain data that was not escaped.
    pub fn from_markup(markup: String) -> Self {
        Self(markup)
    }

    /// Appends markup.
    pub fn push(&mut self, other: &Html) {
        self.0.push_str(&other.0);
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the text of a page.
    pub fn into_page(self) -> String {
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

impl<'h> FromIterator<&'h Html> for Html {
    fn from_iter<I: IntoIterator<Item = &'h Html>>(pieces: I) -> Self {
        let mut all = Html::default();
        pieces.into_iter().for_each(|piece| all.push(piece));
        all
    }
}

impl ToHtml for Html {
    fn to_html(&self) -> impl Display {
        &self.0
    }
}

impl ToHtml for str {
    fn to_html(&self) -> impl Display {
        Escaped(self)
    }
}

impl ToHtml for String {
    fn to_html(&self) -> impl Display {
        Escaped(self)
    }
}

impl<T: ToHtml + ?Sized> ToHtml for &T {
    fn to_html(&self) -> impl Display {
        (**self).to_html()
    }
}

macro_rules! numbers {
    ($($number:ty),*) => { $(impl ToHtml for $number {
        fn to_html(&self) -> impl Display {
            *self
        }
    })* };
}
numbers!(usize, u32, u64);

/// A coordinate or size in a drawing, rounded to visible precision.
impl ToHtml for f64 {
    fn to_html(&self) -> impl Display {
        let rounded = (self * 10.0).round() / 10.0;
        if rounded.is_finite() { rounded + 0.0 } else { 0.0 }
    }
}

/// Renders a sentence with names in backticks as code, and keeps numbers and units on one line.
pub fn prose(words: &str) -> Html {
    let words = words.replace(" points", "\u{a0}points");
    let parts: Vec<&str> = words.split('`').collect();
    // An unmatched backtick does not start a name.
    let closed = parts.len() - (parts.len() + 1) % 2;
    let piece = |(index, part): (usize, &&str)| match index % 2 {
        1 if index < closed => html!("<code>{}</code>", part),
        1 => html!("`{}", part),
        _ => html!("{}", part),
    };
    parts.iter().enumerate().map(piece).collect()
}
