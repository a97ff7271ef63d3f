//! Models that are called over HTTP: one client for all providers and protocols.

use super::access::ProviderAccess;
use super::error::ModelError;
use super::interface::{DeltaSink, Model};
use super::key::{CommandKey, ProviderKey};
use super::placeholder::{expand, variables_in};
use super::rate_limit::{Delay, RateLimiter};
use crate::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use crate::http::{
    Bytes, ConnectionProblem, HttpClient, HttpError, HttpRequest, HttpResponse, Method, NetworkPolicy, Url, jittered,
};
use crate::project::{Environment, ModelsConfig};
use crate::tool::redact::Redactor;
use crate::tool::{BoxFuture, CancellationToken};
use crate::trace::{TRACEPARENT, current_model_parent};
use patter_core::message::attachment::Attachment;
use patter_core::message::request::{Delta, Reply, Request};
use patter_core::provider::{KnownModel, ModelRef, Provider, Server};
use patter_core::text::truncate;
use patter_core::wire::{
    Codec, ExhaustedLimit, ShouldRetry, Streaming, Wire, WireError, check_attachments, exhausted_limit,
    is_limit_header, retry_advice, retry_delay,
};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The maximum number of retries.
const MAX_RETRIES: u32 = 2;
/// The delay before the first retry, which doubles for each further one.
const FIRST_DELAY: Duration = Duration::from_millis(500);
/// The longest delay before a retry, unless the provider asks for a longer one.
const MAX_BACKOFF: Duration = Duration::from_secs(8);
/// The longest delay that a provider may ask for.
const MAX_DELAY: Duration = Duration::from_secs(60);
/// The largest reply that is not streamed.
const MAX_REPLY_BYTES: usize = 64 * 1024 * 1024;
/// The largest part of an error response that is read.
const MAX_ERROR_BYTES: usize = 64 * 1024;
/// The number of characters that are shown of a body that is not a reply.
const MAX_EXCERPT_CHARS: usize = 120;
/// The time limit of a list of models.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// The time for the body of a complete reply to end, so that its connection can be reused.
const BODY_END_TIMEOUT: Duration = Duration::from_secs(1);

/// A model that is called over HTTP.
///
/// ```
/// use patter::model::{HttpModel, Model};
/// use patter::project::Environment;
/// let model = "OpenAI/gpt-4o-mini".parse().unwrap();
/// let error = HttpModel::new(&model, &Environment::default()).err().unwrap();
/// assert_eq!(error.to_string(), "there is no key for OpenAI: `OPENAI_API_KEY` is not set");
/// let environment = Environment::from_variables([("OPENAI_API_KEY", "k3y")]);
/// assert_eq!(HttpModel::new(&model, &environment).unwrap().provider().name(), "OpenAI");
/// ```
pub struct HttpModel {
    provider: Provider,
    base_url: String,
    /// What to check if the base URL is not that of a provider.
    address_hint: String,
    /// The variable or file that sets the base URL; `None` for the default.
    address_source: Option<&'static str>,
    /// The variables that may contain the key.
    key_variables: Vec<String>,
    key: ProviderKey,
    query: Vec<(String, String)>,
    codec: Codec,
    /// The time limit of a call, including retries.
    timeout: Duration,
    client: HttpClient,
    /// The URL for streamed replies.
    stream_url: Url,
    /// The URL for whole replies.
    whole_url: Url,
    headers: HeaderMap,
    /// The key, which a provider may repeat in its messages.
    secrets: Redactor,
    limiter: Arc<RateLimiter>,
    /// What is known about the model.
    known: Option<KnownModel>,
}

impl HttpModel {
    /// Returns a model of a provider, with the key and address from the environment. The address may be a private one,
    /// because the operator chose it.
    pub fn new(model: &ModelRef, environment: &Environment) -> Result<Self, ModelError> {
        Self::with_config(model, environment, &ModelsConfig::default())
    }

    /// Returns a model that also uses the settings of `patter.toml`, which the environment overrides.
    pub fn with_config(model: &ModelRef, environment: &Environment, config: &ModelsConfig) -> Result<Self, ModelError> {
        Self::with_shared_key(model, environment, config, None)
    }

