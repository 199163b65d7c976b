//! Shrinkers for the caches of files: shadow-only tree nodes, dentries and inodes of unused files,
//! and XFS's buffers.
//!
//! A dentry used since it was last passed gets another round. An inode follows its dentry: since
//! 5.16 once neither a page nor a tree node of it is left, so that its pages are not dropped with
//! it; before, with its clean pages. Source: Linux 4.20, `mm/workingset.c`, `fs/super.c`,
//! `fs/dcache.c`, `fs/inode.c` of 6.1.

use super::slab::Object;
use super::xfs::{Item, Xfs};
use super::{Cache, Files, Flags, Frames};
use crate::state::mapcount::Mapcounts;
use kontig_mm::{CpuId, Gfp, Memory, NodeId, Pfn, Shrinker, Shrunk};

/// The shrinkers, in the order in which they are called.
const SHADOWS: usize = 0;
const SUPER_BLOCK: usize = 1;

impl Files {
    /// Frees the buffer heads of a clean folio.
    pub(crate) fn drop_buffers(&mut self, frames: &mut Frames, pfn: Pfn) {
        if !frames.clear(pfn, Flags::PRIVATE) {
            return;
        }
        for i in 0..frames.flags(pfn).order().pages() {
            self.gone.push((Cache::BufferHead, Object::of_number(frames.word(pfn.plus(i)))));
        }
    }

    /// The shrinker of this number.
    pub(crate) fn shrinker(&self, node: NodeId, number: usize) -> Option<Shrinker> {
        match number {
            SHADOWS => {
                let worth = self.nodes_worth[node.index()];
                let there = if node.index() == 0 { self.nodes.with_shadows_only().len() } else { 0 };
                Some(Shrinker { freeable: there.saturating_sub(worth), seeks: 0, batch: 128 })
            }
            SUPER_BLOCK => {
                let [dentries, inodes] = self.unused_counts(node);
                Some(Shrinker { freeable: dentries + inodes, seeks: 2, batch: 1024 })
            }
            _ => Some(self.xfs_shrunk_by(number)?.buffers.shrinker(node)),
        }
    }

    /// Each XFS has a shrinker after the others.
    fn xfs_shrunk_by(&self, number: usize) -> Option<&Xfs> {
        self.xfs.iter().flatten().nth(number.checked_sub(SUPER_BLOCK + 1)?).map(Box::as_ref)
    }

    fn unused_counts(&self, node: NodeId) -> [u64; 2] {
        [self.unused_dentries[node.index()].len(), self.unused_inodes[node.index()].len()]
    }

    /// Whether a request may run this shrinker. Those of dentries and inodes need `__GFP_FS`, as
    /// the caller may hold locks of a file system.
    pub(crate) fn may_shrink(&self, number: usize, gfp: Gfp) -> bool {
        number != SUPER_BLOCK || gfp.has(Gfp::FS)
    }

    /// Makes a shrinker scan this many objects.
    pub(crate) fn shrink(
        &mut self,
        m: &mut Memory,
        cpu: CpuId,
        page_flags: (&mut Frames, &mut Mapcounts),
        node: NodeId,
        (number, objects): (usize, u64),
    ) -> Shrunk {
        let (freed, mut pages) = match number {
            SHADOWS => (self.shrink_shadows(objects), 0),
            more if more > SUPER_BLOCK => {
                let disk = (0u8..).zip(&self.xfs).filter(|(_, xfs)| xfs.is_some()).nth(more - SUPER_BLOCK - 1);
                let disk = disk.map(|(disk, _)| disk).expect("it has said that it is there");
                self.shrink_buffers(m, cpu, disk, node, objects)
            }
            _ => {
                let [dentries, inodes] = self.unused_counts(node);
                let total = dentries + inodes + 1;
                let (freed, pages) = self.shrink_dentries(m, cpu, node, objects * dentries / total + 1);
                let (more, of_inodes) = self.shrink_inodes(m, cpu, page_flags, node, objects * inodes / total + 1);
                (freed + more, pages + of_inodes)
            }
        };
        pages += self.free_gone(m, cpu);
        Shrunk { scanned: objects, freed, pages }
    }

