//! The page cache: the pages of files in memory.
//!
//! A page is found by its file and index. The engine keeps the page's place in the cache's trees
//! with its frame, so that the file and index are found from the frame. A page is locked while it
//! is read, and tasks that need it wait.

use super::slab::Object;
use super::tree::{NodeNumber, PAGES};
use super::{Cache, Files};
use crate::base::queue::{QueueId, Queues};
use kontig_mm::{Order, Pfn, Shadow};
use std::ops::Range;

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

    /// The owner word of a page that is in memory.
    pub(crate) fn number(&self, inode: u32, index: u32) -> u32 {
        let leaf = self.inodes[inode].tree.leaf(index).expect("a page has a node");
        leaf * PAGES + index % PAGES
    }

    /// Whether the inode itself can hold the folio: the first page, alone.
    fn fits_inode(index: u32, order: Order) -> bool {
        index == 0 && order == Order::ZERO
    }

    /// The number of nodes to allocate before this folio can be added.
    #[inline]
    pub(crate) fn missing(&self, inode: u32, index: u32, order: Order) -> usize {
        match self.inodes[inode].tree.leaf(index) {
            Some(leaf) if order.pages() <= PAGES => self.missing_beside(leaf, index, order),
            _ => self.missing_leaves(inode, index, order),
        }
    }

    /// The same; `None` if one of the folio's pages is there.
    #[inline]
    pub(crate) fn missing_if_absent(&self, inode: u32, index: u32, order: Order) -> Option<usize> {
        match self.inodes[inode].tree.leaf(index) {
            Some(leaf) if order.pages() <= PAGES => {
                let (entries, place) = (self.nodes.node(leaf).entries(), (index % PAGES) as usize);
                let is_there = match order {
                    Order::ZERO => entries[place].page().is_some(),
                    _ => entries[place..place + order.pages() as usize].iter().any(|entry| entry.page().is_some()),
                };
                if is_there { None } else { Some(self.missing_beside(leaf, index, order)) }
            }
            _ => {
                let is_there = (index..index + order.pages()).any(|index| self.find(inode, index).is_some());
                (!is_there).then(|| self.missing_leaves(inode, index, order))
            }
        }
    }

    /// The nodes missing for a folio whose leaf is there. A leaf without an object is part of the
    /// inode, and the file's only one.
    #[inline(always)]
    fn missing_beside(&self, leaf: NodeNumber, index: u32, order: Order) -> usize {
        usize::from(!self.nodes.has_object(leaf) && !Files::fits_inode(index, order))
    }

    /// The nodes missing for a folio whose first leaf may be missing, too, or which has several.
    fn missing_leaves(&self, inode: u32, index: u32, order: Order) -> usize {
        let tree = &self.inodes[inode].tree;
        let own = tree.leaf(0).is_some_and(|leaf| !self.nodes.has_object(leaf)) && !Files::fits_inode(index, order);
        let first = index / PAGES * PAGES;
        let leaves = (first..index + order.pages()).step_by(PAGES as usize);
        let (mut missing, mut last) = (0, None);
        for at in leaves.filter(|at| tree.leaf(*at).is_none()) {
            missing += 1;
            last = Some(at);
        }
        match last {
            None => usize::from(own),
            Some(0) if Files::fits_inode(index, order) && tree.leaves().next().is_none() => 0,
            // The nodes of a folio have the same above them.
            Some(at) => usize::from(own) + missing + tree.missing_above(at),
        }
    }

    /// Adds a locked folio, with the nodes that were missing. Returns the owner word of its first
    /// page, and the last of the shadows that it replaces.
    pub(crate) fn add_folio(
        &mut self,
        inode: u32,
        index: u32,
        (pfn, order): (Pfn, Order),
        objects: &mut Vec<Object>,
    ) -> (u32, Option<Shadow>) {
        let tree = &self.inodes[inode].tree;
        let own = tree.leaf(0).filter(|leaf| !self.nodes.has_object(*leaf));
        let in_inode = Files::fits_inode(index, order);
        let is_first = in_inode && tree.leaves().next().is_none();
        if !in_inode && let Some(own) = own {
            self.nodes.promote(own, objects.pop().expect("as many objects as are missing"));
        }
        let mut leaf = self.leaf_or_new(inode, index, is_first, objects);
        let number = leaf * PAGES + index % PAGES;
        let mut shadow = self.place_page(leaf, index, pfn);
        for i in 1..order.pages() {
            let index = index + i;
            if index.is_multiple_of(PAGES) {
                leaf = self.leaf_or_new(inode, index, is_first, objects);
            }
            shadow = self.place_page(leaf, index, pfn.plus(i)).or(shadow);
        }
        self.inodes[inode].pages += order.pages();
        self.counts.file_pages += u64::from(order.pages());
        self.by_node.with(pfn).cached += u64::from(order.pages());
        (number, shadow)
    }

    /// The leaf for this index, with the objects that it needs if it is new.
    #[inline(always)]
    fn leaf_or_new(&mut self, inode: u32, index: u32, in_inode: bool, objects: &mut Vec<Object>) -> NodeNumber {
        if let Some(leaf) = self.inodes[inode].tree.leaf(index) {
            return leaf;
        }
        let object = (!in_inode).then(|| objects.pop().expect("as many objects as are missing"));
        let leaf = self.nodes.add(inode, index / PAGES, object);
        self.inodes[inode].tree.add(index, leaf, std::iter::from_fn(|| objects.pop()));
        leaf
    }

    /// Sets the entry of a page that was not there; the shadow that it replaces.
    #[inline(always)]
    fn place_page(&mut self, leaf: NodeNumber, index: u32, pfn: Pfn) -> Option<Shadow> {
        debug_assert!(
            self.nodes.node(leaf).entries()[(index % PAGES) as usize].page().is_none(),
            "page {index} is there twice"
        );
        self.nodes.set_page(leaf, index % PAGES, pfn)
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
        self.nodes.set_page(leaf, index, pfn);
        self.inodes[inode].pages += 1;
        self.counts.file_pages += 1;
        self.by_node.with(pfn).cached += 1;
        leaf * PAGES + index
    }

    /// Removes a folio, or replaces it by a shadow for each of its pages. An empty node is removed,
    /// too.
    pub(crate) fn remove_folio(&mut self, number: u32, order: Order, shadow: Option<Shadow>) {
        match order {
            // Most folios are single pages: for these the loops go.
            Order::ZERO => self.remove_pages(number, Order::ZERO, shadow),
            _ => self.remove_pages(number, order, shadow),
        }
    }

    #[inline(always)]
    fn remove_pages(&mut self, number: u32, order: Order, shadow: Option<Shadow>) {
        let inode = self.nodes.node(number / PAGES).inode;
        self.each_node_of(number, order, |files, leaf, places| {
            for place in places {
                files.nodes.remove_page(leaf, place, shadow);
            }
            if files.nodes.node(leaf).is_empty() {
                files.remove_node(leaf);
            }
        });
        self.counts.file_pages -= u64::from(order.pages());
        let i = &mut self.inodes[inode];
        i.pages -= order.pages();
        if i.pages == 0 {
            self.emptied(inode);
        }
    }

    /// Visits each node that has pages of a folio, with their places in it, by the number of the
    /// folio's first page. The visit may remove the node.
    #[inline(always)]
    pub(super) fn each_node_of(
        &mut self,
        number: u32,
        order: Order,
        mut visit: impl FnMut(&mut Files, NodeNumber, Range<u32>),
    ) {
        let (mut leaf, mut place, mut left) = (number / PAGES, number % PAGES, order.pages());
        loop {
            let next = (left > PAGES).then(|| {
                let node = self.nodes.node(leaf);
                self.inodes[node.inode].tree.leaf((node.at + 1) * PAGES).expect("a page has a node")
            });
            visit(self, leaf, place..place + left.min(PAGES));
            let Some(next) = next else { break };
            (leaf, place, left) = (next, 0, left - PAGES);
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
            self.nodes.forget_shadows(leaf, first.saturating_sub(at));
            if self.nodes.node(leaf).is_empty() {
                self.remove_node(leaf);
            }
        }
    }

    /// Drops the shadows of a node, and the node.
    pub(super) fn empty_node(&mut self, leaf: NodeNumber) {
        self.nodes.forget_shadows(leaf, 0);
        self.remove_node(leaf);
    }

    /// The owner words of a folio's pages, by that of its first page.
    pub(crate) fn numbers_of(&self, number: u32, order: Order) -> impl Iterator<Item = u32> {
        let (inode, first) = self.place(number);
        (first..first + order.pages()).map(move |index| self.number(inode, index))
    }

    /// Records that a folio has moved to other frames.
    pub(crate) fn folio_moved(&mut self, number: u32, mut to: Pfn, order: Order) {
        self.each_node_of(number, order, |files, leaf, places| {
            for place in places {
                files.nodes.set_page(leaf, place, to);
                to = to.plus(1);
            }
        });
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
