//! From runs to a table: repetitions merged, variants paired seed by seed, and held against what was published.
//!
//! How a figure's repetitions become one value is said by the figure itself (see [`kontig_program::figure`]);
//! percentiles come from all repetitions' samples put together. Every figure any run has becomes a row.

use crate::ageing::ageing;
use crate::elsewhere::Elsewhere;
use crate::experiment::Variant;
use crate::missed::{Lack, beyond_run_to_run, missed};
use crate::quantity::Quantity;
use crate::remarks::{readings, remarks};
use crate::repetitions::{Repetitions, merged, pairs, statistics_of};
use crate::target::{CaveatOf, PublishedShares, Target, TargetRow, is_of_case};
use kontig_results::{Caveat, CaveatKind, ExperimentResult, MEASURE, Noise, Remark, Row, RunResult, Score, judge};

/// What the table of some runs is about.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The experiment's name.
    pub id: &'a str,
    /// Its case; empty if it has none.
    pub case: &'a str,
    /// The machine's name.
    pub machine: &'a str,
    /// The columns.
    pub variants: &'a [Variant],
    /// What was published.
    pub target: Option<&'a Target>,
    /// Caveats beside the target's own.
    pub caveats: &'a [CaveatOf],
    /// What the model lacks.
    pub lacks: &'a [Lack],
    /// What had to be said about the request.
    pub notes: &'a [String],
    /// What was published of the workload, where there is no target.
    pub elsewhere: Option<&'a Elsewhere>,
}

impl Subject<'_> {
    /// The published rows.
    fn published(&self) -> impl Iterator<Item = &TargetRow> {
        self.target.iter().flat_map(|t| &t.row).filter(|row| is_of_case(&row.case, self.case))
    }

    /// A row's caveat.
    fn caveat(&self, row: &str) -> Option<Caveat> {
        let declared = self.target.iter().flat_map(|t| &t.caveat).chain(self.caveats);
        let mut of_row = declared.filter(|caveat| caveat.names(self.case, row));
        of_row.next().map(|CaveatOf { kind, reason, .. }| Caveat { kind: *kind, reason: reason.clone() })
    }
}

/// A row without anything published.
fn row(quantity: &Quantity, by_variant: &[Repetitions<'_>]) -> Row {
    let figure = &quantity.figure;
    // Each variant, and the baseline unless it is that.
    let against = || by_variant.iter().enumerate().map(|(i, runs)| (runs, by_variant.first().filter(|_| i > 0)));
    Row {
        name: figure.name.to_string(),
        unit: figure.unit.to_string(),
        phase: figure.phase.to_string(),
        better: figure.better,
        merge: figure.merge.clone(),
        headline: false,
        published: Vec::new(),
        below: false,
        measured: by_variant.iter().map(|runs| merged(quantity, runs)).collect(),
        pairs: against().map(|(runs, baseline)| pairs(quantity, baseline?, runs)).collect(),
        steps: Vec::new(),
        caveat: None,
        statistics: against().map(|(runs, baseline)| statistics_of(quantity, runs, baseline)).collect(),
    }
}

/// A published row.
fn held(of: &TargetRow, subject: &Subject<'_>, quantity: &Quantity, by_variant: &[Repetitions<'_>]) -> Row {
    let row = row(quantity, by_variant);
    let measured: Vec<Option<f64>> = row.measured.iter().map(|m| m.map(|m| m.value)).collect();
    let caveat = subject.caveat(&of.name);
    let noise = match (&caveat, of.null_test) {
        (Some(caveat), _) if caveat.kind == CaveatKind::NullTest => Noise::Itself,
        (_, Some(null_test)) => Noise::Published(null_test),
        (_, None) => Noise::Unknown,
    };
    let steps = judge::steps(&of.values, &measured, noise);
    Row { headline: of.headline, published: of.values.clone(), below: of.below, steps, caveat, ..row }
}

