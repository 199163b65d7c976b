//! A zone's complete allocator state as text, as in recordings of the kernel: parsed and printed.
//!
//! The format is line-oriented (`ZONE`, `WM`, `COMPACT`, `PCP`, `PL`, `FL`, `PB`, `SKIP`), pfns in
//! hex relative to the zone's start (in `COMPACT` absolute), lists head to tail;
//! `oracle/golden/README.md` describes all of it. A second text has a character for the use of each
//! allocated frame.

use crate::boot::{MachineSpec, ZoneSpec};
use crate::compact::defer::COMPACT_MAX_DEFER_SHIFT;
use crate::pcp;
use crate::rules::{FreeLists, PcpLists, Positions, Profile};
use crate::state::pcp_lists;
use crate::state::{AutoTuning, FrameKind, Memory, NR_LISTS, PageFlags, Watermarks, ZoneCompaction};
use crate::types::{CpuId, MigrateType, NodeId, Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn, ZoneId, ZoneType};
use crate::watermark::STAT_THRESHOLD_MAX;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

/// The moving sizes of one CPU's lists, which differ between kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Tuning {
    /// 5.14 to 6.6; always 0 before.
    FreeFactor(u8),
    /// Auto-tuned lists, from 6.7 on.
    Auto(AutoTuning),
}

/// One CPU's lists in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PcpSnapshot {
    count: u32,
    batch: u32,
    high: u32,
    tuning: Tuning,
    diff: i64,
    expire: u8,
    lists: Vec<Vec<u32>>,
}

/// Where the CPUs' parts of counters matter, on machines with several CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Drift {
    /// Below it free pages are counted with the CPUs' parts; 0 for never.
    mark: u64,
    /// A CPU's part is folded in above this.
    threshold: i64,
    cpus: usize,
}

/// Zone flag of a snapshot: kswapd must still be woken for a boost.
const BOOSTED_WATERMARK: u32 = 1;
/// Zone flag: kswapd is reclaiming the zone.
const RECLAIM_ACTIVE: u32 = 2;
/// Zone flag: a check found the zone below its high mark.
const BELOW_HIGH: u32 = 4;
/// Flag of a CPU's lists in a snapshot: the last block freed had an order from 1 to 3.
const PREV_FREE_HIGH_ORDER: u32 = 1;
/// Flag of a CPU's lists: a batch is kept before such blocks are given back.
const FREE_HIGH_BATCH: u32 = 2;

/// Compaction's memory of a zone in a snapshot; pfns are absolute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct CompactSnapshot {
    free_pfn: u32,
    migrate_pfn: [u32; 2],
    init_migrate: u32,
    init_free: u32,
    considered: u32,
    defer_shift: u8,
    order_failed: u8,
}

/// A zone of a machine that is built from snapshots.
pub struct RecordedZone<'a> {
    /// Its node, from number 1 on.
    pub node: NodeId,
    /// The place in the node's zone table.
    pub kind: ZoneType,
    /// The allocator state of the zone.
    pub zone: &'a ZoneSnapshot,
    /// The use of each allocated frame, a character each: `l` on the LRU, `m` movable by its owner,
    /// `r` reserved, `c` and a `t` for each tail a compound page of the kernel, anything else
    /// kernel memory.
    pub pages: Option<&'a str>,
}

