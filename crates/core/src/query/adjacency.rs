//! The relations that an arrow of a query may follow.

use super::pattern::{ArrowPattern, Direction, Hops};
use super::property_graph::{PropertyGraph, position};
use super::search::{Budget, Stop};
use std::collections::VecDeque;

/// The relations that an arrow may follow, from each vertex, forward and backward.
#[derive(Debug)]
pub(super) struct Adjacency {
    forward: Neighbours,
    backward: Neighbours,
}

/// Where an arrow is followed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Way {
    Forward,
    Backward,
}

/// The neighbours of each vertex, in one list.
#[derive(Debug, Default)]
struct Neighbours {
    /// Where the neighbours of each vertex start in the list; one more than there are vertices.
    starts: Vec<u32>,
    /// Neighbours, sorted for each vertex, with the relation that leads there.
    list: Vec<(u32, u32)>,
}

impl Neighbours {
    fn new(vertices: usize, mut pairs: Vec<(u32, u32, u32)>) -> Self {
        pairs.sort_unstable();
        let mut starts = Vec::with_capacity(vertices + 1);
        let mut at = 0;
        for vertex in 0..=position(vertices) {
            while pairs.get(at).is_some_and(|(from, ..)| *from < vertex) {
                at += 1;
            }
            starts.push(position(at));
        }
        Self { starts, list: pairs.into_iter().map(|(_, to, relation)| (to, relation)).collect() }
    }

    fn of(&self, vertex: u32) -> &[(u32, u32)] {
        let start = self.starts.get(vertex as usize).copied().unwrap_or(0);
        let end = self.starts.get(vertex as usize + 1).copied().unwrap_or(start);
        self.list.get(start as usize..end as usize).unwrap_or_default()
    }
}

impl Adjacency {
    pub(super) fn new(graph: &PropertyGraph, arrow: &ArrowPattern, budget: &mut Budget) -> Result<Self, Stop> {
        let every: Vec<u32>;
        let indices: Vec<&[u32]> = match arrow.relations.as_slice() {
            [] => {
                every = (0..position(graph.relations().len())).collect();
                vec![&every]
            }
            names => names.iter().map(|name| graph.named(name)).collect(),
        };
        let mut pairs = Vec::new();
        for index in indices.into_iter().flatten() {
            budget.spend(1)?;
            let Some(relation) = graph.relations().get(*index as usize) else { continue };
            let is_wanted = |(key, constraint): &(String, super::constraint::Constraint)| {
                constraint.is_met(relation.properties.get(key))
            };
            if arrow.constraints.iter().all(is_wanted) {
                pairs.push((relation.from.0, relation.to.0, *index));
                // A relation from a vertex to itself is one neighbour, not two.
                if arrow.direction == Direction::Either && relation.from != relation.to {
                    pairs.push((relation.to.0, relation.from.0, *index));
                }
            }
        }
        // The same name may be listed twice.
        pairs.sort_unstable();
        pairs.dedup();
        let reversed = pairs.iter().map(|(from, to, relation)| (*to, *from, *relation)).collect();
        let vertices = graph.vertices().len();
        Ok(Self { forward: Neighbours::new(vertices, pairs), backward: Neighbours::new(vertices, reversed) })
    }

    fn neighbours(&self, way: Way, vertex: u32) -> &[(u32, u32)] {
        match way {
            Way::Forward => self.forward.of(vertex),
            Way::Backward => self.backward.of(vertex),
        }
    }

    /// Returns the vertices that can be reached from any of some vertices, sorted. A walk may visit a vertex twice.
    pub(super) fn reach(
        &self,
        sources: impl IntoIterator<Item = u32>,
        way: Way,
        hops: Hops,
        budget: &mut Budget,
    ) -> Result<Vec<u32>, Stop> {
        let mut level: Vec<u32> = sources.into_iter().collect();
        for _ in 0..hops.min {
            level = self.step(&level, way, budget)?;
        }
        let mut found = level.clone();
        let mut seen: Vec<bool> = Vec::new();
        let left = hops.max.map_or(u32::MAX, |max| max - hops.min);
        if left > 0 {
            seen.resize(self.forward.starts.len(), false);
            level.iter().for_each(|vertex| mark(&mut seen, *vertex));
        }
        for _ in 0..left {
            let mut next = Vec::new();
            for vertex in &level {
                let neighbours = self.neighbours(way, *vertex);
                budget.spend(1 + neighbours.len())?;
                for (to, _) in neighbours {
                    if seen.get(*to as usize) == Some(&false) {
                        mark(&mut seen, *to);
                        next.push(*to);
                    }
                }
            }
            if next.is_empty() {
                break;
            }
            found.extend(&next);
            level = next;
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// Returns all neighbours of some vertices.
    fn step(&self, level: &[u32], way: Way, budget: &mut Budget) -> Result<Vec<u32>, Stop> {
        let mut next = Vec::new();
        for vertex in level {
            let neighbours = self.neighbours(way, *vertex);
            budget.spend(1 + neighbours.len())?;
            next.extend(neighbours.iter().map(|(to, _)| *to));
        }
        next.sort_unstable();
        next.dedup();
        Ok(next)
    }

    /// Iterates over the relations that lead from one vertex straight to another.
    pub(super) fn between(&self, from: u32, to: u32) -> impl Iterator<Item = u32> {
        let neighbours = self.forward.of(from);
        let start = neighbours.partition_point(|(other, _)| *other < to);
        let rest = neighbours.get(start..).unwrap_or_default();
        rest.iter().take_while(move |(other, _)| *other == to).map(|(_, relation)| *relation)
    }

    /// Returns the relations of a shortest walk from one vertex to another.
    pub(super) fn walk(&self, from: u32, to: u32, hops: Hops, budget: &mut Budget) -> Result<Vec<u32>, Stop> {
        // A place is a vertex and the number of steps so far, which does not matter beyond the smallest number allowed.
        let mut places: Vec<(u32, u32, usize, u32)> = vec![(from, 0, usize::MAX, 0)];
        let mut seen = std::collections::HashSet::from([(from, 0)]);
        let mut open = VecDeque::from([0_usize]);
        while let Some(index) = open.pop_front() {
            let Some((vertex, steps, ..)) = places.get(index).copied() else { break };
            if vertex == to && steps >= hops.min {
                let mut relations = Vec::new();
                let mut at = index;
                while let Some((_, _, before, relation)) = places.get(at).filter(|place| place.2 != usize::MAX) {
                    relations.push(*relation);
                    at = *before;
                }
                relations.reverse();
                return Ok(relations);
            }
            let neighbours = self.forward.of(vertex);
            budget.spend(1 + neighbours.len())?;
            for (next, relation) in neighbours {
                let steps = (steps + 1).min(hops.min);
                if seen.insert((*next, steps)) {
                    open.push_back(places.len());
                    places.push((*next, steps, index, *relation));
                }
            }
        }
        Ok(Vec::new())
    }
}

fn mark(seen: &mut [bool], vertex: u32) {
    if let Some(seen) = seen.get_mut(vertex as usize) {
        *seen = true;
    }
}
