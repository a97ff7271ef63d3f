//! Tools that are requests to an HTTP server.

mod encode;
mod reply;
mod request;
mod secret;

pub(crate) use reply::http_failure;

use super::{BoxFuture, DEFAULT_TIMEOUT, Definition, Failure, Implementation, Kind, Tool, ToolContext};
use crate::http::{HttpClient, jittered};
use patter_core::declare::HttpSpec;
use patter_core::declare::template::Template;
use patter_core::types::signature::Type;
use reply::Trouble;
use request::Filling;
use secret::Secrets;
use serde_json::Value as Json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// Looks up a variable of the environment.
pub type Variables = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// How long the first pause between attempts is at most; each next one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// How long a pause is at most, whatever the server asks for.
const LONGEST_PAUSE: Duration = Duration::from_secs(20);
/// The executor ends a call in time. One that nothing else ends lasts so much longer.
const GRACE: Duration = Duration::from_millis(250);

/// Makes a tool of the declaration of a request.
///
/// ```
/// use patter::declare::HttpSpec;
/// use patter::http::{HttpClient, Reach};
/// use patter::tool::{Definition, Effect, http_tool};
///
/// let (tree, _) = patter::gram::parse("[now:Http {url: 'https://api.example.com/v1/{city}?key=${KEY}'}]");
/// let definition = Definition::new("now", "Weather of a city", "(city::Text)==>(::Any)").unwrap();
/// let spec = HttpSpec::read(tree.patterns().next().unwrap(), &definition.signature).unwrap();
/// let variables = |name: &str| std::env::var(name).ok();
/// let client = HttpClient::new(Reach::default(), variables);
/// let tool = http_tool(definition, spec, &client, std::sync::Arc::new(variables));
/// assert_eq!(tool.effect, Effect::Network);
/// ```
pub fn http_tool(definition: Definition, spec: HttpSpec, client: &HttpClient, variables: Variables) -> Tool {
    let (conduct, effect, is_idempotent) = (spec.conduct.clone(), spec.effect(), spec.is_idempotent());
    let timeout = conduct.timeout.unwrap_or(DEFAULT_TIMEOUT);
    let returns = definition.signature.returns.clone();
    let call = HttpTool { spec, returns, client: client.clone(), variables, timeout };
    Tool::new(definition, Kind::Http, call).conducted(&conduct, effect).idempotent(is_idempotent)
}

struct HttpTool {
    spec: HttpSpec,
    returns: Type,
    client: HttpClient,
    variables: Variables,
    timeout: Duration,
}

impl Implementation for HttpTool {
    fn call<'a>(&'a self, arguments: Json, context: &'a ToolContext) -> BoxFuture<'a, Result<Json, Failure>> {
        Box::pin(async move {
            let Json::Object(arguments) = arguments else { return Err(Failure::new("the arguments are no object")) };
            let names = request::templates(&self.spec).flat_map(Template::variables);
            let secrets = Secrets::look_up(names, self.variables.as_ref())?;
            let mut filling = Filling { arguments: &arguments, secrets };
            let deadline = Instant::now() + self.timeout;
            let result = match timeout_at(deadline + GRACE, self.attempts(&mut filling, deadline, context)).await {
                Ok(result) => result,
                Err(_) => Err(Failure::new(format!("the server did not answer within {:?}", self.timeout))),
            };
            let secrets = filling.secrets;
            result.map(|value| secrets.redact_json(value)).map_err(|failure| secrets.redact_failure(&failure))
        })
    }
}

impl HttpTool {
    /// Makes the request until it succeeds, cannot, or has been made often enough.
    async fn attempts(
        &self,
        filling: &mut Filling<'_>,
        deadline: Instant,
        context: &ToolContext,
    ) -> Result<Json, Failure> {
        let request = filling.request(&self.spec)?;
        let mut attempt = 0;
        loop {
            let result = match self.client.send(request.clone()).await {
                Ok(response) => reply::outcome(response, &self.spec, &self.returns, filling).await,
                Err(error) => Err(error.into()),
            };
            let Trouble { failure, passing, wait } = match result {
                Ok(value) => return Ok(value),
                Err(trouble) => trouble,
            };
            let Some(why) = passing.filter(|_| attempt < self.spec.retries) else { return Err(failure) };
            let pause = wait.unwrap_or_else(|| pause(attempt));
            // A server that asks for more time than there is will not answer in time.
            if pause > LONGEST_PAUSE || Instant::now() + pause >= deadline {
                return Err(failure);
            }
            attempt += 1;
            let progress = format!("{why}; attempt {} of {} follows", attempt + 1, self.spec.retries + 1);
            context.progress(None, filling.secrets.redact(progress));
            sleep(pause).await;
        }
    }
}

/// Returns how long to wait after an attempt: longer each time, and by chance, so that callers do not come all at once.
fn pause(attempt: u32) -> Duration {
    jittered(FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(attempt)).min(LONGEST_PAUSE))
}
