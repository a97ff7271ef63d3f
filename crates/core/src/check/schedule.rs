//! Checks of schedules.

use super::Checker;
use crate::declare::head_span;
use crate::rule;
use crate::schedule::{PROPERTIES, findings};
use patter_gram::Pattern;

impl<'p> Checker<'p> {
    pub(super) fn check_schedule(&mut self, pattern: Pattern<'p>) {
        self.check_name(pattern, "schedule");
        self.check_required_text(pattern, "schedule", "agent");
        self.check_required_text(pattern, "schedule", "at");
        // The input has the type that the agent takes.
        let known: Vec<_> = PROPERTIES.iter().map(|(name, _)| *name).chain(["input"]).collect();
        self.report_unknown_properties(pattern, "schedule", &known);
        self.check_values(pattern, PROPERTIES);
        findings(self.project, pattern).into_iter().for_each(|found| self.report(found));
        for element in pattern.elements() {
            let found = rule::MISPLACED.at(head_span(element), "a schedule has no elements");
            self.report(found.with_hint("name the agent: `agent: \"…\"`"));
        }
    }
}
