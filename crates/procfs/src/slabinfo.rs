//! `/proc/slabinfo`: the kernel's caches of small objects, one line each (mode 0400).
//!
//! Two heading lines come first. A kernel built to keep cache statistics says so in the first one
//! and adds columns, which are kept as they are.

use crate::error::BadText;
use crate::lines::{Line, Lines};
use std::fmt;

/// The contents of `/proc/slabinfo`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SlabInfo {
    /// The rest of the first line, after `slabinfo - version: `.
    pub version: String,
    /// The second line, with the names of the columns.
    pub columns: String,
    pub caches: Vec<Cache>,
}

/// A line of the file: one cache.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cache {
    pub name: String,
    pub active_objects: u64,
    /// Objects for which there is memory.
    pub objects: u64,
    /// Size of an object in bytes.
    pub object_size: u64,
    pub objects_per_slab: u64,
    pub pages_per_slab: u64,
    /// `limit`, `batchcount`, `sharedfactor`: 0 if the allocator has no such lists.
    pub tunables: [u64; 3],
    /// Slabs with an object in use.
    pub active_slabs: u64,
    pub slabs: u64,
    /// Objects on a list shared by CPUs.
    pub shared_available: u64,
    /// Further columns, as they were.
    pub rest: String,
}

const VERSION: &str = "slabinfo - version: ";

impl SlabInfo {
    /// Reads the file; `file` is its name in errors.
    ///
    /// # Errors
    /// The first line that is not of this form.
    pub fn parse(file: &str, text: &str) -> Result<SlabInfo, BadText> {
        let mut lines = Lines::of(file, text)?;
        let version = lines.expect("version")?.after(VERSION)?.to_string();
        let columns = lines.expect("line of column names")?;
        if !columns.text.starts_with("# name") {
            return Err(columns.expected("the names of the columns"));
        }
        let columns = columns.text.to_string();
        Ok(SlabInfo { version, columns, caches: lines.map(|l| cache(&l)).collect::<Result<_, BadText>>()? })
    }
}

impl Cache {
    /// Pages in all slabs of the cache.
    pub fn pages(&self) -> u64 {
        self.slabs.saturating_mul(self.pages_per_slab)
    }
}

fn cache(line: &Line<'_>) -> Result<Cache, BadText> {
    let form = || line.expected("a cache with its three groups of numbers");
    let (head, rest) = line.text.split_once(" : tunables ").ok_or_else(form)?;
    let (tunables, rest) = rest.split_once(" : slabdata ").ok_or_else(form)?;
    let (slabs, rest) = rest.split_once(" : ").map_or((rest, ""), |(slabs, more)| (slabs, more));
    // A cache's name may contain blanks; the numbers are the last five words.
    let (name, objects) = last_words::<5>(line, head).ok_or_else(form)?;
    let (_, tunables) = last_words::<3>(line, tunables).filter(|(before, _)| before.is_empty()).ok_or_else(form)?;
    let (_, slabs) = last_words::<3>(line, slabs).filter(|(before, _)| before.is_empty()).ok_or_else(form)?;
    if name.is_empty() {
        return Err(form());
    }
    Ok(Cache {
        name: name.into(),
        active_objects: objects[0],
        objects: objects[1],
        object_size: objects[2],
        objects_per_slab: objects[3],
        pages_per_slab: objects[4],
        tunables,
        active_slabs: slabs[0],
        slabs: slabs[1],
        shared_available: slabs[2],
        rest: rest.into(),
    })
}

/// The last `N` words of a text as numbers, and the text before them.
fn last_words<'a, const N: usize>(line: &Line<'_>, text: &'a str) -> Option<(&'a str, [u64; N])> {
    let mut rest = text.trim_end();
    let mut numbers = [0; N];
    for number in numbers.iter_mut().rev() {
        let at = rest.rfind(' ').map_or(0, |at| at + 1);
        *number = line.number(&rest[at..]).ok()?;
        rest = rest[..at].trim_end();
    }
    Some((rest, numbers))
}

impl fmt::Display for SlabInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{VERSION}{}", self.version)?;
        writeln!(f, "{}", self.columns)?;
        self.caches.iter().try_for_each(|c| {
            write!(f, "{:<17} {:>6} {:>6} ", c.name, c.active_objects, c.objects)?;
            write!(f, "{:>6} {:>4} {:>4}", c.object_size, c.objects_per_slab, c.pages_per_slab)?;
            let [limit, batch, shared] = c.tunables;
            write!(f, " : tunables {limit:>4} {batch:>4} {shared:>4}")?;
            write!(f, " : slabdata {:>6} {:>6} {:>6}", c.active_slabs, c.slabs, c.shared_available)?;
            if !c.rest.is_empty() {
                write!(f, " : {}", c.rest)?;
            }
            writeln!(f)
        })
    }
}
