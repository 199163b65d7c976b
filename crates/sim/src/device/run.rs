//! The blocks of a request, and the pieces of memory that they are read to or written from: both
//! limit what is merged into it.

use super::bio::Bio;

/// Pieces of memory in a request (`BLK_MAX_SEGMENTS`), and the most blocks of one: 64 KiB
/// (`BLK_MAX_SEGMENT_SIZE`).
const MOST_SEGMENTS: u32 = 128;
const MOST_IN_SEGMENT: u32 = 16;

#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) first: u32,
    pub(super) blocks: u32,
    pub(super) write: bool,
    segments: u32,
}

impl Run {
    pub(super) fn new(bio: &Bio) -> Run {
        Run { first: bio.first, blocks: bio.blocks, write: bio.write, segments: segments(bio.blocks) }
    }

    /// Adds a bio behind it or before it; false if it does not fit, or together they have more
    /// blocks than a request may have, or more pieces of memory. A bio's pieces stay its own,
    /// wherever they lie, as in 6.1; that kernels before 5.2 joined them is from memory.
    pub(super) fn extend(&mut self, bio: &Bio, most_blocks: u32) -> bool {
        let segments = self.segments + segments(bio.blocks);
        if self.write != bio.write || self.blocks + bio.blocks > most_blocks || segments > MOST_SEGMENTS {
            return false;
        }
        if bio.first + bio.blocks == self.first {
            self.first = bio.first;
        } else if self.first + self.blocks != bio.first {
            return false;
        }
        self.blocks += bio.blocks;
        self.segments = segments;
        true
    }
}

/// The fewest pieces of memory that a bio of these blocks can be in.
const fn segments(blocks: u32) -> u32 {
    blocks.div_ceil(MOST_IN_SEGMENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bio(first: u32, blocks: u32) -> Bio {
        Bio { first, blocks, write: true, tag: 0 }
    }

    /// Blocks of the request that bios of this many blocks in a row make.
    fn merged(blocks: u32) -> u32 {
        let mut run = Run::new(&bio(0, blocks));
        (1..1000).take_while(|i| run.extend(&bio(i * blocks, blocks), 320)).count() as u32 * blocks + blocks
    }

    #[test]
    fn a_request_ends_with_its_128th_piece_of_memory_or_its_320th_block() {
        assert_eq!(merged(1), 128, "each a piece of its own");
        assert_eq!(merged(32), 320);
    }

    #[test]
    fn blocks_elsewhere_or_the_other_way_are_another_request() {
        let run = Run::new(&bio(100, 8));
        let extended = |bio: Bio| {
            let mut run = run;
            run.extend(&bio, 320).then_some((run.first, run.blocks))
        };
        assert_eq!(extended(bio(108, 8)), Some((100, 16)));
        assert_eq!(extended(bio(92, 8)), Some((92, 16)));
        assert_eq!(extended(bio(109, 8)), None);
        assert_eq!(extended(bio(108, 313)), None);
        assert_eq!(extended(Bio { write: false, ..bio(108, 8) }), None);
    }
}
