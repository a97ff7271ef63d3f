//! Warnings about properties of agents that the API of their provider does not support, before a token is spent.

use crate::ui;
use patter::compile::CompiledAgent;
use patter::declare::Agent;
use patter::model::ProviderAccess;
use patter::project::{Environment, ModelsConfig};
use std::collections::HashSet;
use std::io;

/// Warns about agents and those that they call, each once. `compile` returns a called agent, if it can be compiled.
pub(crate) fn warn(
    mut waiting: Vec<CompiledAgent>,
    compile: impl Fn(&Agent) -> Option<CompiledAgent>,
    environment: &Environment,
    config: &ModelsConfig,
) -> io::Result<()> {
    let mut seen: HashSet<_> = waiting.iter().map(|compiled| compiled.declaration().path()).collect();
    waiting.reverse();
    while let Some(compiled) = waiting.pop() {
        let provider = compiled.model().provider;
        if let Ok(Some(access)) = ProviderAccess::resolve(provider, environment, config) {
            let agent = compiled.name();
            let api = access.wire.name();
            for property in compiled.unsupported_properties(access.wire) {
                ui::warning(&format!(
                    "`{property}` of the agent `{agent}` is not sent to {}: its API `{api}` does not support it",
                    provider.name()
                ))?;
            }
            for (property, text) in compiled.adjusted_properties(access.wire) {
                ui::warning(&format!("`{property}` of the agent `{agent}` {text}"))?;
            }
        }
        let called = compiled.delegates().filter(|agent| seen.insert(agent.path()));
        waiting.extend(called.filter_map(&compile));
    }
    Ok(())
}
