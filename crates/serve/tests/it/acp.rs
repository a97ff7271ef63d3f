//! Editors over the Agent Client Protocol, as far as the SDKs cannot test it. `crates/cli/tests/it/acp.rs` drives the program
//! with them.

use patter::live::LiveProject;
use patter::project::Environment;
use patter::session::Session;
use patter::store::{self, SessionId, SessionState, Store, StoreLocation};
use patter::tool::{CancellationToken, Tool};
use patter_core::run::{ClientAdditions, ClientTool};
use patter_serve::{ServeSettings, Server};
use serde_json::{Value as Json, json};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;

const AGENTS: &str = "
[clerk:Agent {instruction: 'Pay.', model: 'scripted/FOLDER/clerk.json', ask: ['pay']} | pay]
[prude:Agent {instruction: 'Refuse.', model: 'scripted/FOLDER/prude.json'}]
[busy:Agent {instruction: 'Work.', model: 'scripted/FOLDER/busy.json', maxTurns: 1} | look]
[slow:Agent {instruction: 'Wait.', model: 'scripted/FOLDER/slow.json'} | look]
[plain:Workflow {description: 'Looks and answers'} | (look)-->(done:Give {value: 'I have {look} it.'})]
[asking:Workflow {description: 'Asks'} | (look)-->(count:Human {question: 'How often? ({look})', returns: 'Integer'})-->(said:Give {value: 'It was {count}.'})]
";

/// A project, and what its tools did.
struct Office {
    folder: tempfile::TempDir,
    project: Arc<LiveProject>,
    store: Arc<dyn Store>,
    payments: Arc<AtomicUsize>,
    settings: ServeSettings,
}

/// An editor that is connected to a server.
struct Editor {
    writer: WriteHalf<DuplexStream>,
    lines: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    server: JoinHandle<io::Result<()>>,
    stop: CancellationToken,
    next: u64,
    /// What was received while something else was waited for.
    seen: VecDeque<Json>,
}

impl Office {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let call = |tool: &str, arguments: Json| json!({"tool": tool, "arguments": arguments});
        let twice = json!([call("pay", json!({"euros": 5})), call("pay", json!({"euros": 7}))]);
        let scripts = [
            ("clerk", json!([{"calls": twice}, {"text": "Done."}, {"text": "Again."}])),
            ("prude", json!([{"text": "I will not.", "finish": "refused"}])),
            ("busy", json!([{"calls": [call("look", json!({}))]}, {"text": "Never."}])),
            (
                "slow",
                json!([{"text": "One. ", "calls": [call("look", json!({}))]}, {"text": "Late.", "delayMs": 1500}, {"text": "Next."}]),
            ),
        ];
        for (name, script) in scripts {
            std::fs::write(folder.path().join(format!("{name}.json")), script.to_string()).unwrap();
        }
        let path = folder.path().join("a.gram");
        std::fs::write(&path, AGENTS.replace("FOLDER", &folder.path().display().to_string())).unwrap();
        let payments: Arc<AtomicUsize> = Arc::default();
        let paying = Arc::clone(&payments);
        let pay = Tool::native("pay", "Pays", "(euros::Integer)==>(::Text)", move |_, _| {
            paying.fetch_add(1, Ordering::SeqCst);
            async { Ok(json!("paid")) }
        });
        let look = Tool::native("look", "Looks", "()==>(::Text)", |_, _| async { Ok(json!("seen")) });
        let project = LiveProject::open(&path).with_tools([pay.unwrap(), look.unwrap()]);
        let project = project.with_environment(Environment::default()).read().await.unwrap();
        let store = store::open(&StoreLocation::Sqlite(folder.path().join("s.db"))).await.unwrap();
        Self { folder, project: Arc::new(project), store, payments, settings: ServeSettings::default() }
    }

    fn connect(&self) -> Editor {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let stop = CancellationToken::new();
        let server = Server::new(Arc::clone(&self.project), self.settings.clone()).with_store(Arc::clone(&self.store));
        let (reader, writer) = tokio::io::split(theirs);
        let server = tokio::spawn(server.serve_acp_over(reader, writer, stop.clone()));
        let (reader, writer) = tokio::io::split(ours);
        Editor { writer, lines: BufReader::new(reader).lines(), server, stop, next: 0, seen: VecDeque::new() }
    }

    /// Opens a session of this project that another program has.
    fn session(&self, id: &str) -> Session {
        Session::create(Arc::clone(&self.project), Arc::clone(&self.store), SessionId::parse(id).unwrap())
    }

    async fn state(&self, session: &str) -> SessionState {
        self.store.read(&SessionId::parse(session).unwrap()).await.unwrap().summary.state
    }

    fn paid(&self) -> usize {
        self.payments.load(Ordering::SeqCst)
    }
}

