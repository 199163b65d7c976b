//! Memory by owner: `/proc/kpagecgroup` has for each frame the control group it is charged to,
//! `/proc/kpagecount` how often it is mapped; `kontig status --owners`.
//!
//! So the group can be named whose page tables or locked pages stand in blocks that would be free
//! otherwise. Objects of the kernel (slab) share pages, and no group has those. Moving a page
//! changes each mapping of it. Pins stay unknown: a pin is a reference, and these files count
//! mappings.
//!
//! The three files are read side by side, piece by piece, as the host goes on meanwhile.

use crate::error::ReadError;
use crate::frame::Heads;
use crate::page_words::PageWords;
use crate::roots::Roots;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Memory of a host by control group.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Owners {
    /// Users' memory that is mapped more than once, bytes; null where the kernel does not say.
    pub shared_bytes: Option<u64>,
    /// The groups with memory, those in the way of the most blocks first; null on a kernel without
    /// control groups of memory.
    pub cgroups: Option<Vec<Cgroup>>,
}

/// A control group's memory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Cgroup {
    /// Its path below the hierarchy's root; where it has none any more, `inode` and its number.
    pub path: String,
    /// Memory of its users, which can be moved, bytes.
    pub movable_bytes: u64,
    /// Memory of the kernel's for it, which stays where it is, bytes: page tables, stacks, buffers.
    pub staying_bytes: u64,
    /// Blocks of the order asked about that hold some of that.
    pub in_the_way_of: u64,
}

/// Frames of a group seen so far.
#[derive(Default)]
struct Seen {
    movable: u64,
    staying: u64,
    blocks: u64,
    last_block: Option<u64>,
}

/// Frames looked at before the next of the files is read.
const PIECE: u64 = 1 << 15;

/// Looks at every frame of the host.
///
/// # Errors
/// Mostly that only root may read them. A file that this kernel does not have is no error.
pub fn read(roots: &Roots, page_bytes: u64, order: u32) -> Result<Owners, ReadError> {
    let mut flags = PageWords::open(&roots.proc("kpageflags"))?;
    let mut counts = there(PageWords::open(&roots.proc("kpagecount")))?;
    let mut groups = there(PageWords::open(&roots.proc("kpagecgroup")))?;
    let (mut heads, mut shared) = (Heads::default(), 0u64);
    let mut seen: HashMap<u64, Seen> = HashMap::new();
    let mut group = 0;
    for start in (0..).step_by(PIECE as usize) {
        let pages = words(&mut flags, start)?;
        let counts = counts.as_mut().map(|file| words(file, start)).transpose()?;
        let groups = groups.as_mut().map(|file| words(file, start)).transpose()?;
        for (i, &flags) in pages.iter().enumerate() {
            let word = |words: &Option<Vec<u64>>| words.as_ref().and_then(|words| words.get(i)).copied().unwrap_or(0);
            let (state, continues) = heads.next(flags);
            // A compound page is charged as a whole, to the group of its head.
            group = if continues { group } else { word(&groups) };
            shared += u64::from(state.is_movable() && word(&counts) > 1);
            if group == 0 || state.is_free() {
                continue;
            }
            let seen = seen.entry(group).or_default();
            if state.is_movable() {
                seen.movable += 1;
                continue;
            }
            let block = Some((start + i as u64) >> order);
            seen.staying += 1;
            seen.blocks += u64::from(seen.last_block != block);
            seen.last_block = block;
        }
        if (pages.len() as u64) < PIECE {
            break;
        }
    }
    let named = || {
        let names = names(roots);
        let each = |(inode, seen): (u64, Seen)| Cgroup {
            path: names.get(&inode).cloned().unwrap_or_else(|| format!("inode {inode}")),
            movable_bytes: seen.movable.saturating_mul(page_bytes),
            staying_bytes: seen.staying.saturating_mul(page_bytes),
            in_the_way_of: seen.blocks,
        };
        let mut found: Vec<Cgroup> = seen.into_iter().map(each).collect();
        found.sort_by(|a, b| {
            let key = |c: &Cgroup| Reverse((c.in_the_way_of, c.movable_bytes));
            key(a).cmp(&key(b)).then_with(|| a.path.cmp(&b.path))
        });
        found
    };
    Ok(Owners {
        shared_bytes: counts.is_some().then(|| shared.saturating_mul(page_bytes)),
        cgroups: groups.is_some().then(named),
    })
}

