//! When to compact a node, for how long, and when to leave it alone: a state machine. A sample of
//! the host goes in, a decision with its reason comes out; it reads no clock and no file.
//!
//! The kernel's proactive compaction is its model: two thresholds, a check every half second, an
//! end when the lower one is reached, and a back-off after a run that gained nothing. Added to it
//! are a target in blocks, a budget of CPU time, a reserve for what is used up while blocks are
//! made, and rest while the host's tasks wait.

use super::reason::{NoGain, Rest};
use super::rules::{Rules, Target};
use super::sample::{Busy, NodeSample, Sample};
use serde::Serialize;

/// The decision about a node at one moment.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    Rest {
        why: Rest,
    },
    /// Compact it until the target is reached, for `cpu_s` seconds of a CPU at most.
    Compact {
        cpu_s: f64,
    },
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Outcome {
    pub at_s: f64,
    /// Seconds of a CPU; `None` of the kernel's own thread.
    pub cpu_s: Option<f64>,
    /// Blocks that it made.
    pub made: u64,
    /// Why nothing was gained, where nothing was.
    pub no_gain: Option<NoGain>,
}

// All of these are chosen, not measured, except the longest back-off, which is the kernel's.

/// Seconds of the first back-off; each further one is twice as long.
const FIRST_BACKOFF_S: f64 = 1.0;
/// Where the reason may pass, a back-off is cut to the time in which this part of the CPU share
/// makes up for the run, but not below [`PASSING_BACKOFF_S`].
const FRUITLESS_PART: f64 = 0.25;
/// Seconds to which a back-off is cut at most, where the reason may pass.
const PASSING_BACKOFF_S: f64 = 4.0;
/// Seconds after a back-off in which its reason is thought to hold.
const LATELY_S: f64 = 60.0;
/// Seconds of the longest back-off, which is the kernel's own: 500 ms 64 times.
const LONGEST_BACKOFF_S: f64 = 32.0;
/// Blocks' worth of free memory that must come in pieces for a back-off to end early.
const NEW_PIECES: u64 = 64;
/// The last twentieth of the blocks that free memory can form costs far more moves than the others:
/// they are made for the target, never for headroom.
const DEAR_ONE_IN: u64 = 20;
/// Seconds of a CPU below which a run is not worth its start.
const SHORTEST_RUN_S: f64 = 0.02;
/// Seconds in which a use of blocks is believed, and in which it is forgotten.
const DEMAND_RISES_S: f64 = 2.0;
const DEMAND_FALLS_S: f64 = 20.0;
/// Seconds that it takes to notice that blocks are needed, and to make the first.
const NOTICE_S: f64 = 1.0;

/// The controller of one node.
#[derive(Clone, Debug)]
pub struct Controller {
    pub node: u32,
    rules: Rules,
    last_s: Option<f64>,
    /// Seconds of a CPU that a run may take now.
    tokens: f64,
    backoff: Option<BackOff>,
    /// Runs in a row without gain.
    fruitless: u32,
    /// Blocks at hand at the last look, and blocks used up in a second.
    before: Option<u64>,
    demand: f64,
    /// Blocks that a second of a CPU has made.
    yield_per_s: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
struct BackOff {
    until_s: f64,
    after: NoGain,
    /// Free pages in pieces when it began.
    pieces: u64,
}

impl Controller {
    pub fn new(node: u32, rules: Rules) -> Controller {
        Controller {
            node,
            rules,
            last_s: None,
            tokens: rules.cpu_burst_s,
            backoff: None,
            fruitless: 0,
            before: None,
            demand: 0.0,
            yield_per_s: None,
        }
    }

    /// New rules; what was learned and saved up stays.
    pub fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
        self.tokens = self.tokens.min(rules.cpu_burst_s);
        self.backoff = None;
    }

    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Blocks that are used up in a second, of late.
    pub fn demand(&self) -> f64 {
        self.demand
    }

    /// The order of the blocks that are kept on its node.
    pub fn order(&self, node: &NodeSample) -> u32 {
        self.rules.target.order(node.huge_order)
    }

    /// Blocks of that order at hand.
    pub fn at_hand(&self, node: &NodeSample) -> u64 {
        node.at_hand(self.order(node))
    }

    /// Blocks with which it is content, without headroom; `None` where the target is a score.
    pub fn kept(&self) -> Option<u64> {
        match self.rules.target {
            Target::Blocks { count, .. } => Some(count),
            Target::Score { .. } => None,
        }
    }

