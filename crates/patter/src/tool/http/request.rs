//! Building requests from templates.

use super::encode::{JsonPosition, percent_encode};
use super::variables::{RequestVariables, not_configured};
use crate::http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use crate::http::{Bytes, HttpRequest, Method, Url};
use crate::tool::ToolFailure;
use patter_core::declare::http::{Body, HttpSpec, JsonTemplate};
use patter_core::declare::template::{Part, Template, argument_text};
use serde_json::{Map, Value as Json};

/// Builds requests from templates: the arguments and variables for their placeholders.
pub(super) struct RequestBuilder<'a> {
    pub(super) arguments: &'a Map<String, Json>,
    pub(super) variables: RequestVariables,
}

impl RequestBuilder<'_> {
    /// Builds the request, with each argument encoded for its position.
    pub(super) fn request(&mut self, spec: &HttpSpec) -> Result<HttpRequest, ToolFailure> {
        let url = self.url(spec)?;
        let mut headers = self.headers(spec)?;
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("application/json, */*;q=0.5"));
        let body = self.body(spec, &mut headers);
        let method = Method::from_bytes(spec.method.name().as_bytes())?;
        let is_body_secret = body_templates(&spec.body).any(|template| template.variables().next().is_some());
        Ok(HttpRequest { method, url, headers, body, is_body_secret, keeps_method: false })
    }

    /// Renders a template without encoding, such as a message for the model.
    pub(super) fn render(&self, template: &Template) -> String {
        self.render_with(template, str::to_owned)
    }

    fn render_with(&self, template: &Template, encode: impl Fn(&str) -> String) -> String {
        let parts = template.parts().iter().map(|part| match part {
            Part::Text(text) => text.clone(),
            Part::Parameter(name) => argument_text(self.arguments, name).map_or(String::new(), |text| encode(&text)),
            Part::Variable(name) => encode(self.variables.get(name)),
        });
        parts.collect()
    }

    /// Returns whether a template consists of one argument that is missing.
    fn is_omitted(&self, template: &Template) -> bool {
        template.sole_parameter().is_some_and(|name| self.arguments.get(name).is_none_or(Json::is_null))
    }

    fn url(&self, spec: &HttpSpec) -> Result<Url, ToolFailure> {
        let origin = self.render(&spec.url.origin);
        let invalid =
            |error: &dyn std::fmt::Display| not_configured().with_detail(format!("its URL is invalid: {error}"));
        let expected = Url::parse(&origin).map_err(|error| invalid(&error))?;
        let mut text = origin;
        // A variable may end with the slash that the path starts with.
        if text.ends_with('/') && !spec.url.path.parts().is_empty() {
            text.pop();
        }
        text.push_str(&self.path(&spec.url.path)?);
        let mut separator = if text.contains('?') { '&' } else { '?' };
        for (name, value) in self.query(spec) {
            text.push(separator);
            text.push_str(&percent_encode(&name));
            if !value.is_empty() {
                text.push('=');
                text.push_str(&percent_encode(&value));
            }
            separator = '&';
        }
        let url = Url::parse(&text).map_err(|error| invalid(&error))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid(&"only `http` and `https` URLs can be requested"));
        }
        if url.origin() != expected.origin() || !url.username().is_empty() || url.password().is_some() {
            return Err(invalid(&"it contains credentials, or its host is incomplete"));
        }
        Ok(url)
    }

    /// Builds the path. An argument never leaves its segment.
    fn path(&self, template: &Template) -> Result<String, ToolFailure> {
        let mut path = PathBuilder::default();
        for part in template.parts() {
            match part {
                Part::Text(text) => {
                    let mut segments = text.split('/');
                    path.segment.push_str(segments.next().unwrap_or_default());
                    for segment in segments {
                        path.end_segment()?;
                        path.text.push('/');
                        path.segment.push_str(segment);
                    }
                }
                Part::Parameter(name) => {
                    let Some(value) = argument_text(self.arguments, name) else {
                        return Err(ToolFailure::new(format!("`{name}` is required, since it is part of the URL")));
                    };
                    path.segment.push_str(&percent_encode(&value));
                    path.argument = Some(name);
                }
                Part::Variable(name) => path.segment.push_str(&percent_encode(self.variables.get(name))),
            }
        }
        path.end_segment()?;
        Ok(path.text)
    }

    fn query(&self, spec: &HttpSpec) -> Vec<(String, String)> {
        let mut pairs = Vec::new();
        for (name, template) in &spec.query {
            match template.sole_parameter().map(|parameter| self.arguments.get(parameter)) {
                Some(None | Some(Json::Null)) => {}
                Some(Some(Json::Array(items))) => {
                    pairs.extend(items.iter().filter(|item| !item.is_null()).map(|item| (name.clone(), text_of(item))));
                }
                _ => pairs.push((name.clone(), self.render(template))),
            }
        }
        pairs
    }

    fn headers(&mut self, spec: &HttpSpec) -> Result<HeaderMap, ToolFailure> {
        let mut headers = HeaderMap::new();
        for (name, template) in &spec.headers {
            if self.is_omitted(template) {
                continue;
            }
            for parameter in template.parameters() {
                let value = argument_text(self.arguments, parameter).unwrap_or_default();
                if value.contains(char::is_control) {
                    return Err(ToolFailure::new(format!(
                        "`{parameter}` contains a control character, which is not allowed in a header"
                    )));
                }
                if name.eq_ignore_ascii_case("cookie") && value.contains([';', ',', '"', '\\', ' ']) {
                    return Err(ToolFailure::new(format!(
                        "`{parameter}` contains a character that is not allowed in a cookie"
                    )));
                }
            }
            let mut text = self.render(template);
            let secret = template.variables().next();
            if let Some(secret) = secret
                && name.eq_ignore_ascii_case("authorization")
                && let Some(credentials) = text.strip_prefix("Basic ")
            {
                text = format!("Basic {}", self.variables.basic_credentials(secret, credentials.trim()));
            }
            let invalid = || not_configured().with_detail(format!("the header `{name}` contains an invalid character"));
            let mut value = HeaderValue::from_bytes(text.as_bytes()).map_err(|_| invalid())?;
            value.set_sensitive(secret.is_some());
            headers.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?, value);
        }
        Ok(headers)
    }

    fn body(&self, spec: &HttpSpec, headers: &mut HeaderMap) -> Option<Bytes> {
        let declared = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_ascii_lowercase);
        let (body, content_type) = match &spec.body {
            Body::None => return None,
            Body::Json(template) => (self.json(template)?.to_string(), "application/json"),
            Body::Text(template) => {
                let body = match declared.as_deref() {
                    Some(declared) if is_json(declared) => self.json_text(template),
                    Some(declared) if declared.starts_with("application/x-www-form-urlencoded") => {
                        self.render_with(template, percent_encode)
                    }
                    _ => self.render(template),
                };
                (body, "text/plain; charset=utf-8")
            }
        };
        headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(content_type));
        Some(body.into())
    }

    /// Builds a value, or nothing for an argument that is missing.
    fn json(&self, template: &JsonTemplate) -> Option<Json> {
        Some(match template {
            JsonTemplate::Value(value) => value.clone(),
            JsonTemplate::Text(text) => match text.sole_parameter() {
                Some(name) => self.arguments.get(name)?.clone(),
                None => Json::String(self.render(text)),
            },
            JsonTemplate::Array(items) => items.iter().filter_map(|item| self.json(item)).collect(),
            JsonTemplate::Object(entries) => {
                entries.iter().filter_map(|(key, value)| Some((key.clone(), self.json(value)?))).collect()
            }
        })
    }

    /// Renders a template of JSON text, with arguments encoded as values, or as content within strings.
    fn json_text(&self, template: &Template) -> String {
        let mut text = String::new();
        let mut position = JsonPosition::default();
        for part in template.parts() {
            match part {
                Part::Text(literal) => {
                    position.advance(literal);
                    text.push_str(literal);
                }
                Part::Parameter(name) => {
                    text.push_str(&position.encode(self.arguments.get(name).unwrap_or(&Json::Null)));
                }
                Part::Variable(name) => text.push_str(&position.encode(&Json::from(self.variables.get(name)))),
            }
        }
        text
    }
}

