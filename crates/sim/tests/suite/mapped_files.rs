//! Mapped files: pages are read around a fault, mapped together, and unmapped when they are
//! reclaimed.

use crate::support::disk::*;
use crate::support::*;
use kontig_mm::VmEvent;
use kontig_program::{FileName, Op, Region, Value};
use kontig_sim::Machine;

/// Maps the file and reads all of it, this many times.
fn mapper(name: FileName, pages: u32, times: usize) -> Box<Script> {
    with_file(name, move |file, n| match n {
        0 => Some(Op::MmapFile { file, first: 0, pages }),
        1 => Some(Op::Close(file)),
        n if n < 2 + times => Some(Op::Load(Region { mapping: 0, first: 0, pages })),
        _ => None,
    })
}

#[test]
fn a_fault_reads_what_is_around_it_and_maps_sixteen_pages_of_what_is_there() {
    let mut m = machine_with_disk(2, 64, "6.1");
    assert!(m.lay_file(FILE, 4096));
    run(&mut m, 0, mapper(FILE, 4096, 1));
    let counts = m.file_counts();
    assert_eq!(counts.read_in, 4096 + 1, "and the block of its inode");
    assert_eq!(counts.major_faults, 1, "all but the first find their page on its way");
    let first = event(&m, VmEvent::Pgfault);
    // All of it is in memory now: one fault per 16 pages.
    run(&mut m, 0, mapper(FILE, 4096, 2));
    assert_eq!(event(&m, VmEvent::Pgfault) - first, 4096 / 16);
    assert_eq!(m.file_counts(), counts);
    m.memory().check().expect("consistent");
}

#[test]
fn before_3_15_a_fault_maps_no_page_but_its_own() {
    let mut profile = linux("4.4-kcompactd");
    profile.faults.maps_around = false;
    let mut m = machine_of(2, 64, profile, ssd());
    assert!(m.lay_file(FILE, 640));
    run(&mut m, 0, mapper(FILE, 640, 1));
    let first = event(&m, VmEvent::Pgfault);
    run(&mut m, 0, mapper(FILE, 640, 2));
    assert_eq!(event(&m, VmEvent::Pgfault) - first, 640, "what it has mapped does not fault again");
}

#[test]
fn a_mapping_larger_than_memory_is_read_on_and_what_is_reclaimed_leaves_its_page_tables() {
    for profile in ["5.10", "6.1", "7.2"] {
        let mut m = machine_with_disk(2, 32, profile);
        let pages = 2 * 32 * 512;
        assert!(m.lay_file(FILE, pages));
        let id = run(&mut m, 0, mapper(FILE, pages, 2));
        let counts = m.file_counts();
        assert!(counts.read_in > u64::from(pages) * 3 / 2, "{profile}: {counts:?}");
        assert!(counts.file_pages < 32 * 512, "{profile}: {counts:?}");
        assert!(event(&m, VmEvent::PgstealFile) > u64::from(pages), "{profile}");
        assert_eq!(log(&m, id).len(), 5);
        m.memory().check().expect("consistent");
    }
}

#[test]
fn a_mapped_file_without_a_name_is_there_until_it_is_unmapped() {
    let mut p = Prompt::new(machine_with_disk(2, 64, "6.1"), 1);
    let free = |m: &Machine| m.memory().nr_free_pages();
    let Value::File(file) = p.call(0, Op::Open { name: FILE, create: true }).expect("opened").value else { panic!() };
    p.call(0, Op::Write { file, first: 0, pages: 64 }).expect("written");
    let map = p.call(0, Op::MmapFile { file, first: 32, pages: 32 }).expect("mapped");
    let Value::Region(region) = map.value else { panic!("{map:?}") };
    p.call(0, Op::Load(region)).expect("read");
    p.call(0, Op::Close(file)).expect("closed");
    p.call(0, Op::Unlink(FILE)).expect("unlinked");
    assert_eq!(p.m.file_counts().file_pages, 64);
    // Mapped pages are not dropped.
    p.call(0, Op::Sysctl { name: "vm.drop_caches".into(), value: "1".into() }).expect("a sysctl");
    assert_eq!(p.m.file_counts().file_pages, 64, "all of them are dirty besides");
    let before = free(&p.m);
    p.call(0, Op::Munmap(region)).expect("unmapped");
    assert_eq!((p.m.file_counts().file_pages, p.m.file_counts().dirty), (0, 0));
    p.m.memory_mut().drain_cpu(kontig_mm::CpuId::new(0));
    assert!(free(&p.m) >= before + 64, "{before} {}", free(&p.m));
    p.m.memory().check().expect("consistent");
}

