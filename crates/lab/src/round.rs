//! Rounds: what the measured phases left behind, from one moment of the machine to another.

use crate::figures::{distribution_figures, histogram};
use crate::observe::machine_score;
use crate::pressure::other_events;
use kontig_results::{Ending, Histogram, Reading};
use kontig_sim::Machine;
use kontig_workload::Measured;
use std::collections::BTreeMap;

/// What the tasks of a measured phase have measured.
#[derive(Clone)]
pub(crate) struct OfPhase {
    pub(crate) phase: String,
    pub(crate) measured: Vec<Measured>,
}

/// What all measured phases of a round have.
#[derive(Default)]
pub(crate) struct Measurements {
    pub(crate) figures: Vec<Reading>,
    pub(crate) histograms: Vec<Histogram>,
    pub(crate) endings: Vec<Ending>,
}

impl Measurements {
    /// Of these phases, in their order.
    pub(crate) fn of(phases: Vec<OfPhase>) -> Measurements {
        let mut all = Measurements::default();
        for OfPhase { phase, measured } in phases {
            for measured in measured {
                for of in &measured.latencies {
                    let h = histogram(of, &phase);
                    all.figures.extend(distribution_figures(&h, of));
                    all.histograms.push(h);
                }
                all.figures.extend(measured.figures);
                all.endings.extend(measured.ending);
            }
        }
        all
    }
}

/// The machine when the measurement or a round of it began.
#[derive(Clone)]
pub(crate) struct Before {
    pub(crate) free_pages: u64,
    pub(crate) score: f64,
    vmstat: kontig_mm::Vmstat,
    /// What the engine's events do not have, of a machine with disks.
    others: Option<[(&'static str, u64); 9]>,
    pub(crate) work: kontig_mm::Work,
}

impl Before {
    /// This one.
    pub(crate) fn of(m: &Machine, has_disks: bool) -> Before {
        Before {
            others: has_disks.then(|| other_events(m)),
            free_pages: m.memory().nr_free_pages(),
            score: machine_score(m),
            vmstat: m.memory().vmstat().clone(),
            work: *m.work(),
        }
    }

    /// The events since.
    pub(crate) fn vmstat_until(&self, m: &Machine) -> BTreeMap<String, u64> {
        let events = m.memory().vmstat().iter();
        let of_memory = events.map(|(e, v)| (e.name().to_string(), v - self.vmstat.get(e)));
        let before = self.others.iter().flatten();
        let others = before.zip(other_events(m)).map(|((name, before), (_, now))| ((*name).to_owned(), now - before));
        of_memory.chain(others).collect()
    }
}
