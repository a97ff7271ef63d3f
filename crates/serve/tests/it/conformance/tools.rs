//! The tools that the scenarios call, as a project would write them.

use patter::tool::{Answer, Effect, FieldKind, FormField, Question, SamplingRequest, Tool, ToolContext, ToolFailure};
use serde_json::{Value as Json, json};
use std::time::Duration;

/// A red pixel.
pub(super) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// Silence.
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

/// Defines a tool that only computes.
fn tool<R>(name: &str, signature: &str, call: impl Fn(Json, ToolContext) -> R + Send + Sync + 'static) -> Tool
where
    R: Future<Output = Result<Json, ToolFailure>> + Send + 'static,
{
    Tool::native(name, "A tool of the conformance suite", signature, call).unwrap().effect(Effect::Pure)
}

/// Defines a tool that always returns the same.
fn constant(name: &str, value: Json) -> Tool {
    tool(name, "()==>(::Any)", move |_, _| {
        let value = value.clone();
        async move { Ok(value) }
    })
}

/// Defines a tool that asks for a text, and returns the outcome.
fn asking(name: &str, question: &'static str, field: &'static str, message: &'static str) -> Tool {
    tool(name, "()==>(::Text)", move |_, context| async move {
        let fields = vec![FormField::new(field, FieldKind::TEXT).required()];
        Ok(format!("{:?}", context.ask(Question::form(question, message, fields)).await).into())
    })
}

/// Defines a tool that asks for a confirmation.
fn confirming(name: &str, text: &'static str) -> Tool {
    tool(name, "()==>(::Text)", move |_, context| async move {
        let fields = vec![FormField::new("ok", FieldKind::Boolean).required()];
        match context.ask(Question::form("confirm", "Please confirm", fields)).await {
            Answer::Accept(_) => Ok(text.into()),
            _ => Err(ToolFailure::new("nobody confirmed it")),
        }
    })
}

/// Defines a tool that asks the model of the client.
fn sampling(name: &str, signature: &str, question: &'static str, prompt: &'static str) -> Tool {
    tool(name, signature, move |arguments, context| async move {
        let prompt = arguments["prompt"].as_str().unwrap_or(prompt).to_owned();
        let reply = context.sample(question, SamplingRequest::new(prompt, 100)).await;
        reply.map(|reply| format!("LLM response: {}", reply.text).into()).map_err(ToolFailure::new)
    })
}

/// Defines a tool that reports steps.
fn stepping(name: &str, steps: &'static [(Option<f64>, &str)]) -> Tool {
    tool(name, "()==>(::Text)", move |_, context| async move {
        for (fraction, message) in steps {
            context.progress(*fraction, *message);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok("done".into())
    })
}

fn choice(name: &str, options: &[(&str, &str)], is_multiple: bool) -> FormField {
    let options = options.iter().map(|(value, title)| ((*value).to_owned(), (*title).to_owned())).collect();
    FormField::new(name, FieldKind::Choice { options, is_multiple })
}

pub(super) fn tools() -> Vec<Tool> {
    let image = json!({"type": "image", "mimeType": "image/png", "data": PNG});
    let resource = |uri: &str, mime_type: &str, text: &str| json!({"type": "resource", "uri": uri, "mimeType": mime_type, "text": text});
    let embedded = resource("test://embedded-resource", "text/plain", "This is an embedded resource content.");
    let mixed = resource("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#);
    let name = "What is your name?";
    vec![
        constant("test_simple_text", json!("This is a simple text response for testing.")),
        constant("test_image_content", image.clone()),
        constant("test_audio_content", json!({"type": "audio", "mimeType": "audio/wav", "data": WAV})),
        constant("test_embedded_resource", embedded),
        constant("test_multiple_content_types", json!(["Multiple content types test:", image, mixed])),
        tool("test_error_handling", "()==>(::Text)", |_, _| async {
            Err(ToolFailure::new("This tool intentionally returns an error for testing"))
        }),
        stepping("test_tool_with_progress", &[(Some(0.0), "begins"), (Some(0.5), "half"), (Some(1.0), "ends")]),
        stepping(
            "test_tool_with_logging",
            &[(None, "Tool execution started"), (None, "Tool processing data"), (None, "Tool execution completed")],
        ),
        stepping("test_logging_tool", &[(None, "a message")]),
        sampling("test_sampling", "(prompt::Text)==>(::Text)", "answer", ""),
        sampling("test_missing_capability", "()==>(::Text)", "answer", "Hello?"),
        sampling(
            "test_input_required_result_sampling",
            "()==>(::Text)",
            "capital_question",
            "What is the capital of France?",
        ),
        tool("test_elicitation", "(message::Text)==>(::Text)", |arguments, context| async move {
            let message = arguments["message"].as_str().unwrap_or_default();
            let field = |name| FormField::new(name, FieldKind::TEXT).required();
            let question = Question::form("user", message, vec![field("username"), field("email")]);
            Ok(format!("User response: {:?}", context.ask(question).await).into())
        }),
        tool("test_elicitation_sep1034_defaults", "()==>(::Text)", |_, context| async move {
            let statuses = [("active", "active"), ("inactive", "inactive"), ("pending", "pending")];
            let fields = vec![
                FormField::new("name", FieldKind::TEXT).with_default("John Doe"),
                FormField::new("age", FieldKind::INTEGER).with_default(30),
                FormField::new("score", FieldKind::NUMBER).with_default(95.5),
                choice("status", &statuses, false).with_default("active"),
                FormField::new("verified", FieldKind::Boolean).with_default(true),
            ];
            let answer = context.ask(Question::form("person", "Who are you?", fields)).await;
            Ok(format!("Elicitation completed: {answer:?}").into())
        }),
        asking("test_streaming_elicitation", "name", "name", name),
        asking("test_input_required_result_elicitation", "user_name", "name", name),
        confirming("test_input_required_result_request_state", "state-ok"),
        confirming("test_input_required_result_tampered_state", "confirmed"),
        tool("test_input_required_result_multi_round", "()==>(::Text)", |_, context| async move {
            let field = |name| vec![FormField::new(name, FieldKind::TEXT).required()];
            let name = context.ask(Question::form("step1", "Step 1: What is your name?", field("name"))).await;
            let question = "Step 2: What is your favorite color?";
            let color = context.ask(Question::form("step2", question, field("color"))).await;
            Ok(format!("{name:?} {color:?}").into())
        }),
        tool("test_input_required_result_capabilities", "()==>(::Text)", |_, context| async move {
            let fields = vec![FormField::new("name", FieldKind::TEXT)];
            let name = context.ask(Question::form("name", "What is your name?", fields)).await;
            let reply = context.sample("greeting", SamplingRequest::new("Generate a greeting", 50)).await;
            Ok(format!("{name:?} {reply:?}").into())
        }),
    ]
}
