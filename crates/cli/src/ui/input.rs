//! Messages of a conversation: edited at a terminal, or read from a pipe.

use super::output::{Control, control, has_stdout_styles};
use super::terminal::KEYBOARD;
use super::text::{escape, is_dangerous};
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
use std::io::{self, BufRead, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use tokio::sync::oneshot;

/// The maximum number of history entries.
const MAX_HISTORY: usize = 1000;
/// The maximum length of a message, in bytes.
const MAX_MESSAGE: u64 = 16 * 1024 * 1024;
/// Encloses a message of several lines.
const QUOTES: &str = "\"\"\"";
/// How many files of a folder are looked at to complete a name.
const MAX_COMPLETED: usize = 10_000;
const PROMPT: &str = "› ";
const PROMPT_STYLE: Style = AnsiColor::Green.on_default().bold();

/// What was typed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    Message(String),
    /// Ctrl-C.
    Interrupted {
        /// Whether the line was empty.
        was_empty: bool,
    },
    /// Ctrl-D, or the end of the pipe.
    End,
}

/// A source of messages. A thread of its own reads them, so that the program can stop while it waits.
pub(crate) struct Input {
    requests: mpsc::Sender<Request>,
    /// The original settings of the terminal.
    before: Option<Termios>,
}

/// A request for the next message.
struct Request {
    /// The initial text of the line.
    initial: String,
    /// The tool names to complete after `/why`.
    names: Vec<String>,
    typed: oneshot::Sender<io::Result<Typed>>,
}

impl Input {
    /// Returns a line editor with a history file and completion of commands.
    pub(crate) fn terminal(history: Option<PathBuf>, commands: Vec<String>) -> io::Result<Self> {
        let before = tcgetattr(io::stdin()).ok();
        let mut lines = LineEditor::new(history, commands)?;
        let requests = spawn_reader(move |request| {
            let _guard = KEYBOARD.lock().unwrap_or_else(PoisonError::into_inner);
            lines.read(&request.initial, &request.names)
        });
        Ok(Self { requests, before })
    }

    /// Returns a reader of stdin.
    pub(crate) fn pipe() -> Self {
        Self { requests: spawn_reader(|_| read_piped(&mut io::stdin().lock())), before: None }
    }

    /// Waits for the next message, with an initial text and names to complete.
    pub(crate) async fn next(&self, initial: &str, names: Vec<String>) -> io::Result<Typed> {
        let (typed, answer) = oneshot::channel();
        let request = Request { initial: initial.to_owned(), names, typed };
        if self.requests.send(request).is_err() {
            return Ok(Typed::End);
        }
        answer.await.unwrap_or(Ok(Typed::End))
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        // The line editor has no chance to restore the terminal if the program stops in the middle of a line.
        if let Some(before) = &self.before {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
            let _ = control(Control::EndPasteMode);
        }
    }
}

/// Starts a thread that reads a message for each request.
fn spawn_reader(mut read: impl FnMut(&Request) -> io::Result<Typed> + Send + 'static) -> mpsc::Sender<Request> {
    let (sender, receiver) = mpsc::channel::<Request>();
    std::thread::spawn(move || {
        while let Ok(request) = receiver.recv() {
            let typed = read(&request);
            if request.typed.send(typed).is_err() {
                break;
            }
        }
    });
    sender
}

/// Reads a message: a line, lines joined by a backslash at their end, or text between triple quotes.
fn read_piped(input: &mut impl BufRead) -> io::Result<Typed> {
    let mut input = input.take(MAX_MESSAGE + 1);
    let mut text = String::new();
    loop {
        let read = input.read_line(&mut text)?;
        if text.len() as u64 > MAX_MESSAGE {
            return Err(io::Error::other(format!("a message is longer than {} MiB", MAX_MESSAGE >> 20)));
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

/// Returns a text that continues on the next line, without its backslash.
fn continued(text: &str) -> Option<&str> {
    text.strip_suffix('\\').filter(|rest| !rest.ends_with('\\') && !text.trim_start().starts_with(QUOTES))
}

/// Returns whether triple quotes are open.
fn is_open(text: &str) -> bool {
    text.trim().strip_prefix(QUOTES).is_some_and(|rest| !rest.ends_with(QUOTES))
}

/// Returns a message without its triple quotes.
fn unquoted(text: &str) -> String {
    let inner = text.trim().strip_prefix(QUOTES).and_then(|rest| rest.strip_suffix(QUOTES));
    inner.map_or(text, |inner| inner.trim_matches('\n')).to_owned()
}

/// The line editor.
struct LineEditor {
    editor: Editor<Completion, FileHistory>,
    history: Option<PathBuf>,
    was_empty: Arc<AtomicBool>,
    continued: ContinuedLines,
}

impl LineEditor {
    fn new(history: Option<PathBuf>, commands: Vec<String>) -> io::Result<Self> {
        let config = Config::builder()
            .max_history_size(MAX_HISTORY)
            .and_then(|config| config.history_ignore_dups(true))
            .map_err(io::Error::other)?
            .history_ignore_space(true)
            .completion_type(CompletionType::List)
            .color_mode(if has_stdout_styles() { ColorMode::Enabled } else { ColorMode::Disabled })
            .bracketed_paste(true)
            .build();
        let mut editor = Editor::with_config(config).map_err(io::Error::other)?;
        editor.set_helper(Some(Completion { commands, names: Vec::new() }));
        let was_empty = Arc::new(AtomicBool::new(true));
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
        let continued = ContinuedLines::default();
        let enter = Enter { continued: Arc::clone(&continued) };
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::NONE), EventHandler::Conditional(Box::new(enter)));
        let interrupt = Interrupt { was_empty: Arc::clone(&was_empty) };
        editor.bind_sequence(KeyEvent::ctrl('C'), EventHandler::Conditional(Box::new(interrupt)));
        if let Some(path) = &history {
            // It does not exist at first, and the chat works without it.
            let _ = editor.load_history(path);
        }
        Ok(Self { editor, history, was_empty, continued })
    }

    fn read(&mut self, initial: &str, names: &[String]) -> io::Result<Typed> {
        if let Some(helper) = self.editor.helper_mut() {
            // The line editor writes to the terminal by itself, so it gets nothing that would have to be escaped.
            helper.names = names.iter().filter(|name| !name.chars().any(is_dangerous)).cloned().collect();
        }
        let initial = escape(initial);
        self.continued.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let prompt = (PROMPT, format!("{PROMPT_STYLE}{PROMPT}{PROMPT_STYLE:#}"));
        match self.editor.readline_with_initial(&prompt, (&initial, "")) {
            Ok(line) => {
                let line = join_continued(&line, &self.continued.lock().unwrap_or_else(PoisonError::into_inner));
                self.add_to_history(&line);
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

    /// Adds a line to the history file at once, so that it is there however the program ends.
    fn add_to_history(&mut self, line: &str) {
        let is_new = !line.trim().is_empty() && self.editor.add_history_entry(line).unwrap_or(false);
        if let (true, Some(path)) = (is_new, &self.history)
            && create_folder(path).is_ok()
        {
            // The chat works without a history.
            let _ = self.editor.append_history(path);
        }
    }
}

fn create_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) => std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder),
        None => Ok(()),
    }
}

