//! Makes the table of an experiment's runs: merges repetitions, pairs variants seed by seed, and
//! compares with the publication.
//!
//! The figure itself says how its repetitions are merged (see [`kontig_program::figure`]);
//! percentiles come from all samples together. Every figure that any run has becomes a row.

use crate::ageing::ageing;
use crate::elsewhere::Elsewhere;
use crate::experiment::Variant;
use crate::missed::{Lack, beyond_run_to_run, explain, missed};
use crate::quantity::Quantity;
use crate::remarks::{endings, readings, remarks};
use crate::repetitions::{Repetitions, merged, pairs, statistics_of};
use crate::swept::sweeps;
use crate::target::{CaveatOf, Part, PublishedShares, Target, TargetRow, is_of_case};
use kontig_results::{
    Caveat, CaveatKind, ExperimentResult, MEASURE, Measured, Noise, Pairs, Remark, Row, RunResult, Score, Sweep, judge,
};
use std::collections::{BTreeMap, BTreeSet};

/// The context of a table.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    pub id: &'a str,
    /// Empty if the experiment has no cases.
    pub case: &'a str,
    pub machine: &'a str,
    pub variants: &'a [Variant],
    pub target: Option<&'a Target>,
    /// The experiment's caveats; the target has its own.
    pub caveats: &'a [CaveatOf],
    /// Known gaps of the model.
    pub lacks: &'a [Lack],
    /// Remarks on the request.
    pub notes: &'a [String],
    /// The publication of the same workload, if there is no target.
    pub elsewhere: Option<&'a Elsewhere>,
}

impl Subject<'_> {
    /// The published rows of this case.
    fn published(&self) -> impl Iterator<Item = &TargetRow> {
        self.target.iter().flat_map(|t| &t.row).filter(|row| is_of_case(&row.case, self.case))
    }

    fn caveat(&self, row: &str) -> Option<Caveat> {
        let declared = self.target.iter().flat_map(|t| &t.caveat).chain(self.caveats);
        let mut of_row = declared.filter(|caveat| caveat.names(self.case, row));
        of_row.next().map(|CaveatOf { kind, reason, .. }| Caveat { kind: *kind, reason: reason.clone() })
    }
}

/// A row of measured figures alone.
fn row(quantity: &Quantity, by_variant: &[Repetitions<'_>]) -> Row {
    let figure = &quantity.figure;
    // Each variant with the baseline, unless it is the baseline.
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
        zero_is_none: false,
        part: None,
        measured: by_variant.iter().map(|runs| merged(quantity, runs)).collect(),
        pairs: against().map(|(runs, baseline)| pairs(quantity, baseline?, runs)).collect(),
        steps: Vec::new(),
        caveat: None,
        lack: None,
        statistics: against().map(|(runs, baseline)| statistics_of(quantity, runs, baseline)).collect(),
    }
}

/// A published row, with its verdict.
fn held(of: &TargetRow, subject: &Subject<'_>, quantity: &Quantity, by_variant: &[Repetitions<'_>]) -> Row {
    let row = row(quantity, by_variant);
    // A run that ended before it could count anything says nothing.
    let counted_none = |i: usize| {
        let of_nothing = of.zero_is_none && of.values.get(i) == Some(&0.0);
        of_nothing && !by_variant[i].is_empty() && by_variant[i].iter().all(|run| quantity.has_no_value(run))
    };
    let value = |(i, m): (usize, &Option<Measured>)| m.map(|m| m.value).or(counted_none(i).then_some(0.0));
    let measured: Vec<Option<f64>> = row.measured.iter().enumerate().map(value).collect();
    let caveat = subject.caveat(&of.name);
    let noise = match (&caveat, of.null_test) {
        (Some(caveat), _) if caveat.kind == CaveatKind::NullTest => Noise::Itself,
        (_, Some(null_test)) => Noise::Published(null_test),
        (_, None) => Noise::Unknown,
    };
    let steps = judge::steps(&of.values, &measured, noise);
    Row {
        headline: of.headline,
        published: of.values.clone(),
        below: of.below,
        zero_is_none: of.zero_is_none,
        steps,
        caveat,
        ..row
    }
}

