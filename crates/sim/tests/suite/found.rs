//! Imported user pages are moved, dropped, written and swapped out like any others.

use crate::support::disk::ssd;
use crate::support::*;
use kontig_mm::import::{ImportedBlock, ImportedMarks, Use};
use kontig_mm::{MachineSpec, Memory, MigrateType, Order, PageFlags, Pfn, VmEvent};
use kontig_program::Op;
use kontig_sim::{CostModel, FoundIn, FoundPage, Machine, MachineFile};

/// 64 pageblocks after a gap of one: the first eighth of each is user pages; two huge pages at the
/// end.
fn pages() -> Vec<FoundPage> {
    let small = (1..63).flat_map(|block| (0..64).map(move |n| block * 512 + 8 * n));
    let of = |pfn: u32| match pfn / 512 % 4 {
        0 => FoundIn::File { dirty: true },
        1 => FoundIn::Process,
        _ => FoundIn::File { dirty: false },
    };
    let small = small.map(|pfn| FoundPage { pfn: Pfn::new(pfn), huge: false, of: of(pfn) });
    let huge = [63, 64].map(|block| FoundPage { pfn: Pfn::new(block * 512), huge: true, of: FoundIn::Process });
    small.chain(huge).collect()
}

fn memory(pages: &[FoundPage], lru: bool) -> Memory {
    let mut blocks = Vec::new();
    let mut at = 512;
    let found = |pfn: u32, order: u8, used| ImportedBlock { pfn: Pfn::new(pfn), order: Order::new(order), used };
    for page in pages {
        let (pfn, order) = (page.pfn.get(), if page.huge { 9 } else { 0 });
        while at < pfn {
            let order = at.trailing_zeros().min((pfn - at).ilog2()).min(9) as u8;
            blocks.push(found(at, order, Use::Free));
            at += 1 << order;
        }
        let flags = if lru && page.of != FoundIn::Process { PageFlags::FILE } else { PageFlags::ANON };
        blocks.push(found(pfn, order, Use::Lru(flags, pfn)));
        at = pfn + (1 << order);
    }
    while at < 65 * 512 {
        let order = at.trailing_zeros().min((65 * 512 - at).ilog2()).min(9) as u8;
        blocks.push(found(at, order, Use::Free));
        at += 1 << order;
    }
    let spec = MachineSpec { lru, ..spec(2, 64) };
    let boot = Memory::new(&spec, linux("6.12")).expect("a valid machine");
    let marks = ImportedMarks { marks: boot.zones().iter().next().expect("one zone").watermarks, boost: 0 };
    Memory::import(&spec, linux("6.12"), &[MigrateType::Movable; 65], &[marks], blocks).expect("a valid machine")
}

fn adopted(lru: bool) -> Machine {
    let pages = pages();
    let mut m = Machine::new(memory(&pages, lru), CostModel::new(&xeon().costs));
    if lru {
        m.attach_disks(&MachineFile { disk: vec![ssd()], swap: None, ..xeon() }).expect("a disk that can be");
    }
    m.adopt(&pages).expect("there is room");
    m
}

fn write(name: &str, value: &str) -> Op {
    Op::Sysctl { name: name.into(), value: value.into() }
}

#[test]
fn they_are_moved_and_their_owners_know_where() {
    for lru in [false, true] {
        let mut p = Prompt::new(adopted(lru), 2);
        let before = event(&p.m, VmEvent::PgmigrateSuccess);
        p.call(0, write("vm.compact_memory", "1")).unwrap();
        p.m.memory().check().unwrap();
        assert!(event(&p.m, VmEvent::PgmigrateSuccess) - before > 500, "eighths of pageblocks are put together");
        if lru {
            assert_eq!(p.m.file_counts().file_pages, 46 * 64);
            // Each is found in the cache, and is free afterwards.
            p.call(0, write("vm.drop_caches", "1")).unwrap();
            assert_eq!(p.m.file_counts().file_pages, 15 * 64);
        } else {
            assert_eq!(user_pages(&p.m).len(), 62 * 64 + 2, "without a page cache all are the process's");
        }
    }
}

#[test]
fn clean_pages_of_files_are_dropped_and_dirty_ones_are_written_first() {
    let mut p = Prompt::new(adopted(true), 2);
    let (clean, dirty) = (31 * 64, 15 * 64);
    assert_eq!((p.m.file_counts().file_pages, p.m.file_counts().dirty), (clean + dirty, dirty));
    p.call(0, write("vm.drop_caches", "1")).unwrap();
    let left = p.m.file_counts().file_pages;
    assert!(left <= dirty, "{left} pages of files are left");
    // The flusher writes pages that have been dirty for long.
    let now = p.m.now();
    p.m.run(now + 60 * SECOND, None).unwrap();
    assert_eq!((p.m.file_counts().dirty, p.m.file_counts().written), (0, dirty));
    p.call(0, write("vm.drop_caches", "1")).unwrap();
    assert_eq!(p.m.file_counts().file_pages, 0);
    p.m.memory().check().unwrap();
}

#[test]
fn reclaim_takes_them_when_somebody_needs_their_memory() {
    let mut p = Prompt::new(adopted(true), 2);
    let free = p.m.memory().zones().iter().map(|z| z.nr_free_pages()).sum::<u64>();
    let r = p.mmap(0, free as u32 + 500);
    p.call(0, Op::Touch(r)).unwrap();
    p.m.memory().check().unwrap();
    assert!(p.m.file_counts().file_pages < 46 * 64 - 400, "{:?}", p.m.file_counts());
}
