//! What a workflow does next, given the results so far.

use super::plan::{Accepts, Action, Plan, PlanEdge, PlanInput};
use super::topology::{Cycle, Topology};
use super::value::{Fields, render, render_value, text_of};
use crate::declare::workflow::EdgeKind;
use crate::message::conversation::ToolOutcome;
use serde_json::{Map, Value as Json, json};
use thiserror::Error;

/// What a workflow does next.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evaluation {
    /// The calls that have no result yet, in the order of the steps.
    pub calls: Vec<StepCall>,
    /// How the workflow ended, if it did.
    pub outcome: Option<Result<Json, StepError>>,
}

/// A call of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepCall {
    /// The id: the name of the step, how often it has been started, and the number of the item.
    pub id: String,
    /// The name under which the workflow calls it, or the name of the step, if a person answers.
    pub callee: String,
    /// The arguments.
    pub arguments: Json,
    /// How long a person has to answer, in milliseconds.
    pub expires_ms: Option<u64>,
    /// The call whose conversation it continues.
    pub continues: Option<String>,
}

/// The failure of a step that ends a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the step `{step}` failed: {message}")]
pub struct StepError {
    /// The step.
    pub step: String,
    /// What happened, for people to read.
    pub message: String,
}

impl Plan {
    /// Returns what the workflow does next. `input` is what it was started with, and `result` returns the result of a call,
    /// by its id, if there is one. The ids of calls end with `suffix`, so that they are unique within a conversation.
    ///
    /// The answer depends only on these: the same results in another order lead to the same calls.
    pub fn evaluate<'r>(
        &self,
        input: &str,
        suffix: &str,
        result: &dyn Fn(&str) -> Option<&'r ToolOutcome>,
    ) -> Evaluation {
        Evaluator::new(self).evaluate(input, suffix, result)
    }
}

/// Evaluates a plan any number of times.
#[derive(Debug)]
pub struct Evaluator<'p> {
    plan: &'p Plan,
    shape: Topology,
}

impl<'p> Evaluator<'p> {
    /// Prepares the evaluation of a plan.
    pub fn new(plan: &'p Plan) -> Self {
        Self { plan, shape: Topology::new(plan.steps.len(), &plan.edge_ends()) }
    }

    /// Returns what the workflow does next: see [`Plan::evaluate`].
    pub fn evaluate<'r>(
        &self,
        input: &str,
        suffix: &str,
        result: &dyn Fn(&str) -> Option<&'r ToolOutcome>,
    ) -> Evaluation {
        let plan = self.plan;
        let takes = match plan.has_typed_input {
            true => serde_json::from_str(input).unwrap_or_else(|_| Json::from(input)),
            false => Json::from(input),
        };
        let mut state = State {
            plan,
            shape: &self.shape,
            suffix,
            result,
            takes,
            steps: vec![StepState::default(); plan.steps.len()],
            is_taken: vec![None; plan.edges.len()],
            repeats: vec![0; plan.edges.len()],
            calls: Vec::new(),
        };
        let outcome = state.run().transpose();
        Evaluation { calls: if outcome.is_some() { Vec::new() } else { state.calls }, outcome }
    }
}

#[derive(Debug, Clone, Default)]
struct StepState {
    status: Status,
    /// How often it has been started.
    starts: u32,
    /// What it returned last.
    value: Option<Json>,
    /// Why it failed last.
    failure: Option<String>,
    /// The edges back along which it is started again.
    again: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Status {
    /// It is not known yet whether it starts.
    #[default]
    Waiting,
    Running,
    /// It does not start.
    Skipped,
    Done,
    Failed,
}

/// What became of a call.
enum Progress {
    Open,
    Done(Json),
    Failed(String),
}

struct State<'r, 's> {
    plan: &'s Plan,
    shape: &'s Topology,
    suffix: &'s str,
    result: &'s dyn Fn(&str) -> Option<&'r ToolOutcome>,
    takes: Json,
    steps: Vec<StepState>,
    is_taken: Vec<Option<bool>>,
    /// How often edges that lead back were taken.
    repeats: Vec<u32>,
    calls: Vec<StepCall>,
}

impl Fields for State<'_, '_> {
    fn get(&self, name: &str) -> Option<&Json> {
        if name == "takes" {
            return Some(&self.takes);
        }
        let index = self.plan.steps.iter().position(|step| step.name == name)?;
        self.steps.get(index)?.value.as_ref()
    }
}

/// The values of a step of a workflow, and the item that a step works on.
struct WithItem<'v> {
    values: &'v dyn Fields,
    item: Option<&'v Json>,
}

