//! Webhooks: signed requests that report the end of turns.

use crate::lab::Lab;
use patter::http::NetworkPolicy;
use patter::store::{self, NewWork, SessionId, StoreLocation};
use patter_serve::Webhooks;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const KEY: &[u8] = b"0123456789abcdefghijklmnopqrstuv";
const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1ub3BxcnN0dXY=";

/// A request that a receiver got.
#[derive(Debug, Clone)]
struct Received {
    path: String,
    headers: HashMap<String, String>,
    body: String,
}

impl Received {
    fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap()
    }

    fn id(&self) -> &str {
        &self.headers["webhook-id"]
    }

    /// Computes the signature as RFC 2104 describes it.
    fn is_signed(&self) -> bool {
        let signed = format!("{}.{}.{}", self.id(), self.headers["webhook-timestamp"], self.body);
        let mut block = [0_u8; 64];
        block[..KEY.len()].copy_from_slice(KEY);
        let inner = Sha256::new().chain_update(block.map(|byte| byte ^ 0x36)).chain_update(signed).finalize();
        let outer = Sha256::new().chain_update(block.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize();
        self.headers["webhook-signature"] == format!("v1,{}", base64(&outer))
    }
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let number = chunk.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for index in 0..4 {
            let is_padding = index > chunk.len();
            let bits = (number >> (18 - 6 * index)) & 63;
            text.push(if is_padding { '=' } else { char::from(ALPHABET[bits as usize]) });
        }
    }
    text
}

