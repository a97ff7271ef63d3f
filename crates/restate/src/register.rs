//! Telling Restate where the workers are.

use patter::http::header::{CONTENT_TYPE, HeaderValue};
use patter::http::{HttpClient, HttpError, HttpRequest, Method, NetworkPolicy, StatusCode, Url};
use serde_json::{Value as Json, json};
use std::time::Duration;

/// How long a request to Restate may take. It asks the worker back.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How often to try if Restate does not answer, and how long to pause in between.
const ATTEMPTS: u32 = 30;
const PAUSE: Duration = Duration::from_secs(1);
/// The largest answer.
const MAX_ANSWER: usize = 4 << 20;

/// The name of the version in the metadata of services, and the version of this program.
pub(crate) const VERSION: &str = "patter-version";
pub(crate) const CURRENT: &str = env!("CARGO_PKG_VERSION");

/// Why workers could not be registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterError {
    /// The cause.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

/// What to do if the address is registered with services that differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnConflict {
    /// Fail: turns under way may rely on the other services.
    Fail,
    /// Replace them.
    Replace,
}

/// Registers workers at an address with the admin API of Restate. Returns the id of the deployment. Registering them again
/// changes nothing.
pub async fn register(admin: &Url, workers: &Url, on_conflict: OnConflict) -> Result<String, RegisterError> {
    let request = deployment_request(admin, workers, on_conflict)
        .ok_or_else(|| RegisterError { message: format!("`{admin}` is not an address"), hint: None })?;
    let client = client_for(admin);
    let mut attempt = 1;
    let (status, answer) = loop {
        match tokio::time::timeout(TIMEOUT, send(&client, request.clone())).await {
            Ok(Ok(answer)) => break answer,
            Ok(Err(HttpError::Connect { .. })) if attempt < ATTEMPTS => {
                attempt += 1;
                tokio::time::sleep(PAUSE).await;
            }
            Ok(Err(error)) => return Err(unreachable(admin, &error.to_string())),
            Err(_) => return Err(unreachable(admin, "it does not answer in time")),
        }
    };
    let text = |name: &str| answer.get(name).and_then(Json::as_str).map(str::to_owned);
    if !status.is_success() {
        let message = text("message").unwrap_or_else(|| answer.to_string());
        return Err(RegisterError {
            message: format!("Restate did not accept `{workers}` ({status}): {message}"),
            hint: Some("pass the address at which Restate reaches the workers as --advertise".to_owned()),
        });
    }
    // For an address that it knows, Restate answers what it had found there before.
    if !is_this_version(&answer) {
        return Err(RegisterError {
            message: format!("`{workers}` is registered with other services, or another version"),
            hint: Some("give each version of the workers an address of its own, or pass --replace".to_owned()),
        });
    }
    Ok(text("id").unwrap_or_default())
}

/// Returns whether the registered services are those of this version.
fn is_this_version(answer: &Json) -> bool {
    let services = answer.get("services").and_then(Json::as_array).into_iter().flatten();
    let has_version = |service: &&Json| service.pointer(&format!("/metadata/{VERSION}")) == Some(&Json::from(CURRENT));
    services.filter(has_version).count() == 2
}

/// Returns a client that may reach Restate, wherever it is.
fn client_for(admin: &Url) -> HttpClient {
    let host = admin.host_str().unwrap_or_default();
    let allowed = admin.port_or_known_default().map(|port| format!("{host}:{port}"));
    let policy = NetworkPolicy::from_allow_list(allowed.as_deref()).unwrap_or_default();
    HttpClient::new(policy, |name| std::env::var(name).ok())
}

async fn send(client: &HttpClient, request: HttpRequest) -> Result<(StatusCode, Json), HttpError> {
    let response = client.send(request).await?;
    let status = response.status();
    let answer = response.read(MAX_ANSWER).await?;
    let text = || Json::String(String::from_utf8_lossy(&answer).into_owned());
    Ok((status, serde_json::from_slice(&answer).unwrap_or_else(|_| text())))
}

fn unreachable(admin: &Url, cause: &str) -> RegisterError {
    let hint = "check that --register is the address of the admin API, whose port is 9070 by default";
    RegisterError { message: format!("Restate at `{admin}`: {cause}"), hint: Some(hint.to_owned()) }
}

/// Returns the request that registers workers.
fn deployment_request(admin: &Url, workers: &Url, on_conflict: OnConflict) -> Option<HttpRequest> {
    let mut url = admin.clone();
    url.path_segments_mut().ok()?.pop_if_empty().push("deployments");
    let body = json!({"uri": workers.as_str(), "force": on_conflict == OnConflict::Replace}).to_string();
    let mut request = HttpRequest { method: Method::POST, body: Some(body.into()), ..HttpRequest::get(url) };
    request.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Some(request)
}
