//! `patter chat`: a conversation with an agent.

mod approve;
mod changes;
mod edit;
mod history;
mod save;
mod slash;

use super::Command;
use crate::attach::{Message, mentions};
use crate::error::{CommandError, CommandResult, Outcome};
use crate::session::{OpenSession, RunOptions, SessionOptions, run_failure, unsaved_hint};
use crate::ui::style::{BOLD, DIM};
use crate::ui::{Input, Screen, ThoughtLines, Typed, columns, is_interactive, nonzero, plural};
use approve::{ChatApprover, ask};
use clap::Args;
use patter::compile::CompiledAgent;
use patter::drive::StreamedReplies;
use patter::message::conversation;
use patter::project::Environment;
use patter::run::{self, FailureKind, Run};
use patter::session::{Session, SessionError};
use patter::tool::CancellationToken;
use slash::Slash;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// Chat with an agent
///
/// Each step of the conversation is stored in a session: --continue continues the last one. Agent files may be edited
/// meanwhile; before the next turn you are asked whether to use the new version.
///
/// Enter sends. Alt-Enter or a backslash at the end of a line starts a new line, and so does everything between two `"""`;
/// pasted text stays one message. `@photo.png` or `@"my photo.png"` attaches a file. The arrows and Ctrl-R search the history, Tab completes commands and files. Ctrl-C clears the
/// line, or stops the turn: completed steps are kept. Ctrl-D quits. If stdin is not a terminal, each of its lines is a
/// message, and stdout carries only the answers.
#[derive(Args)]
#[command(after_help = "In the conversation:\n  \
                        /tools   tools the agent may call    /undo   undo the last exchange\n  \
                        /why     what a tool name refers to  /fork   continue in a new session\n  \
                        /model   show or change the model    /clear  start over\n  \
                        /cost    tokens and cost so far      /edit   write in $EDITOR\n  \
                        /save    save to a file              /help   all commands\n\n\
                        Examples:\n  \
                        patter chat examples/hello.gram --model demo\n  \
                        patter chat shop.gram#clerk --continue --ask 'shop/refund'\n  \
                        printf 'Hello!\\n/save chat.md\\n' | patter chat hello.gram --store none")]
pub(crate) struct Chat {
    /// File containing the agent; by default its top-level agent, which no other agent calls
    #[arg(value_name = "FILE[#AGENT]")]
    agent: String,

    #[command(flatten)]
    session: SessionOptions,

    #[command(flatten)]
    options: RunOptions,
}

/// The time between two frames of the progress indicator.
const TICK: Duration = Duration::from_millis(100);

impl Command for Chat {
    fn run(&self) -> CommandResult {
        let is_interactive = is_interactive();
        let screen = Arc::new(Screen::new(is_interactive, ThoughtLines::new(self.options.thinking)));
        let approver = ChatApprover::new(self.options.yes, is_interactive.then(|| Arc::clone(&screen)));
        let shown = Arc::clone(&screen);
        let listener = move |event: &_| shown.show(event);
        let streamed = StreamedReplies::Outermost;
        let open = self.options.open(&self.agent, &self.session, streamed, listener, approver)?;
        let input = match is_interactive {
            true => Input::terminal(history(), Slash::names())?,
            false => Input::pipe(),
        };
        let runtime = open.toolset.runtime.handle().clone();
        let conversation =
            Conversation { open, screen, input, runtime, is_interactive, draft: String::new(), has_failed: false };
        conversation.run()
    }
}

/// Returns the file of the input history.
fn history() -> Option<PathBuf> {
    let environment = Environment::from_process();
    let state = environment.get("XDG_STATE_HOME").filter(|state| !state.is_empty()).map(PathBuf::from);
    let home = || environment.get("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    state.or_else(home).map(|state| state.join("patter/history"))
}

/// A conversation in progress.
struct Conversation {
    open: OpenSession,
    screen: Arc<Screen>,
    input: Input,
    runtime: Handle,
    is_interactive: bool,
    /// The initial text of the next message.
    draft: String,
    has_failed: bool,
}

/// Whether the conversation continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Continue,
    End,
}

impl Conversation {
    fn run(mut self) -> CommandResult {
        let compiled = self.open.compile()?;
        (self.open.agents.models())(compiled.model())?;
        self.greet(&compiled)?;
        if self.is_interactive {
            self.show_past()?;
        }
        if self.settle_unfinished_run()? == Flow::End {
            return Ok(Outcome::Findings);
        }
        // Between turns Ctrl-C is a key. One that was pressed just before stops nothing.
        self.begin_turn();
        let mut is_leaving = false;
        loop {
            let names = self.tool_names();
            let stop = self.open.toolset.stop.clone();
            let draft = std::mem::take(&mut self.draft);
            let next = stop.run_until_cancelled(self.input.next(&draft, names));
            let Some(typed) = self.runtime.block_on(next) else { break };
            match typed? {
                Typed::Message(text) if self.handle(&text)? == Flow::Continue => is_leaving = false,
                Typed::Interrupted { was_empty } if !(was_empty && is_leaving) => {
                    is_leaving = was_empty;
                    if was_empty {
                        self.note("press Ctrl-C again to quit, or Ctrl-D")?;
                    }
                }
                _ => break,
            }
            if stop.is_cancelled() {
                break;
            }
        }
        self.finish()
    }

