//! A conversation as people read it: turns with their texts and calls, computed from the log of a session.

use patter_core::event::{Playback, RunEvent, RunEventKind};
use patter_core::message::attachment::Attachment;
use patter_core::message::conversation::{Message, ToolOutcome, Usage};
use patter_core::session::{Log, LogEntry, LogError};
use std::collections::BTreeMap;

/// A conversation.
#[derive(Debug, Default)]
pub(super) struct Transcript {
    pub(super) turns: Vec<TurnView>,
    pub(super) log: Log,
}

/// A message, and what followed from it.
#[derive(Debug, Default, Clone)]
pub(super) struct TurnView {
    /// The number of the first entry.
    pub(super) entry: usize,
    /// The number of messages before it.
    begin: usize,
    pub(super) agent: String,
    pub(super) model: String,
    pub(super) input: String,
    pub(super) attachments: Vec<Attachment>,
    pub(super) steps: Vec<Step>,
    pub(super) state: TurnState,
    pub(super) model_calls: u32,
    /// The tokens, by model.
    pub(super) usage: BTreeMap<String, Usage>,
    pub(super) started_ms: u64,
    pub(super) ended_ms: u64,
}

/// How far a turn is.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) enum TurnState {
    #[default]
    Open,
    Answered,
    Failed(String),
    Cancelled,
    /// It happened in the session that this one was forked from.
    Inherited,
}

/// A part of a turn.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Text(String),
    /// Reasoning.
    Thought(String),
    Call(Box<CallView>),
    Note(String),
}

/// A call, with the run that it led to if it called an agent.
#[derive(Debug, Default, Clone)]
pub(super) struct CallView {
    /// The number of the entry that says the most about it.
    pub(super) entry: usize,
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) arguments: String,
    pub(super) outcome: Option<ToolOutcome>,
    pub(super) duration_ms: Option<u64>,
    /// Why an approval was requested.
    pub(super) asked: Option<String>,
    /// The agent that was called.
    pub(super) agent: Option<String>,
    pub(super) steps: Vec<Step>,
}

impl Transcript {
    /// Computes the conversation from the entries of a log.
    pub(super) fn read(entries: &[String]) -> Result<Self, LogError> {
        let mut playback = Playback::default();
        let mut turns = Vec::new();
        for (number, text) in entries.iter().enumerate() {
            let entry: LogEntry = serde_json::from_str(text)
                .map_err(|error| LogError { number: number + 1, message: error.to_string() })?;
            let begin = playback.log().conversation().len();
            match &entry {
                LogEntry::RunStarted { run, start, .. } if run.is_empty() => turns.push(TurnView {
                    entry: number,
                    begin,
                    agent: start.spec.agent.clone(),
                    input: start.input.clone(),
                    attachments: start.attachments.clone(),
                    started_ms: start.at,
                    ended_ms: start.at,
                    ..TurnView::default()
                }),
                LogEntry::Forked { messages, .. } => turns.extend(inherited(number, messages)),
                LogEntry::Rewound { messages } => turns.retain(|turn: &TurnView| turn.begin < *messages),
                _ => {}
            }
            let at = entry_time(&entry);
            let events = playback.play(entry)?;
            let Some(turn) = turns.last_mut() else { continue };
            turn.ended_ms = at.unwrap_or(turn.ended_ms).max(turn.ended_ms);
            for event in events {
                turn.add(number, event);
            }
        }
        Ok(Self { turns, log: playback.log().clone() })
    }
}

/// Returns when an entry was made, if it says so.
pub(super) fn entry_time(entry: &LogEntry) -> Option<u64> {
    use patter_core::run::RunInput::{
        CallApproved, CallFinished, CallRefused, CallStarted, Cancelled, ClockTicked, Compacted, ContextExceeded,
        FellBack, LimitReached, ModelFailed, ModelReplied, Resumed,
    };
    match entry {
        LogEntry::RunStarted { start, .. } => Some(start.at),
        LogEntry::InputReceived { input, .. } => match input {
            ModelReplied { at, .. }
            | ModelFailed { at, .. }
            | CallFinished { at, .. }
            | CallRefused { at, .. }
            | FellBack { at, .. }
            | Compacted { at, .. }
            | ContextExceeded { at, .. }
            | LimitReached { at, .. }
            | Cancelled { at }
            | ClockTicked { at }
            | Resumed { at } => Some(*at),
            CallStarted { at, .. } | CallApproved { at, .. } => *at,
            _ => None,
        },
        _ => None,
    }
}

