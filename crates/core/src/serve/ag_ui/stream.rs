//! Events of a run to events of the protocol.

use super::VERSION;
use super::id::{call_id, interrupt_id};
use super::open::OpenRun;
use crate::compile::WORKFLOW;
use crate::event::{FailureReport, RunEvent, RunEventKind};
use crate::message::conversation::{ToolOutcome, Usage};
use crate::serve::read::set;
use crate::serve::{ApiError, ApiErrorKind, TurnEnd, TurnOutcome, Waiting};
use crate::session::RunPath;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, HashSet};

/// What the events of a run have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgUiMeta {
    /// The thread.
    pub thread: String,
    /// The run, as the page names it.
    pub run: String,
    /// The run that it belongs to.
    pub parent_run: Option<String>,
    /// Whether the session is stored. Otherwise it cannot wait.
    pub is_stored: bool,
    /// When approvals expire, as a date with time.
    pub expires_at: Option<String>,
}

/// Turns the events of a run into those of the protocol. Each text that it returns is the data of a server-sent event.
///
/// ```
/// use patter_core::event::{RunEvent, RunEventKind};
/// use patter_core::serve::ag_ui::{AgUiMeta, AgUiStream};
/// let meta = AgUiMeta {
///     thread: "monday".into(),
///     run: "r1".into(),
///     parent_run: None,
///     is_stored: true,
///     expires_at: None,
/// };
/// let mut stream = AgUiStream::new(meta);
/// assert!(stream.start()[0].starts_with(r#"{"type":"RUN_STARTED","threadId":"monday""#));
/// let kind = RunEventKind::Text { text: "Hello".into() };
/// let events = stream.event(&RunEvent::new("greeter", &vec![], kind));
/// assert_eq!(events[0], r#"{"type":"TEXT_MESSAGE_START","messageId":"r1:1","role":"assistant"}"#);
/// assert_eq!(events[1], r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"r1:1","delta":"Hello"}"#);
/// ```
#[derive(Debug, Clone)]
pub struct AgUiStream {
    meta: AgUiMeta,
    /// Whether the answer is a value: then only the answer is a message, and not what the model says on the way.
    is_structured: bool,
    /// The runs that are under way: the outermost one and those of called agents, callers first.
    runs: BTreeMap<RunPath, OpenRun>,
    /// The number of messages so far.
    messages: u32,
    /// The calls that the page knows.
    calls: HashSet<String>,
    /// The calls that the page refused, with the outcome. No event tells about them, because the run continues afterwards.
    refused: Vec<(Waiting, ToolOutcome)>,
    usage: BTreeMap<String, Usage>,
}

/// Events to be sent.
#[derive(Default)]
pub(super) struct Events(Vec<String>);

impl Events {
    /// Adds an event of a run.
    pub(super) fn add(&mut self, kind: &str, run: &RunPath, details: Json) {
        let mut event = json!({"type": kind});
        if !run.is_empty() {
            set(&mut event, "subagentRunId", run.join("/"));
        }
        if let (Json::Object(event), Json::Object(details)) = (&mut event, details) {
            // Pages accept no null.
            event.extend(details.into_iter().filter(|(_, value)| !value.is_null()));
        }
        self.0.push(event.to_string());
    }
}

impl AgUiStream {
    /// Returns the stream of a turn.
    pub fn new(meta: AgUiMeta) -> Self {
        Self {
            meta,
            is_structured: false,
            runs: BTreeMap::from([(RunPath::new(), OpenRun::default())]),
            messages: 0,
            calls: HashSet::new(),
            refused: Vec::new(),
            usage: BTreeMap::new(),
        }
    }

    /// Sends only the answer, because it is a value.
    #[must_use]
    pub fn with_structured_answer(mut self, is_structured: bool) -> Self {
        self.is_structured = is_structured;
        self
    }

    /// Starts with the outcomes of calls that the page refused, for a reason.
    #[must_use]
    pub fn with_refused(mut self, calls: impl IntoIterator<Item = (Waiting, String)>) -> Self {
        let refused = |(call, message)| (call, ToolOutcome::Denied { message });
        self.refused = calls.into_iter().map(refused).collect();
        self
    }

