use kontig_mm::*; use kontig_sim::*; use kontig_workload::fragmenter::*;
struct No; impl kontig_mm::compact::Owner for No { fn may_isolate(&mut self,_:Pfn)->bool{true} fn migrate(&mut self,_:Pfn,_:Pfn,_:(u32,u32))->kontig_mm::compact::MigrateOutcome{kontig_mm::compact::MigrateOutcome::Moved}}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let f: MachineFile = toml::from_str(&std::fs::read_to_string(&a[1]).unwrap()).unwrap();
    let p: Profile = toml::from_str(&std::fs::read_to_string(&a[2]).unwrap()).unwrap();
    let mem = Memory::new(&f.spec().unwrap(), p).unwrap();
    let mut m = Machine::new(mem, CostModel::new(&f.costs));
    let id = m.spawn(Box::new(Fragmenter::new(Holes::First, 384, 1)), Placement { cpu: 0 });
    m.run(u64::MAX/2, Some(id)).unwrap();
    let mem = m.memory_mut();
    let gfp = Gfp::parse(&a[3]).unwrap();
    let mut n=0; let mut slow=0;
    loop {
        if let Ok(_) = mem.alloc(CpuId::new(0), NodeId::new(0), gfp, Order::new(9)) { n+=1; continue; }
        slow+=1;
        mem.trace().listen(Listen::COMPACTION.with(Listen::COMPACTION_DETAIL));
        let mut s = AllocSlow::new(mem, CpuId::new(0), NodeId::new(0), gfp, Order::new(9));
        let r = loop { match s.step(mem, &mut No, u64::MAX) { AllocStep::Working => {}, x => break x } };
        let ev = mem.trace().take();
        if !matches!(r, AllocStep::Done(_)) || slow <= 1 {
            println!("n={n} slow={slow} {r:?} events {}", ev.len());
            for e in ev.iter().take(40) { println!("  {e}"); }
            println!("  ...");
            for e in ev.iter().rev().take(30).rev() { println!("  {e}"); }
            if !matches!(r, AllocStep::Done(_)) { break; }
        }
        n+=1;
    }
}
