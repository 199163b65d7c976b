//! Compares the node's LRU state with the kernel's: every list page by page, batches, shadows,
//! costs and counters with their per-CPU deltas.

use super::counted::{Counted, Counts};
use super::host::{Entry, Mapped, Of};
use super::{Runner, generations, groups};
use crate::difference::{At, Difference, Section};
use crate::error::BadRecording;
use crate::recording::lru::{BATCHES, Counter, LISTS, LruPage, LruState, OwnedBy};
use crate::recording::{NODE, Recording, snapshot_file};
use crate::replay::{Compared, outcome};
use crate::trace::lru::ProcessPage;
use kontig_mm::snapshot::ZoneSnapshot;
use kontig_mm::state::{BatchKind, CostsRead, Gen, NumaCounts};
use kontig_mm::{CpuId, LruList, LruvecId, Memory, NodeId, NodeStat, PageFlags, Pfn, VmEvent};

/// Batches in the recording's order.
const KINDS: [BatchKind; BATCHES.len()] = [
    BatchKind::Add,
    BatchKind::DeactivateFile,
    BatchKind::Deactivate,
    BatchKind::Lazyfree,
    BatchKind::Activate,
    BatchKind::Rotate,
];
/// The kernel's highest zone index if nothing is asked of kswapd: MAX_NR_ZONES.
const ZONES_OF_ALL: u64 = 5;
const LINES_SHOWN: usize = 6;

/// Name of the final state.
pub(super) const LAST: &str = "t1";

/// Events that only the trace causes. Their growth since the start is compared.
const EVENTS: [VmEvent; 21] = [
    VmEvent::PgscanKswapd,
    VmEvent::PgscanDirect,
    VmEvent::PgscanAnon,
    VmEvent::PgscanFile,
    VmEvent::PgstealKswapd,
    VmEvent::PgstealDirect,
    VmEvent::PgstealAnon,
    VmEvent::PgstealFile,
    VmEvent::PgscanSkipDma32,
    VmEvent::PgscanSkipNormal,
    VmEvent::Pgrefill,
    VmEvent::Pgactivate,
    VmEvent::Pgdeactivate,
    VmEvent::Pgrotated,
    VmEvent::PgscanDirectThrottle,
    VmEvent::ZoneReclaimFailed,
    VmEvent::AllocstallNormal,
    VmEvent::AllocstallMovable,
    VmEvent::Pageoutrun,
    VmEvent::KswapdLowWmarkHitQuickly,
    VmEvent::KswapdHighWmarkHitQuickly,
];

/// Sets up the first state: the nodes' lists are empty, but reclaim has counters and costs already.
pub(super) fn begin(rec: &Recording, m: &mut Memory) -> Result<(), BadRecording> {
    rec.nodes().try_for_each(|node| begin_node(rec, m, node))
}

fn begin_node(rec: &Recording, m: &mut Memory, node: NodeId) -> Result<(), BadRecording> {
    let start = rec.lru_state("t0", node)?;
    let pages = start.lists.iter().chain(start.batches.iter().flatten()).map(Vec::len).sum::<usize>();
    if pages > 0 {
        let reason = format!("{pages} pages are on the lists at the start, and nothing says whose they are");
        return Err(BadRecording::whole(rec.path("t0.lru"), reason));
    }
    for (n, what) in [(start.shadows.len(), "shadows"), (start.swapped.len(), "pages in swap")] {
        if n > 0 {
            let reason = format!(
                "has {n} {what} at the start, which a replay begins without: record it again from an empty node, with \
                 'kontig oracle record'"
            );
            return Err(BadRecording::whole(rec.path("t0.lru"), reason));
        }
    }
    let number = |name: &str| {
        let negative = |_| BadRecording::whole(rec.path("t0.lru"), format!("{name} is negative"));
        u64::try_from(start.number(name)).map_err(negative)
    };
    let vec = m.lruvec_mut(LruvecId::new(node.index()));
    vec.cost = [number("anon_cost")?, number("file_cost")?];
    vec.costs_read = [
        CostsRead { rotated: number("anon_rotated")?, io: number("anon_io")? },
        CostsRead { rotated: number("file_rotated")?, io: number("file_io")? },
    ];
    vec.nonresident_age = number("nonresident_age")?;
    vec.refaults = [number("refaults_anon")?, number("refaults_file")?];
    if rec.about.lru_gen > 0 {
        generations::begin(rec, m, &start)?;
    }
    Ok(())
}

