//! Replays recordings on an engine with a planted mistake.
//!
//! `runner NUMBER DIR` prints the first difference, or nothing if the recording does not notice. A
//! panic of the engine counts as noticed. Number 0 is the engine without mistakes. `runner NUMBER
//! --trace NAME DIR` executes a generated trace from the first state of a recording, and prints a
//! digest of all results. `runner --survey DIR` replays a recording without mistakes and prints two
//! lines, the numbers of the mechanisms it ran through and of the mistakes that could have been
//! made on the way; or one line, if the replay differs.

use kontig_mm::snapshot::ZoneSnapshot;
use kontig_mm::sysctl::Sysctl;
use kontig_oracle::recording::{CPU, Part, Recording, ZONE};
use kontig_oracle::replay::operations::Runner;
use kontig_oracle::trace::{generate, recipes};
use kontig_oracle::{BadRecording, Verdict, verify};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (number, rest) = args.split_first().expect("the number of a mutant");
    if number == "--survey" {
        survey(Path::new(&rest[0]));
        return;
    }
    kontig_mm::mutant::set(number.parse().expect("the number of a mutant"));
    std::panic::set_hook(Box::new(|_| {}));
    if let [flag, name, dir] = rest
        && flag == "--trace"
    {
        let digest = catch_unwind(AssertUnwindSafe(|| digest(name, Path::new(dir)).unwrap_or_else(|e| panic!("{e}"))));
        println!("{}", digest.map_or("the engine stops".into(), |d| format!("{d:x}")));
        return;
    }
    match catch_unwind(AssertUnwindSafe(|| verify(Path::new(&rest[0])))) {
        Ok(Ok(Verdict::Different(d))) => println!("{}", d.at),
        Ok(Ok(_)) => {}
        Ok(Err(e)) => println!("{e}"),
        Err(_) => println!("the engine stops"),
    }
}

/// Replays a recording without a mistake, and prints what it ran through.
fn survey(dir: &Path) {
    kontig_mm::mutant::set(kontig_mm::mutant::SURVEY);
    match verify(dir) {
        Ok(Verdict::Different(d)) => return println!("differs at {}", d.at),
        Err(e) => return println!("{e}"),
        Ok(_) => {}
    }
    let passed = (0..256).filter(|n| kontig_mm::probe::passed(*n)).map(|n| n.to_string());
    println!("{}", passed.collect::<Vec<_>>().join(" "));
    let met = (0..1024).filter(|n| kontig_mm::mutant::met(*n)).map(|n| n.to_string());
    println!("{}", met.collect::<Vec<_>>().join(" "));
}

/// Digest of a generated trace: every result, and the final state.
fn digest(name: &str, dir: &Path) -> Result<u64, BadRecording> {
    let recipe = recipes().find(|r| r.name == name).expect("a known trace");
    let ops = generate(name, 1, recipe.ops).expect("a known trace");
    let rec = Recording::open(dir)?;
    let mut memory = rec.machine(Part::Operations)?;
    if recipe.sysctls.iter().any(|(n, _)| *n == "vm.percpu_pagelist_high_fraction") {
        // The engine takes the limit of the per-CPU lists from the recording, so the sysctl's
        // effect is put
    // there.
        let limit = format!(" high {} free_factor", memory.zone(ZONE).managed / 8);
        let old = format!(" high {} free_factor", memory.zone(ZONE).pcp(CPU).high);
        let state = ZoneSnapshot::parse(&rec.text("t0.snap")?.replace(&old, &limit)).expect("a possible state");
        memory = state.machine(memory.profile().clone()).expect("a possible state");
    }
    for (sysctl, value) in recipe.sysctls.iter().filter(|(n, _)| Sysctl::find(n).is_some()) {
        memory.sysctl_write(sysctl, value).expect("a possible value");
    }
    let mut runner = Runner::new(memory, &ops, false);
    let mut hasher = DefaultHasher::new();
    ops.iter().for_each(|op| runner.carry_out(op).hash(&mut hasher));
    ZoneSnapshot::of(&runner.memory, ZONE).to_string().hash(&mut hasher);
    Ok(hasher.finish())
}
