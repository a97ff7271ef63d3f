//! What every provider and every wire needs, so that an incomplete one fails a test.

use patter_core::provider::{Backend, Endpoint, KeyHeader, ModelRef, Provider, Wire, known_model};
use std::collections::HashSet;
use std::fs;

/// Returns the providers that are reached over HTTP.
fn endpoints() -> impl Iterator<Item = (Provider, &'static Endpoint)> {
    Provider::ALL.into_iter().filter_map(|provider| match &provider.profile().backend {
        Backend::Http(endpoint) => Some((provider, endpoint)),
        Backend::BuiltIn(_) => None,
    })
}

#[test]
fn names_are_unique_and_can_be_parsed() {
    let mut known = HashSet::new();
    for provider in Provider::ALL {
        let profile = provider.profile();
        for name in profile.aliases.iter().chain([&profile.name]) {
            assert!(known.insert(name.to_ascii_lowercase()), "`{name}` is the name of two providers");
            for spelling in [(*name).to_owned(), name.to_ascii_lowercase(), name.to_ascii_uppercase()] {
                assert_eq!(Provider::parse(&spelling), Some(provider), "{spelling}");
            }
            let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.bytes().all(is_name_byte);
            assert!(is_name, "`{name}` cannot be part of a reference such as `{name}/model`");
        }
        let model: ModelRef = format!("{}/m", provider.name()).parse().unwrap();
        assert_eq!((model.provider, model.to_string()), (provider, format!("{}/m", provider.name())));
    }
}

/// Replaces `${NAME}`, `${NAME:-default}` and `{model}` by examples.
fn without_placeholders(base_url: &str) -> String {
    let mut text = base_url.replace("{model}", "m").replacen("${AZURE_OPENAI_ENDPOINT}", "https://x.example", 1);
    while let Some((before, (inside, after))) =
        text.split_once("${").and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    {
        let (variable, default) = inside.split_once(":-").unwrap_or((inside, "x"));
        assert!(variable.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'), "{variable}");
        text = format!("{before}{default}{after}");
    }
    text
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

#[test]
fn endpoints_are_complete() {
    let mut variables = HashSet::new();
    for (provider, endpoint) in endpoints() {
        let name = provider.name();
        assert!(!endpoint.wires.is_empty(), "{name} has no wire");
        assert!(endpoint.wire_variable.is_none() || endpoint.wires.len() > 1, "{name} has nothing to select");
        // Paths are appended to the base URL, which may have placeholders.
        let base_url = without_placeholders(endpoint.base_url);
        let (scheme, rest) = base_url.split_once("://").unwrap();
        let host = rest.split(['/', ':']).next().unwrap();
        let is_local = host == "localhost";
        assert_eq!(scheme, if is_local { "http" } else { "https" }, "{name}");
        assert!(is_local || host.contains('.'), "{name}: {host}");
        assert!(rest.bytes().all(|byte| is_name_byte(byte) || matches!(byte, b'/' | b':')), "{name}: {rest}");
        assert!(!rest.ends_with('/'), "{name}: {rest}");
        let own = endpoint.key_variables.iter().chain([&endpoint.base_url_variable]).chain(&endpoint.wire_variable);
        for variable in own {
            assert!(variables.insert(*variable), "two providers use `{variable}`");
            assert!(variable.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'), "{variable}");
        }
        let key_header = match endpoint.key_header {
            KeyHeader::Bearer => "authorization",
            KeyHeader::Named(header) => header,
        };
        for header in endpoint.headers.iter().map(|(header, _)| *header).chain([key_header]) {
            assert!(header.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{name}: {header}");
        }
        assert!(!endpoint.needs_key || !endpoint.key_variables.is_empty(), "{name} needs a key from nowhere");
        assert!(endpoint.rejection_statuses.iter().all(|status| (400..500).contains(status)), "{name}");
    }
}

#[test]
fn model_tables_are_complete_and_have_no_duplicates() {
    for provider in Provider::ALL {
        let mut known = HashSet::new();
        for row in provider.profile().models {
            let model = format!("{}/{}", provider.name(), row.id);
            assert!(known.insert(row.id), "`{model}` is listed twice");
            let window = row.facts.window.unwrap_or_else(|| panic!("`{model}` has no window"));
            let max_output = row.facts.max_output.unwrap_or_else(|| panic!("`{model}` has no limit of output"));
            assert!((1_000..=2_000_000).contains(&window), "{model}: {window}");
            assert!((1_000..=2_000_000).contains(&max_output), "{model}: {max_output}");
            assert_eq!(known_model(&model.parse().unwrap()), Some(row.facts), "{model}");
        }
    }
}

#[test]
fn models_are_known_by_their_names() {
    let known = |model: &str| known_model(&model.parse().unwrap());
    assert_eq!(known("OpenAI/gpt-5-2025-08-07"), known("OpenAI/gpt-5"));
    assert_eq!(known("Anthropic/claude-sonnet-4-5-20250929").unwrap().max_output, Some(64_000));
    assert_eq!(known("Google/gemini-2.0-flash-001").unwrap().max_output, Some(8_192));
    assert!(!known("OpenAI/o1-mini").unwrap().tools);
    // The same models at other providers.
    assert_eq!(known("Vertex/gemini-2.5-pro"), known("Google/gemini-2.5-pro"));
    assert_eq!(known("OpenRouter/google/gemini-2.5-pro"), known("Google/gemini-2.5-pro"));
    assert_eq!(known("OpenRouter/anthropic/claude-opus-4.6"), known("Anthropic/claude-opus-4-6"));
    for unknown in ["OpenAI/gpt-5-tts", "OpenRouter/nobody/gpt-5", "OpenRouter/openai/nothing", "demo", "scripted/x"] {
        assert_eq!(known(unknown), None, "{unknown}");
    }
}

#[test]
fn settings_are_documented() {
    let path = format!("{}/../../docs/models.md", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&path).unwrap();
    for (provider, endpoint) in endpoints() {
        let row = text.lines().find(|line| line.starts_with(&format!("| {}", provider.name())));
        let row = row.unwrap_or_else(|| panic!("docs/models.md has no row for {}", provider.name()));
        for variable in endpoint.key_variables.iter().chain([&endpoint.base_url_variable]) {
            assert!(row.contains(&format!("`{variable}`")), "docs/models.md: `{variable}` is missing in {row}");
        }
        if let Some(variable) = endpoint.wire_variable {
            assert!(text.contains(&format!("`{variable}`")), "docs/models.md does not mention `{variable}`");
        }
    }
}

#[test]
fn wires_are_named_used_and_recorded() {
    for wire in Wire::ALL {
        let name = wire.name();
        assert_eq!(Wire::parse(name), Some(wire));
        assert!(endpoints().any(|(_, endpoint)| endpoint.wires.contains(&wire)), "no provider uses `{name}`");
        let folder = format!("{}/tests/wire/{name}", env!("CARGO_MANIFEST_DIR"));
        let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder}: {error}"));
        let names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        for extension in [".json", ".stream"] {
            assert!(names.iter().any(|name| name.ends_with(extension)), "{folder} has no {extension} file");
        }
    }
}