/// The counters of the host's side, as they are in the first state.
pub(super) fn counted(rec: &Recording, m: &Memory) -> Result<Counted, BadRecording> {
    let mut counted = Counted::new(m);
    for node in rec.nodes() {
        counted.begin(node, &rec.lru_state("t0", node)?);
    }
    Ok(counted)
}

/// Compares what lies in the recording's first state with what boot leaves by the rules: drift
/// marks and thresholds. Nothing is said of marks that were changed after boot.
pub(super) fn unlike_boot(rec: &Recording, m: &Memory) -> Option<Box<Difference>> {
    if ["vm.min_free_kbytes", "vm.watermark_scale_factor"].iter().any(|name| rec.about.sysctls.contains_key(*name)) {
        return None;
    }
    let recorded = rec.nodes().flat_map(|node| &m.nodes()[node.index()].zones);
    recorded.map(|z| m.zone(*z)).find_map(|zone| {
        let (kernel, engine) = ((zone.percpu_drift_mark, zone.stat_threshold), zone.drift_at_boot(m.profile()));
        let words = |(mark, threshold)| format!("mark {mark} threshold {threshold}");
        let what = format!("{} DRIFT", zone.kind.name());
        (kernel != engine).then(|| differs("t0", &what, words(kernel), words(engine)))
    })
}

/// Compares with the recorded state of this name.
pub(super) fn compare(
    rec: &Recording,
    name: &str,
    runner: &Runner,
    compared: &mut Compared,
) -> Result<Result<(), Box<Difference>>, BadRecording> {
    let wants = rec.nodes().map(|node| rec.lru_state(name, node)).collect::<Result<Vec<_>, _>>()?;
    let starts = rec.nodes().map(|node| rec.lru_state("t0", node)).collect::<Result<Vec<_>, _>>()?;
    for ((node, want), start) in rec.nodes().zip(&wants).zip(&starts) {
        if let Err(d) = compare_node(rec, name, node, (want, start), runner, compared)? {
            return Ok(Err(d));
        }
    }
    for (what, kernel, engine) in events(&wants, &starts, &runner.memory) {
        if kernel != engine {
            return Ok(Err(differs(name, &what, kernel, engine)));
        }
        compared.counters += 1;
    }
    if let Err(d) = swapped(name, &wants, runner) {
        return Ok(Err(d));
    }
    compared.lru_states += 1;
    Ok(Ok(()))
}

/// Compares a node with its part of the recorded state.
fn compare_node(
    rec: &Recording,
    state: &str,
    node: NodeId,
    (want, start): (&LruState, &LruState),
    runner: &Runner,
    compared: &mut Compared,
) -> Result<Result<(), Box<Difference>>, BadRecording> {
    let memory = &runner.memory;
    let vec = memory.lru().of_node(node);
    let at = place(state, node);
    let name = at.as_str();
    let lists = LISTS.iter().zip(&want.lists).zip(LruList::EVICTABLE);
    for ((list, want), of) in lists {
        let got: Vec<Pfn> = vec.list(of).collect();
        if let Some(d) = pages(name, list, want, &got, runner) {
            return Ok(Err(d));
        }
        compared.lru_pages += want.len() as u64;
    }
    let lists = |what: &str, want: &[LruPage], got: &[Pfn]| pages(name, what, want, got, runner);
    for (list, want, got) in groups::lists(want, memory) {
        if let Some(d) = lists(&list, want, &got) {
            return Ok(Err(d));
        }
        compared.lru_pages += want.len() as u64;
    }
    match generations::compare(name, want, memory, lists) {
        Ok((numbers, listed)) => {
            compared.counters += numbers;
            compared.lru_pages += listed;
        }
        Err(d) => return Ok(Err(d)),
    }
    for (cpu, of_cpu) in want.batches.iter().enumerate() {
        for ((batch, want), kind) in BATCHES.iter().zip(of_cpu).zip(KINDS) {
            let batch = format!("{batch} of CPU {cpu}");
            if let Some(d) = pages(name, &batch, want, memory.lru().batch(CpuId::new(cpu), kind), runner) {
                return Ok(Err(d));
            }
        }
    }
    let of_node = numbers(node, want, start, memory);
    let mut of_host = counters(node, want, &runner.host.counted);
    // In generations the replay keeps pages in the swap cache that the kernel has taken out of it.
    if memory.lru().has_generations() {
        of_host.retain(|(what, ..)| !what.starts_with(Counts::Cached.name()));
    }
    for (what, kernel, engine) in of_node.into_iter().chain(of_host).chain(groups::numbers(want, memory)) {
        if kernel != engine {
            return Ok(Err(differs(name, &what, kernel, engine)));
        }
        compared.counters += 1;
    }
    if let Some(d) = zonelist(name, node, want, memory) {
        return Ok(Err(d));
    }
    if let Err(d) = shadows(name, node, want, runner) {
        return Ok(Err(d));
    }
    for &zone in &memory.nodes()[node.index()].zones {
        let kind = memory.zone(zone).kind;
        let want = rec.snapshot(&snapshot_file(state, node, kind))?.to_string();
        let at = |line| At::State(format!("{name}: {}, {line}", kind.name()));
        if let Some(d) = outcome::states(&want, &ZoneSnapshot::of(memory, zone).to_string(), at) {
            return Ok(Err(d));
        }
        if state == LAST {
            compared.add(outcome::final_state(&want));
        }
    }
    Ok(Ok(()))
}

