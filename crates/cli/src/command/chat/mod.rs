//! `patter chat`: a conversation with an agent.

mod approve;
mod save;
mod slash;

use crate::diagnostics::counted;
use crate::talk::{DIM, SessionOptions, Talk, TalkOptions, say_error};
use crate::terminal::{Input, Screen, Typed, columns, is_interactive};
use crate::{Outcome, diagnostics};
use anstyle::Style;
use approve::{InPlace, answered};
use clap::Args;
use patter::agent::CompiledAgent;
use patter::project::Environment;
use patter::run::{self, FailureKind, Run};
use patter::session::SessionError;
use patter::tool::CancellationToken;
use slash::Slash;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// Talk with an agent, turn after turn
///
/// The conversation is kept as a session, step by step: --continue goes on with the last one. Files of agents may be
/// edited meanwhile; the next turn uses what they say by then.
///
/// Enter sends. Alt-Enter or a backslash at the end of a line begins a new one, and so does everything between two `"""`;
/// pasted text stays one message. The arrows and Ctrl-R find what was typed before, Tab completes commands. Ctrl-C clears
/// the line, or stops the turn: what had finished is kept. Ctrl-D ends. When stdin is no terminal, each line of it is a
/// message, and stdout has nothing but the answers.
#[derive(Args)]
#[command(after_help = "In the conversation:\n  \
                        /tools   what the agent may call    /undo  take the last exchange back\n  \
                        /why     what a tool name means     /fork  go on in a new session\n  \
                        /save    write it to a file         /help  all of them\n\n\
                        Examples:\n  \
                        patter chat examples/hello.gram --model demo\n  \
                        patter chat shop.gram#clerk --continue --ask 'shop/refund'\n  \
                        printf 'Hello!\\n/save talk.md\\n' | patter chat hello.gram --store none")]
pub(crate) struct Chat {
    /// File with the agent; without a name the one that no other of the file calls
    #[arg(value_name = "FILE[#AGENT]")]
    agent: String,

    #[command(flatten)]
    session: SessionOptions,

    #[command(flatten)]
    talk: TalkOptions,
}

const BOLD: Style = Style::new().bold();
/// How often what is waited for is drawn again.
const TICK: Duration = Duration::from_millis(100);

impl Chat {
    pub(crate) fn run(self) -> io::Result<Outcome> {
        let is_interactive = is_interactive();
        let screen = Arc::new(Screen::new(is_interactive));
        let approver = InPlace::new(self.talk.yes, is_interactive.then(|| Arc::clone(&screen)));
        let heard = Arc::clone(&screen);
        let listener = move |event: &_| heard.hear(event);
        let Some(talk) = self.talk.open(&self.agent, &self.session, listener, approver)? else {
            return Ok(Outcome::Failure);
        };
        let input = match is_interactive {
            true => Input::terminal(history(&talk.toolset.environment), Slash::names())?,
            false => Input::pipe(),
        };
        let runtime = talk.toolset.runtime.handle().clone();
        let chat = Conversation {
            talk,
            screen,
            input,
            runtime,
            is_interactive,
            hash: String::new(),
            draft: String::new(),
            has_failed: false,
        };
        chat.hold()
    }
}

/// Returns where what was typed is kept.
fn history(environment: &Environment) -> Option<PathBuf> {
    let state = environment.get("XDG_STATE_HOME").filter(|state| !state.is_empty()).map(PathBuf::from);
    let home = || environment.get("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    state.or_else(home).map(|state| state.join("patter/history"))
}

/// A conversation that is being held.
struct Conversation {
    talk: Talk,
    screen: Arc<Screen>,
    input: Input,
    runtime: Handle,
    is_interactive: bool,
    /// The hash of the agent as it was last.
    hash: String,
    /// What stands in the line already when the next message is typed.
    draft: String,
    has_failed: bool,
}

/// Whether the conversation goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Going {
    On,
    Ended,
}

