//! The page cache: the pages of files in memory.
//!
//! A page is found by its file and index. The engine keeps the page's place in the cache's trees
//! with its frame, so that the file and index are found from the frame. A page is locked while it
//! is read, and tasks that need it wait.

use super::slab::Object;
use super::tree::{NodeNumber, PAGES};
use super::{Cache, Files};
use crate::base::queue::{QueueId, Queues};
use crate::state::entry::CacheEntry;
use kontig_mm::{Pfn, Shadow};

/// Wait queues for pages: one for each of 256 hashes, as in the kernel.
#[derive(Clone, Default)]
pub(crate) struct Waiters(Vec<QueueId>);

impl Waiters {
    pub(crate) fn new(queues: &mut Queues) -> Waiters {
        Waiters((0..256).map(|_| queues.add()).collect())
    }

    /// The queue of a page.
    pub(crate) fn of(&self, pfn: Pfn) -> QueueId {
        // Neighbours are read together, so each gets a queue of its own.
        self.0[pfn.index() % self.0.len()]
    }
}

impl Files {
    /// A file's page, if it is in memory.
    #[inline(always)]
    pub(crate) fn find(&self, inode: u32, index: u32) -> Option<Pfn> {
        let leaf = self.inodes[inode].tree.leaf(index)?;
        self.nodes.node(leaf).entries()[(index % PAGES) as usize].page()
    }

    /// The same of a file that may be gone.
    #[inline(always)]
    pub(crate) fn peek(&self, inode: u32, index: u32) -> Option<Pfn> {
        self.inodes.get(inode).and_then(|_| self.find(inode, index))
    }

    /// Prefetches which node has a page; the file may be gone.
    #[inline(always)]
    pub(crate) fn prefetch_leaf(&self, inode: u32, index: u32) {
        if let Some(inode) = self.inodes.get(inode) {
            inode.tree.prefetch_leaf(index);
        }
    }

    /// Prefetches the node that has a page, if there is one; the file may be gone.
    #[inline(always)]
    pub(crate) fn prefetch_node(&self, inode: u32, index: u32) {
        if let Some(leaf) = self.inodes.get(inode).and_then(|inode| inode.tree.leaf(index)) {
            self.nodes.prefetch(leaf, index % PAGES);
        }
    }

    /// The file and index of a page, by its owner word.
    #[inline]
    pub(crate) fn place(&self, number: u32) -> (u32, u32) {
        let node = self.nodes.node(number / PAGES);
        (node.inode, node.at * PAGES + number % PAGES)
    }

    /// The number of nodes to allocate before this page can be added.
    pub(crate) fn missing(&self, inode: u32, index: u32) -> usize {
        let tree = &self.inodes[inode].tree;
        let own = tree.leaf(0).is_some_and(|leaf| !self.nodes.has_object(leaf));
        match tree.leaf(index) {
            Some(_) if index == 0 || !own => 0,
            Some(_) => 1,
            None if index == 0 && tree.leaves().next().is_none() => 0,
            None => usize::from(own) + 1 + tree.missing_above(index),
        }
    }

    /// Adds a locked page, with the nodes that were missing. Returns the page's owner word, and the
    /// shadow that it replaces.
    pub(crate) fn add_page(
        &mut self,
        inode: u32,
        index: u32,
        pfn: Pfn,
        objects: &mut Vec<Object>,
    ) -> (u32, Option<Shadow>) {
        let tree = &self.inodes[inode].tree;
        let own = tree.leaf(0).filter(|leaf| !self.nodes.has_object(*leaf));
        let is_first = index == 0 && tree.leaves().next().is_none();
        if index > 0
            && let Some(own) = own
        {
            self.nodes.promote(own, objects.pop().expect("as many objects as are missing"));
        }
        let leaf = match self.inodes[inode].tree.leaf(index) {
            Some(leaf) => leaf,
            None => {
                let object = (!is_first).then(|| objects.pop().expect("as many objects as are missing"));
                let leaf = self.nodes.add(inode, index / PAGES, object);
                self.inodes[inode].tree.add(index, leaf, std::iter::from_fn(|| objects.pop()));
                leaf
            }
        };
        let before = self.nodes.set(leaf, index % PAGES, CacheEntry::of_page(pfn));
        debug_assert!(before.page().is_none(), "page {index} is there twice");
        self.inodes[inode].pages += 1;
        self.counts.file_pages += 1;
        (leaf * PAGES + index % PAGES, before.shadow())
    }