/// A machine whose node 0 has one small zone and all CPUs, and whose other nodes have these zones,
/// by node, then lowest first.
///
/// # Errors
/// If the zones are impossible, or a text is not about a zone of its size.
pub fn machine(zones: &[RecordedZone], profile: Profile) -> Result<Memory, String> {
    let other = ZoneSpec { node: 0, kind: ZoneType::Dma32, start: 0, end: 512, present: 512, managed: 0 };
    let mut specs = vec![other];
    for RecordedZone { node, kind, zone, pages } in zones {
        zone.suits(&profile)?;
        if let Some(pages) = pages
            && pages.trim_ascii_end().len() != zone.spanned as usize
        {
            return Err(format!("{} frames, but {} characters", zone.spanned, pages.trim_ascii_end().len()));
        }
        specs.push(zone.spec(*node, *kind));
    }
    let cpus = zones.first().map_or(0, |state| state.zone.pcps.len());
    let spec = MachineSpec { cpus, zones: specs, thp: false, lru: false };
    let mut m = Memory::empty(&spec, profile)?;
    m.put_cpus_on(NodeId::new(0));
    m.reserve(Pfn::new(0)..Pfn::new(PAGEBLOCK_PAGES));
    for (i, RecordedZone { zone, pages, .. }) in zones.iter().enumerate() {
        zone.restore(&mut m, ZoneId::new(1 + i), pages.map(str::as_bytes));
    }
    Ok(m)
}

/// The state of one zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneSnapshot {
    start: u32,
    spanned: u32,
    present: u64,
    managed: u64,
    marks: Watermarks,
    boost: u64,
    highatomic: u64,
    /// [`BOOSTED_WATERMARK`] and the other flags of a zone.
    flags: u32,
    compact: CompactSnapshot,
    /// Free pages, with the CPUs' unfolded parts.
    nr_free_pages: i64,
    /// The zone's own counter, without those parts.
    nr_free_folded: i64,
    /// Pages the zone may still give in its turn, in kernels whose zones take turns; not printed.
    share: i64,
    /// None on machines with one CPU.
    drift: Option<Drift>,
    pcps: Vec<PcpSnapshot>,
    free: Vec<[Vec<u32>; MigrateType::COUNT]>,
    types: Vec<MigrateType>,
    skip: Vec<bool>,
}

impl ZoneSnapshot {
    /// Parses the text of a snapshot.
    ///
    /// # Errors
    /// The line number and the reason.
    pub fn parse(text: &str) -> Result<ZoneSnapshot, String> {
        let mut s = ZoneSnapshot {
            start: 0,
            spanned: 0,
            present: 0,
            managed: 0,
            marks: Watermarks::default(),
            boost: 0,
            highatomic: 0,
            compact: CompactSnapshot::default(),
            nr_free_pages: 0,
            nr_free_folded: 0,
            share: 0,
            flags: 0,
            drift: None,
            pcps: Vec::new(),
            free: vec![Default::default(); crate::types::NR_ORDERS],
            types: Vec::new(),
            skip: Vec::new(),
        };
        let mut complete = false;
        for (i, line) in text.lines().enumerate() {
            complete |= s.line(line).map_err(|e| format!("line {}: {e}", i + 1))?;
        }
        if !complete {
            return Err("truncated: no END line".into());
        }
        s.validate()
    }

