//! Writes to files: dirty pages are written back in time and throttled, and truncated ones are
//! freed.

use crate::support;
use crate::support::disk::*;
use crate::support::*;
use kontig_mm::VmEvent;
use kontig_program::{FileName, Op, OpenFile, Placement};
use kontig_sim::{Machine, SimError, Stop};

/// Time of this many pages on a link of 400 MB/s.
fn link_ns(pages: u32) -> u64 {
    u64::from(pages) * 4096 * 1000 / 400
}

#[test]
fn a_streaming_writer_writes_at_the_disks_speed_and_what_is_dirty_stays_below_the_limit() {
    for profile in ["5.10", "6.1", "7.2"] {
        let mut m = machine_with_disk(2, 64, profile);
        let pages = 4 * 64 * 512;
        let id = m.spawn(writer(FILE, pages), Placement::Cpu(0));
        let (mut most, mut half_way) = (0, None);
        while m.run(m.now() + MS, Some(id)).expect("it goes on") == Stop::Time {
            let counts = m.file_counts();
            most = most.max(counts.dirty + counts.writeback);
            if half_way.is_none() && counts.written_out > u64::from(pages) / 2 {
                half_way = Some((m.now(), counts.written_out));
            }
        }
        let (at, written) = half_way.expect("it was half-way once");
        let late = m.file_counts().written_out - written;
        let rate = late * 4096 * 1000 / (m.now() - at);
        assert!((390..=401).contains(&rate), "{profile}: {rate} MB/s");
        let limit = 64 * 512 / 5;
        assert!(most <= limit && most > limit / 2, "{profile}: {most} of {limit}");
        assert_eq!(m.file_counts().dirtied, u64::from(pages), "{profile}");
        assert!(event(&m, VmEvent::PgstealKswapd) > u64::from(pages) / 2, "{profile}: what is written is reclaimed");
        m.memory().check().expect("consistent");
    }
}

#[test]
fn fsync_comes_back_when_all_is_written_in_one_run() {
    let mut m = machine_with_disk(2, 64, "6.1");
    let pages = 2048;
    let id = run(
        &mut m,
        0,
        with_file(FILE, move |file, n| match n {
            0 => Some(Op::Write { file, first: 0, pages }),
            1 => Some(Op::Fsync(file)),
            _ => None,
        }),
    );
    let counts = m.file_counts();
    assert_eq!((counts.dirty, counts.writeback, counts.written_out, counts.written), (0, 0, 2048, 2048));
    let counter = |name: &str| m.counters().find(|(counter, _)| counter.name == name).map(|(_, value)| value);
    let shown = ["nr_file_pages", "nr_dirty", "nr_dirtied", "pgpgout", "nr_slab_reclaimable"].map(counter);
    assert_eq!(shown[..4], [2048, 0, 2048, 8192].map(Some), "KiB are written");
    assert!(shown[4].is_some_and(|pages| pages > 2048 / 39), "buffer heads and nodes: {shown:?}");
    assert_eq!(counter("nr_mapped"), None);
    let took = log(&m, id)[2].latency_ns();
    assert!(took > link_ns(pages) && took < link_ns(pages) * 11 / 10, "{took}");
    run(&mut m, 0, reader(pages, 1));
    assert_eq!(m.file_counts().read_in, 0);
}

#[test]
fn dirty_pages_are_written_when_they_are_30_seconds_old() {
    let mut m = machine_with_disk(2, 64, "6.1");
    run(&mut m, 0, writer(FILE, 1024));
    m.run(29 * SECOND, None).expect("it goes on");
    assert_eq!((m.file_counts().dirty, m.file_counts().written_out), (1024, 0));
    m.run(36 * SECOND, None).expect("it goes on");
    assert_eq!((m.file_counts().dirty, m.file_counts().written_out), (0, 1024));
}

#[test]
fn a_flusher_that_can_write_nothing_waits_though_more_is_dirty_than_the_background_limit() {
    let mut m = support::disk::machine_with(2, 64, "6.1", hdd());
    m.memory_mut().sysctl_write("vm.dirty_background_bytes", "4096").expect("a page");
    // The pages are rewritten during their writeback; until it ends, none can be written again.
    let over_and_over = with_file(FILE, |file, n| (n < 500).then_some(Op::Write { file, first: 0, pages: 512 }));
    run(&mut m, 0, over_and_over);
    m.run(m.now() + 40 * SECOND, None).expect("it goes on");
    let counts = m.file_counts();
    assert_eq!((counts.dirty, counts.writeback), (0, 0));
    assert!(counts.written_out > 512, "{counts:?}");
}

#[test]
fn sync_writes_all_files_and_a_page_written_to_again_is_written_again() {
    let mut m = machine_with_disk(2, 64, "6.1");
    for number in 0..20 {
        run(&mut m, 0, writer(FileName::new(0, number), 32));
    }
    run(&mut m, 0, ops(vec![Op::Sync]));
    assert_eq!((m.file_counts().dirty, m.file_counts().writeback, m.file_counts().written_out), (0, 0, 640));
    run(&mut m, 0, writer(FileName::new(0, 3), 32));
    run(&mut m, 0, ops(vec![Op::Sync]));
    assert_eq!((m.file_counts().dirty, m.file_counts().written_out), (0, 672));
}