/// Name of a node's part of a state, for messages.
fn place(state: &str, node: NodeId) -> String {
    if node == NODE { state.into() } else { format!("{state} of node {}", node.index()) }
}

fn differs(state: &str, what: &str, kernel: String, engine: String) -> Box<Difference> {
    Box::new(Difference { at: At::State(format!("{state}: {what}")), asked: None, kernel, engine, around: Vec::new() })
}

/// Describes a page in a form both sides share.
fn kernel_page(page: &LruPage) -> String {
    let f = page.flags;
    let flags = [
        (f.active(), 'A'),
        (f.referenced(), 'R'),
        (f.workingset(), 'W'),
        (f.swapbacked(), 'S'),
        (f.dirty(), 'D'),
        (f.writeback(), 'B'),
        (f.reclaim(), 'C'),
        (f.mapped(), 'M'),
    ];
    let letters: String = flags.iter().filter(|(set, _)| *set).map(|(_, c)| *c).collect();
    let owner = match page.owner {
        OwnedBy::File(at) => at.to_string(),
        OwnedBy::Process(at) => at.to_string(),
        OwnedBy::Other => "?".into(),
    };
    let used = generations::shown(page.generation.map(usize::from), page.refs);
    format!("{}+{} {letters} {owner}{used}", page.pfn, page.order.get())
}

fn engine_page(pfn: Pfn, runner: &Runner) -> String {
    let order = runner.memory.frames().tag(pfn).order();
    let kept = runner.host.kept(runner.memory.frames().owner(pfn, order));
    let f = runner.memory.lru().flags(pfn);
    let flags = [
        (f.has(PageFlags::ACTIVE), 'A'),
        (f.has(PageFlags::REFERENCED), 'R'),
        (f.has(PageFlags::WORKINGSET), 'W'),
        (!f.has(PageFlags::FILE), 'S'),
        (kept.dirty, 'D'),
        (kept.writeback, 'B'),
        (f.has(PageFlags::RECLAIM), 'C'),
        (kept.mapped, 'M'),
    ];
    let letters: String = flags.iter().filter(|(set, _)| *set).map(|(_, c)| *c).collect();
    let owner = match kept.of {
        Of::File(at) => at.to_string(),
        Of::Process(at) => at.to_string(),
        Of::Block(_) | Of::Nobody => "?".into(),
    };
    let used = runner.memory.lru().used(pfn);
    let used = generations::shown(used.generation().map(Gen::index), used.refs());
    format!("{pfn}+{} {letters} {owner}{used}", order.get())
}

/// The first page of a list or batch that differs.
fn pages(state: &str, list: &str, want: &[LruPage], got: &[Pfn], runner: &Runner) -> Option<Box<Difference>> {
    const NONE: &str = "no more pages";
    let all = want.len().max(got.len());
    for i in 0..all {
        let kernel = want.get(i).map_or(NONE.into(), kernel_page);
        let engine = got.get(i).map_or(NONE.into(), |pfn| engine_page(*pfn, runner));
        if kernel != engine {
            let mut d = differs(state, &format!("{list}, page {i}"), kernel, engine);
            let next = (i..all.min(i + LINES_SHOWN)).map(|i| {
                let kernel = want.get(i).map_or(NONE.into(), kernel_page);
                let engine = got.get(i).map_or(NONE.into(), |pfn| engine_page(*pfn, runner));
                format!("{kernel:32} {engine}")
            });
            d.around.push(Section::new("from there on, the kernel's and the engine's", next.collect()));
            d.around.push(Section::new("how many", vec![format!("{} and {}", want.len(), got.len())]));
            return Some(d);
        }
    }
    None
}

