//! Telling what agents ask for and their providers have no place for, before a token is spent.

use crate::diagnostics;
use patter::agent::Compiled;
use patter::declare::Agent;
use patter::library::Library;
use patter::model::Access;
use patter::name::ModelRef;
use patter::project::{Environment, ModelsConfig, Project};
use patter::run::Target;
use patter::tool::Tool;
use std::collections::HashSet;
use std::io;

/// Warns of what is not sent, for agents and for those that they call, each once. What cannot be made ready to run is
/// told elsewhere.
pub(crate) fn warn(
    agents: Vec<Agent>,
    (project, library): (&Project, &Library<Tool>),
    model: Option<&ModelRef>,
    (environment, config): (&Environment, &ModelsConfig),
) -> io::Result<()> {
    let (mut waiting, mut seen) = (agents, HashSet::new());
    waiting.reverse();
    while let Some(agent) = waiting.pop() {
        let Ok(compiled) = Compiled::new(&agent, project, library, model.cloned()) else { continue };
        if !seen.insert(compiled.name().to_owned()) {
            continue;
        }
        let provider = compiled.model().provider;
        if let Ok(Some(access)) = Access::of(provider, environment, config) {
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
        let called: HashSet<_> = called.collect();
        let all = project.files().iter().flat_map(|file| file.tree.walk()).filter_map(Agent::cast);
        waiting.extend(all.filter(|agent| agent.name().is_some_and(|name| called.contains(name.as_ref()))));
    }
    Ok(())
}
