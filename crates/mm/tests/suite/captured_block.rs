//! A block that compaction captures for its request comes from no free list: the request has it,
//! and `pgalloc_*` does not count it.

use crate::direct_compaction_cost::{CPU, HUGE, NODE, Willing, fragmented};
use kontig_mm::{AllocSlow, Gfp, Request, Step, VmEvent};

#[test]
fn a_captured_block_is_given_and_not_counted() {
    let mut m = fragmented(1);
    let request = Request::new(CPU, NODE, Gfp::HIGHUSER_MOVABLE.with(Gfp::THISNODE).with(Gfp::NOWARN), HUGE);
    while m.alloc(request).is_ok() {}
    let count = |m: &kontig_mm::Memory, of: VmEvent| m.vmstat().get(of);
    let [given, made] = [VmEvent::PgallocNormal, VmEvent::CompactSuccess].map(|of| count(&m, of));
    let mut slow = AllocSlow::new(&m, request);
    let got = loop {
        if let Step::Done(got) = slow.step(&mut m, &mut Willing, 64) {
            break got;
        }
    };
    let pfn = got.expect("there is room for one");
    assert_eq!(count(&m, VmEvent::CompactSuccess), made + 1);
    assert_eq!(count(&m, VmEvent::PgallocNormal), given);
    m.check().expect("consistent");
    m.free(CPU, pfn, HUGE);
    m.check().expect("and so is it when the block is free again");
}
