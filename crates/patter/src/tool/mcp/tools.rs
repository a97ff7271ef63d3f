//! The tools of an MCP server.

use super::content::{OutputForm, read_result};
use super::error::MAX_MESSAGE_CHARS;
use super::list::{MAX_ITEMS, ToolList};
use super::operation::Operation;
use super::server::McpServer;
use super::settings::Transport;
use crate::tool::command::named_files;
use crate::tool::{BoxFuture, Definition, Effect, Implementation, Tool, ToolContext, ToolFailure, ToolKind};
use patter_core::library::ToolFacts;
use patter_core::name::{FullName, FullNameError};
use patter_core::text::{format_duration, truncate};
use patter_core::types::signature::{ConvertedSignature, SchemaError, Signature};
use rmcp::model::{Tool as Listed, ToolAnnotations};
use serde_json::Value as Json;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Instant;
use thiserror::Error;

/// The tools of an MCP server, with warnings.
#[derive(Debug)]
pub struct ServerTools {
    /// The usable tools, in the order of the server.
    pub tools: Vec<Tool>,
    /// Warnings about tools that were skipped or changed.
    pub warnings: Vec<ToolWarning>,
}

/// A warning about a tool of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ToolWarning {
    /// The description of the tool does not have the form that the protocol prescribes.
    #[error("the tool `{tool}` is skipped: malformed description: {error}")]
    Malformed {
        /// The tool, or its number.
        tool: String,
        /// The error.
        error: String,
    },
    /// The tool would have the name of another one, because of the characters that providers do not accept.
    #[error("the tool `{tool}` is skipped: it would be named `{name}`, as another tool is")]
    Clash {
        /// The tool.
        tool: String,
        /// The name without those characters.
        name: String,
    },
    /// A pattern of `only` or `except` names no tool of the server.
    #[error("`{pattern}` in `only` or `except` names no tool")]
    UnusedPattern {
        /// The pattern.
        pattern: String,
    },
    /// Providers do not accept the name.
    #[error("the tool `{tool}` is skipped: {error}")]
    Name {
        /// The tool.
        tool: String,
        /// The error in its name.
        error: FullNameError,
    },
    /// Another tool has the same name.
    #[error("the second tool named `{tool}` is skipped")]
    Duplicate {
        /// The tool.
        tool: String,
    },
    /// The input schema is not supported.
    #[error("the tool `{tool}` is skipped: unsupported input schema: {error}")]
    Input {
        /// The tool.
        tool: String,
        /// The error in the schema.
        error: SchemaError,
    },
    /// The output schema is not supported.
    #[error("the results of the tool `{tool}` are not validated: unsupported output schema: {error}")]
    Output {
        /// The tool.
        tool: String,
        /// The error in the schema.
        error: SchemaError,
    },
    /// There are too many tools.
    #[error("only the first {MAX_ITEMS} tools of the server are used")]
    TooMany,
}

impl McpServer {
    /// Lists the tools, and starts the server if necessary.
    ///
    /// The effect of a tool and whether it is idempotent are hints from the server. They are as trustworthy as the
    /// server itself; permissions do not depend on them.
    pub async fn tools(&self) -> Result<ServerTools, ToolFailure> {
        let ToolList { tools: listed, malformed, is_truncated, has_resources, has_prompts } = self.list().await?;
        let filter = &self.settings().filter;
        let malformed = malformed.into_iter().filter(|(tool, _)| filter.allows(tool));
        let warnings = malformed.map(|(tool, error)| ToolWarning::Malformed { tool, error }).collect();
        let mut result = ServerTools { tools: Vec::new(), warnings };
        let mut all: HashSet<_> = listed.iter().map(|tool| tool.name.to_string()).collect();
        let mut names = HashSet::new();
        let start = Instant::now();
        let limit = self.settings().start_timeout;
        for listed in listed.iter().filter(|listed| filter.allows(&listed.name)) {
            // A schema can be made to take long to read, so others get their turn, and the time is limited.
            tokio::task::yield_now().await;
            if start.elapsed() > limit {
                let limit = format_duration(limit);
                let message = format!("reading the tools of the MCP server `{}` took longer than {limit}", self.name());
                return Err(ToolFailure::new(message).with_detail("raise `start-timeout` if you trust the server"));
            }
            let tool = truncate(&listed.name, MAX_MESSAGE_CHARS);
            let name = accepted_name(&listed.name);
            let is_same = name == *listed.name;
            if let Err(error) = FullName::join(self.name(), &name) {
                result.warnings.push(ToolWarning::Name { tool, error });
            } else if !is_same && all.contains(&name) {
                result.warnings.push(ToolWarning::Clash { tool, name });
            } else if !names.insert(name.clone()) {
                result.warnings.push(match is_same {
                    true => ToolWarning::Duplicate { tool },
                    false => ToolWarning::Clash { tool, name },
                });
            } else {
                match self.build_tool(listed, name, Operation::Call, &mut result.warnings) {
                    Ok(tool) => result.tools.push(tool),
                    Err(error) => result.warnings.push(ToolWarning::Input { tool, error }),
                }
            }
        }
        let mut operations = Vec::new();
        if has_resources && self.settings().has_resources {
            operations.extend([Operation::ListResources, Operation::ReadResource]);
        }
        if has_prompts && self.settings().has_prompts {
            operations.extend([Operation::ListPrompts, Operation::GetPrompt]);
        }
        for operation in operations {
            let listed = operation.describe();
            let name = listed.name.to_string();
            // The server's own tool of that name is the one that its users expect.
            if filter.allows(&name) && !names.contains(&name) && !all.contains(&name) {
                let built = self.build_tool(&listed, name.clone(), operation, &mut result.warnings);
                result.tools.extend(built.ok());
            }
            all.insert(name);
        }
        if is_truncated {
            result.warnings.push(ToolWarning::TooMany);
        } else {
            let unused = filter.unused(&all).map(|pattern| ToolWarning::UnusedPattern { pattern: pattern.to_owned() });
            result.warnings.extend(unused);
        }
        Ok(result)
    }

