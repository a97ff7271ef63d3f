//! The challenge of a server that denies access: the header `WWW-Authenticate`.

/// The parameters of a `Bearer` challenge that matter here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    /// The URL of the metadata of the protected resource.
    pub(super) resource_metadata: Option<String>,
    /// The scopes that the request needs.
    pub(super) scopes: Vec<String>,
    /// The error code, such as `insufficient_scope`.
    pub(super) error: Option<String>,
}

impl Challenge {
    /// Parses the value of a header. What is malformed is ignored: a challenge is only a hint.
    pub(super) fn parse(header: &str) -> Self {
        let mut challenge = Self::default();
        let mut is_bearer = false;
        let mut rest = header;
        while let Some((scheme, name, value, next)) = parameter(rest) {
            if let Some(scheme) = scheme {
                is_bearer = scheme.eq_ignore_ascii_case("bearer");
            }
            if is_bearer {
                match name.to_ascii_lowercase().as_str() {
                    "resource_metadata" => challenge.resource_metadata = Some(value),
                    "scope" => challenge.scopes = split_scopes(&value),
                    "error" => challenge.error = Some(value),
                    _ => {}
                }
            }
            rest = next;
        }
        challenge
    }
}

/// Splits a list of scopes.
pub(super) fn split_scopes(text: &str) -> Vec<String> {
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

/// Reads the next parameter, as in `Bearer name="value", …`. The scheme is there only before the first one.
fn parameter(text: &str) -> Option<(Option<&str>, &str, String, &str)> {
    let text = text.trim_start_matches([' ', ',', '\t']);
    let (before, after) = text.split_once('=')?;
    // A scheme without parameters may precede this one: `Negotiate, Bearer scope="…"`.
    let before = before.rsplit(',').next().unwrap_or(before).trim();
    let (scheme, name) = match before.rsplit_once([' ', '\t']) {
        Some((scheme, name)) => (Some(scheme.trim()), name),
        None => (None, before),
    };
    let after = after.trim_start();
    let Some(quoted) = after.strip_prefix('"') else {
        let end = after.find([',', ' ', '\t']).unwrap_or(after.len());
        let (value, rest) = after.split_at_checked(end)?;
        return Some((scheme, name, value.to_owned(), rest));
    };
    let mut value = String::new();
    let mut chars = quoted.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => value.extend(chars.next()),
            c => value.push(c),
        }
    }
    Some((scheme, name, value, chars.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bearer_challenges_are_found() {
        let of = Challenge::parse;
        assert_eq!(of("Bearer"), Challenge::default());
        assert_eq!(of(""), Challenge::default());
        let full =
            of(r#"Bearer realm="a \"b\", c", resource_metadata="https://a/b", error=invalid_token, scope="x  y""#);
        assert_eq!(full.resource_metadata.as_deref(), Some("https://a/b"));
        assert_eq!(full.scopes, ["x", "y"]);
        assert_eq!(full.error.as_deref(), Some("invalid_token"));
        let second = of(r#"Negotiate, Basic realm="r", scope="no", bearer scope="yes""#);
        assert_eq!(second.scopes, ["yes"]);
        assert_eq!(of(r#"Negotiate, Bearer scope="yes""#).scopes, ["yes"]);
        // Unterminated texts end with the header.
        assert_eq!(of(r#"Bearer scope="a b"#).scopes, ["a", "b"]);
        for broken in ["=", "Bearer =", "Bearer scope", "Bearer scope=\"\\", ",,,", "é=\"é", "Bearer a=b=c"] {
            let _ = of(broken);
        }
    }
}
