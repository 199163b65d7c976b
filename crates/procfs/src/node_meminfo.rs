//! `/sys/devices/system/node/nodeN/meminfo`: [`crate::meminfo`] of one node; every line begins with
//! `Node N`.
//!
//! The file is parsed only: kernels do not agree on its columns.

use crate::error::BadText;
use crate::lines::Lines;
use crate::meminfo::{self, MemInfo};

/// The contents of a node's `meminfo`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeMemInfo {
    pub node: u32,
    pub info: MemInfo,
}

impl NodeMemInfo {
    /// Reads the file; `file` is its name in errors.
    ///
    /// # Errors
    /// The first line that is not of this form, or belongs to another node than the first.
    pub fn parse(file: &str, text: &str) -> Result<NodeMemInfo, BadText> {
        let mut first = None;
        let mut fields = Vec::new();
        for line in Lines::of(file, text)? {
            let form = || line.expected("'Node N NAME:' and a value");
            let (node, rest) = line.after("Node ")?.split_once(' ').ok_or_else(form)?;
            let node = line.number(node)?;
            if *first.get_or_insert(node) != node {
                return Err(line.bad("a line of another node"));
            }
            fields.push(meminfo::field(&line, rest)?);
        }
        Ok(NodeMemInfo { node: first.unwrap_or_default(), info: MemInfo { fields } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_of_the_same_node() {
        let text = "Node 1 MemTotal:         504000 kB\nNode 1 HugePages_Total:     4\n";
        let info = NodeMemInfo::parse("meminfo", text).expect("well-formed");
        assert_eq!(
            (info.node, info.info.kb("MemTotal"), info.info.pages("HugePages_Total")),
            (1, Some(504_000), Some(4))
        );
        let bad = |text: &str| NodeMemInfo::parse("meminfo", text).expect_err(text).to_string();
        assert_eq!(bad(&text.replace("Node 1 Huge", "Node 0 Huge")), "meminfo: line 2: a line of another node");
        assert!(bad("MemTotal: 504000 kB\n").starts_with("meminfo: line 1: "));
    }
}
