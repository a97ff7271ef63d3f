//! Agents that are ready to run: bound to tools, with their schemas made.

use crate::lock::Lock;
use crate::tool::Tool;
use patter_core::check::errors_in;
use patter_core::declare::Agent;
use patter_core::declare::project::Project;
use patter_core::gram::Diagnostic;
use patter_core::library::{BindError, Library, Matching, Target, bind};
use patter_core::message::conversation::Message;
use patter_core::message::request::{Frame, OfferedTool, Request, Settings};
use patter_core::name::{FullName, WireName, WireNameError};
use patter_core::permission::{Permissions, Rule};
use patter_core::provider::{ModelRef, ModelRefError};
use patter_core::run::{self, Callable, Limits, RunSpec};
use patter_core::text::nearest;
use patter_core::types::definition::{Definition, hash};
use patter_core::types::dialect::{Effect, SchemaView, view};
use patter_core::types::schema::type_schema;
use patter_core::types::signature::{SignatureError, Validator};
use patter_core::wire::Wire;
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::sync::Arc;
use thiserror::Error;

/// An agent that is ready to run. Cheap to clone; made once for a text and a library.
///
/// ```
/// use patter::agent::CompiledAgent;
/// use patter::library::Layer;
/// use patter::project::{Environment, Project};
/// use patter::tool::{Kit, merge, standard::standard};
///
/// let text = "[hi:Agent {instruction: 'Greet with `sayHello`.', model: 'demo'} | sayHello]";
/// let project = Project::read([("hi.gram", text)]);
/// let library = merge([(Layer::Internal, standard(&Kit::new(".", Environment::default())))]).unwrap();
/// let (_, agent) = project.agents().next().unwrap();
/// let compiled = CompiledAgent::new(&agent, &project, &library, None).unwrap();
/// assert_eq!(compiled.offered()[0].name.as_str(), "sayHello");
/// ```
#[derive(Debug, Clone)]
pub struct CompiledAgent {
    parts: Arc<Parts>,
}

#[derive(Debug)]
struct Parts {
    model: ModelRef,
    instruction: String,
    settings: Settings,
    offered: Vec<OfferedTool>,
    /// The schemas as they are declared, where providers get others, by the name of the tool.
    declared_schemas: HashMap<String, Json>,
    /// What checks arguments against the declarations, by the name of the tool.
    validators: HashMap<String, Validator>,
    returns: Option<Json>,
    frame: Arc<Frame>,
    spec: RunSpec,
    rules: Vec<Rule>,
    /// What its tools are bound to, and the hash of that.
    lock: Lock,
    lock_hash: String,
}

/// Why an agent is not ready to run: all that can be told before a token is spent.
#[derive(Debug, Error)]
pub enum CompileError {
    /// A property is missing.
    #[error("the agent `{agent}` has no `{property}`")]
    Missing {
        /// The agent.
        agent: String,
        /// The property.
        property: &'static str,
    },
    /// The model is none.
    #[error("the agent `{agent}` has no model that can be called: {error}")]
    Model {
        /// The agent.
        agent: String,
        /// What is wrong with it.
        error: ModelRefError,
    },
    /// Tools cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A tool has a name that no provider takes.
    #[error("the tool `{tool}` of `{agent}` cannot be offered to a model: {error}")]
    Name {
        /// The agent.
        agent: String,
        /// The tool.
        tool: String,
        /// What is wrong with the name.
        error: WireNameError,
    },
    /// The type of the answer cannot be read.
    #[error("the type that `{agent}` returns cannot be read: {error}")]
    Returns {
        /// The agent.
        agent: String,
        /// What is wrong with it.
        error: SignatureError,
    },
    /// The file of the agent has mistakes. What they hide is not known, such as a rule that is misspelt, so the agent
    /// does not run.
    #[error("`{file}` has mistakes: {}", findings.first().map(|first| first.message.as_ref()).unwrap_or_default())]
    Broken {
        /// The file.
        file: String,
        /// The mistakes.
        findings: Vec<Diagnostic>,
    },
    /// A permission cannot be read. It would protect nothing, so the agent does not run.
    #[error("the permissions of `{agent}` cannot be read: {}", wrong.message)]
    Permission {
        /// The agent.
        agent: String,
        /// What is wrong with it.
        wrong: Box<Diagnostic>,
    },
}

