//! `patter replay`: replays a recorded run, or compares it with the current agent.

use super::Command;
use crate::argument::{ModelArgument, parse_model};
use crate::error::{CommandError, CommandResult, ErrorFormat, Outcome};
use crate::format::{FormatOption, OutputFormat, RunFormat};
use crate::inspect::UsedOverrides;
use crate::place::Place;
use crate::session::{Opening, finish_run, listener, session_line};
use crate::setup::{Intent, Rules, Setup, ToolSources, split_agent};
use crate::ui;
use crate::ui::ThoughtLines;
use crate::ui::style::{BAD, GOOD};
use clap::Args;
use patter::drive::{Driver, ReplayCompareError, RunEventKind, Tally};
use patter::message::conversation::Message;
use patter::message::request::TemplateTool;
use patter::model::model_resolver_with_config;
use patter::project::{Config, ServerSelection};
use patter::provider::ModelRef;
use patter::session::replay::{Difference, OnDifference, ReplayComparison};
use patter::session::{LogEntry, Playback, Recording, RecordingError};
use serde_json::{Value as Json, json};
use similar::{ChangeTag, TextDiff};
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Replay a recorded run, or show where an edited agent would have behaved differently
///
/// Without --agent this shows the run as `patter run` did: the same output on stdout, in the same pieces. It needs no
/// agent, tools, network or key. Costs are computed with current prices.
///
/// With --agent nothing is called either: at each recorded model call, the current request is compared with the recorded
/// one, and after each reply the decisions about its tool calls. Exits with 1 if something differs, or if the recording is
/// incomplete.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter run hello.gram \"I am Ada\" --record ada.jsonl\n  \
                        patter replay ada.jsonl\n  \
                        patter replay ada.jsonl --format stream-json\n  \
                        patter replay ada.jsonl --agent hello.gram --all")]
pub(crate) struct Replay {
    /// Recording, made with --record or `patter sessions export --format recording`
    recording: PathBuf,

    #[command(flatten)]
    format: FormatOption<RunFormat>,

    /// Compare with this agent: where would it have behaved differently?
    #[arg(long, value_name = "FILE[#AGENT]")]
    agent: Option<String>,

    /// Continue after a difference, as if the recorded replies had come anyway
    #[arg(long, requires = "agent")]
    all: bool,

    /// Model of the agent; by default the one named when it was recorded, or else the agent's own
    #[arg(long, value_name = "MODEL", requires = "agent", value_parser = parse_model)]
    model: Option<ModelArgument>,

    #[command(flatten)]
    rules: Rules,

    #[command(flatten)]
    sources: ToolSources,
}

const CUT_SHORT: &str = "the recording ends before the run does";
const EMPTY: &str = "the recording contains no run";

impl Command for Replay {
    fn error_format(&self) -> ErrorFormat {
        self.format.format.error_format()
    }

    fn run(&self) -> CommandResult {
        if self.agent.is_none() && (self.rules.is_given() || self.sources.is_given()) {
            let error = CommandError::usage("rules and tools apply only to a comparison");
            return Err(error.with_hint("name the agent to compare with: --agent FILE"));
        }
        let recording =
            Recording::read(&self.recording).map_err(|error| unreadable_recording(&self.recording, error))?;
        match &self.agent {
            Some(agent) => self.compare(agent, recording),
            None => play(recording, self.format.format),
        }
    }
}

/// Returns the error of a file that is not a recording, or of something else that was taken for one.
fn unreadable_recording(path: &Path, error: RecordingError) -> CommandError {
    let name = path.display().to_string();
    match &error {
        RecordingError::File { error, .. } if error.kind() == io::ErrorKind::NotFound => {
            let error =
                CommandError::failure(format!("cannot read `{name}`: no such file")).with_place(Place::file(name));
            error.with_hint(
                "name a file written by `patter run --record FILE`, or by `patter sessions export ID --format recording -o FILE`",
            )
        }
        RecordingError::File { .. } => CommandError::from(error).with_place(Place::file(name)),
        _ => {
            let message = format!("cannot replay `{name}`: {error}");
            CommandError::from(error).with_message(message).with_place(Place::file(name))
        }
    }
}

impl Replay {
    fn compare(&self, agent: &str, recording: Recording) -> CommandResult {
        let (file, name) = split_agent(agent);
        let servers = ServerSelection::ForAgent(name.map(str::to_owned));
        let setup = Setup::read(&[file], &self.sources, &servers, Intent::Describe)?;
        let agent = setup.agent(name)?;
        let rules = self.rules.checked(&setup)?;
        let Setup { config, loaded, toolset, .. } = setup;
        let models = model_resolver_with_config(&toolset.environment, &config.models);
        let driver = Driver::new(Arc::new(loaded.project), Arc::clone(&toolset.library), models).with_rules(rules);
        let named = self.model.as_ref().map(ModelArgument::resolve).transpose()?;
        let driver = match named.or_else(|| recorded_model(&recording)) {
            Some(model) => driver.with_model(model),
            None => driver,
        };
        let is_cut = recording.is_truncated;
        let after = if self.all { OnDifference::Continue } else { OnDifference::Stop };
        let compiled = driver.compile(&agent)?;
        let mut compared = driver.compare(&compiled, recording.entries, after).map_err(|error| match error {
            ReplayCompareError::Compile(error) => error.into(),
            ReplayCompareError::Log(error) => damaged(&error),
        })?;
        compared.is_truncated |= is_cut;
        self.report(&compared)
    }

