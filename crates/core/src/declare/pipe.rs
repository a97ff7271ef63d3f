//! Pipes: tools that are called one after the other, and are one tool for those who call them.
//!
//! A pipe is a workflow whose steps are tools in a row. It accepts what its first tool accepts, and returns what its last one
//! returns.

use super::project::Project;
use super::scope::Scope;
use super::workflow::{EdgeKind, StepKind, WorkflowSpec};
use super::{Agent, DeclarationKind, ToolSpec, head_span};
use crate::rule;
use crate::types::signature::Signature;
use patter_gram::{Diagnostic, Pattern};
use std::sync::Arc;

/// Returns whether a pattern declares a pipe.
pub(crate) fn is_pipe(pattern: Pattern<'_>) -> bool {
    DeclarationKind::from_pattern(pattern) == Some(DeclarationKind::Agent)
        && pattern.labels().find(|label| DeclarationKind::LABELS.contains(&label.as_ref())).as_deref() == Some("Pipe")
}

impl Agent {
    /// Returns whether it is a pipe: a workflow whose steps are tools in a row.
    ///
    /// ```
    /// use patter_core::declare::project::Project;
    /// let tool = |name: &str| format!("[{name}:Tool {{description: 'x'}} | (id::Text)==>(::Text)]");
    /// let text = format!("[both:Pipe {{description: 'Does both'}} | (one)-->(two)] {} {}", tool("one"), tool("two"));
    /// let project = Project::read([("a.gram", text)]);
    /// let pipe = project.find_agent("both").unwrap();
    /// assert!(pipe.is_pipe() && pipe.is_workflow());
    /// assert_eq!(pipe.signature().unwrap().parameters[0].name, "id");
    /// ```
    pub fn is_pipe(&self) -> bool {
        self.pattern().is_some_and(is_pipe)
    }

    /// Returns the parameters of the first tool of a pipe and the result of its last one, if both are known.
    pub fn signature(&self) -> Option<&Signature> {
        self.signature.as_deref()
    }

    /// Returns a pipe with the parameters of its first tool and the result of its last one.
    pub(crate) fn with_signature(self, signature: Signature) -> Self {
        Self { signature: Some(Arc::new(signature)), ..self }
    }

    /// Returns the names of the tools that a pipe starts and ends with.
    pub(crate) fn pipe_ends(&self) -> Option<(String, String)> {
        let spec = WorkflowSpec::read(self.pattern().filter(|pattern| is_pipe(*pattern))?);
        let callee = |step: Option<&super::workflow::StepSpec<'_>>| step?.callee().map(str::to_owned);
        Some((callee(spec.steps.first())?, callee(spec.steps.last())?))
    }
}

impl Project {
    /// Returns the signature of a pipe, if the project declares the tools that it starts and ends with.
    pub(super) fn pipe_signature(&self, pipe: &Agent) -> Option<Signature> {
        let (first, last) = pipe.pipe_ends()?;
        let scope = Scope::new(pipe);
        let signature = |name: &str| {
            let found = self.resolve(&scope, name);
            let [one] = found.as_slice() else { return None };
            ToolSpec::cast(one.pattern)?.signature(self.records()).ok()
        };
        Some(Signature { parameters: signature(&first)?.parameters, returns: signature(&last)?.returns })
    }
}

/// Returns what keeps a workflow from being a pipe. `is_agent` returns whether a name stands for an agent.
pub(crate) fn pipe_findings(pipe: Pattern<'_>, is_agent: &dyn Fn(&str) -> bool) -> Option<Diagnostic> {
    let spec = WorkflowSpec::read(pipe);
    if spec.steps.len() < 2 {
        let found = rule::BAD_PIPE.at(head_span(pipe), "a pipe has at least two tools");
        return Some(found.with_hint("write a path of tools: `[name:Pipe {…} | (first)-->(second)]`"));
    }
    for step in &spec.steps {
        let what = match &step.kind {
            StepKind::Call { callee } if is_agent(callee) => "an agent",
            StepKind::Call { .. } => continue,
            StepKind::Each { .. } => "called for each item of a list",
            StepKind::Human { .. } => "a question to a person",
            StepKind::Give { .. } => "a value",
        };
        let message = format!("a pipe consists of tools, but `{}` is {what}", step.name);
        return Some(rule::BAD_PIPE.at(step.span(), message).with_hint("use the label `Workflow` instead of `Pipe`"));
    }
    let mut edges = spec.edges.iter().enumerate();
    let is_next = |(index, edge): &(usize, &super::workflow::EdgeSpec)| {
        edge.kind == EdgeKind::Then && edge.from == *index && edge.to == index + 1
    };
    let other = edges.find(|edge| !is_next(edge)).map(|(_, edge)| edge.span);
    let span = other.or_else(|| (spec.edges.len() + 1 != spec.steps.len()).then(|| head_span(pipe)))?;
    let found =
        rule::BAD_PIPE.at(span, "a pipe is one path of tools, each called once with the result of the one before");
    Some(found.with_hint("use the label `Workflow`, or give a tool that is called twice another name: `(again:tool)`"))
}
