//! Figures by round on one ageing machine, for a terminal: a line per round, then the trends.

use crate::number;
use crate::terminal::{arranged, empty, letter, none, plain};
use comfy_table::{Attribute, Cell, CellAlignment};
use kontig_results::{Ageing, ExperimentResult};

/// The table of an experiment's figures by round.
pub(crate) fn render(e: &ExperimentResult, width: Option<usize>, colour: bool) -> String {
    let mut table = empty(true, colour);
    let mut header = vec!["round".to_owned()];
    for series in &e.ageing {
        let of = letter(series.variant);
        header.push(format!("{}\npublished {of}", plain(&series.name)));
        header.push(format!("{}\nmeasured {of}", plain(&series.unit)));
    }
    table.set_header(header.iter().map(|text| Cell::new(text).add_attribute(Attribute::Bold)));
    let figure = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    let rounds = e.ageing.iter().map(|series| series.published.len()).max().unwrap_or(0);
    for round in 0..rounds {
        let mut cells = vec![Cell::new(round + 1)];
        for series in &e.ageing {
            cells.push(figure(series.published.get(round).map_or_else(none, |value| number::exact(*value))));
            cells.push(figure(series.measured.get(round).copied().flatten().map_or_else(none, number::rounded)));
        }
        table.add_row(cells);
    }
    let mut last = vec![Cell::new("ages by")];
    for series in &e.ageing {
        let changes = [series.published_change(), series.measured_change()];
        last.extend(changes.map(|change| figure(change.map_or_else(none, number::factor))));
    }
    table.add_row(last);
    let mut out = arranged(table, width) + "\n";
    for series in &e.ageing {
        out += &format!("{} of {}: {}\n", plain(&series.name), letter(series.variant), words(series));
    }
    out
}

/// Says whether a series ages as published.
pub(crate) fn words(series: &Ageing) -> String {
    let size = match series.step.size_agrees {
        Some(true) => "of the published size",
        Some(false) => "not of the published size",
        None => "of no published size",
    };
    match series.step.direction_agrees {
        _ if series.measured.iter().any(Option::is_none) => "MISSED: not every round has a figure".into(),
        Some(true) => format!("ages the published way, {size}"),
        Some(false) => "MISSED: does not age the published way".into(),
        None if series.step.size_agrees == Some(false) => "MISSED: published as steady, and ages".into(),
        None => "steady, as published".into(),
    }
}
