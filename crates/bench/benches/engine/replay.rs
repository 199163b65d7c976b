//! Row R: replays the recording of a real kernel under a mixed load.

use crate::bsa::Bsa;
use kontig_bench::measure::{Samples, ns_each};
use kontig_bench::table::{Row, Target, Unit};
use kontig_bench::{Options, Subject};
use kontig_mm::Memory;
use kontig_oracle::Recording;
use kontig_oracle::recording::Part;
use kontig_oracle::replay::operations::Runner;
use kontig_oracle::trace::Op;
use std::path::Path;

const NAME: &str = "6.1-mixed100k";
/// Frames of the recorded node.
const FRAMES: u32 = 1 << 20;
/// A replay must keep up with the kernels that are recorded: 5 million operations per second.
const TARGET_NS: f64 = 200.0;

/// Nanoseconds per operation, with every result compared with the kernel's.
fn ours(ops: &[Op], results: &[u32], start: &Memory) -> f64 {
    let mut runner = Runner::new(start.clone(), ops, false);
    let mut first_difference = None;
    let ns = ns_each(ops.len(), || first_difference = runner.first_difference(ops, results));
    assert_eq!(first_difference, None, "{NAME}: the operation that differs");
    ns
}

fn peers(ops: &[Op]) -> f64 {
    let mut s = Bsa::new(FRAMES);
    let mut held: Vec<Option<(u32, u8)>> = vec![None; ops.len()];
    ns_each(ops.len(), || {
        for op in ops {
            match *op {
                Op::Alloc { order, id, .. } => {
                    held[id.0 as usize] = s.alloc(order.get()).map(|pfn| (pfn, order.get()));
                }
                Op::Free { id } => {
                    if let Some((pfn, order)) = held[id.0 as usize].take() {
                        s.free(pfn, order);
                    }
                }
            }
        }
    })
}

/// The recording's operations and results, and the machine before them.
fn recorded() -> Result<(Vec<Op>, Vec<u32>, Memory), kontig_oracle::BadRecording> {
    let rec = Recording::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracle/golden").join(NAME))?;
    let ops = rec.trace()?;
    let results = rec.results(ops.len())?;
    Ok((ops, results, rec.machine(Part::Operations)?))
}

pub fn row(o: &Options) -> Row {
    let (ops, results, start) = recorded().unwrap_or_else(|e| panic!("{e}"));
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for _ in 0..=o.repetitions() {
        a.push(ours(&ops, &results, &start));
        b.push(peers(&ops));
    }
    let a = Samples::new(a.split_off(1));
    Row {
        number: "R",
        what: format!("replay of {NAME}, an operation = {:.1} M/s", 1000.0 / a.median()),
        unit: Unit::Ns,
        ours: a,
        yardsticks: vec![(Bsa::NAME.into(), Samples::new(b.split_off(1)))],
        target: Some(Target::AtMost(TARGET_NS)),
    }
}
