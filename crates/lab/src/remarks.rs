//! Remarks: facts beyond the figures that are needed to read an experiment's table correctly.
//!
//! Each remark is about one variant or all. [`remarks`] decides their order: the workload, the fate
//! of the runs, the request, and what the runs show of their settings and events.

use crate::event_log::{FIRST, LAST};
use crate::experiment::Variant;
use crate::quantity::Quantity;
use crate::repetitions::{Repetitions, merged};
use kontig_mm::sysctl::Sysctl;
use kontig_results::{Ended, MEASURE, NOTHING_IS_RANDOM, Reading, Remark, RunResult};
use kontig_text::grouped;

/// All remarks on the runs of these variants, in the order they are shown. `notes` are about the
/// request, `published` are the rows of the target.
pub(crate) fn remarks(
    variants: &[Variant],
    by_variant: &[Repetitions<'_>],
    published: &[&Quantity],
    notes: &[String],
) -> Vec<Remark> {
    let of_all = |text: String| Remark { variant: None, text };
    let each = |of: &dyn Fn(usize, &Repetitions<'_>) -> Vec<String>| -> Vec<Remark> {
        let of = |(i, runs)| of(i, runs).into_iter().map(move |text| Remark { variant: Some(i), text });
        by_variant.iter().enumerate().flat_map(of).collect()
    };
    let mut remarks: Vec<Remark> = not_random(by_variant).map(of_all).into_iter().collect();
    remarks.extend(each(&|_, runs| endings(runs).iter().map(Ended::to_string).collect()));
    remarks.extend(each(&|_, runs| missing(runs)));
    remarks.extend(each(&|_, runs| not_there(published, runs)));
    remarks.extend(remedy(by_variant).map(of_all));
    remarks.extend(notes.iter().cloned().map(of_all));
    remarks.extend(each(&|i, runs| {
        let settings = variants[i].sysctl_texts();
        let without_effect = settings.iter().filter_map(|(name, value)| without_effect(name, value, runs));
        without_effect.chain(dropped_events(runs)).collect()
    }));
    remarks
}

/// The seed has no effect.
fn not_random(by_variant: &[Repetitions<'_>]) -> Option<String> {
    if by_variant.iter().flatten().any(|run| run.random) {
        return None;
    }
    Some(NOTHING_IS_RANDOM.into())
}

/// How to avoid that a rule ends runs.
fn remedy(by_variant: &[Repetitions<'_>]) -> Option<String> {
    by_variant.iter().flatten().find_map(|run| run.endings.0.first()).map(|ending| ending.remedy.clone())
}

/// The rules that ended the runs' tasks, and their progress.
pub(crate) fn endings(runs: &Repetitions<'_>) -> Vec<Ended> {
    Ended::each(runs.iter().map(|run| run.endings.0.as_slice()))
}

/// Figures that some or all repetitions lack: a remark for each reason.
fn missing(runs: &Repetitions<'_>) -> Vec<String> {
    let mut by_reason = ByReason::default();
    let Some(first) = runs.first() else { return Vec::new() };
    for reading in readings(first) {
        let figure = &reading.figure;
        let has = merged(&Quantity::of_figure(figure), runs).map_or(0, |measured| measured.repetitions as usize);
        if has == runs.len() {
            continue;
        }
        let without = runs.iter().flat_map(|run| readings(run)).filter(|r| r.figure == *figure && r.value.is_none());
        let mut why = without.map(|r| r.missing.to_string()).next().unwrap_or_default();
        if has > 0 {
            why = format!("in {} of {} repetitions, which its value leaves out, {why}", runs.len() - has, runs.len());
        }
        // Name a missing distribution once, not by each figure.
        let mut name = figure.merge.distribution().unwrap_or(&figure.name).to_string();
        if figure.phase != MEASURE {
            name += &format!(" of {}", figure.phase);
        }
        by_reason.add(why, name);
    }
    by_reason.said()
}

/// All readings of a run and its rounds.
pub(crate) fn readings(run: &RunResult) -> impl Iterator<Item = &Reading> {
    run.figures.iter().chain(run.rounds.iter().flat_map(|round| &round.figures))
}

/// Published rows that no run of a variant has a value for, if the row itself knows why.
fn not_there(published: &[&Quantity], runs: &Repetitions<'_>) -> Vec<String> {
    let mut by_reason = ByReason::default();
    for quantity in published {
        if let Some(why) = quantity.missing(runs) {
            by_reason.add(why, quantity.figure.name.to_string());
        }
    }
    by_reason.said()
}

/// Names of missing figures by reason, in order of appearance.
#[derive(Default)]
struct ByReason(Vec<(String, Vec<String>)>);

impl ByReason {
    fn add(&mut self, why: String, name: String) {
        let at = self.0.iter().position(|(reason, _)| *reason == why).unwrap_or_else(|| {
            self.0.push((why, Vec::new()));
            self.0.len() - 1
        });
        let names = &mut self.0[at].1;
        if !names.iter().any(|known| name.starts_with(known.as_str())) {
            names.push(name);
        }
    }

    fn said(self) -> Vec<String> {
        self.0.into_iter().map(|(why, names)| format!("{why}: no {}", names.join(", "))).collect()
    }
}

/// A setting changed no decision of any of a variant's runs.
fn without_effect(name: &str, value: &str, runs: &Repetitions<'_>) -> Option<String> {
    let sysctl = Sysctl::find(name)?;
    let name = sysctl.name;
    let at_boot = *runs.first()?.without_effect.get(name)?;
    if !runs.iter().all(|r| r.without_effect.contains_key(name)) {
        return None;
    }
    let text = sysctl.text_of(at_boot);
    Some(if value == text || value.parse() == Ok(at_boot) {
        format!("{name}={value} had no effect: it is what boot sets on this machine")
    } else {
        format!("{name}={value} had no effect: every decision came out as with {text}, which boot sets")
    })
}

/// The number of events that a variant's runs did not store; the runs count them by kind.
fn dropped_events(runs: &Repetitions<'_>) -> Option<String> {
    let counts = runs.iter().flat_map(|r| r.event_counts.values());
    let (happened, dropped) = counts.fold((0, 0), |(h, d), c| (h + c.happened, d + c.dropped));
    (dropped > 0).then(|| {
        format!(
            "{} of {} events are counted by kind, but not kept: each run keeps its first {} and last {}",
            grouped(dropped),
            grouped(happened),
            grouped(FIRST),
            grouped(LAST)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_results::{EventCount, RunResult};

    fn run(variant: &str, counts: &[(&str, u64, u64)]) -> RunResult {
        let text = serde_json::json!({
            "experiment": "e", "case": "", "variant": variant, "repetition": 0, "seed": 1,
            "random": true, "without_effect": {}, "figures": [], "rounds": [], "ending": null, "vmstat": {},
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

    fn of(variants: &[Variant], runs: &[RunResult]) -> Vec<Remark> {
        let by_variant: Vec<Repetitions<'_>> =
            variants.iter().map(|v| runs.iter().filter(|r| r.variant == v.name).collect()).collect();
        remarks(variants, &by_variant, &[], &[])
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
            of(&[variant("a"), variant("b")], &runs),
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
        let notes = of(&[variant("a"), variant("b")], &runs);
        assert_eq!(
            notes,
            [Remark {
                variant: Some(0),
                text: "9,902 of 51,008 events are counted by kind, but not kept: each run keeps its first 10,000 and \
                     last 10,000"
                    .into()
            }]
        );
    }
}
