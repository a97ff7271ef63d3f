//! `patter schema`: the JSON Schemas of tools.

use super::Command;
use crate::error::{CommandError, CommandResult, ErrorFormat, Outcome};
use crate::format::{DataFormat, FormatOption, OutputFormat};
use crate::inspect::read_file;
use crate::ui;
use clap::{Args, ValueEnum};
use patter::declare::scope::Scope;
use patter::declare::{Agent, Element, ToolSpec};
use patter::library::Library;
use patter::project::{Config, Environment, Project, Tools, find_root};
use patter::tool::Tool;
use patter::types::definition::Definition;
use patter::types::dialect::{Fidelity, SchemaDialect, adapt};
use patter::types::schema::{input_schema, output_schema};
use serde_json::{Map, Value as Json};
use std::path::PathBuf;
use std::sync::Arc;

/// Print the JSON Schema of tool inputs or outputs
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter schema agent.gram             all tools, by name\n  \
                        patter schema agent.gram sayHello\n  \
                        patter schema agent.gram sayHello --output\n  \
                        patter schema agent.gram sayHello --provider openai")]
pub(crate) struct Schema {
    /// File containing agents or tools
    #[arg(value_name = "FILE")]
    path: PathBuf,

    /// Tool to print; by default all, by name
    #[arg(value_name = "TOOL")]
    tool: Option<String>,

    /// Print the tool's output instead of its input
    #[arg(long)]
    output: bool,

    /// Print the schema as sent to a provider, and report what that changes
    #[arg(long, value_enum)]
    provider: Option<Provider>,

    #[command(flatten)]
    format: FormatOption<DataFormat>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Provider {
    /// Tools of OpenAI with strict schemas
    Openai,
    Anthropic,
    Gemini,
}

impl Provider {
    fn view(self) -> SchemaDialect {
        match self {
            Provider::Openai => SchemaDialect::OpenAiStrict,
            Provider::Anthropic => SchemaDialect::Anthropic,
            Provider::Gemini => SchemaDialect::Gemini,
        }
    }
}

impl Command for Schema {
    fn error_format(&self) -> ErrorFormat {
        self.format.format.error_format()
    }

    fn run(&self) -> CommandResult {
        let project = read_file(&self.path)?;
        let tools = FileTools::find(&project);
        let Some(wanted) = &self.tool else {
            if tools.tools.is_empty() {
                ui::status(&format!("`{}` declares no tools, and its agents call none", self.path.display()))?;
            }
            let mut schemas = Map::new();
            let mut is_incomplete = false;
            for (name, tool) in &tools.tools {
                match self.schema(&project, name, tool) {
                    Ok(schema) => {
                        schemas.insert(name.clone(), schema);
                    }
                    Err(mut error) => {
                        is_incomplete = true;
                        error.print_problem()?;
                    }
                }
            }
            ui::print(&format!("{:#}\n", Json::Object(schemas)))?;
            return Ok(Outcome::from_findings(is_incomplete));
        };
        let Some(tool) = tools.get(wanted) else { return Err(self.unknown(wanted, &tools)) };
        ui::print(&format!("{:#}\n", self.schema(&project, wanted, tool)?))?;
        Ok(Outcome::Success)
    }
}

/// The tools of a file, by the names under which it declares or calls them.
#[derive(Default)]
struct FileTools {
    tools: Vec<(String, FileTool)>,
}

enum FileTool {
    Declared(ToolSpec),
    /// A tool of the library.
    Known(Arc<Definition>),
    /// A tool that is called, but not known without starting MCP servers.
    Unknown(String),
}

impl FileTools {
    /// Finds the tools that the first file of a project declares, and those that its agents refer to.
    fn find(project: &Project) -> Self {
        let mut tools = Self::default();
        let mut library = None;
        for pattern in project.files().first().into_iter().flat_map(|file| file.tree.walk()) {
            if let Some(tool) = ToolSpec::cast(pattern) {
                let name = tool.name().unwrap_or_default().into_owned();
                tools.tools.push((name, FileTool::Declared(tool)));
            }
            let Some(agent) = Agent::cast(pattern) else { continue };
            let scope = Scope::new(&agent);
            for element in agent.elements() {
                let Element::Reference { name, .. } = element else { continue };
                let found = project.resolve(&scope, &name);
                let pattern = found.first().map(|found| found.pattern);
                // Agents are called with a text; they have no schema of their own.
                if tools.get(&name).is_some() || pattern.and_then(Agent::cast).is_some() {
                    continue;
                }
                let tool =
                    match (pattern.and_then(ToolSpec::cast), library.get_or_insert_with(|| read_library(project))) {
                        (Some(spec), _) => FileTool::Declared(spec),
                        (None, Some(library)) => match library.resolve(&name) {
                            Ok(entry) => FileTool::Known(Arc::clone(&entry.value.definition)),
                            Err(error) => FileTool::Unknown(error.to_string()),
                        },
                        (None, None) => FileTool::Unknown("the tools of the project cannot be read".to_owned()),
                    };
                tools.tools.push((name, tool));
            }
        }
        tools
    }

    fn get(&self, name: &str) -> Option<&FileTool> {
        self.tools.iter().find(|(known, _)| known == name).map(|(_, tool)| tool)
    }
}

/// Returns the tools of a project, without those of its MCP servers.
fn read_library(project: &Project) -> Option<Library<Tool>> {
    let root = find_root();
    let config = Config::read(root.as_deref()).ok()?;
    Tools::read(project, root.as_deref(), &config, &Environment::default()).ok()?.library().ok()
}

impl Schema {
    fn unknown(&self, wanted: &str, tools: &FileTools) -> CommandError {
        let names: Vec<_> = tools.tools.iter().map(|(name, _)| name.as_str()).collect();
        let hint = match patter::text::nearest(wanted, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => "it declares no tools; name the file that does".to_owned(),
            None => format!("its tools are {}", names.join(", ")),
        };
        CommandError::failure(format!("`{}` has no tool `{wanted}`", self.path.display())).with_hint(hint)
    }

    fn schema(&self, project: &Project, name: &str, tool: &FileTool) -> Result<Json, CommandError> {
        let failed = |reason: &dyn std::fmt::Display, hint: &str| {
            CommandError::failure(format!("the tool `{name}` has no schema: {reason}")).with_hint(hint)
        };
        let (signature, records) = match tool {
            FileTool::Declared(spec) => {
                let signature = spec.signature(project.records());
                (signature.map_err(|error| failed(&error, "run `patter check` for details"))?, project.records())
            }
            FileTool::Known(definition) => (definition.signature.clone(), &*definition.records),
            FileTool::Unknown(reason) => {
                return Err(failed(
                    reason,
                    "tools of MCP servers are known only when the servers run; see `patter why`",
                ));
            }
        };
        let schema = if self.output { output_schema(&signature, records) } else { input_schema(&signature, records) };
        let Some(provider) = self.provider else { return Ok(schema) };
        let viewed = adapt(&schema, provider.view());
        for change in &viewed.changes {
            let effect = match change.fidelity {
                Fidelity::Preserved => "same meaning",
                Fidelity::Weakened => "less strict",
                Fidelity::Inexpressible => "not supported",
            };
            ui::status(&format!("{name}: {effect}: {change}"))?;
        }
        Ok(viewed.schema)
    }
}
