//! Runs that wait for somebody: they are suspended, and resume in another process.

use crate::store::{TestStore, id};
use patter::drive::{ApprovalAnswer, Approver};
use patter::live::LiveProject;
use patter::message::conversation::ToolOutcome;
use patter::project::Environment;
use patter::run::{ClientAdditions, ClientTool, PendingCall, Run, RunOutcome};
use patter::session::{AgentSelection, CallAnswer, Log, RunPath, Session, SessionError, WaitingFor};
use patter::store::{SessionState, Store};
use patter::tool::{BoxFuture, CancellationToken, Tool};
use serde_json::{Value as Json, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const AGENTS: &str = "
[clerk:Agent {instruction: 'x', model: 'scripted/FOLDER/clerk.json', ask: ['pay']} | pay, look]
[boss:Agent {instruction: 'x', model: 'scripted/FOLDER/boss.json'} | clerk, look]
[painter:Agent {instruction: 'Paint.', model: 'scripted/FOLDER/painter.json'} | look]
";

/// Decides nothing.
struct Nobody;

impl Approver for Nobody {
    fn ask<'a>(&'a self, _: &'a str, _: &'a PendingCall, _: &'a str) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async { ApprovalAnswer::Later })
    }
}

/// A folder with agents, whose tools count their calls.
struct Shop {
    folder: tempfile::TempDir,
    store: TestStore,
    payments: Arc<AtomicUsize>,
    looks: Arc<AtomicUsize>,
}

impl Shop {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let call = |tool: &str, arguments: Json| json!({"tool": tool, "arguments": arguments});
        let pay = call("pay", json!({"euros": 5}));
        let scripts = [
            ("clerk.json", json!([{"calls": [pay, call("look", json!({})), pay]}, {"text": "Paid."}])),
            (
                "boss.json",
                json!([
                    {"calls": [call("clerk", json!({"input": "Pay"})), call("look", json!({}))]},
                    {"text": "Done.", "expect": {"results": ["Paid.", "seen"]}},
                ]),
            ),
            (
                "painter.json",
                json!([
                    {"calls": [call("pickColor", json!({"of": "door"})), call("look", json!({}))],
                     "expect": {"tools": ["pickColor"], "instruction": ["Paint.", "The door is old."]}},
                    {"text": "Painted.", "expect": {"results": ["red", "seen"], "tools": ["pickColor"]}},
                ]),
            ),
        ];
        for (name, script) in scripts {
            std::fs::write(folder.path().join(name), script.to_string()).unwrap();
        }
        let agents = AGENTS.replace("FOLDER", &folder.path().display().to_string());
        std::fs::write(folder.path().join("a.gram"), agents).unwrap();
        let store = TestStore::sqlite();
        Self { folder, store, payments: Arc::default(), looks: Arc::default() }
    }

    async fn project(&self) -> Arc<LiveProject> {
        let tool = |name, signature, calls: &Arc<AtomicUsize>, result: &'static str| {
            let calls = Arc::clone(calls);
            let tool = Tool::native(name, "Does it", signature, move |_, _| {
                calls.fetch_add(1, Ordering::SeqCst);
                async move { Ok(json!(result)) }
            });
            tool.unwrap()
        };
        let pay = tool("pay", "(euros::Integer)==>(::Text)", &self.payments, "paid");
        let look = tool("look", "()==>(::Text)", &self.looks, "seen");
        let path: &Path = self.folder.path();
        let project = LiveProject::open(path.join("a.gram")).with_tools([pay, look]);
        Arc::new(project.with_environment(Environment::default()).read().await.unwrap())
    }

    fn configure(session: Session, agent: &str) -> Session {
        let source = AgentSelection { agent: Some(agent.to_owned()), ..AgentSelection::default() };
        session.with_source(source).with_driver(|driver| driver.with_approver(Nobody))
    }

    async fn create(&self, agent: &str) -> Session {
        let store = self.store.open().await;
        Self::configure(Session::create(self.project().await, store, id("s")), agent)
    }

    /// Opens the session as another process would.
    async fn reopen(&self, agent: &str) -> Session {
        let store = self.store.open().await;
        Self::configure(Session::open(self.project().await, store, &id("s")).await.unwrap(), agent)
    }

    async fn state(&self) -> SessionState {
        let store: Arc<dyn Store> = self.store.open().await;
        store.read(&id("s")).await.unwrap().summary.state
    }

    fn counts(&self) -> (usize, usize) {
        (self.payments.load(Ordering::SeqCst), self.looks.load(Ordering::SeqCst))
    }
}

