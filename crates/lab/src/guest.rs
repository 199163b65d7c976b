//! Plays a pattern on the machine that a real kernel was recorded on.
//!
//! The machine is the kernel's own: its zones are as the kernel had them when counting began
//! ([`boot`]), and the memory of the kernel's first programs belongs to a resting process.
//! Everything else, disks, swap and costs, comes from the machine's file. Counters have the
//! kernel's names; those that nothing here counts are left out.

pub mod boot;

use crate::fragmenting::Fragmenting;
use crate::vmstat::VmCounters;
use boot::Booted;
use kontig_error::{AskedWrongly, Error, Failed};
use kontig_mm::event::Listen;
use kontig_mm::state::{Gen, Generations, Zone};
use kontig_mm::types::PAGEBLOCK_ORDER;
use kontig_mm::{
    Backing, CpuId, Daemon, Gfp, LruList, MachineSpec, Memory, NodeId, Order, Pfn, Profile, Request, ZoneType,
};
use kontig_procfs::Counters;
use kontig_program::act::Act;
use kontig_program::{Batch, FileName, Op, OpenFile, Outcome, Placement, Process, Program, Region, Value};
use kontig_sim::{CostModel, Machine, MachineFile, TaskId};
use kontig_workload::player::{Manner, Player};
use kontig_workload::{Scenario, Start};
use std::collections::BTreeMap;

/// The machine for a pattern that needs this much memory.
pub fn machine_of(memory_pages: u32) -> &'static str {
    if memory_pages > SMALL_PAGES { "guest-2g" } else { "guest-512m" }
}

/// 512 MiB in pages.
const SMALL_PAGES: u32 = 512 << 8;
/// The files whose pages were in memory before the pattern, one clean and one dirty, with numbers
/// that no pattern's file has.
const CLEAN: FileName = FileName::new(0, u64::MAX - 1);
const DIRTY: FileName = FileName::new(0, u64::MAX);
/// The machine's first process, which owns the memory in use before the pattern.
const RESTING: Process = Process::new(0);
/// Time until the first process rests, ns.
const FIRST_NS: u64 = 1_000_000_000;
/// Time between two looks at the process, ns.
const LOOK_NS: u64 = 1_000_000;
/// Far longer than any pattern: 10 minutes of virtual time.
const LONGEST_NS: u64 = 600 * 1_000_000_000;

/// The counters at the end of a phase.
#[derive(Clone, Debug)]
pub struct Counted {
    pub phase: &'static str,
    /// Counters under the kernel's names.
    pub counters: Counters,
    /// Time since the previous phase ended.
    pub took_ns: u64,
}

/// Plays the acts on the machine, with the profile's rules and these sysctls.
///
/// # Errors
/// If the machine is impossible, or the run cannot go on.
pub fn play(
    file: &MachineFile,
    booted: &Booted,
    profile: Profile,
    sysctls: &BTreeMap<String, String>,
    acts: Vec<Act>,
) -> Result<Vec<Counted>, Error> {
    let failed = |reason: String| Error::from(Failed::Run { run: format!("a pattern on {}", file.name), reason });
    let files = acts.iter().filter_map(|act| match act {
        Act::File(name, pages) => Some((*name, *pages)),
        _ => None,
    });
    let mut m = machine(file, booted, profile, sysctls, files)?;
    let player = m.spawn(Box::new(Player::new(acts, Manner::PATTERN)), Placement::Cpu(0));
    let mut extfrag = Fragmenting::default();
    let mut all = Vec::new();
    loop {
        let now = m.now();
        let stop = m.run(now + LOOK_NS, Some(player)).map_err(|e| failed(e.to_string()))?;
        let taken = m.take_events(m.now());
        extfrag.note(m.memory(), taken.iter().map(|traced| &traced.event));
        if let Some((phase, took_ns)) = phase_of(&mut m, player) {
            all.push(Counted { phase, counters: counters(&m, booted, &extfrag), took_ns });
        }
        if stop == kontig_sim::Stop::ProgramDone {
            return Ok(all);
        }
        if m.now() > LONGEST_NS {
            return Err(failed("has not finished after ten minutes of virtual time".into()));
        }
    }
}

