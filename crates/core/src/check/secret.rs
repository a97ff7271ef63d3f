//! Secrets in files.

use crate::declare::project::{Finding, Project};
use crate::rule;
use crate::text::{find_secrets, mask_secrets};
use patter_gram::{Diagnostic, Span};
use std::borrow::Cow;

/// Returns a finding for each secret in any text of a project, comments and broken parts included.
pub(super) fn secrets(project: &Project) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in project.files().iter().enumerate() {
        for secret in find_secrets(source.tree.source()) {
            let (Ok(start), Ok(end)) = (u32::try_from(secret.range.start), u32::try_from(secret.range.end)) else {
                continue;
            };
            let message = format!("this looks like {}", secret.description);
            let found = rule::SECRET.at(Span::new(start, end), message);
            let hint = "put it into an environment variable, which tools read as `${NAME}`, and revoke it if anyone else has seen the file";
            findings.push(Finding { file, diagnostic: found.with_hint(hint) });
        }
    }
    findings
}

/// Masks the secrets that a diagnostic quotes.
pub(super) fn mask(diagnostic: &mut Diagnostic) {
    let related = diagnostic.related.iter_mut().map(|related| &mut related.message);
    for text in [&mut diagnostic.message].into_iter().chain(&mut diagnostic.hint).chain(related) {
        if let Cow::Owned(masked) = mask_secrets(text) {
            *text = masked.into();
        }
    }
}
