//! `patter.lock`: what decides what the agents of a project do.
//!
//! `patter lock` writes the file, which is committed with the project. It records the settings of the project, its MCP
//! servers, its policies, its agents, and for each tool that an agent may call what the tool says about itself and what a call does:
//! its description, its types, the command or the server, and the content of scripts. [`Lock::drift`] finds every change.
//!
//! Nothing in it depends on the machine or on the folder of the project. Texts are recorded as they are, so that a change
//! can be read: in a review of the file, and when a run is refused.

use super::drift::{self, Drift};
use super::tools::describe_delegate;
use crate::declare::Agent;
use crate::declare::project::Project;
use crate::library::{Binding, Library, LibraryTool, Sealing, Target, ToolFacts};
use crate::name::FullName;
use crate::query::Policy;
use crate::types::definition::hash;
use patter_gram::Pattern;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use thiserror::Error;

/// The name of the file.
pub const LOCK_FILE: &str = "patter.lock";

/// The version of the file format.
const VERSION: u32 = 2;

/// What decides what the agents of a project do.
///
/// ```
/// use patter_core::compile::Lock;
/// let lock = Lock::default();
/// assert_eq!(Lock::parse(&lock.to_string()).unwrap(), lock);
/// assert!(lock.drift(&Lock::default()).is_empty());
/// assert!(Lock::parse("version = 99").unwrap_err().to_string().contains("version 99"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    version: u32,
    /// The settings of the project that decide what runs do, as `name = value`, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
    /// The MCP servers.
    #[serde(default, rename = "server", skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<LockedServer>,
    /// The policies that the project must keep, its own and those of its organisation.
    #[serde(default, rename = "policy", skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<LockedPolicy>,
    /// The agents.
    #[serde(default, rename = "agent", skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<LockedAgent>,
    /// The tools that the agents may call.
    #[serde(default, rename = "tool", skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<LockedTool>,
}

/// An MCP server as it is configured, without values of variables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedServer {
    /// The name.
    pub name: String,
    /// The command that starts it, with its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The folder in which it is started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The address of a running server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The names of its environment variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<String>,
    /// The names of the headers that it receives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<String>,
    /// The files of the project that the command names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<LockedFile>,
    /// The hash of its settings as they are written.
    pub declaration: String,
}

/// A policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedPolicy {
    /// The name, with the name of its set.
    pub name: String,
    /// The layer that has it.
    pub layer: String,
    /// What must not be found.
    pub forbid: String,
    /// How bad it is to break it: `error` or `warning`.
    pub level: String,
    /// Whether a project cannot replace it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sealed: bool,
}

/// An agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedAgent {
    /// The name, or the path of an agent inside another.
    pub name: String,
    /// The agent that it extends. What it inherits is recorded as its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extends: Option<String>,
    /// The model that it names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The models that are called if that one is not available.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<String>,
    /// The instruction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// Its permission rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<String>,
    /// What it may call: the name by which it does, and what serves it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
    /// The hash of the text that declares it, with the agents that it extends and the toolkits that it uses.
    pub declaration: String,
}

/// A tool that agents may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedTool {
    /// The full name.
    pub name: String,
    /// The layer.
    pub layer: String,
    /// The kind of implementation.
    pub kind: String,
    /// The effect of a call.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub effect: String,
    /// The description, which models read.
    pub description: String,
    /// The parameters and the result.
    pub signature: String,
    /// The hash of the schemas of both.
    pub schema: String,
    /// What an MCP server says about the tool, as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<String>,
    /// The command that a call runs, with its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The folder in which it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The names of the environment variables of the command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<String>,
    /// The server that a call sends a request to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// What its process may do, if it has a sandbox. The project may decide that, not only the declaration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// The files of the project that the command names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<LockedFile>,
    /// The hash of the text that declares it, for tools declared in gram.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declaration: Option<String>,
}

/// A file whose content decides what a command does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedFile {
    /// The path, relative to the root of the project.
    pub path: String,
    /// The hash of its content.
    pub hash: String,
}

/// An error reading a lock file.
#[derive(Debug, Error)]
pub enum LockError {
    /// The file is malformed.
    #[error("cannot parse `{LOCK_FILE}`: {0}")]
    Malformed(String),
    /// The file was written by an earlier version, and records less.
    #[error("`{LOCK_FILE}` has version {0}, which does not record all that decides what a run does")]
    Outdated(u32),
    /// The file was written by a later version.
    #[error("`{LOCK_FILE}` has version {0}, but only version {VERSION} is supported")]
    Version(u32),
}

impl LockError {
    /// Returns what to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            LockError::Malformed(_) => "restore it from version control, or write it again with `patter lock`",
            LockError::Outdated(_) => "write it again with `patter lock`, and review the result",
            LockError::Version(_) => "use the version of Patter that wrote it, or write it again with `patter lock`",
        }
    }
}

impl Default for Lock {
    fn default() -> Self {
        Self {
            version: VERSION,
            settings: Vec::new(),
            servers: Vec::new(),
            policies: Vec::new(),
            agents: Vec::new(),
            tools: Vec::new(),
        }
    }
}