/// A path under construction.
#[derive(Default)]
struct PathBuilder<'a> {
    text: String,
    segment: String,
    /// An argument that is part of the segment.
    argument: Option<&'a str>,
}

impl PathBuilder<'_> {
    fn end_segment(&mut self) -> Result<(), ToolFailure> {
        // Servers and URL parsers treat `%2e` as a dot.
        let decoded = self.segment.to_ascii_lowercase().replace("%2e", ".");
        if let Some(name) = self.argument.take().filter(|_| matches!(decoded.as_str(), "" | "." | "..")) {
            return Err(ToolFailure::new(format!(
                "`{name}` must not be empty, `.` or `..`, since it is part of a path"
            )));
        }
        self.text.push_str(&self.segment);
        self.segment.clear();
        Ok(())
    }
}

/// Iterates over the templates of a request.
pub(super) fn templates(spec: &HttpSpec) -> impl Iterator<Item = &Template> {
    let pairs = spec.query.iter().chain(&spec.headers).map(|(_, template)| template);
    [&spec.url.origin, &spec.url.path].into_iter().chain(pairs).chain(body_templates(&spec.body))
}

fn body_templates(body: &Body) -> impl Iterator<Item = &Template> {
    fn collect<'a>(json: &'a JsonTemplate, found: &mut Vec<&'a Template>) {
        match json {
            JsonTemplate::Value(_) => {}
            JsonTemplate::Text(template) => found.push(template),
            JsonTemplate::Array(items) => items.iter().for_each(|item| collect(item, found)),
            JsonTemplate::Object(entries) => entries.iter().for_each(|(_, value)| collect(value, found)),
        }
    }
    let mut found = Vec::new();
    match body {
        Body::None => {}
        Body::Text(template) => found.push(template),
        Body::Json(json) => collect(json, &mut found),
    }
    found.into_iter()
}

/// Returns whether a content type is JSON.
pub(super) fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || essence == "text/json" || essence.ends_with("+json")
}

fn text_of(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}