    /// Blocks beyond the target for what is used up until more are made: the use of a second times
    /// the seconds that it takes to make as many.
    pub fn reserve(&self) -> u64 {
        let Some(kept) = self.kept() else { return 0 };
        let refill_s = self.yield_per_s.map_or(0.0, |of_second| self.demand * NOTICE_S / of_second.max(1.0));
        ((self.demand * (NOTICE_S + refill_s)).ceil() as u64).min(kept)
    }

    /// Decides about the node of this sample.
    pub fn decide(&mut self, sample: &Sample, node: &NodeSample, held: bool) -> Decision {
        self.look(sample.at_s, node);
        self.decision(sample, node, held)
    }

    fn decision(&self, sample: &Sample, node: &NodeSample, held: bool) -> Decision {
        let rest = |why| Decision::Rest { why };
        if held {
            return rest(Rest::Held);
        }
        // The kernel keeps a score, and no number of blocks.
        if let Some(proactiveness) = sample.kernel_compacts.filter(|p| *p > 0 && self.kept().is_none()) {
            return rest(Rest::KernelCompacts { proactiveness });
        }
        if !self.is_low(node) {
            return rest(Rest::AtTarget);
        }
        let order = self.order(node);
        let (at_hand, possible) = (node.at_hand(order), node.possible(order));
        if possible <= at_hand || self.goal(node).is_some_and(|goal| at_hand >= goal) {
            let content = self.kept().is_none_or(|kept| at_hand >= kept);
            return rest(if content { Rest::AtTarget } else { Rest::NoFreeMemory { possible } });
        }
        if let Some(why) = self.too_busy(&sample.busy) {
            return rest(why);
        }
        if let Some(backoff) = self.backoff {
            let more = node.too_small(order).saturating_sub(backoff.pieces) >> order;
            if sample.at_s < backoff.until_s && more < NEW_PIECES {
                return rest(Rest::BackOff { for_s: backoff.until_s - sample.at_s, after: backoff.after });
            }
        }
        if self.tokens < SHORTEST_RUN_S {
            let for_s = (SHORTEST_RUN_S - self.tokens) / self.rules.cpu_share.max(f64::EPSILON);
            return rest(Rest::Budget { for_s });
        }
        Decision::Compact { cpu_s: self.tokens }
    }

    /// Learns from a look: time has passed, blocks were used up.
    fn look(&mut self, at_s: f64, node: &NodeSample) {
        let passed = self.last_s.map_or(0.0, |last| (at_s - last).max(0.0));
        self.last_s = Some(at_s);
        self.tokens = (self.tokens + passed * self.rules.cpu_share).min(self.rules.cpu_burst_s);
        let now = self.at_hand(node);
        if let Some(before) = self.before.filter(|_| passed > 0.0) {
            let used = before.saturating_sub(now) as f64 / passed;
            let over_s = if used > self.demand { DEMAND_RISES_S } else { DEMAND_FALLS_S };
            self.demand += (used - self.demand) * (passed / over_s).min(1.0);
        }
        self.before = Some(now);
    }

    /// Whether a run should begin.
    fn is_low(&self, node: &NodeSample) -> bool {
        match self.rules.target {
            Target::Blocks { order, .. } => node.at_hand(order) < self.level(1.0),
            Target::Score { above, .. } => node.score() > above,
        }
    }

    /// Whether a run may end.
    pub fn is_enough(&self, node: &NodeSample) -> bool {
        match self.rules.target {
            Target::Blocks { order, .. } => self.goal(node).is_none_or(|goal| node.at_hand(order) >= goal),
            Target::Score { until, .. } => node.score() <= until,
        }
    }

    /// Whether the node has what is kept.
    pub fn is_kept(&self, node: &NodeSample) -> bool {
        match self.rules.target {
            Target::Blocks { order, count } => node.at_hand(order) >= count,
            Target::Score { .. } => !self.is_low(node),
        }
    }

    /// Blocks that a run has to make.
    pub fn lacks(&self, node: &NodeSample) -> u64 {
        let order = self.order(node);
        match self.rules.target {
            Target::Blocks { .. } => self.goal(node).unwrap_or(0).saturating_sub(node.at_hand(order)),
            Target::Score { until, .. } => {
                let may_stay = node.free_pages() * until / 100;
                node.too_small(order).saturating_sub(may_stay).div_ceil(1 << order)
            }
        }
    }

