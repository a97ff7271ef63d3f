//! Cases as a table of values with commas between (RFC 4180).

use super::Reading;
use super::lines::object_case;
use super::option::{SORTS, Sort};
use crate::text::nearest;
use serde_json::{Map, Value as Json};
use std::borrow::Cow;

/// What a column is for.
#[derive(Clone, Copy)]
enum Column {
    Id,
    Input,
    Tags,
    Check(&'static Sort),
    /// Nothing that is known; told once.
    Unknown,
}

pub(super) fn read(reading: &mut Reading<'_>, bytes: &[u8]) {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(error) => {
            let line = bytes.iter().take(error.valid_up_to()).filter(|byte| **byte == b'\n').count() + 1;
            reading.problem(line, "this line is not UTF-8", Some("save the table as CSV with UTF-8".to_owned()));
            String::from_utf8_lossy(bytes)
        }
    };
    let mut rows = Rows::new(&text);
    let Some(header) = rows.next() else { return };
    let columns: Vec<_> = header.cells.iter().map(|name| column(reading, header.line, name.trim())).collect();
    if !columns.iter().any(|column| matches!(column, Column::Input)) {
        let hint = "the first row names the columns: input, id, tags, and checks such as contains";
        return reading.problem(header.line, "the table has no column `input`", Some(hint.to_owned()));
    }
    for row in rows {
        if row.is_unclosed {
            reading.problem(
                row.line,
                "this row has a quote that is not closed",
                Some("write `\"\"` for a quote".to_owned()),
            );
        } else if row.cells.len() != columns.len() {
            let message = format!("this row has {} values, and the table {} columns", row.cells.len(), columns.len());
            let hint = "put quotes around a text with a comma, a quote or a line break";
            reading.problem(row.line, message, Some(hint.to_owned()));
        } else {
            object_case(reading, row.line, object(&columns, row.cells));
        }
    }
}

fn column(reading: &mut Reading<'_>, line: usize, name: &str) -> Column {
    match name {
        "id" => Column::Id,
        "input" => Column::Input,
        "tags" => Column::Tags,
        name => match SORTS.iter().find(|sort| sort.key == name) {
            Some(sort) => Column::Check(sort),
            None => {
                let known: Vec<_> =
                    ["id", "input", "tags"].into_iter().chain(SORTS.iter().map(|sort| sort.key)).collect();
                let hint = match nearest(name, known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("there are {}", known.join(", ")),
                };
                reading.problem(line, format!("nothing reads the column `{name}`"), Some(hint));
                Column::Unknown
            }
        },
    }
}

/// Makes a row what a line of JSON would be.
fn object(columns: &[Column], cells: Vec<String>) -> Map<String, Json> {
    let (mut object, mut input, mut checks) = (Map::new(), Vec::new(), Vec::new());
    for (column, cell) in columns.iter().zip(cells) {
        if cell.trim().is_empty() {
            continue;
        }
        match column {
            Column::Id => {
                object.insert("id".to_owned(), cell.trim().into());
            }
            Column::Tags => {
                object.insert("tags".to_owned(), listed(&cell));
            }
            Column::Input => input.push(Json::String(cell)),
            Column::Check(sort) => {
                checks.push(Json::Object(Map::from_iter([(sort.key.to_owned(), value(sort, cell))])));
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

/// Reads a value for a check: texts as they are, lists with `;` between, anything else as JSON.
fn value(sort: &Sort, cell: String) -> Json {
    let is_json = cell.trim_start().starts_with(['{', '[']);
    match sort.key {
        "contains" | "equals" | "matches" => Json::String(cell),
        "order" if !is_json => listed(&cell),
        "turns" | "cost" | "latency" => serde_json::from_str(&cell).unwrap_or_else(|_| cell.trim().into()),
        _ if is_json => serde_json::from_str(&cell).unwrap_or(Json::String(cell)),
        _ => cell.trim().into(),
    }
}

fn listed(cell: &str) -> Json {
    cell.split(';').map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// A row of a table.
struct Row {
    /// The line that it begins in.
    line: usize,
    cells: Vec<String>,
    is_unclosed: bool,
}

/// The rows of a table, without those that are empty.
struct Rows<'t> {
    characters: std::iter::Peekable<std::str::Chars<'t>>,
    line: usize,
}

impl<'t> Rows<'t> {
    fn new(text: &'t str) -> Self {
        Self { characters: text.chars().peekable(), line: 1 }
    }

    /// Reads the cells of a row, up to the end of its line.
    fn row(&mut self) -> Row {
        let mut row = Row { line: self.line, cells: Vec::new(), is_unclosed: false };
        loop {
            let mut cell = String::new();
            if self.characters.next_if_eq(&'"').is_some() {
                row.is_unclosed = !self.quoted(&mut cell);
            }
            // What stands after a closing quote belongs to the cell too.
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

    /// Reads up to the closing quote, and tells whether there is one.
    fn quoted(&mut self, cell: &mut String) -> bool {
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
            let row = self.row();
            let is_empty = row.cells.iter().all(|cell| cell.trim().is_empty());
            if !is_empty || row.is_unclosed {
                return Some(row);
            }
        }
        None
    }
}
