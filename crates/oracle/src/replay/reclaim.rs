//! Replays memory pressure: files that are read, a process's memory, and reclaim of both.
//!
//! Every operation must have the kernel's answer: the same page, cached or brought back, with the
//! same flags. In each recorded state the LRU lists must hold the same pages in the same order
//! (`state`, `generations`), and the tracepoints of reclaim and compaction must match line by line
//! (`traced`). `host` owns the pages.

mod counted;
mod generations;
mod groups;
mod host;
mod state;
mod traced;

use super::{Care, Compared, Replayed, daemons, outcome, request};
use crate::difference::{At, Difference, Section};
use crate::error::BadRecording;
use crate::recording::{NODE, Part, Recording};
use crate::trace::lru::{Answer, Asks, FilePage, LruOp, Page, ProcessPage, Swappiness};
use crate::trace::{BlockId, Request};
use host::{Files, Kept, Mapped};
use kontig_mm::state::LruGen;
use kontig_mm::{
    CpuId, Event, Gfp, GroupId, Listen, LruvecId, Memory, Order, PageFlags, Pfn, Refused, Shadow, SwapSpace, Turn,
};

/// The request of a process's page fault.
const FAULT: Request = Request::MOVABLE.with(Request::DIRECT).with(Request::KSWAPD).with(Request::RETRY);
/// Operations shown before the one that differs.
const OPS_SHOWN: usize = 8;
const EVENTS_SHOWN: usize = 40;

pub(super) fn replay(rec: &Recording, care: Care) -> Result<Replayed, BadRecording> {
    let ops = rec.lru_operations()?;
    let part = Part::Reclaim;
    let mut memory = rec.machine(part)?;
    if rec.about.lru_gen > 0 {
        let parts = LruGen(rec.about.lru_gen.into());
        memory.enable_lru_gen(parts).map_err(|e| BadRecording::whole(rec.path("recording.toml"), e))?;
        memory.lru_gen_add_mm(host::PROCESS, GroupId::ROOT);
        memory.lru_gen_use_mm(host::PROCESS);
    }
    groups::enable(rec, &mut memory)?;
    state::begin(rec, &mut memory)?;
    let counted = state::counted(rec, &memory)?;
    if let Some(d) = state::unlike_boot(rec, &memory) {
        return Ok(Err(d));
    }
    memory.trace().listen(Listen::VMSCAN.with(Listen::COMPACTION).with(Listen::COMPACTION_DETAIL));
    if ops.iter().any(|(op, _)| matches!(op, LruOp::Store(_))) {
        // More than any recording needs, if it does not say; else all of the device but its header.
        let pages = rec.about.swap_mib.map_or(u64::from(u32::MAX), |mib| (u64::from(mib) << 8).saturating_sub(1));
        memory.set_swap(SwapSpace { total: pages, free: pages });
    }
    let mut runner = Runner { host: Files::new(&memory, counted, rec.about.kcompactd_is_real_time()), memory };
    if let Some(cpu) = rec.about.daemons_cpu {
        runner.host.keep_daemons_on(CpuId::new(cpu.into()));
    }
    generations::set_process(rec, &mut runner.host)?;
    let mut compared = Compared { operations: ops.len() as u64, ..Compared::default() };
    let mut traced = traced::Recorded::open(rec)?;
    let mut dumps = 0;
    for (i, (op, want)) in ops.iter().enumerate() {
        let got = runner.carry_out(op);
        let events = runner.memory.trace().take();
        if got != *want {
            let from = i.saturating_sub(OPS_SHOWN);
            let before = ops[from..i].iter().enumerate().map(|(n, (op, a))| format!("{}: {op} = {a}", from + n));
            let around = vec![
                Section::new("the operations before it", before.collect()),
                Section::new("what the engine did", shown(&events)),
            ];
            let (kernel, engine) = (want.to_string(), got.to_string());
            let at = At::Operation(i);
            return Ok(Err(Box::new(Difference { at, asked: Some(op.to_string()), kernel, engine, around })));
        }
        if let Err(d) = traced.next(&runner.memory, &events, i, op) {
            return Ok(Err(d));
        }
        if matches!(want, Answer::Page(_)) {
            compared.pfns += 1;
        }
        if *op == LruOp::Dump {
            if let Err(d) = state::compare(rec, &format!("d{dumps}"), &runner, &mut compared)? {
                return Ok(Err(d));
            }
            dumps += 1;
        }
        if let Some(every) = care.check_every
            && i % every == every - 1
            && let Err(e) = runner.memory.check()
        {
            return Ok(Err(outcome::contradiction(i, e)));
        }
    }
    if let Err(d) = traced.end() {
        return Ok(Err(d));
    }
    compared.events = traced.compared();
    if let Err(d) = state::compare(rec, state::LAST, &runner, &mut compared)? {
        return Ok(Err(d));
    }
    Ok(outcome::compare(rec, part, &runner.memory, care)?.map(|end| {
        compared.add(end);
        compared
    }))
}

