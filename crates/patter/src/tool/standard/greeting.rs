//! The first tool that people meet.

/// Returns a friendly greeting for the given name
#[patter::tool(effect = "pure")]
pub fn say_hello(#[default = "world"] person_name: String) -> String {
    format!("Hello, {person_name}!")
}
