//! Keys and tokens in text, which should be in environment variables instead.

use memchr::memmem;
use regex::Regex;
use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

/// A text that looks like a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// The position in bytes.
    pub range: Range<usize>,
    /// A description without the secret itself: `an OpenAI API key`.
    pub description: &'static str,
}

/// The number of characters of a secret that [`mask_secrets`] leaves as they are.
const SHOWN: usize = 4;

/// A form of secrets. Of several that match at a position, the first one counts.
struct Form {
    description: &'static str,
    pattern: &'static str,
}

const FORMS: &[Form] = &[
    Form {
        description: "a private key",
        pattern: r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:\\[nr]|\s|[A-Za-z-]+: [^\n]*\n)*[A-Za-z0-9+/=]{16}[A-Za-z0-9+/=\\\s]*(?:-----END [A-Z0-9 ]*-----)?",
    },
    Form { description: "an Anthropic API key", pattern: r"\bsk-ant-[A-Za-z0-9_-]{16,}" },
    Form { description: "an OpenRouter API key", pattern: r"\bsk-or-[A-Za-z0-9_-]{16,}" },
    Form { description: "an OpenAI API key", pattern: r"\bsk-[A-Za-z0-9_-]{16,}" },
    Form { description: "an AWS access key", pattern: r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b" },
    Form {
        description: "an AWS secret key",
        pattern: r#"(?i)\baws_?secret(?:_?access)?_?key["'`]?\s*[:=]\s*["'`]?[A-Za-z0-9/+]{40}\b"#,
    },
    Form { description: "a GitHub token", pattern: r"\b(?:gh[opusr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,})" },
    Form { description: "a GitLab token", pattern: r"\bglpat-[A-Za-z0-9_-]{20,}" },
    Form { description: "a Google API key", pattern: r"\bAIza[A-Za-z0-9_-]{30,}" },
    Form {
        description: "a Slack token",
        pattern: r"\b(?:xox[abeoprs]-[A-Za-z0-9-]{16,}|xapp-[A-Za-z0-9-]{16,}|hooks\.slack\.com/services/T[A-Za-z0-9]+/B[A-Za-z0-9]+/[A-Za-z0-9]{16,})",
    },
    Form { description: "a Hugging Face token", pattern: r"\bhf_[A-Za-z0-9]{30,}" },
    Form { description: "a Groq API key", pattern: r"\bgsk_[A-Za-z0-9]{30,}" },
    Form { description: "an xAI API key", pattern: r"\bxai-[A-Za-z0-9]{30,}" },
    Form { description: "a Stripe key", pattern: r"\b[sr]k_live_[A-Za-z0-9]{16,}" },
];

/// One expression with a group for each form, so that a text is searched only once. It is built from constants; a
/// mistake in them would find nothing, which the tests notice.
static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let groups: Vec<_> = FORMS.iter().map(|form| format!("({})", form.pattern)).collect();
    Regex::new(&groups.join("|")).ok()
});

/// Finds keys and tokens of common services in a text, in order. Placeholders such as `sk-...` are not reported.
///
/// ```
/// use patter_core::text::find_secrets;
/// let secrets = find_secrets("key: ghp_a8Zk2mQ0rT5vXw9yB3cD6eF1gH4iJ7kL0mN2");
/// assert_eq!((secrets[0].range.clone(), secrets[0].description), (5..45, "a GitHub token"));
/// assert_eq!(find_secrets("Set $OPENAI_API_KEY to sk-your-key-goes-here."), []);
/// ```
pub fn find_secrets(text: &str) -> Vec<Secret> {
    if !may_contain_secret(text) {
        return Vec::new();
    }
    let Some(pattern) = &*PATTERN else { return Vec::new() };
    let secrets = pattern.captures_iter(text).filter_map(|captures| {
        let (form, found) = FORMS.iter().zip(captures.iter().skip(1)).find_map(|(form, group)| Some((form, group?)))?;
        // `\b` is also between `-` and a letter, as in `task-sk-…`.
        let before = text.get(..found.start()).and_then(|before| before.chars().next_back());
        let is_start = !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
        let is_secret = is_start && !is_placeholder(found.as_str());
        is_secret.then_some(Secret { range: found.range(), description: form.description })
    });
    secrets.collect()
}

/// Returns whether a text contains the start of any form. Most do not, and then the expression is not even compiled, which
/// takes longer than all else that a check of a small file does.
fn may_contain_secret(text: &str) -> bool {
    const STARTS: &[&str] = &[
        "sk-",
        "AKIA",
        "ASIA",
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
        "glpat-",
        "AIza",
        "xox",
        "xapp-",
        "hooks.slack.com",
        "hf_",
        "gsk_",
        "xai-",
        "sk_live_",
        "rk_live_",
    ];
    static FINDERS: LazyLock<Vec<memmem::Finder<'static>>> =
        LazyLock::new(|| STARTS.iter().map(memmem::Finder::new).collect());
    let bytes = text.as_bytes();
    let starts_word = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        !before.is_some_and(|before| before.is_ascii_alphanumeric() || *before == b'_')
    };
    // Upper and lower case are the same in `aws_secret_key`, and its `s` may also be `ſ`.
    let is_aws = |w: usize| {
        let Some(at) = w.checked_sub(1).filter(|at| matches!(bytes.get(*at), Some(b'a' | b'A'))) else { return false };
        starts_word(at) && bytes.get(w + 1).is_some_and(|after| matches!(after, b's' | b'S') || !after.is_ascii())
    };
    memmem::find(bytes, b"-----BEGIN ").is_some()
        || FINDERS.iter().any(|start| start.find_iter(bytes).any(starts_word))
        || memchr::memchr2_iter(b'w', b'W', bytes).any(is_aws)
}

