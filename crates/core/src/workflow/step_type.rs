//! What steps accept and return.

use crate::declare::project::Project;
use crate::declare::scope::Scope;
use crate::declare::workflow::{StepKind, WorkflowSpec};
use crate::declare::{Agent, DeclarationKind, ToolSpec};
use crate::types::signature::{Field, Presence, Records, Shape, Signature, Type};

/// What a workflow knows about something that it calls.
#[derive(Debug, Clone, PartialEq)]
pub enum Callee {
    /// An agent or a workflow.
    Agent {
        /// The type of its input, unless that is text.
        takes: Option<Type>,
        /// The type of its answer, unless that is text.
        returns: Option<Type>,
        /// Whether it is a workflow.
        is_workflow: bool,
    },
    /// A tool.
    Tool {
        /// Its signature.
        signature: Signature,
    },
}

impl Callee {
    /// Returns what is known about a name in the scope of a workflow, if the project declares it.
    pub fn find<'p>(project: &'p Project, scope: &Scope<'p>, name: &str) -> Option<Self> {
        let found = project.resolve(scope, name);
        let [candidate] = found.as_slice() else { return None };
        match candidate.kind {
            DeclarationKind::Agent => Self::from_agent(&project.agent(candidate.pattern)?, project.records()),
            DeclarationKind::Tool | DeclarationKind::Implementation => {
                let signature = ToolSpec::cast(candidate.pattern)?.signature(project.records()).ok()?;
                Some(Callee::Tool { signature })
            }
            _ => None,
        }
    }

    /// Returns what is known about an agent.
    pub(crate) fn from_agent(agent: &Agent, records: &Records) -> Option<Self> {
        if agent.is_pipe() && agent.signature().is_none() {
            // Only the library knows its tools.
            return None;
        }
        let takes = agent.takes(records).transpose().ok()?;
        let returns = agent.returns(records).transpose().ok()?;
        Some(Callee::Agent { takes, returns, is_workflow: agent.is_workflow() })
    }

    /// Returns the type of what it returns.
    pub(super) fn output(&self) -> Type {
        match self {
            Callee::Agent { returns, .. } => returns.clone().unwrap_or_else(|| Type::new(Shape::Text)),
            Callee::Tool { signature } => signature.returns.clone(),
        }
    }
}

/// Returns the types of what the steps of a workflow return. Nothing is known of a step that the project does not declare.
pub(super) fn output_types(
    spec: &WorkflowSpec<'_>,
    records: &Records,
    callee: &dyn Fn(&str) -> Option<Callee>,
) -> Vec<Option<Type>> {
    let types = spec.steps.iter().map(|step| match &step.kind {
        StepKind::Call { callee: name } => callee(name).map(|callee| callee.output()),
        StepKind::Each { callee: name, .. } => {
            callee(name).map(|callee| Type::new(Shape::Array(Box::new(callee.output()))))
        }
        StepKind::Human { returns: Some(ty), .. } => Type::parse(&ty.text, records).ok(),
        StepKind::Human { returns: None, .. } => Some(Type::new(Shape::Text)),
        // It has the type of its value, and nothing follows it.
        StepKind::Give { .. } => None,
    });
    types.collect()
}

/// What is at the end of a path into a type.
pub(super) enum FieldType {
    /// A field that is always there.
    Known(Type),
    /// A field that may be missing.
    Missing {
        /// The name of the field that may be.
        field: String,
    },
    /// There is no such field.
    Unknown {
        /// The name of the field.
        field: String,
        /// The fields that there are.
        known: Vec<String>,
    },
    /// Anything.
    Any,
}

/// Returns the type of a field of a type, given the path to it.
pub(super) fn field_type<'n>(ty: &Type, path: impl IntoIterator<Item = &'n str>, records: &Records) -> FieldType {
    let mut ty = ty.clone();
    for name in path {
        let fields: Option<Vec<Field>> = match &ty.shape {
            Shape::Any | Shape::Schema(_) => return FieldType::Any,
            Shape::Object(fields) if fields.is_empty() => return FieldType::Any,
            Shape::Object(fields) => Some(fields.clone()),
            Shape::Record(record) => records.get(record).map(|record| record.fields.clone()),
            Shape::Text | Shape::Integer | Shape::Number | Shape::Boolean | Shape::Array(_) => None,
        };
        let fields = fields.unwrap_or_default();
        let Some(field) = fields.iter().find(|field| field.name == name) else {
            let known = fields.iter().map(|field| field.name.clone()).collect();
            return FieldType::Unknown { field: name.to_owned(), known };
        };
        if field.presence == Presence::Optional || field.ty.facets.nullable {
            return FieldType::Missing { field: name.to_owned() };
        }
        ty = field.ty.clone();
    }
    FieldType::Known(ty)
}
