//! Logging to stderr, selected by `-v` and `PATTER_LOG`.

use crate::error::CommandError;
use crate::ui;
use patter::drive::{RunEvent, RunEventKind};
use std::io::{self, Write};
use tracing::{debug, info};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::time::uptime;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

const VARIABLE: &str = "PATTER_LOG";
/// The module that events of runs are logged under.
const RUN: &str = "patter::run";

/// Starts logging: with `-v` what Patter does, with `-vv` in detail, with `-vvv` everything. `PATTER_LOG` takes
/// precedence, with levels by module such as `patter=debug,hyper=info`.
pub(crate) fn init(verbosity: u8) -> Result<(), CommandError> {
    let Some(filter) = filter(verbosity)? else { return Ok(()) };
    let layer = tracing_subscriber::fmt::layer()
        .compact()
        .with_timer(uptime())
        // Fields may be text from anywhere, so that escape sequences of the log could not be told from theirs.
        .with_ansi(false)
        .with_writer(|| LogWriter)
        .with_filter(filter);
    // The subscriber is set once per process.
    let _ = tracing_subscriber::registry().with(layer).try_init();
    Ok(())
}

/// Writes lines of the log to stderr like any other text.
struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        ui::write_stderr(&String::from_utf8_lossy(line))?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn filter(verbosity: u8) -> Result<Option<Targets>, CommandError> {
    if let Some(text) = std::env::var(VARIABLE).ok().filter(|text| !text.trim().is_empty()) {
        let filter: Result<Targets, _> = text.parse();
        return filter.map(Some).map_err(|error| {
            let error = CommandError::usage(format!("`{VARIABLE}` is not a valid log filter: {error}"));
            error.with_hint("use a level such as debug, or levels by module such as patter=debug")
        });
    }
    Ok(match verbosity {
        0 => None,
        1 => Some(patter_at(LevelFilter::INFO)),
        2 => Some(patter_at(LevelFilter::DEBUG)),
        _ => Some(patter_at(LevelFilter::TRACE).with_default(LevelFilter::DEBUG)),
    })
}

fn patter_at(level: LevelFilter) -> Targets {
    // The program, the library and the core; the program is called like the library.
    ["patter", "patter_core", "patter_gram"]
        .into_iter()
        .fold(Targets::new(), |targets, name| targets.with_target(name, level))
}

/// Logs an event of a run.
pub(crate) fn log_event(event: &RunEvent) {
    let agent = event.agent.as_str();
    match &event.kind {
        RunEventKind::Started { model, .. } => info!(target: RUN, agent, model, "run started"),
        RunEventKind::ModelCalled { number } => info!(target: RUN, agent, number, "calling the model"),
        RunEventKind::Waiting { seconds, because } => {
            info!(target: RUN, agent, seconds, because, "waiting before the next request");
        }
        RunEventKind::FellBack { from, to, because } => {
            info!(target: RUN, agent, from, to, because, "calling another model");
        }
        RunEventKind::Compacted { left_out, model, usage, .. } => {
            let input = usage.input_tokens;
            info!(target: RUN, agent, model, left_out, input_tokens = input, "the conversation was compacted");
        }
        RunEventKind::CostUnknown { model } => info!(target: RUN, agent, model, "the cost of a request is not known"),
        RunEventKind::Replied { model, usage, calls, finish } => {
            let input = usage.input_tokens;
            let output = usage.output_tokens;
            info!(target: RUN, agent, model, input_tokens = input, output_tokens = output, tool_calls = calls, finish, "model replied");
        }
        RunEventKind::Incomplete { finish, message } => {
            info!(target: RUN, agent, finish, message, "the reply is incomplete");
        }
        RunEventKind::Asked { tool, call_id, because, .. } => {
            info!(target: RUN, agent, tool, call_id, because, "asking for an approval");
        }
        RunEventKind::ToolStarted { tool, call_id, arguments } => {
            info!(target: RUN, agent, tool, call_id, "calling a tool");
            debug!(target: RUN, call_id, %arguments, "arguments of the call");
        }
        RunEventKind::Sampled { call_id, model, model_calls, usage } => {
            let input = usage.input_tokens;
            let output = usage.output_tokens;
            info!(target: RUN, agent, call_id, model, model_calls, input_tokens = input, output_tokens = output, "the tool called the model");
        }
        RunEventKind::ToolFinished { tool, call_id, outcome, duration_ms, .. } => {
            info!(target: RUN, agent, tool, call_id, duration_ms, succeeded = outcome.is_value(), "tool finished");
        }
        RunEventKind::Finished { error, model_calls, .. } => {
            let error = error.as_ref().map(|error| error.message.as_str());
            info!(target: RUN, agent, model_calls, error, "run finished");
        }
        RunEventKind::Text { .. } | RunEventKind::Thought { .. } | RunEventKind::ToolProgress { .. } => {}
    }
}
