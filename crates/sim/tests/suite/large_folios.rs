//! Large folios of files: where there are any, what I/O goes through them, and what takes them
//! apart.

use crate::support::disk::*;
use crate::support::*;
use kontig_mm::{Order, Pfn, VmEvent};
use kontig_program::{FileName, Gfp, Op, Region, Value};
use kontig_sim::{DiskEntry, FileSystem, Machine};
use proptest::prelude::*;
use proptest::test_runner::Config;

fn machine(blocks: u32, profile: &str, filesystem: FileSystem) -> Machine {
    crate::support::disk::machine_with(2, blocks, profile, DiskEntry { filesystem, ..ssd() })
}

/// The number of folios on the LRU, by order.
fn folios(m: &Machine) -> [u32; 11] {
    let mut by_order = [0; 11];
    for zone in m.memory().zones() {
        for tag in (zone.start.get()..zone.end.get()).map(|pfn| m.memory().frames().tag(Pfn::new(pfn))) {
            by_order[tag.order().index()] += u32::from(tag.is_lru());
        }
    }
    by_order
}

/// A process that does these operations on the file, one after the other.
fn user(ops: Vec<fn(kontig_program::OpenFile) -> Op>) -> Box<Script> {
    with_file(FILE, move |file, n| ops.get(n).map(|op| op(file)))
}

#[test]
fn files_are_in_large_folios_on_the_file_systems_that_have_them() {
    let largest = |profile, filesystem| {
        let mut m = machine(32, profile, filesystem);
        assert!(m.lay_file(FILE, 4096));
        run(&mut m, 0, reader(4096, 1));
        m.check().expect("consistent");
        assert!(listed(&m, kontig_mm::Backing::File) >= 4096 - 31);
        folios(&m).iter().rposition(|n| *n > 0)
    };
    assert_eq!(largest("6.1", FileSystem::Ext4), Some(0));
    assert_eq!(largest("6.12", FileSystem::Ext4), Some(0), "from 6.16 on");
    assert_eq!(largest("6.12", FileSystem::Xfs), Some(5), "as large as the window of 128 KiB");
    assert_eq!(largest("7.2", FileSystem::Ext4), Some(5));
}

#[test]
fn a_write_comes_in_folios_as_large_as_it_is_and_a_later_one_of_a_page_writes_that_page_alone() {
    let mut m = machine(32, "7.2", FileSystem::Ext4);
    run(
        &mut m,
        0,
        user(vec![|file| Op::Write { file, first: 4, pages: 700 }, Op::Fsync, |file| Op::Write {
            file,
            first: 530,
            pages: 1,
        }]),
    );
    m.check().expect("consistent");
    let by_order = folios(&m);
    // 4, 8, ... 256 from page 4 on; then from 512 on 128, 64 of the last 192 pages.
    assert_eq!(by_order[..9], [0, 0, 1, 1, 1, 1, 2, 2, 1], "{by_order:?}");
    let before = m.file_counts();
    assert_eq!((before.dirtied, before.dirty), (700 + 128, 128), "all of the folio counts as dirty");
    run(&mut m, 0, user(vec![Op::Fsync]));
    let after = m.file_counts();
    assert_eq!((after.written - before.written, after.written_out - before.written_out), (128, 1));
    assert_eq!((after.dirty, after.writeback), (0, 0));
    m.check().expect("consistent");
}

#[test]
fn where_no_large_block_is_free_a_write_comes_in_smaller_folios() {
    let mut m = machine(32, "7.2", FileSystem::Ext4);
    fill_unmovable(&mut m, 64);
    run(&mut m, 0, user(vec![|file| Op::Write { file, first: 0, pages: 512 }]));
    let by_order = folios(&m);
    m.check().expect("consistent");
    assert_eq!(by_order[8..], [0; 3], "two that are reclaimed side by side make one of 128: {by_order:?}");
    assert!(by_order[6] > 0, "{by_order:?}");
    // kswapd, woken for large blocks, takes some of what is written by then, or not written yet.
    let cached = (0..512).filter(|page| m.is_cached(FILE, *page)).count() as u64;
    assert!(cached + event(&m, VmEvent::PgstealFile) >= 512);
    assert_eq!(m.file_counts().dirtied, 512);
}

#[test]
fn a_folio_that_a_file_now_ends_in_is_split() {
    let mut m = machine(32, "7.2", FileSystem::Ext4);
    run(&mut m, 0, user(vec![|file| Op::Write { file, first: 0, pages: 64 }, |file| Op::Truncate { file, pages: 33 }]));
    m.check().expect("consistent");
    assert_eq!((m.file_counts().file_pages, m.file_counts().dirty), (33, 33));
    assert_eq!(folios(&m)[0], 33);
    run(&mut m, 0, user(vec![Op::Fsync, |file| Op::Truncate { file, pages: 0 }]));
    m.check().expect("consistent");
    assert_eq!((m.file_counts().file_pages, m.file_counts().written_out), (0, 33));
}