/// The variants of a sweep against its first.
fn pairs_within(quantity: &Quantity, sweep: &Sweep, by_variant: &[Repetitions<'_>]) -> Vec<Option<Pairs>> {
    let Some((first, rest)) = sweep.variants.split_first() else { return Vec::new() };
    let against = |i: &usize| pairs(quantity, &by_variant[*first], &by_variant[*i]);
    std::iter::once(None).chain(rest.iter().map(against)).collect()
}

/// Published shares of a single column beside ours, over all rounds and repetitions, or which of
/// them no run has; `None` if ours counted nothing.
fn shares(of: &PublishedShares, variants: &[Variant], runs: &[RunResult]) -> Option<Remark> {
    let variant = variants.iter().position(|v| v.name == of.variant)?;
    let of_variant = || runs.iter().filter(|run| run.variant == of.variant);
    let ours = |name: &String| {
        let named = of_variant().flat_map(readings).filter(|r| r.figure.name == *name && r.figure.phase == MEASURE);
        let values: Vec<f64> = named.filter_map(|r| r.value).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>())
    };
    let there: Vec<Option<f64>> = of.figures.iter().map(ours).collect();
    if let Some(at) = there.iter().position(Option::is_none) {
        let text = format!("{}: not held against the published shares, no run has '{}'", of.what, of.figures[at]);
        return Some(Remark { variant: Some(variant), text });
    }
    let ours: Vec<f64> = there.into_iter().flatten().collect();
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

/// Notes the part of the published work that ours do with the rows that count it.
fn note_part(rows: &mut [Row], of: &Part) {
    let share = |row: &Row| Some(row.measured.first()?.as_ref()?.value / row.published.first().filter(|v| **v > 0.0)?);
    let Some(share) = rows.iter().find(|row| row.name == of.by).and_then(share) else { return };
    for row in rows.iter_mut().filter(|row| !of.not.contains(&row.name)) {
        row.part = Some(share);
    }
}

/// The table of an experiment's runs. A target's rows come first; other figures follow in the runs'
/// order.
pub fn compare(subject: &Subject<'_>, runs: &[RunResult]) -> ExperimentResult {
    let Subject { variants, target, .. } = subject;
    let mut of_name: BTreeMap<&str, Repetitions<'_>> = BTreeMap::new();
    runs.iter().for_each(|run| of_name.entry(&run.variant).or_default().push(run));
    let by_variant: Vec<Repetitions<'_>> =
        variants.iter().map(|v| of_name.remove(v.name.as_str()).unwrap_or_default()).collect();
    let of_target: Vec<(&TargetRow, Quantity)> =
        subject.published().map(|row| (row, Quantity::of_row(row, runs))).collect();
    let mut rows: Vec<Row> = of_target.iter().map(|(of, q)| held(of, subject, q, &by_variant)).collect();
    let mut others: Vec<Quantity> = Vec::new();
    let null_tests: Vec<Option<[f64; 2]>> = of_target.iter().map(|(of, _)| of.null_test).collect();
    if let Some(part) = target.and_then(|t| t.part.as_ref()) {
        note_part(&mut rows, part);
    }
    explain(&mut rows, subject.lacks, subject.case);
    let said = [missed(&rows), beyond_run_to_run(&rows, &null_tests)].concat();
    let mut known: BTreeSet<(&str, &str)> =
        of_target.iter().map(|(_, quantity)| (&*quantity.figure.name, &*quantity.figure.phase)).collect();
    for reading in runs.iter().flat_map(|run| run.rounds.iter().flat_map(|r| &r.figures).chain(&run.figures)) {
        let figure = &reading.figure;
        if known.insert((&figure.name, &figure.phase)) {
            let quantity = Quantity::of_figure(figure);
            rows.push(row(&quantity, &by_variant));
            others.push(quantity);
        }
    }
    let names: Vec<String> = variants.iter().map(|v| v.name.clone()).collect();
    let quantities: Vec<&Quantity> = of_target.iter().map(|(_, quantity)| quantity).collect();
    let of_rows: Vec<&Quantity> = quantities.iter().copied().chain(&others).collect();
    let mut sweeps = sweeps(variants);
    for sweep in sweeps.iter_mut().filter(|sweep| sweep.variants.first() != Some(&0)) {
        sweep.pairs = of_rows.iter().map(|quantity| pairs_within(quantity, sweep, &by_variant)).collect();
    }
    let mut remarks = remarks(variants, &by_variant, &quantities, subject.notes);
    remarks.extend(target.iter().flat_map(|t| &t.shares).filter_map(|of| shares(of, variants, runs)));
    remarks.extend(said.into_iter().map(|text| Remark { variant: None, text }));
    let ageing = target.map(|t| ageing(t, subject.case, &names, &by_variant, runs)).unwrap_or_default();
    ExperimentResult {
        id: subject.id.into(),
        case: subject.case.into(),
        machine: subject.machine.into(),
        target: target.map(|t| t.id.clone()).unwrap_or_default(),
        repetitions: by_variant.iter().map(Vec::len).filter(|runs| *runs > 0).min().unwrap_or(0) as u32,
        rounds: runs.iter().map(|run| run.rounds.len().max(1)).max().unwrap_or(1) as u32,
        score: Score::of(&rows, &ageing),
        ageing,
        elsewhere: subject.elsewhere.map_or_else(Vec::new, |of| of.remarks(variants, &by_variant, runs)),
        remarks,
        endings: by_variant.iter().map(endings).collect(),
        sweeps,
        variants: names,
        rows,
    }
}
