//! `/sys/devices/system/node/nodeN/meminfo`: [`crate::meminfo`] of one node; every line begins with `Node N`.
//!
//! Values end in column 24 behind the node, numbers of huge pages in column 22.

use crate::error::BadText;
use crate::lines::Lines;
use crate::meminfo::{self, Field, MemInfo, Value};
use std::fmt;

/// The file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeMemInfo {
    /// The node.
    pub node: u32,
    /// Its lines.
    pub info: MemInfo,
}

impl NodeMemInfo {
    /// Reads the file; `file` is its name in errors.
    ///
    /// # Errors
    /// The first line that is not of this form, or is of another node than the first.
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

impl fmt::Display for NodeMemInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.info.fields.iter().try_for_each(|Field { name, value }| {
            let (node, label) = (self.node, format!("{name}:"));
            match value {
                Value::Kb(kb) => writeln!(f, "Node {node} {label:<16}{kb:>8} kB"),
                Value::Pages(pages) => writeln!(f, "Node {node} {label:<17}{pages:>5}"),
            }
        })
    }
}
