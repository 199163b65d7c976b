//! The time of one access to memory.

use crate::lru::{Class, characteristic_time, hit};
use crate::mapped::Mapped;
use crate::popularity::{grouped, scaled, uniform, zipf};
use crate::processor::{Backing, Processor};
use crate::tlb::Tlbs;
use kontig_program::{Hot, Pattern};
use kontig_text::parse_size;

/// Bytes of a cache line.
const LINE: f64 = 64.0;
/// Cache lines of a page.
const LINES: f64 = 64.0;

impl Processor {
    /// The average time of an access, ns; 0 where no memory is in use.
    pub fn access_ns(&self, pattern: Pattern, mapped: Mapped) -> f64 {
        let pages = mapped.pages() as f64;
        if pages == 0.0 {
            return 0.0;
        }
        match pattern {
            Pattern::Sequential => self.sequential_ns,
            Pattern::Independent => self.independent_ns(mapped),
            Pattern::Chase => self.dependent_ns(&uniform(pages), Hot::Together, mapped, LINES),
            Pattern::Skewed { theta, hot } => self.dependent_ns(&zipf(pages, theta), hot, mapped, LINES),
        }
    }

    /// The same for accesses to one line of each page, each waiting for the one before.
    pub fn line_a_page_ns(&self, mapped: Mapped) -> f64 {
        self.dependent_ns(&uniform(mapped.pages() as f64), Hot::Together, mapped, 1.0)
    }

    /// Accesses that wait for each other, to pages in these classes, `lines` of each.
    fn dependent_ns(&self, pages: &[Class], hot: Hot, mapped: Mapped, lines: f64) -> f64 {
        let tlbs = Tlbs::new(self, pages, hot, mapped);
        let share = mapped.large_share();
        let data = grouped(pages, 1.0 / lines, Hot::Together, |rate| rate);
        // A guest's leaf entries lie beside each other as their pages do; a huge page has none. A
        // host has one for each of its small pages, and these lie as the guest's frames do.
        let walked = |rate| rate * tlbs.misses_small(rate);
        let by_page = grouped(pages, mapped.per_line, hot, walked);
        let by_frame = grouped(pages, mapped.per_group, hot, walked);
        let on_small_host = if self.backing == Backing::Small { 1.0 } else { 0.0 };
        let (pages_read, frames_read) = (1.0 - share + share * on_small_host, (1.0 - share) * on_small_host);
        let leaves = scaled(&by_page, pages_read).chain(scaled(&by_frame, frames_read));
        let caches = Caches::new(self, scaled(&data, 1.0).chain(leaves.clone()));
        let read = |class: Class| class.items * class.rate * caches.read_ns(self, class.rate);
        let walks = tlbs.walks * self.walk_ns + leaves.map(read).sum::<f64>() + tlbs.huge_walks * self.l2_ns;
        self.work_ns + data.into_iter().map(read).sum::<f64>() + tlbs.second_level * self.tlb2_ns + walks
    }

    /// Accesses that do not wait, between the sizes that were measured.
    fn independent_ns(&self, mapped: Mapped) -> f64 {
        let size_log2 = |size: &str| libm::log2(parse_size(size).unwrap_or(1) as f64);
        let wanted = libm::log2(mapped.pages() as f64 * 4096.0);
        let share = mapped.large_share();
        let mut points = self.independent.iter().map(|at| {
            let ns = (1.0 - share) * at.small_ns + share * at.huge_ns;
            (size_log2(&at.size), ns)
        });
        let Some(mut below) = points.next() else { return self.work_ns };
        for above in points {
            if wanted < above.0 {
                let way = ((wanted - below.0) / (above.0 - below.0)).max(0.0);
                return below.1 + way * (above.1 - below.1);
            }
            below = above;
        }
        below.1
    }
}

/// How long the caches hold a line: the second level, and both levels together.
struct Caches {
    l2: Option<f64>,
    l3: Option<f64>,
}

impl Caches {
    fn new(cpu: &Processor, lines: impl Iterator<Item = Class> + Clone) -> Caches {
        let size = |size: &str| parse_size(size).unwrap_or(0) as f64 / LINE;
        let (l2, l3) = (size(&cpu.l2), size(&cpu.l3));
        Caches { l2: characteristic_time(lines.clone(), l2), l3: characteristic_time(lines, l2 + l3) }
    }