impl Conversation {
    fn hold(mut self) -> io::Result<Outcome> {
        let Some(compiled) = self.talk.ready()? else { return Ok(Outcome::Failure) };
        if let Err(error) = (self.talk.agents.models())(compiled.model()) {
            say_error(&SessionError::Model(error))?;
            return Ok(Outcome::Failure);
        }
        self.begin(&compiled)?;
        if self.settle()? == Going::Ended {
            return Ok(Outcome::Failure);
        }
        // Between turns Ctrl-C is a key; one that comes just before stops nothing.
        self.stoppable();
        let mut is_leaving = false;
        loop {
            let names = self.tool_names();
            let stop = self.talk.toolset.stop.clone();
            let draft = std::mem::take(&mut self.draft);
            let next = stop.run_until_cancelled(self.input.next(&draft, names));
            let Some(typed) = self.runtime.block_on(next) else { break };
            match typed? {
                Typed::Message(text) if self.took(&text)? == Going::On => is_leaving = false,
                Typed::Interrupted { was_empty } if !(was_empty && is_leaving) => {
                    is_leaving = was_empty;
                    if was_empty {
                        self.note("Ctrl-C again ends, and so does Ctrl-D")?;
                    }
                }
                _ => break,
            }
            if stop.is_cancelled() {
                break;
            }
        }
        self.end()
    }

