//! The order of nodes within their columns, with few crossings.

use super::column::Columns;
use super::{EdgeKind, Graph};
use std::collections::{HashMap, HashSet};

/// How often the columns are sorted, alternately from left to right and from right to left.
const SWEEPS: usize = 10;

/// Everything that takes up room in a column: nodes, and the bends of edges that pass through it.
///
/// Edges with a common end share their bends, so that a tool that many agents call has one trunk, and the number of bends is
/// at most the number of nodes times the number of columns.
pub(super) struct Slots {
    /// The slots of each column, from top to bottom. Slots up to the number of nodes are the nodes.
    pub(super) columns: Vec<Vec<usize>>,
    /// The neighbours in the column to the left, by slot.
    pub(super) left: Vec<Vec<usize>>,
    /// The neighbours in the column to the right, by slot.
    pub(super) right: Vec<Vec<usize>>,
    /// The column of each slot.
    pub(super) column: Vec<usize>,
    /// The slots of each edge, from left to right.
    pub(super) routes: Vec<Vec<usize>>,
    /// The number of slots that are nodes.
    pub(super) nodes: usize,
}

impl Slots {
    pub(super) fn new(graph: &Graph, columns: &Columns) -> Self {
        let mut slots = Self {
            columns: vec![Vec::new(); columns.headings.len()],
            left: Vec::new(),
            right: Vec::new(),
            column: columns.of_nodes.clone(),
            routes: Vec::with_capacity(graph.edges().len()),
            nodes: graph.nodes().len(),
        };
        let mut bends = HashMap::new();
        for (edge, ends) in graph.edges().iter().zip(graph.ends()) {
            slots.add_route(edge.kind, *ends, &mut bends);
        }
        slots.connect();
        slots.arrange();
        slots
    }

    pub(super) fn column_of(&self, slot: usize) -> usize {
        self.column.get(slot).copied().unwrap_or_default()
    }

    fn add_route(&mut self, kind: EdgeKind, ends: (usize, usize), bends: &mut HashMap<(usize, usize), usize>) {
        let (from, to) = if self.column_of(ends.0) <= self.column_of(ends.1) { ends } else { (ends.1, ends.0) };
        // Agents share the way to their model, and callers that to what they call.
        let hub = if kind == EdgeKind::ServedBy { from } else { to };
        let mut route = vec![from];
        for column in self.column_of(from) + 1..self.column_of(to) {
            let bend = *bends.entry((hub, column)).or_insert_with(|| {
                self.column.push(column);
                self.column.len() - 1
            });
            route.push(bend);
        }
        route.push(to);
        self.routes.push(route);
    }

    /// Finds the neighbours of each slot.
    fn connect(&mut self) {
        self.left = vec![Vec::new(); self.column.len()];
        self.right = vec![Vec::new(); self.column.len()];
        let mut seen = HashSet::new();
        for route in &self.routes {
            for (from, to) in route.iter().zip(route.iter().skip(1)) {
                // Agents beyond the last column call each other within it.
                if self.column.get(*from) == self.column.get(*to) || !seen.insert((*from, *to)) {
                    continue;
                }
                self.right.get_mut(*from).into_iter().for_each(|right| right.push(*to));
                self.left.get_mut(*to).into_iter().for_each(|left| left.push(*from));
            }
        }
    }

    /// Orders the slots of all columns.
    fn arrange(&mut self) {
        self.start();
        let mut positions = self.positions();
        let mut best = self.columns.clone();
        let mut fewest = self.crossings(&positions);
        for sweep in 0..SWEEPS {
            if fewest == 0 {
                break;
            }
            let is_rightwards = sweep % 2 == 0;
            let count = self.columns.len();
            for step in 0..count {
                let column = if is_rightwards { step } else { count - 1 - step };
                let neighbours = if is_rightwards { &self.left } else { &self.right };
                let Some(slots) = self.columns.get_mut(column) else { continue };
                sort_column(slots, neighbours, &positions);
                for (at, slot) in slots.iter().enumerate() {
                    positions.get_mut(*slot).into_iter().for_each(|position| *position = at);
                }
            }
            let crossings = self.crossings(&positions);
            if crossings < fewest {
                fewest = crossings;
                best.clone_from(&self.columns);
            }
        }
        self.columns = best;
    }

