//! Files: a page read from the disk once then comes from memory, while there is enough.

use crate::support::disk::*;
use crate::support::*;
use kontig_mm::{Backing, LruList, Memory, MigrateType, NodeStat, Pfn, VmEvent, Wmark};
use kontig_program::{FileName, Op, OpenFile, Value};
use kontig_sim::{CostModel, Machine, MachineFile};

#[test]
fn a_file_is_read_at_the_disks_speed_once_and_then_from_memory() {
    let mut m = machine_with_disk(2, 32, "6.1");
    let pages = 8192;
    assert!(m.lay_file(FILE, pages));
    let id = run(&mut m, 0, reader(pages, 1));
    let took = m.now();
    let at_link_speed = u64::from(pages) * 4096 * 1000 / 400;
    assert!(took > at_link_speed && took < at_link_speed * 102 / 100, "{took} ns, and the link takes {at_link_speed}");
    assert_eq!((m.file_counts().read_in, m.file_counts().file_pages), (8193, 8193), "and the block of its inode");
    assert!((0..pages).all(|page| m.is_cached(FILE, page)));
    assert_eq!(log(&m, id).last().map(|o| o.value), Some(Value::Pages(u64::from(CHUNK))));
    run(&mut m, 0, reader(pages, 1));
    assert!(m.now() - took < at_link_speed / 10, "it is in memory");
    assert_eq!(m.file_counts().read_in, 8193);
    assert!(listed(&m, Backing::File) >= 8192 - 31);
    m.memory().check().expect("consistent");
}

#[test]
fn a_cpu_with_nothing_else_to_do_waits_for_io_with_its_task() {
    let mut m = machine_with_disk(2, 32, "6.1");
    assert!(m.lay_file(FILE, 8192));
    run(&mut m, 0, reader(8192, 1));
    let [reads, idles] = [0, 1].map(|cpu| m.cpu_use(kontig_mm::CpuId::new(cpu)));
    assert!(reads.iowait_ns > m.now() / 2, "{reads:?}");
    assert!(reads.iowait_ns + reads.system_ns > m.now() * 99 / 100, "{reads:?}");
    assert_eq!(idles.iowait_ns, 0);
}

#[test]
fn a_stream_larger_than_memory_keeps_free_memory_between_min_and_high() {
    for profile in ["5.10", "6.1", "7.2"] {
        let mut m = machine_with_disk(2, 32, profile);
        // Without the boost for a pageblock that changes hands, which would make kswapd free more.
        m.memory_mut().sysctl_write("vm.watermark_boost_factor", "0").expect("all of them have it");
        let pages = 2 * 32 * 512;
        assert!(m.lay_file(FILE, pages));
        let id = m.spawn(reader(pages, 1), kontig_program::Placement::Cpu(0));
        let (mut least, mut most_late) = (u64::MAX, 0);
        while m.run(m.now() + MS, Some(id)).expect("it goes on") == kontig_sim::Stop::Time {
            let free = m.memory().nr_free_pages();
            least = least.min(free);
            if m.file_counts().read_in > u64::from(pages) * 6 / 10 {
                most_late = most_late.max(free);
            }
        }
        let zone = &m.memory().zones()[0];
        let (min, high) = (zone.wmark(Wmark::Min), zone.wmark(Wmark::High));
        assert!(least > min / 2, "{profile}: {least} were free, min is {min}");
        assert!(most_late < 4 * high / 3, "{profile}: {most_late} were free late, high is {high}");
        let [scanned, stolen] = [VmEvent::PgscanKswapd, VmEvent::PgstealKswapd].map(|e| event(&m, e));
        assert!(stolen > u64::from(pages) * 4 / 10 && stolen <= scanned, "{profile}: {stolen} of {scanned}");
        assert_eq!(event(&m, VmEvent::PgstealFile), stolen + event(&m, VmEvent::PgstealDirect), "{profile}");
        assert_eq!(m.file_counts().read_in, u64::from(pages) + 1, "{profile}: each page once, and its inode's block");
        assert_eq!(stat(&m, NodeStat::WorkingsetRefaultFile), 0, "{profile}");
        m.memory().check().expect("consistent");
    }
}

