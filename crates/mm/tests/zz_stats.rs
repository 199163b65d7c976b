//! scratch
mod support;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use support::strategy::*;
use kontig_mm::*;
#[test]
fn stats() {
    let mut r = TestRunner::deterministic();
    let mut sum = std::collections::BTreeMap::<&str, (u64,u64)>::new();
    let mut iso=0;
    for _ in 0..3000 {
        let p = plan().new_tree(&mut r).unwrap().current();
        let ops = history(60).new_tree(&mut r).unwrap().current();
        let mut w = support::World::new(&p);
        let (mut ha, mut boost, mut defer, mut flush)=(0u64,0,0,0);
        w.m.trace().listen(Listen::EXTFRAG);
        let mut ext=0; 
        for op in &ops { w.apply(op); 
          ha = ha.max(w.m.zones().iter().map(|z| z.nr_reserved_highatomic).sum());
          boost = boost.max(w.m.zones().iter().map(|z| z.watermark_boost).max().unwrap());
          defer = defer.max(w.m.zones().iter().map(|z| z.compaction.defer_shift as u64).max().unwrap());
          flush |= w.m.zones().iter().any(|z| z.compaction.blockskip_flush) as u64;
          if !w.is_settled() { iso += 1; }
        }
        ext += w.m.trace().take().len() as u64;
        w.settle();
        let pro: u64 = w.m.nodes().iter().map(|n| n.kcompactd.proactive_runs).sum();
        for (e, n) in w.m.vmstat().iter() { let s = sum.entry(e.name()).or_default(); s.0 += n; s.1 += (n>0) as u64; }
        for (e, n) in [("HA",ha),("boost",boost),("defer",defer),("flush",flush),("pro",pro),("ext",ext)] { let s = sum.entry(e).or_default(); s.0 += n; s.1 += (n>0) as u64; }
    }
    println!("{sum:#?} {iso}");
}
