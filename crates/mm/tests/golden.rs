//! What a real kernel did, replayed: from the recorded snapshot, every allocation must return the recorded pfn,
//! and the zone must end with the same lists in the same order.

mod recording;

use kontig_mm::{CpuId, Gfp, NodeId, Order, Pfn};
use recording::{Op, Recording};

fn replay(name: &str) {
    let rec = Recording::open(name);
    let mut m = rec.start();
    let (cpu, node) = (CpuId::new(0), NodeId::new(1));
    assert_eq!(rec.render(&m), rec.before, "{name}: the snapshot itself does not survive loading");
    let mut held: Vec<Option<(Pfn, Order)>> = vec![None; rec.ops.len()];
    for (i, (op, &want)) in rec.ops.iter().zip(&rec.results).enumerate() {
        match *op {
            Op::Alloc { order, gfp, id, movable_ops } => {
                let got = m.alloc(cpu, node, gfp | Gfp::THISNODE, order).ok();
                let shown = got.map_or(u32::MAX, Pfn::get);
                assert_eq!(
                    format!("{shown:#x}"),
                    format!("{want:#x}"),
                    "{name}: op {i}: alloc {order:?} {gfp}; zone now:\n{}",
                    rec.render(&m)
                );
                if let (Some(pfn), true) = (got, movable_ops) {
                    m.set_movable_ops(pfn);
                }
                held[id] = got.map(|pfn| (pfn, order));
            }
            Op::Free { id } => match held[id].take() {
                Some((pfn, order)) => m.free(cpu, pfn, order),
                None => assert_eq!(want, 0xffff_fffe, "{name}: op {i} frees nothing"),
            },
        }
        if i % 10_000 == 0 {
            m.check().unwrap_or_else(|e| panic!("{name}: after op {i}: {e}"));
        }
    }
    m.check().unwrap_or_else(|e| panic!("{name}: at the end: {e}"));
    assert_eq!(rec.render(&m), rec.after, "{name}: final state");
}

#[test]
fn linux_6_1_mixed_100k_is_reproduced_operation_by_operation() {
    replay("6.1-mixed100k");
}