impl Fields for WithItem<'_> {
    fn get(&self, name: &str) -> Option<&Json> {
        match (name, self.item) {
            ("item", Some(item)) => Some(item),
            _ => self.values.get(name),
        }
    }
}

impl State<'_, '_> {
    /// Follows the edges until nothing more is known. Returns the result, if there is one.
    fn run(&mut self) -> Result<Option<Json>, StepError> {
        loop {
            let mut has_changed = false;
            for step in &self.shape.order {
                has_changed |= self.advance(*step)?;
            }
            for cycle in &self.shape.cycles {
                if self.repeat(cycle)? {
                    has_changed = true;
                    break;
                }
            }
            if !has_changed {
                break;
            }
        }
        if !self.calls.is_empty() {
            return Ok(None);
        }
        let mut ends = (0..self.steps.len()).filter(|step| self.plan.is_end(*step));
        let result = ends.find_map(|end| {
            self.steps.get(end).filter(|step| step.status == Status::Done).and_then(|step| step.value.clone())
        });
        result.map(Some).ok_or_else(|| StepError {
            step: self.plan.steps.last().map(|step| step.name.clone()).unwrap_or_default(),
            message: "the workflow ended without a result".to_owned(),
        })
    }

    /// Starts a step, if it is known that it starts, and follows its edges, if it has ended. Returns whether anything
    /// changed.
    fn advance(&mut self, step: usize) -> Result<bool, StepError> {
        let Some(state) = self.steps.get(step) else { return Ok(false) };
        if state.status != Status::Waiting {
            return Ok(false);
        }
        let Some(reached) = self.reached(step) else { return Ok(false) };
        if !reached {
            self.set(step, Status::Skipped);
            self.set_edges(step, |_, _| false);
            return Ok(true);
        }
        if let Some(state) = self.steps.get_mut(step) {
            state.starts += 1;
        }
        match self.perform(step) {
            Progress::Open => self.set(step, Status::Running),
            Progress::Done(value) => {
                self.set(step, Status::Done);
                let plan = self.plan;
                let meets = |edge: &PlanEdge| edge.condition.as_ref().is_some_and(|condition| condition.is_met(&value));
                let is_met = plan.edges.iter().any(|edge| edge.from == step && meets(edge));
                self.set_edges(step, |_, edge| match edge.kind {
                    EdgeKind::Then | EdgeKind::Handoff => true,
                    EdgeKind::When => meets(edge),
                    EdgeKind::Otherwise => !is_met,
                    EdgeKind::Failed | EdgeKind::Exhausted => false,
                });
                if let Some(state) = self.steps.get_mut(step) {
                    state.value = Some(value);
                    state.failure = None;
                }
            }
            Progress::Failed(message) => {
                let is_failed = |edge: &PlanEdge| edge.from == step && edge.kind == EdgeKind::Failed;
                if !self.plan.edges.iter().any(is_failed) {
                    return Err(self.error(step, message));
                }
                self.set(step, Status::Failed);
                self.set_edges(step, |_, edge| edge.kind == EdgeKind::Failed);
                if let Some(state) = self.steps.get_mut(step) {
                    state.failure = Some(message);
                }
            }
        }
        Ok(true)
    }

