//! `patter replay`: shows a recorded run again, or where an agent as it is now would have done otherwise.

use crate::talk::{Format, listener, show_end};
use crate::{Outcome, diagnostics, print};
use clap::Args;
use patter::drive::{Happened, Tally};
use patter::project::Config;
use patter::session::{Playback, Recording, RecordingError};
use serde_json::json;
use std::io;
use std::path::PathBuf;

/// Show a recorded run again, or where an edited agent would have done otherwise
///
/// Without --agent this shows the run as `patter run` showed it: the same on stdout, in the same pieces. It needs no agent,
/// no tools, no network and no key. What it cost is told by the prices of now.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter run hello.gram \"I am Ada\" --record ada.jsonl\n  \
                        patter replay ada.jsonl\n  \
                        patter replay ada.jsonl --output-format stream-json")]
pub(crate) struct Replay {
    /// Recording, made by --record or by `patter sessions export --format recording`
    recording: PathBuf,

    /// How to show what happens
    #[arg(long, value_enum, default_value_t = Format::Text)]
    output_format: Format,
}

impl Replay {
    pub(crate) fn run(self) -> io::Result<Outcome> {
        let recording = match Recording::read(&self.recording) {
            Ok(recording) => recording,
            Err(error) => {
                diagnostics::error(&error.to_string(), hint(&error))?;
                return Ok(Outcome::Failure);
            }
        };
        play(recording, self.output_format)
    }
}

fn hint(error: &RecordingError) -> Option<&'static str> {
    match error {
        RecordingError::NoRecording => Some("`patter run --record FILE` makes one"),
        RecordingError::Version(_) => Some("replay it with the version of Patter that made it"),
        RecordingError::Line { .. } => Some("the lines before it are whole: cut the file there to replay them"),
        RecordingError::File { .. } | RecordingError::TooLarge => None,
    }
}

/// Shows what was recorded.
fn play(recording: Recording, format: Format) -> io::Result<Outcome> {
    let root = patter::project::find_root();
    let prices = Config::read(root.as_deref()).unwrap_or_default().prices();
    let (session, show) = (recording.session.as_deref(), listener(format));
    let mut playback = Playback::default();
    let mut tally = Tally::new(prices.clone());
    let mut outcome = None;
    if format == Format::StreamJson {
        print(&format!("{}\n", json!({"event": "session", "id": session})))?;
    }
    for entry in recording.entries {
        let heard = match playback.play(entry) {
            Ok(heard) => heard,
            Err(error) => {
                diagnostics::error(&format!("the recording is damaged: {error}"), None)?;
                return Ok(Outcome::Failure);
            }
        };
        for event in &heard {
            tally.hear(event);
            show(event);
            if let (Happened::Finished { .. }, 0, Some(run)) = (&event.happened, event.depth, playback.log().last()) {
                outcome = Some(show_end(format, run, playback.bindings(), tally.cost(), session)?);
                tally = Tally::new(prices.clone());
            }
        }
    }
    match outcome {
        Some(outcome) if playback.log().run().is_none() && !recording.is_cut => Ok(outcome),
        _ => {
            let message = if playback.log().run().is_some() || recording.is_cut {
                "the recording ends before the run does"
            } else {
                "nothing was said in this recording"
            };
            diagnostics::error(message, None)?;
            Ok(Outcome::Failure)
        }
    }
}
