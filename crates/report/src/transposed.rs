//! Tables with a line a variant and a column a figure, for more variants than columns fit.

use crate::number;
use crate::standing;
use crate::terminal::{arranged, empty, fits, letter, none, plain, stacked};
use crate::verdict::measured;
use comfy_table::{Attribute, Cell, CellAlignment};
use kontig_results::{ExperimentResult, Row, Sweep};

/// The widest line of a column's head, unless a single word is longer.
const HEAD: usize = 12;

/// The longest name of a variant that has a column; the lines above the table have all names.
const NAME: usize = 30;

/// As many tables as the width makes necessary, each of as many figures as fit.
pub(crate) fn render(e: &ExperimentResult, rows: &[&Row], width: usize, colour: bool) -> String {
    let beside = table(e, rows, Ranges::Beside, colour);
    if fits(&beside, Some(width)) {
        return beside;
    }
    let table = |rows: &[&Row]| table(e, rows, Ranges::Below, colour);
    let mut tables = Vec::new();
    let mut left = rows;
    while !left.is_empty() {
        let fits = |n: &usize| fits(&table(&left[..*n]), Some(width));
        // One column is shown whatever its width.
        let columns = (1..=left.len()).rev().find(fits).unwrap_or(1);
        tables.push(table(&left[..columns]));
        left = &left[columns..];
    }
    tables.join("\n")
}

/// Where a figure's range stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ranges {
    Beside,
    Below,
}

fn table(e: &ExperimentResult, rows: &[&Row], ranges: Ranges, colour: bool) -> String {
    let mut table = empty(true, colour);
    let names = names(e);
    let swept = narrow(&plain(&swept(e)));
    let mut head = vec![String::new()];
    head.extend(names.is_some().then(String::new));
    head.extend((!swept.is_empty()).then_some(swept));
    let first_figure = head.len();
    head.extend(rows.iter().map(|row| narrow(&format!("{}, {}", plain(&standing::name(row)), plain(&row.unit)))));
    table.set_header(head.into_iter().map(|text| Cell::new(text).add_attribute(Attribute::Bold)));
    for variant in 0..e.variants.len() {
        let mut cells = vec![letter(variant)];
        cells.extend(names.as_ref().map(|names| names[variant].clone()));
        if first_figure > cells.len() {
            cells.push(value(e, variant).map_or_else(String::new, number::exact));
        }
        let figure = |row: &&Row| {
            let Some(m) = measured(row, variant) else { return none() };
            match (standing::range(row, m), ranges) {
                (None, _) => standing::figure(m),
                (Some(range), Ranges::Beside) => format!("{} ({range})", standing::figure(m)),
                (Some(range), Ranges::Below) => stacked(&standing::figure(m), &range),
            }
        };
        table.add_row(cells.into_iter().chain(rows.iter().map(figure)));
    }
    for column in first_figure..first_figure + rows.len() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    arranged(table, None)
}

/// The kernel and machine of each variant, beside the value that was swept; where nothing was
/// swept, the parts of its name that others lack. None if there is nothing, or too much.
fn names(e: &ExperimentResult) -> Option<Vec<String>> {
    let of_sweep = |variant: usize| e.sweeps.iter().find(|sweep| sweep.variants.contains(&variant));
    let parts = |name: &str| name.replace(" on ", "+on ").split('+').map(str::to_owned).collect::<Vec<_>>();
    let all: Vec<Vec<String>> = e.variants.iter().map(|name| parts(&plain(name))).collect();
    let own = |variant: usize| {
        let differs = |part: &&String| !all.iter().all(|parts| parts.contains(part));
        let own: Vec<&str> = all[variant].iter().filter(differs).map(String::as_str).collect();
        own.join("+").replace("+on ", " on ")
    };
    let is_swept = !swept(e).is_empty();
    let name = |variant: usize| match of_sweep(variant).filter(|_| is_swept) {
        Some(sweep) => plain(&sweep.of),
        None => own(variant),
    };
    let names: Vec<String> = (0..e.variants.len()).map(name).collect();
    let fit = names.iter().all(|name| name.chars().count() <= NAME);
    (fit && names.iter().any(|name| !name.is_empty())).then_some(names)
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
    use crate::test_rows::{once, result, row, sweep};
    use kontig_results::{Better, Measured};

    #[test]
    fn a_line_a_variant_in_tables_that_fit() {
        let rows: Vec<Row> =
            ["page faults in all", "p99", "p95"].map(|name| row(name, Better::Lower, &[1.0, 2.0, 3.0, 4000.0])).into();
        let sweeps = vec![sweep("vm.some_name", &[0.0, 10.0, 20.0, 100.0])];
        let e = ExperimentResult { sweeps, ..result(&["a", "b", "c", "d"], rows.clone()) };
        let text = render(&e, &rows.iter().collect::<Vec<_>>(), 36, false);
        assert!(text.lines().all(|line| line.chars().count() <= 36), "{text}");
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let of_d = |line: &Vec<String>| line.first().is_some_and(|word| word == "D");
        let lines: Vec<Vec<String>> = text.lines().map(words).filter(of_d).collect();
        assert_eq!(lines, [vec!["D", "100", "4,000"], vec!["D", "100", "4,000", "4,000"]]);
        let e = ExperimentResult { sweeps: vec![], ..e };
        assert!(render(&e, &[&rows[1]], 36, false).lines().any(|line| words(line) == ["D", "d", "4,000"]));
    }

    #[test]
    fn each_line_says_which_kernel_it_is_of() {
        let rows = [row("p99", Better::Lower, &[1.0, 2.0, 3.0, 4.0])];
        let names = ["5.9+x=0", "5.9+x=1", "6.1+x=0", "6.1+x=1"];
        let of = |name: &str, variants| Sweep { of: name.into(), variants, ..sweep("vm.x", &[0.0, 1.0]) };
        let grid = ExperimentResult {
            sweeps: vec![of("5.9", vec![0, 1]), of("6.1", vec![2, 3])],
            ..result(&names, rows.to_vec())
        };
        let lines = |e: &ExperimentResult| -> Vec<String> {
            let text = render(e, &[&rows[0]], 36, false);
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
        };
        assert!(lines(&grid).contains(&"C 6.1 0 3".into()), "{:?}", lines(&grid));
        let two = ["6.1+x=0+y=0 on m", "6.1+x=0+y=1 on m", "6.1+x=1+y=0 on m", "6.1+x=1+y=1 on n"];
        let said = lines(&result(&two, rows.to_vec()));
        assert!(said.contains(&"C x=1+y=0 on m 3".into()) && said.contains(&"D x=1+y=1 on n 4".into()), "{said:?}");
    }

    #[test]
    fn ranges_stay_beside_their_figures_or_below_them() {
        let mut wide = row("p99", Better::Lower, &[1.0, 2.0, 3.0, 4.0]);
        wide.measured[1] = Some(Measured { low: 1.5, high: 2.5, repetitions: 5, ..once(2.0) });
        let e = result(&["a", "b", "c", "d"], vec![wide.clone(), row("p95", Better::Lower, &[1.0; 4])]);
        let text = |width| render(&e, &[&wide, &e.rows[1]], width, false);
        assert!(text(60).contains("2 (1.5–2.5)"), "{}", text(60));
        let narrow = text(24);
        assert!(!narrow.contains('(') && narrow.contains("1.5–2.5"), "{narrow}");
    }
}
