//! The tools of an agent, bound and translated for the provider of its model.

use super::CompileError;
use super::input::{delegate_definition, typed_input};
use crate::declare::Agent;
use crate::library::{Binding, Library, LibraryTool, Target};
use crate::message::request::OfferedTool;
use crate::name::WireName;
use crate::provider::ModelRef;
use crate::run::{CallTarget, Callable};
use crate::types::definition::Definition;
use crate::types::dialect::{Fidelity, SchemaDialect, adapt};
use crate::types::signature::Records;
use crate::types::validator::Validator;
use crate::workflow::Callee;
use serde_json::{Value as Json, json};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// The tools of an agent, by the names under which it calls them.
#[derive(Default)]
pub(super) struct CompiledTools {
    /// What the model sees, in the order of the declaration.
    pub(super) offered: Vec<OfferedTool>,
    /// What is called, in the same order.
    pub(super) callables: Vec<Callable>,
    /// The declared schemas of the tools that the provider gets a stricter schema for.
    pub(super) declared_schemas: HashMap<String, Json>,
    /// Check arguments against the declarations.
    pub(super) validators: HashMap<String, Validator>,
    /// The agents among them.
    pub(super) delegates: HashMap<String, Agent>,
    /// What the steps of a workflow may call.
    pub(super) callees: HashMap<String, Callee>,
}

impl CompiledTools {
    /// Compiles the tools that an agent is bound to.
    pub(super) fn new<T: LibraryTool>(
        agent: &str,
        bindings: Vec<Binding>,
        library: &Library<T>,
        records: &Arc<Records>,
        model: &ModelRef,
    ) -> Result<Self, CompileError> {
        let mut tools = Self::default();
        for Binding { name, target } in bindings {
            let wire = WireName::from_full_name(&name);
            let wire =
                wire.map_err(|error| CompileError::Name { agent: agent.to_owned(), tool: name.clone(), error })?;
            let (description, schema, target) = match target {
                Target::Tool { name: tool, declared } => {
                    let idempotent = library.get(tool.as_str()).is_some_and(|entry| entry.value.is_idempotent());
                    let (description, schema) = tools.add_definition(&name, declared.into());
                    (description, schema, CallTarget::Tool { name: tool, idempotent })
                }
                Target::Agent { agent } => {
                    let target = CallTarget::Agent { name: agent.path().to_string() };
                    let (description, schema) = tools.add_delegate(&name, *agent, records);
                    (description, schema, target)
                }
            };
            let (provider_schema, strict_schema) = provider_schemas(&schema, model);
            let strict_schema = strict_schema.map(Into::into);
            if strict_schema.is_some() {
                tools.declared_schemas.insert(name.clone(), schema);
            }
            let offered = OfferedTool { name: wire, description, schema: provider_schema.into(), strict_schema };
            tools.offered.push(offered);
            tools.callables.push(Callable { name, target });
        }
        Ok(tools)
    }

    /// Adds what is known about a tool. Returns its description and the schema of its input.
    fn add_definition(&mut self, name: &str, declared: Arc<Definition>) -> (String, Json) {
        self.callees.insert(name.to_owned(), Callee::Tool { signature: declared.signature.clone() });
        let described = (declared.description.clone(), declared.input_schema());
        self.validators.insert(name.to_owned(), Validator::new(declared));
        described
    }

    /// Adds what is known about an agent. Returns its description and the schema of its input.
    fn add_delegate(&mut self, name: &str, agent: Agent, records: &Arc<Records>) -> (String, Json) {
        let description = describe_delegate(&agent);
        if let Some(callee) = Callee::from_agent(&agent, records) {
            self.callees.insert(name.to_owned(), callee);
        }
        let schema = match typed_input(&agent, records) {
            Some(takes) => {
                let definition = delegate_definition(name, &description, &takes, records);
                let schema = definition.input_schema();
                self.validators.insert(name.to_owned(), Validator::new(definition.into()));
                schema
            }
            None => delegate_schema(),
        };
        self.delegates.insert(name.to_owned(), agent);
        (description, schema)
    }
}

/// Returns the schema of the input of an agent that serves as a tool.
fn delegate_schema() -> Json {
    json!({
        "type": "object",
        "properties": {"input": {"type": "string", "description": "The task, with everything the agent needs to know"}},
        "required": ["input"],
    })
}

/// Returns the description of an agent that another one calls, for the model of the caller.
pub(super) fn describe_delegate(agent: &Agent) -> String {
    let description = agent.description().filter(|text| !text.trim().is_empty());
    description.map_or_else(|| format!("Asks the agent {}", agent.name().unwrap_or_default()), Cow::into_owned)
}

/// Returns a schema as the provider of a model accepts it, and the one that the provider can enforce.
pub(super) fn provider_schemas(schema: &Json, model: &ModelRef) -> (Json, Option<Json>) {
    let Some(dialect) = model.provider.profile().dialect else { return (schema.clone(), None) };
    let adapted = adapt(schema, dialect);
    match dialect {
        // A schema that loses constraints in strict mode is only sent unchanged.
        SchemaDialect::OpenAiStrict if adapted.fidelity() > Some(Fidelity::Preserved) => (schema.clone(), None),
        SchemaDialect::OpenAiStrict => (schema.clone(), Some(adapted.schema)),
        SchemaDialect::Anthropic | SchemaDialect::Gemini => (adapted.schema, None),
    }
}
