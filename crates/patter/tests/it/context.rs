//! Conversations that outgrow the window of their model.

use patter::drive::{Driver, Journal, RunEvent, RunEventKind, now_ms};
use patter::library::Layer;
use patter::message::context::estimate_tokens;
use patter::message::conversation::{Message, ToolCall, Usage};
use patter::message::request::{FinishReason, Reply, Request};
use patter::model::{DeltaSink, Model, ModelError, ModelResolver, ReplayMode, ReplayModel};
use patter::project::Environment;
use patter::project::Project;
use patter::provider::Provider;
use patter::run::{FailureKind, Run, RunOutcome};
use patter::session::{Log, LogEntry, Playback, Recording};
use patter::tool::{BoxFuture, CancellationToken, ToolResources, merge, standard::standard_library};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The window of the model, in tokens.
const WINDOW: u64 = 8000;

/// A model that refuses requests beyond its window, as providers do, and otherwise repeats what the user said.
#[derive(Default)]
struct Small {
    refused: AtomicUsize,
    summaries: AtomicUsize,
    longest: Mutex<u64>,
}

impl Model for Small {
    fn provider(&self) -> Provider {
        Provider::SCRIPTED
    }

    fn call<'a>(
        &'a self,
        request: &'a Request<'a>,
        _: Option<&'a DeltaSink<'a>>,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            // Its tokens are shorter than the estimate assumes.
            let tokens = estimate_tokens(request.messages) * 5 / 4 + request.instruction.len() as u64 / 4;
            if tokens > WINDOW {
                self.refused.fetch_add(1, Ordering::SeqCst);
                let message = format!("prompt is too long: {tokens} tokens > {WINDOW} maximum");
                return Err(ModelError::TooLong { message });
            }
            let mut longest = self.longest.lock().unwrap();
            *longest = tokens.max(*longest);
            assert_calls_have_results(request);
            let usage = Usage { input_tokens: tokens, output_tokens: 10, ..Usage::default() };
            let reply = |text: String, calls| Reply {
                text,
                calls,
                finish: FinishReason::Stop,
                usage,
                opaque: None,
                thought: String::new(),
            };
            if request.instruction.starts_with("Summarize the beginning") {
                self.summaries.fetch_add(1, Ordering::SeqCst);
                return Ok(reply("They talked about numbers.".to_owned(), Vec::new()));
            }
            let last = request.messages.last().unwrap();
            Ok(match last {
                Message::User { text, .. } if text.starts_with("call") => {
                    let arguments = serde_json::json!({"text": "x".repeat(3000)}).to_string();
                    let id = format!("c{}", text.trim_start_matches("call "));
                    reply(String::new(), vec![ToolCall { id, tool: "text/count".into(), arguments }])
                }
                Message::User { text, .. } => reply(format!("You said {text}"), Vec::new()),
                _ => reply("Done.".to_owned(), Vec::new()),
            })
        })
    }
}