/// The kernel's answer to a command.
fn refused(done: Result<(), Refused>) -> Answer {
    Answer::Number(match done {
        Ok(()) => 0,
        Err(Refused::Invalid) => 22,
        Err(Refused::Full) => 34,
        Err(Refused::Exists) => 17,
    })
}

/// The flags of an operation's request.
fn gfp(asks: Asks) -> Gfp {
    let gfp = asks.request.gfp();
    if asks.dma32 { (gfp | Gfp::DMA32).without(Gfp::HIGHMEM) } else { gfp }
}

fn shown(events: &[Event]) -> Vec<String> {
    let mut lines: Vec<String> = events.iter().take(EVENTS_SHOWN).map(Event::to_string).collect();
    if events.len() > EVENTS_SHOWN {
        lines.push(format!("… {} more", events.len() - EVENTS_SHOWN));
    }
    lines
}

/// How a fault makes a page of the process.
#[derive(Clone, Copy)]
enum Made {
    /// Where there was none.
    Zeroed,
    /// In place of one that may not be written to: another's, or the page of zeroes.
    Copied,
    /// From swap, where it may have left a shadow.
    Swapped(Option<Shadow>),
}

/// A machine with the owner of its pages.
struct Runner {
    memory: Memory,
    host: Files,
}

impl Runner {
    /// The CPU at work.
    fn cpu(&self) -> CpuId {
        self.host.cpu()
    }

