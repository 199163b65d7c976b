//! The misses of the TLB.

use crate::lru::{Class, characteristic_time, hit};
use crate::mapped::Mapped;
use crate::popularity::{grouped, scaled};
use crate::processor::{Backing, Processor, Tlb};
use kontig_program::{HPAGE_PMD_NR, Hot};

/// Small pages of a huge page, and of one of 1 GiB.
const HUGE: f64 = HPAGE_PMD_NR as f64;
const GIGANTIC: f64 = HUGE * HUGE;

/// How both levels of the TLB serve the accesses.
pub(crate) struct Tlbs {
    /// The time the second level holds a small page's translation.
    small_held: Option<f64>,
    /// Misses of the first level, and of both, an access.
    pub(crate) second_level: f64,
    pub(crate) walks: f64,
    /// Those that find huge pages that the processor has as such.
    pub(crate) huge_walks: f64,
}

impl Tlbs {
    pub(crate) fn new(cpu: &Processor, pages: &[Class], hot: Hot, mapped: Mapped) -> Tlbs {
        // A translation is for no more than the smaller of the guest's page and its host's.
        let share = |pages| if cpu.backing == Backing::Small { 0.0 } else { mapped.share_of(pages) };
        let (huge, gigantic) = (share(mapped.in_huge), share(mapped.in_gigantic));
        let small: Vec<_> = scaled(pages, 1.0 - huge - gigantic).collect();
        let pieces = |of: f64, share: f64| scaled(&grouped(pages, of, hot, |rate| rate), share).collect::<Vec<_>>();
        // A huge page of which nothing is in use is in the way of nothing.
        let huge = pieces((mapped.in_huge as f64 / mapped.huge.max(1) as f64).max(1.0), huge);
        let level = |tlb: Tlb| {
            let own = tlb.gigantic.filter(|_| cpu.backing == Backing::Native);
            let gigantic = pieces(if own.is_some() { GIGANTIC } else { HUGE }, gigantic);
            Level::new(tlb, &small, &huge, &gigantic, own)
        };
        let (first, second) = (level(cpu.tlb1), level(cpu.tlb2));
        // The first level can hold whole what the second holds piece by piece.
        let gigantic_walks = second.missed_gigantic.min(first.missed_gigantic);
        // The walk of a page of 1 GiB ends above the entries of huge ones, but in a host's table.
        let as_huge = if cpu.backing == Backing::Huge { gigantic_walks } else { 0.0 };
        Tlbs {
            small_held: second.small_held,
            second_level: first.missed_small + first.missed_huge + first.missed_gigantic,
            walks: second.missed_small + second.missed_huge + gigantic_walks,
            huge_walks: second.missed_huge + as_huge,
        }
    }

    /// The share of accesses to a small page of this rate that walk.
    pub(crate) fn misses_small(&self, rate: f64) -> f64 {
        1.0 - hit(rate, self.small_held)
    }
}

/// The misses of a level of the TLB, an access.
struct Level {
    /// The time it holds a small page's translation.
    small_held: Option<f64>,
    missed_small: f64,
    missed_huge: f64,
    missed_gigantic: f64,
}

impl Level {
    /// Pages of one size compete for the entries that only they can take, all others for the rest.
    /// Pages of 1 GiB without entries of their own are pieces of 2 MiB.
    fn new(tlb: Tlb, small: &[Class], huge: &[Class], gigantic: &[Class], own_gigantic: Option<u32>) -> Level {
        let none: &[Class] = &[];
        let in_huge = &[huge, if own_gigantic.is_some() { none } else { gigantic }].concat();
        let held = |classes: &[Class], entries: u32| characteristic_time(classes.iter().copied(), f64::from(entries));
        let (small_held, huge_held) = match tlb.huge {
            Some(own) => (held(small, tlb.entries), held(in_huge, own)),
            None => {
                let time = held(&[small, in_huge].concat(), tlb.entries);
                (time, time)
            }
        };
        let missed = |classes: &[Class], time| {
            classes.iter().map(|class| class.items * class.rate * (1.0 - hit(class.rate, time))).sum::<f64>()
        };
        Level {
            small_held,
            missed_small: missed(small, small_held),
            missed_huge: missed(huge, huge_held),
            missed_gigantic: missed(gigantic, own_gigantic.map_or(huge_held, |own| held(gigantic, own))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processor::tests::zen4;
    use kontig_program::Pattern;

    fn chase_ns(cpu: &Processor, mapped: Mapped) -> f64 {
        cpu.access_ns(Pattern::Chase, mapped)
    }

    #[test]
    fn a_page_of_1_gib_is_one_translation_where_guest_host_and_tlb_have_such() {
        let pages = 64 << 18;
        let [huge, gigantic] = [Mapped::all_huge(pages), Mapped::all_gigantic(pages)];
        let gain = |backing, gigantic_entries| {
            let own = |tlb: Tlb| Tlb { gigantic: gigantic_entries, ..tlb };
            let cpu = Processor { backing, tlb1: own(zen4().tlb1), tlb2: own(zen4().tlb2), ..zen4() };
            chase_ns(&cpu, huge) - chase_ns(&cpu, gigantic)
        };
        // 64 GiB are 32,768 huge pages, of which the second level holds a tenth.
        let of_walk = 0.9 * (zen4().walk_ns + zen4().l2_ns);
        assert!(gain(Backing::Native, Some(64)) > of_walk);
        assert!(gain(Backing::Native, Some(16)) < gain(Backing::Native, Some(64)));
        for (backing, entries) in [(Backing::Huge, Some(64)), (Backing::Small, Some(64))] {
            assert!(gain(backing, entries).abs() < 1e-9, "{backing:?}, {entries:?}");
        }
        // Without entries it is as many translations, and the walk spares a read.
        assert!((0.0..zen4().l2_ns).contains(&gain(Backing::Native, None)));
    }

    #[test]
    fn pages_of_1_gib_that_the_first_level_holds_never_walk() {
        let tlb1 = Tlb { gigantic: Some(48), ..zen4().tlb1 };
        let cpu = Processor { backing: Backing::Native, tlb1, ..zen4() };
        let pages: u32 = 16 << 18;
        let classes = crate::popularity::uniform(f64::from(pages));
        let tlbs = Tlbs::new(&cpu, &classes, Hot::Together, Mapped::all_gigantic(u64::from(pages)));
        assert_eq!((tlbs.second_level, tlbs.walks), (0.0, 0.0));
    }

    #[test]
    fn folios_gain_where_the_host_has_small_pages() {
        let pages = 1 << 17;
        let gain = |backing, per_group| {
            let cpu = Processor { backing, ..zen4() };
            1.0 - chase_ns(&cpu, Mapped::all_folios(pages)) / chase_ns(&cpu, Mapped::all_small(pages, per_group))
        };
        assert!(gain(Backing::Small, 1.0) > 0.05);
        assert_eq!((gain(Backing::Small, 8.0), gain(Backing::Native, 1.0)), (0.0, 0.0));
    }
}
