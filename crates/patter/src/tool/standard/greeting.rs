//! `sayHello`, the tool of the first example.

/// The name of someone who is not named.
const NAMELESS: &str = "world";

/// Returns a friendly greeting message for the given name
#[patter::tool(effect = "pure")]
pub fn say_hello(#[default = "world"] person_name: String) -> String {
    // Models also pass an empty name if they know none.
    let name = person_name.trim();
    format!("Hello, {}!", if name.is_empty() { NAMELESS } else { name })
}
