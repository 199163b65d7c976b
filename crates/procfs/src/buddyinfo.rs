//! `/proc/buddyinfo`: free blocks of each order, a line for each populated zone.
//!
//! Blocks on per-CPU lists are not in it. Source: kernel-behaviour §7.1.

use crate::error::BadText;
use crate::lines::{Line, Lines};
use crate::zone_at::ZoneAt;
use std::fmt;

/// The contents of `/proc/buddyinfo`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BuddyInfo {
    pub zones: Vec<FreeBlocks>,
}

/// A zone's free blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FreeBlocks {
    pub at: ZoneAt,
    /// The number of blocks of each order, from 0.
    pub of_order: Vec<u64>,
}

impl BuddyInfo {
    /// Reads the file; `file` is its name in errors.
    ///
    /// # Errors
    /// The first line that is not of this form.
    pub fn parse(file: &str, text: &str) -> Result<BuddyInfo, BadText> {
        let zones = zone_lines(file, text, |line, column| line.number(column))?;
        Ok(BuddyInfo { zones: zones.into_iter().map(|(at, of_order)| FreeBlocks { at, of_order }).collect() })
    }
}

impl fmt::Display for BuddyInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.zones.iter().try_for_each(|zone| {
            write!(f, "{} ", zone.at)?;
            zone.of_order.iter().try_for_each(|blocks| write!(f, "{blocks:>6} "))?;
            writeln!(f)
        })
    }
}

/// Reads lines of `Node N, zone NAME` with a column for each order; every line must have the same
/// number of columns.
pub(crate) fn zone_lines<T>(
    file: &str,
    text: &str,
    read: impl Fn(&Line<'_>, &str) -> Result<T, BadText>,
) -> Result<Vec<(ZoneAt, Vec<T>)>, BadText> {
    let mut zones: Vec<(ZoneAt, Vec<T>)> = Vec::new();
    for line in Lines::of(file, text)? {
        let (at, columns) = ZoneAt::parse(&line)?;
        let columns = columns.split_whitespace().map(|c| read(&line, c)).collect::<Result<Vec<T>, BadText>>()?;
        let orders = zones.first().map_or(columns.len().max(1), |(_, first)| first.len());
        if columns.len() != orders {
            return Err(line.bad(format!("{} columns where {orders} should be", columns.len())));
        }
        zones.push((at, columns));
    }
    Ok(zones)
}
