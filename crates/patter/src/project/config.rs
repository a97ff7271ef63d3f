//! `patter.toml`.

use super::environment::Environment;
use super::load::{CONFIG, LoadError, strip_dot};
use super::models::{self, ModelKey, ModelsConfig, PriceConfig, is_variable};
use super::trust::{Definition, config_definitions};
use crate::drive::Budget;
use crate::file::read_settings;
use crate::os_error;
use crate::tool::mcp::ServerConfig;
use crate::tool::sandbox::{Sandbox, SandboxLevel, SandboxPolicy};
use crate::tool::{CommandHook, DEFAULT_HOOK_TIMEOUT, Hook, HookStage, VariableLookup};
use crate::type_error::explain_type;
use indexmap::IndexMap;
use patter_core::permission::{Decision, Rule, RuleError};
use patter_core::provider::price::{Cost, Prices};
use patter_core::text::{nearest, parse_duration};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The settings of `patter.toml`. All of them are optional.
///
/// ```
/// use patter::project::Config;
/// let config = Config::parse("[permissions]\nask = ['fs/*']").unwrap();
/// assert_eq!(config.permissions.rules().unwrap()[0].to_string(), "ask fs/*");
/// assert!(Config::parse("[permision]").is_err());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// Settings for checking.
    pub check: CheckConfig,
    /// Permission rules.
    pub permissions: PermissionConfig,
    /// Commands that run before and after calls.
    pub hooks: Vec<HookConfig>,
    /// The addresses that HTTP tools may reach.
    pub http: HttpConfig,
    /// The folders that the toolbox `fs` may access.
    pub fs: FsConfig,
    /// What the processes of tools may do.
    pub sandbox: SandboxConfig,
    /// Where sessions are stored.
    pub store: StoreConfig,
    /// The tools that the organisation shares.
    pub org: Option<OrgConfig>,
    /// MCP servers, by name.
    pub mcp: IndexMap<String, ServerConfig>,
    /// A JSON file with `mcpServers`, relative to the root of the project.
    pub mcp_servers: Option<PathBuf>,
    /// Settings for reaching providers.
    pub models: ModelsConfig,
    /// Prices of models.
    pub prices: IndexMap<ModelKey, PriceConfig>,
    /// What the agents of the project may spend.
    pub budget: BudgetConfig,
    /// How many turns servers perform at a time.
    pub limits: LimitsConfig,
    /// What servers need besides.
    pub serve: ServeConfig,
}

/// The section `[serve]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServeConfig {
    /// The name of the variable with the secret that signs webhooks.
    pub webhook_secret: Option<String>,
}

impl ServeConfig {
    fn check(&self) -> Result<(), (String, Option<String>)> {
        match &self.webhook_secret {
            // It may be the secret itself, which is not repeated.
            Some(name) if !is_variable(name) => {
                let message = "`webhook-secret` is the name of a variable, and not the secret itself".to_owned();
                Err((message, Some("for example, `webhook-secret = \"WEBHOOK_SECRET\"`".to_owned())))
            }
            _ => Ok(()),
        }
    }
}

/// The section `[limits]`: how many turns all servers that share a store perform at a time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// By the name of the agent.
    pub agents: BTreeMap<String, NonZeroU32>,
    /// By the name of the token that asks for them.
    pub tokens: BTreeMap<String, NonZeroU32>,
}

/// The section `[budget]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetConfig {
    /// The dollars that all runs together may spend per day (UTC).
    pub day: Option<BudgetAmount>,
}

/// An amount of dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "f64")]
pub struct BudgetAmount(Cost);

impl TryFrom<f64> for BudgetAmount {
    type Error = &'static str;

    fn try_from(dollars: f64) -> Result<Self, Self::Error> {
        Cost::from_dollars(dollars).map(Self).ok_or("a budget must be between 0 and 1000000 dollars")
    }
}

/// The part of the settings that declares what others refer to.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Declarations {
    #[serde(rename = "models")]
    _models: ModelsConfig,
}

/// The section `[check]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CheckConfig {
    /// The codes of rules that are not reported.
    pub ignore: Vec<String>,
    /// Whether warnings count as errors.
    pub deny_warnings: bool,
    /// Whether to accept only portable gram.
    pub portable: bool,
    /// Whether to report also what many projects do without.
    pub pedantic: bool,
}

/// The section `[permissions]`: rules without the decision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PermissionConfig {
    /// Calls that are allowed.
    pub allow: Vec<String>,
    /// Calls that need an approval.
    pub ask: Vec<String>,
    /// Calls that are denied.
    pub deny: Vec<String>,
}

/// An entry of `[[hooks]]`: a command that runs before or after calls, and may refuse them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HookConfig {
    /// The calls before which it runs, written like permission rules.
    pub before: Vec<String>,
    /// The calls after which it runs.
    pub after: Vec<String>,
    /// The program and its arguments.
    pub run: Vec<String>,
    /// The names of the variables that the program receives besides those that all commands receive.
    pub env: Vec<String>,
    /// How long it may run, such as `5s`; 10 s by default.
    pub timeout: Option<String>,
}

