//! What is said in a conversation: lines that are edited at a terminal, or come from a pipe.

use super::KEYBOARD;
use anstyle::{AnsiColor, Style};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{
    Cmd, ColorMode, CompletionType, ConditionalEventHandler, Config, Context, Editor, Event, EventContext,
    EventHandler, Helper, KeyCode, KeyEvent, Modifiers, RepeatCount,
};
use std::io::{self, BufRead, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use tokio::sync::oneshot;

/// How many entries the history has at most.
const MOST_HISTORY: usize = 1000;
/// How much a message has at most, in bytes.
const MOST_BYTES: u64 = 16 * 1024 * 1024;
/// What a message of several lines stands between.
const QUOTES: &str = "\"\"\"";
const PROMPT: &str = "› ";
const PROMPT_STYLE: Style = AnsiColor::Green.on_default().bold();

/// What came of waiting for a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    Message(String),
    /// Ctrl-C, with something in the line or without.
    Interrupted {
        was_empty: bool,
    },
    /// There is nothing more.
    End,
}

/// Where messages come from. A thread of its own waits for them, so that a program that is told to stop does not hang on it.
pub(crate) struct Input {
    wanted: mpsc::Sender<Wanted>,
    /// How the terminal was set before.
    before: Option<Termios>,
}

/// A message that is waited for.
struct Wanted {
    /// What stands in the line already.
    initial: String,
    /// What can be completed after `/why`.
    names: Vec<String>,
    typed: oneshot::Sender<io::Result<Typed>>,
}

impl Input {
    /// Returns an editor of lines, with the history of a file and commands that can be completed.
    pub(crate) fn terminal(history: Option<PathBuf>, commands: Vec<String>) -> io::Result<Self> {
        let before = tcgetattr(io::stdin()).ok();
        let mut lines = Lines::new(history, commands)?;
        let wanted = served(move |wanted| {
            let _held = KEYBOARD.lock().unwrap_or_else(PoisonError::into_inner);
            lines.read(&wanted.initial, &wanted.names)
        });
        Ok(Self { wanted, before })
    }

    /// Returns a reader of lines that nobody edits.
    pub(crate) fn pipe() -> Self {
        Self { wanted: served(|_| piped(&mut io::stdin().lock())), before: None }
    }

    /// Waits for the next message. Some text stands in the line already, and some names can be completed.
    pub(crate) async fn next(&self, initial: &str, names: Vec<String>) -> io::Result<Typed> {
        let (typed, answer) = oneshot::channel();
        let wanted = Wanted { initial: initial.to_owned(), names, typed };
        if self.wanted.send(wanted).is_err() {
            return Ok(Typed::End);
        }
        answer.await.unwrap_or(Ok(Typed::End))
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        // Who is told to stop in the middle of a line leaves the terminal as it was.
        if let Some(before) = &self.before {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
            let _ = io::stdout().write_all(b"\x1b[?2004l");
            let _ = io::stdout().flush();
        }
    }
}

/// Starts a thread that reads one message after the other.
fn served(mut read: impl FnMut(&Wanted) -> io::Result<Typed> + Send + 'static) -> mpsc::Sender<Wanted> {
    let (sender, receiver) = mpsc::channel::<Wanted>();
    std::thread::spawn(move || {
        while let Ok(wanted) = receiver.recv() {
            let typed = read(&wanted);
            if wanted.typed.send(typed).is_err() {
                break;
            }
        }
    });
    sender
}

/// Reads a message: a line, lines that end with a backslash and the one after them, or what stands between three quotes.
fn piped(input: &mut impl BufRead) -> io::Result<Typed> {
    let mut input = input.take(MOST_BYTES + 1);
    let mut text = String::new();
    loop {
        let read = input.read_line(&mut text)?;
        if text.len() as u64 > MOST_BYTES {
            return Err(io::Error::other(format!("a message has more than {} MiB", MOST_BYTES >> 20)));
        }
        if read == 0 {
            return Ok(if text.is_empty() { Typed::End } else { Typed::Message(unquoted(&text)) });
        }
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let line = line.strip_suffix('\r').unwrap_or(line);
        if let Some(continued) = continued(line) {
            text = format!("{continued}\n");
        } else if !is_open(line) {
            return Ok(Typed::Message(unquoted(line)));
        }
    }
}

/// Returns a text that goes on in the next line, without the mark of that.
fn continued(text: &str) -> Option<&str> {
    text.strip_suffix('\\').filter(|rest| !rest.ends_with('\\') && !text.trim_start().starts_with(QUOTES))
}

/// Tells whether three quotes were opened and not closed.
fn is_open(text: &str) -> bool {
    text.trim().strip_prefix(QUOTES).is_some_and(|rest| !rest.ends_with(QUOTES))
}

/// Returns a message without the quotes around it.
fn unquoted(text: &str) -> String {
    let inner = text.trim().strip_prefix(QUOTES).and_then(|rest| rest.strip_suffix(QUOTES));
    inner.map_or(text, |inner| inner.trim_matches('\n')).to_owned()
}

/// The editor of lines.
struct Lines {
    editor: Editor<Completion, FileHistory>,
    history: Option<PathBuf>,
    was_empty: Arc<AtomicBool>,
    marked: Marked,
}

