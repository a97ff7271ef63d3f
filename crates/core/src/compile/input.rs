//! Agents with typed input.

use super::CompiledAgent;
use super::agent::Extension;
use crate::declare::Agent;
use crate::message::attachment::AttachmentContents;
use crate::message::conversation::Conversation;
use crate::message::request::Request;
use crate::types::definition::Definition;
use crate::types::signature::{Field, Presence, Records, Shape, Signature, Type};
use crate::workflow::{is_typed, render_instruction};
use std::sync::Arc;

impl CompiledAgent {
    /// Returns the agent as it is for an input: the placeholders of its instruction are filled in. An agent without `takes`
    /// has none.
    ///
    /// ```
    /// # use patter_core::compile::CompiledAgent;
    /// # fn example(compiled: &CompiledAgent) {
    /// // The agent takes an object, and its instruction is "Greet {name}."
    /// assert_eq!(compiled.for_input(r#"{"name": "Ada"}"#).instruction(), "Greet Ada.");
    /// # }
    /// ```
    #[must_use]
    pub fn for_input(&self, input: &str) -> Self {
        if self.spec().takes.is_none() || self.spec().workflow.is_some() {
            return self.clone();
        }
        // The input was validated, and the check rejects placeholders that may be missing.
        let Some(instruction) = render_instruction(self.instruction(), input) else { return self.clone() };
        if instruction == self.instruction() {
            return self.clone();
        }
        self.with_instruction(instruction, input)
    }

    fn with_instruction(&self, instruction: String, input: &str) -> Self {
        let request = Request {
            model: self.model(),
            instruction: &instruction,
            messages: &Conversation::default(),
            contents: AttachmentContents::NONE,
            tools: self.offered_tools(),
            settings: self.settings(),
            returns: self.returns(),
        };
        let frame = Arc::new(request.template());
        let extension = Extension {
            offered: self.offered_tools().to_vec(),
            frame,
            spec: self.spec().clone(),
            fallbacks: self.fallbacks().iter().map(|fallback| fallback.for_input(input)).collect(),
            instruction,
        };
        let mut compiled = self.clone();
        compiled.extension = Some(Arc::new(extension));
        compiled
    }
}

/// Returns the type of the input of an agent, unless that is a text.
pub(super) fn typed_input(agent: &Agent, records: &Records) -> Option<Type> {
    agent.takes(records).and_then(Result::ok).filter(|ty| is_typed(ty) || ty.facets.allowed.is_some())
}

/// Returns the arguments of an agent with typed input that is called like a tool.
pub(super) fn delegate_definition(name: &str, description: &str, takes: &Type, records: &Arc<Records>) -> Definition {
    let parameters = match &takes.shape {
        Shape::Object(fields) => fields.clone(),
        Shape::Record(record) => records.get(record).map(|record| record.fields.clone()).unwrap_or_default(),
        _ => vec![Field { name: "input".to_owned(), ty: takes.clone(), presence: Presence::Required }],
    };
    let signature = Signature { parameters, returns: Type::new(Shape::Any) };
    Definition { name: name.to_owned(), description: description.to_owned(), signature, records: Arc::clone(records) }
}