/// The machine as the kernel had it when counting began, with these files on its disks.
fn machine(
    file: &MachineFile,
    booted: &Booted,
    profile: Profile,
    sysctls: &BTreeMap<String, String>,
    files: impl Iterator<Item = (FileName, u32)>,
) -> Result<Machine, Error> {
    let asked = |reason: String| AskedWrongly::Contradictory { path: file.name.clone(), reason };
    let failed = |reason: String| Error::from(Failed::Run { run: format!("a pattern on {}", file.name), reason });
    let spec = MachineSpec { cpus: file.cpus, zones: booted.specs(), thp: file.thp, lru: true };
    let mut memory = Memory::in_use(&spec, profile, &booted.in_use()).map_err(|e| asked(e.to_string()))?;
    for (name, value) in sysctls {
        memory.sysctl_write(name, value).map_err(|e| asked(e.to_string()))?;
    }
    let mut m = Machine::new(memory, CostModel::new(&file.costs));
    m.attach_disks(file).map_err(|wrong| asked(wrong.reason))?;
    for (name, pages) in files {
        if !m.lay_file(name, pages) {
            return Err(asked(format!("disk {} has no room for {pages} pages of a file", file.disk[0].name)).into());
        }
    }
    m.spawn(Box::new(Resting::new(booted)), Placement::Cpu(0));
    m.run(FIRST_NS, None).map_err(|e| failed(e.to_string()))?;
    m.blocks_written(DIRTY);
    lay_in_order(&mut m, booted);
    fill_lists(m.memory_mut(), booted);
    m.memory_mut().trace().listen(Listen::EXTFRAG);
    Ok(m)
}

/// A look at the free memory while a workload runs.
#[derive(Clone, Debug)]
pub struct Look {
    /// Time since the workload began.
    pub ns: u64,
    /// Free blocks of order 9 and more by zone, counted in huge pages.
    pub free_huge: Vec<(&'static str, u64)>,
}

/// Runs the measured phase of a workload on the machine, in place of a real program, and looks at
/// the free memory every `sample_ns`. Its other phases only prepare what the kernel already had.
///
/// # Errors
/// If the machine is impossible, or the run cannot go on.
pub fn run(
    file: &MachineFile,
    booted: &Booted,
    profile: Profile,
    sysctls: &BTreeMap<String, String>,
    (workload, seed): (&Scenario, u64),
    sample_ns: u64,
) -> Result<(Vec<Counted>, Vec<Look>), Error> {
    let failed = |reason: String| Error::from(Failed::Run { run: format!("a workload on {}", file.name), reason });
    // Huge pages are set like this when counting begins: memory in use before it is not of them.
    let (late, early) = sysctls.clone().into_iter().partition(|(name, _)| name.starts_with(HUGE_PAGES));
    let (late, early): (BTreeMap<String, String>, BTreeMap<String, String>) = (late, early);
    let mut m = machine(file, booted, profile, &early, workload.files())?;
    for (name, value) in late {
        m.memory_mut().sysctl_write(&name, &value).map_err(|e| failed(e.to_string()))?;
    }
    let phase = workload.phases.iter().find(|phase| phase.measured);
    let task = phase.and_then(|phase| phase.foreground().next());
    let task = task.ok_or_else(|| failed("the workload measures nothing".into()))?;
    let start = Start { free_pages: m.memory().nr_free_pages(), seed, ..Start::default() };
    let program = task.start(&start).map_err(&failed)?;
    let mut extfrag = Fragmenting::default();
    let counted = |m: &Machine, extfrag: &Fragmenting, phase, took_ns| Counted {
        phase,
        counters: counters(m, booted, extfrag),
        took_ns,
    };
    let began = m.now();
    let first = counted(&m, &extfrag, "start", 0);
    let build = m.spawn(Box::new(program), Placement::Cpu(0));
    let mut looks = Vec::new();
    loop {
        let now = m.now() - began;
        looks.push(Look { ns: now, free_huge: free_huge(m.memory()) });
        let stop = m.run(began + now + sample_ns, Some(build)).map_err(|e| failed(e.to_string()))?;
        let taken = m.take_events(m.now());
        extfrag.note(m.memory(), taken.iter().map(|traced| &traced.event));
        if stop == kontig_sim::Stop::ProgramDone {
            let last = counted(&m, &extfrag, "end", m.now() - began);
            return Ok((vec![first, last], looks));
        }
        if m.now() > LONGEST_NS {
            return Err(failed("has not finished after ten minutes of virtual time".into()));
        }
    }
}

/// Begins the names of the settings of huge pages.
const HUGE_PAGES: &str = "thp.";

fn free_huge(memory: &Memory) -> Vec<(&'static str, u64)> {
    let of = |zone: &Zone| {
        let large = Order::all().filter(|order| *order >= PAGEBLOCK_ORDER);
        large.map(|order| zone.nr_free(order) << (order.get() - PAGEBLOCK_ORDER.get())).sum()
    };
    memory.zones().iter().map(|zone| (zone.kind.name(), of(zone))).collect()
}

/// Activates the oldest inactive pages and clears the accessed bits of the youngest.
fn lay_in_order(m: &mut Machine, booted: &Booted) {
    let cpu = CpuId::new(0);
    m.memory_mut().lru_add_drain(cpu);
    let lists = m.memory().lru().of_node(NodeId::new(0));
    let in_generations = m.memory().lru().has_generations();
    let mut oldest: Vec<Pfn> = match in_generations {
        true => anon_of(lists.gens()).collect(),
        false => lists.list(LruList::InactiveAnon).collect(),
    };
    oldest.reverse();
    oldest.iter().skip(booted.mapped as usize).for_each(|pfn| m.forget_use(*pfn));
    if in_generations {
        // All of it is young: it has no slot in swap.
        return;
    }
    let memory = m.memory_mut();
    for pfn in oldest.into_iter().take(booted.active_anon as usize) {
        memory.mark_accessed(cpu, pfn);
        memory.mark_accessed(cpu, pfn);
    }
    memory.lru_add_drain(cpu);
}

/// Puts free pages on the CPU's lists until these have as many as the kernel's, and as many of
/// unmovable pageblocks.
fn fill_lists(memory: &mut Memory, booted: &Booted) {
    let unmovable = booted.unmovable_on_cpus();
    if unmovable == 0 {
        return;
    }
    fill_with(memory, Gfp::HIGHUSER_MOVABLE, booted.on_cpus - unmovable);
    fill_with(memory, Gfp::KERNEL, booted.on_cpus);
    // Nobody has waited for it.
    memory.take_work();
}

/// Takes pages and frees them until all the CPU's lists have this many, and what the last refill
/// brings beyond.
fn fill_with(memory: &mut Memory, gfp: Gfp, pages: u32) {
    let request = Request::new(CpuId::new(0), NodeId::new(0), gfp, Order::ZERO);
    let on_cpus = |memory: &Memory| memory.zones().iter().map(Zone::pcp_pages).sum::<u64>();
    let mut taken: Vec<Pfn> = Vec::new();
    while on_cpus(memory) + (taken.len() as u64) < u64::from(pages)
        && let Ok(pfn) = memory.alloc(request)
    {
        taken.push(pfn);
    }
    taken.into_iter().for_each(|pfn| memory.free(request.cpu, pfn, request.order));
}

/// The anonymous pages of all generations, newest first in each.
fn anon_of(gens: &Generations) -> impl Iterator<Item = Pfn> + '_ {
    let zones = [ZoneType::Dma, ZoneType::Dma32, ZoneType::Normal];
    Gen::all().flat_map(move |of| zones.into_iter().flat_map(move |zone| gens.list(of, Backing::Anon.index(), zone)))
}

