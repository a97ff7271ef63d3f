//! What a project spent today, shared by all processes that run its agents.

use super::account::{Tree, Used};
use super::clock::now_ms;
use crate::os_error::describe;
use patter_core::provider::price::Cost;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The folder of what was spent, in the folder of the project's state.
const FOLDER: &str = ".patter/spending";

/// The amount that the agents of a project may spend per day (UTC), and what they spent. That is kept in a file for each day,
/// to which all processes append, so no process has to wait for another one.
///
/// ```
/// use patter::drive::Budget;
/// use patter::provider::price::Cost;
/// # let folder = tempfile::tempdir().unwrap();
/// # let root = folder.path();
/// let dollar = Cost::from_dollars(1.0).unwrap();
/// let budget = Budget::new(root, dollar);
/// budget.add(Cost::from_dollars(0.25).unwrap()).unwrap();
/// assert_eq!(Budget::new(root, dollar).spent().unwrap().to_string(), "$0.25");
/// ```
#[derive(Debug)]
pub struct Budget {
    folder: PathBuf,
    per_day: Cost,
    read: Mutex<ReadPart>,
    /// What the accounts of this process that share the budget have in common.
    pub(super) used: Arc<Mutex<Used>>,
    pub(super) tree: Arc<Tree>,
}

/// The part of a file that was read.
#[derive(Debug, Default)]
struct ReadPart {
    day: String,
    bytes: u64,
    spent: Cost,
}

impl Budget {
    /// Returns the budget of the project in a folder.
    pub fn new(root: &Path, per_day: Cost) -> Self {
        Self { folder: root.join(FOLDER), per_day, read: Mutex::default(), used: Arc::default(), tree: Arc::default() }
    }

    /// Returns the amount that may be spent per day.
    pub const fn per_day(&self) -> Cost {
        self.per_day
    }

    /// Returns what was spent today, by all processes.
    pub fn spent(&self) -> Result<Cost, String> {
        let day = today();
        let path = self.folder.join(&day);
        let mut part = self.part();
        if part.day != day {
            *part = ReadPart { day, ..ReadPart::default() };
        }
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Cost::FREE),
            Err(error) => return Err(failure("read", &path, &error)),
        };
        let mut new = Vec::new();
        file.seek(SeekFrom::Start(part.bytes))
            .and_then(|_| file.read_to_end(&mut new))
            .map_err(|error| failure("read", &path, &error))?;
        // What another process is writing is read the next time.
        let complete = new.iter().rposition(|byte| *byte == END).map_or(0, |last| last + 1);
        let amounts = new.get(..complete).unwrap_or_default().split(|byte| *byte == END);
        // A process that was killed while it wrote leaves an amount without its end, which the next one starts a line after.
        let last_line = |amount: &[u8]| amount.rsplit(|byte| *byte == START).next().map(<[u8]>::to_vec);
        let amounts = amounts.filter_map(last_line).filter_map(|amount| String::from_utf8(amount).ok()?.parse().ok());
        part.spent = [part.spent].into_iter().chain(amounts.map(Cost::from_picodollars)).sum();
        part.bytes += complete as u64;
        Ok(part.spent)
    }

    /// Adds what was spent.
    pub fn add(&self, cost: Cost) -> Result<(), String> {
        if cost == Cost::FREE {
            return Ok(());
        }
        let path = self.folder.join(today());
        let entry = format!("{}{}{}", START as char, cost.picodollars(), END as char);
        let append = || {
            DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
            let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path)?;
            // One write, so that the entries of several processes are not mixed.
            file.write_all(entry.as_bytes())
        };
        append().map_err(|error| failure("write", &path, &error))
    }

    fn part(&self) -> MutexGuard<'_, ReadPart> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an amount in a file starts with.
const START: u8 = b'\n';
/// What an amount in a file ends with.
const END: u8 = b';';

/// Returns the day, as the name of a file.
fn today() -> String {
    let now = i64::try_from(now_ms()).ok().and_then(|now| jiff::Timestamp::from_millisecond(now).ok());
    now.unwrap_or_default().strftime("%Y-%m-%d").to_string()
}

fn failure(what: &str, path: &Path, error: &io::Error) -> String {
    format!("the project has a budget, but cannot {what} what was spent in `{}`: {}", path.display(), describe(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dollars(amount: f64) -> Cost {
        Cost::from_dollars(amount).unwrap()
    }

    #[test]
    fn processes_share_what_was_spent() {
        let folder = tempfile::tempdir().unwrap();
        let budgets: Vec<_> = (0..4).map(|_| Budget::new(folder.path(), dollars(1.0))).collect();
        assert_eq!(budgets[0].spent(), Ok(Cost::FREE));
        std::thread::scope(|scope| {
            for budget in &budgets {
                scope.spawn(|| (0..250).for_each(|_| budget.add(dollars(0.001)).unwrap()));
            }
        });
        assert!(budgets.iter().all(|budget| budget.spent() == Ok(dollars(1.0))));
    }

    #[test]
    fn an_entry_that_was_cut_off_does_not_change_others() {
        let folder = tempfile::tempdir().unwrap();
        let budget = Budget::new(folder.path(), dollars(1.0));
        budget.add(dollars(0.25)).unwrap();
        let path = folder.path().join(FOLDER).join(today());
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"\n99999999").unwrap();
        assert_eq!(budget.spent(), Ok(dollars(0.25)));
        budget.add(dollars(0.5)).unwrap();
        assert_eq!(budget.spent(), Ok(dollars(0.75)));
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(".patter"), "").unwrap();
        let error = Budget::new(folder.path(), dollars(1.0)).add(dollars(0.1)).unwrap_err();
        assert!(error.starts_with("the project has a budget, but cannot write what was spent in `"), "{error}");
    }
}
