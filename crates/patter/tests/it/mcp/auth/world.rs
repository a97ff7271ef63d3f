//! A protected MCP server with its authorization server, both on one loopback port.

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use futures_util::stream;
use patter::http::Url;
use patter::tool::mcp::{Login, LoginError, LoginOptions, LoginPage, LoginStore, McpServer, ServerConfig, http_client};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// How the servers behave. Tests change it.
pub(super) struct Behaviour {
    /// The metadata of the protected resource, or nothing if there is none.
    pub(super) resource: Option<Json>,
    /// The metadata of the authorization server, or nothing if there is none.
    pub(super) metadata: Option<Json>,
    /// Responses that replace the usual ones, by path.
    pub(super) replaced: HashMap<&'static str, Replacement>,
    pub(super) lifetime: u64,
    /// What the redirect of the authorization page adds or replaces.
    pub(super) answer: Vec<(&'static str, String)>,
    /// The scope that calls need.
    pub(super) call_scope: Option<&'static str>,
    /// The secret that registered clients get.
    pub(super) secret: Option<&'static str>,
    /// Whether the server only knows the transport of 2024-11-05.
    pub(super) is_old: bool,
}

#[derive(Clone)]
pub(super) enum Replacement {
    Hang,
    /// A body that does not end.
    Endless,
    Redirect(String),
    Json(u16, Json),
}

/// What the servers saw and issued.
#[derive(Default)]
pub(super) struct Seen {
    /// Paths with the fields of forms and queries, in order.
    pub(super) requests: Vec<(String, HashMap<String, String>)>,
    /// The values of `Authorization` at the MCP server.
    pub(super) authorizations: Vec<Option<String>>,
    challenge: String,
    code_scope: String,
    /// Valid access tokens with their scopes.
    pub(super) tokens: HashMap<String, String>,
    pub(super) refresh_tokens: BTreeSet<String>,
    issued: usize,
    /// The stream of events.
    events: Option<UnboundedSender<String>>,
}

/// The servers, and a folder for logins.
pub(super) struct World {
    pub(super) base: String,
    pub(super) behaviour: Arc<Mutex<Behaviour>>,
    pub(super) seen: Arc<Mutex<Seen>>,
    pub(super) folder: tempfile::TempDir,
}

impl World {
    pub(super) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let behaviour = Arc::new(Mutex::new(Behaviour {
            resource: Some(json!({
                "resource": format!("{base}/mcp"),
                "authorization_servers": [base],
                "scopes_supported": ["files:read"],
            })),
            metadata: Some(json!({
                "issuer": base,
                "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"),
                "registration_endpoint": format!("{base}/register"),
                "code_challenge_methods_supported": ["S256"],
            })),
            replaced: HashMap::new(),
            lifetime: 3600,
            answer: Vec::new(),
            call_scope: None,
            secret: None,
            is_old: false,
        }));
        let seen = Arc::new(Mutex::new(Seen::default()));
        let world = Self { base, behaviour, seen, folder: tempfile::tempdir().unwrap() };
        let (base, behaviour, seen) = (world.base.clone(), Arc::clone(&world.behaviour), Arc::clone(&world.seen));
        let serve = move |request: Request| serve(base.clone(), Arc::clone(&behaviour), Arc::clone(&seen), request);
        let router = axum::Router::new().fallback(serve);
        tokio::spawn(async move { axum::serve(listener, router).await });
        world
    }

    pub(super) fn behaviour(&self) -> MutexGuard<'_, Behaviour> {
        self.behaviour.lock().unwrap()
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }

    /// Returns the only file in the folder for logins.
    pub(super) fn login_file(&self) -> PathBuf {
        let files = std::fs::read_dir(self.folder.path().join("mcp")).unwrap().map(|entry| entry.unwrap().path());
        let files: Vec<_> = files.filter(|file| file.extension().is_some_and(|name| name == "json")).collect();
        assert_eq!(files.len(), 1, "{files:?}");
        files[0].clone()
    }

    pub(super) fn server(&self, more: &str) -> McpServer {
        server_at(&format!("{}/mcp", self.base), self.folder.path(), more)
    }

    /// Logs in, as a person with a browser does.
    pub(super) async fn login(&self, more: &str) -> Result<Login, LoginError> {
        login_with(&self.server(more), Duration::from_secs(20), browse).await
    }

    /// Returns the fields of the requests to a path.
    pub(super) fn requests(&self, path: &str) -> Vec<HashMap<String, String>> {
        let seen = self.seen();
        let matching = seen.requests.iter().filter(|(known, _)| known == path);
        matching.map(|(_, fields)| fields.clone()).collect()
    }
}