#[test]
fn a_file_a_little_larger_than_memory_pushes_itself_out_and_comes_back_through_its_shadows() {
    let mut m = machine_with_disk(2, 32, "6.1");
    let pages = 32 * 512 * 5 / 4;
    assert!(m.lay_file(FILE, pages));
    run(&mut m, 0, reader(pages, 3));
    let read = m.file_counts().read_in;
    let of_inode = 1;
    assert_eq!(read, 3 * u64::from(pages) + of_inode, "the page wanted next is always the one that has just gone");
    assert_eq!(stat(&m, NodeStat::WorkingsetRefaultFile), 2 * u64::from(pages));
    assert_eq!(stat(&m, NodeStat::WorkingsetActivateFile), 0, "nothing in use could have made room");
    m.memory().check().expect("consistent");
}

#[test]
fn refaulted_pages_replace_active_ones_that_are_no_longer_used() {
    let mut m = machine_with_disk(2, 32, "6.1");
    let (old, pages) = (FileName::new(0, 2), 12_000);
    assert!(m.lay_file(old, 8000) && m.lay_file(FILE, pages));
    run(&mut m, 0, reader_of(old, 8000, 2));
    let active = |m: &Machine| m.memory().lru().of_node(m.memory().nodes()[0].id).size(LruList::ActiveFile);
    assert!(active(&m) > 7900, "read twice: {}", active(&m));
    run(&mut m, 0, reader(pages, 6));
    let back = stat(&m, NodeStat::WorkingsetActivateFile);
    assert!(back > u64::from(pages) / 2, "{back}");
    let cached = (0..pages).filter(|page| m.is_cached(FILE, *page)).count();
    assert!(cached > 11_000, "{cached} pages of the file in use are in memory");
    let before = m.file_counts().read_in;
    run(&mut m, 0, reader(pages, 1));
    assert!(m.file_counts().read_in - before < 2000);
    m.memory().check().expect("consistent");
}

#[test]
fn two_runs_of_a_machine_are_the_same() {
    let run_once = || {
        let mut m = machine_with_disk(2, 32, "6.1");
        assert!(m.lay_file(FILE, 20_000));
        let ids = [0, 1].map(|cpu| m.spawn(reader(20_000 / CHUNK * CHUNK, 1), kontig_program::Placement::Cpu(cpu)));
        ids.iter().for_each(|id| finish(&mut m, *id));
        (m.now(), m.turns(), m.file_counts(), m.memory().vmstat().clone())
    };
    assert_eq!(run_once(), run_once());
}

#[test]
fn one_who_waits_for_a_page_leaves_the_cpu_to_others() {
    let mut m = machine_with_disk(2, 32, "6.1");
    assert!(m.lay_file(FILE, 4096));
    let id = run(&mut m, 0, reader(4096, 1));
    let time = m.cpu_time(id);
    assert!((time.user_ns + time.system_ns) * 5 < m.now(), "{time:?} of {}", m.now());
}

#[test]
fn a_file_that_is_not_there_or_not_open_is_named() {
    let mut p = Prompt::new(machine_with_disk(2, 4, "6.1"), 1);
    let no = p.call(0, Op::Open { name: FILE, create: false }).expect_err("it is not there");
    assert_eq!(no.to_string(), "the workload opens file 1 of disk 0, which does not exist: create it first");
    let mut p = Prompt::new(machine_with_disk(2, 4, "6.1"), 1);
    let no = p.call(0, Op::Open { name: FileName::new(3, 1), create: true }).expect_err("there is no such disk");
    assert!(no.to_string().starts_with("the workload uses files on disk 3"), "{no}");
    let mut p = Prompt::new(machine_with_disk(2, 4, "6.1"), 1);
    assert!(p.call(0, Op::Read { file: OpenFile::new(0), first: 0, pages: 1 }).is_err());
}

#[test]
fn up_to_5_15_an_inode_that_nobody_uses_goes_with_its_clean_pages() {
    for (profile, stays) in [("4.20-rc3", false), ("5.10", false), ("6.1", true)] {
        let mut m = machine_with_disk(2, 64, profile);
        let closed = with_file(FILE, |file, n| match n {
            0 => Some(Op::Write { file, first: 0, pages: 8 }),
            1 => Some(Op::Fsync(file)),
            2 => Some(Op::Close(file)),
            _ => None,
        });
        run(&mut m, 0, closed);
        let open = with_file(FileName::new(0, 2), |file, n| match n {
            0 => Some(Op::Write { file, first: 0, pages: 8 }),
            1 => Some(Op::Fsync(file)),
            _ => None,
        });
        run(&mut m, 0, open);
        run(&mut m, 0, ops(vec![Op::Sysctl { name: "vm.drop_caches".into(), value: "2".into() }]));
        assert_eq!((m.is_cached(FILE, 0), m.is_cached(FileName::new(0, 2), 0)), (stays, true), "{profile}");
        m.memory().check().expect("consistent");
    }
}

