//! `patter run`: asks an agent.

use crate::talk::{Format, Opening, SessionOptions, TalkOptions, Terminal, listener, show_nothing};
use crate::{Outcome, diagnostics};
use clap::Args;
use std::io::{self, Read};
use std::sync::Arc;

/// Run an agent: it answers a prompt, and calls its tools on the way
///
/// The answer streams to stdout; tool calls and a summary go to stderr. Before a token is spent, the tools are bound and
/// the key is looked for. `--model demo` runs without a key and without a network: it is no language model, but picks
/// tools by the words of the prompt.
///
/// What happens is kept as a session, step by step: --continue goes on with the conversation, and `patter resume` with a
/// run that was ended half way.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter run examples/hello.gram \"Hello! My name is Alice.\" --model demo\n  \
                        patter run examples/hello.gram \"What is my name?\" --continue\n  \
                        git diff | patter run review.gram - --output-format json\n  \
                        patter run shop.gram#clerk \"Refund order 7\" --ask 'shop/refund'")]
pub(crate) struct Run {
    /// File with the agent; without a name the one that no other of the file calls
    #[arg(value_name = "FILE[#AGENT]")]
    agent: String,

    /// What to say to it; - reads stdin
    #[arg(default_value = "-")]
    prompt: String,

    /// How to show what happens
    #[arg(long, value_enum, default_value_t = Format::Text)]
    output_format: Format,

    #[command(flatten)]
    session: SessionOptions,

    #[command(flatten)]
    talk: TalkOptions,
}

/// How much of stdin is read.
const MOST_INPUT: u64 = 16 * 1024 * 1024;

impl Run {
    pub(crate) fn run(self) -> io::Result<Outcome> {
        let prompt = match self.prompt.as_str() {
            "-" => {
                let mut text = String::new();
                io::stdin().lock().take(MOST_INPUT + 1).read_to_string(&mut text)?;
                if text.len() as u64 > MOST_INPUT {
                    let message = format!("stdin has more than {} MiB, which is too much to say", MOST_INPUT >> 20);
                    diagnostics::error(&message, Some("put it into a file that the agent reads with a tool"))?;
                    return Ok(Outcome::Failure);
                }
                text
            }
            prompt => prompt.to_owned(),
        };
        let (format, opening) = (self.output_format, Opening::default());
        let approver = Terminal { yes: self.talk.yes, repeat: false };
        let shown = listener(format, Arc::clone(&opening));
        let Some(mut talk) = self.talk.open(&self.agent, &self.session, shown, approver)? else {
            return show_nothing(format, "ConfigurationError", "the agent cannot be run; stderr says why");
        };
        let Some(compiled) = talk.ready()? else {
            return show_nothing(format, "ToolError", "the agent is not ready to run; stderr says why");
        };
        if let Some(id) = talk.session.id() {
            let _ = opening.set(id.to_string());
        }
        let (runtime, stop) = (&talk.toolset.runtime, &talk.toolset.stop);
        let done = runtime.block_on(talk.session.say(&prompt, stop));
        talk.end(format, done, &compiled)
    }
}
