//! `fetch`: reading web pages.

use crate::http::header::{ACCEPT, HeaderValue};
use crate::http::{HttpClient, HttpRequest, HttpResponse, Url, decode};
use crate::tool::html::{page_text, page_title};
use crate::tool::http::no_response;
use crate::tool::{
    Access, BoxFuture, DEFAULT_TIMEOUT, Definition, Effect, Implementation, Tool, ToolContext, ToolFailure, ToolKind,
    http_failure,
};
use serde_json::{Map, Value as Json, json};
use std::time::Duration;

/// The number of bytes that are read of a page.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// The line width of the text, in characters.
const LINE_WIDTH: usize = 120;
/// The time by which a call exceeds its limit before it fails by itself. The executor's limit comes first.
const GRACE: Duration = Duration::from_millis(250);

const DESCRIPTION: &str = "Fetches a web page and returns its text. HTML is converted to plain text, with its links \
                           listed at the end; other text, JSON and XML are returned unchanged";
const SIGNATURE: &str = r#"(url::Text { description: "The full URL, with http:// or https://", format: "uri" })
    ==>(maxChars::Int { description: "The maximum number of characters to return", default: 20000, range: 1..200000 })
    ==>(::Object { fields: [
        { name: "url", type: "Text", description: "The URL of the page, after redirects" },
        { name: "status", type: "Int", description: "The HTTP status; 200 means success" },
        { name: "title", type: "Text", optional: true },
        { name: "text", type: "Text" },
        { name: "truncated", type: "Bool", description: "Whether the text was truncated" }
    ] })"#;

/// Returns the tool `fetch`, which reads web pages that the policy of the client allows.
///
/// ```
/// use patter::http::{HttpClient, NetworkPolicy};
/// use patter::tool::{Effect, standard::fetch};
/// let tool = fetch(&HttpClient::new(NetworkPolicy::default(), |name| std::env::var(name).ok()));
/// assert_eq!((tool.name(), tool.effect), ("fetch", Effect::Network));
/// ```
pub fn fetch(client: &HttpClient) -> Tool {
    #[expect(clippy::expect_used, reason = "the signature is a constant, and every call of this function parses it")]
    let definition = Definition::new("fetch", DESCRIPTION, SIGNATURE).expect("valid signature");
    Tool::new(definition, ToolKind::Native, Fetch { client: client.clone() })
        .effect(Effect::Network)
        .idempotent(true)
        .source("built in")
}

struct Fetch {
    client: HttpClient,
}

impl Implementation for Fetch {
    fn call<'a>(&'a self, arguments: Json, context: &'a ToolContext) -> BoxFuture<'a, Result<Json, ToolFailure>> {
        Box::pin(async move {
            let permits = |url: &Url| with_url(&arguments, url).iter().all(|it| context.permits(it, Access::Named));
            let url = arguments.get("url").and_then(Json::as_str).unwrap_or_default();
            let max_chars = arguments.get("maxChars").and_then(Json::as_u64).and_then(|max| usize::try_from(max).ok());
            let page = self.fetch_page(url, max_chars.unwrap_or(usize::MAX), permits);
            match tokio::time::timeout(DEFAULT_TIMEOUT + GRACE, page).await {
                Ok(result) => result,
                Err(_) => Err(no_response(DEFAULT_TIMEOUT)),
            }
        })
    }

    fn canonical_arguments(&self, arguments: &Map<String, Json>) -> Vec<Map<String, Json>> {
        let url = arguments.get("url").and_then(Json::as_str).and_then(|url| Url::parse(url.trim()).ok());
        url.map(|url| with_url(&Json::Object(arguments.clone()), &url)).unwrap_or_default()
    }
}

/// Returns the arguments of a call with another URL: as it is sent, and without needless escapes, if it has any.
fn with_url(arguments: &Json, url: &Url) -> Vec<Map<String, Json>> {
    let Some(arguments) = arguments.as_object() else { return Vec::new() };
    let mut forms = vec![url.as_str().to_owned()];
    forms.extend(Some(without_needless_escapes(url.as_str())).filter(|plain| plain != url.as_str()));
    let with = |url: String| {
        let mut arguments = arguments.clone();
        arguments.insert("url".to_owned(), url.into());
        arguments
    };
    forms.into_iter().map(with).collect()
}

/// Returns a URL with letters, digits and `-._~` as they are: to a server, `/%61dmin` is the same as `/admin`.
fn without_needless_escapes(url: &str) -> String {
    let mut pieces = url.split('%');
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2).unwrap_or((piece, ""));
        match u8::from_str_radix(digits, 16).map(char::from) {
            Ok(c) if c.is_ascii_alphanumeric() || "-._~".contains(c) => {
                plain.push(c);
                plain.push_str(rest);
            }
            _ => {
                plain.push('%');
                plain.push_str(piece);
            }
        }
    }
    plain
}

impl Fetch {
    async fn fetch_page(
        &self,
        url: &str,
        max_chars: usize,
        permits: impl Fn(&Url) -> bool,
    ) -> Result<Json, ToolFailure> {
        let url = Url::parse(url.trim()).map_err(|error| {
            ToolFailure::new(format!(
                "`url` is not a valid URL: {error}; use a full URL such as https://example.com/page"
            ))
        })?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(ToolFailure::new("`url` must not contain credentials"));
        }
        let mut request = HttpRequest::get(url);
        request
            .headers
            .insert(ACCEPT, HeaderValue::from_static("text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.1"));
        let mut response = self.client.send_if(request, permits).await.map_err(|error| http_failure(&error))?;
        let format = PageFormat::detect(&response)?;
        let content_type = response.header("content-type").unwrap_or_default().to_owned();
        let (body, mut is_complete) = response.read_some(MAX_BYTES).await.map_err(|error| http_failure(&error))?;
        let mut page = Map::new();
        page.insert("url".to_owned(), response.url().as_str().into());
        page.insert("status".to_owned(), response.status().as_u16().into());
        let text = decode(&body, &content_type);
        let text = match format {
            PageFormat::Text => text,
            PageFormat::Html => {
                // The layout of a large page takes a while.
                let convert = move || (page_title(&text), page_text(&text, LINE_WIDTH));
                let (title, (text, is_parsed)) = tokio::task::spawn_blocking(convert).await?;
                page.extend(title.map(|title| ("title".to_owned(), title.into())));
                is_complete &= is_parsed;
                text
            }
        };
        let start = text.char_indices().nth(max_chars).and_then(|(at, _)| text.get(..at));
        page.insert("text".to_owned(), start.unwrap_or(&text).into());
        page.insert("truncated".to_owned(), json!(start.is_some() || !is_complete));
        Ok(Json::Object(page))
    }
}

/// The format of a page.
enum PageFormat {
    Html,
    Text,
}

impl PageFormat {
    fn detect(response: &HttpResponse) -> Result<Self, ToolFailure> {
        let content_type = response.header("content-type").unwrap_or("text/plain");
        let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let (kind, subtype) = essence.split_once('/').unwrap_or((&essence, ""));
        let text_formats = ["json", "xml", "javascript", "yaml", "x-www-form-urlencoded"];
        let is_text = text_formats.iter().any(|format| subtype.ends_with(format));
        match (kind, subtype) {
            ("text", "html") | ("application", "xhtml+xml") => Ok(PageFormat::Html),
            ("text", _) => Ok(PageFormat::Text),
            _ if is_text => Ok(PageFormat::Text),
            _ => Err(ToolFailure::new(format!("the page is `{essence}`, which is not text"))),
        }
    }
}
