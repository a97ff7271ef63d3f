//! Groups of patterns, prepared so that they are found fast.

use super::{Budget, Stop};
use crate::query::adjacency::{Adjacency, Way};
use crate::query::constraint::Constraint;
use crate::query::pattern::{Group, Hops, VertexPattern};
use crate::query::property_graph::{PropertyGraph, VertexIndex, position};
use std::collections::HashMap;
use std::rc::Rc;

/// A group of patterns, with what is known before it is searched for.
#[derive(Debug)]
pub(super) struct Prepared {
    /// For each vertex, the vertices of the graph that it may stand for, sorted.
    pub(super) candidates: Vec<Vec<u32>>,
    pub(super) arrows: Vec<PreparedArrow>,
    different: Vec<(usize, usize)>,
    absent: Vec<PreparedAbsence>,
}

#[derive(Debug)]
pub(super) struct PreparedArrow {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) hops: Hops,
    pub(super) adjacency: Adjacency,
    /// What can be reached from a vertex, once somebody asked.
    reached: HashMap<(Way, u32), Rc<[u32]>>,
}

#[derive(Debug)]
struct PreparedAbsence {
    group: Prepared,
    shared: Vec<(usize, usize)>,
    /// Whether the group is found, for the vertices that it is about.
    known: HashMap<Vec<u32>, bool>,
}

/// The vertices that variables stand for, as far as that is decided.
pub(super) type Bindings = Vec<Option<u32>>;

pub(super) fn bind(bindings: &mut Bindings, vertex: usize, value: Option<u32>) {
    if let Some(slot) = bindings.get_mut(vertex) {
        *slot = value;
    }
}

/// The order in which vertices are bound, and how many of them are needed: of the others, one combination is enough.
#[derive(Clone, Copy)]
pub(super) struct Plan<'o> {
    pub(super) order: &'o [usize],
    pub(super) needed: usize,
}

pub(super) type Visit<'v> = dyn FnMut(&Bindings) -> Result<(), Stop> + 'v;

impl Prepared {
    pub(super) fn new(graph: &PropertyGraph, group: &Group, budget: &mut Budget) -> Result<Self, Stop> {
        let candidates = group.vertices.iter().map(|vertex| candidates(graph, vertex, budget));
        let candidates = candidates.collect::<Result<Vec<_>, _>>()?;
        let mut arrows = Vec::new();
        for arrow in &group.arrows {
            let adjacency = Adjacency::new(graph, arrow, budget)?;
            let reached = HashMap::new();
            arrows.push(PreparedArrow { from: arrow.from, to: arrow.to, hops: arrow.hops, adjacency, reached });
        }
        let mut absent = Vec::new();
        for absence in &group.absent {
            let group = Prepared::new(graph, &absence.group, budget)?;
            absent.push(PreparedAbsence { group, shared: absence.shared.clone(), known: HashMap::new() });
        }
        let mut prepared = Self { candidates, arrows, different: group.different.clone(), absent };
        prepared.reduce(budget)?;
        Ok(prepared)
    }

    /// Removes candidates that no arrow can lead from or to. For queries without cycles, everything that is left is part
    /// of an answer, unless something must be different or absent.
    fn reduce(&mut self, budget: &mut Budget) -> Result<(), Stop> {
        const ROUNDS: usize = 3;
        for _ in 0..ROUNDS {
            let mut is_changed = false;
            let forward = (0..self.arrows.len()).map(|index| (index, Way::Forward));
            let backward = (0..self.arrows.len()).rev().map(|index| (index, Way::Backward));
            for (index, way) in forward.chain(backward) {
                let Some(arrow) = self.arrows.get(index) else { continue };
                let (source, target) = match way {
                    Way::Forward => (arrow.from, arrow.to),
                    Way::Backward => (arrow.to, arrow.from),
                };
                let sources = self.candidates.get(source).into_iter().flatten().copied();
                let reached = arrow.adjacency.reach(sources, way, arrow.hops, budget)?;
                let Some(targets) = self.candidates.get_mut(target) else { continue };
                let before = targets.len();
                budget.spend(before)?;
                targets.retain(|vertex| reached.binary_search(vertex).is_ok());
                is_changed |= targets.len() != before;
            }
            if !is_changed {
                break;
            }
        }
        Ok(())
    }

