//! How often a store that keeps what was used last holds what is wanted next.
//!
//! Accesses are independent of each other, each class of items is used at its own rate. Such a
//! store then holds an item for about the same time after each use (Che, Tung, Wang 2002: the
//! characteristic time), which is the time in which as many items are used as it has room for.

/// Items that are used equally often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Class {
    /// The number of items.
    pub(crate) items: f64,
    /// How often each is used, in any unit of time that all classes share.
    pub(crate) rate: f64,
}

/// How long a store with room for this many items holds one after its use; none if it has room for
/// all.
pub(crate) fn characteristic_time(classes: impl Iterator<Item = Class> + Clone, room: f64) -> Option<f64> {
    let used = classes.filter(|class| class.items > 0.0 && class.rate > 0.0);
    if used.clone().map(|class| class.items).sum::<f64>() <= room {
        return None;
    }
    let held = |time: f64| used.clone().map(|class| class.items * hit(class.rate, Some(time))).sum::<f64>();
    // Within this time the most used item is used once on average.
    let fastest = used.clone().map(|class| class.rate).fold(0.0, f64::max);
    let (mut low, mut high) = (0.0, 1.0 / fastest);
    while held(high) < room {
        (low, high) = (high, high * 2.0);
    }
    // Forty halvings leave a part in 10¹².
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if held(middle) < room {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(high)
}

/// The share of an item's uses that find it in a store of this characteristic time.
pub(crate) fn hit(rate: f64, time: Option<f64>) -> f64 {
    time.map_or(1.0, |time| 1.0 - libm::exp(-rate * time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// The share of accesses that an LRU list of this length misses.
    fn lru_misses(items: usize, room: usize, mut next: impl FnMut() -> usize) -> f64 {
        let mut list: VecDeque<usize> = VecDeque::new();
        let mut misses = 0;
        let all = 200 * items;
        for i in 0..2 * all {
            let item = next();
            match list.iter().position(|held| *held == item) {
                Some(at) => drop(list.remove(at)),
                None => {
                    misses += usize::from(i >= all);
                    list.truncate(room - 1);
                }
            }
            list.push_front(item);
        }
        misses as f64 / all as f64
    }

    fn misses(classes: &[Class], room: f64) -> f64 {
        let time = characteristic_time(classes.iter().copied(), room);
        let all: f64 = classes.iter().map(|class| class.items * class.rate).sum();
        let missed = |class: &Class| class.items * class.rate * (1.0 - hit(class.rate, time));
        classes.iter().map(missed).sum::<f64>() / all
    }

    #[test]
    fn of_items_used_alike_as_many_hit_as_there_is_room_for() {
        let alike = |items| [Class { items, rate: 1.0 / items }];
        assert!((misses(&alike(4000.0), 3000.0) - 0.25).abs() < 1e-6);
        assert_eq!(misses(&alike(3000.0), 3000.0), 0.0);
    }

    #[test]
    fn an_lru_list_that_is_run_misses_as_often() {
        // Ten items take half of the accesses, ninety the other half.
        let classes = [Class { items: 10.0, rate: 0.05 }, Class { items: 90.0, rate: 0.5 / 90.0 }];
        for room in [5, 20, 60] {
            let mut random = kontig_program::SplitMix64::new(7);
            let next = || {
                let item = random.next_u64();
                if item.is_multiple_of(2) { (item / 2 % 10) as usize } else { 10 + (item / 2 % 90) as usize }
            };
            let (run, modelled) = (lru_misses(100, room, next), misses(&classes, room as f64));
            assert!((run - modelled).abs() < 0.02, "room for {room}: {run:.3} of the list, {modelled:.3} modelled");
        }
    }
}
