//! Rows: a run's results as rows of every table.

use crate::facts::Facts;
use crate::schema::{COUNTERS, FIGURES, PERCENTILES, PERCENTILES_KEPT, ROUNDS, RUNS, SERIES, SETTINGS, TABLES};
use crate::sheet::{Cell, Sheet};
use arrow_array::RecordBatch;
use kontig_error::Error;
use kontig_results::{Better, Histogram, Merge, Phase, Reading, RunResult, samples_needed};
use kontig_workload::{bytes, shown};
use std::collections::BTreeMap;

/// Rows that a table gathers before they are a batch. Batches depend on the runs alone, and so do
/// the pages of Parquet files.
const BATCH: usize = 1 << 16;

/// A taker of batches: files, or the memory.
pub trait Sink {
    /// Takes the next batch of the table of this number in [`TABLES`].
    ///
    /// # Errors
    /// If it cannot be written.
    fn take(&mut self, table: usize, batch: RecordBatch) -> Result<(), Error>;
}

struct Sheets {
    runs: Sheet,
    settings: Sheet,
    figures: Sheet,
    rounds: Sheet,
    percentiles: Sheet,
    series: Sheet,
    counters: Sheet,
}

impl Sheets {
    fn new() -> Sheets {
        Sheets {
            runs: Sheet::new(&RUNS),
            settings: Sheet::new(&SETTINGS),
            figures: Sheet::new(&FIGURES),
            rounds: Sheet::new(&ROUNDS),
            percentiles: Sheet::new(&PERCENTILES),
            series: Sheet::new(&SERIES),
            counters: Sheet::new(&COUNTERS),
        }
    }

    /// In the order of [`TABLES`].
    fn all(&mut self) -> [&mut Sheet; TABLES.len()] {
        let Sheets { runs, settings, figures, rounds, percentiles, series, counters } = self;
        [runs, settings, figures, rounds, percentiles, series, counters]
    }
}

/// The rows of runs on their way to a sink.
pub struct Rows<S: Sink> {
    sheets: Sheets,
    /// Of each table, those that the sink has.
    taken: [u64; TABLES.len()],
    sink: S,
}

impl<S: Sink> Rows<S> {
    /// Rows for this sink, none yet.
    pub fn new(sink: S) -> Rows<S> {
        Rows { sheets: Sheets::new(), taken: [0; TABLES.len()], sink }
    }

    /// Adds the rows of a run.
    ///
    /// # Errors
    /// If the sink fails.
    pub fn add(&mut self, facts: &Facts, run: &RunResult) -> Result<(), Error> {
        let key = Cell::Text(&facts.identity.run);
        self.sheets.run(key, facts, run);
        self.sheets.settings(key, facts, run);
        self.sheets.figures(key, &run.figures);
        self.sheets.distributions(key, None, &run.histograms);
        self.sheets.counters(key, None, &run.vmstat);
        for (number, round) in (1..).zip(&run.rounds) {
            self.sheets.round(key, number, &round.figures);
            self.sheets.distributions(key, Some(number), &round.histograms);
            self.sheets.counters(key, Some(number), &round.vmstat);
        }
        self.sheets.series(key, run);
        self.pass_on(BATCH)
    }

    /// The sink, which has all rows, and the number of rows of each table.
    ///
    /// # Errors
    /// If the sink fails.
    pub fn finish(mut self) -> Result<(S, [u64; TABLES.len()]), Error> {
        self.pass_on(1)?;
        Ok((self.sink, self.taken))
    }

    /// Gives the sink each sheet that has this number of rows or more.
    fn pass_on(&mut self, rows: usize) -> Result<(), Error> {
        for (table, sheet) in self.sheets.all().into_iter().enumerate().filter(|(_, sheet)| sheet.rows >= rows) {
            self.taken[table] += sheet.rows as u64;
            self.sink.take(table, sheet.batch())?;
        }
        Ok(())
    }
}

impl Sheets {
    fn run(&mut self, key: Cell<'_>, facts: &Facts, run: &RunResult) {
        let switches = facts.switches.join(" ");
        let ended: Vec<&str> = run.endings.0.iter().map(|ending| ending.rule.as_str()).collect();
        self.runs.push([
            key,
            Cell::Text(&facts.experiment),
            Cell::some(&facts.case),
            Cell::Text(&facts.variant),
            Cell::Text(&facts.machine),
            Cell::Whole(facts.memory_bytes),
            Cell::Whole(facts.nodes),
            Cell::Whole(facts.cpus),
            Cell::Text(&facts.profile),
            Cell::some(&switches),
            Cell::Whole(facts.seed),
            Cell::Whole(facts.rounds),
            Cell::Flag(run.random),
            Cell::Whole(run.phases.last().map_or(0, |Phase { end_ns, .. }| *end_ns)),
            Cell::some(&ended.join("; ")),
            Cell::Text(&facts.identity.inputs),
            Cell::Text(&facts.version),
        ]);
    }

