//! kswapd: wakes when a zone runs low, reclaims until the node is balanced, sleeps, and wakes kcompactd.
//!
//! Source: kernel-behaviour §4.4. There is nothing to reclaim in this engine yet (user memory without swap, no page
//! cache, no shrinkable slab), so a balance run goes through its priorities, reclaims nothing and counts as a failure;
//! after sixteen of them kswapd gives the node up as hopeless, as the real one does. Reclaim will begin in
//! `Kswapd::shrink_node`.

use crate::event::{Event, Listen};
use crate::gfp::{AllocFlags, Gfp, Wmark};
use crate::state::{KswapdState, Memory};
use crate::step::{Daemon, DaemonStep, Step, Wait};
use crate::types::{NodeId, Order, PAGEBLOCK_ORDER, ZoneId, ZoneType};
use crate::vmstat::VmEvent;
use alloc::vec::Vec;

const MAX_RECLAIM_RETRIES: u32 = 16;
const DEF_PRIORITY: u8 = 12;
/// kswapd first only naps: 100 ms.
const NAP_NS: u64 = 100_000_000;

impl KswapdState {
    /// Whether reclaim has failed so often that kswapd leaves the node alone.
    pub fn hopeless(&self) -> bool {
        self.failures >= MAX_RECLAIM_RETRIES
    }
}

impl Memory {
    /// Asks the kswapd of a zone's node for free pages of `order`; if reclaim cannot help, asks kcompactd.
    pub(crate) fn wakeup_kswapd(&mut self, zone: ZoneId, gfp: Gfp, order: Order, highest: ZoneType) {
        let node = self.zones[zone].node;
        let k = &mut self.nodes[node].kswapd;
        k.order = k.order.max(order);
        k.highest = k.highest.max(Some(highest));
        if k.running {
            return;
        }
        let hopeless = k.hopeless();
        if hopeless || self.pgdat_balanced(node, order, highest) && !self.pgdat_boosted(node, highest) {
            if !gfp.has(Gfp::DIRECT_RECLAIM) {
                self.wakeup_kcompactd(node, order, highest);
            }
            return;
        }
        self.shared.emit(Listen::VMSCAN, || Event::WakeupKswapd { nid: node, order });
        self.nodes[node].kswapd.running = true;
        self.wakes.add(Daemon::Kswapd(node));
    }

    /// Whether some zone of the node has `order` pages to spare above its high mark; in defrag_mode, where a block is
    /// asked for, only whole free pageblocks count.
    pub(crate) fn pgdat_balanced(&mut self, node: NodeId, order: Order, highest: ZoneType) -> bool {
        let profile = &self.shared.profile;
        let plain = AllocFlags::mark(Wmark::High);
        let in_blocks = self.shared.tunables.defrag_mode && order > Order::ZERO;
        let mut managed = self.nodes[node]
            .zones
            .iter()
            .map(|z| &self.zones[*z])
            .filter(|z| z.managed > 0 && z.kind <= highest)
            .peekable();
        managed.peek().is_none()
            || managed.any(|z| {
                let free = if in_blocks { z.free_pages_in_blocks() } else { z.free_pages_snapshot() };
                z.watermark_ok(order, z.wmark(Wmark::High), highest, plain, free, profile)
            })
    }

    fn pgdat_boosted(&self, node: NodeId, highest: ZoneType) -> bool {
        self.nodes[node].zones.iter().any(|z| self.zones[*z].kind <= highest && self.zones[*z].watermark_boost > 0)
    }
}

/// A node's kswapd.
#[derive(Clone, Debug)]
pub struct Kswapd {
    node: NodeId,
    state: State,
    order: Order,
    highest: ZoneType,
}

#[derive(Clone, Debug)]
enum State {
    /// Deep asleep.
    Asleep,
    /// Asleep for 100 ms, unless woken.
    Napping,
    /// Balancing: the priority, the order still wanted, and the boost each zone had at the start.
    Balancing { priority: u8, order: Order, boosts: Vec<u64>, boosting: bool },
}

impl Kswapd {
    /// The kswapd of `node`, asleep.
    pub fn new(node: NodeId) -> Kswapd {
        Kswapd { node, state: State::Asleep, order: Order::ZERO, highest: ZoneType::Device }
    }

