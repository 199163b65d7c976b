//! Needs of blocks: `2000x2M`, `8x1G@0`, `4xorder10:unmovable`, or a ladder of them,
//! `2x1G|1024x2M`, of which the first that can be had is enough.

use kontig_text::{UNITS, short_size};
use std::fmt;

/// A number of blocks of one size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Need {
    pub count: u64,
    /// It may be above the largest order of the free lists.
    pub order: u32,
    /// `None` is any node.
    pub node: Option<u32>,
    /// For the kernel or a driver, as opposed to a user's pages.
    pub unmovable: bool,
}

/// Needs of which one is enough, the dearest first.
pub type Ladder = Vec<Need>;

/// Bytes of the largest block anybody may ask for: 1 TiB.
const MAX_BYTES: u64 = 1 << 40;

impl Need {
    pub fn pages(&self) -> u64 {
        self.count << self.order
    }

    /// The order in which needs that must be met together take their blocks: large ones first, and
    /// of one size those bound to a node before the others.
    pub(crate) fn turn(&self) -> impl Ord + use<> {
        (std::cmp::Reverse(self.order), self.node.is_none())
    }

    /// Reads a ladder, for pages of `page_size` bytes.
    ///
    /// # Errors In one line, the mistake and the right form.
    pub fn parse_ladder(text: &str, page_size: u64) -> Result<Ladder, String> {
        let parse = |(i, rung): (usize, &str)| match rung.trim() {
            "" if text.contains('|') => {
                Err(format!("need '{text}': rung {} of this ladder is empty: say it, or leave out its '|'", i + 1))
            }
            rung => Need::parse(rung, page_size),
        };
        text.split('|').enumerate().map(parse).collect()
    }

    fn parse(text: &str, page_size: u64) -> Result<Need, String> {
        let bad = |why: &str| format!("need '{text}': {why}; say COUNTxSIZE as 2000x2M, 1x1G@0 or 8xorder10:unmovable");
        let (rest, unmovable) = match text.rsplit_once(':') {
            Some((rest, "unmovable")) => (rest, true),
            Some((rest, "movable")) => (rest, false),
            Some(_) => return Err(bad("what follows ':' is 'movable' or 'unmovable'")),
            None => (text, false),
        };
        let (rest, node) = match rest.rsplit_once('@') {
            Some((rest, node)) => {
                let node = node.strip_prefix("node").unwrap_or(node);
                (rest, Some(node.parse().map_err(|_| bad("what follows '@' is the number of a node"))?))
            }
            None => (rest, None),
        };
        let (count, size) = match rest.split_once(['x', '×']) {
            Some((count, size)) => (count.parse().map_err(|_| bad("the count is no whole number from 1 on"))?, size),
            None => (1, rest),
        };
        if count == 0 {
            return Err(bad("nobody needs 0 blocks"));
        }
        let order = order(size, page_size).map_err(|why| bad(&why))?;
        let fits = 1u64.checked_shl(order).and_then(|pages| pages.checked_mul(count));
        match fits.is_some_and(|pages| pages <= u64::MAX / page_size) {
            true => Ok(Need { count, order, node, unmovable }),
            false => Err(bad("that is more than there are addresses for")),
        }
    }

    /// The need as users write it, for pages of `page_size` bytes.
    pub fn text(&self, page_size: u64) -> String {
        let mut text = format!("{}x{}", self.count, short_size(page_size << self.order));
        if let Some(node) = self.node {
            text.push_str(&format!("@{node}"));
        }
        if self.unmovable {
            text.push_str(":unmovable");
        }
        text
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}xorder{}", self.count, self.order)
    }
}

/// The order of a block that is written as `2M`, `1GiB` or `order13`, for pages of this many bytes.
///
/// # Errors
/// What is wrong with it.
pub fn order(size: &str, page_size: u64) -> Result<u32, String> {
    if let Some(order) = size.strip_prefix("order") {
        let order: u32 = order.parse().map_err(|_| format!("'{size}' is no order"))?;
        let fits = page_size.checked_shl(order).is_some_and(|bytes| bytes <= MAX_BYTES && bytes >> order == page_size);
        return if fits { Ok(order) } else { Err(format!("'{size}' is more than 1 TiB a block")) };
    }
    // `2m` is what others print for it.
    let letters = size.to_ascii_uppercase();
    let short = letters.strip_suffix("IB").or(letters.strip_suffix('B')).unwrap_or(&letters);
    let unit = UNITS[..4].iter().find_map(|(letter, bytes)| Some((short.strip_suffix(letter)?, *bytes)));
    let (digits, unit) = unit.ok_or_else(|| format!("'{size}' has no unit: K, M or G"))?;
    let number: u64 = digits.parse().map_err(|_| format!("'{size}' is no size"))?;
    let bytes = number.checked_mul(unit).filter(|bytes| (1..=MAX_BYTES).contains(bytes));
    let bytes = bytes.ok_or_else(|| format!("'{size}' is nothing, or more than 1 TiB a block"))?;
    let pages = bytes / page_size;
    match pages.is_power_of_two() && bytes.is_multiple_of(page_size) {
        true => Ok(pages.ilog2()),
        false => Err(format!("{size} is no power of two times the page of {} KiB", page_size / 1024)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Need {
        Need::parse_ladder(text, 4096).expect("it is a need")[0]
    }

    #[test]
    fn sizes_orders_nodes_and_kinds_are_understood() {
        let need = |count, order, node, unmovable| Need { count, order, node, unmovable };
        assert_eq!(one("2000x2M"), need(2000, 9, None, false));
        assert_eq!(one("32M"), need(1, 13, None, false));
        assert_eq!(one("2x1GiB@1"), need(2, 18, Some(1), false));
        assert_eq!([one("1x2m"), one("1x2mib")], [need(1, 9, None, false); 2]);
        assert_eq!(one("8xorder10:unmovable"), need(8, 10, None, true));
        assert_eq!(Need::parse_ladder("3x2M", 65536).map(|l| l[0].order), Ok(5));
        let ladder = Need::parse_ladder("2x1G | 1024x2M@node0", 4096).expect("a ladder");
        assert_eq!(ladder.iter().map(|n| n.text(4096)).collect::<Vec<_>>(), ["2x1G", "1024x2M@0"]);
    }

    #[test]
    fn an_impossible_need_is_refused_in_one_line() {
        let said = |text| Need::parse_ladder(text, 4096).expect_err("refused");
        let say = "say COUNTxSIZE as 2000x2M, 1x1G@0 or 8xorder10:unmovable";
        assert_eq!(said("0x2M"), format!("need '0x2M': nobody needs 0 blocks; {say}"));
        assert_eq!(said("3M"), format!("need '3M': 3M is no power of two times the page of 4 KiB; {say}"));
        assert_eq!(said("axb"), format!("need 'axb': the count is no whole number from 1 on; {say}"));
        assert_eq!(said("2"), format!("need '2': '2' has no unit: K, M or G; {say}"));
        assert_eq!(said("1xorder60"), format!("need '1xorder60': 'order60' is more than 1 TiB a block; {say}"));
        assert_eq!(said(""), format!("need '': '' has no unit: K, M or G; {say}"));
        assert_eq!(said("10x2M|"), "need '10x2M|': rung 2 of this ladder is empty: say it, or leave out its '|'");
        assert_eq!(said("-1x2M"), format!("need '-1x2M': the count is no whole number from 1 on; {say}"));
        assert_eq!(said("1x2M@x"), format!("need '1x2M@x': what follows '@' is the number of a node; {say}"));
    }
}
