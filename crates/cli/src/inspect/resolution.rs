//! What the name of a tool refers to, and whether it may be called.

use super::signature::{format_return_type, format_signature, parameter_rows};
use crate::ui::style::{BAD, BOLD, DIM, GOOD};
use patter::declare::{Agent, Member};
use patter::library::{BindFailure, Binding, Entry, Library, MatchMode, ResolveError, Target, bind_each};
use patter::name::FullName;
use patter::permission::{Decision, DecisionReason, Permissions, Rule};
use patter::project::Project;
use patter::tool::{Effect, Hook, Tool};
use patter::types::signature::Signature;
use serde_json::{Value as Json, json};
use std::fmt::Write;

/// The name of a tool, perhaps as an agent calls it.
pub(crate) struct Resolution<'a> {
    pub(crate) tool: &'a str,
    pub(crate) project: &'a Project,
    pub(crate) library: &'a Library<Tool>,
    pub(crate) agent: Option<&'a Agent>,
}

/// How a tool that an agent declares is bound.
struct Declaration {
    /// The name that permissions are about: that of the tool, or the one by which an agent is called.
    bound: Option<FullName>,
    /// Whether it is bound to another agent.
    is_agent: bool,
    /// The result, in words.
    status: String,
    /// The declared signature, if it is known.
    signature: Option<String>,
    place: Option<String>,
    is_valid: bool,
}

/// Returns the permissions of a tool that a person calls by name: calls that change something need an approval.
pub(crate) fn call_permissions(name: &FullName, tool: &Tool) -> Permissions {
    let decision = if tool.effect == Effect::Writes { Decision::Ask } else { Decision::Allow };
    let reason = match tool.effect {
        Effect::Pure => "only computes",
        Effect::Reads => "only reads",
        Effect::Network => "uses the network",
        Effect::Writes => "changes something",
    };
    match Rule::with_decision(decision, name.as_str(), format!("`patter call`, as it {reason}")) {
        Ok(rule) => Permissions::default().with(rule),
        Err(_) => Permissions::default(),
    }
}

