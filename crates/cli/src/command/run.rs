//! `patter run`: runs an agent.

use super::Command;
use crate::attach::{Message, piped_input};
use crate::error::{CommandError, CommandResult, ErrorFormat};
use crate::file::{Input, read_stdin, unreadable};
use crate::format::{FormatOption, OutputFormat, RunFormat};
use crate::session::{Opening, RunOptions, SessionOptions, TerminalApprover, listener, session_line};
use crate::setup::split_agent;
use crate::ui::ThoughtLines;
use clap::Args;
use patter::run::StartError;
use patter::session::SessionError;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Run an agent: it answers a prompt, and calls its tools on the way
///
/// The answer streams to stdout; tool calls and a summary go to stderr. Before a token is spent, the tools are bound and
/// the API key is checked. `--model demo` needs neither a key nor a network: it is not a language model, and picks tools
/// by the words of the prompt.
///
/// Each step is stored in a session: --continue continues the conversation, and `patter resume` an interrupted run.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter run examples/hello.gram \"Hello! My name is Alice.\" --model demo\n  \
                        patter run examples/hello.gram \"What is my name?\" --continue\n  \
                        git diff | patter run review.gram \"Review this\" --format json\n  \
                        patter run look.gram \"What is this?\" --attach photo.png\n  \
                        patter run shop.gram#clerk \"Refund order 7\" --ask 'shop/refund'")]
pub(crate) struct Run {
    /// File containing the agent; by default its top-level agent, which no other agent calls
    #[arg(value_name = "FILE[#AGENT]")]
    agent: String,

    /// Prompt; - reads it from stdin. What is piped in beside a prompt is added to it
    #[arg(default_value = "-")]
    prompt: String,

    /// Attach a file: an image, a PDF document or text; may be repeated
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,

    #[command(flatten)]
    format: FormatOption<RunFormat>,

    #[command(flatten)]
    session: SessionOptions,

    #[command(flatten)]
    options: RunOptions,
}

/// The maximum length of a prompt from stdin, in bytes.
const MAX_PROMPT: u64 = 16 * 1024 * 1024;
/// The maximum size of what is piped in beside a prompt, in bytes.
const MAX_PIPED: usize = 16 * 1024 * 1024;

impl Command for Run {
    fn error_format(&self) -> ErrorFormat {
        self.format.format.error_format()
    }

    fn run(&self) -> CommandResult {
        let (file, _) = split_agent(&self.agent);
        if !file.exists() && looks_like_file(&self.prompt) {
            let error = unreadable(&Input::Path(file), &io::ErrorKind::NotFound.into());
            let hint = format!("the file comes first: `patter run {} \"{}\"`", self.prompt, self.agent);
            return Err(error.with_hint(hint));
        }
        let message = self.message()?;
        // Nothing else is wrong before the input is.
        if message.input.is_empty() {
            let error = CommandError::from(SessionError::from(StartError::EmptyInput));
            return Err(error.with_hint(format!("pass a prompt: `patter run {} \"…\"`", self.agent)));
        }
        let format = self.format.format;
        let opening = Opening::default();
        let approver = TerminalApprover { yes: self.options.yes, ..TerminalApprover::default() };
        let listener = listener(format, ThoughtLines::new(self.options.thinking), Arc::clone(&opening));
        let mut open = self.options.open(&self.agent, &self.session, format.streamed_replies(), listener, approver)?;
        let compiled = open.compile()?;
        let session = open.session.id().map(|id| session_line(id.as_str()));
        let _ = opening.set(session.into_iter().chain(open.overrides.events()).collect());
        open.session.add_contents(&message.contents);
        let run = open.perform(async |session, interrupt| session.say(message.input, interrupt).await);
        open.finish(format, run, &compiled)
    }
}

impl Run {
    /// Reads the message: the prompt, the files, and what is piped in.
    fn message(&self) -> Result<Message, CommandError> {
        let mut message = match self.prompt.as_str() {
            "-" => Message::new(read_prompt(&self.agent)?),
            prompt => Message::new(prompt),
        };
        for path in &self.attach {
            message.attach_file(path)?;
        }
        // A prompt that is empty by mistake is not replaced by whatever stdin is.
        if self.prompt != "-" && !self.prompt.trim().is_empty() && split_agent(&self.agent).0.exists() {
            piped_input(&mut message, MAX_PIPED)?;
        }
        Ok(message)
    }
}

/// Returns whether a prompt is the name of a file with agents.
fn looks_like_file(prompt: &str) -> bool {
    let (file, _) = split_agent(prompt);
    file.extension().is_some_and(|ending| ending == "gram") && file.is_file()
}

/// Reads the prompt from stdin. A missing file is reported before anything is typed or read.
fn read_prompt(agent: &str) -> Result<String, CommandError> {
    let (file, _) = split_agent(agent);
    if let Err(error) = std::fs::metadata(&file) {
        let error = unreadable(&Input::Path(file), &error);
        let is_prompt = agent.contains(char::is_whitespace);
        return Err(error.with_hint_if(is_prompt.then_some("name a file before the prompt: `patter run FILE \"…\"`")));
    }
    let bytes = read_stdin("the prompt", MAX_PROMPT)
        .map_err(|error| error.with_hint("put it into a file that the agent reads with a tool"))?;
    String::from_utf8(bytes).map_err(|_| {
        CommandError::failure("the prompt on stdin is not UTF-8 text").with_hint("convert it to UTF-8 first")
    })
}