/// All numbers of a state: name, kernel's and engine's.
fn numbers(node: NodeId, want: &LruState, start: &LruState, m: &Memory) -> Vec<(String, String, String)> {
    let vec = m.lru().of_node(node);
    let node = &m.nodes()[node.index()];
    let mut all = Vec::new();
    let mut add = |what: String, kernel: i64, engine: i64| all.push((what, kernel.to_string(), engine.to_string()));
    let cpus = || (0..m.nr_cpus()).map(CpuId::new);
    for (name, engine) in [
        ("anon_cost", vec.cost[0]),
        ("file_cost", vec.cost[1]),
        ("anon_rotated", vec.costs_read[0].rotated),
        ("anon_io", vec.costs_read[0].io),
        ("file_rotated", vec.costs_read[1].rotated),
        ("file_io", vec.costs_read[1].io),
        ("nonresident_age", vec.nonresident_age),
        ("refaults_anon", vec.refaults[0]),
        ("refaults_file", vec.refaults[1]),
        ("kswapd_failures", u64::from(node.kswapd.failures)),
        ("kswapd_order", node.kswapd.asked().0.get().into()),
        ("kswapd_highest_zoneidx", node.kswapd.asked().1.map_or(ZONES_OF_ALL, |zone| zone.index() as u64)),
    ] {
        add(name.into(), want.number(name), engine as i64);
    }
    let counter = |of: &str, name: String| want.counters.get(&(of.into(), name)).copied().unwrap_or_default();
    let part = |of: &Counter, cpu: CpuId| of.unfolded.get(cpu.index()).copied().unwrap_or(0);
    for zone in node.zones.iter().map(|z| m.zone(*z)) {
        let threshold = want.thresholds.get(zone.kind.name()).copied().unwrap_or_default();
        add(format!("threshold of {}", zone.kind.name()), threshold, zone.stat_threshold);
    }
    for list in LruList::EVICTABLE {
        let kernel = counter("node", format!("nr_{}", list.name()));
        add(format!("nr_{}", list.name()), kernel.counted, vec.size(list) as i64);
        for cpu in cpus() {
            let what = format!("nr_{}, unfolded by CPU {}", list.name(), cpu.index());
            add(what, part(&kernel, cpu), vec.unfolded(list.index(), cpu));
        }
        for zone in node.zones.iter().map(|z| m.zone(*z)) {
            let kernel = counter(zone.kind.name(), format!("nr_zone_{}", list.name()));
            let what = format!("nr_zone_{} of {}", list.name(), zone.kind.name());
            for cpu in cpus() {
                let what = format!("{what}, unfolded by CPU {}", cpu.index());
                add(what, part(&kernel, cpu), zone.unfolded(list, cpu));
            }
            add(what, kernel.counted, zone.nr_listed_as_read(list) as i64);
        }
    }
    for ((zone, name), blocks) in &want.placed {
        let before = start.placed.get(&(zone.clone(), name.clone())).copied().unwrap_or(0);
        let of = node.zones.iter().map(|z| m.zone(*z)).find(|of| of.kind.name() == zone);
        let engine = of.and_then(|of| placed(of.numa(), name)).map_or(-1, |blocks| blocks as i64);
        add(format!("{name} of {zone}"), blocks.saturating_sub(before) as i64, engine);
    }
    for stat in NodeStat::ALL {
        let kernel = counter("node", stat.name().into());
        add(stat.name().into(), kernel.counted, vec.stat(stat) as i64);
        for cpu in cpus() {
            let what = format!("{}, unfolded by CPU {}", stat.name(), cpu.index());
            add(what, part(&kernel, cpu), vec.unfolded(stat as usize, cpu));
        }
    }
    all
}

/// The counters of the host's side: name, kernel's and engine's.
fn counters(node: NodeId, want: &LruState, counted: &Counted) -> Vec<(String, String, String)> {
    let mut all = Vec::new();
    for what in Counts::ALL {
        let kernel = want.counters.get(&("node".into(), what.name().into())).cloned().unwrap_or_default();
        let (engine, parts) = counted.of(what, node);
        all.push((what.name().into(), kernel.counted.to_string(), engine.to_string()));
        for (cpu, part) in parts.enumerate() {
            let unfolded = kernel.unfolded.get(cpu).copied().unwrap_or(0);
            all.push((format!("{}, unfolded by CPU {cpu}", what.name()), unfolded.to_string(), part.to_string()));
        }
    }
    all
}