#[test]
fn a_mapped_folio_is_used_and_unmapped_as_a_whole() {
    let mut m = machine(32, "7.2", FileSystem::Ext4);
    let pages = 32 * 512 * 2;
    assert!(m.lay_file(FILE, pages));
    run(
        &mut m,
        0,
        with_file(FILE, move |file, n| match n {
            0 => Some(Op::MmapFile { file, first: 0, pages }),
            1 | 2 => Some(Op::Load(Region { mapping: 0, first: 0, pages })),
            _ => None,
        }),
    );
    m.check().expect("consistent");
    assert!(event(&m, VmEvent::PgstealFile) > u64::from(pages) / 2, "what was mapped is reclaimed");
}

#[test]
fn folios_hold_under_pressure_by_readers_writers_and_huge_pages() {
    for (profile, filesystem, enabled) in
        IN_GENERATIONS.iter().flat_map(|(p, f)| [(*p, *f, 0), (*p, *f, 1), (*p, *f, 7)])
    {
        let mut m = machine(24, profile, filesystem);
        switch(&mut m, enabled);
        let other = FileName::new(0, 2);
        let pages = 24 * 512 * 3 / 2;
        assert!(m.lay_file(FILE, pages) && m.lay_file(other, pages));
        let mut seed = 9u64;
        let mut random = move |n: u32| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((seed >> 33) % u64::from(n)) as u32
        };
        let mixed = with_file(other, move |file, n| {
            let first = random(pages - 200);
            Some(match n {
                600.. => return None,
                n if n % 50 == 49 => Op::Fsync(file),
                n if n % 97 == 96 => Op::Truncate { file, pages: pages / 2 + first / 2 },
                n if n % 3 == 0 => Op::Write { file, first, pages: 1 + random(150) },
                n if n % 3 == 1 => Op::Write { file, first, pages: 1 },
                _ => Op::Read { file, first, pages: 1 + random(64) },
            })
        });
        let huge = allocator(Gfp::TRANSHUGE, Order::new(9), 4, MS);
        let ids = [
            m.spawn(reader(pages / CHUNK * CHUNK, 2), kontig_program::Placement::Any),
            m.spawn(mixed, kontig_program::Placement::Any),
            m.spawn(huge, kontig_program::Placement::Any),
        ];
        for id in ids {
            finish(&mut m, id);
            m.check().unwrap_or_else(|e| panic!("{profile} {enabled}: {e}"));
        }
        assert!(log(&m, ids[1]).iter().any(|o| matches!(o.value, Value::Pages(n) if n > 100)), "{profile}");
        let by_order = folios(&m);
        assert!(by_order[3..].iter().sum::<u32>() > 20, "{profile}: {by_order:?}");
        assert!(event(&m, VmEvent::PgstealFile) > u64::from(pages) / 2, "{profile}");
    }
}

/// The kernels and file systems with large folios whose generations are known.
const IN_GENERATIONS: [(&str, FileSystem); 3] =
    [("6.12", FileSystem::Xfs), ("7.2", FileSystem::Ext4), ("7.2", FileSystem::Xfs)];

fn switch(m: &mut Machine, enabled: u32) {
    m.memory_mut().sysctl_write("lru_gen.enabled", &enabled.to_string()).expect("the kernel has it");
    m.check().expect("consistent");
}

#[test]
fn a_folio_is_in_a_generation_as_a_whole_and_stays_whole_when_the_switch_is_thrown() {
    for (profile, filesystem) in IN_GENERATIONS {
        let mut m = machine(32, profile, filesystem);
        switch(&mut m, 7);
        assert!(m.lay_file(FILE, 8192));
        run(&mut m, 0, reader(4096, 1));
        let before = folios(&m);
        assert!(before[5] > 100, "{profile}: {before:?}");
        let gens = m.memory().lru().of_node(m.memory().nodes()[0].id).gens();
        let pages = |kind| {
            let zones = |of| (0..kontig_mm::types::ZoneType::COUNT).map(move |zone| (of, zone));
            let each = kontig_mm::state::Gen::all().flat_map(zones);
            each.map(|(of, zone)| gens.nr_pages(of, kind, kontig_mm::ZoneType::ALL[zone])).sum::<i64>()
        };
        assert!(pages(1) > 4096 - 32, "{profile}: {} pages", pages(1));
        switch(&mut m, 0);
        switch(&mut m, 7);
        assert_eq!(folios(&m), before, "{profile}");
    }
}