impl Lines {
    fn new(history: Option<PathBuf>, commands: Vec<String>) -> io::Result<Self> {
        let has_color = anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
        let config = Config::builder()
            .max_history_size(MOST_HISTORY)
            .and_then(|config| config.history_ignore_dups(true))
            .map_err(io::Error::other)?
            .history_ignore_space(true)
            .completion_type(CompletionType::List)
            .color_mode(if has_color { ColorMode::Enabled } else { ColorMode::Disabled })
            .bracketed_paste(true)
            .build();
        let mut editor = Editor::with_config(config).map_err(io::Error::other)?;
        editor.set_helper(Some(Completion { commands, names: Vec::new() }));
        let was_empty = Arc::new(AtomicBool::new(true));
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
        let marked = Marked::default();
        let enter = Enter { marked: Arc::clone(&marked) };
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::NONE), EventHandler::Conditional(Box::new(enter)));
        let interrupt = Interrupt { was_empty: Arc::clone(&was_empty) };
        editor.bind_sequence(KeyEvent::ctrl('C'), EventHandler::Conditional(Box::new(interrupt)));
        if let Some(path) = &history {
            // There is none at first; one that cannot be read is no reason not to talk.
            let _ = editor.load_history(path);
        }
        Ok(Self { editor, history, was_empty, marked })
    }

    fn read(&mut self, initial: &str, names: &[String]) -> io::Result<Typed> {
        if let Some(helper) = self.editor.helper_mut() {
            names.clone_into(&mut helper.names);
        }
        self.marked.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let prompt = (PROMPT, format!("{PROMPT_STYLE}{PROMPT}{PROMPT_STYLE:#}"));
        match self.editor.readline_with_initial(&prompt, (initial, "")) {
            Ok(line) => {
                let line = unmarked(&line, &self.marked.lock().unwrap_or_else(PoisonError::into_inner));
                self.remember(&line);
                Ok(Typed::Message(unquoted(&line)))
            }
            Err(ReadlineError::Interrupted) => {
                Ok(Typed::Interrupted { was_empty: self.was_empty.load(Ordering::Acquire) })
            }
            Err(ReadlineError::Eof) => Ok(Typed::End),
            Err(ReadlineError::Io(error)) => Err(error),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    /// Keeps a line in the history at once, so that it is there however the program ends.
    fn remember(&mut self, line: &str) {
        let is_new = !line.trim().is_empty() && self.editor.add_history_entry(line).unwrap_or(false);
        if let (true, Some(path)) = (is_new, &self.history)
            && made_folder(path).is_ok()
        {
            // A history that cannot be written is no reason not to talk.
            let _ = self.editor.append_history(path);
        }
    }
}

fn made_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) => std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder),
        None => Ok(()),
    }
}

/// Ends a line that ends with a backslash, and not the message. Such lines are noted: those that were pasted keep theirs.
struct Enter {
    marked: Marked,
}

/// The lines that were ended by a backslash.
type Marked = Arc<Mutex<Vec<String>>>;

impl ConditionalEventHandler for Enter {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        let is_end = context.pos() == context.line().len();
        if !is_end || continued(context.line()).is_none() {
            return None;
        }
        let line = context.line().rsplit('\n').next().unwrap_or_default().to_owned();
        self.marked.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        Some(Cmd::Newline)
    }
}

/// Returns a text without the backslashes that ended lines.
fn unmarked(text: &str, marked: &[String]) -> String {
    let is_marked = |line: &&str| marked.iter().any(|marked| marked == line);
    let line = |line| if is_marked(&line) { line.strip_suffix('\\').unwrap_or(line) } else { line };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Notes whether there was something in the line.
struct Interrupt {
    was_empty: Arc<AtomicBool>,
}

impl ConditionalEventHandler for Interrupt {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        self.was_empty.store(context.line().is_empty(), Ordering::Release);
        None
    }
}

/// Completes commands, and the names of tools after `/why`.
struct Completion {
    commands: Vec<String>,
    names: Vec<String>,
}

impl Completer for Completion {
    type Candidate = String;

    fn complete(&self, line: &str, position: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = line.get(..position).unwrap_or(line);
        let beginning =
            |all: &[String], typed: &str| all.iter().filter(|one| one.starts_with(typed)).cloned().collect();
        Ok(match typed.strip_prefix("/why ") {
            Some(name) => ("/why ".len(), beginning(&self.names, name)),
            None if typed.starts_with('/') => (0, beginning(&self.commands, typed)),
            None => (position, Vec::new()),
        })
    }
}

impl Validator for Completion {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match is_open(context.input()) {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}

impl Hinter for Completion {
    type Hint = String;
}

impl Highlighter for Completion {}

impl Helper for Completion {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn messages_of_a_pipe() {
        let table: [(&str, &[&str]); 6] = [
            ("", &[]),
            ("a\nb", &["a", "b"]),
            ("a\r\n\nb\n", &["a", "", "b"]),
            ("a\\\nb\\\\\nc", &["a\nb\\\\", "c"]),
            ("\"\"\"\na\n\nb\n\"\"\"\nc\n", &["a\n\nb", "c"]),
            ("\"\"\"never\nclosed", &["\"\"\"never\nclosed"]),
        ];
        for (text, expected) in table {
            let mut input = text.as_bytes();
            let read = std::iter::from_fn(|| match piped(&mut input).unwrap() {
                Typed::Message(message) => Some(message),
                _ => None,
            });
            assert_eq!(read.collect::<Vec<_>>(), expected, "{text:?}");
        }
    }
}
