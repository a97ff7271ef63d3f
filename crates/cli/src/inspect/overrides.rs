//! Tools that take the place of others with the same full name in a lower layer.

use crate::ui;
use patter::compile::CompiledAgent;
use patter::declare::Agent;
use patter::library::{Layer, Library};
use patter::name::FullName;
use patter::run::CallTarget;
use patter::tool::Tool;
use serde_json::{Value as Json, json};
use std::collections::HashSet;
use std::io;

/// The overrides that a command makes use of.
#[derive(Default)]
pub(crate) struct UsedOverrides {
    overrides: Vec<UsedOverride>,
}

struct UsedOverride {
    tool: FullName,
    layer: Layer,
    source: String,
    overridden_layer: Layer,
    overridden_source: String,
}

impl UsedOverrides {
    /// Returns the overrides of the tools that agents may call.
    pub(crate) fn of_agents(agents: &[CompiledAgent], library: &Library<Tool>) -> Self {
        let callables = agents.iter().flat_map(|agent| &agent.spec().tools);
        let tools = callables.filter_map(|callable| match &callable.target {
            CallTarget::Tool { name, .. } => Some(name),
            CallTarget::Agent { .. } | CallTarget::Client | CallTarget::Person => None,
        });
        Self::of_tools(tools, library)
    }

    /// Returns the overrides of tools, each once.
    pub(crate) fn of_tools<'t>(tools: impl IntoIterator<Item = &'t FullName>, library: &Library<Tool>) -> Self {
        let used: HashSet<_> = tools.into_iter().collect();
        let overrides = library.overrides().filter(|one| used.contains(&one.winner.name)).map(|one| UsedOverride {
            tool: one.winner.name.clone(),
            layer: one.winner.layer,
            source: one.winner.value.source.to_string(),
            overridden_layer: one.loser.layer,
            overridden_source: one.loser.value.source.to_string(),
        });
        Self { overrides: overrides.collect() }
    }

    /// Prints a line for each override on stderr.
    pub(crate) fn print(&self) -> io::Result<()> {
        for UsedOverride { tool, layer, source, overridden_layer, overridden_source } in &self.overrides {
            ui::status(&format!(
                "note: `{tool}` of the {layer} layer ({source}) overrides that of the {overridden_layer} layer ({overridden_source})"
            ))?;
        }
        Ok(())
    }

    /// Adds the overrides to a JSON document, if there are any.
    pub(crate) fn add_to(&self, document: &mut Json) {
        if let (Json::Object(document), false) = (document, self.overrides.is_empty()) {
            document.insert("overrides".to_owned(), self.overrides.iter().map(UsedOverride::to_json).collect());
        }
    }

    /// Iterates over the overrides as events of a run.
    pub(crate) fn events(&self) -> impl Iterator<Item = Json> {
        self.overrides.iter().map(|one| {
            let mut event = json!({"event": "tool_overridden"});
            if let (Json::Object(event), Json::Object(parts)) = (&mut event, one.to_json()) {
                event.extend(parts);
            }
            event
        })
    }
}

impl UsedOverride {
    fn to_json(&self) -> Json {
        json!({
            "tool": self.tool.as_str(),
            "layer": self.layer.name(),
            "source": self.source,
            "overridden_layer": self.overridden_layer.name(),
            "overridden_source": self.overridden_source,
        })
    }
}

/// Returns agents and all those that they call, each once. `compile` returns a called agent, if it can be compiled.
pub(crate) fn with_called(
    mut waiting: Vec<CompiledAgent>,
    compile: impl Fn(&Agent) -> Option<CompiledAgent>,
) -> Vec<CompiledAgent> {
    let mut seen: HashSet<_> = waiting.iter().map(|compiled| compiled.declaration().path()).collect();
    let mut found = Vec::new();
    waiting.reverse();
    while let Some(compiled) = waiting.pop() {
        let called = compiled.delegates().filter(|agent| seen.insert(agent.path()));
        waiting.extend(called.filter_map(&compile));
        found.push(compiled);
    }
    found
}
