//! What can be done beside talking.

use super::{BOLD, Conversation, Going};
use crate::command::why::Question;
use crate::diagnostics::{self, counted};
use crate::print;
use crate::talk::{DIM, say_error};
use crate::terminal::{columns, cut};
use anstyle::{AnsiColor, Style};
use patter::drive::now;
use patter::message::conversation::Message;
use patter::name::FullName;
use patter::permission::{Because, Decision};
use patter::run::Target;
use patter::session::SessionError;
use patter::store::SessionId;
use std::fmt::Write;
use std::io;
use std::sync::Arc;

/// A command of the conversation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Slash {
    Help,
    Tools,
    Why(String),
    Messages,
    Undo,
    /// Into a new session, with so many messages.
    Fork(Option<usize>),
    Save(String),
    Quit,
}

/// What is no command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unknown {
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

const COMMANDS: [(&str, &str, &str); 8] = [
    ("/help", "", "what can be typed here"),
    ("/tools", "", "what the agent may call, and what becomes of the calls"),
    ("/why", "NAME", "what the name of a tool stands for"),
    ("/messages", "", "the conversation, with the numbers of its messages"),
    ("/undo", "", "take the last exchange back, and edit what was said"),
    ("/fork", "[N]", "go on in a new session, with the first N messages or all"),
    ("/save", "FILE", "write the conversation as Markdown, or as JSON to FILE.json"),
    ("/quit", "", "end; so does Ctrl-D"),
];

const TOOL: Style = AnsiColor::Cyan.on_default();
const GOOD: Style = AnsiColor::Green.on_default();
const ASKED: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default();

impl Slash {
    /// Returns the names of all commands.
    pub(super) fn names() -> Vec<String> {
        COMMANDS.iter().map(|(name, ..)| (*name).to_owned()).collect()
    }

    /// Reads a command; nothing if a text is none. A path such as `/etc/hosts` is none, and neither is what begins with a
    /// space.
    pub(super) fn read(text: &str) -> Option<Result<Self, Unknown>> {
        let text = text.trim_end();
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let is_command = name.strip_prefix('/').is_some_and(|name| name.chars().all(char::is_alphabetic));
        if !is_command || text.contains('\n') {
            return None;
        }
        let rest = rest.trim();
        let usage = |message: &str| {
            let command = COMMANDS.iter().find(|(known, ..)| *known == name);
            let form = |argument: &str| format!("{name} {argument}").trim_end().to_owned();
            let hint = command.map(|(_, argument, what)| format!("{}: {what}", form(argument)));
            Err(Unknown { message: message.to_owned(), hint })
        };
        Some(match (name, rest) {
            ("/help" | "/", "") => Ok(Self::Help),
            ("/tools", "") => Ok(Self::Tools),
            ("/why", "") => usage("which tool?"),
            ("/why", name) => Ok(Self::Why(name.to_owned())),
            ("/messages", "") => Ok(Self::Messages),
            ("/undo", "") => Ok(Self::Undo),
            ("/fork", "") => Ok(Self::Fork(None)),
            ("/fork", number) => match number.parse() {
                Ok(number) => Ok(Self::Fork(Some(number))),
                Err(_) => usage(&format!("`{number}` is no number of a message")),
            },
            ("/save", "") => usage("to which file?"),
            ("/save", file) => Ok(Self::Save(file.to_owned())),
            ("/quit" | "/exit" | "/q", "") => Ok(Self::Quit),
            ("/help" | "/tools" | "/messages" | "/undo" | "/quit", _) => usage(&format!("`{name}` takes nothing")),
            (unknown, _) => {
                let near = patter::text::nearest(unknown, COMMANDS.iter().map(|(name, ..)| *name));
                let hint = match near {
                    Some(near) => format!("did you mean `{near}`? A space before it says it to the agent"),
                    None => "/help lists them; a space before it says it to the agent".to_owned(),
                };
                Err(Unknown { message: format!("there is no command `{unknown}`"), hint: Some(hint) })
            }
        })
    }
}

