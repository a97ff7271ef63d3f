//! Questions that servers ask during a call: to the person, and to the model of the agent.

use super::{installed, node};
use patter::drive::{ApprovalAnswer, Approver, Driver, Tally, now_ms};
use patter::library::Layer;
use patter::model::{Model, ScriptedModel};
use patter::project::Project;
use patter::provider::price::Prices;
use patter::run::{FailureKind, Limits, PendingCall, Run, RunOutcome};
use patter::tool::mcp::McpServer;
use patter::tool::{
    Answer, BoxFuture, CallHost, CancellationToken, Question, QuestionKind, Respondent, SharedState, ToolContext,
    ToolFailure, Workspace, merge,
};
use serde_json::{Map, Value as Json, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Gives the same answer to every question, after a pause.
#[derive(Clone)]
struct Person {
    answer: Answer,
    pause: Duration,
    questions: Arc<Mutex<Vec<Question>>>,
}

impl Person {
    fn new(answer: Answer) -> Self {
        Self { answer, pause: Duration::ZERO, questions: Arc::default() }
    }

    async fn reply(&self, question: &Question) -> Answer {
        self.questions.lock().unwrap().push(question.clone());
        tokio::time::sleep(self.pause).await;
        self.answer.clone()
    }
}

impl Respondent for Person {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(self.reply(question))
    }
}

impl Approver for Person {
    fn ask<'a>(&'a self, _: &'a str, _: &'a PendingCall, _: &'a str) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async { ApprovalAnswer::Approve })
    }

    fn answer<'a>(&'a self, _: &'a str, question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(self.reply(question))
    }
}

/// Calls a tool; `person` watches the call.
async fn call(server: &McpServer, tool: &str, arguments: Json, person: Option<&Person>) -> Result<Json, ToolFailure> {
    let mut context = ToolContext::new("call");
    if let Some(person) = person {
        context = context.with_state(SharedState::default().with(CallHost(Arc::new(person.clone()))));
    }
    super::tool(server, tool).await.implementation.call(arguments, &context).await
}

#[tokio::test]
async fn servers_may_not_ask_by_default() {
    let Some(program) = installed("server-everything") else { return };
    let names: Vec<_> =
        node(&program, "").tools().await.unwrap().tools.iter().map(|tool| tool.name().to_owned()).collect();
    assert!(names.contains(&"echo".to_owned()));
    // The server offers these only to clients that answer.
    assert!(!names.iter().any(|name| name.contains("elicitation") || name.contains("sampling")), "{names:?}");
}

#[tokio::test]
async fn a_person_fills_in_a_form() {
    let Some(program) = installed("server-everything") else { return };
    let server = node(&program, "elicitation = true\ntimeout = '2s'");
    let mut person = Person::new(Answer::Accept(Map::from_iter([("name".to_owned(), json!("Ada"))])));
    // The time that a person takes is not the server's.
    person.pause = Duration::from_millis(2500);
    let result = call(&server, "trigger-elicitation-request", json!({}), Some(&person)).await.unwrap().to_string();
    assert!(result.contains("Name: Ada") && result.contains("dark and stormy"), "{result}");
    let questions = person.questions.lock().unwrap().clone();
    assert_eq!((questions.len(), questions[0].asker.as_str()), (1, "the MCP server `demo`"));
    let QuestionKind::Form(fields) = &questions[0].kind else { panic!("{questions:?}") };
    insta::assert_snapshot!(
        fields
            .iter()
            .map(|field| {
                let default = field.default.as_ref().map_or_else(String::new, |value| format!(" = {value}"));
                format!("{}{}: {}{default}\n", field.name, if field.required { "!" } else { "" }, field.kind.expected())
            })
            .collect::<String>()
    );

    for (answer, expected) in [(Answer::Decline, "declined"), (Answer::Cancel, "cancelled")] {
        let result = call(&server, "trigger-elicitation-request", json!({}), Some(&Person::new(answer))).await.unwrap();
        assert!(result.to_string().contains(expected), "{result}");
    }
    // Nobody can be asked.
    let result = call(&server, "trigger-elicitation-request", json!({}), None).await.unwrap();
    assert!(result.to_string().contains("declined"), "{result}");
}

#[tokio::test]
async fn a_person_opens_a_page() {
    let Some(program) = installed("server-everything") else { return };
    let server = node(&program, "elicitation = true");
    let person = Person::new(Answer::Accept(Map::new()));
    let page = json!({"url": "https://example.com/connect", "message": "Connect your account"});
    let result = call(&server, "trigger-url-elicitation", page, Some(&person)).await.unwrap();
    assert!(result.to_string().contains("accept"), "{result}");
    let kind = person.questions.lock().unwrap()[0].kind.clone();
    assert_eq!(kind, QuestionKind::Url("https://example.com/connect".to_owned()));
    // Other pages are not shown to the person at all.
    for url in ["http://example.com/", "file:///etc/passwd", "https://user:pw@example.com/"] {
        let page = json!({"url": url, "message": "Connect your account"});
        let _ = call(&server, "trigger-url-elicitation", page, Some(&person)).await;
        assert_eq!(person.questions.lock().unwrap().len(), 1, "{url}");
    }
}

