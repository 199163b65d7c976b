//! The pace sweep: huge page latency against the rate of requests.
//!
//! It answers an operator's question: how fast can huge pages be taken before a caller stalls? The
//! table is for a terminal; the page draws the same points.

use crate::number;
use crate::terminal::{letter, none, plain};
use comfy_table::{Attribute, Cell, CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, presets};
use kontig_results::PacePoint;
use kontig_results::samples_needed;
use kontig_text::UNRESOLVED;

/// The percentiles shown, of those a sweep has.
pub(crate) const PERCENTILES: [f64; 5] = [50.0, 90.0, 95.0, 99.0, 99.9];

/// A sweep in display order.
pub(crate) struct Sweep<'a> {
    /// The distinct pauses in µs, shortest first.
    pub(crate) pauses: Vec<f64>,
    /// Variants in order of appearance, with the point for each pause.
    pub(crate) variants: Vec<(&'a str, Vec<Option<&'a PacePoint>>)>,
}

impl<'a> Sweep<'a> {
    /// Orders the points, dropping those whose pause is not a duration.
    pub(crate) fn of(points: &'a [PacePoint]) -> Sweep<'a> {
        let sound = || points.iter().filter(|p| p.pause_us.is_finite() && p.pause_us >= 0.0);
        let mut pauses: Vec<f64> = sound().map(|p| p.pause_us).collect();
        pauses.sort_by(f64::total_cmp);
        pauses.dedup();
        let mut variants: Vec<(&str, Vec<Option<&PacePoint>>)> = Vec::new();
        for point in sound() {
            let i = variants.iter().position(|(name, _)| *name == point.variant).unwrap_or_else(|| {
                variants.push((&point.variant, vec![None; pauses.len()]));
                variants.len() - 1
            });
            if let Some(at) = pauses.iter().position(|&pause| pause == point.pause_us) {
                variants[i].1[at].get_or_insert(point);
            }
        }
        Sweep { pauses, variants }
    }
}

/// The latency at a percentile in µs, if the point has it.
pub(crate) fn latency(point: &PacePoint, percentile: f64) -> Option<f64> {
    point.latency_us.iter().find(|(p, _)| *p == percentile).map(|&(_, us)| us).filter(|us| us.is_finite())
}

/// Huge pages obtained per second, if any were.
pub(crate) fn rate(point: &PacePoint) -> Option<f64> {
    point.per_second.filter(|rate| rate.is_finite() && *rate > 0.0)
}

/// The sweep's table on this machine after an empty line; empty if there are no points.
///
/// A row is a pause. Each variant, lettered as in [`crate::table`], has huge pages per second and
/// percentiles of the latency in µs.
pub fn render(points: &[PacePoint], machine: &str) -> String {
    let sweep = Sweep::of(points);
    if sweep.pauses.is_empty() {
        return String::new();
    }
    let machine = plain(machine);
    let mut out = format!("\nlatency against the pause between allocations, on {machine} (µs)\n");
    for (i, (name, _)) in sweep.variants.iter().enumerate() {
        out.push_str(&format!("  {} = {}\n", letter(i), plain(name)));
    }
    let (rows, any_unresolved) = rows(&sweep);
    out.push_str(&rows);
    out.push_str("\npages/s: huge pages obtained a second, pauses and stalls included; every point is one run\n");
    out.push_str(&format!("levels are {machine}'s: compare them with each other, not with the rows above\n"));
    if any_unresolved {
        out.push_str(&format!("{UNRESOLVED} too few huge pages were obtained to tell this percentile\n"));
    }
    out
}

/// The table, and whether it has a percentile from too few samples.
fn rows(sweep: &Sweep<'_>) -> (String, bool) {
    let mut any_unresolved = false;
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.style_mut().row_separator = LineStyle::none();
    table.force_no_tty();
    table.set_content_arrangement(ContentArrangement::Disabled);
    let mut header = vec!["\npause".to_owned()];
    for i in 0..sweep.variants.len() {
        header.push(format!("{}\npages/s", letter(i)));
        header.extend(PERCENTILES.map(|p| format!("{}\np{p}", letter(i))));
    }
    let columns = header.len();
    table.set_header(header.iter().map(|text| Cell::new(text).add_attribute(Attribute::Bold)));
    for (i, pause) in sweep.pauses.iter().enumerate() {
        let mut cells = vec![number::exact(*pause)];
        for (_, points) in &sweep.variants {
            cells.push(points[i].and_then(rate).map_or_else(none, number::rounded));
            for p in PERCENTILES {
                let point = points[i].filter(|point| latency(point, p).is_some());
                let unresolved = point.is_some_and(|point| point.samples < samples_needed(p));
                any_unresolved |= unresolved;
                let mark = if unresolved { UNRESOLVED } else { "" };
                cells
                    .push(point.and_then(|point| latency(point, p)).map_or_else(none, |us| number::rounded(us) + mark));
            }
        }
        table.add_row(cells);
    }
    for column in 0..columns {
        // A wider gap before each variant's figures.
        let gap = if column % (PERCENTILES.len() + 1) == 1 { 3 } else { 1 };
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
            column.set_constraint(ColumnConstraint::ContentWidth);
            column.set_padding((gap, 1));
        }
    }
    (table.trim_fmt(), any_unresolved)
}