impl Editor {
    async fn send(&mut self, message: &Json) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// Sends a request, and returns its id.
    async fn request(&mut self, method: &str, params: Json) -> u64 {
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params})).await;
        self.next
    }

    async fn answer(&mut self, request: &Json, result: Json) {
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    async fn receive(&mut self) -> Json {
        let line = tokio::time::timeout(Duration::from_secs(20), self.lines.next_line()).await;
        let line = line.expect("the server does not answer").unwrap().expect("the server is gone");
        serde_json::from_str(&line).unwrap()
    }

    /// Waits for a message. Those before it are kept.
    async fn until(&mut self, is_wanted: impl Fn(&Json) -> bool) -> Json {
        loop {
            let message = self.receive().await;
            if is_wanted(&message) {
                return message;
            }
            self.seen.push_back(message);
        }
    }

    /// Waits for the response to a request.
    async fn response(&mut self, id: u64) -> Json {
        self.until(|message| message["id"] == id && message.get("method").is_none()).await
    }

    async fn permission(&mut self) -> Json {
        self.until(|message| message["method"] == "session/request_permission").await
    }

    async fn call(&mut self, method: &str, params: Json) -> Json {
        let id = self.request(method, params).await;
        self.response(id).await
    }

    /// Opens a session with an agent.
    async fn open(&mut self, agent: &str) -> String {
        let created = self.call("session/new", json!({"cwd": "/", "mcpServers": []})).await;
        let session = created["result"]["sessionId"].as_str().unwrap().to_owned();
        self.call("session/set_mode", json!({"sessionId": session, "modeId": agent})).await;
        self.seen.clear();
        session
    }

    async fn start_prompt(&mut self, session: &str, text: &str) -> u64 {
        self.request("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})).await
    }

    async fn prompt(&mut self, session: &str, text: &str) -> Json {
        let id = self.start_prompt(session, text).await;
        self.response(id).await
    }

    /// Returns the updates that were received so far, as their name with their text or status.
    fn updates(&mut self) -> Vec<String> {
        let shown = |message: Json| {
            let update = &message["params"]["update"];
            let detail = update["content"]["text"].as_str().or(update["status"].as_str()).unwrap_or_default();
            format!("{} {detail}", update["sessionUpdate"].as_str().unwrap_or_default())
        };
        let updates = self.seen.drain(..).filter(|message| message["method"] == "session/update").map(shown);
        updates.filter(|update| !update.starts_with("session_info_update")).collect()
    }

    /// Stops sending, and waits for the end.
    async fn leave(mut self) {
        self.writer.shutdown().await.unwrap();
        tokio::time::timeout(Duration::from_secs(20), self.server).await.unwrap().unwrap().unwrap();
    }
}

fn allow() -> Json {
    json!({"outcome": {"outcome": "selected", "optionId": "allow"}})
}

fn stop_reason(response: &Json) -> &str {
    response["result"]["stopReason"].as_str().unwrap_or_else(|| panic!("{response}"))
}

#[tokio::test]
async fn calls_are_asked_about_at_once_and_answered_one_by_one() {
    let office = Office::new().await;
    let mut editor = office.connect();
    let session = editor.open("clerk").await;
    let prompt = editor.start_prompt(&session, "Pay both").await;
    let first = editor.permission().await;
    let second = editor.permission().await;
    assert_eq!(first["params"]["toolCall"]["rawInput"], json!({"euros": 5}));
    assert_eq!(second["params"]["toolCall"]["rawInput"], json!({"euros": 7}));
    editor.answer(&second, allow()).await;
    // Nothing happens until all are answered, and an answer counts once.
    editor.answer(&second, allow()).await;
    editor.answer(&json!({"id": 99}), allow()).await;
    assert_eq!(office.paid(), 0);
    editor.answer(&first, json!({"outcome": {"outcome": "selected", "optionId": "reject"}})).await;
    assert_eq!(stop_reason(&editor.response(prompt).await), "end_turn");
    assert_eq!(office.paid(), 1);
    let updates = editor.updates();
    let calls = ["tool_call pending", "tool_call pending", "tool_call_update failed"];
    let rest = ["tool_call_update in_progress", "tool_call_update completed", "agent_message_chunk Done."];
    assert_eq!(updates, [calls, rest].concat());
    editor.leave().await;
}

#[tokio::test]
async fn what_a_model_refuses_is_not_part_of_the_conversation() {
    let office = Office::new().await;
    let mut editor = office.connect();
    let session = editor.open("prude").await;
    for _ in 0..2 {
        assert_eq!(stop_reason(&editor.prompt(&session, "Do it").await), "refusal");
        assert_eq!(editor.updates().concat().replace("agent_message_chunk ", ""), "I will not.");
    }
    editor.call("session/load", json!({"sessionId": session, "cwd": "/", "mcpServers": []})).await;
    assert_eq!(editor.updates(), [""; 0]);
    let busy = editor.open("busy").await;
    assert_eq!(stop_reason(&editor.prompt(&busy, "Work").await), "max_turn_requests");
    editor.leave().await;
}

#[tokio::test]
async fn a_prompt_may_follow_a_cancellation_at_once() {
    let office = Office::new().await;
    let mut editor = office.connect();
    let session = editor.open("slow").await;
    let first = editor.start_prompt(&session, "One").await;
    editor.until(|message| message["params"]["update"]["status"] == "completed").await;
    editor.send(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})).await;
    let second = editor.start_prompt(&session, "Two").await;
    assert_eq!(stop_reason(&editor.response(first).await), "cancelled");
    assert_eq!(stop_reason(&editor.response(second).await), "end_turn");
    // The general way to cancel a request works too, and so does a cancellation right behind its prompt.
    for method in ["$/cancel_request", "session/cancel"] {
        let session = editor.open("slow").await;
        let prompt = editor.start_prompt(&session, "Three").await;
        let params = json!({"requestId": prompt, "sessionId": session});
        editor.send(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
        assert_eq!(stop_reason(&editor.response(prompt).await), "cancelled");
    }
    editor.leave().await;
}

