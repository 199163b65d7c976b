//! Small machines for the engine's own tests.

use crate::boot::{MachineSpec, ZoneSpec};
use crate::compact::CompactControl;
use crate::event::MigrateMode;
use crate::gfp::{AllocFlags, Gfp, Wmark};
use crate::owner::{Lock, MigrateOutcome, Owner};
use crate::request::Request;
use crate::rules::Profile;
use crate::state::{Memory, PageFlags};
use crate::types::{CpuId, MigrateType, NodeId, Order, Pfn, ZoneId, ZoneType};
use alloc::vec;

/// The profile of this name, from the files, by way of text: the crate that reads the files is
/// built with the engine as a library, whose types are not those of its own tests.
pub(crate) fn linux(name: &str) -> Profile {
    let text = toml::to_string(&kontig_profiles::linux(name)).expect("a profile can be written");
    toml::from_str(&text).expect("and read")
}

/// The same with these switches thrown.
pub(crate) fn linux_with(name: &str, switches: &[&str]) -> Profile {
    let known = kontig_profiles::switches();
    let thrown = switches
        .iter()
        .fold(kontig_profiles::linux(name), |profile, switch| known[*switch].throw(&profile).expect("the switch fits"));
    toml::from_str(&toml::to_string(&thrown).expect("a profile can be written")).expect("and read")
}

/// One Normal zone of this many pageblocks and two CPUs, profile 6.1.
pub(crate) fn machine(blocks: u32) -> Memory {
    machine_with(blocks, linux("6.1"))
}

/// The same machine with LRU order.
pub(crate) fn ordered_machine(blocks: u32) -> Memory {
    ordered_machine_with(blocks, linux("6.1"))
}

/// The same machine with LRU order and another profile.
pub(crate) fn ordered_machine_with(blocks: u32, profile: Profile) -> Memory {
    Memory::new(&MachineSpec { lru: true, ..spec(blocks) }, profile).expect("a valid machine")
}

/// The same machine with a kernel whose pages are in generations.
pub(crate) fn in_generations(blocks: u32) -> Memory {
    in_generations_of("6.12", blocks)
}

/// The same with the kernel of this profile.
pub(crate) fn in_generations_of(profile: &str, blocks: u32) -> Memory {
    let mut m = ordered_machine_with(blocks, linux(profile));
    m.enable_lru_gen(crate::state::LruGen(1)).expect("it has generations");
    m
}

/// A user page of this machine, on its way to the LRU in a batch of the first CPU.
pub(crate) fn user_page(m: &mut Memory, flags: PageFlags) -> Pfn {
    let cpu = CpuId::new(0);
    let pfn = take(m, Request::new(cpu, NodeId::new(0), Gfp::HIGHUSER_MOVABLE, Order::ZERO)).expect("memory is free");
    m.lru_add(cpu, pfn, Order::ZERO, flags);
    pfn
}

/// A node with a DMA32 zone of 16 pageblocks and a Normal one of 48, one CPU, and LRU order.
pub(crate) fn two_zones(profile: Profile) -> Memory {
    let zone = |kind, first: u32, blocks: u32| ZoneSpec {
        node: 0,
        kind,
        start: first * 512,
        end: (first + blocks) * 512,
        present: u64::from(blocks) * 512,
        managed: u64::from(blocks) * 512,
    };
    let zones = vec![zone(ZoneType::Dma32, 8, 16), zone(ZoneType::Normal, 2048, 48)];
    Memory::new(&MachineSpec { cpus: 1, zones, thp: false, lru: true }, profile).expect("a valid machine")
}

/// A block from the free lists, even where all zones have given their shares.
pub(crate) fn take(m: &mut Memory, request: Request) -> Option<Pfn> {
    m.alloc(request).ok().or_else(|| m.get_page_from_freelist(&request, AllocFlags::mark(Wmark::Min)))
}

/// A machine whose memory is all in use by the kernel, except for every other page of the last
/// `single` pageblocks.
pub(crate) fn with_single_pages(blocks: u32, single: usize, profile: Profile) -> Memory {
    let mut m = machine_with(blocks, profile);
    let zone = &mut m.zones[crate::types::ZoneId::new(0)];
    zone.watermarks = crate::state::Watermarks::default();
    let cpu = CpuId::new(0);
    let block = Request::new(cpu, NodeId::new(0), Gfp::KERNEL, Order::new(9));
    let blocks: alloc::vec::Vec<Pfn> = core::iter::from_fn(|| take(&mut m, block)).collect();
    for &pfn in &blocks[blocks.len() - single..] {
        m.split_page(pfn, Order::new(9));
        (0..512).step_by(2).for_each(|page| m.free(cpu, pfn.plus(page), Order::ZERO));
    }
    m.drain_cpu(cpu);
    m.fold_vmstat(cpu);
    m
}

