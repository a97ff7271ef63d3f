//! `patter query`: answers questions about a project and its sessions.

mod sessions;
mod table;

use super::Command;
use crate::error::{CommandError, CommandResult, ErrorFormat, Outcome};
use crate::file::{Existing, Input, unreadable, unwritable, write_atomically, write_private};
use crate::format::{FormatOption, OutputFormat};
use crate::session::StoreOption;
use crate::ui::{self, Excerpts, Limit};
use clap::{Args, ValueEnum};
use patter::gram::Dialect;
use patter::graph::{Graph, GraphSource, Selection, SvgOptions, SvgStyle};
use patter::project::{Config, LoadedProject, ProjectCheck, find_root, find_root_of};
use patter::query::{Answer, Limits, PROJECT_SCHEMA, Paths, ProjectGraph, Query, SESSION_SCHEMA, Schema, Stop};
use std::collections::HashSet;
use std::path::PathBuf;

/// Ask questions about a project or its sessions, as patterns with variables
///
/// Names are variables, and each row of the answer is what they stand for: `(a:Agent)-[:calls]->(t:Tool)` lists agents with
/// the tools they call. `--schema` prints the labels, relations and properties that can be asked for, and docs/query.md
/// explains the language. No MCP server is started: tools of servers are known as agents name them.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter query '(t:Tool) [:Not | (:Agent)-[:calls]->(t)]'           tools that nobody calls\n  \
                        patter query '(a:Agent)-[:may { decision: \"allow\", hops: 1... }]->(t:Tool { effect: \"writes\" })'\n  \
                        patter query --sessions '(r:Run)-[:made]->(c:Call { tool: \"refund\", args: { amount: \"> 100\" } })'\n  \
                        patter query '(a:Agent) [:Not | (a { maxCost: _ })]' --expect none   for CI: exit 1 if there are any\n  \
                        patter query --schema")]
pub(crate) struct QueryCommand {
    /// The question: nodes and arrows, such as `(a:Agent)-[:calls]->(t:Tool)`
    #[arg(required_unless_present = "schema")]
    pattern: Option<String>,

    /// Files and folders
    #[arg(value_name = "PATH", default_value = ".", conflicts_with = "sessions")]
    paths: Vec<PathBuf>,

    /// Ask about the stored sessions instead of the project
    #[arg(long)]
    sessions: bool,

    /// Print what can be asked for: labels, relations and properties
    #[arg(long, conflicts_with_all = ["pattern", "expect", "show_paths", "output"])]
    schema: bool,

    /// Show for each row the path that makes it an answer
    #[arg(long = "paths")]
    show_paths: bool,

    /// Exit 1 unless there are `none` or `some` rows, for scripts
    #[arg(long, value_name = "ROWS")]
    expect: Option<Expectation>,

    #[command(flatten)]
    format: FormatOption<QueryFormat>,

