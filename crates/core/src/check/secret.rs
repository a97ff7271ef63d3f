//! Secrets in files.

use crate::declare::project::File;
use crate::rule;
use crate::text::{find_secrets, mask_secrets};
use patter_gram::{Diagnostic, Span};
use std::borrow::Cow;

/// Returns a diagnostic for each secret in the text of a file, comments and broken parts included.
pub(super) fn secrets(file: &File) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for secret in find_secrets(file.tree.source()) {
        let (Ok(start), Ok(end)) = (u32::try_from(secret.range.start), u32::try_from(secret.range.end)) else {
            continue;
        };
        let message = format!("this looks like {}", secret.description);
        let hint = "put it into an environment variable, which tools read as `${NAME}`, and revoke it if anyone else has seen the file";
        found.push(rule::SECRET.at(Span::new(start, end), message).with_hint(hint));
    }
    found
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