    fn shrink_shadows(&mut self, objects: u64) -> u64 {
        let mut freed = 0;
        while freed < objects
            && let Some(oldest) = self.nodes.with_shadows_only().first()
        {
            let inode = self.nodes.node(oldest).inode;
            self.empty_node(oldest);
            self.emptied(inode);
            freed += 1;
        }
        freed
    }

    /// Frees dentries; their number, and the pages freed with them.
    pub(crate) fn shrink_dentries(&mut self, m: &mut Memory, cpu: CpuId, node: NodeId, most: u64) -> (u64, u64) {
        let (mut freed, mut pages) = (0, 0);
        for _ in 0..most {
            let list = &mut self.unused_dentries[node.index()];
            let Some(inode) = list.first() else { break };
            list.remove(inode);
            if self.inodes[inode].is_open() {
                continue;
            }
            if self.was_used(inode) {
                self.unused_dentries[node.index()].add(inode);
                continue;
            }
            let Some(object) = self.drop_dentry(inode) else { continue };
            pages += self.slabs.free(m, cpu, Cache::Dentry, object);
            freed += 1;
        }
        (freed, pages)
    }

    /// Drops a file's clean, unused pages (`invalidate_mapping_pages`); their number.
    fn invalidate(
        &mut self,
        m: &mut Memory,
        cpu: CpuId,
        (frames, mapcounts): (&mut Frames, &mut Mapcounts),
        inode: u32,
    ) -> u64 {
        let in_use = Flags::LOCKED | Flags::WRITEBACK | Flags::DIRTY | Flags::HELD;
        let all: Vec<Pfn> = self.pages_from(inode, 0).map(|(_, pfn)| pfn).filter(|p| frames.head(*p) == *p).collect();
        let mut dropped = 0;
        for pfn in all {
            // Pages isolated from the lists belong to reclaim or compaction.
            let order = frames.flags(pfn).order();
            let is_mapped = (0..order.pages()).any(|i| mapcounts.is_mapped(pfn.plus(i)));
            if frames.flags(pfn).any(in_use) || is_mapped || !m.frames().tag(pfn).is_lru() {
                continue;
            }
            let number = m.frames().owner(pfn, order);
            mapcounts.reset_folio(pfn, order);
            self.drop_buffers(frames, pfn);
            frames.end_folio(pfn, order);
            self.by_node.with(pfn).cached -= u64::from(order.pages());
            self.remove_folio(number, order, None);
            m.free(cpu, pfn, order);
            dropped += u64::from(order.pages());
        }
        dropped
    }

    /// Frees inodes; their number, and the pages freed with them.
    pub(crate) fn shrink_inodes(
        &mut self,
        m: &mut Memory,
        cpu: CpuId,
        page_flags: (&mut Frames, &mut Mapcounts),
        node: NodeId,
        most: u64,
    ) -> (u64, u64) {
        let (frames, mapcounts) = page_flags;
        let (mut freed, mut pages) = (0, 0);
        // Those that cannot go yet rejoin at the end.
        for _ in 0..most.min(self.unused_inodes[node.index()].len()) {
            let list = &mut self.unused_inodes[node.index()];
            let Some(inode) = list.first() else { break };
            list.remove(inode);
            let i = &self.inodes[inode];
            if i.is_open() || i.has_dentry() {
                continue;
            }
            if i.pages > 0 {
                if !self.inodes_take_pages {
                    continue;
                }
                let took = self.invalidate(m, cpu, (frames, mapcounts), inode);
                self.counts.inodes_took += took;
                pages += took;
                if self.inodes[inode].pages > 0 {
                    self.unused_inodes[node.index()].add(inode);
                    continue;
                }
                self.unused_inodes[node.index()].remove(inode);
            }
            let i = &self.inodes[inode];
            if !i.logged.is_clean() {
                // It waits until its buffer has been written.
                self.unused_inodes[node.index()].add(inode);
                continue;
            }
            let cache = self.filesystem(inode).inodes();
            if self.inodes[inode].chunk.is_some() {
                let disk = self.disk_of(inode);
                self.drop_logged(m, cpu, disk, Item::Inode(inode), true);
            }
            let Some(object) = self.drop_inode(inode) else { continue };
            pages += self.slabs.free(m, cpu, cache, object);
            freed += 1;
        }
        (freed, pages)
    }
}
