//! The watermarks and the check against them.
//!
//! Source: kernel-behaviour §1.3 (marks), §1.4 (reserves), §1.6 (counter drift), §3.2 (the check).
//! All marks, min included, count with the zone's boost on top; only the boost's own ceiling uses
//! the raw high mark.

use crate::gfp::{AllocFlags, Wmark};
use crate::rules::{Profile, Reserves};
use crate::state::{Memory, Tunables, Watermarks, Zone};
use crate::types::{CpuId, MigrateType, NodeId, Order, PAGE_SIZE, PAGEBLOCK_PAGES, ZoneType};

impl Watermarks {
    /// The marks of a zone of `managed` pages whose share of min_free_kbytes is `min` pages.
    /// Without a scale factor they are a quarter of that apart.
    pub fn new(min: u64, managed: u64, watermark_scale_factor: Option<u32>) -> Watermarks {
        let Some(factor) = watermark_scale_factor else {
            return Watermarks { min, low: min + min / 4, high: min + min / 2, promo: min + min * 3 / 4 };
        };
        let d = (min / 4).max(managed * u64::from(factor) / 10_000);
        Watermarks { min, low: min + d, high: min + 2 * d, promo: min + 3 * d }
    }
}

/// `vm.min_free_kbytes` as the kernel computes it at boot from lowmem in kB: √(16 × lowmem), within
/// bounds.
pub fn min_free_kbytes(lowmem_kbytes: u64, cap: u32) -> u64 {
    (lowmem_kbytes * 16).isqrt().clamp(128, u64::from(cap))
}

/// The value to which transparent huge pages raise `vm.min_free_kbytes`: eleven pageblocks a zone,
/// but at most 5 % of memory.
pub fn thp_min_free_kbytes(zones: u64, free_buffer_pages: u64) -> u64 {
    let pages = u64::from(PAGEBLOCK_PAGES) * zones * (2 + 9);
    pages.min(free_buffer_pages / 20) * (PAGE_SIZE / 1024)
}

/// The largest part of a counter that a CPU keeps: it is in a byte.
pub(crate) const STAT_THRESHOLD_MAX: i64 = 125;

/// A CPU's part of a counter is folded in above this while kswapd is awake: all parts together are
/// less than what lies between the marks (§1.6).
fn pressure_threshold(cpus: usize, marks: &Watermarks) -> i64 {
    (((marks.low - marks.min) / cpus as u64) as i64).clamp(1, STAT_THRESHOLD_MAX)
}

/// A CPU's part of a counter is folded in above this (§1.6).
pub fn stat_threshold(cpus: usize, managed: u64) -> i64 {
    let fls = |x: u64| i64::from(64 - x.leading_zeros());
    (2 * fls(cpus as u64) * (1 + fls(managed >> 15))).min(STAT_THRESHOLD_MAX)
}

impl Zone {
    /// A mark with the boost on top.
    #[inline(always)]
    pub fn wmark(&self, mark: Wmark) -> u64 {
        self.watermarks.get(mark) + self.watermark_boost
    }

    /// Free pages that a request with these flags may not use.
    #[inline(always)]
    fn unusable_free(&self, order: Order, flags: AllocFlags, profile: &Profile) -> u64 {
        let has_reserve_rights = match profile.watermark.reserves {
            Reserves::HighWaitless | Reserves::HighHarder => flags.any(AllocFlags::NON_BLOCK),
            Reserves::MinReserveNonBlock => {
                flags.any(AllocFlags::NON_BLOCK | AllocFlags::MIN_RESERVE | AllocFlags::HIGHATOMIC)
            }
        };
        let highatomic = match profile.highatomic.free_counts {
            _ if has_reserve_rights => 0,
            false => self.nr_reserved_highatomic,
            true => self.nr_free_highatomic,
        };
        u64::from(order.pages() - 1) + highatomic
    }

