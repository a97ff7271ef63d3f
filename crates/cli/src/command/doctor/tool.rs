//! The tools: MCP servers, and the programs of commands.

use super::{Doctor, Line, State};
use crate::diagnostics::counted;
use patter::declare::{CommandSpec, ToolSpec};
use patter::library::Library;
use patter::project::{Config, Environment, Project, ServerReport, Servers, Tools};
use patter::tool::Tool;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where programs are looked for if nothing says where.
const USUAL_PATH: &str = "/bin:/usr/bin";

/// Looks at the tools of a project. Returns the library too, where all servers told what they have.
pub(super) async fn look(
    project: &Project,
    root: Option<&Path>,
    config: &Config,
    environment: &Environment,
    asked: &Doctor,
) -> (Option<Library<Tool>>, Vec<Line>) {
    let mut tools = match Tools::read(project, root, config, environment) {
        Ok(tools) => tools,
        Err(error) => {
            let hint = error.hint().unwrap_or_else(|| "`patter tools` says more".to_owned());
            return (None, vec![Line::broken(error.to_string(), hint)]);
        }
    };
    let mut lines = servers(&mut tools, asked).await;
    let is_whole = lines.is_empty() || !asked.no_mcp && lines.iter().all(|line| line.state != State::Broken);
    lines.extend(programs(project, root, environment));
    match tools.library() {
        Ok(library) => (is_whole.then_some(library), lines),
        Err(errors) => {
            let hint = "rename one of the two, or remove it";
            lines.extend(errors.iter().map(|error| Line::broken(error.to_string(), hint)));
            (None, lines)
        }
    }
}

/// Starts the servers, and counts their tools.
async fn servers(tools: &mut Tools, asked: &Doctor) -> Vec<Line> {
    let names: Vec<_> = tools.servers().map(str::to_owned).collect();
    if asked.no_mcp {
        return names.iter().map(|name| Line::skipped(format!("the MCP server `{name}` was not started"))).collect();
    }
    let ServerReport { problems, warnings } = tools.add_servers(&Servers::All).await;
    let mut lines = Vec::new();
    for name in names.iter().filter(|name| !problems.iter().any(|problem| problem.server == **name)) {
        let count = tools.names().filter(|tool| tool.namespace() == Some(name)).count();
        let count = counted(count, "tool").unwrap_or_else(|| "no tools".to_owned());
        lines.push(Line::well(format!("the MCP server `{name}` has {count}")));
    }
    lines.extend(problems.iter().map(|problem| {
        let hint = problem.hint().unwrap_or_else(|| format!("look at `[mcp.{}]` in patter.toml", problem.server));
        Line::broken(problem.message.clone(), hint)
    }));
    lines.extend(warnings.into_iter().map(Line::skipped));
    lines
}

/// Looks for the programs that command tools of the project name, each once.
fn programs(project: &Project, root: Option<&Path>, environment: &Environment) -> Vec<Line> {
    let mut named: Vec<(String, String)> = Vec::new();
    let patterns = project.files().iter().flat_map(|file| file.tree.walk());
    for pattern in patterns.filter(|pattern| pattern.has_label("Command")) {
        // What is wrong with a declaration is an error of the check.
        let Some(spec) = ToolSpec::cast(pattern) else { continue };
        let Ok(signature) = spec.signature(project.records()) else { continue };
        let Ok(command) = CommandSpec::read(pattern, &signature) else { continue };
        // What a variable of the environment is part of is known when it runs.
        let Some(program) = command.run.first().filter(|program| program.variables().next().is_none()) else {
            continue;
        };
        let program = program.to_string();
        if !named.iter().any(|(known, _)| *known == program) {
            named.push((program, spec.name().unwrap_or_default().into_owned()));
        }
    }
    let path = environment.get("PATH").unwrap_or_else(|| USUAL_PATH.to_owned());
    let root = root.unwrap_or(Path::new("."));
    let found = |(program, tool): &(String, String)| {
        let places: Vec<PathBuf> = if program.contains('/') {
            vec![root.join(program)]
        } else {
            std::env::split_paths(&path).map(|folder| folder.join(program)).collect()
        };
        if places.iter().any(|place| is_program(place)) {
            return Line::well(format!("the program `{program}` is there"));
        }
        let hint = if program.contains('/') {
            format!("there should be a program at `{}`", root.join(program).display())
        } else {
            format!("install it, or add its folder to PATH: {path}")
        };
        Line::broken(format!("the program `{program}` of the tool `{tool}` is not there"), hint)
    };
    named.iter().map(found).collect()
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
