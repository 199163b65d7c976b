//! Traces under memory pressure: the machine they need, and the form their results are kept in.
//!
//! A recording keeps such a trace as text, a line for each operation with the kernel's answer. The
//! machine gets it as records and sends a word for each.

use super::qemu::Board;
use crate::error::RecordError;
use kontig_mm::NodeId;
use kontig_oracle::trace::lru::{self, LruOp, MAX_GROUPS, ProcessPage};
use kontig_oracle::trace::pressure::{Cpus, Node, Pressure};

/// The script that runs the trace, and the files it sends.
pub(super) const SCRIPT: &str = "lru";
pub(super) const EXPECTED: &[&str] = &["t0.snap", "t0.lru", RESULTS, "t1.snap", "t1.lru", "trace.txt"];
/// The words of the answers, and the text file with operations and answers.
const RESULTS: &str = "res.bin";
const ANSWERED: &str = "lru.txt";

/// Default swap in MiB for a file of operations that touch a process's memory.
const OWN_SWAP_MIB: u32 = 256;
/// Keyword of the line that sets it, in MiB: `swap 1`.
const SWAP: &str = "swap";
/// Keyword of the line that sets the parts of the multi-generational LRU that are on: `lru_gen 7`.
const LRU_GEN: &str = "lru_gen";
/// Keyword of the line with the parents of memory control groups 1, 2 and so on: `groups 0 1`.
const GROUPS: &str = "groups";
/// Values of `lru_gen/enabled` that are recorded: off, or with or without walks of page tables.
const LRU_GEN_VALUES: [u8; 4] = [0, 1, 3, 7];
/// More states do not fit into node 0, which holds them until the end.
const MOST_DUMPS: usize = 32;
const MOST_PAGES: u32 = OWN_SWAP_MIB << 8;

/// A trace under memory pressure.
#[derive(Clone, Debug)]
pub(super) struct Reclaim {
    node: Node,
    nodes: u8,
    cpus: Cpus,
    process_pages: u32,
    swap_mib: u32,
    lru_gen: u8,
    /// The parent of each memory control group, from number 1 on.
    groups: Vec<u16>,
    ops: Vec<LruOp>,
}

/// Operations read from a file: lines of a recording's `lru.txt`, with or without answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenOps {
    /// Path, as the caller gave it.
    pub file: String,
    /// Swap in MiB, if the file sets it.
    swap_mib: Option<u32>,
    /// `lru_gen/enabled`, if the file sets it.
    lru_gen: u8,
    /// The parent of each memory control group, if the file has any.
    groups: Vec<u16>,
    ops: Vec<LruOp>,
}