    fn report(&self, compared: &ReplayComparison) -> CommandResult {
        let error = match compared {
            ReplayComparison { divergences, .. } if !divergences.is_empty() => None,
            ReplayComparison { is_truncated: true, .. } => {
                Some(CommandError::failure(CUT_SHORT).with_hint("the rest of the run could not be compared"))
            }
            ReplayComparison { turns: 0, .. } => Some(CommandError::failure(EMPTY)),
            _ => None,
        };
        match (self.format.format, error) {
            (RunFormat::Json, Some(error)) => return Err(error.with_document(json!(compared))),
            (RunFormat::Json, None) => ui::print(&format!("{:#}\n", json!(compared)))?,
            (RunFormat::Text, error) => {
                ui::print(&describe(compared, self.all))?;
                error.map_or(Ok(()), Err)?;
            }
            (RunFormat::StreamJson, error) => {
                ui::print(&format!("{}\n", json!(compared)))?;
                error.map_or(Ok(()), Err)?;
            }
        }
        Ok(Outcome::from_findings(!compared.divergences.is_empty()))
    }
}

/// Returns the model that was named on the recorded command line, if one was.
fn recorded_model(recording: &Recording) -> Option<ModelRef> {
    let source = recording.entries.iter().find_map(|entry| match entry {
        LogEntry::Opened { selection } => Some(selection),
        _ => None,
    });
    source?.model.as_ref()?.parse().ok()
}

fn damaged(error: &impl std::fmt::Display) -> CommandError {
    CommandError::failure(format!("the recording is damaged: {error}"))
}

/// Shows what was recorded.
fn play(recording: Recording, format: RunFormat) -> CommandResult {
    let root = patter::project::find_root();
    let prices = Config::read(root.as_deref()).unwrap_or_default().prices();
    let session = recording.session.as_deref();
    let opening = Opening::default();
    if let Some(id) = session {
        let _ = opening.set(vec![session_line(id)]);
    }
    let show = listener(format, ThoughtLines::default(), opening);
    let mut playback = Playback::default();
    let mut tally = Tally::new(prices.clone());
    let mut result: Option<CommandResult> = None;
    for entry in recording.entries {
        for event in playback.play(entry).map_err(|error| damaged(&error))? {
            tally.record(&event);
            show(&event);
            if let (RunEventKind::Finished { .. }, 0, Some(run)) = (&event.kind, event.depth, playback.log().last_run())
            {
                // The error of an earlier run does not end the replay; only that of the last decides how it exits.
                if let Some(Err(error)) = result.replace(finish_run(
                    format,
                    run,
                    playback.bindings(),
                    tally.bill(),
                    session,
                    "",
                    &UsedOverrides::default(),
                )) {
                    error.print(format.error_format())?;
                }
                tally = Tally::new(prices.clone());
            }
        }
    }
    let is_cut = recording.is_truncated || playback.log().open_run().is_some();
    match result {
        Some(result) if !is_cut => result,
        Some(Err(error)) => {
            error.print(format.error_format())?;
            Err(CommandError::failure(CUT_SHORT))
        }
        _ if is_cut => Err(CommandError::failure(CUT_SHORT)),
        _ => Err(CommandError::failure(EMPTY)),
    }
}

/// Describes for people how a recording compares with an agent.
fn describe(compared: &ReplayComparison, all: bool) -> String {
    let mut text = format!("identical: {}\n", ui::plural(compared.identical, "model call"));
    for divergence in &compared.divergences {
        let _ = writeln!(text, "\n{}:", divergence.location);
        for difference in &divergence.differences {
            let _ = writeln!(text, "  {difference}");
            let (then, now) = texts(difference);
            text.push_str(&line_diff(&then, &now));
        }
    }
    if !compared.divergences.is_empty() {
        text.push_str(if all {
            "\neverything after the first difference assumes the recorded replies; the model may have replied differently\n"
        } else {
            "\nthe model's reply to the changed request is unknown; --all continues with the recorded one\n"
        });
    }
    text
}

/// Returns the recorded and the current text of a difference.
fn texts(difference: &Difference) -> (String, String) {
    let pretty = |value: &Json| format!("{value:#}");
    match difference {
        Difference::Instruction { then, now } => (then.clone(), now.clone()),
        Difference::ToolChanged { then, now } => {
            let schema = |tool: &TemplateTool, other: &TemplateTool| {
                if tool.schema == other.schema { String::new() } else { pretty(&tool.schema) }
            };
            let text = |tool: &TemplateTool, schema: String| format!("{}\n{schema}", tool.description);
            (text(then, schema(then, now)), text(now, schema(now, then)))
        }
        Difference::ToolOrder { then, now } => (then.join("\n"), now.join("\n")),
        Difference::Returns { then: Some(then), now: Some(now) } => (pretty(then), pretty(now)),
        Difference::Conversation { then, now, .. } => {
            let text = |message: &Option<Message>| {
                message.as_ref().map_or_else(String::new, |message| pretty(&json!(message)))
            };
            (text(then), text(now))
        }
        _ => (String::new(), String::new()),
    }
}

/// Returns the lines that differ.
fn line_diff(then: &str, now: &str) -> String {
    let mut text = String::new();
    // The last line is the same with and without a line break.
    let ended = |text: &str| if text.is_empty() { String::new() } else { format!("{text}\n") };
    let then = ended(then);
    let now = ended(now);
    for change in TextDiff::from_lines(then.as_str(), now.as_str()).iter_all_changes() {
        let line = change.value().trim_end();
        let _ = match change.tag() {
            ChangeTag::Equal => Ok(()),
            ChangeTag::Delete => writeln!(text, "    {BAD}- {line}{BAD:#}"),
            ChangeTag::Insert => writeln!(text, "    {GOOD}+ {line}{GOOD:#}"),
        };
    }
    text
}
