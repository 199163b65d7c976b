//! Obstacles to free blocks: the frames that nobody can move, by their use.

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
    /// Kinds of obstacles, the commonest first.
    pub kinds: Vec<Obstacle>,
}

/// One kind of pages that cannot be moved.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Obstacle {
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
    /// Those of a snapshot for the blocks of a need.
    pub fn of(snapshot: &Snapshot, need: &Need) -> Obstacles {
        let pages = 1usize << need.order;
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
            kinds: Vec::new(),
        };
        let mut kinds = [(0u64, 0u64, 0u64); State::ALL.len()];
        for zone in snapshot.zones.iter().filter(|z| need.node.is_none_or(|n| n == z.node)) {
            let frames = zone.frames();
            let all = snapshot.census(frames.clone());
            found.free_pages += State::ALL.iter().filter(|s| s.is_free()).map(|s| all[*s as usize]).sum::<u64>();
            found.droppable_pages += all[State::FileClean as usize];
            let mut at = frames.start.next_multiple_of(pages);
            while at + pages <= frames.end {
                let census = snapshot.census(at..at + pages);
                at += pages;
                let of = |state: State| census[state as usize];
                // Such a block has no memory for anybody.
                if of(State::Hole) + of(State::NotManaged) + of(State::Reserved) + of(State::Offline) == pages as u64 {
                    continue;
                }
                let obstacles: u64 = State::ALL.iter().filter(|s| s.is_obstacle()).map(|s| of(*s)).sum();
                let whole = of(State::Free) + of(State::Deferred);
                found.blocks += 1;
                match obstacles {
                    0 if whole == pages as u64 => found.free += 1,
                    0 if whole + of(State::Cached) == pages as u64 => found.on_cpus += 1,
                    0 => found.movable += 1,
                    _ => {
                        found.blocked += 1;
                        found.blocked_by_few += u64::from(obstacles <= FEW);
                    }
                }
                for state in State::ALL.iter().filter(|s| s.is_obstacle() && of(**s) > 0) {
                    let (blocks, alone, pages) = &mut kinds[*state as usize];
                    *blocks += 1;
                    *alone += u64::from(of(*state) == obstacles);
                    *pages += of(*state);
                }
            }
        }
        let with_some = State::ALL.iter().zip(kinds).filter(|(_, (blocks, ..))| *blocks > 0);
        found.kinds = with_some
            .map(|(state, (blocks, alone, pages))| Obstacle { kind: state.words(), blocks, alone, pages })
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
        assert_eq!((found.free, found.on_cpus, found.movable), (1, 1, 1));
        let slab = Obstacle { kind: "slab", blocks: 3, alone: 2, pages: 6 };
        let tables = Obstacle { kind: "page tables", blocks: 1, alone: 0, pages: 1 };
        assert_eq!(found.kinds, [slab, tables]);
    }
}
