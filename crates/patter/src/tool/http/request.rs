//! Building requests from templates.

use super::encode::{JsonPosition, percent_encode};
use super::form::{FileContent, FormField, Multipart, encode_form, text_in, write_pairs};
use super::variables::{RequestVariables, not_configured};
use crate::http::header::{ACCEPT, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue};
use crate::http::{Bytes, HttpRequest, Method, Url};
use crate::tool::ToolFailure;
use patter_core::declare::http::{Body, HttpSpec, JsonTemplate, Style};
use patter_core::declare::template::{Part, Template};
use serde_json::{Map, Value as Json};
use std::borrow::Cow;

/// Builds requests from templates: the arguments and variables for their placeholders.
pub(super) struct RequestBuilder<'a> {
    pub(super) spec: &'a HttpSpec,
    pub(super) arguments: &'a Map<String, Json>,
    pub(super) variables: RequestVariables,
}

impl RequestBuilder<'_> {
    /// Builds the request, with each argument encoded for its position.
    pub(super) fn request(&mut self) -> Result<HttpRequest, ToolFailure> {
        let spec = self.spec;
        let url = self.url(spec)?;
        let mut headers = self.headers(spec)?;
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("application/json, */*;q=0.5"));
        let body = self.body(spec, &mut headers)?;
        let method = Method::from_bytes(spec.method.name().as_bytes())?;
        let is_body_secret = body_templates(&spec.body).any(|template| template.variables().next().is_some());
        Ok(HttpRequest { method, url, headers, body, is_body_secret, keeps_method: false, accepts_compression: true })
    }

    /// Renders a template without encoding, such as a message for the model.
    pub(super) fn render(&self, template: &Template) -> String {
        self.render_with(template, str::to_owned)
    }

    fn render_with(&self, template: &Template, encode: impl Fn(&str) -> String) -> String {
        let parts = template.parts().iter().map(|part| match part {
            Part::Text(text) => text.clone(),
            Part::Parameter(name) => self.argument(name, &encode).unwrap_or_default(),
            Part::Variable(name) => encode(self.variables.get(name)),
        });
        parts.collect()
    }

    /// Returns the text of an argument in the style of its parameter. `None` if it is missing or null.
    fn argument(&self, name: &str, encode: &dyn Fn(&str) -> String) -> Option<String> {
        let value = self.arguments.get(name).filter(|value| !value.is_null())?;
        Some(text_in(value, self.style(name), encode))
    }

    fn style(&self, parameter: &str) -> Option<Style> {
        self.spec.styles.get(parameter).copied()
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
        for (name, encoded) in self.query(spec) {
            text.push(separator);
            text.push_str(&percent_encode(&name));
            if !encoded.is_empty() {
                text.push('=');
                text.push_str(&encoded);
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
                    let Some(encoded) = self.argument(name, &percent_encode) else {
                        return Err(ToolFailure::new(format!("`{name}` is required, since it is part of the URL")));
                    };
                    path.segment.push_str(&encoded);
                    path.argument = Some(name);
                }
                Part::Variable(name) => path.segment.push_str(&percent_encode(self.variables.get(name))),
            }
        }
        path.end_segment()?;
        Ok(path.text)
    }

    /// Returns the names and encoded values of the query.
    fn query(&self, spec: &HttpSpec) -> Vec<(String, String)> {
        let mut pairs = Vec::new();
        for (name, template) in &spec.query {
            match template.sole_parameter() {
                Some(parameter) => {
                    let value = self.arguments.get(parameter).unwrap_or(&Json::Null);
                    write_pairs(name, value, self.style(parameter), &percent_encode, &mut pairs);
                }
                None => pairs.push((name.clone(), percent_encode(&self.render(template)))),
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
            self.check_header_arguments(template, name.eq_ignore_ascii_case("cookie"))?;
            let mut text = self.render(template);
            let secret = template.variables().next();
            if let Some(secret) = secret
                && name.eq_ignore_ascii_case("authorization")
                && let Some(credentials) = text.strip_prefix("Basic ")
            {
                text = format!("Basic {}", self.variables.basic_credentials(secret, credentials.trim()));
            }
            let mut value = header_value(name, &text)?;
            value.set_sensitive(secret.is_some());
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid_header(name))?;
            headers.insert(name, value);
        }
        let mut cookies = Vec::new();
        for (name, template) in spec.cookies.iter().filter(|(_, template)| !self.is_omitted(template)) {
            self.check_header_arguments(template, true)?;
            cookies.push(format!("{name}={}", self.render(template)));
        }
        if !cookies.is_empty() {
            let mut value = header_value("Cookie", &cookies.join("; "))?;
            value.set_sensitive(true);
            headers.insert(COOKIE, value);
        }
        Ok(headers)
    }

    /// Checks that no argument ends a header, or a cookie within it.
    fn check_header_arguments(&self, template: &Template, is_cookie: bool) -> Result<(), ToolFailure> {
        for parameter in template.parameters() {
            let value = self.argument(parameter, &str::to_owned).unwrap_or_default();
            if value.contains(char::is_control) {
                return Err(ToolFailure::new(format!(
                    "`{parameter}` contains a control character, which is not allowed in a header"
                )));
            }
            let separators: &[char] = match self.style(parameter) {
                // Written by the style itself.
                Some(Style::Comma) => &[';', '"', '\\', ' '],
                _ => &[';', ',', '"', '\\', ' '],
            };
            if is_cookie && value.contains(separators) {
                return Err(ToolFailure::new(format!(
                    "`{parameter}` contains a character that is not allowed in a cookie"
                )));
            }
        }
        Ok(())
    }

    fn body(&self, spec: &HttpSpec, headers: &mut HeaderMap) -> Result<Option<Bytes>, ToolFailure> {
        let declared = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_ascii_lowercase);
        let (body, content_type) = match &spec.body {
            Body::None => return Ok(None),
            Body::Json(template) => match self.json(template) {
                Some(value) => (Bytes::from(value.to_string()), "application/json".to_owned()),
                None => return Ok(None),
            },
            Body::Text(template) => match self.file(template)? {
                Some(file) => {
                    let content_type = file.media_type.unwrap_or_else(|| "application/octet-stream".to_owned());
                    (Bytes::from(file.bytes), content_type)
                }
                None if template.sole_parameter().is_some_and(|name| self.style(name) == Some(Style::File)) => {
                    return Ok(None);
                }
                None => {
                    let body = match declared.as_deref() {
                        Some(declared) if is_json(declared) => self.json_text(template),
                        Some(declared) if declared.starts_with("application/x-www-form-urlencoded") => {
                            self.render_with(template, percent_encode)
                        }
                        _ => self.render(template),
                    };
                    (Bytes::from(body), "text/plain; charset=utf-8".to_owned())
                }
            },
            Body::Form(template) => {
                let form = encode_form(&self.fields(template)?);
                (Bytes::from(form), "application/x-www-form-urlencoded".to_owned())
            }
            Body::Multipart(template) => {
                let mut parts = Multipart::default();
                for field in self.fields(template)? {
                    parts.add(&field)?;
                }
                let (boundary, body) = parts.finish();
                // The declared type has no boundary.
                headers.remove(CONTENT_TYPE);
                (Bytes::from(body), format!("multipart/form-data; boundary={boundary}"))
            }
        };
        let content_type = header_value("Content-Type", &content_type)?;
        headers.entry(CONTENT_TYPE).or_insert(content_type);
        Ok(Some(body))
    }

    /// Returns the content of a body that is a file.
    fn file(&self, template: &Template) -> Result<Option<FileContent>, ToolFailure> {
        let name = template.sole_parameter().filter(|name| self.style(name) == Some(Style::File));
        let value = name.and_then(|name| Some((name, self.arguments.get(name)?.as_str()?)));
        value.map(|(name, text)| FileContent::read(name, text)).transpose()
    }

    /// Returns the fields of a form.
    fn fields<'t>(&self, template: &'t JsonTemplate) -> Result<Vec<FormField<'t>>, ToolFailure> {
        let style = |value: &JsonTemplate| match value {
            JsonTemplate::Text(text) => text.sole_parameter().and_then(|name| self.style(name)),
            _ => None,
        };
        match template {
            JsonTemplate::Object(entries) => {
                let fields = entries.iter().filter_map(|(name, value)| {
                    Some(FormField {
                        name: Cow::Borrowed(name.as_str()),
                        value: self.json(value)?,
                        style: style(value),
                    })
                });
                Ok(fields.collect())
            }
            other => match self.json(other) {
                // The style of the parameter that is the whole form applies to each of its fields.
                Some(Json::Object(fields)) => {
                    let style = style(other);
                    let fields = fields.into_iter();
                    Ok(fields.map(|(name, value)| FormField { name: name.into(), value, style }).collect())
                }
                None => Ok(Vec::new()),
                Some(_) => Err(ToolFailure::new("a form must be an object")),
            },
        }
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
    let pairs = spec.query.iter().chain(&spec.headers).chain(&spec.cookies).map(|(_, template)| template);
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
        Body::Json(json) | Body::Form(json) | Body::Multipart(json) => collect(json, &mut found),
    }
    found.into_iter()
}

/// Returns whether a content type is JSON.
pub(super) fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || essence == "text/json" || essence.ends_with("+json")
}

fn invalid_header(name: &str) -> ToolFailure {
    not_configured().with_detail(format!("the header `{name}` contains an invalid character"))
}

fn header_value(name: &str, text: &str) -> Result<HeaderValue, ToolFailure> {
    HeaderValue::from_bytes(text.as_bytes()).map_err(|_| invalid_header(name))
}
