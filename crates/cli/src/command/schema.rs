//! `patter schema`: the JSON Schemas of tools.

use super::Command;
use crate::error::{CommandError, CommandResult, ErrorFormat, Outcome};
use crate::format::{DataFormat, FormatOption, OutputFormat};
use crate::inspect::read_file;
use crate::ui;
use clap::{Args, ValueEnum};
use patter::declare::{DeclarationKind, ToolSpec};
use patter::project::Project;
use patter::types::dialect::{Fidelity, SchemaDialect, adapt};
use patter::types::schema::{input_schema, output_schema};
use serde_json::{Map, Value as Json};
use std::path::PathBuf;

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
        let trees = project.files().first().into_iter().flat_map(|file| file.tree.walk());
        let is_tool = |declares| matches!(declares, Some(DeclarationKind::Tool | DeclarationKind::Implementation));
        let tools: Vec<_> = trees
            .filter(|pattern| is_tool(DeclarationKind::from_pattern(*pattern)))
            .filter_map(ToolSpec::cast)
            .collect();
        let schema = match &self.tool {
            None => {
                let mut schemas = Map::new();
                for tool in &tools {
                    schemas.insert(tool.name().unwrap_or_default().into_owned(), self.schema(&project, tool)?);
                }
                Json::Object(schemas)
            }
            Some(wanted) => match tools.iter().find(|tool| tool.name().as_deref() == Some(wanted)) {
                Some(tool) => self.schema(&project, tool)?,
                None => return Err(self.unknown(wanted, &tools)),
            },
        };
        ui::print(&format!("{schema:#}\n"))?;
        Ok(Outcome::Success)
    }
}

impl Schema {
    fn unknown(&self, wanted: &str, tools: &[ToolSpec]) -> CommandError {
        let names: Vec<_> = tools.iter().filter_map(ToolSpec::name).collect();
        let hint = match patter::text::nearest(wanted, names.iter().map(AsRef::as_ref)) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => "it declares no tools; name the file that does".to_owned(),
            None => format!("its tools are {}", names.join(", ")),
        };
        CommandError::failure(format!("`{}` has no tool `{wanted}`", self.path.display())).with_hint(hint)
    }

    fn schema(&self, project: &Project, tool: &ToolSpec) -> Result<Json, CommandError> {
        let records = project.records();
        let name = tool.name().unwrap_or_default();
        let signature = tool.signature(records).map_err(|error| {
            let error = CommandError::failure(format!("the tool `{name}` has no schema: {error}"));
            error.with_hint("run `patter check` for details")
        })?;
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