    /// Returns a model whose key is shared with other models of the provider, if a command prints it.
    pub(super) fn with_shared_key(
        model: &ModelRef,
        environment: &Environment,
        config: &ModelsConfig,
        shared: Option<Arc<CommandKey>>,
    ) -> Result<Self, ModelError> {
        let Some(access) = ProviderAccess::resolve(model.provider, environment, config)? else {
            return Err(ModelError::config(format!("`{model}` is not an HTTP model")));
        };
        let invalid_url = || {
            ModelError::config(match access.base_url_source {
                Some(source) => format!("the address of {} in `{source}` is not a valid URL", model.provider.name()),
                None => format!("`{}` is not a valid URL", access.base_url),
            })
        };
        let mut values = Vec::new();
        let query = expand_settings(&access, &access.settings.query, environment, &mut values)?;
        let own_headers = expand_settings(&access, &access.settings.headers, environment, &mut values)?;
        let (stream_url, whole_url) =
            request_urls(&access.base_url, access.wire, model, &query).ok_or_else(invalid_url)?;
        if !matches!(stream_url.scheme(), "http" | "https") {
            let source = access.base_url_source.unwrap_or("its settings");
            let name = model.provider.name();
            return Err(ModelError::Configuration {
                message: format!("the address of {name} in `{source}` starts with `{}://`", stream_url.scheme()),
                hint: Some("write an address that starts with `https://` or `http://`".to_owned()),
            });
        }
        let reach = NetworkPolicy::from_allow_list(stream_url.host_str()).map_err(|_| invalid_url())?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in access.endpoint.headers {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        for (name, value) in own_headers {
            let (name, value) = own_header(&name, &value)?;
            headers.insert(name, value);
        }
        if let Some(error) = access.missing_key() {
            return Err(error);
        }
        let key = ProviderKey::new(&access, environment, config.root(), shared)?;
        values.extend(key.known().map(str::to_owned));
        let secrets = Redactor::new(&values);
        if let Some(known) = key.known() {
            key.insert(known, &mut headers)?;
        }
        let server = Server::new(model.provider, &access.base_url).with_quirks(access.settings.quirks);
        Ok(Self {
            provider: model.provider,
            address_hint: access.address_hint(),
            address_source: access.base_url_source,
            key_variables: access.key_variables,
            key,
            query,
            base_url: access.base_url,
            codec: Codec::new(access.wire, server),
            timeout: access.timeout,
            client: HttpClient::new(reach, |name| environment.get(name)),
            stream_url,
            whole_url,
            headers,
            secrets,
            limiter: Arc::default(),
            known: config.known_reader(model),
        })
    }

    /// Returns the key that a command prints, to share it with other models of the provider.
    pub(super) fn command_key(&self) -> Option<Arc<CommandKey>> {
        self.key.command()
    }

    /// Returns the name of the provider and its server, which decide about limits together with the key.
    pub(super) fn server(&self) -> String {
        let host = self.whole_url.host_str().unwrap_or_default();
        let port = self.whole_url.port().map_or_else(String::new, |port| format!(":{port}"));
        format!("{} at {host}{port}", self.provider.name())
    }

    /// Sets a rate limiter that is shared with other models.
    pub(super) fn with_rate_limiter(mut self, limiter: Arc<RateLimiter>) -> Self {
        self.limiter = limiter;
        self
    }

    /// Selects another wire, such as OpenAI Responses or the older functions.
    pub fn with_wire(mut self, wire: Wire, model: &ModelRef) -> Result<Self, ModelError> {
        let urls = request_urls(&self.base_url, wire, model, &self.query);
        (self.stream_url, self.whole_url) = urls.ok_or_else(|| self.invalid_base_url())?;
        self.codec = self.codec.with_wire(wire);
        Ok(self)
    }

    /// Requests the list of models, which is free, to check that the provider responds and accepts the key. Returns the
    /// status of the response.
    pub async fn probe(&self) -> Result<u16, ModelError> {
        let url = parse_url(&self.codec.wire().models_url(&self.base_url), &self.query);
        let mut request = HttpRequest::get(url.ok_or_else(|| self.invalid_base_url())?);
        request.headers = self.headers.clone();
        self.authorize(&mut request.headers).await?;
        let network_error = |error: HttpError| self.redact(self.connection_error(&error).error);
        let mut response = self.client.send(request).await.map_err(network_error)?;
        let status = response.status();
        let (body, _) = response.read_some(MAX_ERROR_BYTES).await.map_err(network_error)?;
        if status.is_success()
            && let Err(WireError::Unexpected { excerpt }) = self.codec.wire().check_models(&body)
        {
            return Err(self.redact(self.unexpected_body(response.header(CONTENT_TYPE.as_str()), &excerpt)));
        }
        Ok(status.as_u16())
    }

    /// Requests the list of models, and returns their names.
    pub async fn list_models(&self) -> Result<Vec<String>, ModelError> {
        let list = async {
            let url = parse_url(&self.codec.wire().models_url(&self.base_url), &self.query);
            let mut request = HttpRequest::get(url.ok_or_else(|| self.invalid_base_url())?);
            request.headers = self.headers.clone();
            self.authorize(&mut request.headers).await?;
            let network_error = |error: HttpError| self.connection_error(&error).error;
            let response = self.client.send(request).await.map_err(network_error)?;
            let status = response.status();
            if !status.is_success() {
                let failure = AttemptError::from_response(response, None).await;
                return Err(self.explain_status(status.as_u16(), failure.error));
            }
            let content_type = response.header(CONTENT_TYPE.as_str()).map(str::to_owned);
            let body = response.read(MAX_REPLY_BYTES).await.map_err(network_error)?;
            self.codec.wire().parse_models(&body).map_err(|error| match error {
                WireError::Unexpected { excerpt } => self.unexpected_body(content_type.as_deref(), &excerpt),
                error => AttemptError::from_wire(&error).error,
            })
        };
        let timeout = LIST_TIMEOUT.min(self.timeout);
        let listed = tokio::time::timeout(timeout, list).await;
        listed.unwrap_or(Err(ModelError::TimedOut { after: timeout })).map_err(|error| self.redact(error))
    }

    /// Adds a key that a command prints to the headers of a request, and returns it.
    async fn authorize(&self, headers: &mut HeaderMap) -> Result<Option<String>, ModelError> {
        if self.key.known().is_some() {
            return Ok(None);
        }
        let key = self.key.get().await?;
        if let Some(key) = &key {
            self.secrets.hide(key);
            self.key.insert(key, headers)?;
        }
        Ok(key)
    }

    fn invalid_base_url(&self) -> ModelError {
        ModelError::config(format!("the address of {} is not a valid URL", self.provider.name()))
    }

    /// Returns the error for a body that is not a reply.
    fn unexpected_body(&self, content_type: Option<&str>, excerpt: &str) -> ModelError {
        let name = self.provider.name();
        let sanitize = |text: &str| {
            let text: String = text.chars().filter(|c| !c.is_control()).collect();
            truncate(&text, MAX_EXCERPT_CHARS)
        };
        let content_type = content_type.map_or_else(|| "no content type".to_owned(), sanitize);
        // The key is removed before the text is truncated, which could leave a part of it.
        let excerpt = sanitize(&self.secrets.redact(excerpt));
        ModelError::Configuration {
            message: format!("the response of {name} is not a model reply ({content_type}): {excerpt}"),
            hint: Some(self.address_hint.clone()),
        }
    }

    /// Returns the error for a status. Some say that a setting is wrong.
    fn explain_status(&self, status: u16, error: ModelError) -> ModelError {
        let message = error.to_string();
        let hint = match (status, self.key.place()) {
            (401, Some(place)) => format!("check the key in {place}"),
            (401, None) => {
                let variables: Vec<_> = self.key_variables.iter().map(|name| format!("`{name}`")).collect();
                match variables.as_slice() {
                    [] => format!("name the variable of the key with `key` in `[models.{}]`", self.provider.name()),
                    variables => format!("set the key in {}", variables.join(" or ")),
                }
            }
            // An unknown model is described by the provider, and an unknown path by whoever is there instead.
            (404 | 405, _) if self.address_source.is_some() && !is_described(&error) => self.address_hint.clone(),
            _ => return error,
        };
        ModelError::Configuration { message, hint: Some(hint) }
    }

    /// Returns the error of an attempt without a complete response.
    fn connection_error(&self, error: &HttpError) -> AttemptError {
        let message = error.to_string();
        let model_error = match error {
            HttpError::Moved { .. } => ModelError::Configuration { message, hint: error.hint() },
            HttpError::Connect { .. } => ModelError::Unreachable { message, hint: self.connection_hint(error) },
            _ => ModelError::Network { message, hint: self.connection_hint(error) },
        };
        AttemptError { may_retry: error.is_transient(), ..AttemptError::new(model_error) }
    }

    /// Returns what to do about a connection that failed.
    fn connection_hint(&self, error: &HttpError) -> Option<String> {
        let name = self.provider.name();
        let is_refused = error.problem() == Some(&ConnectionProblem::Refused);
        if is_refused && self.provider == Provider::OLLAMA {
            let variable = self.provider.endpoint().map_or("", |endpoint| endpoint.base_url_variable);
            return Some(format!(
                "is Ollama running? start it with `ollama serve`, or set its address in `{variable}`"
            ));
        }
        match (error.hint(), self.address_source) {
            (Some(hint), Some(source)) => Some(format!("{hint} (the address of {name} is set in `{source}`)")),
            (hint, _) => hint,
        }
    }

    fn redact(&self, mut error: ModelError) -> ModelError {
        if let ModelError::Api { message, .. }
        | ModelError::TooLong { message }
        | ModelError::Unavailable { message }
        | ModelError::Unreachable { message, .. }
        | ModelError::Network { message, .. }
        | ModelError::Malformed { message }
        | ModelError::Configuration { message, .. } = &mut error
        {
            *message = self.secrets.redact(message);
        }
        error
    }

    async fn call_with_retries(
        &self,
        request: &Request<'_>,
        sink: Option<&DeltaSink<'_>>,
    ) -> Result<Reply, ModelError> {
        let checked = self.codec.check_attachments(request, self.known.as_ref());
        checked.map_err(|refusal| ModelError::attachments(&refusal))?;
        let streaming = if sink.is_some() { Streaming::On } else { Streaming::Off };
        let body = Bytes::from(self.codec.encode(request, streaming));
        let mut backoff = FIRST_DELAY;
        for attempt in 0..=MAX_RETRIES {
            // Another request may extend the delay meanwhile, so the limiter is asked again. The time limit of the call
            // bounds this loop.
            while let Some(delay) = self.limiter.delay() {
                wait(delay, sink).await?;
            }
            let failure = match self.attempt(request, body.clone(), sink).await {
                Ok(reply) => return Ok(reply),
                Err(failure) => failure,
            };
            let duration = failure.delay.unwrap_or_else(|| jittered(backoff));
            let reason = self.secrets.redact(&failure.error.to_string());
            if failure.affects_all {
                self.limiter.block(duration, &reason);
            }
            if attempt == MAX_RETRIES || !failure.may_retry {
                return Err(failure.error);
            }
            wait(Delay { duration, reason }, sink).await?;
            backoff = (backoff * 2).min(MAX_BACKOFF);
        }
        Err(ModelError::TimedOut { after: self.timeout })
    }

    /// Returns the headers of a request, with the span of the call if that is to be passed on, and the key in them that a
    /// command printed.
    async fn request_headers(&self) -> Result<(HeaderMap, Option<String>), ModelError> {
        let mut headers = self.headers.clone();
        if let Some(value) = current_model_parent().and_then(|parent| parent.to_string().parse().ok()) {
            headers.insert(TRACEPARENT, value);
        }
        let key = self.authorize(&mut headers).await?;
        Ok((headers, key))
    }

    async fn attempt(
        &self,
        request: &Request<'_>,
        body: Bytes,
        sink: Option<&DeltaSink<'_>>,
    ) -> Result<Reply, AttemptError> {
        let (headers, printed_key) = self.request_headers().await.map_err(AttemptError::new)?;
        let http_request = HttpRequest {
            method: Method::POST,
            url: if sink.is_some() { &self.stream_url } else { &self.whole_url }.clone(),
            headers,
            body: Some(body),
            is_body_secret: true,
            keeps_method: true,
            accepts_compression: false,
        };
        let mut response = self.client.send(http_request).await.map_err(|error| self.connection_error(&error))?;
        let has_limit = response.has_header(is_limit_header);
        let limit = has_limit.then(|| exhausted_limit(|name| response.header(name), SystemTime::now())).flatten();
        if !response.status().is_success() {
            let status = response.status().as_u16();
            let mut failure = AttemptError::from_response(response, limit).await;
            // Tokens expire, so the command is asked for another one, once for each.
            if status == 401 && printed_key.is_some_and(|key| self.key.forget(&key)) {
                failure.may_retry = true;
                failure.delay = Some(Duration::ZERO);
            }
            return Err(AttemptError { error: self.explain_status(status, failure.error), ..failure });
        }
        // A longer delay would be an error here, so it is left to the provider to reject the next request.
        if let Some(limit) = limit.filter(|limit| limit.resets_in <= MAX_DELAY) {
            self.limiter.block(limit.resets_in, &format!("the limit on {} is used up", limit.resource));
        }
        let content_type = response.header(CONTENT_TYPE.as_str()).map(str::to_owned);
        let attempt_error = |error: &WireError| match error {
            WireError::Unexpected { excerpt } => {
                AttemptError::new(self.unexpected_body(content_type.as_deref(), excerpt))
            }
            error => AttemptError::from_wire(error),
        };
        let Some(sink) = sink else {
            let status = response.status().as_u16();
            let body = response.read(MAX_REPLY_BYTES).await.map_err(|error| self.connection_error(&error))?;
            return self.codec.decode(request, status, &body).map_err(|error| attempt_error(&error));
        };
        let mut decoder = self.codec.stream_decoder(request);
        let mut has_pieces = false;
        // A reply that somebody saw in part cannot be retracted, so it is not retried.
        let is_shown = |has_pieces: bool| has_pieces && !sink.retract();
        let mut is_ended = false;
        while !is_ended {
            let deltas = match response.chunk().await {
                Ok(Some(chunk)) => decoder.push(chunk.as_ref()),
                Ok(None) => {
                    is_ended = true;
                    decoder.end()
                }
                Err(error) => return Err(self.connection_error(&error).final_if(is_shown(has_pieces))),
            };
            for delta in deltas.map_err(|error| attempt_error(&error).final_if(is_shown(has_pieces)))? {
                has_pieces = true;
                sink.receive(delta);
            }
            is_ended |= decoder.is_done();
        }
        // The connection can be reused once the body has ended, but the caller need not wait for that.
        drop(tokio::spawn(tokio::time::timeout(BODY_END_TIMEOUT, response.read(MAX_ERROR_BYTES))));
        decoder.finish().map_err(|error| attempt_error(&error).final_if(is_shown(has_pieces)))
    }
}

impl Model for HttpModel {
    fn provider(&self) -> Provider {
        self.provider
    }

