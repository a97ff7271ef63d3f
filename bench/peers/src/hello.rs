//! The conversation of the benchmark, which `examples/hello.gram` has with the mock.
//!
//! The model is sent [`INSTRUCTION`] and [`PROMPT`] and calls [`TOOL`] with [`ARGUMENTS`]; it is sent [`GREETING`] and
//! says [`ANSWER`].

/// The model that requests name.
pub const MODEL: &str = "gpt-4o-mini";
/// The system message.
pub const INSTRUCTION: &str = "You are a friendly assistant. When the user greets you, use the `sayHello` tool.";
/// The user message.
pub const PROMPT: &str = "Hello! My name is Alice.";
/// The name of the only tool.
pub const TOOL: &str = "sayHello";
/// The arguments of the call, as JSON.
pub const ARGUMENTS: &str = r#"{"personName":"Alice"}"#;
/// The result of the call.
pub const GREETING: &str = "Hello, Alice!";
/// The answer that ends the turn.
pub const ANSWER: &str = "Hello, Alice! Nice to meet you.";