    /// The node it is of.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Advances by one step; called when it was woken, when its nap is over, and while it says `Working`.
    /// `timed_out` says the nap ended by itself.
    pub fn step(&mut self, m: &mut Memory, timed_out: bool) -> DaemonStep {
        m.shared.work.any = true;
        match core::mem::replace(&mut self.state, State::Asleep) {
            State::Asleep => self.wake(m),
            // Woken at the very moment the nap ended counts as woken: nobody would wake it a second time.
            State::Napping if !timed_out || m.nodes[self.node].kswapd.running => {
                m.shared.vmstat.add(VmEvent::KswapdLowWmarkHitQuickly, 1);
                self.wake(m)
            }
            State::Napping => {
                if self.may_sleep(m, self.order) {
                    m.shared.emit(Listen::VMSCAN, || Event::KswapdSleep { nid: self.node });
                    return Step::Wait(Wait::Wakeup);
                }
                m.shared.vmstat.add(VmEvent::KswapdHighWmarkHitQuickly, 1);
                self.wake(m)
            }
            State::Balancing { priority, order, boosts, boosting } => {
                self.balance(m, priority, order, boosts, boosting)
            }
        }
    }

    /// Starts a balance run for what has been asked for.
    fn wake(&mut self, m: &mut Memory) -> DaemonStep {
        let k = &mut m.nodes[self.node].kswapd;
        k.running = true;
        self.order = core::mem::take(&mut k.order);
        self.highest = k.highest.take().unwrap_or(self.highest);
        let (nid, order) = (self.node, self.order);
        m.shared.emit(Listen::VMSCAN, || Event::KswapdWake { nid, order });
        m.shared.vmstat.add(VmEvent::Pageoutrun, 1);
        let boosts: Vec<u64> = self.zones(m).map(|z| m.zones[z].watermark_boost).collect();
        for z in self.zones(m).collect::<Vec<_>>() {
            m.zones[z].reclaim_active = true;
        }
        let boosting = boosts.iter().any(|b| *b > 0);
        self.state = State::Balancing { priority: DEF_PRIORITY, order, boosts, boosting };
        Step::Working
    }

    fn zones<'m>(&self, m: &'m Memory) -> impl Iterator<Item = ZoneId> + 'm {
        let highest = self.highest;
        m.nodes[self.node].zones.iter().copied().filter(move |z| m.zones[*z].kind <= highest)
    }

    /// One priority of a balance run.
    fn balance(&mut self, m: &mut Memory, priority: u8, order: Order, boosts: Vec<u64>, boosting: bool) -> DaemonStep {
        let balanced = m.pgdat_balanced(self.node, order, self.highest);
        if !balanced && boosting {
            self.state = State::Balancing { priority: DEF_PRIORITY, order, boosts, boosting: false };
            return Step::Working;
        }
        if balanced && !boosting {
            return self.balanced(m, order, &boosts);
        }
        let reclaimed = self.shrink_node(m);
        if boosting && reclaimed == 0 {
            self.count_failure(m, &boosts);
            return self.balanced(m, order, &boosts);
        }
        if priority > 1 {
            self.state = State::Balancing { priority: priority - 1, order, boosts, boosting };
            return Step::Working;
        }
        self.count_failure(m, &boosts);
        self.balanced(m, order, &boosts)
    }

    /// A run that reclaimed nothing; whether one that a boost had started counts is the profile's to say.
    fn count_failure(&self, m: &mut Memory, boosts: &[u64]) {
        if !m.shared.profile.kswapd.boosted_runs_never_fail || boosts.iter().all(|b| *b == 0) {
            m.nodes[self.node].kswapd.failures += 1;
        }
    }

    /// Reclaims from the node's lists. There is nothing on them that could be reclaimed: user pages without swap.
    fn shrink_node(&self, m: &mut Memory) -> u64 {
        m.shared.work.tests += 1;
        0
    }

    /// The end of a balance run: takes back the boosts it started with, and tries to sleep.
    fn balanced(&mut self, m: &mut Memory, reclaim_order: Order, boosts: &[u64]) -> DaemonStep {
        let zones: Vec<ZoneId> = self.zones(m).collect();
        for (z, boost) in zones.iter().zip(boosts) {
            let z = &mut m.zones[*z];
            z.reclaim_active = false;
            z.watermark_boost -= z.watermark_boost.min(*boost);
        }
        if boosts.iter().any(|b| *b > 0) {
            m.wakeup_kcompactd(self.node, PAGEBLOCK_ORDER, self.highest);
        }
        // A run that reclaimed less than it was asked for goes on only if asked again.
        let pending = m.nodes[self.node].kswapd.order;
        let order = if reclaim_order < self.order { reclaim_order } else { pending };
        if !self.may_sleep(m, order) {
            m.shared.vmstat.add(VmEvent::KswapdHighWmarkHitQuickly, 1);
            return self.wake(m);
        }
        m.reset_isolation_suitable_node(self.node);
        m.wakeup_kcompactd(self.node, order, self.highest);
        m.nodes[self.node].kswapd.running = false;
        self.state = State::Napping;
        self.order = order;
        Step::Wait(Wait::Time(NAP_NS))
    }

    fn may_sleep(&self, m: &mut Memory, order: Order) -> bool {
        m.nodes[self.node].kswapd.hopeless() || m.pgdat_balanced(self.node, order, self.highest)
    }
}
