//! The machine stays consistent while processes do anything concurrently, with too little memory.

use crate::support::disk::ssd;
use crate::support::*;
use kontig_mm::{GroupId, GroupLimit, MachineSpec, Memory, VmEvent};
use kontig_program::{Batch, FileName, Op, OpenFile, Outcome, Program, Region, SplitMix64, Value};
use kontig_sim::machine_file::SwapEntry;
use kontig_sim::{CostModel, GroupEntry, Machine, MachineFile};

/// Files on the disk, and their length.
const FILES: u64 = 3;
const FILE_PAGES: u32 = 1300;

/// A process that does anything: it maps memory and files, uses and unmaps parts of them, reads,
/// writes, forks, executes another program and exits.
#[derive(Clone)]
struct Wanderer {
    random: SplitMix64,
    regions: Vec<(Region, bool)>,
    files: Vec<OpenFile>,
    /// Whether its latest mapping is of a file.
    maps_file: bool,
    children: u32,
    /// Number of generations that may follow it.
    generations: u32,
    /// Number of operations left.
    acts: u32,
}

impl Wanderer {
    fn new(seed: u64, generations: u32, acts: u32) -> Wanderer {
        let random = SplitMix64::new(seed);
        Wanderer { random, regions: Vec::new(), files: Vec::new(), maps_file: false, children: 0, generations, acts }
    }

    /// A part of one of its regions; of a writable one if `writes`.
    fn part(&mut self, writes: bool) -> Option<Region> {
        let fit: Vec<Region> = self.regions.iter().filter(|(_, file)| !writes || !file).map(|(r, _)| *r).collect();
        let r = *fit.get(self.random.below(fit.len().max(1) as u32) as usize)?;
        let first = self.random.below(r.pages);
        let pages = 1 + self.random.below(r.pages - first);
        Some(part(r, first, pages))
    }

    fn learn(&mut self, last: &Outcome) {
        match last.value {
            Value::Region(r) => self.regions.push((r, self.maps_file)),
            Value::File(file) => self.files.push(file),
            Value::Child(_) => self.children += 1,
            Value::Ended { .. } => self.children -= 1,
            _ => {}
        }
    }

    fn act(&mut self) -> Option<Op> {
        let file = self.files.last().copied();
        Some(match self.random.below(24) {
            0..=2 => {
                self.maps_file = false;
                Op::Mmap { pages: 1 + self.random.below(1600) }
            }
            3..=8 => Op::Touch(self.part(true)?),
            9..=11 => Op::Load(self.part(false)?),
            12..=13 => {
                let gone = self.part(false)?;
                // Unmapping all of a region removes it.
                self.regions.retain(|(r, _)| r.mapping != gone.mapping || r.pages != gone.pages);
                Op::Munmap(gone)
            }
            14..=15 => match file {
                None => Op::Open { name: FileName::new(0, u64::from(self.random.below(FILES as u32))), create: false },
                Some(file) => {
                    self.maps_file = true;
                    let first = self.random.below(FILE_PAGES / 4);
                    Op::MmapFile { file, first, pages: FILE_PAGES - first }
                }
            },
            16 => Op::Read { file: file?, first: self.random.below(FILE_PAGES - 64), pages: 64 },
            17 => Op::Write { file: file?, first: self.random.below(FILE_PAGES - 64), pages: 64 },
            18..=19 if self.generations > 0 => {
                let mut child = self.clone();
                // It inherits its parent's regions, but no open files.
                (child.generations, child.children) = (self.generations - 1, 0);
                child.files.clear();
                child.random = SplitMix64::new(self.random.next_u64());
                Op::Fork(Box::new(child))
            }
            20 if self.children > 0 => Op::WaitNoHang,
            21 => Op::Exec(Box::new(Wanderer::new(self.random.next_u64(), self.generations, self.acts))),
            22 => {
                let name = if self.random.below(2) == 0 { "vm.compact_memory" } else { "vm.drop_caches" };
                Op::Sysctl { name: name.into(), value: "1".into() }
            }
            _ => Op::Sleep(u64::from(self.random.below(20)) * MS),
        })
    }
}

impl Program for Wanderer {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        done.iter().for_each(|outcome| self.learn(outcome));
        while self.acts > 0 {
            self.acts -= 1;
            if let Some(op) = self.act() {
                todo.push(op);
                return;
            }
        }
    }
}

/// 48 MiB with a disk and as much swap, huge pages always, and a khugepaged that never rests.
fn crowded(profile: &str) -> Machine {
    let memory = Memory::new(&MachineSpec { lru: true, ..spec(4, 24) }, linux(profile)).expect("a valid machine");
    let mut m = Machine::new(memory, CostModel::new(&xeon().costs));
    let swap = Some(SwapEntry { disk: ssd().name, size: "48 MiB".into() });
    m.attach_disks(&MachineFile { disk: vec![ssd()], swap, ..xeon() }).expect("a disk that can be");
    for file in 0..FILES {
        assert!(m.lay_file(FileName::new(0, file), FILE_PAGES));
    }
    for (name, value) in [("thp.enabled", "always"), ("thp.khugepaged.scan_sleep_millisecs", "20")] {
        m.memory_mut().sysctl_write(name, value).expect("a sysctl");
    }
    m
}

