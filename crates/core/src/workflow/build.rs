//! Workflows to plans.

use super::plan::{Accepts, Action, Condition, Plan, PlanEdge, PlanInput, PlanStep};
use super::step_type::Callee;
use crate::declare::workflow::{InputSpec, StepKind, WHOLE_VALUE, WorkflowSpec};
use crate::types::schema::type_schema;
use crate::types::signature::{Presence, Records, Shape, Type};

/// Returns the plan of a workflow without errors. `callee` returns what is known about something that it calls.
pub fn build_plan(
    spec: &WorkflowSpec<'_>,
    takes: Option<&Type>,
    records: &Records,
    callee: &dyn Fn(&str) -> Option<Callee>,
) -> Plan {
    let accepts = |name: &str| callee(name).map_or(Accepts::Text, |callee| accepted(&callee, records));
    let steps = spec.steps.iter().map(|step| PlanStep {
        name: step.name.clone(),
        action: match &step.kind {
            StepKind::Call { callee } => Action::Call { callee: callee.clone(), accepts: accepts(callee) },
            StepKind::Each { callee, of, width, at_most } => Action::Each {
                callee: callee.clone(),
                accepts: accepts(callee),
                of: of.text.clone(),
                width: *width,
                at_most: *at_most,
            },
            StepKind::Human { question, expires_ms, returns } => Action::Ask {
                question: question.text.clone(),
                expires_ms: *expires_ms,
                returns: returns
                    .as_ref()
                    .and_then(|ty| Type::parse(&ty.text, records).ok())
                    .filter(|ty| ty.shape != Shape::Text || ty.facets.allowed.is_some())
                    .map(|ty| type_schema(&ty, records)),
            },
            StepKind::Give { value } => Action::Give { value: value.text.clone() },
        },
        input: step.input.as_ref().map(plan_input),
    });
    let edges = spec.edges.iter().map(|edge| PlanEdge {
        from: edge.from,
        to: edge.to,
        kind: edge.kind,
        condition: edge.condition.as_ref().map(|condition| Condition {
            field: match condition.field.as_str() {
                WHOLE_VALUE => Vec::new(),
                field => field.split('.').map(str::to_owned).collect(),
            },
            values: condition.values.clone(),
        }),
        at_most: edge.at_most,
        input: edge.input.as_ref().map(plan_input),
    });
    Plan { steps: steps.collect(), edges: edges.collect(), has_typed_input: takes.is_some_and(is_typed) }
}

/// Returns whether values of a type are written as JSON where a text is expected.
pub fn is_typed(ty: &Type) -> bool {
    ty.shape != Shape::Text
}

fn plan_input(input: &InputSpec) -> PlanInput {
    match input {
        InputSpec::Ask(text) => PlanInput::Ask(text.text.clone()),
        InputSpec::With { fields, .. } => {
            PlanInput::With(fields.iter().map(|(name, text)| (name.clone(), text.text.clone())).collect())
        }
    }
}

/// Returns how arguments are made of a value that something is called with.
fn accepted(callee: &Callee, records: &Records) -> Accepts {
    match callee {
        Callee::Agent { takes: None, .. } => Accepts::Text,
        Callee::Agent { takes: Some(takes), .. } => match &takes.shape {
            Shape::Text => Accepts::Text,
            Shape::Object(_) => Accepts::Fields,
            Shape::Record(name) if records.get(name).is_some() => Accepts::Fields,
            _ => Accepts::Argument("input".to_owned()),
        },
        Callee::Tool { signature } => {
            let parameters = &signature.parameters;
            let mut required = parameters.iter().filter(|parameter| parameter.presence == Presence::Required);
            match (required.next(), required.next(), parameters.as_slice()) {
                (_, _, []) => Accepts::Nothing,
                (Some(one), None, _) | (None, None, [one]) => match one.ty.shape {
                    // An object may be the arguments or the one argument: what fits its type is that.
                    Shape::Object(_) | Shape::Record(_) if parameters.len() > 1 => Accepts::Fields,
                    Shape::Text | Shape::Integer | Shape::Number | Shape::Boolean | Shape::Array(_) => {
                        Accepts::ArgumentOrFields(one.name.clone())
                    }
                    _ => Accepts::Argument(one.name.clone()),
                },
                _ => Accepts::Fields,
            }
        }
    }
}
