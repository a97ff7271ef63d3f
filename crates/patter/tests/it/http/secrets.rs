//! Secrets are sent to the server, and redacted everywhere else.

use super::server::{self, Server, call, reply, tool_with};
use serde_json::json;

const SECRET: &str = "p/ss w\"rd=1";
const VARIABLES: &[(&str, &str)] = &[("KEY", SECRET), ("USER", "ada"), ("TOKEN", "YWRhOmxvdmVsYWNl")];

/// Checks that the server receives a secret, and that no form of it is returned.
async fn check(record: &str, sent: impl Fn(&serde_json::Value) -> bool, forms: &[&str]) {
    for status in [200, 400, 503] {
        let server = Server::start(move |_, seen| {
            reply(status, &[("content-type", "application/json"), ("retry-after", "0")], seen.to_string())
        })
        .await;
        let client = server::client();
        let tool = tool_with(&client, &server.base, record, "()==>(::Any)", VARIABLES);
        let (result, messages) = server::call_listening(&tool, json!({})).await;
        assert!(sent(&server.request(0)), "{}", server.request(0));
        assert_eq!(result.is_ok(), status == 200);
        let shown = format!("{result:?} {messages:?} {tool:?} {client:?}");
        let json = result.map(|value| value.to_string()).unwrap_or_default();
        for form in forms {
            assert!(!shown.contains(form) && !json.contains(form), "{form} in {shown}");
        }
        assert!(shown.contains("[secret "), "{shown}");
    }
}

#[tokio::test]
async fn redacts_secrets_in_all_encodings() {
    let encoded = "p%2Fss%20w%22rd%3D1";
    let forms = [SECRET, encoded, "p/ss w\\\"rd=1"];
    check("url: 'BASE/x', headers: {`x-key`: '${KEY}'}", |seen| seen["headers"]["x-key"] == SECRET, &forms).await;
    check("url: 'BASE/x?key=${KEY}'", |seen| seen["target"] == format!("/x?key={encoded}"), &forms).await;
    check("url: 'BASE/x', query: {key: '${KEY}'}", |seen| seen["target"] == format!("/x?key={encoded}"), &forms).await;
    check("url: 'BASE/bot${KEY}/x'", |seen| seen["target"] == format!("/bot{encoded}/x"), &forms).await;
    let body = json!({"key": SECRET}).to_string();
    let in_body = |seen: &serde_json::Value| seen["body"] == body;
    check("url: 'BASE/x', method: 'POST', body: {key: '${KEY}'}", in_body, &forms).await;
    let basic = "url: 'BASE/x', headers: {authorization: 'Basic ${USER}:${KEY}'}";
    let is_basic = |seen: &serde_json::Value| seen["headers"]["authorization"] == "Basic YWRhOnAvc3MgdyJyZD0x";
    check(basic, is_basic, &[SECRET, "YWRhOnAvc3MgdyJyZD0x"]).await;
    let token = "url: 'BASE/x', headers: {authorization: 'Basic ${TOKEN}'}";
    let is_token = |seen: &serde_json::Value| seen["headers"]["authorization"] == "Basic YWRhOmxvdmVsYWNl";
    check(token, is_token, &["YWRhOmxvdmVsYWNl", "lovelace"]).await;
}

#[tokio::test]
async fn redacts_numbers() {
    let server = Server::start(|_, _| reply(200, &[("content-type", "application/json")], "[4711, 47110, true]")).await;
    let record = "url: 'BASE', headers: {`x-pin`: '${PIN}'}";
    let tool = tool_with(&server::client(), &server.base, record, "()==>(::Any)", &[("PIN", "4711")]);
    assert_eq!(call(&tool, json!({})).await.unwrap(), json!(["[secret PIN]", 47110, true]));
}

#[tokio::test]
async fn redacts_the_password_of_a_basic_token() {
    let server = Server::start(|_, _| reply(403, &[], "wrong password: lovelace")).await;
    let record = "url: 'BASE', headers: {authorization: 'Basic ${TOKEN}'}";
    let tool = tool_with(&server::client(), &server.base, record, "()==>(::Any)", VARIABLES);
    let message = call(&tool, json!({})).await.unwrap_err().message().to_owned();
    assert_eq!(message, "the server responded with 403 Forbidden: wrong password: [secret TOKEN]");
}

#[tokio::test]
async fn reports_missing_variables_to_the_operator() {
    let server = Server::echo().await;
    let record = "url: 'BASE/${NONE}', headers: {`x-a`: '${NONE} ${NADA}', `x-b`: '${KEY}'}";
    let tool = tool_with(&server::client(), &server.base, record, "()==>(::Any)", VARIABLES);
    let failure = call(&tool, json!({})).await.unwrap_err();
    assert_eq!(failure.message(), "this tool is not configured; ask the operator to configure it");
    assert_eq!(failure.detail(), Some("`NONE`, `NADA` are not set in the environment"));
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn expands_variables_in_the_host() {
    let server = Server::echo().await;
    let base: &'static str = Box::leak(server.base.clone().into_boxed_str());
    let host: &'static str = Box::leak(server.host().to_owned().into_boxed_str());
    for (url, value, expected) in [
        ("${BASE_URL}/v1/{a}", base.to_owned(), Ok("/v1/x")),
        ("${BASE_URL}/v1/{a}", format!("{base}/api/"), Ok("/api/v1/x")),
        ("http://${BASE_URL}/v1/{a}", host.to_owned(), Ok("/v1/x")),
        ("${BASE_URL}/v1/{a}", format!("http://me:pass@{host}"), Err("its URL is invalid: it contains credentials")),
        ("${BASE_URL}/v1/{a}", "nonsense".to_owned(), Err("its URL is invalid: ")),
        ("${BASE_URL}/v1/{a}", "file:///etc".to_owned(), Err("its URL is invalid: only `http`")),
    ] {
        let variables: &'static [(&str, &str)] = Box::leak(Box::new([("URL", &*Box::leak(value.into_boxed_str()))]));
        let record = format!("url: '{}', result: '/target'", url.replace("BASE_URL", "URL"));
        let tool = tool_with(&server::client(), base, &record, "(a::Text)==>(::Text)", variables);
        match (call(&tool, json!({"a": "x"})).await, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{url}"),
            (Err(found), Err(expected)) => assert!(found.detail().unwrap().starts_with(expected), "{found:?}"),
            (found, _) => panic!("{url}: {found:?}"),
        }
    }
}
