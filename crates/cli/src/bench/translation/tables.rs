//! The measurement beside the model, in tables.

use kontig_bench::translation::measured::{Loop, Measured, Point, gain};
use kontig_bench::translation::programs::held::{Held, Verdict};
use kontig_program::Hot;
use kontig_terminal::Grid;
use kontig_text::{parse_size, size};

/// A program, and what it gave or why it could not be run.
pub(super) type Tried = (&'static str, Result<Held, String>);

/// The loops, size by size, beside the model.
pub(super) fn loops(m: &Measured) -> Grid {
    let cpu = &m.processor;
    let mut grid = Grid::new(
        [
            "memory",
            "chase, small",
            "huge",
            "gain",
            "model, small",
            "huge",
            "gain",
            "independent, small",
            "huge",
            "gain",
        ],
        &[0],
    );
    for point in m.points.iter().filter(|point| point.of == Loop::Chase) {
        let independent = cpu.independent.iter().find(|of| parse_size(&of.size) == Some(point.bytes as u64));
        let cells = |ns: [f64; 2], digits: usize| {
            [format!("{:.digits$}", ns[0]), format!("{:.digits$}", ns[1]), format!("{:.0} %", gain(ns))]
        };
        let none = || ["–".to_string(), "–".to_string(), "–".to_string()];
        let of_independent = independent.map_or_else(none, |of| cells([of.small_ns, of.huge_ns], 1));
        let row = [cells(point.ns, 0), cells(point.modelled(cpu), 0), of_independent].concat();
        grid.row([vec![size(point.bytes as u64)], row].concat());
    }
    grid
}

/// Skewed accesses beside the model.
pub(super) fn skewed(m: &Measured) -> Grid {
    let columns = ["memory", "hot pages", "small", "huge", "gain", "model, small", "huge", "gain", ""];
    let mut grid = Grid::new(columns, &[0, 1, 8]);
    for point in &m.skewed {
        let cells = |ns: [f64; 2]| [format!("{:.0}", ns[0]), format!("{:.0}", ns[1]), format!("{:.0} %", gain(ns))];
        let hot = if point.of == Loop::Skewed(Hot::Together) { "together" } else { "scattered" };
        let head = vec![size(point.bytes as u64), hot.to_string()];
        grid.row(
            [head, cells(point.ns).into(), cells(point.modelled(&m.processor)).into(), vec![holds(m, point).into()]]
                .concat(),
        );
    }
    grid
}

/// Chases on pages of other sizes beside the model;
/// none if none was measured.
pub(super) fn other_sizes(m: &Measured) -> Option<Grid> {
    let mut grid = Grid::new(["memory", "pages", "small", "these", "gain", "model, gain", ""], &[0, 1, 6]);
    let points: Vec<&Point> = m.other_sizes.iter().filter_map(|(_, points)| points.as_ref().ok()).flatten().collect();
    for point in &points {
        let gain = |ns| format!("{:.0} %", gain(ns));
        grid.row(vec![
            size(point.bytes as u64),
            point.larger.name().into(),
            format!("{:.0}", point.ns[0]),
            format!("{:.0}", point.ns[1]),
            gain(point.ns),
            gain(point.modelled(&m.processor)),
            holds(m, point).into(),
        ]);
    }
    (!points.is_empty()).then_some(grid)
}

fn holds(m: &Measured, point: &Point) -> &'static str {
    if m.holds(point) { "holds" } else { "MISSED" }
}

/// Programs beside the model; none if none ran.
pub(super) fn of_programs(held: &[Tried]) -> Option<Grid> {
    let mut grid = Grid::new(["program", "small, s", "huge, s", "gain", "range", "predicted", ""], &[0, 6]);
    let mut any = false;
    for (name, held) in held.iter().filter_map(|(name, held)| Some((name, held.as_ref().ok()?))) {
        any = true;
        grid.row(vec![
            name.to_string(),
            format!("{:.2}", held.seconds[0]),
            format!("{:.2}", held.seconds[1]),
            format!("{:.0} %", held.measured()),
            format!("{:.0} to {:.0} %", held.range[0], held.range[1]),
            format!("{:.0} %", held.predicted),
            said(held.verdict()).into(),
        ]);
    }
    any.then_some(grid)
}

pub(super) const fn said(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Missed => "MISSED",
        Verdict::Undecided => "undecided",
    }
}

/// A line for each program that could not be run.
pub(super) fn missing(held: &[Tried]) -> impl Iterator<Item = String> {
    held.iter().filter_map(|(name, held)| Some(format!("{name} was not held: {}", held.as_ref().err()?)))
}
