//! Allocation of swap slots, in runs of 256, so that pages swapped out together lie together.
//!
//! On flash each CPU fills a cluster that was free, slot by slot; free clusters are used in the
//! order in which they became free. On a disk all CPUs share one run: 256 slots at a time, from the
//! first place with 256 free ones in a row. If no cluster is free, the next free slot after the
//! last one is taken. Source: `scan_swap_map_slots` of 6.1.

use kontig_mm::CpuId;
use std::collections::VecDeque;

/// Slots of a cluster (`SWAPFILE_CLUSTER`).
const CLUSTER: u32 = 256;

#[derive(Clone)]
pub(super) struct Clusters {
    slots: u32,
    /// A bit per slot.
    used: Vec<u64>,
    way: Way,
}

#[derive(Clone)]
enum Way {
    Flash {
        /// Slots in use, by cluster.
        counts: Vec<u16>,
        free: VecDeque<u32>,
        /// Each CPU's next slot, within its cluster.
        next: Vec<Option<u32>>,
        /// Each CPU's last slot, from where it searches if no cluster is free.
        last: Vec<u32>,
    },
    Disk {
        next: u32,
        /// Slots left in the run.
        left: u32,
    },
}

impl Clusters {
    pub(super) fn new(slots: u32, is_flash: bool, cpus: usize) -> Clusters {
        let clusters = slots.div_ceil(CLUSTER);
        let way = if is_flash {
            let mut counts = vec![0; clusters as usize];
            counts[0] = 1;
            // The header's cluster and an incomplete last one are never free.
            let free = (1..slots / CLUSTER).collect();
            Way::Flash { counts, free, next: vec![None; cpus], last: vec![0; cpus] }
        } else {
            Way::Disk { next: 1, left: 0 }
        };
        let mut all = Clusters { slots, used: vec![0; slots.div_ceil(64) as usize], way };
        all.mark(0, true);
        // Bits beyond the last slot are never free.
        (slots..all.used.len() as u32 * 64).for_each(|slot| all.mark(slot, true));
        all
    }

    fn mark(&mut self, slot: u32, used: bool) {
        let bit = 1 << (slot % 64);
        let word = &mut self.used[slot as usize / 64];
        *word = if used { *word | bit } else { *word & !bit };
    }

    /// The first free slot from `from` on.
    fn free_from(&self, from: u32) -> Option<u32> {
        let first = from as usize / 64;
        let before = !0u64 << (from % 64);
        let words = self.used.get(first..)?.iter().enumerate();
        let (i, free) =
            words.map(|(i, word)| (i, !word & if i == 0 { before } else { !0 })).find(|(_, free)| *free != 0)?;
        Some((first + i) as u32 * 64 + free.trailing_zeros())
    }

    /// The start of the first 256 free slots in a row.
    fn free_run(&self) -> Option<u32> {
        let mut from = 1;
        loop {
            let first = self.free_from(from)?;
            let end = (first + 1..first + CLUSTER).find(|slot| *slot >= self.slots || self.is_used(*slot));
            match end {
                None => return Some(first),
                Some(end) if end >= self.slots => return None,
                Some(end) => from = end + 1,
            }
        }
    }

    fn is_used(&self, slot: u32) -> bool {
        self.used[slot as usize / 64] >> (slot % 64) & 1 == 1
    }

    /// Takes the next slot.
    pub(super) fn take(&mut self, cpu: CpuId) -> Option<u32> {
        let slot = match &mut self.way {
            Way::Flash { .. } => self.of_cluster(cpu).or_else(|| self.of_any(cpu))?,
            Way::Disk { .. } => self.of_run()?,
        };
        self.mark(slot, true);
        match &mut self.way {
            Way::Flash { counts, free, last, .. } => {
                let cluster = slot / CLUSTER;
                // Usually it is the next free cluster; else the CPU still had it when it became
                // free again.
                if counts[cluster as usize] == 0
                    && let Some(at) = free.iter().position(|of| *of == cluster)
                {
                    free.remove(at);
                }
                counts[cluster as usize] += 1;
                last[cpu.index()] = slot;
            }
            Way::Disk { next, .. } => *next = slot + 1,
        }
        Some(slot)
    }

