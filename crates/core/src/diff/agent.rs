//! Changes to agents.

use super::tool::is_lowered;
use super::{Differ, Judgement, Subject};
use crate::declare::project::Project;
use crate::declare::scope::Scope;
use crate::declare::{Agent, DeclarationKind, Element, ToolSpec};
use crate::run::Limits;
use crate::types::compatibility::accepts_earlier;
use indexmap::IndexMap;
use patter_gram::{Pattern, PatternKind, Span, Value};
use std::borrow::Cow;

/// The properties of an agent that are not compared by value alone.
const COMPARED: [&str; 7] = ["description", "instruction", "takes", "returns", "allow", "ask", "deny"];

/// What an element of an agent refers to.
enum Meaning {
    Agent(Box<Agent>),
    Tool(Box<ToolSpec>),
    /// A tool of the library.
    Library,
}

/// What an element refers to, and where it is.
struct Resolved {
    meaning: Meaning,
    /// Where the declaration is, if it is in another place than the element.
    elsewhere: Option<String>,
    span: Span,
}

impl Differ<'_> {
    pub(super) fn compare_agents(&mut self, subject: &Subject, old: &Agent, new: &Agent) {
        // Agents that call it read its description.
        self.compare_texts(subject, "description", Judgement::Compatible, old.description(), new.description());
        self.compare_texts(subject, "instruction", Judgement::Compatible, old.instruction(), new.instruction());
        self.compare_permissions(subject, old, new);
        self.compare_settings(subject, old.properties(), new.properties(), &COMPARED, judge_setting);
        self.compare_answers(subject, old, new);
        self.compare_takes(subject, old, new);
        self.compare_steps(subject, old, new);
        let before = elements(self.old, old);
        let after = elements(self.new, new);
        for (name, element) in &after {
            match before.get(name) {
                Some(earlier) => self.compare_elements(subject, name, (old, earlier), (new, element)),
                None => self.push(subject, Judgement::Breaking, format!("can now call `{name}`")),
            }
        }
        for name in before.keys().filter(|name| !after.contains_key(*name)) {
            self.push(subject, Judgement::Breaking, format!("can no longer call `{name}`"));
        }
    }

    /// Compares the types of the answers, which callers rely on.
    fn compare_answers(&mut self, subject: &Subject, old: &Agent, new: &Agent) {
        let text = |agent: &Agent| agent.property("returns").and_then(Value::read);
        let (before, after) = match (text(old), text(new)) {
            (None, None) => return,
            (None, Some(after)) => {
                return self.push(subject, Judgement::Compatible, format!("`returns` set to {after}"));
            }
            (Some(_), None) => return self.push(subject, Judgement::Breaking, "`returns` removed"),
            (Some(before), Some(after)) => (before, after),
        };
        match (old.returns(self.old.records()), new.returns(self.new.records())) {
            (Some(Ok(old)), Some(Ok(new))) => self.compare_results(subject, &old, &new),
            _ if before == after => {}
            _ => self.push(subject, Judgement::Breaking, format!("`returns` changed from {before} to {after}")),
        }
    }

    /// Compares the steps of two workflows. What changes may happen that could not happen before.
    fn compare_steps(&mut self, subject: &Subject, old: &Agent, new: &Agent) {
        match (old.is_workflow(), new.is_workflow()) {
            (false, false) => {}
            (true, false) => self.push(subject, Judgement::Breaking, "it is no longer a workflow"),
            (false, true) => self.push(subject, Judgement::Breaking, "it is now a workflow"),
            (true, true) => {
                let steps = |agent: &Agent| {
                    let paths = agent.pattern().into_iter().flat_map(Pattern::elements);
                    let paths = paths.filter(|element| element.kind() != PatternKind::Bracket);
                    paths
                        .map(|element| patter_gram::format(element.syntax().text()).unwrap_or_default())
                        .collect::<Vec<_>>()
                };
                if steps(old) != steps(new) {
                    self.push(subject, Judgement::Breaking, "the steps changed");
                }
            }
        }
    }

    /// Compares the types of the input.
    fn compare_takes(&mut self, subject: &Subject, old: &Agent, new: &Agent) {
        let text = |agent: &Agent| Some(agent.property("takes")?.read_text()?.into_owned());
        match (old.takes(self.old.records()), new.takes(self.new.records())) {
            (Some(Ok(before)), Some(Ok(after)))
                if accepts_earlier((&before, self.old.records()), (&after, self.new.records())) =>
            {
                if text(old) != text(new) {
                    self.push(subject, Judgement::Compatible, "`takes` changed, and accepts what it did before");
                }
            }
            (None, None) => {}
            _ => self.push(subject, Judgement::Breaking, "`takes` changed"),
        }
    }

    /// Compares what an element refers to. What both versions declare at the top level is compared there.
    fn compare_elements(&mut self, subject: &Subject, name: &str, old: (&Agent, &Called), new: (&Agent, &Called)) {
        let before = resolve(self.old, old.0, old.1);
        let after = resolve(self.new, new.0, new.1);
        let is_same_place = before.elsewhere.is_some() && before.elsewhere == after.elsewhere;
        let inner = |noun: &str| subject.inner(noun, name, Some(before.span), Some(after.span));
        match (&before.meaning, &after.meaning) {
            (Meaning::Agent(_), Meaning::Agent(_)) | (Meaning::Tool(_), Meaning::Tool(_)) if is_same_place => {}
            (Meaning::Agent(old), Meaning::Agent(new)) => self.compare_agents(&inner("agent"), old, new),
            (Meaning::Tool(old), Meaning::Tool(new)) => self.compare_tools(&inner("tool"), old, new),
            (Meaning::Library, Meaning::Library) => {}
            // The declaration and the library describe the same tool.
            (Meaning::Library, Meaning::Tool(_)) => {
                self.push(subject, Judgement::Compatible, format!("`{name}` is now declared"));
            }
            (Meaning::Tool(_), Meaning::Library) => {
                self.push(subject, Judgement::Compatible, format!("`{name}` is no longer declared"));
            }
            (Meaning::Agent(_), Meaning::Tool(_) | Meaning::Library) => {
                self.push(subject, Judgement::Breaking, format!("`{name}` is now a tool instead of an agent"));
            }
            (Meaning::Tool(_) | Meaning::Library, Meaning::Agent(_)) => {
                self.push(subject, Judgement::Breaking, format!("`{name}` is now an agent instead of a tool"));
            }
        }
    }

    /// Compares a text. A difference in white space does not change the meaning.
    pub(super) fn compare_texts(
        &mut self,
        subject: &Subject,
        key: &str,
        judgement: Judgement,
        old: Option<Cow<'_, str>>,
        new: Option<Cow<'_, str>>,
    ) {
        let old = old.unwrap_or_default();
        let new = new.unwrap_or_default();
        if old == new {
            return;
        }
        let is_same = old.split_whitespace().eq(new.split_whitespace());
        let judgement = if is_same { Judgement::Cosmetic } else { judgement };
        let description = match (is_same, old.is_empty(), new.is_empty()) {
            (true, _, _) => format!("only the white space of `{key}` changed"),
            (_, true, _) => format!("`{key}` added"),
            (_, _, true) => format!("`{key}` removed"),
            _ => format!("`{key}` changed"),
        };
        self.push_text(subject, judgement, &description, &old, &new);
    }
}

