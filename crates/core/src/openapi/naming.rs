//! Names of the toolbox, its tools, their parameters, and environment variables.

use super::error::OpenApiError;
use crate::name::WireName;

/// The maximum length of a toolbox name, which leaves room for the names of its tools.
const MAX_TOOLBOX_NAME: usize = 32;
/// Words in titles that do not describe the API.
const GENERIC_WORDS: &[&str] =
    &["api", "apis", "http", "openapi", "rest", "spec", "specification", "swagger", "the", "web"];

/// Returns the name of the toolbox: the requested one, or the descriptive words of the title.
pub(super) fn toolbox_name(title: &str, requested: Option<&str>) -> Result<String, OpenApiError> {
    if let Some(name) = requested {
        let starts_with_letter = name.chars().next().is_some_and(|first| first.is_ascii_alphabetic());
        let is_valid = starts_with_letter
            && name.len() <= MAX_TOOLBOX_NAME
            && !name.contains('/')
            && WireName::from_full_name(name).is_ok();
        return if is_valid { Ok(name.to_owned()) } else { Err(OpenApiError::InvalidName(name.to_owned())) };
    }
    let lower = title.to_ascii_lowercase();
    let descriptive = words(&lower).into_iter().filter(|word| !GENERIC_WORDS.contains(word) && !is_version(word));
    let mut name = String::new();
    for word in descriptive {
        if name.len() + word.len() + 1 > MAX_TOOLBOX_NAME {
            break;
        }
        if !name.is_empty() {
            name.push('_');
        }
        name.push_str(word);
    }
    Ok(match name.chars().next() {
        None => "api".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("api_{name}"),
        Some(_) => name,
    })
}

fn is_version(word: &str) -> bool {
    let digits = word.strip_prefix('v').unwrap_or(word);
    !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
}

/// Splits a text into its ASCII words.
fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

/// Returns the name of a tool in camel case: the words of the operation's id, or of its method and path.
pub(super) fn tool_name(id: Option<&str>, method: &str, path: &str) -> String {
    let name = id.map(|id| camel_case(words(id))).filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| {
        let segments = path.split('/').map(|segment| match segment.strip_prefix('{') {
            Some(parameter) => format!("by {parameter}"),
            None => segment.to_owned(),
        });
        let all: String = std::iter::once(method.to_ascii_lowercase()).chain(segments).collect::<Vec<_>>().join(" ");
        camel_case(words(&all))
    });
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("op{name}") } else { name }
}

/// Truncates a name of ASCII characters.
pub(super) fn truncate(name: &str, max: usize) -> &str {
    name.get(..max).unwrap_or(name)
}

fn camel_case(words: Vec<&str>) -> String {
    let mut name = String::new();
    for word in words {
        let (first, rest) = word.split_at_checked(1).unwrap_or((word, ""));
        // `ListPets` starts with a capitalized word, `URLs` with an abbreviation.
        let is_word = !rest.starts_with(|c: char| c.is_ascii_uppercase());
        match (name.is_empty(), is_word) {
            (true, true) => name.push_str(&first.to_ascii_lowercase()),
            (true, false) => name.push_str(first),
            (false, _) => name.push_str(&first.to_ascii_uppercase()),
        }
        name.push_str(rest);
    }
    name
}

/// Converts a name to one that is valid for a parameter: `[A-Za-z_][A-Za-z0-9_]*`.
pub(super) fn symbol(name: &str) -> String {
    let is_symbol = |name: &str| {
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    };
    if is_symbol(name) {
        return name.to_owned();
    }
    let joined = words(name).join("_");
    match joined.chars().next() {
        None => "parameter".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("_{joined}"),
        Some(_) => joined,
    }
}

/// Returns the name of an environment variable: `PETSTORE_API_KEY`.
pub(super) fn variable(toolbox: &str, purpose: &str) -> String {
    let mut name = String::new();
    let mut previous = '_';
    for c in toolbox.chars().chain(['_']).chain(purpose.chars()) {
        if !c.is_ascii_alphanumeric() {
            if !name.ends_with('_') {
                name.push('_');
            }
        } else {
            if c.is_ascii_uppercase() && previous.is_ascii_lowercase() {
                name.push('_');
            }
            name.push(c.to_ascii_uppercase());
        }
        previous = c;
    }
    name.trim_end_matches('_').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toolboxes_are_named_after_titles() {
        let toolbox = |title: &str| toolbox_name(title, None).unwrap();
        assert_eq!(toolbox("Swagger Petstore - OpenAPI 3.0"), "petstore");
        assert_eq!(toolbox("The Weather API v2"), "weather");
        assert_eq!(toolbox("GitHub v3 REST API"), "github");
        assert_eq!(toolbox("REST API"), "api");
        assert_eq!(toolbox("東京"), "api");
        assert_eq!(toolbox("2captcha"), "api_2captcha");
        assert_eq!(toolbox("a very long title that goes on and on and on"), "a_very_long_title_that_goes_on");
    }

    #[test]
    fn tools_are_named_after_their_operations() {
        let check = |id: Option<&str>, path: &str, expected: &str| assert_eq!(tool_name(id, "GET", path), expected);
        check(Some("listPets"), "/", "listPets");
        check(Some("ListPets"), "/", "listPets");
        check(Some("pets/list-all"), "/", "petsListAll");
        check(Some("get__user"), "/", "getUser");
        check(Some("URLs.get"), "/", "URLsGet");
        check(Some("3dModel"), "/", "op3dModel");
        check(Some("??"), "/pets", "getPets");
        check(None, "/pets/{pet-id}/photos", "getPetsByPetIdPhotos");
        check(None, "/", "get");
    }

    #[test]
    fn parameters_and_variables_have_plain_names() {
        let check = |name: &str, expected: &str| assert_eq!(symbol(name), expected);
        check("limit", "limit");
        check("_x", "_x");
        check("pet-id", "pet_id");
        check("filter[name]", "filter_name");
        check("$top", "top");
        check("2fa", "_2fa");
        check("größe", "gr_e");
        check("?", "parameter");
        assert_eq!(variable("petstore", "api_key"), "PETSTORE_API_KEY");
        assert_eq!(variable("my-shop", "bearerAuth"), "MY_SHOP_BEARER_AUTH");
    }
}
