//! The command line.

use crate::command::{self, Command};
use crate::error::CommandResult;
use clap::{ArgAction, CommandFactory, Parser, Subcommand, ValueEnum};

/// Run LLM agents that are written as patterns: text files that a team reads, reviews, diffs and checks.
#[derive(Parser)]
#[command(name = "patter", version, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = "Results go to stdout, everything else to stderr.\n\
                        Exit codes: 0 success, 1 failure, 2 usage error.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,

    /// When to use colours; NO_COLOR and CLICOLOR_FORCE are respected too
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    color: Color,

    /// Log to stderr; -vv logs more. PATTER_LOG sets levels by module, such as patter=debug
    #[arg(long, short, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Trust what the project defines, for this command only; also PATTER_TRUST=1
    #[arg(long = "trust", global = true, id = "trust_project")]
    pub(crate) trust: bool,
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    New(command::new::New),
    Parse(command::parse::Parse),
    Fmt(command::fmt::Fmt),
    Check(command::check::Check),
    Explain(command::explain::Explain),
    Show(command::show::Show),
    Graph(command::graph::GraphCommand),
    Query(command::query::QueryCommand),
    Edit(command::edit::EditCommand),
    Schema(command::schema::Schema),
    Diff(command::diff::Diff),
    Run(command::run::Run),
    Chat(command::chat::Chat),
    Resume(command::resume::Resume),
    Serve(command::serve::Serve),
    Studio(command::studio::Studio),
    Eval(command::eval::Eval),
    Ab(command::ab::Ab),
    Experiments(command::experiments::Experiments),
    Replay(command::replay::Replay),
    Sessions(command::sessions::Sessions),
    Store(command::store::StoreCommand),
    Fleet(command::fleet::Fleet),
    Tools(command::tools::Tools),
    Why(command::why::Why),
    Call(command::call::Call),
    Lock(command::lock::LockCommand),
    Models(command::models::Models),
    Doctor(command::doctor::Doctor),
    Trust(command::trust::Trust),
    Import(command::import::Import),
    Mcp(command::mcp::Mcp),
    Completions(command::completions::Completions),
    Man(command::man::Man),
}

#[derive(Clone, Copy, ValueEnum)]
enum Color {
    /// On a terminal only
    Auto,
    Always,
    Never,
}

impl Cli {
    /// Returns when to use colours.
    pub(crate) fn color(&self) -> anstream::ColorChoice {
        match self.color {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::Always,
            Color::Never => anstream::ColorChoice::Never,
        }
    }
}

impl Verb {
    /// Returns the command.
    pub(crate) fn command(&self) -> &dyn Command {
        match self {
            Verb::New(command) => command,
            Verb::Parse(command) => command,
            Verb::Fmt(command) => command,
            Verb::Check(command) => command,
            Verb::Explain(command) => command,
            Verb::Show(command) => command,
            Verb::Graph(command) => command,
            Verb::Query(command) => command,
            Verb::Edit(command) => command,
            Verb::Schema(command) => command,
            Verb::Diff(command) => command,
            Verb::Run(command) => command,
            Verb::Chat(command) => command,
            Verb::Resume(command) => command,
            Verb::Serve(command) => command,
            Verb::Studio(command) => command,
            Verb::Eval(command) => command,
            Verb::Ab(command) => command,
            Verb::Experiments(command) => command,
            Verb::Replay(command) => command,
            Verb::Sessions(command) => command,
            Verb::Store(command) => command,
            Verb::Fleet(command) => command,
            Verb::Tools(command) => command,
            Verb::Why(command) => command,
            Verb::Call(command) => command,
            Verb::Lock(command) => command,
            Verb::Models(command) => command,
            Verb::Doctor(command) => command,
            Verb::Trust(command) => command,
            Verb::Import(command) => command,
            Verb::Mcp(command) => command,
            Verb::Completions(command) => command,
            Verb::Man(command) => command,
        }
    }
}

// These two describe the whole command line, so it is passed to them here.
impl Command for command::completions::Completions {
    fn run(&self) -> CommandResult {
        self.print(Cli::command())
    }
}

impl Command for command::man::Man {
    fn run(&self) -> CommandResult {
        self.print(Cli::command())
    }
}
