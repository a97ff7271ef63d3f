//! The program `patter`.
//!
//! Results go to stdout, everything else to stderr. Exit codes: 0 success, 1 failure, 2 usage error, 128 and the number of
//! a signal that stopped the program.

mod argument;
mod attach;
mod cli;
mod command;
mod error;
mod experiment;
mod file;
mod format;
mod inspect;
mod logging;
mod place;
mod session;
mod setup;
mod tip;
mod ui;
mod unsupported;

use clap::Parser;
use cli::Cli;
use error::{CommandError, CommandResult, ErrorFormat, INTERRUPTED};
use mimalloc::MiMalloc;
use std::process::ExitCode;
use std::time::Duration;

/// A server allocates on one thread what it frees on another, which takes less time than with the allocator of the system.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// How long the program waits at its end for a database that does not answer.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    patter::launch::run_if_launched();
    patter::launch::forbid_inspection();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&tip::with_tip(error)),
    };
    cli.color().write_global();
    setup::raise_file_limit();
    // Without it, the system ends the program at the limit of file sizes, as it does with any other.
    let _ = setup::outlive_file_size_limit();
    setup::set_trust(cli.trust);
    let command = cli.verb.command();
    let result = logging::init(cli.verbose).and_then(|()| command.run());
    // The sessions of this program are free when it ends.
    patter::store::wait_for_releases(RELEASE_TIMEOUT);
    exit(result, command.error_format())
}

/// Prints the error of a command, and returns the exit code.
fn exit(result: CommandResult, format: ErrorFormat) -> ExitCode {
    let code = match result {
        Ok(outcome) => outcome.exit_code(),
        Err(error) => {
            // If stderr is gone too, the exit code is all that is left.
            let _ = error.print(format);
            error.exit_code()
        }
    };
    ExitCode::from(if code == INTERRUPTED { setup::stop_code() } else { code })
}

/// Returns the arguments of the program.
fn arguments() -> impl Iterator<Item = String> {
    std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned())
}

/// Prints a usage error or the help, and returns the exit code. Machine-readable formats get the error as a document too.
fn usage(error: &clap::Error) -> ExitCode {
    let format = format::guess_error_format(arguments());
    if error.use_stderr() && format != ErrorFormat::Text {
        let text = error.render().to_string();
        let first: Vec<_> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
        let message = first.join(" ");
        let message = message.strip_prefix("error: ").unwrap_or(&message);
        let tip = text.lines().find_map(|line| line.trim_start().strip_prefix("tip: "));
        let _ = CommandError::usage(message).with_hint_if(tip).print_document(format);
    }
    let rendered = error.render();
    // It quotes what was typed, perhaps the name of a file that the shell filled in, so its styles may not be its own.
    let text = match arguments().any(|argument| argument.contains('\u{1b}')) {
        true => rendered.to_string(),
        false => ui::style::mark(&rendered.ansi().to_string()),
    };
    let _ = if error.use_stderr() { ui::write_stderr(&text) } else { ui::print(&text) };
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
