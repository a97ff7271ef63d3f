//! Variables in settings of models: `${NAME}`, and `${NAME:-default}` for those that may be unset.

/// Replaces the variables of a text by their values. An error is the name of the first that is not set.
pub(crate) fn expand(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, (inside, after))) =
        rest.split_once("${").and_then(|(before, tail)| Some((before, tail.split_once('}')?)))
    {
        let (name, default) = inside.split_once(":-").map_or((inside, None), |(name, default)| (name, Some(default)));
        let value = variable(name).or_else(|| default.map(str::to_owned));
        expanded.push_str(before);
        expanded.push_str(&value.ok_or_else(|| name.to_owned())?);
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// Iterates over the names of the variables of a text.
pub(crate) fn variables_in(text: &str) -> impl Iterator<Item = &str> {
    text.split("${").skip(1).filter_map(|rest| {
        let (name, _) = rest.split_once('}')?;
        Some(name.split_once(":-").map_or(name, |(name, _)| name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced() {
        let value = |name: &str| (name == "A").then(|| "1".to_owned());
        for (text, expected) in [
            ("", Ok("")),
            ("x${A}y${A}", Ok("x1y1")),
            ("${B:-2}/${A:-3}", Ok("2/1")),
            ("${B:-}", Ok("")),
            ("{model} $A ${", Ok("{model} $A ${")),
            ("${A}${B}", Err("B")),
        ] {
            assert_eq!(expand(text, value).as_deref().map_err(String::as_str), expected, "{text}");
        }
        assert_eq!(variables_in("${A}/${B:-2}").collect::<Vec<_>>(), ["A", "B"]);
    }
}