    /// Write to this file instead of stdout
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    store: StoreOption,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Expectation {
    /// There must be no rows
    None,
    /// There must be rows
    Some,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum QueryFormat {
    /// A table
    #[default]
    Text,
    /// One JSON document
    Json,
    /// A pattern for each row
    Gram,
    /// A drawing of what the rows consist of
    Svg,
    /// The same as a flowchart for Markdown
    Mermaid,
    /// The same for Graphviz
    Dot,
}

impl QueryFormat {
    const fn is_drawing(self) -> bool {
        matches!(self, QueryFormat::Svg | QueryFormat::Mermaid | QueryFormat::Dot)
    }
}

impl OutputFormat for QueryFormat {
    fn error_format(self) -> ErrorFormat {
        match self {
            QueryFormat::Json => ErrorFormat::Json,
            _ => ErrorFormat::Text,
        }
    }
}

impl Command for QueryCommand {
    fn error_format(&self) -> ErrorFormat {
        self.format.format.error_format()
    }

    fn run(&self) -> CommandResult {
        let schema = if self.sessions { SESSION_SCHEMA } else { PROJECT_SCHEMA };
        let Some(pattern) = &self.pattern else { return self.print_schema(&schema) };
        if self.sessions && self.format.format.is_drawing() {
            let error = CommandError::usage("sessions cannot be drawn");
            return Err(error.with_hint("use `--format text`, `json` or `gram`"));
        }
        let option = if self.sessions { " --sessions" } else { "" };
        let query = parse_query(pattern, &schema, option)?;
        let (rows, has_problems) = match self.sessions {
            true => self.ask_sessions(&query)?,
            false => self.ask_project(&query)?,
        };
        let is_as_expected = match self.expect {
            None => true,
            Some(Expectation::None) => rows == 0,
            Some(Expectation::Some) => rows > 0,
        };
        Ok(Outcome::from_findings(has_problems || !is_as_expected))
    }
}

impl QueryCommand {
    fn print_schema(&self, schema: &Schema) -> CommandResult {
        match self.format.format {
            QueryFormat::Text => ui::print(&schema.describe())?,
            QueryFormat::Json => ui::print(&format!("{:#}\n", schema.to_json()))?,
            _ => return Err(CommandError::usage("the schema is printed as text or JSON")),
        }
        Ok(Outcome::Success)
    }

    fn paths_wanted(&self) -> Paths {
        if self.show_paths || self.format.format.is_drawing() { Paths::Find } else { Paths::Skip }
    }

    /// Returns how many rows there are, and whether something could not be read.
    fn ask_project(&self, query: &Query) -> Result<(usize, bool), CommandError> {
        let root = self.paths.first().map_or_else(find_root, |path| find_root_of(path));
        let config = Config::read(root.as_deref())?;
        let loaded = LoadedProject::read(&self.paths, root.as_deref(), Dialect::Patter)?;
        for (path, error) in &loaded.unreadable {
            unreadable(&Input::Path(path.clone()), error).print_problem()?;
        }
        let known = ProjectCheck::read(&loaded.project, root.as_deref(), &config);
        if let Some(error) = known.error() {
            CommandError::failure(error.to_string()).with_hint_if(error.hint()).print_problem()?;
        }
        let findings = known.findings(&loaded.project, &config);
        let rules = config.permissions.rules()?;
        let project = &loaded.project;
        let library = known.library();
        let graph = ProjectGraph { project, library, rules: &rules, findings: &findings }.build();
        let answer =
            Answer::new(&graph, query, Limits::default(), self.paths_wanted()).map_err(|stop| stopped(&stop))?;
        let text = match self.format.format.is_drawing() {
            true => {
                let source = GraphSource { project, library, rules: &rules, findings: &findings };
                self.drawing(&Graph::build(source, &Selection::Project), &answer)
            }
            false => self.text(&answer),
        };
        self.write(&text, answer.rows.len())?;
        Ok((answer.rows.len(), !loaded.unreadable.is_empty() || known.error().is_some()))
    }

    /// Returns the answer in the format of the command.
    fn text(&self, answer: &Answer) -> String {
        match self.format.format {
            QueryFormat::Json => format!("{:#}\n", answer.to_json()),
            QueryFormat::Gram => answer.to_gram(),
            _ => table::table(answer),
        }
    }

    fn drawing(&self, graph: &Graph, answer: &Answer) -> String {
        let paths = answer.rows.iter().filter_map(|row| row.path.as_ref());
        let ids: HashSet<_> = paths.flat_map(|path| &path.vertices).map(String::as_str).collect();
        let part = graph.part(&ids);
        match self.format.format {
            QueryFormat::Mermaid => part.to_mermaid(),
            QueryFormat::Dot => part.to_dot(),
            _ => part.to_svg(&SvgOptions { title: "Answer", style: SvgStyle::Standalone, link: &|_| None }),
        }
    }

    fn write(&self, text: &str, rows: usize) -> Result<(), CommandError> {
        match &self.output {
            // What people said to agents is for the owner of the sessions alone.
            Some(path) if self.sessions => write_private(path, text, Existing::Replace),
            Some(path) => write_atomically(path, text, Existing::Replace),
            None => ui::print(text),
        }
        .map_err(|error| match &self.output {
            Some(path) => unwritable(path, &error),
            None => error.into(),
        })?;
        if self.format.format == QueryFormat::Text || self.output.is_some() {
            ui::status(&ui::plural(rows, "row"))?;
        }
        Ok(())
    }
}

/// Parses a query of the command line. The option is the one that prints its schema.
pub(super) fn parse_query(pattern: &str, schema: &Schema, option: &str) -> Result<Query, CommandError> {
    Query::parse(pattern, schema).map_err(|errors| {
        let excerpts = Excerpts::new(errors, pattern, "query", Limit::default());
        let error = CommandError::usage("the query is not valid").with_excerpts(excerpts);
        error.with_hint(format!("`patter query{option} --schema` prints what can be asked for"))
    })
}

/// Returns the error of a query that was stopped.
fn stopped(stop: &Stop) -> CommandError {
    CommandError::failure(stop.to_string()).with_hint(stop.hint())
}
