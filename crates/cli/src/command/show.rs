//! `patter show`: an agent at a glance.

use crate::source::Input;
use crate::{Outcome, diagnostics, print};
use anstyle::{AnsiColor, Style};
use clap::Args;
use patter::declare::{Agent, Element, ToolSpec};
use patter::gram::{Dialect, Span};
use patter::project::{Loaded, Project, find_root};
use patter::types::signature::{Field, Presence, Signature};
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

/// Show agents at a glance: model, tools with signatures, delegates, and where each is declared
#[derive(Args)]
pub(crate) struct Show {
    /// File with agents
    #[arg(value_name = "FILE")]
    path: PathBuf,

    /// Agent to show; without one all are shown
    #[arg(value_name = "AGENT")]
    agent: Option<String>,
}

const NAME: Style = Style::new().bold();
const TOOL: Style = AnsiColor::Cyan.on_default();
const DIM: Style = Style::new().dimmed();

impl Show {
    pub(crate) fn run(self) -> io::Result<Outcome> {
        let Some(project) = read_file(&self.path)? else { return Ok(Outcome::Failure) };
        let agents: Vec<_> =
            project.agents().filter(|(declaration, _)| declaration.file == 0).map(|(_, agent)| agent).collect();
        let is_wanted = |agent: &&Agent| self.agent.as_deref().is_none_or(|name| agent.name().as_deref() == Some(name));
        let shown: Vec<_> = agents.iter().filter(is_wanted).map(|agent| glance(&project, agent)).collect();
        if shown.is_empty() {
            let names: Vec<_> = agents.iter().filter_map(Agent::name).collect();
            let message = match &self.agent {
                Some(name) => format!("`{}` has no agent `{name}`", self.path.display()),
                None => format!("`{}` has no agents", self.path.display()),
            };
            let near =
                self.agent.as_deref().and_then(|name| patter::text::nearest(name, names.iter().map(AsRef::as_ref)));
            let hint = match near {
                Some(near) => Some(format!("did you mean `{near}`?")),
                None if names.is_empty() => None,
                None => Some(format!("its agents are {}", names.join(", "))),
            };
            diagnostics::error(&message, hint.as_deref())?;
            return Ok(Outcome::Failure);
        }
        print(&shown.join("\n"))?;
        Ok(Outcome::Success)
    }
}

/// Reads a file as the first of its project; says why where it cannot.
pub(crate) fn read_file(path: &Path) -> io::Result<Option<Project>> {
    let root = find_root();
    let loaded = match Loaded::read(&[path.to_owned()], root.as_deref(), Dialect::Patter) {
        Ok(loaded) => loaded,
        Err(error) => return diagnostics::unloaded(&error).map(|_| None),
    };
    for (path, error) in &loaded.unreadable {
        diagnostics::unreadable(&Input::Path(path.clone()), error)?;
    }
    let errors = loaded
        .project
        .files()
        .first()
        .map_or(0, |file| file.diagnostics.iter().filter(|found| found.is_error()).count());
    if let Some(errors) = diagnostics::counted(errors, "error") {
        diagnostics::say(&format!("{} has {errors}; `patter check` says more", path.display()))?;
    }
    Ok(if loaded.selected.contains(&0) { Some(loaded.project) } else { None })
}

fn glance(project: &Project, agent: &Agent) -> String {
    let mut out = String::new();
    let name = agent.name().unwrap_or("(no name)".into());
    let place = project.place(0, agent.span());
    let _ = writeln!(out, "{NAME}{name}{NAME:#}  {DIM}{place}{DIM:#}");
    if let Some(description) = agent.description() {
        let _ = writeln!(out, "  {description}");
    }
    let model = match agent.model() {
        Some(Ok(model)) => model.to_string(),
        Some(Err(error)) => error.to_string(),
        None => "none".to_owned(),
    };
    let _ = writeln!(out, "  model        {model}");
    if let Some(instruction) = agent.instruction() {
        let lines = instruction.lines().count();
        let lines = if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") };
        let first = instruction.lines().next().unwrap_or_default();
        let _ = writeln!(out, "  instruction  {lines}: {}", shortened(first, 60));
    }
    let (mut tools, mut delegates) = (String::new(), String::new());
    for element in agent.elements() {
        match element {
            Element::Tool(tool) => tool_lines(project, &tool, &project.place(0, tool.span()), &mut tools),
            Element::Agent(inner) => delegate_line(&inner, &project.place(0, inner.span()), &mut delegates),
            Element::Reference { name, span } => reference_lines(project, &name, span, &mut tools, &mut delegates),
        }
    }
    for (title, lines) in [("tools", tools), ("delegates", delegates)] {
        if !lines.is_empty() {
            let _ = write!(out, "  {title}\n{lines}");
        }
    }
    out
}

fn reference_lines(project: &Project, name: &str, span: Span, tools: &mut String, delegates: &mut String) {
    let found = project.find(name);
    let pattern = found.first().and_then(|declaration| Some((*declaration, project.pattern(declaration)?)));
    match pattern {
        Some((declaration, pattern)) => {
            let place = project.place(declaration.file, declaration.span);
            if let Some(agent) = Agent::cast(pattern) {
                delegate_line(&agent, &place, delegates);
            } else if let Some(tool) = ToolSpec::cast(pattern) {
                tool_lines(project, &tool, &place, tools);
            }
        }
        None => {
            let place = project.place(0, span);
            let _ = writeln!(tools, "    {TOOL}{name}{TOOL:#}  {DIM}from the library, referred to in {place}{DIM:#}");
        }
    }
}

fn delegate_line(agent: &Agent, place: &str, out: &mut String) {
    let name = agent.name().unwrap_or_default();
    let description = agent.description().map_or_else(String::new, |text| format!(": {text}"));
    let _ = writeln!(out, "    {TOOL}{name}{TOOL:#}{description}  {DIM}{place}{DIM:#}");
}

fn tool_lines(project: &Project, tool: &ToolSpec, place: &str, out: &mut String) {
    let name = tool.name().unwrap_or_default();
    let signature = match tool.signature(project.records()) {
        Ok(signature) => readable(&signature),
        Err(_) => " (its signature has mistakes; see `patter check`)".to_owned(),
    };
    let _ = writeln!(out, "    {TOOL}{name}{TOOL:#}{signature}  {DIM}{place}{DIM:#}");
    if let Some(description) = tool.description().filter(|text| !text.is_empty()) {
        let _ = writeln!(out, "      {description}");
    }
}

/// Writes a signature as programmers read them: `(name: Text, age: Int = 18) -> Text`.
pub(crate) fn readable(signature: &Signature) -> String {
    let parameter = |field: &Field| match &field.presence {
        Presence::Required => format!("{}: {}", field.name, field.ty),
        Presence::Optional => format!("{}?: {}", field.name, field.ty),
        Presence::Default(default) => format!("{}: {} = {default}", field.name, field.ty),
    };
    let parameters: Vec<_> = signature.parameters.iter().map(parameter).collect();
    format!("({}) -> {}", parameters.join(", "), signature.returns)
}

fn shortened(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default().trim_end()),
        None => text.to_owned(),
    }
}
