//! `patter parse`: prints the tree of a gram text.

use super::Command;
use crate::error::{CommandResult, ErrorFormat, Outcome};
use crate::file::{Input, Source};
use crate::format::{FormatOption, OutputFormat};
use crate::ui::{self, Excerpts, Limit};
use clap::{Args, ValueEnum};
use patter::gram::{self, Diagnostic, Dialect};

/// Print the tree of a gram text, and report everything that is wrong with it
///
/// The tree is printed even if the text has errors; what could not be parsed appears as `error`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter parse agent.gram\n  \
                        patter parse agent.gram --format json\n  \
                        echo '(a)-->(b)' | patter parse - --format sexp --portable")]
pub(crate) struct Parse {
    /// File to parse, or - for stdin
    #[arg(value_name = "FILE")]
    input: Input,

    #[command(flatten)]
    format: FormatOption<TreeFormat>,

    /// Accept plain gram 0.6.1 only: report each use of Patter's extension (empty or nested arrays, nested maps, maps in
    /// arrays) as an error
    #[arg(long)]
    portable: bool,

    #[command(flatten)]
    limit: Limit,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum TreeFormat {
    /// An outline with the line and column of every node
    #[default]
    #[value(alias = "text")]
    Tree,
    /// The documented JSON form: what the text means
    Json,
    /// The S-expression that other gram tools print
    Sexp,
}

impl OutputFormat for TreeFormat {
    const DEFAULT: &'static str = "tree";

    fn error_format(self) -> ErrorFormat {
        match self {
            TreeFormat::Tree | TreeFormat::Sexp => ErrorFormat::Text,
            TreeFormat::Json => ErrorFormat::Json,
        }
    }
}

impl Command for Parse {
    fn error_format(&self) -> ErrorFormat {
        self.format.format.error_format()
    }

    fn run(&self) -> CommandResult {
        let source = Source::read(&self.input)?;
        let dialect = if self.portable { Dialect::Portable } else { Dialect::Patter };
        let (tree, found) = gram::parse_bytes(&source.bytes, dialect);
        let text = match self.format.format {
            TreeFormat::Tree => gram::outline(&tree),
            TreeFormat::Json => format!("{:#}\n", gram::to_json(&tree)),
            TreeFormat::Sexp => gram::to_sexp(&tree),
        };
        ui::print(&text)?;
        let has_errors = found.iter().any(Diagnostic::is_error);
        Excerpts::new(found, tree.source(), &source.name, self.limit).print()?;
        Ok(Outcome::from_findings(has_errors))
    }
}