impl Resolution<'_> {
    /// Describes the resolution for people, and returns whether the name refers to a tool that can be called. The
    /// permissions are those of the tool that the name is bound to.
    pub(crate) fn describe(&self, permissions: impl FnOnce(&FullName) -> Permissions) -> (String, bool) {
        let mut out = String::new();
        let declaration = self.agent.map(|agent| self.declaration(agent));
        let is_agent = declaration.as_ref().is_some_and(|declaration| declaration.is_agent);
        let resolved = self.library.resolve(self.tool);
        match &resolved {
            _ if is_agent => {}
            Ok(entry) => describe_tool(&mut out, entry),
            Err(ResolveError::NotFound { .. }) if self.agent.is_none() => {}
            Err(error) => {
                let _ = writeln!(out, "{BAD}{error}{BAD:#}");
            }
        }
        self.describe_candidates(&mut out, resolved.as_ref().ok().copied(), is_agent);
        if let (Some(agent), Some(declaration)) = (self.agent, &declaration) {
            let _ = writeln!(out, "{BOLD}declared by {}{BOLD:#}", agent.name().unwrap_or_default());
            describe_declaration(&mut out, declaration);
        }
        if let Some(name) = self.bound(declaration.as_ref()) {
            let title = if self.agent.is_some() { "permission" } else { "permission of `patter call`" };
            describe_permission(&mut out, title, &permissions(&name), &name);
            describe_hooks(&mut out, self.hooks(&name));
        }
        let is_valid = (resolved.is_ok() || is_agent) && declaration.is_none_or(|declaration| declaration.is_valid);
        (out, is_valid)
    }

    /// Returns the resolution as JSON, and whether the name refers to a tool that can be called.
    pub(crate) fn to_json(&self, permissions: impl FnOnce(&FullName) -> Permissions) -> (Json, bool) {
        let declaration = self.agent.map(|agent| self.declaration(agent));
        let is_agent = declaration.as_ref().is_some_and(|declaration| declaration.is_agent);
        let resolved = self.library.resolve(self.tool).ok().filter(|_| !is_agent);
        let candidates = self.library.candidates(self.tool);
        let candidates: Vec<_> = candidates
            .into_iter()
            .map(|entry| {
                let is_chosen = resolved.is_some_and(|chosen| std::ptr::eq(chosen, entry));
                json!({
                    "name": entry.name.as_str(),
                    "layer": entry.layer.name(),
                    "source": &*entry.value.source,
                    "chosen": is_chosen,
                    "reason": self.library.reason(self.tool, entry, resolved, is_agent),
                })
            })
            .collect();
        let permission = self.bound(declaration.as_ref()).map(|name| {
            let permissions = permissions(&name);
            let verdict = permissions.decide(&name, &serde_json::Map::new());
            let conditional = permissions.rules_for(&name).filter(|rule| !rule.conditions.is_empty());
            let conditional: Vec<_> = conditional.map(ToString::to_string).collect();
            json!({
                "tool": name.as_str(),
                "decision": verdict.decision.name(),
                "because": because(&verdict.reason),
                "conditional": conditional,
            })
        });
        let hooks = self.bound(declaration.as_ref()).map(|name| {
            let hooks = self.hooks(&name).iter();
            let shown =
                hooks.map(|hook| json!({"stage": hook.stage.name(), "calls": calls(hook), "name": &*hook.name}));
            shown.collect::<Vec<_>>()
        });
        let is_valid =
            (resolved.is_some() || is_agent) && declaration.as_ref().is_none_or(|declaration| declaration.is_valid);
        let document = json!({
            "version": 1,
            "name": self.tool,
            "tool": resolved.map(|entry| entry.name.as_str()),
            "sandbox": resolved.and_then(|entry| Some(entry.value.sandbox.as_ref()?.to_string())),
            "candidates": candidates,
            "declaration": declaration.map(|declaration| json!({
                "agent": self.agent.and_then(Agent::name),
                "valid": declaration.is_valid,
                "status": declaration.status,
                "place": declaration.place,
            })),
            "permission": permission,
            "hooks": hooks,
        });
        (document, is_valid)
    }

    /// Returns the tool that a call would reach.
    fn bound(&self, declaration: Option<&Declaration>) -> Option<FullName> {
        match declaration {
            Some(declaration) => declaration.bound.clone(),
            None => self.library.resolve(self.tool).ok().map(|entry| entry.name.clone()),
        }
    }

    /// Returns the hooks of a tool.
    fn hooks(&self, name: &FullName) -> &[Hook] {
        self.library.resolve(name.as_str()).map(|entry| entry.value.hooks()).unwrap_or_default()
    }

    /// Checks the tool against what the agent declares.
    fn declaration(&self, agent: &Agent) -> Declaration {
        let invalid = |status: String, place: Option<String>| Declaration {
            bound: None,
            is_agent: false,
            status,
            signature: None,
            place,
            is_valid: false,
        };
        let bound = bind_each(agent, self.project, self.library, MatchMode::Compatible);
        let Some((member, bound)) =
            self.project.members(agent).into_iter().zip(bound).find(|(member, bound)| self.is_declared(member, bound))
        else {
            let agent = agent.name().unwrap_or_default();
            return invalid(format!("`{agent}` does not declare it, so it cannot call the tool"), None);
        };
        let file = self.project.agent_file(agent).unwrap_or_default();
        let span = agent.pattern().map_or(member.element().span(), |pattern| member.span(pattern));
        let place = Some(self.project.location(file, span));
        let valid = |status: String, bound: Option<FullName>, signature: Option<String>| Declaration {
            bound,
            is_agent: false,
            status,
            signature,
            place: place.clone(),
            is_valid: true,
        };
        let toolkit = member.toolkit_name().map(|name| format!(", from the toolkit `{name}`"));
        let base = member.base_name().map(|name| format!(", inherited from `{name}`"));
        let origin: String = [toolkit, base].into_iter().flatten().collect();
        match bound.map(|binding| binding.target) {
            Err(failure) => invalid(failure.to_string(), place.clone()),
            Ok(Target::Agent { agent }) => {
                let called = member.pattern.name().and_then(|name| FullName::parse(&name).ok());
                Declaration { is_agent: true, ..valid(format!("the agent `{}`", agent.path()), called, None) }
            }
            Ok(Target::Tool { name, declared }) => {
                valid(format!("compatible{origin}"), Some(name), Some(format_signature(&declared.signature)))
            }
        }
    }

    /// Returns whether an element of an agent declares the tool: under this name, or under another name of the same tool.
    fn is_declared(&self, member: &Member<'_>, bound: &Result<Binding, BindFailure>) -> bool {
        let name = member.pattern.name().unwrap_or_default();
        let full = match bound {
            Ok(Binding { target: Target::Tool { name, .. }, .. }) => Some(name.as_str()),
            Ok(Binding { target: Target::Agent { .. }, .. }) => None,
            Err(_) => self.library.resolve(&name).ok().map(|entry| entry.name.as_str()),
        };
        let is_same = |name: &str| name == self.tool || name.rsplit('/').next() == Some(self.tool);
        is_same(&name) || full.is_some_and(is_same)
    }

    fn describe_candidates(&self, out: &mut String, chosen: Option<&Entry<Tool>>, is_agent: bool) {
        let chosen = chosen.filter(|_| !is_agent);
        let candidates = self.library.candidates(self.tool);
        if candidates.is_empty() {
            return;
        }
        let width = candidates.iter().map(|entry| entry.name.as_str().len()).max().unwrap_or(0);
        let _ = writeln!(out, "{BOLD}candidates{BOLD:#}");
        for entry in candidates {
            let is_chosen = chosen.is_some_and(|chosen| std::ptr::eq(chosen, entry));
            let (mark, style) = if is_chosen { (">", GOOD) } else { (" ", DIM) };
            let name = entry.name.as_str();
            let layer = entry.layer.name();
            let reason = self.library.reason(self.tool, entry, chosen, is_agent);
            let source = &entry.value.source;
            let _ = writeln!(out, "{style}{mark} {name:<width$}  {layer:<8}  {reason}{style:#}  {DIM}{source}{DIM:#}");
        }
    }
}

