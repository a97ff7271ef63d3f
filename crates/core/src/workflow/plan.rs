//! A workflow that is ready to run.

use crate::declare::workflow::EdgeKind;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// A workflow that is ready to run. It is part of what a session logs about a run, so that the run can be resumed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Plan {
    /// The steps, in order.
    pub steps: Vec<PlanStep>,
    /// The edges, in order.
    pub edges: Vec<PlanEdge>,
    /// Whether the input is a JSON value, not a text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_typed_input: bool,
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanStep {
    /// The name.
    pub name: String,
    /// What it does.
    pub action: Action,
    /// What it does that with, if that is not the value of the step before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<PlanInput>,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Action {
    /// It calls an agent, a tool or a workflow.
    Call {
        /// The name under which the workflow calls it.
        callee: String,
        /// What that accepts.
        accepts: Accepts,
    },
    /// It calls something for each item of a list.
    Each {
        /// The name under which the workflow calls it.
        callee: String,
        /// What that accepts.
        accepts: Accepts,
        /// The placeholder of the list.
        of: String,
        /// How many items are worked on at once.
        width: u32,
        /// The most items.
        at_most: u32,
    },
    /// It asks a person.
    Ask {
        /// The question, a text with placeholders.
        question: String,
        /// How long the person has, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_ms: Option<u64>,
        /// The JSON Schema of the answer, unless it is a text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        returns: Option<Json>,
    },
    /// It is done at once, with a value.
    Give {
        /// The value, a text with placeholders.
        value: String,
    },
}

/// What a callee accepts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accepts {
    /// A text, as the argument `input`.
    Text,
    /// Nothing: the value is not passed on.
    Nothing,
    /// An object, whose fields are the arguments.
    Fields,
    /// One value, as an argument with this name.
    Argument(String),
    /// One value that is not an object, as an argument with this name, or an object, whose fields are the arguments.
    ArgumentOrFields(String),
}

/// What a step is called with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanInput {
    /// A text with placeholders.
    Ask(String),
    /// Arguments, each a text with placeholders. A text that is only a placeholder is its value.
    With(Vec<(String, String)>),
}

/// An edge of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanEdge {
    /// The index of the step that it starts from.
    pub from: usize,
    /// The index of the step that it leads to.
    pub to: usize,
    /// When it is taken.
    pub kind: EdgeKind,
    /// The condition of a route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
    /// How often it may be taken, if it leads back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u32>,
    /// What the step is called with along this edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<PlanInput>,
}

/// The condition of a route.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// The path to a field, empty for the whole value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub field: Vec<String>,
    /// The values that meet it.
    pub values: Vec<Json>,
}

impl Plan {
    /// Makes the first step take the input of the workflow as its arguments, as the first tool of a pipe does.
    pub(crate) fn pass_arguments(&mut self) {
        if let Some(PlanStep { action: Action::Call { accepts, .. }, input: None, .. }) = self.steps.first_mut() {
            *accepts = Accepts::Fields;
        }
    }

    /// Returns the steps at both ends of each edge.
    pub(super) fn edge_ends(&self) -> Vec<(usize, usize)> {
        self.edges.iter().map(|edge| (edge.from, edge.to)).collect()
    }

    /// Returns whether the workflow ends after a step that succeeded.
    pub(super) fn is_end(&self, step: usize) -> bool {
        let goes_on =
            |edge: &PlanEdge| edge.from == step && !matches!(edge.kind, EdgeKind::Failed | EdgeKind::Exhausted);
        !self.edges.iter().any(goes_on)
    }
}

impl Condition {
    /// Returns whether a value meets the condition.
    pub fn is_met(&self, value: &Json) -> bool {
        let found = self.field.iter().try_fold(value, |value, key| value.get(key));
        found.is_some_and(|found| self.values.iter().any(|value| crate::types::signature::json_eq(value, found)))
    }
}
