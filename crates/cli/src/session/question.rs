//! Questions that MCP servers ask during a call, at the terminal.

use crate::ui::{self, Screen, one_line};
use patter::drive::PersonAnswer;
use patter::run::PendingCall;
use patter::tool::{Answer, BoxFuture, FormField, Question, QuestionKind, Respondent};
use serde_json::{Map, Value as Json};
use std::io::{self, IsTerminal};
use std::sync::Arc;

/// The number of attempts to enter a value.
const MAX_ATTEMPTS: usize = 5;
/// The width at which texts of a field are truncated.
const MAX_COLUMNS: usize = 200;

/// Where questions are asked.
#[derive(Clone)]
pub(crate) enum Asker {
    /// On stderr.
    Stderr,
    /// Within a conversation.
    Screen(Arc<Screen>),
}

impl Asker {
    fn note(&self, text: &str) {
        // A question that cannot be shown is not answered.
        let _ = match self {
            Asker::Stderr => ui::status(text),
            Asker::Screen(screen) => screen.note(text),
        };
    }

    fn ask(&self, prompt: &str) {
        let _ = match self {
            Asker::Stderr => ui::ask(&format!("{prompt} ")),
            Asker::Screen(screen) => screen.ask(prompt),
        };
    }

    async fn line(&self, prompt: String) -> Option<String> {
        let asking = self.clone();
        let line = ui::line(move || asking.ask(&prompt)).await;
        if let Asker::Screen(screen) = self {
            screen.answered();
        }
        line
    }

    /// Asks a question that only `y` answers with yes.
    async fn confirm(&self, question: &str) -> bool {
        let asking = self.clone();
        let prompt = format!("{question} [y/n]");
        let is_confirmed = ui::key(vec!['y', 'n'], move || asking.ask(&prompt)).await == Some('y');
        let answer = if is_confirmed { "yes" } else { "no" };
        let _ = match self {
            Asker::Stderr => ui::status(answer),
            Asker::Screen(screen) => screen.answer(answer),
        };
        is_confirmed
    }
}

/// Answers the questions of a tool that is called without an agent.
pub(crate) struct TerminalRespondent;

impl Respondent for TerminalRespondent {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(answer_at_terminal(question, false))
    }
}

/// Asks the person at the terminal. Without one, the question is declined; `yes` agrees to what needs no input.
pub(crate) async fn answer_at_terminal(question: &Question, yes: bool) -> Answer {
    if yes && matches!(question.kind, QuestionKind::Sampling { .. }) {
        return Answer::Accept(Map::new());
    }
    if !io::stdin().is_terminal() {
        let asker = &question.asker;
        let _ = ui::warning(&format!("{asker} asked for input, and there is nobody to ask"));
        return Answer::Decline;
    }
    answer(&Asker::Stderr, question).await
}

/// Asks a person.
pub(crate) async fn answer(asker: &Asker, question: &Question) -> Answer {
    let who = &question.asker;
    let agreed = |is_confirmed: bool| if is_confirmed { Answer::Accept(Map::new()) } else { Answer::Decline };
    match &question.kind {
        QuestionKind::Form(fields) => {
            asker.note(&format!("{who} asks for input:{}", quoted(&question.message)));
            fill_in(asker, who, fields).await
        }
        QuestionKind::Url(url) => {
            let message = quoted(&question.message);
            asker.note(&format!("{who} asks you to open a page:{message}\n\n  {url}\n"));
            let is_confirmed = asker.confirm("open it?").await;
            if is_confirmed {
                ui::open_page(url);
            }
            agreed(is_confirmed)
        }
        QuestionKind::Done => agreed(asker.confirm("make the call again? answer when you are done there").await),
        QuestionKind::Sampling { max_tokens } => {
            let message = quoted(&question.message);
            asker.note(&format!("{who} wants to ask the agent's model:{message}"));
            agreed(asker.confirm(&format!("allow it, for a reply of at most {max_tokens} tokens?")).await)
        }
        _ => Answer::Decline,
    }
}

/// Asks the question of a step of a workflow. An empty line leaves it for later.
pub(crate) async fn ask_step(asker: &Asker, call: &PendingCall, question: &str, problem: Option<&str>) -> PersonAnswer {
    match problem {
        Some(problem) => asker.note(&format!("  {}", one_line(problem, MAX_COLUMNS))),
        None => asker.note(&format!("{} asks:{}", call.tool, quoted(question))),
    }
    match asker.line("  answer (empty to answer later):".to_owned()).await {
        Some(answer) if !answer.trim().is_empty() => PersonAnswer::Answer(answer),
        _ => PersonAnswer::Later,
    }
}

/// Asks for the value of each field, and whether to send them.
async fn fill_in(asker: &Asker, who: &str, fields: &[FormField]) -> Answer {
    let mut values = Map::new();
    for field in fields {
        match enter(asker, field).await {
            Some(Some(value)) => {
                values.insert(field.name.clone(), value);
            }
            Some(None) => {}
            None => return Answer::Cancel,
        }
    }
    let shown = Json::Object(values.clone());
    if asker.confirm(&format!("send {shown} to {who}?")).await { Answer::Accept(values) } else { Answer::Decline }
}

/// Asks for the value of a field. Returns nothing if the person gives up.
async fn enter(asker: &Asker, field: &FormField) -> Option<Option<Json>> {
    let name = one_line(field.title.as_deref().unwrap_or(&field.name), MAX_COLUMNS);
    let description =
        field.description.as_deref().map_or_else(String::new, |text| format!(", {}", one_line(text, MAX_COLUMNS)));
    let default = match &field.default {
        Some(default) => format!(" [{default}]"),
        None if field.required => String::new(),
        None => " [leave out]".to_owned(),
    };
    let prompt = format!("  {name}{description} ({}){default}:", one_line(&field.kind.expected(), MAX_COLUMNS));
    for _ in 0..MAX_ATTEMPTS {
        match field.read(&asker.line(prompt.clone()).await?) {
            Ok(value) => return Some(value),
            Err(problem) => asker.note(&format!("  {}", one_line(&problem, MAX_COLUMNS))),
        }
    }
    None
}

/// Returns a foreign text with a mark before each line, so that it cannot imitate what the program says.
fn quoted(text: &str) -> String {
    text.lines().map(|line| format!("\n  │ {line}")).collect()
}
