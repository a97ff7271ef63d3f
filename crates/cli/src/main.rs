//! The program `patter`.
//!
//! Results go to stdout, everything else to stderr. Exit codes: 0 all is well, 1 something is not, 2 wrong usage.

mod command;
mod diagnostics;
mod experiment;
mod setup;
mod source;
mod talk;
mod terminal;
mod unsent;

use clap::{Parser, Subcommand, ValueEnum};
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

/// Run LLM agents that are written as patterns: text files that a team reads, reviews, diffs and checks.
#[derive(Parser)]
#[command(name = "patter", version, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = "Results go to stdout, everything else to stderr.\n\
                        Exit codes: 0 all is well, 1 something is not, 2 wrong usage.")]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// When to use colours; NO_COLOR and CLICOLOR_FORCE are respected too
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    color: Color,
}

#[derive(Subcommand)]
enum Command {
    New(command::new::New),
    Parse(command::parse::Parse),
    Fmt(command::fmt::Fmt),
    Check(command::check::Check),
    Explain(command::explain::Explain),
    Show(command::show::Show),
    Schema(command::schema::Schema),
    Diff(command::diff::Diff),
    Run(command::run::Run),
    Chat(command::chat::Chat),
    Resume(command::resume::Resume),
    Eval(command::eval::Eval),
    Ab(command::ab::Ab),
    Experiments(command::experiments::Experiments),
    Replay(command::replay::Replay),
    Sessions(command::sessions::Sessions),
    Tools(command::tools::Tools),
    Why(command::why::Why),
    Call(command::call::Call),
    Lock(command::lock::LockCommand),
    Doctor(command::doctor::Doctor),
    Import(command::import::Import),
}

#[derive(Clone, Copy, ValueEnum)]
enum Color {
    /// On a terminal only
    Auto,
    Always,
    Never,
}

/// How a command ended that could do its work.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// All is well.
    Success,
    /// There is something to mend.
    Failure,
    /// The arguments make no sense together.
    Usage,
    /// Something went wrong that has a code of its own.
    Code(u8),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli.color {
        Color::Auto => anstream::ColorChoice::Auto,
        Color::Always => anstream::ColorChoice::Always,
        Color::Never => anstream::ColorChoice::Never,
    }
    .write_global();
    let outcome = match cli.command {
        Command::New(new) => new.run(),
        Command::Parse(parse) => parse.run(),
        Command::Fmt(fmt) => fmt.run(),
        Command::Check(check) => check.run(),
        Command::Explain(explain) => explain.run(),
        Command::Show(show) => show.run(),
        Command::Schema(schema) => schema.run(),
        Command::Diff(diff) => diff.run(),
        Command::Run(run) => run.run(),
        Command::Chat(chat) => chat.run(),
        Command::Resume(resume) => resume.run(),
        Command::Eval(eval) => eval.run(),
        Command::Ab(ab) => ab.run(),
        Command::Experiments(experiments) => experiments.run(),
        Command::Replay(replay) => replay.run(),
        Command::Sessions(sessions) => sessions.run(),
        Command::Tools(tools) => tools.run(),
        Command::Why(why) => why.run(),
        Command::Call(call) => call.run(),
        Command::Lock(lock) => lock.run(),
        Command::Doctor(doctor) => doctor.run(),
        Command::Import(import) => import.run(),
    };
    match outcome {
        Ok(Outcome::Success) => ExitCode::SUCCESS,
        Ok(Outcome::Failure) => ExitCode::FAILURE,
        Ok(Outcome::Usage) => ExitCode::from(2),
        Ok(Outcome::Code(code)) => ExitCode::from(code),
        Err(error) => {
            // Nothing more can be told if stderr is gone too.
            let _ = diagnostics::error(&error.to_string(), None);
            ExitCode::FAILURE
        }
    }
}

/// Writes a result to stdout.
fn print(text: &str) -> io::Result<()> {
    let mut stdout = anstream::stdout().lock();
    or_closed(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Writes to stdout what is for a file or another program, with nothing taken out of it.
fn print_as_is(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    or_closed(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Takes a reader that has seen enough for no error: the work goes on, and the exit code tells how it ended.
fn or_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