/// The objects of a cache.
fn objects(m: &Machine, cache: &str) -> u64 {
    m.slabs().into_iter().find(|slab| slab.name == cache).map_or(0, |slab| slab.objects)
}

#[test]
fn a_look_at_a_file_keeps_its_inode_and_dentry_in_memory_and_opens_nothing() {
    let mut m = machine_with_disk(2, 32, "6.1");
    assert!(m.lay_file(FILE, 64));
    run(&mut m, 0, ops(vec![Op::Stat(FILE)]));
    let there = ["ext4_inode_cache", "dentry", "filp"].map(|cache| objects(&m, cache));
    assert_eq!((there, m.file_counts().read_in), ([1, 1, 0], 1), "the block that has its inode was read");
    run(&mut m, 0, ops(vec![Op::Unlink(FILE)]));
    assert_eq!(["ext4_inode_cache", "dentry"].map(|cache| objects(&m, cache)), [0, 0]);
    m.memory().check().expect("consistent");
}

/// Pages of files in the pageblocks of the kernel's own memory.
fn in_unmovable_blocks(m: &Machine) -> usize {
    let memory = m.memory();
    let zone = &memory.zones()[0];
    let all = (zone.start.get()..zone.end.get()).map(Pfn::new);
    let is_there = |pfn: &kontig_mm::Pfn| {
        memory.frames().tag(*pfn).is_lru()
            && memory.pageblocks().migratetype(pfn.index() / 512) == MigrateType::Unmovable
    };
    all.filter(is_there).count()
}

#[test]
fn an_inode_comes_with_the_blocks_around_it_and_those_lie_among_the_kernel_s_pages() {
    let mut m = machine_with_disk(2, 32, "6.1");
    let names = (1..=300).map(|number| FileName::new(0, number));
    names.clone().for_each(|name| assert!(m.lay_file(name, 1)));
    let stat_all = || ops(names.clone().map(Op::Stat).collect::<Vec<_>>());
    let drop = |value: &str| ops(vec![Op::Sysctl { name: "vm.drop_caches".into(), value: value.into() }]);
    run(&mut m, 0, stat_all());
    let counts = m.file_counts();
    assert_eq!((counts.read_in, counts.file_pages), (113, 113), "300 inodes, six apart, sixteen in a block");
    assert!(in_unmovable_blocks(&m) > 100, "{}", in_unmovable_blocks(&m));
    run(&mut m, 0, drop("2"));
    run(&mut m, 0, stat_all());
    assert_eq!(m.file_counts().read_in, 113, "the table is in memory still");
    run(&mut m, 0, drop("3"));
    assert_eq!(m.file_counts().file_pages, 0, "it goes as files' pages do");
    assert!(in_unmovable_blocks(&m) < 15, "but for those in a CPU's batch");
    run(&mut m, 0, ops(vec![Op::Stat(FileName::new(0, 300)), Op::Sleep(10 * MS)]));
    assert_eq!(m.file_counts().read_in, 113 + 17, "the last block, and those before it");
    m.memory().check().expect("consistent");
}

#[test]
fn before_5_7_the_blocks_around_an_inode_may_be_moved() {
    let of = |profile| {
        let mut m = machine_with_disk(2, 32, profile);
        let names = (1..=300).map(|number| FileName::new(0, number));
        names.clone().for_each(|name| assert!(m.lay_file(name, 1)));
        run(&mut m, 0, ops(names.map(Op::Stat).collect::<Vec<_>>()));
        assert_eq!(m.file_counts().read_in, 113);
        in_unmovable_blocks(&m)
    };
    let [before, since] = ["5.6", "5.9"].map(of);
    assert!(before == 0 && since > 100, "{before}, {since}");
}

