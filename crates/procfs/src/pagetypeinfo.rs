//! `/proc/pagetypeinfo`: free blocks and pageblocks by migrate type.
//!
//! The kernel repeats both tables, headings included, for every node with memory. Since 5.4 it
//! stops counting a list at 100,000 blocks and prints `>100000`. A kernel that tracks page owners
//! adds a table of mixed pageblocks. Source: kernel-behaviour §7.2.

use crate::error::BadText;
use crate::lines::{Line, Lines};
use crate::zone_at::ZoneAt;
use std::fmt;

/// The contents of `/proc/pagetypeinfo`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PageTypeInfo {
    /// The nodes with memory.
    pub nodes: Vec<NodeTypes>,
}

/// The tables of one node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeTypes {
    /// Order of a pageblock.
    pub block_order: u32,
    pub pages_per_block: u64,
    /// The number of orders.
    pub orders: usize,
    /// Free blocks by zone and type.
    pub free: Vec<FreeOfType>,
    /// Pageblocks by zone: all of them, then the mixed ones if the kernel tracks page owners.
    pub blocks: Vec<BlockTable>,
}

/// The free blocks of one type in one zone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FreeOfType {
    pub at: ZoneAt,
    pub migratetype: String,
    /// The number of blocks of each order, from 0.
    pub of_order: Vec<Listed>,
}

/// The number of blocks on a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listed {
    pub blocks: u64,
    /// The kernel stopped counting; there are more.
    pub more: bool,
}

/// A table of pageblocks by type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockTable {
    /// Its heading: `Number of blocks type` or `Number of mixed blocks`.
    pub heading: String,
    /// The migrate types of the columns.
    pub types: Vec<String>,
    /// One line for each zone, with a number for each type.
    pub zones: Vec<(ZoneAt, Vec<u64>)>,
}

const BLOCK_ORDER: &str = "Page block order: ";
const PAGES_PER_BLOCK: &str = "Pages per block:  ";
const FREE: &str = "Free pages count per migrate type at order ";
/// Width of the heading of a table of pageblocks, including its last blank.
const HEADING: usize = 23;

impl PageTypeInfo {
    /// Reads the file; `file` is its name in errors.
    ///
    /// # Errors
    /// The first line that is not of this form, and the last line of a text that is cut short.
    pub fn parse(file: &str, text: &str) -> Result<PageTypeInfo, BadText> {
        let mut lines = Lines::of(file, text)?;
        let mut nodes = Vec::new();
        while lines.peek().is_some() {
            nodes.push(node(&mut lines)?);
        }
        Ok(PageTypeInfo { nodes })
    }
}

fn node(lines: &mut Lines<'_>) -> Result<NodeTypes, BadText> {
    let block_order = labelled(lines, BLOCK_ORDER)?;
    let pages_per_block = labelled(lines, PAGES_PER_BLOCK)?;
    blank(lines)?;
    let heading = lines.expect("table of free pages")?;
    let orders = heading.after(FREE)?.split_whitespace().count();
    let mut free = Vec::new();
    while let Some(line) = lines.next_if(|l| l.starts_with("Node ")) {
        free.push(free_of_type(&line, orders)?);
    }
    blank(lines)?;
    let mut blocks = vec![block_table(lines)?];
    while lines.next_if(str::is_empty).is_some() {
        blocks.push(block_table(lines)?);
    }
    let types: Vec<&[FreeOfType]> = free.chunk_by(|a, b| a.at == b.at).collect();
    let last = lines.last_read();
    for table in &blocks {
        if let Some(zone) = types.iter().find(|rows| rows.len() != table.types.len()) {
            let (has, at) = (zone.len(), &zone[0].at);
            return Err(last.bad(format!(
                "node {}'s tables disagree: {has} types of {}, {} columns",
                at.node,
                at.zone,
                table.types.len()
            )));
        }
        if table.zones.len() != types.len() {
            return Err(last.bad(format!("the text is cut short: '{}' lacks zones", table.heading)));
        }
    }
    Ok(NodeTypes { block_order, pages_per_block, orders, free, blocks })
}

