//! `patter resume`: goes on with a run that was ended half way.

use crate::talk::{Format, Opening, TalkOptions, Terminal, listener, say_error};
use crate::{Outcome, diagnostics};
use clap::Args;
use std::io;
use std::sync::Arc;

/// Go on with a run that was ended half way
///
/// What has finished is not done again: the replies of the model, and the results of tools, are those that were kept. A
/// call that was under way is made again if its tool is idempotent; else you are asked, since nobody knows whether it was
/// made.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter resume\n  \
                        patter resume 20261115-1930 --repeat\n  \
                        patter resume --abandon")]
pub(crate) struct Resume {
    /// Session, by its id or the beginning of it; without one the last that has a run that has not ended
    session: Option<String>,

    /// File with the agent, where it is not the one that the session began with
    #[arg(long, value_name = "FILE[#AGENT]")]
    file: Option<String>,

    /// Make calls again that were under way, without asking
    #[arg(long, conflicts_with = "abandon")]
    repeat: bool,

    /// Give the run up instead: its open calls are cancelled, and the conversation can go on
    #[arg(long)]
    abandon: bool,

    /// How to show what happens
    #[arg(long, value_enum, default_value_t = Format::Text)]
    output_format: Format,

    #[command(flatten)]
    talk: TalkOptions,
}

impl Resume {
    pub(crate) fn run(self) -> io::Result<Outcome> {
        let (format, opening) = (self.output_format, Opening::default());
        let approver = Terminal { yes: self.talk.yes, repeat: self.repeat };
        let shown = listener(format, Arc::clone(&opening));
        let talk = self.talk.reopen(self.session.as_deref(), self.file.as_deref(), shown, approver)?;
        let Some(mut talk) = talk else { return Ok(Outcome::Failure) };
        let id = talk.session.id().map(|id| id.to_string());
        if let Some(id) = &id {
            let _ = opening.set(id.clone());
        }
        let (runtime, stop) = (&talk.toolset.runtime, &talk.toolset.stop);
        if self.abandon {
            if let Err(error) = runtime.block_on(talk.session.abandon()) {
                say_error(&error)?;
                return Ok(Outcome::Failure);
            }
            diagnostics::say(&format!("the run of session {} is given up", id.unwrap_or_default()))?;
            return Ok(Outcome::Success);
        }
        let was = talk.session.with_log(|log| log.run().map(|run| run.spec().clone()));
        let compiled = match talk.session.ready(was.as_ref().map(|was| was.agent.as_str())) {
            Ok((_, compiled)) => compiled,
            Err(error) => {
                say_error(&error)?;
                return Ok(Outcome::Failure);
            }
        };
        if was.is_some_and(|was| was.hash != compiled.spec().hash) {
            let message = "the agent changed since the run began; it goes on with what it is now";
            diagnostics::warning(message)?;
        }
        let done = runtime.block_on(talk.session.resume(stop));
        talk.end(format, done, &compiled)
    }
}
