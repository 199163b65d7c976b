//! The controller on a recorded host: when it would have compacted, and what it would have kept at
//! most.
//!
//! A recording does not answer to what is decided. So the blocks of a run that was thought of are
//! taken out of the free memory that lay in pieces, in every later sample of the same boot, as far
//! as it has so much: no run could have kept more. A block is taken to cost half of its pages,
//! moved, at the costs of [`COSTS`].

use super::controller::{Controller, Decision, Outcome};
use super::policy::Policy;
use super::sample::{NodeSample, Sample, Sampler, Texts};
use crate::error::{ReadError, Unread};
use crate::history::file::Damage;
use crate::history::{self, History, Item};
use crate::sweep::COSTS;
use serde::Serialize;
use std::collections::BTreeMap;

/// Name and version of a replay's schema.
pub const SCHEMA: &str = "kontig.guard-replay/1";

/// All that guard would have done on a recorded host.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Replayed {
    pub schema: &'static str,
    /// The first and the last sample.
    pub from_unix_ms: i64,
    pub to_unix_ms: i64,
    /// Samples without free lists or zones.
    pub unread: u64,
    pub nodes: Vec<ReplayedNode>,
    /// Parts of the file that cannot be read.
    pub damage: Damage,
}

/// A node of it.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct ReplayedNode {
    pub node: u32,
    pub samples: u64,
    /// Samples in which it had what is kept, as recorded, and with guard at most.
    pub kept: u64,
    pub kept_with_guard: u64,
    pub runs: Vec<ThoughtOf>,
    /// CPU time of the runs.
    pub cpu_s: f64,
    /// Samples in which it would have rested, by reason.
    pub rested: BTreeMap<&'static str, u64>,
}

/// A run that was thought of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct ThoughtOf {
    pub unix_ms: i64,
    pub at_hand: u64,
    pub makes: u64,
}

impl Texts for history::Sample {
    fn proc(&self, file: &str) -> Result<String, ReadError> {
        text(self, format!("proc/{file}"))
    }

    fn sys(&self, file: &str) -> Result<String, ReadError> {
        text(self, format!("sys/{file}"))
    }
}

fn text(sample: &history::Sample, path: String) -> Result<String, ReadError> {
    sample.text(&path).map(str::to_string).ok_or_else(|| ReadError { path: path.into(), why: Unread::Missing })
}

/// Replays all samples of a history; `page_bytes` is the size of the host's pages.
pub fn replay(history: &History, policy: &Policy, page_bytes: u64) -> Replayed {
    let mut replay = Replay::new(page_bytes);
    let mut items = history.items();
    for item in items.by_ref() {
        if let Item::Sample(sample) = item {
            replay.look(sample.unix_ms, sample.boot().unwrap_or_default(), &sample, policy);
        }
    }
    replay.ended(items.damage())
}

struct Replay {
    page_bytes: u64,
    boot: String,
    sampler: Sampler,
    span: Option<(i64, i64)>,
    unread: u64,
    nodes: Vec<Node>,
}

struct Node {
    controller: Controller,
    /// Blocks made by runs that were thought of.
    made: u64,
    replayed: ReplayedNode,
}

impl Replay {
    fn new(page_bytes: u64) -> Replay {
        let sampler = Sampler::new(page_bytes);
        Replay { page_bytes, boot: String::new(), sampler, span: None, unread: 0, nodes: Vec::new() }
    }

    /// A sample of a host in one of its boots.
    fn look(&mut self, unix_ms: i64, boot: &str, texts: &impl Texts, policy: &Policy) {
        if self.boot != boot {
            self.boot = boot.into();
            self.sampler = Sampler::new(self.page_bytes);
            self.nodes.iter_mut().for_each(|node| node.made = 0);
        }
        self.span = Some((self.span.map_or(unix_ms, |(from, _)| from), unix_ms));
        let Ok(sample) = self.sampler.sample(texts, unix_ms as f64 / 1000.0) else {
            self.unread += 1;
            return;
        };
        for found in &sample.nodes {
            let Some(rules) = policy.of_node(found.node) else { continue };
            let known = self.nodes.iter().position(|node| node.controller.node == found.node);
            let place = known.unwrap_or_else(|| {
                let replayed = ReplayedNode { node: found.node, ..ReplayedNode::default() };
                self.nodes.push(Node { controller: Controller::new(found.node, rules), made: 0, replayed });
                self.nodes.len() - 1
            });
            self.nodes[place].look(unix_ms, &sample, found);
        }
    }

    fn ended(self, damage: Damage) -> Replayed {
        let (from_unix_ms, to_unix_ms) = self.span.unwrap_or_default();
        let nodes = self.nodes.into_iter().map(|node| node.replayed).collect();
        Replayed { schema: SCHEMA, from_unix_ms, to_unix_ms, unread: self.unread, nodes, damage }
    }
}

