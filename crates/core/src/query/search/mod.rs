//! Searching a graph for everything that a query matches.

mod prepared;

use super::pattern::{Part, Query};
use super::property_graph::{PropertyGraph, VertexIndex};
use prepared::{Bindings, Plan, Prepared, bind};
use std::collections::{HashMap, HashSet};
use thiserror::Error;

/// How much work a query may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest number of steps: vertices and relations looked at.
    pub steps: u64,
    /// The largest number of rows.
    pub rows: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: 20_000_000, rows: 100_000 }
    }
}

/// The reason why a query was stopped.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Stop {
    /// It was too much work.
    #[error("the query was stopped after {0} steps")]
    Steps(u64),
    /// It has too many answers.
    #[error("the query was stopped after {0} rows")]
    Rows(usize),
}

impl Stop {
    /// Returns a hint on how to ask something that is less work.
    pub fn hint(&self) -> &'static str {
        match self {
            Stop::Steps(_) => "join all nodes by arrows, and say more about them with labels and properties",
            Stop::Rows(_) => "ask for less, or hide variables by starting their names with `_`",
        }
    }
}

/// The number of steps that are left.
#[derive(Debug)]
pub(super) struct Budget {
    limit: u64,
    spent: u64,
}

impl Budget {
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), Stop> {
        self.spent = self.spent.saturating_add(steps as u64);
        if self.spent > self.limit { Err(Stop::Steps(self.limit)) } else { Ok(()) }
    }
}

/// The value of a variable in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cell {
    /// A vertex.
    Vertex(VertexIndex),
    /// A relation, as its position in [`PropertyGraph::relations`].
    Relation(usize),
}

/// The part of a graph that makes a row an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evidence {
    /// For each arrow of the query, the relations that it stands for, in order.
    pub walks: Vec<Vec<usize>>,
    /// All vertices, in the order of the query.
    pub vertices: Vec<VertexIndex>,
}

/// A query that is being answered.
///
/// ```
/// use patter_core::query::{Cell, Limits, PROJECT_SCHEMA, PropertyGraph, Query, Relation, Search, Vertex};
/// let mut graph = PropertyGraph::default();
/// let desk = graph.add(Vertex::new("Agent", "agent:desk", "desk"));
/// let send = graph.add(Vertex::new("Tool", "tool:send", "send"));
/// graph.relate(Relation::new(desk, "calls", send));
/// let query = Query::parse("(a:Agent)-[:calls]->(:Tool)", &PROJECT_SCHEMA).unwrap();
/// let mut search = Search::new(&graph, &query, Limits::default()).unwrap();
/// assert_eq!(search.rows().unwrap(), [[Cell::Vertex(desk)]]);
/// ```
#[derive(Debug)]
pub struct Search<'g> {
    graph: &'g PropertyGraph,
    query: &'g Query,
    limits: Limits,
    budget: Budget,
    prepared: Prepared,
}

impl<'g> Search<'g> {
    /// Prepares the search for a query in a graph.
    pub fn new(graph: &'g PropertyGraph, query: &'g Query, limits: Limits) -> Result<Self, Stop> {
        let mut budget = Budget { limit: limits.steps, spent: 0 };
        let prepared = Prepared::new(graph, &query.group, &mut budget)?;
        Ok(Self { graph, query, limits, budget, prepared })
    }

    /// Finds all rows: the different combinations of what the columns of the query stand for, sorted.
    pub fn rows(&mut self) -> Result<Vec<Vec<Cell>>, Stop> {
        let shown: Vec<usize> = self.query.columns.iter().map(|column| column.part).filter_map(vertex_of).collect();
        // Relations that are shown are found once their ends are known.
        let arrows = self.query.columns.iter().filter_map(|column| arrow_of(column.part));
        let ends =
            arrows.filter_map(|arrow| self.query.group.arrows.get(arrow)).flat_map(|arrow| [arrow.from, arrow.to]);
        let needed: Vec<usize> = shown.into_iter().chain(ends).collect();
        let mut found: HashSet<Vec<u32>> = HashSet::new();
        let limit = self.limits.rows;
        let mut bindings: Bindings = vec![None; self.prepared.candidates.len()];
        let order = self.prepared.order(&bindings, &needed);
        let mut visit = |bindings: &Bindings| {
            let row = needed.iter().filter_map(|vertex| bindings.get(*vertex).copied().flatten()).collect();
            found.insert(row);
            if found.len() > limit { Err(Stop::Rows(limit)) } else { Ok(()) }
        };
        let last = order.iter().rposition(|vertex| needed.contains(vertex)).map_or(0, |last| last + 1);
        let plan = Plan { order: &order, needed: last };
        self.prepared.search(plan, 0, &mut bindings, &mut self.budget, &mut visit)?;
        let mut rows = Vec::new();
        for values in found {
            let value = |vertex: usize| {
                let index = needed.iter().position(|needed| *needed == vertex)?;
                values.get(index).copied()
            };
            self.add_rows(&value, &mut rows)?;
        }
        rows.sort_unstable();
        Ok(rows)
    }

