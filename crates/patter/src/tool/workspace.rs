//! Workspaces: sets of toolboxes.

use super::{Hook, Tool};
use patter_core::library::{Entry, Layer, Library, MergeError, Sealing};
use patter_core::name::{FullName, FullNameError};
use thiserror::Error;

/// A set of toolboxes: the tools of one layer, by their full names.
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

/// A builder of workspaces.
#[derive(Debug, Default)]
pub struct WorkspaceBuilder {
    namespace: String,
    tools: Vec<(String, Tool)>,
}

/// An error in the tools of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WorkspaceError {
    /// A tool name is invalid.
    #[error("invalid tool name `{name}`: {error}")]
    Name {
        /// The name.
        name: String,
        /// The reason.
        error: FullNameError,
    },
}

impl Workspace {
    /// Creates a builder.
    pub fn builder() -> WorkspaceBuilder {
        WorkspaceBuilder::default()
    }

    /// Adds the name of an organisation to all tools: `weather/current` becomes `acme/weather/current`.
    pub fn with_org(self, org: &str) -> Result<Self, WorkspaceError> {
        let renamed = self.tools.into_iter().map(|(name, tool)| Ok((parse_name(org, name.as_str())?, tool)));
        Ok(Self { tools: renamed.collect::<Result<_, _>>()? })
    }

    /// Adds the tools of another workspace.
    #[must_use]
    pub fn with_workspace(mut self, other: Workspace) -> Self {
        self.tools.extend(other.tools);
        self
    }

    /// Adds a hook to the tools that it is for.
    #[must_use]
    pub fn with_hook(mut self, hook: &Hook) -> Self {
        let add = |(name, tool): (FullName, Tool)| match hook.calls().matches_tool(&name) {
            true => (name, tool.with_hook(hook.clone())),
            false => (name, tool),
        };
        self.tools = self.tools.into_iter().map(add).collect();
        self
    }

    /// Sets the origin of all tools.
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
    /// Adds a toolbox, which is a namespace. An empty name adds the tools without one.
    #[must_use]
    pub fn toolbox(mut self, name: &str, fill: impl FnOnce(WorkspaceBuilder) -> WorkspaceBuilder) -> Self {
        let filled = fill(WorkspaceBuilder { namespace: self.full_name(name), tools: Vec::new() });
        self.tools.extend(filled.tools);
        self
    }

    /// Adds a tool to the current toolbox.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        let name = self.full_name(tool.name());
        self.tools.push((name, tool));
        self
    }

    /// Adds tools to the current toolbox.
    #[must_use]
    pub fn tools(self, tools: impl IntoIterator<Item = Tool>) -> Self {
        tools.into_iter().fold(self, Self::tool)
    }

    /// Builds the workspace.
    pub fn build(self) -> Result<Workspace, WorkspaceError> {
        let tools = self.tools.into_iter().map(|(name, tool)| Ok((parse_name("", &name)?, tool)));
        Ok(Workspace { tools: tools.collect::<Result<_, _>>()? })
    }

    fn full_name(&self, name: &str) -> String {
        match (self.namespace.as_str(), name) {
            ("", name) => name.to_owned(),
            (namespace, "") => namespace.to_owned(),
            (namespace, name) => format!("{namespace}/{name}"),
        }
    }
}

/// Merges workspaces into a library, each as a layer. Overrides are logged, and listed by [`Library::overrides`].
pub fn merge(layers: impl IntoIterator<Item = (Layer, Workspace)>) -> Result<Library<Tool>, Vec<MergeError>> {
    let layers: Vec<_> = layers.into_iter().collect();
    let sources: Vec<_> = layers
        .iter()
        .flat_map(|(layer, workspace)| {
            workspace.tools.iter().map(|(name, tool)| (*layer, name.clone(), tool.source.to_string()))
        })
        .collect();
    let entries = layers.into_iter().flat_map(|(layer, workspace)| {
        workspace.tools.into_iter().map(move |(name, tool)| {
            let sealing = if tool.sealed { Sealing::Sealed } else { Sealing::Open };
            Entry { name, layer, sealing, value: tool }
        })
    });
    let library = Library::merge(entries).map_err(|errors| with_places(errors, &sources))?;
    for overridden in library.overrides() {
        let winner = overridden.winner.layer.name();
        let loser = overridden.loser.layer.name();
        tracing::info!(tool = %overridden.winner.name, winner, loser, "tool overridden");
    }
    Ok(library)
}

/// Adds to errors where the tools are declared, and removes repeated errors.
fn with_places(mut errors: Vec<MergeError>, sources: &[(Layer, FullName, String)]) -> Vec<MergeError> {
    for error in &mut errors {
        let (name, layers, places) = match error {
            MergeError::Sealed { name, sealed_by, layer, places } => (&*name, [*sealed_by, *layer], places),
            MergeError::Duplicate { name, layer, places } => (&*name, [*layer; 2], places),
        };
        let found = sources.iter().filter(|(layer, known, _)| known == name && layers.contains(layer));
        *places = found.map(|(.., source)| source.clone()).collect();
    }
    errors.dedup();
    errors
}

fn parse_name(namespace: &str, name: &str) -> Result<FullName, WorkspaceError> {
    FullName::join(namespace, name).map_err(|error| WorkspaceError::Name { name: name.to_owned(), error })
}
