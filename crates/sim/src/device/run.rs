//! The blocks of a request, and the pieces of memory that they are read to or written from: both
//! limit what is merged into it.

use super::bio::Bio;
use kontig_mm::Pfn;

/// Pieces of memory in a request (`BLK_MAX_SEGMENTS`), and blocks in a piece: 64 KiB
/// (`BLK_MAX_SEGMENT_SIZE`).
const MOST_SEGMENTS: u32 = 128;
const MOST_IN_SEGMENT: u32 = 16;

#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) first: u32,
    pub(super) blocks: u32,
    pub(super) write: bool,
    segments: u32,
    /// Blocks of the last piece of memory.
    in_last: u32,
    /// The frame that would go on with that piece.
    next: Option<Pfn>,
}

impl Run {
    pub(super) fn new(bio: &Bio) -> Run {
        let Bio { first, blocks, write, memory, .. } = *bio;
        let next = memory.map(|pfn| pfn.plus(blocks));
        Run { first, blocks, write, segments: segments(blocks), in_last: blocks, next }
    }

    /// Adds a bio behind it or before it; false if it does not fit, or together they have more
    /// blocks than a request may have.
    pub(super) fn extend(&mut self, bio: &Bio, most_blocks: u32) -> bool {
        if self.write != bio.write || self.blocks + bio.blocks > most_blocks {
            return false;
        }
        if self.first + self.blocks == bio.first {
            let goes_on = bio.memory.is_some() && bio.memory == self.next;
            let joins = goes_on && self.in_last + bio.blocks <= MOST_IN_SEGMENT;
            let more = if joins { 0 } else { segments(bio.blocks) };
            if self.segments + more > MOST_SEGMENTS {
                return false;
            }
            self.in_last = if joins { self.in_last + bio.blocks } else { bio.blocks };
            self.next = bio.memory.map(|pfn| pfn.plus(bio.blocks));
            self.segments += more;
        } else if bio.first + bio.blocks == self.first && self.segments + segments(bio.blocks) <= MOST_SEGMENTS {
            self.first = bio.first;
            self.segments += segments(bio.blocks);
        } else {
            return false;
        }
        self.blocks += bio.blocks;
        true
    }
}

/// The fewest pieces of memory that these blocks can be in.
const fn segments(blocks: u32) -> u32 {
    blocks.div_ceil(MOST_IN_SEGMENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bio(first: u32, blocks: u32, memory: Option<u32>) -> Bio {
        Bio { first, blocks, write: true, tag: 0, memory: memory.map(Pfn::new) }
    }

    /// Blocks of the request that single blocks in a row make, block i in the frame that is given.
    fn merged(frame: impl Fn(u32) -> Option<u32>) -> u32 {
        let mut run = Run::new(&bio(0, 1, frame(0)));
        (1..1000).take_while(|&i| run.extend(&bio(i, 1, frame(i)), 320)).count() as u32 + 1
    }

    #[test]
    fn a_request_ends_with_its_128th_piece_of_memory_or_its_320th_block() {
        assert_eq!(merged(|i| Some(2 * i)), 128, "each in a piece of its own");
        assert_eq!(merged(Some), 320, "pieces of 16");
        assert_eq!(merged(|i| Some(i + i / 2)), 256, "pieces of 2");
    }

    #[test]
    fn blocks_elsewhere_or_the_other_way_are_another_request() {
        let run = Run::new(&bio(100, 8, None));
        let extended = |bio: Bio| {
            let mut run = run;
            run.extend(&bio, 320).then_some((run.first, run.blocks))
        };
        assert_eq!(extended(bio(108, 8, None)), Some((100, 16)));
        assert_eq!(extended(bio(92, 8, None)), Some((92, 16)));
        assert_eq!(extended(bio(109, 8, None)), None);
        assert_eq!(extended(bio(108, 313, None)), None);
        assert_eq!(extended(Bio { write: false, ..bio(108, 8, None) }), None);
    }
}
