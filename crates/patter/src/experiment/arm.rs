//! Arms: agents under test.

use super::recordings::{RecordingJournal, ReplySource};
use super::setup::setup_hash;
use crate::drive::{Driver, StreamedReplies, Tally, milliseconds, now_ms};
use crate::tool::CancellationToken;
use crate::trace::TrialTracer;
use patter_core::case::Case;
use patter_core::compile::CompiledAgent;
use patter_core::experiment::ArmInfo;
use patter_core::message::conversation::{Conversation, Usage};
use patter_core::message::request::FinishReason;
use patter_core::provider::price::{Cost, Prices};
use patter_core::run::{FailureKind, Invocation, Limits, Run, RunFailure, RunOutcome, RunSpec};
use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// An agent under test, with its tools and model.
#[derive(Clone)]
pub struct Arm {
    name: String,
    file: String,
    description: String,
    driver: Driver,
    compiled: CompiledAgent,
    spec: RunSpec,
    prices: Prices,
    replies: Option<ReplySource>,
    /// The folder for recordings of runs.
    recordings: Option<PathBuf>,
    /// What else decides what the arm does.
    setup: Vec<String>,
}

/// The result of one run of a case, before its checks.
pub(super) struct TrialRun {
    pub(super) at_ms: u64,
    pub(super) content: String,
    pub(super) value: Option<Json>,
    pub(super) failure: Option<RunFailure>,
    pub(super) conversation: Conversation,
    pub(super) tools: Vec<Invocation>,
    pub(super) latency_ms: u64,
    pub(super) usage: Usage,
    pub(super) cost: Option<Cost>,
    pub(super) model_calls: u32,
}

impl Arm {
    /// Returns an arm with a name.
    pub fn new(name: &str, driver: Driver, compiled: CompiledAgent, prices: Prices) -> Self {
        let spec = compiled.spec().clone();
        Self {
            name: name.to_owned(),
            file: String::new(),
            description: String::new(),
            driver,
            compiled,
            spec,
            prices,
            replies: None,
            recordings: None,
            setup: Vec::new(),
        }
    }

    /// Sets the file of the agent, and how the arm was specified.
    #[must_use]
    pub fn with_description(mut self, file: &str, description: &str) -> Self {
        self.file = file.to_owned();
        self.description = description.to_owned();
        self
    }

    /// Adds a text to what defines the arm, for what it cannot know itself: how approvals are given, for example. An
    /// experiment does not resume with another one.
    #[must_use]
    pub fn with_setup(mut self, text: String) -> Self {
        self.setup.push(text);
        self
    }

    /// Changes the limits of runs.
    #[must_use]
    pub fn with_limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.spec.limits);
        self
    }

    /// Answers from recordings instead of the models.
    #[must_use]
    pub fn with_replies(mut self, replies: ReplySource) -> Self {
        self.replies = Some(replies);
        self
    }

    /// Records each run to a file in a subfolder named after the arm.
    #[must_use]
    pub fn with_recordings(mut self, folder: &Path) -> Self {
        self.recordings = Some(folder.join(&self.name));
        self
    }

    /// Returns the driver of its runs.
    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a description of the arm.
    pub fn info(&self) -> ArmInfo {
        ArmInfo {
            name: self.name.clone(),
            agent: self.compiled.name().to_owned(),
            agent_hash: self.spec.hash.clone(),
            bindings_hash: self.compiled.bindings_hash().to_owned(),
            model: self.compiled.model_name(),
            limits: self.spec.limits.clone(),
            setup_hash: setup_hash(&self.driver, &self.compiled, &self.setup),
            file: self.file.clone(),
            description: self.description.clone(),
        }
    }

    /// Runs a case: sends the messages of the user one after the other. Returns `None` if it is cancelled.
    pub(super) async fn run(
        &self,
        case: &Case,
        repeat: u32,
        tracer: Option<&TrialTracer>,
        cancellation: &CancellationToken,
    ) -> Option<TrialRun> {
        let tally = Arc::new(Tally::new(self.prices.clone()));
        let recorded = Arc::clone(&tally);
        let mut driver = self.driver.clone().with_listener(move |event| recorded.record(event));
        driver = driver.with_streamed_replies(StreamedReplies::None);
        driver = driver.with_tracer(tracer.map(|tracer| tracer.session(None)));
        let mut trial = TrialRun::start();
        match self.replies.as_ref().map(|replies| replies(case, repeat)) {
            Some(Ok(models)) => driver = driver.with_models(models),
            Some(Err(message)) => trial.failure = Some(RunFailure { kind: FailureKind::Configuration, message }),
            None => {}
        }
        let recording = self.recordings.as_ref().map(|folder| (folder, Arc::new(RecordingJournal::default())));
        if let Some((_, journal)) = &recording {
            driver = driver.with_journal(Arc::clone(journal) as _);
        }
        let start = Instant::now();
        for text in &case.turns {
            if trial.failure.is_some() {
                break;
            }
            let conversation = std::mem::take(&mut trial.conversation);
            match Run::start(self.spec.clone(), conversation, text, now_ms()) {
                Ok(run) => trial.add_turn(&driver.drive(&self.compiled, run, cancellation).await)?,
                Err(error) => {
                    let kind = FailureKind::Configuration;
                    trial.failure = Some(RunFailure { kind, message: error.to_string() });
                }
            }
        }
        trial.latency_ms = milliseconds(start.elapsed());
        trial.cost = tally.cost();
        if let Some((folder, journal)) = recording
            && let Err(message) = journal.write(folder, &case.id, repeat)
        {
            trial.failure.get_or_insert(RunFailure { kind: FailureKind::Store, message });
        }
        Some(trial)
    }
}

impl TrialRun {
    fn start() -> Self {
        Self {
            at_ms: now_ms(),
            content: String::new(),
            value: None,
            failure: None,
            conversation: Conversation::default(),
            tools: Vec::new(),
            latency_ms: 0,
            usage: Usage::default(),
            cost: None,
            model_calls: 0,
        }
    }

    /// Adds the result of a turn. Returns `None` if it was cancelled.
    fn add_turn(&mut self, run: &Run) -> Option<()> {
        let response = run.response();
        self.content = response.content;
        self.value = None;
        match run.outcome() {
            // What an answer lacks cannot be judged. A refusal is whole, and may be what a case asks for.
            Some(RunOutcome::Answer { finish: finish @ (FinishReason::Length | FinishReason::Filtered), .. }) => {
                let message = finish.incompleteness().unwrap_or_default();
                self.failure = Some(RunFailure { kind: FailureKind::Answer, message });
            }
            Some(RunOutcome::Answer { value, .. }) => self.value = value.clone(),
            Some(RunOutcome::Failed(failure)) => self.failure = Some(failure.clone()),
            None if run.person_calls().next().is_some() => {
                let step = run.person_calls().next().map(|call| call.tool.clone()).unwrap_or_default();
                let message = format!("the step `{step}` waits for a person, and nobody answers in an experiment");
                self.failure = Some(RunFailure { kind: FailureKind::Configuration, message });
            }
            Some(RunOutcome::Cancelled) | None => return None,
        }
        self.tools.extend(response.tools_used);
        self.conversation = run.conversation().clone();
        self.usage += run.usage();
        self.model_calls = self.model_calls.saturating_add(run.model_calls());
        Some(())
    }
}