    fn call<'a>(
        &'a self,
        request: &'a Request<'a>,
        sink: Option<&'a DeltaSink<'a>>,
        cancellation: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            tokio::select! {
                biased;
                () = cancellation.cancelled() => Err(ModelError::Cancelled),
                reply = tokio::time::timeout(self.timeout, self.call_with_retries(request, sink)) => {
                    let reply = reply.unwrap_or(Err(ModelError::TimedOut { after: self.timeout }));
                    reply.map_err(|error| self.redact(error))
                }
            }
        })
    }

    fn check_attachments(&self, model: &ModelRef, attachments: &[&Attachment]) -> Result<(), ModelError> {
        let checked = check_attachments(self.codec.wire(), model, self.known.as_ref(), attachments.iter().copied());
        checked.map_err(|refusal| ModelError::attachments(&refusal))
    }
}

/// The error of one attempt.
struct AttemptError {
    error: ModelError,
    may_retry: bool,
    /// The delay before a retry that the provider asks for.
    delay: Option<Duration>,
    /// Whether the delay applies to all requests.
    affects_all: bool,
}

impl AttemptError {
    /// Returns an error after which there is no retry.
    const fn new(error: ModelError) -> Self {
        Self { error, may_retry: false, delay: None, affects_all: false }
    }

