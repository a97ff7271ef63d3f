//! Tables: cells are aligned, and wrapped where the table is wider than the terminal.

use super::inline::write_inline;
use super::{DIM, HEADING, PLAIN, Style};
use crate::ui::{fitting, width};

/// The narrowest column; a table that needs narrower ones is shown as it was written.
const MIN_COLUMN: usize = 4;
const SEPARATOR: &str = " │ ";
const SEPARATOR_WIDTH: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Alignment {
    Left,
    Right,
    Center,
}

/// A character with its style.
type Styled = (char, Style);

/// Renders the rows of a table as lines, each with its width. Returns nothing if they are not a table, or if there is no
/// room for its columns.
pub(super) fn render(rows: &[String], columns: usize) -> Option<Vec<String>> {
    let [header, delimiter, body @ ..] = rows else { return None };
    let alignments = alignments(delimiter)?;
    let header = cells(header);
    // Other rows may be shorter or longer.
    if header.len() != alignments.len() {
        return None;
    }
    let count = body.iter().map(|row| cells(row).len()).chain([header.len()]).max()?;
    let styled = |texts: &[String], style: Style| -> Vec<Vec<Styled>> {
        let cell = |at: usize| {
            let mut out = Vec::new();
            write_inline(texts.get(at).map_or("", String::as_str), style, &mut |c, style| out.push((c, style)));
            out
        };
        (0..count).map(cell).collect()
    };
    let header = styled(&header, HEADING);
    let body: Vec<_> = body.iter().map(|row| styled(&cells(row), PLAIN)).collect();
    let natural = |at: usize| {
        let rows = std::iter::once(&header).chain(&body);
        rows.filter_map(|row| row.get(at)).map(|cell| width(&plain(cell))).max().unwrap_or(0).max(1)
    };
    let widths = shrink((0..count).map(natural).collect(), columns)?;
    let alignment = |at: usize| alignments.get(at).copied().unwrap_or(Alignment::Left);
    let mut lines = row_lines(&header, &widths, &alignment);
    let rule: Vec<_> = widths.iter().map(|width| "─".repeat(*width)).collect();
    lines.push(format!("{DIM}{}{DIM:#}", rule.join("─┼─")));
    lines.extend(body.iter().flat_map(|row| row_lines(row, &widths, &alignment)));
    Some(lines)
}

/// Reduces the widest columns until the table fits.
fn shrink(mut widths: Vec<usize>, columns: usize) -> Option<Vec<usize>> {
    let available = columns.checked_sub(SEPARATOR_WIDTH * widths.len().saturating_sub(1))?;
    while widths.iter().sum::<usize>() > available {
        let widest = widths.iter_mut().max().filter(|widest| **widest > MIN_COLUMN)?;
        *widest -= 1;
    }
    Some(widths)
}

/// Returns the cells of a row.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    let mut cells = vec![String::new()];
    let mut is_escaped = false;
    for c in row.chars() {
        let Some(cell) = cells.last_mut() else { break };
        match c {
            '|' if is_escaped => {
                cell.pop();
                cell.push('|');
            }
            '|' => cells.push(String::new()),
            c => cell.push(c),
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    // The bar at the end of a row starts no cell.
    if cells.len() > 1 && cells.last().is_some_and(|last| last.trim().is_empty()) {
        cells.pop();
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

/// Reads the line below the header, such as `|---|:-:|`.
fn alignments(row: &str) -> Option<Vec<Alignment>> {
    let alignment = |cell: &String| {
        let dashes = cell.trim_matches(':');
        let is_valid = !dashes.is_empty() && dashes.chars().all(|c| c == '-');
        is_valid.then_some(match (cell.starts_with(':'), cell.ends_with(':')) {
            (true, true) => Alignment::Center,
            (false, true) => Alignment::Right,
            _ => Alignment::Left,
        })
    };
    cells(row).iter().map(alignment).collect()
}

/// Returns the lines of a row: as many as its highest cell needs.
fn row_lines(row: &[Vec<Styled>], widths: &[usize], alignment: &impl Fn(usize) -> Alignment) -> Vec<String> {
    let wrapped: Vec<_> = row.iter().zip(widths).map(|(cell, width)| wrap(cell, *width)).collect();
    let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
    let line = |number: usize| {
        let cells = wrapped.iter().zip(widths).enumerate().map(|(at, (lines, columns))| {
            let cell = lines.get(number).map(Vec::as_slice).unwrap_or_default();
            let space = columns.saturating_sub(width(&plain(cell)));
            let before = match alignment(at) {
                Alignment::Left => 0,
                Alignment::Right => space,
                Alignment::Center => space / 2,
            };
            format!("{:before$}{}{:after$}", "", paint(cell), "", after = space - before)
        });
        let cells: Vec<_> = cells.collect();
        cells.join(&format!("{DIM}{SEPARATOR}{DIM:#}")).trim_end().to_owned()
    };
    (0..height).map(line).collect()
}

/// Breaks a cell into lines between words, and within words that are too long.
fn wrap(cell: &[Styled], columns: usize) -> Vec<Vec<Styled>> {
    let mut lines: Vec<Vec<Styled>> = vec![Vec::new()];
    for word in cell.split(|(c, _)| c.is_whitespace()).filter(|word| !word.is_empty()) {
        let mut word = word;
        while !word.is_empty() {
            let Some(line) = lines.last_mut() else { break };
            let space = usize::from(!line.is_empty());
            if width(&plain(line)) + space + width(&plain(word)) <= columns {
                // The space has the style of the text around it, if that is the same.
                let style = line.last().zip(word.first()).filter(|(a, b)| a.1 == b.1).map_or(PLAIN, |(a, _)| a.1);
                line.extend(std::iter::repeat_n((' ', style), space));
                line.extend_from_slice(word);
                break;
            }
            if line.is_empty() {
                let text = plain(word);
                let count = text.get(..fitting(&text, columns)).map_or(1, |head| head.chars().count());
                let (head, tail) = word.split_at(count.min(word.len()));
                line.extend_from_slice(head);
                word = tail;
            }
            if !word.is_empty() {
                lines.push(Vec::new());
            }
        }
    }
    lines
}

fn plain(cell: &[Styled]) -> String {
    cell.iter().map(|(c, _)| *c).collect()
}

fn paint(cell: &[Styled]) -> String {
    let runs = cell.chunk_by(|a, b| a.1 == b.1);
    runs.map(|run| run.first().map_or_else(String::new, |(_, style)| format!("{style}{}{style:#}", plain(run))))
        .collect()
}
