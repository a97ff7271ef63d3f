//! Declarations of tools that are HTTP requests: `[name:Http {url: …} | signature]`.

mod url;
mod style;
mod read;

pub use style::Style;
pub use url::UrlTemplate;

use super::{Effect, ToolOptions};
use crate::declare::template::Template;
use crate::types::signature::Signature;
use indexmap::IndexMap;
use patter_gram::{Diagnostic, Pattern};
use serde_json::Value as Json;

/// The template of a request, and how to turn the response into a result.
///
/// Parameters without a placeholder become an object in the body of POST, PUT and PATCH requests that declare no body, and
/// otherwise part of the query. Objects are sent as JSON, or as a form if the `Content-Type` header says so.
///
/// ```
/// use patter_core::declare::http::{HttpSpec, Method};
/// use patter_core::{gram::parse, types::signature::Signature};
/// let (tree, _) = parse("[now:Http {description: 'Weather', url: 'https://api.example.com/v1/{city}'}]");
/// let signature = Signature::parse("(city::Text)==>(units::Text)==>(::Any)").unwrap();
/// let spec = HttpSpec::read(tree.patterns().next().unwrap(), &signature).unwrap();
/// assert_eq!(spec.method, Method::Get);
/// assert_eq!(spec.url.path.to_string(), "/v1/{city}");
/// assert_eq!(spec.query[0].1.to_string(), "{units}");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct HttpSpec {
    /// The method.
    pub method: Method,
    /// The URL, without its query.
    pub url: UrlTemplate,
    /// The query, not encoded. An entry whose value is a single parameter is omitted if the argument is missing or null,
    /// and repeated for each item if it is a list.
    pub query: Vec<(String, Template)>,
    /// The headers. A header whose value is a single parameter is omitted if the argument is missing or null.
    pub headers: Vec<(String, Template)>,
    /// The cookies. A cookie whose value is a single parameter is omitted if the argument is missing or null.
    pub cookies: Vec<(String, Template)>,
    /// The body.
    pub body: Body,
    /// How lists and objects are written outside of JSON bodies, by parameter.
    pub styles: IndexMap<String, Style>,
    /// The part of the response that is the result.
    pub result: HttpResult,
    /// The messages for the model, by status, the most specific first.
    pub errors: Vec<(StatusPattern, Template)>,
    /// The maximum number of retries.
    pub retries: u32,
    /// The maximum size of the response body, in bytes.
    pub max_bytes: usize,
    /// The options that all implementations have in common.
    pub options: ToolOptions,
}

/// The body of a request. The `Content-Type` header decides how an object is written.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// No body.
    None,
    /// Text.
    Text(Template),
    /// A JSON value.
    Json(JsonTemplate),
    /// An object, as `application/x-www-form-urlencoded`.
    Form(JsonTemplate),
    /// An object, as `multipart/form-data`.
    Multipart(JsonTemplate),
}

/// A JSON value with placeholders.
#[derive(Debug, Clone, PartialEq)]
pub enum JsonTemplate {
    /// A value without placeholders.
    Value(Json),
    /// A string. If it is a single parameter, it becomes the argument itself, and is omitted if the argument is missing.
    Text(Template),
    /// A list.
    Array(Vec<JsonTemplate>),
    /// An object.
    Object(Vec<(String, JsonTemplate)>),
}

/// The part of a response that is the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpResult {
    /// The body, as JSON if it is JSON or if the signature requires more than text.
    Body,
    /// The body as text.
    Text,
    /// The status code, even if it is an error.
    Status,
    /// The part of a JSON body at a JSON pointer.
    Pointer(String),
}

/// A status, or a class of statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusPattern {
    /// A status, such as 404.
    One(u16),
    /// A class, by its first digit.
    Class(u16),
}

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
    Options,
}

impl HttpSpec {
    /// The default maximum size of the response body: 1 MiB.
    pub const DEFAULT_MAX_BYTES: usize = 1024 * 1024;
    /// The default maximum number of retries of an idempotent request.
    pub const DEFAULT_RETRIES: u32 = 2;
    /// The highest maximum number of retries that can be declared.
    pub const MAX_RETRIES: u32 = 10;

    /// Reads a declaration, or returns everything that is wrong with it.
    pub fn read(pattern: Pattern<'_>, signature: &Signature) -> Result<Self, Vec<Diagnostic>> {
        read::read(pattern, signature)
    }

    /// Returns the effect of a call.
    pub fn effect(&self) -> Effect {
        self.options.effect.unwrap_or(self.method.effect())
    }

    /// Returns whether the request may be repeated if its outcome is unknown.
    pub fn is_idempotent(&self) -> bool {
        self.options.idempotent.unwrap_or(self.method.is_idempotent())
    }

    /// Returns the names of the environment variables that a request contains, in order.
    pub fn variables(&self) -> Vec<&str> {
        let named = self.query.iter().chain(&self.headers).chain(&self.cookies).map(|(_, template)| template);
        let mut templates: Vec<_> = [&self.url.origin, &self.url.path].into_iter().chain(named).collect();
        match &self.body {
            Body::None => {}
            Body::Text(template) => templates.push(template),
            Body::Json(value) | Body::Form(value) | Body::Multipart(value) => value.templates(&mut templates),
        }
        templates.into_iter().flat_map(Template::variables).collect()
    }

    /// Returns the message for the model about a status, if one is declared.
    pub fn error_message(&self, status: u16) -> Option<&Template> {
        self.errors.iter().find(|(pattern, _)| pattern.matches(status)).map(|(_, message)| message)
    }
}

impl JsonTemplate {
    /// Adds the templates in the value, in order.
    fn templates<'t>(&'t self, found: &mut Vec<&'t Template>) {
        match self {
            JsonTemplate::Value(_) => {}
            JsonTemplate::Text(template) => found.push(template),
            JsonTemplate::Array(items) => items.iter().for_each(|item| item.templates(found)),
            JsonTemplate::Object(fields) => fields.iter().for_each(|(_, field)| field.templates(found)),
        }
    }
}

impl StatusPattern {
    /// Parses `404` or `4xx`.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(class) = text.strip_suffix("xx") {
            return class.parse().ok().filter(|class| (1..=5).contains(class)).map(StatusPattern::Class);
        }
        text.parse().ok().filter(|status| (100..=599).contains(status)).map(StatusPattern::One)
    }

    /// Returns whether the pattern matches a status.
    pub fn matches(self, status: u16) -> bool {
        match self {
            StatusPattern::One(one) => one == status,
            StatusPattern::Class(class) => class == status / 100,
        }
    }
}

impl Method {
    /// All methods.
    pub const ALL: [Method; 7] =
        [Method::Get, Method::Head, Method::Post, Method::Put, Method::Patch, Method::Delete, Method::Options];

    /// Returns the name of the method.
    pub const fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
            Method::Options => "OPTIONS",
        }
    }

    /// Returns the effect of a request, unless it is declared.
    pub const fn effect(self) -> Effect {
        match self {
            Method::Get | Method::Head | Method::Options => Effect::Network,
            Method::Post | Method::Put | Method::Patch | Method::Delete => Effect::Writes,
        }
    }

    /// Returns whether HTTP defines the method as idempotent.
    pub const fn is_idempotent(self) -> bool {
        !matches!(self, Method::Post | Method::Patch)
    }

    /// Returns whether parameters without a placeholder become part of the body.
    pub const fn has_body(self) -> bool {
        matches!(self, Method::Post | Method::Put | Method::Patch)
    }
}
