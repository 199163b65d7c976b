//! A host made of files, with given flags for every frame.

use std::fs;
use tempfile::TempDir;

/// A mapped user page.
pub const ANON: u64 = 0x5828;
/// A clean, unmapped page of a file.
pub const CLEAN_FILE: u64 = 0x28;
/// A page of slab objects.
pub const SLAB: u64 = 0x80;
/// The flag of a free block's first page, which every free page has here.
pub const FREE: u64 = 0x400;

/// A host with one zone of 64 MiB; `word` returns the flags of a frame.
pub fn host(word: impl Fn(usize) -> u64) -> TempDir {
    const FRAMES: usize = 16384;
    let tree = tempfile::tempdir().unwrap();
    let proc = tree.path().join("proc");
    fs::create_dir_all(proc.join("sys/kernel")).unwrap();
    fs::create_dir_all(proc.join("sys/vm")).unwrap();
    fs::create_dir_all(tree.path().join("sys/devices/system/node/node0")).unwrap();
    let words: Vec<u64> = (0..FRAMES).map(word).collect();
    // The largest aligned free blocks, as merged buddies are.
    let mut blocks = [0u64; 11];
    let mut at = 0;
    while at < FRAMES {
        let run = words[at..].iter().take_while(|w| **w == FREE).count();
        let fits = |o: &usize| at.is_multiple_of(1 << o) && 1usize << o <= run;
        match (0..=10).rev().find(fits) {
            Some(order) => {
                blocks[order] += 1;
                at += 1 << order;
            }
            None => at += 1,
        }
    }
    let free = words.iter().filter(|w| **w == FREE).count();
    let columns: String = blocks.iter().map(|n| format!("{n:>6} ")).collect();
    let zoneinfo = format!(
        "Node 0, zone   Normal\n  per-node stats\n      nr_inactive_anon 0\n  pages free     \
            {free}\n        min      100\n        \
         low      125\n        high     150\n        spanned  {FRAMES}\n        present  {FRAMES}\n        \
         managed  {FRAMES}\n        \
         protection: (0)\n      nr_free_pages {free}\n  pagesets\n    cpu: 0\n              count: 0\n  \
         node_unreclaimable:  0\n  start_pfn:           0\n"
    );
    let write = |file: &str, text: &str| fs::write(proc.join(file), text).unwrap();
    write("zoneinfo", &zoneinfo);
    write("buddyinfo", &format!("Node 0, zone   Normal {columns}\n"));
    write("vmstat", "pgmigrate_success 0\nnr_foll_pin_acquired 5\nnr_foll_pin_released 5\n");
    write("iomem", "00000000-03ffffff : System RAM\n");
    write("sys/kernel/osrelease", "6.12.9\n");
    fs::write(proc.join("kpageflags"), words.iter().flat_map(|w| w.to_ne_bytes()).collect::<Vec<u8>>()).unwrap();
    fs::write(tree.path().join("sys/devices/system/node/node0/compact"), "").unwrap();
    tree
}
