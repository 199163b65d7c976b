//! Flash: as many requests at once as the queue holds, and one link for their data.
//!
//! A block alone takes its latency. Requests together are limited by what each takes of the device: its data on the link,
//! and for a small one the work that the device's figure for single blocks says.

use super::Parameters;

#[derive(Clone)]
pub(super) struct Flash {
    block_ps: [u64; 2],
    request_ps: [u64; 2],
    alone_ps: [u64; 2],
    /// When what all requests share is free again, ps.
    free_ps: u64,
}

impl Flash {
    pub(super) fn new(p: &Parameters) -> Flash {
        Flash { block_ps: p.block_ps, request_ps: p.request_ps, alone_ps: p.alone_ps, free_ps: 0 }
    }

    /// Begins with a request; when it is through, ns.
    pub(super) fn serve(&mut self, now: u64, blocks: u32, write: bool) -> u64 {
        let way = usize::from(write);
        let takes = (self.block_ps[way] * u64::from(blocks)).max(self.request_ps[way]);
        // What is left of a lone block's time before its share of the device begins.
        let before = self.alone_ps[way] - self.request_ps[way];
        self.free_ps = self.free_ps.max(now * 1000 + before) + takes;
        self.free_ps.div_ceil(1000)
    }
}
