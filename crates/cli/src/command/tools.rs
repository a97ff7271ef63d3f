//! `patter tools`: what there is to call.

use crate::setup::{Setup, ToolSources};
use crate::{Outcome, diagnostics, print};
use anstyle::{AnsiColor, Style};
use clap::{Args, ValueEnum};
use patter::library::{Entry, Layer};
use patter::project::Servers;
use patter::tool::Tool;
use serde_json::{Value as Json, json};
use std::fmt::Write;
use std::io;

/// List the tools of all layers: the standard library, the organisation's, the project's
///
/// Tools come from three layers. Where two have the same full name, the one of the higher layer wins, and the list says
/// so. MCP servers of the project are started and asked for theirs.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter tools                  all tools\n  \
                        patter tools fs               those whose names have `fs` in them\n  \
                        patter tools --layer project  what the project adds\n  \
                        patter tools --format json    with schemas, for machines")]
pub(crate) struct Tools {
    /// Show only tools whose full name has this in it
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// Show one layer only
    #[arg(long, value_enum)]
    layer: Option<LayerName>,

    /// How to show
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

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

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// One JSON document
    Json,
}

const TOOL: Style = AnsiColor::Cyan.on_default();
const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

impl Tools {
    pub(crate) fn run(self) -> io::Result<Outcome> {
        let Some(setup) = Setup::read(&[], &self.sources, &Servers::All)? else { return Ok(Outcome::Failure) };
        let layer = self.layer.map(|layer| match layer {
            LayerName::Internal => Layer::Internal,
            LayerName::Org => Layer::Org,
            LayerName::Project => Layer::Project,
        });
        let is_shown = |entry: &&Entry<Tool>| {
            layer.is_none_or(|layer| entry.layer == layer)
                && self.name.as_deref().is_none_or(|name| entry.name.as_str().contains(name))
        };
        let mut entries: Vec<_> = setup.toolset.library.entries().filter(is_shown).collect();
        entries.sort_by(|a, b| (a.layer, &a.name).cmp(&(b.layer, &b.name)));
        match self.format {
            Format::Json => {
                let tools: Vec<_> = entries.iter().map(|entry| json_of(&setup, entry)).collect();
                print(&format!("{:#}\n", json!({"version": 1, "tools": tools})))?;
            }
            Format::Text if entries.is_empty() => {
                diagnostics::say("there are no such tools")?;
                return Ok(Outcome::Failure);
            }
            Format::Text => print(&table(&setup, &entries))?,
        }
        Ok(if setup.toolset.missing_servers.is_empty() { Outcome::Success } else { Outcome::Failure })
    }
}

fn table(setup: &Setup, entries: &[&Entry<Tool>]) -> String {
    let width = |text: &dyn Fn(&Entry<Tool>) -> usize| entries.iter().map(|entry| text(entry)).max().unwrap_or(0);
    let names = width(&|entry| entry.name.as_str().len());
    let kinds = width(&|entry| entry.value.kind.name().len());
    let effects = width(&|entry| entry.value.effect.name().len());
    let mut out = String::new();
    for layer in entries.chunk_by(|a, b| a.layer == b.layer) {
        if let Some(first) = layer.first() {
            let _ = writeln!(out, "{BOLD}{}{BOLD:#}", first.layer);
        }
        for entry in layer {
            let (name, tool) = (entry.name.as_str(), &entry.value);
            let (kind, effect) = (tool.kind.name(), tool.effect.name());
            let description = tool.definition.description.lines().next().unwrap_or_default();
            let _ = write!(out, "  {TOOL}{name:<names$}{TOOL:#}  {kind:<kinds$}  {effect:<effects$}  {description}");
            for overridden in setup.toolset.library.overrides().filter(|one| one.winner.name == entry.name) {
                let _ = write!(out, " {DIM}(overrides the {} layer){DIM:#}", overridden.loser.layer);
            }
            out.push('\n');
        }
    }
    out
}

fn json_of(setup: &Setup, entry: &Entry<Tool>) -> Json {
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
        "source": &*tool.source,
        "overrides": overridden,
    })
}