    /// Returns whether a step is reached, if that is known of all edges that lead to it.
    fn reached(&self, step: usize) -> Option<bool> {
        if self.steps.get(step).is_some_and(|step| !step.again.is_empty()) {
            return Some(true);
        }
        let mut is_reached = self.shape.entries.contains(&step);
        for (index, edge) in self.plan.edges.iter().enumerate() {
            if edge.to == step && self.shape.is_back.get(index) == Some(&false) {
                is_reached |= self.taken(index, edge)?;
            }
        }
        Some(is_reached)
    }

    /// Returns whether an edge is taken, if that is known. Edges out of a cycle count once it is over: no edge leads back
    /// within it. An edge that leads further back does not keep it from being over.
    fn taken(&self, index: usize, edge: &PlanEdge) -> Option<bool> {
        let taken = self.is_taken.get(index).copied().flatten()?;
        let leads_back = |(index, edge): (usize, &PlanEdge), cycle: &Cycle| {
            let is_back = self.shape.is_back.get(index) == Some(&true);
            let is_inside = cycle.steps.contains(&edge.from) && cycle.steps.contains(&edge.to);
            is_back && is_inside && self.is_taken.get(index) == Some(&Some(true))
        };
        let is_over = |cycle: &Cycle| {
            self.has_ended(cycle) && !self.plan.edges.iter().enumerate().any(|edge| leads_back(edge, cycle))
        };
        self.shape.left_by(edge.from, edge.to).all(is_over).then_some(taken)
    }

    /// Returns whether all steps of a cycle have ended.
    fn has_ended(&self, cycle: &Cycle) -> bool {
        let is_open = |step: &usize| {
            self.steps.get(*step).is_some_and(|step| matches!(step.status, Status::Waiting | Status::Running))
        };
        !cycle.steps.iter().any(is_open)
    }

    /// Iterates over the edges of a cycle that lead back and are taken.
    fn edges_back<'c>(&'c self, cycle: &'c Cycle) -> impl Iterator<Item = usize> + 'c {
        cycle.edges.iter().copied().filter(|edge| self.is_taken.get(*edge) == Some(&Some(true)))
    }

    /// Starts a cycle again, if an edge leads back. Returns whether anything changed.
    fn repeat(&mut self, cycle: &Cycle) -> Result<bool, StepError> {
        if !self.has_ended(cycle) {
            return Ok(false);
        }
        let back: Vec<_> = self.edges_back(cycle).collect();
        if back.is_empty() {
            return Ok(false);
        }
        let plan = self.plan;
        let is_exhausted = |edge: &usize| {
            let limit = plan.edges.get(*edge).and_then(|edge| edge.at_most).unwrap_or_default();
            self.repeats.get(*edge).is_none_or(|repeats| *repeats >= limit)
        };
        let (exhausted, again): (Vec<_>, Vec<_>) = back.into_iter().partition(is_exhausted);
        for edge in &exhausted {
            self.exhaust(*edge)?;
        }
        if again.is_empty() {
            return Ok(!exhausted.is_empty());
        }
        for edge in &again {
            if let Some(repeats) = self.repeats.get_mut(*edge) {
                *repeats += 1;
            }
        }
        // What is inside starts anew, so inner cycles may repeat as often as before.
        for inner in &self.shape.cycles {
            if inner.first != cycle.first && inner.steps.is_subset(&cycle.steps) {
                for edge in &inner.edges {
                    if let Some(repeats) = self.repeats.get_mut(*edge) {
                        *repeats = 0;
                    }
                }
            }
        }
        for step in &cycle.steps {
            self.set(*step, Status::Waiting);
            if let Some(state) = self.steps.get_mut(*step) {
                state.again.clear();
            }
        }
        for (edge, taken) in plan.edges.iter().zip(&mut self.is_taken) {
            if cycle.steps.contains(&edge.from) {
                *taken = None;
            }
        }
        if let Some(first) = self.steps.get_mut(cycle.first) {
            first.again = again;
        }
        Ok(true)
    }

