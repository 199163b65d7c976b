//! A sentence on the parts of many runs that a page leaves out.

use crate::bounds;
use crate::data::{PageExperiment, by_variant};
use kontig_results::is_drawn;
use kontig_text::grouped;

/// The sentence for this experiment; none of few runs, of which everything is there.
pub(super) fn said(e: &PageExperiment<'_>) -> Option<String> {
    let variants = by_variant(&e.result.variants, e.runs);
    let (columns, seeds) = (variants.len(), variants.iter().map(|(_, runs)| runs.len()).max().unwrap_or(0));
    let is_drawn = |variant: usize, seed: usize| is_drawn(variant, columns, seed);
    let drawn_seeds = (0..seeds).filter(|seed| is_drawn(0, *seed)).count();
    let drawn_variants = (0..columns).filter(|variant| is_drawn(*variant, 0)).count();
    let mut parts = Vec::new();
    if drawn_seeds < seeds {
        parts.push(format!("of each variant {drawn_seeds} of {} seeds are drawn over time", grouped(seeds)));
    }
    let dots = bounds::dots(e.result.sweeps.iter().map(|sweep| sweep.values.len()).max().unwrap_or(1));
    if dots < seeds && !e.result.sweeps.is_empty() {
        parts.push(format!("{dots} of {} seeds are dots, from the lowest to the highest", grouped(seeds)));
    }
    if drawn_variants < columns {
        let all = grouped(columns);
        parts.push(format!("curves, values over time and tables are of the first {drawn_variants} of {all} variants"));
    }
    if parts.is_empty() {
        return None;
    }
    Some(format!(
        "This page leaves something out: {}. The conclusion and every figure are of all runs; kontig export writes all \
         that was stored as tables.",
        parts.join("; ")
    ))
}
