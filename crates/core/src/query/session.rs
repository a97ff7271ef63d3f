//! The graph of a stored session.

use super::property_graph::{PropertyGraph, Relation, Vertex, VertexIndex};
use crate::event::{Playback, RunEvent, RunEventKind};
use crate::message::conversation::{ToolOutcome, Usage};
use crate::provider::price::Prices;
use crate::session::{LogEntry, LogError, RunPath};
use serde_json::{Value as Json, json};
use std::collections::HashMap;

/// What the graph of a session is built from.
#[derive(Debug, Clone, Copy)]
pub struct SessionGraph<'s> {
    /// The id.
    pub id: &'s str,
    /// The title.
    pub title: &'s str,
    /// The state, in a word.
    pub state: &'s str,
    /// The agent.
    pub agent: &'s str,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// What models cost.
    pub prices: &'s Prices,
}

impl SessionGraph<'_> {
    /// Builds the graph from the entries of the session's log. Its schema is [`SESSION_SCHEMA`](super::SESSION_SCHEMA).
    ///
    /// ```
    /// use patter_core::provider::price::Prices;
    /// use patter_core::query::SessionGraph;
    /// let prices = Prices::builtin();
    /// let source = SessionGraph { id: "s1", title: "Hi", state: "idle", agent: "hi", created_ms: 0, prices: &prices };
    /// let graph = source.build([] as [&str; 0]).unwrap();
    /// assert_eq!(graph.vertices()[0].name, "s1");
    /// ```
    pub fn build<T: AsRef<str>>(&self, entries: impl IntoIterator<Item = T>) -> Result<PropertyGraph, LogError> {
        let mut graph = PropertyGraph::default();
        let session = Vertex::new("Session", "session", self.id).with("agent", self.agent).with("title", self.title);
        let mut session = session.with("state", self.state).with("created", json!(seconds(self.created_ms)));
        session.source = Some(self.id.to_owned());
        let session = graph.add(session);
        let mut builder = Builder {
            source: self,
            graph,
            session,
            count: 0,
            runs: HashMap::new(),
            last_run: None,
            prices: self.prices,
        };
        let mut playback = Playback::default();
        for (index, entry) in entries.into_iter().enumerate() {
            let entry: LogEntry = serde_json::from_str(entry.as_ref())
                .map_err(|error| LogError { number: index + 1, message: error.to_string() })?;
            let start = match &entry {
                LogEntry::RunStarted { run, start, .. } => Some((run.clone(), start.input.clone(), start.at)),
                _ => None,
            };
            for event in playback.play(entry)? {
                builder.add(event, start.as_ref());
            }
        }
        let count = builder.count;
        if let Some(session) = builder.graph.vertex_mut(session) {
            session.set("runs", count);
        }
        builder.finish_open();
        Ok(builder.graph)
    }
}

struct Builder<'s> {
    source: &'s SessionGraph<'s>,
    graph: PropertyGraph,
    session: VertexIndex,
    /// How many runs somebody started.
    count: usize,
    runs: HashMap<RunPath, OpenRun>,
    last_run: Option<VertexIndex>,
    prices: &'s Prices,
}

/// A run that is being read.
struct OpenRun {
    vertex: VertexIndex,
    model: String,
    usage: Usage,
    /// The costs in dollars, while all of them are known.
    cost: Option<f64>,
    calls: HashMap<String, VertexIndex>,
    last_call: Option<VertexIndex>,
    is_finished: bool,
}