    /// Parses one line; true for the last one.
    fn line(&mut self, line: &str) -> Result<bool, String> {
        let mut words = line.split_ascii_whitespace();
        let Some(kind) = words.next() else {
            return Ok(false);
        };
        let words: Vec<&str> = words.collect();
        match kind {
            "ZONE" => {
                self.start = hex(named(&words, "start")?)?;
                self.spanned = number(named(&words, "spanned")?)?;
                self.present = number(named(&words, "present")?)?;
                self.managed = number(named(&words, "managed")?)?;
            }
            "WM" => {
                let get = |n| named(&words, n).and_then(number);
                let (low, high): (u64, u64) = (get("low")?, get("high")?);
                // Newer recordings omit the last mark, which is as far above high as high is above
                // low.
                let promo = if words.contains(&"promo") { get("promo")? } else { high + high.saturating_sub(low) };
                self.marks = Watermarks { min: get("min")?, low, high, promo };
                self.flags = number(named(&words, "flags").unwrap_or("0"))?;
                self.boost = get("boost")?;
                self.highatomic = get("highatomic")?;
            }
            "COMPACT" => {
                let at = words.iter().position(|w| *w == "migrate_pfn").ok_or("no 'migrate_pfn'")?;
                let second = words.get(at + 2).ok_or("'migrate_pfn' has one value")?;
                self.compact = CompactSnapshot {
                    free_pfn: hex(named(&words, "free_pfn")?)?,
                    migrate_pfn: [hex(named(&words, "migrate_pfn")?)?, hex(second)?],
                    init_migrate: hex(named(&words, "init_migrate")?)?,
                    init_free: hex(named(&words, "init_free")?)?,
                    considered: number(named(&words, "considered")?)?,
                    defer_shift: number(named(&words, "defer_shift")?)?,
                    order_failed: number(named(&words, "order_failed")?)?,
                };
            }
            "VMSTAT" => {
                self.nr_free_pages = number(words.first().ok_or("no value")?)?;
                // Another counter in later kernels.
                self.share = words.get(1).map_or(Ok(0), |word| number(word))?;
            }
            "DRIFT" => {
                let ["mark", mark, "thresholds", thresholds @ ..] = words.as_slice() else {
                    return Err("DRIFT needs a mark and thresholds".into());
                };
                let thresholds = thresholds.iter().map(|n| number(n)).collect::<Result<Vec<i64>, _>>()?;
                let threshold = *thresholds.first().ok_or("DRIFT needs thresholds")?;
                if !(1..=STAT_THRESHOLD_MAX).contains(&threshold) || thresholds.iter().any(|t| *t != threshold) {
                    return Err(format!("CPUs do not keep {} of a counter", words[3..].join(" ")));
                }
                self.drift = Some(Drift { mark: number(mark)?, threshold, cpus: thresholds.len() });
            }
            "NRFREE_RAW" => self.nr_free_folded = number(words.first().ok_or("no value")?)?,
            "PCP" => self.pcps.push(PcpSnapshot {
                count: number(named(&words, "count")?)?,
                batch: number(named(&words, "batch")?)?,
                high: number(named(&words, "high")?)?,
                tuning: tuning(&words)?,
                // If the line does not say, one CPU's part is the rest of the zone's own counter.
                diff: match named(&words, "diff") {
                    Ok(diff) => number(diff)?,
                    Err(_) if self.pcps.is_empty() => self.nr_free_pages - self.nr_free_folded,
                    Err(e) => return Err(e),
                },
                // Recordings of one CPU have it, too, but nothing says when that CPU folded.
                expire: self.drift.as_ref().map_or(Ok(0), |_| named(&words, "expire").map_or(Ok(0), number))?,
                lists: vec![Vec::new(); NR_LISTS],
            }),
            "PL" => {
                let [cpu, list, pfns @ ..] = words.as_slice() else {
                    return Err("PL needs a CPU and a list".into());
                };
                let pcp = self.pcps.get_mut(number::<usize>(cpu)?).ok_or("PL of a CPU without PCP line")?;
                let list = pcp.lists.get_mut(number::<usize>(list)?).ok_or("no such per-CPU list")?;
                *list = pfns.iter().map(|w| hex(w)).collect::<Result<_, _>>()?;
            }
            "FL" => {
                let [order, t, pfns @ ..] = words.as_slice() else {
                    return Err("FL needs an order and a type".into());
                };
                let lists = self.free.get_mut(number::<usize>(order)?).ok_or("no such order")?;
                let list = lists.get_mut(number::<usize>(t)?).ok_or("no such migratetype")?;
                *list = pfns.iter().map(|w| hex(w)).collect::<Result<_, _>>()?;
            }
            "PB" => {
                self.types = words
                    .first()
                    .ok_or("no types")?
                    .bytes()
                    .map(|b| match b {
                        b'0'..=b'3' => Ok(MigrateType::from_index(usize::from(b - b'0'))),
                        _ => Err(format!("'{}' is no migratetype", b as char)),
                    })
                    .collect::<Result<_, _>>()?;
            }
            "SKIP" => self.skip = words.first().ok_or("no skip bits")?.bytes().map(|b| b == b'1').collect(),
            "END" => return Ok(true),
            "RESERVE" | "PBO" => {}
            _ => return Err(format!("unknown line '{kind}'")),
        }
        Ok(false)
    }

