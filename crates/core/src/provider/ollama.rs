//! Ollama, which runs models locally.

use super::profile::{Backend, Endpoint, KeyHeader, Profile};
use super::wire::Wire;

pub(super) static PROFILE: Profile = Profile {
    name: "Ollama",
    aliases: &[],
    backend: Backend::Http(Endpoint {
        wires: &[Wire::Ollama],
        wire_variable: None,
        base_url: "http://localhost:11434",
        base_url_variable: "OLLAMA_HOST",
        key_variables: &[],
        needs_key: false,
        key_header: KeyHeader::Bearer,
        headers: &[],
        rejection_statuses: &[],
    }),
    dialect: None,
    models: &[],
    is_free: true,
    telemetry_name: None,
};
