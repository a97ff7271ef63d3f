//! Tools that replace those of a project.

use super::Tools;
use crate::tool::Tool;
use patter_core::library::{Entry, Layer, Library, MergeError};
use std::collections::HashSet;

/// The tools of a file, which replace those of the same name in a project: what an arm of an experiment changes, or a
/// conversation that somebody tries them in.
#[derive(Clone)]
pub struct ToolVariant {
    entries: Vec<Entry<Tool>>,
    servers: Vec<String>,
}

impl ToolVariant {
    /// Returns the tools that were read from a file as a variant; `None` if it has no toolbox.
    pub fn new(tools: &Tools) -> Result<Option<Self>, Vec<MergeError>> {
        let library = tools.library()?;
        let entries: Vec<_> = library.entries().filter(|entry| entry.layer == Layer::Project).cloned().collect();
        if entries.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self { entries, servers: tools.servers().map(str::to_owned).collect() }))
    }

    /// Returns a library in which these tools replace those of the project that have the same name, in whatever toolbox.
    pub fn replace_in(&self, library: &Library<Tool>) -> Result<Library<Tool>, Vec<MergeError>> {
        let names: HashSet<_> = self.entries.iter().map(|entry| entry.name.tool_name()).collect();
        let is_replaced =
            |entry: &&Entry<Tool>| entry.layer == Layer::Project && names.contains(entry.name.tool_name());
        let others = library.entries().filter(|entry| !is_replaced(entry));
        let merged = Library::merge(others.chain(&self.entries).cloned())?;
        Ok(merged.with_servers(self.servers.iter().cloned()))
    }
}
