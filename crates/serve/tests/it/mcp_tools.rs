//! Tools of the library, called by MCP clients without an agent.

use crate::lab::Lab;
use crate::mcp::{call, call_as};
use patter_serve::{Scope, Scopes, Token, TokenHash, ToolAccess};
use serde_json::{Value as Json, json};

async fn lab() -> Lab {
    Lab::with(|settings| settings.tools = ToolAccess::Direct).await
}

fn names(list: &Json) -> Vec<&str> {
    list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn tools_are_offered_on_request() {
    let list = call(&Lab::new().await, "tools/list", json!({})).await;
    assert!(names(&list).iter().all(|name| name.starts_with("ask_")), "{list}");
    let lab = lab().await;
    let list = call(&lab, "tools/list", json!({})).await;
    let find = |name: &str| list["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
    let hints = |read_only: bool, idempotent: bool, open: bool| {
        let mut hints = json!({"readOnlyHint": read_only, "destructiveHint": !read_only});
        hints["idempotentHint"] = idempotent.into();
        hints["openWorldHint"] = open.into();
        hints
    };
    assert_eq!(find("pay")["annotations"], hints(false, false, true));
    assert_eq!(find("calculator")["annotations"], hints(true, true, false));
    assert_eq!(find("pay")["inputSchema"]["required"], json!(["euros"]));
    assert!(find("pay")["outputSchema"].is_null(), "texts are not structured");
    assert_eq!(find("json__get")["inputSchema"]["type"], "object");
    let sum = json!({"name": "calculator", "arguments": {"expression": "6 * 7"}});
    let sum = call(&lab, "tools/call", sum).await;
    assert_eq!(sum["structuredContent"], json!({"value": "42", "exact": true}), "{sum}");
    // Patter checks arguments, and a model reads what is wrong.
    for (name, arguments, expected) in [
        ("calculator", json!({"expression": 7}), "`expression`: expected a Text, found 7"),
        ("pay", json!({}), "`euros`: expected an Int, found nothing"),
    ] {
        let wrong = call(&lab, "tools/call", json!({"name": name, "arguments": arguments})).await;
        let text = wrong["content"][0]["text"].as_str().unwrap_or_default();
        assert!(wrong["isError"] == true && text.contains(expected), "{wrong}");
    }
    let missing = call(&lab, "tools/call", json!({"name": "nothing"})).await;
    assert_eq!(missing["message"], "there is no tool `nothing`");
    assert_eq!(lab.counts(), (0, 0));
}

#[tokio::test]
async fn a_call_that_changes_something_is_a_question() {
    let lab = lab().await;
    let request = json!({"name": "pay", "arguments": {"euros": 5}});
    for (content, payments) in [
        (json!({"action": "decline"}), 0),
        (json!({"action": "cancel"}), 0),
        (json!({"action": "accept", "content": {"approve": false}}), 0),
        (json!(true), 0),
        (json!({"action": "accept", "content": {"approve": true}}), 1),
    ] {
        let asked = call(&lab, "tools/call", request.clone()).await;
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let message = asked["inputRequests"]["approve"]["params"]["message"].as_str().unwrap();
        assert!(message.starts_with(r#"Call `pay` with {"euros":5}? ("#), "{message}");
        let mut retry = request.clone();
        retry["requestState"] = asked["requestState"].clone();
        retry["inputResponses"] = json!({"approve": content});
        // The state is about this call of this tool, and cannot be made up.
        for (path, value) in [
            ("/arguments/euros", json!(5000)),
            ("/name", json!("look")),
            ("/requestState", json!(format!("{}x", asked["requestState"].as_str().unwrap()))),
            ("/requestState", json!("")),
        ] {
            let mut forged = retry.clone();
            *forged.pointer_mut(path).unwrap() = value;
            let error = call(&lab, "tools/call", forged).await;
            assert!(error["code"].is_number() || error["isError"] == true, "{path}: {error}");
            assert_eq!(lab.counts(), (0, 0), "{path}");
        }
        let answer = call(&lab, "tools/call", retry.clone()).await;
        let expected = if payments == 1 { "paid" } else { "the user did not approve the call of `pay`" };
        assert_eq!(answer["content"][0]["text"], expected, "{answer}");
        assert_eq!(lab.counts().0, payments);
        // An answer counts once.
        let twice = call(&lab, "tools/call", retry).await;
        assert!(twice["code"].is_number(), "{twice}");
        assert_eq!(lab.counts().0, payments);
    }
    // Nobody can approve a call before it is asked about.
    let early = json!({"approve": {"action": "accept", "content": {"approve": true}}});
    let early = json!({"name": "pay", "arguments": {"euros": 5}, "inputResponses": early});
    assert_eq!(call(&lab, "tools/call", early).await["resultType"], "input_required");
    // A client that cannot ask its user is refused.
    let refused = call_as(&lab, &json!({}), None, "tools/call", request).await;
    assert_eq!(refused["data"]["requiredCapabilities"], json!({"elicitation": {"form": {}}}), "{refused}");
    assert_eq!(lab.counts().0, 1);
}

#[tokio::test]
async fn tokens_limit_what_clients_call() {
    let token = |name: &str, scopes: &[Scope]| {
        Token::new(name, TokenHash::of(name)).with_scopes(scopes.iter().copied().collect::<Scopes>())
    };
    let lab = Lab::with(|settings| {
        settings.tools = ToolAccess::Direct;
        settings.tokens = vec![
            token("reader", &[Scope::Read]),
            token("runner", &[Scope::Read, Scope::Run]),
            token("greeting", &Scope::ALL).with_agents(vec!["greeter".to_owned()]),
        ];
    })
    .await;
    let can_ask = json!({"elicitation": {}});
    let send = |token, method, params| call_as(&lab, &can_ask, Some(token), method, params);
    let sum = json!({"name": "calculator", "arguments": {"expression": "1 + 1"}});
    let pay = json!({"name": "pay", "arguments": {"euros": 5}});
    assert!(names(&send("reader", "tools/list", json!({})).await).contains(&"calculator"));
    let refused = send("reader", "tools/call", sum.clone()).await;
    assert_eq!(refused["message"], "the token does not permit this: it needs the scope `run`");
    assert_eq!(send("runner", "tools/call", sum.clone()).await["structuredContent"]["value"], "2");
    let refused = send("runner", "tools/call", pay).await;
    let text = refused["content"][0]["text"].as_str().unwrap_or_default();
    assert!(text.contains("needs an approval") && text.contains("scope `approve`"), "{refused}");
    // The tools belong to no agent.
    assert_eq!(names(&send("greeting", "tools/list", json!({})).await), ["ask_greeter"]);
    assert_eq!(send("greeting", "tools/call", sum).await["message"], "there is no tool `calculator`");
    assert_eq!(lab.counts(), (0, 0));
}

#[tokio::test]
async fn ids_of_sessions_are_completed() {
    let lab = Lab::new().await;
    for id in ["monday", "tuesday", "month"] {
        lab.post("/api/sessions?wait=true", &json!({"agent": "counter", "message": "Hi", "session": id})).await;
    }
    let complete = async |template: &str| {
        let reference = json!({"type": "ref/resource", "uri": template});
        let request = json!({"ref": reference, "argument": {"name": "id", "value": "mon"}});
        let mut values = call(&lab, "completion/complete", request).await["completion"]["values"].clone();
        values.as_array_mut().unwrap().sort_by_key(ToString::to_string);
        values
    };
    assert_eq!(complete("patter://sessions/{id}").await, json!(["monday", "month"]));
    assert_eq!(complete("patter://experiments/{id}").await, json!([]));
    assert_eq!(complete("other://{id}").await, json!([]));
}
