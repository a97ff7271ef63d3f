//! A conversation as HTML.

use super::figures::{count, duration, plural, time};
use super::markdown;
use super::page::path_segment;
use super::transcript::{CallView, Step, TurnState, TurnView};
use patter::html::{Html, html, prose};
use patter_core::message::attachment::{Attachment, MediaKind};
use patter_core::message::conversation::{ToolOutcome, Usage};
use patter_core::provider::ModelRef;
use patter_core::provider::price::{Bill, Prices};
use patter_core::serve::Waiting;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Results that are longer are shown in part, with a link to the whole.
const MAX_SHOWN: usize = 20_000;

/// What the turns of a session have in common.
pub(super) struct Scene<'s> {
    pub(super) session: &'s str,
    pub(super) prices: &'s Prices,
    /// The calls that wait for an approval, and the questions that wait for an answer.
    pub(super) waiting: &'s [Waiting],
    /// What tools are bound to, by their name.
    pub(super) bindings: &'s BTreeMap<String, String>,
    /// Whether the last turn is under way, or was interrupted.
    pub(super) activity: Activity,
}

/// Whether the last turn of a session runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    Idle,
    Running,
    Waiting,
    Interrupted,
}

impl Activity {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Interrupted => "interrupted",
        }
    }
}

/// Renders turns. The last one shows whether it runs.
pub(super) fn turns(scene: &Scene<'_>, turns: &[TurnView]) -> Html {
    let last = turns.len().saturating_sub(1);
    turns.iter().enumerate().map(|(index, turn)| render_turn(scene, turn, index == last)).collect()
}

fn render_turn(scene: &Scene<'_>, turn: &TurnView, is_last: bool) -> Html {
    let steps = render_steps(scene, &turn.steps, &mut Vec::new());
    let agent = if turn.agent.is_empty() { "earlier session" } else { &turn.agent };
    let is_open = turn.state == TurnState::Open;
    let activity = if is_last && is_open { scene.activity } else { Activity::Idle };
    let end = match (&turn.state, activity) {
        (TurnState::Failed(message), _) => html!("<p class=\"failure bad\">{}</p>", message),
        (TurnState::Cancelled, _) => html!("<p class=\"quiet\">Stopped.</p>"),
        (_, Activity::Running) => html!("<p class=\"quiet working\">Working…</p>"),
        (_, Activity::Waiting) => open_questions(scene, turn),
        (_, Activity::Interrupted) => html!(
            "<p class=\"interrupted\">The run was interrupted. <button data-action=\"resume\">Resume</button> \
             <button data-action=\"cancel\">Give up</button></p>"
        ),
        _ => Html::default(),
    };
    let bubble = match turn.input.trim() {
        "" => Html::default(),
        _ => html!("<div class=\"bubble\" tabindex=\"0\">{}</div>", turn.input),
    };
    // A turn that is the same is not replaced in the page, so that what people opened stays open.
    let version = format!("{}-{}-{:?}-{}", turn.ended_ms, turn.steps.len(), turn.state, activity.name());
    html!(
        "<article class=\"turn\" id=\"turn-{}\" data-version=\"{}\"><div class=\"user\"><h2 class=\"hidden\">Message</h2>\
         {}{}</div><div class=\"reply\"><h3 class=\"who\">{} <i>{}</i></h3>{}{}{}</div></article>",
        turn.entry,
        version,
        render_attachments(scene, &turn.attachments),
        bubble,
        agent,
        turn.model,
        steps,
        end,
        foot(scene, turn)
    )
}

/// Renders what waits and is not part of a reply: the steps of a workflow that a person performs.
fn open_questions(scene: &Scene<'_>, turn: &TurnView) -> Html {
    let mut shown = Vec::new();
    collect_calls(&turn.steps, &mut Vec::new(), &mut shown);
    let is_shown = |call: &Waiting| shown.iter().any(|(run, id)| call.run == *run && call.call_id == *id);
    let render =
        |call: &Waiting| html!("<p class=\"what\"><code>{}</code></p>{}", call.tool, approval(scene.session, call));
    scene.waiting.iter().filter(|call| !is_shown(call)).map(render).collect()
}

/// Collects the calls of steps, each with the calls that lead to its run.
fn collect_calls(steps: &[Step], path: &mut Vec<String>, calls: &mut Vec<(Vec<String>, String)>) {
    for step in steps {
        let Step::Call(call) = step else { continue };
        calls.push((path.clone(), call.id.clone()));
        path.push(call.id.clone());
        collect_calls(&call.steps, path, calls);
        path.pop();
    }
}

