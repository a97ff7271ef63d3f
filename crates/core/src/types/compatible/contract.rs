//! Whether a tool is exactly what is declared.

use crate::types::schema::{input_schema, output_schema};
use crate::types::signature::{Records, Signature};
use serde_json::Value as Json;
use thiserror::Error;

/// All that a declaration or a tool says about itself.
#[derive(Debug, Clone, Copy)]
pub struct Contract<'a> {
    /// The name.
    pub name: &'a str,
    /// What it does, for people and models.
    pub description: &'a str,
    /// What it takes and gives.
    pub signature: &'a Signature,
    /// The record types that the signature may name.
    pub records: &'a Records,
}

/// A way in which a tool differs from a declaration.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Difference {
    /// The names differ.
    #[error("the name is declared `{declared}`, the tool has `{tool}`")]
    Name {
        /// What is declared.
        declared: String,
        /// What the tool has.
        tool: String,
    },
    /// The descriptions differ.
    #[error("the description is declared {declared:?}, the tool has {tool:?}")]
    Description {
        /// What is declared.
        declared: String,
        /// What the tool has.
        tool: String,
    },
    /// The schemas of the arguments differ.
    #[error("the input schema is declared {declared}, the tool has {tool}")]
    Input {
        /// What is declared.
        declared: Json,
        /// What the tool has.
        tool: Json,
    },
    /// The schemas of the result differ.
    #[error("the output schema is declared {declared}, the tool has {tool}")]
    Output {
        /// What is declared.
        declared: Json,
        /// What the tool has.
        tool: Json,
    },
}

/// Tells whether name, description and schemas of a tool are those of a declaration, and if not, all differences.
///
/// ```
/// use patter_core::{types::compatible::{Contract, exact}, types::signature::{Records, Signature}};
/// let (signature, records) = (Signature::parse("(a::Int)==>(::Text)").unwrap(), Records::default());
/// let declared = Contract { name: "show", description: "Shows a number", signature: &signature, records: &records };
/// assert_eq!(exact(declared, declared), Ok(()));
/// let differences = exact(declared, Contract { name: "print", ..declared }).unwrap_err();
/// assert_eq!(differences[0].to_string(), "the name is declared `show`, the tool has `print`");
/// ```
pub fn exact(declared: Contract<'_>, tool: Contract<'_>) -> Result<(), Vec<Difference>> {
    let mut differences = Vec::new();
    if declared.name != tool.name {
        differences.push(Difference::Name { declared: declared.name.to_owned(), tool: tool.name.to_owned() });
    }
    if declared.description != tool.description {
        let (declared, tool) = (declared.description.to_owned(), tool.description.to_owned());
        differences.push(Difference::Description { declared, tool });
    }
    let schemas = |schema: fn(&Signature, &Records) -> Json| {
        let (declared, tool) = (schema(declared.signature, declared.records), schema(tool.signature, tool.records));
        (declared != tool).then_some((declared, tool))
    };
    differences.extend(schemas(input_schema).map(|(declared, tool)| Difference::Input { declared, tool }));
    differences.extend(schemas(output_schema).map(|(declared, tool)| Difference::Output { declared, tool }));
    if differences.is_empty() { Ok(()) } else { Err(differences) }
}