    fn validate(self) -> Result<ZoneSnapshot, String> {
        let blocks = (self.spanned / PAGEBLOCK_PAGES) as usize;
        if self.types.len() != blocks || self.skip.len() != blocks {
            return Err(format!(
                "{} pageblocks, but {} types and {} skip bits",
                blocks,
                self.types.len(),
                self.skip.len()
            ));
        }
        if !self.start.is_multiple_of(PAGEBLOCK_PAGES) || !self.spanned.is_multiple_of(PAGEBLOCK_PAGES) || blocks == 0 {
            return Err("the zone does not consist of whole pageblocks".into());
        }
        if self.start.checked_add(self.spanned).is_none() {
            return Err("the zone ends beyond the largest pfn".into());
        }
        // Every block lies within the zone, is aligned, and overlaps no other.
        let mut seen = vec![false; self.spanned as usize];
        for (order, pfn) in self.listed() {
            let end = pfn.checked_add(order.pages()).filter(|e| *e <= self.spanned);
            let Some(end) = end.filter(|_| Pfn::new(self.start + pfn).is_aligned(order)) else {
                return Err(format!("block {pfn:x} of order {} is misaligned or outside the zone", order.get()));
            };
            for f in &mut seen[pfn as usize..end as usize] {
                if core::mem::replace(f, true) {
                    return Err(format!("block {pfn:x} of order {} overlaps another", order.get()));
                }
            }
        }
        if self.pcps.is_empty() {
            return Err("no PCP line".into());
        }
        if self.compact.defer_shift > COMPACT_MAX_DEFER_SHIFT {
            return Err(format!("defer_shift {} is more than {COMPACT_MAX_DEFER_SHIFT}", self.compact.defer_shift));
        }
        if self.compact.considered > 1 << COMPACT_MAX_DEFER_SHIFT {
            return Err(format!("considered {} is more than is ever put off", self.compact.considered));
        }
        if !(0..=i64::from(self.spanned)).contains(&self.nr_free_pages) {
            return Err(format!("{} free pages of {}", self.nr_free_pages, self.spanned));
        }
        let m = &self.marks;
        for (name, pages) in [
            ("min", m.min),
            ("low", m.low),
            ("high", m.high),
            ("promo", m.promo),
            ("drift mark", self.drift.as_ref().map_or(0, |d| d.mark)),
            ("boost", self.boost),
            ("highatomic", self.highatomic),
        ] {
            if pages > u64::from(u32::MAX) {
                return Err(format!("{name} {pages} is more pages than there can be"));
            }
        }
        if m.min > m.low || m.low > m.high {
            return Err(format!("the marks {}, {} and {} are not in order", m.min, m.low, m.high));
        }
        if let Some(d) = self.drift.as_ref().filter(|d| d.cpus != self.pcps.len()) {
            return Err(format!("thresholds of {} CPUs, lists of {}", d.cpus, self.pcps.len()));
        }
        for (cpu, p) in self.pcps.iter().enumerate() {
            let (name, factor) = match &p.tuning {
                Tuning::FreeFactor(f) => ("free_factor", *f),
                Tuning::Auto(t) => ("alloc_factor", t.alloc_factor),
            };
            if factor > pcp::FREE_FACTOR_MAX {
                return Err(format!("CPU {cpu}: {name} {factor} is more than {}", pcp::FREE_FACTOR_MAX));
            }
            if i8::try_from(p.diff).is_err() {
                return Err(format!("CPU {cpu}: diff {} does not fit the byte the kernel keeps it in", p.diff));
            }
        }
        Ok(self)
    }

