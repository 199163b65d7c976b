//! The page cache's trees: a file's pages and shadows, in nodes of 64.
//!
//! A node is a slab object of `radix_tree_node`, and so are the nodes above it, one for each 64 of
//! them. A file of one page needs none: its inode holds the page. A page's number, which the engine
//! keeps with its frame, is its place in its node; the node leads to the file and the index.
//! Shadow-only nodes are listed, the oldest first, because they can be freed ([`super::reclaim`]).
//!
//! Each node marks which of its pages are dirty and which are under writeback, and each tree which
//! of its nodes have any, so that these are found without a scan of the file (the marks of the
//! kernel's XArray).

use super::Files;
use super::slab::Object;
use crate::base::sequence::Sequence;
use crate::state::entry::{CacheEntry, Shadows, Upper};
use kontig_mm::{Order, Pfn, Shadow, prefetch};

/// Pages of a node.
pub(crate) const PAGES: u32 = 64;
/// A node's index in the table.
pub(crate) type NodeNumber = u32;
const NIL: u32 = u32::MAX;
/// Nodes are kept in pieces that never move, large enough for a host's huge pages: 9 MiB.
const PIECE: usize = 1 << 15;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Tag {
    Dirty,
    Writeback,
}

/// 32 bytes of its own, which lie in one line of the host's cache, and 4 for each page.
#[derive(Clone)]
#[repr(C, align(32))]
pub(crate) struct Node {
    /// A bit per page, for each [`Tag`].
    tagged: [u64; 2],
    /// The file, and the node's first page divided by 64.
    pub(crate) inode: u32,
    pub(crate) at: u32,
    /// Its slab object; `NIL` if it is part of its inode.
    object: u32,
    /// The bits that its shadows share.
    upper: Upper,
    /// The number of pages, and of shadows.
    pages: u8,
    shadows: u8,
    entries: [CacheEntry; PAGES as usize],
}

impl Node {
    /// Host bytes for each of its pages.
    pub(crate) const BYTES_PER_PAGE: usize = size_of::<Node>().div_ceil(PAGES as usize);

    const UNUSED: Node = Node {
        tagged: [0; 2],
        inode: NIL,
        at: 0,
        object: NIL,
        upper: 0,
        pages: 0,
        shadows: 0,
        entries: [CacheEntry::EMPTY; PAGES as usize],
    };

    /// Its pages and shadows.
    #[inline(always)]
    pub(crate) fn entries(&self) -> &[CacheEntry; PAGES as usize] {
        &self.entries
    }

    /// Whether any of its pages is dirty or under writeback.
    fn is_tagged(&self) -> bool {
        self.tagged != [0; 2]
    }

    /// Whether it has neither a page nor a shadow.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.pages + self.shadows == 0
    }

    /// Whether it is an object with nothing but shadows.
    #[inline(always)]
    fn has_shadows_only(&self) -> bool {
        self.pages == 0 && self.shadows > 0 && self.object != NIL
    }
}

/// All nodes of the machine.
#[derive(Clone, Default)]
pub(crate) struct Nodes {
    pieces: Vec<Vec<Node>>,
    unused: Vec<NodeNumber>,
    shadows: Shadows,
    /// Shadow-only nodes, the oldest first.
    with_shadows_only: Sequence,
}

impl Nodes {
    /// Adds a node for the pages of a file from `64 * at` on. Without an object it is part of the
    /// inode.
    pub(crate) fn add(&mut self, inode: u32, at: u32, object: Option<Object>) -> NodeNumber {
        let node = Node { inode, at, object: object.map_or(NIL, Object::number), ..Node::UNUSED };
        if let Some(number) = self.unused.pop() {
            *self.node_mut(number) = node;
            return number;
        }
        if self.pieces.last().is_none_or(|piece| piece.len() == PIECE) {
            self.pieces.push(Vec::with_capacity(PIECE));
        }
        let before = self.pieces.len() - 1;
        self.pieces[before].push(node);
        (before * PIECE + self.pieces[before].len() - 1) as NodeNumber
    }

    /// Removes an empty node; its object.
    pub(crate) fn remove(&mut self, number: NodeNumber) -> Option<Object> {
        debug_assert!(self.node(number).is_empty() && !self.node(number).is_tagged());
        self.with_shadows_only.remove(number);
        self.unused.push(number);
        let node = self.node_mut(number);
        node.inode = NIL;
        match std::mem::replace(&mut node.object, NIL) {
            NIL => None,
            object => Some(Object::of_number(object)),
        }
    }

