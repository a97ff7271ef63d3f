//! Agents that are ready to run: bound to their tools, with the schemas that the provider gets.

use super::input::typed_input;
use super::lock::declaration_text;
use super::tools::CompiledTools;
use super::{CompileError, Lock};
use crate::check::file_errors;
use crate::declare::Agent;
use crate::declare::project::Project;
use crate::declare::workflow::WorkflowSpec;
use crate::library::{Library, LibraryTool, MatchMode, Toolkits, bind, complete, find_unused_rules, first_unused_rule};
use crate::message::attachment::AttachmentContents;
use crate::message::context::estimate_text;
use crate::message::conversation::Conversation;
use crate::message::request::{OfferedTool, Request, RequestTemplate, Settings};
use crate::name::FullName;
use crate::permission::{Decision, Permissions, Rule};
use crate::provider::{ModelRef, Provider, known_model};
use crate::run::{CallTarget, Callable, ContextSpec, INPUT_ARGUMENTS, Limits, RunSpec};
use crate::text::{milliseconds, nearest};
use crate::types::definition::hash;
use crate::types::schema::type_schema;
use crate::types::signature::{Records, Type};
use crate::types::validator::Validator;
use crate::wire::Wire;
use crate::workflow::{Action, Plan, build_plan};
use patter_gram::Diagnostic;
use serde_json::{Map, Value as Json};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// An agent that is ready to run. Compile it once per project and library; clones share everything.
///
/// ```
/// use patter_core::compile::CompiledAgent;
/// use patter_core::declare::project::Project;
/// use patter_core::library::{HasDefinition, Entry, Layer, Library, LibraryTool, Sealing};
/// use patter_core::name::FullName;
/// use patter_core::types::definition::Definition;
///
/// struct Tool(Definition);
/// impl HasDefinition for Tool {
///     fn definition(&self) -> &Definition {
///         &self.0
///     }
/// }
/// impl LibraryTool for Tool {
///     fn is_idempotent(&self) -> bool {
///         true
///     }
///     fn kind_name(&self) -> &str {
///         "native"
///     }
///     fn source(&self) -> &str {
///         "Rust"
///     }
///     fn revision(&self) -> Option<&str> {
///         None
///     }
/// }
///
/// let value = Tool(Definition::new("sayHello", "Greets", "(name::Text)==>(::Text)").unwrap());
/// let name = FullName::parse("sayHello").unwrap();
/// let library = Library::merge([Entry { name, layer: Layer::Internal, sealing: Sealing::Open, value }]).unwrap();
/// let text = "[hi:Agent {instruction: 'Greet with `sayHello`.', model: 'demo'} | sayHello]";
/// let project = Project::read([("hi.gram", text)]);
/// let (_, agent) = project.agents().next().unwrap();
/// let compiled = CompiledAgent::new(&agent, &project, &library, None).unwrap();
/// assert_eq!(compiled.offered_tools()[0].name.as_str(), "sayHello");
/// ```
#[derive(Debug, Clone)]
pub struct CompiledAgent {
    parts: Arc<Parts>,
    /// What a client adds for one run.
    pub(super) extension: Option<Arc<Extension>>,
    /// What the agent that calls a pipe may not do, or only if somebody agrees.
    caller_rules: Vec<Rule>,
}

/// The parts of an agent that a client extends for one run.
#[derive(Debug)]
pub(super) struct Extension {
    pub(super) instruction: String,
    pub(super) offered: Vec<OfferedTool>,
    pub(super) frame: Arc<RequestTemplate>,
    pub(super) spec: RunSpec,
    pub(super) fallbacks: Vec<CompiledAgent>,
}

#[derive(Debug)]
struct Parts {
    agent: Agent,
    /// The agents it calls, by the names under which it calls them.
    delegates: HashMap<String, Agent>,
    model: ModelRef,
    /// The same agent with the models to call if that one is not available, in order.
    fallbacks: Vec<CompiledAgent>,
    instruction: String,
    settings: Settings,
    offered: Vec<OfferedTool>,
    /// The declared schemas of the tools that the provider gets a stricter schema for, by tool name.
    declared_schemas: HashMap<String, Json>,
    /// Check arguments against the declarations, by tool name.
    validators: HashMap<String, Validator>,
    returns: Option<Json>,
    frame: Arc<RequestTemplate>,
    spec: RunSpec,
    rules: Vec<Rule>,
    /// The toolkits that rules may name.
    toolkits: Toolkits,
    /// What the tools are bound to.
    lock: Lock,
    lock_hash: String,
}