    /// The same state with other watermarks, as after a change of `vm.min_free_kbytes`; CPUs' lists
    /// follow them as in the kernel.
    #[must_use]
    pub fn with_watermarks(mut self, marks: Watermarks) -> ZoneSnapshot {
        self.marks = marks;
        let cpus = self.pcps.len() as u64;
        for p in &mut self.pcps {
            let share = ((marks.low / cpus) as u32).max(p.batch << 2);
            match &mut p.tuning {
                Tuning::FreeFactor(_) => p.high = share,
                Tuning::Auto(t) => t.high_min = share,
            }
        }
        self
    }

    /// Every block on a list, with its order.
    fn listed(&self) -> impl Iterator<Item = (Order, u32)> + '_ {
        let free = Order::all().flat_map(|o| self.free[o.index()].iter().flatten().map(move |&pfn| (o, pfn)));
        let pcp = self
            .pcps
            .iter()
            .flat_map(|p| p.lists.iter().enumerate())
            .flat_map(|(i, l)| l.iter().map(move |&pfn| (pcp_lists::order_of(i), pfn)));
        free.chain(pcp)
    }

    /// A machine of two nodes whose node 1 is this zone in this state. Frames on no list are
    /// allocated to nobody. Node 0 has one small zone, so that the machine has the shape of the
    /// recorded one.
    ///
    /// # Errors
    /// If the recorded zone is impossible.
    pub fn machine(&self, profile: Profile) -> Result<Memory, String> {
        machine(&[RecordedZone { node: NodeId::new(1), kind: ZoneType::Normal, zone: self, pages: None }], profile)
    }

    /// The same, with the uses of the allocated frames ([`RecordedZone::pages`]).
    ///
    /// # Errors
    /// If the recorded zone is impossible, or the text is not about a zone of this size.
    pub fn machine_with_pages(&self, profile: Profile, pages: &str) -> Result<Memory, String> {
        let node = NodeId::new(1);
        machine(&[RecordedZone { node, kind: ZoneType::Normal, zone: self, pages: Some(pages) }], profile)
    }

    fn suits(&self, profile: &Profile) -> Result<(), String> {
        for (i, _) in self.pcps.iter().flat_map(|p| p.lists.iter().enumerate()).filter(|(_, l)| !l.is_empty()) {
            if !pcp::allows(profile.pcp.lists, pcp_lists::order_of(i)) {
                return Err(format!("profile '{}' has no per-CPU list {i}", profile.name));
            }
        }
        let auto_tuned = profile.pcp.lists == PcpLists::AutoTuned;
        if self.pcps.iter().any(|p| matches!(p.tuning, Tuning::Auto(_)) != auto_tuned) {
            return Err(format!("the PCP lines are of another kernel than profile '{}'", profile.name));
        }
        Ok(())
    }

    fn spec(&self, node: NodeId, kind: ZoneType) -> ZoneSpec {
        let end = self.start + self.spanned;
        ZoneSpec { node: node.index(), kind, start: self.start, end, present: self.present, managed: self.managed }
    }

    /// Brings a zone whose frames are neither free nor allocated into this state.
    fn restore(&self, m: &mut Memory, id: ZoneId, pages: Option<&[u8]>) {
        let at = |pfn: u32| Pfn::new(self.start + pfn);
        for (b, (&t, &skip)) in self.types.iter().zip(&self.skip).enumerate() {
            let block = at(0).pageblock() + b;
            m.blocks.set_migratetype(block, t);
            m.blocks.set_skip(block, skip);
        }
        // Frames on no list are allocated.
        let mut taken = vec![true; self.spanned as usize];
        for (order, pfn) in self.listed() {
            taken[pfn as usize..(pfn + order.pages()) as usize].fill(false);
        }
        let mut next = 0;
        while let Some(pfn) = (next..taken.len()).find(|p| taken[*p]) {
            let kind = match pages.map(|p| p[pfn]) {
                None | Some(b'r') => FrameKind::Reserved,
                Some(b'm') => FrameKind::MovableOps,
                Some(_) => FrameKind::Kernel,
            };
            let order = pages.map_or(Order::ZERO, |p| compound_order(self.start, pfn, p));
            m.frames.set(at(pfn as u32), kind, order);
            if pages.is_some_and(|p| p[pfn] == b'l') {
                m.lru_add(CpuId::new(0), at(pfn as u32), order, PageFlags::ANON);
            }
            next = pfn + order.pages() as usize;
        }
        // Frames that are missing are missing at the end.
        m.zones[id].whole_end = at(self.present as u32).pageblock_start();
        let free_lists = m.shared.profile.buddy.free_lists;
        let mut locked = m.locked(id, CpuId::new(0));
        for o in Order::all() {
            for t in MigrateType::ALL {
                for &pfn in &self.free[o.index()][t.index()] {
                    locked.add_to_free_list(at(pfn), o, t, true);
                }
            }
        }
        // Whole pageblocks that lie apart were reserved for atomic requests once.
        let whole = &self.free[PAGEBLOCK_ORDER.index()];
        for pfn in whole.iter().flatten().map(|pfn| at(*pfn)) {
            let buddy = pfn.buddy(PAGEBLOCK_ORDER);
            if locked.zone.spans(buddy) && locked.frames.tag(buddy).is_buddy_of(PAGEBLOCK_ORDER) {
                locked.blocks.note_highatomic(pfn.pageblock());
            }
        }
        for (p, pcp) in locked.zone.pcps.iter_mut().zip(&self.pcps) {
            (p.count, p.batch, p.high) = (pcp.count, pcp.batch, pcp.high);
            match &pcp.tuning {
                Tuning::FreeFactor(f) => p.free_factor = *f,
                Tuning::Auto(t) => p.tuning = *t,
            }
            (p.free_diff, p.expire) = (pcp.diff, pcp.expire);
            for (i, list) in pcp.lists.iter().enumerate() {
                for &pfn in list {
                    let t = pcp::type_on(i, locked.blocks.migratetype(at(pfn).pageblock()));
                    locked.frames.set(at(pfn), FrameKind::Pcp(t), pcp_lists::order_of(i));
                    p.lists[i].push_back(at(pfn).get());
                }
            }
        }
        let drift = self.drift.as_ref().map(|d| (d.mark, d.threshold));
        let takes_turns = locked.shared.profile.zonelist.goes_round;
        let z = locked.zone;
        z.free_pages = self.nr_free_pages - self.pcps.iter().map(|p| p.diff).sum::<i64>();
        z.watermarks = self.marks;
        z.set_drift(drift.unwrap_or_else(|| z.drift_at_boot(&locked.shared.profile)));
        let parts = self.pcps.iter().map(|p| p.diff.abs());
        z.largest_threshold = parts.fold(z.largest_threshold, i64::max);
        if takes_turns {
            z.set_share(self.share);
        }
        z.watermark_boost = self.boost;
        z.nr_reserved_highatomic = self.highatomic;
        z.nr_free_highatomic = 0;
        if free_lists == FreeLists::AsPageblock {
            let free = |o: Order| (self.free[o.index()][MigrateType::HighAtomic.index()].len() as u64) << o.get();
            z.nr_free_highatomic = Order::all().map(free).sum();
        }
        z.boosted_flag = self.flags & BOOSTED_WATERMARK != 0;
        z.reclaim_active = self.flags & RECLAIM_ACTIVE != 0;
        z.below_high = self.flags & BELOW_HIGH != 0;
        let c = &self.compact;
        z.compaction = ZoneCompaction {
            cached_migrate_pfn: c.migrate_pfn.map(Pfn::new),
            cached_free_pfn: Pfn::new(c.free_pfn),
            init_migrate_pfn: Pfn::new(c.init_migrate),
            init_free_pfn: Pfn::new(c.init_free),
            considered: c.considered,
            defer_shift: c.defer_shift,
            order_failed: c.order_failed,
            ..ZoneCompaction::default()
        };
    }

    /// The state of a zone of a running machine.
    pub fn of(m: &Memory, id: ZoneId) -> ZoneSnapshot {
        let z = m.zone(id);
        let relative = |p: Pfn| p.get() - z.start.get();
        let blocks = z.start.pageblock()..=z.last_pageblock().pageblock();
        ZoneSnapshot {
            start: z.start.get(),
            spanned: z.spanned() as u32,
            present: z.present,
            managed: z.managed,
            marks: z.watermarks,
            boost: z.watermark_boost,
            highatomic: z.nr_reserved_highatomic,
            flags: [
                (z.boosted_flag, BOOSTED_WATERMARK),
                (z.reclaim_active, RECLAIM_ACTIVE),
                (z.below_high, BELOW_HIGH),
            ]
            .iter()
            .filter(|(on, _)| *on)
            .map(|(_, flag)| flag)
            .sum(),
            compact: CompactSnapshot {
                free_pfn: z.compaction.cached_free_pfn.get(),
                migrate_pfn: match m.shared.profile.compaction.positions {
                    Positions::OneUntilIsolated => [z.compaction.cached_migrate_pfn[0].get(); 2],
                    Positions::EachMode => z.compaction.cached_migrate_pfn.map(Pfn::get),
                },
                init_migrate: z.compaction.init_migrate_pfn.get(),
                init_free: z.compaction.init_free_pfn.get(),
                considered: z.compaction.considered,
                defer_shift: z.compaction.defer_shift,
                order_failed: z.compaction.order_failed,
            },
            nr_free_pages: z.nr_free_pages_exact() as i64,
            nr_free_folded: z.free_pages,
            share: 0,
            drift: (z.pcps.len() > 1).then(|| Drift {
                mark: z.percpu_drift_mark,
                threshold: z.stat_threshold,
                cpus: z.pcps.len(),
            }),
            pcps: z
                .pcps
                .iter()
                .map(|p| PcpSnapshot {
                    count: p.count,
                    batch: p.batch,
                    high: p.high,
                    tuning: match m.shared.profile.pcp.lists {
                        PcpLists::AutoTuned => Tuning::Auto(p.tuning),
                        PcpLists::OrderZero | PcpLists::MultiOrder => Tuning::FreeFactor(p.free_factor),
                    },
                    diff: p.free_diff,
                    expire: p.expire,
                    lists: (0..NR_LISTS).map(|i| p.list(i).map(relative).collect()).collect(),
                })
                .collect(),
            free: Order::all()
                .map(|o| MigrateType::ALL.map(|t| z.free_list(o, t).iter().map(relative).collect()))
                .collect(),
            types: blocks.clone().map(|b| m.blocks.migratetype(b)).collect(),
            skip: blocks.map(|b| m.blocks.skip(b)).collect(),
        }
    }
}

