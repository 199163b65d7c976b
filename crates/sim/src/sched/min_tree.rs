//! A row of keys of which the least, and the first that is small enough, are found in O(log n).
//!
//! A tournament: every inner node has the lesser key of its two children, the leaves are the row. `K`'s greatest value
//! stands for a place without a key.

/// What has a greatest value.
pub(crate) trait Key: Copy + Ord {
    /// The key of a place that has none.
    const NONE: Self;
}

impl Key for u64 {
    const NONE: u64 = u64::MAX;
}

impl Key for u128 {
    const NONE: u128 = u128::MAX;
}

/// The row. Node 1 is the root, node n has the children 2n and 2n + 1, and the leaves are the second half.
#[derive(Clone)]
pub(crate) struct MinTree<K> {
    nodes: Vec<K>,
    len: usize,
}

impl<K: Key> MinTree<K> {
    /// A row without places.
    pub(crate) fn new() -> MinTree<K> {
        MinTree { nodes: vec![K::NONE; 2], len: 0 }
    }

    fn leaves(&self) -> usize {
        self.nodes.len() / 2
    }

    /// Adds a place without a key to the end of the row; its number.
    pub(crate) fn push(&mut self) -> usize {
        if self.len == self.leaves() {
            let keys = self.nodes.split_off(self.leaves());
            self.nodes = vec![K::NONE; 4 * keys.len()];
            let first = self.leaves();
            self.nodes[first..first + keys.len()].copy_from_slice(&keys);
            (1..first).rev().for_each(|n| self.nodes[n] = self.nodes[2 * n].min(self.nodes[2 * n + 1]));
        }
        self.len += 1;
        self.len - 1
    }

    /// Gives a place a key.
    #[inline]
    pub(crate) fn set(&mut self, place: usize, key: K) {
        let mut n = self.leaves() + place;
        self.nodes[n] = key;
        while n > 1 {
            let least = self.nodes[n].min(self.nodes[n ^ 1]);
            n /= 2;
            if self.nodes[n] == least {
                return;
            }
            self.nodes[n] = least;
        }
    }

    /// A place's key.
    #[cfg(test)]
    pub(crate) fn get(&self, place: usize) -> K {
        self.nodes[self.leaves() + place]
    }

    /// The least key.
    #[inline]
    pub(crate) fn least(&self) -> K {
        self.nodes[1]
    }

    /// The least key of all other places.
    #[inline]
    pub(crate) fn least_besides(&self, place: usize) -> K {
        let mut n = self.leaves() + place;
        let mut least = K::NONE;
        while n > 1 {
            least = least.min(self.nodes[n ^ 1]);
            n /= 2;
        }
        least
    }

    /// The first place whose key is at most `limit`.
    #[inline]
    pub(crate) fn first_at_most(&self, limit: K) -> Option<usize> {
        if self.least() > limit || self.least() == K::NONE {
            return None;
        }
        let mut n = 1;
        while n < self.leaves() {
            n = 2 * n + usize::from(self.nodes[2 * n] > limit);
        }
        Some(n - self.leaves())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_tree_finds_what_a_look_at_every_place_finds(
            sets in prop::collection::vec((any::<prop::sample::Index>(), 0..20u64, 0..20u64), 1..200),
        ) {
            let (mut tree, mut row): (MinTree<u64>, Vec<u64>) = (MinTree::new(), Vec::new());
            for (i, (place, key, limit)) in sets.into_iter().enumerate() {
                if row.is_empty() || i % 3 == 0 {
                    prop_assert_eq!(tree.push(), row.len());
                    row.push(u64::NONE);
                }
                let place = place.index(row.len());
                row[place] = if key == 19 { u64::NONE } else { key };
                tree.set(place, row[place]);
                prop_assert_eq!(tree.least(), *row.iter().min().unwrap());
                let others = (0..row.len()).filter(|i| *i != place).map(|i| row[i]).min();
                prop_assert_eq!(tree.least_besides(place), others.unwrap_or(u64::NONE));
                prop_assert_eq!(tree.first_at_most(limit), row.iter().position(|k| *k <= limit));
            }
        }
    }

    #[test]
    fn a_row_without_keys_has_no_first() {
        let mut tree = MinTree::new();
        assert_eq!(tree.first_at_most(u64::MAX), None);
        tree.push();
        assert_eq!(tree.first_at_most(u64::MAX), None);
        tree.set(0, 7);
        assert_eq!(tree.first_at_most(u64::MAX), Some(0));
    }
}
