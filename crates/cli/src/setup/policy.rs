//! Policies, which a project must keep to run.

use super::Setup;
use crate::error::CommandError;
use crate::place::Place;
use patter::permission::Rule;
use patter::query::{Limits, PolicyError, ProjectGraph, Violation, find_violations};

/// Returns an error if the project breaks a policy whose level is `error`, or if a policy cannot be read.
pub(crate) fn refuse_broken_policies(setup: &Setup, rules: &[Rule]) -> Result<(), CommandError> {
    let known = setup.toolset.tools.policies();
    if !known.errors.is_empty() {
        let errors = known.errors.iter().map(invalid_policy).collect();
        return Err(CommandError::combine("a policy of the organisation cannot be read, so nothing was run", errors));
    }
    let project = &setup.loaded.project;
    let source = ProjectGraph { project, library: &*setup.toolset.library, rules, findings: &[] };
    let violations = find_violations(&known.policies, &source, Limits::default());
    let found = known.findings.iter().chain(violations.iter().map(|Violation { finding, .. }| finding));
    let errors: Vec<_> = found
        .filter(|finding| finding.diagnostic.is_error())
        .map(|finding| {
            let diagnostic = &finding.diagnostic;
            let place = Place::parse(&project.location(finding.file, diagnostic.span));
            CommandError::failure(diagnostic.message.as_ref()).with_place(place).with_hint_if(diagnostic.hint.clone())
        })
        .collect();
    if errors.is_empty() {
        return Ok(());
    }
    Err(CommandError::combine("the project breaks a policy, so nothing was run", errors))
}

/// Describes a policy of the organisation that cannot be read.
pub(crate) fn invalid_policy(error: &PolicyError) -> CommandError {
    let message = format!("the policy `{}` is invalid: {}", error.name, error.diagnostic.message);
    let hint = error.diagnostic.hint.as_ref().map(ToString::to_string);
    CommandError::failure(message).with_place(Place::parse(&error.place)).with_hint_if(hint)
}
