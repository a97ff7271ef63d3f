//! The tools: MCP servers, and the programs of command tools.

use super::{CheckResult, Doctor, State};
use crate::setup::unused_hooks;
use crate::ui;
use patter::declare::{CommandSpec, ToolSpec};
use patter::library::Library;
use patter::project::{Config, Environment, Project, ServerReport, ServerSelection, Tools};
use patter::tool::Tool;
use patter::tool::sandbox::SandboxSupport;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where programs are searched if `PATH` is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Checks the tools of a project. Returns the library too, if it has the tools of all servers.
pub(super) async fn examine(
    project: &Project,
    root: Option<&Path>,
    config: &Config,
    environment: &Environment,
    options: &Doctor,
) -> (Option<Library<Tool>>, Vec<CheckResult>) {
    let mut tools = match Tools::read(project, root, config, environment) {
        Ok(tools) => tools,
        Err(error) => {
            let hint = error.hint().unwrap_or_else(|| "run `patter tools` for details".to_owned());
            return (None, vec![CheckResult::broken(error.to_string(), hint)]);
        }
    };
    let mut checks = servers(&mut tools, project, options).await;
    let is_complete = checks.is_empty() || !options.no_mcp && checks.iter().all(|check| check.state != State::Broken);
    checks.extend(programs(project, root, environment));
    checks.extend(sandbox(&tools));
    checks.extend(hooks(&tools));
    match tools.library() {
        Ok(library) => {
            let unused = if is_complete { unused_hooks(root, config, &library) } else { Vec::new() };
            let hint = "run `patter check` for details";
            checks.extend(unused.iter().map(|error| CheckResult::broken(error.to_string(), hint)));
            (is_complete.then_some(library), checks)
        }
        Err(errors) => {
            let hint = "rename one of the two, or remove it";
            checks.extend(errors.iter().map(|error| CheckResult::broken(error.to_string(), hint)));
            (None, checks)
        }
    }
}

/// Starts the MCP servers, and counts their tools.
async fn servers(tools: &mut Tools, project: &Project, options: &Doctor) -> Vec<CheckResult> {
    let names: Vec<_> = tools.servers().map(str::to_owned).collect();
    if options.no_mcp {
        return names
            .iter()
            .map(|name| CheckResult::skipped(format!("the MCP server `{name}` was not started")))
            .collect();
    }
    let ServerReport { problems, warnings } = tools.add_servers(project, &ServerSelection::All).await;
    let mut checks = Vec::new();
    for name in names.iter().filter(|name| !problems.iter().any(|problem| problem.server == **name)) {
        let count = tools.names().filter(|tool| tool.namespace() == Some(name)).count();
        let count = ui::plural(count, "tool");
        checks.push(CheckResult::ok(format!("the MCP server `{name}` has {count}")));
    }
    checks.extend(problems.iter().map(|problem| {
        let hint = problem.hint().unwrap_or_else(|| format!("check `[mcp.{}]` in patter.toml", problem.server));
        CheckResult::broken(problem.message.clone(), hint)
    }));
    checks.extend(warnings.into_iter().map(CheckResult::skipped));
    checks
}

/// Checks the programs of command tools, each once.
fn programs(project: &Project, root: Option<&Path>, environment: &Environment) -> Vec<CheckResult> {
    let mut named: Vec<(String, String)> = Vec::new();
    let patterns = project.files().iter().flat_map(|file| file.tree.walk());
    for pattern in patterns.filter(|pattern| pattern.has_label("Command")) {
        // Invalid declarations are findings of the check.
        let Some(spec) = ToolSpec::cast(pattern) else { continue };
        let Ok(signature) = spec.signature(project.records()) else { continue };
        let Ok(command) = CommandSpec::read(pattern, &signature) else { continue };
        // A program named by a variable is known only when it runs.
        let Some(program) = command.run.first().filter(|program| program.variables().next().is_none()) else {
            continue;
        };
        let program = program.to_string();
        if !named.iter().any(|(known, _)| *known == program) {
            named.push((program, spec.name().unwrap_or_default().into_owned()));
        }
    }
    let path = environment.get("PATH").unwrap_or_else(|| DEFAULT_PATH.to_owned());
    let root = root.unwrap_or(Path::new("."));
    let found = |(program, tool): &(String, String)| {
        let places: Vec<PathBuf> = if program.contains('/') {
            vec![root.join(program)]
        } else {
            std::env::split_paths(&path).map(|folder| folder.join(program)).collect()
        };
        if places.iter().any(|place| is_program(place)) {
            return CheckResult::ok(format!("the program `{program}` was found"));
        }
        let hint = if program.contains('/') {
            format!("expected a program at `{}`", root.join(program).display())
        } else {
            format!("install it, or add its folder to PATH: {path}")
        };
        CheckResult::broken(format!("the program `{program}` of the tool `{tool}` was not found"), hint)
    };
    named.iter().map(found).collect()
}

/// Checks that the system can enforce sandboxes, if a command or a server has one.
fn sandbox(tools: &Tools) -> Option<CheckResult> {
    let library = tools.library().ok()?;
    let is_used = library.entries().any(|entry| entry.value.sandbox.as_ref().is_some_and(|sandbox| !sandbox.is_none()));
    let support = SandboxSupport::detect();
    let system = support.describe();
    is_used.then(|| match support.gap() {
        None => CheckResult::ok(format!("this system enforces sandboxes ({system})")),
        Some(gap) => {
            let message = format!("this system does not enforce sandboxes ({system}): they do not restrict {gap}");
            CheckResult::broken(message, "use Linux 6.2 or later with Landlock enabled, or run Patter in a container")
        }
    })
}

/// Checks that hooks can run, each command once.
fn hooks(tools: &Tools) -> Vec<CheckResult> {
    let mut names = Vec::new();
    let mut checks = Vec::new();
    for hook in tools.hooks() {
        if names.contains(&&hook.name) {
            continue;
        }
        names.push(&hook.name);
        let name = &hook.name;
        checks.push(match hook.problem() {
            None => CheckResult::ok(format!("the program of the hook `{name}` was found")),
            Some(problem) => CheckResult::broken(
                format!("the hook `{name}` cannot run, so it refuses all calls: {problem}"),
                "fix `run` under `[[hooks]]` in patter.toml",
            ),
        });
    }
    checks
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