#[test]
fn a_file_said_to_be_read_at_random_is_read_page_by_page() {
    let read_in = |advised: bool| {
        let mut m = machine_with_disk(2, 32, "6.1");
        assert!(m.lay_file(FILE, 64));
        let then = move |file, n| match n {
            0 if advised => Some(Op::AdviseRandom(file)),
            0 => Some(Op::Sleep(1)),
            1 => Some(Op::Read { file, first: 0, pages: 1 }),
            _ => None,
        };
        run(&mut m, 0, with_file(FILE, then));
        m.file_counts().read_in
    };
    let of_inode = 1;
    assert_eq!([true, false].map(read_in), [1 + of_inode, 4 + of_inode]);
}

#[test]
fn with_slab_an_inode_that_goes_leaves_a_page_and_with_slub_a_quarter_of_a_larger_block() {
    let pages = |allocator| {
        let memory = Memory::new(&kontig_mm::MachineSpec { lru: true, ..spec(2, 32) }, linux("6.1"));
        let mut m = Machine::new(memory.expect("a valid machine"), CostModel::new(&xeon().costs));
        let slab = Some(kontig_sim::machine_file::SlabEntry { allocator, source: "a test".into() });
        m.attach_disks(&MachineFile { disk: vec![ssd()], swap: None, slab, ..xeon() }).expect("a disk that can be");
        let names = (1..=300).map(|number| FileName::new(0, number));
        names.clone().for_each(|name| assert!(m.lay_file(name, 1)));
        run(&mut m, 0, ops(names.clone().map(Op::Stat).collect::<Vec<_>>()));
        let in_use = m.slabs().iter().find(|slab| slab.name == "ext4_inode_cache").map(|slab| slab.pages);
        run(&mut m, 0, ops(names.map(Op::Unlink).collect::<Vec<_>>()));
        // Long enough to reap all that is not used.
        run(&mut m, 0, ops(vec![Op::Sleep(400_000_000_000)]));
        m.memory().check().expect("consistent");
        let kept = m.slabs().iter().find(|slab| slab.name == "ext4_inode_cache").map(|slab| slab.pages);
        (in_use, kept)
    };
    // Three inodes in a page, or fourteen in four pages; SLUB keeps some empty slabs.
    let (slab, slub) = (pages(kontig_sim::Allocator::Slab), pages(kontig_sim::Allocator::Slub));
    assert_eq!((slab, slub.0), ((Some(100), Some(0)), Some(88)));
    assert!(slub.1 > Some(0), "{slub:?}");
}

#[test]
fn pages_that_go_with_their_inodes_are_counted_by_who_shrinks_them() {
    let took = |profile: &str, drop: bool| {
        let mut m = machine_with_disk(2, 32, profile);
        // Half as many pages again as there are in memory.
        for file in 0..12_000 {
            assert!(m.lay_file(FileName::new(0, 100 + file), 2));
        }
        let mut p = Prompt::new(m, 1);
        for file in (0..12_000).filter(|file| !drop || *file < 40) {
            let opened =
                p.call(0, Op::Open { name: FileName::new(0, 100 + file), create: false }).expect("opened").value;
            let Value::File(file) = opened else { panic!("{opened:?}") };
            // Twice, so that the pages are active, and are there when their inode is the oldest.
            for _ in 0..2 {
                p.call(0, Op::Read { file, first: 0, pages: 2 }).expect("read");
            }
            p.call(0, Op::Close(file)).expect("closed");
        }
        if drop {
            p.call(0, Op::Sysctl { name: "vm.drop_caches".into(), value: "2".into() }).expect("a sysctl");
        }
        p.m.memory().check().expect("consistent");
        let counts = p.m.file_counts();
        (counts.inodes_took, counts.inodes_took_in_kswapd)
    };
    let (by_processes, by_kswapd) = took("5.10", true);
    assert!((80 - 15..=80).contains(&by_processes), "all but those in a batch for the LRU: {by_processes}");
    assert_eq!(by_kswapd, 0);
    assert_eq!(took("6.1", true), (0, 0), "from 5.16 on an inode with pages stays");
    let (by_processes, by_kswapd) = took("5.10", false);
    assert!(by_kswapd > 100 && by_kswapd > by_processes, "{by_processes} {by_kswapd}");
    assert_eq!(took("6.1", false), (0, 0));
}