    /// Adds the rows of known vertices: one for each combination of the relations that are shown.
    fn add_rows(&mut self, value: &dyn Fn(usize) -> Option<u32>, rows: &mut Vec<Vec<Cell>>) -> Result<(), Stop> {
        let mut open: Vec<Vec<Cell>> = vec![Vec::new()];
        for column in &self.query.columns {
            let cells: Vec<Cell> = match column.part {
                Part::Vertex(vertex) => {
                    value(vertex).map(|found| Cell::Vertex(VertexIndex(found))).into_iter().collect()
                }
                Part::Arrow(index) => {
                    let Some(arrow) = self.prepared.arrows.get(index) else { continue };
                    let (Some(from), Some(to)) = (value(arrow.from), value(arrow.to)) else { continue };
                    arrow.adjacency.between(from, to).map(|relation| Cell::Relation(relation as usize)).collect()
                }
            };
            self.budget.spend(open.len().saturating_mul(cells.len()))?;
            if rows.len() + open.len().saturating_mul(cells.len()) > self.limits.rows {
                return Err(Stop::Rows(self.limits.rows));
            }
            let longer = |row: &Vec<Cell>| {
                let row = row.clone();
                cells.iter().map(move |cell| row.iter().copied().chain([*cell]).collect()).collect::<Vec<_>>()
            };
            open = open.iter().flat_map(longer).collect();
        }
        rows.append(&mut open);
        Ok(())
    }

    /// Returns the part of the graph that makes a row an answer. The limit of steps applies to each row.
    pub fn evidence(&mut self, row: &[Cell]) -> Result<Evidence, Stop> {
        self.budget.spent = 0;
        let mut bindings: Bindings = vec![None; self.prepared.candidates.len()];
        let mut chosen: HashMap<usize, usize> = HashMap::new();
        for (column, cell) in self.query.columns.iter().zip(row) {
            match (column.part, cell) {
                (Part::Vertex(vertex), Cell::Vertex(found)) => bind(&mut bindings, vertex, Some(found.0)),
                (Part::Arrow(arrow), Cell::Relation(relation)) => {
                    chosen.insert(arrow, *relation);
                    let ends = self.query.group.arrows.get(arrow).map(|arrow| (arrow.from, arrow.to));
                    let found = self.graph.relations().get(*relation).map(|found| (found.from.0, found.to.0));
                    let (Some((from, to)), Some((start, end))) = (ends, found) else { continue };
                    // An arrow without a direction may follow the relation backward.
                    let known = bindings.get(from).copied().flatten();
                    let is_reversed = known.is_some_and(|known| known != start);
                    bind(&mut bindings, from, Some(if is_reversed { end } else { start }));
                    bind(&mut bindings, to, Some(if is_reversed { start } else { end }));
                }
                (Part::Vertex(_), Cell::Relation(_)) | (Part::Arrow(_), Cell::Vertex(_)) => {}
            }
        }
        let order = self.prepared.order(&bindings, &[]);
        let mut complete = None;
        let mut visit = |bindings: &Bindings| {
            complete = Some(bindings.clone());
            Ok(())
        };
        let plan = Plan { order: &order, needed: 0 };
        self.prepared.search(plan, 0, &mut bindings, &mut self.budget, &mut visit)?;
        let Some(complete) = complete else { return Ok(Evidence::default()) };
        let mut evidence = Evidence::default();
        let value = |vertex: usize| complete.get(vertex).copied().flatten();
        evidence.vertices = (0..complete.len()).filter_map(value).map(VertexIndex).collect();
        for (index, arrow) in self.prepared.arrows.iter().enumerate() {
            let (Some(from), Some(to)) = (value(arrow.from), value(arrow.to)) else { continue };
            let walk = match chosen.get(&index) {
                Some(relation) => vec![*relation],
                None => {
                    let walk = arrow.adjacency.walk(from, to, arrow.hops, &mut self.budget)?;
                    walk.into_iter().map(|relation| relation as usize).collect()
                }
            };
            evidence.walks.push(walk);
        }
        Ok(evidence)
    }
}

fn vertex_of(part: Part) -> Option<usize> {
    if let Part::Vertex(vertex) = part { Some(vertex) } else { None }
}

fn arrow_of(part: Part) -> Option<usize> {
    if let Part::Arrow(arrow) = part { Some(arrow) } else { None }
}
