//! What `patter.toml` says about models and prices, and where it is wrong.

use patter::conversation::Usage;
use patter::project::Config;

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
        ("[prices.gpt-4o]\ninput = 1\noutput = 1", &["line 1", "`gpt-4o` is not a provider and a model"]),
        ("[prices.'OpnAI/a']\ninput = 1\noutput = 1", &["line 1", "did you mean `OpenAI`?"]),
    ];
    for (text, expected) in table {
        refused(text, expected);
    }
}
