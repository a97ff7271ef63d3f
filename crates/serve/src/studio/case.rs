//! A case made of a session: what was said, and that the agent should do and answer the same.

use super::page::{Page, PageError, Section, path_segment, respond};
use super::talk::read;
use super::transcript::{Step, Transcript};
use crate::host::Host;
use crate::token::{Access, Scope};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use patter::gram::{quote, quote_name};
use patter::html::html;
use std::sync::Arc;

/// Longer answers are not expected word for word.
const MAX_EXPECTED: usize = 300;

/// Shows a session as a case.
pub(super) async fn show(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    access.require(Scope::Read)?;
    let (summary, transcript) = read(&host, &access, &id).await?;
    let text = case_text(summary.id.as_str(), &transcript);
    let body = html!(
        "<h1>A case of this session</h1><p>It says the same, and expects the same tools and the same answer. Reduce it to what matters, put it into a file with \
         cases, and run it: <code>patter eval FILE --cases cases.gram</code>, or a <a href=\"/studio/experiments/new\">new experiment</a>.</p>\
         <pre tabindex=\"0\" role=\"region\" aria-label=\"The case\">{}</pre>\
         <p class=\"actions\"><a class=\"button\" href=\"/studio/sessions/{}\">Back to the session</a></p>",
        text,
        path_segment(&id)
    );
    Ok(respond(&Page::new(Section::Runs, "Case", body).with_style("runs.css"), &headers))
}

/// Returns the text of a case: the messages, the tools that the agent called itself, and the last answer.
fn case_text(id: &str, transcript: &Transcript) -> String {
    let inputs: Vec<_> = transcript.turns.iter().map(|turn| quote(&turn.input)).collect();
    let input = match inputs.as_slice() {
        [only] => only.clone(),
        several => format!("[{}]", several.join(", ")),
    };
    let mut checks = Vec::new();
    for step in transcript.turns.iter().flat_map(|turn| &turn.steps) {
        if let Step::Call(call) = step {
            let check = format!("(:Called {{ tool: {} }})", quote(&call.tool));
            if !checks.contains(&check) {
                checks.push(check);
            }
        }
    }
    let last = transcript.turns.last().and_then(|turn| {
        turn.steps.iter().rev().find_map(|step| match step {
            Step::Text(text) if !text.trim().is_empty() => Some(text.trim()),
            _ => None,
        })
    });
    if let Some(answer) = last.filter(|answer| answer.chars().count() <= MAX_EXPECTED) {
        checks.insert(0, format!("(:Contains {{ text: {} }})", quote(answer)));
    }
    let name = quote_name(id);
    if checks.is_empty() {
        return format!("[:Cases |\n  [{name}:Case {{ input: {input} }}]\n]\n");
    }
    let checks: Vec<_> = checks.iter().map(|check| format!("    {check}")).collect();
    format!("[:Cases |\n  [{name}:Case {{ input: {input} }} |\n{}\n  ]\n]\n", checks.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studio::transcript::{CallView, TurnView};
    use patter::case::{self, CaseFormat};

    fn turn(input: &str, steps: Vec<Step>) -> TurnView {
        let mut turn = TurnView::default();
        turn.input = input.to_owned();
        turn.steps = steps;
        turn
    }

    fn call(tool: &str) -> Step {
        Step::Call(Box::new(CallView { tool: tool.to_owned(), ..CallView::default() }))
    }

    #[test]
    fn a_session_becomes_a_case_that_can_be_read() {
        let first = turn("Say \"hi\"\n", vec![call("greet/hi"), call("greet/hi"), Step::Text("Hi!".to_owned())]);
        let second = turn("Bye", vec![Step::Text("Bye \\o/".to_owned())]);
        let transcript = Transcript { turns: vec![first, second], ..Transcript::default() };
        let text = case_text("20261116-1", &transcript);
        let (cases, problems) = case::read("a.gram", CaseFormat::Gram, text.as_bytes());
        assert!(problems.is_empty(), "{problems:?}\n{text}");
        let [case] = cases.as_slice() else { panic!("{text}") };
        assert_eq!(
            (case.id.as_str(), case.turns.as_slice()),
            ("20261116-1", &["Say \"hi\"\n".to_owned(), "Bye".to_owned()][..])
        );
        let checks: Vec<_> = case.checks.iter().map(ToString::to_string).collect();
        assert_eq!(checks, ["contains \"Bye \\\\o/\"", "calls greet/hi"]);
    }

    #[test]
    fn a_session_without_an_answer_becomes_a_case_too() {
        let transcript = Transcript { turns: vec![turn("Hello", Vec::new())], ..Transcript::default() };
        let text = case_text("a", &transcript);
        let (cases, problems) = case::read("a.gram", CaseFormat::Gram, text.as_bytes());
        assert!(problems.is_empty() && cases.len() == 1, "{problems:?}\n{text}");
    }
}
