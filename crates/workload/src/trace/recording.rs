//! The lines of a recording, which `kontig workload` writes and a replay reads: an allocation each.
//!
//! `MICROSECONDS ORDER FLAGS LIFE`: when it was made, since the start; its order; the place of its
//! flags among the sets; and the microseconds until it is freed, `-` if the recording ends before.
//! Pages that are freed apart have lives of their own, in order of address: `1:300,511:-`.

use kontig_program::Order;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The largest order that is replayed, the engine's.
pub const MOST_ORDER: u8 = 10;

/// An allocation of the recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Allocation {
    pub at_us: u64,
    pub order: Order,
    /// The place of its flags.
    pub flags: usize,
    /// Its pages in order of address, as many as live equally long, and how long.
    lives: Vec<(u32, Option<u64>)>,
}

impl Allocation {
    /// An allocation that is not freed yet.
    pub fn new(at_us: u64, order: Order, flags: usize) -> Allocation {
        Allocation { at_us, order, flags, lives: vec![(1 << order.get(), None)] }
    }

    pub fn pages(&self) -> u32 {
        1 << self.order.get()
    }

    /// Some of its pages, counted from its first, are freed.
    pub fn free(&mut self, first: u32, pages: u32, now_us: u64) {
        let freed = Some(now_us.saturating_sub(self.at_us));
        let mut lives: Vec<(u32, Option<u64>)> = Vec::with_capacity(self.lives.len());
        let mut at = 0;
        for (n, life) in std::mem::take(&mut self.lives) {
            let (from, to) = (at, at + n);
            let [begin, end] = [first, first + pages].map(|page| page.clamp(from, to));
            for (n, life) in [(begin - from, life), (end - begin, freed), (to - end, life)] {
                match lives.last_mut() {
                    Some((before, same)) if *same == life => *before += n,
                    _ if n > 0 => lives.push((n, life)),
                    _ => {}
                }
            }
            at = to;
        }
        self.lives = lives;
    }

    /// Whether some of it is not freed in the recording.
    pub fn stays(&self) -> bool {
        self.lives.iter().any(|(_, life)| life.is_none())
    }

    /// Its frees: when, the first page, and how many. A process gives back what it has, so never as
    /// it takes it.
    pub fn frees(&self) -> impl Iterator<Item = (u64, u32, u32)> {
        let mut at = 0;
        self.lives.iter().filter_map(move |(pages, life)| {
            let first = at;
            at += pages;
            Some((self.at_us.saturating_add((*life)?.max(1)), first, *pages))
        })
    }
}

/// The form of a line.
const FORM: &str = "'MICROSECONDS ORDER FLAGS LIFE', where life is microseconds, -, or PAGES:LIFE joined by commas";

impl FromStr for Allocation {
    type Err = &'static str;

    fn from_str(line: &str) -> Result<Allocation, &'static str> {
        let read = || {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [at, order, flags, lives] = words.as_slice() else { return None };
            let order = order.parse().ok().filter(|order| *order <= MOST_ORDER).map(Order::new)?;
            let allocation = Allocation::new(at.parse().ok()?, order, flags.parse().ok()?);
            Some(Allocation { lives: read_lives(lives, allocation.pages())?, ..allocation })
        };
        read().ok_or(FORM)
    }
}

/// The lives of all pages of an allocation, or none if these are not they.
fn read_lives(text: &str, pages: u32) -> Option<Vec<(u32, Option<u64>)>> {
    let life = |text: &str| if text == "-" { Some(None) } else { text.parse().ok().map(Some) };
    if !text.contains(':') {
        return Some(vec![(pages, life(text)?)]);
    }
    let part = |part: &str| {
        let (pages, of_part) = part.split_once(':')?;
        Some((pages.parse().ok().filter(|pages| *pages > 0)?, life(of_part)?))
    };
    let parts: Vec<(u32, Option<u64>)> = text.split(',').map(part).collect::<Option<_>>()?;
    let all = parts.iter().try_fold(0u32, |all, (pages, _)| all.checked_add(*pages));
    (all == Some(pages)).then_some(parts)
}

impl fmt::Display for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} ", self.at_us, self.order.get(), self.flags)?;
        for (i, (pages, life)) in self.lives.iter().enumerate() {
            if self.lives.len() > 1 {
                write!(f, "{}{pages}:", if i > 0 { "," } else { "" })?;
            }
            match life {
                Some(us) => write!(f, "{us}")?,
                None => f.write_str("-")?,
            }
        }
        Ok(())
    }
}

/// The allocations of a process.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(try_from = "Written", into = "Written")]
pub struct Recorded {
    /// Its name and number in the recording.
    pub name: String,
    /// In the order in which they were made.
    pub allocations: Arc<[Allocation]>,
}

/// A process as a file has it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    /// A line for each.
    allocations: String,
}

impl TryFrom<Written> for Recorded {
    type Error = String;

    fn try_from(Written { name, allocations }: Written) -> Result<Recorded, String> {
        let read = |(i, line): (usize, &str)| {
            line.parse().map_err(|form| {
                let line: String = line.chars().take(60).collect();
                format!("process = line {} of '{name}': '{line}' is not {form}", i + 1)
            })
        };
        let lines = allocations.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let allocations = lines.map(read).collect::<Result<_, String>>()?;
        Ok(Recorded { name, allocations })
    }
}

impl From<Recorded> for Written {
    fn from(Recorded { name, allocations }: Recorded) -> Written {
        Written { name, allocations: allocations.iter().map(|allocation| format!("{allocation}\n")).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_is_written() {
        for line in ["0 0 1 -", "7 9 0 25", "7 2 3 1:300,3:-", "7 1 0 1:-,1:4"] {
            assert_eq!(line.parse::<Allocation>().map(|read| read.to_string()), Ok(line.into()));
        }
        let wrong =
            ["0 0 1", "0 11 1 -", "-1 0 0 -", "0 0 0 x", "0 1 0 1:3", "0 1 0 2:3,1:3", "0 1 0 0:1,2:3", "0 1 0 :"];
        for line in wrong {
            assert_eq!(line.parse::<Allocation>(), Err(FORM), "{line}");
        }
    }

    #[test]
    fn pages_that_are_freed_apart_live_apart() {
        let freed = |frees: &[(u32, u32, u64)]| {
            let mut allocation = Allocation::new(100, Order::new(3), 0);
            frees.iter().for_each(|(first, pages, at)| allocation.free(*first, *pages, *at));
            allocation
        };
        assert_eq!(freed(&[(0, 8, 105)]).to_string(), "100 3 0 5");
        let split = freed(&[(2, 1, 105), (4, 4, 109)]);
        assert_eq!(split.to_string(), "100 3 0 2:-,1:5,1:-,4:9");
        assert!(split.stays());
        assert_eq!(split.frees().collect::<Vec<_>>(), [(105, 2, 1), (109, 4, 4)]);
        let one_by_one: Vec<(u32, u32, u64)> = (0..8).map(|page| (page, 1, 105)).collect();
        assert_eq!(freed(&one_by_one), freed(&[(0, 8, 105)]), "together after all");
        assert_eq!(freed(&[(0, 8, 100)]).frees().next(), Some((101, 0, 8)), "never as it is taken");
    }

    #[test]
    fn the_largest_order_is_the_engines() {
        assert_eq!(MOST_ORDER, kontig_mm::types::MAX_ORDER.get());
    }
}
