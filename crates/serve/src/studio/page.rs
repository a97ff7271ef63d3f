//! The frame of all pages.

use super::asset;
use crate::host::Host;
use crate::token::Access;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use patter::html::{Html, html};
use patter_core::serve::ApiError;

/// What pages may load: only what this server has. Nothing inline but the style sheets that are named by their hashes, so text
/// that became markup could still do nothing.
const POLICY: &str = "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'; style-src";
/// The style sheets of all pages.
const STYLES: [&str; 2] = ["theme.css", "studio.css"];

/// Pages that are larger are compressed.
const COMPRESSED_FROM: usize = 4 << 10;

/// A part of the studio, as the navigation lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Project,
    Talk,
    Runs,
    Experiments,
    Inbox,
}

impl Section {
    const ALL: [Self; 5] = [Self::Project, Self::Talk, Self::Runs, Self::Experiments, Self::Inbox];

    fn name(self) -> &'static str {
        match self {
            Self::Project => "Project",
            Self::Talk => "Talk",
            Self::Runs => "Runs",
            Self::Experiments => "Experiments",
            Self::Inbox => "Inbox",
        }
    }

    fn address(self) -> &'static str {
        match self {
            Self::Project => "/",
            Self::Talk => "/studio/talk",
            Self::Runs => "/studio/sessions",
            Self::Experiments => "/studio/experiments",
            Self::Inbox => "/studio/inbox",
        }
    }
}

/// A page.
pub(super) struct Page {
    title: String,
    section: Option<Section>,
    width: Width,
    styles: Vec<&'static str>,
    modules: Vec<&'static str>,
    body: Html,
}

/// How wide the content of a page may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    /// Comfortable to read.
    Text,
    /// The whole window.
    Full,
}

impl Page {
    /// Creates a page of a section. The title is that of the window.
    pub(super) fn new(section: Section, title: impl Into<String>, body: Html) -> Self {
        Self { section: Some(section), modules: vec!["live.js"], ..Self::bare(title, body) }
    }

    /// Creates a page without navigation.
    pub(super) fn bare(title: impl Into<String>, body: Html) -> Self {
        let modules = Vec::new();
        Self { title: title.into(), section: None, width: Width::Text, styles: Vec::new(), modules, body }
    }

    /// Lets the content use the whole window.
    pub(super) fn wide(mut self) -> Self {
        self.width = Width::Full;
        self
    }

    /// Adds a style sheet.
    pub(super) fn with_style(mut self, name: &'static str) -> Self {
        self.styles.push(name);
        self
    }

    /// Adds a module of the page.
    pub(super) fn with_module(mut self, name: &'static str) -> Self {
        self.modules.push(name);
        self
    }

    fn styles(&self) -> impl Iterator<Item = &'static asset::Style> {
        STYLES.iter().chain(&self.styles).filter_map(|name| asset::style(name))
    }

    fn render(&self) -> String {
        // Inside the page, because a browser shows nothing before it has them.
        let styles: Html =
            self.styles().map(|style| html!("<style>{}</style>", Html::from_markup(style.text.to_owned()))).collect();
        let module = |name: &&str| html!("<script type=\"module\" src=\"{}\"></script>", asset::address(name));
        let modules: Html = self.modules.iter().map(module).collect();
        let width = match self.width {
            Width::Text => "text",
            Width::Full => "full",
        };
        let page = html!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\"><meta name=\"referrer\" content=\"same-origin\">\
             <title>{} · Patter</title><link rel=\"icon\" href=\"data:,\">{}{}</head>\n\
             <body class=\"studio {}\"><a class=\"skip\" href=\"#main\">Skip to the content</a>{}\
             <main id=\"main\" tabindex=\"-1\">{}</main><p id=\"notice\" role=\"status\"></p></body></html>\n",
            self.title,
            styles,
            modules,
            width,
            self.section.map(navigation).unwrap_or_default(),
            self.body
        );
        page.into_page()
    }
}

fn navigation(current: Section) -> Html {
    let item = |section: Section| {
        let mark = if section == current { html!(" aria-current=\"page\"") } else { Html::default() };
        let count = if section == Section::Inbox {
            html!("<b class=\"count\" id=\"inbox-count\" hidden></b>")
        } else {
            Html::default()
        };
        html!("<li><a href=\"{}\"{}>{}{}</a></li>", section.address(), mark, section.name(), count)
    };
    let items: Html = Section::ALL.into_iter().map(item).collect();
    html!(
        "<header class=\"bar\"><a class=\"mark\" href=\"/\">patter</a><nav aria-label=\"Studio\"><ul>{}</ul></nav></header>",
        items
    )
}

/// Sends a page, compressed if that is worth it.
pub(super) fn respond(page: &Page, headers: &HeaderMap) -> Response {
    let policy = page.styles().fold(POLICY.to_owned(), |policy, style| policy + " " + &style.source);
    send_html(page.render(), &policy, headers)
}

/// Sends a part of a page, which a module inserts.
pub(super) fn respond_part(part: Html, headers: &HeaderMap) -> Response {
    send_html(part.into_page(), &format!("{POLICY} 'none'"), headers)
}

fn send_html(text: String, policy: &str, headers: &HeaderMap) -> Response {
    let common = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_str(policy).unwrap_or(HeaderValue::from_static("default-src 'none'")),
        ),
        (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
        (header::VARY, HeaderValue::from_static("Accept-Encoding")),
    ];
    if text.len() >= COMPRESSED_FROM && asset::accepts_gzip(headers) {
        let compressed = asset::compress_page(&text);
        return (common, [(header::CONTENT_ENCODING, "gzip")], compressed).into_response();
    }
    (common, text).into_response()
}

/// An error, shown as a page.
pub(super) struct PageError(ApiError);

impl From<ApiError> for PageError {
    fn from(error: ApiError) -> Self {
        Self(error)
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let body = html!(
            "<section class=\"empty\"><h1>{}</h1><p><a href=\"/\">Back to the project</a></p></section>",
            capitalized(&self.0.message)
        );
        let mut response = respond(&Page::new(Section::Project, "Not available", body), &HeaderMap::new());
        *response.status_mut() = StatusCode::from_u16(self.0.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response
    }
}

/// Returns a message as a sentence.
fn capitalized(message: &str) -> String {
    let mut letters = message.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Returns the agents that the reader may reach, in the order of their files.
pub(super) fn reachable_agents(host: &Host, access: &Access) -> Vec<String> {
    host.agents().into_iter().map(|(name, _)| name).filter(|name| access.may_reach(name)).collect()
}

/// Returns a name as a part of an address.
pub(super) fn path_segment(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => text.push(char::from(byte)),
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    text
}
