//! A hard disk: one head, which seeks by the square root of the distance, waits for the platter and
//! transfers.
//!
//! A request that starts where the last one ended costs neither seek nor rotation: the drive reads
//! ahead into its buffer, and writes from it. All tracks are as long as the bandwidth implies.

use super::parameters::Parameters;

#[derive(Clone)]
pub(super) struct Platter {
    blocks: u32,
    block_ps: [u64; 2],
    turn_ps: u64,
    seek_ps: [u64; 2],
    track_blocks: u64,
    /// The block under the head.
    head: u32,
}

impl Platter {
    pub(super) fn new(p: &Parameters) -> Platter {
        let track_blocks = (p.turn_ps / p.block_ps[0]).max(1);
        let Parameters { blocks, block_ps, turn_ps, seek_ps, .. } = *p;
        Platter { blocks, block_ps, turn_ps, seek_ps, track_blocks, head: 0 }
    }

    /// The time at which the head, now free, would reach a block, ps.
    pub(super) fn reaches(&self, now: u64, block: u32) -> u64 {
        let now = now * 1000;
        if block == self.head {
            return now;
        }
        let tracks = |block: u32| u64::from(block) / self.track_blocks;
        let there = now + if tracks(block) == tracks(self.head) { 0 } else { self.seek(block.abs_diff(self.head)) };
        let place = (u64::from(block) % self.track_blocks) * self.turn_ps / self.track_blocks;
        there + (self.turn_ps + place - there % self.turn_ps) % self.turn_ps
    }

    /// Seeks and transfers; the completion time, ns.
    pub(super) fn serve(&mut self, now: u64, first: u32, blocks: u32, write: bool) -> u64 {
        let done = self.reaches(now, first) + self.block_ps[usize::from(write)] * u64::from(blocks);
        self.head = first + blocks;
        done.div_ceil(1000)
    }

    fn seek(&self, distance: u32) -> u64 {
        let [shortest, longest] = self.seek_ps;
        let share = (f64::from(distance) / f64::from(self.blocks)).sqrt();
        shortest + ((longest - shortest) as f64 * share) as u64
    }
}