/// Judges a change to a property of an agent.
fn judge_setting(key: &str, old: Option<&Value>, new: Option<&Value>) -> Judgement {
    let turns = Value::from(i64::from(Limits::default().max_model_calls));
    let is_breaking = match key {
        "maxTurns" => is_lowered(old.or(Some(&turns)), new.or(Some(&turns))),
        "maxToolCalls" | "maxModelCalls" | "maxTokens" | "maxTotalTokens" | "maxCost" | "timeout" => {
            is_lowered(old, new)
        }
        _ => false,
    };
    if is_breaking { Judgement::Breaking } else { Judgement::Compatible }
}

fn resolve(project: &Project, agent: &Agent, called: &Called) -> Resolved {
    let elsewhere = called.toolkit.as_ref().map(|toolkit| format!("toolkit {toolkit}"));
    let span = called.span;
    let here = |meaning| Resolved { meaning, elsewhere, span };
    let name = match &called.element {
        Element::Tool(tool) => return here(Meaning::Tool(Box::new(tool.clone()))),
        Element::Agent(agent) => return here(Meaning::Agent(Box::new(project.complete(agent.clone())))),
        Element::Reference { name, .. } => name,
    };
    let scope = Scope::new(agent);
    let found = project.resolve(&scope, name);
    // The tools of toolboxes are part of the library.
    let Some(found) = found.first().filter(|found| found.kind != DeclarationKind::Implementation) else {
        return here(Meaning::Library);
    };
    let tool = ToolSpec::cast(found.pattern).map(|tool| (format!("tool {name}"), Meaning::Tool(Box::new(tool))));
    let called = project.agent(found.pattern).map(|agent| (agent.path().to_string(), Meaning::Agent(Box::new(agent))));
    match called.or(tool) {
        Some((path, meaning)) => Resolved { meaning, elsewhere: Some(path), span },
        None => here(Meaning::Library),
    }
}

/// Something that an agent calls.
struct Called {
    element: Element,
    /// The element of the agent, which may refer to a toolkit.
    span: Span,
    toolkit: Option<String>,
}

/// Returns what an agent calls, by name.
fn elements(project: &Project, agent: &Agent) -> IndexMap<String, Called> {
    let members = project.members(agent).into_iter().filter_map(|member| {
        let element = Element::cast(member.pattern)?;
        let name = element.name()?.into_owned();
        let toolkit = member.toolkit_name().map(Cow::into_owned);
        let span = agent.pattern().map_or(member.element().span(), |pattern| member.span(pattern));
        Some((name, Called { element, span, toolkit }))
    });
    members.collect()
}