    /// Takes the way out that is for an edge back that was taken as often as it may be.
    fn exhaust(&mut self, back: usize) -> Result<(), StepError> {
        let plan = self.plan;
        let Some(edge) = plan.edges.get(back) else { return Ok(()) };
        let mut has_way_out = false;
        for (other, taken) in plan.edges.iter().zip(&mut self.is_taken) {
            if other.from == edge.from && other.kind == EdgeKind::Exhausted {
                *taken = Some(true);
                has_way_out = true;
            }
        }
        if let Some(taken) = self.is_taken.get_mut(back) {
            *taken = Some(false);
        }
        if has_way_out {
            return Ok(());
        }
        let to = plan.steps.get(edge.to).map(|step| step.name.as_str()).unwrap_or_default();
        let limit = edge.at_most.unwrap_or_default();
        let times = if limit == 1 { "once".to_owned() } else { format!("{limit} times") };
        Err(self.error(edge.from, format!("it went back to `{to}` {times}, which is the limit")))
    }

    fn perform(&mut self, step: usize) -> Progress {
        let plan = self.plan;
        let Some(declared) = plan.steps.get(step) else { return Progress::Failed("there is no such step".to_owned()) };
        let starts = self.steps.get(step).map_or(1, |state| state.starts);
        let id = format!("{}-{starts}", declared.name);
        let made = match &declared.action {
            Action::Give { value } => return render_value(value, self).map_or_else(Progress::Failed, Progress::Done),
            Action::Ask { question, expires_ms, .. } => render(question, self).map(|question| {
                let id = format!("{id}{}", self.suffix);
                let arguments = json!({ "question": question });
                StepCall { id, callee: declared.name.clone(), arguments, expires_ms: *expires_ms, continues: None }
            }),
            Action::Call { callee, accepts } => self.call(step, callee, accepts, format!("{id}{}", self.suffix), None),
            Action::Each { callee, accepts, of, width, at_most } => {
                return match render_value(of, self) {
                    Ok(Json::Array(items)) if items.len() > *at_most as usize => {
                        Progress::Failed(format!("the list has {} items (limit: {at_most})", items.len()))
                    }
                    Ok(Json::Array(items)) => self.perform_each(step, &id, callee, accepts, &items, *width as usize),
                    Ok(_) => Progress::Failed(format!("`{of}` is not a list")),
                    Err(message) => Progress::Failed(message),
                };
            }
        };
        match made {
            Ok(call) => match (self.result)(&call.id) {
                Some(outcome) => read_outcome(outcome),
                None => {
                    self.calls.push(call);
                    Progress::Open
                }
            },
            Err(message) => Progress::Failed(message),
        }
    }

    fn perform_each(
        &mut self,
        step: usize,
        id: &str,
        callee: &str,
        accepts: &Accepts,
        items: &[Json],
        width: usize,
    ) -> Progress {
        let mut values = Vec::new();
        let mut open = Vec::new();
        let mut failure = None;
        for (index, item) in items.iter().enumerate() {
            let id = format!("{id}.{}{}", index + 1, self.suffix);
            match (self.result)(&id).map(read_outcome) {
                Some(Progress::Done(value)) => values.push(value),
                Some(Progress::Failed(message)) => {
                    failure = failure.or(Some(format!("item {}: {message}", index + 1)));
                }
                Some(Progress::Open) => {}
                None if open.len() < width && failure.is_none() => {
                    match self.call(step, callee, accepts, id, Some(item)) {
                        Ok(call) => open.push(call),
                        Err(message) => failure = Some(format!("item {}: {message}", index + 1)),
                    }
                }
                None => {}
            }
        }
        if let Some(message) = failure {
            return Progress::Failed(message);
        }
        if values.len() == items.len() {
            return Progress::Done(Json::Array(values));
        }
        self.calls.extend(open);
        Progress::Open
    }

