//! The shape of a workflow: where it starts, what leads back, and which steps wait for each other.

use std::collections::HashSet;

/// The shape of a graph of steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Topology {
    /// The steps at which the workflow starts.
    pub(super) entries: Vec<usize>,
    /// All steps on no knot, so that edges lead from earlier to later ones, except those that lead back.
    pub(super) order: Vec<usize>,
    /// Which edges lead back.
    pub(super) is_back: Vec<bool>,
    /// The cycles, inner ones first.
    pub(super) cycles: Vec<Cycle>,
    /// Steps that wait for each other.
    pub(super) knots: Vec<Vec<usize>>,
    /// Which steps can be reached from an entry.
    pub(super) is_reached: Vec<bool>,
}

/// The steps that start again when an edge back to their first step is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cycle {
    /// The step that the edges lead back to.
    pub(super) first: usize,
    /// The steps.
    pub(super) steps: HashSet<usize>,
    /// The edges that lead back.
    pub(super) edges: Vec<usize>,
}

impl Topology {
    /// Analyses a graph with a number of steps, and edges from one to another.
    pub(super) fn new(steps: usize, edges: &[(usize, usize)]) -> Self {
        let entries = entries(steps, edges);
        let dominators = dominators(steps, edges, &entries);
        let is_back: Vec<_> = edges.iter().map(|(from, to)| is_dominated(&dominators, *from, *to)).collect();
        let is_reached: Vec<_> = dominators.iter().map(Option::is_some).collect();
        let forward: Vec<_> = edges.iter().zip(&is_back).filter(|(_, back)| !**back).map(|(edge, _)| *edge).collect();
        let (order, rest) = sort(steps, &forward);
        let knots = knots(&rest, &forward);
        let mut cycles: Vec<Cycle> = Vec::new();
        for (index, (from, to)) in edges.iter().enumerate() {
            if is_back.get(index) != Some(&true) {
                continue;
            }
            let steps = natural_loop(edges, *from, *to);
            match cycles.iter_mut().find(|cycle| cycle.first == *to) {
                Some(cycle) => {
                    cycle.steps.extend(steps);
                    cycle.edges.push(index);
                }
                None => cycles.push(Cycle { first: *to, steps, edges: vec![index] }),
            }
        }
        cycles.sort_by_key(|cycle| cycle.steps.len());
        Self { entries, order, is_back, cycles, knots, is_reached }
    }

    /// Iterates over the cycles that an edge leaves.
    pub(super) fn left_by(&self, from: usize, to: usize) -> impl Iterator<Item = &Cycle> {
        self.cycles.iter().filter(move |cycle| cycle.steps.contains(&from) && !cycle.steps.contains(&to))
    }
}

/// Returns the steps at which a graph starts: those that nothing leads to, and of steps that lead to each other, and that
/// nothing else leads to, the one that is mentioned first. A step without any edges is an entry only if it is the first.
fn entries(steps: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let reached: Vec<_> = (0..steps).map(|step| reached_from(step, edges)).collect();
    let leads = |from: usize, to: usize| reached.get(from).is_some_and(|reached| reached.contains(&to));
    let is_same = |one: usize, other: usize| one == other || (leads(one, other) && leads(other, one));
    let is_entry = |step: &usize| {
        let has_edges = edges.iter().any(|(from, to)| from == step || to == step);
        let is_led_to = edges.iter().any(|(from, to)| is_same(*to, *step) && !is_same(*from, *step));
        let is_first = !(0..*step).any(|earlier| is_same(earlier, *step));
        (has_edges || *step == 0) && !is_led_to && is_first
    };
    (0..steps).filter(is_entry).collect()
}

