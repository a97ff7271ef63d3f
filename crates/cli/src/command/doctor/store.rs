//! The store of sessions.

use super::CheckResult;
use crate::session::StoreOption;
use patter::os_error::describe;
use patter::project::{Config, Environment};
use patter::store::{self, StoreError, StoreLocation};
use std::path::Path;

/// Checks that sessions can be stored. A file that does not exist yet is not created.
pub(super) async fn examine(root: Option<&Path>, config: &Config, environment: &Environment) -> CheckResult {
    const HINT: &str = "name another one as `url` in the section [store] of patter.toml";
    let location = match StoreOption::default().location(root, config, environment) {
        Ok(Some(location)) => location,
        Ok(None) => return CheckResult::skipped("sessions are disabled"),
        Err(error) => return CheckResult::broken(error.message(), error.hint().unwrap_or(HINT)),
    };
    if let StoreLocation::Sqlite(path) = &location
        && !path.exists()
    {
        return writable(path);
    }
    let listed: Result<_, StoreError> = async { store::open(&location).await?.list(1).await }.await;
    match listed {
        Ok(_) => CheckResult::ok(format!("sessions are stored in `{location}`")),
        Err(error) => CheckResult::broken(error.to_string(), error.hint().as_deref().unwrap_or(HINT)),
    }
}

/// Checks that a file could be created.
fn writable(path: &Path) -> CheckResult {
    let folder = path.parent().unwrap_or(Path::new("."));
    let shown = folder.strip_prefix(".").unwrap_or(folder).display().to_string();
    let existing = folder.ancestors().find(|folder| folder.exists()).filter(|folder| !folder.as_os_str().is_empty());
    // Only writing a file shows that it can be written; this one is removed at once.
    match tempfile::tempfile_in(existing.unwrap_or(Path::new("."))) {
        Ok(_) => CheckResult::ok(format!("`{shown}` is writable")),
        Err(error) => {
            let message = format!("`{shown}` is not writable: {}", describe(&error));
            CheckResult::broken(message, "make it a folder that you may write to")
        }
    }
}
