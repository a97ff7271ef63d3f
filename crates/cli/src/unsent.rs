//! Telling what agents ask for and their providers have no place for, before a token is spent.

use crate::diagnostics;
use patter::agent::CompiledAgent;
use patter::model::Access;
use patter::project::{Environment, ModelsConfig};
use patter::run::Target;
use std::collections::HashSet;
use std::io;

/// Warns of what is not sent, for agents and for those that they call, each once. `ready` makes agents ready by their
/// names; what cannot be made ready is told elsewhere.
pub(crate) fn warn(
    mut waiting: Vec<CompiledAgent>,
    ready: impl Fn(&str) -> Option<CompiledAgent>,
    (environment, config): (&Environment, &ModelsConfig),
) -> io::Result<()> {
    let mut seen: HashSet<_> = waiting.iter().map(|compiled| compiled.name().to_owned()).collect();
    waiting.reverse();
    while let Some(compiled) = waiting.pop() {
        let provider = compiled.model().provider;
        if let Ok(Some(access)) = Access::resolve(provider, environment, config) {
            for property in compiled.unsent(access.wire) {
                let (agent, provider, api) = (compiled.name(), provider.name(), access.wire.name());
                diagnostics::warning(&format!(
                    "`{property}` of the agent `{agent}` is not sent to {provider}: its API `{api}` has no place for it"
                ))?;
            }
        }
        let called = compiled.spec().tools.iter().filter_map(|callable| match &callable.target {
            Target::Agent { name } => Some(name.as_str()),
            Target::Tool { .. } => None,
        });
        waiting.extend(called.filter(|name| seen.insert((*name).to_owned())).filter_map(&ready));
    }
    Ok(())
}