impl fmt::Display for ZoneSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (m, managed) = (&self.marks, self.managed);
        writeln!(f, "ZONE start {:x} spanned {} present {} managed {managed}", self.start, self.spanned, self.present)?;
        write!(f, "WM min {} low {} high {} promo {} ", m.min, m.low, m.high, m.promo)?;
        writeln!(f, "boost {} highatomic {} flags {}", self.boost, self.highatomic, self.flags)?;
        let c = &self.compact;
        write!(f, "COMPACT free_pfn {:x} migrate_pfn {:x} {:x} ", c.free_pfn, c.migrate_pfn[0], c.migrate_pfn[1])?;
        write!(f, "init_migrate {:x} init_free {:x} ", c.init_migrate, c.init_free)?;
        writeln!(f, "considered {} defer_shift {} order_failed {}", c.considered, c.defer_shift, c.order_failed)?;
        writeln!(f, "VMSTAT {}", self.nr_free_pages)?;
        writeln!(f, "NRFREE_RAW {}", self.nr_free_folded)?;
        if let Some(drift) = &self.drift {
            write!(f, "DRIFT mark {} thresholds", drift.mark)?;
            (0..drift.cpus).try_for_each(|_| write!(f, " {}", drift.threshold))?;
            writeln!(f)?;
        }
        for (cpu, p) in self.pcps.iter().enumerate() {
            write!(f, "PCP cpu {cpu} count {} batch {} high {} ", p.count, p.batch, p.high)?;
            match &p.tuning {
                Tuning::FreeFactor(factor) => write!(f, "free_factor {factor} ")?,
                Tuning::Auto(t) => {
                    write!(f, "hmin {} hmax {} free_count {} ", t.high_min, t.high_max, t.free_count)?;
                    let flags = u32::from(t.prev_free_high_order) * PREV_FREE_HIGH_ORDER
                        + u32::from(t.free_high_batch) * FREE_HIGH_BATCH;
                    write!(f, "alloc_factor {} flags {flags} ", t.alloc_factor)?;
                }
            }
            if self.drift.is_some() {
                write!(f, "expire {} ", p.expire)?;
            }
            writeln!(f, "diff {}", p.diff)?;
            for (i, list) in p.lists.iter().enumerate().filter(|(_, l)| !l.is_empty()) {
                write!(f, "PL {cpu} {i}")?;
                list_line(f, list)?;
            }
        }
        for (o, lists) in self.free.iter().enumerate() {
            for (t, list) in lists.iter().enumerate().filter(|(_, l)| !l.is_empty()) {
                write!(f, "FL {o} {t}")?;
                list_line(f, list)?;
            }
        }
        let digits: String = self.types.iter().map(|t| char::from(b'0' + t.index() as u8)).collect();
        writeln!(f, "PB {digits}")?;
        let bits: String = self.skip.iter().map(|&s| if s { '1' } else { '0' }).collect();
        writeln!(f, "SKIP {bits}\nEND")
    }
}