fn describe_tool(out: &mut String, entry: &Entry<Tool>) {
    let tool = &entry.value;
    let _ = writeln!(out, "{BOLD}{}{BOLD:#}  {DIM}{} layer, {}{DIM:#}", entry.name, entry.layer, tool.source);
    for line in tool.definition.description.trim().lines() {
        let _ = writeln!(out, "{}", format!("  {line}").trim_end());
    }
    describe_signature(out, &tool.definition.signature);
    let idempotent = if tool.idempotent { ", idempotent" } else { "" };
    let sealed = if tool.sealed { ", sealed" } else { "" };
    let seconds = tool.timeout.as_secs_f64();
    let _ = writeln!(out, "  {}, {}{idempotent}{sealed}, timeout {seconds} s", tool.kind.name(), tool.effect.name());
    if let Some(sandbox) = &tool.sandbox {
        let _ = writeln!(out, "  sandbox: {sandbox}");
    }
}

/// Writes a line for each parameter and one for the result.
fn describe_signature(out: &mut String, signature: &Signature) {
    const RETURNS: &str = "returns";
    let rows = parameter_rows(signature);
    let width = rows.iter().map(|(name, ..)| name.len()).max().unwrap_or(0).max(RETURNS.len());
    for (name, ty, description) in &rows {
        let _ = writeln!(out, "{}", format!("    {name:<width$}  {ty}  {description}").trim_end());
    }
    let _ = writeln!(out, "    {RETURNS:<width$}  {}", format_return_type(&signature.returns));
}

fn describe_declaration(out: &mut String, declaration: &Declaration) {
    let style = if declaration.is_valid { GOOD } else { BAD };
    let status = &declaration.status;
    let signature = declaration.signature.as_ref().map_or_else(String::new, |signature| format!("  {signature}"));
    let place = declaration.place.as_ref().map_or_else(String::new, |place| format!("{DIM}{place}{DIM:#}"));
    let _ = match (declaration.is_valid, place.is_empty()) {
        (true, _) => writeln!(out, "  {style}{status}{style:#}{signature}  {place}"),
        (false, true) => writeln!(out, "  {style}{status}{style:#}"),
        (false, false) => writeln!(out, "  {style}{status}{style:#}\n  {place}"),
    };
}

fn describe_permission(out: &mut String, title: &str, permissions: &Permissions, tool: &FullName) {
    let _ = writeln!(out, "{BOLD}{title}{BOLD:#}");
    let verdict = permissions.decide(tool, &serde_json::Map::new());
    let conditional: Vec<_> = permissions.rules_for(tool).filter(|rule| !rule.conditions.is_empty()).collect();
    for rule in &conditional {
        let _ = writeln!(out, "  {rule}  {DIM}{}{DIM:#}", rule.origin);
    }
    let otherwise = if conditional.is_empty() { "" } else { "otherwise " };
    let _ = writeln!(out, "  {otherwise}{}: {}", verdict.decision.name(), because(&verdict.reason));
}

fn describe_hooks(out: &mut String, hooks: &[Hook]) {
    if hooks.is_empty() {
        return;
    }
    let _ = writeln!(out, "{BOLD}hooks{BOLD:#}");
    for hook in hooks {
        let _ = writeln!(out, "  {:<6}  {}  {DIM}for {}{DIM:#}", hook.stage.name(), hook.name, calls(hook));
    }
}

/// Returns the calls that a hook runs for, as written in `patter.toml`.
fn calls(hook: &Hook) -> String {
    let rule = hook.calls().to_string();
    rule.strip_prefix("ask ").map(str::to_owned).unwrap_or(rule)
}

fn because(because: &DecisionReason<'_>) -> String {
    match because {
        DecisionReason::Rule(rule) => format!("`{rule}` in {}", rule.origin),
        other => other.to_string(),
    }
}
