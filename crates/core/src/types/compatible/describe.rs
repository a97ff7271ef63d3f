//! Types in words, with what narrows them.

use crate::text::truncate;
use crate::types::signature::{Bounds, Facets, Shape, Type};
use serde_json::Value as Json;

const MAX_SCHEMA_CHARS: usize = 80;

/// How many allowed values are listed.
const MOST_LISTED: usize = 8;

/// Describes a type for people, such as `Int from 1 to 10`.
pub(super) fn described(ty: &Type) -> String {
    let Facets { allowed, range, pattern, description: _, format: _, nullable: _ } = &ty.facets;
    let mut text = match &ty.shape {
        Shape::Schema(schema) => format!("what the schema {} allows", truncate(&schema.to_string(), MAX_SCHEMA_CHARS)),
        _ => ty.to_string(),
    };
    if let Some(allowed) = allowed {
        let mut listed: Vec<_> = allowed.iter().take(MOST_LISTED).map(Json::to_string).collect();
        if allowed.len() > MOST_LISTED {
            listed.push("…".to_owned());
        }
        text.push_str(&format!(" out of {}", listed.join(", ")));
    }
    if let Some(range) = range {
        text.push_str(&format!(" {}", ranged(&ty.shape, range)));
    }
    if let Some(pattern) = pattern {
        text.push_str(&format!(" that matches `{pattern}`"));
    }
    text
}

fn ranged(shape: &Shape, bounds: &Bounds) -> String {
    let range = match (&bounds.lower, &bounds.upper) {
        (Some(lower), Some(upper)) => format!("from {lower} to {upper}"),
        (Some(lower), None) => format!("from {lower}"),
        (None, Some(upper)) => format!("up to {upper}"),
        (None, None) => "of any size".to_owned(),
    };
    match shape {
        Shape::Text => format!("with a length {range}"),
        Shape::Array(_) => format!("with a number of items {range}"),
        _ => range,
    }
}
