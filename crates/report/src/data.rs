//! The data of the page's script, as JSON.
//!
//! Times become seconds; long series are thinned and the distributions of repetitions merged here,
//! so that the page stays small and its script only draws. Maps stay packed: the browser unpacks
//! the one moment it shows.

use crate::pace::{self, Sweep};
use crate::{bounds, curve, palette, shown, thin, verdict};
use kontig_results::PacePoint;
use kontig_results::{ExperimentResult, Histogram, MEASURE, MemoryMap, Merge, Phase, Row, RunResult, Series, is_drawn};
use serde::Serialize;

/// One experiment of a page.
#[derive(Clone, Debug)]
pub struct PageExperiment<'a> {
    pub result: &'a ExperimentResult,
    /// In any order. Curves merge all repetitions; phases and maps are the first repetition's.
    pub runs: &'a [RunResult],
    /// The pace sweep; may be empty.
    pub pace: &'a [PacePoint],
    /// The machine of the sweep; may be empty.
    pub pace_machine: String,
    /// The experiment and its outcome as plain text; an empty line
    /// starts a paragraph. May be empty.
    pub summary: String,
    /// Assumptions and caveats, likewise.
    pub notes: String,
}

/// All data of the page.
#[derive(Serialize)]
pub(crate) struct Data<'a> {
    palette: Palette,
    experiments: Vec<Experiment<'a>>,
}

#[derive(Serialize)]
struct Palette {
    light: Vec<&'static str>,
    dark: Vec<&'static str>,
    /// Shade of each map byte.
    shades: Vec<usize>,
    levels: Vec<f64>,
    classes: &'static [&'static str],
    migratetypes: &'static [&'static str],
}

#[derive(Serialize)]
struct Experiment<'a> {
    variants: Vec<&'a str>,
    curves: Vec<Curves<'a>>,
    pace: Pace<'a>,
    sweeps: Vec<SweptFigures<'a>>,
    series: Vec<Lines<'a>>,
    /// Phases of the first repetition, by variant.
    phases: Vec<Vec<Span<'a>>>,
    /// The map of the first repetition that has one, by variant.
    maps: Vec<Map<'a>>,
}

#[derive(Serialize)]
struct Curves<'a> {
    /// The operation, and its phase unless that is the measurement.
    name: String,
    unit: &'a str,
    /// All repetitions merged, by variant.
    buckets: Vec<Vec<(f64, u64)>>,
    /// Each repetition, by variant; empty if there is only one. Of many some.
    repetitions: Vec<Vec<&'a [(f64, u64)]>>,
    published: Vec<Vec<(f64, f64)>>,
}

#[derive(Serialize)]
struct Pace<'a> {
    machine: &'a str,
    percentiles: [f64; pace::PERCENTILES.len()],
    /// In µs, shortest first.
    pauses: Vec<f64>,
    variants: Vec<PaceLines<'a>>,
}

#[derive(Serialize)]
struct PaceLines<'a> {
    name: &'a str,
    /// Huge pages per second, by pause.
    rates: Vec<Option<f64>>,
    /// For each percentile, (index of the pause, latency in µs).
    lines: Vec<Vec<(usize, f64)>>,
}

/// The figures that matter against the value of what was swept.
#[derive(Serialize)]
struct SweptFigures<'a> {
    /// The setting that was swept, and of which variants.
    title: String,
    setting: &'a str,
    unit: &'a str,
    /// The value of each variant.
    values: &'a [f64],
    figures: Vec<SweptFigure<'a>>,
}

#[derive(Serialize)]
struct SweptFigure<'a> {
    name: String,
    unit: &'a str,
    /// The table's figure, by variant.
    merged: Vec<Option<f64>>,
    /// That of each seed, by variant; empty if there is only one. Of many some.
    seeds: Vec<Vec<f64>>,
}

#[derive(Serialize)]
struct Lines<'a> {
    name: &'a str,
    unit: &'a str,
    lines: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    variant: usize,
    /// Index among the variant's repetitions: 0 is drawn in full, the others faintly.
    repetition: usize,
    /// Pairs of seconds and value.
    points: Vec<(f64, f64)>,
}

#[derive(Serialize)]
struct Span<'a> {
    name: &'a str,
    start: f64,
    end: f64,
}

#[derive(Serialize)]
struct Map<'a> {
    zones: Vec<(&'a str, u32)>,
    frames: Vec<Frame<'a>>,
}

#[derive(Serialize)]
struct Frame<'a> {
    at: f64,
    phase: &'a str,
    free: u64,
    score: f64,
    cells: &'a str,
}

