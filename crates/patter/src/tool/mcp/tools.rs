//! The tools of an MCP server.

use super::content::{Output, value};
use super::server::{MOST_TOOLS, McpServer};
use super::trouble::{LONGEST_MESSAGE, cut};
use crate::tool::{BoxFuture, Definition, Effect, Failure, Implementation, Kind, Tool, ToolContext};
use patter_core::name::{FullName, FullNameError};
use patter_core::types::signature::{FromSchemas, SchemaError, Signature};
use rmcp::model::{Tool as Listed, ToolAnnotations};
use serde_json::Value as Json;
use std::collections::HashSet;
use std::sync::Arc;
use thiserror::Error;

/// The tools of an MCP server, and what is to be said about them.
#[derive(Debug)]
pub struct Listing {
    /// The tools that can be used, in the order of the server.
    pub tools: Vec<Tool>,
    /// What was left out or changed.
    pub warnings: Vec<ToolWarning>,
}

/// What was left out or changed of what an MCP server offers.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ToolWarning {
    /// No provider takes the name.
    #[error("the tool `{tool}` is left out: {error}")]
    Name {
        /// The tool.
        tool: String,
        /// What is wrong with its name.
        error: FullNameError,
    },
    /// There are two of the name.
    #[error("the second tool `{tool}` is left out: a name stands for one tool")]
    Twice {
        /// The tool.
        tool: String,
    },
    /// What it takes cannot be read.
    #[error("the tool `{tool}` is left out: its input schema cannot be used: {error}")]
    Input {
        /// The tool.
        tool: String,
        /// What is wrong with the schema.
        error: SchemaError,
    },
    /// What it gives cannot be read.
    #[error("the results of the tool `{tool}` are not checked: its output schema cannot be used: {error}")]
    Output {
        /// The tool.
        tool: String,
        /// What is wrong with the schema.
        error: SchemaError,
    },
    /// There are too many.
    #[error("the server has more tools than the {MOST_TOOLS} that are taken")]
    TooMany,
}

impl McpServer {
    /// Lists the tools, and starts the server if need be.
    ///
    /// What a call touches, and whether it may be made again, is what the server says of itself. These are hints: a
    /// server that is not trusted should not be trusted with them either, and permissions do not depend on them.
    pub async fn tools(&self) -> Result<Listing, Failure> {
        let (listed, is_cut) = self.list().await?;
        let mut listing = Listing { tools: Vec::new(), warnings: Vec::new() };
        let mut names = HashSet::new();
        for listed in listed {
            let tool = listed.name.to_string();
            if let Err(error) = FullName::within(self.name(), &tool) {
                listing.warnings.push(ToolWarning::Name { tool: cut(&tool, LONGEST_MESSAGE), error });
            } else if !names.insert(tool.clone()) {
                listing.warnings.push(ToolWarning::Twice { tool });
            } else {
                match self.tool(&listed, &mut listing.warnings) {
                    Ok(tool) => listing.tools.push(tool),
                    Err(error) => listing.warnings.push(ToolWarning::Input { tool, error }),
                }
            }
        }
        if is_cut {
            listing.warnings.push(ToolWarning::TooMany);
        }
        Ok(listing)
    }

    fn tool(&self, listed: &Listed, warnings: &mut Vec<ToolWarning>) -> Result<Tool, SchemaError> {
        let name = listed.name.to_string();
        let input = Json::Object(listed.input_schema.as_ref().clone());
        let output = listed.output_schema.as_ref().map(|schema| Json::Object(schema.as_ref().clone()));
        let (made, output) = match Signature::from_schemas(&input, output.as_ref()) {
            Ok(made) => (made, if output.is_some() { Output::Structured } else { Output::Free }),
            Err(error) => {
                let made = Signature::from_schemas(&input, None)?;
                warnings.push(ToolWarning::Output { tool: name.clone(), error });
                (made, Output::Free)
            }
        };
        let FromSchemas { signature, records, unsaid } = made;
        let unsaid = unsaid.map(|schema| jsonschema::validator_for(&schema)).transpose();
        let unsaid = unsaid.map_err(|error| SchemaError::Invalid(error.to_string()))?;
        let definition =
            Definition { name: name.clone(), description: description(listed), signature, records: records.into() };
        let implementation = McpTool { server: self.clone(), name, output, unsaid };
        let hints = listed.annotations.clone().unwrap_or_default();
        let settings = self.settings();
        Ok(Tool::new(definition, Kind::Mcp, implementation)
            .effect(effect(&hints))
            .idempotent(hints.read_only_hint == Some(true) || hints.is_idempotent())
            // The first call starts the server.
            .timeout(settings.start_timeout + settings.timeout)
            .source(format!("MCP server {}", settings.name)))
    }
}

/// Returns what a call touches, by what the server says of itself.
fn effect(hints: &ToolAnnotations) -> Effect {
    match (hints.read_only_hint, hints.open_world_hint) {
        (Some(true), Some(false)) => Effect::Reads,
        (Some(true), _) => Effect::Network,
        _ => Effect::Writes,
    }
}

/// Returns what the tool does. A model must read something, so the title or the name stands in.
fn description(listed: &Listed) -> String {
    let title = listed.title.as_deref().or_else(|| listed.annotations.as_ref()?.title.as_deref());
    let said = [listed.description.as_deref(), title].into_iter().flatten().map(str::trim);
    said.into_iter().find(|text| !text.is_empty()).map_or_else(|| format!("The tool {}", listed.name), str::to_owned)
}

struct McpTool {
    server: McpServer,
    name: String,
    output: Output,
    /// What the input schema demands beyond the parameters.
    unsaid: Option<jsonschema::Validator>,
}

impl Implementation for McpTool {
    fn call<'a>(&'a self, arguments: Json, context: &'a ToolContext) -> BoxFuture<'a, Result<Json, Failure>> {
        Box::pin(async move {
            if let Some(Err(error)) = self.unsaid.as_ref().map(|unsaid| unsaid.validate(&arguments)) {
                let told = format!("the arguments of `{}` are wrong: {error}", self.name);
                return Err(Failure::new(cut(&told, LONGEST_MESSAGE)));
            }
            let Json::Object(arguments) = arguments else {
                return Err(Failure::new(format!("the arguments of `{}` are not an object", self.name)));
            };
            let result = self.server.call(&self.name, arguments, context).await?;
            value(self.server.settings(), result, self.output)
        })
    }
}

/// Writes the tools of a server as gram declarations, for a file that a team reads and reviews.
///
/// Record types come first. Those of two tools that have the same name and are not the same cannot stand in one file;
/// then the later tool is told in a comment instead.
pub async fn declarations(server: &McpServer) -> Result<String, Failure> {
    let Listing { tools, warnings } = server.tools().await?;
    Ok(super::declare::file(server.name(), tools.iter().map(|tool| Arc::as_ref(&tool.definition)), &warnings))
}
