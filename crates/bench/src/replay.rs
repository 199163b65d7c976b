//! The recording of a real kernel, replayed: a mixed load that nobody made up.

use crate::measure::{Samples, ns_each};
use crate::options::Options;
use crate::subject::{Bsa, Subject};
use crate::table::{Row, Unit};
use kontig_mm::{CpuId, Memory, NodeId, Order, Pfn};
use recording::{Op, Recording};

#[path = "../../mm/tests/recording/mod.rs"]
#[allow(dead_code, missing_docs)] // it is the golden tests' own, and they use more of it
mod recording;

const NAME: &str = "6.1-mixed100k";
/// Frames of the recorded node.
const FRAMES: u32 = 1 << 20;

fn ours(rec: &Recording, m: &mut Memory) -> f64 {
    let (cpu, node) = (CpuId::new(0), NodeId::new(1));
    let mut held: Vec<Option<(Pfn, Order)>> = vec![None; rec.ops.len()];
    ns_each(rec.ops.len(), || {
        for op in &rec.ops {
            match *op {
                Op::Alloc { order, gfp, id, movable_ops } => {
                    let got = m.alloc(cpu, node, gfp, order).ok();
                    if let (Some(pfn), true) = (got, movable_ops) {
                        m.set_movable_ops(pfn);
                    }
                    held[id] = got.map(|pfn| (pfn, order));
                }
                Op::Free { id } => {
                    if let Some((pfn, order)) = held[id].take() {
                        m.free(cpu, pfn, order);
                    }
                }
            }
        }
    })
}

fn peers(rec: &Recording) -> f64 {
    let mut s = Bsa::new(FRAMES);
    let mut held: Vec<Option<(u32, u8)>> = vec![None; rec.ops.len()];
    ns_each(rec.ops.len(), || {
        for op in &rec.ops {
            match *op {
                Op::Alloc { order, id, .. } => held[id] = s.alloc(order.get()).map(|pfn| (pfn, order.get())),
                Op::Free { id } => {
                    if let Some((pfn, order)) = held[id].take() {
                        s.free(pfn, order);
                    }
                }
            }
        }
    })
}

/// The row.
pub fn row(o: &Options) -> Row {
    let rec = Recording::open(NAME);
    let start = rec.start();
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for _ in 0..=o.repetitions() {
        a.push(ours(&rec, &mut start.clone()));
        b.push(peers(&rec));
    }
    let a = Samples::new(a.split_off(1));
    Row {
        number: "R",
        what: format!("replay of {NAME}, an operation = {:.1} M/s", 1000.0 / a.median()),
        unit: Unit::Ns,
        ours: a,
        peer: Some((Bsa::NAME, Samples::new(b.split_off(1)))),
        target: None,
    }
}