    fn build_tool(
        &self,
        listed: &Listed,
        name: String,
        operation: Operation,
        warnings: &mut Vec<ToolWarning>,
    ) -> Result<Tool, SchemaError> {
        let input = Json::Object(listed.input_schema.as_ref().clone());
        let output = listed.output_schema.as_ref().map(|schema| Json::Object(schema.as_ref().clone()));
        let (read, output) = match Signature::from_schemas(&input, output.as_ref()) {
            Ok(read) => (read, if output.is_some() { OutputForm::Structured } else { OutputForm::Free }),
            Err(error) => {
                let read = Signature::from_schemas(&input, None)?;
                warnings.push(ToolWarning::Output { tool: name.clone(), error });
                (read, OutputForm::Free)
            }
        };
        let ConvertedSignature { signature, records, residual_schema } = read;
        let validator = residual_schema.map(|schema| jsonschema::validator_for(&schema)).transpose();
        let validator = validator.map_err(|error| SchemaError::Invalid(error.to_string()))?;
        let definition = Definition { name, description: description(listed), signature, records: records.into() };
        let hints = listed.annotations.clone().unwrap_or_default();
        let annotations = listed.annotations.as_ref().and_then(|hints| serde_json::to_string(hints).ok());
        let implementation =
            McpTool { server: self.clone(), name: listed.name.to_string(), operation, output, validator, annotations };
        let settings = self.settings();
        let mut tool = Tool::new(definition, ToolKind::Mcp, implementation);
        if let Some(process) = settings.sandbox() {
            tool = tool.sandboxed(process.sandbox.clone());
        }
        Ok(tool
            .effect(effect(&hints))
            .idempotent(hints.read_only_hint == Some(true) || hints.is_idempotent())
            // The first call starts the server.
            .timeout(settings.start_timeout + settings.timeout + settings.question_time())
            .source(format!("MCP server {}", settings.name)))
    }
}

/// Returns the name of a tool with `_` for what providers do not accept. A `/` is replaced too: the namespaces of a project
/// are not for servers to choose.
fn accepted_name(name: &str) -> String {
    let mut accepted = String::new();
    for character in name.chars() {
        let character = if character.is_ascii_alphanumeric() || character == '-' { character } else { '_' };
        if character != '_' || !accepted.ends_with('_') {
            accepted.push(character);
        }
    }
    accepted
}

/// Returns the effect of a call according to the hints of the server.
fn effect(hints: &ToolAnnotations) -> Effect {
    match (hints.read_only_hint, hints.open_world_hint) {
        (Some(true), Some(false)) => Effect::Reads,
        (Some(true), _) => Effect::Network,
        _ => Effect::Writes,
    }
}

/// Returns the description of a tool. Models need one, so the title or the name is the fallback.
fn description(listed: &Listed) -> String {
    let title = listed.title.as_deref().or_else(|| listed.annotations.as_ref()?.title.as_deref());
    let texts = [listed.description.as_deref(), title].into_iter().flatten().map(str::trim);
    texts.into_iter().find(|text| !text.is_empty()).map_or_else(|| format!("The tool {}", listed.name), str::to_owned)
}

struct McpTool {
    server: McpServer,
    /// The name that the server gives the tool.
    name: String,
    operation: Operation,
    output: OutputForm,
    /// Checks the constraints of the input schema that a signature cannot express.
    validator: Option<jsonschema::Validator>,
    /// The hints of the server, as JSON.
    annotations: Option<String>,
}

impl Implementation for McpTool {
    fn call<'a>(&'a self, arguments: Json, context: &'a ToolContext) -> BoxFuture<'a, Result<Json, ToolFailure>> {
        Box::pin(async move {
            if let Some(Err(error)) = self.validator.as_ref().map(|validator| validator.validate(&arguments)) {
                let message = format!("invalid arguments for `{}`: {error}", self.name);
                return Err(ToolFailure::new(truncate(&message, MAX_MESSAGE_CHARS)));
            }
            let Json::Object(arguments) = arguments else {
                return Err(ToolFailure::new(format!("the arguments of `{}` are not an object", self.name)));
            };
            if self.operation != Operation::Call {
                return self.operation.perform(&self.server, arguments, context).await;
            }
            let result = self.server.call(&self.name, arguments, context).await?;
            read_result(self.server.settings(), result, self.output)
        })
    }

    fn facts(&self) -> ToolFacts {
        ToolFacts { annotations: self.annotations.clone(), ..ToolFacts::default() }
    }

    fn files(&self) -> Vec<PathBuf> {
        match &self.server.settings().transport {
            Transport::Process { command, arguments, folder, .. } => {
                let words: Vec<_> = std::iter::once(command).chain(arguments).cloned().collect();
                named_files(&words, &[folder.as_deref().unwrap_or(Path::new("."))])
            }
            Transport::Http(_) => Vec::new(),
        }
    }
}
