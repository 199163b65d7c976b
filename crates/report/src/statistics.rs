//! Statistics over repetitions and rounds, for a terminal: for each
//! figure the lines MMTests prints.
//!
//! Percentages are relative to the baseline, and positive where the variant is better; stars mark a
//! mean that differs by more than chance.

use crate::number;
use crate::standing;
use crate::terminal::{arranged, empty, letter, none, plain, wrapped};
use comfy_table::{Attribute, Cell, CellAlignment};
use kontig_results::statistics::{BEST, difference};
use kontig_results::{Better, ExperimentResult, Row, Statistics};

/// One line of a figure: name, value, direction, and whether it is the mean.
struct Line {
    name: String,
    value: fn(&Statistics, usize) -> Option<f64>,
    index: usize,
    better: Better,
    is_mean: bool,
}

/// The lines of a figure with this direction.
fn lines(better: Better) -> Vec<Line> {
    let line = |name: &str, value, better| Line { name: name.into(), value, index: 0, better, is_mean: false };
    let mean = if better == Better::Higher { "Hmean" } else { "Amean" };
    let mut lines = vec![
        line("Min", |s, _| Some(s.min), better),
        Line { is_mean: true, ..line(mean, |s, _| s.mean, better) },
        line("Stddev", |s, _| s.stddev, Better::Lower),
        line("CoeffVar", |s, _| s.coeff_var, Better::Lower),
        line("Max", |s, _| Some(s.max), better),
    ];
    lines.extend(BEST.iter().enumerate().map(|(index, percent)| {
        let best = |s: &Statistics, i: usize| s.best_means.get(i).copied().flatten();
        Line { index, ..line(&format!("B{mean}-{percent}"), best, better) }
    }));
    lines
}

/// Statistics of an experiment's figures; none if no figure has several values.
pub fn render(e: &ExperimentResult, width: Option<usize>, colour: bool) -> Option<String> {
    let rows: Vec<&Row> = e.rows.iter().filter(|row| row.statistics.iter().any(Option::is_some)).collect();
    let runs = rows.iter().flat_map(|row| &row.statistics).flatten().map(|s| s.n).max()?;
    let mut table = empty(true, colour);
    let mut header = vec!["figure".to_owned(), "statistic".into()];
    header.extend((0..e.variants.len()).map(letter));
    table.set_header(header.iter().map(|text| Cell::new(text).add_attribute(Attribute::Bold)));
    for row in rows {
        for (i, line) in lines(row.better).iter().enumerate() {
            let name =
                if i == 0 { format!("{}, {}", plain(&standing::name(row)), plain(&row.unit)) } else { String::new() };
            let mut cells = vec![Cell::new(name), Cell::new(&line.name)];
            cells.extend(
                (0..e.variants.len()).map(|v| Cell::new(cell(row, line, v)).set_alignment(CellAlignment::Right)),
            );
            table.add_row(cells);
        }
    }
    let words = format!(
        "\nstatistics of {}, of up to {runs} values a variant; percentages are against A and positive where better, \
         *marked* where the mean differs by more than chance (t-test, 10 %)",
        plain(&standing::title(e))
    );
    Some(wrapped(&words, width) + &arranged(table, width) + "\n")
}

/// A variant's value with its difference from the baseline's.
fn cell(row: &Row, line: &Line, variant: usize) -> String {
    let of = |variant: usize| row.statistics.get(variant)?.as_ref();
    let value = |variant: usize| (line.value)(of(variant)?, line.index);
    let Some(own) = value(variant) else { return none() };
    let figure = number::rounded(own);
    let Some(base) = value(0) else { return figure };
    let percent = format!("{:.2}%", difference(line.better, base, own));
    let marked = line.is_mean && of(variant).and_then(|s| s.significant) == Some(true);
    if marked { format!("{figure} *{percent:>8}*") } else { format!("{figure} ({percent:>8})") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_results::{MEASURE, Merge, Score};

    #[test]
    fn a_figure_has_the_lines_of_mmtests_with_their_differences() {
        let (a, b) = ([10.0, 12.0, 11.0], [5.0, 6.0, 5.5]);
        let row = Row {
            name: "elapsed".into(),
            unit: "s".into(),
            phase: MEASURE.into(),
            better: Better::Lower,
            merge: Merge::Median,
            headline: false,
            published: vec![],
            measured: vec![],
            pairs: vec![],
            steps: vec![],
            caveat: None,
            lack: None,
            below: false,
            zero_is_none: false,
            part: None,
            statistics: vec![Statistics::of(&a, Better::Lower, None), Statistics::of(&b, Better::Lower, Some(&a))],
        };
        let e = ExperimentResult {
            id: "e".into(),
            case: String::new(),
            machine: "m".into(),
            target: String::new(),
            repetitions: 3,
            rounds: 1,
            sweeps: vec![],
            variants: vec!["a".into(), "b".into()],
            rows: vec![row],
            ageing: vec![],
            score: Score::default(),
            elsewhere: vec![],
            remarks: vec![],
            endings: vec![],
        };
        let text = render(&e, None, false).expect("there are three values");
        let line = |name: &str| {
            let line = text.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("no {name} in {text}"));
            line.split_whitespace().skip_while(|word| *word != name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(line("Min"), "Min 10 ( 0.00%) 5 ( 50.00%)");
        assert_eq!(line("Amean"), "Amean 11 ( 0.00%) 5.5 * 50.00%*");
        assert_eq!(line("Stddev"), "Stddev 1 ( 0.00%) 0.5 ( 50.00%)");
        assert_eq!(line("CoeffVar"), "CoeffVar 9.091 ( 0.00%) 9.091 ( 0.00%)");
        assert_eq!(line("Max"), "Max 12 ( 0.00%) 6 ( 50.00%)");
        assert_eq!(line("BAmean-50"), "BAmean-50 10 ( 0.00%) 5 ( 50.00%)");
        assert_eq!(line("BAmean-95"), "BAmean-95 10.5 ( 0.00%) 5.25 ( 50.00%)");
        assert_eq!(render(&ExperimentResult { rows: vec![], ..e }, None, false), None);
    }
}