/// What stands for the model of a workflow.
pub const WORKFLOW: &str = "workflow";

impl CompiledAgent {
    /// Compiles an agent: binds its tools and translates their schemas for the provider. `model` overrides the model of
    /// the agent, and then it has no fallbacks.
    pub fn new<T: LibraryTool>(
        agent: &Agent,
        project: &Project,
        library: &Library<T>,
        model: Option<ModelRef>,
    ) -> Result<Self, CompileError> {
        let agent = &complete(agent.clone(), project, library);
        let mut fallbacks = Vec::new();
        if model.is_none() {
            for fallback in agent.fallbacks() {
                let error = |error| CompileError::Model { agent: agent.path().to_string(), error };
                fallbacks.push(Self::with_model(agent, project, library, Some(fallback.map_err(error)?), Vec::new())?);
            }
        }
        Self::with_model(agent, project, library, model, fallbacks)
    }

    fn with_model<T: LibraryTool>(
        agent: &Agent,
        project: &Project,
        library: &Library<T>,
        model: Option<ModelRef>,
        fallbacks: Vec<Self>,
    ) -> Result<Self, CompileError> {
        let name = agent.path().to_string();
        refuse_broken_files(agent, project)?;
        let missing = |property| CompileError::Missing { agent: name.clone(), property };
        let is_workflow = agent.is_workflow();
        let instruction = match agent.instruction() {
            _ if is_workflow => String::new(),
            Some(instruction) => instruction.into_owned(),
            None => return Err(missing("instruction")),
        };
        let model = match (model, agent.model()) {
            // It calls no model itself.
            _ if is_workflow => ModelRef { provider: Provider::DEMO, id: String::new() },
            (Some(model), _) | (None, Some(Ok(model))) => model,
            (None, Some(Err(error))) => return Err(CompileError::Model { agent: name, error }),
            (None, None) => return Err(missing("model")),
        };
        let rules = checked_rules(agent, project, library)?;
        let returns = match agent.returns(project.records()) {
            Some(Ok(ty)) => Some(type_schema(&ty, project.records())),
            Some(Err(error)) => return Err(CompileError::Returns { agent: name, error }),
            None => None,
        };
        if let Some(Err(error)) = agent.takes(project.records()) {
            return Err(CompileError::Takes { agent: name, error });
        }
        let takes = typed_input(agent, project.records());
        let records = Arc::new(project.records().clone());
        let bindings = bind(agent, project, library, MatchMode::Compatible)?;
        let mut lock = Lock::default();
        lock.add(agent, project, &bindings, library);
        let mut tools = CompiledTools::new(&name, bindings, library, &records, &model)?;
        let workflow = plan(agent, takes.as_ref(), &records, &mut tools);
        let text = declaration_text(agent, project);
        let hash = hash(text.as_bytes());
        let CompiledTools { offered, callables, declared_schemas, validators, delegates, .. } = tools;
        let limits = limits(agent);
        let returned = returns.clone();
        let mut spec = RunSpec { agent: name, hash, tools: callables, limits, returns: returned, ..RunSpec::default() };
        spec.takes = takes.map(|takes| Arc::new(type_schema(&takes, &records)));
        spec.workflow = workflow.map(Arc::new);
        let settings = agent.settings();
        spec.context = context_spec(agent, &model, &settings, &instruction, &offered);
        let request = Request {
            model: &model,
            instruction: &instruction,
            messages: &Conversation::default(),
            contents: AttachmentContents::NONE,
            tools: &offered,
            settings: &settings,
            returns: returns.as_ref(),
        };
        let mut frame = request.template();
        if is_workflow {
            frame.model = WORKFLOW.to_owned();
        }
        let parts = Parts {
            frame: Arc::new(frame),
            agent: agent.clone(),
            delegates,
            model,
            fallbacks,
            instruction,
            settings,
            offered,
            declared_schemas,
            validators,
            returns,
            spec,
            rules,
            toolkits: Toolkits::new(project, library),
            lock_hash: lock.hash(),
            lock,
        };
        Ok(Self { parts: Arc::new(parts), extension: None, caller_rules: Vec::new() })
    }