/// The section `[http]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpConfig {
    /// Private addresses that tools may reach although these are blocked by default: `localhost:8080`, `10.0.0.0/8`,
    /// `internal.example.com`.
    pub allow: Vec<String>,
}

/// The section `[fs]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FsConfig {
    /// The folders that the toolbox `fs` may access, relative to the root of the project; by default that root. An empty
    /// list means no access.
    pub roots: Option<Vec<PathBuf>>,
    /// The files that define the project and that the toolbox `fs` may write all the same: paths relative to the root of
    /// the project, with wildcards. By default there are none.
    pub writable: Vec<String>,
}

/// The section `[sandbox]`: what commands and MCP servers may do that do not declare it themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxConfig {
    /// The files that they may change: `read-only` for none, `workspace` for those of the project, `none` for no sandbox.
    pub default: SandboxLevel,
    /// Whether they may use the network.
    pub network: bool,
    /// Further folders that they may change.
    pub writable: Vec<String>,
    /// Folders in the home folder that they may read.
    pub readable: Vec<String>,
    /// Whether a process is not started if the system cannot enforce its sandbox. Otherwise, there is a warning.
    pub required: bool,
}

impl SandboxConfig {
    /// Returns the policy for tools.
    pub fn policy(&self) -> SandboxPolicy {
        let Self { default: level, network, writable, readable, required } = self.clone();
        SandboxPolicy { default: Sandbox { level, network, writable, readable }, required }
    }
}

/// The section `[store]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreConfig {
    /// A file, `postgres://…`, or `none`. By default, a file in the project.
    pub url: Option<String>,
}

/// The section `[org]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrgConfig {
    /// The name of the organisation, which is the first part of the full names of its tools. Without one, its tools can
    /// override those of the standard library.
    pub name: Option<String>,
    /// Gram files with toolboxes, or folders of them, relative to the root of the project.
    pub tools: Vec<PathBuf>,
}

impl Config {
    /// Reads the configuration of a project; the defaults if there is no project.
    pub fn read(root: Option<&Path>) -> Result<Self, LoadError> {
        let Some(path) = root.map(|root| strip_dot(root.join(CONFIG))) else { return Ok(Self::default()) };
        let config_error = |(message, hint)| LoadError::Config { path: path.clone(), message, hint };
        let text = read_settings(&path).map_err(|error| config_error((os_error::describe(&error), None)))?;
        let config = Self::parse_with_hint(&text).map_err(config_error)?;
        Ok(Self { models: config.models.with_root(root), ..config })
    }

    /// Parses the text of a `patter.toml`.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::parse_with_hint(text).map_err(|(message, hint)| match hint {
            Some(hint) => format!("{message}; {hint}"),
            None => message,
        })
    }

    fn parse_with_hint(text: &str) -> Result<Self, (String, Option<String>)> {
        // Other sections may name the providers that the file declares. An error in the declarations is found below.
        let _ = toml::from_str::<Declarations>(text);
        let config: Self = toml::from_str(text).map_err(|error| explain(&error, text))?;
        if let Some((rule, error)) = config.permissions.first_invalid() {
            return Err((format!("{}{error}", place_of(text, rule)), Some(error.hint().to_string())));
        }
        config.hooks.iter().try_for_each(HookConfig::check)?;
        config.serve.check()?;
        Ok(config)
    }

    /// Returns what the configuration and `.env` define and the user has to trust, without the tools and servers of the
    /// project, which [`Tools::definitions`](super::Tools::definitions) lists too.
    pub fn definitions(&self, root: Option<&Path>, environment: &Environment) -> Vec<Definition> {
        config_definitions(root.unwrap_or(Path::new(".")), self, environment)
    }

    /// Returns what the agents of the project in a folder may spend, if that is limited.
    pub fn budget(&self, root: Option<&Path>) -> Option<Arc<Budget>> {
        let BudgetAmount(per_day) = self.budget.day?;
        Some(Arc::new(Budget::new(root?, per_day)))
    }

    /// Returns the built-in prices, overridden by those of the project.
    pub fn prices(&self) -> Prices {
        models::prices(&self.prices)
    }
}

impl HookConfig {
    /// Returns the calls that the command runs for, with the stage.
    pub fn calls(&self) -> impl Iterator<Item = (HookStage, &str)> {
        let before = self.before.iter().map(|calls| (HookStage::Before, calls.as_str()));
        before.chain(self.after.iter().map(|calls| (HookStage::After, calls.as_str())))
    }

    /// Returns the command as one line.
    pub fn name(&self) -> String {
        self.run.join(" ")
    }

    fn check(&self) -> Result<(), (String, Option<String>)> {
        let example = "for example, `before = [\"fs/*\"]` and `run = [\"./check.sh\"]`".to_owned();
        if self.run.first().is_none_or(String::is_empty) {
            return Err(("a hook has nothing to run".to_owned(), Some(example)));
        }
        let name = self.name();
        if self.calls().next().is_none() {
            return Err((format!("the hook `{name}` has neither `before` nor `after`"), Some(example)));
        }
        for (_, calls) in self.calls() {
            Rule::with_decision(Decision::Ask, calls, "")
                .map_err(|error| (format!("the hook `{name}`: {error}"), Some(error.hint().to_owned())))?;
        }
        match self.timeout.as_deref().map(|text| (text, parse_duration(text))) {
            Some((text, None | Some(Duration::ZERO))) => {
                let message = format!("the hook `{name}`: `{text}` is not a time limit");
                Err((message, Some("for example, `timeout = \"5s\"`".to_owned())))
            }
            _ => Ok(()),
        }
    }

