//! `patter.toml`.

use super::models::{self, ModelKey, ModelsConfig, PriceConfig};
use super::{CONFIG, LoadError, strip_dot};
use crate::tool::mcp::ServerConfig;
use indexmap::IndexMap;
use patter_core::permission::{Decision, Rule, RuleError};
use patter_core::provider::price::Prices;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// What `patter.toml` says. All of it is optional.
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
    /// How to check.
    pub check: CheckConfig,
    /// Who may call what.
    pub permissions: PermissionConfig,
    /// What HTTP tools may reach.
    pub http: HttpConfig,
    /// What the toolbox `fs` may touch.
    pub fs: FsConfig,
    /// Where sessions are kept.
    pub store: StoreConfig,
    /// The tools that an organisation shares.
    pub org: Option<OrgConfig>,
    /// MCP servers, by name.
    pub mcp: IndexMap<String, ServerConfig>,
    /// A JSON file with `mcpServers`, from the root of the project on.
    pub mcp_servers: Option<PathBuf>,
    /// How providers of models are reached.
    pub models: ModelsConfig,
    /// What models cost, by their names.
    pub prices: IndexMap<ModelKey, PriceConfig>,
}

/// The section `[check]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CheckConfig {
    /// Rules that are not reported, by code.
    pub ignore: Vec<String>,
    /// Whether a warning is a failure.
    pub deny_warnings: bool,
    /// Whether to accept plain gram only.
    pub portable: bool,
}

/// The section `[permissions]`: rules without their first word.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PermissionConfig {
    /// Calls that are made.
    pub allow: Vec<String>,
    /// Calls that are made if someone approves.
    pub ask: Vec<String>,
    /// Calls that are refused.
    pub deny: Vec<String>,
}

/// The section `[http]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpConfig {
    /// Addresses of this machine and of private networks that tools may reach all the same: `localhost:8080`,
    /// `10.0.0.0/8`, `internal.example.com`.
    pub allow: Vec<String>,
}

/// The section `[fs]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FsConfig {
    /// The folders that the toolbox `fs` may touch, from the root of the project on; that root where nothing is
    /// said, and none where the list is empty.
    pub roots: Option<Vec<PathBuf>>,
}

/// The section `[store]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreConfig {
    /// A file, `postgres://…`, or `none`. Without it a file of the project.
    pub url: Option<String>,
}

/// The section `[org]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrgConfig {
    /// The name of the organisation, which comes first in the full names of its tools. Without one its tools have the
    /// names of their toolboxes alone, and so may override those of the standard library.
    pub name: Option<String>,
    /// Gram files with toolboxes, and folders of them, from the root of the project on.
    pub tools: Vec<PathBuf>,
}

impl Config {
    /// Reads the configuration of a project; the defaults where there is none.
    pub fn read(root: Option<&Path>) -> Result<Self, LoadError> {
        let Some(path) = root.map(|root| strip_dot(root.join(CONFIG))) else { return Ok(Self::default()) };
        let failed = |message: String| LoadError::Config { path: path.clone(), message };
        let text = std::fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
        Self::parse(&text).map_err(failed)
    }

    /// Reads the text of a `patter.toml`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let config: Self = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        config.permissions.rules().map_err(|error| format!("{error}; {}", error.hint()))?;
        Ok(config)
    }

    /// Returns the prices of models: those of the project, then the built-in ones.
    pub fn prices(&self) -> Prices {
        models::prices(&self.prices)
    }
}

impl PermissionConfig {
    /// Reads the rules.
    pub fn rules(&self) -> Result<Vec<Rule>, RuleError> {
        self.rules_of(|_| format!("`{CONFIG}`"))
    }

    /// Reads rules that stand elsewhere; the origin of each says where, by its decision.
    pub fn rules_of(&self, origin: impl Fn(Decision) -> String) -> Result<Vec<Rule>, RuleError> {
        let lists = [(Decision::Allow, &self.allow), (Decision::Ask, &self.ask), (Decision::Deny, &self.deny)];
        let texts = lists.into_iter().flat_map(|(decision, texts)| texts.iter().map(move |text| (decision, text)));
        texts.map(|(decision, text)| Rule::of(decision, text, origin(decision))).collect()
    }
}