    /// Executes one operation. Returns its answer in the kernel's form.
    fn carry_out(&mut self, op: &LruOp) -> Answer {
        let answer = match *op {
            LruOp::Alloc { id, order, asks } => self.alloc_block(id, order, asks),
            LruOp::Free(id) => self.free_block(id),
            LruOp::Add { page, order, asks } => self.add(page, order, asks, false),
            LruOp::Read { page, order, asks } => self.add(page, order, asks, true),
            LruOp::Touch(page) => {
                self.with_page(page, |m, cpu, host, number| m.mark_accessed(cpu, host.kept(number).pfn))
            }
            LruOp::Truncate { page, order } => self.truncate(page, order),
            LruOp::Dirty(page) => self.with_page(page, |m, _, host, number| {
                host.set_dirty(number, true);
                m.mark_dirty(host.kept(number).pfn);
            }),
            LruOp::Writeback(page) => self.with_page(page, |_, _, host, number| {
                let Kept { writeback, dirty, .. } = *host.kept(number);
                if !writeback && dirty {
                    host.set_dirty(number, false);
                    host.kept_mut(number).writeback = true;
                }
            }),
            LruOp::Written(page) => self.with_page(page, |m, cpu, host, number| {
                let kept = host.kept_mut(number);
                if std::mem::take(&mut kept.writeback) {
                    m.end_writeback(cpu, kept.pfn, kept.dirty);
                }
            }),
            LruOp::Finish(most) => Answer::Number(self.finish(most)),
            LruOp::Device { file, slow } => {
                self.host.slow[usize::from(file)] = slow;
                Answer::Done
            }
            LruOp::Object(asks) => match self.alloc_object(asks) {
                Some(pfn) => {
                    self.host.objects.push_back(pfn);
                    Answer::of_page(pfn)
                }
                None => Answer::Failed,
            },
            LruOp::Drain => {
                self.memory.lru_add_drain(self.cpu());
                Answer::Done
            }
            LruOp::Cpu(n) => {
                self.host.run_on(CpuId::new(n.into()));
                Answer::Done
            }
            LruOp::DrainAll => {
                // Each CPU does it when it gets a turn, and the emulator gives them turns one after
                // the other.
                let (own, all) = (self.cpu().index(), self.memory.nr_cpus());
                (own..all).chain(0..own).for_each(|cpu| self.memory.lru_add_drain(CpuId::new(cpu)));
                Answer::Done
            }
            LruOp::DrainPages => {
                self.memory.drain_all_pages(self.cpu());
                Answer::Done
            }
            LruOp::Fold => {
                self.memory.vmstat_update(self.cpu());
                self.host.counted.fold(self.cpu());
                Answer::Done
            }
            LruOp::Node { prefers, allowed } => {
                (self.host.prefers, self.host.allowed) = (prefers, allowed);
                Answer::Done
            }
            LruOp::Wait => {
                daemons::let_sleep(&mut self.host, &mut self.memory);
                Answer::Done
            }
            LruOp::Dump => {
                let number = self.host.dumps;
                self.host.dumps += 1;
                Answer::Number(number)
            }
            LruOp::Age { swappiness, force } => self.age(swappiness, force),
            LruOp::Evict { beyond, swappiness, pages } => self.evict(beyond, swappiness, pages),
            LruOp::Enter(group) => {
                self.host.group = group;
                self.memory.lru_gen_migrate_mm(host::PROCESS, group);
                Answer::Number(0)
            }
            LruOp::Limit { group, limit, pages } => {
                groups::set_limit(&mut self.memory, &mut self.host, group, limit, pages)
            }
            LruOp::Flush => {
                self.memory.flush_group_stats();
                Answer::Done
            }
            LruOp::Load(page) => self.access(page, false),
            LruOp::Store(page) => self.access(page, true),
            LruOp::Drop(page) => self.drop_page(page),
        };
        groups::return_to_user(&mut self.memory, &mut self.host);
        daemons::let_sleep(&mut self.host, &mut self.memory);
        answer
    }

    /// Has the generation after the youngest begin.
    fn age(&mut self, swappiness: Swappiness, force: bool) -> Answer {
        if !self.memory.lru().has_generations() {
            return Answer::Skipped;
        }
        let lruvec = self.lists_of_process();
        let seq = self.memory.lru().vecs()[lruvec.index()].gens().max_seq;
        let (cpu, m, host) = (self.cpu(), &mut self.memory, &mut self.host);
        refused(m.lru_gen_age(host, cpu, lruvec, seq, swappiness.own(), force))
    }

    /// Has generations evicted from the oldest of files on.
    fn evict(&mut self, beyond: Order, swappiness: Swappiness, pages: u32) -> Answer {
        if !self.memory.lru().has_generations() {
            return Answer::Skipped;
        }
        let lruvec = self.lists_of_process();
        let seq = self.memory.lru().vecs()[lruvec.index()].gens().min_seq[1] + u64::from(beyond.get());
        let (cpu, m, host) = (self.cpu(), &mut self.memory, &mut self.host);
        refused(m.lru_gen_evict(host, cpu, lruvec, seq, swappiness.own(), pages.into()))
    }

    /// The lists that a command is about: those of the process's group, on the recorded node.
    fn lists_of_process(&self) -> LruvecId {
        self.memory.lruvec_of_group(self.host.group, NODE)
    }

