//! What decides what an agent does, beyond its own text and the declarations of its tools.

use crate::drive::Driver;
use crate::file::file_hash;
use patter_core::compile::CompiledAgent;
use patter_core::provider::{Backend, BuiltIn, ModelRef};
use patter_core::run::CallTarget;
use patter_core::types::definition::hash;
use std::collections::HashSet;
use std::path::PathBuf;

/// Returns a hash of the rules, of the agents that an agent calls, and of the scripts that its tools and models run. An
/// experiment must not mix runs that differ in one of them.
pub(super) fn setup_hash(driver: &Driver, compiled: &CompiledAgent, others: &[String]) -> String {
    let mut parts: Vec<String> = driver.rules().iter().map(ToString::to_string).collect();
    parts.extend(others.iter().cloned());
    let mut known = HashSet::new();
    let mut waiting = vec![compiled.clone()];
    while let Some(agent) = waiting.pop() {
        if !known.insert(agent.name().to_owned()) {
            continue;
        }
        parts.extend([agent.spec().hash.clone(), agent.bindings_hash().to_owned(), agent.model().to_string()]);
        parts.extend(script(agent.model()).map(|path| file_hash(&path)));
        for callable in &agent.spec().tools {
            match &callable.target {
                CallTarget::Tool { name, .. } => {
                    let tool = driver.library().get(name.as_str());
                    let files = tool.map(|tool| tool.value.implementation.files()).unwrap_or_default();
                    parts.extend(files.iter().map(|path| file_hash(path)));
                }
                CallTarget::Client | CallTarget::Person => {}
                CallTarget::Agent { name } => waiting.extend(driver.compile_named(name).and_then(Result::ok)),
            }
        }
    }
    hash(parts.join("\n").as_bytes())
}

/// Returns the file of a scripted model.
fn script(model: &ModelRef) -> Option<PathBuf> {
    match model.provider.profile().backend {
        Backend::BuiltIn(BuiltIn::Scripted) => Some(PathBuf::from(&model.id)),
        Backend::BuiltIn(BuiltIn::Demo) | Backend::Http(_) => None,
    }
}