/// Runs random processes of this seed, and checks the machine every few milliseconds; returns it
/// afterwards.
fn wander(profile: &str, seed: u64) -> Machine {
    // The process that the machine runs for is never the OOM killer's victim: it has no memory, and
    // only starts the others.
    let mut p = Prompt::new(crowded(profile), 1);
    for cpu in 0..4 {
        fork(&mut p, Box::new(Wanderer::new(seed << 8 | cpu, 2, 60)));
    }
    for slice in 0..120 {
        let until = p.m.now() + 5 * MS;
        let stop = p.m.run(until, None).unwrap_or_else(|e| panic!("{profile}, seed {seed}, slice {slice}: {e}"));
        assert_eq!(stop, kontig_sim::Stop::Time);
        p.m.check().unwrap_or_else(|e| panic!("{profile}, seed {seed}, slice {slice}: {e}"));
    }
    p.m
}

#[test]
fn a_machine_of_wandering_processes_is_consistent_at_any_time() {
    let mut seen = [0; 5];
    for profile in std::iter::once("4.6").chain(recorded()) {
        for seed in 0..6 {
            let m = wander(profile, seed);
            let collapsed = m.khugepaged().pages_collapsed;
            let counts = [VmEvent::ThpFaultAlloc, VmEvent::ThpSplitPage, VmEvent::OomKill].map(|e| event(&m, e));
            let all = counts.into_iter().chain([collapsed, m.file_counts().swapped_out]);
            seen.iter_mut().zip(all).for_each(|(seen, count)| *seen += count);
        }
    }
    assert!(seen.iter().all(|count| *count > 0), "huge pages, splits, kills, collapses, swap: {seen:?}");
}

/// Three groups, one below another, with random limits: too little for what is in them.
fn random_groups(random: &mut SplitMix64) -> Vec<GroupEntry> {
    let mut limits = |most: [u32; 4]| {
        let set = |(limit, most): (GroupLimit, u32)| {
            let pages = 600 + u64::from(random.below(most));
            (most > 0 && random.below(3) > 0).then_some((limit, pages))
        };
        GroupLimit::ALL.into_iter().zip(most).filter_map(set).collect::<Vec<_>>()
    };
    let entry = |name: &str, parent, limits| GroupEntry { name: name.into(), parent, limits };
    let root = GroupId::ROOT;
    vec![
        entry("service", root, limits([6000, 4000, 2000, 0])),
        entry("service/part", GroupId::new(1), limits([4000, 2000, 1000, 500])),
        entry("other", root, limits([8000, 0, 2000, 1000])),
    ]
}

#[test]
fn so_it_is_where_they_are_in_groups_with_limits() {
    let (mut seen, mut killed) = ([0; 9], 0);
    for seed in 0..20 {
        let mut random = SplitMix64::new(seed);
        let mut m = crowded("6.12");
        m.make_groups(&random_groups(&mut random)).expect("6.12 has groups");
        let mut p = Prompt::new(m, 1);
        // Those that start the others have no memory, and are killed by nobody.
        let starters: Vec<usize> = (1..4).map(|group| p.add_in(GroupId::new(group), group as usize)).collect();
        for (cpu, starter) in (0..).zip(std::iter::once(0).chain(starters)) {
            let wanderer = Wanderer::new(seed << 8 | cpu, 2, 60);
            p.call(starter, Op::Fork(Box::new(wanderer))).expect("a child");
        }
        for slice in 0..120 {
            let until = p.m.now() + 5 * MS;
            p.m.run(until, None).unwrap_or_else(|e| panic!("seed {seed}, slice {slice}: {e}"));
            p.m.check().unwrap_or_else(|e| panic!("seed {seed}, slice {slice}: {e}"));
        }
        for group in p.m.groups().iter().skip(1) {
            assert!(group.memory.usage <= group.memory.max, "seed {seed}: {group:?}");
            let (events, counts) = (group.events, group.counts);
            let all = [events.max, events.high, events.oom, events.pgsteal_direct, counts.swapped_out];
            let huge =
                [counts.thp_fault_alloc, counts.thp_fault_fallback_charge, counts.thp_split_page, counts.swapped_in];
            seen.iter_mut().zip(all.into_iter().chain(huge)).for_each(|(seen, count)| *seen += count);
            killed += counts.oom_kill;
        }
        assert_eq!(p.m.groups()[0].counts.oom_kill, event(&p.m, VmEvent::OomKill), "the root's, with all below");
    }
    assert!(seen.iter().all(|count| *count > 0) && killed > 0, "{seen:?}, {killed} killed");
}

/// A kernel up to 4.7 retries while a zone may be reclaimable. Once these retries took no time, and
/// the clock stood still.
#[test]
fn time_goes_on_while_a_request_hopes_in_vain() {
    wander("4.6", 49);
}
