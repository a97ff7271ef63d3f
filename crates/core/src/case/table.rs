//! Cases as CSV (RFC 4180).

use super::CaseReader;
use super::lines::read_object;
use super::option::{CHECK_KINDS, CheckKind};
use crate::text::nearest;
use serde_json::{Map, Value as Json};
use std::borrow::Cow;

/// The meaning of a column.
#[derive(Clone, Copy)]
enum Column {
    Id,
    Input,
    Tags,
    Check(&'static CheckKind),
    /// A column that is not supported, and has been reported.
    Unknown,
}

pub(super) fn read(reader: &mut CaseReader<'_>, bytes: &[u8]) {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(error) => {
            let line = bytes.iter().take(error.valid_up_to()).filter(|byte| **byte == b'\n').count() + 1;
            reader.problem(line, "this line is not UTF-8", Some("save the file as UTF-8".to_owned()));
            String::from_utf8_lossy(bytes)
        }
    };
    let mut rows = Rows::new(&text);
    let Some(header) = rows.next() else { return };
    if let [only] = header.cells.as_slice()
        && let Some(separator) = [';', '\t'].into_iter().find(|separator| only.contains(*separator))
    {
        let name = if separator == '\t' { "tabs".to_owned() } else { format!("`{separator}`") };
        let message = format!("columns are separated by commas, not by {name}");
        return reader.problem(header.line, message, Some("save the file as CSV with commas".to_owned()));
    }
    let columns: Vec<_> = header.cells.iter().map(|name| column(reader, header.line, name.trim())).collect();
    let is_misspelt =
        header.cells.iter().any(|name| name.trim() != "input" && nearest(name.trim(), ["input"]).is_some());
    if !columns.iter().any(|column| matches!(column, Column::Input)) {
        if is_misspelt {
            // The column is already reported.
            return;
        }
        let hint = "the first row names the columns: input, id, tags, and checks such as contains";
        return reader.problem(header.line, "the table has no column `input`", Some(hint.to_owned()));
    }
    for row in rows {
        if row.is_unclosed {
            reader.problem(
                row.line,
                "this row has an unclosed quote",
                Some("write `\"\"` for a literal quote".to_owned()),
            );
        } else if row.cells.len() != columns.len() {
            let message =
                format!("this row has {} values, but the header has {} columns", row.cells.len(), columns.len());
            let hint = "quote values that contain a comma, a quote or a line break";
            reader.problem(row.line, message, Some(hint.to_owned()));
        } else {
            read_object(reader, row.line, object(&columns, row.cells));
        }
    }
}

fn column(reader: &mut CaseReader<'_>, line: usize, name: &str) -> Column {
    match name {
        "id" => Column::Id,
        "input" => Column::Input,
        "tags" => Column::Tags,
        name => match CHECK_KINDS.iter().find(|kind| kind.key == name) {
            Some(kind) => Column::Check(kind),
            None => {
                let known: Vec<_> =
                    ["id", "input", "tags"].into_iter().chain(CHECK_KINDS.iter().map(|kind| kind.key)).collect();
                let hint = match nearest(name, known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("available columns: {}", known.join(", ")),
                };
                reader.problem(line, format!("unknown column `{name}`"), Some(hint));
                Column::Unknown
            }
        },
    }
}

/// Converts a row to the equivalent JSON object.
fn object(columns: &[Column], cells: Vec<String>) -> Map<String, Json> {
    let mut object = Map::new();
    let mut input = Vec::new();
    let mut checks = Vec::new();
    for (column, cell) in columns.iter().zip(cells) {
        if cell.trim().is_empty() {
            continue;
        }
        match column {
            Column::Id => {
                object.insert("id".to_owned(), cell.trim().into());
            }
            Column::Tags => {
                object.insert("tags".to_owned(), split_list(&cell));
            }
            Column::Input => input.push(Json::String(cell)),
            Column::Check(kind) => {
                checks.push(Json::Object(Map::from_iter([(kind.key.to_owned(), check_value(kind, cell))])));
            }
            Column::Unknown => {}
        }
    }
    if !input.is_empty() {
        object.insert("input".to_owned(), Json::Array(input));
    }
    object.insert("checks".to_owned(), Json::Array(checks));
    object
}

/// Reads the value of a check: texts verbatim, lists separated by `;`, anything else as JSON.
fn check_value(kind: &CheckKind, cell: String) -> Json {
    let is_json = cell.trim_start().starts_with(['{', '[']);
    match kind.key {
        "contains" | "equals" | "matches" => Json::String(cell),
        "order" if !is_json => split_list(&cell),
        "turns" | "cost" | "latency" => serde_json::from_str(&cell).unwrap_or_else(|_| cell.trim().into()),
        _ if is_json => serde_json::from_str(&cell).unwrap_or(Json::String(cell)),
        _ => cell.trim().into(),
    }
}

fn split_list(cell: &str) -> Json {
    cell.split(';').map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// A row of a table.
struct Row {
    /// The line the row starts on.
    line: usize,
    cells: Vec<String>,
    is_unclosed: bool,
}

/// An iterator over the non-empty rows of a table.
struct Rows<'t> {
    characters: std::iter::Peekable<std::str::Chars<'t>>,
    line: usize,
}

impl<'t> Rows<'t> {
    fn new(text: &'t str) -> Self {
        Self { characters: text.chars().peekable(), line: 1 }
    }

    /// Reads the cells of a row up to the end of its line.
    fn read_row(&mut self) -> Row {
        let mut row = Row { line: self.line, cells: Vec::new(), is_unclosed: false };
        loop {
            let mut cell = String::new();
            if self.characters.next_if_eq(&'"').is_some() {
                row.is_unclosed = !self.read_quoted(&mut cell);
            }
            // Text after a closing quote belongs to the cell as well.
            while let Some(c) = self.characters.next_if(|c| !matches!(c, ',' | '\n')) {
                cell.push(c);
            }
            if self.characters.peek() != Some(&',') && cell.ends_with('\r') {
                cell.pop();
            }
            row.cells.push(cell);
            match self.characters.next() {
                Some(',') => {}
                Some(_) => {
                    self.line += 1;
                    return row;
                }
                None => return row,
            }
        }
    }

    /// Reads up to the closing quote. Returns whether there is one.
    fn read_quoted(&mut self, cell: &mut String) -> bool {
        while let Some(c) = self.characters.next() {
            match c {
                '"' if self.characters.next_if_eq(&'"').is_none() => return true,
                '\n' => {
                    self.line += 1;
                    cell.push(c);
                }
                c => cell.push(c),
            }
        }
        false
    }
}

impl Iterator for Rows<'_> {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        while self.characters.peek().is_some() {
            let row = self.read_row();
            let is_empty = row.cells.iter().all(|cell| cell.trim().is_empty());
            if !is_empty || row.is_unclosed {
                return Some(row);
            }
        }
        None
    }
}