    fn from_wire(error: &WireError) -> Self {
        let may_retry = error.is_transient() && !error.is_too_long();
        let error = match error {
            WireError::Malformed { message } => ModelError::Malformed { message: message.clone() },
            WireError::Truncated => ModelError::Network { message: error.to_string(), hint: None },
            error if error.is_too_long() => ModelError::TooLong { message: error.to_string() },
            error if error.is_outage() => ModelError::Unavailable { message: error.to_string() },
            // The message contains the status.
            WireError::Status { .. } | WireError::Reply { .. } | WireError::Unexpected { .. } => {
                ModelError::Api { status: None, message: error.to_string() }
            }
        };
        Self { may_retry, ..Self::new(error) }
    }

    async fn from_response(mut response: HttpResponse, limit: Option<ExhaustedLimit>) -> Self {
        let advice = retry_advice(|name| response.header(name), SystemTime::now());
        let status = response.status().as_u16();
        let (body, _) = response.read_some(MAX_ERROR_BYTES).await.unwrap_or_default();
        let failure = Self::from_wire(&WireError::from_status(status, &body));
        let may_retry = match advice.should_retry {
            ShouldRetry::Yes => true,
            ShouldRetry::No => false,
            ShouldRetry::Unspecified => failure.may_retry,
        };
        let affects_all = may_retry && (matches!(status, 429 | 529) || advice.delay.is_some());
        let delay = advice.delay.or_else(|| retry_delay(&body)).or(limit.map(|limit| limit.resets_in));
        Self { error: failure.error, may_retry, delay, affects_all }
    }

