//! Tools that are requests to an HTTP server, as they are declared.

mod read;
mod url;

pub use url::UrlTemplate;

use super::{Conduct, Effect};
use crate::declare::template::Template;
use crate::types::signature::Signature;
use patter_gram::{Diagnostic, Pattern};
use serde_json::Value as Json;

/// A request with holes, and what is made of the reply.
///
/// Parameters that nothing mentions go into the body of POST, PUT and PATCH where none is given, as an object, and
/// else into the query.
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
    /// The address, without its query.
    pub url: UrlTemplate,
    /// The query, not encoded. A value that is one parameter, which is left out or null, leaves the entry out; a list
    /// gives an entry for each of its items.
    pub query: Vec<(String, Template)>,
    /// The headers. One whose value is a parameter that is left out or null is left out.
    pub headers: Vec<(String, Template)>,
    /// The body.
    pub body: Body,
    /// What the result is.
    pub result: HttpResult,
    /// What the model reads of a status, the most exact first.
    pub errors: Vec<(Statuses, Template)>,
    /// How often the request may be made again.
    pub retries: u32,
    /// How many bytes the body of a reply may have.
    pub max_bytes: usize,
    /// What all implementations may say.
    pub conduct: Conduct,
}

/// The body of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// There is none.
    None,
    /// A text.
    Text(Template),
    /// A JSON value.
    Json(JsonTemplate),
}

/// A JSON value with holes.
#[derive(Debug, Clone, PartialEq)]
pub enum JsonTemplate {
    /// A value without holes.
    Value(Json),
    /// A text; if it is one parameter, its value, and nothing where it is left out.
    Text(Template),
    /// A list.
    Array(Vec<JsonTemplate>),
    /// An object.
    Object(Vec<(String, JsonTemplate)>),
}

/// What the result of a request is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpResult {
    /// The body, as JSON where it is JSON or the signature asks for more than text.
    Body,
    /// The body as text.
    Text,
    /// The number of the status, whatever it is.
    Status,
    /// The part of a JSON body at a JSON pointer.
    Pointer(String),
}

/// One status, or all of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statuses {
    /// One, such as 404.
    One(u16),
    /// A class by its first digit, such as 4.
    Class(u16),
}

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
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
    /// How many bytes the body of a reply may have where nothing is said: 1 MiB.
    pub const DEFAULT_MAX_BYTES: usize = 1024 * 1024;
    /// How often a request that may be made again is, where nothing is said.
    pub const DEFAULT_RETRIES: u32 = 2;
    /// How often a request may be made again at most.
    pub const MOST_RETRIES: u32 = 10;

    /// Reads what a declaration says, or everything that is wrong with it.
    pub fn read(pattern: Pattern<'_>, signature: &Signature) -> Result<Self, Vec<Diagnostic>> {
        read::read(pattern, signature)
    }

    /// Returns what a call touches.
    pub fn effect(&self) -> Effect {
        self.conduct.effect.unwrap_or(match self.method {
            Method::Get | Method::Head | Method::Options => Effect::Network,
            Method::Post | Method::Put | Method::Patch | Method::Delete => Effect::Writes,
        })
    }

    /// Tells whether the request may be made again when it is not known how the first ended.
    pub fn is_idempotent(&self) -> bool {
        self.conduct.idempotent.unwrap_or(self.method.is_idempotent())
    }

    /// Returns what the model should read of a status, if something is said of it.
    pub fn error(&self, status: u16) -> Option<&Template> {
        self.errors.iter().find(|(statuses, _)| statuses.contain(status)).map(|(_, message)| message)
    }
}

impl Statuses {
    /// Reads `404` or `4xx`.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(class) = text.strip_suffix("xx") {
            return class.parse().ok().filter(|class| (1..=5).contains(class)).map(Statuses::Class);
        }
        text.parse().ok().filter(|status| (100..=599).contains(status)).map(Statuses::One)
    }

    /// Tells whether a status is one of them.
    pub fn contain(self, status: u16) -> bool {
        match self {
            Statuses::One(one) => one == status,
            Statuses::Class(class) => class == status / 100,
        }
    }
}

impl Method {
    /// All of them.
    pub const ALL: [Method; 7] =
        [Method::Get, Method::Head, Method::Post, Method::Put, Method::Patch, Method::Delete, Method::Options];

    /// Returns the name as it goes over the wire.
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

    /// Tells whether HTTP says that making a request twice does no more than making it once.
    pub const fn is_idempotent(self) -> bool {
        !matches!(self, Method::Post | Method::Patch)
    }

    /// Tells whether parameters that nothing mentions go into the body.
    pub const fn has_body(self) -> bool {
        matches!(self, Method::Post | Method::Put | Method::Patch)
    }
}