fn list_line(f: &mut fmt::Formatter<'_>, list: &[u32]) -> fmt::Result {
    list.iter().try_for_each(|pfn| write!(f, " {pfn:x}"))?;
    writeln!(f)
}

fn named<'a>(words: &[&'a str], name: &str) -> Result<&'a str, String> {
    let at = words.iter().position(|w| *w == name).ok_or_else(|| format!("no '{name}'"))?;
    words.get(at + 1).copied().ok_or_else(|| format!("'{name}' has no value"))
}

/// The order of the compound page whose first page is `pfn`, from the tails that follow it. Pages
/// that do not form a compound page stand alone.
fn compound_order(start: u32, pfn: usize, pages: &[u8]) -> Order {
    if pages[pfn] != b'c' {
        return Order::ZERO;
    }
    let size = 1 + pages[pfn + 1..].iter().take_while(|c| **c == b't').count() as u32;
    let order = size.checked_ilog2().filter(|o| size.is_power_of_two() && *o < u32::from(PAGEBLOCK_ORDER.get()));
    let order = order.map_or(Order::ZERO, |o| Order::new(o as u8));
    if Pfn::new(start + pfn as u32).is_aligned(order) { order } else { Order::ZERO }
}

/// The moving sizes of a CPU's lists, in the form of its kernel.
fn tuning(words: &[&str]) -> Result<Tuning, String> {
    let get = |name| named(words, name).and_then(number::<u32>);
    if words.contains(&"free_factor") {
        return Ok(Tuning::FreeFactor(number(named(words, "free_factor")?)?));
    }
    if !words.contains(&"alloc_factor") {
        return Ok(Tuning::FreeFactor(0));
    }
    let flags = get("flags")?;
    Ok(Tuning::Auto(AutoTuning {
        high_min: get("hmin")?,
        high_max: get("hmax")?,
        free_count: get("free_count")?,
        alloc_factor: number(named(words, "alloc_factor")?)?,
        prev_free_high_order: flags & PREV_FREE_HIGH_ORDER != 0,
        free_high_batch: flags & FREE_HIGH_BATCH != 0,
    }))
}

fn number<T: core::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("'{word}' is no number"))
}

fn hex(word: &str) -> Result<u32, String> {
    u32::from_str_radix(word, 16).map_err(|_| format!("'{word}' is no hexadecimal number")).map_err(|e| e.to_string())
}
