//! Workflows over every protocol: what clients see of them, questions to people, and traces.

use crate::lab::{Lab, until};
use crate::{mcp, traces};
use patter::trace::Tracer;
use serde_json::{Value as Json, json};
use std::time::Duration;

/// A workflow that needs nobody, one that asks a person, one that gives up, and an agent that calls one.
pub(crate) const WORKFLOWS: &str = "
[plain:Workflow {description: 'Looks and answers'} | (look)-->(done:Give {value: 'I have {look} it.'})]
[asking:Workflow {description: 'Asks'} | (look)-->(sure:Human {question: 'Is it {look}?'})]
[deciding:Workflow {description: 'Decides'} |
  (refund:Human {question: 'Pay it back?', returns: 'Bool'})-[:When {is: true}]->(paid:Give {value: 'Paid back.'}),
  (refund)-[:Otherwise]->(kept:Give {value: 'Kept.'})
]
[brief:Workflow {description: 'Asks for a moment'} |
  (sure:Human {question: 'Quick?', expires: 1s})-[:Failed]->(late:Give {value: 'Nobody answered.'})
]
[chief:Agent {instruction: 'Ask `plain`.', model: 'scripted/FOLDER/chief.json'} | plain]
";

async fn lab() -> Lab {
    let lab =
        Lab::with_file(WORKFLOWS, |settings| settings.limits.expiry_interval = Duration::from_millis(50), None).await;
    let script = json!([
        {"calls": [{"tool": "plain", "arguments": {"input": "Please"}}]},
        {"text": "It was seen.", "expect": {"results": ["I have seen it."]}},
    ]);
    std::fs::write(lab.folder.path().join("chief.json"), script.to_string()).unwrap();
    lab
}

async fn start(lab: &Lab, agent: &str) -> Json {
    lab.post("/api/sessions?wait=true", &json!({"agent": agent, "message": "Go"})).await.json()
}

#[tokio::test]
async fn a_question_that_nobody_answers_expires() {
    let lab = lab().await;
    let started = start(&lab, "brief").await;
    assert_eq!(started["status"], "waiting", "{started}");
    let path = format!("/api/sessions/{}", started["session"].as_str().unwrap());
    until(async || lab.get(&path).await.json()["state"] == "idle").await;
    let session = lab.get(&path).await;
    assert!(session.body.contains("Nobody answered."), "{}", session.body);
    assert!(session.body.contains("nobody answered in time"), "the log says why: {}", session.body);
}

#[tokio::test]
async fn a_person_answers_over_the_native_protocol() {
    let mut lab = lab().await;
    let started = start(&lab, "asking").await;
    let call = &started["waiting"][0];
    assert_eq!(call["tool"], "sure", "{started}");
    assert_eq!(call["arguments"]["question"], "Is it seen?", "{started}");
    lab.restart().await;
    let path = format!("/api/sessions/{}/answers?wait=true", started["session"].as_str().unwrap());
    let approve = json!({"call_id": call["call_id"], "decision": "approve", "hash": call["hash"]});
    assert_eq!(lab.post(&path, &approve).await.status, 409, "a question is not approved, but answered");
    let answer = json!({"call_id": call["call_id"], "decision": "result", "result": "Yes, it is."});
    let ended = lab.post(&path, &answer).await.json();
    assert_eq!((&ended["status"], &ended["text"]), (&json!("answered"), &json!("Yes, it is.")), "{ended}");
    assert_eq!(lab.counts(), (0, 1), "the step before is not repeated");
}

#[tokio::test]
async fn an_answer_of_a_wrong_type_is_rejected_and_the_question_stays() {
    let lab = lab().await;
    let started = start(&lab, "deciding").await;
    let call = &started["waiting"][0];
    assert_eq!(call["returns"], json!({"type": "boolean"}), "{started}");
    let session = format!("/api/sessions/{}", started["session"].as_str().unwrap());
    let answer = async |result: Json| {
        let answer = json!({"call_id": call["call_id"], "decision": "result", "result": result});
        lab.post(&format!("{session}/answers?wait=true"), &answer).await
    };
    let rejected = answer(json!("perhaps")).await;
    assert!(rejected.status == 400 && rejected.body.contains("does not match its type"), "{}", rejected.body);
    assert_eq!(lab.get(&session).await.json()["state"], "waiting");
    let ended = answer(json!("true")).await.json();
    assert_eq!((&ended["status"], &ended["text"]), (&json!("answered"), &json!("Paid back.")), "{ended}");
}