#[tokio::test]
async fn the_end_of_the_editor_cancels_its_turns() {
    let office = Office::new().await;
    for signal in [false, true] {
        let mut editor = office.connect();
        let session = editor.open("slow").await;
        editor.start_prompt(&session, "Wait").await;
        editor.until(|message| message["params"]["update"]["status"] == "completed").await;
        if signal {
            editor.stop.cancel();
            tokio::time::timeout(Duration::from_secs(20), editor.server).await.unwrap().unwrap().unwrap();
        } else {
            editor.leave().await;
        }
        assert_eq!(office.state(&session).await, SessionState::Idle);
    }
}

#[tokio::test]
async fn an_approval_outlives_its_editor() {
    let office = Office::new().await;
    let mut editor = office.connect();
    let session = editor.open("clerk").await;
    editor.start_prompt(&session, "Pay both").await;
    editor.permission().await;
    editor.leave().await;
    assert_eq!((office.state(&session).await, office.paid()), (SessionState::Waiting, 0));
    // The next prompt asks again; cancelling it ends the run.
    let mut editor = office.connect();
    let opened = editor.call("session/resume", json!({"sessionId": session, "cwd": "/"})).await;
    assert_eq!(opened["result"]["modes"]["currentModeId"], "clerk");
    let prompt = editor.start_prompt(&session, "Go on").await;
    let request = editor.permission().await;
    editor.answer(&request, json!({"outcome": {"outcome": "cancelled"}})).await;
    let request = editor.permission().await;
    editor.answer(&request, allow()).await;
    assert_eq!(stop_reason(&editor.response(prompt).await), "cancelled");
    assert_eq!((office.state(&session).await, office.paid()), (SessionState::Idle, 0));
    assert_eq!(stop_reason(&editor.prompt(&session, "Hello?").await), "end_turn");
    editor.leave().await;
}