    /// Decides in which order vertices are bound: those with few candidates first, and each next to one that is bound.
    pub(super) fn order(&self, bindings: &Bindings, shown: &[usize]) -> Vec<usize> {
        let is_bound = |vertex: usize| bindings.get(vertex).copied().flatten().is_some();
        let mut order: Vec<usize> = (0..self.candidates.len()).filter(|vertex| is_bound(*vertex)).collect();
        while order.len() < self.candidates.len() {
            let left = (0..self.candidates.len()).filter(|vertex| !order.contains(vertex));
            let next = left.min_by_key(|vertex| {
                let is_next = |one: usize, other: usize| one == *vertex && order.contains(&other);
                let is_joined =
                    self.arrows.iter().any(|arrow| is_next(arrow.from, arrow.to) || is_next(arrow.to, arrow.from));
                let count = self.candidates.get(*vertex).map_or(0, Vec::len);
                (!is_joined, !shown.contains(vertex), count)
            });
            order.extend(next);
        }
        order
    }

    /// Binds the vertices of a plan, one after the other, and visits all complete bindings. Returns whether there are any.
    pub(super) fn search(
        &mut self,
        plan: Plan<'_>,
        depth: usize,
        bindings: &mut Bindings,
        budget: &mut Budget,
        visit: &mut Visit<'_>,
    ) -> Result<bool, Stop> {
        let Some(vertex) = plan.order.get(depth).copied() else {
            // Without vertices, what must be absent was not checked with any of them.
            for absence in self.absent.iter_mut().filter(|_| plan.order.is_empty()) {
                if absence.is_found(bindings, budget)? {
                    return Ok(false);
                }
            }
            visit(bindings)?;
            return Ok(true);
        };
        let known = bindings.get(vertex).copied().flatten();
        let choices: Rc<[u32]> = match known {
            Some(known) => Rc::from([known]),
            None => self.choices(vertex, bindings, budget)?,
        };
        let is_enough = depth >= plan.needed;
        let mut is_found = false;
        for choice in choices.iter() {
            budget.spend(1)?;
            let is_candidate = self.candidates.get(vertex).is_some_and(|all| all.binary_search(choice).is_ok());
            if !is_candidate {
                continue;
            }
            bind(bindings, vertex, Some(*choice));
            if self.is_consistent(vertex, plan, depth, bindings, budget)?
                && self.search(plan, depth + 1, bindings, budget, visit)?
            {
                is_found = true;
                if is_enough {
                    break;
                }
            }
        }
        bind(bindings, vertex, known);
        Ok(is_found)
    }

    /// Returns the vertices that a vertex of the query may stand for, given what it is joined to.
    fn choices(&mut self, vertex: usize, bindings: &Bindings, budget: &mut Budget) -> Result<Rc<[u32]>, Stop> {
        let value = |vertex: usize| bindings.get(vertex).copied().flatten();
        let mut best: Option<Rc<[u32]>> = None;
        for arrow in &mut self.arrows {
            let (other, way) = match (arrow.from == vertex, arrow.to == vertex) {
                (true, false) => (value(arrow.to), Way::Backward),
                (false, true) => (value(arrow.from), Way::Forward),
                _ => continue,
            };
            let Some(other) = other else { continue };
            let reached = arrow.reached(other, way, budget)?;
            if best.as_ref().is_none_or(|best| reached.len() < best.len()) {
                best = Some(reached);
            }
        }
        Ok(best.unwrap_or_else(|| {
            self.candidates.get(vertex).map_or_else(|| Rc::from([]), |all| Rc::from(all.as_slice()))
        }))
    }

