//! Quantities: the subject of a row, and how its value is read from one run or one round.
//!
//! A quantity is a figure of the runs, a statistic of one of their distributions, or a formula over
//! counters. A run of several rounds has a value for each, unless the figure is of the whole run.

use crate::formula::{Formula, NoValue, Values};
use crate::names::{did_you_mean, nearest};
use crate::target::{Stat, TargetRow};
use crate::unit;
use kontig_results::{Figure, Histogram, MEASURE, Merge, Reading, RunResult, TOTAL, samples_needed};
use kontig_workload::Wrong;
use std::cell::Cell;
use std::collections::BTreeMap;

/// The subject of a row.
pub(crate) struct Quantity {
    /// The name, unit and merging it is shown with.
    pub(crate) figure: Figure,
    from: From,
    /// The factor from the runs' unit to the row's.
    factor: f64,
    /// Where the figure was among those of the run that was read last: runs alike have it there,
    /// and a thousand runs need no thousand searches.
    at: Cell<usize>,
}

enum From {
    /// The figure with this name.
    Figure(String),
    /// The distribution named by the figure's merging.
    Distribution,
    Formula(Formula),
    /// No run has it, for this reason.
    Nothing(Option<(&'static str, String)>),
}

/// The measurements of a time span: of a run, or a round of one.
#[derive(Clone, Copy)]
pub(crate) struct Window<'a> {
    figures: &'a [Reading],
    histograms: &'a [Histogram],
    vmstat: &'a BTreeMap<String, u64>,
}

impl Values for Window<'_> {
    fn counter(&self, name: &str) -> Option<f64> {
        self.vmstat.get(name).map(|n| *n as f64)
    }
    fn figure(&self, name: &str, phase: &str) -> Option<f64> {
        self.figures.iter().find(|r| r.figure.name == name && r.figure.phase == phase)?.value
    }
}

fn rounds(run: &RunResult) -> impl Iterator<Item = Window<'_>> {
    run.rounds.iter().map(|round| Window {
        figures: &round.figures,
        histograms: &round.histograms,
        vmstat: &round.vmstat,
    })
}

fn whole(run: &RunResult) -> Window<'_> {
    Window { figures: &run.figures, histograms: &run.histograms, vmstat: &run.vmstat }
}

impl Quantity {
    /// A figure of the runs under its own name.
    pub(crate) fn of_figure(figure: &Figure) -> Quantity {
        let from = match figure.merge.distribution() {
            Some(_) => From::Distribution,
            None => From::Figure(figure.name.to_string()),
        };
        Quantity { figure: figure.clone(), from, factor: 1.0, at: Cell::default() }
    }

    /// The quantity of a published row: its formula, or the figure or distribution it names. A row
    /// without a statistic may also have the name of a distribution's percentile.
    pub(crate) fn of_row(row: &TargetRow, runs: &[RunResult]) -> Quantity {
        let (stat, formula) = (row.stat().ok().flatten(), row.formula().ok().flatten());
        let shown = Figure::new(row.name.clone(), row.unit.clone());
        let better = |figure: Figure| Figure { better: row.better.unwrap_or(figure.better), ..figure };
        if let Some(formula) = formula {
            let figure = better(shown.merged(stat.map_or(Merge::Median, of_values)));
            let figure = if formula.is_of_other_phases() { figure.of_phase(TOTAL) } else { figure };
            return Quantity { figure, from: From::Formula(formula), factor: 1.0, at: Cell::default() };
        }
        let name = row.of.as_deref().unwrap_or(&row.name);
        let phase = row.phase.as_deref().unwrap_or(MEASURE);
        let known = |phase: &str| {
            let all = runs.iter().flat_map(|run| run.figures.iter().chain(run.rounds.iter().flat_map(|r| &r.figures)));
            all.map(|r| &r.figure).find(|f| f.name == name && f.phase == phase)
        };
        let distribution = || {
            let all =
                runs.iter().flat_map(|run| run.histograms.iter().chain(run.rounds.iter().flat_map(|r| &r.histograms)));
            let percentile = |h: &Histogram| {
                let p: f64 = name.strip_prefix(&h.name)?.strip_prefix(" p")?.parse().ok()?;
                (0.0..=100.0).contains(&p).then_some(p)
            };
            all.filter(|h| h.phase == phase).find_map(|h| match stat {
                Some(stat) if h.name == name => Some((h, of_samples(stat, h))),
                None => percentile(h).map(|p| (h, Merge::Percentile { of: h.name.clone().into(), p })),
                Some(_) => None,
            })
        };
        let found = match known(phase) {
            Some(figure) => {
                let merge = stat.map_or_else(|| figure.merge.clone(), of_values);
                let from = match (stat, merge.distribution()) {
                    (Some(Stat::Percentile(p)), _) => {
                        From::Nothing(Some(("stat", format!("p{p} is of a distribution, and {name} is a figure"))))
                    }
                    (_, Some(_)) => From::Distribution,
                    _ => From::Figure(name.into()),
                };
                Some((Figure { merge, ..figure.clone() }, from))
            }
            None => distribution().map(|(h, merge)| {
                (
                    Figure::new(name.to_owned(), h.unit.clone()).lower().merged(merge).of_phase(h.phase.clone()),
                    From::Distribution,
                )
            }),
        };
        let Some((figure, from)) = found else {
            return Quantity { figure: better(shown), from: From::Nothing(None), factor: 1.0, at: Cell::default() };
        };
        let (factor, from) = match unit::factor(&figure.unit, &row.unit) {
            Some(factor) => (factor, from),
            None => {
                (1.0, From::Nothing(Some(("unit", format!("{name} is in {}, which is not {}", figure.unit, row.unit)))))
            }
        };
        Quantity {
            figure: better(Figure { name: shown.name, unit: shown.unit, ..figure }),
            from,
            factor,
            at: Cell::default(),
        }
    }

