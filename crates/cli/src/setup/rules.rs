//! Permission rules on the command line.

use super::Setup;
use crate::error::{CommandError, ErrorKind};
use crate::place::Place;
use clap::Args;
use patter::gram::Span;
use patter::library::{KnownTools, Library, Toolkits};
use patter::permission::{Decision, Rule, UnusedRule};
use patter::project::{CONFIG, Config, PermissionConfig, Project};
use patter::tool::Tool;
use std::path::{Path, PathBuf};

/// Permission rules of a command.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct Rules {
    /// Allow calls: `fs/*`, or `fs/readFile when path matches "docs/*"`
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,

    /// Ask before calls
    #[arg(long, value_name = "RULE")]
    ask: Vec<String>,

    /// Refuse calls
    #[arg(long, value_name = "RULE")]
    deny: Vec<String>,
}

impl Rules {
    /// Returns the rules as options of another command.
    pub(crate) fn options(&self) -> impl Iterator<Item = String> {
        let kinds = [("allow", &self.allow), ("ask", &self.ask), ("deny", &self.deny)];
        kinds.into_iter().flat_map(|(kind, rules)| rules.iter().map(move |rule| format!("--{kind}={rule}")))
    }

    /// Returns the rules of the project and of the command. A rule that is about nothing is an error, because it would
    /// protect nothing.
    pub(crate) fn checked(&self, setup: &Setup) -> Result<Vec<Rule>, CommandError> {
        let rules = self.all(&setup.config)?;
        if rules.is_empty() && setup.config.hooks.is_empty() {
            return Ok(rules);
        }
        let known = KnownTools::new(&setup.loaded.project, &*setup.toolset.library);
        let unused: Vec<_> = rules.iter().filter_map(|rule| known.unused(rule)).collect();
        refuse_unused(setup.root.as_deref(), &unused)?;
        let hooks = unused_hooks(setup.root.as_deref(), &setup.config, &setup.toolset.library);
        if !hooks.is_empty() {
            return Err(CommandError::combine("a hook never runs, so nothing was run", hooks));
        }
        let toolkits = Toolkits::new(&setup.loaded.project, &setup.toolset.library);
        Ok(rules.into_iter().map(|rule| toolkits.expand(rule)).collect())
    }

    /// Returns the rules of the project and of the command, which may be about nothing.
    pub(crate) fn all(&self, config: &Config) -> Result<Vec<Rule>, CommandError> {
        let mut rules = config.permissions.rules()?;
        rules.extend(self.parse()?);
        Ok(rules)
    }

    /// Returns whether there are any.
    pub(crate) fn is_given(&self) -> bool {
        !(self.allow.is_empty() && self.ask.is_empty() && self.deny.is_empty())
    }

    fn parse(&self) -> Result<Vec<Rule>, CommandError> {
        let Self { allow, ask, deny } = self.clone();
        let rules =
            PermissionConfig { allow, ask, deny }.rules_with_origin(|decision| format!("--{}", decision.name()));
        rules.map_err(|error| CommandError::from(error).with_kind(ErrorKind::Usage))
    }
}

/// Returns an error if there are rules about nothing.
pub(crate) fn refuse_unused(root: Option<&Path>, unused: &[UnusedRule]) -> Result<(), CommandError> {
    if unused.is_empty() {
        return Ok(());
    }
    let message = "a permission rule is about nothing, so nothing was run";
    Err(CommandError::combine(message, unused.iter().map(|unused| unused_error(root, unused)).collect()))
}

/// Describes the hooks that never run, because they are for calls that cannot happen. Like a misspelt rule, such a hook
/// would protect nothing.
pub(crate) fn unused_hooks(root: Option<&Path>, config: &Config, library: &Library<Tool>) -> Vec<CommandError> {
    if config.hooks.is_empty() {
        return Vec::new();
    }
    // Hooks run for tools, and not for agents that are called.
    let nothing = Project::read::<&str, &str>([]);
    let known = KnownTools::new(&nothing, library);
    let calls = config.hooks.iter().flat_map(|hook| hook.calls().map(move |(stage, calls)| (hook, stage, calls)));
    let unused = calls.filter_map(|(hook, stage, calls)| {
        let rule = Rule::with_decision(Decision::Ask, calls, format!("`{CONFIG}`")).ok()?;
        let unused = known.unused(&rule)?;
        let subject = format!("{} {calls}", stage.name());
        let message = format!("the hook `{}`: {}", hook.name(), unused.message_about(&subject));
        let path = config_path(root);
        let error = CommandError::new(ErrorKind::named("ConfigurationError"), message);
        Some(error.with_hint(unused.hint()).with_place(place_of(&path, &unused)))
    });
    unused.collect()
}

/// Describes a rule about nothing, with its place.
pub(crate) fn unused_error(root: Option<&Path>, unused: &UnusedRule) -> CommandError {
    let origin = &unused.rule.origin;
    if origin.starts_with("--") {
        return CommandError::usage(format!("{origin}: {unused}")).with_hint(unused.hint());
    }
    let error = CommandError::new(ErrorKind::named("ConfigurationError"), unused.to_string());
    error.with_hint(unused.hint()).with_place(place_of(&config_path(root), unused))
}

fn config_path(root: Option<&Path>) -> PathBuf {
    let path = root.unwrap_or(Path::new(".")).join(CONFIG);
    path.strip_prefix(".").map(Path::to_owned).unwrap_or(path)
}

/// Returns the place of a rule in `patter.toml`.
fn place_of(path: &Path, unused: &UnusedRule) -> Place {
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path).unwrap_or_default();
    // The rule is written without its decision, and may have other quotes and spaces than the parsed one.
    let tools = unused.rule.tools.to_string();
    let quoted = ['"', '\''].iter().find_map(|quote| text.find(&format!("{quote}{tools}")));
    match quoted.and_then(|at| u32::try_from(at + 1).ok()) {
        Some(at) => Place::in_source(&file, &text, Span::at(at)),
        None => Place::file(file),
    }
}
