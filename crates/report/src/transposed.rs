//! Tables with a line a variant and a column a figure, for more variants than columns fit.

use crate::number;
use crate::standing;
use crate::terminal::{arranged, empty, fits, letter, none, plain};
use crate::verdict::measured;
use comfy_table::{Attribute, Cell, CellAlignment};
use kontig_results::{ExperimentResult, Row};

/// The widest line of a column's head, unless a single word is longer.
const HEAD: usize = 12;

/// As many tables as the width makes necessary, each of as many figures as fit.
pub(crate) fn render(e: &ExperimentResult, rows: &[&Row], width: usize, colour: bool) -> String {
    let mut tables = Vec::new();
    let mut left = rows;
    while !left.is_empty() {
        let fits = |n: &usize| fits(&table(e, &left[..*n], colour), Some(width));
        // One column is shown whatever its width.
        let columns = (1..=left.len()).rev().find(fits).unwrap_or(1);
        tables.push(table(e, &left[..columns], colour));
        left = &left[columns..];
    }
    tables.join("\n")
}

fn table(e: &ExperimentResult, rows: &[&Row], colour: bool) -> String {
    let mut table = empty(true, colour);
    let swept = e.swept.as_ref().map(|swept| swept.sysctl.rsplit('.').next().unwrap_or(&swept.sysctl));
    let mut head = vec![swept.map_or_else(String::new, |name| narrow(&plain(&name.replace('_', " "))))];
    head.extend(rows.iter().map(|row| narrow(&format!("{}, {}", plain(&standing::name(row)), plain(&row.unit)))));
    table.set_header(head.into_iter().map(|text| Cell::new(text).add_attribute(Attribute::Bold)));
    for variant in 0..e.variants.len() {
        let value = e.swept.as_ref().and_then(|swept| swept.values.get(variant));
        let name = match value {
            Some(value) => format!("{} {}", letter(variant), number::exact(*value)),
            None => letter(variant),
        };
        let figure = |row: &&Row| measured(row, variant).map_or_else(none, standing::figure);
        table.add_row(std::iter::once(name).chain(rows.iter().map(figure)));
    }
    for column in 1..=rows.len() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    arranged(table, None)
}

/// Text with a break wherever a line would be wider than [`HEAD`].
fn narrow(text: &str) -> String {
    kontig_text::wrap("", text, 0, HEAD).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_rows::{result, row};
    use kontig_results::{Better, Swept};

    #[test]
    fn a_line_a_variant_in_tables_that_fit() {
        let rows: Vec<Row> =
            ["page faults in all", "p99", "p95"].map(|name| row(name, Better::Lower, &[1.0, 2.0, 3.0, 4000.0])).into();
        let swept = Swept { sysctl: "vm.some_name".into(), values: vec![0.0, 10.0, 20.0, 100.0] };
        let e = ExperimentResult { swept: Some(swept), ..result(&["a", "b", "c", "d"], rows.clone()) };
        let text = render(&e, &rows.iter().collect::<Vec<_>>(), 36, false);
        assert!(text.lines().all(|line| line.chars().count() <= 36), "{text}");
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let lines: Vec<Vec<String>> = text.lines().filter(|line| line.contains("D 100")).map(words).collect();
        assert_eq!(lines, [vec!["D", "100", "4,000", "4,000"], vec!["D", "100", "4,000"]]);
        let e = ExperimentResult { swept: None, ..e };
        assert!(render(&e, &[&rows[1]], 36, false).lines().any(|line| words(line) == ["D", "4,000"]));
    }
}
