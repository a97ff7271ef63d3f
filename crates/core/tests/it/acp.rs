//! The Agent Client Protocol, without a connection: messages to requests, and logs and events to updates.

use patter_core::event::{RunEvent, RunEventKind};
use patter_core::message::conversation::{Message, ToolCall, ToolOutcome, Usage};
use patter_core::message::request::{FinishReason, Reply};
use patter_core::permission::Decision;
use patter_core::run::{CallTarget, CallTiming, Callable, FailureKind, Ruling, Run, RunFailure, RunInput, RunSpec};
use patter_core::serve::acp::{
    ClientNotification, ClientRequest, Replay, RpcMessage, StopReason, ToolKind, UpdateStream, permission_params,
    read_prompt, stop_reason,
};
use patter_core::serve::{TurnEnd, TurnOutcome, Waiting};
use patter_core::session::{Log, LogEntry};
use serde_json::{Value as Json, json};

fn other(_: &str, _: &str) -> ToolKind {
    ToolKind::Other
}

#[test]
fn lines_that_are_not_messages_say_why() {
    for (line, id, code, message) in [
        ("{]", json!(null), -32700, "not valid JSON: key must be a string at line 1 column 2"),
        ("[{}]", json!(null), -32600, "a message is an object; batches are not supported"),
        ("{\"id\": 1}", json!(1), -32600, "`jsonrpc` is not \"2.0\""),
        (r#"{"jsonrpc": "2.0", "id": "a"}"#, json!("a"), -32600, "`method` is missing"),
        (r#"{"jsonrpc": "2.0", "id": "a", "method": 1}"#, json!("a"), -32600, "`method` is not a text"),
        (
            r#"{"jsonrpc": "2.0", "id": 1.5, "method": "x"}"#,
            json!(null),
            -32600,
            "`id` is neither a text nor a whole number",
        ),
    ] {
        let invalid = RpcMessage::parse(line.as_bytes()).unwrap_err();
        assert_eq!((invalid.id, invalid.error.code, invalid.error.message.as_str()), (id, code, message), "{line}");
    }
    let deep = "[".repeat(100_000);
    assert_eq!(RpcMessage::parse(deep.as_bytes()).unwrap_err().error.code, -32700);
    let response =
        RpcMessage::parse(br#"{"jsonrpc": "2.0", "id": 3, "error": {"code": -1, "message": "no"}}"#).unwrap();
    let RpcMessage::Response { result: Err(error), .. } = response else { panic!("{response:?}") };
    assert_eq!((error.code, error.message.as_str()), (-1, "no"));
}

#[test]
fn wrong_parameters_are_named() {
    for (method, params, message) in [
        ("initialize", json!({}), "`protocolVersion`: is not a number"),
        ("initialize", json!([1]), "the parameters are not an object"),
        ("session/new", json!({}), "`cwd`: is missing"),
        ("session/new", json!({"cwd": "/", "mcpServers": {}}), "`mcpServers`: is not a list"),
        ("session/load", json!({"cwd": "/"}), "`sessionId`: is missing"),
        ("session/list", json!({"cwd": "x"}), "`cwd`: is not an absolute path"),
        ("session/set_config_option", json!({"configId": "model"}), "`configId`: there is only the option `agent`"),
        ("session/prompt", json!({"sessionId": "s"}), "`prompt`: is missing"),
        ("session/prompt", json!({"sessionId": "s", "prompt": [7]}), "`prompt[0]`: is not an object"),
        ("session/prompt", json!({"sessionId": "s", "prompt": [{"type": "text"}]}), "`prompt[0].text`: is missing"),
    ] {
        let error = ClientRequest::parse(method, &params).unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (-32602, message));
    }
    assert_eq!(ClientRequest::parse("fs/read_text_file", &json!({})).unwrap_err().code, -32601);
    assert_eq!(ClientNotification::parse("session/cancel", &json!({"sessionId": 1})), None);
    let unknown = json!({"cwd": "/", "mcpServers": [], "_meta": {"a": 1}, "more": true});
    assert!(ClientRequest::parse("session/new", &unknown).is_ok());
}

#[test]
fn embedded_text_cannot_leave_its_block() {
    let resource = json!({"type": "resource", "resource": {"uri": "file:///a/", "text": "```\nno\n````\n"}});
    let text = read_prompt(&[resource]).unwrap().0.text;
    assert_eq!(text, "[a](file:///a/)\n\n[a](file:///a/):\n`````\n```\nno\n````\n`````");
    let binary = json!({"type": "resource", "resource": {"uri": "x:", "blob": "AAAA"}});
    let (input, contents) = read_prompt(&[binary]).unwrap();
    let expected = "[x:](x:)\n\n[x:](x:) is not included: `x:` is neither UTF-8 text nor a known format, which models do not \
                    read; models read images (PNG, JPEG, GIF, WebP), PDF documents and UTF-8 text";
    assert_eq!((input.text.as_str(), contents.is_empty()), (expected, true));
    let pdf = json!({"type": "resource", "resource": {"uri": "file:///a/r.pdf", "blob": "JVBERi0xLjcK"}});
    let (input, contents) = read_prompt(&[pdf]).unwrap();
    assert_eq!(
        (input.text.as_str(), input.attachments[0].to_string().as_str()),
        ("[r.pdf](file:///a/r.pdf)", "r.pdf (application/pdf, 9 bytes)")
    );
    assert_eq!(contents.get(&input.attachments[0]), Some(&b"%PDF-1.7\n"[..]));
}

#[test]
fn texts_of_called_agents_are_not_shown_but_their_calls_are() {
    let mut stream = UpdateStream::default();
    let inner = vec!["1".to_owned()];
    let text = RunEventKind::Text { text: "psst".into() };
    assert_eq!(stream.event(&RunEvent::new("helper", &inner, text.clone()), &other), None);
    let call = RunEventKind::ToolStarted { call_id: "2".into(), tool: "fs/read".into(), arguments: json!({"a": "`"}) };
    let update = stream.event(&RunEvent::new("helper", &inner, call), &|agent, tool| {
        assert_eq!((agent, tool), ("helper", "fs/read"));
        ToolKind::Read
    });
    let update = update.unwrap();
    assert_eq!((&update["toolCallId"], &update["kind"]), (&json!("1/2"), &json!("read")));
    assert_eq!(update["title"], "helper: fs/read ``{\"a\":\"`\"}``");
    let outcome =
        ToolOutcome::Value { value: json!({"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="}) };
    let ended = RunEventKind::ToolFinished {
        call_id: "2".into(),
        tool: "fs/read".into(),
        outcome,
        duration_ms: 1,
        unstarted: None,
    };
    let update = stream.event(&RunEvent::new("helper", &inner, ended), &other).unwrap();
    assert_eq!((&update["sessionUpdate"], &update["status"]), (&json!("tool_call_update"), &json!("completed")));
    assert_eq!(update["content"][0]["content"]["type"], "image");
    assert_eq!(update["rawOutput"]["bytes"], 8);
    let waiting = RunEventKind::Waiting { seconds: 1.0, because: "the provider is busy".into() };
    let waiting = RunEvent::new("boss", &vec![], waiting);
    assert_eq!(stream.event(&waiting, &other), None);
    let notice = stream.with_notices(true).event(&waiting, &other).unwrap();
    assert_eq!(notice, json!({"sessionUpdate": "notice", "severity": "info", "title": "the provider is busy"}));
}

#[test]
fn calls_that_never_started_are_shown_whole() {
    let mut stream = UpdateStream::default();
    let ended = RunEventKind::ToolFinished {
        call_id: "1".into(),
        tool: "pay".into(),
        outcome: ToolOutcome::Error { message: "not valid JSON".into() },
        duration_ms: 0,
        unstarted: Some("{euros".into()),
    };
    let update = stream.event(&RunEvent::new("clerk", &vec![], ended), &other).unwrap();
    assert_eq!((&update["sessionUpdate"], &update["status"]), (&json!("tool_call"), &json!("failed")));
    assert_eq!(update["rawInput"], "{euros");
    assert_eq!(update["content"][0]["content"]["text"], "error: not valid JSON");
}

#[test]
fn ends_have_reasons() {
    let answered = |finish| TurnOutcome::Answered { text: String::new(), value: None, finish };
    let failed = |kind| TurnOutcome::Failed(RunFailure { kind, message: "no".into() });
    for (outcome, expected) in [
        (answered(FinishReason::Stop), Some(StopReason::EndTurn)),
        (answered(FinishReason::Length), Some(StopReason::MaxTokens)),
        (answered(FinishReason::Filtered), Some(StopReason::Refusal)),
        (failed(FailureKind::Tokens), Some(StopReason::MaxTokens)),
        (failed(FailureKind::ToolCalls), Some(StopReason::MaxTurnRequests)),
        (failed(FailureKind::Configuration), None),
        (failed(FailureKind::Deadline), None),
        (TurnOutcome::Cancelled, Some(StopReason::Cancelled)),
        (TurnOutcome::Waiting(Vec::new()), None),
    ] {
        let stopped = stop_reason(&TurnEnd { outcome: outcome.clone(), usage: Usage::default() });
        assert_eq!(stopped.ok(), expected, "{outcome:?}");
    }
}

fn entry(entry: &LogEntry) -> String {
    serde_json::to_string(entry).unwrap()
}

fn input(input: RunInput) -> String {
    entry(&LogEntry::InputReceived { run: vec![], input })
}

fn said(log: &Log, text: &str) -> String {
    let tools = vec![Callable { name: "pay".into(), target: CallTarget::Client }];
    let spec = RunSpec { agent: "clerk".into(), tools, ..RunSpec::default() };
    let start = Run::start(spec, log.conversation().clone(), text, 0).unwrap().to_start();
    entry(&LogEntry::RunStarted { run: vec![], frame: None, bindings: String::new(), start, traceparent: None })
}

fn replied(text: &str, call: Option<Decision>) -> String {
    let calls = call.iter().map(|_| ToolCall { id: "1".into(), tool: "pay".into(), arguments: "{}".into() }).collect();
    let rulings = call.into_iter().map(|decision| Ruling { decision, because: "it costs".into() }).collect();
    let finish = FinishReason::Stop;
    let reply =
        Reply { text: text.into(), calls, finish, usage: Usage::default(), opaque: None, thought: String::new() };
    input(RunInput::ModelReplied { reply, rulings, timing: CallTiming::default(), at: 1 })
}

/// Returns the updates of a log, each as its name, the id of its message, and its text or status.
fn replayed(entries: &[String]) -> Vec<String> {
    let shown = |update: &Json| {
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        let detail = text(&update["content"]["text"]) + &text(&update["status"]);
        [text(&update["sessionUpdate"]), text(&update["messageId"]), detail].join(" ")
    };
    Replay::read(entries, &other).unwrap().updates.iter().map(shown).collect()
}

#[test]
fn a_log_is_replayed_without_what_was_undone() {
    let mut entries = vec![entry(&LogEntry::Forked {
        from: "a".into(),
        messages: vec![
            Message::user("Hi"),
            Message::assistant("Hello", vec![ToolCall { id: "0".into(), tool: "look".into(), arguments: "{}".into() }]),
            Message::Tool { call_id: "0".into(), tool: "look".into(), outcome: ToolOutcome::Value { value: json!(1) } },
            Message::assistant("Seen.", vec![]),
        ],
    })];
    entries.push(said(&Log::read(&entries).unwrap(), "First"));
    entries.push(replied("One", None));
    let forked = [
        "user_message_chunk 0.0 Hi",
        "agent_message_chunk 0.1 Hello",
        "tool_call  in_progress",
        "tool_call_update  completed",
        "agent_message_chunk 0.3 Seen.",
    ];
    let first = ["user_message_chunk 1.0 First", "agent_message_chunk 1.1 One"];
    assert_eq!(replayed(&entries), [&forked[..], &first].concat());
    entries.push(entry(&LogEntry::Rewound { messages: 4 }));
    assert_eq!(replayed(&entries), forked);
    entries.push(said(&Log::read(&entries).unwrap(), "Second"));
    entries.push(replied("Two", None));
    let second = ["user_message_chunk 2.0 Second", "agent_message_chunk 2.1 Two"];
    assert_eq!(replayed(&entries), [&forked[..], &second].concat());
}

#[test]
fn a_call_that_waits_is_pending_until_it_is_refused() {
    let mut entries = vec![said(&Log::default(), "Pay")];
    entries.push(replied("", Some(Decision::Ask)));
    assert_eq!(replayed(&entries), ["user_message_chunk 1.0 Pay", "tool_call  pending"]);
    let log = Log::read(&entries).unwrap();
    let waiting = Waiting::all(&log);
    let params = permission_params("s", &waiting[0], &other);
    assert_eq!(params["toolCall"]["status"], "pending");
    let content = |index: usize| params["toolCall"]["content"][index]["content"]["text"].clone();
    assert_eq!((content(0), content(1)), (json!("it costs"), json!("```\n{}\n```")));
    entries.push(input(RunInput::CallRefused { call_id: "1".into(), reason: "no".into(), at: 2 }));
    assert_eq!(replayed(&entries), ["user_message_chunk 1.0 Pay", "tool_call  failed"]);
}

#[test]
fn a_log_that_is_broken_is_an_error() {
    let error = Replay::read(["{}"], &other).unwrap_err();
    assert_eq!(error.number, 1);
}
