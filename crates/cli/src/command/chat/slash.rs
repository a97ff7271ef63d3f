//! Slash commands of the conversation.

use super::history::list_messages;
use super::{Conversation, Flow};
use crate::error::CommandError;
use crate::inspect::Resolution;
use crate::ui::style::{ACCENT, BAD, BOLD, CAUTION, GOOD};
use crate::ui::{self, columns, line_width, pad, width, with_hanging_text};
use patter::drive::{RunEvent, Tally, now_ms};
use patter::message::conversation::Message;
use patter::name::FullName;
use patter::permission::{Decision, DecisionReason};
use patter::provider::{ModelRef, ModelRefError};
use patter::run::CallTarget;
use patter::session::{Playback, SessionError};
use patter::store::{SessionId, StoreError};
use std::io;
use std::sync::Arc;

/// A slash command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Slash {
    Help,
    Tools,
    Why(String),
    Messages,
    Undo,
    /// Into a new session, with this many messages.
    Fork(Option<usize>),
    Save(String),
    /// Shows the model, or changes it.
    Model(Option<String>),
    /// Starts over in a new session.
    Clear,
    Cost,
    /// Opens a text in the editor.
    Edit(String),
    Quit,
}

const COMMANDS: [(&str, &str, &str); 12] = [
    ("/help", "", "show this list"),
    ("/tools", "", "tools the agent may call, and their permissions"),
    ("/why", "NAME", "what the name of a tool refers to"),
    ("/messages", "", "the conversation, with numbered messages"),
    ("/model", "[NAME]", "show the model, or use another from now on"),
    ("/cost", "", "tokens and cost of this session so far"),
    ("/edit", "[TEXT]", "write your next message in $EDITOR"),
    ("/undo", "", "undo the last exchange, and edit your message"),
    ("/fork", "[N]", "continue in a new session, with the first N messages or all"),
    ("/clear", "", "start over in a new session; this one is kept"),
    ("/save", "FILE", "write the conversation as Markdown, or as JSON to FILE.json"),
    ("/quit", "", "quit; so does Ctrl-D"),
];

impl Slash {
    /// Returns the names of all commands.
    pub(super) fn names() -> Vec<String> {
        COMMANDS.iter().map(|(name, ..)| (*name).to_owned()).collect()
    }

    /// Parses a command; returns nothing for other text, such as the path `/etc/hosts` or text after a space.
    pub(super) fn parse(text: &str) -> Option<Result<Self, CommandError>> {
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
            Err(CommandError::usage(message).with_hint_if(hint))
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
                Err(_) => usage(&format!("`{number}` is not a message number")),
            },
            ("/save", "") => usage("to which file?"),
            ("/save", file) => Ok(Self::Save(file.to_owned())),
            ("/model", "") => Ok(Self::Model(None)),
            ("/model", name) => Ok(Self::Model(Some(name.to_owned()))),
            ("/clear", "") => Ok(Self::Clear),
            ("/cost", "") => Ok(Self::Cost),
            ("/edit", text) => Ok(Self::Edit(text.to_owned())),
            ("/quit" | "/exit" | "/q", "") => Ok(Self::Quit),
            ("/help" | "/tools" | "/messages" | "/undo" | "/clear" | "/cost" | "/quit", _) => {
                usage(&format!("`{name}` takes no arguments"))
            }
            (unknown, _) => {
                let near = patter::text::nearest(unknown, COMMANDS.iter().map(|(name, ..)| *name));
                let hint = match near {
                    Some(near) => format!("did you mean `{near}`? Start with a space to send it to the agent"),
                    None => "/help lists all commands; start with a space to send it to the agent".to_owned(),
                };
                Err(CommandError::usage(format!("unknown command `{unknown}`")).with_hint(hint))
            }
        })
    }
}

impl Conversation {
    /// Performs a command. An error is reported and does not end the conversation.
    pub(super) fn perform(&mut self, command: Slash) -> Result<Flow, CommandError> {
        match command {
            Slash::Help => self.show(&help())?,
            Slash::Tools => self.tools()?,
            Slash::Why(name) => self.why(&name)?,
            Slash::Messages => self.show(&list_messages(&self.open.session.conversation()))?,
            Slash::Undo => self.undo()?,
            Slash::Fork(number) => self.fork(number)?,
            Slash::Save(file) => self.save(&file)?,
            Slash::Model(name) => self.model(name.as_deref())?,
            Slash::Clear => self.clear()?,
            Slash::Cost => self.cost()?,
            Slash::Edit(text) => self.edit(&text)?,
            Slash::Quit => return Ok(Flow::End),
        }
        Ok(Flow::Continue)
    }