    /// Returns the name of the agent, or its path if it is declared inside another: `boss/helper`.
    pub fn name(&self) -> &str {
        &self.parts.spec.agent
    }

    /// Returns the declaration of the agent.
    pub fn declaration(&self) -> &Agent {
        &self.parts.agent
    }

    /// Returns the declaration of an agent that it calls, by the name under which it calls it.
    pub fn delegate(&self, name: &str) -> Option<&Agent> {
        self.parts.delegates.get(name)
    }

    /// Iterates over the declarations of the agents that it calls, in declared order.
    pub fn delegates(&self) -> impl Iterator<Item = &Agent> {
        self.parts.spec.tools.iter().filter_map(|callable| self.delegate(&callable.name))
    }

    /// Returns the model.
    pub fn model(&self) -> &ModelRef {
        &self.parts.model
    }

    /// Returns the name of the model for people and logs: a workflow has none, and is named as what it is.
    pub fn model_name(&self) -> String {
        if self.is_workflow() { WORKFLOW.to_owned() } else { self.model().to_string() }
    }

    /// Returns whether it is a workflow.
    pub fn is_workflow(&self) -> bool {
        self.parts.spec.workflow.is_some()
    }

    /// Returns the same agent with the models to call if its own is not available, in order.
    pub fn fallbacks(&self) -> &[CompiledAgent] {
        self.extension.as_ref().map_or(&self.parts.fallbacks, |extension| &extension.fallbacks)
    }

    /// Returns the instruction for the model.
    pub fn instruction(&self) -> &str {
        self.extension.as_ref().map_or(&self.parts.instruction, |extension| &extension.instruction)
    }

    /// Returns the settings of the model.
    pub fn settings(&self) -> &Settings {
        &self.parts.settings
    }

    /// Returns the tools as the model sees them.
    pub fn offered_tools(&self) -> &[OfferedTool] {
        self.extension.as_ref().map_or(&self.parts.offered, |extension| &extension.offered)
    }

    /// Returns the schema of a structured answer.
    pub fn returns(&self) -> Option<&Json> {
        self.parts.returns.as_ref()
    }

    /// Returns the request that continues a conversation.
    pub fn request<'r>(&'r self, messages: &'r Conversation) -> Request<'r> {
        Request {
            model: self.model(),
            instruction: self.instruction(),
            messages,
            contents: AttachmentContents::NONE,
            tools: self.offered_tools(),
            settings: self.settings(),
            returns: self.returns(),
        }
    }

    /// Returns everything of a request but the conversation, to be logged.
    pub fn frame(&self) -> &Arc<RequestTemplate> {
        self.extension.as_ref().map_or(&self.parts.frame, |extension| &extension.frame)
    }

