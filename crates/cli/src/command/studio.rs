//! `patter studio`: serves agents, and opens the studio in a browser.

use super::Command;
use super::serve::ServeOptions;
use crate::error::{CommandError, CommandResult};
use crate::ui;
use crate::ui::style::ACCENT;
use clap::Args;
use std::net::{IpAddr, SocketAddr};
use std::process::{Command as Process, Stdio};

/// Open the studio in a browser: see the project, talk to agents, and look at runs
///
/// This is `patter serve`, whose pages are the studio. If the server needs a token, the address contains it once: the page
/// exchanges it for a cookie.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter studio\n  \
                        patter studio examples/hello.gram --no-open\n  \
                        patter studio --listen 127.0.0.1:0")]
pub(crate) struct Studio {
    #[command(flatten)]
    options: ServeOptions,

    /// Print the address without opening a browser
    #[arg(long)]
    no_open: bool,
}

impl Command for Studio {
    fn run(&self) -> CommandResult {
        self.options.serve_studio(|address, token| {
            let page = page_address(address, token);
            ui::status(&format!("the studio is at {ACCENT}{page}{ACCENT:#}"))?;
            if !self.no_open && !open(&page) {
                ui::warning("no browser could be opened: open the address yourself")?;
            }
            Ok::<(), CommandError>(())
        })
    }
}

/// Returns the address of the first page.
fn page_address(address: SocketAddr, token: Option<&str>) -> String {
    let host = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => "127.0.0.1".to_owned(),
        IpAddr::V6(ip) if ip.is_unspecified() => "[::1]".to_owned(),
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    let token = token.map(|token| format!("#token={}", encoded(token))).unwrap_or_default();
    format!("http://{host}:{}/{token}", address.port())
}

/// Returns a text as a value in an address.
fn encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(encode).collect()
}

/// Opens an address in the browser of the user, and returns whether a program for that was started.
fn open(address: &str) -> bool {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut process = Process::new(program);
    process.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = process.spawn() else { return false };
    // It ends soon; waiting for it keeps no zombie around.
    std::thread::spawn(move || child.wait());
    true
}
