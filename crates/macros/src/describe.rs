//! Names and descriptions from identifiers and doc comments.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// Converts a name to camel case: `say_hello` becomes `sayHello`.
pub(crate) fn camel_case(name: &str) -> String {
    let name = name.trim_start_matches("r#").trim_start_matches('_');
    let mut camel = String::with_capacity(name.len());
    let mut is_new_word = false;
    for letter in name.chars() {
        match letter {
            '_' => is_new_word = true,
            _ if is_new_word => {
                camel.extend(letter.to_uppercase());
                is_new_word = false;
            }
            _ => camel.push(letter),
        }
    }
    camel
}

/// Returns the text of the doc comments up to the first heading. The lines of a paragraph are joined, and so are those
/// of a list item.
pub(crate) fn description(attributes: &[Attribute]) -> Option<String> {
    let mut text = String::new();
    let lines: Vec<String> = attributes.iter().filter_map(|attribute| text_of(attribute, "doc")).collect();
    let lines = lines.iter().flat_map(|block| block.split('\n')).map(str::trim);
    for line in lines.take_while(|line| !line.starts_with("# ")) {
        match line {
            "" if text.is_empty() || text.ends_with('\n') => {}
            "" => text.push_str("\n\n"),
            _ => {
                let is_item = line.starts_with("- ") || line.starts_with("* ");
                if !text.is_empty() && !text.ends_with('\n') {
                    text.push(if is_item { '\n' } else { ' ' });
                }
                text.push_str(line);
            }
        }
    }
    Some(text.trim_end().to_owned()).filter(|text| !text.is_empty())
}

/// Returns the text of `#[name = "text"]`.
pub(crate) fn text_of(attribute: &Attribute, name: &str) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(meta) if meta.path.is_ident(name) => match &meta.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}