#[tokio::test]
async fn workflows_are_tools_of_an_mcp_server() {
    let lab = lab().await;
    let tools = mcp::call(&lab, "tools/list", json!({})).await["tools"].clone();
    let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "ask_plain").unwrap();
    assert!(tool["description"].as_str().unwrap().contains("Looks and answers"), "{tool}");
    let arguments = json!({"message": "Go", "session": "w1"});
    let answer = mcp::call(&lab, "tools/call", json!({"name": "ask_plain", "arguments": arguments})).await;
    assert_eq!(answer["structuredContent"], json!({"text": "I have seen it.", "session": "w1"}), "{answer}");
    // A question to a person who cannot be asked waits in the session, and the caller learns where.
    let arguments = json!({"message": "Go", "session": "w2"});
    let asking = json!({"name": "ask_asking", "arguments": arguments});
    let waiting = mcp::call_as(&lab, &json!({}), None, "tools/call", asking).await;
    let text = waiting["content"][0]["text"].as_str().unwrap_or_default();
    assert!(waiting["isError"] == true && text.contains("w2") && text.contains("Is it seen?"), "{waiting}");
}

#[tokio::test]
async fn the_user_of_an_mcp_client_answers_in_a_form() {
    let lab = lab().await;
    let arguments = json!({"message": "Go"});
    let ask = async |name: &str| {
        let asked = mcp::call(&lab, "tools/call", json!({"name": name, "arguments": arguments})).await;
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        asked
    };
    let reply = async |name: &str, asked: &Json, response: Json| {
        let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap();
        let state = &asked["requestState"];
        let retry =
            json!({"name": name, "arguments": arguments, "requestState": state, "inputResponses": {key: response}});
        mcp::call(&lab, "tools/call", retry).await
    };
    let accept = |answer: Json| json!({"action": "accept", "content": {"answer": answer}});
    let form = |asked: &Json| {
        let requests = asked["inputRequests"].as_object().unwrap();
        let params = requests.values().next().unwrap()["params"].clone();
        (params["message"].as_str().unwrap().to_owned(), params["requestedSchema"]["properties"]["answer"].clone())
    };
    // A text.
    let asked = ask("ask_asking").await;
    assert_eq!(form(&asked), ("Is it seen?".to_owned(), json!({"type": "string", "title": "Answer"})));
    let asked = reply("ask_asking", &asked, json!({"action": "accept", "content": {}})).await;
    assert_eq!(form(&asked).0, "Is it seen?\n\nThe answer was not accepted: `answer` is missing");
    let answered = reply("ask_asking", &asked, accept(json!("Yes, it is."))).await;
    assert_eq!(answered["structuredContent"]["text"], "Yes, it is.", "{answered}");
    // Another type: the question is asked again until the answer has it.
    let asked = ask("ask_deciding").await;
    assert_eq!(form(&asked), ("Pay it back?".to_owned(), json!({"type": "boolean"})));
    let again = reply("ask_deciding", &asked, accept(json!("perhaps"))).await;
    assert_eq!(again["resultType"], "input_required", "{again}");
    assert!(form(&again).0.starts_with("Pay it back?\n\nThe answer was not accepted: "), "{again}");
    let answered = reply("ask_deciding", &again, accept(json!(false))).await;
    assert_eq!(answered["structuredContent"]["text"], "Kept.", "{answered}");
    // Whoever does not answer leaves the question to others.
    let asked = ask("ask_deciding").await;
    let declined = reply("ask_deciding", &asked, json!({"action": "decline"})).await;
    let text = declined["content"][0]["text"].as_str().unwrap_or_default();
    assert!(declined["isError"] == true && text.contains("Pay it back?"), "{declined}");
    let session = format!("/api/sessions/{}", asked["requestState"].as_str().unwrap());
    assert_eq!(lab.get(&session).await.json()["state"], "waiting");
}

