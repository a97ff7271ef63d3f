//! Tips for command lines that cannot be parsed.

use crate::arguments;
use crate::cli::Cli;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};
use patter::text::nearest;

/// The maximum number of commands in a tip.
const MAX_COMMANDS: usize = 3;

/// Adds a tip to an error, in place of one that would lead nowhere.
pub(crate) fn with_tip(mut error: clap::Error) -> clap::Error {
    let mut program = Cli::command();
    program.build();
    let arguments: Vec<_> = arguments().collect();
    let command = command_of(&program, &arguments);
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let tip = match error.kind() {
        ErrorKind::InvalidSubcommand => Some(command_tip(command, &text(ContextKind::InvalidSubcommand))),
        ErrorKind::UnknownArgument => argument_tip(&program, command, &text(ContextKind::InvalidArg)),
        _ => None,
    };
    if let Some(tip) = tip {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        // The usage may mention what is no longer suggested.
        error.insert(ContextKind::Usage, ContextValue::StyledStr(command.clone().render_usage()));
    }
    error
}

/// Returns the command that the arguments are for.
fn command_of<'c>(program: &'c Command, arguments: &[String]) -> &'c Command {
    let mut command = program;
    for argument in arguments.iter().filter(|argument| !argument.starts_with('-')) {
        match command.find_subcommand(argument) {
            Some(inner) => command = inner,
            None => break,
        }
    }
    command
}

fn command_tip(command: &Command, written: &str) -> String {
    let names: Vec<_> = command.get_subcommands().map(Command::get_name).filter(|name| *name != "help").collect();
    match nearest(written, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the commands are {}", names.join(", ")),
    }
}

fn argument_tip(program: &Command, command: &Command, written: &str) -> Option<String> {
    let name = command.get_name();
    let Some(option) = written.strip_prefix('-') else {
        let tip = "a prompt of several words needs quotes: patter run FILE \"…\"";
        return (name == "run").then(|| tip.to_owned());
    };
    let Some(option) = option.strip_prefix('-') else {
        let first = option.chars().next()?;
        let options = command.get_opts().filter_map(clap::Arg::get_long).filter(|long| long.starts_with(first));
        let options: Vec<_> = options.map(|long| format!("`--{long}`")).collect();
        return (!options.is_empty()).then(|| format!("did you mean {}?", options.join(" or ")));
    };
    let option = option.split('=').next()?;
    let has_option = |command: &&Command| command.get_opts().any(|own| own.get_long() == Some(option));
    let others = program.get_subcommands().filter(has_option).map(|other| format!("`patter {}`", other.get_name()));
    let others: Vec<_> = others.take(MAX_COMMANDS).collect();
    (!others.is_empty()).then(|| format!("`--{option}` is an option of {}", others.join(", ")))
}
