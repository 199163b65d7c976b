//! The zone that a line or a block of lines describes.

use crate::error::BadText;
use crate::lines::Line;
use std::fmt;

/// A zone by its node and its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneAt {
    pub node: u32,
    /// The zone's name: `DMA`, `DMA32`, `Normal`, `HighMem`, `Movable` or `Device`.
    pub zone: String,
}

impl ZoneAt {
    /// Reads `Node N, zone NAME` at the start of a line; also returns the rest of the line.
    pub(crate) fn parse<'a>(line: &Line<'a>) -> Result<(ZoneAt, &'a str), BadText> {
        let (node, rest) =
            line.after("Node ")?.split_once(", zone ").ok_or_else(|| line.expected("'Node N, zone NAME'"))?;
        let rest = rest.trim_start();
        let end = rest.find([' ', ',']).unwrap_or(rest.len());
        let (zone, rest) = rest.split_at(end);
        if zone.is_empty() {
            return Err(line.bad("the zone has no name"));
        }
        Ok((ZoneAt { node: line.number(node.trim_start())?, zone: zone.into() }, rest))
    }
}

impl fmt::Display for ZoneAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node {}, zone {:>8}", self.node, self.zone)
    }
}
