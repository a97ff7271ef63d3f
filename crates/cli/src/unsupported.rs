//! Warnings about properties of agents that the API of their provider does not support, before a token is spent.

use crate::ui;
use patter::compile::CompiledAgent;
use patter::model::ProviderAccess;
use patter::project::{Environment, ModelsConfig};
use std::io;

/// Warns about agents.
pub(crate) fn warn(agents: &[CompiledAgent], environment: &Environment, config: &ModelsConfig) -> io::Result<()> {
    for compiled in agents.iter().flat_map(|agent| std::iter::once(agent).chain(agent.fallbacks())) {
        let provider = compiled.model().provider;
        let Ok(Some(access)) = ProviderAccess::resolve(provider, environment, config) else { continue };
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
    Ok(())
}
