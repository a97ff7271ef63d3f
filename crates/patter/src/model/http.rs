//! Models that are reached over HTTP: one client for every provider, and the wires of core.

use super::pace::{Pacer, Wait};
use super::{Access, Model, ModelError, Sink};
use crate::http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use crate::http::{Bytes, HttpClient, HttpError, HttpRequest, HttpResponse, Method, Reach, Url, jittered};
use crate::project::{Environment, ModelsConfig};
use crate::tool::secrets::Secrets;
use crate::tool::{BoxFuture, CancellationToken};
use patter_core::message::request::{Delta, Reply, Request};
use patter_core::provider::{KeyHeader, ModelRef, Provider};
use patter_core::wire::{Exhausted, Streaming, Verdict, Wire, WireError, exhausted, retry_after};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How often a request is made again.
const RETRIES: u32 = 2;
/// The first wait before another try, and the longest.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(8);
/// The longest wait that a provider may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How much of a reply is read that comes whole.
const MOST_REPLY_BYTES: usize = 64 * 1024 * 1024;
/// How long the body of a complete reply has to end.
const LONGEST_ENDING: Duration = Duration::from_secs(1);
/// How many characters are shown of what is no reply.
const MOST_FOREIGN_CHARACTERS: usize = 120;
/// How much of an error is read.
const MOST_ERROR_BYTES: usize = 64 * 1024;

/// A model that is reached over HTTP.
///
/// ```
/// use patter::model::{HttpModel, Model};
/// use patter::project::Environment;
/// let model = "OpenAI/gpt-4o-mini".parse().unwrap();
/// let error = HttpModel::new(&model, &Environment::default()).err().unwrap();
/// assert_eq!(error.to_string(), "there is no key for OpenAI: `OPENAI_API_KEY` is not set");
/// let environment = Environment::of([("OPENAI_API_KEY", "k3y")]);
/// assert_eq!(HttpModel::new(&model, &environment).unwrap().provider().name(), "OpenAI");
/// ```
pub struct HttpModel {
    provider: Provider,
    base: String,
    /// Where that is written.
    base_from: Option<&'static str>,
    wire: Wire,
    /// How long a whole call may take.
    timeout: Duration,
    client: HttpClient,
    /// Where replies come in pieces.
    url: Url,
    /// Where they come whole.
    whole_url: Url,
    headers: HeaderMap,
    /// The key, which a provider may repeat in what it says.
    secrets: Secrets,
    pacer: Arc<Pacer>,
}

impl HttpModel {
    /// Returns a model of a provider, with keys and addresses from the environment. The address is the operator's
    /// choice, so it may be one of this machine.
    pub fn new(model: &ModelRef, environment: &Environment) -> Result<Self, ModelError> {
        Self::with(model, environment, &ModelsConfig::default())
    }