/// Asserts that each call is followed by its result, and each result preceded by its call.
fn assert_calls_have_results(request: &Request<'_>) {
    let mut open: Vec<&str> = Vec::new();
    for message in request.messages {
        match message {
            Message::Tool { call_id, .. } => assert_eq!(open.remove(0), call_id),
            _ => {
                assert!(open.is_empty(), "{open:?}");
                open.extend(message.calls().iter().map(|call| call.id.as_str()));
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
    assert!(!request.messages.iter().any(|message| matches!(message, Message::Compacted { .. })));
}

struct Setup {
    model: Arc<Small>,
    driver: Driver,
    events: Arc<Mutex<Vec<RunEvent>>>,
    journal: Arc<super::recorder::Recorded>,
}

impl Setup {
    fn new(properties: &str) -> Self {
        let model = Arc::new(Small::default());
        let shared: Arc<dyn Model> = model.clone();
        Self::with_models(properties, model, Arc::new(move |_| Ok(Arc::clone(&shared))))
    }

    fn with_models(properties: &str, model: Arc<Small>, models: ModelResolver) -> Self {
        let agent =
            format!("[a:Agent {{instruction: 'Count with `text/count`.', model: 'demo'{properties}}} | `text/count`]");
        let resources = ToolResources::new(".", Environment::default());
        let library = merge([(Layer::Internal, standard_library(&resources))]).unwrap();
        let events = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&events);
        let journal = Arc::new(super::recorder::Recorded::default());
        let driver = Driver::new(Arc::new(Project::read([("a.gram", agent)])), library.into(), models)
            .with_journal(Arc::clone(&journal) as Arc<dyn Journal>)
            .with_listener(move |event| seen.lock().unwrap().push(event.clone()));
        Self { model, driver, events, journal }
    }

    async fn say(&self, conversation: impl Into<patter::message::conversation::Conversation>, text: &str) -> Run {
        let compiled = self.driver.compile(&self.driver.project().find_agent("a").unwrap()).unwrap();
        let run = Run::start(compiled.spec().clone(), conversation, text, now_ms()).unwrap();
        self.driver.drive(&compiled, run, &CancellationToken::new()).await
    }

    fn compactions(&self) -> usize {
        let is_compaction = |event: &&RunEvent| matches!(event.kind, RunEventKind::Compacted { .. });
        self.events.lock().unwrap().iter().filter(is_compaction).count()
    }
}

/// Talks for a number of turns, and returns the last run.
async fn talk(setup: &Setup, turns: usize) -> Run {
    let mut run = setup.say(Vec::new(), "number 0").await;
    for turn in 1..turns {
        let text = match turn % 10 {
            0 => format!("call {turn}"),
            _ => format!("number {turn}: {}", "and so on, ".repeat(12)),
        };
        run = setup.say(run.into_conversation(), &text).await;
        assert!(matches!(run.outcome(), Some(RunOutcome::Answer { .. })), "turn {turn}: {:?}", run.outcome());
    }
    run
}

#[tokio::test]
async fn a_session_of_2000_turns_keeps_answering() {
    for (properties, summarizes) in
        [(", contextWindow: 8000", true), ("", true), (", contextWindow: 8000, context: 'trim'", false)]
    {
        let setup = Setup::new(properties);
        let run = talk(&setup, 2000).await;
        // Everything is kept.
        let said = run.conversation().iter().filter(|message| matches!(message, Message::User { .. })).count();
        assert_eq!(said, 2000);
        assert!(setup.compactions() > 20, "{}", setup.compactions());
        assert_eq!(setup.model.summaries.load(Ordering::SeqCst) > 0, summarizes, "{properties}");
        let refused = setup.model.refused.load(Ordering::SeqCst);
        // With a known window, the count of the provider corrects the estimate before it refuses anything.
        assert_eq!(refused == 0, !properties.is_empty(), "{properties}: {refused}");
        assert!(*setup.model.longest.lock().unwrap() > WINDOW / 2, "what fits is sent");
    }
}

#[tokio::test]
async fn compactions_are_resumed_after_every_step_and_replayed() {
    let setup = Setup::new(", contextWindow: 8000");
    let mut conversation = talk(&setup, 3).await.into_conversation();
    let mut before = setup.journal.entries();
    while setup.compactions() == 0 {
        before = setup.journal.entries();
        conversation = setup.say(conversation, &"a long story, ".repeat(90)).await.into_conversation();
    }
    let all = setup.journal.entries();
    let expected = Log::read(all.iter().map(|entry| serde_json::to_string(entry).unwrap())).unwrap();
    assert_eq!(*expected.conversation(), conversation);
    // The process may end after any entry of the turn.
    for end in before.len() + 1..all.len() {
        let texts = all[..end].iter().map(|entry| serde_json::to_string(entry).unwrap());
        let log = Log::read(texts).unwrap();
        let open = log.open_run().unwrap().clone();
        let again = Setup::new(", contextWindow: 8000");
        let compiled = again.driver.compile(&again.driver.project().find_agent("a").unwrap()).unwrap();
        let run = again.driver.resume(&compiled, open.clone(), &CancellationToken::new()).await;
        assert_eq!(*run.conversation(), conversation, "{end}");
        // A run that is saved as a whole resumes too.
        let saved = Run::load(&serde_json::to_string(&open).unwrap()).unwrap();
        assert_eq!(saved, open);
    }
    // Before the compaction, all messages are there.
    let mut rewound = expected.clone();
    let begin = expected.turns().last().unwrap().begin;
    rewound.apply(LogEntry::Rewound { messages: begin }).unwrap();
    assert!(!rewound.conversation().iter().any(|message| matches!(message, Message::Compacted { .. })));

    // The recording plays the same events, and answers the same requests.
    let mut playback = Playback::default();
    let played: Vec<_> = all.iter().cloned().flat_map(|entry| playback.play(entry).unwrap()).collect();
    assert!(
        played
            .iter()
            .any(|event| matches!(&event.kind, RunEventKind::Compacted { summary, .. } if !summary.is_empty()))
    );
    let lines: Vec<_> = all.iter().map(|entry| serde_json::to_string(entry).unwrap()).collect();
    let recording = Recording::parse(&format!("{{\"patter_recording\": 1}}\n{}\n", lines.join("\n"))).unwrap();
    let replayed: Arc<dyn Model> = Arc::new(ReplayModel::new(recording, ReplayMode::Strict).unwrap());
    let again =
        Setup::with_models(", contextWindow: 8000", Arc::default(), Arc::new(move |_| Ok(Arc::clone(&replayed))));
    let mut again_conversation = patter::message::conversation::Conversation::default();
    for turn in expected.turns() {
        let Some(Message::User { text, .. }) = conversation.get(turn.begin) else { panic!() };
        let run = again.say(again_conversation, text).await;
        assert!(matches!(run.outcome(), Some(RunOutcome::Answer { .. })), "{:?}", run.outcome());
        again_conversation = run.into_conversation();
    }
    assert_eq!(again_conversation, conversation);
}

#[tokio::test]
async fn results_are_shortened_before_words_are_left_out() {
    let setup = Setup::new(", contextWindow: 8000");
    let call = ToolCall { id: "1".into(), tool: "text/count".into(), arguments: "{}".into() };
    let outcome = patter::message::conversation::ToolOutcome::Value { value: "y".repeat(40_000).into() };
    let messages = vec![
        Message::user("Read it."),
        Message::assistant("", vec![call]),
        Message::Tool { call_id: "1".into(), tool: "text/count".into(), outcome },
        Message::assistant("I read it.", vec![]),
    ];
    let run = setup.say(messages, "And now?").await;
    assert_eq!(run.response().content, "You said And now?");
    assert_eq!((setup.compactions(), setup.model.summaries.load(Ordering::SeqCst)), (1, 0));
    let sent = run.sent_messages();
    assert_eq!(sent.first(), Some(&Message::user("Read it.")));
    let Some(Message::Tool { outcome, .. }) = sent.get(2) else { panic!() };
    assert!(outcome.text().ends_with("(shortened: the whole result has 40000 characters)"));
}

#[tokio::test]
async fn what_cannot_fit_is_an_error() {
    for properties in ["", ", contextWindow: 8000"] {
        let setup = Setup::new(properties);
        let run = setup.say(Vec::new(), &"word ".repeat(20_000)).await;
        let Some(RunOutcome::Failed(failure)) = run.outcome() else { panic!("{:?}", run.outcome()) };
        assert_eq!(failure.kind, FailureKind::Model);
        let expected = "the conversation is too long for the model: prompt is too long:";
        assert!(failure.message.starts_with(expected), "{}", failure.message);
        assert!(failure.message.ends_with("; start a new session, or send less"), "{}", failure.message);
    }
    let setup = Setup::new(", contextWindow: 8000, context: 'error'");
    let run = setup.say(Vec::new(), &"word ".repeat(20_000)).await;
    let Some(RunOutcome::Failed(failure)) = run.outcome() else { panic!("{:?}", run.outcome()) };
    assert!(failure.message.contains("the request has about 25"), "{}", failure.message);
    assert_eq!(setup.model.refused.load(Ordering::SeqCst), 0, "nothing is sent");
}
