//! `patter import`: creates toolboxes from other descriptions of tools.

use super::Command;
use crate::error::{CommandError, CommandResult, ErrorKind, Outcome};
use crate::file::{Existing, Input, Source, unwritable, write_atomically};
use crate::setup::{Intent, Setup, ToolSources, Toolset, extend_trust, until_stopped};
use crate::ui::{self, Limit};
use clap::{Args, Subcommand};
use patter::gram::Dialect;
use patter::openapi::{self, ImportOptions, ImportedToolbox, OpenApiError};
use patter::project::{
    Config, DefinitionKind, Environment, LoadedProject, Project, ServerSelection, Tools, find_root_of,
};
use patter::text::Glob;
use patter::tool::mcp::declarations;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Create a toolbox from the description of an API
#[derive(Args)]
pub(crate) struct Import {
    #[command(subcommand)]
    origin: Origin,
}

#[derive(Subcommand)]
enum Origin {
    Openapi(Openapi),
    Mcp(Mcp),
}

/// The file to write.
#[derive(Args)]
struct Target {
    /// Write to this file instead of stdout
    #[arg(long, short, value_name = "FILE.gram")]
    output: Option<PathBuf>,

    /// Overwrite the file if it exists
    #[arg(long, requires = "output")]
    force: bool,
}

/// Declare the tools of an MCP server in gram
///
/// Starts the server NAME of patter.toml, asks for its tools and prints a declaration for each: description and
/// signature, for agents to refer to and for people to review. The server still does the work; the declarations record
/// what agents rely on, and `patter check --bind` reports when the server no longer matches them.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter import mcp files\n  \
                        patter import mcp files --output tools/files.gram\n  \
                        patter import mcp files --only 'read_*' --only list_directory")]
struct Mcp {
    /// Server in patter.toml, or in the file that its mcp-servers names
    name: String,

    /// Import only these tools, by name; may be repeated
    #[arg(long, value_name = "GLOB")]
    only: Vec<String>,

    #[command(flatten)]
    target: Target,
}

/// Create a toolbox from an OpenAPI document, with a tool for each operation
///
/// Reads OpenAPI 3.0 and 3.1 and Swagger 2.0, as JSON or YAML, and prints gram. Each operation becomes an HTTP tool; its
/// parameters and the fields of its body, be it JSON or a form, become the parameters of the tool, its response the
/// result. Object schemas among the components become record types. Keys and tokens are read from environment variables, which the first lines of the
/// toolbox name. What a tool cannot express is left out with a warning; an operation that cannot be called without it is
/// skipped.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter import openapi petstore.yaml\n  \
                        patter import openapi petstore.yaml --output tools/petstore.gram\n  \
                        patter import openapi api.json --only 'list*' --only 'GET /orders/*'\n  \
                        curl -s https://api.example.com/openapi.json | patter import openapi - --name shop")]
struct Openapi {
    /// OpenAPI document, or - for stdin
    #[arg(value_name = "FILE")]
    file: OsString,

    /// Name of the toolbox; by default from the title of the document
    #[arg(long)]
    name: Option<String>,

    /// Address of the API, instead of the one in the document
    #[arg(long, value_name = "URL")]
    server: Option<String>,

    /// Import only these operations, by name, path, or method and path; may be repeated
    #[arg(long, value_name = "GLOB")]
    only: Vec<String>,

    #[command(flatten)]
    target: Target,

    #[command(flatten)]
    limit: Limit,
}

impl Command for Import {
    fn run(&self) -> CommandResult {
        match &self.origin {
            Origin::Openapi(openapi) => openapi.run(),
            Origin::Mcp(mcp) => mcp.run(),
        }
    }
}

impl Mcp {
    fn run(&self) -> CommandResult {
        let setup = Setup::read(&[], &ToolSources::default(), &ServerSelection::None, Intent::Call)?;
        let Toolset { runtime, stop, .. } = &setup.toolset;
        let server = setup.toolset.server(&self.name)?;
        let only: Vec<_> = self.only.iter().map(|glob| Glob::new(glob)).collect();
        let listed = until_stopped(runtime, stop, declarations(server, &only)).ok_or_else(CommandError::interrupted)?;
        let listed =
            listed.map_err(|failure| CommandError::failure(failure.message()).with_hint_if(failure.detail()))?;
        if listed.declared.is_empty() {
            let message = match self.only.is_empty() {
                true => format!("the MCP server `{}` has no tools that can be declared", self.name),
                false => format!("the MCP server `{}` has no such tool", self.name),
            };
            let names =
                (!listed.available.is_empty()).then(|| format!("its tools are {}", listed.available.join(", ")));
            return Err(CommandError::failure(message).with_hint_if(names));
        }
        let count = ui::plural(listed.declared.len(), "tool");
        self.target.write(&listed.text, &format!("{count} of the MCP server `{}`", self.name))
    }
}

