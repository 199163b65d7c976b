//! Huge page faults of a process with kcompactd running beside it: two rounds, `thp.txt` and
//! `thp2.txt`.
//!
//! The engine decides the result of each fault, but not when kcompactd runs: that is the
//! scheduler's decision, which the engine does not model. Its share of the CPU is taken from the
//! recording: the time of each fault beyond the fault's own work went to kcompactd. Engine and
//! kernel therefore diverge at some point. The replay reports how far they are the same and holds
//! the totals within [`TOLERANCE`].
//!
//! Without a huge page the process touches small pages instead. Between the rounds it frees all.

use super::events::{self, Recorded};
use crate::difference::{At, Difference};
use crate::error::BadRecording;
use crate::recording::about::Faults;
use crate::recording::{CPU, NODE, Part, Recording, ZONE};
use kontig_mm::kcompactd::Kcompactd;
use kontig_mm::kswapd::Kswapd;
use kontig_mm::types::{PAGEBLOCK_ORDER, PAGEBLOCK_PAGES};
use kontig_mm::{AllocSlow, Daemon, Gfp, Memory, MigrateOutcome, Order, Owner, PageFlags, Pfn, Request, Step, VmEvent};
use kontig_procfs::VmStat;

/// Allowed deviation of the totals from the kernel's, in percent.
pub const TOLERANCE: u64 = 5;

/// Files of the rounds.
const ROUNDS: [&str; 2] = ["thp.txt", "thp2.txt"];
/// µs of the recording's clock, in which an instruction takes a nanosecond. The first small fault
/// in place of a huge one, including kswapd's run in vain: in 7.2-defrag1-thp it took 197 to 251.
const FIRST_SMALL_FAULT: f64 = 230.0;
/// Any further small fault, without clearing its page. Assumed: these were not recorded.
const SMALL_FAULT: f64 = 1.0;
/// Migration of a page by kcompactd, without the copy. By the times of its tracepoints 32 pages
/// took 311 and 76 took 669, which is 9.3 a page; 4.1 of that is the copy.
const MIGRATION: f64 = 5.2;
/// Freeing a page from a per-CPU list: 63,172 pages took about 35,000.
const DRAINED_PAGE: f64 = 0.55;

/// Most pageblocks a step visits; the result does not depend on it.
const BUDGET: u64 = 64;

/// A total on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    pub name: &'static str,
    pub kernel: u64,
    pub engine: u64,
    /// Whether the two must be close.
    pub held: bool,
}

impl Figure {
    /// Whether the two are within [`TOLERANCE`] of each other.
    pub fn is_close(&self) -> bool {
        100 * self.kernel.abs_diff(self.engine) <= TOLERANCE * self.kernel
    }
}

/// Closeness of a replay to its recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closeness {
    pub faults: u64,
    /// Leading faults that got the same block.
    pub faults_same: u64,
    pub events: u64,
    /// Leading tracepoints that are the same.
    pub events_same: u64,
    pub figures: Vec<Figure>,
}

struct Fault {
    pfn: u32,
    huge: bool,
    micros: f64,
}