/// Handles Enter: after a backslash it starts a new line. Such lines are recorded, so that pasted lines keep their
/// backslashes.
struct Enter {
    continued: ContinuedLines,
}

/// The lines that were continued with a backslash.
type ContinuedLines = Arc<Mutex<Vec<String>>>;

impl ConditionalEventHandler for Enter {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        let is_end = context.pos() == context.line().len();
        if !is_end || continued(context.line()).is_none() {
            return None;
        }
        let line = context.line().rsplit('\n').next().unwrap_or_default().to_owned();
        self.continued.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        Some(Cmd::Newline)
    }
}

/// Removes the backslashes that continued lines.
fn join_continued(text: &str, continued: &[String]) -> String {
    let is_continued = |line: &&str| continued.iter().any(|continued| continued == line);
    let line = |line| if is_continued(&line) { line.strip_suffix('\\').unwrap_or(line) } else { line };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Handles Ctrl-C: records whether the line was empty.
struct Interrupt {
    was_empty: Arc<AtomicBool>,
}

impl ConditionalEventHandler for Interrupt {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        self.was_empty.store(context.line().is_empty(), Ordering::Release);
        None
    }
}

/// Completes commands, tool names after `/why`, and files after `@`.
struct Completion {
    commands: Vec<String>,
    names: Vec<String>,
}

impl Completer for Completion {
    type Candidate = String;

    fn complete(&self, line: &str, position: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = line.get(..position).unwrap_or(line);
        let matching = |all: &[String], typed: &str| all.iter().filter(|one| one.starts_with(typed)).cloned().collect();
        Ok(match typed.strip_prefix("/why ") {
            Some(name) => ("/why ".len(), matching(&self.names, name)),
            None if typed.starts_with('/') => (0, matching(&self.commands, typed)),
            None => files(typed).unwrap_or((position, Vec::new())),
        })
    }
}

/// Returns the files whose names continue the mention at the end of a text, and where their names start.
fn files(typed: &str) -> Option<(usize, Vec<String>)> {
    let start =
        typed.rfind('@').filter(|at| typed.get(..*at).is_some_and(|text| !text.ends_with(char::is_alphanumeric)))?;
    let name = typed.get(start + 1..).filter(|name| !name.contains([' ', '"', '\n']))?;
    let (folder, prefix) = name.rsplit_once('/').map_or(("", name), |(folder, prefix)| (folder, prefix));
    let folder_path = match (folder, name.starts_with('/')) {
        ("", true) => Path::new("/"),
        ("", false) => Path::new("."),
        (folder, _) => Path::new(folder),
    };
    let separator = if name.contains('/') { "/" } else { "" };
    let mut names: Vec<String> = std::fs::read_dir(folder_path)
        .ok()?
        .take(MAX_COMPLETED)
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let file = entry.file_name().into_string().ok()?;
            let is_hidden = file.starts_with('.') && !prefix.starts_with('.');
            let is_plain = !file.chars().any(|c| c.is_whitespace() || is_dangerous(c));
            let end = if entry.path().is_dir() { "/" } else { "" };
            (file.starts_with(prefix) && !is_hidden && is_plain).then(|| format!("{folder}{separator}{file}{end}"))
        })
        .collect();
    names.sort_unstable();
    Some((start + 1, names))
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
    fn names_of_files_are_completed() {
        let found = |typed: &str| files(typed).map(|(start, names)| (start, names.join(" ")));
        assert_eq!(found("See @Car"), Some((5, "Cargo.toml".to_owned())));
        assert_eq!(found("@src/ui/scr"), Some((1, "src/ui/screen.rs".to_owned())));
        assert_eq!(found("@src/u"), Some((1, "src/ui/ src/unsupported.rs".to_owned())));
        for typed in ["Cargo", "ada@Car", "@src/nothing/x", "@Cargo.toml and"] {
            assert_eq!(found(typed), None, "{typed}");
        }
    }

    #[test]
    fn messages_are_read_from_a_pipe() {
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
            let read = std::iter::from_fn(|| match read_piped(&mut input).unwrap() {
                Typed::Message(message) => Some(message),
                _ => None,
            });
            assert_eq!(read.collect::<Vec<_>>(), expected, "{text:?}");
        }
    }
}
