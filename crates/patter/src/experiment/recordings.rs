//! Arms whose replies are recorded, and recordings of runs.

use super::arm::Replies;
use crate::drive::{Journal, JournalError, Models, now};
use crate::model::{Checking, Model, RecordedModel};
use crate::session::{Entry, Recording};
use crate::store::SessionId;
use crate::tool::BoxFuture;
use patter_core::case::Case;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Returns who answers from recordings: from a file in each run anew, or from a folder that has a file for each run of a
/// case. Replies come in the recorded order, so that a changed tool can be tried with them.
pub fn recorded_replies(path: &Path) -> Replies {
    let path = path.to_owned();
    Arc::new(move |case: &Case, repeat: u32| {
        let path = if path.is_dir() { file_of_run(&path, &case.id, repeat) } else { path.clone() };
        let failed = |error: String| format!("{}: {error}", path.display());
        let recording = Recording::read(&path).map_err(|error| failed(error.to_string()))?;
        let model = RecordedModel::new(recording, Checking::Lenient).map_err(|error| failed(error.to_string()))?;
        let model: Arc<dyn Model> = Arc::new(model);
        let models: Models = Arc::new(move |_| Ok(Arc::clone(&model)));
        Ok(models)
    })
}

/// Returns the file of a run in a folder, or that of the first run of the case where it has none of its own.
fn file_of_run(folder: &Path, case: &str, repeat: u32) -> PathBuf {
    let own = file_name(folder, case, repeat);
    if own.exists() { own } else { file_name(folder, case, 0) }
}

/// Returns the name of a file for a run. What files cannot be called is written as its number.
fn file_name(folder: &Path, case: &str, repeat: u32) -> PathBuf {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    let name = case.chars().fold(String::new(), |mut name, c| {
        if is_plain(c) {
            name.push(c);
        } else {
            name.push_str(&format!("%{:x}", u32::from(c)));
        }
        name
    });
    folder.join(format!("{name}-{}.jsonl", repeat + 1))
}

/// What happens in the course of a run, to be written as a recording.
#[derive(Default)]
pub(super) struct Notes(Mutex<Vec<Entry>>);

impl Notes {
    /// Writes the recording of a run into a folder.
    pub(super) fn write(&self, folder: &Path, case: &str, repeat: u32) -> Result<(), String> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let texts = entries.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>();
        let text = Recording::of_log(&SessionId::new(now()), &texts.map_err(|error| error.to_string())?);
        let path = file_name(folder, case, repeat);
        let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, text));
        written.map_err(|error| format!("cannot write `{}`: {error}", path.display()))
    }
}

impl Journal for Notes {
    fn keep(&self, entries: Vec<Entry>) -> BoxFuture<'_, Result<(), JournalError>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(entries);
        Box::pin(async { Ok(()) })
    }
}