    /// A request on the nodes that the trace has chosen.
    fn request(&self, order: Order, asks: Asks, more: Gfp) -> kontig_mm::Request {
        let (prefers, allowed) = (self.host.prefers, self.host.allowed);
        let gfp = gfp(asks) | more;
        if allowed.is_empty() {
            return kontig_mm::Request::new(self.cpu(), prefers, gfp, order);
        }
        kontig_mm::Request::new(self.cpu(), prefers, gfp.without(Gfp::THISNODE), order).within(allowed)
    }

    fn alloc(&mut self, order: Order, asks: Asks, more: Gfp) -> Option<Pfn> {
        self.carry_out_request(self.request(order, asks, more))
    }

    fn carry_out_request(&mut self, request: kontig_mm::Request) -> Option<Pfn> {
        // A request that never ends fails here; its events differ from those of a failure in the
        // kernel.
        let slowly = |m: &mut Memory, host: &mut Files| request::finish(request, m, host)?.ok();
        self.memory.alloc(request).ok().or_else(|| slowly(&mut self.memory, &mut self.host))
    }

    /// Allocates a page for the shrinker's cache, all of which is on the first recorded node.
    fn alloc_object(&mut self, asks: Asks) -> Option<Pfn> {
        self.carry_out_request(kontig_mm::Request::new(self.cpu(), NODE, gfp(asks), Order::ZERO))
    }

    /// Allocates an unreclaimable block. Compaction sees its pages as single ones.
    fn alloc_block(&mut self, id: BlockId, order: Order, asks: Asks) -> Answer {
        if self.host.blocks.contains_key(&id.0) {
            return Answer::Skipped;
        }
        let Some(pfn) = self.alloc(order, asks, Gfp::NONE) else { return Answer::Failed };
        let kept = asks.request.has(Request::OWNED).then(|| self.host.keep_block(id));
        if let Some(number) = kept {
            self.memory.set_movable_ops(pfn);
            self.memory.set_owner(pfn, order, number);
        }
        if order > Order::ZERO {
            self.memory.split_page(pfn, order);
        }
        self.host.blocks.insert(id.0, (pfn, order));
        Answer::of_page(pfn)
    }

    fn free_block(&mut self, id: BlockId) -> Answer {
        let Some((pfn, order)) = self.host.blocks.remove(&id.0) else { return Answer::Skipped };
        if order > Order::ZERO {
            self.memory.join_page(pfn, order);
        }
        self.memory.free(self.cpu(), pfn, order);
        Answer::of_page(pfn)
    }

    /// Adds a file's page if it is not cached; a read also marks it as accessed.
    fn add(&mut self, page: FilePage, order: Order, asks: Asks, reads: bool) -> Answer {
        let mut said = "";
        let number = match self.host.find(page) {
            Some(_) if !reads => return Answer::Skipped,
            Some(number) => {
                said = "present";
                number
            }
            None => {
                let Some(pfn) = self.alloc(order, asks, Gfp::COMP) else { return Answer::Failed };
                let group = self.host.group;
                if !groups::charge(&mut self.memory, &mut self.host, pfn, order, group, asks.request.gfp()) {
                    return Answer::Failed;
                }
                let first = FilePage { index: page.index & !(order.pages() - 1), ..page };
                if self.host.is_in_part(first, order) {
                    self.memory.free(self.cpu(), pfn, order);
                    return Answer::Failed;
                }
                let (number, shadow) = self.host.add(first, pfn, order);
                self.memory.set_owner(pfn, order, number);
                let mut flags = PageFlags::FILE;
                if let Some(shadow) = shadow {
                    said = "shadow";
                    flags = self.memory.workingset_refault(self.cpu(), pfn, flags, shadow);
                }
                self.memory.lru_add(self.cpu(), pfn, order, flags);
                number
            }
        };
        let pfn = self.host.kept(number).pfn;
        if reads {
            self.memory.mark_accessed(self.cpu(), pfn);
        }
        self.answer(number, said)
    }

