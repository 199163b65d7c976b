//! Batches: pages on their way to another place on the LRU wait on the CPU until a batch is full, so that the LRU's lock
//! is taken once for all of them.
//!
//! A batch holds its pages: what their owner lets go meanwhile is freed when the batch lets it go, and reclaim and
//! compaction find such a page held by somebody. Large pages do not wait. Source: kernel-behaviour §4.1.

use crate::state::{BATCH_MAX, BatchKind, FrameKind, Memory, PageFlags, is_on_lru};
use crate::types::{CpuId, Order, Pfn};
use crate::vmstat::VmEvent;

impl Memory {
    /// Puts a page into a CPU's batch, which is moved where that fills it.
    pub(crate) fn batch_add(&mut self, cpu: CpuId, pfn: Pfn, kind: BatchKind) {
        self.lru.hold(pfn);
        let len = self.lru.batches[cpu][kind as usize].push(pfn);
        let large = self.frames.tag(pfn).order() > Order::ZERO;
        if len == self.shared.profile.lru.batch as usize || large {
            self.batch_move(cpu, kind);
        }
    }

    /// Moves a CPU's batches, of every kind: before the LRU is looked at by somebody on that CPU.
    pub fn lru_add_drain(&mut self, cpu: CpuId) {
        if self.lru.is_ordered() {
            for kind in BatchKind::ALL {
                if !self.lru.batch(cpu, kind).is_empty() {
                    self.batch_move(cpu, kind);
                }
            }
        }
    }

    /// Moves all CPUs' batches.
    pub fn lru_add_drain_all(&mut self) {
        for cpu in (0..self.cpus).map(CpuId::new) {
            self.lru_add_drain(cpu);
        }
    }

    fn batch_move(&mut self, cpu: CpuId, kind: BatchKind) {
        let batch = self.lru.batches[cpu][kind as usize].take();
        for &pfn in batch.pages() {
            if kind == BatchKind::Add {
                let order = self.frames.tag(pfn).order();
                self.insert(cpu, pfn, order);
            } else if let Some(order) = is_on_lru(self.frames.tag(pfn)) {
                self.move_within(cpu, pfn, order, kind);
            }
        }
        // What nobody holds any more is freed: it had joined the LRU for no more than this moment. Single pages go
        // together in the end, the last first.
        let (mut single, mut count) = ([Pfn::default(); BATCH_MAX], 0);
        for &pfn in batch.pages() {
            self.lru.let_go(pfn);
            if self.lru.holds(pfn) > 0 || !self.lru.flags(pfn).has(PageFlags::RELEASED) {
                continue;
            }
            let order = self.frames.tag(pfn).order();
            self.lru_del(cpu, pfn, order);
            if order > Order::ZERO {
                self.free_untagged(self.blocks.zone_of(pfn), cpu, pfn, order);
            } else {
                single[count] = pfn;
                count += 1;
            }
        }
        for &pfn in single[..count].iter().rev() {
            self.free_untagged(self.blocks.zone_of(pfn), cpu, pfn, Order::ZERO);
        }
    }

    /// Puts a page that was on no list at the head of its list.
    fn insert(&mut self, cpu: CpuId, pfn: Pfn, order: Order) {
        self.link(cpu, pfn, order, false);
        self.frames.set(pfn, FrameKind::Lru, order);
    }

    /// What a page on the LRU has waited for.
    fn move_within(&mut self, cpu: CpuId, pfn: Pfn, order: Order, kind: BatchKind) {
        let flags = self.lru.flags(pfn);
        if flags.has(PageFlags::UNEVICTABLE) {
            return;
        }
        let pages = u64::from(order.pages());
        let idle = flags.without(PageFlags::ACTIVE).without(PageFlags::REFERENCED);
        let (to, tail, counts) = match kind {
            BatchKind::Add => unreachable!("pages on the LRU are not added to it"),
            BatchKind::Rotate => (flags.without(PageFlags::ACTIVE), true, Some(VmEvent::Pgrotated)),
            BatchKind::DeactivateFile => {
                if flags.has(PageFlags::ACTIVE) {
                    self.shared.vmstat.add(VmEvent::Pgdeactivate, pages);
                }
                // One that has to be written first goes to the head.
                let written = !flags.has(PageFlags::RECLAIM);
                (idle, written, written.then_some(VmEvent::Pgrotated))
            }
            BatchKind::Deactivate if flags.has(PageFlags::ACTIVE) => (idle, false, Some(VmEvent::Pgdeactivate)),
            BatchKind::Lazyfree if !flags.has(PageFlags::FILE) => {
                (idle | PageFlags::FILE, false, Some(VmEvent::Pglazyfree))
            }
            BatchKind::Activate if !flags.has(PageFlags::ACTIVE) => {
                (flags | PageFlags::ACTIVE, false, Some(VmEvent::Pgactivate))
            }
            BatchKind::Deactivate | BatchKind::Lazyfree | BatchKind::Activate => return,
        };
        self.unlink(cpu, pfn, order);
        self.lru.set_flags(pfn, to);
        self.link(cpu, pfn, order, tail);
        if let Some(event) = counts {
            self.shared.vmstat.add(event, pages);
        }
    }

    /// A page that its owner lets go while batches hold it: they free it. Whether that is so.
    pub(crate) fn release_to_batches(&mut self, pfn: Pfn) -> bool {
        let held = self.lru.holds(pfn) > 0;
        if held {
            self.lru.set_flags(pfn, self.lru.flags(pfn) | PageFlags::RELEASED);
        }
        held
    }
}