    fn settings(&mut self, key: Cell<'_>, facts: &Facts, run: &RunResult) {
        for (name, value) in &facts.sysctls {
            let number = value.trim().parse().ok().filter(|number: &f64| number.is_finite());
            let without_effect = Cell::Flag(run.without_effect.contains_key(name));
            let (name, value, kind) = (Cell::Text(name), Cell::Text(value), Cell::Text("sysctl"));
            self.settings.push([key, kind, name, value, Cell::number(number), without_effect]);
        }
        for (name, value) in &facts.parameters {
            let number = match value {
                toml::Value::Integer(number) => Some(*number as f64),
                toml::Value::Float(number) => Some(*number),
                size => bytes(size).map(|bytes| bytes as f64),
            };
            let (name, value, kind) = (Cell::Text(name), shown(value), Cell::Text("parameter"));
            self.settings.push([key, kind, name, Cell::Text(&value), Cell::number(number), Cell::Null]);
        }
    }

    fn figures(&mut self, key: Cell<'_>, figures: &[Reading]) {
        for reading in figures {
            let [phase, figure, unit, value, missing, better, merge] = cells(reading);
            self.figures.push([key, phase, figure, unit, value, missing, better, merge]);
        }
    }

    fn round(&mut self, key: Cell<'_>, number: u64, figures: &[Reading]) {
        for reading in figures {
            let [phase, figure, unit, value, missing, better, merge] = cells(reading);
            let number = Cell::Whole(number);
            self.rounds.push([key, number, phase, figure, unit, value, missing, better, merge]);
        }
    }

    fn distributions(&mut self, key: Cell<'_>, round: Option<u64>, histograms: &[Histogram]) {
        for of in histograms {
            let samples = of.samples();
            let (phase, name, unit) = (Cell::Text(&of.phase), Cell::Text(&of.name), Cell::some(&of.unit));
            // One without samples has no percentiles, and no rows.
            for (p, value) in PERCENTILES_KEPT.iter().filter_map(|&p| Some((p, of.percentile(p)?))) {
                let (value, needed) = (Cell::Number(value), Cell::Whole(samples_needed(p)));
                let (round, p, samples) = (Cell::whole(round), Cell::Number(p), Cell::Whole(samples));
                self.percentiles.push([key, round, phase, name, p, unit, value, samples, needed]);
            }
        }
    }

    fn series(&mut self, key: Cell<'_>, run: &RunResult) {
        for series in &run.series {
            let (name, unit) = (Cell::Text(&series.name), Cell::some(&series.unit));
            for (at_ns, value) in &series.points {
                self.series.push([key, name, unit, Cell::Whole(*at_ns), Cell::Number(*value)]);
            }
        }
    }

    fn counters(&mut self, key: Cell<'_>, round: Option<u64>, vmstat: &BTreeMap<String, u64>) {
        for (counter, value) in vmstat {
            self.counters.push([key, Cell::whole(round), Cell::Text(counter), Cell::Whole(*value)]);
        }
    }
}

/// The columns of a figure, from its phase on.
fn cells(reading: &Reading) -> [Cell<'_>; 7] {
    let figure = &reading.figure;
    let better = match figure.better {
        Better::Lower => "lower",
        Better::Higher => "higher",
        Better::Neither => "neither",
    };
    let merge = match figure.merge {
        Merge::Percentile { .. } | Merge::MeanOf { .. } | Merge::StddevOf { .. } => "pooled",
        Merge::Median => "median",
        Merge::Mean => "mean",
        Merge::Stddev => "stddev",
        Merge::Sum => "sum",
        Merge::Min => "min",
        Merge::Max => "max",
    };
    [
        Cell::Text(&figure.phase),
        Cell::Text(&figure.name),
        Cell::some(&figure.unit),
        Cell::number(reading.value),
        Cell::some(&reading.missing),
        Cell::Text(better),
        Cell::Text(merge),
    ]
}
