//! The facts about a provider.

use super::known::ModelRow;
use super::wire::Wire;
use crate::types::dialect::SchemaDialect;

/// Everything that Patter knows about a provider.
#[derive(Debug)]
pub struct Profile {
    /// The name, in its usual spelling.
    pub name: &'static str,
    /// Other names that are accepted, in lower case.
    pub aliases: &'static [&'static str],
    /// How its models are called.
    pub backend: Backend,
    /// The subset of JSON Schema that it accepts; `None` if it accepts everything.
    pub dialect: Option<SchemaDialect>,
    /// The models that are known, with their list prices.
    pub models: &'static [ModelRow],
    /// Whether models without a list price are free.
    pub is_free: bool,
    /// The name in the conventions of OpenTelemetry, if it is not the name in lower case.
    pub telemetry_name: Option<&'static str>,
}

/// The way in which the models of a provider are called.
#[derive(Debug)]
pub enum Backend {
    /// Over HTTP.
    Http(Endpoint),
    /// In this process, without a network.
    BuiltIn(BuiltIn),
}

/// A model that is part of Patter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuiltIn {
    /// The offline model that matches words in a prompt to tools.
    Demo,
    /// The model that replies from a script.
    Scripted,
}

/// The HTTP API of a provider.
#[derive(Debug)]
pub struct Endpoint {
    /// The protocols that it supports; the first is the default.
    pub wires: &'static [Wire],
    /// The environment variable that selects another protocol.
    pub wire_variable: Option<&'static str>,
    /// The base URL of requests. `${NAME}` and `${NAME:-default}` are variables, and `{model}` is the model, for APIs that
    /// have it in the middle of their paths.
    pub base_url: &'static str,
    /// The environment variable that overrides the base URL.
    pub base_url_variable: &'static str,
    /// The environment variables that may contain the key, in order of preference.
    pub key_variables: &'static [&'static str],
    /// Whether the provider rejects requests without a key.
    pub needs_key: bool,
    /// The header that contains the key.
    pub key_header: KeyHeader,
    /// The headers that are part of every request.
    pub headers: &'static [(&'static str, &'static str)],
    /// The HTTP statuses, besides 401 and 403, with which the provider rejects a wrong key.
    pub rejection_statuses: &'static [u16],
}

/// The header that contains a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyHeader {
    /// `Authorization: Bearer KEY`.
    Bearer,
    /// A header of this name, with the key as its value.
    Named(&'static str),
}

impl Profile {
    /// Returns how many tools a request may have, if the provider documents a limit.
    pub fn max_tools(&self) -> Option<usize> {
        match self.dialect {
            Some(SchemaDialect::OpenAiStrict) => Some(128),
            Some(SchemaDialect::Gemini) => Some(512),
            _ => None,
        }
    }
}

impl Endpoint {
    /// Returns the protocol that is used by default.
    pub fn default_wire(&self) -> Option<Wire> {
        self.wires.first().copied()
    }

    /// Returns the names of the protocols as a comma-separated list.
    pub fn wire_names(&self) -> String {
        self.wires.iter().map(|wire| wire.name()).collect::<Vec<_>>().join(", ")
    }

    /// Returns whether a status means that the provider rejected the key.
    pub fn is_rejection(&self, status: u16) -> bool {
        matches!(status, 401 | 403) || self.rejection_statuses.contains(&status)
    }
}
