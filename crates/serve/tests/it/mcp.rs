//! Agents as tools of an MCP server.

use crate::lab::Lab;
use serde_json::{Value as Json, json};

const NEW: &str = "2026-07-28";

/// Sends a request in the stateless form, and returns its result or error.
pub(crate) async fn call(lab: &Lab, method: &str, params: Json) -> Json {
    call_as(lab, &json!({"elicitation": {}}), None, method, params).await
}

/// Sends a request of a client with other capabilities, or with a token.
pub(crate) async fn call_as(
    lab: &Lab,
    capabilities: &Json,
    token: Option<&str>,
    method: &str,
    mut params: Json,
) -> Json {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = NEW.into();
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
    let name = params["name"].as_str().or(params["uri"].as_str()).unwrap_or_default().to_owned();
    let mut headers =
        vec![("Accept", "application/json, text/event-stream"), ("MCP-Protocol-Version", NEW), ("Mcp-Method", method)];
    if !name.is_empty() {
        headers.push(("Mcp-Name", &name));
    }
    let token = token.map(|token| format!("Bearer {token}"));
    headers.extend(token.as_ref().map(|token| ("Authorization", token.as_str())));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let response = lab.post_with("/mcp", &headers, &body).await;
    let message: Json = match response.data().iter().rfind(|data| !data.is_empty()) {
        Some(data) => serde_json::from_str(data).unwrap(),
        None => response.json(),
    };
    if message["error"].is_object() { message["error"].clone() } else { message["result"].clone() }
}

#[tokio::test]
async fn agents_are_tools() {
    let lab = Lab::new().await;
    let found = call(&lab, "server/discover", json!({})).await;
    assert!(found["supportedVersions"].as_array().unwrap().contains(&json!(NEW)), "{found}");
    let tools = call(&lab, "tools/list", json!({})).await["tools"].clone();
    let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names[..2], ["ask_greeter", "ask_slow"]);
    let arguments = json!({"message": "Hi", "session": "monday"});
    let answer = call(&lab, "tools/call", json!({"name": "ask_greeter", "arguments": arguments})).await;
    assert_eq!(answer["structuredContent"], json!({"text": "Hello!", "session": "monday"}), "{answer}");
    let again = call(&lab, "tools/call", json!({"name": "ask_greeter", "arguments": arguments})).await;
    assert_eq!(again["content"][0]["text"], "Hello again!");
    let count = call(&lab, "tools/call", json!({"name": "ask_counter", "arguments": {"message": "Hi"}})).await;
    assert_eq!(count["structuredContent"], json!({"count": 3}));
    let failed = call(&lab, "tools/call", json!({"name": "ask_broken", "arguments": {"message": "Hi"}})).await;
    assert_eq!(failed["isError"], true);
    for (name, arguments, expected) in [
        ("ask_nobody", json!({"message": "Hi"}), "there is no tool `ask_nobody`"),
        ("greeter", json!({"message": "Hi"}), "there is no tool `greeter`"),
        ("ask_greeter", json!({}), "`message` is missing"),
        ("ask_greeter", json!({"message": "Hi", "session": "../x"}), "`../x` is not a session id"),
    ] {
        let error = call(&lab, "tools/call", json!({"name": name, "arguments": arguments})).await;
        assert_eq!(error["message"], expected, "{error}");
    }
}

#[tokio::test]
async fn approvals_are_questions() {
    let lab = Lab::new().await;
    let arguments = json!({"message": "Pay"});
    for (content, payments) in [
        (json!({"action": "decline"}), 0),
        (json!({"action": "accept", "content": {"approve": false}}), 0),
        (json!({"action": "accept", "content": {"approve": true}}), 1),
    ] {
        let asked = call(&lab, "tools/call", json!({"name": "ask_clerk", "arguments": arguments})).await;
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let (key, request) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
        let message = request["params"]["message"].as_str().unwrap();
        assert!(message.starts_with(r#"The agent `clerk` wants to call `pay` with {"euros":5}"#), "{message}");
        let state = &asked["requestState"];
        let retry = json!({
            "name": "ask_clerk",
            "arguments": arguments,
            "requestState": state,
            "inputResponses": {key: content},
        });
        let answer = call(&lab, "tools/call", retry.clone()).await;
        assert_eq!(answer["structuredContent"]["text"], "Done.", "{answer}");
        assert_eq!(lab.counts().0, payments);
        let twice = call(&lab, "tools/call", retry).await;
        assert!(twice["code"].is_number(), "{twice}");
        assert_eq!(lab.counts().0, payments, "an answer counts once");
    }
    let made_up = json!({"name": "ask_clerk", "requestState": "nothing", "inputResponses": {}});
    assert!(call(&lab, "tools/call", made_up).await["code"].is_number());
}

#[tokio::test]
async fn agents_and_sessions_are_resources() {
    let lab = Lab::new().await;
    let list = call(&lab, "resources/list", json!({})).await;
    assert_eq!(list["resources"][0]["uri"], "patter://agents/greeter.gram");
    let agent = call(&lab, "resources/read", json!({"uri": "patter://agents/clerk.gram"})).await;
    assert!(agent["contents"][0]["text"].as_str().unwrap().starts_with("[clerk:Agent"), "{agent}");
    lab.post("/api/sessions?wait=true", &json!({"agent": "greeter", "message": "Hi", "session": "one"})).await;
    let session = call(&lab, "resources/read", json!({"uri": "patter://sessions/one"})).await;
    let log: Json = serde_json::from_str(session["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(log["messages"][0]["text"], "Hi");
    for uri in ["patter://agents/nobody.gram", "patter://sessions/two", "patter://experiments/x", "file:///etc/passwd"]
    {
        let error = call(&lab, "resources/read", json!({"uri": uri})).await;
        assert_eq!(error["message"], format!("there is no resource `{uri}`"));
    }
    let prompt = call(&lab, "prompts/get", json!({"name": "greeter", "arguments": {"message": "Hi"}})).await;
    assert_eq!(prompt["messages"][0]["content"]["text"], "Greet.\n\nHi");
}

#[tokio::test]
async fn the_older_handshake_works() {
    let lab = Lab::new().await;
    let accept = ("Accept", "application/json, text/event-stream");
    let params = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    });
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let response = lab.post_with("/mcp", &[accept], &initialize).await;
    let session = response.header("mcp-session-id").to_owned();
    assert!(!session.is_empty(), "{response:?}");
    let headers = [accept, ("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", "2025-06-18")];
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(lab.post_with("/mcp", &headers, &ready).await.status, 202);
    let arguments = json!({"name": "ask_clerk", "arguments": {"message": "Pay"}});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": arguments});
    let response = lab.post_with("/mcp", &headers, &call).await;
    let message: Json = serde_json::from_str(response.data().last().unwrap()).unwrap();
    // A client that cannot ask its user learns that the call waits.
    let text = message["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("waiting for approval of `pay`"), "{text}");
    assert_eq!(lab.get("/api/approvals").await.json()["approvals"].as_array().unwrap().len(), 1);
    // The guard is in front of this route too.
    let evil = [accept, ("Origin", "https://evil.example")];
    assert_eq!(lab.post_with("/mcp", &evil, &initialize).await.status, 403);
}
