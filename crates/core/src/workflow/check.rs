//! What is wrong with a workflow.

use super::bound::model_call_bound;
use super::check_value::ValueCheck;
use super::outcome::{RouteDomain, possibilities};
use super::step_type::{Callee, FieldType, field_type, output_types};
use super::topology::{Topology, reached_from};
use crate::declare::workflow::{EdgeKind, EdgeSpec, StepKind, StepSpec, WHOLE_VALUE, WorkflowSpec};
use crate::rule;
use crate::text::nearest;
use crate::types::signature::{Records, Shape, Type};
use patter_gram::{Diagnostic, Span};
use serde_json::Value as Json;

/// What is known about a workflow besides its steps.
pub struct WorkflowContext<'c> {
    /// The type of its input, unless that is text.
    pub takes: Option<Type>,
    /// The type of its result, if it declares one.
    pub returns: Option<Type>,
    /// How many model calls it allows, and where it says so.
    pub max_model_calls: Option<(u64, Span)>,
    /// The record types.
    pub records: &'c Records,
    /// Returns what is known about something that it calls.
    pub callee: &'c dyn Fn(&str) -> Option<Callee>,
    /// Returns how many model calls one call of something takes at most.
    pub model_calls: &'c dyn Fn(&str) -> u64,
    /// Where the workflow is named.
    pub span: Span,
}

/// The most steps of a workflow. What is checked takes longer the more there are.
const MAX_STEPS: usize = 200;