    /// The part of a published row that no run has, with the nearest name, as far as runs that have
    /// not run tell.
    pub(crate) fn unmeasured(row: &TargetRow, runs: &[RunResult]) -> Option<Wrong> {
        let quantity = Quantity::of_row(row, runs);
        let (key, name, phase) = match &quantity.from {
            From::Formula(formula) => {
                let is_there = |(name, phase): &(&str, &str)| {
                    let rounds = runs.iter().flat_map(|run| &run.rounds).flat_map(|round| &round.figures);
                    let mut all = runs.iter().flat_map(|run| &run.figures).chain(rounds);
                    all.any(|r| r.figure.name == *name && r.figure.phase == *phase)
                };
                let (name, phase) = formula.figures().find(|figure| !is_there(figure))?;
                ("formula", name, phase)
            }
            From::Nothing(Some((key, reason))) => {
                return Some(Wrong::at(&[key], format!("row '{}': {reason}", row.name)));
            }
            From::Nothing(None) => {
                let phase = row.phase.as_deref().unwrap_or(MEASURE);
                match &row.of {
                    Some(of) => ("of", of.as_str(), phase),
                    None => ("name", row.name.as_str(), phase),
                }
            }
            From::Figure(_) | From::Distribution => return None,
        };
        let (mut phases, mut names): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
        let rounds = || runs.iter().flat_map(|run| &run.rounds);
        let figures = runs.iter().flat_map(|run| &run.figures).chain(rounds().flat_map(|round| &round.figures));
        let histograms =
            runs.iter().flat_map(|run| &run.histograms).chain(rounds().flat_map(|round| &round.histograms));
        let all = figures.map(|r| (&*r.figure.name, &*r.figure.phase));
        for (known, of) in all.chain(histograms.map(|h| (&*h.name, &*h.phase))) {
            phases.extend((!phases.contains(&of)).then_some(of));
            names.extend((of == phase && !names.contains(&known)).then_some(known));
        }
        let of_row = |reason: String| format!("row '{}': {reason}", row.name);
        if names.is_empty() {
            let key = if row.phase.is_some() { "phase" } else { key };
            return Some(Wrong::at(&[key], of_row(did_you_mean("phase", phase, &phases))));
        }
        let of_phase = if phase == MEASURE { String::new() } else { format!(" in phase '{phase}'") };
        let unknown = || format!("no run has a figure '{name}'{of_phase}: 'kontig run … --all-figures' prints all");
        Some(Wrong::at(&[key], of_row(nearest("figure", name, &names).unwrap_or_else(unknown))))
    }

    /// The value in one window.
    fn read(&self, window: &Window<'_>) -> Result<Option<f64>, NoValue> {
        let value = match &self.from {
            From::Figure(name) => self.reading(window, name).and_then(|reading| reading.value),
            From::Distribution => {
                let name = self.figure.merge.distribution();
                name.and_then(|name| window.histograms.iter().find(|h| h.is(name, &self.figure.phase)))
                    .and_then(|h| self.of(h))
            }
            From::Formula(formula) => Some(formula.value(window)?),
            From::Nothing(_) => None,
        };
        Ok(value.map(|value| value * self.factor))
    }