    /// Returns the properties of the agent that a protocol cannot express, so that they are not sent. A structured answer
    /// is validated regardless.
    pub fn unsupported_properties(&self, wire: Wire) -> Vec<&'static str> {
        let nothing = Conversation::default();
        let request = self.request(&nothing);
        let mut unsupported_settings = wire.unsupported_settings(self.settings());
        unsupported_settings
            .extend((self.returns().is_some() && !wire.sends_answer_schema(&request)).then_some("returns"));
        unsupported_settings
    }

    /// Returns the properties that the model does not support as they are, each with what happens instead.
    pub fn adjusted_properties(&self, wire: Wire) -> Vec<(&'static str, String)> {
        wire.adjusted_settings(self.model(), self.settings())
    }

    /// Returns the agent and what its tools are bound to, as `patter.lock` records them. Files are not included.
    pub fn bindings(&self) -> &Lock {
        &self.parts.lock
    }

    /// Returns the hash of the bindings, which identifies exactly the tools that a run used.
    pub fn bindings_hash(&self) -> &str {
        &self.parts.lock_hash
    }

    /// Returns what a run needs to know about the agent.
    pub fn spec(&self) -> &RunSpec {
        self.extension.as_ref().map_or(&self.parts.spec, |extension| &extension.spec)
    }

    /// Returns the declared schema of a tool's arguments if the provider got a stricter one, in which `null` stands for an
    /// omitted argument.
    pub fn strict_schema(&self, tool: &str) -> Option<&Json> {
        self.parts.declared_schemas.get(tool)
    }

    /// Adds the defaults that the agent declares to arguments and validates them against its declaration. The error is
    /// meant for the model.
    pub fn check_arguments(&self, tool: &str, arguments: &mut Json) -> Result<(), String> {
        let Some(validator) = self.parts.validators.get(tool) else {
            return match arguments {
                Json::Object(arguments) if self.parts.delegates.contains_key(tool) => {
                    reject_unknown(tool, arguments, INPUT_ARGUMENTS.into_iter())
                }
                _ => Ok(()),
            };
        };
        if let Json::Object(arguments) = arguments {
            validator.fill_defaults(arguments);
            let parameters = &validator.definition().signature.parameters;
            reject_unknown(tool, arguments, parameters.iter().map(|parameter| parameter.name.as_str()))?;
        }
        validator.check_arguments(arguments).map_err(|mismatches| {
            let mismatches: Vec<_> = mismatches.iter().map(ToString::to_string).collect();
            format!("invalid arguments for `{tool}`: {}", mismatches.join("; "))
        })
    }

    /// Returns a pipe as an agent calls it: the rules of the agent that ask for an approval or deny something apply to the
    /// tools of the pipe, as if the agent called them. Other agents have their own rules, and are returned as they are.
    #[must_use]
    pub fn called_by(&self, caller: &CompiledAgent) -> Self {
        let mut called = self.clone();
        if self.parts.agent.is_pipe() {
            let rules = caller.parts.rules.iter().chain(&caller.caller_rules);
            called.caller_rules = rules.filter(|rule| rule.decision != Decision::Allow).cloned().collect();
        }
        called
    }

    /// Returns the permissions of a run: the tools that the agent declares, its rules, and `others`.
    pub fn permissions(&self, others: impl IntoIterator<Item = Rule>) -> Permissions {
        let tools = self.parts.spec.tools.iter().filter_map(|callable| match &callable.target {
            CallTarget::Tool { name, .. } => Some(name.clone()),
            // Rules are about the name that the agent calls, wherever the other agent is declared.
            CallTarget::Agent { .. } => FullName::parse(&callable.name).ok(),
            CallTarget::Client | CallTarget::Person => None,
        });
        let own = self.parts.rules.iter().chain(&self.caller_rules).cloned();
        let rules = own.chain(others).map(|rule| self.parts.toolkits.expand(rule));
        Permissions::for_declared(tools).with_all(rules)
    }
}

/// Selects an agent of the first file like [`Project::main_agent`]. If it is not found, or has no name, errors in that file
/// are reported instead, since they explain why.
///
/// ```
/// use patter_core::compile::{CompileError, select_agent};
/// use patter_core::declare::project::Project;
/// let project = Project::read([("a.gram", "[a:Agent {}] [b:Agent {")]);
/// assert!(matches!(select_agent(&project, None), Err(CompileError::Broken { .. })));
/// ```
pub fn select_agent(project: &Project, name: Option<&str>) -> Result<Agent, CompileError> {
    let selected = project.main_agent(name);
    if selected.as_ref().is_ok_and(|agent| agent.name().is_some()) {
        return Ok(selected?);
    }
    refuse_broken(project, 0)?;
    Ok(selected?)
}

/// Returns an error if a file that is part of an agent has errors: what seems to be missing may be part of them.
fn refuse_broken_files(agent: &Agent, project: &Project) -> Result<(), CompileError> {
    let toolkits = project.toolkits_of(agent);
    let toolkit_files = toolkits.iter().map(|toolkit| toolkit.file);
    let base_files = agent.bases().filter_map(|base| project.file_of(base));
    let files = project.agent_file(agent).into_iter().chain(toolkit_files).chain(base_files);
    files.collect::<BTreeSet<_>>().into_iter().try_for_each(|file| refuse_broken(project, file))
}

/// Returns an error if a file has errors.
fn refuse_broken(project: &Project, file: usize) -> Result<(), CompileError> {
    let findings = file_errors(project, file);
    if findings.is_empty() {
        return Ok(());
    }
    let file = project.files().get(file).map(|file| file.path.clone()).unwrap_or_default();
    Err(CompileError::Broken { file, findings: findings.iter().map(|finding| finding.diagnostic.clone()).collect() })
}