    /// Whether a request of `order` may be served from `free_pages` and leave the zone above `mark`
    /// (§3.2).
    pub fn watermark_ok(
        &self,
        order: Order,
        mark: u64,
        highest: ZoneType,
        flags: AllocFlags,
        free_pages: i64,
        profile: &Profile,
    ) -> bool {
        let free = free_pages - self.unusable_free(order, flags, profile) as i64;
        let mut min = mark;
        if flags.any(AllocFlags::MIN_RESERVE) {
            min -= min / 2;
        }
        let non_block_discount = match profile.watermark.reserves {
            Reserves::HighWaitless | Reserves::HighHarder => flags.any(AllocFlags::NON_BLOCK),
            Reserves::MinReserveNonBlock => flags.any(AllocFlags::MIN_RESERVE) && flags.any(AllocFlags::NON_BLOCK),
        };
        if non_block_discount {
            min -= min / 4;
        }
        if free <= (min + self.lowmem_reserve[highest.index()]) as i64 {
            return false;
        }
        if order == Order::ZERO {
            return true;
        }
        if profile.watermark.halves_by_order {
            return self.is_enough_by_halves(order, min, free);
        }
        order.and_up().any(|o| {
            let lists = &self.lists[o.index()];
            self.nr_free[o.index()] != 0
                && (lists[..MigrateType::PCP_TYPES].iter().any(|l| !l.is_empty())
                    || flags.any(AllocFlags::HIGHATOMIC) && !lists[MigrateType::HighAtomic.index()].is_empty())
        })
    }

    /// Whether the free pages outside blocks of less than each order up to this one exceed the
    /// mark, halved as often.
    fn is_enough_by_halves(&self, order: Order, mut min: u64, mut free: i64) -> bool {
        for o in 0..order.index() {
            free -= (self.nr_free[o] << o) as i64;
            min >>= 1;
            if free <= min as i64 {
                return false;
            }
        }
        true
    }

    /// The allocator's form of the check: order 0 is decided without a function call in all but the
    /// tight cases.
    #[inline(always)]
    pub(crate) fn watermark_fast(
        &self,
        order: Order,
        mark: u64,
        highest: ZoneType,
        flags: AllocFlags,
        profile: &Profile,
    ) -> bool {
        if order == Order::ZERO {
            let unusable = match profile.watermark.quick_check_counts_reserve {
                true => 0,
                false => self.unusable_free(order, flags, profile),
            };
            let usable = self.free_pages - unusable as i64;
            if usable > (mark + self.lowmem_reserve[highest.index()]) as i64 {
                return true;
            }
        }
        self.watermark_ok(order, mark, highest, flags, self.free_pages, profile)
            || (profile.boost.ignored_by.holds_for(flags)
                && order == Order::ZERO
                && self.watermark_boost != 0
                && flags.wmark == Wmark::Min
                && self.watermark_ok(order, self.watermarks.min, highest, flags, self.free_pages, profile))
    }

    /// Sets above what a CPU's part of a counter is folded in. Larger parts stay until the CPU
    /// counts again.
    fn set_threshold(&mut self, threshold: i64) {
        self.stat_threshold = threshold;
        self.largest_threshold = self.largest_threshold.max(threshold);
    }

    /// The drift mark and the threshold that boot leaves. A mark is for parts that together exceed
    /// what lies between the low and the min mark. Other CPUs come up before there are marks, and
    /// some kernels do not take back what they set then.
    pub fn drift_at_boot(&self, profile: &Profile) -> (u64, i64) {
        let (cpus, marks) = (self.pcps.len(), &self.watermarks);
        let threshold = stat_threshold(cpus, self.managed);
        let drift = cpus as u64 * threshold as u64;
        let mark = match () {
            () if drift > marks.low - marks.min => marks.high + drift,
            () if cpus > 1 && profile.watermark.keeps_early_drift_mark => drift,
            () => 0,
        };
        (mark, threshold)
    }

    /// Sets the mark below which the CPUs' parts are read, too, and above what a part is folded in.
    pub(crate) fn set_drift(&mut self, (mark, threshold): (u64, i64)) {
        self.percpu_drift_mark = mark;
        self.set_threshold(threshold);
    }

    /// Free pages for a check that counter drift must not mislead (§1.6).
    pub(crate) fn free_pages_snapshot(&self) -> i64 {
        if self.percpu_drift_mark != 0 && self.free_pages < self.percpu_drift_mark as i64 {
            self.nr_free_pages_exact() as i64
        } else {
            self.free_pages
        }
    }
}

impl Memory {
    /// Computes every zone's marks from `vm.min_free_kbytes` and `vm.watermark_scale_factor`, then
    /// the per-CPU limits, and clears all boosts, as the kernel does on a write
    /// to either.
    pub(crate) fn setup_watermarks(&mut self) {
        for i in self.zones.ids() {
            let marks = self.marks_of(&self.zones[i], &self.shared.tunables);
            let z = &mut self.zones[i];
            z.watermarks = marks;
            z.watermark_boost = 0;
            if self.shared.profile.zonelist.goes_round {
                z.refill_alloc_batch(CpuId::new(0));
            }
        }
        self.setup_lowmem_reserve();
        self.setup_pcp_limits();
    }

