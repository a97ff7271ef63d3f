//! The option `--format`, the same for all commands that print data.

use crate::error::ErrorFormat;
use clap::builder::EnumValueParser;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use patter::drive::StreamedReplies;

/// The output format of a command.
///
/// Written by hand because the derive macro keeps one default value for all `F`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FormatOption<F> {
    pub(crate) format: F,
}

const ID: &str = "format";

impl<F: OutputFormat> Args for FormatOption<F> {
    fn augment_args(command: Command) -> Command {
        let argument = Arg::new(ID).long("format").alias("output-format").value_name("FORMAT").help("Output format");
        command.arg(argument.value_parser(EnumValueParser::<F>::new()).default_value(F::DEFAULT))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<F: OutputFormat> FromArgMatches for FormatOption<F> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self { format: matches.get_one::<F>(ID).copied().unwrap_or_default() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// A choice of output formats.
pub(crate) trait OutputFormat: ValueEnum + Copy + Default + Send + Sync + 'static {
    /// The name of the default format.
    const DEFAULT: &'static str = "text";

    /// Returns how errors are printed in this format.
    fn error_format(self) -> ErrorFormat;
}

/// The formats of most commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum DataFormat {
    /// For people
    #[default]
    Text,
    /// One JSON document
    Json,
}

impl OutputFormat for DataFormat {
    fn error_format(self) -> ErrorFormat {
        match self {
            DataFormat::Text => ErrorFormat::Text,
            DataFormat::Json => ErrorFormat::Json,
        }
    }
}

/// The formats of commands that show a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum RunFormat {
    /// The answer as it streams
    #[default]
    Text,
    /// One JSON document at the end
    Json,
    /// One JSON document per line for each event
    StreamJson,
}

impl RunFormat {
    /// Returns which replies people see while they arrive. The others can be repeated if their connection breaks.
    pub(crate) fn streamed_replies(self) -> StreamedReplies {
        match self {
            RunFormat::Text => StreamedReplies::Outermost,
            RunFormat::Json => StreamedReplies::None,
            RunFormat::StreamJson => StreamedReplies::All,
        }
    }
}

impl OutputFormat for RunFormat {
    fn error_format(self) -> ErrorFormat {
        match self {
            RunFormat::Text => ErrorFormat::Text,
            RunFormat::Json => ErrorFormat::Json,
            RunFormat::StreamJson => ErrorFormat::StreamJson,
        }
    }
}

/// Guesses the error format from raw arguments, for errors that are found before the arguments are understood.
pub(crate) fn guess_error_format(arguments: impl IntoIterator<Item = String>) -> ErrorFormat {
    let mut format = ErrorFormat::Text;
    let mut arguments = arguments.into_iter().take_while(|argument| argument != "--");
    while let Some(argument) = arguments.next() {
        let value = match argument.split_once('=') {
            Some(("--format" | "--output-format", value)) => Some(value.to_owned()),
            None if argument == "--format" || argument == "--output-format" => arguments.next(),
            None if argument == "--json" => Some("json".to_owned()),
            _ => None,
        };
        format = match value.as_deref() {
            Some("json") => ErrorFormat::Json,
            Some("stream-json") => ErrorFormat::StreamJson,
            Some("sarif") => ErrorFormat::Sarif,
            _ => format,
        };
    }
    format
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_of_malformed_arguments_is_guessed() {
        let table = [
            (vec!["run", "a.gram"], ErrorFormat::Text),
            (vec!["run", "--format", "json", "--nonsense"], ErrorFormat::Json),
            (vec!["run", "--output-format=stream-json"], ErrorFormat::StreamJson),
            (vec!["check", "--format=sarif"], ErrorFormat::Sarif),
            (vec!["sessions", "--json"], ErrorFormat::Json),
            (vec!["run", "a.gram", "--", "--format=json"], ErrorFormat::Text),
            (vec!["run", "--format"], ErrorFormat::Text),
        ];
        for (arguments, expected) in table {
            assert_eq!(guess_error_format(arguments.into_iter().map(str::to_owned)), expected);
        }
    }
}