/// Returns what is wrong with a workflow. One mistake is one finding: what depends on a wrong part is not reported.
pub fn findings(spec: &WorkflowSpec<'_>, context: &WorkflowContext<'_>) -> Vec<Diagnostic> {
    if !spec.diagnostics.is_empty() {
        return spec.diagnostics.clone();
    }
    if spec.steps.is_empty() {
        let found = rule::BAD_STEP.at(context.span, "this workflow has no steps");
        return vec![found.with_hint("write a path of steps: `[name:Workflow {…} | (first)-->(second)]`")];
    }
    if spec.steps.len() > MAX_STEPS {
        let message = format!("this workflow has {} steps (limit: {MAX_STEPS})", spec.steps.len());
        return vec![
            rule::TOO_MANY_ROUTES.at(context.span, message).with_hint("move some of them to another workflow"),
        ];
    }
    let edges: Vec<_> = spec.edges.iter().map(|edge| (edge.from, edge.to)).collect();
    let shape = Topology::new(spec.steps.len(), &edges);
    let check =
        WorkflowCheck { spec, context, shape: &shape, outputs: output_types(spec, context.records, context.callee) };
    for stage in [WorkflowCheck::shape, WorkflowCheck::routes, WorkflowCheck::values] {
        let found = stage(&check);
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

struct WorkflowCheck<'c, 'p> {
    spec: &'c WorkflowSpec<'p>,
    context: &'c WorkflowContext<'c>,
    shape: &'c Topology,
    outputs: Vec<Option<Type>>,
}

impl WorkflowCheck<'_, '_> {
    /// Checks the graph alone.
    fn shape(&self) -> Vec<Diagnostic> {
        let mut found: Vec<_> =
            self.spec.edges.iter().enumerate().filter_map(|(index, edge)| self.edge(index, edge)).collect();
        if !found.is_empty() {
            return found;
        }
        for knot in &self.shape.knots {
            let names: Vec<_> = knot.iter().filter_map(|step| self.spec.steps.get(*step)).collect();
            let Some(first) = names.first() else { continue };
            let listed: Vec<_> = names.iter().map(|step| format!("`{}`", step.name)).collect();
            let message = format!("{} wait for each other", listed.join(" and "));
            found.push(rule::WAITING_JOIN.at(first.span(), message).with_hint(
                "this cycle can be entered at several steps; let all edges into it, and back, lead to the same step",
            ));
        }
        let pairs: Vec<_> = self.spec.edges.iter().map(|edge| (edge.from, edge.to)).collect();
        let ends: Vec<_> = (0..self.spec.steps.len()).filter(|step| self.is_end(*step)).collect();
        for (index, step) in self.spec.steps.iter().enumerate() {
            if self.shape.is_reached.get(index) == Some(&false) && !self.is_knotted(index) {
                let message = format!("nothing leads to the step `{}`", step.name);
                let found_here = rule::UNREACHABLE_STEP.at(step.span(), message);
                found.push(found_here.with_hint("add an edge to it, or remove it"));
            } else if !ends.contains(&index) && !reached_from(index, &pairs).iter().any(|step| ends.contains(step)) {
                found.push(self.endless(index, step));
            }
        }
        // One of several steps that lead to each other is enough.
        let mut endless = found.iter().filter(|found| found.code == rule::ENDLESS_STEP.code).count();
        found.retain(|found| {
            let is_endless = found.code == rule::ENDLESS_STEP.code;
            endless -= usize::from(is_endless);
            !is_endless || endless == 0
        });
        found
    }

    fn endless(&self, index: usize, step: &StepSpec<'_>) -> Diagnostic {
        let message = format!("no edge leads from `{}` to an end", step.name);
        let hint = match self.shape.is_back.iter().zip(&self.spec.edges).any(|(back, edge)| *back && edge.from == index)
        {
            true => "it only leads back; add an edge to a step that ends the workflow",
            false => "add an edge to a step that ends the workflow",
        };
        rule::ENDLESS_STEP.at(step.span(), message).with_hint(hint)
    }

    fn is_knotted(&self, step: usize) -> bool {
        self.shape.knots.iter().any(|knot| knot.contains(&step))
    }

    fn is_end(&self, step: usize) -> bool {
        !self.spec.edges_from(step).any(|edge| !matches!(edge.kind, EdgeKind::Failed | EdgeKind::Exhausted))
    }

    /// Checks an edge by itself.
    fn edge(&self, index: usize, edge: &EdgeSpec) -> Option<Diagnostic> {
        let from = self.spec.steps.get(edge.from)?;
        let to = self.spec.steps.get(edge.to)?;
        let is_back = self.shape.is_back.get(index) == Some(&true);
        let leads_back = |other: &EdgeSpec| {
            let index = self.spec.edges.iter().position(|one| std::ptr::eq(one, other));
            index.is_some_and(|index| self.shape.is_back.get(index) == Some(&true))
        };
        if let StepKind::Give { .. } = from.kind {
            let message = format!("`{}` ends the workflow, so nothing can follow it", from.name);
            return Some(rule::BAD_EDGE.at(edge.span, message).with_hint("remove this edge, or the label `Give`"));
        }
        if is_back && matches!(edge.kind, EdgeKind::Then | EdgeKind::Handoff | EdgeKind::Exhausted) {
            let message = format!("`{}` always leads back to `{}`", from.name, to.name);
            let found = rule::UNBOUNDED_CYCLE.at(edge.span, message);
            return Some(found.with_hint("add a condition and a bound: `-[:When { field: \"value\", atMost: 3 }]->`"));
        }
        if is_back && edge.at_most.is_none() {
            let message = format!("`{}` may lead back to `{}` any number of times", from.name, to.name);
            return Some(rule::UNBOUNDED_CYCLE.at(edge.span, message).with_hint("add a bound, such as `atMost: 3`"));
        }
        if !is_back && edge.at_most.is_some() && !self.is_knotted(edge.to) {
            let found = rule::BAD_EDGE.at(edge.span, "`atMost` is only for edges that lead back");
            return Some(found.with_hint("remove it: this edge is taken at most once"));
        }
        if edge.kind == EdgeKind::Exhausted {
            if !self.spec.edges_from(edge.from).any(leads_back) {
                let message = format!("no edge leads back from `{}`, so nothing can be exhausted", from.name);
                return Some(rule::BAD_EDGE.at(edge.span, message).with_hint("remove this edge"));
            }
            if self.shape.left_by(edge.from, edge.to).next().is_none() {
                let message = "this edge leads into the cycle that is exhausted";
                return Some(rule::BAD_EDGE.at(edge.span, message).with_hint("let it lead to a step after the cycle"));
            }
        }
        if edge.kind == EdgeKind::Otherwise
            && !self.spec.edges_from(edge.from).any(|other| other.kind == EdgeKind::When)
        {
            let found = rule::BAD_EDGE.at(edge.span, format!("no other edge from `{}` has a condition", from.name));
            return Some(found.with_hint("remove the label `Otherwise`, or add an edge with `When`"));
        }
        if edge.kind == EdgeKind::Handoff {
            return self.handoff(edge, from, to);
        }
        None
    }

    /// Checks that both steps of a hand-off are agents with a conversation.
    fn handoff(&self, edge: &EdgeSpec, from: &StepSpec<'_>, to: &StepSpec<'_>) -> Option<Diagnostic> {
        for step in [from, to] {
            let has_conversation = match &step.kind {
                StepKind::Call { callee } => match (self.context.callee)(callee) {
                    Some(Callee::Agent { is_workflow, .. }) => !is_workflow,
                    Some(Callee::Tool { .. }) => false,
                    None => true,
                },
                StepKind::Each { .. } | StepKind::Human { .. } | StepKind::Give { .. } => false,
            };
            if !has_conversation {
                let message = format!("`{}` has no conversation to hand over or to continue", step.name);
                let found = rule::BAD_HANDOFF.at(edge.span, message);
                return Some(found.with_hint("hand over from one agent to another, or pass a value with `-->`"));
            }
        }
        None
    }

    /// Checks the conditions of edges.
    fn routes(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for (index, step) in self.spec.steps.iter().enumerate() {
            let conditions: Vec<_> = self.spec.edges_from(index).filter_map(|edge| edge.condition.as_ref()).collect();
            let Some(first) = conditions.first() else { continue };
            if let Some(other) = conditions.iter().find(|other| other.field != first.field) {
                let message = format!("the routes from `{}` test `{}` and `{}`", step.name, first.field, other.field);
                let other = rule::BAD_EDGE.at(other.key_span, message).with_related(first.key_span, "the first field");
                found.push(other.with_hint("test one field; put a second step in between to test another"));
                continue;
            }
            let allowed = match self.allowed(index, &first.field) {
                Ok(allowed) => allowed,
                Err(diagnostic) => {
                    found.push(*diagnostic);
                    continue;
                }
            };
            if let Some(allowed) = &allowed {
                for condition in &conditions {
                    for value in condition.values.iter().filter(|value| !allowed.contains(value)) {
                        found.push(never_met(&step.name, &first.field, value, allowed, condition.span));
                    }
                }
            }
            let has_otherwise = self.spec.edges_from(index).any(|edge| edge.kind == EdgeKind::Otherwise);
            if !found.is_empty() || has_otherwise {
                continue;
            }
            let is_covered = |value: &&Json| conditions.iter().any(|condition| condition.values.contains(value));
            let missing: Option<Vec<_>> =
                allowed.map(|allowed| allowed.iter().filter(|value| !is_covered(value)).map(Json::to_string).collect());
            let message = match missing {
                Some(missing) if missing.is_empty() => continue,
                Some(missing) => format!("no route from `{}` is for {}", step.name, missing.join(", ")),
                None => format!("the routes from `{}` do not cover every value of `{}`", step.name, first.field),
            };
            let edge = self.spec.edges_from(index).find(|edge| edge.kind == EdgeKind::When);
            let span = edge.map_or(step.span(), |edge| edge.span);
            let hint = "add a route for it, or an edge with `Otherwise`";
            found.push(rule::INCOMPLETE_ROUTE.at(span, message).with_hint(hint));
        }
        found
    }

    /// Returns the values that the field of a step can have, if they are known, or what is wrong with the field.
    fn allowed(&self, step: usize, field: &str) -> Result<Option<Vec<Json>>, Box<Diagnostic>> {
        let Some(Some(ty)) = self.outputs.get(step) else { return Ok(None) };
        let path = (field != WHOLE_VALUE).then(|| field.split('.')).into_iter().flatten();
        let condition = self.spec.edges_from(step).find_map(|edge| edge.condition.as_ref());
        let span = condition.map_or(self.context.span, |condition| condition.key_span);
        let name = self.spec.steps.get(step).map(|step| step.name.as_str()).unwrap_or_default();
        match field_type(ty, path, self.context.records) {
            FieldType::Known(ty) => Ok(match (ty.facets.allowed, ty.shape) {
                (Some(allowed), _) => Some(allowed),
                (None, Shape::Boolean) => Some(vec![Json::Bool(true), Json::Bool(false)]),
                (None, _) => None,
            }),
            // A missing field meets no condition.
            FieldType::Missing { .. } | FieldType::Any => Ok(None),
            FieldType::Unknown { field, known } => {
                let message = format!("`{name}` returns no field `{field}`");
                let found = rule::UNKNOWN_ROUTE_VALUE.at(span, message);
                let names = known.iter().map(String::as_str);
                Err(Box::new(found.with_hint(match nearest(&field, names) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None if known.is_empty() => {
                        format!("it returns {ty}; test the whole value with `{WHOLE_VALUE}`, or declare `returns`")
                    }
                    None => format!("its fields are {}", known.join(", ")),
                })))
            }
        }
    }

    /// Checks what steps receive and return, given everything that can happen.
    fn values(&self) -> Vec<Diagnostic> {
        let domain = |step: usize| {
            let conditions: Vec<_> = self.spec.edges_from(step).filter_map(|edge| edge.condition.as_ref()).collect();
            let Some(first) = conditions.first() else { return RouteDomain { values: Vec::new(), is_open: true } };
            match self.allowed(step, &first.field) {
                Ok(Some(values)) => RouteDomain { values, is_open: false },
                _ => {
                    let values = conditions.iter().flat_map(|condition| condition.values.iter().cloned());
                    RouteDomain { values: values.collect(), is_open: true }
                }
            }
        };
        let possible = possibilities(self.spec, self.shape, &domain);
        if possible.is_incomplete {
            let found =
                rule::TOO_MANY_ROUTES.at(self.context.span, "this workflow has more routes than can be checked");
            return vec![found.with_hint("move some of its steps to another workflow, and call that")];
        }
        let mut found = Vec::new();
        for (step, possible) in self.spec.steps.iter().zip(&possible.steps) {
            if possible.available.is_none() {
                let message = format!("the step `{}` is never reached", step.name);
                let hint = "no edge to it is ever taken; change their conditions, or remove the step";
                found.push(rule::UNREACHABLE_STEP.at(step.span(), message).with_hint(hint));
            }
        }
        if !found.is_empty() {
            return found;
        }
        if let Some([first, second, ..]) = possible.ends.iter().find(|ends| ends.len() > 1).map(Vec::as_slice)
            && let (Some(first), Some(second)) = (self.spec.steps.get(*first), self.spec.steps.get(*second))
        {
            let message = format!("the workflow can end with both `{}` and `{}`", first.name, second.name);
            let found = rule::SEVERAL_RESULTS.at(second.span(), message);
            let found = found.with_related(first.span(), "the first end");
            return vec![found.with_hint("let both lead to a step that joins them")];
        }
        let values =
            ValueCheck { spec: self.spec, context: self.context, outputs: &self.outputs, possible: &possible.steps };
        found = values.findings();
        if found.is_empty() {
            found.extend(self.too_many_calls());
        }
        found
    }

    fn too_many_calls(&self) -> Option<Diagnostic> {
        let (limit, span) = self.context.max_model_calls?;
        let bound = model_call_bound(self.spec, self.context.model_calls);
        (bound > limit).then(|| {
            let message = format!("this workflow may call models {bound} times, but allows {limit}");
            let hint = "raise `maxModelCalls`, or lower `atMost` of cycles and lists, or `maxTurns` of agents";
            rule::TOO_MANY_MODEL_CALLS.at(span, message).with_hint(hint)
        })
    }
}

fn never_met(step: &str, field: &str, value: &Json, allowed: &[Json], span: Span) -> Diagnostic {
    let what = if field == WHOLE_VALUE {
        format!("`{step}` never returns")
    } else {
        format!("`{field}` of `{step}` is never")
    };
    let found = rule::UNKNOWN_ROUTE_VALUE.at(span, format!("{what} {value}"));
    let texts: Vec<_> = allowed.iter().filter_map(Json::as_str).collect();
    let near = value.as_str().and_then(|value| nearest(value, texts.iter().copied()));
    let all: Vec<_> = allowed.iter().map(Json::to_string).collect();
    found.with_hint(match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("possible values: {}", all.join(", ")),
    })
}
