//! Random operations on a list beside the same ones on a `VecDeque`.

use super::*;
use alloc::collections::VecDeque;
use proptest::prelude::*;

/// An operation on a list.
#[derive(Clone, Debug)]
enum Do {
    PushFront,
    PushBack,
    PopFront,
    Remove(usize),
    Rotate(usize),
    /// This many blocks at once.
    PushFrontRow(usize),
    /// From this entry backwards, while the entries are neighbours.
    RemoveRow(usize, usize),
}

fn anything() -> impl Strategy<Value = Do> {
    prop_oneof![
        4 => Just(Do::PushFront),
        4 => Just(Do::PushBack),
        1 => Just(Do::PopFront),
        6 => any::<usize>().prop_map(Do::Remove),
        1 => any::<usize>().prop_map(Do::Rotate),
        2 => (1..40usize).prop_map(Do::PushFrontRow),
        2 => (any::<usize>(), 1..40usize).prop_map(|(at, most)| Do::RemoveRow(at, most)),
    ]
}

proptest! {
    #[test]
    fn it_is_a_list(all in proptest::collection::vec(anything(), 1..800)) {
        let (mut list, mut plain): (List, VecDeque<u32>) = (List::new(), VecDeque::new());
        let mut places = Vec::new();
        for what in all {
            let i = places.len();
            let pfn = Pfn::new(i as u32);
            places.push(ListPos(0));
            let chosen = |n: usize| plain.get(n % plain.len().max(1)).copied();
            match what {
                Do::PushFront => {
                    places[i] = list.push_front(pfn);
                    plain.push_front(pfn.get());
                }
                Do::PushBack => {
                    places[i] = list.push_back(pfn);
                    plain.push_back(pfn.get());
                }
                Do::PopFront => {
                    if let Some(pfn) = plain.pop_front() {
                        list.remove(Pfn::new(pfn), places[pfn as usize]);
                    }
                }
                Do::Remove(n) => {
                    if let Some(pfn) = chosen(n) {
                        list.remove(Pfn::new(pfn), places[pfn as usize]);
                        plain.retain(|p| *p != pfn);
                    }
                }
                Do::PushFrontRow(pages) => {
                    places.resize(i + pages, ListPos(0));
                    let row: Vec<Pfn> = (i..i + pages).map(|pfn| Pfn::new(pfn as u32)).collect();
                    let first = list.push_front_row(&row);
                    for (n, pfn) in (0..).zip(&row) {
                        places[pfn.index()] = first.before(n);
                        plain.push_front(pfn.get());
                    }
                }
                Do::RemoveRow(n, most) => {
                    if let Some(first) = chosen(n) {
                        let at = plain.iter().position(|pfn| *pfn == first).expect("it has been chosen");
                        let before = |i: &u32| plain.get(at.wrapping_sub(*i as usize)).map(|pfn| Pfn::new(*pfn));
                        let expected = |i: &u32| places[first as usize].before(*i);
                        let is_next = |i: &u32| before(i).is_some_and(|p| places[p.index()] == expected(i));
                        let row: Vec<Pfn> = (0..most as u32).take_while(is_next).filter_map(|i| before(&i)).collect();
                        list.remove_row(&row, places[first as usize]);
                        plain.retain(|p| !row.contains(&Pfn::new(*p)));
                    }
                }
                Do::Rotate(n) => {
                    if let Some(pfn) = chosen(n) {
                        list.rotate_to_front(places[pfn as usize], |p, place| places[p.index()] = place);
                        while plain[0] != pfn {
                            plain.rotate_left(1);
                        }
                    }
                }
            }
            if list.is_sparse() {
                list.pack(|p, place| places[p.index()] = place);
            }
            prop_assert_eq!(list.check(), Ok(()));
            prop_assert!(list.iter().map(Pfn::get).eq(plain.iter().copied()));
            prop_assert!(list.places().all(|(pfn, place)| places[pfn.index()] == place));
            let (mut on, mut back) = (Walk::from_first(&list), Walk::from_last(&list));
            prop_assert!(plain.iter().all(|p| on.next(&list).map(Pfn::get) == Some(*p)));
            prop_assert!(plain.iter().rev().all(|p| back.previous(&list).map(Pfn::get) == Some(*p)));
            prop_assert_eq!((on.next(&list), back.previous(&list)), (None, None));
            prop_assert_eq!((list.first(), list.last()), (list.iter().next(), list.iter().last()));
            prop_assert_eq!(list.len(), plain.len());
        }
    }
}