/// A call may fail because a person has to do something first, with error -32042.
#[tokio::test]
async fn a_person_opens_a_page_before_a_call() {
    let Some(program) = installed("server-everything") else { return };
    let server = node(&program, "elicitation = true");
    let arguments =
        |page: &str| json!({"url": format!("https://example.com/{page}"), "message": "Connect", "errorPath": true});
    let person = Person::new(Answer::Accept(Map::new()));
    let result = call(&server, "trigger-url-elicitation", arguments("a"), Some(&person)).await.unwrap();
    assert!(result.to_string().contains("accept"), "{result}");
    let kinds: Vec<_> = person.questions.lock().unwrap().iter().map(|question| question.kind.clone()).collect();
    let url = |url: &str| QuestionKind::Url(url.to_owned());
    let expected = [url("https://modelcontextprotocol.io/"), QuestionKind::Done, url("https://example.com/a")];
    assert_eq!(kinds, expected);

    for person in [Some(Person::new(Answer::Decline)), None] {
        let failure = call(&server, "trigger-url-elicitation", arguments("b"), person.as_ref()).await.unwrap_err();
        let expected = "the MCP server `demo` requires that a person opens a page before this call";
        assert_eq!(failure.message(), expected);
        assert_eq!(failure.detail(), Some("open https://modelcontextprotocol.io/, then make the call again"));
        // The server takes the next call for the second attempt.
        let _ = call(&server, "trigger-url-elicitation", arguments("b"), None).await;
    }
}

/// Runs an agent that makes the server sample, and returns the run with the results of its calls.
async fn sampled(server: &McpServer, limit: fn(&mut Limits), replies: Json, person: Person) -> (Run, Vec<String>) {
    let agent =
        "[asker:Agent {instruction: 'Use the tool.', model: 'OpenAI/gpt-4o-mini'} | `trigger-sampling-request`]";
    let model: Arc<dyn Model> = Arc::new(ScriptedModel::parse("script", &replies.to_string()).unwrap());
    let tools = server.tools().await.unwrap().tools;
    let workspace = Workspace::builder().toolbox("demo", |toolbox| toolbox.tools(tools)).build().unwrap();
    let library = merge([(Layer::Project, workspace)]).unwrap();
    let project = Arc::new(Project::read([("a.gram", agent)]));
    let driver = Driver::new(project, library.into(), Arc::new(move |_| Ok(Arc::clone(&model))));
    let tally = Arc::new(Tally::new(Prices::builtin()));
    let counted = Arc::clone(&tally);
    let driver = driver.with_approver(person).with_listener(move |event| counted.record(event));
    let compiled = driver.compile(&driver.project().find_agent("asker").unwrap()).unwrap();
    let mut spec = compiled.spec().clone();
    limit(&mut spec.limits);
    let run = Run::start(spec, Vec::new(), "Go", now_ms()).unwrap();
    let run = driver.drive(&compiled, run, &CancellationToken::new()).await;
    // What the server asked costs as much as what the agent asked.
    assert_eq!(tally.usage(), run.usage());
    assert_eq!(tally.cost(), Prices::builtin().cost(compiled.model(), run.usage()));
    let results = run.conversation().iter().filter_map(|message| match message {
        patter::message::conversation::Message::Tool { outcome, .. } => Some(outcome.text()),
        _ => None,
    });
    let results = results.collect();
    (run, results)
}

#[tokio::test]
async fn a_server_asks_the_model_of_the_agent() {
    let Some(program) = installed("server-everything") else { return };
    let server = node(&program, "sampling = true");
    // The script replies by the number of messages, so that the first reply is also the one to the server.
    let arguments = json!({"prompt": "a riddle", "maxTokens": 50});
    let script = json!([
        {"text": "a towel", "calls": [{"tool": "trigger-sampling-request", "arguments": arguments}],
         "usage": {"inputTokens": 10, "outputTokens": 1}},
        {"text": "done", "usage": {"inputTokens": 20, "outputTokens": 2}},
    ]);
    let agreeing = Person::new(Answer::Accept(Map::new()));
    let (run, results) = sampled(&server, |_| {}, script.clone(), agreeing.clone()).await;
    assert!(results[0].contains("a towel") && results[0].contains("gpt-4o-mini"), "{results:?}");
    // The tokens count as those of the run.
    assert_eq!((run.usage().input_tokens, run.usage().output_tokens), (40, 4));
    assert_eq!(run.model_calls(), 3);
    let question = agreeing.questions.lock().unwrap()[0].clone();
    assert_eq!(question.kind, QuestionKind::Sampling { max_tokens: 50 });
    assert!(question.message.contains("You are a helpful test server.") && question.message.contains("a riddle"));

    // Nobody agrees.
    let (_, results) = sampled(&server, |_| {}, script.clone(), Person::new(Answer::Decline)).await;
    assert!(results[0].contains("the person did not agree"), "{results:?}");
    // The run has used up its model calls or its tokens.
    let (_, results) = sampled(&server, |limits| limits.max_model_calls = 1, script.clone(), agreeing.clone()).await;
    assert!(results[0].contains("the run may call its model at most 1 times"), "{results:?}");
    // What the server asked is one of the calls, so there is none left for the answer.
    let (run, _) = sampled(&server, |limits| limits.max_model_calls = 2, script.clone(), agreeing.clone()).await;
    assert_eq!(run.model_calls(), 2);
    assert!(matches!(run.outcome(), Some(RunOutcome::Failed(failure)) if failure.kind == FailureKind::ModelCalls));
    let (_, results) = sampled(&server, |limits| limits.max_tokens = Some(11), script, agreeing).await;
    assert!(results[0].contains("the run has used up its tokens"), "{results:?}");

    // Without an agent, nobody knows which model to ask.
    let person = Person::new(Answer::Accept(Map::new()));
    let failure = self::call(&server, "trigger-sampling-request", json!({"prompt": "x"}), Some(&person)).await;
    assert!(format!("{failure:?}").contains("there is no agent whose model could be called"), "{failure:?}");
}