impl Conversation {
    pub(super) fn obey(&mut self, command: Slash) -> io::Result<Going> {
        match command {
            Slash::Help => self.show(&help())?,
            Slash::Tools => self.tools()?,
            Slash::Why(name) => self.why(&name)?,
            Slash::Messages => self.show(&messages(&self.talk.session.conversation()))?,
            Slash::Undo => self.undo()?,
            Slash::Fork(number) => self.fork(number)?,
            Slash::Save(file) => self.save(&file)?,
            Slash::Quit => return Ok(Going::Ended),
        }
        Ok(Going::On)
    }

    /// Shows what was asked for. Where stdout is for the answers of the agent, it goes beside them.
    fn show(&self, text: &str) -> io::Result<()> {
        if self.is_interactive { print(text) } else { diagnostics::say(text.trim_end()) }
    }

    fn tools(&mut self) -> io::Result<()> {
        let (driver, compiled) = match self.talk.session.ready(None) {
            Ok(ready) => ready,
            Err(error) => return self.not_said(&error, ""),
        };
        let permissions = driver.permissions(&compiled);
        let tools = &compiled.spec().tools;
        if tools.is_empty() {
            return self.note("the agent has no tools");
        }
        let names = tools.iter().map(|tool| tool.name.len()).max().unwrap_or(0);
        let mut out = String::new();
        for tool in tools {
            let (bound, full) = match &tool.target {
                Target::Agent { name } => (format!("the agent `{name}`"), FullName::parse(name).ok()),
                Target::Tool { name, .. } => {
                    let layer = driver.library().resolve(name.as_str()).map(|entry| entry.layer.name());
                    (format!("{name}, {} layer", layer.unwrap_or("unknown")), Some(name.clone()))
                }
            };
            let verdict = full.as_ref().map(|full| permissions.decide(full, &serde_json::Map::new()));
            let (decision, because) = match &verdict {
                Some(verdict) => (verdict.decision, because(&verdict.because)),
                None => (Decision::Deny, String::new()),
            };
            let style = match decision {
                Decision::Allow => GOOD,
                Decision::Ask => ASKED,
                Decision::Deny => BAD,
            };
            let (name, decision) = (&tool.name, decision.name());
            let _ = writeln!(
                out,
                "  {TOOL}{name:<names$}{TOOL:#}  {style}{decision:<5}{style:#}  {bound}{DIM}{because}{DIM:#}"
            );
        }
        self.show(&out)
    }

    fn why(&mut self, name: &str) -> io::Result<()> {
        let (driver, compiled) = match self.talk.session.ready(None) {
            Ok(ready) => ready,
            Err(error) => return self.not_said(&error, ""),
        };
        let agent = driver.agent(compiled.name());
        let question =
            Question { tool: name, project: driver.project(), library: driver.library(), agent: agent.as_ref() };
        let (answer, is_well) = question.answer(|_| driver.permissions(&compiled));
        self.has_failed |= !is_well;
        self.show(&answer)
    }

    fn undo(&mut self) -> io::Result<()> {
        let runtime = self.runtime.clone();
        match runtime.block_on(self.talk.session.undo()) {
            Ok(None) => self.note("there is nothing to take back"),
            Ok(Some(text)) if self.is_interactive => {
                let left = counted(self.talk.session.conversation().len(), "message");
                self.note(&format!("taken back; {} left", left.as_deref().unwrap_or("nothing is")))?;
                self.draft = text;
                Ok(())
            }
            Ok(Some(text)) => self.note(&format!("taken back: {}", cut(&diagnostics::visible(&text), columns()))),
            Err(error) => self.not_said(&error, ""),
        }
    }

