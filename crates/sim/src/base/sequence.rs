//! A sequence of numbered things. Each is in it at most once, joins at the end or at the beginning,
//! and can leave from anywhere.
//!
//! The links are kept beside the things, by number, so that one thing can be in several sequences.

const NIL: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Link {
    before: u32,
    after: u32,
    is_in: bool,
}

#[derive(Clone)]
pub(crate) struct Sequence {
    links: Vec<Link>,
    first: u32,
    last: u32,
    count: u64,
}

impl Default for Sequence {
    fn default() -> Sequence {
        Sequence { links: Vec::new(), first: NIL, last: NIL, count: 0 }
    }
}

impl Sequence {
    pub(crate) fn len(&self) -> u64 {
        self.count
    }

    pub(crate) fn first(&self) -> Option<u32> {
        (self.first != NIL).then_some(self.first)
    }

    pub(crate) fn last(&self) -> Option<u32> {
        (self.last != NIL).then_some(self.last)
    }

    /// The things, first to last.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        std::iter::successors(self.first(), |thing| {
            let after = self.links[*thing as usize].after;
            (after != NIL).then_some(after)
        })
    }

    pub(crate) fn has(&self, thing: u32) -> bool {
        self.links.get(thing as usize).is_some_and(|link| link.is_in)
    }

    /// Makes room for the links of a thing; false if it is in the sequence.
    fn admits(&mut self, thing: u32) -> bool {
        if self.has(thing) {
            return false;
        }
        if self.links.len() <= thing as usize {
            self.links.resize(thing as usize + 1, Link { before: NIL, after: NIL, is_in: false });
        }
        true
    }

    /// Puts the thing before all others, unless it is in the sequence.
    pub(crate) fn add_first(&mut self, thing: u32) {
        if !self.admits(thing) {
            return;
        }
        let after = std::mem::replace(&mut self.first, thing);
        self.links[thing as usize] = Link { before: NIL, after, is_in: true };
        match after {
            NIL => self.last = thing,
            after => self.links[after as usize].before = thing,
        }
        self.count += 1;
    }

    /// Appends the thing, unless it is in the sequence.
    pub(crate) fn add(&mut self, thing: u32) {
        if !self.admits(thing) {
            return;
        }
        let before = std::mem::replace(&mut self.last, thing);
        self.links[thing as usize] = Link { before, after: NIL, is_in: true };
        match before {
            NIL => self.first = thing,
            before => self.links[before as usize].after = thing,
        }
        self.count += 1;
    }

    /// Removes the thing; whether it was in the sequence.
    pub(crate) fn remove(&mut self, thing: u32) -> bool {
        if !self.has(thing) {
            return false;
        }
        let link = &mut self.links[thing as usize];
        link.is_in = false;
        let Link { before, after, .. } = *link;
        match before {
            NIL => self.first = after,
            before => self.links[before as usize].after = after,
        }
        match after {
            NIL => self.last = before,
            after => self.links[after as usize].before = before,
        }
        self.count -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn things_are_in_the_order_they_joined_in(acts in prop::collection::vec((0..3u8, 0..9u32), 0..80)) {
            let (mut sequence, mut model) = (Sequence::default(), Vec::new());
            for (act, thing) in acts {
                let was_in = model.contains(&thing);
                match act {
                    0 => {
                        prop_assert_eq!(sequence.remove(thing), was_in);
                        model.retain(|other| *other != thing);
                    }
                    1 => {
                        sequence.add(thing);
                        if !was_in {
                            model.push(thing);
                        }
                    }
                    _ => {
                        sequence.add_first(thing);
                        if !was_in {
                            model.insert(0, thing);
                        }
                    }
                }
                prop_assert_eq!(sequence.last(), model.last().copied());
                let all: Vec<u32> = std::iter::successors(sequence.first(), |thing| {
                    Some(sequence.links[*thing as usize].after).filter(|after| *after != NIL)
                })
                .collect();
                prop_assert_eq!((all, sequence.len()), (model.clone(), model.len() as u64));
                prop_assert!((0..9).all(|thing| sequence.has(thing) == model.contains(&thing)));
            }
        }
    }
}
