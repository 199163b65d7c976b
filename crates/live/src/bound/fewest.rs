//! The fewest page moves that make more blocks free.
//!
//! A block without a page that stays becomes free when its users' pages are moved, so the blocks
//! with the fewest are the cheapest. What moves needs a free page that is in none of the emptied
//! blocks and in no block that is free already. All pages of an emptied block are movable or free:
//! emptying k blocks of B pages takes as many free pages as they had movable ones, and takes away
//! their own free ones, B for each block together, whichever blocks they are. So free pages outside
//! free blocks, divided by B, bound k, and the cheapest k blocks are the best choice. Pages stay in
//! their zone, as compaction keeps them there.
//!
//! The kernel's compaction finds room only in movable pageblocks and above the min mark. There an
//! emptied block takes its movable pages, and takes away its own free pages as far as they count,
//! so as many blocks as possible are those with the least of both together.

use crate::blocks::{Block, Class, ZoneBlocks};

/// The cost of each further block, the cheapest first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fewest {
    /// Pages to move for the first block, for the first two, and so on.
    moves: Vec<u64>,
    /// Blocks that could be emptied if there were room for their pages.
    pub emptiable: u64,
    /// Blocks that can be emptied into the room that the kernel's compaction uses, at most.
    pub in_compactions_room: u64,
}

impl Fewest {
    /// Those of zones with blocks of `pages` pages.
    pub fn of(zones: &[ZoneBlocks], pages: u64) -> Fewest {
        let (mut costs, mut emptiable, mut in_compactions_room) = (Vec::new(), 0, 0);
        for zone in zones {
            let mut own: Vec<u64> =
                zone.blocks.iter().filter(|b| b.class() == Class::Emptiable).map(|b| b.movable).collect();
            emptiable += own.len() as u64;
            own.sort_unstable();
            let outside = zone.blocks.iter().filter(|b| b.class() != Class::Free).map(Block::free).sum::<u64>();
            own.truncate(usize::try_from((outside + zone.free_outside) / pages).unwrap_or(usize::MAX));
            costs.extend(own);
            in_compactions_room += in_room_of(zone);
        }
        costs.sort_unstable();
        let mut sum = 0;
        let sums = costs.into_iter().map(|cost| {
            sum += cost;
            sum
        });
        Fewest { moves: sums.collect(), emptiable, in_compactions_room }
    }

    /// Blocks that can be made free at most.
    pub fn most(&self) -> u64 {
        self.moves.len() as u64
    }

    /// More blocks that take no move: their free pages lie on CPUs' lists.
    pub fn without_a_move(&self) -> u64 {
        self.moves.partition_point(|moves| *moves == 0) as u64
    }

    /// The fewest page moves for this number of blocks more; `None` where no placement makes
    /// as many.
    pub fn moves(&self, more: u64) -> Option<u64> {
        match more.checked_sub(1) {
            None => Some(0),
            Some(last) => self.moves.get(usize::try_from(last).ok()?).copied(),
        }
    }
}

