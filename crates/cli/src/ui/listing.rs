//! Lists in columns with headers.

use super::style::DIM;
use super::text::{truncate, width};

/// The space between columns.
const GAP: usize = 2;
/// The narrowest last column.
const MIN_LAST: usize = 12;

/// A column of a list.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) align: Align,
    /// The maximum width; longer texts are truncated. The last column has the rest of the line.
    pub(crate) max: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Returns rows below their headers. The last column is truncated so that lines fit into this many columns.
pub(crate) fn listing<const N: usize>(columns: &[Column; N], rows: &[[String; N]], line_width: usize) -> String {
    let natural = |index: usize, column: &Column| {
        let widest = rows.iter().filter_map(|row| row.get(index)).map(|cell| width(cell)).max().unwrap_or(0);
        widest.min(column.max).max(width(column.name))
    };
    let widths: Vec<usize> = columns.iter().enumerate().map(|(index, column)| natural(index, column)).collect();
    let before: usize = widths.iter().rev().skip(1).map(|width| width + GAP).sum();
    let last = line_width.saturating_sub(before).max(MIN_LAST);
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut line = String::new();
        for (index, ((cell, column), &own)) in cells.zip(columns).zip(&widths).enumerate() {
            let is_last = index + 1 == N;
            let cell = truncate(cell, if is_last { last } else { column.max.max(width(column.name)) });
            let padding = " ".repeat(own.saturating_sub(width(&cell)));
            match column.align {
                _ if is_last => line.push_str(&cell),
                Align::Left => line.extend([&cell, padding.as_str(), "  "]),
                Align::Right => line.extend([padding.as_str(), &cell, "  "]),
            }
        }
        line.trim_end().to_owned()
    };
    let head = line(&mut columns.iter().map(|column| column.name));
    let mut text = format!("{DIM}{head}{DIM:#}\n");
    for row in rows {
        text.push_str(&line(&mut row.iter().map(String::as_str)));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_and_columns_are_aligned() {
        let columns = [
            Column { name: "ID", align: Align::Left, max: 10 },
            Column { name: "RUNS", align: Align::Right, max: 6 },
            Column { name: "TITLE", align: Align::Left, max: usize::MAX },
        ];
        let row = |id: &str, runs: &str, title: &str| [id.to_owned(), runs.to_owned(), title.to_owned()];
        let rows = [row("a", "7", "short"), row("a-very-long-id", "1234", "日本語 and a title that is long")];
        let text = listing(&columns, &rows, 36);
        let plain = text.replace(&format!("{DIM}"), "").replace(&format!("{DIM:#}"), "");
        assert_eq!(plain, "ID          RUNS  TITLE\na              7  short\na-very-lo…  1234  日本語 and a titl…\n");
        assert!(plain.lines().all(|line| width(line) <= 36));
        // Elsewhere than on a terminal, nothing is cut off.
        assert!(listing(&columns, &rows, usize::MAX).contains("a title that is long"));
    }
}