/// Returns the rules of an agent, all of which are about something.
fn checked_rules<T: LibraryTool>(
    agent: &Agent,
    project: &Project,
    library: &Library<T>,
) -> Result<Vec<Rule>, CompileError> {
    let (rules, findings) = agent.rules(project.agent_path(agent).unwrap_or("its file"));
    if !findings.is_empty() {
        let file = project.agent_path(agent).map(str::to_owned);
        return Err(CompileError::Permission { agent: agent.path().to_string(), file, findings });
    }
    match first_unused_rule(agent, project, library) {
        Some((agent, finding)) => Err(unused_permissions(agent, finding, project, library)),
        None => Ok(rules),
    }
}

/// Returns the error for a rule that is about nothing, with all others in the same file.
fn unused_permissions<T: LibraryTool>(
    agent: String,
    finding: Diagnostic,
    project: &Project,
    library: &Library<T>,
) -> CompileError {
    let mut all = find_unused_rules(project, library);
    let file = all.iter().find(|other| other.diagnostic == finding).map(|other| other.file);
    let findings = match file {
        Some(file) => {
            all.retain(|other| other.file == file);
            all.into_iter().map(|finding| finding.diagnostic).collect()
        }
        // The agent is not part of the project.
        None => vec![finding],
    };
    let file = file.and_then(|file| project.files().get(file)).map(|file| file.path.clone());
    CompileError::Permission { agent, file, findings }
}

/// Rejects arguments that a tool or agent does not have. They are most likely misspelt, and would be lost.
fn reject_unknown<'k>(
    tool: &str,
    arguments: &Map<String, Json>,
    known: impl Iterator<Item = &'k str> + Clone,
) -> Result<(), String> {
    let is_unknown = |name: &&String| !known.clone().any(|known| known == name.as_str());
    let Some(unknown) = arguments.keys().find(is_unknown) else { return Ok(()) };
    let near = nearest(unknown, known).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    Err(format!("`{tool}` has no parameter `{unknown}`{near}"))
}

/// Returns the steps of a workflow or a pipe. No model sees its tools, and people may be asked.
fn plan(agent: &Agent, takes: Option<&Type>, records: &Records, tools: &mut CompiledTools) -> Option<Plan> {
    let pattern = agent.pattern().filter(|_| agent.is_workflow())?;
    let spec = WorkflowSpec::read(pattern);
    let mut plan = build_plan(&spec, takes, records, &|name| tools.callees.get(name).cloned());
    if agent.is_pipe() {
        plan.pass_arguments();
    }
    tools.offered.clear();
    let people = plan.steps.iter().filter(|step| matches!(step.action, Action::Ask { .. }));
    tools.callables.extend(people.map(|step| Callable { name: step.name.clone(), target: CallTarget::Person }));
    Some(plan)
}

/// Returns the declared limits of an agent, and the defaults of the others.
fn limits(agent: &Agent) -> Limits {
    let declared = agent.declared_limits();
    let defaults = Limits::default();
    let max_turns = declared.max_turns.map(|turns| u32::try_from(turns).unwrap_or(u32::MAX));
    Limits {
        max_model_calls: max_turns.unwrap_or(defaults.max_model_calls),
        max_tool_calls: declared.max_tool_calls,
        max_tokens: declared.max_total_tokens,
        max_cost: declared.max_cost,
        deadline_ms: declared.timeout.map(milliseconds),
        ..defaults
    }
}

/// Returns how long a conversation with a model may become.
fn context_spec(
    agent: &Agent,
    model: &ModelRef,
    settings: &Settings,
    instruction: &str,
    offered: &[OfferedTool],
) -> ContextSpec {
    /// What most replies need.
    const REPLY: u64 = 4096;
    let known = agent.context_window().or_else(|| known_model(model).and_then(|known| known.window));
    let Some(window) = known else { return ContextSpec { policy: agent.context_policy(), ..ContextSpec::default() } };
    let tools = offered.iter().map(|tool| tool.description.len() + tool.schema.text().len()).sum::<usize>();
    ContextSpec {
        policy: agent.context_policy(),
        window: Some(window),
        overhead: estimate_text((instruction.len() + tools) as u64),
        reserve: settings.max_tokens.unwrap_or(REPLY).min(window / 4),
    }
}
