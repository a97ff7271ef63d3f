//! The request to a model, rebuilt from the log.

use patter_core::message::attachment::AttachmentContents;
use patter_core::message::request::{OfferedTool, Request, RequestTemplate};
use patter_core::name::WireName;
use patter_core::provider::ModelRef;
use patter_core::run::Run;
use patter_core::session::Log;
use patter_core::wire::Streaming;
use serde_json::{Value as Json, json};

/// Rebuilds the request that a run sends next: in the protocol of the provider, or as Patter has it if there is none.
pub(super) fn rebuilt_request(log: &Log, path: &[String]) -> Option<Json> {
    let run = if path.is_empty() { log.open_run()? } else { log.child_run(path)? };
    let frame = log.frame(&run.spec().agent)?;
    let sent = encoded(frame, run);
    Some(sent.unwrap_or_else(|| {
        let messages: Vec<_> = run.conversation().iter().collect();
        json!({"model": frame.model, "instruction": frame.instruction, "tools": frame.tools, "messages": messages})
    }))
}

fn encoded(frame: &RequestTemplate, run: &Run) -> Option<Json> {
    let model: ModelRef = frame.model.parse().ok()?;
    let wire = model.provider.endpoint()?.default_wire()?;
    let tools: Option<Vec<_>> = frame
        .tools
        .iter()
        .map(|tool| {
            Some(OfferedTool {
                name: WireName::from_full_name(&tool.name).ok()?,
                description: tool.description.clone(),
                schema: tool.schema.clone(),
                strict_schema: tool.is_strict.then(|| tool.schema.clone()),
            })
        })
        .collect();
    let request = Request {
        model: &model,
        instruction: &frame.instruction,
        messages: run.conversation(),
        contents: AttachmentContents::NONE,
        tools: &tools?,
        settings: &frame.settings,
        returns: frame.returns.as_ref(),
    };
    serde_json::from_slice(&wire.encode(&request, Streaming::Off)).ok()
}
