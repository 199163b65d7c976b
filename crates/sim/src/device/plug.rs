//! Bios that a task has asked for and not submitted yet (`blk_plug`).
//!
//! A task that has not started a plug submits what it asks for once the time of its work is known.
//! From [`Plug::start`] on it keeps its bios, so that adjacent ones become one request, until it
//! finishes the plug, sleeps, or has too much in it. Losing the CPU submits nothing. Source:
//! `block/blk-mq.c` (`blk_add_rq_to_plug`), `kernel/sched/core.c` (`sched_submit_work`) of 6.1;
//! kernel-behaviour §11.7.

use super::bio::Bio;
use super::parameters::BLOCK_BYTES;
use super::run::Run;
use kontig_mm::rules::BlockRules;

/// A request of this size, 128 KiB, goes when the next one begins (`BLK_PLUG_FLUSH_SIZE`).
const FLUSH_BLOCKS: u32 = (128 << 10) / BLOCK_BYTES as u32;

#[derive(Clone, Default)]
pub(crate) struct Plug {
    /// Starts that are not finished.
    depth: u32,
    /// Each with its device.
    bios: Vec<(u8, Bio)>,
    /// How many of the bios go next.
    due: usize,
    requests: u32,
    /// The latest request, and its device.
    last: Option<(u8, Run)>,
}

impl Plug {
    pub(crate) fn start(&mut self) {
        self.depth += 1;
    }

    pub(crate) fn finish(&mut self) {
        debug_assert!(self.depth > 0, "it was started");
        self.depth = self.depth.saturating_sub(1);
        if self.depth == 0 {
            self.flush();
        }
    }

    /// The task sleeps: it must not wait for what it has not submitted.
    pub(crate) fn flush(&mut self) {
        (self.due, self.requests, self.last) = (self.bios.len(), 0, None);
    }

    /// The task ends, whatever it has started.
    pub(crate) fn end(&mut self) {
        self.depth = 0;
        self.flush();
    }

    #[inline(always)]
    pub(crate) fn is_started(&self) -> bool {
        self.depth > 0
    }

    /// Whether there are bios to submit.
    #[inline(always)]
    pub(super) fn is_due(&self) -> bool {
        self.due > 0
    }

    /// Adds a bio for a device whose requests have at most `most_blocks`.
    pub(super) fn add(&mut self, device: u8, bio: Bio, most_blocks: u32, rules: &BlockRules) {
        self.bios.push((device, bio));
        if self.depth == 0 {
            self.due = self.bios.len();
            return;
        }
        if let Some((of, run)) = &mut self.last {
            if *of == device && run.extend(&bio, most_blocks) {
                return;
            }
            let is_large = rules.large_request_unplugs && run.blocks >= FLUSH_BLOCKS;
            if self.requests >= rules.plugged_requests || is_large {
                (self.due, self.requests) = (self.bios.len() - 1, 0);
            }
        }
        self.requests += 1;
        self.last = Some((device, Run::new(&bio)));
    }

    /// The bios to submit, each with its device.
    pub(super) fn due(&self) -> &[(u8, Bio)] {
        &self.bios[..self.due]
    }

    /// Forgets what was submitted.
    pub(super) fn submitted(&mut self) {
        self.bios.drain(..std::mem::take(&mut self.due));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(block: u32) -> Bio {
        Bio { first: block, blocks: 1, write: true, tag: block }
    }

    /// Bios that go, one after the other, as these are added.
    fn go(plug: &mut Plug, version: &str, bios: impl Iterator<Item = Bio>) -> usize {
        bios.map(|bio| {
            plug.add(0, bio, 320, &kontig_profiles::linux(version).block);
            let due = plug.due().len();
            plug.submitted();
            due
        })
        .sum()
    }

    #[test]
    fn without_a_plug_every_bio_goes_at_once() {
        assert_eq!(go(&mut Plug::default(), "6.1", (0..100).map(page)), 100);
    }

    #[test]
    fn a_request_of_128_kib_goes_with_what_is_before_it_when_the_next_one_begins() {
        let mut plug = Plug::default();
        plug.start();
        assert_eq!(go(&mut plug, "6.1", (0..128).map(page)), 0);
        assert_eq!(go(&mut plug, "6.1", (128..256).map(page)), 128, "the 129th page begins a request");
        plug.finish();
        assert_eq!(plug.due().len(), 128);
        let mut plug = Plug::default();
        plug.start();
        assert_eq!(go(&mut plug, "4.6", (0..256).map(page)), 0, "its number alone counts");
    }

    #[test]
    fn of_single_blocks_thirty_two_are_kept_or_before_5_16_sixteen() {
        for (version, kept) in [("5.6", 16), ("6.1", 32)] {
            let mut plug = Plug::default();
            plug.start();
            assert_eq!(go(&mut plug, version, (0..kept).map(|i| page(2 * i))), 0);
            assert_eq!(go(&mut plug, version, [page(100)].into_iter()), kept as usize);
        }
    }

    #[test]
    fn only_the_outermost_finish_submits_and_sleep_always_does() {
        let mut plug = Plug::default();
        plug.start();
        plug.start();
        assert_eq!(go(&mut plug, "6.1", (0..3).map(page)), 0);
        plug.finish();
        assert!(!plug.is_due() && plug.is_started());
        plug.flush();
        assert_eq!(plug.due().len(), 3);
        plug.submitted();
        assert_eq!(go(&mut plug, "6.1", [page(3)].into_iter()), 0, "it is still started");
        plug.end();
        assert!(plug.is_due() && !plug.is_started());
    }
}