    /// The next slot of the CPU's cluster, or of the next free one.
    fn of_cluster(&mut self, cpu: CpuId) -> Option<u32> {
        loop {
            let Way::Flash { free, next, .. } = &mut self.way else { return None };
            let from = match next[cpu.index()] {
                Some(from) => from,
                None => *free.front()? * CLUSTER,
            };
            let end = (from | (CLUSTER - 1)) + 1;
            let found = self.free_from(from).filter(|slot| *slot < end);
            let Way::Flash { next, .. } = &mut self.way else { return None };
            // A used-up cluster is dropped at once.
            next[cpu.index()] = found.map(|slot| slot + 1).filter(|slot| *slot < end);
            if found.is_some() {
                return found;
            }
        }
    }

    /// Any free slot, searching round from the CPU's last one.
    fn of_any(&self, cpu: CpuId) -> Option<u32> {
        let Way::Flash { last, .. } = &self.way else { return None };
        self.free_from(last[cpu.index()]).or_else(|| self.free_from(1))
    }

    /// The next slot of the run, or of the next one.
    fn of_run(&mut self) -> Option<u32> {
        let Way::Disk { next, left } = self.way else { return None };
        let (from, left) = match left {
            0 => (self.free_run().unwrap_or(next), CLUSTER),
            left => (next, left),
        };
        self.way = Way::Disk { next: from, left: left - 1 };
        self.free_from(from).or_else(|| self.free_from(1))
    }

    pub(super) fn free(&mut self, slot: u32) {
        self.mark(slot, false);
        if let Way::Flash { counts, free, .. } = &mut self.way {
            let cluster = slot / CLUSTER;
            counts[cluster as usize] -= 1;
            if counts[cluster as usize] == 0 {
                free.push_back(cluster);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPUS: [CpuId; 2] = [CpuId::new(0), CpuId::new(1)];

    #[test]
    fn on_flash_each_cpu_fills_a_cluster_of_its_own() {
        let mut c = Clusters::new(4 * 256, true, 2);
        let took: Vec<u32> = (0..6).map(|i| c.take(CPUS[i % 2]).expect("it is empty")).collect();
        assert_eq!(took, [256, 512, 257, 513, 258, 514]);
        let rest: Vec<u32> = (0..254).map(|_| c.take(CPUS[0]).expect("there are more")).collect();
        assert_eq!((rest[252], rest[253]), (511, 768), "then the next that is free");
    }

    #[test]
    fn on_flash_a_cluster_that_became_free_comes_last() {
        let mut c = Clusters::new(4 * 256, true, 2);
        (0..256).for_each(|_| assert!(c.take(CPUS[0]).is_some()));
        (256..512).for_each(|slot| c.free(slot));
        assert_eq!((c.take(CPUS[0]), c.take(CPUS[1])), (Some(512), Some(768)));
    }

    #[test]
    fn without_a_free_cluster_any_slot_will_do() {
        let mut c = Clusters::new(2 * 256, true, 1);
        (0..511).for_each(|_| assert!(c.take(CPUS[0]).is_some()));
        assert_eq!(c.take(CPUS[0]), None);
        c.free(300);
        c.free(20);
        assert_eq!(
            [c.take(CPUS[0]), c.take(CPUS[0]), c.take(CPUS[0])],
            [Some(300), Some(20), None],
            "from its last one on, round"
        );
    }

    #[test]
    fn on_a_disk_runs_begin_where_256_slots_are_free() {
        let mut c = Clusters::new(2000, false, 1);
        let took: Vec<u32> = (0..600).map(|_| c.take(CPUS[0]).expect("it is empty")).collect();
        assert_eq!(took, (1..601).collect::<Vec<_>>());
        // The run goes on to its end, then a hole of 256 is the first that is large enough.
        (0..168).for_each(|_| assert!(c.take(CPUS[0]).is_some()));
        (10..200).chain(300..556).for_each(|slot| c.free(slot));
        assert_eq!(c.take(CPUS[0]), Some(300));
    }

    #[test]
    fn on_a_disk_without_such_a_place_it_goes_on_where_it_is() {
        let mut c = Clusters::new(300, false, 1);
        (0..299).for_each(|_| assert!(c.take(CPUS[0]).is_some()));
        [10, 20, 290].into_iter().for_each(|slot| c.free(slot));
        assert_eq!([c.take(CPUS[0]), c.take(CPUS[0])], [Some(10), Some(20)]);
    }
}
