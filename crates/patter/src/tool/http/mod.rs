//! Tools that send HTTP requests.

mod request;
mod encode;
mod form;
mod variables;
mod response;

pub(in crate::tool) use encode::{json_escape, percent_encode};
pub(crate) use response::http_failure;

use super::VariableLookup;
use super::idempotency;
use super::{BoxFuture, DEFAULT_TIMEOUT, Definition, Implementation, Tool, ToolContext, ToolFailure, ToolKind};
use crate::http::{HttpClient, jittered};
use crate::trace::TRACEPARENT;
use patter_core::declare::HttpSpec;
use patter_core::declare::template::{Part, Template};
use patter_core::library::ToolFacts;
use patter_core::text::format_duration;
use patter_core::types::signature::Type;
use request::RequestBuilder;
use reqwest::Url;
use response::AttemptError;
use serde_json::Value as Json;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};
use variables::RequestVariables;

/// The longest pause before the first retry. It doubles with each retry.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause before any retry, whatever the server asks for.
const MAX_PAUSE: Duration = Duration::from_secs(20);
/// The time by which a call exceeds its limit before it fails by itself. The executor's limit comes first.
const GRACE: Duration = Duration::from_millis(250);

/// Creates a tool from the declaration of a request.
///
/// ```
/// use patter::declare::HttpSpec;
/// use patter::http::{HttpClient, NetworkPolicy};
/// use patter::tool::{Definition, Effect, http_tool};
///
/// let (tree, _) = patter::gram::parse("[now:Http {url: 'https://api.example.com/v1/{city}?key=${KEY}'}]");
/// let definition = Definition::new("now", "Weather of a city", "(city::Text)==>(::Any)").unwrap();
/// let spec = HttpSpec::read(tree.patterns().next().unwrap(), &definition.signature).unwrap();
/// let variables = |name: &str| std::env::var(name).ok();
/// let client = HttpClient::new(NetworkPolicy::default(), variables);
/// let tool = http_tool(definition, spec, &client, std::sync::Arc::new(variables));
/// assert_eq!(tool.effect, Effect::Network);
/// ```
pub fn http_tool(definition: Definition, spec: HttpSpec, client: &HttpClient, variables: VariableLookup) -> Tool {
    let conduct = spec.options.clone();
    let effect = spec.effect();
    let is_idempotent = spec.is_idempotent();
    let timeout = conduct.timeout.unwrap_or(DEFAULT_TIMEOUT);
    let returns = definition.signature.returns.clone();
    let implementation = HttpTool { spec, returns, client: client.clone(), variables, timeout };
    Tool::new(definition, ToolKind::Http, implementation).with_conduct(&conduct, effect).idempotent(is_idempotent)
}

struct HttpTool {
    spec: HttpSpec,
    returns: Type,
    client: HttpClient,
    variables: VariableLookup,
    timeout: Duration,
}

impl Implementation for HttpTool {
    fn call<'a>(&'a self, arguments: Json, context: &'a ToolContext) -> BoxFuture<'a, Result<Json, ToolFailure>> {
        Box::pin(async move {
            let Json::Object(arguments) = arguments else {
                return Err(ToolFailure::new("the arguments are not an object"));
            };
            let names = request::templates(&self.spec).flat_map(Template::variables);
            let variables = RequestVariables::look_up(names, self.variables.as_ref())?;
            let mut builder = RequestBuilder { spec: &self.spec, arguments: &arguments, variables };
            let deadline = Instant::now() + self.timeout;
            let result = match timeout_at(deadline + GRACE, self.attempts(&mut builder, deadline, context)).await {
                Ok(result) => result,
                Err(_) => Err(no_response(self.timeout)),
            };
            let redactor = builder.variables.redactor;
            result.map(|value| redactor.redact_json(value)).map_err(|failure| redactor.redact_failure(&failure))
        })
    }

    fn facts(&self) -> ToolFacts {
        ToolFacts { host: Some(self.host()), ..ToolFacts::default() }
    }
}

impl HttpTool {
    /// Returns the scheme, host and port of requests. What is not known is as it is written.
    fn host(&self) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Parameter(name) => format!("{{{name}}}"),
            Part::Variable(name) => (self.variables)(name).unwrap_or_else(|| format!("${{{name}}}")),
        };
        let origin: String = self.spec.url.origin.parts().iter().map(part).collect();
        match Url::parse(&origin) {
            Ok(url) => url.origin().ascii_serialization(),
            Err(_) => self.spec.url.origin.to_string(),
        }
    }

    /// Sends the request until it succeeds, fails for good or exceeds the number of retries.
    async fn attempts(
        &self,
        builder: &mut RequestBuilder<'_>,
        deadline: Instant,
        context: &ToolContext,
    ) -> Result<Json, ToolFailure> {
        let mut request = builder.request()?;
        // What the tool declares takes precedence.
        if let Some(parent) = context.traceparent().filter(|_| !request.headers.contains_key(TRACEPARENT))
            && let Ok(value) = parent.to_string().parse()
        {
            request.headers.insert(TRACEPARENT, value);
        }
        let key = context.idempotency_key().filter(|_| !request.method.is_safe());
        if let Some(key) = key.filter(|_| !request.headers.contains_key(idempotency::HEADER))
            && let Ok(value) = key.parse()
        {
            request.headers.insert(idempotency::HEADER, value);
        }
        let mut attempt = 0;
        loop {
            let result = match self.client.send(request.clone()).await {
                Ok(response) => response::read_result(response, &self.spec, &self.returns, builder).await,
                Err(error) => Err(error.into()),
            };
            let AttemptError { failure, retry_reason, retry_after } = match result {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let Some(reason) = retry_reason.filter(|_| attempt < self.spec.retries) else { return Err(failure) };
            let pause = retry_after.unwrap_or_else(|| pause(attempt));
            // A server that asks for more time than is left cannot answer in time.
            if pause > MAX_PAUSE || Instant::now() + pause >= deadline {
                return Err(failure);
            }
            attempt += 1;
            let reason = builder.variables.redactor.redact(&reason);
            tracing::debug!(host = request.url.host_str(), attempt, ?pause, reason, "retrying the request");
            let message = format!("{reason}; retrying (attempt {} of {})", attempt + 1, self.spec.retries + 1);
            context.progress(None, message);
            sleep(pause).await;
        }
    }
}

/// Returns the failure of a request that exceeded its time limit.
pub(super) fn no_response(limit: Duration) -> ToolFailure {
    ToolFailure::timed_out(limit, format!("the server did not respond within {}", format_duration(limit)))
}

/// Returns the pause before a retry.
fn pause(attempt: u32) -> Duration {
    jittered(FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(attempt)).min(MAX_PAUSE))
}