    /// Blocks with which a run ends; `None` where the target is a score.
    fn goal(&self, node: &NodeSample) -> Option<u64> {
        let kept = self.kept()?;
        let possible = node.possible(self.order(node));
        let cheap = possible - possible / DEAR_ONE_IN;
        Some(self.level(2.0).min(cheap).max(if kept <= possible { kept } else { 0 }))
    }

    /// Blocks with the headroom some times over, and the reserve.
    fn level(&self, times: f64) -> u64 {
        let kept = self.kept().unwrap_or(0);
        kept + (kept as f64 * self.rules.headroom * times).ceil() as u64 + self.reserve()
    }

    fn too_busy(&self, busy: &Busy) -> Option<Rest> {
        let over = |share: Option<f64>, most: f64| share.filter(|share| *share > most);
        let cpu = over(busy.waited_cpu, self.rules.most_waited_cpu).map(|share| Rest::WaitsForCpu { share });
        let memory = over(busy.waited_memory, self.rules.most_waited_memory);
        let memory = memory.map(|share| Rest::WaitsForMemory { share });
        memory.or(cpu).or_else(|| over(busy.load, self.rules.most_load).map(|load| Rest::Busy { load }))
    }

    /// Learns from a run.
    pub fn finished(&mut self, outcome: Outcome, node: &NodeSample) {
        self.spend(outcome.cpu_s.unwrap_or(0.0));
        let order = self.order(node);
        let now = node.at_hand(order);
        if let Some(cpu_s) = outcome.cpu_s.filter(|cpu_s| *cpu_s > 0.0 && outcome.made > 0) {
            let of_second = outcome.made as f64 / cpu_s;
            self.yield_per_s = Some(self.yield_per_s.map_or(of_second, |known| known + (of_second - known) / 4.0));
        }
        // Blocks that the run made are no sign of use.
        self.before = Some(now);
        self.last_s = Some(outcome.at_s.max(self.last_s.unwrap_or(0.0)));
        match outcome.no_gain {
            None => (self.backoff, self.fruitless) = (None, 0),
            Some(after) => {
                let doubled = FIRST_BACKOFF_S * f64::from(1u32 << self.fruitless.min(16));
                let earned = |cpu_s: f64| cpu_s / (self.rules.cpu_share * FRUITLESS_PART).max(f64::EPSILON);
                let for_s = match (after, outcome.cpu_s) {
                    (NoGain::DryRun | NoGain::Poisoned { .. }, _) => LONGEST_BACKOFF_S,
                    (_, Some(cpu_s)) if after.may_pass() => {
                        doubled.min(LONGEST_BACKOFF_S).min(earned(cpu_s).max(PASSING_BACKOFF_S))
                    }
                    _ => doubled.min(LONGEST_BACKOFF_S),
                };
                self.backoff = Some(BackOff { until_s: outcome.at_s + for_s, after, pieces: node.too_small(order) });
                self.fruitless += 1;
            }
        }
    }

    /// Why the last run gained nothing, if that was a moment ago.
    pub fn failed_lately(&self, at_s: f64) -> Option<NoGain> {
        self.backoff.filter(|backoff| at_s - backoff.until_s < LATELY_S).map(|backoff| backoff.after)
    }

    /// Whether the budget has this much CPU time.
    pub fn affords(&self, cpu_s: f64) -> bool {
        cpu_s <= self.tokens
    }

