//! The pace sweep: the same workload with different pauses between its allocations, on a smaller
//! machine.

use crate::experiment::{Pace, Variant};
use crate::plan::RunPlan;
use kontig_results::{MEASURE, PacePoint, RunResult};
use kontig_sim::MachineFile;
use kontig_workload::Workload;

const PERCENTILES: [f64; 6] = [50.0, 75.0, 90.0, 95.0, 99.0, 99.9];

/// The name of a sweep point's run.
fn name(variant: &str, pause_us: f64) -> String {
    format!("{variant}, pause {pause_us} us")
}

/// The plans of a variant's points, each with its pause, on the sweep's machine. Points that
/// prepare the machine in the same way are grouped: all, unless a pause is part of the preparation.
pub(crate) fn plans(of: &RunPlan, workload: &Workload, pace: &Pace, machine: &MachineFile) -> Vec<Vec<RunPlan>> {
    let point = |&pause_us: &f64| {
        let mut workload = workload.clone();
        workload.set_pause_us(pause_us);
        (pause_us, workload)
    };
    let plan = |(pause_us, workload): &(f64, Workload)| {
        let variant = Variant { name: name(&of.variant.name, *pause_us), ..of.variant.clone() };
        RunPlan { variant, machine: machine.clone(), scenario: workload.scenario(), ..of.clone() }
    };
    let points: Vec<(f64, Workload)> = pace.pause_us.iter().map(point).collect();
    points.chunk_by(|(_, a), (_, b)| a.prepares_as(b)).map(|alike| alike.iter().map(plan).collect()).collect()
}

/// The sweep's runs as points of curves.
pub(crate) fn points(variants: &[String], pace: Option<&Pace>, swept: &[RunResult]) -> Vec<PacePoint> {
    let mut points = Vec::new();
    for variant in variants {
        for &pause_us in pace.iter().flat_map(|p| &p.pause_us) {
            let name = name(variant, pause_us);
            let Some(run) = swept.iter().find(|s| s.variant == name) else { continue };
            let Some(h) = run.histograms.iter().find(|h| h.phase == MEASURE) else { continue };
            let samples = h.samples();
            let elapsed = run.figure("elapsed", MEASURE).filter(|s| *s > 0.0 && samples > 0);
            let per_second = elapsed.map(|s| samples as f64 / s);
            let latency_us = PERCENTILES.iter().filter_map(|&p| Some((p, h.percentile(p)?))).collect();
            points.push(PacePoint { variant: variant.clone(), pause_us, per_second, samples, latency_us });
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use crate::catalog;
    use crate::plan::Views;
    use crate::resolved::Resolved;

    /// The number of runs that share each preparation of an experiment.
    fn families(change: impl Fn(&mut crate::experiment::Experiment)) -> Vec<usize> {
        let (mut e, _) = catalog::experiment("hugepage-latency").expect("it is built in");
        change(&mut e);
        let resolved = Resolved::new(e, None).expect("it fits");
        let plans = resolved.plans(&1.into(), &Views::default()).expect("it can be planned");
        plans.iter().map(Vec::len).collect()
    }

    #[test]
    fn the_points_of_a_variant_have_one_preparation_unless_the_pause_is_part_of_it() {
        assert_eq!(families(|_| {}), [1, 1, 7, 7]);
        let paced = families(|e| {
            let mut driver = e.workload.phases.last().expect("it measures").clone();
            (driver.name, driver.measured) = ("before".into(), false);
            e.workload.phases.insert(0, driver);
        });
        assert_eq!(paced, [1; 16]);
    }
}
