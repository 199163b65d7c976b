//! Machines with a disk, and programs that use files.

use super::*;
use kontig_mm::{Backing, LruList, NodeStat};
use kontig_program::{FileName, OpenFile};
use kontig_sim::{DiskEntry, DiskKind};

pub const FILE: FileName = FileName::new(0, 1);
/// Pages per read: 128 KiB.
pub const CHUNK: u32 = 32;

/// A disk limited only by its link: 400 MB/s.
pub fn ssd() -> DiskEntry {
    DiskEntry {
        name: "sda".into(),
        kind: DiskKind::Ssd,
        size: "1 GiB".into(),
        filesystem: Default::default(),
        queue_depth: 32,
        nr_requests: None,
        max_sectors_kb: None,
        read_mb_s: 400.0,
        write_mb_s: 400.0,
        read_us: Some(100.0),
        write_us: Some(100.0),
        read_iops: Some(90_000.0),
        write_iops: Some(90_000.0),
        rpm: None,
        seek_ms: None,
        track_ms: None,
        source: "a test".into(),
    }
}

/// A hard disk of 7200 rpm.
pub fn hdd() -> DiskEntry {
    let seeks = (Some(7200.0), Some(8.5), Some(1.0));
    DiskEntry {
        kind: DiskKind::Hdd,
        read_us: None,
        write_us: None,
        read_iops: None,
        write_iops: None,
        rpm: seeks.0,
        seek_ms: seeks.1,
        track_ms: seeks.2,
        ..ssd()
    }
}

/// A machine of this many CPUs and pageblocks of memory, with a disk.
pub fn machine_with_disk(cpus: usize, blocks: u32, profile: &str) -> Machine {
    machine_with(cpus, blocks, profile, ssd())
}

/// The same with another disk.
pub fn machine_with(cpus: usize, blocks: u32, profile: &str, disk: DiskEntry) -> Machine {
    machine_of(cpus, blocks, linux(profile), disk)
}

/// The same under a profile that is none of the built-in ones.
pub fn machine_of(cpus: usize, blocks: u32, profile: kontig_mm::Profile, disk: DiskEntry) -> Machine {
    let memory = Memory::new(&kontig_mm::MachineSpec { lru: true, ..spec(cpus, blocks) }, profile);
    let mut m = Machine::new(memory.expect("a valid machine"), CostModel::new(&xeon().costs));
    m.attach_disks(&MachineFile { disk: vec![disk], swap: None, ..xeon() }).expect("a disk that can be");
    m
}

/// Opens the file and reads it from start to end, this many times.
pub fn reader(pages: u32, times: u32) -> Box<Script> {
    reader_of(FILE, pages, times)
}

pub fn reader_of(name: FileName, pages: u32, times: u32) -> Box<Script> {
    let mut next = 0;
    script(move |log| {
        let Some(opened) = log.first() else { return Some(Op::Open { name, create: false }) };
        let Value::File(file) = opened.value else { panic!("{opened:?}") };
        let first = next % pages;
        if next == pages * times {
            return None;
        }
        next += CHUNK;
        Some(Op::Read { file, first, pages: CHUNK })
    })
}

pub fn stat(m: &Machine, item: NodeStat) -> u64 {
    m.memory().lru().of_node(m.memory().nodes()[0].id).stat_exact(item)
}

pub fn listed(m: &Machine, backing: Backing) -> u64 {
    let vec = m.memory().lru().of_node(m.memory().nodes()[0].id);
    LruList::EVICTABLE.iter().filter(|list| Backing::of(**list) == backing).map(|list| vec.size(*list)).sum()
}

/// A process that opens a file, creating it if necessary, and then runs these operations on it.
pub fn with_file(
    name: FileName,
    mut then: impl FnMut(OpenFile, usize) -> Option<Op> + Clone + Send + 'static,
) -> Box<Script> {
    script(move |log| {
        let Some(opened) = log.first() else { return Some(Op::Open { name, create: true }) };
        let Value::File(file) = opened.value else { panic!("{opened:?}") };
        then(file, log.len() - 1)
    })
}

/// Writes the file from start to end.
pub fn writer(name: FileName, pages: u32) -> Box<Script> {
    with_file(name, move |file, n| {
        let first = n as u32 * CHUNK;
        (first < pages).then_some(Op::Write { file, first, pages: CHUNK })
    })
}
