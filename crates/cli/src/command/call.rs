//! `patter call`: runs one tool.

use crate::setup::{Rules, Setup, ToolSources, Toolset, confirmed, until_stopped};
use crate::{Outcome, diagnostics, print};
use clap::{Args, ValueEnum};
use patter::name::FullName;
use patter::permission::{Decision, Permissions, Rule};
use patter::project::Servers;
use patter::tool::{Approval, Call as ToolCall, CallError, Effect, Executor, Tool, ToolEvent, ToolEventKind};
use serde_json::{Value as Json, json};
use std::io::{self, IsTerminal, Read};

/// Call a tool, as an agent would: permissions, validation, time limit and all
///
/// You name the tool yourself, so calls that compute, read or use the network are allowed; those that change something
/// are asked about first. Rules of patter.toml and of the command count as well, and the strictest wins.
#[derive(Args)]
#[command(after_help = "Exit codes: 1 the tool failed, 3 there is no such tool, 4 not permitted, 5 wrong arguments,\n\
                        6 the result is not what the tool promises, 7 it took too long, 130 it was interrupted.\n\n\
                        Examples:\n  \
                        patter call sayHello '{\"personName\": \"Ada\"}'\n  \
                        patter call calculator '{\"expression\": \"2^100\"}' --format json\n  \
                        echo '{\"path\": \"a.txt\", \"content\": \"hi\"}' | patter call fs/writeFile - --yes")]
pub(crate) struct Call {
    /// Full or bare name of the tool
    tool: String,

    /// Arguments as a JSON object; `-` reads them from stdin
    #[arg(value_name = "JSON", default_value = "{}")]
    arguments: String,

    /// Approve calls that are asked about
    #[arg(long, short)]
    yes: bool,

    /// How to show the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    #[command(flatten)]
    rules: Rules,

    #[command(flatten)]
    sources: ToolSources,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text as it is, other values as JSON
    Text,
    /// `{"result": …}` or `{"error": …}`
    Json,
}

impl Call {
    pub(crate) fn run(self) -> io::Result<Outcome> {
        let arguments = match read_arguments(&self.arguments)? {
            Ok(arguments) => arguments,
            Err(message) => return self.wrong_arguments(&message),
        };
        let Some(setup) = Setup::read(&[], &self.sources, &Servers::For(&self.tool))? else {
            return Ok(Outcome::Failure);
        };
        if let Ok(entry) = setup.toolset.library.resolve(&self.tool) {
            warn_of_unknown(&entry.value, &arguments)?;
        }
        let permissions = match setup.toolset.library.resolve(&self.tool) {
            Ok(entry) => base_permissions(&entry.name, &entry.value),
            Err(_) => Permissions::default(),
        };
        let Some(permissions) = self.rules.add_to(permissions, &setup.config)? else { return Ok(Outcome::Usage) };
        let executor = Executor::new(setup.toolset.library.clone(), permissions).with_listener(show_progress);
        let approval = self.approval(&setup.toolset, &executor, &arguments);
        if setup.toolset.stop.is_cancelled() {
            return Ok(Outcome::Code(130));
        }
        let cancellation = setup.toolset.stop.clone();
        let call = ToolCall { approval, cancellation, ..ToolCall::new(self.tool.clone(), arguments) };
        let result = setup.toolset.runtime.block_on(executor.call(call));
        self.show(result)
    }

    /// Asks for an approval where one is needed and there is someone to ask.
    fn approval(&self, toolset: &Toolset, executor: &Executor, arguments: &Json) -> Approval {
        if self.yes {
            return Approval::Given;
        }
        let is_asked = executor.verdict(&self.tool, arguments).is_ok_and(|verdict| verdict.decision == Decision::Ask);
        if !is_asked || !io::stdin().is_terminal() || self.arguments == "-" {
            return Approval::None;
        }
        let shown = diagnostics::visible(&arguments.to_string());
        let question = confirmed(format!("call {} with {shown}?", self.tool));
        let is_yes = until_stopped(&toolset.runtime, &toolset.stop, question).unwrap_or(false);
        if is_yes { Approval::Given } else { Approval::None }
    }

    fn wrong_arguments(&self, message: &str) -> io::Result<Outcome> {
        match self.format {
            Format::Json => {
                let error = json!({"kind": "invalid_input", "message": message, "detail": null});
                print(&format!("{:#}\n", json!({"error": error})))?;
            }
            Format::Text => {
                diagnostics::error(message, Some("write an object, as in '{\"personName\": \"Ada\"}'"))?;
            }
        }
        Ok(Outcome::Code(5))
    }

