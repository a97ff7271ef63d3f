//! `patter call`: calls one tool.

use super::Command;
use crate::error::{CommandError, CommandResult, ErrorFormat, ErrorKind, INTERRUPTED, Outcome};
use crate::file::read_stdin;
use crate::format::{DataFormat, FormatOption, OutputFormat};
use crate::inspect::{UsedOverrides, call_permissions};
use crate::session::TerminalRespondent;
use crate::setup::{Intent, Rules, Setup, ToolSources, Toolset, until_stopped};
use crate::ui;
use clap::Args;
use patter::permission::{Decision, Permissions};
use patter::project::ServerSelection;
use patter::tool::{
    Approval, CallError, CallHost, CallRequest as ToolCall, Denial, Executor, SharedState, Tool, ToolEvent,
    ToolEventKind,
};
use serde_json::{Value as Json, json};
use std::io::{self, IsTerminal};
use std::sync::Arc;

/// Call a tool as an agent would, with permissions, validation and time limit
///
/// Because you name the tool explicitly, calls that compute, read or use the network are allowed; calls that change
/// something need an approval. Rules of patter.toml and of the command apply too, and the strictest wins.
#[derive(Args)]
#[command(after_help = "Exit codes: 1 the tool failed, 3 no such tool, 4 not permitted, 5 invalid arguments,\n\
                        6 invalid result, 7 timed out, 8 not trusted, 130 interrupted.\n\n\
                        Examples:\n  \
                        patter call sayHello '{\"personName\": \"Ada\"}'\n  \
                        patter call calculator '{\"expression\": \"2^100\"}' --format json\n  \
                        echo '{\"path\": \"a.txt\", \"content\": \"hi\"}' | patter call fs/writeFile - --yes")]
pub(crate) struct Call {
    /// Full or bare name of the tool
    tool: String,

    /// Arguments as a JSON object; - reads them from stdin
    #[arg(value_name = "JSON", default_value = "{}")]
    arguments: String,

    /// Approve the call if it needs an approval
    #[arg(long, short)]
    yes: bool,

    #[command(flatten)]
    format: FormatOption<DataFormat>,

    #[command(flatten)]
    rules: Rules,

    #[command(flatten)]
    sources: ToolSources,
}

impl Command for Call {
    fn error_format(&self) -> ErrorFormat {
        self.format.format.error_format()
    }

    fn run(&self) -> CommandResult {
        let arguments = read_arguments(&self.arguments)?;
        let servers = ServerSelection::ForTool(self.tool.clone());
        let setup = Setup::read(&[], &self.sources, &servers, Intent::Call)?;
        let library = &setup.toolset.library;
        let mut overrides = UsedOverrides::default();
        let permissions = match library.resolve(&self.tool) {
            Ok(entry) => {
                overrides = UsedOverrides::of_tools([&entry.name], library);
                overrides.print()?;
                warn_unknown_arguments(&entry.value, &arguments)?;
                call_permissions(&entry.name, &entry.value)
            }
            Err(_) => Permissions::default(),
        };
        let permissions = permissions.with_all(self.rules.checked(&setup)?);
        let executor = Executor::new(library.clone(), permissions).with_listener(show_progress);
        let host = CallHost(Arc::new(TerminalRespondent));
        let executor = executor.with_state(SharedState::default().with(host));
        let approval = self.approval(&setup.toolset, &executor, &arguments);
        let cancellation = setup.toolset.stop.clone();
        if cancellation.is_cancelled() {
            return Ok(Outcome::Interrupted);
        }
        let call = ToolCall { approval, cancellation, ..ToolCall::new(self.tool.clone(), arguments) };
        match setup.toolset.runtime.block_on(executor.call(call)) {
            Ok(value) => self.show(&value, &overrides),
            // A server that did not start may be why the tool is not found.
            Err(error @ CallError::NotFound { .. }) => {
                Err(call_error(&error).with_details(setup.toolset.missing_servers))
            }
            Err(error) => Err(call_error(&error)),
        }
    }
}

impl Call {
    /// Asks for an approval if one is needed and somebody can be asked.
    fn approval(&self, toolset: &Toolset, executor: &Executor, arguments: &Json) -> Approval {
        if self.yes {
            return Approval::Given;
        }
        let verdict = executor.verdict(&self.tool, arguments);
        let needs_approval = verdict.is_ok_and(|verdict| verdict.decision == Decision::Ask);
        if !needs_approval || !io::stdin().is_terminal() || self.arguments == "-" {
            return Approval::None;
        }
        let question = ui::confirm(format!("call {} with {}?", self.tool, arguments));
        let is_approved = until_stopped(&toolset.runtime, &toolset.stop, question).unwrap_or(false);
        if is_approved { Approval::Given } else { Approval::None }
    }

