//! Ageing: the series published round by round, each beside its variant's measurements.

use crate::quantity::Quantity;
use crate::repetitions::{Repetitions, median};
use crate::target::{Target, is_of_case};
use kontig_results::{Ageing, RunResult};

/// The published series of a case, each beside its variant's measurements.
pub(crate) fn ageing(
    target: &Target,
    case: &str,
    variants: &[String],
    by_variant: &[Repetitions<'_>],
    runs: &[RunResult],
) -> Vec<Ageing> {
    let of_case = target.series.iter().filter(|series| is_of_case(&series.case, case));
    of_case
        .filter_map(|series| {
            let row = target.row.iter().find(|row| row.name == series.row && row.case == series.case)?;
            // Columns of target and experiment correspond by position: names may differ.
            let variant = target.variants.iter().position(|name| *name == series.variant)?;
            variants.get(variant)?;
            let quantity = Quantity::of_row(row, runs);
            let of_runs: Vec<Vec<Option<f64>>> = by_variant[variant].iter().map(|run| quantity.by_round(run)).collect();
            let of_round = |i: usize| median(of_runs.iter().filter_map(|rounds| *rounds.get(i)?).collect());
            let measured: Vec<Option<f64>> = (0..series.values.len()).map(of_round).collect();
            Ageing::new((row.name.clone(), row.unit.clone()), variant, series.values.clone(), measured)
        })
        .collect()
}
