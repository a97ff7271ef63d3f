//! Settings of models and prices in `patter.toml`, and errors in them.

use patter::message::conversation::Usage;
use patter::model::{HttpModel, Model, ProviderAccess};
use patter::project::{Config, Environment};
use patter::provider::Provider;

/// Asserts that a text is rejected with a message that contains all of the expected texts.
fn check_rejected(text: &str, expected: &[&str]) {
    let message = Config::parse(text).unwrap_err();
    for expected in expected {
        assert!(message.contains(expected), "`{expected}` is missing in the message for {text}\n{message}");
    }
}

#[test]
fn projects_override_prices() {
    let text = "[prices.'OpenAI/ours']\ninput = 3\noutput = 0.5\n[prices.'openai:gpt-4o']\ninput = 1\ncached = 0.5\ncache-write = 2\noutput = 0\n";
    let prices = Config::parse(text).unwrap().prices();
    let usage = Usage { input_tokens: 1000, cached_tokens: 100, cache_write_tokens: 200, ..Usage::default() };
    for (model, expected) in
        [("OpenAI/ours", "$0.003"), ("OpenAI/gpt-4o", "$0.00115"), ("OpenAI/gpt-4o-mini", "$0.000143")]
    {
        let cost = prices.cost(&model.parse().unwrap(), usage).map(|cost| cost.to_string());
        assert_eq!(cost.as_deref(), Some(expected), "{model}");
    }
}

#[test]
fn invalid_prices_are_rejected() {
    let out_of_range = "a price must be between 0 and 1000000 dollars";
    let table: [(&str, &[&str]); 8] = [
        ("[prices.'OpenAI/a']\ninput = -1\noutput = 2", &["line 2", out_of_range]),
        ("[prices.'OpenAI/a']\ninput = 1\noutput = nan", &["line 3", out_of_range]),
        ("[prices.'OpenAI/a']\ninput = 1\noutput = inf", &["line 3", out_of_range]),
        ("[prices.'OpenAI/a']\ninput = '1'\noutput = 1", &["line 2"]),
        ("[prices.'OpenAI/a']\ninput = 1", &["line 1", "the setting `output` is missing"]),
        (
            "[prices.'OpenAI/a']\ninput = 1\noutput = 1\noutptu = 1",
            &["line 4", "unknown setting `outptu`; did you mean `output`?"],
        ),
        ("[prices.gpt-4o]\ninput = 1\noutput = 1", &["line 1", "`gpt-4o` is missing a provider"]),
        ("[prices.'OpnAI/a']\ninput = 1\noutput = 1", &["line 1", "did you mean `OpenAI`?"]),
    ];
    for (text, expected) in table {
        check_rejected(text, expected);
    }
}

type Variables = &'static [(&'static str, &'static str)];

fn access(text: &str, variables: Variables, provider: Provider) -> ProviderAccess {
    let config = Config::parse(text).unwrap();
    ProviderAccess::resolve(provider, &Environment::from_variables(variables.iter().copied()), &config.models)
        .unwrap()
        .unwrap()
}

#[test]
fn the_environment_overrides_the_file() {
    let text = "[models.OpenAI]\napi = 'responses'\nbase-url = 'http://here/v1'\ntimeout = 1.5\n[models.ollama]\nbase-url = 'there:1'\n";
    let default = "https://api.openai.com/v1";
    type Expected = (&'static str, &'static str, bool, u128);
    let table: [(&str, Variables, Provider, Expected); 6] = [
        ("", &[], Provider::OPENAI, (default, "chat", true, 600_000)),
        ("", &[("PATTER_OPENAI_API", "functions")], Provider::OPENAI, (default, "functions", true, 600_000)),
        (text, &[], Provider::OPENAI, ("http://here/v1", "responses", false, 1500)),
        (
            text,
            &[("PATTER_OPENAI_API", "chat"), ("OPENAI_BASE_URL", "http://env")],
            Provider::OPENAI,
            ("http://env", "chat", false, 1500),
        ),
        (text, &[], Provider::OLLAMA, ("http://there:1", "ollama", false, 600_000)),
        (text, &[], Provider::ANTHROPIC, ("https://api.anthropic.com", "anthropic", true, 600_000)),
    ];
    for (text, variables, provider, expected) in table {
        let access = access(text, variables, provider);
        let found = (access.base_url.as_str(), access.wire.name(), access.lacks_key(), access.timeout.as_millis());
        assert_eq!(found, expected, "{variables:?} {provider:?}");
    }
    let google = access("", &[("GEMINI_API_KEY", "k")], Provider::GOOGLE);
    assert_eq!((google.key_variable(), google.lacks_key()), (Some("GEMINI_API_KEY"), false));
    // The provider itself requires a key, even if its address is set explicitly.
    assert!(access("", &[("OPENAI_BASE_URL", "https://api.openai.com/v1")], Provider::OPENAI).lacks_key());
}