impl Node {
    fn look(&mut self, unix_ms: i64, sample: &Sample, recorded: &NodeSample) {
        let order = self.controller.order(recorded);
        let (mut shown, made) = recorded.with_blocks(self.made, order);
        self.made = made;
        let replayed = &mut self.replayed;
        replayed.samples += 1;
        replayed.kept += u64::from(self.controller.is_kept(recorded));
        match self.controller.decide(sample, &shown, false) {
            Decision::Rest { why } => *replayed.rested.entry(why.name()).or_default() += 1,
            Decision::Compact { cpu_s } => {
                let of_block = COSTS.of_compaction((1 << order) / 2, 0);
                let wanted = self.controller.lacks(&shown).min((cpu_s / of_block) as u64);
                let at_hand = shown.at_hand(order);
                let (after, makes) = shown.with_blocks(wanted, order);
                (shown, self.made) = (after, self.made + makes);
                let cpu_s = makes as f64 * of_block;
                replayed.cpu_s += cpu_s;
                replayed.runs.push(ThoughtOf { unix_ms, at_hand, makes });
                self.controller
                    .finished(Outcome { at_s: sample.at_s, cpu_s: Some(cpu_s), made: makes, no_gain: None }, &shown);
            }
        }
        replayed.kept_with_guard += u64::from(self.controller.is_kept(&shown));
    }
}

#[cfg(test)]
mod tests {
    use super::super::policy::{ForHost, Options};
    use super::*;

    struct Host(String);

    impl Texts for Host {
        fn proc(&self, file: &str) -> Result<String, ReadError> {
            const ZONEINFO: &str = concat!(
                "Node 0, zone   Normal\n  per-node stats\n      nr_inactive_anon 0\n  pages free     1024\n",
                "        min      1\n        low      2\n        high     3\n        spanned  65536\n",
                "        present  65536\n        managed  65536\n        protection: (0)\n",
                "      nr_free_pages 1024\n  pagesets\n    cpu: 0\n              count: 0\n",
                "  node_unreclaimable:  0\n  start_pfn:           0\n",
            );
            match file {
                "zoneinfo" => Ok(ZONEINFO.into()),
                "buddyinfo" => Ok(self.0.clone()),
                "loadavg" => Ok("3.00 1.00 0.50 4/161 2996\n".into()),
                _ => Err(ReadError { path: file.into(), why: Unread::Missing }),
            }
        }

        fn sys(&self, file: &str) -> Result<String, ReadError> {
            Err(ReadError { path: file.into(), why: Unread::Missing })
        }
    }

    /// Free single pages, in blocks' worth, and free blocks of 2 MiB.
    fn host(pieces: u64, blocks: u64) -> Host {
        Host(format!("Node 0, zone   Normal {} 0 0 0 0 0 0 0 0 {blocks} 0\n", pieces * 512 + 4))
    }

    fn replayed(samples: &[(i64, &str, Host)]) -> ReplayedNode {
        replayed_with("", samples)
    }

    fn replayed_with(policy: &str, samples: &[(i64, &str, Host)]) -> ReplayedNode {
        let for_host = ForHost { page_bytes: 4096, proactive: kontig_profiles::linux("6.12").proactive, max_order: 10 };
        let options = Options { keep: vec!["20x2M".into()], ..Options::default() };
        let policy = Policy::parse(policy, for_host).expect("a policy").with(&options, for_host).expect("a policy");
        let mut replay = Replay::new(4096);
        samples.iter().for_each(|(s, boot, host)| replay.look(s * 1000, boot, host, &policy));
        replay.ended(Damage::default()).nodes.remove(0)
    }

    #[test]
    fn blocks_once_made_are_kept_as_long_as_free_memory_would_have_made_them() {
        let node = replayed(&[
            (0, "a", host(40, 10)),
            (10, "a", host(40, 10)),
            // Somebody has taken memory.
            (20, "a", host(3, 8)),
            (30, "a", host(40, 20)),
        ]);
        assert_eq!((node.samples, node.kept, node.kept_with_guard), (4, 1, 3));
        assert_eq!(node.runs[0], ThoughtOf { unix_ms: 0, at_hand: 10, makes: 12 });
        assert_eq!(node.rested.get("no_free_memory"), Some(&1), "{node:?}");
        assert!(node.cpu_s > 0.0);
    }

    #[test]
    fn a_recorded_load_keeps_guard_from_compacting() {
        let samples = || [(0, "a", host(40, 10))];
        assert_eq!(replayed_with("most_load = 3.5\n", &samples()).runs.len(), 1);
        let busy = replayed_with("most_load = 2.5\n", &samples());
        assert_eq!((busy.runs.len(), busy.rested.get("busy")), (0, Some(&1)), "three tasks want its one CPU");
    }

    #[test]
    fn a_boot_takes_away_what_was_made() {
        let node = replayed(&[(0, "a", host(40, 10)), (10, "b", host(40, 10))]);
        assert_eq!(node.runs.iter().map(|run| run.at_hand).collect::<Vec<_>>(), [10, 10]);
        let node = replayed(&[(0, "a", host(40, 10)), (10, "a", host(40, 10))]);
        assert_eq!(node.runs.len(), 1);
    }
}
