//! `patter import`: toolboxes from what others describe.

use crate::diagnostics::{self, Limit, counted};
use crate::setup::{Setup, ToolSources, Toolset, until_stopped};
use crate::source::{Existing, Input, Source, write_whole};
use crate::{Outcome, print};
use clap::{Args, Subcommand};
use patter::openapi::{self, Imported, OpenApiError, Options};
use patter::project::Servers;
use patter::text::Glob;
use patter::tool::mcp::declarations;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

/// Make a toolbox from the description of an interface
#[derive(Args)]
pub(crate) struct Import {
    #[command(subcommand)]
    from: From,
}

#[derive(Subcommand)]
enum From {
    Openapi(Openapi),
    Mcp(Mcp),
}

/// Where a toolbox or declarations go.
#[derive(Args)]
struct Target {
    /// Write to this file instead of stdout
    #[arg(long, short, value_name = "FILE.gram")]
    output: Option<PathBuf>,

    /// Overwrite the file if there is one
    #[arg(long, requires = "output")]
    force: bool,
}

/// Declare the tools of an MCP server, as gram
///
/// Starts the server NAME of patter.toml, asks for its tools and prints a declaration for each: description and
/// signature, for agents to refer to and for people to review. The server still does the work; the declarations say
/// what is relied on, and `patter check --bind` tells when the server no longer keeps to it.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter import mcp files\n  \
                        patter import mcp files --output tools/files.gram")]
struct Mcp {
    /// Server of patter.toml, or of the file that it names as mcp-servers
    name: String,

    #[command(flatten)]
    target: Target,
}

/// Make a toolbox from an OpenAPI document, with a tool for each operation
///
/// Reads OpenAPI 3.0 and 3.1, as JSON or YAML, and prints gram. Each operation becomes an HTTP tool; its parameters and
/// the fields of its JSON body become the parameters of the tool, its answer the result. Objects among the components
/// become record types. Keys and tokens are read from variables of the environment, which the first lines of the
/// toolbox name. What a tool cannot say is left out and told on stderr; an operation that cannot be called without it
/// is skipped.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter import openapi petstore.yaml\n  \
                        patter import openapi petstore.yaml --output tools/petstore.gram\n  \
                        patter import openapi api.json --only 'list*' --only 'GET /orders/*'\n  \
                        curl -s https://api.example.com/openapi.json | patter import openapi - --name shop")]
struct Openapi {
    /// File with the document; - for stdin
    #[arg(value_name = "FILE")]
    file: OsString,

    /// Name of the toolbox; without one the title of the document gives it
    #[arg(long)]
    name: Option<String>,

    /// Address that the operations are at, in place of the one in the document
    #[arg(long, value_name = "URL")]
    server: Option<String>,

    /// Take only these operations, by name, path, or method and path; may be given several times
    #[arg(long, value_name = "GLOB")]
    only: Vec<String>,

    #[command(flatten)]
    target: Target,

    #[command(flatten)]
    limit: Limit,
}

impl Import {
    pub(crate) fn run(self) -> io::Result<Outcome> {
        match self.from {
            From::Openapi(openapi) => openapi.run(),
            From::Mcp(mcp) => mcp.run(),
        }
    }
}

impl Mcp {
    fn run(self) -> io::Result<Outcome> {
        let Some(setup) = Setup::read(&[], &ToolSources::default(), &Servers::None)? else {
            return Ok(Outcome::Failure);
        };
        let Toolset { tools, runtime, stop, .. } = &setup.toolset;
        let Some(server) = tools.server(&self.name) else {
            let names: Vec<_> = tools.servers().collect();
            let hint = match patter::text::nearest(&self.name, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if names.is_empty() => "add a section [mcp.NAME] to patter.toml".to_owned(),
                None => format!("there are {}", names.join(", ")),
            };
            return fail(&format!("there is no MCP server `{}`", self.name), Some(&hint));
        };
        let server = match server {
            Ok(server) => server,
            Err(problem) => return fail(&problem.message, problem.hint().as_deref()),
        };
        let Some(declared) = until_stopped(runtime, stop, declarations(server)) else { return Ok(Outcome::Code(130)) };
        match declared {
            Ok(text) => self.target.deliver(&text, &format!("the tools of {}", self.name)),
            Err(failure) => fail(failure.message(), failure.detail()),
        }
    }
}

impl Openapi {
    fn run(self) -> io::Result<Outcome> {
        let input = Input::from(self.file.clone());
        let source = match Source::read(&input) {
            Ok(source) => source,
            Err(error) => return diagnostics::unreadable(&input, &error),
        };
        let document = match openapi::read(&source.bytes) {
            Ok(document) => document,
            Err(error) => return fail(&format!("cannot read `{input}`: {error}"), None),
        };
        let only = self.only.iter().map(|glob| Glob::new(glob)).collect();
        let options = Options { name: self.name.clone(), server: self.server.clone(), only };
        match openapi::toolbox(&document, &options) {
            Ok(made) => self.deliver(&made),
            Err(error) => {
                if let OpenApiError::NothingLeft { warnings } = &error {
                    diagnostics::warnings(warnings, self.limit)?;
                }
                fail(&format!("cannot import `{input}`: {error}"), error.hint().as_deref())
            }
        }
    }

    fn deliver(&self, made: &Imported) -> io::Result<Outcome> {
        diagnostics::warnings(&made.warnings, self.limit)?;
        let counts = [counted(made.tools, "tool"), counted(made.warnings.len(), "warning")];
        let counts = counts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        self.target.deliver(&made.text, &counts)
    }
}

impl Target {
    /// Prints or writes a text, and says in a few words what it is.
    fn deliver(&self, text: &str, what: &str) -> io::Result<Outcome> {
        let Some(path) = &self.output else {
            print(text)?;
            diagnostics::say(what)?;
            return Ok(Outcome::Success);
        };
        let existing = if self.force { Existing::Replaced } else { Existing::Kept };
        let Err(error) = write_whole(path, text, existing) else {
            diagnostics::say(&format!("wrote {}: {what}", path.display()))?;
            return Ok(Outcome::Success);
        };
        let (reason, hint) = match error.kind() {
            ErrorKind::AlreadyExists => ("it exists already".to_owned(), Some("`--force` overwrites it")),
            ErrorKind::NotFound => ("its folder does not exist".to_owned(), Some("make the folder first")),
            _ => (error.to_string(), None),
        };
        fail(&format!("cannot write `{}`: {reason}", path.display()), hint)
    }
}

fn fail(message: &str, hint: Option<&str>) -> io::Result<Outcome> {
    diagnostics::error(message, hint)?;
    Ok(Outcome::Failure)
}
