//! `patter parse`: shows how a text is read.

use crate::diagnostics::{self, Limit};
use crate::source::{Input, Source};
use crate::{Outcome, print};
use clap::{Args, ValueEnum};
use patter::gram::{self, Diagnostic, Dialect};
use std::io;

/// Show how gram text is read, and everything that is wrong with it
///
/// The tree is printed even where the text has errors; what could not be read shows as `error`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter parse agent.gram\n  \
                        patter parse agent.gram --format json\n  \
                        echo '(a)-->(b)' | patter parse - --format sexp --portable")]
pub(crate) struct Parse {
    /// File to read, or - for stdin
    #[arg(value_name = "FILE")]
    input: Input,

    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Tree)]
    format: Format,

    /// Accept plain gram 0.6.1 only: each use of Patter's extension (empty or nested arrays, nested maps, maps in
    /// arrays) is an error
    #[arg(long)]
    portable: bool,

    #[command(flatten)]
    limit: Limit,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// An outline with line and column of everything
    Tree,
    /// The documented JSON form: what the text means
    Json,
    /// The S-expression that other gram tools print
    Sexp,
}

impl Parse {
    pub(crate) fn run(self) -> io::Result<Outcome> {
        let source = match Source::read(&self.input) {
            Ok(source) => source,
            Err(error) => return diagnostics::unreadable(&self.input, &error),
        };
        let dialect = if self.portable { Dialect::Portable } else { Dialect::Patter };
        let (tree, found) = gram::parse_bytes(&source.bytes, dialect);
        let text = match self.format {
            Format::Tree => gram::outline(&tree),
            Format::Json => format!("{:#}\n", gram::to_json(&tree)),
            Format::Sexp => gram::to_sexp(&tree),
        };
        print(&text)?;
        diagnostics::show(&found, tree.source(), &source.name, self.limit)?;
        let failed = found.iter().any(Diagnostic::is_error);
        Ok(if failed { Outcome::Failure } else { Outcome::Success })
    }
}