/// A file that this kernel lacks is `None`.
fn there<T>(read: Result<T, ReadError>) -> Result<Option<T>, ReadError> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(e) if e.is_missing() => Ok(None),
        Err(e) => Err(e),
    }
}

/// A piece of a file's words.
fn words(file: &mut PageWords, start: u64) -> Result<Vec<u64>, ReadError> {
    let mut found = Vec::with_capacity(PIECE as usize);
    file.read(start, start + PIECE, |_, words| found.extend_from_slice(words))?;
    Ok(found)
}

/// The groups' paths by their inodes: of the hierarchy that accounts for memory.
fn names(roots: &Roots) -> HashMap<u64, String> {
    let of_memory = roots.sys("fs/cgroup/memory");
    let root = if of_memory.is_dir() { of_memory } else { roots.sys("fs/cgroup") };
    let mut names = HashMap::new();
    let mut left = vec![root.clone()];
    while let Some(dir) = left.pop() {
        if let Ok(meta) = dir.metadata() {
            names.insert(meta.ino(), path(&dir, &root));
        }
        // A group that was removed meanwhile has no path.
        let entries = std::fs::read_dir(&dir).into_iter().flatten().flatten();
        left.extend(entries.filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path()));
    }
    names
}

fn path(dir: &Path, root: &Path) -> String {
    format!("/{}", dir.strip_prefix(root).unwrap_or(dir).display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const ANON: u64 = 0x5828;
    const TABLE: u64 = 1 << 26;
    const FREE: u64 = 0x400;

    fn write(path: &Path, words: &[u64]) {
        fs::write(path, words.iter().flat_map(|w| w.to_ne_bytes()).collect::<Vec<u8>>()).expect("written");
    }

    #[test]
    fn groups_are_named_by_their_inodes_and_their_page_tables_counted_by_block() {
        let tree = tempfile::tempdir().expect("a directory");
        let roots = Roots { procfs: tree.path().join("proc"), sysfs: tree.path().join("sys") };
        fs::create_dir_all(&roots.procfs).expect("made");
        let group = roots.sys("fs/cgroup/memory/web/api");
        fs::create_dir_all(&group).expect("made");
        let api = group.metadata().expect("there").ino();
        // Blocks of four.
        write(&roots.proc("kpageflags"), &[ANON, TABLE, TABLE, FREE, ANON, ANON, ANON, FREE, TABLE, TABLE, 0, 0]);
        let only = |flags: ReadError| flags.is_missing();
        assert!(read(&Roots { procfs: tree.path().into(), ..roots.clone() }, 4096, 2).is_err_and(only));
        let of = read(&roots, 4096, 2).expect("read");
        assert_eq!((of.shared_bytes, of.cgroups), (None, None), "this kernel has neither");
        write(&roots.proc("kpagecgroup"), &[api, api, api, api, 5, 5, 0, 0, api, 5, api, 0]);
        write(&roots.proc("kpagecount"), &[2, 0, 0, 9, 1, 3, 1, 0, 0, 0, 0, 0]);
        let of = read(&roots, 4096, 2).expect("read");
        assert_eq!(of.shared_bytes, Some(2 * 4096));
        let cgroup = |path: &str, movable: u64, staying: u64, in_the_way_of| Cgroup {
            path: path.into(),
            movable_bytes: movable * 4096,
            staying_bytes: staying * 4096,
            in_the_way_of,
        };
        assert_eq!(of.cgroups, Some(vec![cgroup("/web/api", 1, 4, 2), cgroup("inode 5", 2, 1, 1)]));
    }
}
