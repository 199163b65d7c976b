//! Rounds: what the measured phases left behind, from one moment of the machine to another.

use crate::figures::{distribution_figures, histogram};
use crate::observe::machine_score;
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

/// What `/proc/vmstat` counts of files and swap, which the engine does not see. Two of them count KiB.
pub(crate) fn file_events(m: &Machine) -> [(&'static str, u64); 5] {
    let counts = m.file_counts();
    [
        ("pgmajfault", counts.major_faults),
        ("pgpgin", 4 * counts.read_in),
        ("pgpgout", 4 * counts.written_out),
        ("pswpin", counts.swapped_in),
        ("pswpout", counts.swapped_out),
    ]
}

/// The machine when the measurement or a round of it began.
#[derive(Clone)]
pub(crate) struct Before {
    pub(crate) free_pages: u64,
    pub(crate) score: f64,
    vmstat: kontig_mm::Vmstat,
    /// What its files and its swap count, of a machine that has them.
    files: Option<[(&'static str, u64); 5]>,
    pub(crate) work: kontig_mm::Work,
}

impl Before {
    /// This one.
    pub(crate) fn of(m: &Machine, has_disks: bool) -> Before {
        Before {
            files: has_disks.then(|| file_events(m)),
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
        let before = self.files.iter().flatten();
        let of_files = before.zip(file_events(m)).map(|((name, before), (_, now))| ((*name).to_owned(), now - before));
        of_memory.chain(of_files).collect()
    }
}
