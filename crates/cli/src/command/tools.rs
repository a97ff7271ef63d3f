//! `patter tools`: lists tools.

use super::Command;
use crate::error::{CommandError, CommandResult, ErrorFormat, Outcome};
use crate::format::{DataFormat, FormatOption, OutputFormat};
use crate::inspect::format_signature;
use crate::setup::{Intent, Setup, ToolSources};
use crate::ui;
use crate::ui::style::{ACCENT, BOLD};
use clap::{Args, ValueEnum};
use patter::library::{Entry, Layer};
use patter::project::{Project, ServerSelection};
use patter::tool::Tool;
use patter::types::compatibility::{MAX_WANTED, WantedSignature};
use patter::types::signature::Type;
use serde_json::{Value as Json, json};
use std::fmt::Write;

/// List the tools of all layers: the standard library, the organisation's, the project's
///
/// If two layers have a tool with the same full name, the higher layer wins, and the list marks the override. The MCP
/// servers of the project are started and asked for their tools.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter tools                  all tools\n  \
                        patter tools fs               tools whose name contains `fs`\n  \
                        patter tools --layer project  the tools of the project\n  \
                        patter tools --accepts Text --returns Int\n  \
                        patter tools --after shop/order   what its result can be passed to\n  \
                        patter tools --format json    with schemas, for machines")]
pub(crate) struct Tools {
    /// List only tools whose full name contains this
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// List one layer only
    #[arg(long, value_enum)]
    layer: Option<LayerName>,

    /// List tools that can be called with a value of this type and nothing else; may be repeated for several values
    #[arg(long, value_name = "TYPE")]
    accepts: Vec<String>,

    /// List tools that return only values of this type
    #[arg(long, value_name = "TYPE")]
    returns: Option<String>,

    /// List tools that can be called with the result of this tool and nothing else
    #[arg(long, value_name = "TOOL", conflicts_with = "accepts")]
    after: Option<String>,

    #[command(flatten)]
    format: FormatOption<DataFormat>,

    #[command(flatten)]
    sources: ToolSources,
}

#[derive(Clone, Copy, ValueEnum)]
enum LayerName {
    /// The standard library
    Internal,
    /// What the organisation shares
    Org,
    /// The project
    Project,
}

impl Command for Tools {
    fn error_format(&self) -> ErrorFormat {
        self.format.format.error_format()
    }

    fn run(&self) -> CommandResult {
        let setup = Setup::read(&[], &self.sources, &ServerSelection::All, Intent::Describe)?;
        let layer = self.layer.map(|layer| match layer {
            LayerName::Internal => Layer::Internal,
            LayerName::Org => Layer::Org,
            LayerName::Project => Layer::Project,
        });
        let wanted = self.wanted(&setup)?;
        let is_shown = |entry: &&Entry<Tool>| {
            let definition = &entry.value.definition;
            layer.is_none_or(|layer| entry.layer == layer)
                && wanted.iter().all(|wanted| wanted.fits((&definition.signature, &definition.records)))
                && self.name.as_deref().is_none_or(|name| entry.name.as_str().contains(name))
        };
        let mut entries: Vec<_> = setup.toolset.library.entries().filter(is_shown).collect();
        entries.sort_by(|a, b| (a.layer, &a.name).cmp(&(b.layer, &b.name)));
        let problems = &setup.toolset.missing_servers;
        // A toolkit has no signature.
        let toolkits = match wanted.is_empty() {
            true => self.toolkits(&setup.loaded.project, layer),
            false => Vec::new(),
        };
        match self.format.format {
            DataFormat::Json => {
                let tools: Vec<_> = entries.iter().map(|entry| tool_json(&setup, entry)).collect();
                let problems: Vec<_> = problems.iter().map(CommandError::to_json).collect();
                let toolkits: Vec<_> =
                    toolkits.iter().map(|(name, tools)| json!({"name": name, "tools": tools})).collect();
                let document = json!({"version": 1, "tools": tools, "toolkits": toolkits, "problems": problems});
                ui::print(&format!("{document:#}\n"))?;
            }
            DataFormat::Text if entries.is_empty() && toolkits.is_empty() => {
                ui::status(&match &self.name {
                    _ if !wanted.is_empty() => "no tool has such a signature".to_owned(),
                    Some(name) => format!("no tool name contains `{name}`; `patter tools` lists all"),
                    None => "this layer has no tools".to_owned(),
                })?;
                return Ok(Outcome::Findings);
            }
            DataFormat::Text if !wanted.is_empty() => ui::print(&signature_table(&entries))?,
            DataFormat::Text => ui::print(&(table(&setup, &entries) + &toolkit_table(&toolkits)))?,
        }
        Ok(Outcome::from_findings(!problems.is_empty()))
    }
}

