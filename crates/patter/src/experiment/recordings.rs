//! Recordings of trials: answering from them, and writing them.

use crate::drive::{Journal, JournalError, now_ms};
use crate::file::file_hash;
use crate::model::{Model, ModelResolver, ReplayMode, ReplayModel};
use crate::os_error::describe;
use crate::session::{LogEntry, Recording, create_private};
use crate::store::SessionId;
use crate::tool::BoxFuture;
use patter_core::case::Case;
use patter_core::types::definition::hash;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Finds the models that answer in one run of a case, given the case and the repeat.
pub type ReplySource = Arc<dyn Fn(&Case, u32) -> Result<ModelResolver, String> + Send + Sync>;

/// Returns a source of recorded replies: one file that every run replays, or a folder with a file for each run of a case.
/// Replies come in the recorded order, so that changed tools can be tested with them.
pub fn recorded_replies(path: &Path) -> ReplySource {
    let path = path.to_owned();
    Arc::new(move |case: &Case, repeat: u32| {
        let path = if path.is_dir() { run_file(&path, &case.id, repeat) } else { path.clone() };
        let failed = |error: String| format!("{}: {error}", path.display());
        let recording = Recording::read(&path).map_err(|error| failed(error.to_string()))?;
        let model = ReplayModel::new(recording, ReplayMode::Lenient).map_err(|error| failed(error.to_string()))?;
        let model: Arc<dyn Model> = Arc::new(model);
        let models: ModelResolver = Arc::new(move |_| Ok(Arc::clone(&model)));
        Ok(models)
    })
}

/// Returns a hash of the recordings at a path: one file, or a folder of them.
pub fn hash_recordings(path: &Path) -> std::io::Result<String> {
    let mut files = if path.is_dir() {
        let entries = std::fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path()));
        entries.collect::<Result<Vec<_>, _>>()?
    } else {
        vec![path.to_owned()]
    };
    files.sort();
    let files = files.iter().filter(|path| path.is_file());
    Ok(hash(files.map(|path| file_hash(path)).collect::<Vec<_>>().join("\n").as_bytes()))
}

/// Returns the file of a run in a folder, or that of the first run of the case if the run has none.
fn run_file(folder: &Path, case: &str, repeat: u32) -> PathBuf {
    let own = file_path(folder, case, repeat);
    if own.exists() { own } else { file_path(folder, case, 0) }
}

/// Returns the path of the recording of a run. Characters that may not be allowed in file names are written as numbers.
fn file_path(folder: &Path, case: &str, repeat: u32) -> PathBuf {
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

/// Collects the entries of a run, to write them as a recording.
#[derive(Default)]
pub(super) struct RecordingJournal(Mutex<Vec<LogEntry>>);

impl RecordingJournal {
    /// Writes the recording of a run to a folder.
    pub(super) fn write(&self, folder: &Path, case: &str, repeat: u32) -> Result<(), String> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let texts = entries.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>();
        let text = Recording::from_log(&SessionId::new(now_ms()), &texts.map_err(|error| error.to_string())?);
        let path = file_path(folder, case, repeat);
        let written = std::fs::create_dir_all(folder).and_then(|()| replace_private(&path, &text));
        written.map_err(|error| format!("cannot write `{}`: {}", path.display(), describe(&error)))
    }
}

/// Writes a file that only its owner can read, even if there was another one before.
fn replace_private(path: &Path, text: &str) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => create_private(path)?.write_all(text.as_bytes()),
    }
}

impl Journal for RecordingJournal {
    fn append(&self, entries: Vec<LogEntry>) -> BoxFuture<'_, Result<(), JournalError>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(entries);
        Box::pin(async { Ok(()) })
    }
}
