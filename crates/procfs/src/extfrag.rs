//! `/sys/kernel/debug/extfrag`: two indices for each zone and order, in thousandths.
//!
//! The kernel prints an index as quotient and remainder by 1000. A small negative index therefore
//! has its sign in an odd place: −62 is `0.-62`. The parser reads that back. Source:
//! kernel-behaviour §7.5.

use crate::buddyinfo::zone_lines;
use crate::error::BadText;
use crate::lines::Line;
use crate::zone_at::ZoneAt;
use std::fmt;

/// A zone's index for each order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneIndex {
    pub at: ZoneAt,
    /// The index of each order from 0, in thousandths.
    pub of_order: Vec<i64>,
}

/// `unusable_index`: the share of free memory that is in blocks too small for each order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UnusableIndex {
    pub zones: Vec<ZoneIndex>,
}

/// `extfrag_index`: whether a request of each order would fail because memory is lacking (towards
/// 0) or because it is fragmented (towards 1000); −1000 if it would not fail.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ExtfragIndex {
    pub zones: Vec<ZoneIndex>,
}

impl UnusableIndex {
    /// Reads the file; `file` is its name in errors.
    ///
    /// # Errors
    /// The first line that is not of this form.
    pub fn parse(file: &str, text: &str) -> Result<UnusableIndex, BadText> {
        Ok(UnusableIndex { zones: zones(file, text)? })
    }
}

impl ExtfragIndex {
    /// Reads the file; `file` is its name in errors.
    ///
    /// # Errors
    /// The first line that is not of this form.
    pub fn parse(file: &str, text: &str) -> Result<ExtfragIndex, BadText> {
        Ok(ExtfragIndex { zones: zones(file, text)? })
    }
}

impl fmt::Display for UnusableIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.zones.iter().try_for_each(|zone| print(f, zone, 1))
    }
}

impl fmt::Display for ExtfragIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.zones.iter().try_for_each(|zone| print(f, zone, 2))
    }
}

/// One line; the quotient is `width` wide.
fn print(f: &mut fmt::Formatter<'_>, zone: &ZoneIndex, width: usize) -> fmt::Result {
    write!(f, "{} ", zone.at)?;
    zone.of_order.iter().try_for_each(|index| write!(f, "{:>width$}.{:03} ", index / 1000, index % 1000))?;
    writeln!(f)
}

fn zones(file: &str, text: &str) -> Result<Vec<ZoneIndex>, BadText> {
    let zones = zone_lines(file, text, thousandths)?;
    Ok(zones.into_iter().map(|(at, of_order)| ZoneIndex { at, of_order }).collect())
}

fn thousandths(line: &Line<'_>, column: &str) -> Result<i64, BadText> {
    let (quotient, remainder) = column.split_once('.').ok_or_else(|| line.bad(format!("'{column}' is no index")))?;
    let (quotient, remainder): (i32, i32) = (line.number(quotient)?, line.number(remainder)?);
    if !(-999..=999).contains(&remainder) {
        return Err(line.bad(format!("'{column}' is no index")));
    }
    Ok(i64::from(quotient) * 1000 + i64::from(remainder))
}
