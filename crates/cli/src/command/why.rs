//! `patter why`: what a tool name stands for, and what becomes of its calls.

use super::call::base_permissions;
use super::show::readable;
use crate::setup::{Rules, Setup, ToolSources, split_agent};
use crate::{Outcome, diagnostics, print};
use anstyle::{AnsiColor, Style};
use clap::Args;
use patter::declare::Agent;
use patter::library::{BindFailure, Entry, Library, Matching, ResolveError, Target, bind};
use patter::name::FullName;
use patter::permission::{Because, Permissions};
use patter::project::{Project, Servers};
use patter::tool::Tool;
use patter::types::signature::{Field, Presence, Shape, Signature, Type};
use std::fmt::Write;
use std::io;

/// Explain what a tool name stands for: the candidates of all layers, which one won and why, and who may call it
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter why sayHello\n  \
                        patter why sayHello --agent hello.gram       as this agent calls it\n  \
                        patter why refund --agent shop.gram#clerk    one agent of several")]
pub(crate) struct Why {
    /// Full or bare name of a tool
    tool: String,

    /// Agent that calls it: is the tool what the agent declares, and may the agent call it?
    #[arg(long, value_name = "FILE[#AGENT]")]
    agent: Option<String>,

    #[command(flatten)]
    rules: Rules,

    #[command(flatten)]
    sources: ToolSources,
}

const BOLD: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const DIM: Style = Style::new().dimmed();

impl Why {
    pub(crate) fn run(self) -> io::Result<Outcome> {
        let wanted = self.agent.as_deref().map(split_agent);
        let files: Vec<_> = wanted.iter().map(|(file, _)| file.clone()).collect();
        let Some(setup) = Setup::read(&files, &self.sources, &Servers::For(&self.tool))? else {
            return Ok(Outcome::Failure);
        };
        let agent = match wanted {
            None => None,
            Some((_, name)) => match setup.agent(name)? {
                Some(agent) => Some(agent),
                None => return Ok(Outcome::Failure),
            },
        };
        let (project, library) = (&setup.loaded.project, &*setup.toolset.library);
        let Some(rules) = self.rules.all(&setup.config)? else { return Ok(Outcome::Usage) };
        let question = Question { tool: &self.tool, project, library, agent: agent.as_ref() };
        let permissions = |name: &FullName| match (&agent, library.resolve(&self.tool)) {
            (Some(agent), _) => {
                let (own, _) = agent.rules(project.file_of(agent).unwrap_or_default());
                Permissions::declared([name.clone()]).with_all(own).with_all(rules.clone())
            }
            (None, Ok(entry)) => base_permissions(&entry.name, &entry.value).with_all(rules.clone()),
            (None, Err(_)) => Permissions::default().with_all(rules.clone()),
        };
        let (out, is_well) = question.answer(permissions);
        print(&out)?;
        if let (Err(error), None) = (library.resolve(&self.tool), &agent) {
            let hint = error.hint().unwrap_or_else(|| "`patter tools` lists them".to_owned());
            diagnostics::error(&error.to_string(), Some(&hint))?;
        }
        Ok(if is_well { Outcome::Success } else { Outcome::Failure })
    }
}

/// What a name of a tool stands for, perhaps as an agent calls it.
pub(crate) struct Question<'a> {
    pub(crate) tool: &'a str,
    pub(crate) project: &'a Project,
    pub(crate) library: &'a Library<Tool>,
    pub(crate) agent: Option<&'a Agent>,
}

