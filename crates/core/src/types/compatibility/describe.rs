//! Descriptions of types and their facets for people.

use crate::text::truncate;
use crate::types::signature::{Facets, Shape, Type};
use serde_json::Value as Json;

const MAX_SCHEMA_CHARS: usize = 80;

/// The maximum number of allowed values to list.
const MAX_LISTED: usize = 8;

/// Describes a type, such as `Int from 1 to 10`.
pub(super) fn describe(ty: &Type) -> String {
    let Facets { allowed, range, pattern, description: _, format: _, nullable: _ } = &ty.facets;
    let mut text = match &ty.shape {
        Shape::Schema(schema) => format!("a value of the schema {}", truncate(&schema.to_string(), MAX_SCHEMA_CHARS)),
        _ => ty.to_string(),
    };
    if let Some(allowed) = allowed {
        let mut listed: Vec<_> = allowed.iter().take(MAX_LISTED).map(Json::to_string).collect();
        if allowed.len() > MAX_LISTED {
            listed.push("…".to_owned());
        }
        text.push_str(&format!(" (one of {})", listed.join(", ")));
    }
    if let Some(range) = range {
        text.push_str(&format!(" {}", range.describe(&ty.shape)));
    }
    if let Some(pattern) = pattern {
        text.push_str(&format!(" matching `{pattern}`"));
    }
    text
}