    /// Computes the drift marks, and how much of a node's counter CPUs keep to themselves. The
    /// kernel does so once, at boot.
    pub(crate) fn setup_drift(&mut self) {
        let profile = &self.shared.profile;
        self.zones.iter_mut().for_each(|z| z.set_drift(z.drift_at_boot(profile)));
        for vec in &mut self.lru.vecs {
            let most = vec.zones.iter().map(|z| self.zones[*z].stat_threshold).max();
            vec.stat_threshold = most.unwrap_or(0);
        }
    }

    /// Changes the thresholds of a node's zones that have a drift mark while its kswapd is awake,
    /// and back before it sleeps (`set_pgdat_percpu_threshold`).
    pub(crate) fn set_percpu_thresholds(&mut self, node: NodeId, under_pressure: bool) {
        let cpus = self.nr_cpus();
        for z in self.zones.iter_mut().filter(|z| z.node == node && z.percpu_drift_mark != 0) {
            z.set_threshold(match under_pressure {
                true => pressure_threshold(cpus, &z.watermarks),
                false => stat_threshold(cpus, z.managed),
            });
        }
    }

    /// A zone's marks under these tunables.
    pub(crate) fn marks_of(&self, z: &Zone, t: &Tunables) -> Watermarks {
        let pages_min = u64::from(t.min_free_kbytes) / (PAGE_SIZE / 1024);
        let lowmem: u64 = self.zones.iter().map(|z| z.managed).sum();
        let min = (pages_min * z.managed).checked_div(lowmem).unwrap_or(0);
        let factor = self.shared.profile.watermark.spaced_by_size.then_some(t.watermark_scale_factor);
        Watermarks::new(min, z.managed, factor)
    }

    /// The pages that each zone keeps from requests that could have used a higher one (§1.4).
    fn setup_lowmem_reserve(&mut self) {
        const RATIO: [u64; ZoneType::COUNT] = [256, 256, 32, 0, 0];
        for i in self.zones.ids() {
            let (node, kind) = (self.zones[i].node, self.zones[i].kind.index());
            let mut above = 0;
            let mut reserve = [0; ZoneType::COUNT];
            for (j, kept) in reserve.iter_mut().enumerate().skip(kind + 1) {
                let of_kind = self.zones.iter().filter(|z| z.node == node && z.kind.index() == j);
                let managed: u64 = of_kind.map(|z| z.managed).sum();
                above += managed;
                let none_for_it = managed == 0 && self.shared.profile.watermark.no_lowmem_reserve_for_empty_zones;
                let keeps = self.zones[i].managed > 0 && !none_for_it;
                *kept = if keeps { u64::checked_div(above, RATIO[kind]).unwrap_or(0) } else { 0 };
            }
            self.zones[i].lowmem_reserve = reserve;
        }
    }

    /// The boot-time value of `vm.min_free_kbytes` for this machine, raised for huge pages if
    /// `thp`.
    pub(crate) fn default_min_free_kbytes(&self, thp: bool) -> u32 {
        let managed: u64 = self.zones.iter().map(|z| z.managed).sum();
        let cap = self.shared.profile.watermark.min_free_kbytes_cap;
        let plain = min_free_kbytes(managed * (PAGE_SIZE / 1024), cap) as u32;
        let raises = thp && !self.shared.profile.boot.forgets_raised_min_free;
        if raises { plain.max(self.min_free_kbytes_for_huge_pages()) } else { plain }
    }

    /// The value to which huge pages raise `vm.min_free_kbytes` on this machine.
    pub(crate) fn min_free_kbytes_for_huge_pages(&self) -> u32 {
        let managed = self.zones.iter().map(|z| z.managed).sum();
        thp_min_free_kbytes(self.zones.len() as u64, managed) as u32
    }
}

#[cfg(test)]
mod tests {
    //! The vectors of kernel-behaviour §10.1 and §10.2.
    use super::*;
    use crate::boot::{MachineSpec, ZoneSpec};
    use alloc::vec::Vec;

