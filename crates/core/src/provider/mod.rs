//! Providers of models: their names, addresses, keys, protocols and prices.
//!
//! Everything specific to a provider is in its [`Profile`], one file per provider, and all providers are listed in
//! [`Provider::ALL`]. Projects declare further ones with [`Provider::declare`]. The protocols themselves are in [`wire`](crate::wire), because providers may share one.

mod usage;
pub mod price;
mod wire;
mod known;
mod profile;
mod openai;
mod anthropic;
mod google;
mod ollama;
mod preset_models;
mod preset;
mod built_in;
mod catalog;
mod declared;
mod server;
mod model_ref;

pub use catalog::Provider;
pub use declared::{DeclarationError, ProviderDeclaration};
pub use known::{KnownModel, ModelRow, known_model};
pub use model_ref::{ModelRef, ModelRefError};
pub use profile::{Backend, BuiltIn, Endpoint, KeyHeader, Profile};
pub use server::{OutputLimit, Quirks, Server, ServerProfile, SystemRole};
pub use usage::Usage;
pub use wire::Wire;
