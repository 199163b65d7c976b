//! `/proc/slabinfo`: the kernel's caches of small objects, a line each (0400).
//!
//! Two lines of heading come first. A kernel that was built to count how caches are used says so in the first and adds
//! columns; they are kept as they are.

use crate::error::BadText;
use crate::lines::{Line, Lines};
use std::fmt;

/// The file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SlabInfo {
    /// What follows `slabinfo - version: ` in the first line.
    pub version: String,
    /// The second line: the names of the columns.
    pub columns: String,
    /// A line each.
    pub caches: Vec<Cache>,
}

/// A cache.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cache {
    /// Its name.
    pub name: String,
    /// Objects in use.
    pub active_objects: u64,
    /// Objects there is memory for.
    pub objects: u64,
    /// Bytes of an object.
    pub object_size: u64,
    /// Objects in a slab.
    pub objects_per_slab: u64,
    /// Pages of a slab.
    pub pages_per_slab: u64,
    /// `limit`, `batchcount`, `sharedfactor`: 0 where the allocator has no such lists.
    pub tunables: [u64; 3],
    /// Slabs with an object in use.
    pub active_slabs: u64,
    /// All slabs.
    pub slabs: u64,
    /// Objects on a list that CPUs share.
    pub shared_available: u64,
    /// Further columns.
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
    /// The pages that all its slabs take.
    pub fn pages(&self) -> u64 {
        self.slabs.saturating_mul(self.pages_per_slab)
    }
}

fn cache(line: &Line<'_>) -> Result<Cache, BadText> {
    let form = || line.expected("a cache with its three groups of numbers");
    let (head, rest) = line.text.split_once(" : tunables ").ok_or_else(form)?;
    let (tunables, rest) = rest.split_once(" : slabdata ").ok_or_else(form)?;
    let (slabs, rest) = rest.split_once(" : ").map_or((rest, ""), |(slabs, more)| (slabs, more));
    // A cache's name may hold blanks: the numbers are the last five words.
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

/// The last `N` words of a text as numbers, and what stands before them.
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