impl<'a> Data<'a> {
    pub(crate) fn of(experiments: &'a [PageExperiment<'a>]) -> Data<'a> {
        let palette = Palette {
            light: palette::SHADES.iter().map(|shade| shade.light).collect(),
            dark: palette::SHADES.iter().map(|shade| shade.dark).collect(),
            shades: (0..=u8::MAX).map(palette::shade_of).collect(),
            levels: (0..palette::SHADES.len()).map(palette::level_of).collect(),
            classes: &palette::CLASSES,
            migratetypes: &palette::MIGRATETYPES,
        };
        Data { palette, experiments: experiments.iter().map(experiment).collect() }
    }
}

/// Variants with their runs in order of repetition: the table's columns first,
/// then those that only runs name.
pub(crate) fn by_variant<'a>(columns: &'a [String], runs: &'a [RunResult]) -> Vec<(&'a str, Vec<&'a RunResult>)> {
    let mut out: Vec<(&str, Vec<&RunResult>)> = columns.iter().map(|name| (name.as_str(), vec![])).collect();
    for run in runs {
        match out.iter_mut().find(|(name, _)| *name == run.variant) {
            Some((_, own)) => own.push(run),
            None => out.push((&run.variant, vec![run])),
        }
    }
    for (_, own) in &mut out {
        own.sort_by_key(|run| run.repetition);
    }
    out
}

fn experiment<'a>(e: &'a PageExperiment<'a>) -> Experiment<'a> {
    let variants = by_variant(&e.result.variants, e.runs);
    Experiment {
        curves: curves(e, &variants),
        pace: pace_sweep(e),
        sweeps: e.result.sweeps.iter().map(|sweep| swept_figures(e, sweep, &variants)).collect(),
        series: series(&variants),
        phases: variants.iter().map(|(_, runs)| runs.first().map_or(vec![], |run| spans(&run.phases))).collect(),
        maps: maps(&variants),
        variants: variants.iter().map(|(name, _)| *name).collect(),
    }
}

fn curves<'a>(e: &'a PageExperiment<'a>, variants: &[(&'a str, Vec<&'a RunResult>)]) -> Vec<Curves<'a>> {
    let all = e.runs.iter().flat_map(|run| &run.histograms);
    distinct(all.map(|h| (h.name.as_str(), h.unit.as_str(), h.phase.as_ref())))
        .map(|(name, unit, phase)| {
            let same = |h: &&Histogram| h.is(name, phase) && h.unit == unit;
            let published = |variant| match variant < e.result.variants.len() {
                true => curve::published(&e.result.rows, (name, phase), unit, variant),
                false => vec![],
            };
            let single = |variant: usize, runs: &[&'a RunResult]| -> Vec<&'a [(f64, u64)]> {
                let drawn = (0..runs.len()).filter(|run| is_drawn(variant, variants.len(), *run)).count();
                let own =
                    runs[..drawn].iter().flat_map(|run| &run.histograms).filter(same).filter(|h| !h.buckets.is_empty());
                own.map(|h| h.buckets.as_slice()).collect()
            };
            let each = variants.iter().enumerate();
            let repetitions = each.map(|(i, (_, runs))| if runs.len() > 1 { single(i, runs) } else { vec![] });
            let is_drawn = |variant: &usize| is_drawn(*variant, variants.len(), 0);
            Curves {
                repetitions: repetitions.collect(),
                name: if phase == MEASURE { name.into() } else { format!("{name}, {phase}") },
                unit,
                buckets: variants
                    .iter()
                    .enumerate()
                    .map(|(variant, (_, runs))| if is_drawn(&variant) { runs.as_slice() } else { &[] })
                    .map(|runs| Histogram::pooled(runs.iter().flat_map(|run| &run.histograms).filter(same)))
                    .map(|pooled| pooled.map_or(vec![], |h| h.buckets))
                    .collect(),
                published: (0..variants.len()).map(published).collect(),
            }
        })
        .collect()
}

fn pace_sweep<'a>(e: &'a PageExperiment<'a>) -> Pace<'a> {
    let sweep = Sweep::of(e.pace);
    let line = |points: &[Option<&PacePoint>], percentile| {
        let points =
            points.iter().enumerate().filter_map(|(i, point)| Some((i, pace::latency((*point)?, percentile)?)));
        // The axis is logarithmic.
        points.filter(|&(_, us)| us > 0.0).collect()
    };
    let variants = (sweep.variants.iter())
        .map(|(name, points)| PaceLines {
            name,
            rates: points.iter().map(|point| point.and_then(pace::rate)).collect(),
            lines: pace::PERCENTILES.iter().map(|&p| line(points, p)).collect(),
        })
        .collect();
    Pace { machine: &e.pace_machine, percentiles: pace::PERCENTILES, variants, pauses: sweep.pauses }
}

fn swept_figures<'a>(
    e: &'a PageExperiment<'a>,
    sweep: &'a kontig_results::Sweep,
    variants: &[(&'a str, Vec<&'a RunResult>)],
) -> SweptFigures<'a> {
    let of_seed = |row: &Row, run: &RunResult| match &row.merge {
        Merge::Percentile { of, p } => run.histograms.iter().find(|h| h.is(of, &row.phase))?.percentile(*p),
        _ => run.figure(&row.name, &row.phase),
    };
    let figure = |row: &'a Row| {
        let seeds = |(_, runs): &(&str, Vec<&RunResult>)| match runs.len() {
            0 | 1 => vec![],
            _ => {
                let seeds = runs.iter().filter_map(|run| of_seed(row, run)).collect();
                bounds::some_dots(seeds, sweep.values.len())
            }
        };
        SweptFigure {
            name: shown::name(row),
            unit: &row.unit,
            merged: sweep.variants.iter().map(|&i| verdict::measured(row, i).map(|m| m.value)).collect(),
            seeds: sweep.variants.iter().filter_map(|&i| variants.get(i)).map(seeds).collect(),
        }
    };
    let moves = |figure: &SweptFigure<'_>| figure.merged.iter().any(|value| *value != figure.merged[0]);
    let figures = shown::that_matter(e.result).into_iter().map(figure).filter(moves).collect();
    let unit = if sweep.unit.is_empty() { String::new() } else { format!(", {}", sweep.unit) };
    let of = if sweep.of.is_empty() { String::new() } else { format!("{}: ", sweep.of) };
    let title = format!("{of}{}{unit}", sweep.setting);
    SweptFigures { title, setting: &sweep.setting, unit: &sweep.unit, values: &sweep.values, figures }
}