/// Replaces keys and tokens in a text with asterisks, except for their first characters. Positions and lines stay the
/// same.
///
/// ```
/// use patter_core::text::mask_secrets;
/// assert_eq!(mask_secrets("AIzaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7"), "AIza************************************");
/// assert_eq!(mask_secrets("no secret"), "no secret");
/// ```
pub fn mask_secrets(text: &str) -> Cow<'_, str> {
    let secrets = find_secrets(text);
    if secrets.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut masked = String::with_capacity(text.len());
    let mut end = 0;
    for Secret { range, .. } in secrets {
        masked.push_str(text.get(end..range.start).unwrap_or_default());
        // Secrets consist of ASCII characters, so the length in bytes does not change.
        let secret = text.get(range.clone()).unwrap_or_default().chars().enumerate();
        masked.extend(secret.map(|(at, c)| if at < SHOWN || c.is_whitespace() { c } else { '*' }));
        end = range.end;
    }
    masked.push_str(text.get(end..).unwrap_or_default());
    Cow::Owned(masked)
}

/// Returns whether a text only has the form of a secret: words, the same character over and over, an example.
fn is_placeholder(text: &str) -> bool {
    /// Secrets are random, so they have a long part without separators and many different characters.
    const MIN_RUN: usize = 16;
    const MIN_DISTINCT: usize = 8;
    const MAX_REPEATED: usize = 5;
    let lowercase = text.to_lowercase();
    if ["example", "your", "placeholder", "redacted"].iter().any(|word| lowercase.contains(word)) {
        return true;
    }
    let runs = text.split(|c: char| !c.is_ascii_alphanumeric());
    let longest = runs.max_by_key(|run| run.len()).unwrap_or_default();
    let distinct: HashSet<_> = longest.chars().collect();
    let mut repeated = 1;
    let has_repeats = longest.as_bytes().windows(2).any(|pair| {
        repeated = if pair.first() == pair.last() { repeated + 1 } else { 1 };
        repeated > MAX_REPEATED
    });
    longest.len() < MIN_RUN || distinct.len() < MIN_DISTINCT || has_repeats
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts a secret together, so that no tool mistakes this file for a leak.
    fn secret(parts: &[&str]) -> String {
        parts.concat()
    }

    #[test]
    fn secrets_of_every_form_are_found() {
        let random = "a8Zk2mQ0rT5vXw9yB3cD6eF1gH4iJ7kL0mN2pQ4";
        let pem = "-----BEGIN RSA PRIVATE KEY-----";
        let table = [
            ("an OpenAI API key", secret(&["sk-", "proj-", random])),
            ("an OpenAI API key", secret(&["sk-", random])),
            ("an Anthropic API key", secret(&["sk-", "ant-api03-", random])),
            ("an OpenRouter API key", secret(&["sk-", "or-v1-", random])),
            ("a private key", secret(&[pem, "\n    MIIEpAIBAAKCAQEA0Z3VS5JJcds3\n    xfn/ygWyF\n"])),
            ("a private key", secret(&["-----BEGIN PRIVATE KEY-----", "\\nMIIEpAIBAAKCAQEA0Z3VS5JJcds3"])),
            ("an AWS access key", secret(&["AKIA", "Z7QW2RT5YU8IO3PA"])),
            ("an AWS secret key", secret(&["aws_secret_access_key = ", random, "Z"])),
            ("a GitHub token", secret(&["ghp_", random])),
            ("a GitHub token", secret(&["github_pat_", random])),
            ("a GitLab token", secret(&["glpat-", random])),
            ("a Google API key", secret(&["AIza", random])),
            ("a Slack token", secret(&["xoxb-", "2514-9137-", random])),
            ("a Hugging Face token", secret(&["hf_", random])),
            ("a Groq API key", secret(&["gsk_", random])),
            ("an xAI API key", secret(&["xai-", random])),
            ("a Stripe key", secret(&["sk_live_", random])),
        ];
        for (description, secret) in table {
            for text in [format!("Use {secret}."), format!("key=\"{secret}\""), secret.clone()] {
                let found: Vec<_> = find_secrets(&text).into_iter().map(|secret| secret.description).collect();
                assert_eq!(found, [description], "{text}");
                let masked = mask_secrets(&text);
                assert_eq!(masked.len(), text.len());
                assert!(
                    !masked.contains("Zk2m") && !masked.contains("BAAKCAQEA") && !masked.contains("QW2R"),
                    "{masked}"
                );
            }
        }
    }

    #[test]
    fn most_texts_are_not_searched() {
        for text in ["", "Use `task-list` and ask-again, say AKIN, law and always.", "aw", "W", "a_sk-1"] {
            assert!(!may_contain_secret(text), "{text}");
        }
        for text in ["sk-", "a.sk-", "ésk-", "AWS", "x aw\u{17f}_", "-----BEGIN RSA"] {
            assert!(may_contain_secret(text), "{text}");
        }
    }

    #[test]
    fn placeholders_are_not_secrets() {
        let table = [
            "sk-...",
            "sk-…",
            "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "sk-proj-000000000000000000000000",
            "sk-your-openai-api-key-goes-here",
            "sk-ant-your-key",
            "${OPENAI_API_KEY} and $GITHUB_TOKEN",
            "AKIAIOSFODNN7EXAMPLE",
            "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "refuse texts with -----BEGIN PRIVATE KEY----- in them",
            "the task-force-2024-quarterly-risk-assessment-a1b2c3d4e5f6",
            "disk-a8Zk2mQ0rT5vXw9yB3cD6eF1gH4iJ7kL0mN2pQ4",
            "AIzaYOUR_KEY_GOES_HERE_AND_IT_IS_LONG_ENOUGH",
        ];
        for text in table {
            assert_eq!(find_secrets(text), [], "{text}");
        }
    }
}