/// Blocks of a zone that can be emptied into its movable pageblocks, above the min mark.
fn in_room_of(zone: &ZoneBlocks) -> u64 {
    let room: u64 = zone.blocks.iter().filter(|b| b.class() != Class::Free).map(|b| b.room).sum();
    let mut left = (room + zone.room_outside).min(zone.above_min);
    let mut takes: Vec<u64> =
        zone.blocks.iter().filter(|b| b.class() == Class::Emptiable).map(|b| b.movable + b.room).collect();
    takes.sort_unstable();
    let fits = |takes: &u64| {
        let fits = *takes <= left;
        left = left.saturating_sub(*takes);
        fits
    };
    takes.iter().copied().take_while(fits).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const B: u64 = 16;

    fn block(movable: u64, staying: u64) -> Block {
        let listed = B - movable - staying;
        Block { listed, room: listed, movable, staying, ..Block::default() }
    }

    fn zone(blocks: Vec<Block>, free_outside: u64) -> ZoneBlocks {
        ZoneBlocks { node: 0, blocks, free_outside, room_outside: free_outside, above_min: u64::MAX }
    }

    fn moves(zones: &[ZoneBlocks]) -> Vec<u64> {
        let fewest = Fewest::of(zones, B);
        (1..=fewest.most()).map(|more| fewest.moves(more).expect("it can be had")).collect()
    }

    #[test]
    fn the_blocks_with_the_fewest_movable_pages_are_emptied_first() {
        let blocks = vec![block(9, 0), block(2, 0), block(5, 0), block(0, 0), block(1, 1)];
        // Outside the free block 7 + 14 + 11 + 14 pages are free: room for two.
        assert_eq!(moves(&[zone(blocks, 0)]), [2, 7]);
    }

    #[test]
    fn pages_do_not_move_into_blocks_that_are_free() {
        assert!(moves(&[zone(vec![block(8, 0), block(0, 0), block(16, 0)], 0)]).is_empty());
        assert_eq!(moves(&[zone(vec![block(8, 0), block(0, 0), block(8, 0)], 0)]), [8]);
        assert_eq!(moves(&[zone(vec![block(8, 0)], 8)]), [8], "free pages beside whole blocks take them");
    }

    #[test]
    fn poisoned_blocks_take_pages_and_are_never_emptied() {
        assert_eq!(moves(&[zone(vec![block(0, 1), block(0, 1), block(12, 0)], 0)]), [12]);
    }

    #[test]
    fn a_zone_finds_room_only_in_itself() {
        let (full, empty) = (zone(vec![block(15, 0), block(16, 0)], 0), zone(vec![block(3, 0), block(3, 0)], 0));
        assert_eq!(moves(&[full, empty]), [3]);
    }

    #[test]
    fn a_block_whose_free_pages_lie_on_cpus_lists_costs_no_move() {
        let cached = Block { listed: 10, cached: 6, ..Block::default() };
        assert_eq!(moves(&[zone(vec![cached], 0)]), [0]);
        let fewest = Fewest::of(&[zone(vec![block(3, 0), cached, block(0, 1)], 0)], B);
        assert_eq!((fewest.without_a_move(), fewest.most()), (1, 2));
    }

    #[test]
    fn compaction_has_no_room_in_other_pageblocks_and_below_the_min_mark() {
        let other = Block { room: 0, ..block(4, 1) };
        let blocks = vec![block(4, 0), block(6, 0), other, Block { room: 0, ..block(3, 0) }];
        let of = |above_min| {
            let fewest = Fewest::of(&[ZoneBlocks { above_min, ..zone(blocks.clone(), 0) }], B);
            (fewest.most(), fewest.in_compactions_room)
        };
        // 12 + 10 + 11 + 13 pages are free, 22 of them in movable pageblocks: 3 go there from the
        // third, 16 from one of the others.
        assert_eq!(of(u64::MAX), (2, 2));
        assert_eq!(of(18), (2, 1));
        assert_eq!(of(2), (2, 0));
    }

    #[test]
    fn no_choice_of_blocks_is_cheaper_than_the_bound() {
        // All choices of three of seven blocks, by counting.
        let movable = [3, 9, 1, 14, 7, 7, 2];
        let zones = [zone(movable.iter().map(|m| block(*m, 0)).collect(), 0)];
        let fewest = Fewest::of(&zones, B);
        for more in 1..=7u32 {
            let of = |choice: u32| -> (u64, u64) {
                let chosen = |inside: bool| (0..7).filter(move |i| (choice >> i & 1 == 1) == inside);
                let moved = chosen(true).map(|i| movable[i]).sum();
                (moved, chosen(false).map(|i| B - movable[i]).sum())
            };
            let choices = (0..1u32 << 7).filter(|choice| choice.count_ones() == more).map(of);
            let least = choices.filter(|(moved, room)| moved <= room).map(|(moved, _)| moved).min();
            assert_eq!(fewest.moves(u64::from(more)), least, "{more}");
        }
    }
}
