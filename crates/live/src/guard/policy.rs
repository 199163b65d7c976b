//! The policy: the rules of every node, from a file (TOML) and from options that go before it.
//!
//! What stands at the top of the file holds for all nodes; a `[[node]]` names one and what differs
//! there.

use super::rules::{Rules, Target};
use crate::need::Need;
use kontig_mm::rules::ProactiveRules;
use kontig_profiles::Complaint;
use serde::Deserialize;
use std::fmt;
use std::ops::RangeInclusive;
use toml::Spanned;

/// The rules of every node.
#[derive(Clone, PartialEq, Debug)]
pub struct Policy {
    all: Rules,
    of_nodes: Vec<(u32, Rules)>,
    /// Only these nodes are kept; `None` is all.
    only: Option<Vec<u32>>,
}

/// The first mistake in a policy's file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadPolicy {
    /// The line, from 1.
    pub line: usize,
    pub reason: String,
}

impl fmt::Display for BadPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, kontig_text::one_line(&self.reason))
    }
}

impl std::error::Error for BadPolicy {}

/// The host, as far as a policy depends on it.
#[derive(Clone, Copy, Debug)]
pub struct ForHost {
    pub page_bytes: u64,
    /// The kernel's thresholds of a proactiveness.
    pub proactive: ProactiveRules,
    /// The largest order of the free lists.
    pub max_order: u32,
}

/// The keys for all nodes, and for one.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// The number of the node, in a `[[node]]`.
    id: Option<Spanned<u32>>,
    keep: Option<Spanned<String>>,
    proactiveness: Option<Spanned<i64>>,
    headroom_percent: Option<Spanned<f64>>,
    cpu_percent: Option<Spanned<f64>>,
    cpu_burst_s: Option<Spanned<f64>>,
    most_waited_cpu_percent: Option<Spanned<f64>>,
    most_waited_memory_percent: Option<Spanned<f64>>,
    most_load: Option<Spanned<f64>>,
    sync: Option<bool>,
    #[serde(default)]
    node: Vec<Spanned<Table>>,
}

/// Options of the command line, which go before the file.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub keep: Vec<String>,
    pub cpu_percent: Option<f64>,
    /// Dirty pages may be written.
    pub sync: bool,
}

/// A mistake, and where it stands in the file.
type Wrong = (usize, String);

impl Policy {
    /// Reads a policy's file.
    ///
    /// # Errors
    /// The first mistake in it.
    pub fn parse(text: &str, host: ForHost) -> Result<Policy, BadPolicy> {
        let bad = |(at, reason): Wrong| BadPolicy {
            line: text[..at.min(text.len())].matches('\n').count() + 1,
            reason: reason.replace('\n', " "),
        };
        let malformed = |e: toml::de::Error| {
            let Complaint { at, reason, .. } = Complaint::of(text, &e);
            bad((at, reason))
        };
        let file: Table = toml::from_str(text).map_err(malformed)?;
        Policy::of(&file, host).map_err(bad)
    }

    fn of(file: &Table, host: ForHost) -> Result<Policy, Wrong> {
        if let Some(id) = &file.id {
            return Err((id.span().start, "id belongs in a [[node]]".into()));
        }
        let all = file.rules(Rules::default(), None, host)?;
        let mut of_nodes: Vec<(u32, Rules)> = Vec::new();
        for table in &file.node {
            let (at, table) = (table.span().start, table.get_ref());
            let Some(id) = &table.id else { return Err((at, "[[node]] without an id".into())) };
            if let Some(inner) = table.node.first() {
                return Err((inner.span().start, "a [[node]] has no nodes".into()));
            }
            if of_nodes.iter().any(|(node, _)| node == id.get_ref()) {
                return Err((id.span().start, format!("node {} is named twice", id.get_ref())));
            }
            of_nodes.push((*id.get_ref(), table.rules(all, Some(*id.get_ref()), host)?));
        }
        Ok(Policy { all, of_nodes, only: None })
    }