    /// Whether it is a slab object, not part of its inode.
    pub(crate) fn has_object(&self, number: NodeNumber) -> bool {
        self.node(number).object != NIL
    }

    /// Turns the inode's own node into a slab object, because the file grows beyond it.
    pub(crate) fn promote(&mut self, number: NodeNumber, object: Object) {
        let node = self.node_mut(number);
        debug_assert!(node.object == NIL);
        node.object = object.number();
        if node.has_shadows_only() {
            self.with_shadows_only.add(number);
        }
    }

    #[inline(always)]
    pub(crate) fn node(&self, number: NodeNumber) -> &Node {
        &self.pieces[number as usize / PIECE][number as usize % PIECE]
    }

    #[inline(always)]
    pub(crate) fn node_mut(&mut self, number: NodeNumber) -> &mut Node {
        &mut self.pieces[number as usize / PIECE][number as usize % PIECE]
    }

    /// Prefetches what finding a page reads of a node, and what setting it writes.
    #[inline(always)]
    pub(crate) fn prefetch(&self, number: NodeNumber, place: u32) {
        let node = self.node(number);
        prefetch(&node.entries[place as usize]);
        prefetch(&node.tagged);
    }

    /// Sets the entry of a page that joins, or that has moved to another frame; the shadow that it
    /// replaces.
    #[inline(always)]
    pub(crate) fn set_page(&mut self, number: NodeNumber, place: u32, pfn: Pfn) -> Option<Shadow> {
        let node = &mut self.pieces[number as usize / PIECE][number as usize % PIECE];
        let before = std::mem::replace(&mut node.entries[place as usize], CacheEntry::of_page(pfn));
        if before.page().is_some() {
            return None;
        }
        node.pages += 1;
        let shadow = self.shadows.take(node.upper, before);
        node.shadows -= u8::from(shadow.is_some());
        // A page mostly joins a node with other pages, which is off the list.
        if node.pages == 1 {
            self.with_shadows_only.remove(number);
        }
        shadow
    }

    /// Replaces a page by its shadow, or by nothing.
    #[inline(always)]
    pub(crate) fn remove_page(&mut self, number: NodeNumber, place: u32, shadow: Option<Shadow>) {
        let node = &mut self.pieces[number as usize / PIECE][number as usize % PIECE];
        debug_assert!(node.entries[place as usize].page().is_some());
        node.entries[place as usize] = match shadow {
            Some(shadow) => {
                node.shadows += 1;
                self.shadows.add(&mut node.upper, node.shadows == 1, shadow)
            }
            None => CacheEntry::EMPTY,
        };
        node.pages -= 1;
        // A page mostly leaves a node with other pages, which stays off the list.
        if node.has_shadows_only() {
            self.with_shadows_only.add(number);
        }
    }

    /// Drops the shadows of a node from one of its places on, where it has no pages.
    pub(crate) fn forget_shadows(&mut self, number: NodeNumber, first: u32) {
        let node = &mut self.pieces[number as usize / PIECE][number as usize % PIECE];
        for entry in &mut node.entries[first as usize..] {
            debug_assert!(entry.page().is_none());
            if self.shadows.take(node.upper, *entry).is_some() {
                *entry = CacheEntry::EMPTY;
                node.shadows -= 1;
            }
        }
    }

    /// Shadow-only nodes, the oldest first.
    pub(crate) fn with_shadows_only(&self) -> &Sequence {
        &self.with_shadows_only
    }
}

/// The nodes of a file, and the objects above them.
#[derive(Clone, Default)]
pub(crate) struct Tree {
    /// The node for each 64 pages; `NIL` for none.
    leaves: Vec<u32>,
    /// For each level above the leaves, and each 64 nodes below: their number, and the object.
    above: Vec<Vec<Option<(u8, Object)>>>,
    /// For each mark a bit per leaf: whether it has such pages.
    tagged: [Vec<u64>; 2],
}

/// The most objects a page may need: the levels of 2³² pages, less the leaf.
pub(crate) const LEVELS: usize = 5;

impl Tree {
    /// The leaf for this index, if there is one.
    #[inline(always)]
    pub(crate) fn leaf(&self, index: u32) -> Option<NodeNumber> {
        match self.leaves.get((index / PAGES) as usize) {
            Some(&NIL) | None => None,
            Some(&number) => Some(number),
        }
    }

    /// Prefetches the number of the leaf for this index, and its marks.
    #[inline(always)]
    pub(crate) fn prefetch_leaf(&self, index: u32) {
        let leaf = (index / PAGES) as usize;
        prefetch(self.leaves.as_ptr().wrapping_add(leaf));
        self.tagged.iter().for_each(|marks| prefetch(marks.as_ptr().wrapping_add(leaf / 64)));
    }

