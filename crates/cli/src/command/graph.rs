//! `patter graph`: draws a project.

use super::Command;
use crate::error::{CommandError, CommandResult, ErrorFormat, Outcome};
use crate::file::{Existing, Input, unreadable, unwritable, write_atomically};
use crate::format::{FormatOption, OutputFormat};
use crate::ui;
use clap::{Args, ValueEnum};
use patter::gram::Dialect;
use patter::graph::{Graph, GraphSource, Selection, SvgOptions, SvgStyle, workflow_to_mermaid};
use patter::project::{Config, LoadedProject, ProjectCheck, find_root, find_root_of};
use std::path::PathBuf;

/// Draw agents, what they call, and what that is bound to
///
/// Shows models, agents, the agents and tools that they call, toolboxes and layers, with the effects of tools, the
/// permissions of calls and the problems that `patter check` finds. The drawing of a project is always the same. No MCP
/// server is started: tools of servers are shown as agents name them.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter graph -o project.svg                the project around this folder\n  \
                        patter graph support.gram -o support.svg   the agents of a file, and what they call\n  \
                        patter graph --agent desk --format mermaid one agent, for Markdown\n  \
                        patter graph --format dot | dot -Tpdf > project.pdf")]
pub(crate) struct GraphCommand {
    /// Files and folders
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,

    /// Agent to draw, with what it calls; by default all
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// Draw the steps of a workflow instead, as a flowchart for Markdown
    #[arg(long)]
    steps: bool,

    #[command(flatten)]
    format: FormatOption<GraphFormat>,

    /// Write to this file instead of stdout
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum GraphFormat {
    /// A drawing for light and dark pages
    #[default]
    Svg,
    /// A flowchart for Markdown
    Mermaid,
    /// For Graphviz
    Dot,
    /// One JSON document
    Json,
}

impl OutputFormat for GraphFormat {
    const DEFAULT: &'static str = "svg";

    fn error_format(self) -> ErrorFormat {
        match self {
            GraphFormat::Svg | GraphFormat::Mermaid | GraphFormat::Dot => ErrorFormat::Text,
            GraphFormat::Json => ErrorFormat::Json,
        }
    }
}

impl Command for GraphCommand {
    fn error_format(&self) -> ErrorFormat {
        self.format.format.error_format()
    }

    fn run(&self) -> CommandResult {
        let root = self.paths.first().map_or_else(find_root, |path| find_root_of(path));
        let config = Config::read(root.as_deref())?;
        let loaded = LoadedProject::read(&self.paths, root.as_deref(), Dialect::Patter)?;
        for (path, error) in &loaded.unreadable {
            unreadable(&Input::Path(path.clone()), error).print_problem()?;
        }
        let selection = self.selection(&loaded)?;
        if self.steps {
            return self.draw_steps(&loaded);
        }
        let known = ProjectCheck::read(&loaded.project, root.as_deref(), &config);
        let findings = known.findings(&loaded.project, &config);
        let rules = config.permissions.rules()?;
        let source =
            GraphSource { project: &loaded.project, library: known.library(), rules: &rules, findings: &findings };
        let graph = Graph::build(source, &selection);
        let text = match self.format.format {
            GraphFormat::Svg => {
                let title = self.agent.as_deref().map_or_else(|| "Project".to_owned(), |name| format!("Agent {name}"));
                graph.to_svg(&SvgOptions { title: &title, style: SvgStyle::Standalone, link: &|_| None })
            }
            GraphFormat::Mermaid => graph.to_mermaid(),
            GraphFormat::Dot => graph.to_dot(),
            GraphFormat::Json => format!("{:#}\n", graph.to_json()),
        };
        match &self.output {
            Some(path) => {
                write_atomically(path, &text, Existing::Replace).map_err(|error| unwritable(path, &error))?;
                ui::status(&format!("wrote {}: {}", path.display(), graph.summary()))?;
            }
            None => ui::print(&text)?,
        }
        Ok(Outcome::from_findings(!loaded.unreadable.is_empty()))
    }
}

impl GraphCommand {
    /// Draws the steps of a workflow.
    fn draw_steps(&self, loaded: &LoadedProject) -> CommandResult {
        let agents = loaded.project.agents().filter(|(declared, _)| loaded.selected.contains(&declared.file));
        let workflows: Vec<_> = agents
            .map(|(_, agent)| agent)
            .filter(patter::declare::Agent::is_workflow)
            .filter(|agent| self.agent.as_ref().is_none_or(|name| agent.name().as_deref() == Some(name)))
            .collect();
        let chart = match workflows.as_slice() {
            [workflow] => workflow_to_mermaid(workflow),
            _ => None,
        };
        let Some(chart) = chart else {
            let error = CommandError::failure(match workflows.len() {
                0 => "there is no workflow here".to_owned(),
                count => format!("there are {count} workflows here"),
            });
            return Err(error.with_hint("name a workflow with --agent"));
        };
        match &self.output {
            Some(path) => {
                write_atomically(path, &chart, Existing::Replace).map_err(|error| unwritable(path, &error))?;
                ui::status(&format!("wrote {}", path.display()))?;
            }
            None => ui::print(&chart)?,
        }
        Ok(Outcome::Success)
    }

    fn selection(&self, loaded: &LoadedProject) -> Result<Selection, CommandError> {
        let project = &loaded.project;
        let files = loaded.selected.clone();
        let Some(name) = &self.agent else {
            let is_all = files.len() == project.files().len();
            return Ok(if is_all { Selection::Project } else { Selection::Files(files) });
        };
        let sources = project.files().iter().enumerate().filter(|(index, _)| files.contains(index));
        let agents = sources.flat_map(|(_, file)| file.tree.walk()).filter_map(patter::declare::Agent::cast);
        let names: Vec<_> = agents
            .flat_map(|agent| {
                let own = agent.name().map(std::borrow::Cow::into_owned);
                [own, Some(agent.path().to_string())].into_iter().flatten().collect::<Vec<_>>()
            })
            .collect();
        if names.contains(name) {
            return Ok(Selection::Agents { names: [name.clone()].into(), files });
        }
        let near = patter::text::nearest(name, names.iter().map(String::as_str));
        let hint = near.map(|near| format!("did you mean `{near}`?"));
        Err(CommandError::failure(format!("there is no agent `{name}`")).with_hint_if(hint))
    }
}
