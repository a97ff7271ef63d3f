//! The standard library: tools that are available to every agent.
//!
//! They are in the innermost layer, so their full names have no prefix: `calculator`, `dateTime/now`.

mod greeting;
mod calculation;
mod date_time;
mod json;
mod text;
mod fetch;
pub mod fs;

pub use calculation::{Calculation, calculator};
pub use date_time::Clock;
pub use fetch::fetch;
pub use greeting::say_hello;

use super::{Tool, ToolResources, Workspace, build_declared};
use patter_core::declare::project::Project;

/// The names and texts of the toolboxes that are written in gram.
pub const TOOLBOXES: [(&str, &str); 2] =
    [("wikipedia", include_str!("wikipedia.gram")), ("hackerNews", include_str!("hackerNews.gram"))];

/// Returns the standard library.
///
/// ```
/// use patter::{project::Environment, tool::{ToolResources, standard::standard_library}};
/// let library = standard_library(&ToolResources::new(".", Environment::default()));
/// assert!(library.tools().any(|(name, _)| name.as_str() == "wikipedia/search"));
/// ```
pub fn standard_library(resources: &ToolResources) -> Workspace {
    let pure = tools().into_iter().map(|(toolbox, tool)| (toolbox.unwrap_or_default(), tool));
    let files = fs::fs(resources.guard.clone(), resources.fs_roots.clone()).into_iter().map(|tool| ("fs", tool));
    let all = pure.chain(files).chain([("", fetch(&resources.client))]);
    let builder = all.fold(Workspace::builder(), |builder, (name, tool)| builder.toolbox(name, |it| it.tool(tool)));
    let (declared, _) = build_declared(&Project::read(TOOLBOXES), resources);
    // The names are constants, so they are valid; a test counts the tools.
    builder.build().unwrap_or_default().with_workspace(declared.with_source(BUILT_IN))
}

const BUILT_IN: &str = "built in";

/// Returns the tools that only compute, each with its toolbox.
///
/// ```
/// let tools = patter::tool::standard::tools();
/// let name = |(toolbox, tool): &(Option<&str>, patter::tool::Tool)| match toolbox {
///     Some(toolbox) => format!("{toolbox}/{}", tool.name()),
///     None => tool.name().to_owned(),
/// };
/// let names: Vec<_> = tools.iter().map(name).collect();
/// assert!(names.contains(&"calculator".to_owned()) && names.contains(&"dateTime/now".to_owned()));
/// ```
pub fn tools() -> Vec<(Option<&'static str>, Tool)> {
    let boxes = [
        (None, vec![say_hello::tool(), calculator::tool()]),
        (Some("dateTime"), date_time::tools()),
        (Some("json"), json::tools()),
        (Some("text"), text::tools()),
    ];
    let boxes = boxes.into_iter();
    boxes.flat_map(|(name, tools)| tools.into_iter().map(move |tool| (name, tool.source(BUILT_IN)))).collect()
}
