//! The standard library: tools that every project has.

pub mod fs;
//! The standard library: tools that every agent can count on.
//!
//! They are of the innermost layer, so their full names have no layer in front: `calculator`, `dateTime/now`.

mod calculation;
mod date_time;
mod greeting;
mod json;
mod text;

pub use calculation::{Calculation, calculator};
pub use date_time::Clock;
pub use greeting::say_hello;

use super::Tool;

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