    /// Takes CPU time from the budget.
    pub fn spend(&mut self, cpu_s: f64) {
        self.tokens -= cpu_s;
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::ZoneSample;
    use super::*;

    /// A node with free blocks of a huge page, and blocks' worth of single pages.
    fn node(blocks: u64, pieces: u64) -> NodeSample {
        let free = vec![pieces * 512, 0, 0, 0, 0, 0, 0, 0, 0, blocks];
        NodeSample {
            node: 0,
            huge_order: 9,
            zones: vec![ZoneSample { name: "Normal".into(), present: 1 << 20, kept: 0, free, deferred: 0 }],
        }
    }

    fn at(at_s: f64) -> Sample {
        Sample { at_s, nodes: Vec::new(), busy: Busy::default(), kernel_compacts: Some(0) }
    }

    fn keeping(count: u64) -> Controller {
        Controller::new(0, Rules { target: Target::Blocks { count, order: 9 }, ..Rules::default() })
    }

    fn rest(decision: Decision) -> Option<Rest> {
        match decision {
            Decision::Rest { why } => Some(why),
            Decision::Compact { .. } => None,
        }
    }

    fn fruitless(at_s: f64, after: NoGain) -> Outcome {
        Outcome { at_s, cpu_s: Some(0.45), made: 0, no_gain: Some(after) }
    }

    #[test]
    fn a_run_begins_below_the_headroom_and_ends_above_twice_of_it() {
        let mut of = keeping(100);
        for (blocks, begins, ends) in [(104, true, false), (105, false, false), (109, false, false), (110, false, true)]
        {
            let node = node(blocks, 1000);
            let decision = keeping(100).decide(&at(1.0), &node, false);
            assert_eq!((rest(decision).is_none(), of.is_enough(&node)), (begins, ends), "{blocks}");
        }
        assert!(of.is_kept(&node(100, 0)) && !of.is_kept(&node(99, 0)));
        assert_eq!(of.lacks(&node(60, 1000)), 50);
        assert_eq!(of.lacks(&node(60, 7)), 4, "of 67 that the free memory makes, the last 3 are dear");
        assert_eq!(of.lacks(&node(60, 41)), 40, "but those that are kept are made");
        assert!(rest(of.decide(&at(2.0), &node(60, 7), true)) == Some(Rest::Held));
    }

    #[test]
    fn a_score_is_kept_between_the_kernels_thresholds() {
        let rules = Rules { target: Target::Score { above: 90, until: 80 }, ..Rules::default() };
        let decide = |node: &NodeSample| rest(Controller::new(0, rules).decide(&at(1.0), node, false));
        assert_eq!(decide(&node(10, 90)), Some(Rest::AtTarget), "the score must be above it");
        assert_eq!(decide(&node(7, 93)), None);
        let of = Controller::new(0, rules);
        assert!(of.is_enough(&node(20, 80)) && !of.is_enough(&node(17, 83)));
    }

    #[test]
    fn the_kernel_keeps_a_score_by_itself_and_no_number_of_blocks() {
        let decide = |p: Option<u64>, rules: Rules| {
            let sample = Sample { kernel_compacts: p, ..at(1.0) };
            rest(Controller::new(0, rules).decide(&sample, &node(0, 1000), false))
        };
        let (score, blocks) = (Rules::default(), *keeping(100).rules());
        assert_eq!(decide(Some(20), score), Some(Rest::KernelCompacts { proactiveness: 20 }));
        assert_eq!([decide(Some(0), score), decide(None, score), decide(Some(20), blocks)], [None; 3]);
    }

    #[test]
    fn it_rests_while_the_hosts_tasks_wait() {
        let by_default = Busy { waited_cpu: Some(1.0), ..Busy::default() };
        let sample = Sample { busy: by_default, ..at(1.0) };
        let waits = rest(keeping(100).decide(&sample, &node(0, 1000), false));
        assert_eq!(waits, None, "some task always waits for a CPU on a busy host: the budget is what bounds it");
        let rules = Rules { most_waited_cpu: 0.9, ..*keeping(100).rules() };
        let decide =
            |busy: Busy| rest(Controller::new(0, rules).decide(&Sample { busy, ..at(1.0) }, &node(0, 1000), false));
        let busy = Busy::default();
        assert_eq!(decide(Busy { waited_cpu: Some(0.95), ..busy }), Some(Rest::WaitsForCpu { share: 0.95 }));
        assert_eq!(
            decide(Busy { waited_memory: Some(0.3), waited_cpu: Some(1.0), ..busy }),
            Some(Rest::WaitsForMemory { share: 0.3 })
        );
        assert_eq!(decide(Busy { load: Some(17.0), ..busy }), Some(Rest::Busy { load: 17.0 }));
        assert_eq!(decide(Busy { waited_cpu: Some(0.9), waited_memory: Some(0.2), load: Some(16.0) }), None);
    }

    #[test]
    fn without_enough_free_memory_it_says_how_many_blocks_there_can_be() {
        let mut of = keeping(100);
        assert_eq!(rest(of.decide(&at(1.0), &node(60, 0), false)), Some(Rest::NoFreeMemory { possible: 60 }));
        assert_eq!(rest(of.decide(&at(2.0), &node(60, 10), false)), None, "more can be made");
        assert_eq!(rest(of.decide(&at(3.0), &node(101, 0), false)), Some(Rest::AtTarget), "only headroom is lacking");
    }

    #[test]
    fn runs_without_gain_come_ever_more_seldom_up_to_the_kernels_half_minute() {
        let mut of = keeping(100);
        let lacking = node(0, 1000);
        let mut now = 10.0;
        for wait in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 32.0] {
            assert_eq!(rest(of.decide(&at(now), &lacking, false)), None);
            of.finished(fruitless(now, NoGain::Unknown), &lacking);
            let almost = rest(of.decide(&at(now + wait - 0.01), &lacking, false));
            assert!(matches!(almost, Some(Rest::BackOff { after: NoGain::Unknown, .. })), "{wait}: {almost:?}");
            now += wait;
        }
        // A gain makes the next wait short again.
        of.finished(Outcome { at_s: now, cpu_s: Some(0.01), made: 1, no_gain: None }, &lacking);
        of.finished(fruitless(now, NoGain::Unknown), &lacking);
        assert_eq!(rest(of.decide(&at(now + 1.0), &lacking, false)), None);
    }