    /// Returns the first events.
    pub fn start(&mut self) -> Vec<String> {
        let mut events = Events::default();
        let details = json!({
            "threadId": self.meta.thread,
            "runId": self.meta.run,
            "protocolVersion": VERSION,
            "parentRunId": self.meta.parent_run,
        });
        events.add("RUN_STARTED", &RunPath::new(), details);
        for (call, outcome) in std::mem::take(&mut self.refused) {
            self.enter(&mut events, &call.agent, &call.run);
            result(&mut events, &call.run, &call.call_id, &outcome);
        }
        events.0
    }

    /// Returns the events that follow from an event of the run.
    pub fn event(&mut self, event: &RunEvent) -> Vec<String> {
        let mut events = Events::default();
        let run = &event.run;
        self.enter(&mut events, &event.agent, run);
        match &event.kind {
            RunEventKind::ModelCalled { number } => {
                let message = self.new_message();
                self.run(run).start_reply(&mut events, run, *number, message);
            }
            RunEventKind::Text { text } => {
                let is_hidden = self.is_structured && run.is_empty();
                if !text.is_empty() && !is_hidden {
                    self.text(&mut events, run, text);
                }
            }
            RunEventKind::Thought { text } if !text.is_empty() => {
                if !self.run(run).is_reasoning() {
                    let message = self.new_message();
                    self.run(run).start_reasoning(&mut events, run, message);
                }
                self.run(run).thought(&mut events, run, text);
            }
            RunEventKind::Replied { model, usage, .. } => {
                self.run(run).end_reply(&mut events, run);
                *self.usage.entry(model.clone()).or_default() += *usage;
            }
            RunEventKind::Sampled { model, usage, .. } => *self.usage.entry(model.clone()).or_default() += *usage,
            RunEventKind::Asked { call_id, tool, arguments, .. }
            | RunEventKind::ToolStarted { call_id, tool, arguments } => {
                self.call(&mut events, run, call_id, tool, &arguments.to_string());
            }
            RunEventKind::ToolProgress { call_id: call, fraction, message } => {
                let id = call_id(run, call);
                let content = json!({"toolCallId": id, "fraction": fraction, "message": message});
                let details = json!({"messageId": format!("{id}:progress"), "activityType": "patter.progress"});
                events.add("ACTIVITY_SNAPSHOT", run, with(details, "content", content));
            }
            RunEventKind::ToolFinished { call_id: call, tool, outcome, unstarted, .. } => {
                if let Some(arguments) = unstarted {
                    self.call(&mut events, run, call, tool, arguments);
                }
                let id = call_id(run, call);
                let message = format!("{id}:result");
                let details =
                    json!({"messageId": message, "toolCallId": id, "content": outcome.text(), "role": "tool"});
                events.add("TOOL_CALL_RESULT", run, details);
            }
            RunEventKind::Waiting { seconds, because } => {
                let value = json!({"seconds": seconds, "because": because});
                events.add("CUSTOM", run, json!({"name": "patter.waiting", "value": value}));
            }
            RunEventKind::FellBack { from, to, because } => {
                let value = json!({"from": from, "to": to, "because": because});
                events.add("CUSTOM", run, json!({"name": "patter.fallback", "value": value}));
            }
            RunEventKind::Compacted { model, left_out, summary, usage, .. } => {
                *self.usage.entry(model.clone()).or_default() += *usage;
                let value = json!({"leftOut": left_out, "summary": summary});
                events.add("CUSTOM", run, json!({"name": "patter.compacted", "value": value}));
            }
            RunEventKind::Incomplete { finish, message } => {
                let value = json!({"finish": finish, "message": message});
                events.add("CUSTOM", run, json!({"name": "patter.incomplete", "value": value}));
            }
            RunEventKind::Finished { error, .. } => {
                self.run(run).end_reply(&mut events, run);
                if !run.is_empty() {
                    self.leave(&mut events, run, error.as_ref());
                }
            }
            RunEventKind::Started { model, .. } => self.run(run).is_workflow = model == WORKFLOW,
            RunEventKind::Thought { .. } | RunEventKind::CostUnknown { .. } => {}
        }
        events.0
    }