    /// The same, with what `patter.toml` says where the environment does not.
    pub fn with(model: &ModelRef, environment: &Environment, config: &ModelsConfig) -> Result<Self, ModelError> {
        let Some(access) = Access::resolve(model.provider, environment, config)? else {
            return Err(wrong(format!("`{model}` is not reached over HTTP")));
        };
        let no_address = || match access.base_url_source {
            Some(place) => wrong(format!("the address of {} in `{place}` is none", model.provider.name())),
            None => wrong(format!("`{}` is no address", access.base_url)),
        };
        let (url, whole_url) = addresses(&access.base_url, access.wire, model).ok_or_else(no_address)?;
        let reach = Reach::allowing(url.host_str()).map_err(|_| no_address())?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in access.endpoint.headers {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        if access.lacks_key() {
            return Err(ModelError::missing_key(model.provider, access.endpoint.key_variables));
        }
        let key = access.key.and_then(|name| environment.get(name));
        let secrets = Secrets::new(key.as_slice());
        if let Some(key) = key {
            let (name, text) = match access.endpoint.key_header {
                KeyHeader::Bearer => (AUTHORIZATION, format!("Bearer {key}")),
                KeyHeader::Named(name) => (HeaderName::from_static(name), key),
            };
            let mut value = HeaderValue::from_str(text.trim()).map_err(|_| {
                wrong(format!("`{}` holds what no key can", access.endpoint.key_variables.join("` or `")))
            })?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let client = HttpClient::new(reach, |name| environment.get(name));
        let Access { base_url: base, base_url_source: base_from, wire, timeout, .. } = access;
        Ok(Self {
            provider: model.provider,
            base,
            base_from,
            wire,
            timeout,
            client,
            url,
            whole_url,
            headers,
            secrets,
            pacer: Arc::default(),
        })
    }

    /// Keeps to a pace that others keep to as well.
    pub(super) fn paced(mut self, pacer: Arc<Pacer>) -> Self {
        self.pacer = pacer;
        self
    }

    /// Asks for another wire, such as the Responses of OpenAI or its old functions.
    pub fn over(mut self, wire: Wire, model: &ModelRef) -> Result<Self, ModelError> {
        let addresses = addresses(&self.base, wire, model);
        (self.url, self.whole_url) = addresses.ok_or_else(|| wrong("the address is none".to_owned()))?;
        self.wire = wire;
        Ok(self)
    }

    /// Asks the provider for the models that it has, to see whether it answers and takes the key. Returns the status of
    /// its answer, if that can be one of a provider; no token is spent.
    pub async fn probe(&self) -> Result<u16, ModelError> {
        let url = Url::parse(&format!("{}{}", self.base.trim_end_matches('/'), self.wire.listing()));
        let mut request = HttpRequest::get(url.map_err(|_| wrong("the address is none".to_owned()))?);
        request.headers = self.headers.clone();
        let network = |error: HttpError| self.redacted(Failed::http(&error).error);
        let mut response = self.client.send(request).await.map_err(network)?;
        let status = response.status();
        let (body, _) = response.read_some(MOST_ERROR_BYTES).await.map_err(network)?;
        if status.is_success()
            && let Err(WireError::Foreign { beginning }) = self.wire.listed(&body)
        {
            return Err(self.redacted(self.foreign(response.header(CONTENT_TYPE.as_str()), &beginning)));
        }
        Ok(status.as_u16())
    }

    /// Returns that what answered is no model.
    fn foreign(&self, content_type: Option<&str>, beginning: &str) -> ModelError {
        let (name, kind) = (self.provider.name(), content_type.unwrap_or("something without a content type"));
        // It is cut after the key is out of it, of which else a part could be left.
        let shown = self.secrets.redact(beginning);
        let cut =
            |text: &str| text.chars().filter(|c| !c.is_control()).take(MOST_FOREIGN_CHARACTERS).collect::<String>();
        let message = format!("{name} answered with {}, which is no reply of a model: {}", cut(kind), cut(&shown));
        let hint = match self.base_from {
            Some(place) => format!("is the address right that `{place}` has for {name}?"),
            None => "something between here and the provider answers in its place: a proxy?".to_owned(),
        };
        ModelError::Configuration { message, hint: Some(hint) }
    }

    fn redacted(&self, mut error: ModelError) -> ModelError {
        if let ModelError::Api { message, .. }
        | ModelError::Network { message }
        | ModelError::Malformed { message }
        | ModelError::Configuration { message, .. } = &mut error
        {
            *message = self.secrets.redact(message);
        }
        error
    }

    async fn attempts(&self, request: &Request<'_>, sink: Option<&Sink<'_>>) -> Result<Reply, ModelError> {
        let streaming = if sink.is_some() { Streaming::On } else { Streaming::Off };
        let body = Bytes::from(self.wire.encode(request, streaming));
        let mut wait = FIRST_WAIT;
        for attempt in 0..=RETRIES {
            // Others may have been told to wait longer meanwhile. The time of the whole call is the bound.
            while let Some(held) = self.pacer.wait() {
                waited(held, sink).await?;
            }
            let failed = match self.attempt(request, body.clone(), sink).await {
                Ok(reply) => return Ok(reply),
                Err(failed) => failed,
            };
            let pause = failed.after.unwrap_or_else(|| jittered(wait));
            let because = self.secrets.redact(&failed.error.to_string());
            if failed.is_for_all {
                self.pacer.hold(pause, &because);
            }
            if attempt == RETRIES || !failed.may_retry {
                return Err(failed.error);
            }
            waited(Wait { remaining: pause, because }, sink).await?;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
        Err(ModelError::TimedOut { after: self.timeout })
    }

    async fn attempt(&self, request: &Request<'_>, body: Bytes, sink: Option<&Sink<'_>>) -> Result<Reply, Failed> {
        let sent = HttpRequest {
            method: Method::POST,
            url: if sink.is_some() { &self.url } else { &self.whole_url }.clone(),
            headers: self.headers.clone(),
            body: Some(body),
            is_body_secret: true,
            keeps_method: true,
        };
        let mut response = self.client.send(sent).await.map_err(|error| Failed::http(&error))?;
        let limit = exhausted(|name| response.header(name), SystemTime::now());
        if !response.status().is_success() {
            return Err(Failed::status(response, limit).await);
        }
        // What would last longer than anyone waits is for the provider to refuse.
        if let Some(limit) = limit.filter(|limit| limit.after <= LONGEST_PAUSE) {
            self.pacer.hold(limit.after, &format!("the provider takes no more {} for now", limit.what));
        }
        let content_type = response.header(CONTENT_TYPE.as_str()).map(str::to_owned);
        let failed = |error: &WireError| match error {
            WireError::Foreign { beginning } => Failed::foreign(self.foreign(content_type.as_deref(), beginning)),
            error => Failed::wire(error),
        };
        let Some(sink) = sink else {
            let status = response.status().as_u16();
            let body = response.read(MOST_REPLY_BYTES).await.map_err(|error| Failed::http(&error))?;
            return self.wire.decode(request, status, &body).map_err(|error| failed(&error));
        };
        let mut decoder = self.wire.stream(request);
        // What was shown cannot be taken back, so there is no other try after it.
        let mut is_shown = false;
        let mut is_ended = false;
        while !is_ended {
            let deltas = match response.chunk().await {
                Ok(Some(chunk)) => decoder.push(chunk.as_ref()),
                Ok(None) => {
                    is_ended = true;
                    decoder.end()
                }
                Err(error) => return Err(Failed::http(&error).unless(is_shown)),
            };
            for delta in deltas.map_err(|error| failed(&error).unless(is_shown))? {
                is_shown = true;
                sink(delta);
            }
            is_ended |= decoder.is_over();
        }
        // The connection can be used again once its end came, which nobody needs to wait for.
        drop(tokio::spawn(tokio::time::timeout(LONGEST_ENDING, response.read(MOST_ERROR_BYTES))));
        decoder.finish().map_err(|error| failed(&error).unless(is_shown))
    }
}

impl Model for HttpModel {
    fn provider(&self) -> Provider {
        self.provider
    }

    fn call<'a>(
        &'a self,
        request: &'a Request<'a>,
        sink: Option<&'a Sink<'a>>,
        cancellation: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            tokio::select! {
                biased;
                () = cancellation.cancelled() => Err(ModelError::Cancelled),
                reply = tokio::time::timeout(self.timeout, self.attempts(request, sink)) => {
                    let reply = reply.unwrap_or(Err(ModelError::TimedOut { after: self.timeout }));
                    reply.map_err(|error| self.redacted(error))
                }
            }
        })
    }
}

