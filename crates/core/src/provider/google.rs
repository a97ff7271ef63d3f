//! Google, for Gemini.

use super::known::{KnownModel, ModelRow, row};
use super::profile::{Backend, Endpoint, KeyHeader, Profile};
use super::wire::Wire;
use crate::types::dialect::SchemaDialect;

pub(super) static PROFILE: Profile = Profile {
    name: "Google",
    aliases: &["gemini"],
    backend: Backend::Http(Endpoint {
        wires: &[Wire::Gemini],
        wire_variable: None,
        base_url: "https://generativelanguage.googleapis.com",
        base_url_variable: "GOOGLE_BASE_URL",
        key_variables: &["GOOGLE_API_KEY", "GEMINI_API_KEY"],
        needs_key: true,
        key_header: KeyHeader::Named("x-goog-api-key"),
        headers: &[],
        // Google rejects a wrong key as a bad request.
        rejection_statuses: &[400],
    }),
    dialect: Some(SchemaDialect::Gemini),
    models: MODELS,
    is_free: false,
    telemetry_name: Some("gcp.gemini"),
};

const GEMINI_2: KnownModel = KnownModel::new(1_048_576, 8_192).images().documents().strict();
const GEMINI: KnownModel = KnownModel::new(1_048_576, 65_536).images().documents().strict().reasoning();

pub(super) const MODELS: &[ModelRow] = &[
    row("gemini-2.0-flash", 0.1, 0.025, 0.4, GEMINI_2),
    row("gemini-2.0-flash-lite", 0.075, 0.075, 0.3, GEMINI_2),
    row("gemini-2.5-flash", 0.3, 0.03, 2.5, GEMINI),
    row("gemini-2.5-flash-lite", 0.1, 0.01, 0.4, GEMINI),
    row("gemini-2.5-pro", 1.25, 0.125, 10.0, GEMINI).long_context(200_000),
    row("gemini-3-flash-preview", 0.5, 0.05, 3.0, GEMINI),
    row("gemini-3-pro-preview", 2.0, 0.2, 12.0, GEMINI).long_context(200_000),
    row("gemini-3.1-flash-lite", 0.25, 0.025, 1.5, GEMINI),
    row("gemini-3.1-pro-preview", 2.0, 0.2, 12.0, GEMINI).long_context(200_000),
    row("gemini-3.5-flash", 1.5, 0.15, 9.0, GEMINI),
    row("gemini-3.5-flash-lite", 0.3, 0.03, 2.5, GEMINI),
];