/// Renders the files of a message: images as such, and everything else as links.
fn render_attachments(scene: &Scene<'_>, attachments: &[Attachment]) -> Html {
    if attachments.is_empty() {
        return Html::default();
    }
    let item = |attachment: &Attachment| {
        let address =
            format!("/api/sessions/{}/attachments/{}", path_segment(scene.session), path_segment(&attachment.sha256));
        let label = attachment.to_string();
        match attachment.kind() {
            Some(MediaKind::Image) => html!(
                "<li data-name=\"{}\"><a href=\"{}\" title=\"{}\"><img src=\"{}\" alt=\"{}\" loading=\"lazy\"></a></li>",
                attachment.name,
                address,
                label,
                address,
                attachment.name
            ),
            _ => html!(
                "<li data-name=\"{}\"><a class=\"chip\" href=\"{}\" download>{}</a></li>",
                attachment.name,
                address,
                label
            ),
        }
    };
    let items: Html = attachments.iter().map(item).collect();
    html!("<ul class=\"attachments\" aria-label=\"Attachments\">{}</ul>", items)
}

fn foot(scene: &Scene<'_>, turn: &TurnView) -> Html {
    if turn.state == TurnState::Inherited {
        return Html::default();
    }
    let (usage, cost) = totals(scene.prices, turn);
    let cost = cost.map(|cost| html!("<span>{}</span>", cost)).unwrap_or_default();
    let took = turn.ended_ms.saturating_sub(turn.started_ms);
    html!(
        "<p class=\"foot\"><span title=\"{}\">{}</span><span>{}</span><span>{} tokens</span>{}\
         <a href=\"/studio/sessions/{}#{}\">Timeline</a></p>",
        time(turn.started_ms),
        duration(took),
        plural(u64::from(turn.model_calls), "model call"),
        count(usage.input_tokens + usage.output_tokens),
        cost,
        path_segment(scene.session),
        turn.entry
    )
}

/// Returns the tokens and the cost of a turn.
pub(super) fn totals(prices: &Prices, turn: &TurnView) -> (Usage, Option<String>) {
    let mut usage = Usage::default();
    let mut total = Bill::default();
    for (model, used) in &turn.usage {
        usage += *used;
        total.add(model.parse::<ModelRef>().ok().and_then(|model| prices.cost(&model, *used)));
    }
    (usage, total.total().map(|cost| cost.to_string()))
}

fn render_steps(scene: &Scene<'_>, steps: &[Step], path: &mut Vec<String>) -> Html {
    steps
        .iter()
        .map(|step| match step {
            Step::Text(text) => markdown::render(text),
            Step::Thought(text) => {
                html!("<details class=\"thought\"><summary>Reasoning</summary><p>{}</p></details>", text)
            }
            Step::Note(note) => html!("<p class=\"quiet\">{}</p>", note),
            Step::Call(call) => render_call(scene, call, path),
        })
        .collect()
}

fn render_call(scene: &Scene<'_>, call: &CallView, path: &mut Vec<String>) -> Html {
    let waiting = scene.waiting.iter().find(|waiting| waiting.call_id == call.id && waiting.run == *path);
    let (state, name) = match (&call.outcome, waiting) {
        (_, Some(waiting)) if waiting.question.is_some() => ("waiting", "needs an answer"),
        (_, Some(_)) => ("waiting", "needs approval"),
        (None, _) if call.steps.is_empty() && call.asked.is_some() => ("", "asked"),
        (None, _) => ("running", "running"),
        (Some(ToolOutcome::Value { .. }), _) => ("", ""),
        (Some(ToolOutcome::Error { .. }), _) => ("failed", "error"),
        (Some(ToolOutcome::Denied { .. }), _) => ("failed", "refused"),
        (Some(ToolOutcome::Cancelled), _) => ("", "stopped"),
    };
    let label =
        if name.is_empty() { Html::default() } else { html!("<span class=\"state {}\">{}</span>", state, name) };
    let took = call.duration_ms.map(|ms| html!("<span class=\"quiet\">{}</span>", duration(ms))).unwrap_or_default();
    path.push(call.id.clone());
    let nested = render_steps(scene, &call.steps, path);
    path.pop();
    let nested = if nested.is_empty() {
        Html::default()
    } else {
        html!(
            "<div class=\"nested\"><h4 class=\"who\">{}</h4>{}</div>",
            call.agent.as_deref().unwrap_or(&call.tool),
            nested
        )
    };
    let result =
        call.outcome.as_ref().map(|outcome| data(scene, call.entry, "Result", &outcome.text())).unwrap_or_default();
    let binding =
        scene.bindings.get(&call.tool).map(|binding| html!("<div><dt>Bound to</dt><dd>{}</dd></div>", binding));
    let asked = call.asked.as_ref().filter(|_| waiting.is_none());
    let asked = asked.map(|because| html!("<div><dt>Approval</dt><dd>{}</dd></div>", prose(because)));
    let open = if waiting.is_some() || call.agent.is_some() { html!(" open") } else { Html::default() };
    html!(
        "<details class=\"call\"{}><summary><code>{}</code> <span class=\"digest\">{}</span>{}{}</summary>\
         <dl>{}{}{}</dl>{}{}{}</details>",
        open,
        call.tool,
        digest(&call.arguments),
        label,
        took,
        data(scene, call.entry, "Arguments", &call.arguments),
        binding.unwrap_or_default(),
        asked.unwrap_or_default(),
        waiting.map(|waiting| approval(scene.session, waiting)).unwrap_or_default(),
        nested,
        html!("<dl>{}</dl>", result)
    )
}

