//! Memory that is in use from the start, pageblock by pageblock, as a distribution says: `prepare =
//! { kind = "occupancy", movable = [{ share = 100, pages = [0, 512] }] }`.
//!
//! A share of the pageblocks holds a number of movable pages from a range; each pageblock's number
//! and the places of its pages are drawn from the run's seed. Another share holds pages of the
//! kernel, which stay where they are; those pageblocks are of the type unmovable, and lie together
//! at the start of each zone, evenly spread, or anywhere. It is no work, so it has no task.

use crate::limits::within;
use crate::size::HPAGE_PMD_NR;
use serde::{Deserialize, Serialize};

/// The distribution that a machine's memory is drawn from.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Occupancy {
    /// Movable pages of a pageblock: shares of all pageblocks, 100 % in all.
    pub movable: Vec<Share>,
    /// The pageblocks with pages of the kernel; none unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmovable: Option<Unmovable>,
    /// The share of movable pages that are clean pages of files, %.
    #[serde(default)]
    pub files: f64,
}

/// Pageblocks that are alike.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Of all pageblocks, %.
    pub share: f64,
    /// The least and the most pages of one: all numbers from one to the other are equally likely.
    pub pages: [u32; 2],
}

/// Pageblocks with pages of the kernel. Movable pages have what is left of each.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Unmovable {
    /// Of all pageblocks, %.
    pub share: f64,
    /// The least and the most pages of one.
    pub pages: [u32; 2],
    #[serde(default)]
    pub layout: Layout,
}

/// The places of pageblocks with pages of the kernel.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Drawn from the run's seed.
    #[default]
    Random,
    /// The first of each zone.
    Together,
    /// At equal distances from each other.
    Spread,
}

impl Occupancy {
    /// Whether the shares add up, and pageblocks have the pages.
    pub(crate) fn check(&self) -> Result<(), String> {
        within("files", self.files, 100.0)?;
        self.movable.iter().try_for_each(|of| possible("movable", of.share, of.pages))?;
        let sum = self.movable.iter().fold(0.0, |sum, of| sum + of.share);
        if (sum - 100.0).abs() > 1e-6 {
            return Err(format!("movable = shares of {sum} % in all: they are of all pageblocks, so 100 %"));
        }
        self.unmovable.as_ref().map_or(Ok(()), |of| possible("unmovable", of.share, of.pages))
    }
}

fn possible(key: &str, share: f64, [least, most]: [u32; 2]) -> Result<(), String> {
    if !(0.0..=100.0).contains(&share) {
        return Err(format!("{key} = a share of {share} %: it is from 0 to 100"));
    }
    if least > most || most > HPAGE_PMD_NR {
        return Err(format!(
            "{key} = pages of [{least}, {most}]: the least and the most of a pageblock, which has {HPAGE_PMD_NR}"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Result<(), String> {
        toml::from_str::<Occupancy>(text).map_err(|e| e.message().to_string())?.check()
    }

    #[test]
    fn shares_are_of_all_pageblocks_and_pages_of_one() {
        let of = |share: &str, pages: &str| said(&format!("movable = [{{ share = {share}, pages = {pages} }}]"));
        assert_eq!(of("100", "[0, 512]"), Ok(()));
        assert_eq!(
            of("90", "[0, 512]"),
            Err("movable = shares of 90 % in all: they are of all pageblocks, so 100 %".into())
        );
        let wrong = "the least and the most of a pageblock, which has 512";
        assert_eq!(of("100", "[3, 2]"), Err(format!("movable = pages of [3, 2]: {wrong}")));
        let more = "movable = [{ share = 100, pages = [0, 1] }]\n";
        let unmovable = |of: &str| said(&format!("{more}unmovable = {{ {of} }}"));
        assert_eq!(unmovable("share = 3, pages = [1, 9], layout = 'spread'"), Ok(()));
        assert_eq!(unmovable("share = 3, pages = [1, 513]"), Err(format!("unmovable = pages of [1, 513]: {wrong}")));
        assert_eq!(
            unmovable("share = 101, pages = [1, 9]"),
            Err("unmovable = a share of 101 %: it is from 0 to 100".into())
        );
        assert_eq!(said(&format!("{more}files = -1")), Err("files = -1 is not from 0 to 100".into()));
    }
}