/// Returns the turns of messages of another session.
fn inherited(entry: usize, messages: &[Message]) -> Vec<TurnView> {
    let mut turns: Vec<TurnView> = Vec::new();
    for (begin, message) in messages.iter().enumerate() {
        if let Message::User { text, attachments } = message {
            let state = TurnState::Inherited;
            let attachments = attachments.clone();
            turns.push(TurnView { entry, begin, input: text.clone(), attachments, state, ..TurnView::default() });
            continue;
        }
        let Some(turn) = turns.last_mut() else { continue };
        match message {
            Message::Assistant { text, calls, .. } => {
                if !text.is_empty() {
                    turn.steps.push(Step::Text(text.clone()));
                }
                turn.steps.extend(calls.iter().map(|call| {
                    Step::Call(Box::new(CallView {
                        entry,
                        id: call.id.clone(),
                        tool: call.tool.clone(),
                        arguments: call.arguments.clone(),
                        ..CallView::default()
                    }))
                }));
            }
            Message::Tool { call_id, outcome, .. } => {
                if let Some(call) = find_call(&mut turn.steps, call_id) {
                    call.outcome = Some(outcome.clone());
                }
            }
            Message::User { .. } | Message::Compacted { .. } => {}
        }
    }
    turns
}

fn find_call<'s>(steps: &'s mut [Step], id: &str) -> Option<&'s mut CallView> {
    steps.iter_mut().rev().find_map(|step| match step {
        Step::Call(call) if call.id == id => Some(&mut **call),
        _ => None,
    })
}

impl TurnView {
    fn add(&mut self, entry: usize, event: RunEvent) {
        let RunEvent { run, kind, agent, .. } = event;
        if run.is_empty() {
            match &kind {
                RunEventKind::Started { model, .. } | RunEventKind::FellBack { to: model, .. } => {
                    self.model.clone_from(model);
                }
                RunEventKind::Finished { error, .. } => {
                    self.state = match error {
                        None => TurnState::Answered,
                        Some(error) if error.kind == "Cancelled" => TurnState::Cancelled,
                        Some(error) => TurnState::Failed(error.message.clone()),
                    };
                }
                _ => {}
            }
        }
        if matches!(kind, RunEventKind::Replied { .. }) {
            self.model_calls += 1;
        }
        if let RunEventKind::Replied { model, usage, .. }
        | RunEventKind::Compacted { model, usage, .. }
        | RunEventKind::Sampled { model, usage, .. } = &kind
        {
            *self.usage.entry(model.clone()).or_default() += *usage;
        }
        let mut steps = &mut self.steps;
        for id in &run {
            if find_call(steps, id).is_none() {
                let call = CallView { entry, id: id.clone(), tool: agent.clone(), ..CallView::default() };
                steps.push(Step::Call(Box::new(call)));
            }
            let Some(call) = find_call(steps, id) else { return };
            if run.last() == Some(id) {
                call.agent = Some(agent.clone());
            }
            steps = &mut call.steps;
        }
        add_step(steps, entry, kind);
    }
}

fn add_step(steps: &mut Vec<Step>, entry: usize, kind: RunEventKind) {
    let mut call = |id: &str, tool: &str, change: &dyn Fn(&mut CallView)| {
        if find_call(steps, id).is_none() {
            let call = CallView { id: id.to_owned(), tool: tool.to_owned(), ..CallView::default() };
            steps.push(Step::Call(Box::new(call)));
        }
        if let Some(call) = find_call(steps, id) {
            call.entry = entry;
            change(call);
        }
    };
    match kind {
        RunEventKind::Text { text } => steps.push(Step::Text(text)),
        RunEventKind::Thought { text } => steps.push(Step::Thought(text)),
        RunEventKind::Asked { call_id, tool, arguments, because } => call(&call_id, &tool, &|call| {
            call.arguments = arguments.to_string();
            call.asked = Some(because.clone());
        }),
        RunEventKind::ToolStarted { call_id, tool, arguments } => {
            call(&call_id, &tool, &|call| call.arguments = arguments.to_string());
        }
        RunEventKind::ToolFinished { call_id, tool, outcome, duration_ms, unstarted } => {
            call(&call_id, &tool, &|call| {
                call.outcome = Some(outcome.clone());
                call.duration_ms = Some(duration_ms);
                if let Some(arguments) = &unstarted {
                    call.arguments.clone_from(arguments);
                }
            });
        }
        RunEventKind::FellBack { from, to, because } => {
            steps.push(Step::Note(format!("{from} is not available, asking {to} instead: {because}")));
        }
        RunEventKind::Compacted { left_out, summary, .. } => steps.push(Step::Note(match left_out {
            0 => "The conversation is long: earlier results of tools are sent shortened.".to_owned(),
            count => format!("The conversation is long: the first {count} messages are no longer sent. {summary}"),
        })),
        RunEventKind::Incomplete { message, .. } => steps.push(Step::Note(message)),
        _ => {}
    }
}