pub(super) fn server_at(url: &str, folder: &Path, more: &str) -> McpServer {
    let config: ServerConfig = toml::from_str(&format!("url = '{url}'\n{more}")).unwrap();
    let settings = config.settings("demo", Path::new("patter.toml"), &|_| None).unwrap();
    let store = LoginStore::new(folder.join("mcp"));
    McpServer::new(settings.with_logins(store, &[]), http_client().unwrap())
}

/// Logs in; `browser` is called with the URL of the page.
pub(super) async fn login_with<F: Future<Output = ()> + Send + 'static>(
    server: &McpServer,
    limit: Duration,
    browser: impl FnOnce(Url) -> F,
) -> Result<Login, LoginError> {
    let mut options = LoginOptions::default();
    options.timeout = limit;
    let open = |page: &LoginPage| {
        tokio::spawn(browser(page.url.clone()));
    };
    server.login(&options, open).await
}

/// Follows the redirects of a page, as a browser does.
pub(super) async fn browse(url: Url) {
    let mut url = url;
    for _ in 0..5 {
        let response = get(&url).await;
        match response.headers().get("location") {
            Some(next) => url = url.join(next.to_str().unwrap()).unwrap(),
            None => return,
        }
    }
}

pub(super) async fn get(url: &Url) -> reqwest::Response {
    let client = http_client().unwrap();
    client.get(url.clone()).send().await.unwrap()
}

