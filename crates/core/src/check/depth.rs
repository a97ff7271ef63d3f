//! Checks how deeply agents delegate.

use super::Checker;
use super::reference::Calls;
use crate::rule;
use crate::run::Limits;
use patter_gram::{Pattern, Syntax};

impl<'p> Checker<'p> {
    /// Reports agents from which delegation goes deeper than a run allows.
    pub(super) fn check_depth(&mut self) {
        let calls = std::mem::take(&mut self.calls);
        let max_depth = usize::try_from(Limits::default().max_depth).unwrap_or(usize::MAX);
        let graph = Delegation::new(&calls);
        for (index, ((file, _), (agent, _))) in calls.agents.iter().enumerate() {
            let is_called = graph.callers.get(index).is_some_and(|callers| !callers.is_empty());
            let Some(depth) = graph.depth(index).filter(|depth| *depth > max_depth && !is_called) else { continue };
            let path = graph.longest_path(&calls, index, max_depth + 2);
            let message = format!("agents delegate {depth} levels deep, but a run allows {max_depth}: {path}");
            let found = rule::DEEP_DELEGATION.at(agent.identifier().map_or(agent.span(), Syntax::span), message);
            self.file = *file;
            self.report(found.with_hint("the last of these calls always fail; let an agent further up make them"));
        }
    }
}

/// How deeply each agent delegates, by the index of the agent.
struct Delegation {
    callees: Vec<Vec<usize>>,
    callers: Vec<Vec<usize>>,
    /// The number of levels below an agent; `None` in and above a cycle, which is reported as such.
    depths: Vec<Option<usize>>,
}

impl Delegation {
    /// Measures the agents whose callees are all measured, until none is left.
    fn new(calls: &Calls<'_>) -> Self {
        let count = calls.agents.len();
        let callees: Vec<_> = (0..count).map(|index| calls.callees(index)).collect();
        let mut callers = vec![Vec::new(); count];
        for (caller, callees) in callees.iter().enumerate() {
            for callee in callees {
                callers.get_mut(*callee).into_iter().for_each(|callers: &mut Vec<_>| callers.push(caller));
            }
        }
        let mut open: Vec<_> = callees.iter().map(Vec::len).collect();
        let mut ready: Vec<_> = (0..count).filter(|index| open.get(*index) == Some(&0)).collect();
        let mut graph = Self { callees, callers, depths: vec![None; count] };
        while let Some(index) = ready.pop() {
            let below = graph.callees.get(index).into_iter().flatten().filter_map(|callee| graph.depth(*callee)).max();
            if let Some(depth) = graph.depths.get_mut(index) {
                *depth = Some(below.map_or(0, |below| below + 1));
            }
            for caller in graph.callers.get(index).into_iter().flatten() {
                let Some(left) = open.get_mut(*caller) else { continue };
                *left -= 1;
                if *left == 0 {
                    ready.push(*caller);
                }
            }
        }
        graph
    }

    fn depth(&self, index: usize) -> Option<usize> {
        self.depths.get(index).copied().flatten()
    }

    /// Formats the longest way down from an agent, up to a number of names.
    fn longest_path(&self, calls: &Calls<'_>, from: usize, names: usize) -> String {
        let name = |index: usize| calls.agents.get_index(index).and_then(|(_, (agent, _))| Pattern::name(*agent));
        let next = |index: &usize| self.callees.get(*index)?.iter().copied().max_by_key(|callee| self.depth(*callee));
        let mut path =
            std::iter::successors(Some(from), next).map(|index| format!("`{}`", name(index).unwrap_or_default()));
        let mut shown: Vec<_> = path.by_ref().take(names).collect();
        shown.extend(path.next().map(|_| "…".to_owned()));
        shown.join(" → ")
    }
}
