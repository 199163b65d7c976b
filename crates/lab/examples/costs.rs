//! Writes `crates/lab/costs.toml`: the CPU time of a run of every workload, and of every experiment
//! whose workload is its own. Names given as arguments are measured alone, and printed.
//!
//! `cargo run --release -p kontig-lab --example costs > crates/lab/costs.toml`, with nothing else
//! running, takes as long as a run of each.

use kontig_lab::catalog;
use kontig_lab::expected::a_loop;
use kontig_lab::experiment::Experiment;
use kontig_lab::plan::Views;
use kontig_lab::resolved::Resolved;
use kontig_lab::session::Session;
use kontig_workload::Workload;

/// A machine without disks costs by its memory: this one says how much.
const ANOTHER: &str = "xeon-4g";

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    println!("# CPU time of runs, s. Written by: cargo run --release -p kontig-lab --example costs");
    println!("loop_s = {:.5}\n\n[run]", a_loop());
    let mut seen: Vec<Workload> = Vec::new();
    let workloads = catalog::workloads().expect("all is built in").into_iter().map(|(name, _)| name.to_owned());
    let experiments = catalog::experiments().expect("all is built in").into_iter().map(|e| e.id);
    for id in workloads.chain(experiments) {
        let (e, ..) = catalog::to_run(&id).expect("it is built in");
        for case in Resolved::all(&e, None).expect("it fits") {
            let (name, workload) = (case.key(), &case.experiment.workload);
            if seen.contains(workload) {
                continue;
            }
            seen.push(workload.clone());
            if asked.is_empty() || asked.contains(&name) {
                println!("\"{name}\" = {{ {} }}", cost(case));
            }
        }
    }
}

/// The cost of a run, by the memory of its machine if that is all it has.
fn cost(of: Resolved) -> String {
    let e = of.experiment.clone();
    let own_costs = of.machine.has_disks() || of.begins_as.is_some();
    let (own_gib, own) = (gib(&of), seconds(of));
    let other = Experiment { machine: ANOTHER.into(), target: None, lack: vec![], caveat: vec![], pace: None, ..e };
    let other = Resolved::new(other, None).ok().filter(|_| !own_costs);
    match other.map(|other| (gib(&other), seconds(other))) {
        Some((gib, there)) if (own_gib - gib).abs() > 0.5 => {
            let each = ((own - there) / (own_gib - gib)).max(0.0);
            format!("seconds = {:.2}, seconds_a_gib = {each:.3}", (there - each * gib).max(0.0))
        }
        _ => format!("seconds = {own:.2}"),
    }
}

fn gib(of: &Resolved) -> f64 {
    of.machine.node_pages().iter().sum::<u64>() as f64 / f64::from(1 << 18)
}

/// The CPU time of its first variant's first run.
fn seconds(of: Resolved) -> f64 {
    let variant = of.experiment.variant[0].name.clone();
    let session = Session::new(vec![of], 1, &Views::default()).expect("the host has the memory");
    let session = session.only(|plan| plan.repetition == 0 && plan.variant.name == variant);
    let begin = cpu_time();
    let (_, error) = session.run(1, &|_| Ok(()));
    assert!(error.is_none(), "{error:?}");
    cpu_time() - begin
}

/// The CPU time of this process.
fn cpu_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux says");
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |i: usize| fields[i].parse::<f64>().expect("a number");
    // User and system time, a hundredth of a second each.
    (ticks(11) + ticks(12)) / 100.0
}
