//! URL templates.

use crate::declare::template::{Part, Template};
use crate::rule;
use patter_gram::{Diagnostic, Span};

/// The template of a URL, without its query.
///
/// Arguments are allowed only in the path, so that the model cannot choose the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlTemplate {
    /// Scheme, host and port. A variable here may also contain a part of the path.
    pub origin: Template,
    /// The path, which is empty or starts with `/`.
    pub path: Template,
}

impl UrlTemplate {
    /// Splits a URL into the URL without its query, and the decoded query.
    pub(super) fn read(template: &Template, span: Span) -> Result<(Self, Vec<(String, Template)>), Diagnostic> {
        let invalid = |message: &str, hint: &'static str| rule::BAD_URL.at(span, message.to_owned()).with_hint(hint);
        let is_invalid = |c: char| c.is_control() || c == '\\';
        if template.parts().iter().any(|part| matches!(part, Part::Text(text) if text.contains(is_invalid))) {
            return Err(invalid("the URL contains an invalid character", "use `/`, or percent-encode the character"));
        }
        let (mut origin, rest) = split_scheme(template, invalid)?;
        let (authority, rest) = split(rest, &['/', '?', '#']);
        for part in &authority {
            match part {
                Part::Parameter(name) => {
                    let message = format!("`{{{name}}}` would let the model choose the server");
                    let hint = "use placeholders after the host, in the path or the query";
                    return Err(rule::ARGUMENT_IN_HOST.at(span, message).with_hint(hint));
                }
                Part::Text(text) if text.contains('@') => {
                    let hint = "use a header: `authorization: \"Basic ${USER}:${PASSWORD}\"`";
                    return Err(invalid("the URL contains a user name", hint));
                }
                Part::Text(text) if text.contains(char::is_whitespace) => {
                    return Err(invalid(
                        "the host of the URL is invalid",
                        "write a URL such as `https://api.example.com/…`",
                    ));
                }
                Part::Text(_) | Part::Variable(_) => {}
            }
        }
        let lacks_host = match authority.first() {
            None => true,
            Some(Part::Text(text)) => text.starts_with(':'),
            Some(Part::Parameter(_) | Part::Variable(_)) => false,
        };
        // A variable at the start of the URL may contain the host.
        if lacks_host && !matches!(origin.first(), Some(Part::Variable(_))) {
            return Err(invalid("the URL has no host", "write a URL such as `https://api.example.com/…`"));
        }
        origin.extend(authority);
        let (path, query) = match rest {
            Some(('/', rest)) => {
                let (mut path, after) = split(rest, &['?', '#']);
                match path.first_mut() {
                    Some(Part::Text(text)) => text.insert(0, '/'),
                    _ => path.insert(0, Part::Text("/".to_owned())),
                }
                (path, after)
            }
            other => (Vec::new(), other),
        };
        let query = match query {
            Some(('?', query)) if !has_fragment(&query) => read_query(query).map_err(|()| {
                invalid("a name in the query contains a placeholder", "only values may contain placeholders")
            })?,
            Some(_) => {
                return Err(invalid(
                    "the fragment after `#` is never sent",
                    "remove it, or write `%23` for a literal `#`",
                ));
            }
            None => Vec::new(),
        };
        Ok((Self { origin: Template::from_parts(origin), path: Template::from_parts(path) }, query))
    }
}

/// The parts before and after a separator.
type Halves = (Vec<Part>, Vec<Part>);

/// Splits off the scheme, which is `http://`, `https://` or a variable.
fn split_scheme(template: &Template, invalid: impl Fn(&str, &'static str) -> Diagnostic) -> Result<Halves, Diagnostic> {
    let mut parts = template.parts().iter().cloned();
    let hint = "write a URL such as `https://api.example.com/…`";
    match parts.next() {
        Some(Part::Text(text)) => {
            let Some((scheme, rest)) = text.split_once("://") else {
                return Err(invalid("the URL has no scheme", hint));
            };
            if !matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https") {
                return Err(invalid("only `http` and `https` URLs are supported", hint));
            }
            let rest = Some(rest).filter(|rest| !rest.is_empty()).map(|rest| Part::Text(rest.to_owned()));
            Ok((vec![Part::Text(format!("{scheme}://"))], rest.into_iter().chain(parts).collect()))
        }
        Some(variable @ Part::Variable(_)) => {
            let mut origin = vec![variable];
            let mut rest: Vec<_> = parts.collect();
            if let Some(Part::Text(text)) = rest.first_mut()
                && let Some(after) = text.strip_prefix("://").map(str::to_owned)
            {
                origin.push(Part::Text("://".to_owned()));
                *text = after;
            }
            Ok((origin, rest))
        }
        Some(parameter @ Part::Parameter(_)) => Ok((Vec::new(), std::iter::once(parameter).chain(parts).collect())),
        None => Err(invalid("the URL is empty", hint)),
    }
}

/// Splits parts at the first separator in their literal text.
fn split(parts: Vec<Part>, separators: &[char]) -> (Vec<Part>, Option<(char, Vec<Part>)>) {
    let mut before = Vec::new();
    let mut parts = parts.into_iter();
    while let Some(part) = parts.next() {
        let Part::Text(text) = &part else {
            before.push(part);
            continue;
        };
        let Some((at, separator)) = text.char_indices().find(|(_, c)| separators.contains(c)) else {
            before.push(part);
            continue;
        };
        let (head, tail) = text.split_at(at);
        let tail = tail.get(separator.len_utf8()..).unwrap_or_default();
        let literal = |text: &str| Some(text).filter(|text| !text.is_empty()).map(|text| Part::Text(text.to_owned()));
        before.extend(literal(head));
        return (before, Some((separator, literal(tail).into_iter().chain(parts).collect())));
    }
    (before, None)
}

fn has_fragment(parts: &[Part]) -> bool {
    parts.iter().any(|part| matches!(part, Part::Text(text) if text.contains('#')))
}

/// Parses `a=1&b={b}`, and decodes its literal text.
fn read_query(parts: Vec<Part>) -> Result<Vec<(String, Template)>, ()> {
    let mut pairs = Vec::new();
    let mut rest = Some(parts);
    while let Some(parts) = rest {
        let (pair, after) = split(parts, &['&']);
        let (name, value) = split(pair, &['=']);
        let name = match name.as_slice() {
            [] => None,
            [Part::Text(name)] => Some(decode(name)),
            _ => return Err(()),
        };
        if let Some(name) = name {
            let value = value.map(|(_, value)| value).unwrap_or_default();
            pairs.push((
                name,
                Template::from_parts(value.into_iter().map(|part| match part {
                    Part::Text(text) => Part::Text(decode(&text)),
                    placeholder => placeholder,
                })),
            ));
        }
        rest = after.map(|(_, after)| after);
    }
    Ok(pairs)
}

/// Decodes the percent-encoding of a query.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digit = |at: usize| after.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        rest = after;
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.extend(u8::try_from(high * 16 + low));
                rest = after.get(2..).unwrap_or_default();
            }
            (b'+', ..) => bytes.push(b' '),
            _ => bytes.push(*first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
