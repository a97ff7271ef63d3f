//! Everything that can happen in a workflow, found by trying it.
//!
//! What a step returns decides which edges are taken. Trying all combinations of that says exactly which values are there
//! when a step starts, which edges lead to it at once, and which steps end the workflow.

use super::topology::{Cycle, Topology, reached_from};
use crate::declare::workflow::{EdgeKind, WorkflowSpec};
use serde_json::Value as Json;
use std::collections::{BTreeSet, HashSet};

/// The most combinations that are tried.
const MAX_COMBINATIONS: usize = 5000;

/// What can happen in a workflow.
#[derive(Debug, Default)]
pub(super) struct Possibilities {
    /// What can happen to each step.
    pub(super) steps: Vec<StepPossibilities>,
    /// The steps that end the workflow at once.
    pub(super) ends: BTreeSet<Vec<usize>>,
    /// Whether there are too many combinations to try.
    pub(super) is_incomplete: bool,
}

/// What can happen to a step.
#[derive(Debug, Default, Clone)]
pub(super) struct StepPossibilities {
    /// The steps whose values are always there when it starts, or `None` if it never starts.
    pub(super) available: Option<HashSet<usize>>,
    /// The edges along which it is reached at once.
    pub(super) edges: BTreeSet<Vec<usize>>,
    /// The edges along which a cycle leads back to it at once.
    pub(super) back: BTreeSet<Vec<usize>>,
}

/// The values that a route distinguishes: all that are possible, or those that are named and any other.
#[derive(Debug, Clone)]
pub(super) struct RouteDomain {
    /// The values.
    pub(super) values: Vec<Json>,
    /// Whether there are others.
    pub(super) is_open: bool,
}

/// What a step can do: whether it succeeds, and which of its edges are taken.
#[derive(Debug, Clone, PartialEq)]
struct Effect {
    is_ok: bool,
    taken: Vec<usize>,
    /// The edges that lead back and are taken, so that what follows does not happen yet.
    back: Vec<usize>,
}

/// Tries everything that can happen. `domain` returns the values that the routes of a step distinguish.
pub(super) fn possibilities(
    spec: &WorkflowSpec<'_>,
    shape: &Topology,
    domain: &dyn Fn(usize) -> RouteDomain,
) -> Possibilities {
    let count = spec.steps.len();
    let edges: Vec<_> = spec.edges.iter().map(|edge| (edge.from, edge.to)).collect();
    let forward: Vec<_> = edges.iter().zip(&shape.is_back).filter(|(_, back)| !**back).map(|(edge, _)| *edge).collect();
    let mut ancestors = vec![HashSet::new(); count];
    for step in 0..count {
        for later in reached_from(step, &forward) {
            if let Some(before) = ancestors.get_mut(later) {
                before.insert(step);
            }
        }
    }
    let effects = (0..count).map(|step| effects(spec, shape, step, &domain(step))).collect();
    let mut found = Possibilities { steps: vec![StepPossibilities::default(); count], ..Possibilities::default() };
    let mut trial = Trial { spec, shape, effects, ancestors, left: MAX_COMBINATIONS, found: &mut found };
    let start = Situation { states: vec![None; count], is_taken: vec![None; spec.edges.len()], repeating: Vec::new() };
    trial.try_from(0, &start);
    found
}

/// Returns what a step can do.
fn effects(spec: &WorkflowSpec<'_>, shape: &Topology, step: usize, domain: &RouteDomain) -> Vec<Effect> {
    let own: Vec<_> = spec.edges.iter().enumerate().filter(|(_, edge)| edge.from == step).collect();
    let mut taken_sets: Vec<(bool, Vec<usize>)> = Vec::new();
    let others = domain.is_open.then_some(None);
    for value in domain.values.iter().map(Some).chain(others) {
        let meets = |index: usize| {
            let condition = spec.edges.get(index).and_then(|edge| edge.condition.as_ref());
            value.is_some_and(|value| condition.is_some_and(|condition| condition.values.contains(value)))
        };
        let is_met = own.iter().any(|(index, _)| meets(*index));
        let taken = own.iter().filter(|(index, edge)| match edge.kind {
            EdgeKind::Then | EdgeKind::Handoff => true,
            EdgeKind::When => meets(*index),
            EdgeKind::Otherwise => !is_met,
            EdgeKind::Failed | EdgeKind::Exhausted => false,
        });
        taken_sets.push((true, taken.map(|(index, _)| *index).collect()));
    }
    let failed: Vec<_> =
        own.iter().filter(|(_, edge)| edge.kind == EdgeKind::Failed).map(|(index, _)| *index).collect();
    if !failed.is_empty() {
        taken_sets.push((false, failed));
    }
    let exhausted: Vec<_> =
        own.iter().filter(|(_, edge)| edge.kind == EdgeKind::Exhausted).map(|(index, _)| *index).collect();
    let mut effects: Vec<Effect> = Vec::new();
    for (is_ok, taken) in taken_sets {
        let (back, ahead): (Vec<_>, Vec<_>) =
            taken.into_iter().partition(|edge| shape.is_back.get(*edge) == Some(&true));
        let mut variants = Vec::new();
        if back.is_empty() {
            variants.push(Effect { is_ok, taken: ahead, back });
        } else {
            if !exhausted.is_empty() {
                let taken = ahead.iter().chain(&exhausted).copied().collect();
                variants.push(Effect { is_ok, taken, back: Vec::new() });
            }
            variants.push(Effect { is_ok, taken: ahead, back });
        }
        for variant in variants {
            if !effects.contains(&variant) {
                effects.push(variant);
            }
        }
    }
    effects
}