    /// Adds a page to a file's first node, which is part of the inode; its owner word.
    pub(crate) fn adopt(&mut self, inode: u32, index: u32, pfn: Pfn) -> u32 {
        let leaf = match self.inodes[inode].tree.leaf(index) {
            Some(leaf) => leaf,
            None => {
                let leaf = self.nodes.add(inode, 0, None);
                self.inodes[inode].tree.add(index, leaf, std::iter::empty());
                leaf
            }
        };
        self.nodes.set(leaf, index, CacheEntry::of_page(pfn));
        self.inodes[inode].pages += 1;
        self.counts.file_pages += 1;
        leaf * PAGES + index
    }

    /// Removes a page, or replaces it by a shadow. An empty node is removed, too.
    pub(crate) fn remove_page(&mut self, number: u32, shadow: Option<Shadow>) {
        let (leaf, place) = (number / PAGES, number % PAGES);
        let before = self.nodes.set(leaf, place, CacheEntry::of_shadow(shadow));
        debug_assert!(before.page().is_some());
        let node = self.nodes.node(leaf);
        let inode = node.inode;
        if node.is_empty() {
            self.remove_node(leaf);
        }
        self.counts.file_pages -= 1;
        let i = &mut self.inodes[inode];
        i.pages -= 1;
        if i.pages == 0 {
            self.emptied(inode);
        }
    }

    /// Removes an empty node, and those above it that become empty.
    pub(super) fn remove_node(&mut self, leaf: NodeNumber) {
        let (inode, at) = (self.nodes.node(leaf).inode, self.nodes.node(leaf).at);
        let gone = self.inodes[inode].tree.remove(at).chain(self.nodes.remove(leaf));
        self.gone.extend(gone.map(|object| (Cache::Node, object)));
    }

    /// Drops all shadows of a file without pages in memory.
    pub(super) fn forget_shadows(&mut self, inode: u32) {
        let leaves: Vec<NodeNumber> = self.inodes[inode].tree.leaves().collect();
        for leaf in leaves {
            self.empty_node(leaf);
        }
    }

    /// Drops the shadows of a file from `first` on, where none of its pages is in memory.
    pub(super) fn forget_from(&mut self, inode: u32, first: u32) {
        let leaves: Vec<NodeNumber> = self.inodes[inode].tree.leaves_from(first).collect();
        for leaf in leaves {
            let at = self.nodes.node(leaf).at * PAGES;
            for place in first.saturating_sub(at)..PAGES {
                self.nodes.set(leaf, place, CacheEntry::EMPTY);
            }
            if self.nodes.node(leaf).is_empty() {
                self.remove_node(leaf);
            }
        }
    }

    /// Drops the shadows of a node, and the node.
    pub(super) fn empty_node(&mut self, leaf: NodeNumber) {
        for place in 0..PAGES {
            debug_assert!(self.nodes.node(leaf).entries()[place as usize].page().is_none());
            if !self.nodes.node(leaf).entries()[place as usize].is_empty() {
                self.nodes.set(leaf, place, CacheEntry::EMPTY);
            }
        }
        self.remove_node(leaf);
    }

    /// Records that a page has moved to another frame.
    pub(crate) fn page_moved(&mut self, number: u32, to: Pfn) {
        self.nodes.set(number / PAGES, number % PAGES, CacheEntry::of_page(to));
    }

    /// The pages of a file in memory from `first` on, with their indexes.
    pub(crate) fn pages_from(&self, inode: u32, first: u32) -> impl Iterator<Item = (u32, Pfn)> {
        let leaves = self.inodes[inode].tree.leaves_from(first);
        leaves.flat_map(move |leaf| {
            let node = self.nodes.node(leaf);
            let places = (0..PAGES).filter(move |place| node.at * PAGES + place >= first);
            places.filter_map(move |place| Some((node.at * PAGES + place, node.entries()[place as usize].page()?)))
        })
    }
}