/// Returns what a session waits for: run, call and kind.
fn waiting(session: &Session) -> Vec<(RunPath, String, &'static str)> {
    let kind = |waiting_for: WaitingFor<'_>| match waiting_for {
        WaitingFor::Approval(_) => "approval",
        WaitingFor::Client => "client",
    };
    session.read_log(|log| {
        let calls = log.waiting_calls().into_iter();
        calls.map(|call| (call.run, call.call.tool.clone(), kind(call.waiting_for))).collect()
    })
}

fn call_ids(session: &Session) -> Vec<(RunPath, String)> {
    session.read_log(|log| log.waiting_calls().into_iter().map(|call| (call.run, call.call.id.clone())).collect())
}

fn answer_of(run: &Run) -> Option<&str> {
    match run.outcome() {
        Some(RunOutcome::Answer { text, .. }) => Some(text),
        _ => None,
    }
}

#[tokio::test]
async fn approvals_wait_in_the_store() {
    let shop = Shop::new();
    let stop = CancellationToken::new();
    let mut session = shop.create("clerk").await;
    let run = session.say("Pay", &stop).await.unwrap();
    assert_eq!(run.outcome(), None);
    assert_eq!(shop.counts(), (0, 1), "the call that needs no approval was made");
    drop(session);
    assert_eq!(shop.state().await, SessionState::Waiting);
    let listed = shop.store.open().await.list_in_state(Some(SessionState::Waiting), 9).await.unwrap();
    assert_eq!(listed.len(), 1);

    // Resuming without an answer changes nothing.
    let mut session = shop.reopen("clerk").await;
    assert_eq!(session.resume(&stop).await.unwrap().outcome(), None);
    let expected = [(vec![], "pay".to_owned(), "approval"), (vec![], "pay".to_owned(), "approval")];
    assert_eq!(waiting(&session), expected);
    let [first, second] = call_ids(&session).try_into().unwrap();
    let wrong = session.answer(&vec![], "nothing", CallAnswer::Approve).await.unwrap_err();
    assert_eq!(wrong.to_string(), "the call `nothing` does not wait for this answer");
    let result = CallAnswer::Result(ToolOutcome::Value { value: json!("paid") });
    assert!(matches!(session.answer(&first.0, &first.1, result).await, Err(SessionError::NotWaiting(_))));
    session.answer(&first.0, &first.1, CallAnswer::Approve).await.unwrap();
    // One of two is decided: the call is made, and the run waits for the other.
    assert_eq!(session.resume(&stop).await.unwrap().outcome(), None);
    assert_eq!(shop.counts(), (1, 1));
    drop(session);
    assert_eq!(shop.state().await, SessionState::Waiting);

    let mut session = shop.reopen("clerk").await;
    session.answer(&second.0, &second.1, CallAnswer::Refuse("too much".to_owned())).await.unwrap();
    assert!(session.answer(&second.0, &second.1, CallAnswer::Approve).await.is_err(), "it is decided once");
    assert_eq!(answer_of(&session.resume(&stop).await.unwrap()), Some("Paid."));
    assert_eq!(shop.counts(), (1, 1));
    drop(session);
    assert_eq!(shop.state().await, SessionState::Idle);
}

#[tokio::test]
async fn approvals_of_called_agents_wait_too() {
    let shop = Shop::new();
    let stop = CancellationToken::new();
    let mut session = shop.create("boss").await;
    assert_eq!(session.say("Go", &stop).await.unwrap().outcome(), None);
    assert_eq!(shop.counts(), (0, 2));
    drop(session);
    assert_eq!(shop.state().await, SessionState::Waiting);
    for round in 0..2 {
        let mut session = shop.reopen("boss").await;
        let (path, call) = call_ids(&session)[0].clone();
        assert_eq!(path.len(), 1);
        session.answer(&path, &call, CallAnswer::Approve).await.unwrap();
        let run = session.resume(&stop).await.unwrap();
        assert_eq!(answer_of(&run), [None, Some("Done.")][round]);
    }
    assert_eq!(shop.counts(), (2, 2));
    assert_eq!(shop.state().await, SessionState::Idle);
}

