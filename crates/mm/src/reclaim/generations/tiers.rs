//! The feedback loop: which kind of pages to evict, and up to which tier.
//!
//! A tier's share of evicted and protected pages that came back is compared with that of the first
//! tier, of the same kind or of the other. A tier with few refaults, or with a share not above that
//! of the first one, weighed by gains, is not protected. When a generation ends, its counts become
//! half of the average. Where all tiers decide, kinds are compared by all their tiers. Source:
//! kernel-behaviour §4.10.4, §4.10.9.

use super::MIN_LRU_BATCH;
use crate::rules::LruGenRules;
use crate::state::{Generations, MAX_NR_TIERS, Tier};

/// The first tier's weight beside another's of its kind, and the other's.
const GAINS: [u64; 2] = [1, 2];
/// The same where all tiers decide.
const GAINS_OF_ALL: [u64; 2] = [2, 3];

/// The share of refaults of a tier, and its weight.
#[derive(Clone, Copy)]
struct Position {
    refaulted: u64,
    total: u64,
    gain: u64,
}

impl Position {
    fn of(gens: &Generations, kind: usize, tier: usize, gain: u64) -> Position {
        Position::of_tiers(&gens.tiers[kind][tier..=tier], gain)
    }

    fn of_tiers(tiers: &[Tier], gain: u64) -> Position {
        let refaulted = tiers.iter().map(|t| t.avg_refaulted + t.refaulted).sum();
        let total = tiers.iter().map(|t| t.avg_total + t.evicted + t.protected).sum();
        Position { refaulted, total, gain }
    }

    /// Whether this one, which is watched, has no larger share of refaults than `set`.
    fn is_within(self, set: Position) -> bool {
        self.refaulted < MIN_LRU_BATCH
            || self.refaulted * (set.total + MIN_LRU_BATCH) * set.gain <= (set.refaulted + 1) * self.total * self.gain
    }
}

/// The weights of anonymous pages and of files.
fn gains(swappiness: u64) -> [u64; 2] {
    [swappiness, 200 - swappiness]
}

impl Generations {
    /// The last tier of a kind that is not protected from eviction.
    pub(super) fn last_tier(&self, kind: usize, rules: &LruGenRules) -> usize {
        let [first, others] = if rules.by_all_tiers() { GAINS_OF_ALL } else { GAINS };
        self.last_within(Position::of(self, kind, 0, first), kind, others)
    }

    fn last_within(&self, set: Position, kind: usize, gain: u64) -> usize {
        let within = |tier: &usize| Position::of(self, kind, *tier, gain).is_within(set);
        (1..MAX_NR_TIERS).take_while(within).count()
    }

    /// The kind to evict by the first tiers of both, and the last of its tiers that the other
    /// kind's first does not protect.
    pub(super) fn kind_to_evict(&self, swappiness: u64) -> (usize, usize) {
        let gains = gains(swappiness);
        let [anon, file] = [0, 1].map(|kind| Position::of(self, kind, 0, gains[kind]));
        let kind = usize::from(file.is_within(anon));
        let other = Position::of(self, 1 - kind, 0, gains[1 - kind]);
        (kind, self.last_within(other, kind, gains[kind]))
    }

    /// The kind to evict by all tiers of both.
    pub(super) fn kind_by_all_tiers(&self, swappiness: u64) -> usize {
        let gains = gains(swappiness);
        let [anon, file] = [0, 1].map(|kind| Position::of_tiers(&self.tiers[kind], gains[kind]));
        usize::from(file.is_within(anon))
    }

    /// The oldest generation of a kind ends: its counts go into the averages.
    pub(super) fn carry(&mut self, kind: usize) {
        for t in &mut self.tiers[kind] {
            *t = Tier {
                avg_refaulted: (t.avg_refaulted + t.refaulted) / 2,
                avg_total: (t.avg_total + t.evicted + t.protected) / 2,
                ..Tier::default()
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{in_generations, linux};
    use crate::types::LruvecId;

    fn gens(tiers: [(u64, u64); 2]) -> Generations {
        let m = in_generations(2);
        let mut gens = m.lru.gens(LruvecId::new(0)).clone();
        for (kind, (refaulted, evicted)) in tiers.into_iter().enumerate() {
            gens.tiers[kind][0] = Tier { refaulted, evicted, ..Tier::default() };
        }
        gens
    }

    #[test]
    fn files_are_evicted_unless_more_of_them_come_back_and_swappiness_weighs() {
        assert_eq!(gens([(0, 0), (63, 64)]).kind_to_evict(60).0, 1, "few refaults");
        assert_eq!(gens([(0, 1000), (500, 1000)]).kind_to_evict(60).0, 0);
        // 500 × (1000 + 64) × 60 against 201 × 1000 × 140.
        assert_eq!(gens([(200, 1000), (500, 1000)]).kind_to_evict(60).0, 0);
        assert_eq!(gens([(200, 1000), (400, 1000)]).kind_to_evict(60).0, 1);
    }

    #[test]
    fn by_all_tiers_kinds_are_compared_by_sums() {
        let mut g = gens([(0, 1000), (0, 1000)]);
        g.tiers[1][2] = Tier { refaulted: 500, evicted: 1000, ..Tier::default() };
        assert_eq!((g.kind_to_evict(60).0, g.kind_by_all_tiers(60)), (1, 0));
        let mut g = gens([(400, 1000), (900, 1000)]);
        g.tiers[1][2].evicted = 1000;
        assert_eq!((g.kind_to_evict(60).0, g.kind_by_all_tiers(60)), (0, 1));
    }

    #[test]
    fn a_tier_is_protected_if_twice_the_share_of_the_first_comes_back() {
        let mut g = gens([(0, 0), (100, 1000)]);
        g.tiers[1][1] = Tier { refaulted: 180, evicted: 500, protected: 500, ..Tier::default() };
        assert_eq!(g.last_tier(1, &linux("6.12").lru_gen), 3, "180 × 1064 is not above 101 × 1000 × 2");
        g.tiers[1][1].refaulted = 200;
        assert_eq!(g.last_tier(1, &linux("6.12").lru_gen), 0);
    }

    #[test]
    fn averages_halve_with_every_generation() {
        let mut g = gens([(0, 0), (10, 30)]);
        g.carry(1);
        assert_eq!(g.tiers[1][0], Tier { avg_refaulted: 5, avg_total: 15, ..Tier::default() });
        g.carry(1);
        assert_eq!(g.tiers[1][0], Tier { avg_refaulted: 2, avg_total: 7, ..Tier::default() });
    }
}
