//! What use does to a page on the LRU, as far as its owner tells: a second use of an inactive page makes it active.
//!
//! inactive, not referenced → referenced → active, not referenced → referenced. Pages of page tables are not told of
//! here: reclaim asks for their references ([`crate::Owner::references`]). Source: kernel-behaviour §4.1.

use crate::state::{BatchKind, FrameKind, Memory, PageFlags};
use crate::types::{CpuId, Pfn};

impl Memory {
    /// The page has been used.
    pub fn mark_accessed(&mut self, cpu: CpuId, pfn: Pfn) {
        let flags = self.lru.flags(pfn);
        if !flags.has(PageFlags::REFERENCED) {
            self.lru.set_flags(pfn, flags | PageFlags::REFERENCED);
        } else if !flags.has(PageFlags::UNEVICTABLE) && !flags.has(PageFlags::ACTIVE) {
            if self.is_on_lru(pfn) {
                self.batch_add(cpu, pfn, BatchKind::Activate);
            } else if self.lru.batch(cpu, BatchKind::Add).contains(&pfn) {
                // It will be put on the right list in the first place. Another CPU's batch is not looked at.
                self.lru.set_flags(pfn, flags | PageFlags::ACTIVE);
            }
            let flags = self.lru.flags(pfn);
            self.lru.set_flags(pfn, flags.without(PageFlags::REFERENCED));
            self.workingset_activation(pfn);
        }
    }

    /// The page is not likely to be used again: to the inactive list.
    pub fn deactivate(&mut self, cpu: CpuId, pfn: Pfn) {
        let flags = self.lru.flags(pfn);
        if self.is_on_lru(pfn) && flags.has(PageFlags::ACTIVE) && !flags.has(PageFlags::UNEVICTABLE) {
            self.batch_add(cpu, pfn, BatchKind::Deactivate);
        }
    }

    /// The page of a file could not be dropped, or need not stay: reclaim takes it next, or once it is written
    /// (`to_be_written`).
    pub fn deactivate_file(&mut self, cpu: CpuId, pfn: Pfn, to_be_written: bool) {
        let flags = self.lru.flags(pfn);
        if !flags.has(PageFlags::UNEVICTABLE) {
            if to_be_written {
                self.lru.set_flags(pfn, flags | PageFlags::RECLAIM);
            }
            self.batch_add(cpu, pfn, BatchKind::DeactivateFile);
        }
    }

    /// The page has been written. If reclaim waited for that it goes to the tail of its list; it is no longer marked.
    pub fn end_writeback(&mut self, cpu: CpuId, pfn: Pfn, dirty_again: bool) {
        let flags = self.lru.flags(pfn);
        if flags.has(PageFlags::RECLAIM) {
            self.lru.set_flags(pfn, flags.without(PageFlags::RECLAIM));
            if !dirty_again && !flags.has(PageFlags::UNEVICTABLE) && self.is_on_lru(pfn) {
                self.batch_add(cpu, pfn, BatchKind::Rotate);
            }
        }
    }

    /// Whether the page is on one of the lists: not isolated, and not only in a batch.
    #[inline(always)]
    pub fn is_on_lru(&self, pfn: Pfn) -> bool {
        self.frames.tag(pfn).kind() == FrameKind::Lru
    }
}