/// Returns the first part of arguments, for one line.
fn digest(arguments: &str) -> String {
    if arguments == "{}" { String::new() } else { patter::text::truncate(arguments, 90) }
}

/// Renders arguments or a result.
fn data(scene: &Scene<'_>, entry: usize, name: &str, text: &str) -> Html {
    let pretty = match serde_json::from_str::<Json>(text) {
        Ok(value @ (Json::Object(_) | Json::Array(_))) => format!("{value:#}"),
        _ => text.to_owned(),
    };
    let shown: String = pretty.chars().take(MAX_SHOWN).collect();
    let rest = if shown.len() < pretty.len() {
        html!(
            "<p><a href=\"/studio/sessions/{}/entries/{}\">Show all {} characters</a></p>",
            path_segment(scene.session),
            entry,
            count(u64::try_from(pretty.len()).unwrap_or(0))
        )
    } else {
        Html::default()
    };
    html!("<div><dt>{}</dt><dd><pre tabindex=\"0\">{}</pre>{}</dd></div>", name, shown, rest)
}

/// Renders the field for an answer, by its JSON Schema.
fn answer_field(schema: Option<&Json>) -> Html {
    let part = |name: &str| schema.and_then(|schema| schema.get(name));
    let options: Vec<_> = match (part("enum").and_then(Json::as_array), part("type").and_then(Json::as_str)) {
        (Some(values), Some("string")) => values.iter().filter_map(Json::as_str).map(|value| (value, value)).collect(),
        (None, Some("boolean")) => vec![("true", "Yes"), ("false", "No")],
        (None, Some("integer")) => return html!("<input name=\"answer\" type=\"number\" step=\"1\" required>"),
        (None, Some("number")) => return html!("<input name=\"answer\" type=\"number\" step=\"any\" required>"),
        _ => return html!("<textarea name=\"answer\" rows=\"2\" required></textarea>"),
    };
    let options = options.iter().map(|(value, label)| html!("<option value=\"{}\">{}</option>", value, label));
    html!("<select name=\"answer\" required><option value=\"\"></option>{}</select>", options.collect::<Html>())
}

/// Renders the question whether a call may be made, or the one that a workflow asks a person.
pub(super) fn approval(session: &str, call: &Waiting) -> Html {
    if let Some(question) = &call.question {
        return html!(
            "<form class=\"approval\" data-session=\"{}\" data-run=\"{}\" data-call=\"{}\" data-hash=\"{}\" data-result=\"{}\" data-tool=\"{}\">\
             <p class=\"question\">{}</p><label>Answer {}</label>\
             <div class=\"actions\"><button class=\"primary\" value=\"answer\">Answer</button></div></form>",
            session,
            serde_json::to_string(&call.run).unwrap_or_default(),
            call.call_id,
            call.hash,
            patter_core::serve::ag_ui::call_id(&call.run, &call.call_id),
            call.tool,
            question,
            answer_field(call.returns.as_ref())
        );
    }
    html!(
        "<form class=\"approval\" data-session=\"{}\" data-run=\"{}\" data-call=\"{}\" data-hash=\"{}\" data-interrupt=\"{}\">\
         <p>{}</p><div class=\"actions\"><button class=\"primary\" value=\"approve\">Approve</button>\
         <button class=\"danger\" value=\"refuse\">Refuse</button>\
         <label>Reason for a refusal <input name=\"reason\" autocomplete=\"off\"></label></div></form>",
        session,
        serde_json::to_string(&call.run).unwrap_or_default(),
        call.call_id,
        call.hash,
        patter_core::serve::ag_ui::interrupt_id(call),
        prose(call.because.as_deref().unwrap_or("This call needs an approval."))
    )
}
