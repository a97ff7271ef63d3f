//! What `patter.toml` says about models and prices, and where it is wrong.

use patter::message::conversation::Usage;
use patter::model::{Access, HttpModel};
use patter::project::{Config, Environment};
use patter::provider::Provider;

/// Asserts that a text is refused, with a message that has all of these.
fn refused(text: &str, expected: &[&str]) {
    let message = Config::parse(text).unwrap_err();
    for expected in expected {
        assert!(message.contains(expected), "{text}\n{message}\nhas no {expected}");
    }
}

#[test]
fn prices_of_a_project() {
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
fn prices_that_are_none() {
    let is_number = "a price is a number of dollars from 0 to 1000000";
    let table: [(&str, &[&str]); 8] = [
        ("[prices.'OpenAI/a']\ninput = -1\noutput = 2", &["line 2", is_number]),
        ("[prices.'OpenAI/a']\ninput = 1\noutput = nan", &["line 3", is_number]),
        ("[prices.'OpenAI/a']\ninput = 1\noutput = inf", &["line 3", is_number]),
        ("[prices.'OpenAI/a']\ninput = '1'\noutput = 1", &["line 2"]),
        ("[prices.'OpenAI/a']\ninput = 1", &["line 1", "missing field `output`"]),
        ("[prices.'OpenAI/a']\ninput = 1\noutput = 1\noutptu = 1", &["line 4", "unknown field `outptu`"]),
        ("[prices.gpt-4o]\ninput = 1\noutput = 1", &["line 1", "`gpt-4o` is missing a provider"]),
        ("[prices.'OpnAI/a']\ninput = 1\noutput = 1", &["line 1", "did you mean `OpenAI`?"]),
    ];
    for (text, expected) in table {
        refused(text, expected);
    }
}

type Variables = &'static [(&'static str, &'static str)];

fn access(text: &str, variables: Variables, provider: Provider) -> Access {
    let config = Config::parse(text).unwrap();
    Access::resolve(provider, &Environment::of(variables.iter().copied()), &config.models).unwrap().unwrap()
}

#[test]
fn the_environment_comes_before_the_file() {
    let text = "[models.OpenAI]\napi = 'responses'\nbase-url = 'http://here/v1'\ntimeout = 1.5\n[models.ollama]\nbase-url = 'there:1'\n";
    let own = "https://api.openai.com/v1";
    type Expected = (&'static str, &'static str, bool, u128);
    let table: [(&str, Variables, Provider, Expected); 6] = [
        ("", &[], Provider::OPENAI, (own, "chat", true, 600_000)),
        ("", &[("PATTER_OPENAI_API", "functions")], Provider::OPENAI, (own, "functions", true, 600_000)),
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
    let both = access("", &[("GEMINI_API_KEY", "k")], Provider::GOOGLE);
    assert_eq!((both.key, both.lacks_key()), (Some("GEMINI_API_KEY"), false));
    // The provider itself wants a key, however its address was said.
    assert!(access("", &[("OPENAI_BASE_URL", "https://api.openai.com/v1")], Provider::OPENAI).lacks_key());
}

#[test]
fn settings_that_are_none() {
    let table: [(&str, &[&str]); 8] = [
        ("[models.OpenAI]\napi = 'cht'", &["line 2", "unknown API `cht`; use one of chat, functions, responses"]),
        (
            "[models.OpenAI]\napi = 'gemini'",
            &["line 1", "`gemini` is not an API of OpenAI; use chat, responses, functions"],
        ),
        ("[models.OpnAI]", &["line 1", "unknown provider `OpnAI`; did you mean `OpenAI`?"]),
        ("[models.demo]", &["line 1", "unknown provider `demo`; the providers are OpenAI, Anthropic, Google, Ollama"]),
        ("[models.Anthropic]\napi = 'chat'", &["line 1", "`chat` is not an API of Anthropic; use anthropic"]),
        ("[models.OpenAI]\nbase_url = 'x'", &["line 2", "`base-url`"]),
        ("[models.OpenAI]\ntimeout = 0", &["line 2", "a time is a number of seconds above 0"]),
        ("[models.OpenAI]\ntimeout = nan", &["line 2", "a time is a number of seconds above 0"]),
    ];
    for (text, expected) in table {
        refused(text, expected);
    }
    let environment = Environment::of([("PATTER_OPENAI_API", "cht"), ("OPENAI_API_KEY", "k")]);
    let error = HttpModel::new(&"OpenAI/gpt-4o".parse().unwrap(), &environment).err().unwrap();
    assert_eq!(error.to_string(), "`PATTER_OPENAI_API` is `cht`, which is not a supported OpenAI API");
    assert_eq!(error.hint(), Some("the APIs are chat, responses, functions"));
    let config = Config::parse("[models.OpenAI]\nbase-url = 'http://[x'").unwrap();
    let error =
        HttpModel::with(&"OpenAI/gpt-4o".parse().unwrap(), &Environment::default(), &config.models).err().unwrap();
    assert_eq!(error.to_string(), "the address of OpenAI in `patter.toml` is none");
}
