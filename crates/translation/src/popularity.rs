//! Pages in classes that are accessed alike.

use crate::lru::Class;
use kontig_program::Hot;

/// Bins of a skewed distribution: four times as many change the share that an LRU holds by less
/// than a thousandth.
const BINS: i32 = 60;

/// This many pages, all accessed alike.
pub(crate) fn uniform(pages: f64) -> Vec<Class> {
    vec![Class { items: pages, rate: 1.0 / pages }]
}

/// This many pages, hottest first, the n-th accessed as often as n to the power of -theta says.
pub(crate) fn zipf(pages: f64, theta: f64) -> Vec<Class> {
    in_bins(pages, theta, BINS)
}

fn in_bins(pages: f64, theta: f64, bins: i32) -> Vec<Class> {
    let most = pages + 1.0;
    let bound = |i: i32| if i == bins { most } else { libm::pow(most, f64::from(i) / f64::from(bins)) };
    let of = |from: f64, to: f64| {
        let power = 1.0 - theta;
        if power.abs() < 1e-9 { libm::log(to / from) } else { (libm::pow(to, power) - libm::pow(from, power)) / power }
    };
    let all = of(1.0, most);
    let bin = |i: i32| {
        let (from, to) = (bound(i), bound(i + 1));
        Class { items: to - from, rate: of(from, to) / all / (to - from) }
    };
    (0..bins).map(bin).collect()
}

/// These pages in groups of `per`, such as the small pages of a huge page, or those whose entries
/// share a cache line of a page table.
/// A group is used `of(r)` times for each of its pages of rate `r`.
pub(crate) fn grouped(pages: &[Class], per: f64, hot: Hot, of: impl Fn(f64) -> f64) -> Vec<Class> {
    match hot {
        Hot::Together => pages.iter().map(|bin| Class { items: bin.items / per, rate: per * of(bin.rate) }).collect(),
        // The pages are dealt like cards, hottest first: each thing gets one of the hottest, and
        // its share of all others.
        Hot::Scattered => {
            let things = pages.iter().map(|bin| bin.items).sum::<f64>() / per;
            let (mut heads, mut dealt, mut others) = (Vec::new(), 0.0, 0.0);
            for bin in pages {
                let head = bin.items.min(things - dealt).max(0.0);
                if head > 0.0 {
                    heads.push(Class { items: head, rate: of(bin.rate) });
                }
                others += (bin.items - head) * of(bin.rate);
                dealt += head;
            }
            heads.iter_mut().for_each(|head| head.rate += others / things);
            heads
        }
    }
}

/// The same classes with `share` as many items.
pub(crate) fn scaled(classes: &[Class], share: f64) -> impl Iterator<Item = Class> + Clone {
    classes.iter().map(move |class| Class { items: class.items * share, ..*class })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lru::{characteristic_time, hit};

    fn all(classes: &[Class]) -> (f64, f64) {
        let items = classes.iter().map(|class| class.items).sum();
        (items, classes.iter().map(|class| class.items * class.rate).sum())
    }

    fn is_near((items, used): (f64, f64), wanted: f64) -> bool {
        (items / wanted - 1.0).abs() < 1e-9 && (used - 1.0).abs() < 1e-9
    }

    #[test]
    fn every_page_is_in_a_bin_and_every_access_goes_to_one() {
        for theta in [0.0, 0.6, 0.99, 1.0, 1.2] {
            assert!(is_near(all(&zipf(1e6, theta)), 1e6), "{theta}");
        }
        assert!(is_near(all(&uniform(3.0)), 3.0));
    }

    #[test]
    fn a_thing_that_holds_several_pages_is_used_for_all_of_them() {
        for hot in [Hot::Together, Hot::Scattered] {
            for pages in [uniform(1e6), zipf(1e6, 0.99)] {
                let huge = grouped(&pages, 512.0, hot, |rate| rate);
                assert!(is_near(all(&huge), 1e6 / 512.0), "{hot:?}");
            }
        }
    }

    #[test]
    fn sixty_bins_are_enough() {
        for (theta, room) in [(0.6, 3072.0), (0.99, 72.0), (0.99, 3072.0), (1.2, 100_000.0)] {
            let held = |bins| {
                let all = in_bins(1e6, theta, bins);
                let time = characteristic_time(all.iter().copied(), room);
                all.iter().map(|class| class.items * class.rate * hit(class.rate, time)).sum::<f64>()
            };
            let (few, many) = (held(BINS), held(4 * BINS));
            assert!((few - many).abs() < 1e-3, "theta {theta}, room for {room}: {few} and {many}");
        }
    }

    #[test]
    fn hot_pages_that_are_scattered_make_every_huge_page_warm() {
        let hottest = |hot| grouped(&zipf(1e6, 0.99), 512.0, hot, |rate| rate)[0].rate;
        assert!(hottest(Hot::Together) > 20.0 * hottest(Hot::Scattered));
    }
}
