//! `patter why`: explains what the name of a tool refers to.

use super::Command;
use crate::error::{CommandError, CommandResult, ErrorFormat, Outcome};
use crate::format::{DataFormat, FormatOption, OutputFormat};
use crate::inspect::{Resolution, call_permissions};
use crate::setup::{Intent, Rules, Setup, ToolSources, split_agent};
use crate::ui;
use clap::Args;
use patter::library::{KnownTools, Toolkits, declared_permissions};
use patter::name::FullName;
use patter::permission::Permissions;
use patter::project::ServerSelection;

/// Explain what the name of a tool refers to: the candidates of all layers, which is chosen and why, and who may call it
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter why sayHello\n  \
                        patter why sayHello --agent hello.gram       as called by this agent\n  \
                        patter why refund --agent shop.gram#clerk    one agent of several")]
pub(crate) struct Why {
    /// Full or bare name of a tool
    tool: String,

    /// Agent that calls it: check that the tool matches its declaration, and that the agent may call it
    #[arg(long, value_name = "FILE[#AGENT]")]
    agent: Option<String>,

    #[command(flatten)]
    format: FormatOption<DataFormat>,

    #[command(flatten)]
    rules: Rules,

    #[command(flatten)]
    sources: ToolSources,
}

impl Command for Why {
    fn error_format(&self) -> ErrorFormat {
        self.format.format.error_format()
    }

    fn run(&self) -> CommandResult {
        let wanted = self.agent.as_deref().map(split_agent);
        let files: Vec<_> = wanted.iter().map(|(file, _)| file.clone()).collect();
        let servers = ServerSelection::ForTool(self.tool.clone());
        let setup = Setup::read(&files, &self.sources, &servers, Intent::Describe)?;
        let agent = wanted.map(|(_, name)| setup.agent(name)).transpose()?;
        let project = &setup.loaded.project;
        let library = &*setup.toolset.library;
        let rules = self.rules.all(&setup.config)?;
        let known = KnownTools::new(project, library);
        for unused in rules.iter().filter_map(|rule| known.unused(rule)) {
            ui::warning(&format!("{unused}; {}", unused.hint()))?;
        }
        let toolkits = Toolkits::new(project, library);
        let rules: Vec<_> = rules.into_iter().map(|rule| toolkits.expand(rule)).collect();
        let permissions = |name: &FullName| match (&agent, library.resolve(&self.tool)) {
            (Some(agent), _) => declared_permissions(agent, project, &toolkits, name).with_all(rules.clone()),
            (None, Ok(entry)) => call_permissions(&entry.name, &entry.value).with_all(rules.clone()),
            (None, Err(_)) => Permissions::default().with_all(rules.clone()),
        };
        let resolution = Resolution { tool: &self.tool, project, library, agent: agent.as_ref() };
        let unresolved = match (library.resolve(&self.tool), &agent) {
            (Err(error), None) => {
                let hint = error.hint().unwrap_or_else(|| "list all tools with `patter tools`".to_owned());
                Some(CommandError::failure(error.to_string()).with_hint(hint))
            }
            _ => None,
        };
        let is_valid = match self.format.format {
            DataFormat::Text => {
                let (text, is_valid) = resolution.describe(permissions);
                ui::print(&text)?;
                is_valid
            }
            DataFormat::Json => {
                let (document, is_valid) = resolution.to_json(permissions);
                match unresolved {
                    Some(error) => return Err(error.with_document(document)),
                    None => ui::print(&format!("{document:#}\n"))?,
                }
                is_valid
            }
        };
        match unresolved {
            Some(error) => Err(error),
            None => Ok(Outcome::from_findings(!is_valid)),
        }
    }
}