/// A server that gets webhooks, and answers with a status each time; at the end with 200.
struct Receiver {
    port: u16,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Receiver {
    async fn start(statuses: &[&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let shared = Arc::clone(&received);
        let statuses = statuses.to_vec();
        tokio::spawn(async move {
            let mut statuses = statuses.into_iter();
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut bytes = Vec::new();
                let mut buffer = [0; 65536];
                let request = loop {
                    let length = stream.read(&mut buffer).await.unwrap_or(0);
                    bytes.extend_from_slice(&buffer[..length]);
                    if let Some(request) = parse(&String::from_utf8_lossy(&bytes)) {
                        break Some(request);
                    }
                    if length == 0 {
                        break None;
                    }
                };
                let Some(request) = request else { continue };
                shared.lock().unwrap().push(request);
                let status = statuses.next().unwrap_or("200 OK");
                let response = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                let _ = stream.write_all(response.as_bytes()).await;
            }
        });
        Self { port, received }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook?key=secret-part", self.port)
    }

    /// Waits until there are so many requests.
    async fn wait(&self, count: usize) -> Vec<Received> {
        for _ in 0..800 {
            let received = self.received.lock().unwrap().clone();
            if received.len() >= count {
                return received;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("{count} requests never came: {:?}", self.received);
    }
}

fn parse(text: &str) -> Option<Received> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers: HashMap<_, _> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers.get("content-length")?.parse().ok()?;
    (body.len() >= length).then(|| Received { path, headers, body: body.to_owned() })
}

async fn lab(allow: &[&str]) -> Lab {
    let policy = NetworkPolicy::from_allow_list(allow.iter().copied()).unwrap();
    let webhooks = Webhooks::new(SECRET, policy, |_| None).unwrap();
    let lab = Lab::with(|settings| settings.webhooks = Some(webhooks)).await;
    crate::lab::until(async || fleet(&lab).await["workers"].as_array().unwrap().len() == 1).await;
    lab
}

async fn enqueue(lab: &Lab, agent: &str, session: &str, url: &str) {
    let body = json!({"agent": agent, "message": "Hi", "session": session, "webhook": {"url": url}});
    let response = lab.post("/api/sessions?background=true", &body).await;
    assert_eq!(response.status, 202, "{response:?}");
}

async fn fleet(lab: &Lab) -> Json {
    lab.get("/api/fleet").await.json()
}

/// Waits for parked work, and returns it.
async fn parked(lab: &Lab) -> Json {
    crate::lab::until(async || fleet(lab).await["queue"]["parked"] == 1).await;
    let work = fleet(lab).await["work"].as_array().unwrap().clone();
    work.into_iter().find(|work| work["state"] == "parked").unwrap()
}

#[tokio::test]
async fn the_end_of_a_turn_is_reported() {
    let receiver = Receiver::start(&[]).await;
    let lab = lab(&["127.0.0.1"]).await;
    enqueue(&lab, "greeter", "one", &receiver.url()).await;
    let received = receiver.wait(1).await;
    let message = received[0].json();
    assert_eq!(received[0].path, "/hook?key=secret-part");
    assert!(received[0].is_signed(), "{received:?}");
    assert_eq!(received[0].headers["content-type"], "application/json");
    assert!(received[0].id().starts_with("msg_"));
    assert_eq!((&message["type"], &message["agent"]), (&json!("turn.answered"), &json!("greeter")));
    assert_eq!((&message["data"]["session"], &message["data"]["text"]), (&json!("one"), &json!("Hello!")));
    crate::lab::until(async || fleet(&lab).await["work"] == json!([])).await;
    let metrics = lab.get("/metrics").await.body;
    assert!(metrics.contains("patter_webhooks_total{outcome=\"delivered\"} 1\n"), "{metrics}");
    // A failure is an end, too.
    enqueue(&lab, "broken", "two", &receiver.url()).await;
    let failed = receiver.wait(2).await[1].json();
    assert_eq!(
        (&failed["type"], &failed["data"]["error"]["message"]),
        (&json!("turn.failed"), &json!("status 400: out of order"))
    );
}

#[tokio::test]
async fn a_turn_that_waits_is_reported_and_later_its_end() {
    let receiver = Receiver::start(&[]).await;
    let lab = lab(&["127.0.0.1"]).await;
    enqueue(&lab, "clerk", "one", &receiver.url()).await;
    let waiting = receiver.wait(1).await[0].json();
    assert_eq!(waiting["type"], "turn.waiting");
    let call = &waiting["data"]["waiting"][0];
    assert_eq!(call["tool"], "pay");
    let answer = json!({"call_id": call["call_id"], "hash": call["hash"], "decision": "approve"});
    crate::lab::until(async || lab.post("/api/sessions/one/answers", &answer).await.status == 202).await;
    let received = receiver.wait(2).await;
    assert_eq!(received[1].json()["type"], "turn.answered");
    assert_ne!(received[0].id(), received[1].id());
    assert!(received.iter().all(Received::is_signed));
}

#[tokio::test]
async fn a_receiver_that_fails_gets_the_message_again() {
    let receiver = Receiver::start(&["500 Internal Server Error", "429 Too Many Requests"]).await;
    let lab = lab(&["127.0.0.1"]).await;
    enqueue(&lab, "greeter", "one", &receiver.url()).await;
    receiver.wait(1).await;
    let reason = || async {
        let work = fleet(&lab).await["work"].clone();
        work[0]["reason"].as_str().unwrap_or_default().to_owned()
    };
    let expected = "the end of the session `one` was not reported to `127.0.0.1`: the server answered with status 500";
    crate::lab::until(async || reason().await == expected).await;
    let received = receiver.wait(3).await;
    assert!(received.iter().all(Received::is_signed));
    assert!(received.iter().all(|request| request.id() == received[0].id() && request.body == received[0].body));
    crate::lab::until(async || fleet(&lab).await["work"] == json!([])).await;
}

#[tokio::test]
async fn what_cannot_be_delivered_is_parked_until_somebody_retries() {
    let receiver = Receiver::start(&["302 Found", "404 Not Found"]).await;
    let lab = lab(&["127.0.0.1"]).await;
    enqueue(&lab, "greeter", "one", &receiver.url()).await;
    let work = parked(&lab).await;
    let reason = work["reason"].as_str().unwrap();
    assert!(reason.ends_with("the server answered with status 302: redirects are not followed"), "{reason}");
    assert!(!fleet(&lab).await.to_string().contains("secret-part"));
    let retry = format!("/api/fleet/work/{}/retry", work["id"]);
    assert_eq!(lab.post(&retry, &json!({})).await.status, 204);
    receiver.wait(2).await;
    assert!(parked(&lab).await["reason"].as_str().unwrap().ends_with("the server answered with status 404"));
    assert_eq!(lab.post(&retry, &json!({})).await.status, 204);
    let received = receiver.wait(3).await;
    assert_eq!(received[0].id(), received[2].id());
}

#[tokio::test]
async fn private_addresses_are_refused() {
    let receiver = Receiver::start(&[]).await;
    let lab = lab(&[]).await;
    let by_name = format!("http://localhost:{}/hook", receiver.port);
    for (session, url) in [("one", receiver.url()), ("two", by_name)] {
        enqueue(&lab, "greeter", session, &url).await;
    }
    crate::lab::until(async || fleet(&lab).await["queue"]["parked"] == 2).await;
    let work = fleet(&lab).await["work"].clone();
    for work in work.as_array().unwrap() {
        let reason = work["reason"].as_str().unwrap();
        assert!(
            reason.contains("is a private address, which is blocked by default; to allow it, add `allow"),
            "{reason}"
        );
    }
    assert!(receiver.received.lock().unwrap().is_empty());
}

#[tokio::test]
async fn requests_that_cannot_be_reported_are_refused() {
    let plain = Lab::new().await;
    let body = |url: &str| json!({"agent": "greeter", "message": "Hi", "webhook": {"url": url}});
    let path = "/api/sessions?background=true";
    let refused = plain.post(path, &body("https://example.com/x")).await.error();
    assert_eq!(
        refused,
        "400 this server has no webhook secret; its operator can name one in patter.toml, under `[serve]`"
    );
    let lab = lab(&[]).await;
    let waiting = lab.post("/api/sessions", &body("https://example.com/x")).await.error();
    assert_eq!(waiting, "400 is only for turns in the background: add `?background=true`");
    for (url, reason) in [
        ("example.com", "is not a valid URL"),
        ("ftp://example.com", "must start with `https://` or `http://`"),
        ("https://a:b@example.com", "must not contain credentials"),
    ] {
        assert_eq!(lab.post(path, &body(url)).await.error(), format!("400 {reason}"));
    }
}

/// The server may be killed after the end of the turn, and before anybody knows that it has to be reported.
#[tokio::test]
async fn an_end_that_nobody_reported_is_found() {
    let receiver = Receiver::start(&[]).await;
    let lab = lab(&["127.0.0.1"]).await;
    let path = "/api/sessions?background=true";
    let body = json!({"agent": "greeter", "message": "Hi", "webhook": {"url": receiver.url()}});
    let session = lab.post_with(path, &[("Idempotency-Key", "k1")], &body).await.json()["session"].clone();
    receiver.wait(1).await;
    crate::lab::until(async || fleet(&lab).await["work"] == json!([])).await;
    let store = store::open(&StoreLocation::Sqlite(lab.folder.path().join("s.db"))).await.unwrap();
    let work = NewWork {
        key: session.as_str().unwrap().to_owned(),
        session: SessionId::parse(session.as_str().unwrap()).unwrap(),
        agent: "greeter".to_owned(),
        tenant: String::new(),
        task: json!({"task": "say", "message": "Hi", "webhook": receiver.url()}).to_string(),
        worker: None,
        due_ms: None,
    };
    assert!(store.queue().unwrap().add(work).await.unwrap().is_some());
    let received = receiver.wait(2).await;
    assert_eq!(received[0].id(), received[1].id());
    assert_eq!(received[0].json()["data"], received[1].json()["data"]);
    assert_eq!(lab.counts().1, 1, "the turn ran once");
}
