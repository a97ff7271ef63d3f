//! Values of the wrong type in files of settings, in the words of a person.

/// Describes an error of a deserializer about the type of a value; `None` if it is about something else.
pub(crate) fn explain_type(message: &str) -> Option<String> {
    let (found, expected) = message.strip_prefix("invalid type: ")?.split_once(", expected ")?;
    let expected = match expected {
        "a sequence" => "a list, such as [\"…\"]",
        "a boolean" => "true or false",
        "f64" | "f32" => "a number",
        "a map" => "a section",
        "a string" => "text in quotes",
        other if other.starts_with("struct ") => "a section",
        other if other.len() <= "usize".len() && other.starts_with(['u', 'i']) => "a whole number",
        other => other,
    };
    let found = match found {
        "sequence" => "a list".to_owned(),
        "map" => "a section".to_owned(),
        other => other.replace("string ", "the text ").replace("boolean ", "").replace("integer ", ""),
    };
    Some(format!("expected {expected}, found {found}"))
}