impl Lock {
    /// Reads a lock file.
    pub fn parse(text: &str) -> Result<Self, LockError> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let malformed = |error: toml::de::Error| LockError::Malformed(error.to_string().trim_end().to_owned());
        // Check the version first: another format has other fields.
        let Versioned { version } = toml::from_str(text).map_err(malformed)?;
        match version {
            VERSION => toml::from_str(text).map_err(malformed),
            earlier if earlier < VERSION => Err(LockError::Outdated(earlier)),
            later => Err(LockError::Version(later)),
        }
    }

    /// Adds the policies that the project must keep.
    pub fn add_policies(&mut self, policies: &[Policy]) {
        self.policies.extend(policies.iter().map(|policy| LockedPolicy {
            name: policy.name.clone(),
            layer: policy.layer.name().to_owned(),
            forbid: policy.forbid_text.clone(),
            level: policy.level.to_string(),
            sealed: policy.sealing == Sealing::Sealed,
        }));
    }

    /// Adds an agent with what it is bound to.
    pub fn add(&mut self, agent: &Agent, project: &Project, bindings: &[Binding], library: &Library<impl LibraryTool>) {
        let calls = bindings.iter().map(|binding| match &binding.target {
            // The model of the caller reads the description.
            Target::Agent { agent } => {
                format!("{}: agent {}: {}", binding.name, agent.path(), describe_delegate(agent))
            }
            Target::Tool { name, .. } => format!("{}: tool {name}", binding.name),
        });
        let agent = &project.complete(agent.clone());
        let rules = agent.rules("its file").0;
        self.agents.push(LockedAgent {
            name: agent.path().to_string(),
            extends: agent.bases().next().and_then(Pattern::name).map(Cow::into_owned),
            model: agent.model().and_then(Result::ok).map(|model| model.to_string()),
            fallback: agent.fallbacks().into_iter().flatten().map(|model| model.to_string()).collect(),
            instruction: agent.instruction().map(Cow::into_owned),
            permissions: rules.iter().map(ToString::to_string).collect(),
            calls: calls.collect(),
            declaration: hash(declaration_text(agent, project).as_bytes()),
        });
        for binding in bindings {
            let Target::Tool { name, .. } = &binding.target else { continue };
            self.add_tool(name, library);
        }
    }

    /// Adds a tool, unless it is there.
    pub fn add_tool(&mut self, name: &FullName, library: &Library<impl LibraryTool>) {
        let is_new = !self.tools.iter().any(|tool| tool.name == name.as_str());
        if let Some(entry) = library.get(name.as_str()).filter(|_| is_new) {
            self.tools.push(LockedTool::new(name.as_str(), entry.layer.name(), &entry.value));
        }
    }

    /// Sorts everything by name, so that the order of files does not matter.
    pub fn sort(&mut self) {
        self.settings.sort();
        self.servers.sort_by(|a, b| a.name.cmp(&b.name));
        self.policies.sort_by(|a, b| (&a.name, &a.layer).cmp(&(&b.name, &b.layer)));
        self.agents.sort_by(|a, b| a.name.cmp(&b.name));
        self.tools.sort_by(|a, b| a.name.cmp(&b.name));
    }

    /// Returns a hash of the tools, and of what serves each call.
    pub fn hash(&self) -> String {
        let calls: Vec<_> = self.agents.iter().map(|agent| (&agent.name, &agent.calls)).collect();
        // Texts and lists of them can always be written.
        hash(&serde_json::to_vec(&(calls, &self.tools)).unwrap_or_default())
    }

    /// Returns the differences between this lock and the current state of the project.
    pub fn drift(&self, current: &Lock) -> Vec<Drift> {
        drift::of_project(self, current)
    }

    /// Returns the differences that concern the agents of `current` and their tools. Other agents, the settings and the
    /// servers are ignored.
    pub fn drift_of_agents(&self, current: &Lock) -> Vec<Drift> {
        drift::of_agents(self, current)
    }
}

/// Returns the text that declares an agent, with the agents that it extends and the toolkits that it uses.
pub(super) fn declaration_text(agent: &Agent, project: &Project) -> String {
    let toolkits = project.toolkits_of(agent);
    let toolkits = toolkits.iter().filter_map(|toolkit| project.pattern(toolkit));
    let others = agent.bases().chain(toolkits);
    others.fold(agent.to_string(), |text, other| text + "\n" + other.syntax().text())
}

/// Writes the file.
impl fmt::Display for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "# What decides what the agents of this project do: settings, servers, policies, agents and tools.\n",
        )?;
        f.write_str(
            "# Written by `patter lock`, checked by `--locked`. Keep it with the project, and review changes.\n",
        )?;
        f.write_str(&toml::to_string_pretty(self).map_err(|_| fmt::Error)?)
    }
}

impl LockedTool {
    fn new(name: &str, layer: &str, tool: &impl LibraryTool) -> Self {
        let definition = tool.definition();
        let ToolFacts { effect, annotations, command, folder, environment, host } = tool.facts();
        Self {
            name: name.to_owned(),
            layer: layer.to_owned(),
            kind: tool.kind_name().to_owned(),
            effect,
            description: definition.description.clone(),
            signature: definition.signature.to_string(),
            schema: definition.schema_hash(),
            annotations,
            command,
            folder,
            environment,
            host,
            sandbox: tool.sandbox().filter(|sandbox| !sandbox.is_none()).map(ToString::to_string),
            files: Vec::new(),
            declaration: tool.revision().map(str::to_owned),
        }
    }
}