    #[test]
    fn the_back_off_grows_less_where_the_reason_may_pass_and_a_run_costs_little() {
        let waits = |cpu_s: f64, why: NoGain| {
            let (mut of, lacking) = (keeping(100), node(0, 1000));
            for run in 0..6 {
                of.finished(Outcome { cpu_s: Some(cpu_s), ..fruitless(f64::from(run), why) }, &lacking);
            }
            assert_eq!((of.failed_lately(60.0), of.failed_lately(100.0)), (Some(why), None));
            match of.decide(&at(5.0), &lacking, false) {
                Decision::Rest { why: Rest::BackOff { for_s, .. } } => for_s,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(waits(0.005, NoGain::Unknown), 4.0);
        assert_eq!(waits(0.1, NoGain::Unknown), 8.0, "0.1 s is a quarter of 5 % of 8 s");
        assert_eq!(waits(0.5, NoGain::Unknown), 32.0);
        assert_eq!(waits(0.005, NoGain::Pinned { failed: 100 }), 32.0, "pins do not pass in a moment");
    }

    #[test]
    fn a_back_off_ends_early_when_new_memory_comes_in_pieces() {
        let mut of = keeping(100);
        of.finished(fruitless(1.0, NoGain::Poisoned { blocks: 7 }), &node(0, 1000));
        let decide = |of: &mut Controller, pieces| rest(of.decide(&at(2.0), &node(0, pieces), false));
        assert!(matches!(decide(&mut of, 1063), Some(Rest::BackOff { after: NoGain::Poisoned { blocks: 7 }, .. })));
        assert_eq!(decide(&mut of, 1064), None);
    }

    #[test]
    fn runs_take_no_more_of_a_cpu_than_their_share() {
        let rules = Rules { cpu_share: 0.1, cpu_burst_s: 2.0, ..*keeping(100).rules() };
        let mut of = Controller::new(0, rules);
        let lacking = node(0, 1000);
        let (mut spent, mut now) = (0.0, 0.0);
        while now < 1000.0 {
            if let Decision::Compact { cpu_s } = of.decide(&at(now), &lacking, false) {
                spent += cpu_s;
                of.finished(Outcome { at_s: now, cpu_s: Some(cpu_s), made: 0, no_gain: None }, &lacking);
            }
            now += 0.5;
        }
        assert!((spent - 102.0).abs() < 0.5, "what was saved up, and a tenth of the time: {spent}");
        let mut of = Controller::new(0, rules);
        assert!(of.affords(2.0) && !of.affords(2.1));
        of.spend(1.5);
        assert!(of.affords(0.5) && !of.affords(0.6), "looks at the frames are charged, too");
    }

    #[test]
    fn blocks_that_are_used_up_make_it_keep_more_in_reserve() {
        let mut of = keeping(1000);
        assert_eq!(of.reserve(), 0);
        let mut blocks = 2000;
        for second in 0..10 {
            of.decide(&at(f64::from(second)), &node(blocks, 1000), false);
            blocks -= 40;
        }
        assert!((30.0..=40.0).contains(&of.demand()), "{}", of.demand());
        assert!((30..=50).contains(&of.reserve()), "{}", of.reserve());
        assert_eq!(rest(of.decide(&at(10.0), &node(1060, 1000), false)), None, "1050 would do without use");
        // Blocks made by a run are no sign of use, nor is their number before it.
        of.finished(Outcome { at_s: 11.0, cpu_s: Some(0.5), made: 140, no_gain: None }, &node(1200, 900));
        let before = of.demand();
        of.decide(&at(12.0), &node(1200, 900), false);
        assert!(of.demand() < before);
    }
}