fn series<'a>(variants: &[(&'a str, Vec<&'a RunResult>)]) -> Vec<Lines<'a>> {
    let each = variants.iter().enumerate();
    let each = each.flat_map(|(variant, (_, runs))| runs.iter().enumerate().map(move |(i, run)| (variant, i, *run)));
    let drawn: Vec<(usize, usize, &RunResult)> =
        each.filter(|(variant, repetition, _)| is_drawn(*variant, variants.len(), *repetition)).collect();
    let most = bounds::points(drawn.len());
    let all = drawn.iter().flat_map(|(.., run)| &run.series);
    distinct(all.map(|s| (s.name.as_str(), s.unit.as_str())))
        .map(|(name, unit)| {
            let same = |s: &&Series| s.name == name && s.unit == unit;
            let lines = drawn.iter().filter_map(|&(variant, repetition, run)| {
                let points = thin::thin(&run.series.iter().find(same)?.points, most);
                let points = points.into_iter().filter(|p| p.1.is_finite()).map(|(t, v)| (seconds(t), v));
                Some(Line { variant, repetition, points: points.collect() })
            });
            Lines { name, unit, lines: lines.collect() }
        })
        .collect()
}

/// The maps of variants, as many as a page has room for.
fn maps<'a>(variants: &[(&'a str, Vec<&'a RunResult>)]) -> Vec<Map<'a>> {
    let all: Vec<Map<'_>> = variants.iter().map(|(_, runs)| map(runs)).collect();
    let bytes = |map: &Map<'_>| map.frames.iter().map(|frame| frame.cells.len()).sum();
    let kept = bounds::maps(all.iter().map(bytes));
    let none = || Map { zones: vec![], frames: vec![] };
    all.into_iter().enumerate().map(|(i, map)| if i < kept { map } else { none() }).collect()
}

fn map<'a>(runs: &[&'a RunResult]) -> Map<'a> {
    let Some(map) = runs.iter().map(|run| &run.map).find(|map: &&MemoryMap| !map.frames.is_empty()) else {
        return Map { zones: vec![], frames: vec![] };
    };
    let frame = |f: &'a kontig_results::MapFrame| Frame {
        at: seconds(f.at_ns),
        phase: &f.phase,
        free: f.free_pages,
        score: f.score,
        cells: &f.cells,
    };
    Map {
        zones: map.zones.iter().map(|zone| (zone.name.as_str(), zone.blocks)).collect(),
        frames: map.frames.iter().map(frame).collect(),
    }
}

fn spans(phases: &[Phase]) -> Vec<Span<'_>> {
    phases.iter().map(|p| Span { name: &p.name, start: seconds(p.start_ns), end: seconds(p.end_ns) }).collect()
}

/// Drops duplicates, keeping the order.
fn distinct<T: PartialEq + Copy>(names: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    let mut seen = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen.into_iter()
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