impl Builder<'_> {
    fn add(&mut self, event: RunEvent, start: Option<&(RunPath, String, u64)>) {
        match event.kind {
            RunEventKind::Started { ref model, .. } => {
                self.start_run(&event, model, start.filter(|(path, ..)| *path == event.run));
            }
            RunEventKind::Replied { model, usage, .. } | RunEventKind::Compacted { model, usage, .. } => {
                self.spend(&event.run, &model, usage);
            }
            RunEventKind::Sampled { model, usage, .. } => self.spend(&event.run, &model, usage),
            RunEventKind::CostUnknown { .. } => {
                if let Some(run) = self.runs.get_mut(&event.run) {
                    run.cost = None;
                }
            }
            RunEventKind::Asked { call_id, tool, arguments, .. } => {
                let call = self.call(&event.run, &call_id, &tool, arguments);
                self.set(call, "asked", json!(true));
            }
            RunEventKind::ToolStarted { call_id, tool, arguments } => {
                self.call(&event.run, &call_id, &tool, arguments);
            }
            RunEventKind::ToolFinished { call_id, tool, outcome, duration_ms, unstarted } => {
                let text = unstarted.unwrap_or_default();
                let arguments = serde_json::from_str(&text).unwrap_or(Json::String(text));
                let call = self.call(&event.run, &call_id, &tool, arguments);
                let (name, key, value) = match outcome {
                    ToolOutcome::Value { value } => ("value", "result", value),
                    ToolOutcome::Error { message } => ("error", "error", message.into()),
                    ToolOutcome::Denied { message } => ("denied", "error", message.into()),
                    ToolOutcome::Cancelled => ("cancelled", "error", Json::Null),
                };
                self.set(call, "outcome", name.into());
                self.set(call, key, value);
                self.set(call, "seconds", json!(seconds(duration_ms)));
            }
            RunEventKind::Finished { error, model_calls, response, .. } => {
                let Some(run) = self.runs.get_mut(&event.run) else { return };
                run.is_finished = true;
                let vertex = Some(run.vertex);
                let outcome = match &error {
                    None => "answer",
                    Some(error) if error.kind == "Cancelled" => "cancelled",
                    Some(_) => "failed",
                };
                self.set(vertex, "outcome", outcome.into());
                self.set(vertex, "turns", json!(model_calls));
                match error {
                    None => self.set(vertex, "answer", response.content.into()),
                    Some(error) => {
                        self.set(vertex, "error", error.message.into());
                        self.set(vertex, "errorKind", error.kind.into());
                    }
                }
                self.finish(&event.run);
            }
            RunEventKind::ModelCalled { .. }
            | RunEventKind::Text { .. }
            | RunEventKind::Thought { .. }
            | RunEventKind::Waiting { .. }
            | RunEventKind::FellBack { .. }
            | RunEventKind::Incomplete { .. }
            | RunEventKind::ToolProgress { .. } => {}
        }
    }

    /// Adds a run, unless it only resumes.
    fn start_run(&mut self, event: &RunEvent, model: &str, start: Option<&(RunPath, String, u64)>) {
        if self.runs.get(&event.run).is_some_and(|run| !run.is_finished) && start.is_none() {
            return;
        }
        if event.run.is_empty() {
            self.count += 1;
        }
        let path: String = event.run.iter().map(|call| format!("/{call}")).collect();
        let name = format!("{}/{}{path}", self.source.id, self.count);
        let mut vertex = Vertex::new("Run", format!("run:{name}"), name).with("agent", event.agent.as_str());
        vertex.set("model", model);
        vertex.set("outcome", "open");
        vertex.source = Some(self.source.id.to_owned());
        if let Some((_, input, at)) = start {
            vertex.set("input", input.as_str());
            vertex.set("at", json!(seconds(*at)));
        }
        let vertex = self.graph.add(vertex);
        let caller = event.run.split_last().and_then(|(call, path)| self.runs.get(path)?.calls.get(call).copied());
        match caller {
            Some(call) => self.graph.relate(Relation::new(call, "started", vertex)),
            None => {
                self.graph.relate(Relation::new(self.session, "has", vertex));
                if let Some(last) = self.last_run.replace(vertex) {
                    self.graph.relate(Relation::new(last, "then", vertex));
                }
            }
        }
        let served_by = self.graph.add(Vertex::new("Model", format!("model:{model}"), model));
        self.graph.relate(Relation::new(vertex, "served_by", served_by));
        let run = OpenRun {
            vertex,
            model: model.to_owned(),
            usage: Usage::default(),
            cost: Some(0.0),
            calls: HashMap::new(),
            last_call: None,
            is_finished: false,
        };
        self.runs.insert(event.run.clone(), run);
    }

    /// Adds what a reply took. Without the name of a model, it was the model of the run.
    fn spend(&mut self, path: &RunPath, model: &str, usage: Usage) {
        let prices = self.prices;
        let Some(run) = self.runs.get_mut(path) else { return };
        run.usage += usage;
        let model = if model.is_empty() { &run.model } else { model };
        let cost = model.parse().ok().and_then(|model| prices.cost(&model, usage));
        run.cost = run.cost.zip(cost).map(|(before, cost)| before + cost.dollars());
    }

    /// Returns a call, which is added if it is not there.
    fn call(&mut self, path: &RunPath, id: &str, tool: &str, arguments: Json) -> Option<VertexIndex> {
        let run = self.runs.get_mut(path)?;
        if let Some(known) = run.calls.get(id) {
            return Some(*known);
        }
        let owner = self.graph.vertex(run.vertex)?.name.clone();
        let vertex = Vertex::new("Call", format!("call:{owner}/{id}"), id).with("tool", tool).with("args", arguments);
        let mut vertex = vertex.with("outcome", "open");
        vertex.source = Some(self.source.id.to_owned());
        let call = self.graph.add(vertex);
        run.calls.insert(id.to_owned(), call);
        let before = run.last_call.replace(call);
        let owner = run.vertex;
        self.graph.relate(Relation::new(owner, "made", call));
        if let Some(before) = before {
            self.graph.relate(Relation::new(before, "then", call));
        }
        let tool = self.graph.add(Vertex::new("Tool", format!("tool:{tool}"), tool));
        self.graph.relate(Relation::new(call, "of", tool));
        Some(call)
    }

    fn set(&mut self, vertex: Option<VertexIndex>, key: &str, value: Json) {
        if let Some(vertex) = vertex.and_then(|vertex| self.graph.vertex_mut(vertex)) {
            vertex.set(key, value);
        }
    }

    /// Sets what is known at the end of a run.
    fn finish(&mut self, path: &RunPath) {
        let Some(run) = self.runs.get(path) else { return };
        let vertex = Some(run.vertex);
        let usage = run.usage;
        let cost = run.cost;
        let calls = run.calls.len();
        self.set(vertex, "calls", json!(calls));
        self.set(vertex, "inputTokens", json!(usage.input_tokens));
        self.set(vertex, "outputTokens", json!(usage.output_tokens));
        self.set(vertex, "cost", json!(cost));
    }

    fn finish_open(&mut self) {
        let open: Vec<_> = self.runs.iter().filter(|(_, run)| !run.is_finished).map(|(path, _)| path.clone()).collect();
        open.iter().for_each(|path| self.finish(path));
    }
}

fn seconds(milliseconds: u64) -> f64 {
    std::time::Duration::from_millis(milliseconds).as_secs_f64()
}