/// A list together with the positions that frames keep.
#[derive(Default)]
struct Kept {
    list: List,
    places: Vec<ListPos>,
    /// Positions changed by packing.
    moved: usize,
}

impl Kept {
    fn push(&mut self) {
        let pfn = Pfn::new(self.places.len() as u32);
        self.places.push(self.list.push_back(pfn));
        self.is_small();
    }

    fn remove(&mut self, pfn: Pfn) {
        self.list.remove(pfn, self.places[pfn.index()]);
        if self.list.is_sparse() {
            self.list.pack(|pfn, place| {
                self.places[pfn.index()] = place;
                self.moved += 1;
            });
        }
        self.is_small();
    }

    /// Checks that the ring takes no more bytes than it may.
    fn is_small(&self) {
        let bytes = self.list.ring.capacity() * size_of::<u32>();
        assert!(bytes <= MOST_BYTES * (self.list.len() + FEW as usize), "{bytes} bytes for {}", self.list.len());
    }
}

const MANY: usize = 5000;

fn many() -> Kept {
    let mut kept = Kept::default();
    (0..MANY).for_each(|_| kept.push());
    kept
}

#[test]
fn a_ring_shrinks_with_its_list_however_that_is_emptied() {
    type Next = fn(&List) -> Option<Pfn>;
    let ways: [Next; 3] = [List::first, List::last, |list| list.iter().nth(list.len() / 3)];
    for next in ways {
        let mut kept = many();
        while let Some(pfn) = next(&kept.list) {
            kept.remove(pfn);
        }
        assert_eq!(kept.list.check(), Ok(()));
    }
}

#[test]
fn a_removal_moves_two_others_on_average_at_most() {
    let mut kept = many();
    let mut removed = 0;
    // The list shrinks to a tenth, grows again, and then stays as long as before for a while.
    for (length, rounds) in [(MANY / 10, 0), (MANY, 0), (MANY, 4 * MANY)] {
        while kept.list.len() < length {
            kept.push();
        }
        for round in 0.. {
            if kept.list.len() <= length && round >= rounds {
                break;
            }
            let chosen = kept.list.iter().nth(round * 7919 % kept.list.len()).expect("it is that long");
            kept.remove(chosen);
            removed += 1;
            if rounds > 0 {
                kept.push();
            }
        }
    }
    assert!(kept.moved <= 2 * removed, "{} moved for {removed} removed", kept.moved);
}

#[test]
fn a_list_that_stays_as_long_soon_keeps_its_ring() {
    type Next = fn(&List) -> Option<Pfn>;
    let ways: [Next; 3] = [List::first, List::last, |list| list.iter().nth(list.len() / 3)];
    for (next, length) in ways.into_iter().flat_map(|next| (1..1200).step_by(7).map(move |length| (next, length))) {
        let mut kept = Kept::default();
        (0..length).for_each(|_| kept.push());
        let mut rings = 0;
        for _ in 0..3 * length {
            let before = kept.list.ring.len();
            kept.push();
            let leaves = next(&kept.list).expect("one has just joined");
            kept.remove(leaves);
            rings += usize::from(kept.list.ring.len() != before);
        }
        // Holes left in the middle let the ring grow to half as many slots again, and a few more.
        assert!(rings <= 12, "{rings} rings for a list of {length}");
    }
}
