//! Rounds: the results of the measured phases between two moments of a machine.

use crate::figures::{distribution_figures, histogram};
use crate::observe::machine_score;
use crate::vmstat::VmCounters;
use kontig_results::{Ending, Histogram, Reading};
use kontig_sim::Machine;
use kontig_workload::Measured;
use std::collections::BTreeMap;

/// The measurements of a measured phase's tasks.
#[derive(Clone)]
pub(crate) struct OfPhase {
    pub(crate) phase: String,
    pub(crate) measured: Vec<Measured>,
}

/// The measurements of all measured phases of a round.
#[derive(Default)]
pub(crate) struct Measurements {
    pub(crate) figures: Vec<Reading>,
    pub(crate) histograms: Vec<Histogram>,
    pub(crate) endings: Vec<Ending>,
}

impl Measurements {
    /// The phases' measurements, in order.
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

/// The machine's counters when the measurement or a round of it began.
#[derive(Clone)]
pub(crate) struct Before {
    pub(crate) free_pages: u64,
    pub(crate) score: f64,
    vmstat: VmCounters,
    pub(crate) work: kontig_mm::Work,
}

impl Before {
    pub(crate) fn of(m: &Machine) -> Before {
        Before {
            free_pages: m.memory().nr_free_pages(),
            score: machine_score(m),
            vmstat: VmCounters::of(m),
            work: *m.work(),
        }
    }

    pub(crate) fn vmstat_until(&self, m: &Machine) -> BTreeMap<String, u64> {
        VmCounters::of(m).since(&self.vmstat)
    }
}