impl CompiledAgent {
    /// Makes an agent ready: binds its tools, and makes their schemas as the provider of its model takes them. Another
    /// model may be given.
    pub fn new(
        agent: &Agent,
        project: &Project,
        library: &Library<Tool>,
        model: Option<ModelRef>,
    ) -> Result<Self, CompileError> {
        let name = agent.name().unwrap_or_default().into_owned();
        let missing = |property| CompileError::Missing { agent: name.clone(), property };
        let instruction = agent.instruction().ok_or_else(|| missing("instruction"))?.into_owned();
        let model = match (model, agent.model()) {
            (Some(model), _) | (None, Some(Ok(model))) => model,
            (None, Some(Err(error))) => return Err(CompileError::Model { agent: name, error }),
            (None, None) => return Err(missing("model")),
        };
        if let Some(file) = project.file_with(agent) {
            let findings = errors_in(project, file);
            if !findings.is_empty() {
                let file = project.files().get(file).map(|file| file.path.clone()).unwrap_or_default();
                let findings = findings.into_iter().map(|finding| finding.diagnostic).collect();
                return Err(CompileError::Broken { file, findings });
            }
        }
        let (rules, wrong) = agent.rules(project.file_of(agent).unwrap_or("its file"));
        if let Some(wrong) = wrong.into_iter().next() {
            return Err(CompileError::Permission { agent: name, wrong: Box::new(wrong) });
        }
        let returns = match agent.returns(project.records()) {
            Some(Ok(ty)) => Some(type_schema(&ty, project.records())),
            Some(Err(error)) => return Err(CompileError::Returns { agent: name, error }),
            None => None,
        };
        let bindings = bind(agent, project, library, Matching::Compatible)?;
        let mut lock = Lock::default();
        lock.add(&name, &bindings, library);
        let (mut offered, mut tools) = (Vec::new(), Vec::new());
        let (mut declared_schemas, mut validators) = (HashMap::new(), HashMap::new());
        for binding in bindings {
            let wire = WireName::of(&binding.name).map_err(|error| CompileError::Name {
                agent: name.clone(),
                tool: binding.name.clone(),
                error,
            })?;
            let (description, schema, target) = match binding.target {
                Target::Tool { name, declared } => {
                    let idempotent = library.get(name.as_str()).is_some_and(|entry| entry.value.idempotent);
                    let declared: Arc<Definition> = declared.into();
                    validators.insert(binding.name.clone(), Validator::new(Arc::clone(&declared)));
                    (declared.description.clone(), declared.input_schema(), run::Target::Tool { name, idempotent })
                }
                Target::Agent { name } => (described(project, &name), delegate_schema(), run::Target::Agent { name }),
            };
            let (schema_sent, is_strict) = sent_schema(&schema, &model);
            let tool = OfferedTool { name: wire, description, schema: schema_sent.into(), is_strict };
            if tool.is_strict {
                declared_schemas.insert(binding.name.clone(), schema);
            }
            offered.push(tool);
            tools.push(Callable { name: binding.name, target });
        }
        let bounds = agent.bounds();
        let defaults = Limits::default();
        let limits = Limits {
            max_model_calls: bounds
                .max_turns
                .map_or(defaults.max_model_calls, |turns| u32::try_from(turns).unwrap_or(u32::MAX)),
            max_tool_calls: bounds.max_tool_calls,
            deadline_ms: bounds.timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            ..defaults
        };
        let spec =
            RunSpec { agent: name, hash: hash(agent.to_string().as_bytes()), tools, limits, returns: returns.clone() };
        let settings = agent.settings();
        let request = Request {
            model: &model,
            instruction: &instruction,
            messages: &[],
            tools: &offered,
            settings: &settings,
            returns: returns.as_ref(),
        };
        let parts = Parts {
            frame: Arc::new(request.frame()),
            model,
            instruction,
            settings,
            offered,
            declared_schemas,
            validators,
            returns,
            spec,
            rules,
            lock_hash: lock.hash(),
            lock,
        };
        Ok(Self { parts: Arc::new(parts) })
    }

    /// Returns the name of the agent.
    pub fn name(&self) -> &str {
        &self.parts.spec.agent
    }

    /// Returns the model.
    pub fn model(&self) -> &ModelRef {
        &self.parts.model
    }

    /// Returns what the model is told.
    pub fn instruction(&self) -> &str {
        &self.parts.instruction
    }

    /// Returns how the model should work.
    pub fn settings(&self) -> &Settings {
        &self.parts.settings
    }

    /// Returns the tools as the model gets to see them.
    pub fn offered(&self) -> &[OfferedTool] {
        &self.parts.offered
    }

