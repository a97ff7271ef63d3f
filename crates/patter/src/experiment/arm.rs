//! An agent with its tools and model, as it is tried.

use super::recordings::Notes;
use super::report::ArmInfo;
use crate::agent::CompiledAgent;
use crate::drive::{Driver, Models, Tally, now};
use crate::tool::CancellationToken;
use patter_core::case::Case;
use patter_core::message::conversation::{Message, Usage};
use patter_core::provider::price::{Cost, Prices};
use patter_core::run::{Failure, FailureKind, Invocation, Limits, Run, RunOutcome, RunSpec};
use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Finds who answers in one run of a case: for arms whose replies are recorded.
pub type Replies = Arc<dyn Fn(&Case, u32) -> Result<Models, String> + Send + Sync>;

/// An agent with its tools and model, as it is tried.
#[derive(Clone)]
pub struct Arm {
    name: String,
    file: String,
    what: String,
    driver: Driver,
    compiled: CompiledAgent,
    spec: RunSpec,
    prices: Prices,
    replies: Option<Replies>,
    /// Where runs are recorded.
    recordings: Option<PathBuf>,
}

/// What came of one run of a case.
pub(super) struct Ran {
    pub(super) at_ms: u64,
    pub(super) content: String,
    pub(super) value: Option<Json>,
    pub(super) failure: Option<Failure>,
    pub(super) conversation: Vec<Message>,
    pub(super) tools: Vec<Invocation>,
    pub(super) latency_ms: u64,
    pub(super) usage: Usage,
    pub(super) cost: Option<Cost>,
    pub(super) model_calls: u32,
}

impl Arm {
    /// Returns an arm of a name: an agent that is ready, and who drives it.
    pub fn new(name: &str, driver: Driver, compiled: CompiledAgent, prices: Prices) -> Self {
        let spec = compiled.spec().clone();
        let (file, what) = (String::new(), String::new());
        Self { name: name.to_owned(), file, what, driver, compiled, spec, prices, replies: None, recordings: None }
    }

    /// Says where the agent stands, and how the arm was given.
    #[must_use]
    pub fn described(mut self, file: &str, what: &str) -> Self {
        (self.file, self.what) = (file.to_owned(), what.to_owned());
        self
    }

    /// Changes how far runs may go.
    #[must_use]
    pub fn with_limits(mut self, limit: impl FnOnce(&mut Limits)) -> Self {
        limit(&mut self.spec.limits);
        self
    }

    /// Sets who answers instead of the models.
    #[must_use]
    pub fn with_replies(mut self, replies: Replies) -> Self {
        self.replies = Some(replies);
        self
    }

    /// Records runs, each in a file of a folder that is named like the arm.
    #[must_use]
    pub fn recorded_in(mut self, folder: &Path) -> Self {
        self.recordings = Some(folder.join(&self.name));
        self
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what it is.
    pub fn info(&self) -> ArmInfo {
        ArmInfo {
            name: self.name.clone(),
            agent: self.compiled.name().to_owned(),
            agent_hash: self.spec.hash.clone(),
            bindings_hash: self.compiled.bindings_hash().to_owned(),
            model: self.compiled.model().to_string(),
            file: self.file.clone(),
            what: self.what.clone(),
        }
    }

    /// Runs a case: says what the person says, one after the other. Nothing comes of it where it is stopped.
    pub(super) async fn run(&self, case: &Case, repeat: u32, cancellation: &CancellationToken) -> Option<Ran> {
        let tally = Arc::new(Tally::new(self.prices.clone()));
        let heard = Arc::clone(&tally);
        let mut driver = self.driver.clone().with_listener(move |event| heard.hear(event));
        let mut ran = Ran::begun();
        match self.replies.as_ref().map(|replies| replies(case, repeat)) {
            Some(Ok(models)) => driver = driver.with_models(models),
            Some(Err(message)) => ran.failure = Some(Failure { kind: FailureKind::Configuration, message }),
            None => {}
        }
        let notes = self.recordings.as_ref().map(|folder| (folder, Arc::new(Notes::default())));
        if let Some((_, notes)) = &notes {
            driver = driver.with_journal(Arc::clone(notes) as _);
        }
        let start = Instant::now();
        for text in &case.turns {
            if ran.failure.is_some() {
                break;
            }
            let past = std::mem::take(&mut ran.conversation);
            match Run::start(self.spec.clone(), past, text, now()) {
                Ok(run) => ran.add(&driver.drive(&self.compiled, run, cancellation).await)?,
                Err(error) => {
                    let kind = FailureKind::Configuration;
                    ran.failure = Some(Failure { kind, message: error.to_string() });
                }
            }
        }
        ran.latency_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        ran.cost = tally.cost();
        if let Some((folder, notes)) = notes
            && let Err(message) = notes.write(folder, &case.id, repeat)
        {
            ran.failure.get_or_insert(Failure { kind: FailureKind::Store, message });
        }
        Some(ran)
    }
}

impl Ran {
    fn begun() -> Self {
        Self {
            at_ms: now(),
            content: String::new(),
            value: None,
            failure: None,
            conversation: Vec::new(),
            tools: Vec::new(),
            latency_ms: 0,
            usage: Usage::default(),
            cost: None,
            model_calls: 0,
        }
    }

    /// Adds what came of a turn; nothing if it was stopped.
    fn add(&mut self, run: &Run) -> Option<()> {
        let response = run.response();
        (self.content, self.value) = (response.content, None);
        match run.outcome() {
            Some(RunOutcome::Answer { value, .. }) => self.value = value.clone(),
            Some(RunOutcome::Failed(failure)) => self.failure = Some(failure.clone()),
            Some(RunOutcome::Cancelled) | None => return None,
        }
        self.tools.extend(response.tools_used);
        self.conversation = run.conversation().to_vec();
        self.usage += run.usage();
        self.model_calls = self.model_calls.saturating_add(run.model_calls());
        Some(())
    }
}
