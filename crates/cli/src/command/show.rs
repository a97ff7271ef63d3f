//! `patter show`: summarizes agents.

use super::Command;
use crate::error::{CommandError, CommandResult, ErrorFormat, Outcome};
use crate::format::{DataFormat, FormatOption, OutputFormat};
use crate::inspect::{format_signature, read_file};
use crate::ui::style::{ACCENT, BOLD, DIM};
use crate::ui::{self, truncate};
use clap::Args;
use patter::declare::sandbox::Sandbox;
use patter::declare::scope::Scope;
use patter::declare::{Agent, DeclaredLimits, Element, ToolSpec};
use patter::project::Project;
use patter::provider::price::Cost;
use serde_json::{Value as Json, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

/// Summarize agents: model, tools with signatures, delegates, and where each is declared
#[derive(Args)]
pub(crate) struct Show {
    /// File containing agents
    #[arg(value_name = "FILE")]
    path: PathBuf,

    /// Agent to show; by default all
    #[arg(value_name = "AGENT")]
    agent: Option<String>,

    #[command(flatten)]
    format: FormatOption<DataFormat>,
}

/// How much of an instruction is shown.
const INSTRUCTION_WIDTH: usize = 60;

impl Command for Show {
    fn error_format(&self) -> ErrorFormat {
        self.format.format.error_format()
    }

    fn run(&self) -> CommandResult {
        let project = read_file(&self.path)?;
        let agents: Vec<_> =
            project.agents().filter(|(declaration, _)| declaration.file == 0).map(|(_, agent)| agent).collect();
        let is_wanted = |agent: &&Agent| self.agent.as_deref().is_none_or(|name| agent.name().as_deref() == Some(name));
        let shown: Vec<_> = agents.iter().filter(is_wanted).map(|agent| AgentView::new(&project, agent)).collect();
        if shown.is_empty() {
            return Err(self.unknown(&agents));
        }
        match self.format.format {
            DataFormat::Text => ui::print(&shown.iter().map(AgentView::text).collect::<Vec<_>>().join("\n"))?,
            DataFormat::Json => {
                let agents: Vec<_> = shown.iter().map(AgentView::json).collect();
                ui::print(&format!("{:#}\n", json!({"version": 1, "agents": agents})))?;
            }
        }
        Ok(Outcome::Success)
    }
}

impl Show {
    fn unknown(&self, agents: &[Agent]) -> CommandError {
        let names: Vec<_> = agents.iter().filter_map(Agent::name).collect();
        let file = self.path.display();
        let message = match &self.agent {
            Some(name) => format!("`{file}` has no agent `{name}`"),
            None => format!("`{file}` has no agents"),
        };
        let near = self.agent.as_deref().and_then(|name| patter::text::nearest(name, names.iter().map(AsRef::as_ref)));
        let hint = match near {
            Some(near) => Some(format!("did you mean `{near}`?")),
            None if names.is_empty() => None,
            None => Some(format!("its agents are {}", names.join(", "))),
        };
        CommandError::failure(message).with_hint_if(hint)
    }
}

/// A summary of an agent.
struct AgentView {
    name: String,
    place: String,
    /// The agents that it extends, nearest first, each with its place.
    bases: Vec<(String, String)>,
    /// The agents that properties are inherited from, by property.
    inherited: Vec<(&'static str, String)>,
    description: Option<String>,
    model: String,
    fallbacks: Vec<String>,
    limits: DeclaredLimits,
    instruction: Option<String>,
    tools: Vec<ToolView>,
    delegates: Vec<DelegateView>,
}

/// A tool that an agent declares or refers to.
struct ToolView {
    name: String,
    /// Nothing for tools of the library.
    signature: Option<String>,
    description: Option<String>,
    place: String,
    /// The toolkit that has the tool, if it is not an element of the agent itself.
    toolkit: Option<String>,
    /// The agent that it is inherited from.
    base: Option<String>,
    is_declared: bool,
    /// What its process may do, if it declares a sandbox.
    sandbox: Option<String>,
}

/// An agent that an agent calls.
struct DelegateView {
    name: String,
    description: Option<String>,
    place: String,
    /// The agent that it is inherited from.
    base: Option<String>,
}

/// The properties of which a summary says where they come from.
const INHERITABLE: [&str; 8] =
    ["description", "model", "fallback", "instruction", "takes", "returns", "temperature", "maxTurns"];

impl AgentView {
    fn new(project: &Project, agent: &Agent) -> Self {
        let model = match agent.model() {
            Some(Ok(model)) => model.to_string(),
            Some(Err(error)) => error.to_string(),
            None => "none".to_owned(),
        };
        let mut view = Self {
            name: agent.name().unwrap_or("(no name)".into()).into_owned(),
            place: project.location(0, agent.span()),
            bases: project.base_locations(agent),
            inherited: INHERITABLE
                .into_iter()
                .filter_map(|key| Some((key, agent.inherited_from(key)?.into_owned())))
                .collect(),
            description: agent.description().map(|text| text.to_string()),
            model,
            fallbacks: agent
                .fallbacks()
                .into_iter()
                .map(|model| model.map_or_else(|error| error.to_string(), |model| model.to_string()))
                .collect(),
            limits: agent.declared_limits(),
            instruction: agent.instruction().map(|text| text.to_string()),
            tools: Vec::new(),
            delegates: Vec::new(),
        };
        let scope = Scope::new(agent);
        for member in project.members(agent) {
            let place = project.member_location(&member);
            let tools = view.tools.len();
            let delegates = view.delegates.len();
            match Element::cast(member.pattern) {
                Some(Element::Tool(tool)) => view.tools.push(ToolView::new(project, &tool, place)),
                Some(Element::Agent(inner)) => {
                    view.delegates.push(DelegateView::new(&project.complete(inner), place));
                }
                Some(Element::Reference { name, .. }) => view.add_reference(project, &scope, &name, place),
                None => {}
            }
            let toolkit = member.toolkit_name().map(Cow::into_owned);
            let base = member.base_name().map(Cow::into_owned);
            for tool in view.tools.iter_mut().skip(tools) {
                tool.toolkit.clone_from(&toolkit);
                tool.base.clone_from(&base);
            }
            view.delegates.iter_mut().skip(delegates).for_each(|delegate| delegate.base.clone_from(&base));
        }
        view
    }

    fn add_reference<'p>(&mut self, project: &'p Project, scope: &Scope<'p>, name: &str, referenced: String) {
        let found = project.resolve(scope, name);
        let place = found.first().map(|found| project.location_of(found)).unwrap_or_default();
        let pattern = found.first().map(|found| found.pattern);
        if let Some(agent) = pattern.and_then(|pattern| project.agent(pattern)) {
            self.delegates.push(DelegateView::new(&agent, place));
        } else if let Some(tool) = pattern.and_then(ToolSpec::cast) {
            self.tools.push(ToolView::new(project, &tool, place));
        } else {
            self.tools.push(ToolView {
                name: name.to_owned(),
                signature: None,
                description: None,
                place: referenced,
                toolkit: None,
                base: None,
                is_declared: false,
                sandbox: None,
            });
        }
    }

    fn text(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "{BOLD}{}{BOLD:#}  {DIM}{}{DIM:#}", self.name, self.place);
        if let Some(description) = &self.description {
            let _ = writeln!(out, "  {description}{}", self.origin("description"));
        }
        if !self.bases.is_empty() {
            let bases: Vec<_> = self.bases.iter().map(|(name, place)| format!("{name}  {DIM}{place}{DIM:#}")).collect();
            let _ = writeln!(out, "  extends      {}", bases.join(", which extends "));
        }
        let _ = writeln!(out, "  model        {}{}", self.model, self.origin("model"));
        if !self.fallbacks.is_empty() {
            let _ = writeln!(out, "  fallback     {}{}", self.fallbacks.join(", "), self.origin("fallback"));
        }
        let limits = self.limits();
        if !limits.is_empty() {
            let _ = writeln!(out, "  limits       {}", limits.join(", "));
        }
        if let Some(instruction) = &self.instruction {
            let lines = ui::plural(instruction.lines().count(), "line");
            let first = instruction.lines().next().unwrap_or_default();
            let first = truncate(first, INSTRUCTION_WIDTH);
            let _ = writeln!(out, "  instruction  {lines}: {first}{}", self.origin("instruction"));
        }
        if !self.tools.is_empty() {
            let _ = writeln!(out, "  tools");
            self.tools.iter().for_each(|tool| tool.write(&mut out));
        }
        if !self.delegates.is_empty() {
            let _ = writeln!(out, "  delegates");
            self.delegates.iter().for_each(|delegate| delegate.write(&mut out));
        }
        out
    }

    /// Says which agent a property is inherited from.
    fn origin(&self, key: &str) -> String {
        let found = self.inherited.iter().find(|(property, _)| *property == key);
        found.map_or_else(String::new, |(_, base)| format!("  {DIM}from {base}{DIM:#}"))
    }

    /// Describes the limits of a run that the agent declares.
    fn limits(&self) -> Vec<String> {
        let DeclaredLimits { max_turns, max_tool_calls, max_total_tokens, max_cost, timeout } = self.limits;
        let count = |number: Option<u64>, noun| {
            number.map(|number| ui::plural(usize::try_from(number).unwrap_or(usize::MAX), noun))
        };
        let limits = [
            count(max_turns, "model call"),
            count(max_tool_calls, "tool call"),
            count(max_total_tokens, "token"),
            max_cost.map(|cost| cost.to_string()),
            timeout.map(|timeout| format!("{} s", timeout.as_secs_f64())),
        ];
        limits.into_iter().flatten().collect()
    }

    fn json(&self) -> Json {
        let tools: Vec<_> = self.tools.iter().map(ToolView::json).collect();
        let delegate = |one: &DelegateView| json!({"name": one.name, "description": one.description, "place": one.place, "inherited": one.base});
        let delegates: Vec<_> = self.delegates.iter().map(delegate).collect();
        json!({
            "name": self.name,
            "place": self.place,
            "extends": self.bases.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            "inherited": self.inherited.iter().cloned().collect::<BTreeMap<_, _>>(),
            "description": self.description,
            "model": self.model,
            "fallback": self.fallbacks,
            "limits": {
                "maxTurns": self.limits.max_turns,
                "maxToolCalls": self.limits.max_tool_calls,
                "maxTotalTokens": self.limits.max_total_tokens,
                "maxCost": self.limits.max_cost.map(Cost::dollars),
                "timeout": self.limits.timeout.map(|timeout| timeout.as_secs_f64()),
            },
            "instruction": self.instruction,
            "tools": tools,
            "delegates": delegates,
        })
    }
}

