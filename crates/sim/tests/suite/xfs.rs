//! XFS: its memory besides the pages of files, and how it reaches the log, its place on disk, and
//! is freed.

use crate::support::disk::{self, *};
use crate::support::*;
use kontig_program::{FileName, Op, Placement};
use kontig_sim::{DiskEntry, FileSystem, Machine, Stop};

/// Blocks of the log: a sixteenth of the disk, which is too small for the minimum of 10 MiB.
const LOG_BLOCKS: u64 = 256;

fn xfs(blocks: u32) -> Machine {
    let size = format!("{} MiB", LOG_BLOCKS * 16 / 256);
    disk::machine_with(2, blocks, "4.20-rc3", DiskEntry { filesystem: FileSystem::Xfs, size, ..ssd() })
}

fn roomy(blocks: u32) -> Machine {
    disk::machine_with(2, blocks, "4.20-rc3", DiskEntry { filesystem: FileSystem::Xfs, ..ssd() })
}

/// Objects in use of a cache.
fn objects(m: &Machine, name: &str) -> u64 {
    m.slabs().iter().find(|slab| slab.name == name).map_or(0, |slab| slab.objects)
}

/// Creates files of one page, each by a process of its own.
fn make(m: &mut Machine, files: std::ops::Range<u64>) {
    for number in files {
        let page = with_file(FileName::new(0, number), |file, n| match n {
            0 => Some(Op::Write { file, first: 0, pages: 1 }),
            1 => Some(Op::Close(file)),
            _ => None,
        });
        run(m, 0, page);
    }
}

fn sync(m: &mut Machine) {
    run(m, 0, ops(vec![Op::Sync]));
}

#[test]
fn a_new_file_has_an_inode_a_log_item_and_a_place_in_buffers() {
    let mut m = roomy(64);
    let free = m.memory().nr_free_pages();
    make(&mut m, 0..64);
    let all = ["xfs_inode", "xfs_ili", "xfs_buf", "xfs_buf_item", "buffer_head", "ext4_inode_cache"];
    // 64 inodes are in two clusters; their names are in one block of the directory.
    assert_eq!(all.map(|name| objects(&m, name)), [64, 64, 3, 3, 0, 0]);
    // Each has one vector in the CIL; the second change within the checkpoint left another.
    let vectors = objects(&m, "kmalloc-512");
    assert!((67..=2 * 67).contains(&vectors), "{vectors}");
    assert!(free - m.memory().nr_free_pages() > 64 + 2 * 4, "pages of files and of buffers");
    m.memory().check().expect("consistent");
}

#[test]
fn a_disk_without_a_word_has_ext4() {
    let mut m = machine_with_disk(2, 64, "4.20-rc3");
    make(&mut m, 0..64);
    assert_eq!((objects(&m, "ext4_inode_cache"), objects(&m, "buffer_head"), objects(&m, "xfs_inode")), (64, 64, 0));
    assert!(m.slabs().iter().all(|slab| !slab.name.contains("xfs")));
}

#[test]
fn sync_has_all_changes_in_the_log_and_their_vectors_freed() {
    let mut m = roomy(64);
    make(&mut m, 0..64);
    let before = objects(&m, "kmalloc-512");
    sync(&mut m);
    let data = 64;
    let log = m.file_counts().written_out - data;
    assert!((4..=16).contains(&log), "64 inodes of 284 bytes and three buffers: {log} pages");
    assert!(objects(&m, "kmalloc-512") < before);
    assert_eq!(objects(&m, "xfs_buf_item"), 3, "buffers are not in their place yet");
}

#[test]
fn the_logs_contents_are_in_place_a_minute_later() {
    let mut m = roomy(64);
    make(&mut m, 0..64);
    sync(&mut m);
    let before = m.file_counts().written_out;
    m.run(m.now() + 65 * SECOND, None).expect("it goes on");
    assert_eq!(m.file_counts().written_out - before, 2 * 4 + 1, "two clusters, a block of the directory");
    assert_eq!((objects(&m, "xfs_buf_item"), objects(&m, "xfs_buf"), objects(&m, "xfs_ili")), (0, 3, 64));
    assert_eq!(m.file_counts().read_in, 0);
}

#[test]
fn changes_that_exceed_the_log_wait_until_something_is_in_place() {
    let mut m = xfs(64);
    let id = m.spawn(
        with_file(FILE, |file, n| match n % 2 {
            _ if n == 20_000 => None,
            0 => Some(Op::Write { file, first: 0, pages: 1 }),
            _ => Some(Op::Fsync(file)),
        }),
        Placement::Cpu(0),
    );
    assert_eq!(m.run(m.now() + 600 * SECOND, Some(id)).expect("it goes on"), Stop::ProgramDone);
    // Each checkpoint takes at least a block, and has one inode.
    let written = m.file_counts().written_out;
    assert!(written > 10_000 + 10_000, "{written}: the log has been round {} times", written / LOG_BLOCKS);
}

#[test]
fn buffers_go_under_pressure_and_an_inode_that_is_written_in_place_has_its_buffer_read_again() {
    let mut m = roomy(64);
    make(&mut m, 0..640);
    sync(&mut m);
    m.run(m.now() + 65 * SECOND, None).expect("it goes on");
    assert_eq!(objects(&m, "xfs_buf"), 20 + 5);
    let read_in = m.file_counts().read_in;
    run(&mut m, 0, writer(FileName::new(0, 5_000_000), 4 * 64 * 512));
    let left = objects(&m, "xfs_buf");
    assert!(left < 20, "the shrinker has come by: {left}");
    make(&mut m, 0..640);
    sync(&mut m);
    m.run(m.now() + 65 * SECOND, None).expect("it goes on");
    let read = m.file_counts().read_in - read_in;
    assert!(read > 0 && read.is_multiple_of(4), "{read} pages of clusters");
    m.memory().check().expect("consistent");
}

#[test]
fn a_file_that_is_gone_leaves_nothing_but_what_its_neighbours_need() {
    let mut m = roomy(64);
    make(&mut m, 0..64);
    sync(&mut m);
    for number in 0..64 {
        run(&mut m, 0, ops(vec![Op::Unlink(FileName::new(0, number))]));
    }
    m.run(m.now() + 65 * SECOND, None).expect("it goes on");
    let all = ["xfs_inode", "xfs_ili", "xfs_buf_item", "kmalloc-512"].map(|name| objects(&m, name));
    assert_eq!(all, [0, 0, 0, 0]);
    make(&mut m, 100..164);
    assert_eq!(objects(&m, "xfs_buf"), 3, "their places are others'");
}