    fn show(&self, result: Result<Json, CallError>) -> io::Result<Outcome> {
        let error = match result {
            Ok(value) => {
                match (self.format, &value) {
                    (Format::Json, value) => print(&format!("{:#}\n", json!({"result": value})))?,
                    (Format::Text, Json::String(text)) if text.ends_with('\n') => print(text)?,
                    (Format::Text, Json::String(text)) => print(&format!("{text}\n"))?,
                    (Format::Text, value) => print(&format!("{value:#}\n"))?,
                }
                return Ok(Outcome::Success);
            }
            Err(error) => error,
        };
        match self.format {
            Format::Json => {
                let detail = error.detail();
                let error = json!({"kind": error.kind(), "message": error.to_string(), "detail": detail});
                print(&format!("{:#}\n", json!({"error": error})))?;
            }
            Format::Text => {
                diagnostics::error(&error.to_string(), hint(&error).as_deref())?;
                if let Some(detail) = error.detail() {
                    diagnostics::say(&format!("  {}", detail.trim_end().replace('\n', "\n  ")))?;
                }
            }
        }
        Ok(Outcome::Code(match error {
            CallError::Failed { .. } => 1,
            CallError::NotFound { .. } => 3,
            CallError::PermissionDenied { .. } => 4,
            CallError::InvalidInput { .. } => 5,
            CallError::InvalidOutput { .. } => 6,
            CallError::TimedOut { .. } => 7,
            CallError::Cancelled { .. } => 130,
        }))
    }
}

/// Whoever types the name of a tool means it; what changes something is asked about all the same.
pub(crate) fn base_permissions(name: &FullName, tool: &Tool) -> Permissions {
    let decision = if tool.effect == Effect::Writes { Decision::Ask } else { Decision::Allow };
    let does = match tool.effect {
        Effect::Pure => "only computes",
        Effect::Reads => "only reads",
        Effect::Network => "uses the network",
        Effect::Writes => "changes something",
    };
    match Rule::of(decision, name.as_str(), format!("`patter call`, as it {does}")) {
        Ok(rule) => Permissions::default().with(rule),
        Err(_) => Permissions::default(),
    }
}

fn hint(error: &CallError) -> Option<String> {
    match error {
        CallError::PermissionDenied { denial: patter::tool::Denial::NotApproved { .. }, .. } => {
            Some("--yes approves it".to_owned())
        }
        CallError::NotFound { error } if error.hint().is_none() => Some("`patter tools` lists them".to_owned()),
        CallError::InvalidInput { tool, .. } => Some(format!("`patter why {tool}` shows what it takes")),
        _ => None,
    }
}

fn show_progress(event: &ToolEvent<'_>) {
    if let ToolEventKind::Progress(progress) = &event.kind {
        let percent = progress.fraction.map_or_else(String::new, |part| format!("{:>3.0} % ", part * 100.0));
        // Progress is a courtesy: that it cannot be told is no reason to stop.
        let _ = diagnostics::say(&format!("{percent}{}", progress.message));
    }
}

/// Tells of arguments that the tool does not take: it would not notice them.
fn warn_of_unknown(tool: &Tool, arguments: &Json) -> io::Result<()> {
    let parameters = &tool.definition.signature.parameters;
    let unknown = arguments.as_object().into_iter().flat_map(|object| object.keys());
    for name in unknown.filter(|name| !parameters.iter().any(|parameter| parameter.name == **name)) {
        let near = patter::text::nearest(name, parameters.iter().map(|parameter| parameter.name.as_str()));
        let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        diagnostics::say(&format!("warning: `{}` takes no `{name}`{near}", tool.name()))?;
    }
    Ok(())
}

/// The most that is read from stdin.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// Reads the arguments; the error says what is wrong with them.
fn read_arguments(text: &str) -> io::Result<Result<Json, String>> {
    let mut piped = Vec::new();
    let text = if text == "-" {
        io::stdin().lock().take(MOST_BYTES + 1).read_to_end(&mut piped)?;
        piped.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&piped)
    } else {
        text.as_bytes()
    };
    if text.len() as u64 > MOST_BYTES {
        return Ok(Err(format!("the arguments have more than {MOST_BYTES} bytes")));
    }
    Ok(serde_json::from_slice(text).map_err(|error| format!("the arguments are no JSON: {error}")))
}
