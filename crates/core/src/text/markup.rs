//! Text in markup and drawings.

use std::fmt::{self, Write};

/// Returns whether a character could disguise the text around it: a control character, or one that overrides the direction
/// of text.
pub const fn is_disguise(character: char) -> bool {
    matches!(character, '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}')
}

/// A text that is written into XML or HTML, also into attributes in quotes.
///
/// ```
/// use patter_core::text::Escaped;
/// assert_eq!(Escaped("a < \"b\"\u{202e}").to_string(), "a &lt; &quot;b&quot;\u{fffd}");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Escaped<'t>(pub &'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| match character {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            '\'' => f.write_str("&#39;"),
            '\n' | '\t' => f.write_char(character),
            '\r' => Ok(()),
            other if is_disguise(other) => f.write_char('\u{fffd}'),
            other => f.write_char(other),
        })
    }
}