/// The counters of the machine, of the tracepoint, and of the daemons' CPU time. Slabs that the
/// kernel had at first are added, and the part of the resting process that belonged to a file
/// system counts as its pages.
fn counters(m: &Machine, booted: &Booted, extfrag: &Fragmenting) -> Counters {
    let vmstat = VmCounters::of(m);
    let names = vmstat.text(m);
    let shmem = m.rss(RESTING).unwrap_or(0).min(u64::from(booted.shmem));
    let at_first = |name: &str| match name {
        "nr_slab_reclaimable" => booted.slabs[0] as i64,
        "nr_slab_unreclaimable" => booted.slabs[1] as i64,
        "nr_anon_pages" => -(shmem as i64),
        "nr_file_pages" => shmem as i64,
        _ => 0,
    };
    let count = |name| match name {
        "nr_shmem" => Some(shmem),
        _ => vmstat.get(name)?.checked_add_signed(at_first(name)),
    };
    let known = names.0.names().filter_map(|name| Some((name, count(name)?)));
    let daemons = [("kswapd_ns", Daemon::Kswapd as fn(NodeId) -> Daemon), ("kcompactd_ns", Daemon::Kcompactd)];
    let of_daemons = daemons.into_iter().map(|(name, kind)| (name, m.daemon_ns(kind)));
    known.chain(extfrag.by_size()).chain(of_daemons).map(|(name, n)| (name.to_string(), n)).collect()
}

/// The phase at whose end the process pauses, and how long it took. The process then goes on.
fn phase_of(m: &mut Machine, player: TaskId) -> Option<(&'static str, u64)> {
    let program: &mut dyn std::any::Any = m.program_mut(player)?;
    let player: &mut Player = program.downcast_mut()?;
    let phase = player.resting()?;
    player.go_on();
    Some((phase, player.took_ns()))
}

