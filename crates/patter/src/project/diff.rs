//! Changes to `patter.toml` between two versions of a project: what gives agents power, or takes it away.

use super::config::{Config, OrgConfig};
use super::environment::Environment;
use super::load::{CONFIG, LoadError};
use super::servers::ServerSet;
use super::trust::{Definition, DefinitionKind, config_definitions, server_definitions};
use patter_core::diff::{Change, Judgement, diff_rules};
use std::path::{Path, PathBuf};

/// Compares the settings of two folders: permission rules, folders of `fs`, MCP servers, hooks, sandboxes, the organisation's
/// tools, and addresses. A folder without `patter.toml` has the default settings.
///
/// ```
/// use patter::project::diff_settings;
/// # let folder = tempfile::tempdir().unwrap();
/// # let old = folder.path().join("old");
/// # let new = folder.path().join("new");
/// # std::fs::create_dir(&old).unwrap();
/// # std::fs::create_dir(&new).unwrap();
/// std::fs::write(old.join("patter.toml"), "[permissions]\ndeny = ['fs/*']").unwrap();
/// let changes = diff_settings(&old, &new).unwrap();
/// assert_eq!(changes[0].to_string(), "`patter.toml`: permission `deny fs/*` removed");
/// ```
pub fn diff_settings(old: &Path, new: &Path) -> Result<Vec<Change>, LoadError> {
    let before = Settings::read(old)?;
    let after = Settings::read(new)?;
    let mut changes = Vec::new();
    // The rules were parsed when the settings were read.
    let rules = |config: &Config| config.permissions.rules().unwrap_or_default();
    let subject = format!("`{CONFIG}`");
    for (judgement, description) in diff_rules(&rules(&before.config), &rules(&after.config)) {
        changes.push(change(subject.clone(), judgement, description));
    }
    let lists = [
        ("roots", roots(&before.config), roots(&after.config)),
        ("tools", org_tools(&before.config), org_tools(&after.config)),
    ];
    for (name, before, after) in lists.into_iter().filter(|(_, before, after)| before != after) {
        let section = if name == "roots" { "fs" } else { "org" };
        let description = format!("`{name}` under `[{section}]` changed from {before} to {after}");
        changes.push(breaking(subject.clone(), description));
    }
    if before.config.budget != after.config.budget {
        changes.push(breaking(subject.clone(), "`[budget]` changed".to_owned()));
    }
    if before.config.sandbox != after.config.sandbox {
        changes.push(breaking(subject, "`[sandbox]` changed".to_owned()));
    }
    changes.extend(after.definitions.iter().filter_map(|definition| {
        let earlier = before.definitions.iter().find(|earlier| earlier.has_name_of(definition));
        let description = match earlier {
            Some(earlier) if earlier == definition => return None,
            Some(earlier) if earlier.detail == definition.detail => "changed".to_owned(),
            Some(earlier) => format!("changed from `{}` to `{}`", earlier.detail, definition.detail),
            None if definition.detail.is_empty() => "added".to_owned(),
            None => format!("added: `{}`", definition.detail),
        };
        Some(breaking(name(definition), description))
    }));
    let is_removed = |earlier: &&Definition| !after.definitions.iter().any(|later| later.has_name_of(earlier));
    changes.extend(
        before.definitions.iter().filter(is_removed).map(|definition| breaking(name(definition), "removed".to_owned())),
    );
    Ok(changes)
}

struct Settings {
    config: Config,
    /// What the settings define, apart from folders, whose meaning depends on where the project is.
    definitions: Vec<Definition>,
}

impl Settings {
    fn read(folder: &Path) -> Result<Self, LoadError> {
        let config = Config::read(Some(folder).filter(|folder| folder.join(CONFIG).is_file()))?;
        // Variables are not part of a version.
        let environment = Environment::default();
        let servers = ServerSet::read(folder, &config, &environment);
        let servers = servers.configs().map(|(name, server, _)| (name, server));
        let mut definitions = server_definitions(servers, &environment, &config.sandbox.policy());
        definitions.extend(config_definitions(folder, &config, &environment));
        definitions.retain(|definition| definition.kind != DefinitionKind::Folder);
        Ok(Self { config, definitions })
    }
}

/// Returns the folders that the toolbox `fs` may access.
fn roots(config: &Config) -> String {
    list(config.fs.roots.as_deref().unwrap_or(&[PathBuf::from(".")]))
}

/// Returns the files with the tools of the organisation, with its name.
fn org_tools(config: &Config) -> String {
    match &config.org {
        None => list(&[]),
        Some(OrgConfig { name: Some(name), tools }) => format!("{} of `{name}`", list(tools)),
        Some(OrgConfig { name: None, tools }) => list(tools),
    }
}

fn list(paths: &[PathBuf]) -> String {
    let paths: Vec<_> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
    if paths.is_empty() { "none".to_owned() } else { paths.join(", ") }
}

/// Returns what a definition is about.
fn name(definition: &Definition) -> String {
    format!("{} `{}` of `{CONFIG}`", definition.kind.name(), definition.name)
}

/// Returns a change that gives or takes power. Either may break something.
fn breaking(subject: String, description: String) -> Change {
    change(subject, Judgement::Breaking, description)
}

fn change(subject: String, judgement: Judgement, description: String) -> Change {
    Change { judgement, subject, description, old: None, new: None, texts: None }
}
