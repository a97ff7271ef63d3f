//! Opening pages in the browser.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Opens a page in the browser, if there is one and a place to show it. If that fails, the person has its address, which is
/// printed in any case.
pub(crate) fn open_page(url: &str) {
    let Some(program) = browser() else { return };
    let mut command = Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Ok(mut child) = command.spawn() {
        // Some browsers exit only when they are closed.
        std::thread::spawn(move || child.wait());
    }
}

fn browser() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(program) = set("BROWSER") {
        return Some(program.into());
    }
    if cfg!(target_os = "macos") {
        return Some("open".into());
    }
    (set("DISPLAY").is_some() || set("WAYLAND_DISPLAY").is_some()).then(|| "xdg-open".into())
}
