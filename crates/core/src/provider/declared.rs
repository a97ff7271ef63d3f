//! Providers that projects declare.
//!
//! Declarations live as long as the process, like the providers that are part of Patter, so that a name such as `house` in
//! `house/llama` means the same wherever it is read: in agents, options and logs. A declaration that changes replaces the
//! earlier one of that name.

use super::catalog::Provider;
use super::profile::{Backend, Endpoint, KeyHeader, Profile};
use super::wire::Wire;
use crate::types::dialect::SchemaDialect;
use std::sync::{PoisonError, RwLock};
use thiserror::Error;

/// The number of declarations that a process keeps. It is only reached by a program that makes them up.
const MAX_DECLARATIONS: usize = 10_000;
/// The length of a name.
const MAX_NAME: usize = 64;

/// The declarations, the newest last.
static DECLARED: RwLock<Vec<Provider>> = RwLock::new(Vec::new());

/// A provider as a project declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderDeclaration<'d> {
    /// The name.
    pub name: &'d str,
    /// The protocol.
    pub wire: Wire,
    /// The base URL of requests, with placeholders.
    pub base_url: &'d str,
    /// The variable that contains the key, if it needs one.
    pub key_variable: Option<&'d str>,
    /// Whether it can enforce schemas.
    pub strict: bool,
}

/// The reason why a provider cannot be declared.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DeclarationError {
    /// The name cannot be part of a reference to a model.
    #[error(
        "`{0}` cannot be the name of a provider; use letters, digits, `.`, `-` and `_`, and start with a letter (at most \
         64 characters)"
    )]
    Name(String),
    /// Too many providers were declared.
    #[error("too many providers were declared")]
    TooMany,
}

impl Provider {
    /// Declares a provider. A provider that is part of Patter keeps its meaning.
    ///
    /// ```
    /// use patter_core::provider::{ModelRef, Provider, ProviderDeclaration, Wire};
    /// let declaration = ProviderDeclaration {
    ///     name: "house",
    ///     wire: Wire::Chat,
    ///     base_url: "https://llm.example/v1",
    ///     key_variable: Some("HOUSE_KEY"),
    ///     strict: true,
    /// };
    /// let provider = Provider::declare(&declaration).unwrap();
    /// let model: ModelRef = "House/llama".parse().unwrap();
    /// assert_eq!((model.provider, model.to_string().as_str()), (provider, "house/llama"));
    /// ```
    pub fn declare(declaration: &ProviderDeclaration<'_>) -> Result<Self, DeclarationError> {
        let name = declaration.name;
        if let Some(known) = Self::built_in(name) {
            return Ok(known);
        }
        let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let is_valid = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.bytes().all(is_name_byte);
        if !is_valid || name.len() > MAX_NAME {
            return Err(DeclarationError::Name(name.to_owned()));
        }
        let mut declared = DECLARED.write().unwrap_or_else(PoisonError::into_inner);
        let is_same = |known: &Self| declaration.describes(*known);
        if let Some(index) = declared.iter().position(is_same) {
            // It is the newest of its name again.
            let known = declared.remove(index);
            declared.push(known);
            return Ok(known);
        }
        if declared.len() >= MAX_DECLARATIONS {
            return Err(DeclarationError::TooMany);
        }
        let provider = Self::from_profile(Box::leak(Box::new(declaration.profile())));
        declared.push(provider);
        Ok(provider)
    }

    /// Returns the providers that were declared, the newest declaration of each name.
    pub fn declared() -> Vec<Self> {
        let declared = DECLARED.read().unwrap_or_else(PoisonError::into_inner);
        let mut found: Vec<Self> = Vec::new();
        for provider in declared.iter().rev() {
            if !found.contains(provider) {
                found.push(*provider);
            }
        }
        found.reverse();
        found
    }

    /// Finds a declared provider by name, ignoring case.
    pub(super) fn find_declared(name: &str) -> Option<Self> {
        let declared = DECLARED.read().unwrap_or_else(PoisonError::into_inner);
        declared.iter().rev().copied().find(|provider| provider.name().eq_ignore_ascii_case(name))
    }
}

impl ProviderDeclaration<'_> {
    /// Returns whether a provider is what this declares.
    fn describes(&self, provider: Provider) -> bool {
        let Some(endpoint) = provider.endpoint() else { return false };
        provider.name() == self.name
            && endpoint.wires == [self.wire]
            && endpoint.base_url == self.base_url
            && endpoint.key_variables.first().copied() == self.key_variable
            && provider.profile().dialect == self.dialect()
    }

    fn dialect(&self) -> Option<SchemaDialect> {
        match self.wire {
            Wire::Chat | Wire::ChatFunctions | Wire::Responses => self.strict.then_some(SchemaDialect::OpenAiStrict),
            Wire::Anthropic => Some(SchemaDialect::Anthropic),
            Wire::Gemini => Some(SchemaDialect::Gemini),
            Wire::Ollama => None,
        }
    }

    /// Returns the profile. Its texts are kept for the life of the process, as those of other providers are.
    fn profile(&self) -> Profile {
        let key_variables: Vec<&'static str> = self.key_variable.into_iter().map(keep).collect();
        Profile {
            name: keep(self.name),
            aliases: &[],
            backend: Backend::Http(Endpoint {
                wires: Box::leak(Box::new([self.wire])),
                wire_variable: None,
                base_url: keep(self.base_url),
                base_url_variable: "",
                needs_key: !key_variables.is_empty(),
                key_variables: Box::leak(key_variables.into_boxed_slice()),
                key_header: match self.wire {
                    Wire::Anthropic => KeyHeader::Named("x-api-key"),
                    Wire::Gemini => KeyHeader::Named("x-goog-api-key"),
                    Wire::Chat | Wire::ChatFunctions | Wire::Responses | Wire::Ollama => KeyHeader::Bearer,
                },
                headers: match self.wire {
                    Wire::Anthropic => super::anthropic::HEADERS,
                    _ => &[],
                },
                rejection_statuses: &[],
            }),
            dialect: self.dialect(),
            models: &[],
            is_free: false,
            telemetry_name: None,
        }
    }
}

fn keep(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}
