//! `editFile`: replacing a part of a file.

use super::action::{ActionContext, ToolText};
use super::target::{MAX_BYTES, WriteTarget};
use crate::tool::ToolFailure;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::borrow::Cow;

pub(super) const DEFINITION: ToolText = ToolText {
    name: "editFile",
    description: "Replaces a text in a file by another one. The text must occur exactly once, unless all occurrences are \
                  to be replaced",
    signature: "(path::Text {description: 'A path in the project'})\
     ==>(oldText::Text {description: 'The text to replace, exactly as in the file, with its white space and line breaks'})\
     ==>(newText::Text {description: 'The text to insert instead'})\
     ==>(all::Bool {description: 'Whether to replace all occurrences', default: false})\
     ==>(::Object {fields: [\
       {name: 'path', type: 'Text'}, \
       {name: 'replaced', type: 'Int', description: 'The number of replaced occurrences'}, \
       {name: 'line', type: 'Int', description: 'The line of the first one'}]})",
};

/// The number of occurrences that are listed.
const MAX_LISTED: usize = 10;

#[derive(Deserialize)]
pub(super) struct Arguments {
    path: String,
    #[serde(rename = "oldText")]
    old: String,
    #[serde(rename = "newText")]
    new: String,
    #[serde(default)]
    all: bool,
}

pub(super) fn edit(context: &ActionContext, arguments: &Arguments) -> Result<Json, ToolFailure> {
    let Arguments { path, old, new, all } = arguments;
    if old.is_empty() {
        return Err(ToolFailure::new("`oldText` is empty; use `writeFile` to write a whole file"));
    }
    if old == new {
        return Err(ToolFailure::new("`oldText` and `newText` are equal, so there is nothing to change"));
    }
    let target = WriteTarget::open(context, path)?;
    if !target.exists() {
        return Err(ToolFailure::new(format!("`{path}` does not exist")));
    }
    let (bytes, version) = target.read()?;
    let text = String::from_utf8(bytes)
        .ok()
        .filter(|text| !text.contains('\0'))
        .ok_or_else(|| ToolFailure::new(format!("`{path}` is not a text file in UTF-8")))?;
    let (old, new) = with_line_breaks_of(&text, old, new);
    let found: Vec<usize> = occurrences(&text, &old).take(if *all { usize::MAX } else { MAX_LISTED + 1 }).collect();
    let Some(first) = found.first() else { return Err(not_found(path, &text, &old)) };
    if found.len() > 1 && !all {
        return Err(ambiguous(path, &text, &found));
    }
    let line = line_at(&text, *first);
    let replaced = text.matches(&*old).count();
    let size = text.len() + replaced * new.len() - replaced * old.len();
    if size > MAX_BYTES {
        return Err(ToolFailure::new(format!("the file would have {size} bytes; at most {MAX_BYTES} are allowed")));
    }
    let edited = text.replace(&*old, &new);
    target.replace(edited.as_bytes(), Some(version))?;
    Ok(json!({"path": path, "replaced": replaced, "line": line}))
}

/// Returns the texts with the line breaks of a file that ends its lines with CR and LF. Models rarely write these.
fn with_line_breaks_of<'t>(text: &str, old: &'t str, new: &'t str) -> (Cow<'t, str>, Cow<'t, str>) {
    let has_only_crlf = text.contains("\r\n") && text.matches('\n').count() == text.matches("\r\n").count();
    if has_only_crlf && !old.contains("\r\n") && !new.contains("\r\n") {
        (old.replace('\n', "\r\n").into(), new.replace('\n', "\r\n").into())
    } else {
        (old.into(), new.into())
    }
}

/// Iterates over the positions at which a text occurs, also where occurrences overlap.
fn occurrences<'t>(text: &'t str, wanted: &'t str) -> impl Iterator<Item = usize> {
    let step = wanted.chars().next().map_or(1, char::len_utf8);
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = from + text.get(from..)?.find(wanted)?;
        from = at + step;
        Some(at)
    })
}

fn line_at(text: &str, position: usize) -> usize {
    text.get(..position).unwrap_or_default().matches('\n').count() + 1
}

fn ambiguous(path: &str, text: &str, found: &[usize]) -> ToolFailure {
    let mut lines: Vec<_> = found.iter().take(MAX_LISTED).map(|at| line_at(text, *at).to_string()).collect();
    lines.dedup();
    let count = match found.len() {
        count if count > MAX_LISTED => format!("more than {MAX_LISTED} times"),
        count => format!("{count} times"),
    };
    let lines = match lines.as_slice() {
        [only] => format!("line {only}"),
        several if found.len() > MAX_LISTED => format!("lines {}, …", several.join(", ")),
        several => format!("lines {}", several.join(", ")),
    };
    ToolFailure::new(format!(
        "`{path}` contains `oldText` {count}, in {lines}; include more of the text around it, or set `all`"
    ))
}

/// Returns the failure for a text that does not occur, with the place that was probably meant.
fn not_found(path: &str, text: &str, old: &str) -> ToolFailure {
    let wanted: Vec<&str> = old.lines().map(str::trim).skip_while(|line| line.is_empty()).collect();
    let wanted = wanted.iter().rposition(|line| !line.is_empty()).and_then(|last| wanted.get(..=last)).unwrap_or(&[]);
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let similar = |count: usize| {
        let wanted = wanted.get(..count).filter(|wanted| !wanted.is_empty())?;
        lines.windows(wanted.len()).position(|window| window == wanted).map(|index| index + 1)
    };
    let hint = if let Some(line) = similar(wanted.len()) {
        format!("the text at line {line} differs only in white space")
    } else if let Some(line) = similar(1) {
        format!("line {line} starts like it, but the lines after it differ; read the file again")
    } else {
        "read the file again, and copy the text exactly".to_owned()
    };
    ToolFailure::new(format!("`{path}` does not contain `oldText`; {hint}"))
}