/// Returns for each step the steps that are on every way to it, or `None` if there is no way.
fn dominators(steps: usize, edges: &[(usize, usize)], entries: &[usize]) -> Vec<Option<HashSet<usize>>> {
    let mut found: Vec<Option<HashSet<usize>>> = vec![None; steps];
    loop {
        let mut changed = false;
        for step in 0..steps {
            let mut common: Option<HashSet<usize>> = entries.contains(&step).then(HashSet::new);
            for (from, _) in edges.iter().filter(|(_, to)| *to == step) {
                let Some(Some(before)) = found.get(*from) else { continue };
                common = Some(match common {
                    Some(common) => common.intersection(before).copied().collect(),
                    None => before.clone(),
                });
            }
            let Some(mut common) = common else { continue };
            common.insert(step);
            if let Some(known) = found.get_mut(step).filter(|known| known.as_ref() != Some(&common)) {
                *known = Some(common);
                changed = true;
            }
        }
        if !changed {
            return found;
        }
    }
}

fn is_dominated(dominators: &[Option<HashSet<usize>>], step: usize, by: usize) -> bool {
    dominators.get(step).and_then(Option::as_ref).is_some_and(|dominators| dominators.contains(&by))
}

/// Sorts steps so that edges lead from earlier to later ones. Returns also those for which that is impossible.
fn sort(steps: usize, edges: &[(usize, usize)]) -> (Vec<usize>, Vec<usize>) {
    let mut order = Vec::new();
    let mut rest: Vec<_> = (0..steps).collect();
    loop {
        let waits = |step: &usize| edges.iter().any(|(from, to)| to == step && rest.contains(from));
        let Some(at) = rest.iter().position(|step| !waits(step)) else { return (order, rest) };
        order.push(rest.remove(at));
    }
}

/// Returns the steps that wait for each other, without those that only wait for them.
fn knots(rest: &[usize], edges: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let reached: Vec<(usize, HashSet<usize>)> = rest.iter().map(|step| (*step, reached_from(*step, edges))).collect();
    let mut knots: Vec<Vec<usize>> = Vec::new();
    for (step, after) in &reached {
        if !after.contains(step) || knots.iter().any(|knot| knot.contains(step)) {
            continue;
        }
        let mutual = reached.iter().filter(|(other, back)| after.contains(other) && back.contains(step));
        knots.push(mutual.map(|(other, _)| *other).collect());
    }
    knots
}

/// Returns the steps that can be reached along at least one edge.
pub(super) fn reached_from(step: usize, edges: &[(usize, usize)]) -> HashSet<usize> {
    let mut reached = HashSet::new();
    let mut open = vec![step];
    while let Some(at) = open.pop() {
        open.extend(edges.iter().filter(|(from, _)| *from == at).map(|(_, to)| *to).filter(|to| reached.insert(*to)));
    }
    reached
}

/// Returns the steps between the first step of a cycle and the one from which an edge leads back.
fn natural_loop(edges: &[(usize, usize)], from: usize, first: usize) -> HashSet<usize> {
    let mut steps = HashSet::from([first]);
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        if steps.insert(at) {
            open.extend(edges.iter().filter(|(_, to)| *to == at).map(|(from, _)| *from));
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_consists_of_the_steps_that_lead_back() {
        let shape = Topology::new(4, &[(0, 1), (1, 2), (2, 1), (2, 3)]);
        assert_eq!(shape.is_back, [false, false, true, false]);
        assert_eq!(shape.cycles, [Cycle { first: 1, steps: HashSet::from([1, 2]), edges: vec![2] }]);
        assert_eq!(shape.order, [0, 1, 2, 3]);
        assert!(shape.knots.is_empty());
    }

    #[test]
    fn a_cycle_with_two_ways_in_is_a_knot() {
        let shape = Topology::new(4, &[(0, 1), (0, 2), (1, 2), (2, 1), (2, 3)]);
        assert_eq!(shape.knots, [[1, 2]]);
        assert_eq!(shape.order, [0]);
    }

    #[test]
    fn the_first_step_is_an_entry_even_if_something_leads_back_to_it() {
        let shape = Topology::new(2, &[(0, 1), (1, 0)]);
        assert_eq!((shape.entries, shape.is_back), (vec![0], vec![false, true]));
        let shape = Topology::new(3, &[(0, 1), (2, 0)]);
        assert_eq!((shape.entries, shape.order), (vec![2], vec![2, 0, 1]));
        let shape = Topology::new(4, &[(0, 1), (2, 2), (2, 1)]);
        assert_eq!((shape.entries, shape.is_back), (vec![0, 2], vec![false, true, false]));
    }
}
