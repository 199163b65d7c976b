//! A round of all loops, over memory that is mapped for it.

use super::host::Host;
use super::loops::{chase_ns, independent_ns, least_of_turns, line_a_page_ns, sequential_ns, skewed_ns};
use super::measured::{Loop, Point};
use super::memory::{Memory, Pages};
use kontig_program::{Hot, SplitMix64};
use kontig_text::size;

/// Rounds, each with memory of its own: where it lies, and what neighbours do meanwhile, differs.
pub const ROUNDS: usize = 3;
pub(super) const MIB: usize = 1 << 20;
/// Memory that the loops go over, if there is room.
pub(super) const SIZES_MIB: [usize; 8] = [4, 16, 64, 128, 256, 512, 1024, 2048];
/// With less than this, the TLB holds too much.
pub(super) const LEAST: usize = 256 * MIB;
/// The times of a round, ns an access; pairs are of small pages and of huge ones.
pub(super) struct Round {
    /// An access whose data and translation the first levels hold, and one that the second level of
    /// caches serves.
    pub(super) work_ns: f64,
    pub(super) l2_ns: f64,
    pub(super) sequential_ns: f64,
    pub(super) points: Vec<Point>,
    pub(super) skewed: Vec<Point>,
    /// Accesses that do not wait, by bytes of memory.
    pub(super) independent: Vec<(usize, [f64; 2])>,
    /// Whether the kernel showed the frames of small pages.
    pub(super) frames_seen: bool,
    /// How far the middle turn of each loop was from its best one, %.
    pub(super) spreads: Vec<f64>,
}

impl Round {
    /// Runs all loops over up to `most` bytes.
    ///
    /// # Errors
    /// If there is no such memory, or not on huge pages.
    pub(super) fn run(most: usize, host: &Host, mut begins: impl FnMut(&str)) -> Result<Round, String> {
        begins("huge pages");
        let huge = Memory::all_huge(most, LEAST)?;
        let most = huge.bytes().len();
        begins("small pages");
        let small = Memory::new(most, Pages::Small)?;
        let mut spreads = Vec::new();
        let mut both = |of: &dyn Fn(&[u8], &mut SplitMix64) -> f64, bytes: usize| {
            let (ns, spread) = least_of_turns([&small.bytes()[..bytes], &huge.bytes()[..bytes]], of);
            spreads.push(spread);
            ns
        };
        begins("caches");
        let work_ns = both(&chase_ns, 16 << 10)[1];
        let l2_ns = both(&chase_ns, (host.l2 / 2).next_power_of_two())[1];
        let sequential_ns = both(&sequential_ns, most.min(512 * MIB))[1];
        let sizes = SIZES_MIB.map(|mib| mib * MIB).into_iter().filter(|bytes| *bytes <= most);
        let reach = (host.tlb2.entries as usize * 4096).next_power_of_two();
        let beyond = [1, 2, 4, 8].map(|times| times * reach).into_iter().filter(|bytes| *bytes <= most);
        let per_group = |bytes| small.per_group(bytes).unwrap_or(0.0);
        let point = |of, bytes, ns| Point { of, bytes, larger: Pages::Huge, ns, per_group: per_group(bytes) };
        let (mut points, mut skewed) = (Vec::new(), Vec::new());
        for bytes in sizes.clone() {
            begins(&format!("chase over {}", size(bytes as u64)));
            points.push(point(Loop::Chase, bytes, both(&chase_ns, bytes)));
        }
        for bytes in beyond {
            begins(&format!("a line of each page of {}", size(bytes as u64)));
            points.push(point(Loop::LineAPage, bytes, both(&line_a_page_ns, bytes)));
        }
        for bytes in sizes.clone().filter(|bytes| *bytes >= LEAST) {
            for hot in [Hot::Together, Hot::Scattered] {
                begins(&format!("skewed accesses to {}", size(bytes as u64)));
                let ns = both(&|memory, random| skewed_ns(memory, random, hot), bytes);
                skewed.push(point(Loop::Skewed(hot), bytes, ns));
            }
        }
        let mut independent = Vec::new();
        for bytes in sizes.skip(1) {
            begins(&format!("independent accesses to {}", size(bytes as u64)));
            independent.push((bytes, both(&independent_ns, bytes)));
        }
        let frames_seen = small.per_group(most).is_some();
        Ok(Round { work_ns, l2_ns, sequential_ns, points, skewed, independent, frames_seen, spreads })
    }

    /// Takes what another round did in less time. What was measured in one of them alone, as the
    /// other had fewer huge pages, stays out.
    pub(super) fn take_less(&mut self, other: Round) {
        self.work_ns = self.work_ns.min(other.work_ns);
        self.l2_ns = self.l2_ns.min(other.l2_ns);
        self.sequential_ns = self.sequential_ns.min(other.sequential_ns);
        take_less(&mut self.points, &other.points);
        take_less(&mut self.skewed, &other.skewed);
        self.independent.retain_mut(|(bytes, ns)| {
            let same = other.independent.iter().find(|(other, _)| other == bytes);
            same.map(|(_, other)| *ns = [ns[0].min(other[0]), ns[1].min(other[1])]).is_some()
        });
        self.frames_seen &= other.frames_seen;
        self.spreads.extend(other.spreads);
    }
}

/// Takes what another round did in less time; loops of one round alone are left out.
pub(super) fn take_less(points: &mut Vec<Point>, other: &[Point]) {
    points.retain_mut(|point| {
        let same = other.iter().find(|other| (other.of, other.bytes) == (point.of, point.bytes));
        same.map(|same| point.take_less(same)).is_some()
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(ns: f64, sizes: &[usize], per_group: f64) -> Round {
        let point = |bytes: &usize| Point {
            of: Loop::Chase,
            bytes: *bytes,
            larger: Pages::Huge,
            ns: [ns, 100.0 - ns],
            per_group,
        };
        Round {
            work_ns: ns,
            l2_ns: ns,
            sequential_ns: ns,
            points: sizes.iter().map(point).collect(),
            skewed: Vec::new(),
            independent: sizes.iter().map(|bytes| (*bytes, [ns, 100.0 - ns])).collect(),
            frames_seen: true,
            spreads: vec![ns],
        }
    }

    #[test]
    fn the_least_time_of_all_rounds_counts_for_each_kind_of_pages() {
        let mut best = round(10.0, &[4, 16, 64], 2.0);
        best.take_less(round(7.0, &[4, 16], 3.0));
        best.take_less(round(12.0, &[4, 16], 8.0));
        assert_eq!((best.work_ns, best.independent), (7.0, vec![(4, [7.0, 88.0]), (16, [7.0, 88.0])]));
        // How small pages lay is of the round in which they took least.
        let of = best.points.iter().map(|point| (point.bytes, point.ns, point.per_group)).collect::<Vec<_>>();
        assert_eq!(of, [(4, [7.0, 88.0], 3.0), (16, [7.0, 88.0], 3.0)]);
        assert_eq!(best.spreads, [10.0, 7.0, 12.0]);
    }
}
