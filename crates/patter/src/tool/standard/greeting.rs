//! `sayHello`, the tool of the first example.

/// Returns a friendly greeting for the given name
#[patter::tool(effect = "pure")]
pub fn say_hello(#[default = "world"] person_name: String) -> String {
    format!("Hello, {person_name}!")
}
