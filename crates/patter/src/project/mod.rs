//! Projects on disk: `patter.toml`, the gram files around it, and the tools of all layers.

mod load;
mod config;
mod models;
mod environment;
mod tools;
mod servers;
mod check;
mod lock;
mod trust;
mod diff;
mod variant;

pub use check::{ProjectCheck, is_ignored};
pub use config::{
    CheckConfig, Config, FsConfig, HookConfig, HttpConfig, LimitsConfig, OrgConfig, PermissionConfig, SandboxConfig,
    ServeConfig, StoreConfig,
};
pub use diff::diff_settings;
pub use environment::{Environment, VariableSource};
pub use load::{CONFIG, LoadError, LoadedProject, find_root, find_root_of, gram_files};
pub use lock::{ACCEPT_HINT, ProjectLock, ProjectLockError, lock_files, lock_project};
pub use models::{
    Dollars, KeyCommand, KeySource, ModelFacts, ModelKey, ModelsConfig, PriceConfig, ProviderConfig, Seconds,
};
pub use patter_core::declare::project::{AgentSelectionError, Declaration, File, Finding, Project};
pub use servers::{ServerProblem, ServerReport};
pub use tools::{ProjectPolicies, ServerSelection, ToolProblem, Tools, ToolsError};
pub use trust::{Definition, DefinitionKind, TrustError, TrustRecord, TrustStore, Untrusted, check_definitions};
pub use variant::ToolVariant;
