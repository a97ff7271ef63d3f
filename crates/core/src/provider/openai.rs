//! OpenAI and compatible servers.

use super::price::{PriceRow, long_context, row};
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
        key_header: KeyHeader::Bearer,
        headers: &[],
        rejection_statuses: &[],
    }),
    dialect: Some(SchemaDialect::OpenAiStrict),
    prices: PRICES,
    is_free: false,
};

const PRICES: &[PriceRow] = &[
    row("gpt-3.5-turbo", 0.5, 0.5, 1.5),
    row("gpt-4", 30.0, 30.0, 60.0),
    row("gpt-4-turbo", 10.0, 10.0, 30.0),
    row("gpt-4o", 2.5, 1.25, 10.0),
    row("gpt-4o-mini", 0.15, 0.075, 0.6),
    row("gpt-4.1", 2.0, 0.5, 8.0),
    row("gpt-4.1-mini", 0.4, 0.1, 1.6),
    row("gpt-4.1-nano", 0.1, 0.025, 0.4),
    row("o1", 15.0, 7.5, 60.0),
    row("o1-mini", 1.1, 0.55, 4.4),
    row("o3", 2.0, 0.5, 8.0),
    row("o3-mini", 1.1, 0.55, 4.4),
    row("o4-mini", 1.1, 0.275, 4.4),
    row("gpt-5", 1.25, 0.125, 10.0),
    row("gpt-5-mini", 0.25, 0.025, 2.0),
    row("gpt-5-nano", 0.05, 0.005, 0.4),
    row("gpt-5-pro", 15.0, 15.0, 120.0),
    row("gpt-5.1", 1.25, 0.125, 10.0),
    row("gpt-5.2", 1.75, 0.175, 14.0),
    row("gpt-5.2-pro", 21.0, 21.0, 168.0),
    row("gpt-5.3", 1.75, 0.175, 14.0),
    row("gpt-5.3-codex", 1.75, 0.175, 14.0),
    long_context(row("gpt-5.4", 2.5, 0.25, 15.0), 272_000),
    row("gpt-5.4-mini", 0.75, 0.075, 4.5),
    row("gpt-5.4-nano", 0.2, 0.02, 1.25),
    row("gpt-5.5", 5.0, 0.5, 30.0),
];
