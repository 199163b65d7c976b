//! Obstacles to free blocks: the frames that nobody can move, by their use.

use crate::blocks::{self, Class};
use crate::frame::State;
use crate::need::Need;
use crate::snapshot::Snapshot;
use serde::Serialize;

/// The aligned blocks of one order, by what stands in their way.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Obstacles {
    pub order: u32,
    /// Blocks of memory the allocator was given, in whole.
    pub blocks: u64,
    /// Free pages in all blocks, those on CPUs' lists included: moved pages go there.
    pub free_pages: u64,
    /// Clean pages of files that nobody maps: free once they are dropped.
    pub droppable_pages: u64,
    /// Free as they are.
    pub free: u64,
    /// Free, a part of them on CPUs' lists.
    pub on_cpus: u64,
    /// Hold users' pages, which can be moved, and nothing that cannot.
    pub movable: u64,
    /// Hold something that cannot be moved.
    pub blocked: u64,
    /// Of those, the ones with at most eight such pages.
    pub blocked_by_few: u64,
    /// Of those, the ones that are partly no memory of the allocator's; all others are poisoned.
    pub never: u64,
    /// Kinds of obstacles, the commonest first.
    pub kinds: Vec<Obstacle>,
}

/// One kind of pages that cannot be moved.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Obstacle {
    #[serde(skip)]
    pub state: State,
    pub kind: &'static str,
    /// Blocks that hold some of them.
    pub blocks: u64,
    /// Blocks that hold nothing else that cannot be moved.
    pub alone: u64,
    /// Pages in all those blocks.
    pub pages: u64,
}

/// Blocks with at most this many obstacles are nearly free of them.
const FEW: u64 = 8;

impl Obstacles {
    /// Blocks that would be free or could be emptied but for pages that stay.
    pub fn poisoned(&self) -> u64 {
        self.blocked - self.never
    }

    /// Those of a snapshot for the blocks of a need.
    pub fn of(snapshot: &Snapshot, need: &Need) -> Obstacles {
        let mut found = Obstacles {
            order: need.order,
            blocks: 0,
            free_pages: 0,
            droppable_pages: 0,
            free: 0,
            on_cpus: 0,
            movable: 0,
            blocked: 0,
            blocked_by_few: 0,
            never: 0,
            kinds: Vec::new(),
        };
        let mut kinds = [(0u64, 0u64, 0u64); State::ALL.len()];
        for zone in snapshot.zones.iter().filter(|z| need.node.is_none_or(|n| n == z.node)) {
            let all = snapshot.census(zone.frames());
            found.free_pages += State::ALL.iter().filter(|s| s.is_free()).map(|s| all[*s as usize]).sum::<u64>();
            found.droppable_pages += all[State::FileClean as usize];
            for (block, census) in blocks::of_zone(snapshot, zone, need.order) {
                let obstacles = block.staying + block.fixed;
                found.blocks += 1;
                match block.class() {
                    Class::Free => found.free += 1,
                    Class::Emptiable if block.movable == 0 => found.on_cpus += 1,
                    Class::Emptiable => found.movable += 1,
                    class => {
                        found.blocked += 1;
                        found.blocked_by_few += u64::from(obstacles <= FEW);
                        found.never += u64::from(class == Class::Never);
                    }
                }
                let stays = |state: &&State| !state.is_free() && !snapshot.moves(**state);
                for state in State::ALL.iter().filter(stays).filter(|state| census[**state as usize] > 0) {
                    let here = census[*state as usize];
                    let (blocks, alone, pages) = &mut kinds[*state as usize];
                    *blocks += 1;
                    *alone += u64::from(here == obstacles);
                    *pages += here;
                }
            }
        }
        let with_some = State::ALL.iter().zip(kinds).filter(|(_, (blocks, ..))| *blocks > 0);
        found.kinds = with_some
            .map(|(state, (blocks, alone, pages))| Obstacle {
                state: *state,
                kind: state.words(),
                blocks,
                alone,
                pages,
            })
            .collect();
        found.kinds.sort_by_key(|kind| std::cmp::Reverse(kind.blocks));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_told_apart_by_what_stands_in_their_way() {
        let header = concat!(
            r#"{"schema":"kontig.snapshot/1","host":{"kernel":"6.18","page_size":4096,"block_order":2,"cpus":1,"#,
            r#""pinned":0,"sysctls":[]},"zones":[{"node":0,"name":"Normal","start":0,"spanned":28,"present":28,"#,
            r#""managed":24,"marks":[0,0,0,0],"boost":0,"protection":[0,0],"cached":0,"free":[0,0,2],"#,
            r#""blocks":null}]}"#,
        );
        let text = format!("{header}\n0 M r4\n4 M F4\n8 M a1 F3\nc M s1 a3\n10 M s1 t1 F2\n14 M s4\n18 M F2 c2\n");
        let snapshot = Snapshot::parse(&text).expect("a snapshot");
        let need = Need { count: 1, order: 2, node: None, unmovable: false };
        let found = Obstacles::of(&snapshot, &need);
        assert_eq!((found.free_pages, found.droppable_pages), (13, 0));
        assert_eq!((found.blocks, found.blocked, found.blocked_by_few), (6, 3, 3));
        assert_eq!(found.never, 0);
        assert_eq!((found.free, found.on_cpus, found.movable), (1, 1, 1));
        let slab = Obstacle { state: State::Slab, kind: "slab", blocks: 3, alone: 2, pages: 6 };
        let tables = Obstacle { state: State::PageTable, kind: "page tables", blocks: 1, alone: 0, pages: 1 };
        assert_eq!(found.kinds, [slab, tables]);
    }
}