    /// Returns the schema of the answer, where it has a form.
    pub fn returns(&self) -> Option<&Json> {
        self.parts.returns.as_ref()
    }

    /// Returns what is asked of the model, with a conversation.
    pub fn request<'r>(&'r self, messages: &'r [Message]) -> Request<'r> {
        Request {
            model: self.model(),
            instruction: self.instruction(),
            messages,
            tools: self.offered(),
            settings: self.settings(),
            returns: self.returns(),
        }
    }

    /// Returns what the model is given beside the conversation, to be kept.
    pub fn frame(&self) -> &Arc<Frame> {
        &self.parts.frame
    }

    /// Returns the properties that the agent has and a wire has no place for, so that they are not sent. An answer is held
    /// to its form all the same.
    pub fn unsent(&self, wire: Wire) -> Vec<&'static str> {
        let request = self.request(&[]);
        let mut unsent = wire.unsupported(self.settings());
        unsent.extend((self.returns().is_some() && !wire.sends_returns(&request)).then_some("returns"));
        unsent
    }

    /// Returns what the tools are bound to, as `patter.lock` has it.
    pub fn bindings(&self) -> &Lock {
        &self.parts.lock
    }

    /// Returns the hash of what the tools are bound to: it says exactly which bindings a run used.
    pub fn bindings_hash(&self) -> &str {
        &self.parts.lock_hash
    }

    /// Returns what a run knows of the agent.
    pub fn spec(&self) -> &RunSpec {
        &self.parts.spec
    }

    /// Returns the schema of the arguments that the agent declares, where the provider got a stricter one, in which
    /// `null` stands for leaving out.
    pub fn strict_schema(&self, tool: &str) -> Option<&Json> {
        self.parts.declared_schemas.get(tool)
    }

    /// Puts the defaults that the agent declares into arguments, and checks them against its declaration. The error is
    /// for the model.
    pub(crate) fn declared_arguments(&self, tool: &str, arguments: &mut Json) -> Result<(), String> {
        let Some(validator) = self.parts.validators.get(tool) else { return Ok(()) };
        if let Json::Object(arguments) = arguments {
            validator.inject(arguments);
            let known = validator.definition().signature.parameters.iter().map(|parameter| parameter.name.as_str());
            // A misspelt argument would go unnoticed otherwise.
            if let Some(unknown) = arguments.keys().find(|name| !known.clone().any(|known| known == name.as_str())) {
                let near = nearest(unknown, known).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                return Err(format!("`{tool}` takes no `{unknown}`{near}"));
            }
        }
        validator.arguments(arguments).map_err(|mismatches| {
            let wrong: Vec<_> = mismatches.iter().map(ToString::to_string).collect();
            format!("the arguments of `{tool}` are wrong: {}", wrong.join("; "))
        })
    }

    /// Returns the permissions of a run: the tools that the agent declares, its rules, and others.
    pub fn permissions(&self, others: impl IntoIterator<Item = Rule>) -> Permissions {
        let tools = self.parts.spec.tools.iter().filter_map(|callable| match &callable.target {
            run::Target::Tool { name, .. } => Some(name.clone()),
            run::Target::Agent { name } => FullName::parse(name).ok(),
        });
        Permissions::declared(tools).with_all(self.parts.rules.iter().cloned()).with_all(others)
    }
}

/// Returns the schema of what another agent is told.
fn delegate_schema() -> Json {
    json!({
        "type": "object",
        "properties": {"input": {"type": "string", "description": "What to ask of the agent, with all that it needs to know"}},
        "required": ["input"],
    })
}

fn described(project: &Project, agent: &str) -> String {
    let found = project.agents().find(|(declaration, _)| declaration.name == agent).map(|(_, agent)| agent);
    let description = found.and_then(|agent| agent.description().map(std::borrow::Cow::into_owned));
    description.unwrap_or_else(|| format!("Asks the agent {agent}"))
}

/// Returns a schema as the provider of a model takes it, and whether it is one that the provider can hold the model to.
fn sent_schema(schema: &Json, model: &ModelRef) -> (Json, bool) {
    let Some(as_seen) = model.provider.profile().dialect else { return (schema.clone(), false) };
    let viewed = view(schema, as_seen);
    match as_seen {
        // A schema that loses something by being strict is better sent as it is.
        SchemaView::OpenAiStrict if viewed.effect() > Some(Effect::Kept) => (schema.clone(), false),
        SchemaView::OpenAiStrict => (viewed.schema, true),
        SchemaView::Anthropic | SchemaView::Gemini => (viewed.schema, false),
    }
}
