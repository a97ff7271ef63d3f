//! Reading declarations of HTTP requests.

use super::{Body, HttpResult, HttpSpec, JsonTemplate, Method, StatusPattern, Style, UrlTemplate};
use crate::declare::property::{self, ValueKind};
use crate::declare::template::{Part, Template};
use crate::declare::{ToolOptions, unknown_placeholder};
use crate::rule;
use crate::text::{nearest, with_article};
use crate::types::signature::{Shape, Signature, value_to_json};
use indexmap::IndexMap;
use patter_gram::{Diagnostic, Kind, Pattern, Property, Span, Syntax, Value};
use std::collections::HashSet;

/// The properties that only requests have, with the kind of value if a simple check is enough.
const PROPERTIES: [(&str, Option<ValueKind>); 12] = [
    ("description", Some(ValueKind::String)),
    ("method", Some(ValueKind::OneOf(&["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]))),
    ("url", Some(ValueKind::String)),
    ("query", None),
    ("headers", None),
    ("cookies", None),
    ("body", None),
    ("styles", None),
    ("result", None),
    ("errors", None),
    ("retries", Some(ValueKind::Integer { min: 0 })),
    ("maxBytes", Some(ValueKind::Integer { min: 1 })),
];

/// Headers that are set automatically and cannot be declared.
const AUTOMATIC_HEADERS: [&str; 6] =
    ["host", "content-length", "transfer-encoding", "connection", "upgrade", "proxy-authorization"];

pub(super) fn read(pattern: Pattern<'_>, signature: &Signature) -> Result<HttpSpec, Vec<Diagnostic>> {
    let mut reader = HttpReader { pattern, signature, used: HashSet::new(), found: Vec::new() };
    match reader.spec() {
        Some(spec) if reader.found.is_empty() => Ok(spec),
        _ => Err(reader.found),
    }
}

struct HttpReader<'p> {
    pattern: Pattern<'p>,
    signature: &'p Signature,
    /// The parameters that templates use.
    used: HashSet<String>,
    found: Vec<Diagnostic>,
}

impl<'p> HttpReader<'p> {
    fn spec(&mut self) -> Option<HttpSpec> {
        let options = ToolOptions::read(self.pattern).unwrap_or_else(|found| {
            self.found.extend(found);
            ToolOptions::default()
        });
        let own = PROPERTIES.iter().map(|(name, _)| *name);
        let names: Vec<_> = own.chain(ToolOptions::PROPERTIES.iter().map(|(name, _)| *name)).collect();
        self.found.extend(property::unknown_properties(self.pattern, "request", &names));
        for (name, kind) in PROPERTIES {
            let check = |(kind, property)| property::check_value(property, kind);
            self.found.extend(kind.zip(self.pattern.property(name)).and_then(check));
        }
        let word = self.word("method").and_then(|name| Method::ALL.into_iter().find(|method| method.name() == name));
        let method = word.unwrap_or(Method::Get);
        let url = self.url();
        let query = self.templates("query");
        let headers = self.headers();
        let cookies = self.cookies(&headers);
        let body = self.body();
        let styles = self.styles();
        let errors = self.errors();
        let result = self.result();
        let retries = self.retries(options.idempotent.unwrap_or(method.is_idempotent()));
        let max_bytes = self
            .number("maxBytes")
            .map_or(HttpSpec::DEFAULT_MAX_BYTES, |max| usize::try_from(max).unwrap_or(usize::MAX));
        let (url, mut all_query) = url?;
        all_query.extend(query);
        let rest = self.signature.parameters.iter().filter(|parameter| !self.used.contains(&parameter.name));
        let rest: Vec<_> = rest
            .map(|parameter| (parameter.name.clone(), Template::from_parts([Part::Parameter(parameter.name.clone())])))
            .collect();
        let body = match body {
            None if method.has_body() && !rest.is_empty() => Body::Json(JsonTemplate::Object(
                rest.into_iter().map(|(name, value)| (name, JsonTemplate::Text(value))).collect(),
            )),
            body => {
                all_query.extend(rest);
                body.unwrap_or(Body::None)
            }
        };
        let body = encoded_body(body, &headers);
        let query = all_query;
        Some(HttpSpec {
            method,
            url,
            query,
            headers,
            cookies,
            body,
            styles,
            result,
            errors,
            retries,
            max_bytes,
            options,
        })
    }

    fn url(&mut self) -> Option<(UrlTemplate, Vec<(String, Template)>)> {
        let Some(value) = self.pattern.get("url") else {
            // A misspelt key has its own diagnostic.
            if !self.pattern.properties().any(|other| nearest(&other.key(), ["url"]).is_some()) {
                let name = self.pattern.name().map_or("this tool".to_owned(), |name| format!("the tool `{name}`"));
                let found = rule::MISSING_PROPERTY.at(self.head(), format!("{name} has no `url`"));
                self.found.push(found.with_hint("add `url: \"https://…\"` to its record"));
            }
            return None;
        };
        value.read_text()?;
        let template = self.template(value)?;
        UrlTemplate::read(&template, value.span()).map_err(|found| self.found.push(found)).ok()
    }

    fn headers(&mut self) -> Vec<(String, Template)> {
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        for property in self.entries("headers") {
            let name = property.key();
            let message = if name.is_empty() || !name.chars().all(is_token) {
                format!("`{name}` is not a valid header name")
            } else if AUTOMATIC_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
                format!("the header `{name}` is set automatically")
            } else {
                continue;
            };
            self.found.push(rule::WRONG_VALUE.at(key_span(property), message).with_hint("remove it"));
        }
        self.templates("headers")
    }

    fn cookies(&mut self, headers: &[(String, Template)]) -> Vec<(String, Template)> {
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        for property in self.entries("cookies") {
            let name = property.key();
            let message = if name.is_empty() || !name.chars().all(is_token) {
                format!("`{name}` is not a valid cookie name")
            } else if headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("cookie")) {
                "the header `Cookie` is given too".to_owned()
            } else {
                continue;
            };
            self.found.push(rule::WRONG_VALUE.at(key_span(property), message).with_hint("remove it"));
        }
        self.templates("cookies")
    }

    fn styles(&mut self) -> IndexMap<String, Style> {
        let mut styles = IndexMap::new();
        for property in self.entries("styles") {
            let name = property.key();
            if self.signature.parameter(&name).is_none() {
                self.found.push(unknown_placeholder(&name, key_span(property), self.signature));
            }
            let Some(value) = property.value() else { continue };
            let word = match Value::read(value) {
                Some(Value::String(word) | Value::Symbol(word)) => word,
                _ => {
                    self.wrong(&format!("styles.{name}"), value, "a string");
                    continue;
                }
            };
            match Style::parse(&word) {
                Some(style) => drop(styles.insert(name.into_owned(), style)),
                None => {
                    let names: Vec<_> = Style::ALL.iter().map(|style| format!("`{}`", style.name())).collect();
                    let found = rule::OUT_OF_BOUNDS.at(value.span(), format!("`{word}` is not a style"));
                    self.found.push(found.with_hint(match nearest(&word, Style::ALL.map(Style::name)) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("use one of {}", names.join(", ")),
                    }));
                }
            }
        }
        styles
    }

    fn body(&mut self) -> Option<Body> {
        let value = self.pattern.get("body")?;
        match value.kind() {
            Kind::Map | Kind::Array => Some(Body::Json(self.json(value)?)),
            _ if self.word("body").as_deref() == Some("none") => Some(Body::None),
            _ if value.read_text().is_some() => {
                let template = self.template(value)?;
                let parameter = template.sole_parameter().and_then(|name| self.signature.parameter(name));
                Some(match parameter {
                    Some(parameter) if parameter.ty.shape != Shape::Text => Body::Json(JsonTemplate::Text(template)),
                    _ => Body::Text(template),
                })
            }
            _ => {
                self.wrong("body", value, "a string, a map, a list or `\"none\"`");
                None
            }
        }
    }

    fn json(&mut self, value: Syntax<'p>) -> Option<JsonTemplate> {
        match value.kind() {
            Kind::Map => {
                let mut entries = Vec::new();
                for property in value.properties() {
                    entries.push((property.key().into_owned(), self.json(property.value()?)?));
                }
                Some(JsonTemplate::Object(entries))
            }
            Kind::Array => {
                let items: Vec<_> = value.children().filter(|item| item.kind().is_value()).collect();
                Some(JsonTemplate::Array(items.into_iter().map(|item| self.json(item)).collect::<Option<_>>()?))
            }
            _ if value.read_text().is_some() => Some(JsonTemplate::Text(self.template(value)?)),
            _ => {
                let json = Value::read(value).as_ref().and_then(value_to_json);
                if json.is_none() {
                    self.wrong("body", value, "a value that JSON can represent");
                }
                Some(JsonTemplate::Value(json?))
            }
        }
    }

    fn result(&mut self) -> HttpResult {
        let Some(value) = self.pattern.get("result") else { return HttpResult::Body };
        let Some(word) = self.word("result") else {
            self.wrong("result", value, "a string");
            return HttpResult::Body;
        };
        match word.as_str() {
            "body" => HttpResult::Body,
            "text" => HttpResult::Text,
            "status" => HttpResult::Status,
            pointer if pointer.starts_with('/') => HttpResult::Pointer(word),
            _ => {
                let found = rule::OUT_OF_BOUNDS.at(value.span(), format!("`result` cannot be `{word}`"));
                let hint = "use `body`, `text`, `status` or a JSON pointer such as `/data/0/temp`";
                self.found.push(found.with_hint(hint));
                HttpResult::Body
            }
        }
    }

    fn errors(&mut self) -> Vec<(StatusPattern, Template)> {
        let mut errors = Vec::new();
        for property in self.entries("errors") {
            let Some(pattern) = StatusPattern::parse(&property.key()) else {
                let message = format!("`{}` is not an HTTP status", property.key());
                let found = rule::WRONG_VALUE.at(key_span(property), message);
                self.found.push(found.with_hint("write a status, such as `\"404\"`, or a class, such as `\"4xx\"`"));
                continue;
            };
            let Some(value) = property.value() else { continue };
            let Some(message) = self.template(value) else { continue };
            if let Some(name) = message.variables().next() {
                let text = format!("the model would see the secret `{name}`");
                self.found.push(rule::WRONG_VALUE.at(value.span(), text).with_hint("remove it from the message"));
            }
            errors.push((pattern, message));
        }
        errors.sort_by_key(|(pattern, _)| matches!(pattern, StatusPattern::Class(_)));
        errors
    }

    fn retries(&mut self, is_idempotent: bool) -> u32 {
        let Some(retries) = self.number("retries").and_then(|retries| u32::try_from(retries).ok()) else {
            return if is_idempotent { HttpSpec::DEFAULT_RETRIES } else { 0 };
        };
        let span = self.pattern.get("retries").map_or(self.head(), Syntax::span);
        if retries > HttpSpec::MAX_RETRIES {
            let message = format!("`retries` is {retries}, but must be at most {}", HttpSpec::MAX_RETRIES);
            self.found.push(rule::OUT_OF_BOUNDS.at(span, message));
        } else if retries > 0 && !is_idempotent {
            let found = rule::UNSAFE_RETRY.at(span, "retrying this request could repeat its effect");
            self.found.push(
                found.with_hint("remove `retries`, or set `idempotent: true` if the server handles repeated requests"),
            );
        }
        retries
    }

    /// Reads a map of templates.
    fn templates(&mut self, key: &str) -> Vec<(String, Template)> {
        let entries = self.entries(key).into_iter();
        entries.filter_map(|entry| Some((entry.key().into_owned(), self.template(entry.value()?)?))).collect()
    }

    /// Returns the entries of a property that is a map.
    fn entries(&mut self, key: &str) -> Vec<Property<'p>> {
        let Some(value) = self.pattern.get(key) else { return Vec::new() };
        if value.kind() == Kind::Map {
            return value.properties().collect();
        }
        let is_reported = self.found.iter().any(|found| found.span == value.span());
        if !is_reported {
            self.wrong(key, value, "a map");
        }
        Vec::new()
    }

    /// Reads a template: a string, or a number or boolean, which has no placeholders.
    fn template(&mut self, value: Syntax<'p>) -> Option<Template> {
        let Some(text) = value.read_text() else {
            return match Value::read(value)? {
                literal @ (Value::Integer(_) | Value::Decimal(_) | Value::Boolean(_)) => {
                    Some(Template::from_parts([Part::Text(literal.to_string())]))
                }
                other => {
                    let message = format!("expected a string, found {}", with_article(other.type_name()));
                    self.found.push(rule::WRONG_VALUE.at(value.span(), message).with_hint("put quotes around it"));
                    None
                }
            };
        };
        let template = match Template::parse(&text) {
            Ok(template) => template,
            Err(error) => {
                self.found.push(rule::BAD_TEMPLATE.at(value.span(), error.to_string()).with_hint(error.hint()));
                return None;
            }
        };
        for name in template.parameters() {
            if self.signature.parameter(name).is_none() {
                self.found.push(unknown_placeholder(name, value.span(), self.signature));
            }
            self.used.insert(name.to_owned());
        }
        Some(template)
    }

    fn wrong(&mut self, key: &str, value: Syntax<'p>, expected: &str) {
        let found = Value::read(value).map_or("value", |value| value.type_name());
        let message = format!("`{key}` must be {expected}, not {}", with_article(found));
        self.found.push(rule::WRONG_VALUE.at(value.span(), message));
    }

    /// Returns the value of a property that is a word, with or without quotes.
    fn word(&self, key: &str) -> Option<String> {
        match self.pattern.value(key)? {
            Value::String(word) | Value::Symbol(word) => Some(word),
            _ => None,
        }
    }

    fn number(&self, key: &str) -> Option<i64> {
        match self.pattern.value(key)? {
            Value::Integer(number) => number.to_i64(),
            _ => None,
        }
    }

    fn head(&self) -> Span {
        self.pattern.identifier().map_or(self.pattern.span(), Syntax::span)
    }
}

/// Returns the body as its content type says: an object is a form if a form is declared.
fn encoded_body(body: Body, headers: &[(String, Template)]) -> Body {
    let declared = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let content_type = match declared.and_then(|(_, template)| template.parts().first()) {
        Some(Part::Text(text)) => text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase(),
        _ => return body,
    };
    match body {
        Body::Json(template) if content_type == "application/x-www-form-urlencoded" => Body::Form(template),
        Body::Json(template) if content_type == "multipart/form-data" => Body::Multipart(template),
        other => other,
    }
}

fn key_span(property: Property<'_>) -> Span {
    property.key_syntax().map_or(property.syntax().span(), Syntax::span)
}
