//! Tables with a line a variant and a column a figure, for more variants than columns fit.

use crate::number;
use crate::standing;
use crate::terminal::{arranged, empty, fits, letter, none, plain};
use crate::verdict::measured;
use comfy_table::{Attribute, Cell, CellAlignment};
use kontig_results::{ExperimentResult, Row, Sweep};

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
    let mut head = vec![narrow(&plain(&swept(e)))];
    head.extend(rows.iter().map(|row| narrow(&format!("{}, {}", plain(&standing::name(row)), plain(&row.unit)))));
    table.set_header(head.into_iter().map(|text| Cell::new(text).add_attribute(Attribute::Bold)));
    for variant in 0..e.variants.len() {
        let name = match value(e, variant) {
            Some(value) => format!("{} {}", letter(variant), number::exact(value)),
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

/// The setting that every sweep varies, as a column's head; empty if that is not one.
fn swept(e: &ExperimentResult) -> String {
    match e.sweeps.split_first() {
        Some((first, rest)) if rest.iter().all(|sweep| sweep.setting == first.setting) => {
            let name = first.setting.rsplit('.').next().unwrap_or_default().replace('_', " ");
            if first.unit.is_empty() { name } else { format!("{name}, {}", first.unit) }
        }
        _ => String::new(),
    }
}

/// The value of a variant that is part of a sweep.
fn value(e: &ExperimentResult, variant: usize) -> Option<f64> {
    let of = |sweep: &Sweep| sweep.values.get(sweep.variants.iter().position(|of| *of == variant)?).copied();
    e.sweeps.iter().find_map(of)
}

/// Text with a break wherever a line would be wider than [`HEAD`].
fn narrow(text: &str) -> String {
    kontig_text::wrap("", text, 0, HEAD).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_rows::sweep;
    use crate::test_rows::{result, row};
    use kontig_results::Better;

    #[test]
    fn a_line_a_variant_in_tables_that_fit() {
        let rows: Vec<Row> =
            ["page faults in all", "p99", "p95"].map(|name| row(name, Better::Lower, &[1.0, 2.0, 3.0, 4000.0])).into();
        let sweeps = vec![sweep("vm.some_name", &[0.0, 10.0, 20.0, 100.0])];
        let e = ExperimentResult { sweeps, ..result(&["a", "b", "c", "d"], rows.clone()) };
        let text = render(&e, &rows.iter().collect::<Vec<_>>(), 36, false);
        assert!(text.lines().all(|line| line.chars().count() <= 36), "{text}");
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let lines: Vec<Vec<String>> = text.lines().filter(|line| line.contains("D 100")).map(words).collect();
        assert_eq!(lines, [vec!["D", "100", "4,000", "4,000"], vec!["D", "100", "4,000"]]);
        let e = ExperimentResult { sweeps: vec![], ..e };
        assert!(render(&e, &[&rows[1]], 36, false).lines().any(|line| words(line) == ["D", "4,000"]));
    }
}