/// Uses a mapped file again and again while another, larger than memory, is read; how many pages
/// were reclaimed, and how many were read from the disk.
fn mapped_beside_a_stream(profile: &str, filesystem: FileSystem, enabled: u32) -> (u64, u64) {
    let mut m = machine(32, profile, filesystem);
    switch(&mut m, enabled);
    let other = FileName::new(0, 2);
    let (hot, stream) = (4096, 32 * 512 * 3);
    assert!(m.lay_file(FILE, hot) && m.lay_file(other, stream));
    let uses = with_file(FILE, move |file, n| match n {
        0 => Some(Op::MmapFile { file, first: 0, pages: hot }),
        1..400 => Some(Op::Load(Region { mapping: 0, first: 0, pages: hot })),
        _ => None,
    });
    let ids = [
        m.spawn(uses, kontig_program::Placement::Any),
        m.spawn(reader_of(other, stream, 1), kontig_program::Placement::Any),
    ];
    for id in ids {
        finish(&mut m, id);
        m.check().unwrap_or_else(|e| panic!("{profile} {enabled}: {e}"));
    }
    (event(&m, VmEvent::PgstealFile), m.file_counts().read_in)
}

#[test]
fn a_mapped_folio_in_use_stays_young_while_a_file_is_streamed_past_it() {
    for (profile, filesystem) in IN_GENERATIONS {
        for enabled in [1, 7] {
            let (reclaimed, read_in) = mapped_beside_a_stream(profile, filesystem, enabled);
            assert!(reclaimed > 32 * 512, "{profile} {enabled}: {reclaimed} reclaimed");
            let again = read_in - u64::from(4096 + 32 * 512 * 3u32);
            assert!(again < 1000, "{profile} {enabled}: {again} pages were read again");
        }
    }
}

#[derive(Clone, Debug)]
enum Act {
    Read(u32, u32),
    Write(u32, u32),
    Load(u32, u32),
    Truncate(u32),
    Fsync,
    Touch(u32, u32),
    Switch(u32),
}

fn act(pages: u32) -> impl Strategy<Value = Act> {
    let range = move || (0..pages - 1).prop_flat_map(move |first| (Just(first), 1..=(pages - first).min(700)));
    prop_oneof![
        5 => range().prop_map(|(first, pages)| Act::Read(first, pages)),
        3 => range().prop_map(|(first, pages)| Act::Write(first, pages)),
        4 => range().prop_map(|(first, pages)| Act::Load(first, pages)),
        1 => (1..pages).prop_map(Act::Truncate),
        1 => Just(Act::Fsync),
        2 => range().prop_map(|(first, pages)| Act::Touch(first, pages)),
        1 => prop_oneof![Just(0u32), Just(1), Just(3), Just(7)].prop_map(Act::Switch),
    ]
}

proptest! {
    #![proptest_config(Config { cases: 60, failure_persistence: None, ..Config::default() })]

    #[test]
    fn folios_and_generations_hold_together_whatever_is_done(
        acts in proptest::collection::vec(act(3000), 1..40),
        of in 0usize..3,
        enabled in prop_oneof![Just(1u32), Just(3), Just(7)],
    ) {
        let (profile, filesystem) = IN_GENERATIONS[of];
        let mut m = machine(4, profile, filesystem);
        switch(&mut m, enabled);
        prop_assert!(m.lay_file(FILE, 3000));
        let mut p = Prompt::new(m, 1);
        let Value::File(file) = p.call(0, Op::Open { name: FILE, create: false }).expect("opened").value else {
            panic!("no file");
        };
        let mapped = match p.call(0, Op::MmapFile { file, first: 5, pages: 2900 }).expect("mapped").value {
            Value::Region(region) => region,
            other => panic!("{other:?}"),
        };
        let memory = p.mmap(0, 3000);
        let mut length = 3000;
        for act in &acts {
            let op = match *act {
                Act::Read(first, pages) => Op::Read { file, first, pages },
                Act::Write(first, pages) => {
                    length = length.max(first + pages);
                    Op::Write { file, first, pages }
                }
                // What is beyond the file's end cannot be used.
                Act::Load(first, pages) if first + pages < length.saturating_sub(5).min(2900) => {
                    Op::Load(part(mapped, first, pages))
                }
                Act::Load(..) => continue,
                Act::Truncate(pages) => {
                    length = pages;
                    Op::Truncate { file, pages }
                }
                Act::Fsync => Op::Fsync(file),
                // No swap: memory of its own takes what files leave.
                Act::Touch(first, pages) => Op::Touch(part(memory, first % 300, pages.min(100))),
                Act::Switch(to) => Op::Sysctl { name: "lru_gen.enabled".into(), value: to.to_string() },
            };
            p.call(0, op.clone()).unwrap_or_else(|e| panic!("{op:?}: {e:?}"));
            p.m.check().unwrap();
        }
    }
}