    /// Returns the last events of a turn.
    pub fn end(&mut self, end: &TurnEnd) -> Vec<String> {
        if end.approvals().next().is_some() && !self.meta.is_stored {
            let message = "a call needs an approval, for which the session has to be stored";
            return self.fail(&ApiError::new(ApiErrorKind::Invalid, message));
        }
        if let TurnOutcome::Failed(_) = &end.outcome
            && let Some(error) = end.error()
        {
            return self.fail(&error);
        }
        let mut events = Events::default();
        let outermost = RunPath::new();
        if let TurnOutcome::Answered { text, .. } = &end.outcome
            && self.is_structured
            && !text.is_empty()
        {
            self.text(&mut events, &outermost, text);
        }
        for call in end.client_calls().chain(end.approvals()) {
            let tool = if call.because.is_none() { call.tool.replace('/', "__") } else { call.tool.clone() };
            self.call(&mut events, &call.run, &call.call_id, &tool, &call.arguments.to_string());
        }
        self.close(&mut events, Some(end));
        let details = json!({"threadId": self.meta.thread, "runId": self.meta.run, "outcome": self.outcome(end)});
        let value = match &end.outcome {
            TurnOutcome::Answered { value: Some(value), .. } => value.clone(),
            _ => Json::Null,
        };
        let details = with(with(details, "result", value), "usage", self.usage());
        events.add("RUN_FINISHED", &outermost, details);
        events.0
    }

    /// Returns the last events of a turn that failed.
    pub fn fail(&mut self, error: &ApiError) -> Vec<String> {
        let mut events = Events::default();
        self.close(&mut events, None);
        let details = json!({"message": error.message, "code": error.kind.code(), "usage": self.usage()});
        events.add("RUN_ERROR", &RunPath::new(), details);
        events.0
    }

    fn outcome(&self, end: &TurnEnd) -> Json {
        let interrupts: Vec<_> = end.approvals().map(|call| self.interrupt(call)).collect();
        if !interrupts.is_empty() {
            return json!({"type": "interrupt", "interrupts": interrupts});
        }
        if end.outcome == TurnOutcome::Cancelled {
            return json!({"type": "cancelled"});
        }
        let pending: Vec<_> = end.client_calls().map(|call| call_id(&call.run, &call.call_id)).collect();
        match pending.is_empty() {
            true => json!({"type": "success"}),
            false => json!({"type": "success", "pendingToolCallIds": pending}),
        }
    }

    fn interrupt(&self, call: &Waiting) -> Json {
        let properties = json!({
            "approved": {"type": "boolean", "description": "Whether the call may be made"},
            "reason": {"type": "string", "description": "Why it may not be made"},
        });
        let mut interrupt = json!({
            "id": interrupt_id(call),
            "reason": "tool_call",
            "message": format!("{}: {}", call.line(), call.because.as_deref().unwrap_or_default()),
            "toolCallId": call_id(&call.run, &call.call_id),
            "responseSchema": {"type": "object", "properties": properties, "required": ["approved"]},
        });
        if !call.run.is_empty() {
            set(&mut interrupt, "subagentRunId", call.run.join("/"));
        }
        if let Some(expires_at) = &self.meta.expires_at {
            set(&mut interrupt, "expiresAt", expires_at.as_str());
        }
        interrupt
    }

    /// Returns the tokens used by each model.
    fn usage(&self) -> Json {
        let usage = self.usage.iter().map(|(model, usage)| {
            json!({
                "model": model,
                "inputTokens": usage.input_tokens,
                "outputTokens": usage.output_tokens,
                "totalTokens": usage.input_tokens.saturating_add(usage.output_tokens),
                "reasoningTokens": usage.reasoning_tokens,
                "cachedInputTokens": usage.cached_tokens,
                "cacheWriteInputTokens": usage.cache_write_tokens,
            })
        });
        usage.collect()
    }