    /// Returns the hooks, which run in a folder. Invalid entries are rejected when the configuration is read.
    pub(crate) fn hooks(&self, root: &Path, environment: &Environment) -> Vec<Hook> {
        let timeout = self.timeout.as_deref().and_then(parse_duration).unwrap_or(DEFAULT_HOOK_TIMEOUT);
        let hook = |(stage, calls)| {
            let environment = environment.clone();
            let variables: VariableLookup = Arc::new(move |name: &str| environment.get(name));
            let command = CommandHook::new(&self.run, root, self.env.clone(), variables)?;
            Some(Hook::new(stage, calls, self.name(), command).ok()?.timeout(timeout))
        };
        self.calls().filter_map(hook).collect()
    }
}

impl PermissionConfig {
    /// Parses the rules.
    pub fn rules(&self) -> Result<Vec<Rule>, RuleError> {
        self.rules_with_origin(|_| format!("`{CONFIG}`"))
    }

    /// Returns the first invalid rule, as it is written, and what is wrong with it.
    fn first_invalid(&self) -> Option<(&str, RuleError)> {
        let rules = self.allow.iter().chain(&self.ask).chain(&self.deny);
        rules.into_iter().find_map(|text| Some((text.as_str(), Rule::with_decision(Decision::Deny, text, "").err()?)))
    }

    /// Parses rules from another origin, which is given for each decision.
    pub fn rules_with_origin(&self, origin: impl Fn(Decision) -> String) -> Result<Vec<Rule>, RuleError> {
        let lists = [(Decision::Allow, &self.allow), (Decision::Ask, &self.ask), (Decision::Deny, &self.deny)];
        let rules = lists.into_iter().flat_map(|(decision, texts)| texts.iter().map(move |text| (decision, text)));
        rules.map(|(decision, text)| Rule::with_decision(decision, text, origin(decision))).collect()
    }
}

/// Describes an error in a setting in the words of `patter.toml`, with an excerpt and a hint.
fn explain(error: &toml::de::Error, text: &str) -> (String, Option<String>) {
    let (message, hint) = explain_unquoted(error, text).unwrap_or_else(|| explain_message(error.message()));
    let whole = error.to_string().replace("TOML parse error at ", "").replace(error.message(), &message);
    (whole.trim_end().to_owned(), hint)
}

fn explain_message(message: &str) -> (String, Option<String>) {
    if let Some((name, rest)) = message.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`')) {
        let known: Vec<_> = rest.split('`').skip(1).step_by(2).collect();
        let hint = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the settings here are {}", known.join(", ")),
        };
        return (format!("unknown setting `{name}`"), Some(hint));
    }
    if let Some((value, rest)) = message.strip_prefix("unknown variant `").and_then(|rest| rest.split_once('`')) {
        let known: Vec<_> = rest.split('`').skip(1).step_by(2).collect();
        let values = format!("possible values: {}", known.join(", "));
        let hint = match nearest(value, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`? {values}"),
            None => values,
        };
        return (format!("unknown value `{value}`"), Some(hint));
    }
    if let Some(name) = message.strip_prefix("missing field ") {
        return (format!("the setting {name} is missing"), Some(format!("add {name}")));
    }
    // The parser's words for a value that is one of a few names.
    if message == "wanted string or table" {
        return ("expected text in quotes".to_owned(), None);
    }
    (explain_type(message).unwrap_or_else(|| message.to_owned()), None)
}

/// Explains text without quotes, which the parser takes for a misspelt value of another type.
fn explain_unquoted(error: &toml::de::Error, text: &str) -> Option<(String, Option<String>)> {
    let start = error.span()?.start;
    let line_start = text.get(..start)?.rfind('\n').map_or(0, |end| end + 1);
    let (key, value) = text.get(line_start..)?.lines().next()?.split_once('=')?;
    let value = value.trim();
    let is_word = value.starts_with(|c: char| c.is_alphabetic() || matches!(c, '*' | '/' | '.' | '$'));
    if !is_word || ["true", "false", "inf", "nan"].contains(&value) {
        return None;
    }
    let hint = match key.trim() {
        "allow" | "ask" | "deny" => format!("write a list of quoted rules: `[\"{value}\"]`"),
        _ => format!("write `\"{value}\"`"),
    };
    Some(("text must be in quotes".to_owned(), Some(hint)))
}

/// Returns where a text is in a file: `line 2, column 9: `.
fn place_of(text: &str, part: &str) -> String {
    let Some(before) = text.find(part).and_then(|start| text.get(..start)) else { return String::new() };
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("line {line}, column {column}: ")
}