    /// Rules out a retry if the condition is true.
    fn final_if(mut self, condition: bool) -> Self {
        self.may_retry &= !condition;
        self
    }
}

/// Returns whether a provider names the error in its response.
fn is_described(error: &ModelError) -> bool {
    // The name is in backticks after the status.
    matches!(error, ModelError::Api { message, .. } if message.contains('`'))
}

/// Returns the URLs for streamed and for whole replies.
fn request_urls(base_url: &str, wire: Wire, model: &ModelRef, query: &[(String, String)]) -> Option<(Url, Url)> {
    let url = |streaming| parse_url(&wire.url(base_url, &model.id, streaming), query);
    Some((url(Streaming::On)?, url(Streaming::Off)?))
}

/// Returns a URL with further parameters.
fn parse_url(text: &str, query: &[(String, String)]) -> Option<Url> {
    let mut url = Url::parse(text).ok()?;
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    Some(url)
}

/// Replaces the variables in headers or parameters, and adds their values to those that are kept secret.
fn expand_settings<'s>(
    access: &ProviderAccess,
    settings: impl IntoIterator<Item = (&'s String, &'s String)>,
    environment: &Environment,
    secrets: &mut Vec<String>,
) -> Result<Vec<(String, String)>, ModelError> {
    let mut expanded = Vec::new();
    for (name, value) in settings {
        secrets.extend(variables_in(value).filter_map(|name| environment.get(name)));
        let value = expand(value, |name| environment.get(name)).map_err(|variable| ModelError::Configuration {
            message: format!("`{name}` of {} needs `{variable}`, which is not set", access.provider.name()),
            hint: Some(format!("set `{variable}` in the environment or in `.env`")),
        })?;
        expanded.push((name.clone(), value));
    }
    Ok(expanded)
}

fn own_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), ModelError> {
    let invalid =
        || ModelError::config(format!("the header `{name}` contains characters that a header cannot contain"));
    let mut value = HeaderValue::from_str(value).map_err(|_| invalid())?;
    value.set_sensitive(true);
    Ok((HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?, value))
}

/// Reports a delay to the sink and waits, unless the delay is too long.
async fn wait(delay: Delay, sink: Option<&DeltaSink<'_>>) -> Result<(), ModelError> {
    let Delay { duration, reason } = &delay;
    if *duration > MAX_DELAY {
        let seconds = duration.as_secs_f64().ceil();
        let message =
            format!("{reason}; it asks to wait {seconds} s, but at most {} s are allowed", MAX_DELAY.as_secs());
        return Err(ModelError::Unavailable { message });
    }
    tracing::info!(%reason, ?duration, "delaying the request to the model");
    if let Some(sink) = sink {
        sink.receive(Delta::Waiting { seconds: duration.as_secs_f64(), because: reason.clone() });
    }
    delay.sleep().await;
    Ok(())
}
