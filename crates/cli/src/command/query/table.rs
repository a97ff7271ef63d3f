//! Answers as tables.

use crate::ui;
use crate::ui::style::DIM;
use patter::query::{Answer, AnswerCell};
use std::fmt::Write;

/// Returns a table with a column for each variable, where the first of them is declared, and the path, if it is known.
pub(super) fn table(answer: &Answer) -> String {
    if answer.rows.is_empty() {
        return String::new();
    }
    let mut head: Vec<String> = answer.columns.iter().map(|name| name.to_uppercase()).collect();
    let has_source = answer.rows.iter().any(|row| row.cells.iter().any(|cell| cell.source().is_some()));
    let has_path = answer.rows.iter().any(|row| row.path.is_some());
    head.extend(has_source.then(|| "PLACE".to_owned()));
    head.extend(has_path.then(|| "PATH".to_owned()));
    let mut rows = Vec::new();
    for row in &answer.rows {
        let mut cells: Vec<_> = row.cells.iter().map(|cell| ui::short(&cell.text())).collect();
        let source = row.cells.iter().find_map(AnswerCell::source).unwrap_or_default();
        cells.extend(has_source.then(|| source.to_owned()));
        cells.extend(row.path.as_ref().map(|path| path.text.clone()));
        rows.push(cells);
    }
    let width =
        |column: usize| rows.iter().chain([&head]).filter_map(|row| row.get(column)).map(|it| ui::width(it)).max();
    let widths: Vec<_> = (0..head.len()).map(|column| width(column).unwrap_or(0)).collect();
    let line = |cells: &[String]| {
        let padded: Vec<_> = cells.iter().zip(&widths).map(|(cell, width)| ui::pad(cell, *width)).collect();
        padded.join("  ").trim_end().to_owned()
    };
    let mut out = format!("{DIM}{}{DIM:#}\n", line(&head));
    for row in &rows {
        let _ = writeln!(out, "{}", line(row));
    }
    out
}