    /// The same with the options of a command line.
    ///
    /// # Errors
    /// In one line, what is wrong with an option.
    pub fn with(mut self, options: &Options, host: ForHost) -> Result<Policy, String> {
        let mut targets: Vec<(Target, Option<u32>)> = Vec::new();
        for text in &options.keep {
            let (target, node) = kept(text, host).map_err(|why| format!("--keep: {why}"))?;
            if targets.iter().any(|(_, known)| *known == node) {
                let of = node.map_or("every node".into(), |node| format!("node {node}"));
                return Err(format!("--keep: '{text}': {of} has a target already: say one"));
            }
            targets.push((target, node));
        }
        // The target of all nodes first, so that one for a node goes before it.
        targets.sort_by_key(|(_, node)| *node);
        for (target, node) in targets {
            match node {
                None => {
                    self.all.target = target;
                    self.of_nodes.iter_mut().for_each(|(_, rules)| rules.target = target);
                }
                Some(node) => {
                    match self.of_nodes.iter_mut().find(|(known, _)| *known == node) {
                        Some((_, rules)) => rules.target = target,
                        None => self.of_nodes.push((node, Rules { target, ..self.all })),
                    }
                    self.only.get_or_insert_default().push(node);
                }
            }
        }
        if options.keep.iter().any(|text| !text.contains('@')) {
            self.only = None;
        }
        for rules in std::iter::once(&mut self.all).chain(self.of_nodes.iter_mut().map(|(_, rules)| rules)) {
            if let Some(percent) = options.cpu_percent {
                rules.cpu_share = percent / 100.0;
            }
            rules.sync |= options.sync;
        }
        Ok(self)
    }

    /// The rules of a node; `None` where it is left alone.
    pub fn of_node(&self, node: u32) -> Option<Rules> {
        if self.only.as_ref().is_some_and(|only| !only.contains(&node)) {
            return None;
        }
        let own = self.of_nodes.iter().find(|(known, _)| *known == node).map(|(_, rules)| *rules);
        Some(own.unwrap_or(self.all))
    }

    /// The nodes that it names.
    pub fn named(&self) -> impl Iterator<Item = u32> + '_ {
        self.of_nodes.iter().map(|(node, _)| *node)
    }
}

/// The share of a CPU that a node's compactions may take, in percent.
pub const CPU_PERCENT: RangeInclusive<f64> = 0.1..=100.0;

impl Table {
    fn rules(&self, base: Rules, node: Option<u32>, host: ForHost) -> Result<Rules, Wrong> {
        let mut rules = base;
        match (&self.keep, &self.proactiveness) {
            (Some(keep), Some(_)) => {
                return Err((keep.span().start, "keep and proactiveness: one of them is the target".into()));
            }
            (Some(keep), None) => {
                let (target, of_node) =
                    kept(keep.get_ref(), host).map_err(|why| (keep.span().start, format!("keep: {why}")))?;
                if of_node.is_some_and(|of| node != Some(of)) {
                    let why = "keep names another node than its table: put it into a [[node]] with that id";
                    return Err((keep.span().start, why.into()));
                }
                rules.target = target;
            }
            (None, Some(p)) => {
                let value = u32::try_from(*p.get_ref()).ok().filter(|p| (1..=100).contains(p));
                let value =
                    value.ok_or_else(|| (p.span().start, "proactiveness is a whole number, 1 to 100".into()))?;
                rules.target = Target::of_proactiveness(host.proactive, value);
            }
            (None, None) => {}
        }
        let percent = |value: f64| value / 100.0;
        for (field, name, range, to, scaled) in [
            (&self.headroom_percent, "headroom_percent", 0.0..=100.0, &mut rules.headroom, true),
            (&self.cpu_percent, "cpu_percent", CPU_PERCENT, &mut rules.cpu_share, true),
            (&self.cpu_burst_s, "cpu_burst_s", 0.1..=60.0, &mut rules.cpu_burst_s, false),
            (&self.most_waited_cpu_percent, "most_waited_cpu_percent", 0.0..=100.0, &mut rules.most_waited_cpu, true),
            (
                &self.most_waited_memory_percent,
                "most_waited_memory_percent",
                0.0..=100.0,
                &mut rules.most_waited_memory,
                true,
            ),
            (&self.most_load, "most_load", 0.1..=10_000.0, &mut rules.most_load, false),
        ] {
            let Some(field) = field else { continue };
            let value = *field.get_ref();
            if !range.contains(&value) {
                let why = format!("{name} is a number from {} to {}", range.start(), range.end());
                return Err((field.span().start, why));
            }
            *to = if scaled { percent(value) } else { value };
        }
        rules.sync = self.sync.unwrap_or(rules.sync);
        Ok(rules)
    }
}