async fn serve(base: String, behaviour: Arc<Mutex<Behaviour>>, seen: Arc<Mutex<Seen>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let fields = fields(&head.uri.to_string(), &body);
    seen.lock().unwrap().requests.push((path.clone(), fields.clone()));
    let replaced = behaviour.lock().unwrap().replaced.get(path.as_str()).cloned();
    match replaced {
        Some(Replacement::Hang) => {
            std::future::pending::<()>().await;
        }
        Some(Replacement::Endless) => {
            let chunk = || Some((Ok::<_, std::io::Error>(Bytes::from(vec![b' '; 64 * 1024])), ()));
            return Body::from_stream(stream::unfold((), move |()| std::future::ready(chunk()))).into_response();
        }
        Some(Replacement::Redirect(place)) => return (StatusCode::FOUND, [(header::LOCATION, place)]).into_response(),
        Some(Replacement::Json(status, body)) => return json_response(status, &body),
        None => {}
    }
    if path == "/mcp" && behaviour.lock().unwrap().is_old {
        return old_mcp(&base, &behaviour, &seen, &head, &body).await;
    }
    let behaviour = behaviour.lock().unwrap();
    let mut seen = seen.lock().unwrap();
    match path.as_str() {
        "/.well-known/oauth-protected-resource/mcp" => found(behaviour.resource.as_ref()),
        "/.well-known/oauth-authorization-server" => found(behaviour.metadata.as_ref()),
        "/register" => {
            let mut client = json!({"client_id": "client-1"});
            if let Some(secret) = behaviour.secret {
                client["client_secret"] = secret.into();
            }
            json_response(201, &client)
        }
        "/authorize" => authorize(&base, &behaviour, &mut seen, &fields),
        "/token" => token(&behaviour, &mut seen, &fields, &head.headers),
        "/mcp" => mcp(&base, &behaviour, &mut seen, &head.headers, &body),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Returns the fields of a query or a form.
fn fields(uri: &str, body: &[u8]) -> HashMap<String, String> {
    let query = uri.split_once('?').map_or_else(|| String::from_utf8_lossy(body).into_owned(), |(_, q)| q.to_owned());
    let url = Url::parse(&format!("http://x/?{query}")).unwrap();
    url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

fn json_response(status: u16, body: &Json) -> Response {
    let status = StatusCode::from_u16(status).unwrap();
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

fn found(document: Option<&Json>) -> Response {
    document.map_or_else(|| StatusCode::NOT_FOUND.into_response(), |document| json_response(200, document))
}

fn authorize(base: &str, behaviour: &Behaviour, seen: &mut Seen, fields: &HashMap<String, String>) -> Response {
    assert_eq!(fields["response_type"], "code");
    assert_eq!(fields["code_challenge_method"], "S256");
    assert_eq!(fields["resource"], format!("{base}/mcp"));
    seen.challenge = fields["code_challenge"].clone();
    seen.code_scope = fields.get("scope").cloned().unwrap_or_default();
    let mut place = Url::parse(&fields["redirect_uri"]).unwrap();
    let mut answer: HashMap<&str, String> =
        [("code", "code-sesame".to_owned()), ("state", fields["state"].clone())].into();
    answer.extend(behaviour.answer.iter().cloned());
    place.query_pairs_mut().extend_pairs(answer);
    (StatusCode::FOUND, [(header::LOCATION, place.to_string())]).into_response()
}

fn token(behaviour: &Behaviour, seen: &mut Seen, fields: &HashMap<String, String>, headers: &HeaderMap) -> Response {
    let refused = |code: &str| json_response(400, &json!({"error": code}));
    let scope = match fields["grant_type"].as_str() {
        "authorization_code" => {
            let digest = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&fields["code_verifier"]));
            if digest != seen.challenge || fields["code"] != "code-sesame" {
                return refused("invalid_grant");
            }
            seen.code_scope.clone()
        }
        _ if seen.refresh_tokens.remove(&fields["refresh_token"]) => fields.get("scope").cloned().unwrap_or_default(),
        _ => return refused("invalid_grant"),
    };
    if behaviour.secret.is_some() && !headers.contains_key(header::AUTHORIZATION) {
        return json_response(401, &json!({"error": "invalid_client"}));
    }
    seen.issued += 1;
    let access = format!("access-sesame-{}", seen.issued);
    let refresh = format!("refresh-sesame-{}", seen.issued);
    seen.tokens.insert(access.clone(), scope.clone());
    seen.refresh_tokens.insert(refresh.clone());
    json_response(
        200,
        &json!({
            "access_token": access,
            "token_type": "bearer",
            "expires_in": behaviour.lifetime,
            "refresh_token": refresh,
            "scope": scope,
        }),
    )
}

/// Responds with events, as servers of 2024-11-05 do.
async fn old_mcp(base: &str, behaviour: &Mutex<Behaviour>, seen: &Mutex<Seen>, head: &Parts, body: &[u8]) -> Response {
    let is_message = head.uri.query().is_some();
    if head.method == Method::POST && !is_message {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let response = mcp(base, &behaviour.lock().unwrap(), &mut seen.lock().unwrap(), &head.headers, body);
    if matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return response;
    }
    if is_message {
        let answer = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        if let (Some(events), false) = (&seen.lock().unwrap().events, answer.is_empty()) {
            events.send(format!("event: message\ndata: {}\n\n", String::from_utf8_lossy(&answer))).unwrap();
        }
        return StatusCode::ACCEPTED.into_response();
    }
    let (sender, receiver) = unbounded_channel();
    sender.send("event: endpoint\ndata: /mcp?session=1\n\n".to_owned()).unwrap();
    seen.lock().unwrap().events = Some(sender);
    let next = |mut receiver: tokio::sync::mpsc::UnboundedReceiver<String>| async {
        let text = receiver.recv().await?;
        Some((Ok::<_, std::io::Error>(Bytes::from(text)), receiver))
    };
    let events = Body::from_stream(stream::unfold(receiver, next));
    ([(header::CONTENT_TYPE, "text/event-stream")], events).into_response()
}

fn mcp(base: &str, behaviour: &Behaviour, seen: &mut Seen, headers: &HeaderMap, body: &[u8]) -> Response {
    let authorization = headers.get(header::AUTHORIZATION).map(|value| value.to_str().unwrap().to_owned());
    seen.authorizations.push(authorization.clone());
    let token = authorization.as_deref().and_then(|value| value.strip_prefix("Bearer "));
    let Some(scope) = token.and_then(|token| seen.tokens.get(token)) else {
        let place = format!("{base}/.well-known/oauth-protected-resource/mcp");
        let challenge = format!("Bearer error=\"invalid_token\", resource_metadata=\"{place}\"");
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)]).into_response();
    };
    let Ok(message) = serde_json::from_slice::<Json>(body) else {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    };
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "protected", "version": "1"},
        }),
        "tools/list" => {
            json!({"tools": [{"name": "whoami", "description": "Repeats", "inputSchema": {"type": "object"}}]})
        }
        "tools/call" => {
            if let Some(needed) = behaviour.call_scope.filter(|needed| !scope.split(' ').any(|has| has == *needed)) {
                let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{needed}\"");
                return (StatusCode::FORBIDDEN, [(header::WWW_AUTHENTICATE, challenge)]).into_response();
            }
            json!({"content": [{"type": "text", "text": authorization}]})
        }
        _ if message.get("id").is_none() => return StatusCode::ACCEPTED.into_response(),
        _ => {
            let error = json!({"code": -32601, "message": "unknown method"});
            return json_response(200, &json!({"jsonrpc": "2.0", "id": message["id"], "error": error}));
        }
    };
    json_response(200, &json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}