    /// The kernel's answer for a page.
    fn answer(&self, number: u32, said: &'static str) -> Answer {
        let kept = self.host.kept(number);
        let flags = self.memory.lru().flags(kept.pfn);
        let mut words = vec![said];
        words.extend(flags.has(PageFlags::ACTIVE).then_some("active"));
        words.extend(flags.has(PageFlags::WORKINGSET).then_some("workingset"));
        words.extend(flags.has(PageFlags::REFERENCED).then_some("referenced"));
        words.extend(kept.dirty.then_some("dirty"));
        words.extend(kept.writeback.then_some("writeback"));
        Answer::Page(Page::new(kept.pfn, &words))
    }

    /// Applies `what` to a file's page, if it is cached.
    fn with_page(&mut self, page: FilePage, what: impl FnOnce(&mut Memory, CpuId, &mut Files, u32)) -> Answer {
        let Some(number) = self.host.find(page) else { return Answer::Skipped };
        what(&mut self.memory, self.host.cpu(), &mut self.host, number);
        self.answer(number, "")
    }

    /// Removes a file's page as truncation does; with an order, all pages in the folio's range.
    fn truncate(&mut self, page: FilePage, order: Order) -> Answer {
        let Some(number) = self.host.find(page) else { return Answer::Skipped };
        let answer = self.answer(number, "");
        if self.host.kept(number).writeback {
            return Answer::Skipped;
        }
        self.memory.lru_add_drain(self.cpu());
        for number in self.host.cut(page, order) {
            let Kept { pfn, order, .. } = self.host.remove(number, None);
            self.memory.free(self.cpu(), pfn, order);
        }
        answer
    }

    /// The process reads or writes a byte of a page of its memory.
    fn access(&mut self, page: ProcessPage, writes: bool) -> Answer {
        self.host.use_table(page);
        let rules = self.memory.profile().faults;
        let (number, said) = match self.host.process.get(&page).copied() {
            Some(Mapped::Page(number)) => {
                let kept = self.host.kept(number);
                let held = self.memory.lru().holds(kept.pfn) > 0 || kept.swap_cache;
                match writes && !kept.writable && held {
                    true => (self.copy(page, number), "present"),
                    false => (Some(number), "present"),
                }
            }
            Some(Mapped::Swapped { cached: Some(number), .. }) => (Some(number), "shadow"),
            Some(Mapped::Swapped { cached: None, shadow }) => {
                let number = self.fault(page, Made::Swapped(shadow));
                if let Some(number) = number {
                    self.brought_back(number, writes);
                    host::free_place(&mut self.memory);
                }
                (number, "shadow")
            }
            None | Some(Mapped::Zeroes) if !writes => {
                let present = self.host.process.insert(page, Mapped::Zeroes).is_some();
                return Answer::Page(Page::new(Pfn::default(), if present { &["present"] } else { &[] }));
            }
            Some(Mapped::Zeroes) => (self.first_page(page, Made::Copied), "present"),
            None => (self.first_page(page, Made::Zeroed), ""),
        };
        let Some(number) = number else { return Answer::Failed };
        self.host.process.insert(page, Mapped::Page(number));
        self.host.use_table(page);
        let kept = self.host.kept_mut(number);
        (kept.mapped, kept.young) = (true, true);
        kept.written |= writes;
        kept.writable |= writes || said.is_empty() || !rules.copies_held_pages;
        self.answer(number, said)
    }

    /// The first store to a page of the process: it gets a zeroed page.
    fn first_page(&mut self, page: ProcessPage, made: Made) -> Option<u32> {
        let number = self.fault(page, made)?;
        self.host.kept_mut(number).written = true;
        Some(number)
    }