    fn show(&self, value: &Json, overrides: &UsedOverrides) -> CommandResult {
        match (self.format.format, value) {
            (DataFormat::Json, value) => {
                let mut document = json!({"result": value});
                overrides.add_to(&mut document);
                ui::print(&format!("{document:#}\n"))?;
            }
            (DataFormat::Text, Json::String(text)) if text.ends_with('\n') => ui::print(text)?,
            (DataFormat::Text, Json::String(text)) => ui::print(&format!("{text}\n"))?,
            (DataFormat::Text, value) => ui::print(&format!("{value:#}\n"))?,
        }
        Ok(Outcome::Success)
    }
}

fn call_error(error: &CallError) -> CommandError {
    let code = match error {
        CallError::Failed { .. } => 1,
        CallError::NotFound { .. } => 3,
        CallError::PermissionDenied { .. } => 4,
        CallError::InvalidInput { .. } => 5,
        CallError::InvalidOutput { .. } => 6,
        CallError::TimedOut { .. } => 7,
        CallError::Cancelled { .. } => INTERRUPTED,
    };
    let hint = match error {
        CallError::PermissionDenied { denial: Denial::NotApproved { .. }, .. } => {
            Some("approve it with --yes".to_owned())
        }
        CallError::NotFound { error } if error.hint().is_none() => {
            Some("list all tools with `patter tools`".to_owned())
        }
        CallError::InvalidInput { tool, .. } => Some(format!("see its parameters with `patter why {tool}`")),
        _ => None,
    };
    let kind = ErrorKind::Named { name: error.kind(), code };
    CommandError::new(kind, error.to_string()).with_hint_if(hint).with_output(error.detail())
}

fn show_progress(event: &ToolEvent<'_>) {
    if let ToolEventKind::Progress(progress) = &event.kind {
        let percent = progress.fraction.map_or_else(String::new, |part| format!("{:>3.0}% ", part * 100.0));
        // Progress that cannot be shown does not stop the call.
        let _ = ui::status(&format!("{percent}{}", progress.message));
    }
    if let Some(message) = event.kind.hook_message() {
        let _ = ui::status(&message);
    }
}

/// Warns about arguments that the tool does not have, and would ignore.
fn warn_unknown_arguments(tool: &Tool, arguments: &Json) -> io::Result<()> {
    let parameters = &tool.definition.signature.parameters;
    let given = arguments.as_object().into_iter().flat_map(|object| object.keys());
    for name in given.filter(|name| !parameters.iter().any(|parameter| parameter.name == **name)) {
        let near = patter::text::nearest(name, parameters.iter().map(|parameter| parameter.name.as_str()));
        let names: Vec<_> = parameters.iter().map(|parameter| format!("`{}`", parameter.name)).collect();
        let near = match near {
            Some(near) => format!("; did you mean `{near}`?"),
            None if names.is_empty() => "; it has none".to_owned(),
            None => format!("; it has {}", names.join(", ")),
        };
        ui::warning(&format!("`{}` has no parameter `{name}`{near}", tool.name()))?;
    }
    Ok(())
}

/// The maximum length of the arguments, in bytes.
const MAX_ARGUMENTS: u64 = 16 * 1024 * 1024;

fn read_arguments(text: &str) -> Result<Json, CommandError> {
    let invalid = |message: String| {
        let kind = ErrorKind::Named { name: "invalid_input", code: 5 };
        CommandError::new(kind, message).with_hint("pass an object, such as '{\"personName\": \"Ada\"}'")
    };
    let piped = if text == "-" { Some(read_stdin("the arguments", MAX_ARGUMENTS)?) } else { None };
    let text = match &piped {
        Some(piped) => piped.strip_prefix(b"\xef\xbb\xbf").unwrap_or(piped),
        None => text.as_bytes(),
    };
    if text.len() as u64 > MAX_ARGUMENTS {
        return Err(invalid(format!("the arguments are longer than {} MiB", MAX_ARGUMENTS >> 20)));
    }
    serde_json::from_slice(text).map_err(|error| invalid(format!("the arguments are not valid JSON: {error}")))
}
