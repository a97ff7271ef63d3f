//! Checks of policies. Whether a project keeps them is checked with its tools.

use super::{Checker, describe_declaration};
use crate::declare::property::ValueKind;
use crate::declare::{DeclarationKind, head_span};
use crate::query::{POLICY_PROPERTIES, query_errors};
use crate::rule;
use patter_gram::Pattern;
use std::collections::HashMap;

impl<'p> Checker<'p> {
    pub(super) fn check_policy(&mut self, pattern: Pattern<'p>) {
        self.check_name(pattern, "policy");
        self.check_required_text(pattern, "policy", "forbid");
        self.check_required_text(pattern, "policy", "because");
        self.check_properties(pattern, "policy", POLICY_PROPERTIES);
        query_errors(pattern).into_iter().for_each(|error| self.report(error));
        for element in pattern.elements() {
            let found = rule::MISPLACED.at(head_span(element), "a policy has no elements");
            self.report(found.with_hint("write the pattern as text: `forbid: \"(a:Agent)-[:calls]->(t:Tool)\"`"));
        }
    }

    pub(super) fn check_policies(&mut self, pattern: Pattern<'p>) {
        self.check_name(pattern, "set of policies");
        let known = [("description", ValueKind::String), ("sealed", ValueKind::Boolean)];
        self.check_properties(pattern, "set of policies", &known);
        let mut names: HashMap<String, Pattern<'p>> = HashMap::new();
        for element in pattern.elements() {
            if DeclarationKind::from_pattern(element) != Some(DeclarationKind::Policy) {
                let found = rule::MISPLACED.at(head_span(element), "a set of policies can contain only policies");
                self.report(found.with_hint("write `[name:Policy { forbid: \"…\", because: \"…\" }]`"));
                continue;
            }
            self.check_policy(element);
            let Some(name) = element.name() else { continue };
            let Some(first) = names.insert(name.clone().into_owned(), element) else { continue };
            let set = describe_declaration("set of policies", pattern);
            let message = format!("{set} has two policies named `{name}`");
            let found = rule::DUPLICATE_DECLARATION.at(head_span(element), message);
            self.report(found.with_related(head_span(first), "first declared here").with_hint("rename one of them"));
        }
    }
}
