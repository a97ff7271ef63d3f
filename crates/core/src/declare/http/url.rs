//! Addresses with holes.

use crate::declare::template::{Part, Template};
use crate::rule;
use patter_gram::{Diagnostic, Span};

/// An address with holes, without its query.
///
/// Arguments stand only in the path: what a model says never chooses the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlTemplate {
    /// Scheme, host and port. A variable here may hold a part of the path too.
    pub origin: Template,
    /// The path, from its `/` on; it may be empty.
    pub path: Template,
}

impl UrlTemplate {
    /// Takes an address apart: into itself, and its query, decoded.
    pub(super) fn read(template: &Template, span: Span) -> Result<(Self, Vec<(String, Template)>), Diagnostic> {
        let bad = |message: &str, hint: &'static str| rule::BAD_URL.at(span, message.to_owned()).with_hint(hint);
        let is_bad = |c: char| c.is_control() || c == '\\';
        if template.parts().iter().any(|part| matches!(part, Part::Text(text) if text.contains(is_bad))) {
            return Err(bad("this address holds a character that no address does", "write `/`, or `%` and its number"));
        }
        let (mut origin, rest) = split_scheme(template, bad)?;
        let (authority, rest) = split(rest, &['/', '?', '#']);
        for part in &authority {
            match part {
                Part::Parameter(name) => {
                    let message = format!("`{{{name}}}` would choose the server that is called");
                    let hint = "arguments may stand after the host, in the path and the query";
                    return Err(rule::ARGUMENT_IN_HOST.at(span, message).with_hint(hint));
                }
                Part::Text(text) if text.contains('@') => {
                    let hint = "write a header: `authorization: \"Basic ${USER}:${PASSWORD}\"`";
                    return Err(bad("this address holds a user", hint));
                }
                Part::Text(text) if text.contains(char::is_whitespace) => {
                    return Err(bad("the host of this address is none", "write it as in `https://api.example.com/…`"));
                }
                Part::Text(_) | Part::Variable(_) => {}
            }
        }
        let lacks_host = match authority.first() {
            None => true,
            Some(Part::Text(text)) => text.starts_with(':'),
            Some(Part::Parameter(_) | Part::Variable(_)) => false,
        };
        // A variable that begins the address may hold the host.
        if lacks_host && !matches!(origin.first(), Some(Part::Variable(_))) {
            return Err(bad("this address has no host", "write it as in `https://api.example.com/…`"));
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
                bad("a name in the query has a hole", "write the name out; only values may have holes")
            })?,
            Some(_) => {
                return Err(bad("what follows `#` is never sent", "remove it, or write `%23` for the character"));
            }
            None => Vec::new(),
        };
        Ok((Self { origin: Template::from_parts(origin), path: Template::from_parts(path) }, query))
    }
}

/// Parts up to a place, and those after it.
type Halves = (Vec<Part>, Vec<Part>);

/// Takes off the scheme, which is `http://`, `https://` or begins with a variable.
fn split_scheme(template: &Template, bad: impl Fn(&str, &'static str) -> Diagnostic) -> Result<Halves, Diagnostic> {
    let mut parts = template.parts().iter().cloned();
    let hint = "write it as in `https://api.example.com/…`";
    match parts.next() {
        Some(Part::Text(text)) => {
            let Some((scheme, rest)) = text.split_once("://") else {
                return Err(bad("this address has no scheme", hint));
            };
            if !matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https") {
                return Err(bad("only `http` and `https` can be called", hint));
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
        None => Err(bad("this address is empty", hint)),
    }
}

/// Splits parts at the first of some characters in their text.
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
        let some = |text: &str| Some(text).filter(|text| !text.is_empty()).map(|text| Part::Text(text.to_owned()));
        before.extend(some(head));
        return (before, Some((separator, some(tail).into_iter().chain(parts).collect())));
    }
    (before, None)
}

fn has_fragment(parts: &[Part]) -> bool {
    parts.iter().any(|part| matches!(part, Part::Text(text) if text.contains('#')))
}

/// Reads `a=1&b={b}`, and takes off the encoding of what is written out.
fn read_query(parts: Vec<Part>) -> Result<Vec<(String, Template)>, ()> {
    let mut pairs = Vec::new();
    let mut rest = Some(parts);
    while let Some(parts) = rest {
        let (pair, after) = split(parts, &['&']);
        let (name, value) = split(pair, &['=']);
        let name = match name.as_slice() {
            [] => None,
            [Part::Text(name)] => Some(decoded(name)),
            _ => return Err(()),
        };
        if let Some(name) = name {
            let value = value.map(|(_, value)| value).unwrap_or_default();
            pairs.push((
                name,
                Template::from_parts(value.into_iter().map(|part| match part {
                    Part::Text(text) => Part::Text(decoded(&text)),
                    hole => hole,
                })),
            ));
        }
        rest = after.map(|(_, after)| after);
    }
    Ok(pairs)
}

/// Takes off the encoding of a query.
fn decoded(text: &str) -> String {
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