impl ToolView {
    fn new(project: &Project, tool: &ToolSpec, place: String) -> Self {
        let signature = match tool.signature(project.records()) {
            Ok(signature) => format_signature(&signature),
            Err(_) => " (invalid signature; see `patter check`)".to_owned(),
        };
        Self {
            name: tool.name().unwrap_or_default().into_owned(),
            signature: Some(signature),
            description: tool.description().filter(|text| !text.is_empty()).map(|text| text.to_string()),
            place,
            toolkit: None,
            base: None,
            is_declared: true,
            sandbox: tool.pattern().and_then(|pattern| Some(Sandbox::read(pattern).ok()??.to_string())),
        }
    }

    fn write(&self, out: &mut String) {
        let Self { name, place, .. } = self;
        let signature = self.signature.as_deref().unwrap_or_default();
        let _ = match self.is_declared {
            true => writeln!(out, "    {ACCENT}{name}{ACCENT:#}{signature}  {DIM}{place}{DIM:#}"),
            false => writeln!(out, "    {ACCENT}{name}{ACCENT:#}  {DIM}from the library, referenced in {place}{DIM:#}"),
        };
        if let Some(toolkit) = &self.toolkit {
            let _ = writeln!(out, "      {DIM}from the toolkit {toolkit}{DIM:#}");
        }
        if let Some(base) = &self.base {
            let _ = writeln!(out, "      {DIM}inherited from {base}{DIM:#}");
        }
        if let Some(description) = &self.description {
            let _ = writeln!(out, "      {description}");
        }
        if let Some(sandbox) = &self.sandbox {
            let _ = writeln!(out, "      {DIM}sandbox: {sandbox}{DIM:#}");
        }
    }

    fn json(&self) -> Json {
        json!({
            "name": self.name,
            "signature": self.signature.as_deref().map(str::trim_start),
            "description": self.description,
            "place": self.place,
            "declared": self.is_declared,
            "toolkit": self.toolkit,
            "inherited": self.base,
            "sandbox": self.sandbox,
        })
    }
}

impl DelegateView {
    fn new(agent: &Agent, place: String) -> Self {
        Self {
            name: agent.name().unwrap_or_default().into_owned(),
            description: agent.description().map(|text| text.to_string()),
            place,
            base: None,
        }
    }

    fn write(&self, out: &mut String) {
        let description = self.description.as_ref().map_or_else(String::new, |text| format!(": {text}"));
        let _ = writeln!(out, "    {ACCENT}{}{ACCENT:#}{description}  {DIM}{}{DIM:#}", self.name, self.place);
        if let Some(base) = &self.base {
            let _ = writeln!(out, "      {DIM}inherited from {base}{DIM:#}");
        }
    }
}