struct Trial<'t, 'p> {
    spec: &'t WorkflowSpec<'p>,
    shape: &'t Topology,
    effects: Vec<Vec<Effect>>,
    ancestors: Vec<HashSet<usize>>,
    /// How many more combinations may be tried.
    left: usize,
    found: &'t mut Possibilities,
}

/// What happened so far. Nothing is known of what does not happen yet.
#[derive(Clone)]
struct Situation {
    /// Whether a step succeeded, failed or was skipped.
    states: Vec<Option<StepState>>,
    is_taken: Vec<Option<bool>>,
    /// The edges that lead back.
    repeating: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StepState {
    Ok,
    Failed,
    Skipped,
    /// It does not happen yet, because a cycle before it repeats.
    Later,
}

impl Trial<'_, '_> {
    fn try_from(&mut self, position: usize, situation: &Situation) {
        if self.left == 0 {
            self.found.is_incomplete = true;
            return;
        }
        let Some(step) = self.shape.order.get(position).copied() else {
            self.left -= 1;
            return self.finish(situation);
        };
        let mut reached = Vec::new();
        let mut is_later = false;
        for (index, edge) in self.spec.edges.iter().enumerate() {
            if edge.to != step || self.shape.is_back.get(index) == Some(&true) {
                continue;
            }
            match self.taken(situation, index) {
                Some(true) => reached.push(index),
                Some(false) => {}
                None => is_later = true,
            }
        }
        let is_reached = !reached.is_empty() || self.shape.entries.contains(&step);
        if is_later || !is_reached {
            let state = if is_later { StepState::Later } else { StepState::Skipped };
            let mut next = situation.clone();
            self.set(&mut next, step, state, |_| if is_later { None } else { Some(false) });
            return self.try_from(position + 1, &next);
        }
        self.record(step, reached, situation);
        for effect in self.effects.get(step).cloned().unwrap_or_default() {
            let mut next = situation.clone();
            let state = if effect.is_ok { StepState::Ok } else { StepState::Failed };
            self.set(&mut next, step, state, |edge| Some(effect.taken.contains(&edge)));
            next.repeating.extend(&effect.back);
            self.try_from(position + 1, &next);
        }
    }

    fn set(&self, situation: &mut Situation, step: usize, state: StepState, taken: impl Fn(usize) -> Option<bool>) {
        if let Some(known) = situation.states.get_mut(step) {
            *known = Some(state);
        }
        for (index, edge) in self.spec.edges.iter().enumerate() {
            if let Some(known) = situation.is_taken.get_mut(index).filter(|_| edge.from == step) {
                *known = taken(index);
            }
        }
    }

    /// Returns whether an edge is taken. Nothing is known yet about edges out of a cycle that repeats.
    fn taken(&self, situation: &Situation, index: usize) -> Option<bool> {
        let edge = self.spec.edges.get(index)?;
        let is_inside = |back: &usize, cycle: &Cycle| {
            let back = self.spec.edges.get(*back);
            back.is_some_and(|back| cycle.steps.contains(&back.from) && cycle.steps.contains(&back.to))
        };
        let repeats = |cycle: &Cycle| situation.repeating.iter().any(|back| is_inside(back, cycle));
        if self.shape.left_by(edge.from, edge.to).any(repeats) {
            return None;
        }
        situation.is_taken.get(index).copied().flatten()
    }

    fn record(&mut self, step: usize, reached: Vec<usize>, situation: &Situation) {
        let Some(before) = self.ancestors.get(step) else { return };
        let is_ok = |step: &&usize| situation.states.get(**step) == Some(&Some(StepState::Ok));
        let values: HashSet<_> = before.iter().filter(is_ok).copied().collect();
        let Some(found) = self.found.steps.get_mut(step) else { return };
        found.available = Some(match &found.available {
            Some(known) => known.intersection(&values).copied().collect(),
            None => values,
        });
        found.edges.insert(reached);
    }

    fn finish(&mut self, situation: &Situation) {
        for cycle in &self.shape.cycles {
            let back: Vec<_> = cycle.edges.iter().copied().filter(|edge| situation.repeating.contains(edge)).collect();
            if let Some(first) = self.found.steps.get_mut(cycle.first).filter(|_| !back.is_empty()) {
                first.back.insert(back);
            }
        }
        if situation.states.contains(&Some(StepState::Later)) || !situation.repeating.is_empty() {
            return;
        }
        let goes_on = |step: usize| {
            self.spec.edges_from(step).any(|edge| !matches!(edge.kind, EdgeKind::Failed | EdgeKind::Exhausted))
        };
        let is_ok = |step: &usize| situation.states.get(*step) == Some(&Some(StepState::Ok));
        let ends: Vec<_> = (0..self.spec.steps.len()).filter(is_ok).filter(|step| !goes_on(*step)).collect();
        if !ends.is_empty() {
            self.found.ends.insert(ends);
        }
    }
}