/// A process that takes memory and then sleeps. The pages it frees on the way stay on its CPU's
/// lists.
#[derive(Clone)]
struct Resting {
    /// Its steps in reverse order.
    todo: Vec<Doing>,
    at: Option<Region>,
    file: Option<OpenFile>,
}

#[derive(Clone)]
enum Doing {
    Open(FileName),
    Write(u32),
    Fsync,
    Map(u32),
    Touch,
    Unmap,
}

impl Resting {
    fn new(booted: &Booted) -> Resting {
        let mut todo = Vec::new();
        if booted.clean > 0 {
            todo.extend([Doing::Open(CLEAN), Doing::Write(booted.clean), Doing::Fsync]);
        }
        if booted.dirty > 0 {
            todo.extend([Doing::Open(DIRTY), Doing::Write(booted.dirty)]);
        }
        if booted.anon > 0 {
            todo.extend([Doing::Map(booted.anon), Doing::Touch]);
        }
        if booted.on_cpus > 0 && booted.unmovable_on_cpus() == 0 {
            todo.extend([Doing::Map(booted.on_cpus), Doing::Touch, Doing::Unmap]);
        }
        todo.reverse();
        Resting { todo, at: None, file: None }
    }
}

impl Program for Resting {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        match done.last().map(|outcome| outcome.value) {
            Some(Value::Region(region)) => self.at = Some(region),
            Some(Value::File(file)) => self.file = Some(file),
            _ => {}
        }
        todo.push(match (self.todo.pop(), self.at, self.file) {
            (Some(Doing::Open(name)), ..) => Op::Open { name, create: true },
            (Some(Doing::Write(pages)), _, Some(file)) => Op::Write { file, first: 0, pages },
            (Some(Doing::Fsync), _, Some(file)) => Op::Fsync(file),
            (Some(Doing::Map(pages)), ..) => Op::Mmap { pages },
            (Some(Doing::Touch), Some(region), _) => Op::Touch(region),
            (Some(Doing::Unmap), Some(region), _) => Op::Munmap(region),
            _ => Op::Sleep(LONGEST_NS),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use boot::{BootedZone, OfType};
    use kontig_mm::{MigrateType, PageFlags};

    /// The guest of 512 MiB as 7.2 has it in generations, with these free pages on its lists: all,
    /// and those of unmovable pageblocks.
    fn in_generations(on_cpus: u32, unmovable_on_cpus: u32) -> (Machine, Booted) {
        let (file, _) = crate::catalog::machine("guest-512m").expect("it is built in");
        let of = OfType { migratetype: MigrateType::Unmovable, blocks: 24, free: Default::default() };
        let zone = |spec| BootedZone { spec, taken: 6000, types: vec![of.clone()], unmovable_on_cpus: 0 };
        let specs = file.spec().expect("a machine").zones;
        let mut zones: Vec<BootedZone> = specs.into_iter().map(zone).collect();
        zones[0] = BootedZone { taken: 32, types: Vec::new(), ..zones[0].clone() };
        zones[1].unmovable_on_cpus = unmovable_on_cpus;
        let booted = Booted { zones, anon: 200, mapped: 60, on_cpus, ..Booted::default() };
        let profile = crate::profiles::named("7.2").expect("it is built in");
        let sysctls = BTreeMap::from([("lru_gen.enabled".to_string(), "7".to_string())]);
        (machine(&file, &booted, profile, &sysctls, [].into_iter()).expect("a machine"), booted)
    }

    #[test]
    fn the_cpus_lists_have_the_kernels_free_pages_by_type_but_for_what_refills_bring_beyond() {
        let (m, booted) = in_generations(10_400, 7500);
        let lists = m.memory().zones()[1].pcp(CpuId::new(0));
        let beyond = m.memory().zones().iter().map(Zone::pcp_pages).sum::<u64>() - u64::from(booted.on_cpus);
        assert!(beyond < 300, "{beyond} more, of one refill");
        let [unmovable, movable] = [0, 1].map(|list| lists.list(list).count());
        assert!((6900..=7500).contains(&unmovable) && (2900..3800).contains(&movable), "{unmovable}, {movable}");
    }

    #[test]
    fn memory_that_was_in_generations_from_boot_has_been_used() {
        let (m, booted) = in_generations(0, 0);
        let lists = m.memory().lru().of_node(NodeId::new(0));
        let anon: Vec<Pfn> = anon_of(lists.gens()).collect();
        assert_eq!(anon.len() as u32, booted.anon);
        assert!(anon.iter().all(|pfn| m.memory().lru().flags(*pfn).has(PageFlags::REFERENCED)));
    }
}