pub(super) fn replay(rec: &Recording) -> Result<Result<Closeness, Box<Difference>>, BadRecording> {
    let mut world = World::new(rec.machine(Part::Faults)?, rec.about.faults);
    let (mut faults, mut same, mut all_same, mut huge) = (0, 0, true, [0, 0]);
    for round in ROUNDS.into_iter().filter(|r| rec.has(r)) {
        let faults_of_round = recorded_faults(rec, round)?;
        // A huge fault by itself: the minimum, nearly all of it clearing the page.
        let alone = faults_of_round.iter().filter(|f| f.huge).map(|f| f.micros).fold(f64::INFINITY, f64::min);
        world.huge_fault = if alone.is_finite() { alone } else { world.huge_fault };
        for fault in faults_of_round {
            let (pfn, is_huge) = match world.fault(&fault) {
                Some(got) => got,
                None => return Ok(Err(no_page(faults))),
            };
            all_same &= pfn.get() == fault.pfn && is_huge == fault.huge;
            same += u64::from(all_same);
            huge = [huge[0] + u64::from(fault.huge), huge[1] + u64::from(is_huge)];
            faults += 1;
        }
        world.end_round();
    }
    let engine_events = world.memory.trace().take();
    let (events, events_same) = match Recorded::open(rec, Part::Faults)? {
        Some(recorded) => {
            let all = recorded.lines().count();
            let first = recorded.first_difference(&world.memory, &engine_events);
            (all as u64, first.map_or(all, |d| d.at) as u64)
        }
        None => (0, 0),
    };
    let after = if rec.has("f2.vmstat") { "f2.vmstat" } else { "f1.vmstat" };
    let (before, after) = (rec.counters("f0.vmstat")?, rec.counters(after)?);
    let grown = |e: VmEvent| {
        let read = |c: &VmStat| c.get(e.name()).unwrap_or(0);
        read(&after).saturating_sub(read(&before))
    };
    let total = |name, e: VmEvent| Figure { name, kernel: grown(e), engine: world.memory.vmstat().get(e), held: true };
    let figures = vec![
        Figure { name: "huge pages", kernel: huge[0], engine: huge[1], held: true },
        total("pages migrated", VmEvent::PgmigrateSuccess),
        total("pages isolated", VmEvent::CompactIsolated),
        total("frames scanned for pages to move", VmEvent::CompactMigrateScanned),
        total("kswapd runs", VmEvent::Pageoutrun),
        // Few: the scheduler decides whether kcompactd has just stopped when the next fault wakes
        // it.
        Figure { held: false, ..total("kcompactd runs", VmEvent::CompactDaemonWake) },
    ];
    if let Some(far) = figures.iter().find(|f| f.held && !f.is_close()) {
        return Ok(Err(Box::new(Difference {
            at: At::Counter(far.name.into()),
            asked: None,
            kernel: far.kernel.to_string(),
            engine: format!("{}, which is more than {TOLERANCE} % off", far.engine),
            around: Vec::new(),
        })));
    }
    Ok(Ok(Closeness { faults, faults_same: same, events, events_same, figures }))
}

fn no_page(fault: u64) -> Box<Difference> {
    let at = At::Operation(usize::try_from(fault).unwrap_or(usize::MAX));
    let (kernel, engine) = ("a page".into(), "none, not even a small one".into());
    Box::new(Difference { at, asked: Some("a page fault".into()), kernel, engine, around: Vec::new() })
}

/// Parses a round: the fault's number, its pfn, whether it is huge, and its time.
fn recorded_faults(rec: &Recording, round: &str) -> Result<Vec<Fault>, BadRecording> {
    let fault = |(i, line): (usize, &str)| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let parsed = match words.as_slice() {
            [_, pfn, huge, micros] => (|| {
                let pfn = u32::from_str_radix(pfn, 16).ok()?;
                Some(Fault { pfn, huge: *huge == "1", micros: micros.parse().ok()? })
            })(),
            _ => None,
        };
        let reason = || format!("'{line}' is no fault: a number, a pfn, 0 or 1, and µs");
        parsed.ok_or_else(|| BadRecording::line(rec.path(round), i + 1, reason()))
    };
    rec.text(round)?.lines().enumerate().map(fault).collect()
}

/// Pages of the process; compaction moves the small ones.
#[derive(Default)]
struct Process {
    held: Vec<(Pfn, Order)>,
    migrated: u64,
}

impl Owner for Process {
    fn may_isolate(&mut self, _: Pfn) -> bool {
        true
    }
    fn migrate(&mut self, _: Pfn, to: Pfn, index: u32) -> MigrateOutcome {
        self.migrated += 1;
        // Pages from before the first fault have no owner: 0.
        if let Some((pfn, _)) = (index as usize).checked_sub(1).and_then(|i| self.held.get_mut(i)) {
            *pfn = to;
        }
        MigrateOutcome::Moved
    }
}

/// The node, the process and the daemons, which share one CPU.
struct World {
    memory: Memory,
    process: Process,
    kswapd: Kswapd,
    kcompactd: Kcompactd,
    kcompactd_runs: bool,
    made: Faults,
    /// µs a huge fault takes by itself.
    huge_fault: f64,
    /// µs kcompactd may still run.
    credit: f64,
}