    /// A machine whose zones have these managed pages: DMA, DMA32 and perhaps Normal.
    fn machine(managed: &[u64], thp: bool, cap: u32) -> Memory {
        let mut profile = crate::testing::linux("6.1");
        profile.watermark.min_free_kbytes_cap = cap;
        machine_of(managed, thp, profile)
    }

    fn machine_of(managed: &[u64], thp: bool, profile: Profile) -> Memory {
        let starts = [0u32, 4096, 1 << 20];
        let zones: Vec<ZoneSpec> = managed
            .iter()
            .zip(starts)
            .zip([ZoneType::Dma, ZoneType::Dma32, ZoneType::Normal])
            .map(|((&m, start), kind)| ZoneSpec {
                node: 0,
                kind,
                start,
                end: start + (m.div_ceil(512) * 512) as u32,
                present: m,
                managed: m,
            })
            .collect();
        Memory::new(&MachineSpec { cpus: 8, zones, thp, lru: false }, profile).expect("a valid machine")
    }

    fn marks(m: &Memory) -> Vec<(u64, u64, u64, u64)> {
        m.zones().iter().map(|z| (z.watermarks.min, z.watermarks.low, z.watermarks.high, z.watermarks.promo)).collect()
    }

    #[test]
    fn marks_of_a_4_gib_machine_without_thp() {
        let m = machine(&[3975, 740_000, 255_000], false, 262_144);
        assert_eq!(m.tunables().min_free_kbytes, 7995);
        assert_eq!(marks(&m), [(7, 10, 13, 16), (1480, 2220, 2960, 3700), (510, 765, 1020, 1275)]);
    }

    #[test]
    fn a_zone_may_have_no_lowmem_reserve_against_requests_for_a_zone_without_memory() {
        let mut profile = crate::testing::linux("6.14");
        let of_dma = |profile| {
            let m = machine_of(&[3840, 431_617], true, profile);
            let reserve = m.zones().iter().next().expect("two zones").lowmem_reserve;
            [ZoneType::Dma32, ZoneType::Normal, ZoneType::Movable].map(|of| reserve[of.index()])
        };
        assert_eq!(of_dma(profile.clone()), [1686, 1686, 1686]);
        profile.watermark.no_lowmem_reserve_for_empty_zones = true;
        assert_eq!(of_dma(profile), [1686, 0, 0]);
    }

    #[test]
    fn up_to_4_5_a_quarter_of_the_min_mark_is_between_the_marks_of_any_zone() {
        let four_million = |factor| Watermarks::new(1001, 4_000_000, factor);
        assert_eq!(four_million(None), Watermarks { min: 1001, low: 1251, high: 1501, promo: 1751 });
        assert_eq!(four_million(Some(10)).low, 5001, "a thousandth of it");
    }

    #[test]
    fn thp_raises_the_marks_to_eleven_pageblocks_a_zone() {
        let m = machine(&[3975, 740_000, 255_000], true, 262_144);
        assert_eq!(m.tunables().min_free_kbytes, 67584);
        assert_eq!(marks(&m), [(67, 83, 99, 115), (12515, 15643, 18771, 21899), (4312, 5390, 6468, 7546)]);
    }

    #[test]
    fn from_4_1_to_4_6_the_kernels_own_figure_replaces_what_thp_has_raised() {
        // 8 GiB; the patch that corrects this gives both figures: 11,365 kB and 67,584 kB.
        let kbytes = |profile| {
            let managed = [3_975, 880_640, 1_133_300];
            machine_of(&managed, true, crate::testing::linux(profile)).tunables().min_free_kbytes
        };
        assert_eq!(["4.4-kcompactd", "4.6", "5.6"].map(kbytes), [11_364, 11_364, 67_584]);
    }

    #[test]
    fn a_write_to_thp_enabled_raises_it_again_and_never_lowers_it() {
        let written = |profile, writes: &[(&str, &str)]| {
            let mut m = machine_of(&[3_975, 880_640, 1_133_300], true, crate::testing::linux(profile));
            for (name, value) in writes {
                m.sysctl_write(name, value).expect("the kernel has it");
            }
            (m.tunables().min_free_kbytes, marks(&m)[1].0)
        };
        assert_eq!(written("4.4-kcompactd", &[("thp.enabled", "never")]), (11_364, 1_239));
        for (profile, value) in [("4.4-kcompactd", "always"), ("4.6", "madvise"), ("6.1", "always")] {
            let lowered = [("vm.min_free_kbytes", "4096"), ("thp.enabled", value)];
            assert_eq!(written(profile, &lowered), (67_584, 7_373), "{profile}");
        }
        let higher = [("vm.min_free_kbytes", "90000"), ("thp.enabled", "always")];
        assert_eq!(written("4.4-kcompactd", &higher).0, 90_000);
    }