#[test]
fn up_to_4_6_a_page_that_is_written_twice_is_active_and_later_one_that_is_read_twice() {
    let active = |writes_count_as_use: bool, write: bool| {
        let mut profile = linux("5.6");
        profile.lru.writes_count_as_use = writes_count_as_use;
        let mut p = Prompt::new(machine_of(2, 64, profile, ssd()), 1);
        let opened = p.call(0, Op::Open { name: FILE, create: true }).expect("opened").value;
        let Value::File(file) = opened else { panic!("{opened:?}") };
        p.call(0, Op::Write { file, first: 0, pages: 320 }).expect("written");
        for _ in 0..2 {
            let read = Op::Read { file, first: 0, pages: 320 };
            let op = if write { Op::Write { file, first: 0, pages: 320 } } else { read };
            p.call(0, op).expect("done");
        }
        p.m.memory_mut().drain_cpu(kontig_mm::CpuId::new(0));
        p.m.memory().lru().of_node(p.m.memory().nodes()[0].id).size(LruList::ActiveFile)
    };
    assert!(active(true, true) > 280, "all but those in a batch");
    assert!(active(false, true) == 0 && active(false, false) > 280);
}

#[test]
fn a_page_that_comes_back_to_be_written_is_no_refault_since_4_17() {
    let refaults = |profile: &str, write: bool| {
        let mut p = Prompt::new(machine_of(1, 64, linux(profile), ssd()), 1);
        let open = |p: &mut Prompt, name, create| {
            let opened = p.call(0, Op::Open { name, create }).expect("opened").value;
            let Value::File(file) = opened else { panic!("{opened:?}") };
            file
        };
        let (file, pages, more) = (open(&mut p, FILE, true), 8192, 64 * 512 * 3 / 2);
        p.call(0, Op::Write { file, first: 0, pages }).expect("written");
        p.call(0, Op::Fsync(file)).expect("clean");
        // Another file, larger than all memory, takes their place.
        let other = FileName::new(0, 2);
        assert!(p.m.lay_file(other, more));
        let other = open(&mut p, other, false);
        p.call(0, Op::Read { file: other, first: 0, pages: more }).expect("read");
        assert!((0..pages).all(|page| !p.m.is_cached(FILE, page)));
        let before = stat(&p.m, NodeStat::WorkingsetRefaultFile);
        let read = Op::Read { file, first: 0, pages };
        p.call(0, if write { Op::Write { file, first: 0, pages } } else { read }).expect("done");
        stat(&p.m, NodeStat::WorkingsetRefaultFile) - before
    };
    for profile in ["5.6", "6.1", "7.2"] {
        assert_eq!(refaults(profile, true), 0, "{profile}");
        assert!(refaults(profile, false) >= 8000, "{profile}");
    }
    assert!(refaults("4.6", true) >= 8000);
}

#[test]
fn a_superblock_that_is_movable_is_neither_freed_nor_moved() {
    // Frames that bear the number of a page of the disk: on the LRU, and no process's.
    let of_disk = |m: &Machine| {
        let is_of_disk = |pfn: &Pfn| m.memory().frames().tag(*pfn).is_lru() && m.mapped_as(*pfn).next().is_none();
        (512..512 + 32 * 512).map(Pfn::new).filter(is_of_disk).collect::<Vec<_>>()
    };
    let kept = |profile: &str| {
        let mut p = Prompt::new(machine_with_disk(2, 32, profile), 1);
        // Every other page of memory, so that compaction has all to do.
        let all = p.mmap(0, 15_000);
        p.call(0, Op::Touch(all)).expect("room");
        (0..all.pages).step_by(2).for_each(|page| drop(p.call(0, Op::Munmap(part(all, page, 1)))));
        let before = of_disk(&p.m);
        for (name, value) in [("vm.drop_caches", "3"), ("vm.compact_memory", "1")] {
            p.call(0, Op::Sysctl { name: name.into(), value: value.into() }).expect("a sysctl");
        }
        p.m.memory().check().expect("consistent");
        assert!(event(&p.m, VmEvent::PgmigrateSuccess) > 1000, "{profile}");
        (before.len(), of_disk(&p.m) == before)
    };
    // Superblock and a block of descriptors.
    assert_eq!(kept("3.13"), (2, true));
    assert_eq!(kept("4.4-kcompactd"), (0, true));
}
