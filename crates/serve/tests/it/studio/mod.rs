//! The studio, in a browser: Debian's Chromium, or the one that `CHROMIUM` names.

use crate::lab::Lab;
use crate::npm;
use crate::sdk::{self, run_script};
use std::path::{Path, PathBuf};
use tokio::process::Command;

mod guard;
mod types;

/// Returns the packages that the scenarios need, if there is a browser.
fn packages() -> Option<PathBuf> {
    let browser = std::env::var_os("CHROMIUM").map_or_else(|| PathBuf::from("/usr/bin/chromium"), PathBuf::from);
    if !browser.exists() {
        assert!(std::env::var_os("CI").is_none(), "`{}` is not there", browser.display());
        eprintln!("skipped: `{}` is not there", browser.display());
        return None;
    }
    npm::installed("studio")
}

/// Runs a scenario against a server.
async fn play(lab: &Lab, packages: &Path, name: &str, arguments: &[&str]) {
    let mut command = Command::new("node");
    command.arg(sdk::tests().join("studio").join(format!("{name}.mjs")));
    command.arg(format!("http://{}", lab.address)).arg(packages).args(arguments);
    run_script(command, name).await;
}

#[tokio::test]
async fn pages_have_a_frame() {
    let Some(packages) = packages() else { return };
    play(&Lab::new().await, &packages, "frame", &[]).await;
}

#[tokio::test]
async fn people_log_in() {
    let Some(packages) = packages() else { return };
    play(&sdk::lab().await, &packages, "login", &[sdk::TOKEN]).await;
}