    /// Allocates a page for the process. What comes back from swap is charged to the group that it
    /// was charged to when it went.
    fn fault(&mut self, page: ProcessPage, made: Made) -> Option<u32> {
        let pfn = self.alloc(Order::ZERO, FAULT.into(), Gfp::NONE)?;
        let from_swap = matches!(made, Made::Swapped(_));
        let group = if from_swap { self.host.swapped_of(page) } else { self.host.group };
        if !groups::charge(&mut self.memory, &mut self.host, pfn, Order::ZERO, group, Gfp::KERNEL) {
            return None;
        }
        let number = self.host.map(page, pfn);
        self.memory.set_owner(pfn, Order::ZERO, number);
        let mut flags = PageFlags::ANON;
        if let Made::Swapped(Some(shadow)) = made {
            flags = self.memory.workingset_refault_in_fault(self.cpu(), pfn, flags, shadow);
        }
        // Where it frees its slot at once, it is in the swap cache until then.
        if from_swap && self.memory.profile().faults.frees_swap_at_once {
            self.host.set_swap_cache(number, true);
            self.memory.lru_add_from_swap(self.cpu(), pfn, flags, true);
        } else if matches!(made, Made::Copied) {
            let cpu = self.cpu();
            self.memory.lru_add_copy(&mut self.host, cpu, pfn, flags);
        } else {
            self.memory.lru_add_in_fault(self.cpu(), pfn, Order::ZERO, flags);
        }
        Some(number)
    }

    /// Maps a page that came back from swap, and frees its slot.
    fn brought_back(&mut self, number: u32, writes: bool) {
        let rules = self.memory.profile().faults;
        if rules.reading_swap_offers_cpu {
            self.host.kept_mut(number).locked = true;
            daemons::turn(&mut self.host, &mut self.memory, Turn::Offered);
            self.host.kept_mut(number).locked = false;
        }
        if writes && rules.drains_before_writing && !self.memory.is_on_lru(self.host.kept(number).pfn) {
            self.memory.lru_add_drain(self.cpu());
        }
        if rules.frees_swap_at_once {
            self.host.set_swap_cache(number, false);
            self.host.set_dirty(number, true);
            let pfn = self.host.kept(number).pfn;
            self.memory.set_swap_cache(pfn, false);
        }
    }

    /// The process writes to a shared page and gets a copy.
    fn copy(&mut self, page: ProcessPage, old: u32) -> Option<u32> {
        let number = self.fault(page, Made::Copied)?;
        let Kept { pfn, .. } = self.host.remove(old, None);
        self.memory.free(self.cpu(), pfn, Order::ZERO);
        Some(number)
    }

    /// The process drops a page.
    fn drop_page(&mut self, page: ProcessPage) -> Answer {
        let Some(mapped) = self.host.process.remove(&page) else { return Answer::Skipped };
        if self.memory.profile().faults.drains_before_unmapping {
            self.memory.lru_add_drain(self.cpu());
        }
        match mapped {
            Mapped::Zeroes => Answer::Page(Page::new(Pfn::default(), &["present"])),
            Mapped::Page(number) => {
                let answer = self.answer(number, "present");
                let Kept { pfn, swap_cache, .. } = self.host.remove(number, None);
                self.memory.free(self.cpu(), pfn, Order::ZERO);
                if swap_cache {
                    host::free_place(&mut self.memory);
                }
                answer
            }
            Mapped::Swapped { cached, .. } => {
                host::free_place(&mut self.memory);
                if let Some(number) = cached {
                    let Kept { pfn, .. } = self.host.remove(number, None);
                    self.memory.free(self.cpu(), pfn, Order::ZERO);
                }
                Answer::Page(Page::new(Pfn::default(), &["shadow"]))
            }
        }
    }

    /// Completes writes that reclaim started on slow devices.
    fn finish(&mut self, most: u32) -> u32 {
        let mut done = 0;
        while done < most
            && let Some(number) = self.host.writing.pop_front()
        {
            let kept = self.host.kept_mut(number);
            kept.held = false;
            if std::mem::take(&mut kept.writeback) {
                let (pfn, dirty) = (kept.pfn, kept.dirty);
                self.memory.end_writeback(self.cpu(), pfn, dirty);
            }
            done += 1;
        }
        done
    }
}