    fn fork(&mut self, number: Option<usize>) -> io::Result<()> {
        let conversation = self.talk.session.conversation();
        let count = number.unwrap_or(conversation.len());
        // What comes next is said by the person: a call must not lose its result.
        let is_between = conversation.get(count).is_none_or(|next| matches!(next, Message::User { .. }));
        if count <= conversation.len() && !is_between {
            let hint = "/messages shows where exchanges end";
            return self.fail(&format!("message {count} is within an exchange"), Some(hint));
        }
        let keeping = self.talk.store.as_ref().map(|store| (Arc::clone(store), SessionId::new(now())));
        let from = self.talk.session.id();
        match self.talk.session.fork(count, keeping) {
            Ok(forked) => {
                self.talk.session = forked;
                let messages = counted(count, "message").unwrap_or_else(|| "no messages".to_owned());
                let name = |id: Option<SessionId>| id.map_or("one that is not kept".to_owned(), |id| id.to_string());
                self.note(&format!(
                    "now in session {}, with {messages} of {}",
                    name(self.talk.session.id()),
                    name(from)
                ))
            }
            Err(error @ SessionError::NoMessage { .. }) => self.fail(&error.to_string(), Some("/messages lists them")),
            Err(error) => {
                self.has_failed = true;
                say_error(&error)
            }
        }
    }
}

fn help() -> String {
    let mut out = String::new();
    for (name, argument, what) in COMMANDS {
        let _ = writeln!(out, "  {BOLD}{name:<9}{BOLD:#} {argument:<5}  {what}");
    }
    let keys = [
        ("Alt-Enter", "a new line; also \\ at the end of a line, or all between two \"\"\""),
        ("Ctrl-R", "find what was typed before; the arrows step through it"),
        ("Ctrl-C", "clear the line, or stop the turn; what had finished is kept"),
    ];
    for (key, what) in keys {
        let _ = writeln!(out, "  {BOLD}{key:<9}{BOLD:#}        {what}");
    }
    out
}

fn because(because: &Because<'_>) -> String {
    match because {
        Because::Rule(rule) => format!("  `{rule}` in {}", rule.origin),
        other => format!("  {other}"),
    }
}

/// Writes a line for each message.
fn messages(conversation: &[Message]) -> String {
    let width = columns().saturating_sub(18);
    let mut out = String::new();
    for (index, message) in conversation.iter().enumerate() {
        let (who, text) = match message {
            Message::User { text } => ("you", text.clone()),
            Message::Assistant { text, calls, .. } => {
                let calls: Vec<_> = calls.iter().map(|call| format!("→ {}", call.tool)).collect();
                ("agent", format!("{text} {}", calls.join(" ")))
            }
            Message::Tool { tool, outcome, .. } => ("tool", format!("{tool}: {}", outcome.text())),
        };
        let text = diagnostics::visible(&text).split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = writeln!(out, "{DIM}{:>4}{DIM:#}  {who:<5}  {}", index + 1, cut(&text, width));
    }
    if out.is_empty() { "nothing was said yet\n".to_owned() } else { out }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn commands_are_read() {
        let table = [
            ("/help", Slash::Help),
            ("/why  fs/readFile ", Slash::Why("fs/readFile".to_owned())),
            ("/fork", Slash::Fork(None)),
            ("/fork 2", Slash::Fork(Some(2))),
            ("/save my talk.md", Slash::Save("my talk.md".to_owned())),
            ("/exit", Slash::Quit),
        ];
        for (text, expected) in table {
            assert_eq!(Slash::read(text), Some(Ok(expected)), "{text}");
        }
        for text in ["hello", " /help", "/etc/hosts is what?", "/help\nme", "a /help"] {
            assert_eq!(Slash::read(text), None, "{text}");
        }
        let table = [
            ("/tool", "there is no command `/tool`", "did you mean `/tools`?"),
            ("/fork two", "`two` is no number of a message", "/fork [N]: "),
            ("/save", "to which file?", "/save FILE: "),
            ("/undo it", "`/undo` takes nothing", "/undo: "),
        ];
        for (text, message, hint) in table {
            let unknown = Slash::read(text).unwrap().unwrap_err();
            assert_eq!(unknown.message, message);
            assert!(unknown.hint.as_deref().unwrap().starts_with(hint), "{unknown:?}");
        }
    }
}
