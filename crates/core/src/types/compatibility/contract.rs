//! Exact comparison of tools and declarations.

use crate::types::schema::{input_schema, output_schema};
use crate::types::signature::{Records, Signature};
use serde_json::Value as Json;
use thiserror::Error;

/// The visible properties of a declaration or a tool.
#[derive(Debug, Clone, Copy)]
pub struct Contract<'a> {
    /// The name.
    pub name: &'a str,
    /// What the tool does, for people and models.
    pub description: &'a str,
    /// The parameters and the result.
    pub signature: &'a Signature,
    /// The record types that the signature may refer to.
    pub records: &'a Records,
}

/// A difference between a tool and a declaration.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ContractDifference {
    /// The names differ.
    #[error("the declared name is `{declared}`, but the tool's is `{tool}`")]
    Name {
        /// The declared name.
        declared: String,
        /// The name of the tool.
        tool: String,
    },
    /// The descriptions differ.
    #[error("the declared description is {declared:?}, but the tool's is {tool:?}")]
    Description {
        /// The declared description.
        declared: String,
        /// The description of the tool.
        tool: String,
    },
    /// The input schemas differ.
    #[error("the declared input schema is {declared}, but the tool's is {tool}")]
    Input {
        /// The declared schema.
        declared: Json,
        /// The schema of the tool.
        tool: Json,
    },
    /// The output schemas differ.
    #[error("the declared output schema is {declared}, but the tool's is {tool}")]
    Output {
        /// The declared schema.
        declared: Json,
        /// The schema of the tool.
        tool: Json,
    },
}

/// Checks that the name, the description and the schemas of a tool equal those of a declaration, and returns all
/// differences if they do not.
///
/// ```
/// use patter_core::{types::compatibility::{Contract, check_exact}, types::signature::{Records, Signature}};
/// let signature = Signature::parse("(a::Int)==>(::Text)").unwrap();
/// let records = Records::default();
/// let declared = Contract { name: "show", description: "Shows a number", signature: &signature, records: &records };
/// assert_eq!(check_exact(declared, declared), Ok(()));
/// let differences = check_exact(declared, Contract { name: "print", ..declared }).unwrap_err();
/// assert_eq!(differences[0].to_string(), "the declared name is `show`, but the tool's is `print`");
/// ```
pub fn check_exact(declared: Contract<'_>, tool: Contract<'_>) -> Result<(), Vec<ContractDifference>> {
    let mut differences = Vec::new();
    if declared.name != tool.name {
        differences.push(ContractDifference::Name { declared: declared.name.to_owned(), tool: tool.name.to_owned() });
    }
    if declared.description != tool.description {
        differences.push(ContractDifference::Description {
            declared: declared.description.to_owned(),
            tool: tool.description.to_owned(),
        });
    }
    let schemas = |schema: fn(&Signature, &Records) -> Json| {
        let declared = schema(declared.signature, declared.records);
        let tool = schema(tool.signature, tool.records);
        (declared != tool).then_some((declared, tool))
    };
    differences.extend(schemas(input_schema).map(|(declared, tool)| ContractDifference::Input { declared, tool }));
    differences.extend(schemas(output_schema).map(|(declared, tool)| ContractDifference::Output { declared, tool }));
    if differences.is_empty() { Ok(()) } else { Err(differences) }
}