    /// Says who is talked with.
    fn begin(&mut self, compiled: &CompiledAgent) -> io::Result<()> {
        self.hash.clone_from(&compiled.spec().hash);
        if !self.is_interactive {
            return Ok(());
        }
        let messages = self.talk.session.conversation().len();
        let parts = [
            Some(compiled.model().to_string()),
            counted(compiled.spec().tools.len(), "tool").or(Some("no tools".to_owned())),
            self.talk.session.id().map(|id| format!("session {id}")).or(Some("not kept".to_owned())),
            counted(messages, "message"),
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
        self.screen.say(&format!("{head}{DIM:#}"))
    }

    /// Goes on with a run that has not ended, or gives it up, as the person wants it.
    fn settle(&mut self) -> io::Result<Going> {
        if self.talk.session.with_log(|log| log.run().is_none()) {
            return Ok(Going::On);
        }
        if !self.is_interactive {
            say_error(&SessionError::Unfinished)?;
            return Ok(Going::Ended);
        }
        self.screen.say("the last run of this session has not ended")?;
        match self.asked(&[('g', "go on with it"), ('d', "drop it"), ('q', "quit")]) {
            Some('g') => {
                let token = self.stoppable();
                let run = self.perform(async |talk| talk.session.resume(&token).await);
                self.ended(run, "")?;
                Ok(Going::On)
            }
            Some('d') => match self.runtime.clone().block_on(self.talk.session.abandon()) {
                Ok(()) => {
                    self.note("dropped: calls that were under way are cancelled")?;
                    Ok(Going::On)
                }
                Err(error) => {
                    say_error(&error)?;
                    Ok(Going::Ended)
                }
            },
            _ => Ok(Going::Ended),
        }
    }

    /// Asks the person something that is answered by a key.
    fn asked(&self, answers: &[(char, &str)]) -> Option<char> {
        let answer = self.runtime.block_on(self.stoppable().run_until_cancelled(answered(&self.screen, answers)));
        // A question that was stopped leaves its line open.
        let _ = self.screen.end();
        answer.flatten()
    }

    /// Takes what was typed: a command, or something to say to the agent.
    fn took(&mut self, text: &str) -> io::Result<Going> {
        match Slash::read(text) {
            _ if text.trim().is_empty() => Ok(Going::On),
            None => {
                self.turn(text)?;
                Ok(Going::On)
            }
            Some(Ok(command)) => self.obey(command),
            Some(Err(unknown)) => {
                self.fail(&unknown.message, unknown.hint.as_deref())?;
                Ok(Going::On)
            }
        }
    }

    /// Says something to the agent.
    fn turn(&mut self, text: &str) -> io::Result<()> {
        match self.talk.session.ready(None) {
            Ok((_, compiled)) => {
                if self.hash != compiled.spec().hash {
                    self.hash.clone_from(&compiled.spec().hash);
                    self.note("the agent changed")?;
                }
            }
            Err(error) => return self.not_said(&error, text),
        }
        let token = self.stoppable();
        let run = self.perform(async |talk| talk.session.say(text, &token).await);
        self.ended(run, text)
    }

    /// Performs a turn that has begun, and shows what is waited for.
    fn perform<T>(&mut self, work: impl AsyncFnOnce(&mut Talk) -> T) -> T {
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
        let runtime = self.runtime.clone();
        runtime.block_on(work(&mut self.talk))
    }

    /// Begins what Ctrl-C stops: a turn where somebody talks, everything where a script does.
    fn stoppable(&self) -> CancellationToken {
        let stop = &self.talk.toolset.stop;
        if self.is_interactive { self.talk.toolset.turn.begin(stop) } else { stop.clone() }
    }

    /// Shows how a turn ended.
    fn ended(&mut self, run: Result<Run, SessionError>, text: &str) -> io::Result<()> {
        self.screen.end()?;
        let run = match run {
            Ok(run) => run,
            Err(error) => return self.not_said(&error, text),
        };
        match run.outcome() {
            Some(run::RunOutcome::Answer { .. }) => {}
            Some(run::RunOutcome::Failed(failure)) => {
                let hint = match failure.kind {
                    FailureKind::ModelCalls => "--max-turns allows more; /undo takes back what was said",
                    _ => "/undo takes back what was said, so that it can be said again",
                };
                self.fail(&format!("{}: {failure}", failure.kind.name()), Some(hint))?;
            }
            Some(run::RunOutcome::Cancelled) | None => {
                self.has_failed = true;
                self.note("stopped: what had finished is kept, and /undo takes it back")?;
            }
        }
        if self.is_interactive { self.note(&format!("{}\n", self.summary(&run))) } else { Ok(()) }
    }

    /// Returns what a turn took, and what the conversation cost so far.
    fn summary(&self, run: &Run) -> String {
        let usage = run.usage();
        let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        let seconds = Duration::from_millis(run.elapsed_ms()).as_secs_f64();
        let cost = self.talk.tally.cost().filter(|cost| cost.dollars() > 0.0);
        let counts = [
            counted(run.response().tools_used.len(), "tool call"),
            counted(usize::try_from(tokens).unwrap_or(usize::MAX), "token"),
            Some(format!("{seconds:.1} s")),
            cost.map(|cost| format!("{cost} in all")),
        ];
        counts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Says why something was not said, and offers it again.
    fn not_said(&mut self, error: &SessionError, text: &str) -> io::Result<()> {
        self.has_failed = true;
        text.clone_into(&mut self.draft);
        say_error(error)
    }

    /// Says what went wrong.
    fn fail(&mut self, message: &str, hint: Option<&str>) -> io::Result<()> {
        self.has_failed = true;
        diagnostics::error(message, hint)
    }

    /// Says something beside the conversation.
    fn note(&self, text: &str) -> io::Result<()> {
        self.screen.say(&format!("{DIM}{text}{DIM:#}"))
    }

    fn tool_names(&mut self) -> Vec<String> {
        match self.talk.session.ready(None) {
            Ok((_, compiled)) => compiled.spec().tools.iter().map(|tool| tool.name.clone()).collect(),
            Err(_) => Vec::new(),
        }
    }

    fn end(self) -> io::Result<Outcome> {
        if self.talk.toolset.stop.is_cancelled() {
            return Ok(Outcome::Code(130));
        }
        if let (true, Some(id), 1..) = (self.is_interactive, self.talk.session.id(), self.talk.session.turns()) {
            self.note(&format!("--session {id} goes on with this"))?;
        }
        // Who talks sees what went wrong; who runs a script sees the exit code.
        Ok(if self.has_failed && !self.is_interactive { Outcome::Failure } else { Outcome::Success })
    }
}