/// A machine, in defrag_mode or not, whose memory is all free except for every other page of one
/// pageblock. All free pages meet the high mark, whole pageblocks alone do not.
pub(crate) fn with_a_pageblock_in_pieces(profile: Profile, defrag_mode: bool) -> Memory {
    let mut m = machine_with(16, profile);
    let cpu = CpuId::new(0);
    let block = Request::new(cpu, NodeId::new(0), Gfp::KERNEL, Order::new(9));
    let taken = m.alloc(block).expect("memory is free");
    m.split_page(taken, Order::new(9));
    (0..512).step_by(2).for_each(|at| m.free(cpu, taken.plus(at), Order::ZERO));
    m.drain_cpu(cpu);
    m.fold_vmstat(cpu);
    m.shared.tunables.defrag_mode = defrag_mode;
    let zone = &mut m.zones[crate::types::ZoneId::new(0)];
    // A block of 512 is wanted, so 511 pages do not count.
    zone.watermarks.high = zone.free_pages_in_blocks() as u64 - 400;
    m
}

/// An owner whose pages always move.
pub(crate) struct AllMove;

impl crate::owner::Owner for AllMove {
    fn may_isolate(&mut self, _: Pfn) -> bool {
        true
    }
    fn migrate(&mut self, _: Pfn, _: Pfn, _: u32) -> crate::owner::MigrateOutcome {
        crate::owner::MigrateOutcome::Moved
    }
}

/// The same machine under another profile.
pub(crate) fn machine_with(blocks: u32, profile: Profile) -> Memory {
    Memory::new(&spec(blocks), profile).expect("a valid machine")
}

/// The same machine with every other page of each pageblock free, and user pages between them.
pub(crate) fn half_free_with(blocks: u32, profile: Profile) -> Memory {
    let mut m = machine_with(blocks, profile);
    let (cpu, huge) = (CpuId::new(0), Order::new(9));
    while let Ok(pfn) = m.alloc(Request::new(cpu, NodeId::new(0), Gfp::HIGHUSER_MOVABLE | Gfp::COMP, huge)) {
        m.split_page(pfn, huge);
        (1..512).step_by(2).for_each(|page| m.lru_add(cpu, pfn.plus(page), Order::ZERO, PageFlags::ANON));
        (0..512).step_by(2).for_each(|page| m.free(cpu, pfn.plus(page), Order::ZERO));
    }
    m
}

/// A request's run over a whole zone, in this mode, that heeds skip hints.
pub(crate) fn whole_zone(mode: MigrateMode) -> CompactControl {
    CompactControl {
        order: None,
        migratetype: MigrateType::Movable,
        mode,
        direct: true,
        whole_zone: true,
        ignore_skip_hint: false,
        ignore_block_suitable: false,
        proactive: false,
        alloc_flags: AllocFlags::mark(Wmark::Min),
        highest: ZoneType::Normal,
        may_enter_fs: true,
        request_order: None,
        kswapd: false,
    }
}

/// An owner whose pages can all move, and a lock that another CPU holds, or waits for, all the
/// time.
pub(crate) struct Holds(pub(crate) Option<Lock>);

impl Owner for Holds {
    fn is_locked(&self, _: &Memory, _: ZoneId, lock: Lock) -> bool {
        self.0 == Some(lock)
    }
    fn is_wanted(&self, m: &Memory, zone: ZoneId, lock: Lock) -> bool {
        self.is_locked(m, zone, lock)
    }
    fn may_isolate(&mut self, _: Pfn) -> bool {
        true
    }
    fn migrate(&mut self, _: Pfn, _: Pfn, _: u32) -> MigrateOutcome {
        MigrateOutcome::Moved
    }
}

fn spec(blocks: u32) -> MachineSpec {
    let pages = u64::from(blocks) * 512;
    let zone =
        ZoneSpec { node: 0, kind: ZoneType::Normal, start: 0, end: blocks * 512, present: pages, managed: pages };
    MachineSpec { cpus: 2, zones: vec![zone], thp: false, lru: false }
}
