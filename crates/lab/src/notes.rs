//! What has to be known to read an experiment's table, beyond its figures.

use crate::event_log::{FIRST, LAST};
use crate::result::{EventCount, RunResult};
use std::collections::BTreeMap;

/// The notes that come from the runs.
pub(crate) fn of_runs(variants: &[String], runs: &[RunResult]) -> Vec<String> {
    variants.iter().filter_map(|v| dropped_events(v, runs)).collect()
}

/// How many events of a variant's runs are not stored, of which kinds.
fn dropped_events(variant: &str, runs: &[RunResult]) -> Option<String> {
    let mut counts: BTreeMap<&str, EventCount> = BTreeMap::new();
    for (name, count) in runs.iter().filter(|r| r.variant == variant).flat_map(|r| &r.event_counts) {
        let sum = counts.entry(name).or_default();
        sum.happened += count.happened;
        sum.dropped += count.dropped;
    }
    let (happened, dropped) = counts.values().fold((0, 0), |(h, d), c| (h + c.happened, d + c.dropped));
    let kinds: Vec<String> =
        counts.iter().filter(|(_, c)| c.dropped > 0).map(|(name, c)| format!("{} {name}", c.dropped)).collect();
    (dropped > 0).then(|| {
        let kinds = kinds.join(", ");
        format!(
            "{variant}: {dropped} of {happened} events are counted, but not kept ({kinds}): each run keeps its first \
             {FIRST} and last {LAST}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(variant: &str, counts: &[(&str, u64, u64)]) -> RunResult {
        let text = serde_json::json!({
            "experiment": "e", "variant": variant, "repetition": 0, "seed": 1, "figures": {}, "vmstat": {},
            "work": {}, "histograms": [], "series": [], "phases": [], "map": { "zones": [], "frames": [] },
            "events": [], "event_counts": {},
        });
        let mut run: RunResult = serde_json::from_value(text).expect("a run");
        let counts = counts.iter();
        run.event_counts = counts
            .map(|(n, happened, dropped)| ((*n).into(), EventCount { happened: *happened, dropped: *dropped }))
            .collect();
        run
    }

    #[test]
    fn events_that_are_not_kept_are_said_by_kind_over_all_repetitions() {
        let runs = [
            run("a", &[("begin", 30_000, 9_000), ("end", 3, 0)]),
            run("a", &[("begin", 21_000, 900), ("end", 5, 2)]),
            run("b", &[("begin", 5, 0)]),
        ];
        let notes = of_runs(&["a".into(), "b".into()], &runs);
        assert_eq!(
            notes,
            ["a: 9902 of 51008 events are counted, but not kept (9900 begin, 2 end): each run keeps its first 10000 \
              and last 10000"]
        );
    }
}