    #[test]
    fn marks_of_16_and_64_gib_machines() {
        let b = [3840, 760_000, 3_340_000];
        assert_eq!(machine(&b, false, 262_144).tunables().min_free_kbytes, 16206);
        assert_eq!(marks(&machine(&b, false, 262_144))[1..], [(750, 1510, 2270, 3030), (3296, 6636, 9976, 13316)]);
        assert_eq!(marks(&machine(&b, true, 262_144))[1..], [(3129, 3911, 4693, 5475), (13751, 17188, 20625, 24062)]);
        assert_eq!(
            marks(&machine(&[3840, 450_000, 7_900_000], true, 262_144))[1..],
            [(910, 1360, 1810, 2260), (15978, 23878, 31778, 39678)]
        );
    }

    #[test]
    fn marks_of_the_seed_001_box() {
        let m = machine(&[3840, 431_617], true, 262_144);
        assert_eq!(m.tunables().min_free_kbytes, 45056);
        assert_eq!(marks(&m), [(99, 123, 147, 171), (11164, 13955, 16746, 19537)]);
    }

    #[test]
    fn low_zones_keep_pages_from_requests_that_could_go_higher() {
        let reserve = |managed: &[u64]| -> Vec<[u64; 5]> {
            machine(managed, true, 262_144).zones().iter().map(|z| z.lowmem_reserve).collect()
        };
        let a = reserve(&[3975, 740_000, 255_000]);
        assert_eq!((a[0][1], a[0][2], a[1][2]), (2890, 3886, 996));
        assert_eq!(a[0][3], a[0][2], "no Movable zone adds nothing");
        let b = reserve(&[3840, 760_000, 3_340_000]);
        assert_eq!((b[0][1], b[0][2], b[1][2]), (2968, 16015, 13046));
        let c = reserve(&[3840, 450_000, 7_900_000]);
        assert_eq!((c[0][1], c[0][2], c[1][2]), (1757, 32617, 30859));
        assert_eq!(reserve(&[3840, 431_617])[0][1], 1686);
    }

    #[test]
    fn min_free_kbytes_was_capped_lower_before_5_8() {
        assert_eq!(min_free_kbytes(1 << 30, 65_536), 65_536);
        assert_eq!(min_free_kbytes(1 << 30, 262_144), 131_072);
    }

    #[test]
    fn the_statistics_threshold_follows_cpus_and_size() {
        assert_eq!(stat_threshold(1, 229_325), 8);
        assert_eq!(stat_threshold(1, 3840), 2);
        assert_eq!(stat_threshold(80, 264_241_152), 125);
    }

    #[test]
    fn up_to_4_3_a_block_is_kept_back_where_most_free_memory_is_in_small_ones() {
        use crate::request::Request;
        let serves = |profile: &str, mark| {
            let mut m = crate::testing::machine_with(16, crate::testing::linux(profile));
            let (zone, cpu, order) = (crate::types::ZoneId::new(0), CpuId::new(0), Order::new(9));
            m.zones[zone].watermarks = Watermarks::default();
            let block = Request::new(cpu, crate::types::NodeId::new(0), crate::gfp::Gfp::HIGHUSER_MOVABLE, order);
            let blocks: Vec<_> =
                (0..15).map(|_| crate::testing::take(&mut m, block).expect("memory is free")).collect();
            for block in &blocks[..6] {
                m.split_page(*block, order);
                (0..512).step_by(2).for_each(|page| m.free(cpu, block.plus(page), Order::ZERO));
            }
            m.drain_cpu(cpu);
            m.fold_vmstat(cpu);
            let z = &m.zones[zone];
            assert_eq!((z.free_pages, z.nr_free(order)), (2048, 1));
            z.watermark_ok(order, mark, ZoneType::Dma, AllocFlags::mark(Wmark::Min), 2048, &m.shared.profile)
        };
        // 1,537 pages are free without the block's others, of which one is not a single page.
        assert!(serves("4.6", 1536) && !serves("4.6", 1537));
        assert!(serves("3.13", 1) && !serves("3.13", 2), "half of two is not less than that one");
    }
}