    /// Reading a line that is read at this rate.
    fn read_ns(&self, cpu: &Processor, rate: f64) -> f64 {
        let (l2, l3) = (hit(rate, self.l2), hit(rate, self.l3));
        l2 * cpu.l2_ns + (l3 - l2) * cpu.l3_ns + (1.0 - l3) * cpu.memory_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapped::GROUP;
    use crate::processor::tests::zen4;
    use kontig_program::HPAGE_PMD_NR;

    fn chase(cpu: &Processor, mib: u64) -> [f64; 2] {
        [Mapped::all_small(mib * 256, GROUP), Mapped::all_huge(mib * 256)]
            .map(|mapped| cpu.access_ns(Pattern::Chase, mapped))
    }

    #[test]
    fn a_chase_takes_what_was_measured_within_a_fifth() {
        let measured = [(16, [142.0, 130.0]), (256, [188.0, 170.0]), (1024, [346.0, 241.0]), (8192, [489.0, 315.0])];
        for (mib, measured) in measured {
            for (modelled, measured) in chase(&zen4(), mib).into_iter().zip(measured) {
                assert!((modelled / measured - 1.0f64).abs() < 0.2, "{mib} MiB: {modelled:.0} ns for {measured} ns");
            }
        }
    }

    #[test]
    fn huge_pages_gain_more_where_the_host_has_huge_pages_too() {
        let gain = |backing| {
            let [small, huge] = chase(&Processor { backing, ..zen4() }, 4096);
            1.0 - huge / small
        };
        let [native, small, huge] = [Backing::Native, Backing::Small, Backing::Huge].map(gain);
        assert!(small > 0.25 && huge > small && (native - huge).abs() < 0.01, "{native:.2} {small:.2} {huge:.2}");
    }

    #[test]
    fn the_more_lies_on_huge_pages_the_less_an_access_takes() {
        for backing in [Backing::Native, Backing::Small, Backing::Huge] {
            let cpu = Processor { backing, ..zen4() };
            for pattern in [
                Pattern::Chase,
                Pattern::Independent,
                Pattern::Skewed { theta: 0.99, hot: Hot::Together },
                Pattern::Skewed { theta: 0.99, hot: Hot::Scattered },
            ] {
                let pages = 1 << 20;
                let at = |huge: u64| {
                    let in_huge = huge * u64::from(HPAGE_PMD_NR);
                    cpu.access_ns(
                        pattern,
                        Mapped { small: pages - in_huge, in_huge, huge, ..Mapped::all_small(pages, GROUP) },
                    )
                };
                let times: Vec<f64> = (0..=2048).step_by(256).map(at).collect();
                assert!(times.windows(2).all(|pair| pair[1] < pair[0]), "{backing:?}, {pattern:?}: {times:?}");
            }
        }
    }

    #[test]
    fn memory_that_fits_in_the_tlb_and_the_cache_gains_next_to_nothing() {
        let [small, huge] = chase(&zen4(), 1);
        assert!((small - huge) / small < 0.3, "{small} {huge}");
        assert_eq!(zen4().access_ns(Pattern::Sequential, Mapped::all_small(1 << 20, GROUP)), 2.4);
        assert_eq!(zen4().access_ns(Pattern::Chase, Mapped::all_small(0, GROUP)), 0.0);
    }

    #[test]
    fn a_heap_of_which_few_pages_are_used_has_a_page_table_as_large_as_all_of_it() {
        // One page in eight: each has a cache line of the table for itself. On the host of these
        // constants, 256 MiB so used took 1.23 to 1.52 times what they took side by side.
        let dense = Mapped::all_small(1 << 16, 1.0);
        let thin = Mapped { per_line: 1.0, ..dense };
        let times = [thin, dense].map(|mapped| zen4().access_ns(Pattern::Chase, mapped));
        assert!(times[0] > 1.1 * times[1] && times[0] < 1.6 * times[1], "{times:?}");
    }

    #[test]
    fn bloat_gains_nothing() {
        // One page of each huge page is in use: the processor has as many entries to hold.
        let cpu = Processor { backing: Backing::Native, ..zen4() };
        let sparse = Mapped { huge: 1 << 16, ..Mapped::all_huge(1 << 16) };
        let dense = Mapped::all_huge(1 << 16);
        assert!(cpu.access_ns(Pattern::Chase, sparse) > cpu.access_ns(Pattern::Chase, dense));
    }

    #[test]
    fn independent_accesses_lie_between_the_sizes_that_were_measured() {
        let at = |gib: u64| zen4().access_ns(Pattern::Independent, Mapped::all_small(gib << 18, GROUP));
        assert_eq!((at(1), at(2), at(4), at(64)), (12.0, 26.0, 40.0, 40.0));
    }
}