#[test]
fn drop_caches_drops_what_is_clean_and_not_in_use() {
    let mut m = machine_with_disk(2, 64, "6.1");
    m.memory_mut().drain_cpu(kontig_mm::CpuId::new(0));
    for number in 0..400 {
        run(
            &mut m,
            0,
            with_file(FileName::new(0, number), |file, n| match n {
                0 => Some(Op::Write { file, first: 0, pages: 4 }),
                1 => Some(Op::Close(file)),
                _ => None,
            }),
        );
    }
    let drop_caches = |m: &mut Machine, value: &str| {
        let sysctl = Op::Sysctl { name: "vm.drop_caches".into(), value: value.into() };
        run(m, 0, ops(vec![sysctl]));
    };
    drop_caches(&mut m, "1");
    assert_eq!(m.file_counts().file_pages, 1600, "dirty pages stay");
    run(&mut m, 0, ops(vec![Op::Sync]));
    let before = kernel_pages(&m);
    let objects = |m: &Machine| m.slabs().iter().map(|slab| slab.objects).collect::<Vec<_>>();
    // Inodes, dentries, nodes, buffer heads, open files.
    assert_eq!(objects(&m), [400, 400, 400, 1600, 0]);
    drop_caches(&mut m, "2");
    assert_eq!(m.file_counts().file_pages, 1600);
    assert_eq!(objects(&m), [400, 0, 400, 1600, 0], "an inode stays with its pages");
    drop_caches(&mut m, "3");
    assert_eq!((m.file_counts().file_pages, objects(&m)), (0, vec![0; 5]));
    // 400 inodes at 14 per slab of 4 pages, 400 dentries at 21 per page, nodes, buffer heads: some
    // slabs of each stay.
    assert!(before - kernel_pages(&m) > 100, "{before} {}", kernel_pages(&m));
    run(&mut m, 0, with_file(FileName::new(0, 7), |file, n| (n == 0).then_some(Op::Read { file, first: 0, pages: 4 })));
    assert_eq!(m.file_counts().read_in, 4 + 25, "the file is on the disk, and its inode among 400 in 25 blocks");
    let mut p = Prompt::new(machine_with_disk(2, 64, "6.1"), 1);
    let no = p.call(0, Op::Sysctl { name: "vm.drop_caches".into(), value: "9".into() }).expect_err("no such value");
    assert_eq!(no.to_string(), "vm.drop_caches: '9' is not a whole number from 1 to 3");
    m.memory().check().expect("consistent");
}

#[test]
fn a_file_without_a_name_is_there_as_long_as_somebody_has_it_open() {
    let mut p = Prompt::new(machine_with_disk(2, 64, "6.1"), 2);
    let open = |p: &mut Prompt, create| p.call(0, Op::Open { name: FILE, create });
    let file = |o: Result<kontig_program::Outcome, SimError>| match o.expect("it is there").value {
        kontig_program::Value::File(file) => file,
        other => panic!("{other:?}"),
    };
    let a = file(open(&mut p, true));
    p.call(0, Op::Write { file: a, first: 0, pages: 100 }).expect("a write");
    p.call(0, Op::Unlink(FILE)).expect("it has a name");
    assert_eq!(p.m.file_counts().file_pages, 100);
    assert!(p.call(0, Op::Read { file: a, first: 0, pages: 100 }).is_ok());
    p.call(0, Op::Close(a)).expect("it is open");
    let counts = p.m.file_counts();
    assert_eq!((counts.file_pages, counts.dirty, counts.written_out), (0, 0, 0), "it went unwritten");
    assert_eq!(open(&mut p, false), Err(SimError::NoSuchFile { name: FILE }));
}

#[test]
fn a_file_that_is_cut_off_gives_its_blocks_back() {
    // Three files of 40 MiB fit on 100 MiB only one after the other.
    let disk = kontig_sim::DiskEntry { size: "100 MiB".into(), ..ssd() };
    let mut m = disk::machine_with(2, 64, "6.1", disk);
    let pages = 10 << 10;
    for number in 0..3 {
        let name = FileName::new(0, number);
        run(&mut m, 0, writer(name, pages));
        run(&mut m, 0, with_file(name, |file: OpenFile, n| (n == 0).then_some(Op::Truncate { file, pages: 10 })));
    }
    run(&mut m, 0, ops(vec![Op::Sync]));
    assert!(m.file_counts().file_pages <= 30);
    let id = m.spawn(writer(FILE, 30 << 10), Placement::Cpu(0));
    let full = m.run(u64::MAX / 2, Some(id)).expect_err("there is no room for it");
    assert_eq!(full.to_string(), "no room on the disk for file 1 of disk 0: take a larger one");
}