    /// Shows the agent and the session.
    fn greet(&mut self, compiled: &CompiledAgent) -> io::Result<()> {
        if !self.is_interactive {
            return Ok(());
        }
        let messages = self.open.session.conversation().len();
        let parts = [
            Some(compiled.model().to_string()),
            Some(plural(compiled.spec().tools.len(), "tool")),
            self.open.session.id().map(|id| format!("session {id}")).or(Some("not saved".to_owned())),
            nonzero(messages, "message"),
            Some("/help".to_owned()),
        ];
        let agent = compiled.name();
        let mut head = format!("{BOLD}{agent}{BOLD:#}{DIM}");
        let mut column = agent.chars().count();
        for part in parts.into_iter().flatten() {
            let width = part.chars().count() + 3;
            let is_full = column + width > columns();
            head.push_str(if is_full { "\n" } else { " · " });
            head.push_str(&part);
            column = if is_full { width } else { column + width };
        }
        self.screen.note(&format!("{head}{DIM:#}"))
    }

    /// Resumes or drops an unfinished run, as the person decides.
    fn settle_unfinished_run(&mut self) -> Result<Flow, CommandError> {
        if self.open.session.read_log(|log| log.open_run().is_none()) {
            return Ok(Flow::Continue);
        }
        if !self.is_interactive {
            return Err(SessionError::UnfinishedRun.into());
        }
        self.screen.note("the last run of this session has not finished")?;
        match self.ask(&[('r', "resume it"), ('d', "drop it"), ('q', "quit")]) {
            Some('r') => {
                let token = self.begin_turn();
                let run = self.wait_for(async |session| session.resume(&token).await);
                self.finish_turn(run, "")?;
                Ok(Flow::Continue)
            }
            Some('d') => {
                let token = self.begin_turn();
                let abandoned = self.wait_for(async |session| token.run_until_cancelled(session.abandon()).await);
                abandoned.flatten().ok_or_else(CommandError::interrupted)??;
                self.note("dropped; calls in progress were cancelled")?;
                Ok(Flow::Continue)
            }
            _ => Ok(Flow::End),
        }
    }

    /// Asks a question that is answered by a key.
    fn ask(&self, answers: &[(char, &str)]) -> Option<char> {
        let answer = self.runtime.block_on(self.begin_turn().run_until_cancelled(ask(&self.screen, answers)));
        // A question that was stopped leaves its line open.
        let _ = self.screen.end();
        answer.flatten()
    }

    /// Handles what was typed: a command, or a message to the agent. Errors are reported, and the conversation
    /// continues.
    fn handle(&mut self, text: &str) -> io::Result<Flow> {
        let result = match Slash::parse(text) {
            _ if text.trim().is_empty() => Ok(Flow::Continue),
            None => return self.turn(text).map(|()| Flow::Continue),
            Some(command) => command.and_then(|command| self.perform(command)),
        };
        result.or_else(|error| self.report(error).map(|()| Flow::Continue))
    }

    /// Sends a message to the agent.
    fn turn(&mut self, text: &str) -> io::Result<()> {
        if let Err(error) = self.settle_changes() {
            return self.return_message(error, text);
        }
        if let Err(error) = self.open.session.prepare(None) {
            return self.return_message(error.into(), text);
        }
        let message = match self.message(text) {
            Ok(message) => message,
            Err(error) => return self.return_message(error, text),
        };
        let token = self.begin_turn();
        self.open.session.add_contents(&message.contents);
        let run = self.wait_for(async |session| session.say(message.input, &token).await);
        self.finish_turn(run, text)
    }

    /// Returns a message with the files that it mentions. A mention of no file stays text.
    fn message(&self, text: &str) -> Result<Message, CommandError> {
        let mut message = Message::new(text);
        let home = self.open.agents.environment().get("HOME");
        for mention in mentions(text, home.as_deref()) {
            match std::fs::metadata(&mention.path) {
                Ok(found) if found.is_dir() => {
                    self.note(&format!("`@{}` is a folder, and is sent as text", mention.name))?;
                }
                Ok(_) => message.attach_file(&mention.path)?,
                Err(_) if mention.looks_like_path() => {
                    self.note(&format!("there is no file `{}`, so `@{0}` is sent as text", mention.name))?;
                }
                Err(_) => {}
            }
        }
        if !message.input.attachments.is_empty() {
            let attached: Vec<_> = message.input.attachments.iter().map(ToString::to_string).collect();
            self.note(&format!("attached {}", attached.join(", ")))?;
        }
        Ok(message)
    }