impl Tools {
    /// Returns the signatures that tools must fit.
    fn wanted(&self, setup: &Setup) -> Result<Vec<WantedSignature>, CommandError> {
        let records = setup.loaded.project.records();
        let parse = |option: &str, text: &str| {
            Type::parse(text, records).map_err(|error| {
                let first = error.diagnostics.first();
                let message = first.map_or_else(|| error.to_string(), |first| first.message.to_string());
                let hint = first.and_then(|first| first.hint.as_ref()).map(ToString::to_string);
                let hint =
                    hint.unwrap_or_else(|| "for example, `Text`, `Int` or a record type of the project".to_owned());
                CommandError::usage(format!("{option} `{text}`: {message}")).with_hint(hint)
            })
        };
        if self.accepts.len() > MAX_WANTED {
            return Err(CommandError::usage(format!("--accepts may be repeated at most {MAX_WANTED} times")));
        }
        let mut wanted = Vec::new();
        let accepts = self.accepts.iter().map(|text| parse("--accepts", text)).collect::<Result<Vec<_>, _>>()?;
        let returns = self.returns.as_deref().map(|text| parse("--returns", text)).transpose()?;
        if !accepts.is_empty() || returns.is_some() {
            wanted.push(WantedSignature { accepts, returns, records: records.clone() });
        }
        if let Some(name) = &self.after {
            let entry = setup
                .toolset
                .library
                .resolve(name)
                .map_err(|error| CommandError::failure(error.to_string()).with_hint_if(error.hint()))?;
            let definition = &entry.value.definition;
            let accepts = vec![definition.signature.returns.clone()];
            let records = (*definition.records).clone();
            wanted.push(WantedSignature { accepts, returns: None, records });
        }
        Ok(wanted)
    }

    /// Returns the toolkits to list, with the names of their tools. They are part of the project.
    fn toolkits(&self, project: &Project, layer: Option<Layer>) -> Vec<(String, Vec<String>)> {
        let is_listed = layer.is_none_or(|layer| layer == Layer::Project);
        let is_named = |name: &str| self.name.as_deref().is_none_or(|part| name.contains(part));
        let toolkits = project.toolkits().filter(|(declaration, _)| is_listed && is_named(&declaration.name));
        toolkits.map(|(declaration, toolkit)| (declaration.name.clone(), project.toolkit_tools(&toolkit))).collect()
    }
}

/// Returns tools with their signatures.
fn signature_table(entries: &[&Entry<Tool>]) -> String {
    let names = entries.iter().map(|entry| ui::width(entry.name.as_str())).max().unwrap_or(0);
    let mut out = String::new();
    for entry in entries {
        let name = ui::pad(entry.name.as_str(), names);
        let signature = format_signature(&entry.value.definition.signature);
        let _ = writeln!(out, "{ACCENT}{name}{ACCENT:#}  {signature}");
    }
    out
}

fn toolkit_table(toolkits: &[(String, Vec<String>)]) -> String {
    let mut out = String::new();
    if !toolkits.is_empty() {
        let _ = writeln!(out, "{BOLD}toolkits{BOLD:#}");
    }
    let width = toolkits.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, tools) in toolkits {
        let _ = writeln!(out, "  {ACCENT}{name:<width$}{ACCENT:#}  {}", tools.join(", "));
    }
    out
}

fn table(setup: &Setup, entries: &[&Entry<Tool>]) -> String {
    let width = |text: &dyn Fn(&Entry<Tool>) -> usize| entries.iter().map(|entry| text(entry)).max().unwrap_or(0);
    let names = width(&|entry| ui::width(entry.name.as_str()));
    let kinds = width(&|entry| entry.value.kind.name().len());
    let effects = width(&|entry| entry.value.effect.name().len());
    let mut out = String::new();
    for layer in entries.chunk_by(|a, b| a.layer == b.layer) {
        if let Some(first) = layer.first() {
            let _ = writeln!(out, "{BOLD}{}{BOLD:#}", first.layer);
        }
        for entry in layer {
            let tool = &entry.value;
            let name = entry.name.as_str();
            let kind = tool.kind.name();
            let effect = tool.effect.name();
            let description = tool.definition.description.lines().next().unwrap_or_default();
            let overridden = setup.toolset.library.overrides().filter(|one| one.winner.name == entry.name);
            let overrides = overridden.map(|one| format!(" (overrides the {} layer)", one.loser.layer));
            let sandbox = tool.sandbox.as_ref().filter(|sandbox| !sandbox.is_none());
            let sandbox = sandbox.map_or_else(String::new, |sandbox| format!(" (sandbox: {sandbox})"));
            let text = format!("{description}{sandbox}{}", overrides.collect::<String>());
            let name = ui::pad(name, names);
            let lead = format!("  {ACCENT}{name}{ACCENT:#}  {kind:<kinds$}  {effect:<effects$}  ");
            let lead_width = names + kinds + effects + 8;
            out.push_str(&ui::with_hanging_text(&lead, lead_width, &text, ui::line_width()));
        }
    }
    out
}

fn tool_json(setup: &Setup, entry: &Entry<Tool>) -> Json {
    let tool = &entry.value;
    let overridden: Vec<_> = setup
        .toolset
        .library
        .overrides()
        .filter(|one| one.winner.name == entry.name)
        .map(|one| json!({"layer": one.loser.layer.name(), "source": &*one.loser.value.source}))
        .collect();
    json!({
        "name": entry.name.as_str(),
        "layer": entry.layer.name(),
        "kind": tool.kind.name(),
        "effect": tool.effect.name(),
        "description": tool.definition.description,
        "signature": tool.definition.signature.to_string(),
        "input": tool.definition.input_schema(),
        "output": tool.definition.output_schema(),
        "idempotent": tool.idempotent,
        "sealed": tool.sealed,
        "timeoutSeconds": tool.timeout.as_secs_f64(),
        "sandbox": tool.sandbox.as_ref().map(ToString::to_string),
        "source": &*tool.source,
        "overrides": overridden,
    })
}