impl Openapi {
    fn run(&self) -> CommandResult {
        let input = Input::from(self.file.clone());
        let source = Source::read(&input)?;
        let document = openapi::read(&source.bytes)
            .map_err(|error| CommandError::failure(format!("cannot read `{input}`: {error}")))?;
        let only = self.only.iter().map(|glob| Glob::new(glob)).collect();
        let options = ImportOptions { name: self.name.clone(), server: self.server.clone(), only };
        let imported = match openapi::import(&document, &options) {
            Ok(imported) => imported,
            Err(error) => return Err(self.import_error(&input, &error)?),
        };
        ui::warnings(&imported.warnings, self.limit)?;
        let outcome = self.target.write(&imported.text, &summary(&imported))?;
        let secrets = variables_that_are_set(&imported.text);
        for name in &secrets {
            ui::warning(&format!(
                "`{name}` is set in your environment, and these tools would send it to their server"
            ))?;
        }
        match &self.target.output {
            // The document chose the name of the variable, and may have chosen that of another service.
            Some(path) if secrets.is_empty() => trust_imported(path, &imported.text)?,
            _ => {}
        }
        Ok(outcome)
    }

    fn import_error(&self, input: &Input, error: &OpenApiError) -> io::Result<CommandError> {
        if let OpenApiError::NoTools { warnings } = error {
            ui::warnings(warnings, self.limit)?;
        }
        let kind = match error {
            OpenApiError::InvalidName(name) if self.name.as_ref() == Some(name) => ErrorKind::Usage,
            OpenApiError::RelativeServer(server) | OpenApiError::UnresolvedServer(server)
                if self.server.as_ref() == Some(server) =>
            {
                ErrorKind::Usage
            }
            _ => ErrorKind::Failure,
        };
        Ok(CommandError::new(kind, format!("cannot import `{input}`: {error}")).with_hint_if(error.hint()))
    }
}

/// Returns the environment variables that a toolbox refers to and that the user has set.
fn variables_that_are_set(text: &str) -> BTreeSet<&str> {
    let named = text.split("${").skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name);
    named.filter(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty())).collect()
}

/// Trusts the servers that an imported toolbox calls, if the rest of its project is trusted.
fn trust_imported(path: &Path, text: &str) -> Result<(), CommandError> {
    let root = find_root_of(path);
    let root = root.as_deref();
    let environment = Environment::read(root)?;
    let imported = Project::read([(path.display().to_string(), text)]);
    let imported = Tools::read(&imported, root, &Config::default(), &environment)?;
    let requests = imported.definitions().iter().filter(|definition| definition.kind == DefinitionKind::Requests);
    let requests: Vec<_> = requests.cloned().collect();
    let project = LoadedProject::read(&[path.to_owned()], root, Dialect::Patter)?.project;
    let present = Tools::read(&project, root, &Config::read(root)?, &environment)?;
    extend_trust(root, present.definitions(), &requests)
}

fn summary(imported: &ImportedToolbox) -> String {
    let counts = [ui::nonzero(imported.tools, "tool"), ui::nonzero(imported.warnings.len(), "warning")];
    counts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

impl Target {
    /// Prints or writes a text, and its summary to stderr.
    fn write(&self, text: &str, summary: &str) -> CommandResult {
        let Some(path) = &self.output else {
            ui::print(text)?;
            ui::status(summary)?;
            return Ok(Outcome::Success);
        };
        let existing = if self.force { Existing::Replace } else { Existing::Keep };
        write_atomically(path, text, existing).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => unwritable(path, &error).with_hint("overwrite it with `--force`"),
            _ => unwritable(path, &error),
        })?;
        ui::status(&format!("wrote {}: {summary}", path.display()))?;
        Ok(Outcome::Success)
    }
}
