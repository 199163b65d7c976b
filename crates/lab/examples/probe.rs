use kontig_mm::*;
use kontig_sim::*;
use kontig_workload::fragmenter::*;
use kontig_workload::hugealloc::HugeAlloc;
use kontig_workload::*;
use std::time::Instant;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let f: MachineFile = toml::from_str(&std::fs::read_to_string(&a[1]).unwrap()).unwrap();
    let mut p: Profile = toml::from_str(&std::fs::read_to_string("profiles/linux-5.6.toml").unwrap()).unwrap();
    let pro: u32 = a[2].parse().unwrap();
    if pro > 0 {
        p.proactive = profile::ProactiveRules::Weighted;
    }
    let t = Instant::now();
    let mut mem = Memory::new(&f.spec().unwrap(), p).unwrap();
    if pro > 0 {
        mem.sysctl_write("vm.compaction_proactiveness", &pro.to_string()).unwrap();
    }
    println!("init {:?}", t.elapsed());
    let mut m = Machine::new(mem, CostModel::new(&f.costs));
    let t = Instant::now();
    let id = m.spawn(Box::new(Fragmenter::new(Holes::First, 384, 1)), Placement { cpu: 0 });
    m.run(u64::MAX / 2, Some(id)).unwrap();
    println!(
        "frag {:?} virtual {} s free {} GiB score {:?}",
        t.elapsed(),
        m.now() / 1000000000,
        m.memory().nr_free_pages() >> 18,
        m.memory().nodes().iter().map(|n| m.memory().fragmentation_score_node(n.id)).collect::<Vec<_>>()
    );
    let t = Instant::now();
    let s = m.now() + 30_000_000_000;
    m.run(s, None).unwrap();
    println!(
        "settle {:?} score {:?}",
        t.elapsed(),
        m.memory().nodes().iter().map(|n| m.memory().fragmentation_score_node(n.id)).collect::<Vec<_>>()
    );
    let free = m.memory().nr_free_pages();
    let gfp = Gfp::parse(&a[3]).unwrap();
    let t = Instant::now();
    let w0 = *m.work();
    let v0 = m.memory().vmstat().clone();
    let start = m.now();
    let id = m.spawn(Box::new(HugeAlloc::new(gfp, 0, 1, free)), Placement { cpu: 0 });
    let mut lastp = 0.0;
    let mut wl = w0;
    let mut tl = start;
    let mut al = 0.0;
    loop {
        let until = m.now() + 200_000_000;
        let stop = m.run(until, Some(id)).unwrap();
        let pr = m.program(id).unwrap().progress();
        if pr > lastp + 0.1 || stop == Stop::ProgramDone {
            let w = *m.work();
            let n = (pr - al) * free as f64 / 512.0;
            print!(
                "progress {:.2} t {:.1}s wall {:?} avg {:.1} us:",
                pr,
                (m.now() - start) as f64 / 1e9,
                t.elapsed(),
                (m.now() - tl) as f64 / 1e3 / n
            );
            for ((k, a), (_, b)) in w.fields().iter().zip(wl.fields()) {
                if *a > b {
                    print!(" {k}={:.0}", (*a - b) as f64 / n);
                }
            }
            println!(
                " score {:?}",
                m.memory().nodes().iter().map(|n| m.memory().fragmentation_score_node(n.id)).collect::<Vec<_>>()
            );
            lastp = pr;
            wl = w;
            tl = m.now();
            al = pr;
        }
        if stop == Stop::ProgramDone {
            break;
        }
    }
    let me = Workload::measured(m.program(id).unwrap());
    for (n, v) in me.figures {
        println!("{n}: {v:.1}");
    }
    for (e, v) in m.memory().vmstat().iter() {
        let d = v - v0.get(e);
        if d > 0 {
            println!("{} {}", e.name(), d);
        }
    }
    println!(
        "total {:?} kcompactd {} s kswapd {} lockwait {}",
        t.elapsed(),
        m.kcompactd_ns() as f64 / 1e9,
        m.kswapd_ns() as f64 / 1e9,
        m.lock_wait_ns()
    );
    let t = Instant::now();
    m.memory().check().unwrap();
    println!("check {:?}", t.elapsed());
    println!(
        "rss {}",
        std::fs::read_to_string("/proc/self/status")
            .unwrap()
            .lines()
            .filter(|l| l.starts_with("VmHWM"))
            .collect::<String>()
    );
}