impl GivenOps {
    /// Parses a file; comments begin with '#'.
    ///
    /// # Errors
    /// One line: the file, the line and the mistake.
    pub fn read(file: &str, content: &[u8]) -> Result<GivenOps, String> {
        let text =
            std::str::from_utf8(content).map_err(|_| format!("{file}: is not text; see docs/kernel/traces.md"))?;
        let lines = (1..).zip(text.lines().map(|l| l.split(['#', '=']).next().unwrap_or_default().trim()));
        let (swap, lines): (Vec<_>, Vec<_>) = lines.partition(|(_, l)| l.split_whitespace().next() == Some(SWAP));
        let mut swap_mib = None;
        for (number, line) in swap {
            let mib = line[SWAP.len()..].trim().parse().ok().filter(|mib| *mib <= OWN_SWAP_MIB);
            let mib = mib.ok_or_else(|| format!("{file}:{number}: write 'swap MIB', from 0 to {OWN_SWAP_MIB}"))?;
            if swap_mib.replace(mib).is_some() {
                return Err(format!("{file}:{number}: says a second time how much swap there is; leave one out"));
            }
        }
        let (on, lines): (Vec<_>, Vec<_>) =
            lines.into_iter().partition(|(_, l)| l.split_whitespace().next() == Some(LRU_GEN));
        let mut lru_gen = None;
        for (number, line) in on {
            let value = line[LRU_GEN.len()..].trim().parse().ok().filter(|value| LRU_GEN_VALUES.contains(value));
            let value = value.ok_or_else(|| format!("{file}:{number}: write 'lru_gen N', N being 0, 1, 3 or 7"))?;
            if lru_gen.replace(value).is_some() {
                return Err(format!("{file}:{number}: says a second time what lru_gen is; leave one out"));
            }
        }
        let (tree, lines): (Vec<_>, Vec<_>) =
            lines.into_iter().partition(|(_, l)| l.split_whitespace().next() == Some(GROUPS));
        let mut groups: Vec<u16> = Vec::new();
        for (number, line) in tree {
            for word in line[GROUPS.len()..].split_whitespace() {
                let parent = word.parse().ok().filter(|parent: &u16| usize::from(*parent) <= groups.len());
                let parent = parent.filter(|_| groups.len() + 1 < usize::from(MAX_GROUPS));
                groups.push(parent.ok_or_else(|| {
                    format!(
                        "{file}:{number}: '{word}' is no group before number {}: write 'groups 0 1'",
                        groups.len() + 1
                    )
                })?);
            }
        }
        let one = |(number, line): (usize, &str)| {
            let op = lru::parse(line).map_err(|e| format!("{file}:{number}: {e}; see docs/kernel/traces.md"))?;
            let page = match op {
                LruOp::Load(page) | LruOp::Store(page) | LruOp::Drop(page) => page,
                _ => ProcessPage(0),
            };
            if page.0 >= MOST_PAGES {
                return Err(format!("{file}:{number}: the process has {MOST_PAGES:x} pages at most, in hexadecimal"));
            }
            Ok(op)
        };
        let ops: Vec<LruOp> =
            lines.into_iter().filter(|(_, l)| !l.is_empty()).map(one).collect::<Result<_, String>>()?;
        if ops.is_empty() {
            return Err(format!("{file}: holds no operation; see docs/kernel/traces.md"));
        }
        if ops.iter().filter(|op| **op == LruOp::Dump).count() > MOST_DUMPS {
            return Err(format!("{file}: more than {MOST_DUMPS} dumps"));
        }
        // The module keeps blocks in an array with one slot per operation.
        let most = ops.len();
        let beyond = |op: &LruOp| matches!(op, LruOp::Alloc { id, .. } | LruOp::Free(id) if id.0 as usize >= most);
        match ops.iter().find(|op| beyond(op)) {
            Some(op) => Err(format!("{file}: '{op}': blocks have numbers below that of operations, {most}")),
            None => Ok(GivenOps { file: file.into(), swap_mib, lru_gen: lru_gen.unwrap_or(0), groups, ops }),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ops.len()
    }

    /// Whether the multi-generational LRU is on.
    pub(super) fn has_generations(&self) -> bool {
        self.lru_gen > 0
    }

    /// Whether requests go to several nodes.
    pub(super) fn has_nodes(&self) -> bool {
        self.ops.iter().any(|op| matches!(op, LruOp::Node { .. }))
    }

    /// Whether there are memory control groups.
    pub(super) fn has_groups(&self) -> bool {
        !self.groups.is_empty()
    }
}

impl Reclaim {
    pub(super) fn new(p: &Pressure, seed: u64, ops: usize) -> Reclaim {
        Reclaim {
            node: p.node,
            nodes: p.nodes,
            cpus: p.cpus,
            process_pages: p.process_pages,
            swap_mib: p.swap_mib,
            lru_gen: p.lru_gen,
            groups: p.groups.to_vec(),
            ops: p.generate(seed, ops),
        }
    }