    /// Shows the result of a command. In a pipe stdout carries only the answers of the agent, so it goes to stderr.
    fn show(&self, text: &str) -> io::Result<()> {
        if self.is_interactive { ui::print(text) } else { ui::status(text.trim_end()) }
    }

    fn tools(&mut self) -> Result<(), CommandError> {
        let (driver, compiled) = self.open.session.prepare(None)?;
        let permissions = driver.permissions(&compiled);
        let tools = &compiled.spec().tools;
        if tools.is_empty() {
            return Ok(self.note("the agent has no tools")?);
        }
        let names = tools.iter().map(|tool| width(&tool.name)).max().unwrap_or(0);
        let mut out = String::new();
        for tool in tools {
            let (bound, full) = match &tool.target {
                CallTarget::Agent { name } => (format!("the agent `{name}`"), FullName::parse(&tool.name).ok()),
                CallTarget::Client => ("the client".to_owned(), None),
                CallTarget::Person => ("a person".to_owned(), None),
                CallTarget::Tool { name, .. } => {
                    let layer = driver.library().resolve(name.as_str()).map(|entry| entry.layer.name());
                    (format!("{name}, {} layer", layer.unwrap_or("unknown")), Some(name.clone()))
                }
            };
            let verdict = full.as_ref().map(|full| permissions.decide(full, &serde_json::Map::new()));
            let (decision, because) = match &verdict {
                Some(verdict) => (verdict.decision, because(&verdict.reason)),
                None => (Decision::Deny, String::new()),
            };
            let style = match decision {
                Decision::Allow => GOOD,
                Decision::Ask => CAUTION,
                Decision::Deny => BAD,
            };
            let name = pad(&tool.name, names);
            let decision = decision.name();
            let lead = format!("  {ACCENT}{name}{ACCENT:#}  {style}{decision:<5}{style:#}  ");
            out.push_str(&with_hanging_text(&lead, names + 11, &format!("{bound}; {because}"), line_width()));
        }
        Ok(self.show(&out)?)
    }

    fn why(&mut self, name: &str) -> Result<(), CommandError> {
        let (driver, compiled) = self.open.session.prepare(None)?;
        let agent = Some(compiled.declaration());
        let resolution = Resolution { tool: name, project: driver.project(), library: driver.library(), agent };
        let (text, is_valid) = resolution.describe(|_| driver.permissions(&compiled));
        self.has_failed |= !is_valid;
        Ok(self.show(&text)?)
    }

    fn undo(&mut self) -> Result<(), CommandError> {
        let token = self.begin_turn();
        let undone = self.wait_for(async |session| token.run_until_cancelled(session.undo()).await);
        match undone.flatten().ok_or_else(CommandError::interrupted)?? {
            None => self.note("nothing to undo")?,
            Some(text) if self.is_interactive => {
                self.note(&match ui::nonzero(self.open.session.conversation().len(), "message") {
                    Some(left) => format!("undone; {left} left"),
                    None => "undone; the conversation is now empty".to_owned(),
                })?;
                self.draft = text;
            }
            Some(text) => self.note(&format!("undone: {}", ui::one_line(&text, columns())))?,
        }
        Ok(())
    }

    fn fork(&mut self, number: Option<usize>) -> Result<(), CommandError> {
        let conversation = self.open.session.conversation();
        let count = number.unwrap_or(conversation.len());
        // A fork must not separate a call from its result, so the next message is one of the user.
        let is_between = conversation.get(count).is_none_or(|next| matches!(next, Message::User { .. }));
        if count <= conversation.len() && !is_between {
            let error = CommandError::failure(format!("message {count} is within an exchange"));
            return Err(error.with_hint("/messages shows where exchanges end"));
        }
        let target = self.open.store.as_ref().map(|store| (Arc::clone(store), SessionId::new(now_ms())));
        let from = self.open.session.id();
        let forked = self.open.session.fork(count, target);
        self.open.session = forked.map_err(|error| match error {
            error @ SessionError::NoMessage { .. } => CommandError::from(error).with_hint("/messages lists them"),
            error => error.into(),
        })?;
        let messages = ui::plural(count, "message");
        let name = |id: Option<SessionId>| id.map_or("an unsaved session".to_owned(), |id| format!("session {id}"));
        Ok(self.note(&format!("now in {}, with {messages} of {}", name(self.open.session.id()), name(from)))?)
    }

    /// Starts over in a new session.
    fn clear(&mut self) -> Result<(), CommandError> {
        let before = self.open.session.id();
        let target = self.open.store.as_ref().map(|store| (Arc::clone(store), SessionId::new(now_ms())));
        self.open.session = self.open.session.fork(0, target)?;
        Ok(self.note(&match (self.open.session.id(), before) {
            (Some(id), Some(before)) => format!("now in session {id}; the conversation so far is session {before}"),
            _ => "the conversation is now empty".to_owned(),
        })?)
    }

