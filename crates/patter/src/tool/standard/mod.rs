//! The standard library: tools that every agent can count on.
//!
//! They are of the innermost layer, so their full names have no layer in front: `calculator`, `dateTime/now`.

mod calculation;
mod date_time;
mod fetch;
pub mod fs;
mod greeting;
mod json;
mod text;

pub use calculation::{Calculation, calculator};
pub use date_time::Clock;
pub use fetch::fetch;
pub use greeting::say_hello;

use super::{Kit, Tool, Workspace, declared};
use patter_core::declare::project::Project;

/// Toolboxes that are written in gram: their names and texts.
pub const TOOLBOXES: [(&str, &str); 2] =
    [("wikipedia", include_str!("wikipedia.gram")), ("hackerNews", include_str!("hackerNews.gram"))];

/// Returns the standard library, made with a kit.
///
/// ```
/// use patter::{project::Environment, tool::{Kit, standard::standard}};
/// let library = standard(&Kit::new(".", Environment::default()));
/// assert!(library.tools().any(|(name, _)| name.as_str() == "wikipedia/search"));
/// ```
pub fn standard(kit: &Kit) -> Workspace {
    let own = tools().into_iter().map(|(toolbox, tool)| (toolbox.unwrap_or_default(), tool));
    let files = fs::fs(&kit.root, kit.fs_roots.clone()).into_iter().map(|tool| ("fs", tool.source(BUILT_IN)));
    let all = own.chain(files).chain([("", fetch(&kit.client))]);
    let builder = all.fold(Workspace::builder(), |builder, (name, tool)| builder.toolbox(name, |it| it.tool(tool)));
    let (written, _) = declared(&Project::read(TOOLBOXES), kit);
    // All names are written here and in the texts, so they can be names; a test counts the tools.
    builder.build().unwrap_or_default().and(written.with_source(BUILT_IN))
}

const BUILT_IN: &str = "built in";

/// Returns the tools that only compute, each with the toolbox that it is in.
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
