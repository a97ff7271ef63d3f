//! Permission rules on the command line.

use crate::error::{CommandError, ErrorKind};
use clap::Args;
use patter::permission::{Permissions, Rule};
use patter::project::{Config, PermissionConfig};

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
    /// Adds the rules of the project and of the command to permissions.
    pub(crate) fn add_to(&self, permissions: Permissions, config: &Config) -> Result<Permissions, CommandError> {
        Ok(permissions.with_all(self.all(config)?))
    }

    /// Returns the rules of the project and of the command.
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