    /// Operations from a file, on a node of the usual size.
    pub(super) fn given(given: &GivenOps) -> Reclaim {
        let touched = given.ops.iter().filter_map(|op| match op {
            LruOp::Load(page) | LruOp::Store(page) | LruOp::Drop(page) => Some(page.0 + 1),
            _ => None,
        });
        let process_pages = touched.max().unwrap_or(0);
        let swap_mib = if process_pages > 0 { given.swap_mib.unwrap_or(OWN_SWAP_MIB) } else { 0 };
        // A CPU more than the last that is named; what concerns all CPUs needs two.
        let named = given.ops.iter().map(|op| match op {
            LruOp::Cpu(cpu) => cpu + 1,
            LruOp::DrainAll | LruOp::DrainPages | LruOp::Fold => 2,
            _ => 1,
        });
        let cpus = Cpus { count: named.max().unwrap_or(1), ..Cpus::ONE };
        let nodes = given.ops.iter().map(|op| match op {
            LruOp::Node { prefers, allowed } => allowed.iter().fold(*prefers, NodeId::max).index() as u8,
            _ => 1,
        });
        let nodes = nodes.max().unwrap_or(1);
        let (node, lru_gen, ops) = (Node::SMALL, given.lru_gen, given.ops.clone());
        let groups = given.groups.clone();
        Reclaim { node, nodes, cpus, process_pages, swap_mib, lru_gen, groups, ops }
    }

    /// Records for the machine's module.
    pub(super) fn trace(&self) -> Vec<u8> {
        lru::encode(&self.ops)
    }

    pub(super) fn board(&self) -> Board {
        let groups = !self.groups.is_empty();
        let Node { mib, two_zones } = self.node;
        Board::Observed { nodes: self.nodes, node_mib: mib, two_zones, reclaim: true, groups, cpus: self.cpus.count }
    }

    /// How many nodes are observed, if they are several.
    pub(super) fn nodes(&self) -> Option<u8> {
        (self.nodes > 1).then_some(self.nodes)
    }

    /// The CPU that the daemons have to themselves, if they do.
    pub(super) fn daemons_cpu(&self) -> Option<u8> {
        self.cpus.of_daemons
    }

    /// Swap in MiB; `None` if the trace uses no process's memory.
    pub(super) fn swap_mib(&self) -> Option<u32> {
        (self.process_pages > 0).then_some(self.swap_mib)
    }

    /// `lru_gen/enabled`; `None` for the classic lists.
    pub(super) fn lru_gen(&self) -> Option<u8> {
        (self.lru_gen > 0).then_some(self.lru_gen)
    }

    /// Whether there is swap.
    pub(super) fn swaps(&self) -> bool {
        self.swap_mib > 0
    }

    /// Shell variables for the script.
    pub(super) fn parameters(&self) -> String {
        let swap = if self.swaps() { (self.swap_mib << 10).to_string() } else { String::new() };
        let lru_gen = self.lru_gen().map(|value| format!("LRU_GEN={value}\n")).unwrap_or_default();
        let nodes = self.nodes().map(|n| format!("nodes={n}"));
        let module = nodes.into_iter().chain(self.daemons_cpu().map(|cpu| format!("daemons_on={cpu}")));
        let module = module.collect::<Vec<_>>().join(" ");
        let module = if module.is_empty() { module } else { format!("MODULE='{module}'\n") };
        let groups = self.group_paths().join(" ");
        let groups = if groups.is_empty() { groups } else { format!("GROUP_PATHS='{groups}'\n") };
        format!("PAGES={}\nSWAP_KIB={swap}\n{lru_gen}{module}{groups}", self.process_pages)
    }

    /// The parents of the memory control groups; `None` without any.
    pub(super) fn groups(&self) -> Option<Vec<u16>> {
        (!self.groups.is_empty()).then(|| self.groups.clone())
    }

    /// The groups' folders below the root's, in the order of their numbers.
    fn group_paths(&self) -> Vec<String> {
        let mut paths = vec![String::new()];
        for (number, parent) in (1..).zip(&self.groups) {
            paths.push(format!("{}/{number}", paths[usize::from(*parent)]));
        }
        paths.split_off(1)
    }