    fn new_message(&mut self) -> String {
        self.messages += 1;
        format!("{}:{}", self.meta.run, self.messages)
    }

    fn run(&mut self, run: &RunPath) -> &mut OpenRun {
        self.runs.entry(run.clone()).or_default()
    }

    fn text(&mut self, events: &mut Events, run: &RunPath, text: &str) {
        let message = self.run(run).message.clone().unwrap_or_else(|| self.new_message());
        self.run(run).text(events, run, &message, text);
    }

    /// Announces the run of a called agent, unless it is known.
    fn enter(&mut self, events: &mut Events, agent: &str, run: &RunPath) {
        if self.runs.contains_key(run) {
            return;
        }
        let parent = run.split_last().map(|(_, parent)| parent.join("/")).filter(|parent| !parent.is_empty());
        let details = json!({"name": agent, "parentToolCallId": run.join("/"), "parentSubagentRunId": parent});
        events.add("SUBAGENT_STARTED", run, details);
        self.runs.insert(run.clone(), OpenRun::default());
    }

    /// Ends the run of a called agent.
    fn leave(&mut self, events: &mut Events, run: &RunPath, error: Option<&FailureReport>) {
        self.runs.remove(run);
        match error {
            None => events.add("SUBAGENT_FINISHED", run, json!({})),
            Some(error) => {
                events.add("SUBAGENT_ERROR", run, json!({"message": error.message, "code": error.kind}));
            }
        }
    }

    /// Announces a call. One that waited in an earlier segment is known already: its reply is not part of this one.
    fn call(&mut self, events: &mut Events, run: &RunPath, call: &str, tool: &str, arguments: &str) {
        let message = self.run(run).message.clone();
        // A call of an earlier segment is known.
        if message.is_none() && !self.run(run).is_workflow {
            return;
        }
        let id = call_id(run, call);
        if !self.calls.insert(id.clone()) {
            return;
        }
        self.run(run).end_reply(events, run);
        let details = json!({"toolCallId": id, "toolCallName": tool});
        let details = match message {
            Some(message) => with(details, "parentMessageId", message.into()),
            None => details,
        };
        events.add("TOOL_CALL_START", run, details);
        if !arguments.is_empty() {
            events.add("TOOL_CALL_ARGS", run, json!({"toolCallId": id, "delta": arguments}));
        }
        events.add("TOOL_CALL_END", run, json!({"toolCallId": id}));
    }

    /// Ends everything that is under way, called agents first.
    fn close(&mut self, events: &mut Events, end: Option<&TurnEnd>) {
        for (run, mut open) in std::mem::take(&mut self.runs).into_iter().rev() {
            open.end_reply(events, &run);
            if run.is_empty() {
                continue;
            }
            match end.map(|end| &end.outcome) {
                Some(TurnOutcome::Waiting(calls)) => {
                    let inside = calls.iter().filter(|call| call.because.is_some() && call.run.starts_with(&run));
                    let interrupts: Vec<_> = inside.map(interrupt_id).collect();
                    let outcome = json!({"type": "suspended", "interruptIds": interrupts});
                    events.add("SUBAGENT_FINISHED", &run, json!({ "outcome": outcome }));
                }
                _ => events.add("SUBAGENT_ERROR", &run, json!({"message": "the run was stopped"})),
            }
        }
    }
}

/// Adds the outcome of a call.
fn result(events: &mut Events, run: &RunPath, call: &str, outcome: &ToolOutcome) {
    let id = call_id(run, call);
    let message = format!("{id}:result");
    let details = json!({"messageId": message, "toolCallId": id, "content": outcome.text(), "role": "tool"});
    events.add("TOOL_CALL_RESULT", run, details);
}

/// Adds a member to an object.
fn with(mut object: Json, name: &str, value: Json) -> Json {
    set(&mut object, name, value);
    object
}