#[tokio::test]
async fn a_run_that_was_interrupted_is_finished_first() {
    let office = Office::new().await;
    let mut other = office.session("cut").with_agent("slow");
    let cancellation = CancellationToken::new();
    let cut = tokio::time::timeout(Duration::from_millis(600), other.say("One", &cancellation)).await;
    assert!(cut.is_err());
    other.wait_until_saved().await.unwrap();
    drop(other);
    assert_eq!(office.state("cut").await, SessionState::Running);
    let mut editor = office.connect();
    editor.call("session/load", json!({"sessionId": "cut", "cwd": "/", "mcpServers": []})).await;
    let replayed = editor.updates();
    assert_eq!(replayed[..2], ["user_message_chunk One", "agent_message_chunk One. "]);
    assert_eq!(stop_reason(&editor.prompt("cut", "Two").await), "end_turn");
    let updates = editor.updates().concat();
    assert_eq!(updates.replace("agent_message_chunk ", ""), "Late.Next.");
    editor.leave().await;
}

#[tokio::test]
async fn a_session_that_waits_for_another_client_is_an_error() {
    let office = Office::new().await;
    let mut other = office.session("painted").with_agent("clerk");
    let schema = json!({"type": "object", "properties": {"euros": {"type": "integer"}}});
    let tool = ClientTool { name: "pick".into(), description: "Picks".into(), schema };
    let script = json!([{"calls": [{"tool": "pick", "arguments": {}}]}]);
    std::fs::write(office.folder.path().join("clerk.json"), script.to_string()).unwrap();
    other.set_client(Some(ClientAdditions { tools: vec![tool], ..ClientAdditions::default() }));
    other.say("Pick", &CancellationToken::new()).await.unwrap();
    drop(other);
    let mut editor = office.connect();
    editor.call("session/resume", json!({"sessionId": "painted", "cwd": "/", "mcpServers": []})).await;
    let error = editor.prompt("painted", "Go on").await["error"].clone();
    assert_eq!(error["code"], -32600);
    assert_eq!(error["message"], "the session waits for a result of `pick`, a tool of another client");
    editor.leave().await;
}

#[tokio::test]
async fn lines_and_requests_are_bounded() {
    let mut office = Office::new().await;
    office.settings.limits.max_body = 1000;
    office.settings.limits.max_turns = 3;
    let mut editor = office.connect();
    editor.send(&json!("x".repeat(5000))).await;
    let error = editor.receive().await;
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!(null), &json!(-32600)));
    assert_eq!(error["error"]["message"], "the message has more than 1000 bytes");
    // Requests beyond the limit are refused, and prompts can still be answered.
    let mut prompts = Vec::new();
    for _ in 0..3 {
        let session = editor.open("clerk").await;
        prompts.push(editor.start_prompt(&session, "Pay").await);
    }
    let refused = editor.call("session/list", json!({})).await;
    assert_eq!(refused["error"]["message"], "too many requests are under way");
    let waiting: Vec<_> =
        editor.seen.drain(..).filter(|message| message["method"] == "session/request_permission").collect();
    for request in &waiting {
        editor.answer(request, allow()).await;
    }
    for _ in waiting.len()..6 {
        let request = editor.permission().await;
        editor.answer(&request, allow()).await;
    }
    let is_first = |message: &Json| message["id"] == prompts[0] && message.get("method").is_none();
    let response = editor.seen.iter().find(|message| is_first(message)).cloned();
    let response = match response {
        Some(response) => response,
        None => editor.until(is_first).await,
    };
    assert_eq!(stop_reason(&response), "end_turn");
    editor.leave().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_does_not_keep_the_server() {
    let office = Office::new().await;
    let mut editor = office.connect();
    let session = editor.open("slow").await;
    editor.start_prompt(&session, "Wait").await;
    for _ in 0..2000 {
        let line = b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"session/none\"}\n";
        let sent = tokio::time::timeout(Duration::from_millis(200), editor.writer.write_all(line)).await;
        if sent.is_err() {
            break;
        }
    }
    editor.stop.cancel();
    tokio::time::timeout(Duration::from_secs(20), editor.server).await.unwrap().unwrap().unwrap();
    assert_eq!(office.state(&session).await, SessionState::Idle);
}

