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
use crate::sysctls;
use crate::target::{CaveatOf, PublishedShares, Target, TargetRow, is_of_case};
use kontig_results::{
    Caveat, CaveatKind, ExperimentResult, MEASURE, Noise, Remark, Row, RunResult, Score, Swept, judge,
};
use std::collections::BTreeMap;

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

/// Published shares of a single column beside ours, over all rounds and repetitions; `None` if ours
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

/// A sweep has as many variants at least.
const LEAST_SWEPT: usize = 3;

/// The only sysctl in which the variants differ, if its values are numbers.
fn swept(variants: &[Variant]) -> Option<Swept> {
    let (first, rest) = variants.split_first()?;
    let alike = |v: &Variant| (&v.profile, &v.switches) == (&first.profile, &first.switches);
    if variants.len() < LEAST_SWEPT || !rest.iter().all(alike) {
        return None;
    }
    let settings: Vec<BTreeMap<&str, String>> = variants.iter().map(settings).collect::<Option<_>>()?;
    let mut names: Vec<&str> = settings.iter().flat_map(|of| of.keys().copied()).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| settings.iter().any(|of| of.get(name) != settings[0].get(name)));
    let [name] = names[..] else { return None };
    let values = settings.iter().map(|of| of.get(name)?.trim().parse().ok()).collect::<Option<Vec<f64>>>()?;
    let all_differ = values.iter().enumerate().all(|(i, value)| !values[..i].contains(value));
    all_differ.then(|| Swept { sysctl: name.into(), values })
}

/// A variant's settings by the sysctls' full names.
fn settings(v: &Variant) -> Option<BTreeMap<&'static str, String>> {
    v.sysctl_texts().into_iter().map(|(name, value)| Some((sysctls::setting(&name).ok()?.name, value))).collect()
}

/// The table of an experiment's runs. A target's rows come first; other figures follow in the runs'
/// order.
pub fn compare(subject: &Subject<'_>, runs: &[RunResult]) -> ExperimentResult {
    let Subject { variants, target, .. } = subject;
    let by_variant: Vec<Repetitions<'_>> =
        variants.iter().map(|v| runs.iter().filter(|r| r.variant == v.name).collect()).collect();
    let of_target: Vec<(&TargetRow, Quantity)> =
        subject.published().map(|row| (row, Quantity::of_row(row, runs))).collect();
    let mut rows: Vec<Row> = of_target.iter().map(|(of, q)| held(of, subject, q, &by_variant)).collect();
    let null_tests: Vec<Option<[f64; 2]>> = of_target.iter().map(|(of, _)| of.null_test).collect();
    explain(&mut rows, subject.lacks, subject.case);
    let said = [missed(&rows), beyond_run_to_run(&rows, &null_tests)].concat();
    for reading in runs.iter().flat_map(|run| run.rounds.iter().flat_map(|r| &r.figures).chain(&run.figures)) {
        let figure = &reading.figure;
        if !rows.iter().any(|r| r.name == figure.name && r.phase == figure.phase) {
            rows.push(row(&Quantity::of_figure(figure), &by_variant));
        }
    }
    let names: Vec<String> = variants.iter().map(|v| v.name.clone()).collect();
    let quantities: Vec<&Quantity> = of_target.iter().map(|(_, quantity)| quantity).collect();
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
        swept: swept(variants),
        variants: names,
        rows,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variant(sysctls: &[(&str, &str)]) -> Variant {
        let value = |value: &str| toml::Value::String(value.into());
        Variant {
            name: "v".into(),
            profile: "6.1".into(),
            switches: vec![],
            sysctls: sysctls.iter().map(|(name, of)| ((*name).into(), value(of))).collect(),
        }
    }

    #[test]
    fn variants_that_differ_in_one_number_are_a_sweep() {
        let of = |values: &[&str]| -> Vec<Variant> {
            values
                .iter()
                .map(|value| variant(&[("compaction_proactiveness", value), ("vm.swappiness", "60")]))
                .collect()
        };
        let found = swept(&of(&["0", "40", "20"])).expect("a sweep");
        assert_eq!((found.sysctl.as_str(), found.values), ("vm.compaction_proactiveness", vec![0.0, 40.0, 20.0]));
        assert_eq!(swept(&of(&["0", "20"])), None, "two are a comparison");
        assert_eq!(swept(&of(&["0", "20", "0"])), None, "two results of one value");
        let with = |change: fn(&mut Variant)| {
            let mut variants = of(&["0", "40", "20"]);
            change(&mut variants[1]);
            swept(&variants)
        };
        assert_eq!(with(|v| v.profile = "7.2".into()), None);
        assert_eq!(with(|v| v.sysctls.clear()), None, "a variant has another kernel's default");
        assert_eq!(with(|v| drop(v.sysctls.insert("vm.swappiness".into(), toml::Value::String("1".into())))), None);
        assert_eq!(swept(&["always", "defer", "never"].map(|value| variant(&[("thp.defrag", value)]))), None);
    }
}