    /// The leaves from the one for `index` on.
    pub(crate) fn leaves_from(&self, index: u32) -> impl Iterator<Item = NodeNumber> {
        let from = self.leaves.get((index / PAGES) as usize..).unwrap_or_default();
        from.iter().copied().filter(|number| *number != NIL)
    }

    /// All leaves, in order.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = NodeNumber> {
        self.leaves.iter().copied().filter(|number| *number != NIL)
    }

    /// The leaves with marked pages, from the one for `index` on.
    fn tagged_from(&self, index: u32, tag: Tag) -> impl Iterator<Item = NodeNumber> {
        let (first, words) = ((index / PAGES) as usize, &self.tagged[tag as usize]);
        let mut at = first / 64;
        let mut word = words.get(at).map_or(0, |word| word >> (first % 64) << (first % 64));
        std::iter::from_fn(move || {
            while word == 0 {
                at += 1;
                word = *words.get(at)?;
            }
            let bit = word.trailing_zeros() as usize;
            word &= word - 1;
            Some(self.leaves[at * 64 + bit])
        })
    }

    /// Records whether a leaf has marked pages.
    fn tag(&mut self, at: u32, tag: Tag, on: bool) {
        let (words, at) = (&mut self.tagged[tag as usize], at as usize);
        if words.len() <= at / 64 {
            words.resize(at / 64 + 1, 0);
        }
        let bit = 1u64 << (at % 64);
        words[at / 64] = if on { words[at / 64] | bit } else { words[at / 64] & !bit };
    }

    /// The number of objects needed above a new leaf for this index. The first of a level needs
    /// none: a tree is only as high as necessary.
    pub(crate) fn missing_above(&self, index: u32) -> usize {
        let (mut at, mut missing) = ((index / PAGES) as usize, 0);
        while at > 0 {
            at /= PAGES as usize;
            if self.above.get(missing).and_then(|level| level.get(at)).is_some_and(Option::is_some) {
                break;
            }
            missing += 1;
        }
        missing
    }

    /// Adds a leaf, with the objects missing above it.
    pub(crate) fn add(&mut self, index: u32, number: NodeNumber, mut objects: impl Iterator<Item = Object>) {
        let leaf = (index / PAGES) as usize;
        if self.leaves.len() <= leaf {
            self.leaves.resize(leaf + 1, NIL);
        }
        debug_assert!(self.leaves[leaf] == NIL);
        self.leaves[leaf] = number;
        let (mut at, mut level) = (leaf, 0);
        while at > 0 {
            at /= PAGES as usize;
            if self.above.len() == level {
                self.above.push(Vec::new());
            }
            let above = &mut self.above[level];
            if above.len() <= at {
                above.resize(at + 1, None);
            }
            if let Some((below, _)) = &mut above[at] {
                *below += 1;
                break;
            }
            above[at] = Some((1, objects.next().expect("as many as are missing")));
            level += 1;
        }
    }

    /// Removes a leaf; the objects above it that go, too.
    pub(crate) fn remove(&mut self, at: u32) -> impl Iterator<Item = Object> + use<> {
        self.leaves[at as usize] = NIL;
        let mut gone = [None; LEVELS];
        let mut at = at as usize;
        for (level, gone) in self.above.iter_mut().zip(&mut gone) {
            if at == 0 {
                break;
            }
            at /= PAGES as usize;
            let (below, object) = level[at].as_mut().expect("what is below is counted");
            *below -= 1;
            if *below > 0 {
                break;
            }
            *gone = Some(*object);
            level[at] = None;
        }
        gone.into_iter().flatten()
    }
}

impl Files {
    /// Sets or clears a mark of the page with this number.
    pub(crate) fn tag(&mut self, number: u32, tag: Tag, on: bool) {
        let bit = 1u64 << (number % PAGES);
        self.tag_node(number / PAGES, tag, |pages| if on { pages | bit } else { pages & !bit });
    }

    /// Changes which pages of a node have a mark.
    #[inline(always)]
    fn tag_node(&mut self, leaf: NodeNumber, tag: Tag, change: impl FnOnce(u64) -> u64) {
        let node = self.nodes.node_mut(leaf);
        let pages = &mut node.tagged[tag as usize];
        let had_any = *pages != 0;
        *pages = change(*pages);
        let has_any = *pages != 0;
        // The tree knows already, except with the first page and after the last.
        if has_any != had_any {
            self.inodes[node.inode].tree.tag(node.at, tag, has_any);
        }
    }