/// Events since the first state on all nodes: name, kernel's and engine's count. Some kernels count
/// them node by node.
fn events(wants: &[LruState], starts: &[LruState], m: &Memory) -> Vec<(String, String, String)> {
    let event = |event: VmEvent| {
        let of_node = |state: &LruState| state.counters.get(&("node".into(), event.name().into())).map(Counter::exact);
        let of = |states: &[LruState]| {
            let counted = states[0].events.get(event.name()).and_then(|n| i64::try_from(*n).ok());
            counted.unwrap_or_else(|| states.iter().filter_map(of_node).sum())
        };
        (event.name().into(), (of(wants) - of(starts)).to_string(), m.vmstat().get(event).to_string())
    };
    EVENTS.map(event).to_vec()
}

/// A counter of the blocks that a zone gave, by the kernel's name.
fn placed(given: NumaCounts, name: &str) -> Option<u64> {
    match name {
        "numa_hit" => Some(given.hit()),
        "numa_miss" => Some(given.miss),
        "numa_foreign" => Some(given.foreign),
        "numa_interleave" => Some(given.interleave),
        "numa_local" => Some(given.local()),
        "numa_other" => Some(given.other),
        _ => None,
    }
}

/// The node's zonelist where the recording tells it.
fn zonelist(name: &str, node: NodeId, want: &LruState, m: &Memory) -> Option<Box<Difference>> {
    let words = |zones: &mut dyn Iterator<Item = (NodeId, &str)>| {
        zones.map(|(node, zone)| format!("{}.{zone}", node.index())).collect::<Vec<_>>().join(" ")
    };
    let kernel = words(&mut want.zonelist.iter().map(|(node, zone)| (*node, zone.as_str())));
    let engine = words(&mut m.zonelist(node).map(|zone| (zone.node, zone.kind.name())));
    (!want.zonelist.is_empty() && kernel != engine).then(|| differs(name, "zonelist", kernel, engine))
}

/// Compares the process's pages that are only in swap, by the nodes' parts of a state.
fn swapped(state: &str, wants: &[LruState], runner: &Runner) -> Result<(), Box<Difference>> {
    let away = |(page, mapped): (&ProcessPage, &Mapped)| match mapped {
        Mapped::Swapped { cached: None, .. } => Some(*page),
        Mapped::Swapped { .. } | Mapped::Page(_) | Mapped::Zeroes => None,
    };
    // A page may be in the swap cache, on another node's lists.
    let everywhere = |page: &ProcessPage| wants.iter().all(|want| want.swapped.contains_key(page));
    let mut kernel = wants[0].swapped.keys().copied().filter(everywhere);
    let mut engine = runner.host.process.iter().filter_map(away);
    loop {
        let (k, e) = (kernel.next(), engine.next());
        if k != e {
            let name = |page: Option<ProcessPage>| page.map_or("no more pages".into(), |page| page.to_string());
            return Err(differs(state, "pages in swap", name(k), name(e)));
        }
        if k.is_none() {
            return Ok(());
        }
    }
}

fn shadows(state: &str, node: NodeId, want: &LruState, runner: &Runner) -> Result<(), Box<Difference>> {
    let kernel: Vec<String> =
        want.shadows.iter().map(|s| format!("{} {:x} {} {}", s.page, s.age, u8::from(s.workingset), s.group)).collect();
    let got = runner.host.files.iter().filter_map(|(page, entry)| match entry {
        Entry::Shadow(s) if runner.memory.lru().vecs()[s.lruvec.index()].node == node => {
            let group = groups::of_shadow(&runner.memory, s);
            Some(format!("{page} {:x} {} {group}", s.eviction, u8::from(s.workingset)))
        }
        Entry::Shadow(_) | Entry::Page(_) => None,
    });
    let engine: Vec<String> = got.collect();
    for i in 0..kernel.len().max(engine.len()) {
        if kernel.get(i) != engine.get(i) {
            let none = || "no more shadows".to_string();
            let (kernel, engine) = (kernel.get(i).cloned(), engine.get(i).cloned());
            let what = format!("shadow {i}");
            return Err(differs(state, &what, kernel.unwrap_or_else(none), engine.unwrap_or_else(none)));
        }
    }
    Ok(())
}
