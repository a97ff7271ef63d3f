//! What is looked at, and in which order.

use super::{Doctor, Line, Section, model, tool};
use crate::command::check::{add_unbound, known_tools};
use crate::diagnostics::counted;
use crate::talk::StoreOption;
use patter::check::{Options, check};
use patter::declare::Declares;
use patter::gram::Dialect;
use patter::library::unbound;
use patter::project::{CONFIG, Config, Environment, LoadError, Loaded, Project};
use patter::store::{self, Location, StoreError};
use std::path::{Path, PathBuf};

/// Looks at all that a project needs.
pub(super) async fn look(root: Option<&Path>, asked: &Doctor) -> Vec<Section> {
    let (config, mut project_lines) = config(root);
    let (environment, lines) = environment(root);
    project_lines.extend(lines);
    let (project, lines) = files(root, &config);
    project_lines.extend(lines);
    let (library, tool_lines) = tool::look(&project, root, &config, &environment, asked).await;
    let known = known_tools(&project, root, &config);
    let known: Vec<_> = known.iter().map(String::as_str).collect();
    let mut findings = check(&project, &Options { library: &known });
    if let Some(library) = &library {
        add_unbound(&mut findings, unbound(&project, library));
    }
    findings.retain(|finding| {
        finding.diagnostic.is_error() && !config.check.ignore.iter().any(|code| code == finding.diagnostic.code)
    });
    let bad: Vec<_> = findings.chunk_by(|a, b| a.file == b.file).collect();
    for findings in &bad {
        let file = findings.first().and_then(|finding| project.files().get(finding.file));
        let path = file.map_or("", |file| file.path.as_str());
        let errors = counted(findings.len(), "error").unwrap_or_default();
        project_lines
            .push(Line::broken(format!("`{path}` has {errors}"), format!("`patter check --bind {path}` shows them")));
    }
    if bad.is_empty() && !project.files().is_empty() {
        project_lines.push(sound(&project));
    }
    let model_lines = model::look(&project, &environment, &config, asked).await;
    vec![
        Section { name: "project", lines: project_lines },
        Section { name: "models", lines: model_lines },
        Section { name: "tools", lines: tool_lines },
        Section { name: "store", lines: store(root, &config, &environment).await },
    ]
}

fn config(root: Option<&Path>) -> (Config, Vec<Line>) {
    match (root, Config::read(root)) {
        (None, _) => {
            let message = format!("there is no `{CONFIG}` here or above, so this folder is looked at");
            (Config::default(), vec![Line::skipped(message)])
        }
        (Some(_), Ok(config)) => (config, vec![Line::well(format!("`{CONFIG}` can be read"))]),
        (Some(_), Err(error)) => {
            let line = Line::broken(error.to_string(), "docs/cli.md says what may stand in it");
            (Config::default(), vec![line])
        }
    }
}

fn environment(root: Option<&Path>) -> (Environment, Vec<Line>) {
    match Environment::read(root) {
        Ok(environment) => {
            let wrong =
                |line: &usize| Line::broken(format!("line {line} of `.env` is no assignment"), "write NAME=value");
            let lines = environment.bad_lines().iter().map(wrong).collect();
            (environment, lines)
        }
        Err(error) => {
            let line = Line::broken(error.to_string(), "its variables are missing; make it a text file, or remove it");
            (Environment::of_process(), vec![line])
        }
    }
}

fn files(root: Option<&Path>, config: &Config) -> (Project, Vec<Line>) {
    let dialect = if config.check.portable { Dialect::Portable } else { Dialect::Patter };
    let folder = root.map_or_else(|| PathBuf::from("."), Path::to_owned);
    match Loaded::read(&[folder], root, dialect) {
        Ok(loaded) => {
            let unreadable = loaded.unreadable.iter().map(|(path, error)| {
                Line::broken(format!("cannot read `{}`: {error}", path.display()), "mend its permissions, or remove it")
            });
            (loaded.project, unreadable.collect())
        }
        Err(error) => {
            let none = Project::read::<String, String>([]);
            match error {
                LoadError::Empty(_) => (none, vec![Line::skipped("there are no *.gram files")]),
                LoadError::Config { .. } => (none, vec![Line::broken(error.to_string(), "`patter check` says more")]),
            }
        }
    }
}

/// Says that no file has errors, and what there is.
fn sound(project: &Project) -> Line {
    let patterns = || project.files().iter().flat_map(|file| file.tree.walk());
    let count = |wanted| patterns().filter(|pattern| Declares::of(*pattern) == Some(wanted)).count();
    let counts = [
        counted(project.files().len(), "file"),
        counted(count(Declares::Agent), "agent"),
        counted(count(Declares::Tool) + count(Declares::Implementation), "tool"),
    ];
    let counts: Vec<_> = counts.into_iter().flatten().collect();
    Line::well(format!("{}: no errors", counts.join(", ")))
}

/// Looks whether sessions can be kept. A file that is not there yet is not made: it is enough that it could be.
async fn store(root: Option<&Path>, config: &Config, environment: &Environment) -> Vec<Line> {
    let broken = |error: &StoreError| {
        let hint =
            error.hint().unwrap_or_else(|| "`url` in the section [store] of patter.toml names another".to_owned());
        vec![Line::broken(error.to_string(), hint)]
    };
    let location = match StoreOption::default().location(root, config, environment) {
        Ok(Some(location)) => location,
        Ok(None) => return vec![Line::skipped("sessions are not kept")],
        Err(error) => return broken(&error),
    };
    if let Location::Sqlite(path) = &location
        && !path.exists()
    {
        return vec![can_be_made(path)];
    }
    let opened = async { store::open(&location).await?.list(1).await };
    match opened.await {
        Ok(_) => vec![Line::well(format!("sessions are kept in `{location}`"))],
        Err(error) => broken(&error),
    }
}

fn can_be_made(path: &Path) -> Line {
    let folder = path.parent().unwrap_or(Path::new("."));
    let shown = folder.strip_prefix(".").unwrap_or(folder).display().to_string();
    let there = folder.ancestors().find(|folder| folder.exists()).filter(|folder| !folder.as_os_str().is_empty());
    // Whether a file can be written is only known by writing one; it goes away at once.
    match tempfile::tempfile_in(there.unwrap_or(Path::new("."))) {
        Ok(_) => Line::well(format!("`{shown}` can be written")),
        Err(error) => {
            Line::broken(format!("`{shown}` cannot be written: {error}"), "make it a folder that you may write to")
        }
    }
}