    /// The reading of the figure of this name.
    fn reading<'a>(&self, window: &Window<'a>, name: &str) -> Option<&'a Reading> {
        let is = |reading: &Reading| reading.figure.name == name && reading.figure.phase == self.figure.phase;
        if let Some(reading) = window.figures.get(self.at.get()).filter(|reading| is(reading)) {
            return Some(reading);
        }
        let at = window.figures.iter().position(is)?;
        self.at.set(at);
        window.figures.get(at)
    }

    /// This statistic of a distribution.
    fn of(&self, h: &Histogram) -> Option<f64> {
        match self.figure.merge {
            Merge::Percentile { p, .. } => h.percentile(p),
            Merge::MeanOf { .. } => h.mean(),
            Merge::StddevOf { .. } => h.stddev(),
            _ => None,
        }
    }

    /// The values in one run: of its rounds, or the one of the run.
    pub(crate) fn values(&self, run: &RunResult) -> Vec<f64> {
        self.windows(run).iter().filter_map(|window| self.read(window).ok()?).collect()
    }

    /// Whether a run has the figure and no value of it: there was nothing to count.
    pub(crate) fn has_no_value(&self, run: &RunResult) -> bool {
        let From::Figure(name) = &self.from else { return false };
        self.windows(run).iter().any(|window| self.reading(window, name).is_some()) && self.values(run).is_empty()
    }

    /// The number of windows of a run that lack a value.
    pub(crate) fn lacking(&self, run: &RunResult) -> usize {
        self.windows(run).len() - self.values(run).len()
    }

    /// The windows of a run: each round, or the whole run if it has no rounds or no round has the
    /// quantity.
    fn windows<'a>(&self, run: &'a RunResult) -> Vec<Window<'a>> {
        let rounds: Vec<Window<'a>> = rounds(run).collect();
        let of_a_round = |window: &Window<'_>| match &self.from {
            From::Figure(name) => self.reading(window, name).is_some(),
            From::Distribution => {
                let name = self.figure.merge.distribution();
                name.is_some_and(|name| window.histograms.iter().any(|h| h.is(name, &self.figure.phase)))
            }
            From::Formula(formula) => !formula.is_of_other_phases(),
            From::Nothing(_) => true,
        };
        if rounds.iter().any(of_a_round) { rounds } else { vec![whole(run)] }
    }

    /// Whether some window of these runs has too few samples for this percentile; never for other
    /// figures.
    pub(crate) fn is_thin(&self, runs: &[&RunResult]) -> bool {
        let Merge::Percentile { of, p } = &self.figure.merge else { return false };
        let windows = runs.iter().flat_map(|run| self.windows(run));
        let samples = |window: Window<'_>| {
            window.histograms.iter().find(|h| h.is(of, &self.figure.phase)).map(Histogram::samples)
        };
        windows.filter_map(samples).any(|samples| samples < samples_needed(*p))
    }

    /// The value in each round of a run.
    pub(crate) fn by_round(&self, run: &RunResult) -> Vec<Option<f64>> {
        rounds(run).map(|round| self.read(&round).ok().flatten()).collect()
    }

    /// The statistic over all runs' samples together, with their number.
    pub(crate) fn pooled(&self, runs: &[&RunResult]) -> Option<(f64, u64)> {
        let name = self.figure.merge.distribution()?;
        let all =
            runs.iter().flat_map(|run| run.histograms.iter().chain(run.rounds.iter().flat_map(|r| &r.histograms)));
        let pooled = Histogram::pooled(all.filter(|h| h.is(name, &self.figure.phase)))?;
        Some((self.of(&pooled)? * self.factor, pooled.samples()))
    }

    /// The reason why these runs, or some of their windows, have no value, if the row itself knows
    /// it.
    pub(crate) fn missing(&self, runs: &[&RunResult]) -> Option<String> {
        match &self.from {
            From::Nothing(why) => why.as_ref().map(|(_, reason)| reason.clone()),
            From::Formula(_) => {
                let windows: Vec<Window<'_>> = runs.iter().flat_map(|run| self.windows(run)).collect();
                let why: Vec<NoValue> = windows.iter().filter_map(|window| self.read(window).err()).collect();
                let first = why.first()?;
                let all = windows.len();
                Some(if why.len() < all { format!("in {} of {all}, {first}", why.len()) } else { first.to_string() })
            }
            _ => None,
        }
    }
}

/// The merging of several windows' values.
fn of_values(stat: Stat) -> Merge {
    match stat {
        Stat::Min => Merge::Min,
        Stat::Max => Merge::Max,
        Stat::Mean => Merge::Mean,
        Stat::Stddev => Merge::Stddev,
        Stat::Median | Stat::Percentile(_) => Merge::Median,
    }
}

/// The merging of a distribution's samples.
fn of_samples(stat: Stat, h: &Histogram) -> Merge {
    let of = h.name.clone().into();
    match stat {
        Stat::Min => Merge::Percentile { of, p: 0.0 },
        Stat::Max => Merge::Percentile { of, p: 100.0 },
        Stat::Median => Merge::Percentile { of, p: 50.0 },
        Stat::Percentile(p) => Merge::Percentile { of, p },
        Stat::Mean => Merge::MeanOf { of },
        Stat::Stddev => Merge::StddevOf { of },
    }
}
