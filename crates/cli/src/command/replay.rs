//! `patter replay`: shows a recorded run again, or where an agent as it is now would have done otherwise.

use crate::setup::{Rules, Setup, ToolSources, split_agent};
use crate::talk::{Format, Opening, listener, say_error, show_end};
use crate::{Outcome, diagnostics, print};
use anstyle::{AnsiColor, Style};
use clap::Args;
use patter::drive::{CompareError, Driver, RunEventKind, Tally};
use patter::message::conversation::Message;
use patter::model::models_with;
use patter::project::{Config, Servers};
use patter::provider::ModelRef;
use patter::session::replay::{After, Comparison, Difference};
use patter::session::{Entry, Playback, Recording, RecordingError, SessionError};
use serde_json::{Value as Json, json};
use similar::{ChangeTag, TextDiff};
use std::fmt::Write;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Show a recorded run again, or where an edited agent would have done otherwise
///
/// Without --agent this shows the run as `patter run` showed it: the same on stdout, in the same pieces. It needs no agent,
/// no tools, no network and no key. What it cost is told by the prices of now.
///
/// With --agent nothing is called either: at each recorded call of the model, what the agent would ask now is compared with
/// what was asked then, and after each reply what is decided about its calls. Exits with 1 where something differs, and where the
/// recording is incomplete.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter run hello.gram \"I am Ada\" --record ada.jsonl\n  \
                        patter replay ada.jsonl\n  \
                        patter replay ada.jsonl --output-format stream-json\n  \
                        patter replay ada.jsonl --agent hello.gram --all")]
pub(crate) struct Replay {
    /// Recording, made by --record or by `patter sessions export --format recording`
    recording: PathBuf,

    /// How to show it
    #[arg(long, visible_alias = "format", value_enum, default_value_t = Format::Text)]
    output_format: Format,

    /// Compare with this agent instead: where would it have done otherwise?
    #[arg(long, value_name = "FILE[#AGENT]")]
    agent: Option<String>,

    /// Go on after a difference, as if the recorded replies had come all the same
    #[arg(long, requires = "agent")]
    all: bool,

    /// Model of the agent; without it the one that the recorded command named, or else the agent does
    #[arg(long, value_name = "MODEL", requires = "agent")]
    model: Option<ModelRef>,

    #[command(flatten)]
    rules: Rules,

    #[command(flatten)]
    sources: ToolSources,
}

const ENDS_EARLY: &str = "the recording ends before the run does";
const NOTHING: &str = "nothing happens in this recording";
const GONE: Style = AnsiColor::Red.on_default();
const NEW: Style = AnsiColor::Green.on_default();

impl Replay {
    pub(crate) fn run(self) -> io::Result<Outcome> {
        let recording = match Recording::read(&self.recording) {
            Ok(recording) => recording,
            Err(error) => {
                diagnostics::error(&error.to_string(), hint(&error))?;
                return Ok(Outcome::Failure);
            }
        };
        match &self.agent {
            Some(agent) => self.compare(agent, recording),
            None => play(recording, self.output_format),
        }
    }

    fn compare(&self, agent: &str, recording: Recording) -> io::Result<Outcome> {
        let (file, name) = split_agent(agent);
        let Some(setup) = Setup::read(&[file], &self.sources, &Servers::All)? else { return Ok(Outcome::Failure) };
        let Some(agent) = setup.agent(name)? else { return Ok(Outcome::Failure) };
        let Some(rules) = self.rules.all(&setup.config)? else { return Ok(Outcome::Failure) };
        let Setup { config, loaded, toolset, .. } = setup;
        let models = models_with(&toolset.environment, &config.models);
        let driver = Driver::new(Arc::new(loaded.project), Arc::clone(&toolset.library), models).with_rules(rules);
        let driver = match self.model.clone().or_else(|| recorded_model(&recording)) {
            Some(model) => driver.with_model(model),
            None => driver,
        };
        let is_cut = recording.is_cut;
        let after = if self.all { After::GoOn } else { After::Stop };
        let compiled = driver.compile(&agent).map_err(CompareError::from);
        match compiled.and_then(|compiled| driver.compare(&compiled, recording.entries, after)) {
            Ok(mut compared) => {
                compared.is_cut |= is_cut;
                self.report(&compared)
            }
            Err(CompareError::Compile(error)) => {
                say_error(&SessionError::Compile(error))?;
                Ok(Outcome::Failure)
            }
            Err(CompareError::Log(error)) => damaged(&error),
        }
    }

    fn report(&self, compared: &Comparison) -> io::Result<Outcome> {
        match self.output_format {
            Format::Text => print(&described(compared, self.all))?,
            Format::Json => print(&format!("{:#}\n", json!(compared)))?,
            Format::StreamJson => print(&format!("{}\n", json!(compared)))?,
        }
        match compared {
            Comparison { divergences, .. } if !divergences.is_empty() => {}
            Comparison { is_cut: true, .. } => diagnostics::error(ENDS_EARLY, Some("nothing is known of the rest"))?,
            Comparison { turns: 0, .. } => diagnostics::error(NOTHING, None)?,
            _ => return Ok(Outcome::Success),
        }
        Ok(Outcome::Failure)
    }
}