    /// Returns the call of a step, or what is wrong with its input.
    fn call(
        &self,
        step: usize,
        callee: &str,
        accepts: &Accepts,
        id: String,
        item: Option<&Json>,
    ) -> Result<StepCall, String> {
        let plan = self.plan;
        let edges = self.edges_into(step);
        let on_edges = edges.iter().filter_map(|edge| edge.input.as_ref());
        let own = plan.steps.get(step).and_then(|step| step.input.as_ref());
        let values = WithItem { values: self, item };
        let arguments = match on_edges.into_iter().next().or(own) {
            Some(PlanInput::Ask(text)) => arguments(Json::from(render(text, &values)?), accepts),
            Some(PlanInput::With(fields)) => {
                let mut arguments = Map::new();
                for (name, text) in fields {
                    arguments.insert(name.clone(), render_value(text, &values)?);
                }
                Json::Object(arguments)
            }
            None => match item {
                Some(item) => arguments(item.clone(), accepts),
                None => arguments(self.incoming(&edges)?, accepts),
            },
        };
        let handoff = edges.iter().find(|edge| edge.kind == EdgeKind::Handoff);
        let continues = handoff.and_then(|edge| {
            let name = plan.steps.get(edge.from).map(|step| step.name.as_str())?;
            Some(format!("{name}-{}{}", self.steps.get(edge.from)?.starts, self.suffix))
        });
        Ok(StepCall { id, callee: callee.to_owned(), arguments, expires_ms: None, continues })
    }

    /// Returns the value that a step receives without saying which.
    fn incoming(&self, edges: &[&PlanEdge]) -> Result<Json, String> {
        match edges {
            [] => Ok(self.takes.clone()),
            [edge] => {
                let before = self.steps.get(edge.from);
                let value = match edge.kind {
                    // The conversation says what came before.
                    EdgeKind::Handoff => Some(self.takes.clone()),
                    EdgeKind::Failed => before.and_then(|step| step.failure.clone()).map(Json::from),
                    _ => before.and_then(|step| step.value.clone()),
                };
                value.ok_or_else(|| "the step before it has no value".to_owned())
            }
            several => Err(format!("it receives {} values", several.len())),
        }
    }

    /// Returns the edges along which a step is reached.
    fn edges_into(&self, step: usize) -> Vec<&PlanEdge> {
        let edges = &self.plan.edges;
        if let Some(state) = self.steps.get(step).filter(|state| !state.again.is_empty()) {
            return state.again.iter().filter_map(|edge| edges.get(*edge)).collect();
        }
        let into = edges.iter().enumerate().filter(|(index, edge)| {
            edge.to == step
                && self.shape.is_back.get(*index) == Some(&false)
                && self.is_taken.get(*index) == Some(&Some(true))
        });
        into.map(|(_, edge)| edge).collect()
    }

    fn set(&mut self, step: usize, status: Status) {
        if let Some(state) = self.steps.get_mut(step) {
            state.status = status;
        }
    }

    fn set_edges(&mut self, step: usize, is_taken: impl Fn(usize, &PlanEdge) -> bool) {
        for (index, (edge, taken)) in self.plan.edges.iter().zip(&mut self.is_taken).enumerate() {
            if edge.from == step {
                *taken = Some(is_taken(index, edge));
            }
        }
    }

    fn error(&self, step: usize, message: String) -> StepError {
        let step = self.plan.steps.get(step).map(|step| step.name.clone()).unwrap_or_default();
        StepError { step, message }
    }
}

fn read_outcome(outcome: &ToolOutcome) -> Progress {
    match outcome {
        ToolOutcome::Value { value } => Progress::Done(value.clone()),
        ToolOutcome::Error { message } => Progress::Failed(message.clone()),
        ToolOutcome::Denied { .. } | ToolOutcome::Cancelled => Progress::Failed(outcome.text()),
    }
}

fn arguments(value: Json, accepts: &Accepts) -> Json {
    match accepts {
        Accepts::Text => json!({ "input": text_of(&value) }),
        Accepts::Nothing => json!({}),
        Accepts::Fields => value,
        Accepts::ArgumentOrFields(_) if value.is_object() => value,
        Accepts::Argument(name) | Accepts::ArgumentOrFields(name) => json!({ name.as_str(): value }),
    }
}