fn labelled<T: std::str::FromStr>(lines: &mut Lines<'_>, label: &str) -> Result<T, BadText> {
    let line = lines.expect(&format!("'{}' line", label.trim_end()))?;
    line.number(line.after(label)?)
}

fn blank(lines: &mut Lines<'_>) -> Result<(), BadText> {
    let line = lines.expect("empty line")?;
    if line.text.is_empty() { Ok(()) } else { Err(line.expected("an empty line")) }
}

fn free_of_type(line: &Line<'_>, orders: usize) -> Result<FreeOfType, BadText> {
    let (at, rest) = ZoneAt::parse(line)?;
    let rest = rest.strip_prefix(", type ").ok_or_else(|| line.expected("'Node N, zone NAME, type NAME'"))?;
    let mut words = rest.split_whitespace();
    let migratetype = words.next().ok_or_else(|| line.bad("the type has no name"))?.to_string();
    let listed = |word: &str| {
        let exact = word.strip_prefix('>');
        Ok(Listed { blocks: line.number(exact.unwrap_or(word))?, more: exact.is_some() })
    };
    let of_order = words.map(listed).collect::<Result<Vec<_>, BadText>>()?;
    if of_order.len() != orders {
        return Err(line.bad(format!("{} orders where {orders} should be", of_order.len())));
    }
    Ok(FreeOfType { at, migratetype, of_order })
}

fn block_table(lines: &mut Lines<'_>) -> Result<BlockTable, BadText> {
    let line = lines.expect("table of pageblocks")?;
    let (heading, types) =
        line.text.split_at_checked(HEADING).ok_or_else(|| line.expected("'Number of blocks type'"))?;
    if !heading.starts_with("Number of ") {
        return Err(line.expected("'Number of blocks type'"));
    }
    let types: Vec<String> = types.split_whitespace().map(str::to_string).collect();
    let mut zones = Vec::new();
    while let Some(line) = lines.next_if(|l| l.starts_with("Node ")) {
        let (at, rest) = ZoneAt::parse(&line)?;
        let blocks = rest.split_whitespace().map(|n| line.number(n)).collect::<Result<Vec<u64>, BadText>>()?;
        if blocks.len() != types.len() {
            return Err(line.bad(format!("{} columns where {} should be", blocks.len(), types.len())));
        }
        zones.push((at, blocks));
    }
    Ok(BlockTable { heading: heading.trim_end().into(), types, zones })
}

impl fmt::Display for PageTypeInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.nodes.iter().try_for_each(|node| write!(f, "{node}"))
    }
}

impl fmt::Display for NodeTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{BLOCK_ORDER}{}\n{PAGES_PER_BLOCK}{}\n", self.block_order, self.pages_per_block)?;
        write!(f, "{FREE:<44}")?;
        (0..self.orders).try_for_each(|order| write!(f, "{order:>6} "))?;
        writeln!(f)?;
        for row in &self.free {
            let ZoneAt { node, zone } = &row.at;
            write!(f, "Node {node:>4}, zone {zone:>8}, type {:>12} ", row.migratetype)?;
            for Listed { blocks, more } in &row.of_order {
                write!(f, "{}{blocks:>6} ", if *more { ">" } else { "" })?;
            }
            writeln!(f)?;
        }
        self.blocks.iter().try_for_each(|table| write!(f, "\n{table}"))
    }
}

impl fmt::Display for BlockTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<HEADING$}", self.heading)?;
        self.types.iter().try_for_each(|t| write!(f, "{t:>12} "))?;
        writeln!(f)?;
        self.zones.iter().try_for_each(|(at, blocks)| {
            write!(f, "{at} ")?;
            blocks.iter().try_for_each(|n| write!(f, "{n:>12} "))?;
            writeln!(f)
        })
    }
}