#[tokio::test]
async fn clients_execute_their_own_tools() {
    let shop = Shop::new();
    let stop = CancellationToken::new();
    let mut session = shop.create("painter").await;
    let schema = json!({"type": "object", "properties": {"of": {"type": "string"}}});
    let tool = ClientTool { name: "pickColor".into(), description: "Picks".into(), schema };
    let client = ClientAdditions { tools: vec![tool.clone()], context: "The door is old.".into() };
    session.set_client(Some(client));
    assert_eq!(session.say("Paint the door", &stop).await.unwrap().outcome(), None);
    assert_eq!(waiting(&session), [(vec![], "pickColor".to_owned(), "client")]);
    drop(session);
    assert_eq!(shop.state().await, SessionState::Waiting);
    // Another process knows the tools of the client from the log.
    let mut session = shop.reopen("painter").await;
    let (path, call) = call_ids(&session)[0].clone();
    assert!(session.answer(&path, &call, CallAnswer::Approve).await.is_err());
    session.answer(&path, &call, CallAnswer::Result(ToolOutcome::Value { value: json!("red") })).await.unwrap();
    assert_eq!(answer_of(&session.resume(&stop).await.unwrap()), Some("Painted."));
    assert_eq!(shop.counts(), (0, 1));

    for (name, schema, expected) in [
        ("look", json!({"type": "object"}), "the tool `look` of the client has the name of another tool"),
        ("a b", json!({"type": "object"}), "the tool `a b` of the client cannot be offered to a model"),
        ("ok", json!({"type": "string"}), "the schema of the tool `ok` of the client is not that of an object"),
    ] {
        let tool = ClientTool { name: name.into(), schema, ..tool.clone() };
        session.set_client(Some(ClientAdditions { tools: vec![tool], context: String::new() }));
        let error = session.say("Paint", &stop).await.unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[tokio::test]
async fn waiting_runs_can_be_cancelled() {
    let shop = Shop::new();
    let stop = CancellationToken::new();
    let mut session = shop.create("boss").await;
    session.say("Go", &stop).await.unwrap();
    session.abandon().await.unwrap();
    assert_eq!(waiting(&session), []);
    drop(session);
    assert_eq!(shop.state().await, SessionState::Idle);
}

#[tokio::test]
async fn runs_take_one_step_at_a_time() {
    let shop = Shop::new();
    let stop = CancellationToken::new();
    let stepwise = |session: Session| session.with_driver(|driver| driver.with_approver(Nobody).with_single_steps());
    let mut session = stepwise(shop.create("boss").await);
    // The boss calls the clerk and looks; the clerk looks, and asks for two payments.
    assert_eq!(session.say("Go", &stop).await.unwrap().outcome(), None);
    assert_eq!(shop.counts(), (0, 0), "the model replied, and no call was made");
    let mut counts = Vec::new();
    let mut entries = session.read_log(Log::entry_count);
    drop(session);
    loop {
        // Each step is taken by another process.
        let mut session = stepwise(shop.reopen("boss").await);
        let run = session.resume(&stop).await.unwrap();
        counts.push(shop.counts());
        if let Some((path, call)) = call_ids(&session).first().filter(|_| session.read_log(Log::is_waiting)) {
            session.answer(path, call, CallAnswer::Approve).await.unwrap();
        }
        let now = session.read_log(Log::entry_count);
        assert!(now > entries, "each step is saved");
        entries = now;
        if run.outcome().is_some() {
            assert_eq!(answer_of(&run), Some("Done."));
            break;
        }
    }
    // The look of the boss and a reply of the clerk; the look of the clerk; a payment; another; a reply of each.
    assert_eq!(counts, [(0, 1), (0, 2), (1, 2), (2, 2), (2, 2), (2, 2)]);
    assert_eq!(shop.state().await, SessionState::Idle);
}
