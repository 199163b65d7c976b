//! What reclaim and compaction are told about pages of files, and the caches that can be shrunk: nodes with nothing but
//! shadows, and dentries and inodes of files that nobody has open.
//!
//! A page that is being read is locked. A dentry that was used again since it was last looked at has another round. An inode
//! goes after its dentry, when neither a page of it nor a node of its tree is left; so the caches of its pages are not thrown away
//! with it. Source: `mm/workingset.c`, `fs/super.c`, `fs/dcache.c`, `fs/inode.c` of 6.1.

use super::slab::Object;
use super::{Cache, Files, Flags, Frames};
use kontig_mm::{CpuId, Memory, NodeId, Pfn, Shrinker, Shrunk};

/// The shrinkers in the order in which they are asked.
const SHADOWS: usize = 0;
const SUPER_BLOCK: usize = 1;

impl Files {
    /// Drops the buffer head of a page, which is clean.
    pub(crate) fn drop_buffers(&mut self, frames: &mut Frames, pfn: Pfn) {
        if frames.clear(pfn, Flags::PRIVATE) {
            self.gone.push((Cache::BufferHead, Object::of_number(frames.word(pfn))));
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
            _ => None,
        }
    }

    fn unused_counts(&self, node: NodeId) -> [u64; 2] {
        [self.unused_dentries[node.index()].len(), self.unused_inodes[node.index()].len()]
    }

    /// Has a shrinker look at so many objects.
    pub(crate) fn shrink(&mut self, m: &mut Memory, cpu: CpuId, node: NodeId, number: usize, objects: u64) -> Shrunk {
        let (freed, mut pages) = match number {
            SHADOWS => (self.shrink_shadows(objects), 0),
            _ => {
                let [dentries, inodes] = self.unused_counts(node);
                let total = dentries + inodes + 1;
                let (freed, pages) = self.shrink_dentries(m, cpu, node, objects * dentries / total + 1);
                let (more, of_inodes) = self.shrink_inodes(m, cpu, node, objects * inodes / total + 1);
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

    /// Frees dentries; how many, and the pages that were freed with them.
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

    /// Frees inodes; how many, and the pages that were freed with them.
    pub(crate) fn shrink_inodes(&mut self, m: &mut Memory, cpu: CpuId, node: NodeId, most: u64) -> (u64, u64) {
        let (mut freed, mut pages) = (0, 0);
        for _ in 0..most {
            let list = &mut self.unused_inodes[node.index()];
            let Some(inode) = list.first() else { break };
            list.remove(inode);
            let i = &self.inodes[inode];
            if i.is_open() || i.pages > 0 || i.has_dentry() {
                continue;
            }
            let Some(object) = self.drop_inode(inode) else { continue };
            pages += self.slabs.free(m, cpu, Cache::Inode, object);
            freed += 1;
        }
        (freed, pages)
    }
}
