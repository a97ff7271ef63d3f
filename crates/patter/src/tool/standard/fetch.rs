//! Reading pages of the web.

use crate::http::header::{ACCEPT, HeaderValue};
use crate::http::{HttpClient, HttpRequest, HttpResponse, Url, decode};
use crate::tool::readable::{readable, title};
use crate::tool::{
    BoxFuture, DEFAULT_TIMEOUT, Definition, Effect, Failure, Implementation, Kind, Tool, ToolContext, http_failure,
};
use serde_json::{Map, Value as Json, json};
use std::time::Duration;

/// How much of a page is read.
const MOST_BYTES: usize = 4 * 1024 * 1024;
/// How many characters a line of text has.
const WIDTH: usize = 120;
/// The executor ends a call in time. One that nothing else ends lasts so much longer.
const GRACE: Duration = Duration::from_millis(250);

const DESCRIPTION: &str = "Reads a page of the web and returns its text. HTML is made readable, with its links listed \
                           at the end; other text, JSON and XML come as they are";
const SIGNATURE: &str = r#"(url::Text { description: "The whole address, with http:// or https://", format: "uri" })
    ==>(maxChars::Int { description: "How much of the text to return", default: 20000, range: 1..200000 })
    ==>(::Object { fields: [
        { name: "url", type: "Text", description: "Where the page was found, after redirects" },
        { name: "status", type: "Int", description: "The HTTP status; 200 is success" },
        { name: "title", type: "Text", optional: true },
        { name: "text", type: "Text" },
        { name: "truncated", type: "Bool", description: "Whether there is more text" }
    ] })"#;

/// Returns the tool `fetch`, which reads pages of the web. The guard of the client holds for it.
///
/// ```
/// use patter::http::{HttpClient, Reach};
/// use patter::tool::{Effect, standard::fetch};
/// let tool = fetch(&HttpClient::new(Reach::default(), |name| std::env::var(name).ok()));
/// assert_eq!((tool.name(), tool.effect), ("fetch", Effect::Network));
/// ```
pub fn fetch(client: &HttpClient) -> Tool {
    #[expect(clippy::expect_used, reason = "the signature is written above, and every call of this reads it")]
    let definition = Definition::new("fetch", DESCRIPTION, SIGNATURE).expect("a signature");
    Tool::new(definition, Kind::Native, Fetch { client: client.clone() })
        .effect(Effect::Network)
        .idempotent(true)
        .source(super::BUILT_IN)
}

struct Fetch {
    client: HttpClient,
}

impl Implementation for Fetch {
    fn call<'a>(&'a self, arguments: Json, _: &'a ToolContext) -> BoxFuture<'a, Result<Json, Failure>> {
        Box::pin(async move {
            let url = arguments.get("url").and_then(Json::as_str).unwrap_or_default();
            let most = arguments.get("maxChars").and_then(Json::as_u64).and_then(|most| usize::try_from(most).ok());
            let page = self.page(url, most.unwrap_or(usize::MAX));
            match tokio::time::timeout(DEFAULT_TIMEOUT + GRACE, page).await {
                Ok(result) => result,
                Err(_) => Err(Failure::new(format!("the server did not answer within {DEFAULT_TIMEOUT:?}"))),
            }
        })
    }
}

impl Fetch {
    async fn page(&self, url: &str, most: usize) -> Result<Json, Failure> {
        let url = Url::parse(url.trim()).map_err(|error| {
            Failure::new(format!("`url` is no address: {error}; write it whole, as in https://example.com/page"))
        })?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Failure::new("`url` may not hold a user"));
        }
        let mut request = HttpRequest::get(url);
        request
            .headers
            .insert(ACCEPT, HeaderValue::from_static("text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.1"));
        let mut response = self.client.send(request).await.map_err(|error| http_failure(&error))?;
        let form = Form::of(&response)?;
        let content_type = response.header("content-type").unwrap_or_default().to_owned();
        let (body, mut is_whole) = response.read_some(MOST_BYTES).await.map_err(|error| http_failure(&error))?;
        let mut page = Map::new();
        page.insert("url".to_owned(), response.url().as_str().into());
        page.insert("status".to_owned(), response.status().as_u16().into());
        let text = decode(&body, &content_type);
        let text = match form {
            Form::Text => text,
            Form::Html => {
                // Laying a large page out takes a while, which others should not wait for.
                let laid_out = tokio::task::spawn_blocking(move || (title(&text), readable(&text, WIDTH))).await?;
                let (title, (text, is_read)) = laid_out;
                page.extend(title.map(|title| ("title".to_owned(), title.into())));
                is_whole &= is_read;
                text
            }
        };
        let cut = text.char_indices().nth(most).and_then(|(at, _)| text.get(..at));
        page.insert("text".to_owned(), cut.unwrap_or(&text).into());
        page.insert("truncated".to_owned(), json!(cut.is_some() || !is_whole));
        Ok(Json::Object(page))
    }
}

/// What a page is written in.
enum Form {
    Html,
    Text,
}

impl Form {
    fn of(response: &HttpResponse) -> Result<Self, Failure> {
        let content_type = response.header("content-type").unwrap_or("text/plain");
        let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let (kind, subtype) = essence.split_once('/').unwrap_or((&essence, ""));
        let is_written = ["json", "xml", "javascript", "yaml", "x-www-form-urlencoded"].iter();
        let is_written = is_written.into_iter().any(|written| subtype.ends_with(written));
        match (kind, subtype) {
            ("text", "html") | ("application", "xhtml+xml") => Ok(Form::Html),
            ("text", _) => Ok(Form::Text),
            _ if is_written => Ok(Form::Text),
            _ => Err(Failure::new(format!("the page is `{essence}`, which is no text"))),
        }
    }
}
