//! `patter schema`: the JSON Schemas of tools.

use super::show::read_file;
use crate::{Outcome, diagnostics, print};
use clap::{Args, ValueEnum};
use patter::declare::{Declares, ToolSpec};
use patter::project::Project;
use patter::types::dialect::{Effect, SchemaView, view};
use patter::types::schema::{input_schema, output_schema};
use serde_json::{Map, Value as Json};
use std::io;
use std::path::PathBuf;

/// Print the JSON Schema of what tools take, or give
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter schema agent.gram             all tools, by name\n  \
                        patter schema agent.gram sayHello\n  \
                        patter schema agent.gram sayHello --output\n  \
                        patter schema agent.gram sayHello --provider openai")]
pub(crate) struct Schema {
    /// File with agents or tools
    #[arg(value_name = "FILE")]
    path: PathBuf,

    /// Tool to print; without one all are printed, by name
    #[arg(value_name = "TOOL")]
    tool: Option<String>,

    /// Print what the tool gives instead of what it takes
    #[arg(long)]
    output: bool,

    /// Print it as a provider takes it, and say what that changes
    #[arg(long, value_enum)]
    provider: Option<Provider>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Provider {
    /// Tools of OpenAI with strict schemas
    Openai,
    Anthropic,
    Gemini,
}

impl Provider {
    fn view(self) -> SchemaView {
        match self {
            Provider::Openai => SchemaView::OpenAiStrict,
            Provider::Anthropic => SchemaView::Anthropic,
            Provider::Gemini => SchemaView::Gemini,
        }
    }
}

impl Schema {
    pub(crate) fn run(self) -> io::Result<Outcome> {
        let Some(project) = read_file(&self.path)? else { return Ok(Outcome::Failure) };
        let Some(file) = project.files().first() else { return Ok(Outcome::Failure) };
        let is_tool = |declares| matches!(declares, Some(Declares::Tool | Declares::Implementation));
        let tools: Vec<_> =
            file.tree.walk().filter(|pattern| is_tool(Declares::of(*pattern))).filter_map(ToolSpec::cast).collect();
        let Some(wanted) = &self.tool else {
            let mut schemas = Map::new();
            for tool in &tools {
                match self.schema(&project, tool) {
                    Ok(schema) => schemas.insert(tool.name().unwrap_or_default().into_owned(), schema),
                    Err(message) => return fail(&message, None),
                };
            }
            print(&format!("{:#}\n", Json::Object(schemas)))?;
            return Ok(Outcome::Success);
        };
        let Some(tool) = tools.iter().find(|tool| tool.name().as_deref() == Some(wanted)) else {
            let names: Vec<_> = tools.iter().filter_map(ToolSpec::name).collect();
            let hint = match patter::text::nearest(wanted, names.iter().map(AsRef::as_ref)) {
                Some(near) => format!("did you mean `{near}`?"),
                None if names.is_empty() => "it declares no tools; name the file that does".to_owned(),
                None => format!("its tools are {}", names.join(", ")),
            };
            return fail(&format!("`{}` has no tool `{wanted}`", file.path), Some(&hint));
        };
        match self.schema(&project, tool) {
            Ok(schema) => print(&format!("{schema:#}\n"))?,
            Err(message) => return fail(&message, Some("`patter check` says more")),
        }
        Ok(Outcome::Success)
    }

    fn schema(&self, project: &Project, tool: &ToolSpec) -> Result<Json, String> {
        let records = project.records();
        let signature = tool
            .signature(records)
            .map_err(|error| format!("the tool `{}` has no schema: {error}", tool.name().unwrap_or_default()))?;
        let schema = if self.output { output_schema(&signature, records) } else { input_schema(&signature, records) };
        let Some(provider) = self.provider else { return Ok(schema) };
        let viewed = view(&schema, provider.view());
        let name = tool.name().unwrap_or_default();
        for change in &viewed.changes {
            let effect = match change.effect {
                Effect::Kept => "same meaning",
                Effect::Weakened => "says less",
                Effect::Inexpressible => "cannot be said",
            };
            // What is said on stderr does not decide about the result.
            let _ = diagnostics::say(&format!("{name}: {effect}: {change}"));
        }
        Ok(viewed.schema)
    }
}

fn fail(message: &str, hint: Option<&str>) -> io::Result<Outcome> {
    diagnostics::error(message, hint)?;
    Ok(Outcome::Failure)
}
