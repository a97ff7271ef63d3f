//! `patter resume`: resumes an interrupted run.

use super::Command;
use crate::error::{CommandError, CommandResult, ErrorFormat, Outcome};
use crate::format::{FormatOption, OutputFormat, RunFormat};
use crate::session::{Opening, RunOptions, TerminalApprover, listener, session_line};
use crate::setup::{Toolset, until_stopped};
use crate::ui::{self, ThoughtLines};
use clap::Args;
use serde_json::json;
use std::sync::{Arc, Mutex};

/// Resume an interrupted run
///
/// Completed steps are not repeated: replies of the model and results of tools come from the session. A call that was in
/// progress is repeated if its tool is idempotent; otherwise you are asked, since its outcome is unknown.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter resume\n  \
                        patter resume 20261115-1930 --repeat\n  \
                        patter resume --answer \"Send a refund\"\n  \
                        patter resume --abandon")]
pub(crate) struct Resume {
    /// Session, by its id or the start of it; by default the last with an unfinished run
    session: Option<String>,

    /// File containing the agent, if it is not the one that the session was started with
    #[arg(long, value_name = "FILE[#AGENT]")]
    file: Option<String>,

    /// Repeat calls that were in progress, without asking
    #[arg(long, conflicts_with = "abandon")]
    repeat: bool,

    /// Answer the question that the run waits for, or the first of them
    #[arg(long, value_name = "TEXT", conflicts_with = "abandon")]
    answer: Option<String>,

    /// Abandon the run: cancel its open calls, so that the conversation can continue
    #[arg(long)]
    abandon: bool,

    #[command(flatten)]
    format: FormatOption<RunFormat>,

    #[command(flatten)]
    options: RunOptions,
}

impl Command for Resume {
    fn error_format(&self) -> ErrorFormat {
        self.format.format.error_format()
    }

    fn run(&self) -> CommandResult {
        let format = self.format.format;
        let opening = Opening::default();
        let approver =
            TerminalApprover { yes: self.options.yes, repeat: self.repeat, answer: Mutex::new(self.answer.clone()) };
        let listener = listener(format, ThoughtLines::new(self.options.thinking), Arc::clone(&opening));
        let streamed = format.streamed_replies();
        let mut open =
            self.options.reopen(self.session.as_deref(), self.file.as_deref(), streamed, listener, approver)?;
        let id = open.session.id().map(|id| id.to_string()).unwrap_or_default();
        let _ = opening.set(vec![session_line(&id)]);
        if self.abandon {
            let Toolset { runtime, stop, .. } = &open.toolset;
            until_stopped(runtime, stop, open.session.abandon()).ok_or_else(CommandError::interrupted)??;
            match format {
                RunFormat::Text => ui::status(&format!("abandoned the run of session {id}"))?,
                RunFormat::Json => ui::print(&format!("{:#}\n", json!({"session": id, "abandoned": true})))?,
                RunFormat::StreamJson => ui::print(&format!("{}\n", json!({"event": "abandoned", "session": id})))?,
            }
            return Ok(Outcome::Success);
        }
        let before = open.session.read_log(|log| log.open_run().map(|run| run.spec().clone()));
        let (_, compiled) = open.session.prepare(before.as_ref().map(|before| before.agent.as_str()))?;
        if before.is_some_and(|before| before.hash != compiled.spec().hash) {
            ui::warning("the agent has changed since the run began; it resumes with the current version")?;
        }
        let run = open.perform(async |session, interrupt| session.resume(interrupt).await);
        open.finish(format, run, &compiled)
    }
}