impl World {
    fn new(mut memory: Memory, made: Faults) -> World {
        memory.trace().listen(events::LISTEN);
        World {
            memory,
            process: Process::default(),
            kswapd: Kswapd::new(NODE, CPU),
            kcompactd: Kcompactd::new(NODE, CPU),
            kcompactd_runs: false,
            made,
            huge_fault: 0.0,
            credit: 0.0,
        }
    }

    /// Replays a fault and kcompactd's share of its time. Returns the first page, and whether it is
    /// huge.
    fn fault(&mut self, recorded: &Fault) -> Option<(Pfn, bool)> {
        // defrag=defer: the fault wakes kswapd and does not wait; the process is bound to the node.
        let light = Gfp::TRANSHUGE_LIGHT.with(Gfp::KSWAPD_RECLAIM).with(Gfp::THISNODE).with(Gfp::NORETRY);
        let got = match self.allocate(light, PAGEBLOCK_ORDER) {
            Some(pfn) => (pfn, true),
            None => {
                let first = self.allocate(Gfp::HIGHUSER_MOVABLE, Order::ZERO)?;
                for _ in 1..self.made.pages {
                    self.allocate(Gfp::HIGHUSER_MOVABLE, Order::ZERO)?;
                }
                (first, false)
            }
        };
        self.credit += match (got.1, recorded.huge) {
            (true, true) => (recorded.micros - self.huge_fault).max(0.0),
            // The kernel's fault was of the other kind: half of its time goes to kcompactd.
            (true, false) => self.huge_fault,
            (false, _) => {
                let others = f64::from(self.made.pages - 1);
                (recorded.micros - FIRST_SMALL_FAULT).max(0.0) + others * (SMALL_FAULT + self.page())
            }
        };
        self.credit += self.made.pause_us;
        self.run_kcompactd();
        Some(got)
    }

    /// µs to clear or to copy one page.
    fn page(&self) -> f64 {
        self.huge_fault / f64::from(PAGEBLOCK_PAGES)
    }

    /// Allocates for the process. kswapd runs after the request, which has the only CPU.
    fn allocate(&mut self, gfp: Gfp, order: Order) -> Option<Pfn> {
        let m = &mut self.memory;
        let request = Request::new(CPU, NODE, gfp, order);
        let mut got = m.alloc(request).ok();
        if got.is_none() {
            got = AllocSlow::new(m, request).finish(m, &mut self.process).ok();
            self.run_woken();
        }
        let pfn = got?;
        self.process.held.push((pfn, order));
        self.memory.lru_add(CPU, pfn, order, PageFlags::ANON);
        self.memory.set_owner(pfn, order, self.process.held.len() as u32);
        Some(pfn)
    }

    fn run_woken(&mut self) {
        let mut kswapd_woken = false;
        for woken in self.memory.take_wakes() {
            match woken {
                Daemon::Kswapd(_) => kswapd_woken = true,
                Daemon::Kcompactd(_) => self.kcompactd_runs = true,
            }
        }
        if kswapd_woken {
            while self.kswapd.step(&mut self.memory, &mut self.process, false) == Step::Working {}
            self.kcompactd_runs |= self.memory.take_wakes().any(|d| matches!(d, Daemon::Kcompactd(_)));
        }
    }

    /// Runs kcompactd while it has credit; unused credit is lost.
    fn run_kcompactd(&mut self) {
        while self.kcompactd_runs && self.credit > 0.0 {
            let on_lists = |m: &Memory| m.zone(ZONE).pcp(CPU).count;
            let (migrated, listed) = (self.process.migrated, on_lists(&self.memory));
            let step = self.kcompactd.step(&mut self.memory, &mut self.process, BUDGET, false);
            self.kcompactd_runs = step == Step::Working;
            self.credit -= (MIGRATION + self.page()) * (self.process.migrated - migrated) as f64;
            self.credit -= DRAINED_PAGE * f64::from(listed.saturating_sub(on_lists(&self.memory)));
        }
        if !self.kcompactd_runs {
            self.credit = 0.0;
        }
    }

    /// Frees all of the process's memory, once kcompactd is done.
    fn end_round(&mut self) {
        self.credit = f64::INFINITY;
        self.run_kcompactd();
        for (pfn, order) in std::mem::take(&mut self.process.held) {
            self.memory.free(CPU, pfn, order);
        }
    }
}