    /// Shows the model, or changes it after checking that it can be called.
    fn model(&mut self, name: Option<&str>) -> Result<(), CommandError> {
        let (_, compiled) = self.open.session.prepare(None)?;
        let current = compiled.model().clone();
        let Some(name) = name else { return Ok(self.show(&format!("{current}\n"))?) };
        let model: ModelRef = name
            .parse()
            .map_err(|error: ModelRefError| CommandError::usage(error.to_string()).with_hint_if(error.hint()))?;
        (self.open.agents.models())(&model)?;
        self.open.session.set_model(model.clone());
        if let Err(error) = self.open.compile() {
            // An agent may need something that the model does not have.
            self.open.session.set_model(current);
            return Err(error);
        }
        Ok(self.note(&format!("now using {model}"))?)
    }

    /// Shows what the session used and cost, including what happened before it was continued.
    fn cost(&mut self) -> Result<(), CommandError> {
        let whole = Tally::new(self.open.agents.config().prices());
        let tally = match self.open.store.as_ref().zip(self.open.session.id()) {
            Some((store, id)) => {
                let entries = match self.runtime.block_on(store.read(&id)) {
                    Ok(stored) => stored.entries,
                    // A session is created with its first message.
                    Err(StoreError::NotFound { .. }) => Vec::new(),
                    Err(error) => return Err(error.into()),
                };
                events(&entries).iter().for_each(|event| whole.record(event));
                &whole
            }
            None => &*self.open.tally,
        };
        let usage = tally.usage();
        let cost = match tally.cost() {
            Some(cost) => format!("{cost} at current prices"),
            None => "cost unknown: set the price of the model under [prices] in patter.toml".to_owned(),
        };
        let messages = ui::plural(self.open.session.conversation().len(), "message");
        let input = usage.input_tokens;
        let output = usage.output_tokens;
        Ok(self.show(&format!("{messages}, {input} input tokens, {output} output tokens, {cost}\n"))?)
    }
}

/// Returns the events of a stored session.
fn events(entries: &[String]) -> Vec<RunEvent> {
    let mut playback = Playback::default();
    let entries = entries.iter().map_while(|entry| serde_json::from_str(entry).ok());
    entries.map_while(|entry| playback.play(entry).ok()).flatten().collect()
}

fn help() -> String {
    /// The width of names and arguments.
    const LEAD: usize = 20;
    let mut out = String::new();
    for (name, argument, what) in COMMANDS {
        let lead = format!("  {BOLD}{name:<9}{BOLD:#} {argument:<6}  ");
        out.push_str(&with_hanging_text(&lead, LEAD, what, line_width()));
    }
    let keys = [
        ("Alt-Enter", "new line; also \\ at the end of a line, or text between \"\"\""),
        ("Ctrl-R", "search the history; the arrows step through it"),
        ("Ctrl-C", "clear the line, or stop the turn; completed steps are kept"),
    ];
    for (key, what) in keys {
        let lead = format!("  {BOLD}{key:<9}{BOLD:#}         ");
        out.push_str(&with_hanging_text(&lead, LEAD, what, line_width()));
    }
    out
}

fn because(because: &DecisionReason<'_>) -> String {
    match because {
        DecisionReason::Rule(rule) => format!("`{rule}` in {}", rule.origin),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn commands_are_parsed() {
        let table = [
            ("/help", Slash::Help),
            ("/why  fs/readFile ", Slash::Why("fs/readFile".to_owned())),
            ("/fork", Slash::Fork(None)),
            ("/fork 2", Slash::Fork(Some(2))),
            ("/save my talk.md", Slash::Save("my talk.md".to_owned())),
            ("/exit", Slash::Quit),
        ];
        for (text, expected) in table {
            assert_eq!(Slash::parse(text).unwrap().unwrap(), expected, "{text}");
        }
        for text in ["hello", " /help", "/etc/hosts is what?", "/help\nme", "a /help"] {
            assert!(Slash::parse(text).is_none(), "{text}");
        }
        let table = [
            ("/tool", "unknown command `/tool`", "did you mean `/tools`?"),
            ("/fork two", "`two` is not a message number", "/fork [N]: "),
            ("/save", "to which file?", "/save FILE: "),
            ("/undo it", "`/undo` takes no arguments", "/undo: "),
        ];
        for (text, message, hint) in table {
            let error = Slash::parse(text).unwrap().unwrap_err();
            assert_eq!(error.message(), message);
            assert!(error.hint().unwrap().starts_with(hint), "{error:?}");
        }
    }
}