impl Question<'_> {
    /// Returns the answer, and whether all is well, with the permissions of what the name is bound to.
    pub(crate) fn answer(&self, permissions: impl FnOnce(&FullName) -> Permissions) -> (String, bool) {
        let mut out = String::new();
        let resolved = self.library.resolve(self.tool);
        match &resolved {
            Ok(entry) => head(&mut out, entry),
            Err(ResolveError::NotFound { .. }) if self.agent.is_none() => {}
            Err(error) => {
                let _ = writeln!(out, "{BAD}{error}{BAD:#}");
            }
        }
        self.candidates(&mut out, resolved.as_ref().ok().copied());
        let mut is_well = resolved.is_ok();
        let bound = match self.agent {
            Some(agent) => self.declaration(&mut out, agent, &mut is_well),
            None => resolved.as_ref().ok().map(|entry| entry.name.clone()),
        };
        if let Some(name) = bound {
            let title = if self.agent.is_some() { "permission" } else { "permission of `patter call`" };
            permission(&mut out, title, &permissions(&name), &name);
        }
        (out, is_well)
    }

    /// Tells whether the tool is what the agent declares; returns what it is bound to.
    fn declaration(&self, out: &mut String, agent: &Agent, is_well: &mut bool) -> Option<FullName> {
        let name = agent.name().unwrap_or_default();
        let own = |full: &str| full == self.tool || full.rsplit('/').next() == Some(self.tool);
        let mut bad = |out: &mut String, text: &str| {
            *is_well = false;
            let _ = writeln!(out, "  {BAD}{text}{BAD:#}");
        };
        let _ = writeln!(out, "{BOLD}declared by {name}{BOLD:#}");
        let bindings = bind(agent, self.project, self.library, Matching::Compatible);
        let Some(element) = agent.elements().find(|element| element.name().is_some_and(|name| own(&name))) else {
            bad(out, &format!("`{name}` does not declare it, so no call of it reaches the tool"));
            return None;
        };
        let declared = element.name().unwrap_or_default().into_owned();
        let place = self.project.place(0, element.span());
        let failure = |failures: &[BindFailure]| failures.iter().find(|one| one.name == declared).cloned();
        match bindings {
            Err(error) if failure(&error.failures).is_some() => {
                if let Some(failure) = failure(&error.failures) {
                    bad(out, &failure.to_string());
                    let _ = writeln!(out, "  {DIM}{place}{DIM:#}");
                }
                None
            }
            // Others of the agent may not be bound; this one is.
            Err(_) => self.library.resolve(&declared).ok().map(|entry| {
                let _ = writeln!(out, "  {GOOD}compatible{GOOD:#}  {DIM}{place}{DIM:#}");
                entry.name.clone()
            }),
            Ok(bindings) => match bindings.into_iter().find(|binding| binding.name == declared)?.target {
                Target::Agent { name } => {
                    let _ = writeln!(out, "  {GOOD}the agent `{name}`{GOOD:#}  {DIM}{place}{DIM:#}");
                    None
                }
                Target::Tool { name, declared } => {
                    let signature = readable(&declared.signature);
                    let _ = writeln!(out, "  {GOOD}compatible{GOOD:#}  {signature}  {DIM}{place}{DIM:#}");
                    Some(name)
                }
            },
        }
    }

    fn candidates(&self, out: &mut String, winner: Option<&Entry<Tool>>) {
        let candidates = self.library.candidates(self.tool);
        if candidates.is_empty() {
            return;
        }
        let width = candidates.iter().map(|entry| entry.name.as_str().len()).max().unwrap_or(0);
        let _ = writeln!(out, "{BOLD}candidates{BOLD:#}");
        for entry in candidates {
            let is_winner = winner.is_some_and(|winner| std::ptr::eq(winner, entry));
            let is_overridden = self.library.overrides().any(|one| std::ptr::eq(one.loser, entry));
            let why = match winner {
                _ if is_overridden => "overridden: a higher layer has the same full name",
                Some(winner) if is_winner && winner.name.as_str() == self.tool && self.tool.contains('/') => {
                    "taken: the full name"
                }
                Some(_) if is_winner => "taken: the highest layer that has the name",
                Some(winner) if entry.layer < winner.layer => "not taken: a higher layer has the name",
                Some(_) => "not taken: another full name is asked for",
                None => "not taken: the name may stand for another one as well",
            };
            let (mark, style) = if is_winner { (">", GOOD) } else { (" ", DIM) };
            let (name, layer, source) = (entry.name.as_str(), entry.layer.name(), &entry.value.source);
            let _ = writeln!(out, "{style}{mark} {name:<width$}  {layer:<8}  {why}{style:#}  {DIM}{source}{DIM:#}");
        }
    }
}

fn head(out: &mut String, entry: &Entry<Tool>) {
    let tool = &entry.value;
    let (name, layer, source) = (&entry.name, entry.layer, &tool.source);
    let _ = writeln!(out, "{BOLD}{name}{BOLD:#}  {DIM}{layer} layer, {source}{DIM:#}");
    for line in tool.definition.description.trim().lines() {
        let _ = writeln!(out, "{}", format!("  {line}").trim_end());
    }
    signature(out, &tool.definition.signature);
    let again = if tool.idempotent { ", may be repeated" } else { "" };
    let sealed = if tool.sealed { ", sealed" } else { "" };
    let (kind, effect, seconds) = (tool.kind.name(), tool.effect.name(), tool.timeout.as_secs_f64());
    let _ = writeln!(out, "  {kind}, {effect}{again}{sealed}, ends within {seconds} s");
}

/// Writes a line for each parameter and one for the result.
fn signature(out: &mut String, signature: &Signature) {
    let width =
        signature.parameters.iter().map(|parameter| parameter.name.len()).max().unwrap_or(0).max("returns".len());
    for Field { name, ty, presence } in &signature.parameters {
        let presence = match presence {
            Presence::Required => String::new(),
            Presence::Optional => ", may be left out".to_owned(),
            Presence::Default(default) => format!(", {default} if left out"),
        };
        let description = ty.facets.description.as_deref().unwrap_or_default();
        let _ = writeln!(out, "{}", format!("    {name:<width$}  {ty}{presence}  {description}").trim_end());
    }
    let _ = writeln!(out, "    {:<width$}  {}", "returns", returned(&signature.returns));
}

/// Writes the type of a result, with the names of its parts.
fn returned(ty: &Type) -> String {
    match &ty.shape {
        Shape::Object(fields) => {
            let fields: Vec<_> = fields.iter().map(|field| format!("{}: {}", field.name, field.ty)).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Shape::Array(item) => format!("[{}]", returned(item)),
        _ => ty.to_string(),
    }
}

fn permission(out: &mut String, title: &str, permissions: &Permissions, tool: &FullName) {
    let _ = writeln!(out, "{BOLD}{title}{BOLD:#}");
    let verdict = permissions.decide(tool, &serde_json::Map::new());
    let conditional: Vec<_> = permissions.naming(tool).filter(|rule| !rule.conditions.is_empty()).collect();
    for rule in &conditional {
        let _ = writeln!(out, "  {rule}  {DIM}{}{DIM:#}", rule.origin);
    }
    let otherwise = if conditional.is_empty() { "" } else { "otherwise " };
    let because = match verdict.because {
        Because::Rule(rule) => format!("`{rule}` in {}", rule.origin),
        other => other.to_string(),
    };
    let _ = writeln!(out, "  {otherwise}{}: {because}", verdict.decision.name());
}
