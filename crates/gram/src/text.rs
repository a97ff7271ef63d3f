//! Quoting, unquoting and dedenting text.

use crate::tree::Flags;
use std::borrow::Cow;

/// Returns the text within quotes, with escapes resolved. Text without quotes is returned unchanged.
#[inline]
pub(crate) fn unquote(text: &str, flags: Flags) -> Cow<'_, str> {
    match text.as_bytes().first() {
        Some(quote @ (b'"' | b'\'' | b'`')) => unquote_with(text, char::from(*quote), flags),
        _ => Cow::Borrowed(text),
    }
}

fn unquote_with(text: &str, quote: char, flags: Flags) -> Cow<'_, str> {
    let inner = text.strip_prefix(quote).unwrap_or(text);
    let inner = match flags.contains(Flags::UNCLOSED) {
        true => inner,
        false => inner.strip_suffix(quote).unwrap_or(inner),
    };
    if flags.contains(Flags::ESCAPED) { Cow::Owned(unescape(inner, quote)) } else { Cow::Borrowed(inner) }
}

/// Resolves escapes; invalid ones are left unchanged.
fn unescape(text: &str, quote: char) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        result.push_str(before);
        let mut chars = after.chars();
        let resolved = match chars.next() {
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some(c) if matches!(c, '/' | '\\') || c == quote => c,
            _ => {
                result.push('\\');
                rest = after;
                continue;
            }
        };
        result.push(resolved);
        rest = chars.as_str();
    }
    result.push_str(rest);
    result
}

/// Quotes a string value with double quotes.
///
/// ```
/// assert_eq!(patter_gram::quote("say \"hi\"\n"), r#""say \"hi\"\n""#);
/// ```
pub fn quote(text: &str) -> String {
    quote_with(text, '"')
}

/// Quotes text with the given quote.
pub(crate) fn quote_with(text: &str, quote: char) -> String {
    let mut result = String::with_capacity(text.len() + 2);
    result.push(quote);
    for c in text.chars() {
        match c {
            '\\' => result.push_str("\\\\"),
            '\n' => result.push_str("\\n"),
            '\r' => result.push_str("\\r"),
            '\t' => result.push_str("\\t"),
            '\u{8}' => result.push_str("\\b"),
            '\u{c}' => result.push_str("\\f"),
            c if c == quote => result.extend(['\\', c]),
            c => result.push(c),
        }
    }
    result.push(quote);
    result
}

/// Quotes a name, label or key with backticks, unless it can be written bare.
///
/// ```
/// use patter_gram::quote_name;
/// assert_eq!(quote_name("sayHello"), "sayHello");
/// assert_eq!(quote_name("Maybe Int"), "`Maybe Int`");
/// assert_eq!(quote_name("grüßen"), "`grüßen`");
/// ```
pub fn quote_name(name: &str) -> Cow<'_, str> {
    if is_symbol(name) { Cow::Borrowed(name) } else { Cow::Owned(quote_with(name, '`')) }
}

/// Returns whether a text is a symbol, which does not need quotes: `[A-Za-z_][0-9A-Za-z_.\-@]*`.
pub fn is_symbol(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'@'))
}

/// Strips the layout from the content of a fence: the indentation that all lines share, the line of the closing fence
/// and carriage returns.
///
/// ```
/// let content = "    Be kind.\n\n      - really\n  ";
/// assert_eq!(patter_gram::dedent(content), "Be kind.\n\n  - really");
/// ```
pub fn dedent(content: &str) -> String {
    let mut lines: Vec<&str> = content.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
    if lines.len() > 1 && lines.last().is_some_and(|last| last.trim().is_empty()) {
        lines.pop();
    }
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let mut filled = lines.iter().filter(|line| !line.trim().is_empty());
    let mut shared = filled.next().map_or("", |line| line.get(..indent(line)).unwrap_or_default());
    for line in filled {
        let common = shared.bytes().zip(line.bytes()).take_while(|(a, b)| a == b).count();
        shared = shared.get(..common).unwrap_or_default();
    }
    let mut result = String::with_capacity(content.len());
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            result.push('\n');
        }
        if !line.trim().is_empty() {
            result.push_str(line.strip_prefix(shared).unwrap_or(line));
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolves_known_escapes_and_keeps_others() {
        assert_eq!(unescape(r#"a\n\t\"\\n\/\q\"#, '"'), "a\n\t\"\\n/\\q\\");
    }

    #[test]
    fn dedents_by_the_shared_indentation() {
        let check = |content: &str, expected: &str| assert_eq!(dedent(content), expected, "{content:?}");
        check("", "");
        check("one", "one");
        check("  one\n  ", "one");
        check("  one\n  two", "one\ntwo");
        check("    one\n  two\n", "  one\ntwo");
        check("\tone\n  two\n", "\tone\n  two");
        check("  one\r\n  two\r\n  ", "one\ntwo");
        check("\n\n  one\n\n  ", "\n\none\n");
        check("   \n  ", "");
    }
}
