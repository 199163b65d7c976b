//! What has to be known to read an experiment's table, beyond its figures.

use crate::event_log::{FIRST, LAST};
use crate::experiment::Variant;
use crate::result::{Remark, RunResult};
use kontig_mm::sysctl::Sysctl;

/// The notes that come from the runs.
pub(crate) fn of_runs(variants: &[Variant], runs: &[RunResult]) -> Vec<Remark> {
    let mut notes = Vec::new();
    for (i, v) in variants.iter().enumerate() {
        let runs: Vec<&RunResult> = runs.iter().filter(|r| r.variant == v.name).collect();
        let settings = v.sysctl_texts();
        let texts = settings.iter().filter_map(|(name, value)| without_effect(name, value, &runs));
        notes.extend(texts.chain(dropped_events(&runs)).map(|text| Remark { variant: Some(i), text }));
    }
    notes
}

/// That a setting made no difference to any of a variant's runs.
fn without_effect(name: &str, value: &str, runs: &[&RunResult]) -> Option<String> {
    let name = Sysctl::find(name)?.name;
    let at_boot = *runs.first()?.without_effect.get(name)?;
    if !runs.iter().all(|r| r.without_effect.contains_key(name)) {
        return None;
    }
    Some(if value.parse() == Ok(at_boot) {
        format!("{name}={value} had no effect: it is what boot sets on this machine")
    } else {
        format!("{name}={value} had no effect: every decision came out as with {at_boot}, which boot sets")
    })
}

/// How many events of a variant's runs are not stored; of which kinds, the runs' own counts say.
fn dropped_events(runs: &[&RunResult]) -> Option<String> {
    let counts = runs.iter().flat_map(|r| r.event_counts.values());
    let (happened, dropped) = counts.fold((0, 0), |(h, d), c| (h + c.happened, d + c.dropped));
    (dropped > 0).then(|| {
        format!(
            "{dropped} of {happened} events are counted by kind, but not kept: each run keeps its first {FIRST} and last \
             {LAST}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::EventCount;

    fn run(variant: &str, counts: &[(&str, u64, u64)]) -> RunResult {
        let text = serde_json::json!({
            "experiment": "e", "variant": variant, "repetition": 0, "seed": 1,
            "random": true, "without_effect": {}, "figures": [], "ending": null, "vmstat": {},
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

    fn variant(name: &str) -> Variant {
        toml::from_str(&format!("name = '{name}'\nprofile = '6.1'\nsysctls = {{ extfrag_threshold = 600 }}"))
            .expect("one")
    }

    #[test]
    fn a_setting_had_no_effect_if_it_had_none_in_any_run() {
        let with = |variant: &str, names: &[&str]| {
            let mut run = run(variant, &[]);
            run.without_effect = names.iter().map(|n| ((*n).into(), 500)).collect();
            run
        };
        let none = ["vm.extfrag_threshold"];
        let runs = [with("a", &none), with("a", &none), with("b", &none), with("b", &[])];
        assert_eq!(
            of_runs(&[variant("a"), variant("b")], &runs),
            [Remark {
                variant: Some(0),
                text: "vm.extfrag_threshold=600 had no effect: every decision came out as with 500, which boot sets"
                    .into()
            }]
        );
    }

    #[test]
    fn events_that_are_not_kept_are_said_over_all_repetitions() {
        let runs = [
            run("a", &[("begin", 30_000, 9_000), ("end", 3, 0)]),
            run("a", &[("begin", 21_000, 900), ("end", 5, 2)]),
            run("b", &[("begin", 5, 0)]),
        ];
        let notes = of_runs(&[variant("a"), variant("b")], &runs);
        assert_eq!(
            notes,
            [Remark {
                variant: Some(0),
                text:
                    "9902 of 51008 events are counted by kind, but not kept: each run keeps its first 10000 and last \
                       10000"
                        .into()
            }]
        );
    }
}
