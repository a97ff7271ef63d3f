//! OpenAI and compatible servers.

use super::known::{KnownModel, ModelRow, row};
use super::profile::{Backend, Endpoint, KeyHeader, Profile};
use super::wire::Wire;
use crate::types::dialect::SchemaDialect;

pub(super) static PROFILE: Profile = Profile {
    name: "OpenAI",
    aliases: &[],
    backend: Backend::Http(Endpoint {
        wires: &[Wire::Chat, Wire::Responses, Wire::ChatFunctions],
        wire_variable: Some("PATTER_OPENAI_API"),
        base_url: "https://api.openai.com/v1",
        base_url_variable: "OPENAI_BASE_URL",
        key_variables: &["OPENAI_API_KEY"],
        needs_key: true,
        key_header: KeyHeader::Bearer,
        headers: &[],
        rejection_statuses: &[],
    }),
    dialect: Some(SchemaDialect::OpenAiStrict),
    models: MODELS,
    is_free: false,
    telemetry_name: None,
};

/// The first generation that reads images and documents and follows schemas.
const GPT_4O: KnownModel = KnownModel::new(128_000, 16_384).images().documents().strict();
const GPT_4_1: KnownModel = KnownModel::new(1_047_576, 32_768).images().documents().strict();
const O_SERIES: KnownModel = KnownModel::new(200_000, 100_000).strict().reasoning();
const GPT_5: KnownModel = KnownModel::new(272_000, 128_000).images().documents().strict().reasoning();
const GPT_5_LONG: KnownModel = KnownModel::new(1_050_000, 128_000).images().documents().strict().reasoning();

pub(super) const MODELS: &[ModelRow] = &[
    row("gpt-3.5-turbo", 0.5, 0.5, 1.5, KnownModel::new(16_385, 4_096)),
    row("gpt-4", 30.0, 30.0, 60.0, KnownModel::new(8_192, 8_192)),
    row("gpt-4-turbo", 10.0, 10.0, 30.0, KnownModel::new(128_000, 4_096).images()),
    row("gpt-4o", 2.5, 1.25, 10.0, GPT_4O),
    row("gpt-4o-mini", 0.15, 0.075, 0.6, GPT_4O),
    row("gpt-4.1", 2.0, 0.5, 8.0, GPT_4_1),
    row("gpt-4.1-mini", 0.4, 0.1, 1.6, GPT_4_1),
    row("gpt-4.1-nano", 0.1, 0.025, 0.4, GPT_4_1),
    row("o1", 15.0, 7.5, 60.0, O_SERIES.images().documents()),
    row("o1-mini", 1.1, 0.55, 4.4, KnownModel::new(128_000, 65_536).reasoning().without_tools()),
    row("o3", 2.0, 0.5, 8.0, O_SERIES.images().documents()),
    row("o3-mini", 1.1, 0.55, 4.4, O_SERIES),
    row("o4-mini", 1.1, 0.275, 4.4, O_SERIES.images().documents()),
    row("gpt-5", 1.25, 0.125, 10.0, GPT_5),
    row("gpt-5-mini", 0.25, 0.025, 2.0, GPT_5),
    row("gpt-5-nano", 0.05, 0.005, 0.4, GPT_5),
    row("gpt-5-pro", 15.0, 15.0, 120.0, KnownModel::new(400_000, 272_000).images().documents().strict().reasoning()),
    row("gpt-5.1", 1.25, 0.125, 10.0, GPT_5),
    row("gpt-5.2", 1.75, 0.175, 14.0, GPT_5),
    row("gpt-5.2-pro", 21.0, 21.0, 168.0, GPT_5),
    row("gpt-5.3", 1.75, 0.175, 14.0, GPT_5),
    row("gpt-5.3-codex", 1.75, 0.175, 14.0, GPT_5),
    row("gpt-5.4", 2.5, 0.25, 15.0, GPT_5_LONG).long_context(272_000),
    row("gpt-5.4-mini", 0.75, 0.075, 4.5, GPT_5),
    row("gpt-5.4-nano", 0.2, 0.02, 1.25, GPT_5),
    row("gpt-5.5", 5.0, 0.5, 30.0, GPT_5_LONG),
];