    /// Whether the page with this number is marked.
    pub(crate) fn is_tagged(&self, number: u32, tag: Tag) -> bool {
        self.nodes.node(number / PAGES).tagged[tag as usize] >> (number % PAGES) & 1 != 0
    }

    /// Clears a mark of all pages of a folio, by the number of its first page.
    pub(crate) fn clear_tags(&mut self, number: u32, order: Order, tag: Tag) {
        self.each_node_of(number, order, |files, leaf, places| {
            let range = (!0u64 >> (PAGES - places.len() as u32)) << places.start;
            files.tag_node(leaf, tag, |pages| pages & !range);
        });
    }

    /// The first marked page of a file from `first` on.
    pub(crate) fn next_tagged(&self, inode: u32, first: u32, tag: Tag) -> Option<u32> {
        self.inodes[inode].tree.tagged_from(first, tag).find_map(|leaf| {
            let node = self.nodes.node(leaf);
            // Pages of the first node that lie before.
            let before = first.saturating_sub(node.at * PAGES);
            let pages = node.tagged[tag as usize] >> before << before;
            (pages != 0).then(|| node.at * PAGES + pages.trailing_zeros())
        })
    }

    /// Checks a file's tree for [`crate::Machine::check`].
    pub(crate) fn check_tree(&self, inode: u32) -> Result<(), String> {
        let tree = &self.inodes[inode].tree;
        if tree.leaves().count() > 1 && tree.leaves().any(|leaf| !self.nodes.has_object(leaf)) {
            return Err(format!("file {inode} has several nodes, one of them in its inode"));
        }
        for tag in [Tag::Dirty, Tag::Writeback] {
            let has = |leaf: &NodeNumber| self.nodes.node(*leaf).tagged[tag as usize] != 0;
            if !tree.leaves().filter(has).eq(tree.tagged_from(0, tag)) {
                return Err(format!("the tree of file {inode} marks other nodes as {tag:?} than have such pages"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::file::slab::{Allocator, Cache, Slabs};
    use kontig_mm::{CpuId, LruvecId, NodeId};

    /// An endless supply of objects.
    fn objects() -> impl Iterator<Item = Object> {
        let mut slabs = Slabs::new(Allocator::Slub, &[0], 1);
        let (cpu, node) = (CpuId::new(0), NodeId::new(0));
        std::iter::from_fn(move || {
            slabs.take(Cache::Node, cpu, node).or_else(|| {
                slabs.grow(Cache::Node, cpu, node, Pfn::new(0), slabs.order(Cache::Node));
                slabs.take(Cache::Node, cpu, node)
            })
        })
    }

    #[test]
    fn a_tree_is_as_high_as_its_pages_need() {
        let mut tree = Tree::default();
        // The objects needed above each node, added one after the other.
        let needs = |tree: &mut Tree, index: u32| {
            let missing = tree.missing_above(index);
            tree.add(index, index / PAGES, objects().take(missing));
            missing
        };
        let all = [0, 64, 130, 64 * 64, 64 * 65, 64 * 64 * 64].map(|index| needs(&mut tree, index));
        assert_eq!(all, [0, 1, 0, 2, 0, 3]);
        assert_eq!(tree.leaves().collect::<Vec<_>>(), [0, 1, 2, 64, 65, 4096]);
        assert_eq!((tree.leaf(70), tree.leaf(200), tree.leaves_from(200).next()), (Some(1), None, Some(64)));
        let gone = [0, 1, 2, 64, 65, 4096].map(|at| tree.remove(at).count());
        assert_eq!(gone, [0, 0, 1, 0, 2, 3], "and no higher when they go");
    }

    #[test]
    fn nodes_with_dirty_pages_are_found_without_a_look_at_the_others() {
        let mut tree = Tree::default();
        let far = 64 * 64 * 3 + 64 * 5;
        for index in [0, 64, 128, far] {
            let missing = tree.missing_above(index);
            tree.add(index, 100 + index / PAGES, objects().take(missing));
        }
        [1, far / PAGES].iter().for_each(|at| tree.tag(*at, Tag::Dirty, true));
        tree.tag(2, Tag::Writeback, true);
        let tagged = |tree: &Tree, from, tag| tree.tagged_from(from, tag).collect::<Vec<_>>();
        let last = 100 + far / PAGES;
        assert_eq!(tagged(&tree, 0, Tag::Dirty), [101, last]);
        assert_eq!(tagged(&tree, 127, Tag::Dirty), [101, last], "the node that has the page is one of them");
        assert_eq!(tagged(&tree, 128, Tag::Dirty), [last]);
        assert_eq!(tagged(&tree, far + 64, Tag::Dirty), []);
        assert_eq!(tagged(&tree, 0, Tag::Writeback), [102]);
        tree.tag(1, Tag::Dirty, false);
        assert_eq!(tagged(&tree, 0, Tag::Dirty), [last]);
    }

    #[test]
    fn nodes_with_nothing_but_shadows_are_listed_the_oldest_first() {
        let mut nodes = Nodes::default();
        let object = objects().next();
        let [a, b, own] = [object, object, None].map(|object| nodes.add(7, 0, object));
        let shadow = |eviction| Some(Shadow { lruvec: LruvecId::new(0), eviction, workingset: false });
        for number in [a, b, own] {
            [3, 4].iter().for_each(|place| assert_eq!(nodes.set_page(number, *place, Pfn::new(9)), None));
            nodes.remove_page(number, 4, shadow(1));
        }
        assert_eq!(nodes.with_shadows_only().len(), 0);
        [b, a, own].iter().for_each(|number| nodes.remove_page(*number, 3, shadow(2)));
        assert_eq!(
            (nodes.with_shadows_only().len(), nodes.with_shadows_only().first()),
            (2, Some(b)),
            "an inode's own is no object"
        );
        assert_eq!(nodes.set_page(b, 3, Pfn::new(1)), shadow(2));
        assert_eq!((nodes.with_shadows_only().len(), nodes.with_shadows_only().first()), (1, Some(a)));
        nodes.forget_shadows(a, 4);
        assert!(!nodes.node(a).is_empty());
        nodes.forget_shadows(a, 0);
        assert!(nodes.node(a).is_empty());
        assert_eq!((nodes.remove(a), nodes.with_shadows_only().len(), nodes.add(8, 0, None)), (object, 0, a));
    }

    proptest::proptest! {
        #[test]
        fn each_shadow_comes_back_as_it_was(
            acts in proptest::collection::vec((0..3usize, 0..PAGES, 0..3usize, 0..4u32, 0..3u64), 1..400),
        ) {
            let mut nodes = Nodes::default();
            let numbers = [0, 1, 2].map(|at| nodes.add(7, at, None));
            let mut places = vec![[None::<Result<Pfn, Shadow>>; PAGES as usize]; numbers.len()];
            for (i, (node, place, lruvec, what, later)) in (0u32..).zip(acts) {
                let (number, places) = (numbers[node], &mut places[node]);
                let at = place as usize;
                match (places[at], what) {
                    (Some(Ok(_)), 0) => {
                        nodes.remove_page(number, place, None);
                        places[at] = None;
                    }
                    (Some(Ok(_)), 1..) => {
                        // Clocks of three ages, the last of them older than a run can share.
                        let eviction = u64::from(i) + (later << 29) * (later + 1) * 16;
                        let shadow = Shadow {
                            lruvec: LruvecId::new(lruvec),
                            eviction,
                            workingset: i % 2 == 0,
                        };
                        nodes.remove_page(number, place, Some(shadow));
                        places[at] = Some(Err(shadow));
                    }
                    (_, 0) if places[at..].iter().all(|there| !matches!(there, Some(Ok(_)))) => {
                        nodes.forget_shadows(number, place);
                        places[at..].fill(None);
                    }
                    (before, _) => {
                        let pfn = Pfn::new(i);
                        assert_eq!(nodes.set_page(number, place, pfn), before.and_then(Result::err));
                        places[at] = Some(Ok(pfn));
                    }
                }
            }
            for (number, places) in numbers.iter().zip(&places) {
                let node = nodes.node(*number);
                for (entry, there) in node.entries().iter().zip(places) {
                    assert_eq!(entry.page(), there.and_then(Result::ok));
                    let shadow = there.and_then(Result::err);
                    assert_eq!(nodes.shadows.peek(node.upper, *entry), shadow);
                }
                let its = places.iter().filter(|there| matches!(there, Some(Err(_)))).count();
                assert_eq!((usize::from(node.shadows), node.is_empty()), (its, places.iter().all(Option::is_none)));
                let pages = (0..PAGES).filter(|place| matches!(places[*place as usize], Some(Ok(_))));
                pages.for_each(|place| nodes.remove_page(*number, place, None));
                nodes.forget_shadows(*number, 0);
            }
            assert_eq!(nodes.shadows.kept_apart(), 0, "what is gone keeps no place");
        }
    }
}