    /// Fills the columns in the order in which a search from the first nodes finds the slots, so that what belongs
    /// together is together.
    fn start(&mut self) {
        let mut seen = vec![false; self.column.len()];
        for root in 0..self.column.len() {
            let mut open = vec![root];
            while let Some(slot) = open.pop() {
                match seen.get_mut(slot) {
                    Some(seen) if !*seen => *seen = true,
                    _ => continue,
                }
                let column = self.column_of(slot);
                self.columns.get_mut(column).into_iter().for_each(|column| column.push(slot));
                let next = [&self.left, &self.right].map(|sides| sides.get(slot));
                open.extend(next.into_iter().flatten().flatten().rev());
            }
        }
    }

    /// Returns the position of each slot in its column.
    pub(super) fn positions(&self) -> Vec<usize> {
        let mut positions = vec![0; self.column.len()];
        for (at, slot) in self.columns.iter().flat_map(|column| column.iter().enumerate()) {
            positions.get_mut(*slot).into_iter().for_each(|position| *position = at);
        }
        positions
    }

    /// Counts the crossings between neighbouring columns, in the time that sorting takes.
    fn crossings(&self, positions: &[usize]) -> u64 {
        let position = |slot: usize| positions.get(slot).copied().unwrap_or_default();
        let mut crossings = 0;
        for (index, column) in self.columns.iter().enumerate() {
            let mut tree = Counter::new(self.columns.get(index + 1).map_or(0, Vec::len));
            let mut passed = 0;
            for slot in column {
                let mut targets: Vec<_> = self.right.get(*slot).into_iter().flatten().map(|to| position(*to)).collect();
                targets.sort_unstable();
                crossings += targets.iter().map(|target| passed - tree.up_to(*target)).sum::<u64>();
                targets.iter().for_each(|target| tree.add(*target));
                passed += targets.len() as u64;
            }
        }
        crossings
    }
}

/// Sorts a column by the average position of the neighbours on one side. Slots without any stay where they are, and equal
/// ones keep their order.
fn sort_column(slots: &mut [usize], neighbours: &[Vec<usize>], positions: &[usize]) {
    let average = |slot: usize| {
        let near = neighbours.get(slot).map(Vec::as_slice).unwrap_or_default();
        let sum: usize = near.iter().filter_map(|one| positions.get(*one)).sum();
        (!near.is_empty()).then(|| sum as f64 / near.len() as f64)
    };
    let free: Vec<_> = slots.iter().map(|slot| average(*slot)).collect();
    let mut moving: Vec<_> = slots.iter().zip(&free).filter_map(|(slot, average)| Some((*slot, (*average)?))).collect();
    moving.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let mut moving = moving.into_iter().map(|(slot, _)| slot);
    for (slot, average) in slots.iter_mut().zip(free) {
        if average.is_some() {
            *slot = moving.next().unwrap_or(*slot);
        }
    }
}

/// Counts numbers up to a bound (a Fenwick tree).
struct Counter {
    sums: Vec<u64>,
}

impl Counter {
    fn new(size: usize) -> Self {
        Self { sums: vec![0; size + 1] }
    }

    fn add(&mut self, number: usize) {
        let mut at = number + 1;
        while let Some(sum) = self.sums.get_mut(at) {
            *sum += 1;
            at += at & at.wrapping_neg();
        }
    }

    /// Returns how many numbers are at most `number`.
    fn up_to(&self, number: usize) -> u64 {
        let mut at = number + 1;
        let mut count = 0;
        while at > 0 {
            count += self.sums.get(at).copied().unwrap_or_default();
            at &= at - 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::Counter;

    #[test]
    fn numbers_up_to_a_bound_are_counted() {
        let mut counter = Counter::new(6);
        [3, 0, 5, 3].into_iter().for_each(|number| counter.add(number));
        let counts: Vec<_> = (0..6).map(|number| counter.up_to(number)).collect();
        assert_eq!(counts, [1, 1, 1, 3, 3, 4]);
    }
}
