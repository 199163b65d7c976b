//! An array of keys with the least one at hand; a change takes O(log n).
//!
//! A tournament tree: every inner node has the lesser key of its two children, and the leaves are
//! the array.

/// The key of an empty place.
pub(crate) const NONE: u128 = u128::MAX;

/// The array. Node 1 is the root, node n has the children 2n and 2n + 1, and the leaves are the
/// second half.
#[derive(Clone)]
pub(crate) struct MinTree {
    nodes: Vec<u128>,
    len: usize,
}

impl MinTree {
    pub(crate) fn new() -> MinTree {
        MinTree { nodes: vec![NONE; 2], len: 0 }
    }

    #[inline]
    fn leaves(&self) -> usize {
        self.nodes.len() / 2
    }

    /// Appends an empty place; its number.
    pub(crate) fn push(&mut self) -> usize {
        if self.len == self.leaves() {
            let keys = self.nodes.split_off(self.leaves());
            self.nodes = vec![NONE; 4 * keys.len()];
            let first = self.leaves();
            self.nodes[first..first + keys.len()].copy_from_slice(&keys);
            (1..first).rev().for_each(|n| self.nodes[n] = self.nodes[2 * n].min(self.nodes[2 * n + 1]));
        }
        self.len += 1;
        self.len - 1
    }

    #[inline]
    pub(crate) fn set(&mut self, place: usize, key: u128) {
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

    #[cfg(test)]
    pub(crate) fn get(&self, place: usize) -> u128 {
        self.nodes[self.leaves() + place]
    }

    #[inline]
    pub(crate) fn least(&self) -> u128 {
        self.nodes[1]
    }

    /// The least key of all other places.
    #[inline]
    pub(crate) fn least_besides(&self, place: usize) -> u128 {
        let mut n = self.leaves() + place;
        let mut least = NONE;
        while n > 1 {
            least = least.min(self.nodes[n ^ 1]);
            n /= 2;
        }
        least
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_tree_finds_what_a_look_at_every_place_finds(
            sets in prop::collection::vec((any::<prop::sample::Index>(), 0..20u128), 1..200),
        ) {
            let (mut tree, mut row): (MinTree, Vec<u128>) = (MinTree::new(), Vec::new());
            for (i, (place, key)) in sets.into_iter().enumerate() {
                if row.is_empty() || i % 3 == 0 {
                    prop_assert_eq!(tree.push(), row.len());
                    row.push(NONE);
                }
                let place = place.index(row.len());
                row[place] = if key == 19 { NONE } else { key };
                tree.set(place, row[place]);
                prop_assert_eq!(tree.least(), *row.iter().min().unwrap());
                let others = (0..row.len()).filter(|i| *i != place).map(|i| row[i]).min();
                prop_assert_eq!(tree.least_besides(place), others.unwrap_or(NONE));
            }
        }
    }
}