/// What was counted of one column alone, beside ours of all its rounds and repetitions, in shares of all; nothing where ours
/// counted nothing.
fn shares(of: &PublishedShares, variants: &[Variant], runs: &[RunResult]) -> Option<Remark> {
    let variant = variants.iter().position(|v| v.name == of.variant)?;
    let of_variant = || runs.iter().filter(|run| run.variant == of.variant);
    let ours = |name: &String| {
        let named = of_variant().flat_map(readings).filter(|r| r.figure.name == *name && r.figure.phase == MEASURE);
        let values: Vec<f64> = named.filter_map(|r| r.value).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>())
    };
    let ours = of.figures.iter().map(ours).collect::<Option<Vec<f64>>>()?;
    let (all_published, all_ours) = (of.values.iter().sum::<f64>(), ours.iter().sum::<f64>());
    if all_published <= 0.0 || all_ours <= 0.0 {
        return None;
    }
    let each = of.figures.iter().zip(&of.values).zip(&ours);
    let each: Vec<String> = each
        .map(|((name, published), ours)| {
            format!("{name} {:.1} % ({:.1} %)", 100.0 * published / all_published, 100.0 * ours / all_ours)
        })
        .collect();
    let text = format!("{}, published (here): {}; of {all_published} ({all_ours})", of.what, each.join(", "));
    Some(Remark { variant: Some(variant), text })
}

/// The table of an experiment's runs against its target, or on its own. With a target, the target's rows come first;
/// figures it does not have follow, in the order the runs have them.
pub fn compare(subject: &Subject<'_>, runs: &[RunResult]) -> ExperimentResult {
    let Subject { variants, target, .. } = subject;
    let by_variant: Vec<Repetitions<'_>> =
        variants.iter().map(|v| runs.iter().filter(|r| r.variant == v.name).collect()).collect();
    let of_target: Vec<(&TargetRow, Quantity)> =
        subject.published().map(|row| (row, Quantity::of_row(row, runs))).collect();
    let mut rows: Vec<Row> = of_target.iter().map(|(of, q)| held(of, subject, q, &by_variant)).collect();
    let null_tests: Vec<Option<[f64; 2]>> = of_target.iter().map(|(of, _)| of.null_test).collect();
    let said = [missed(&rows, subject.lacks, subject.case), beyond_run_to_run(&rows, &null_tests)].concat();
    for reading in runs.iter().flat_map(|run| run.rounds.iter().flat_map(|r| &r.figures).chain(&run.figures)) {
        let figure = &reading.figure;
        if !rows.iter().any(|r| r.name == figure.name && r.phase == figure.phase) {
            rows.push(row(&Quantity::of_figure(figure), &by_variant));
        }
    }
    let names: Vec<String> = variants.iter().map(|v| v.name.clone()).collect();
    let quantities: Vec<&Quantity> = of_target.iter().map(|(_, quantity)| quantity).collect();
    let mut remarks = remarks(variants, &by_variant, &quantities, subject.notes);
    remarks.extend(subject.elsewhere.iter().flat_map(|of| of.remarks(variants, &by_variant, runs)));
    remarks.extend(target.iter().flat_map(|t| &t.shares).filter_map(|of| shares(of, variants, runs)));
    remarks.extend(said.into_iter().map(|text| Remark { variant: None, text }));
    let ageing = target.map(|t| ageing(t, subject.case, &names, &by_variant, runs)).unwrap_or_default();
    ExperimentResult {
        id: subject.id.into(),
        case: subject.case.into(),
        machine: subject.machine.into(),
        target: target.map(|t| t.id.clone()).unwrap_or_default(),
        repetitions: by_variant.iter().map(Vec::len).max().unwrap_or(0) as u32,
        rounds: runs.iter().map(|run| run.rounds.len().max(1)).max().unwrap_or(1) as u32,
        score: Score::of(&rows, &ageing),
        ageing,
        remarks,
        variants: names,
        rows,
    }
}