/// Returns the model that was named where the recorded agent was run, if one was.
fn recorded_model(recording: &Recording) -> Option<ModelRef> {
    let source = recording.entries.iter().find_map(|entry| match entry {
        Entry::Opened { source } => Some(source),
        _ => None,
    });
    source?.model.as_ref()?.parse().ok()
}

fn hint(error: &RecordingError) -> Option<&'static str> {
    match error {
        RecordingError::NoRecording => Some("`patter run --record FILE` makes one"),
        RecordingError::Version(_) => Some("replay it with the version of Patter that made it"),
        RecordingError::Line { .. } => Some("the lines before it are whole: cut the file there to replay them"),
        RecordingError::File { .. } | RecordingError::TooLarge => None,
    }
}

fn damaged(error: &impl std::fmt::Display) -> io::Result<Outcome> {
    diagnostics::error(&format!("the recording is damaged: {error}"), None)?;
    Ok(Outcome::Failure)
}

/// Shows what was recorded.
fn play(recording: Recording, format: Format) -> io::Result<Outcome> {
    let root = patter::project::find_root();
    let prices = Config::read(root.as_deref()).unwrap_or_default().prices();
    let (session, opening) = (recording.session.as_deref(), Opening::default());
    if let Some(id) = session {
        let _ = opening.set(id.to_owned());
    }
    let show = listener(format, opening);
    let mut playback = Playback::default();
    let mut tally = Tally::new(prices.clone());
    let mut outcome = None;
    for entry in recording.entries {
        let heard = match playback.play(entry) {
            Ok(heard) => heard,
            Err(error) => return damaged(&error),
        };
        for event in &heard {
            tally.hear(event);
            show(event);
            if let (RunEventKind::Finished { .. }, 0, Some(run)) = (&event.kind, event.depth, playback.log().last()) {
                outcome = Some(show_end(format, run, playback.bindings(), tally.cost(), session)?);
                tally = Tally::new(prices.clone());
            }
        }
    }
    let is_cut = recording.is_cut || playback.log().run().is_some();
    match outcome {
        Some(outcome) if !is_cut => return Ok(outcome),
        _ if is_cut => diagnostics::error(ENDS_EARLY, None)?,
        _ => diagnostics::error(NOTHING, None)?,
    }
    Ok(Outcome::Failure)
}

/// Says for people how a recording compares with an agent.
fn described(compared: &Comparison, all: bool) -> String {
    let same = diagnostics::counted(compared.same, "model call").unwrap_or_else(|| "0 model calls".to_owned());
    let mut text = format!("the same: {same}\n");
    for divergence in &compared.divergences {
        let _ = writeln!(text, "\n{}:", divergence.place);
        for difference in &divergence.differences {
            let _ = writeln!(text, "  {}", diagnostics::visible(&difference.to_string()));
            let (then, now) = shown(difference);
            text.push_str(&line_diff(&then, &now));
        }
    }
    if !compared.divergences.is_empty() {
        text.push_str(if all {
            "\nwhat comes after a difference is only what was recorded: the model may have said something else\n"
        } else {
            "\nwhat the model would have said then is not known; --all goes on with what it said\n"
        });
    }
    text
}

/// Returns texts whose lines show a difference.
fn shown(difference: &Difference) -> (String, String) {
    let pretty = |value: &Json| format!("{value:#}");
    match difference {
        Difference::Instruction { then, now } => (then.clone(), now.clone()),
        Difference::ToolChanged { then, now } => {
            let schema = |tool: &patter::message::request::FramedTool, other: &patter::message::request::FramedTool| {
                if tool.schema == other.schema { String::new() } else { pretty(&tool.schema) }
            };
            let text =
                |tool: &patter::message::request::FramedTool, schema: String| format!("{}\n{schema}", tool.description);
            (text(then, schema(then, now)), text(now, schema(now, then)))
        }
        Difference::ToolOrder { then, now } => (then.join("\n"), now.join("\n")),
        Difference::Returns { then: Some(then), now: Some(now) } => (pretty(then), pretty(now)),
        Difference::Conversation { then, now, .. } => {
            let said = |message: &Option<Message>| {
                message.as_ref().map_or_else(String::new, |message| pretty(&json!(message)))
            };
            (said(then), said(now))
        }
        _ => (String::new(), String::new()),
    }
}

/// Returns the lines that differ.
fn line_diff(then: &str, now: &str) -> String {
    let mut text = String::new();
    // A last line is the same with and without an end.
    let ended = |text: &str| if text.is_empty() { String::new() } else { format!("{text}\n") };
    let (then, now) = (ended(then), ended(now));
    for change in TextDiff::from_lines(then.as_str(), now.as_str()).iter_all_changes() {
        let line = diagnostics::visible(change.value().trim_end());
        let _ = match change.tag() {
            ChangeTag::Equal => Ok(()),
            ChangeTag::Delete => writeln!(text, "    {GONE}- {line}{GONE:#}"),
            ChangeTag::Insert => writeln!(text, "    {NEW}+ {line}{NEW:#}"),
        };
    }
    text
}
