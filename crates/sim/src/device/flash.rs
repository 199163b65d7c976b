//! Flash: serves as many requests at once as its queue holds, over one data link.
//!
//! A lone block takes the device's latency. Concurrent requests are limited by their share of the
//! device: their data on the link and, for small ones, the rate given for single blocks.

use super::parameters::Parameters;

#[derive(Clone)]
pub(super) struct Flash {
    block_ps: [u64; 2],
    request_ps: [u64; 2],
    alone_ps: [u64; 2],
    /// When the shared part of the device is free again, ps.
    free_ps: u64,
}

impl Flash {
    pub(super) fn new(p: &Parameters) -> Flash {
        Flash { block_ps: p.block_ps, request_ps: p.request_ps, alone_ps: p.alone_ps, free_ps: 0 }
    }

    /// Starts a request; its completion time, ns.
    pub(super) fn serve(&mut self, now: u64, blocks: u32, write: bool) -> u64 {
        let way = usize::from(write);
        let takes = (self.block_ps[way] * u64::from(blocks)).max(self.request_ps[way]);
        // Part of a lone block's latency before its share of the device begins.
        let before = self.alone_ps[way] - self.request_ps[way];
        self.free_ps = self.free_ps.max(now * 1000 + before) + takes;
        self.free_ps.div_ceil(1000)
    }
}
