//! Vertical positions: each slot near its neighbours, in the order of its column, and apart from the others.

use super::order::Slots;

/// The height of a node.
pub(super) const NODE_HEIGHT: i32 = 30;
/// The space between nodes.
const NODE_GAP: i32 = 10;
/// The height of a bend with the space around it.
const BEND_HEIGHT: i32 = 14;
/// How often the slots are moved towards their neighbours.
const PASSES: usize = 8;

/// Returns the vertical centre of each slot. The smallest is half the height of a node.
pub(super) fn centres(slots: &Slots) -> Vec<i32> {
    let height = |slot: usize| if slot < slots.nodes { NODE_HEIGHT + NODE_GAP } else { BEND_HEIGHT };
    let mut centres = vec![0.0; slots.column.len()];
    for column in &slots.columns {
        let offsets = offsets(column, height);
        assign(&mut centres, column, offsets.into_iter().map(f64::from));
    }
    let count = slots.columns.len();
    for pass in 0..PASSES {
        for step in 0..count {
            let is_rightwards = pass % 2 == 0;
            let index = if is_rightwards { step } else { count - 1 - step };
            let Some(column) = slots.columns.get(index) else { continue };
            let sides: &[_] = match (pass + 1 == PASSES, is_rightwards) {
                (true, _) => &[&slots.left, &slots.right],
                (_, true) => &[&slots.left],
                (_, false) => &[&slots.right],
            };
            let placed = place(column, &offsets(column, height), &centres, sides, slots.nodes);
            assign(&mut centres, column, placed.into_iter());
        }
    }
    let top = slots.columns.iter().filter_map(|column| column.first()).filter_map(|slot| centres.get(*slot));
    let top = top.copied().fold(f64::INFINITY, f64::min);
    let top = if top.is_finite() { top } else { 0.0 };
    centres.into_iter().map(|centre| (centre - top) as i32 + NODE_HEIGHT / 2).collect()
}

/// Returns how far each slot of a column is from the first if nothing is between them.
fn offsets(column: &[usize], height: impl Fn(usize) -> i32) -> Vec<i32> {
    let mut offsets = Vec::with_capacity(column.len());
    let mut at = 0;
    let mut before = None;
    for slot in column {
        let half = height(*slot) / 2;
        at += before.map_or(0, |before| before + half);
        offsets.push(at);
        before = Some(half);
    }
    offsets
}

/// Returns the positions of the slots of a column that are nearest to their neighbours, in the sense of least squares, and
/// keep their order and distances. They are whole numbers.
fn place(column: &[usize], offsets: &[i32], centres: &[f64], sides: &[&Vec<Vec<usize>>], nodes: usize) -> Vec<f64> {
    let mut blocks: Vec<Block> = Vec::new();
    for (slot, offset) in column.iter().zip(offsets) {
        let near = sides.iter().filter_map(|side| side.get(*slot)).flatten();
        let near: Vec<_> = near.filter_map(|one| centres.get(*one)).collect();
        let current = centres.get(*slot).copied().unwrap_or_default();
        let wanted = match near.len() {
            0 => current,
            count => near.into_iter().sum::<f64>() / count as f64,
        };
        // Bends are moved less than nodes, so that long edges stay straight.
        let weight = if *slot < nodes { 1.0 } else { 4.0 };
        let mut block = Block { sum: (wanted - f64::from(*offset)) * weight, weight, count: 1 };
        // Blocks that would overlap move together.
        while let Some(last) = blocks.pop_if(|last| last.mean() >= block.mean()) {
            block = Block {
                sum: block.sum + last.sum,
                weight: block.weight + last.weight,
                count: block.count + last.count,
            };
        }
        blocks.push(block);
    }
    let starts = blocks.iter().flat_map(|block| std::iter::repeat_n(block.mean().round(), block.count));
    starts.zip(offsets).map(|(start, offset)| start + f64::from(*offset)).collect()
}

/// Slots that move together.
struct Block {
    sum: f64,
    weight: f64,
    count: usize,
}

impl Block {
    fn mean(&self) -> f64 {
        self.sum / self.weight
    }
}

fn assign(centres: &mut [f64], column: &[usize], values: impl Iterator<Item = f64>) {
    for (slot, value) in column.iter().zip(values) {
        centres.get_mut(*slot).into_iter().for_each(|centre| *centre = value);
    }
}