#[tokio::test]
async fn sessions_are_listed_page_by_page() {
    let office = Office::new().await;
    for number in 0..60 {
        let id = SessionId::parse(&format!("s{number}")).unwrap();
        let new = store::NewSession::new(id, if number % 10 == 0 { "elsewhere" } else { "clerk" }, "Hi");
        office.store.create(new, number).await.unwrap();
    }
    let mut editor = office.connect();
    let first = editor.call("session/list", json!({"cwd": "/work"})).await["result"].clone();
    assert_eq!((first["sessions"].as_array().unwrap().len(), &first["nextCursor"]), (50, &json!("50")));
    let newest = json!({"sessionId": "s59", "cwd": "/work", "title": "Hi", "updatedAt": "1970-01-01T00:00:00.059Z"});
    assert_eq!(first["sessions"][0], newest);
    let second = editor.call("session/list", json!({"cursor": "50"})).await["result"].clone();
    assert_eq!((second["sessions"].as_array().unwrap().len(), second.get("nextCursor")), (4, None));
    let error = editor.call("session/list", json!({"cursor": "x"})).await;
    assert_eq!(error["error"]["message"], "`cursor`: is not from this agent");
    let hidden = editor.call("session/load", json!({"sessionId": "s10", "cwd": "/", "mcpServers": []})).await;
    assert_eq!(hidden["error"]["code"], -32002);
    editor.leave().await;
}

#[tokio::test]
async fn workflows_are_agents_of_editors() {
    let office = Office::new().await;
    let mut editor = office.connect();
    let session = editor.open("plain").await;
    assert_eq!(stop_reason(&editor.prompt(&session, "Go").await), "end_turn");
    let updates = editor.updates();
    assert!(updates.contains(&"tool_call_update completed".to_owned()), "the step is there: {updates:?}");
    assert_eq!(updates.last().map(String::as_str), Some("agent_message_chunk I have seen it."));
    editor.leave().await;
}

/// The protocol has no questions with a free answer, so the agent asks, and the next prompt answers.
#[tokio::test]
async fn a_prompt_answers_the_question_of_a_workflow() {
    let office = Office::new().await;
    let mut editor = office.connect();
    let session = editor.open("asking").await;
    assert_eq!(stop_reason(&editor.prompt(&session, "Go").await), "end_turn");
    assert_eq!(editor.updates().last().map(String::as_str), Some("agent_message_chunk How often? (seen)"));
    assert_eq!(office.state(&session).await, SessionState::Waiting);
    editor.leave().await;
    // After a restart, whoever opens the session sees the question.
    let mut editor = office.connect();
    editor.call("initialize", json!({"protocolVersion": 1})).await;
    editor.call("session/load", json!({"sessionId": session, "cwd": "/", "mcpServers": []})).await;
    assert_eq!(editor.updates().last().map(String::as_str), Some("agent_message_chunk How often? (seen)"));
    assert_eq!(stop_reason(&editor.prompt(&session, "often").await), "end_turn");
    let again = editor.updates();
    let again = again.last().unwrap();
    assert!(again.contains("The answer was not accepted") && again.ends_with("How often? (seen)"), "{again}");
    assert_eq!(office.state(&session).await, SessionState::Waiting);
    assert_eq!(stop_reason(&editor.prompt(&session, "3").await), "end_turn");
    assert_eq!(editor.updates().last().map(String::as_str), Some("agent_message_chunk It was 3."));
    assert_eq!(office.state(&session).await, SessionState::Idle);
    editor.leave().await;
}