#[test]
fn invalid_settings_are_rejected() {
    let table: [(&str, &[&str]); 23] = [
        (
            "[sandbox]\ndefault = 'loose'",
            &["line 2, column 11", "unknown value `loose`; possible values: read-only, workspace, none"],
        ),
        (
            "[sandbox]\ndefault = 'readonly'",
            &["unknown value `readonly`; did you mean `read-only`? possible values: read-only, workspace, none"],
        ),
        ("[mcp.a]\ncommand = 'a'\nsandbox = 'worspace'", &["line 3", "did you mean `workspace`?"]),
        ("[mcp.a]\nurl = 'https://a'\ntransport = 'stdio'", &["line 3", "unknown value `stdio`", "values: http, sse"]),
        ("[sandbox]\ndefault = true", &["line 2", "expected text in quotes"]),
        ("[models.OpenAI]\napi = 'cht'", &["line 2", "unknown API `cht`; use one of chat, functions, responses"]),
        (
            "[models.OpenAI]\napi = 'gemini'",
            &["line 1", "`gemini` is not an API of OpenAI; use chat, responses, functions"],
        ),
        ("[models.OpnAI]", &["line 1", "unknown provider `OpnAI`; did you mean `OpenAI`?"]),
        ("[models.demo]", &["line 1", "`demo` needs no settings"]),
        ("[models.mine]", &["line 1", "unknown provider `mine`; set `api` and `url` to declare it"]),
        (
            "[models.'my house']\napi = 'chat'\nurl = 'http://x'",
            &["line 1", "`my house` cannot be the name of a provider"],
        ),
        ("[models.mine]\napi = 'chat'\nurl = 'http://x'\nkey = 'sk-abc123'", &["line 1", "and not the key itself"]),
        ("[models.mine]\napi = 'chat'\nurl = 'http://x'\nkey = { command = [] }", &["the command of `key` is empty"]),
        ("[models.OpenAI]\nkey = 3", &["line 2", "expected the name of a variable, or `{ command = [\"…\"] }`"]),
        ("[models.OpenAI]\nurl = 'a'\nbase-url = 'b'", &["`url` and `base-url` are the same setting"]),
        ("[models.OpenAI]\nheaders = { 'a b' = 'c' }", &["`a b` is not the name of a header"]),
        ("[models.OpenAI]\nmax-tokens-field = 'limit'", &["line 2", "use `max_tokens` or `max_completion_tokens`"]),
        (
            "[models.OpenAI]\nsystem-role = 'boss'",
            &["line 2", "unknown role `boss`; use one of system, developer, user"],
        ),
        ("[models.OpenAI]\n[models.openai]", &["there are two sections for OpenAI"]),
        ("[models.Anthropic]\napi = 'chat'", &["line 1", "`chat` is not an API of Anthropic; use anthropic"]),
        ("[models.OpenAI]\nbase_url = 'x'", &["line 2", "unknown setting `base_url`"]),
        ("[models.OpenAI]\ntimeout = 0", &["line 2", "a time must be more than 0"]),
        ("[models.OpenAI]\ntimeout = nan", &["line 2", "a time must be more than 0"]),
    ];
    for (text, expected) in table {
        check_rejected(text, expected);
    }
    let environment = Environment::from_variables([("PATTER_OPENAI_API", "cht"), ("OPENAI_API_KEY", "k")]);
    let error = HttpModel::new(&"OpenAI/gpt-4o".parse().unwrap(), &environment).err().unwrap();
    assert_eq!(error.to_string(), "`PATTER_OPENAI_API` is `cht`, which is not a supported OpenAI API");
    assert_eq!(error.hint(), Some("the supported APIs are chat, responses, functions"));
    let config = Config::parse("[models.OpenAI]\nbase-url = 'http://[x'").unwrap();
    let error = HttpModel::with_config(&"OpenAI/gpt-4o".parse().unwrap(), &Environment::default(), &config.models)
        .err()
        .unwrap();
    assert_eq!(error.to_string(), "the address of OpenAI in `patter.toml` is not a valid URL");
    let environment = Environment::from_variables([("OPENAI_BASE_URL", "ftp://a.example/")]);
    let error = HttpModel::new(&"OpenAI/gpt-4o".parse().unwrap(), &environment).err().unwrap();
    assert_eq!(error.to_string(), "the address of OpenAI in `OPENAI_BASE_URL` starts with `ftp://`");
    assert_eq!(error.kind(), "configuration");
}

/// The defaults of each provider are enough to create a model, once a key is set.
#[test]
fn every_provider_works_with_its_defaults() {
    for provider in Provider::ALL {
        let Some(endpoint) = provider.endpoint() else { continue };
        let model = format!("{}/m", provider.name()).parse().unwrap();
        let address = [("AZURE_OPENAI_ENDPOINT", "https://x.openai.azure.com"), ("GOOGLE_CLOUD_PROJECT", "p")];
        for variable in endpoint.key_variables {
            let environment = Environment::from_variables(address.into_iter().chain([(*variable, "k3y")]));
            assert_eq!(HttpModel::new(&model, &environment).unwrap().provider(), provider);
        }
        let without_key = HttpModel::new(&model, &Environment::from_variables(address));
        assert_eq!(without_key.is_ok(), !endpoint.needs_key, "{}", provider.name());
    }
}
