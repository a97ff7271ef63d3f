//! Telling Restate where the workers are.

use reqwest::{Client, StatusCode, Url};
use serde_json::{Value as Json, json};
use std::time::Duration;

/// How long a request to Restate may take. It asks the worker back.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How often to try if Restate does not answer, and how long to pause in between.
const ATTEMPTS: u32 = 30;
const PAUSE: Duration = Duration::from_secs(1);

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
    let failed = |message: String| RegisterError { message, hint: None };
    let client = Client::builder().timeout(TIMEOUT).no_proxy().build();
    let client = client.map_err(|error| failed(error.to_string()))?;
    let url = deployments(admin).ok_or_else(|| failed(format!("`{admin}` is not an address")))?;
    let body = json!({"uri": workers.as_str(), "force": on_conflict == OnConflict::Replace}).to_string();
    let mut attempt = 1;
    let response = loop {
        let request = client.post(url.clone()).header("content-type", "application/json").body(body.clone());
        match request.send().await {
            Ok(response) => break response,
            Err(error) if error.is_connect() && attempt < ATTEMPTS => {
                attempt += 1;
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => {
                let hint =
                    Some("check that --register is the address of the admin API, by default port 9070".to_owned());
                let cause = if error.is_connect() { "cannot connect" } else { "no answer" };
                return Err(RegisterError { message: format!("Restate at `{admin}`: {cause}"), hint });
            }
        }
    };
    let status = response.status();
    let answer = response.text().await.map_err(|_| failed(format!("Restate at `{admin}`: no answer")))?;
    let answer: Json = serde_json::from_str(&answer).unwrap_or(Json::String(answer));
    match status {
        status if status.is_success() => Ok(answer["id"].as_str().unwrap_or_default().to_owned()),
        StatusCode::CONFLICT => Err(RegisterError {
            message: format!("`{workers}` is registered with other services"),
            hint: Some(
                "give each version of the workers an address of its own; or replace them with --replace".to_owned(),
            ),
        }),
        status => {
            let message = answer["message"].as_str().map_or_else(|| answer.to_string(), str::to_owned);
            Err(RegisterError {
                message: format!("Restate did not accept `{workers}` ({status}): {message}"),
                hint: Some("pass the address at which Restate reaches the workers as --advertise".to_owned()),
            })
        }
    }
}

fn deployments(admin: &Url) -> Option<Url> {
    let mut url = admin.clone();
    url.path_segments_mut().ok()?.pop_if_empty().push("deployments");
    Some(url)
}