    /// Waits for a turn, with a progress indicator: `None` if a signal suspends it.
    fn wait_for<T>(&mut self, work: impl AsyncFnOnce(&mut Session) -> T) -> Option<T> {
        let screen = Arc::clone(&self.screen);
        let done = CancellationToken::new();
        let _guard = done.clone().drop_guard();
        self.runtime.spawn(done.run_until_cancelled_owned(async move {
            let mut ticks = tokio::time::interval(TICK);
            loop {
                ticks.tick().await;
                screen.tick();
            }
        }));
        let suspend = self.open.toolset.signals.suspend.clone();
        self.runtime.block_on(suspend.run_until_cancelled(work(&mut self.open.session)))
    }

    /// Returns the token that Ctrl-C cancels: that of a turn at a terminal, that of the program in a script.
    fn begin_turn(&self) -> CancellationToken {
        let interrupt = &self.open.toolset.signals.interrupt;
        if self.is_interactive { self.open.toolset.turn.begin(interrupt) } else { interrupt.clone() }
    }

    /// Shows how a turn ended: `None` if a signal suspended it.
    fn finish_turn(&mut self, run: Option<Result<Run, SessionError>>, text: &str) -> io::Result<()> {
        let Some(run) = run else {
            // The terminal may be gone.
            let _ = self.report_suspended();
            return Ok(());
        };
        self.screen.end()?;
        let run = match run {
            Ok(run) => run,
            Err(error) => return self.return_message(error.into(), text),
        };
        match run.outcome() {
            Some(run::RunOutcome::Answer { .. }) => {}
            Some(run::RunOutcome::Failed(failure)) => {
                let hint = match failure.kind {
                    FailureKind::ModelCalls => {
                        "raise the limit with --max-turns; /undo removes your message".to_owned()
                    }
                    FailureKind::Store => self.open.session.id().map_or_else(
                        || "/save writes the conversation to a file".to_owned(),
                        |id| unsaved_hint(id.as_str(), &self.open.resume_options),
                    ),
                    _ => "/undo removes your message, so that you can send it again".to_owned(),
                };
                self.report(run_failure(failure.kind.name(), &failure.to_string(), Some(&hint)))?;
            }
            Some(run::RunOutcome::Cancelled) | None => {
                self.has_failed = true;
                let kept =
                    if has_partial_answer(&run) { "the partial answer is kept" } else { "completed steps are kept" };
                self.note(&format!("stopped; {kept} (/undo removes it all)"))?;
            }
        }
        if self.is_interactive { self.note(&format!("{}\n", self.summary(&run))) } else { Ok(()) }
    }

    /// Reports that a signal suspended the turn, once everything is saved.
    fn report_suspended(&self) -> io::Result<()> {
        let is_saved = self.open.wait_until_saved();
        self.screen.end()?;
        match self.open.resume_command().filter(|_| is_saved) {
            Some(resume) => self.note(&format!("the turn is not finished; resume it with `{resume}`")),
            None => self.note("the turn is not finished, and is not stored"),
        }
    }

    /// Returns what a turn used, and what the conversation cost so far.
    fn summary(&self, run: &Run) -> String {
        let usage = run.usage();
        let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        let seconds = Duration::from_millis(run.elapsed_ms()).as_secs_f64();
        let cost = Some(self.open.tally.bill()).filter(|cost| !cost.is_empty());
        let parts = [
            nonzero(run.response().tools_used.len(), "tool call"),
            nonzero(usize::try_from(tokens).unwrap_or(usize::MAX), "token"),
            Some(format!("{seconds:.1} s")),
            cost.map(|cost| format!("{cost} in total")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Reports why a message was not sent, and offers it for editing.
    fn return_message(&mut self, error: CommandError, text: &str) -> io::Result<()> {
        text.clone_into(&mut self.draft);
        self.report(error)
    }

    /// Reports an error that does not end the conversation.
    fn report(&mut self, mut error: CommandError) -> io::Result<()> {
        self.has_failed = true;
        error.print_problem()
    }

    /// Shows a note beside the conversation.
    fn note(&self, text: &str) -> io::Result<()> {
        self.screen.note(&format!("{DIM}{text}{DIM:#}"))
    }

    fn tool_names(&mut self) -> Vec<String> {
        match self.open.session.prepare(None) {
            Ok((_, compiled)) => compiled.spec().tools.iter().map(|tool| tool.name.clone()).collect(),
            Err(_) => Vec::new(),
        }
    }

    fn finish(self) -> CommandResult {
        if self.open.toolset.stop.is_cancelled() {
            return Ok(Outcome::Interrupted);
        }
        if let (true, Some(id), 1..) = (self.is_interactive, self.open.session.id(), self.open.session.turns()) {
            self.note(&format!("resume with --session {id}"))?;
        }
        // A person has seen what failed; a script needs the exit code. A conversation that is not kept always fails.
        let is_lost = self.open.session.save_error().is_some();
        Ok(Outcome::from_findings(is_lost || self.has_failed && !self.is_interactive))
    }
}

/// Returns whether a run that was stopped ends with a part of an answer.
fn has_partial_answer(run: &Run) -> bool {
    matches!(run.new_messages().next_back(), Some(conversation::Message::Assistant { calls, .. }) if calls.is_empty())
}
