//! The vertices of a project, and what is known about each of them.

use crate::declare::project::Project;
use crate::declare::{Agent, DeclarationKind};
use crate::library::{Entry, LibraryTool, Sealing};
use crate::permission::{Decision, Rule};
use crate::query::property_graph::{FilePlace, Vertex};
use crate::types::signature::value_to_json;
use patter_gram::{Syntax, Value};
use serde_json::{Value as Json, json};
use std::collections::HashMap;

pub(super) fn tool_vertex<T: LibraryTool>(entry: &Entry<T>) -> Vertex {
    let tool = &entry.value;
    let facts = tool.facts();
    let definition = tool.definition();
    let mut vertex = Vertex::new("Tool", format!("tool:{}", entry.name), entry.name.as_str());
    let description = definition.description.trim();
    vertex.set("description", Some(description).filter(|text| !text.is_empty()));
    vertex.set("effect", Some(facts.effect).filter(|effect| !effect.is_empty()));
    vertex.set("kind", tool.kind_name());
    vertex.set("layer", entry.layer.name());
    vertex.set("toolbox", entry.name.namespace());
    vertex.set("status", "known");
    vertex.set("idempotent", tool.is_idempotent());
    vertex.set("sealed", entry.sealing == Sealing::Sealed);
    vertex.set("host", facts.host);
    vertex.set("command", if facts.command.is_empty() { Json::Null } else { json!(facts.command) });
    let parameters: Vec<_> = definition.signature.parameters.iter().map(|parameter| &parameter.name).collect();
    vertex.set("parameters", json!(parameters));
    vertex.set("signature", definition.signature.to_string());
    vertex.set("source", tool.source());
    vertex.source = Some(tool.source().to_owned());
    vertex
}

pub(super) fn rule_vertex(rule: &Rule, id: String) -> Vertex {
    let vertex = Vertex::new("Rule", id, rule.to_string()).with("decision", rule.decision.name());
    let mut vertex = vertex.with("conditional", !rule.conditions.is_empty()).with("origin", &*rule.origin);
    vertex.source = Some(rule.origin.to_string());
    vertex
}

/// Adds the properties of an agent as they are declared. Durations are numbers of seconds.
pub(super) fn add_properties(vertex: &mut Vertex, agent: &Agent) {
    for property in agent.properties() {
        let key = property.key();
        if key == "name" || [Decision::Allow, Decision::Ask, Decision::Deny].iter().any(|it| it.name() == key) {
            continue;
        }
        let text = property.value().and_then(Syntax::read_text).map(|text| Json::String(text.into_owned()));
        let value = || match property.value().and_then(Value::read)? {
            Value::Symbol(word) => Some(Json::String(word)),
            value => value_to_json(&value),
        };
        let value = match key.as_ref() {
            "timeout" => agent.declared_limits().timeout.map(|timeout| json!(timeout.as_secs_f64())),
            "model" => agent.model().and_then(Result::ok).map(|model| Json::String(model.to_string())).or(text),
            _ => text.or_else(value),
        };
        vertex.set(&key, value);
    }
}

/// Returns where the tools of the toolboxes of a project are declared, by full name.
pub(super) fn tool_places(project: &Project) -> HashMap<String, FilePlace> {
    let mut places = HashMap::new();
    for declaration in project.declarations() {
        let Some(pattern) = project.pattern(declaration) else { continue };
        match declaration.kind {
            DeclarationKind::Toolbox => {
                for tool in pattern.elements() {
                    let name = format!("{}/{}", declaration.name, tool.name().unwrap_or_default());
                    places.insert(name, FilePlace { file: declaration.file, span: tool.span() });
                }
            }
            DeclarationKind::Implementation => {
                places.insert(declaration.name.clone(), FilePlace { file: declaration.file, span: declaration.span });
            }
            _ => {}
        }
    }
    places
}
