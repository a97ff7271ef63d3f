//! Signatures for people.

use patter::types::signature::{Field, Presence, Shape, Signature, Type};

/// Formats a signature as in code: `(name: Text, age: Int = 18) -> Text`.
pub(crate) fn format_signature(signature: &Signature) -> String {
    let parameter = |field: &Field| match &field.presence {
        Presence::Required => format!("{}: {}", field.name, field.ty),
        Presence::Optional => format!("{}?: {}", field.name, field.ty),
        Presence::Default(default) => format!("{}: {} = {default}", field.name, field.ty),
    };
    let parameters: Vec<_> = signature.parameters.iter().map(parameter).collect();
    format!("({}) -> {}", parameters.join(", "), signature.returns)
}

/// Returns the name, the type and the description of each parameter.
pub(crate) fn parameter_rows(signature: &Signature) -> Vec<(String, String, String)> {
    let row = |field: &Field| {
        let presence = match &field.presence {
            Presence::Required => String::new(),
            Presence::Optional => ", optional".to_owned(),
            Presence::Default(default) => format!(", default {default}"),
        };
        let description = field.ty.facets.description.as_deref().unwrap_or_default();
        (field.name.clone(), format!("{}{presence}", field.ty), description.to_owned())
    };
    signature.parameters.iter().map(row).collect()
}

/// Formats the type of a result, with the names of its fields.
pub(crate) fn format_return_type(ty: &Type) -> String {
    match &ty.shape {
        Shape::Object(fields) => {
            let fields: Vec<_> = fields.iter().map(|field| format!("{}: {}", field.name, field.ty)).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Shape::Array(item) => format!("[{}]", format_return_type(item)),
        _ => ty.to_string(),
    }
}