    /// Replaces the words the machine sent by the operations with their answers, as text.
    pub(super) fn answer(&self, sent: &mut Vec<(String, Vec<u8>)>) -> Result<(), RecordError> {
        let results = sent.iter().position(|(name, _)| name == RESULTS).map(|i| sent.remove(i).1).unwrap_or_default();
        let (words, rest) = results.as_chunks::<4>();
        if words.len() != self.ops.len() || !rest.is_empty() {
            let reason = format!("{} bytes of results of {} operations", results.len(), self.ops.len());
            return Err(RecordError::Failed(reason));
        }
        let words: Vec<u32> = words.iter().map(|w| u32::from_le_bytes(*w)).collect();
        sent.push((ANSWERED.into(), lru::write_answered(&self.ops, &words).into_bytes()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_oracle::trace::pressure;

    fn reclaim(name: &str) -> Reclaim {
        Reclaim::new(pressure::find(name).expect("a trace"), 1, 3)
    }

    #[test]
    fn a_trace_says_what_its_machine_needs() {
        assert_eq!(reclaim("lru-file").parameters(), "PAGES=0\nSWAP_KIB=\n");
        assert_eq!(reclaim("lru-anon").parameters(), "PAGES=45000\nSWAP_KIB=262144\n");
        assert_eq!(
            reclaim("lru-two-zones").board(),
            Board::Observed { nodes: 1, node_mib: 256, two_zones: true, reclaim: true, groups: false, cpus: 1 }
        );
    }

    #[test]
    fn somebodys_operations_are_read_with_and_without_answers() {
        let text = "# mine\nstore a:1f = 100442 dirty\n\nread f0:2 0 movable direct  # again\nalloc 2 9 movable\n";
        let given = GivenOps::read("mine.txt", text.as_bytes()).expect("operations");
        let reclaim = Reclaim::given(&given);
        assert_eq!((given.len(), reclaim.parameters().as_str()), (3, "PAGES=32\nSWAP_KIB=262144\n"));
        let small = GivenOps::read("mine.txt", b"swap 1\nstore a:1f\n").expect("operations");
        assert_eq!(Reclaim::given(&small).swap_mib(), Some(1));
        let young = GivenOps::read("mine.txt", b"lru_gen 1\nage own\n").expect("operations");
        assert_eq!(Reclaim::given(&young).parameters(), "PAGES=0\nSWAP_KIB=\nLRU_GEN=1\n");
        let tree = GivenOps::read("mine.txt", b"groups 0 1 0\nenter 2\n").expect("operations");
        let parameters = "PAGES=0\nSWAP_KIB=\nGROUP_PATHS='/1 /1/2 /3'\n";
        assert_eq!(Reclaim::given(&tree).parameters(), parameters);
        let far = GivenOps::read("mine.txt", b"node 1 1 3\n").expect("operations");
        assert_eq!(Reclaim::given(&far).parameters(), "PAGES=0\nSWAP_KIB=\nMODULE='nodes=3'\n");
        let refused = |text: &str| GivenOps::read("mine.txt", text.as_bytes()).expect_err("refused");
        assert!(refused("groups 0 2\ndrain\n").starts_with("mine.txt:1: '2' is no group before number 2"));
        assert!(refused("drain\nswap much\n").starts_with("mine.txt:2: write 'swap MIB', from 0 to 256"));
        assert!(refused("swap 1\nswap 2\n").starts_with("mine.txt:2: says a second time"));
        assert!(refused("drain\nreed f0:2\n").starts_with("mine.txt:2: 'reed f0:2' is no operation; see docs"));
        assert!(refused("store a:10000\n").starts_with("mine.txt:1: the process has 10000 pages at most"));
        assert!(refused("alloc 1 0 movable\n").contains("'alloc 1 0 movable': blocks have numbers below"));
        assert!(refused("lru_gen 8\ndrain\n").starts_with("mine.txt:1: write 'lru_gen N'"));
        assert!(refused("lru_gen 1\nlru_gen 1\n").starts_with("mine.txt:2: says a second time"));
        assert!(refused("# nothing\n").contains("holds no operation"));
        assert!(refused(&"dump\n".repeat(33)).contains("more than 32 dumps"));
        assert!(GivenOps::read("x", &[0xff]).expect_err("refused").contains("is not text"));
    }

    /// Enum constants with this prefix in the module's sources: `OP_ALLOC = 1,`.
    fn named_in(source: &str, prefix: &str) -> Vec<(String, u32)> {
        let number = |text: &str| match text.split_once("<<") {
            Some((one, by)) => Some(one.trim().parse::<u32>().ok()? << by.trim().parse::<u32>().ok()?),
            None => text.trim().parse().ok(),
        };
        let constant = |line: &str| {
            let (name, value) = line.trim().strip_prefix(prefix)?.split_once(" = ")?;
            Some((name.to_string(), number(value.split(',').next()?).expect(line)))
        };
        source.lines().filter_map(constant).collect()
    }

    const HEADER: &str = include_str!("../../../oracle/module/kontig.h");

    #[test]
    fn the_module_carries_out_every_operation_under_the_number_it_is_sent_with() {
        const OPERATIONS: [(&str, &str); 28] = [
            ("ALLOC", "alloc 0 0 movable"),
            ("FREE", "free 0"),
            ("ADD", "add f0:0 0 movable"),
            ("READ", "read f0:0 0 movable"),
            ("TOUCH", "touch f0:0"),
            ("TRUNCATE", "truncate f0:0 0"),
            ("DIRTY", "dirty f0:0"),
            ("WRITE", "writeback f0:0"),
            ("WRITTEN", "written f0:0"),
            ("FINISH", "finish 1"),
            ("DEVICE", "device f0 slow"),
            ("ANON_READ", "load a:0"),
            ("ANON_WRITE", "store a:0"),
            ("ANON_DROP", "drop a:0"),
            ("OBJECT", "object unmovable"),
            ("DRAIN", "drain"),
            ("WAIT", "wait"),
            ("DUMP", "dump"),
            ("AGE", "age own"),
            ("EVICT", "evict 0 60 1"),
            ("CPU", "cpu 1"),
            ("DRAIN_ALL", "drain-all"),
            ("DRAIN_PAGES", "drain-pages"),
            ("FOLD", "fold"),
            ("NODE", "node 2 1 2"),
            ("ENTER", "enter 1"),
            ("LIMIT", "limit 1 max 5"),
            ("FLUSH", "flush"),
        ];
        let sent = |line| u32::from(lru::encode(&[lru::parse(line).expect(line)])[0]);
        let ours: Vec<(String, u32)> = OPERATIONS.iter().map(|(name, line)| (name.to_string(), sent(line))).collect();
        assert_eq!(named_in(HEADER, "OP_"), ours);
    }

    #[test]
    fn the_module_reads_rights_and_answers_as_they_are_written() {
        let trace = include_str!("../../../oracle/module/trace.c");
        let (answers, flags) = (named_in(HEADER, "SAYS_"), named_in(trace, "FLAG_"));
        assert_eq!((answers.len(), flags.len()), (7, 13));
        for (name, bit) in answers {
            let answered = lru::write_answered(&[lru::parse("touch f0:0").expect("an operation")], &[bit | 5]);
            assert_eq!(answered, format!("touch f0:0 = 5 {}\n", name.to_lowercase()));
        }
        for (name, bit) in flags {
            let right = match name.as_str() {
                // TYPE is the migratetype; OWNED is for pages the module owns.
                "TYPE" | "OWNED" => continue,
                "TRY_HARD" => "retry".to_string(),
                other => other.to_lowercase(),
            };
            let op = lru::parse(&format!("alloc 0 0 unmovable direct {right}")).expect("a right");
            let record = lru::encode(&[op]);
            // Some rights are of no use without 'direct'.
            assert_eq!(u32::from(u16::from_le_bytes([record[2], record[3]])), bit | 8, "{right}");
        }
    }

    #[test]
    fn words_become_answers_and_too_few_are_refused() {
        let words: Vec<u8> = [0x10_0001, 0x10_0002, 0xffff_ffff_u32].iter().flat_map(|w| w.to_le_bytes()).collect();
        let mut sent = vec![("t0.snap".to_string(), vec![]), (RESULTS.to_string(), words.clone())];
        reclaim("lru-file").answer(&mut sent).expect("whole");
        let text = String::from_utf8(sent[1].1.clone()).expect("text");
        assert_eq!((sent.len(), sent[1].0.as_str(), text.lines().count()), (2, ANSWERED, 3));
        assert!(text.ends_with(" = failed\n") && text.contains(" = dump\n") || text.contains(" = 100001\n"), "{text}");
        let mut short = vec![(RESULTS.to_string(), words[..8].to_vec())];
        assert!(reclaim("lru-file").answer(&mut short).is_err());
    }
}
