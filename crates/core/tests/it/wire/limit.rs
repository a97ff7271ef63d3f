//! Headers about rate limits.

use patter_core::wire::exhausted_limit;
use std::time::{Duration, SystemTime};

type Headers = &'static [(&'static str, &'static str)];

#[test]
fn parses_the_headers_of_providers() {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_769_860_800);
    let ms = |resource, resets_in| Some((resource, Duration::from_millis(resets_in)));
    let openai = |requests: &'static str, reset: &'static str| -> Vec<(&'static str, &'static str)> {
        vec![
            ("x-ratelimit-limit-requests", "500"),
            ("x-ratelimit-limit-tokens", "200000"),
            ("x-ratelimit-remaining-requests", requests),
            ("x-ratelimit-remaining-tokens", "199000"),
            ("x-ratelimit-reset-requests", reset),
            ("x-ratelimit-reset-tokens", "300ms"),
        ]
    };
    let spans = [
        ("499", "120ms", None),
        ("0", "120ms", ms("requests", 120)),
        ("0", "6m0s", ms("requests", 360_000)),
        ("0", "1h0m1.5s", ms("requests", 3_601_500)),
        ("0", "2", ms("requests", 2000)),
        (" 0 ", " 1s ", ms("requests", 1000)),
        ("0", "0s", None),
        ("0", "", None),
        ("0", "soon", None),
        ("0", "5x", None),
        ("0", "1s5", None),
        ("0", "1..2s", None),
        ("0", "ms", None),
        ("0", "é", None),
        ("0", "99999999999999999999999999h", None),
        ("-1", "1s", None),
        ("none", "1s", None),
    ];
    for (requests, reset, expected) in spans {
        let headers = openai(requests, reset);
        let find = |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        assert_eq!(
            exhausted_limit(find, now).map(|limit| (limit.resource, limit.resets_in)),
            expected,
            "{requests} {reset}"
        );
    }
    let cases: [(Headers, _); 7] = [
        (&[], None),
        (&[("x-ratelimit-remaining-tokens", "0")], None),
        (
            &[
                ("x-ratelimit-remaining-requests", "0"),
                ("x-ratelimit-reset-requests", "1s"),
                ("x-ratelimit-remaining-tokens", "0"),
                ("x-ratelimit-reset-tokens", "2s"),
            ],
            ms("tokens", 2000),
        ),
        (
            &[
                ("anthropic-ratelimit-requests-limit", "50"),
                ("anthropic-ratelimit-requests-remaining", "0"),
                ("anthropic-ratelimit-requests-reset", "2026-01-31T12:00:05Z"),
                ("anthropic-ratelimit-output-tokens-remaining", "0"),
                ("anthropic-ratelimit-output-tokens-reset", "2026-01-31T12:00:30.25Z"),
            ],
            ms("output tokens", 30_000),
        ),
        (
            &[
                ("anthropic-ratelimit-input-tokens-remaining", "0"),
                ("anthropic-ratelimit-input-tokens-reset", "2026-01-31T11:59:59Z"),
            ],
            None,
        ),
        (
            &[
                ("anthropic-ratelimit-tokens-remaining", "0"),
                ("anthropic-ratelimit-tokens-reset", "2026-13-31T12:00:05Z"),
            ],
            None,
        ),
        (
            &[("anthropic-ratelimit-tokens-remaining", "0"), ("anthropic-ratelimit-tokens-reset", "2026-01-31T12:00Z")],
            None,
        ),
    ];
    for (headers, expected) in cases {
        let find = |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        assert_eq!(exhausted_limit(find, now).map(|limit| (limit.resource, limit.resets_in)), expected, "{headers:?}");
    }
}