#[test]
fn a_file_is_mapped_to_be_read_as_far_as_it_goes() {
    let prompt = || {
        let mut m = machine_with_disk(2, 64, "6.1");
        assert!(m.lay_file(FILE, 100));
        let mut p = Prompt::new(m, 1);
        let opened = p.call(0, Op::Open { name: FILE, create: false }).expect("opened").value;
        let Value::File(file) = opened else { panic!("{opened:?}") };
        (p, file)
    };
    let (mut p, file) = prompt();
    assert!(p.call(0, Op::MmapFile { file, first: 90, pages: 11 }).is_err(), "beyond its end");
    let (mut p, file) = prompt();
    let map = p.call(0, Op::MmapFile { file, first: 90, pages: 10 }).expect("mapped").value;
    let Value::Region(region) = map else { panic!("{map:?}") };
    assert!(p.call(0, Op::Touch(region)).is_err(), "it cannot be written to");
}

#[test]
fn a_truncated_file_leaves_page_tables() {
    let mut p = Prompt::new(machine_with_disk(2, 64, "6.1"), 1);
    let opened = p.call(0, Op::Open { name: FILE, create: true }).expect("opened").value;
    let Value::File(file) = opened else { panic!("{opened:?}") };
    p.call(0, Op::Write { file, first: 0, pages: 64 }).expect("written");
    let map = p.call(0, Op::MmapFile { file, first: 0, pages: 64 }).expect("mapped").value;
    let Value::Region(region) = map else { panic!("{map:?}") };
    p.call(0, Op::Load(region)).expect("read");
    p.call(0, Op::Truncate { file, pages: 10 }).expect("cut");
    assert_eq!(p.m.file_counts().file_pages, 10);
    p.call(0, Op::Munmap(region)).expect("unmapped");
    p.m.memory().check().expect("consistent");
}

#[test]
fn khugepaged_leaves_a_mapped_file_as_it_is() {
    let mut p = Prompt::new(machine_with_disk(2, 64, "6.1"), 1);
    assert!(p.m.lay_file(FILE, 1024));
    for (name, value) in [("thp.enabled", "always"), ("thp.khugepaged.scan_sleep_millisecs", "100")] {
        p.m.memory_mut().sysctl_write(name, value).expect("a sysctl");
    }
    let Value::File(file) = p.call(0, Op::Open { name: FILE, create: false }).expect("opened").value else { panic!() };
    let Value::Region(map) = p.call(0, Op::MmapFile { file, first: 0, pages: 1024 }).expect("mapped").value else {
        panic!()
    };
    p.call(0, Op::Load(map)).expect("read");
    // Anonymous memory registers the process with khugepaged.
    let own = p.mmap(0, 512);
    p.call(0, Op::Touch(own)).expect("touched");
    p.m.memory_mut().lru_add_drain_all();
    pass(&mut p.m, SECOND);
    assert!(p.m.khugepaged().full_scans > 1);
    assert_eq!(p.m.khugepaged().pages_collapsed, 0);
    assert_eq!(p.m.file_counts().file_pages, 1024 + 1, "and the block of its inode");
    p.call(0, Op::Munmap(map)).expect("unmapped");
    p.m.memory().check().expect("consistent");
}
