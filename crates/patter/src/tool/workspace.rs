//! Workspaces: sets of toolboxes.

use super::Tool;
use patter_core::library::{Entry, Layer, Library, MergeError, Sealing};
use patter_core::name::{FullName, FullNameError};
use thiserror::Error;

/// A set of toolboxes: the tools of one layer, under their full names.
///
/// ```
/// use patter::library::Layer;
/// use patter::tool::{Workspace, merge};
///
/// let ours = Workspace::builder().toolbox("greetings", |toolbox| toolbox).build().unwrap();
/// let library = merge([(Layer::Project, ours)]).unwrap();
/// assert_eq!(library.entries().count(), 0);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Workspace {
    tools: Vec<(FullName, Tool)>,
}

/// Puts a workspace together.
#[derive(Debug, Default)]
pub struct WorkspaceBuilder {
    namespace: String,
    tools: Vec<(String, Tool)>,
}

/// Why tools make no workspace.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WorkspaceError {
    /// A name cannot be one.
    #[error("`{name}` cannot be the name of a tool: {error}")]
    Name {
        /// The name.
        name: String,
        /// Why not.
        error: FullNameError,
    },
}

impl Workspace {
    /// Starts a workspace.
    pub fn builder() -> WorkspaceBuilder {
        WorkspaceBuilder::default()
    }

    /// Puts all tools under the name of an organisation: `weather/current` becomes `acme/weather/current`.
    pub fn of_org(self, org: &str) -> Result<Self, WorkspaceError> {
        let renamed = self.tools.into_iter().map(|(name, tool)| Ok((full_name(org, name.as_str())?, tool)));
        Ok(Self { tools: renamed.collect::<Result<_, _>>()? })
    }

    /// Adds the tools of another workspace.
    #[must_use]
    pub fn and(mut self, other: Workspace) -> Self {
        self.tools.extend(other.tools);
        self
    }

    /// Says where all the tools come from.
    #[must_use]
    pub(super) fn with_source(mut self, source: &str) -> Self {
        self.tools = self.tools.into_iter().map(|(name, tool)| (name, tool.source(source))).collect();
        self
    }

    /// Iterates over the tools, in order.
    pub fn tools(&self) -> impl Iterator<Item = (&FullName, &Tool)> {
        self.tools.iter().map(|(name, tool)| (name, tool))
    }
}

impl WorkspaceBuilder {
    /// Adds a toolbox, which is a namespace; none where the name is empty.
    #[must_use]
    pub fn toolbox(mut self, name: &str, fill: impl FnOnce(WorkspaceBuilder) -> WorkspaceBuilder) -> Self {
        let filled = fill(WorkspaceBuilder { namespace: self.within(name), tools: Vec::new() });
        self.tools.extend(filled.tools);
        self
    }

    /// Adds a tool, to the toolbox where one is being filled.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        let name = self.within(tool.name());
        self.tools.push((name, tool));
        self
    }

    /// Adds tools.
    #[must_use]
    pub fn tools(self, tools: impl IntoIterator<Item = Tool>) -> Self {
        tools.into_iter().fold(self, Self::tool)
    }

    /// Puts the workspace together.
    pub fn build(self) -> Result<Workspace, WorkspaceError> {
        let tools = self.tools.into_iter().map(|(name, tool)| Ok((full_name("", &name)?, tool)));
        Ok(Workspace { tools: tools.collect::<Result<_, _>>()? })
    }

    fn within(&self, name: &str) -> String {
        match (self.namespace.as_str(), name) {
            ("", name) => name.to_owned(),
            (namespace, "") => namespace.to_owned(),
            (namespace, name) => format!("{namespace}/{name}"),
        }
    }
}

/// Merges workspaces into one library, each as a layer. Overrides are logged, and told by [`Library::overrides`].
pub fn merge(layers: impl IntoIterator<Item = (Layer, Workspace)>) -> Result<Library<Tool>, Vec<MergeError>> {
    let entries = layers.into_iter().flat_map(|(layer, workspace)| {
        workspace.tools.into_iter().map(move |(name, tool)| {
            let sealing = if tool.sealed { Sealing::Sealed } else { Sealing::Open };
            Entry { name, layer, sealing, value: tool }
        })
    });
    let library = Library::merge(entries)?;
    for overridden in library.overrides() {
        let (winner, loser) = (overridden.winner.layer.name(), overridden.loser.layer.name());
        tracing::info!(tool = %overridden.winner.name, winner, loser, "a tool is overridden");
    }
    Ok(library)
}

fn full_name(namespace: &str, name: &str) -> Result<FullName, WorkspaceError> {
    FullName::within(namespace, name).map_err(|error| WorkspaceError::Name { name: name.to_owned(), error })
}