/// An attempt that failed.
struct Failed {
    error: ModelError,
    may_retry: bool,
    after: Option<Duration>,
    /// Whether what the provider says counts for all requests.
    is_for_all: bool,
}

impl Failed {
    fn http(error: &HttpError) -> Self {
        let cause = error.cause().map_or_else(String::new, |cause| format!(": {cause}"));
        let (message, may_retry) = (format!("{error}{cause}"), error.is_passing());
        let error = match error {
            HttpError::Moved { .. } => ModelError::Configuration { message, hint: error.hint() },
            _ => ModelError::Network { message },
        };
        Self { error, may_retry, after: None, is_for_all: false }
    }

    fn wire(error: &WireError) -> Self {
        let may_retry = error.is_passing();
        let error = match error {
            WireError::Malformed { message } => ModelError::Malformed { message: message.clone() },
            // The text has the status.
            WireError::Status { .. } | WireError::Stream { .. } | WireError::Cut | WireError::Foreign { .. } => {
                ModelError::Api { status: None, message: error.to_string() }
            }
        };
        Self { error, may_retry, after: None, is_for_all: false }
    }

    fn foreign(error: ModelError) -> Self {
        Self { error, may_retry: false, after: None, is_for_all: false }
    }

    async fn status(mut response: HttpResponse, limit: Option<Exhausted>) -> Self {
        let retry = retry_after(|name| response.header(name), SystemTime::now());
        let status = response.status().as_u16();
        let (body, _) = response.read_some(MOST_ERROR_BYTES).await.unwrap_or_default();
        let mut failed = Self::wire(&WireError::of_status(status, &body));
        failed.may_retry = match retry.verdict {
            Verdict::Yes => true,
            Verdict::No => false,
            Verdict::Unsaid => failed.may_retry,
        };
        let is_for_all = failed.may_retry && (matches!(status, 429 | 529) || retry.after.is_some());
        Self { after: retry.after.or(limit.map(|limit| limit.after)), is_for_all, ..failed }
    }

    fn unless(mut self, is_shown: bool) -> Self {
        self.may_retry &= !is_shown;
        self
    }
}

/// Returns where requests go whose replies come in pieces, and where those go whose replies come whole.
fn addresses(base: &str, wire: Wire, model: &ModelRef) -> Option<(Url, Url)> {
    let address = |streaming| {
        let path = wire.path(&model.id, streaming);
        Url::parse(&format!("{}{path}", base.trim_end_matches('/'))).ok()
    };
    Some((address(Streaming::On)?, address(Streaming::Off)?))
}

/// Waits, unless it would take too long, and tells whoever listens before.
async fn waited(wait: Wait, sink: Option<&Sink<'_>>) -> Result<(), ModelError> {
    let Wait { remaining, because } = &wait;
    if *remaining > LONGEST_PAUSE {
        let (pause, most) = (remaining.as_secs_f64().ceil(), LONGEST_PAUSE.as_secs());
        let message = format!("{because}; it wants a pause of {pause} s, and {most} s are the most");
        return Err(ModelError::Api { status: None, message });
    }
    tracing::info!(%because, ?remaining, "the model is called later");
    if let Some(sink) = sink {
        sink(Delta::Waiting { seconds: remaining.as_secs_f64(), because: because.clone() });
    }
    wait.over().await;
    Ok(())
}

fn wrong(message: String) -> ModelError {
    ModelError::Configuration { message, hint: None }
}