    /// Returns whether a vertex that was just bound agrees with those before it.
    fn is_consistent(
        &mut self,
        vertex: usize,
        plan: Plan<'_>,
        depth: usize,
        bindings: &Bindings,
        budget: &mut Budget,
    ) -> Result<bool, Stop> {
        let value = |vertex: usize| bindings.get(vertex).copied().flatten();
        for arrow in &mut self.arrows {
            if arrow.from != vertex && arrow.to != vertex {
                continue;
            }
            let (Some(from), Some(to)) = (value(arrow.from), value(arrow.to)) else { continue };
            budget.spend(1)?;
            if arrow.reached(from, Way::Forward, budget)?.binary_search(&to).is_err() {
                return Ok(false);
            }
        }
        let is_same = |(one, other): &(usize, usize)| value(*one).is_some() && value(*one) == value(*other);
        if self.different.iter().any(is_same) {
            return Ok(false);
        }
        let is_decided = |vertex: usize| plan.order.iter().take(depth + 1).any(|bound| *bound == vertex);
        for absence in &mut self.absent {
            let is_last = absence.shared.iter().any(|(outer, _)| *outer == vertex);
            // A group that is about nothing outside is checked once.
            let is_due = is_last || (absence.shared.is_empty() && depth == 0);
            if is_due
                && absence.shared.iter().all(|(outer, _)| is_decided(*outer))
                && absence.is_found(bindings, budget)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl PreparedArrow {
    /// Returns the vertices at the other end of the arrow, sorted.
    fn reached(&mut self, vertex: u32, way: Way, budget: &mut Budget) -> Result<Rc<[u32]>, Stop> {
        if let Some(known) = self.reached.get(&(way, vertex)) {
            return Ok(Rc::clone(known));
        }
        let reached: Rc<[u32]> = self.adjacency.reach([vertex], way, self.hops, budget)?.into();
        self.reached.insert((way, vertex), Rc::clone(&reached));
        Ok(reached)
    }
}

impl PreparedAbsence {
    /// Returns whether the group is found for the vertices that it is about.
    fn is_found(&mut self, outer: &Bindings, budget: &mut Budget) -> Result<bool, Stop> {
        let value = |vertex: usize| outer.get(vertex).copied().flatten();
        let key: Vec<u32> = self.shared.iter().filter_map(|(outer, _)| value(*outer)).collect();
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        let mut bindings: Bindings = vec![None; self.group.candidates.len()];
        for ((_, inner), found) in self.shared.iter().zip(&key) {
            bind(&mut bindings, *inner, Some(*found));
        }
        let order = self.group.order(&bindings, &[]);
        let plan = Plan { order: &order, needed: 0 };
        let is_found = self.group.search(plan, 0, &mut bindings, budget, &mut |_| Ok(()))?;
        self.known.insert(key, is_found);
        Ok(is_found)
    }
}

/// Returns the vertices of a graph that have the labels and properties of a vertex in a query, sorted.
fn candidates(graph: &PropertyGraph, wanted: &VertexPattern, budget: &mut Budget) -> Result<Vec<u32>, Stop> {
    let fewest = wanted.labels.iter().map(|label| graph.labelled(label)).min_by_key(|found| found.len());
    let all: Vec<u32> = match fewest {
        Some(labelled) => labelled.iter().map(|vertex| vertex.0).collect(),
        None => (0..position(graph.vertices().len())).collect(),
    };
    let mut found = Vec::new();
    for index in all {
        budget.spend(1 + wanted.constraints.len())?;
        let Some(vertex) = graph.vertex(VertexIndex(index)) else { continue };
        let has_labels = wanted.labels.iter().all(|label| vertex.labels.contains(label));
        let is_met = |(key, constraint): &(String, Constraint)| constraint.is_met(vertex.properties.get(key));
        if has_labels && wanted.constraints.iter().all(is_met) {
            found.push(index);
        }
    }
    found.sort_unstable();
    Ok(found)
}
