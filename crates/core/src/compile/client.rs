//! Agents with what a client adds for one run.

use super::CompiledAgent;
use super::agent::Extension;
use super::tools::provider_schemas;
use crate::message::attachment::AttachmentContents;
use crate::message::conversation::Conversation;
use crate::message::request::{OfferedTool, Request};
use crate::name::{WireName, WireNameError};
use crate::run::{CallTarget, Callable, ClientAdditions, ClientTool, RunSpec};
use serde_json::Value as Json;
use std::collections::HashSet;
use std::sync::Arc;
use thiserror::Error;

/// The reason why a tool of a client cannot be offered to the model.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ClientToolError {
    /// The name is not valid.
    #[error("the tool `{tool}` of the client cannot be offered to a model: {error}")]
    Name {
        /// The tool.
        tool: String,
        /// What is wrong with the name.
        error: WireNameError,
    },
    /// The agent has a tool of that name, or the client has two.
    #[error("the tool `{tool}` of the client has the name of another tool")]
    Duplicate {
        /// The tool.
        tool: String,
    },
    /// The schema does not describe an object.
    #[error("the schema of the tool `{tool}` of the client is not that of an object")]
    Schema {
        /// The tool.
        tool: String,
    },
}

impl CompiledAgent {
    /// Returns the agent with tools and context that a client adds for one run. Calls of these tools are made by the
    /// client.
    ///
    /// ```
    /// # use patter_core::compile::CompiledAgent;
    /// # use patter_core::declare::project::Project;
    /// # use patter_core::run::{ClientAdditions, ClientTool};
    /// # fn example(compiled: &CompiledAgent) {
    /// let schema = serde_json::json!({"type": "object", "properties": {"city": {"type": "string"}}});
    /// let tool = ClientTool { name: "get_weather".into(), description: "The weather".into(), schema };
    /// let additions = ClientAdditions { tools: vec![tool], context: "The user is in Bern.".into() };
    /// let extended = compiled.with_client(&additions).unwrap();
    /// assert_eq!(extended.offered_tools().len(), compiled.offered_tools().len() + 1);
    /// # }
    /// ```
    pub fn with_client(&self, additions: &ClientAdditions) -> Result<Self, ClientToolError> {
        let mut base = self.clone();
        base.extension = None;
        let mut offered = base.offered_tools().to_vec();
        let mut tools = base.spec().tools.clone();
        let mut names: HashSet<String> = offered.iter().map(|tool| tool.name.as_str().to_owned()).collect();
        for tool in &additions.tools {
            let offer = base.offer(tool)?;
            if !names.insert(offer.name.as_str().to_owned()) {
                return Err(ClientToolError::Duplicate { tool: tool.name.clone() });
            }
            tools.push(Callable { name: offer.name.full_name(), target: CallTarget::Client });
            offered.push(offer);
        }
        let instruction = match additions.context.trim() {
            "" => base.instruction().to_owned(),
            context => format!("{}\n\nThe client adds this context:\n{context}", base.instruction()),
        };
        let spec = RunSpec { tools, client: Some(additions.clone()), ..base.spec().clone() };
        let request = Request {
            model: base.model(),
            instruction: &instruction,
            messages: &Conversation::default(),
            contents: AttachmentContents::NONE,
            tools: &offered,
            settings: base.settings(),
            returns: base.returns(),
        };
        let frame = Arc::new(request.template());
        let fallbacks =
            base.fallbacks().iter().map(|fallback| fallback.with_client(additions)).collect::<Result<_, _>>()?;
        let extension = Arc::new(Extension { instruction, offered, frame, spec, fallbacks });
        base.extension = Some(extension);
        Ok(base)
    }

    fn offer(&self, tool: &ClientTool) -> Result<OfferedTool, ClientToolError> {
        // The names of clients are already as providers accept them.
        let name = WireName::from_full_name(&tool.name.replace("__", "/"))
            .map_err(|error| ClientToolError::Name { tool: tool.name.clone(), error })?;
        if tool.schema.get("type").and_then(Json::as_str) != Some("object") {
            return Err(ClientToolError::Schema { tool: tool.name.clone() });
        }
        let (schema, _) = provider_schemas(&tool.schema, self.model());
        Ok(OfferedTool { name, description: tool.description.clone(), schema: schema.into(), strict_schema: None })
    }
}