#[tokio::test]
async fn workflows_run_over_ag_ui() {
    let lab = lab().await;
    let request = |thread: &str, more: Json| {
        let mut request =
            json!({"threadId": thread, "runId": "r1", "messages": [{"id": "1", "role": "user", "content": "Go"}]});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        request
    };
    let events = |response: &crate::lab::Response| -> Vec<Json> {
        response.data().into_iter().map(|data| serde_json::from_str(data).unwrap()).collect()
    };
    let plain = events(&lab.post("/agents/plain/ag-ui", &request("a", json!({}))).await);
    let names: Vec<_> = plain.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!((names[0], *names.last().unwrap()), ("RUN_STARTED", "RUN_FINISHED"), "{names:?}");
    let text: String = plain.iter().filter_map(|event| event["delta"].as_str()).collect();
    assert!(text.contains("I have seen it."), "{plain:?}");
    assert!(names.contains(&"TOOL_CALL_RESULT"), "the step is there: {names:?}");
    // A question is a tool call that the client answers.
    let asked = events(&lab.post("/agents/asking/ag-ui", &request("b", json!({}))).await);
    let call = asked.iter().rfind(|event| event["type"] == "TOOL_CALL_START").unwrap();
    assert_eq!(call["toolCallName"], "sure", "{asked:?}");
    let answer = json!({"role": "tool", "id": "2", "toolCallId": call["toolCallId"], "content": "Yes, it is."});
    let function = json!({"name": "sure", "arguments": "{}"});
    let calls = json!([{"id": call["toolCallId"], "type": "function", "function": function}]);
    let asked = json!({"id": "a", "role": "assistant", "content": "", "toolCalls": calls});
    let messages = json!({"runId": "r2", "messages": [{"id": "1", "role": "user", "content": "Go"}, asked, answer]});
    let ended = lab.post("/agents/asking/ag-ui", &request("b", messages)).await;
    assert!(ended.body.contains("Yes, it is.") && ended.body.contains("RUN_FINISHED"), "{}", ended.body);
    assert_eq!(lab.counts(), (0, 2));
}

#[tokio::test]
async fn a_workflow_is_a_delegate_of_an_agent() {
    let lab = lab().await;
    let ended = start(&lab, "chief").await;
    assert_eq!((&ended["status"], &ended["text"]), (&json!("answered"), &json!("It was seen.")), "{ended}");
    assert_eq!(lab.counts(), (0, 1));
}

#[tokio::test]
async fn a_workflow_is_a_span_with_its_steps() {
    let (address, received) = traces::receiver().await;
    let set = move |name: &str| match name {
        "OTEL_EXPORTER_OTLP_ENDPOINT" => Some(address.clone()),
        "OTEL_EXPORTER_OTLP_COMPRESSION" => Some("none".to_owned()),
        _ => None,
    };
    let tracer = Tracer::from_variables(set).unwrap().unwrap();
    let lab = Lab::with_file(WORKFLOWS, |_| {}, Some(tracer.clone())).await;
    assert_eq!(start(&lab, "plain").await["status"], "answered");
    tracer.flush().await;
    let bytes = received.lock().unwrap().clone();
    let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    assert!(has(b"invoke_workflow plain") && has(b"execute_tool look"), "{}", String::from_utf8_lossy(&bytes));
}

/// A file that breaks a policy is not used, as one with errors is not.
#[tokio::test]
async fn files_that_break_a_policy_are_not_used() {
    let lab = lab().await;
    let file = lab.folder.path().join("a.gram");
    let project = patter::live::LiveProject::open(&file)
        .with_environment(patter::project::Environment::default())
        .read()
        .await
        .unwrap();
    let before = std::fs::read_to_string(&file).unwrap();
    let policy = "[calm:Policy { forbid: \"(a:Agent { name: 'wild' })\", because: \"nobody is wild\" }]";
    std::fs::write(&file, format!("{before}\n{policy}\n")).unwrap();
    project.accept(project.changes().unwrap().unwrap()).await.unwrap();
    let wild = "[wild:Agent {instruction: 'Run.', model: 'demo'}]";
    std::fs::write(&file, format!("{before}\n{policy}\n{wild}\n")).unwrap();
    let error = project.accept(project.changes().unwrap().unwrap()).await.unwrap_err().to_string();
    assert!(error.contains("the policy `calm` is broken: nobody is wild"), "{error}");
    assert!(error.contains("a.gram:"), "with the place: {error}");
    assert!(project.driver().project().find_agent("wild").is_none(), "the files from before stay in use");
    assert!(project.driver().project().find_agent("greeter").is_some());
}
