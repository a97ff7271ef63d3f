//! The standard library: tools that every agent can count on.
//!
//! They are of the innermost layer, so their full names have no layer in front: `calculator`, `dateTime/now`.

mod calculation;
mod date_time;
pub mod fs;
mod greeting;
mod json;
mod text;

pub use calculation::{Calculation, calculator};
pub use date_time::Clock;
pub use greeting::say_hello;

use super::{Kit, Tool, Workspace};

/// Returns the standard library, with `fs` limited to the folders of the kit.
pub fn standard(kit: &Kit) -> Workspace {
    let mut builder = Workspace::builder();
    let own = tools().into_iter().map(|(toolbox, tool)| (toolbox.unwrap_or_default(), tool));
    let files = fs::fs(kit.fs_roots.clone()).into_iter().map(|tool| ("fs", tool));
    for (toolbox, tool) in own.chain(files) {
        builder = builder.toolbox(toolbox, |it| it.tool(tool.source("built in")));
    }
    // The names are our own; a test builds it.
    builder.build().unwrap_or_default()
}

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
    boxes.flat_map(|(name, tools)| tools.into_iter().map(move |tool| (name, tool.source("built in")))).collect()
}