/// A target in blocks, as `2000x2M@0`, and its node.
fn kept(text: &str, host: ForHost) -> Result<(Target, Option<u32>), String> {
    let ladder = Need::parse_ladder(text, host.page_bytes)?;
    let [need] = ladder[..] else {
        return Err(format!("'{text}' is a ladder: say one number of blocks, as 2000x2M@0"));
    };
    if need.unmovable {
        return Err(format!("'{text}': only blocks for users' pages are kept: leave out ':unmovable'"));
    }
    if need.order == 0 || need.order > host.max_order {
        return Err(format!(
            "'{text}': compaction makes blocks up to the largest of the free lists, {}",
            kontig_text::short_size(host.page_bytes << host.max_order)
        ));
    }
    Ok((Target::Blocks { count: need.count, order: need.order }, need.node))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> ForHost {
        ForHost { page_bytes: 4096, proactive: kontig_profiles::linux("6.12").proactive, max_order: 10 }
    }

    fn policy(text: &str) -> Policy {
        Policy::parse(text, host()).expect("a policy")
    }

    #[test]
    fn a_node_has_what_differs_there_and_the_rest_of_all() {
        let text = "keep = \"2000x2M\"\ncpu_percent = 10\nsync = true\n\
            [[node]]\nid = 1\nproactiveness = 60\ncpu_percent = 2\nsync = false\n";
        let policy = policy(text);
        let all = policy.of_node(0).expect("kept");
        assert_eq!((all.target, all.cpu_share, all.sync), (Target::Blocks { count: 2000, order: 9 }, 0.1, true));
        let own = policy.of_node(1).expect("kept");
        assert_eq!((own.target, own.cpu_share, own.sync), (Target::Score { above: 50, until: 40 }, 0.02, false));
    }

    #[test]
    fn options_go_before_the_file_and_name_the_nodes_that_are_kept() {
        let options = Options { keep: vec!["7x2M@1".into()], cpu_percent: Some(50.0), sync: true };
        let policy = policy("keep = \"2000x2M\"\n").with(&options, host()).expect("a policy");
        let rules = policy.of_node(1).expect("kept");
        assert_eq!((rules.target, rules.cpu_share, rules.sync), (Target::Blocks { count: 7, order: 9 }, 0.5, true));
        assert_eq!(policy.of_node(0), None, "only the node that was named");
    }

    #[test]
    fn an_option_changes_the_target_of_a_node_and_no_other_rule() {
        let file = "cpu_percent = 10\n[[node]]\nid = 1\ncpu_percent = 2\n[[node]]\nid = 2\n";
        let keep = |keep: &[&str]| {
            let keep = keep.iter().map(ToString::to_string).collect();
            policy(file).with(&Options { keep, ..Options::default() }, host())
        };
        let of_one = keep(&["7x2M@1"]).expect("a policy");
        let rules = of_one.of_node(1).expect("kept");
        assert_eq!((rules.target, rules.cpu_share), (Target::Blocks { count: 7, order: 9 }, 0.02));
        assert_eq!(of_one.of_node(2), None, "no other node is touched");
        // Whatever stands first, the one for a node goes before the one for all.
        for texts in [["7x2M@1", "9x2M"], ["9x2M", "7x2M@1"]] {
            let both = keep(&texts).expect("a policy");
            let target = |node| both.of_node(node).expect("kept").target;
            assert_eq!([0, 1].map(target), [9, 7].map(|count| Target::Blocks { count, order: 9 }));
        }
        let refused = |texts: &[&str]| keep(texts).expect_err("refused");
        assert_eq!(refused(&["1x2M", "2x2M"]), "--keep: '2x2M': every node has a target already: say one");
        assert_eq!(refused(&["1x2M@1", "2x2M@1"]), "--keep: '2x2M@1': node 1 has a target already: say one");
    }

    #[test]
    fn the_first_mistake_is_told_with_its_line() {
        let said = |text: &str| Policy::parse(text, host()).expect_err("refused").to_string();
        assert_eq!(said("# a policy\ncpu_percent = 0\n"), "line 2: cpu_percent is a number from 0.1 to 100");
        assert_eq!(said("[[node]]\nkeep = \"1x2M\"\n"), "line 1: [[node]] without an id");
        assert_eq!(
            said("\nkeep = \"1x1G\"\n"),
            "line 2: keep: '1x1G': compaction makes blocks up to the largest of the free lists, 4M"
        );
        assert!(said("keep = \"1x2M|2x2M\"\n").contains("is a ladder"));
        assert_eq!(said("keeps = 3\n"), "line 1: unknown key 'keeps': did you mean 'keep'?");
        assert_eq!(said("keep = 3\n"), "line 1: keep = 3: expected a text in quotes");
        assert_eq!(said("\nheadroom_percent = \"x\"\n"), "line 2: headroom_percent = \"x\": expected a number");
        assert!(said("keep = \n").starts_with("line 1: "));
        assert!(said("keep = \"5x2M@1\"\n").ends_with("put it into a [[node]] with that id"));
        assert!(said("keep = \"5x2M\"\nproactiveness = 3\n").contains("one of them is the target"));
    }
}
